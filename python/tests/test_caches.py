"""posenc.Cache: against posenc.rotate, NumPy's quantisation, and keys rotated at their goal. SPDX-License-Identifier: MIT"""
import numpy as np
import pytest
from reference import BF16
from test_heads import normed, turned
from test_refused import refused

import posenc
from posenc import Cache

RANDOM = np.random.default_rng(31)
HEADS, DIM = 3, 64
SPEC = posenc.RopeSpec(DIM, rotary_dim=48, base=1e6)
X = RANDOM.standard_normal((2, HEADS, 5, DIM), dtype=np.float32)
POSITIONS = np.arange(70, 75)
TURN = posenc.rotation(SPEC, POSITIONS)
ROTATED = posenc.rotate(X, TURN)


def slots_first(x):
    """(heads, tokens, head_dim) as a cache reads back."""
    return x.transpose(1, 0, 2)


@pytest.mark.parametrize("format, dtype", [("f32", np.float32), ("f16", np.float16), ("bf16", BF16)])
def test_floats(format, dtype):
    keys, values = (Cache.zeros(2, 8, HEADS, DIM, format) for _ in range(2))
    x = X.astype(dtype)
    keys.append(x, TURN, starts=[2, 3], threads=2)
    values.append(x, starts=[2, 3])
    assert keys.format == format and keys.data.dtype == dtype
    turned_keys = posenc.rotate(x, TURN)
    for n, start in enumerate((2, 3)):
        assert keys.data[n, start:start + 5].tobytes() == np.ascontiguousarray(slots_first(turned_keys[n])).tobytes()
        assert values.data[n, start:start + 5].tobytes() == np.ascontiguousarray(slots_first(x[n])).tobytes()
        assert not keys.data[n, :start].astype(float).any() and not keys.data[n, start + 5:].astype(float).any()
    back = keys.read([2, 8 + 3, 2])
    assert back.dtype == np.float32 and back.shape == (3, HEADS, DIM)
    assert (back == turned_keys[[0, 1, 0], :, 0].astype(np.float32)).all()
    out = np.empty((1, HEADS, DIM), np.float64)
    assert values.read([2], out=out) is out and (out == x[0, :, 0].astype(np.float64)).all()


def test_norm_and_layouts():
    memory = np.zeros((HEADS, 8, DIM), np.float32)  # heads outside of tokens
    keys = Cache(memory.transpose(1, 0, 2)[None])
    weight = RANDOM.uniform(0.5, 1.5, DIM)
    keys.append(X[0], TURN, epsilon=1e-6, weight=weight)
    wanted = posenc.norm_rotate(X[0], TURN, epsilon=1e-6, weight=weight)
    assert memory[:, :5].tobytes() == wanted.tobytes()
    keys.append(X[0], posenc.rotation(SPEC, range(100)), epsilon=1e-6, weight=weight, weight_plus_one=True, order="after",
                row_ids=POSITIONS)
    table = posenc.rotation(SPEC, POSITIONS)
    assert memory[:, :5].tobytes() == posenc.norm_rotate(X[0], table, epsilon=1e-6, weight=weight, weight_plus_one=True,
                                                         order="after").tobytes()
    assert np.abs(wanted - normed_then_turned(X[0], weight)).max() < 1e-5
    keys.append(X[0].transpose(1, 0, 2), TURN, axes="tokens,heads,head_dim")
    assert memory[:, :5].tobytes() == ROTATED[0].tobytes()
    keys.append(X[0], TURN, pairing="interleaved")
    assert memory[:, :5].tobytes() == posenc.rotate(X[0], TURN, pairing="interleaved").tobytes()


def test_heads_that_are_no_one_axis():
    gaps = np.zeros((2, 4, 5, DIM), np.float32)[:, ::3]  # 2 x 2 heads, no one stride
    gaps[...] = RANDOM.standard_normal(gaps.shape)
    keys = Cache.zeros(1, 5, 4, DIM)
    keys.append(gaps, TURN, axes="heads,heads,tokens,head_dim")
    assert (keys.read(range(5)) == slots_first(posenc.rotate(gaps.reshape(4, 5, DIM), TURN))).all()


def normed_then_turned(x, weight):
    return turned(normed(x.astype(np.float64), weight), POSITIONS)


def test_pages_and_lists():
    keys = Cache.zeros(6, 2, HEADS, DIM)
    keys.append(X, TURN, starts=[1, 0], block_table=[[4, 0, 3], [5, 1, 2]])
    assert (keys.read([9, 0, 1, 6, 7]) == slots_first(ROTATED[0])).all()
    assert (keys.read([10, 11, 2, 3, 4]) == slots_first(ROTATED[1])).all()
    keys = Cache.zeros(6, 2, HEADS, DIM)
    keys.append(X, TURN, slot_ids=[[0, 11, -1, 5, 3], [1, 2, 4, 6, -1]])
    assert (keys.read([0, 11, 5, 3]) == slots_first(ROTATED[0])[[0, 1, 3, 4]]).all()
    assert (keys.read([1, 2, 4, 6]) == slots_first(ROTATED[1])[:4]).all()
    assert not keys.read([7, 8, 9, 10]).any()


def test_int8():
    keys = Cache.zeros(1, 8, HEADS, DIM, "int8")
    keys.append(X[0], TURN)
    rows = slots_first(ROTATED[0])
    most = np.abs(rows).max(axis=-1)
    assert keys.scales[0, :5].tobytes() == (most / np.float32(127)).tobytes()
    assert (keys.data[0, :5] == np.rint(rows * (np.float32(127) / most)[..., None])).all()
    back = keys.read(range(5))
    assert (back == keys.data[0, :5].astype(np.float32) * keys.scales[0, :5, :, None]).all()
    keys.shift(range(5), POSITIONS, POSITIONS + 1000, SPEC.frequencies())
    goal = slots_first(posenc.rotate(X[0], posenc.rotation(SPEC, POSITIONS + 1000)))
    assert np.abs(keys.read(range(5)) - goal).max() < 2.0 * most.max() / 127


def test_fp8():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    keys = Cache.zeros(1, 8, HEADS, DIM, "fp8_e4m3", tensor_scale=0.25)
    keys.append(X[0])
    wanted = (slots_first(X[0]) * np.float32(4)).astype(ml_dtypes.float8_e4m3fn)
    assert keys.data[0, :5].tobytes() == np.ascontiguousarray(wanted).tobytes()
    assert (keys.read(range(5)) == wanted.astype(np.float32) * np.float32(0.25)).all()
    own = np.zeros((1, 8, HEADS, DIM), ml_dtypes.float8_e4m3fn)
    cache = Cache(own, tensor_scale=0.25)
    cache.append(X[0])
    assert cache.format == "fp8_e4m3" and own[0, :5].tobytes() == keys.data[0, :5].tobytes()
    each = Cache(np.zeros((1, 8, HEADS, DIM), np.uint8), format="fp8_e4m3", scales=np.zeros((1, 8, HEADS), np.float32))
    each.append(X[0])
    assert np.abs(each.read(range(5)) - slots_first(X[0])).max() < np.abs(X[0]).max() / 16


def test_shifts():
    frequencies = SPEC.frequencies()
    keys = Cache.zeros(1, 8, HEADS, DIM)
    keys.append(X[0], TURN)
    originals = Cache(keys.data.copy())
    goals = np.array([3, 100000, 72, 5, 1 << 30])
    goal = slots_first(posenc.rotate(X[0], posenc.rotation(SPEC, goals)))
    keys.shift([0, 1, 2, 3, 4], POSITIONS, goals, frequencies)
    assert np.abs(keys.read(range(5)) - goal).max() < 2e-6
    assert keys.data[0, 2].tobytes() == originals.data[0, 2].tobytes()  # did not move
    keys.shift([7, 5], POSITIONS[[1, 0]], goals[[1, 0]], frequencies, originals=originals, original_slots=[1, 0])
    assert np.abs(keys.read([5, 7]) - goal[:2]).max() < 2e-6
    far = np.arange(5) * 100001
    rounded = Cache.zeros(1, 8, HEADS, DIM)
    rounded.append(X[0], posenc.rotation(SPEC, far, mode="float32"))
    rounded.shift(range(5), far, goals, frequencies, mode="float32")
    wanted = slots_first(posenc.rotate(X[0], posenc.rotation(SPEC, goals, mode="float32")))
    assert np.abs(rounded.read(range(5)) - wanted).max() < 2e-6


def test_shifts_of_frequencies():
    yarn = posenc.RopeSpec(DIM, rotary_dim=48, base=1e6, scaling={
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}).frequencies()
    keys = Cache.zeros(1, 8, HEADS, DIM)
    keys.append(X[0], TURN)
    keys.shift(range(5), POSITIONS, POSITIONS, SPEC.frequencies(), to=yarn)
    goal = slots_first(posenc.rotate(X[0], posenc.rotation(yarn, POSITIONS)))
    assert yarn.attention_factor > 1.1 and np.abs(keys.read(range(5)) - goal).max() < 2e-6


def test_shifts_on_axes():
    spec = posenc.RopeSpec(DIM, axes=posenc.Axes(2, (16, 16)))
    grid, goal = np.array([[1, 2, 3], [40, 50, 60]]), np.array([[9, 8, 7], [40, 51, 62]])
    keys = Cache.zeros(1, 4, HEADS, DIM)
    keys.append(X[0, :, :3], posenc.rotation(spec, grid))
    keys.shift(range(3), grid, goal, spec.frequencies())
    wanted = slots_first(posenc.rotate(X[0, :, :3], posenc.rotation(spec, goal)))
    assert np.abs(keys.read(range(3)) - wanted).max() < 2e-6


def test_torch():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X).bfloat16()
    keys = Cache(torch.zeros(2, 8, HEADS, DIM, dtype=torch.bfloat16))
    keys.append(x, TURN)
    wanted = posenc.rotate(x, TURN).transpose(1, 2)
    assert torch.equal(keys.data[:, :5], wanted)
    back = keys.read(range(5), dtype=torch.bfloat16)
    assert back.dtype is torch.bfloat16 and torch.equal(back, wanted[0])
    assert keys.read([0]).dtype is torch.float32
    keys.shift(torch.arange(5), POSITIONS, POSITIONS + 9, SPEC.frequencies())
    goal = posenc.rotate(x, posenc.rotation(SPEC, POSITIONS + 9)).transpose(1, 2)
    assert (keys.data[0, :5].float() - goal[0].float()).abs().max() < 0.05
    narrow = Cache(torch.zeros(1, 8, HEADS, DIM, dtype=torch.float8_e4m3fn), tensor_scale=1.0)
    narrow.append(x[:1].float())
    assert torch.equal(narrow.data[0, :5].view(torch.uint8), x[0].transpose(0, 1).float().to(torch.float8_e4m3fn).view(torch.uint8))
    whole = Cache(torch.zeros(1, 8, HEADS, DIM, dtype=torch.int8), scales=torch.zeros(1, 8, HEADS))
    whole.append(x[:1], TURN)
    assert (whole.read(range(5)) - wanted[0].float()).abs().max() < 0.05
    refused(ValueError, "x|gradient", keys.append, x.requires_grad_())
    refused(ValueError, "data|gradient", Cache, torch.zeros(1, 2, 3, 4, requires_grad=True))


def test_refused():
    keys = Cache.zeros(2, 8, HEADS, DIM)
    before = keys.data.tobytes()
    frequencies = SPEC.frequencies()
    refused(ValueError, "slot_ids|16", keys.append, X[0], slot_ids=[0, 1, 2, 3, 16])
    refused(ValueError, "slot_ids|once", keys.append, X[0], slot_ids=[0, 1, 2, 3, 3])
    refused(ValueError, "slot_ids|starts", keys.append, X[0], slot_ids=[0, 1, 2, 3, 4], starts=[0])
    refused(ValueError, "slot_ids|token", keys.append, X[0], slot_ids=[0, 1])
    refused(ValueError, "starts|2 sequences", keys.append, X, starts=[0])
    refused(ValueError, "block_table|2 sequences", keys.append, X, block_table=[[0]])
    refused(ValueError, "block_table", keys.append, X, block_table=[[0], [2]])
    refused(TypeError, "starts|float", keys.append, X, starts=[0.5, 1])
    refused(ValueError, "heads", keys.append, X[0, :2])
    refused(ValueError, "head_dim|64", keys.append, X[..., :32].copy(), TURN)
    refused(TypeError, "rotation|RopeSpec", keys.append, X, SPEC)
    refused(ValueError, "rotation|None", keys.append, X, row_ids=[0])
    refused(ValueError, "x|float16", keys.append, X.astype(np.float64))
    refused(ValueError, "slots|16", keys.read, [16])
    refused(ValueError, "slots|one axis", keys.read, [[1]])
    refused(ValueError, "out|shape", keys.read, [1], out=np.zeros((2, HEADS, DIM), np.float32))
    refused(ValueError, "dtype|out", keys.read, [1], out=np.zeros((1, HEADS, DIM), np.float32), dtype="f32")
    refused(TypeError, "frequencies|RopeSpec", keys.shift, [0], [1], [2], SPEC)
    refused(ValueError, "from_positions|each slot", keys.shift, [0], [1, 2], [2], frequencies)
    refused(ValueError, "to_positions|2^40", keys.shift, [0], [1], [1 << 41], frequencies)
    refused(ValueError, "slots|once", keys.shift, [0, 0], [1, 1], [2, 2], frequencies)
    refused(TypeError, "originals|ndarray", keys.shift, [0], [1], [2], frequencies, originals=X)
    refused(ValueError, "original_slots|originals", keys.shift, [0], [1], [2], frequencies, original_slots=[0])
    assert keys.data.tobytes() == before
    memory = np.zeros((1, 8, HEADS, DIM), np.int8)
    refused(ValueError, "scales|int8", Cache, memory)
    refused(ValueError, "scales|shape", Cache, memory, scales=np.zeros((1, 8, 2), np.float32))
    refused(TypeError, "scales|float32", Cache, memory, scales=np.zeros((1, 8, HEADS)))
    refused(TypeError, "data|dtype", Cache, memory, format="f32")
    refused(TypeError, "data|list", Cache, [1.0])
    refused(ValueError, "data|shape", Cache, memory[0], scales=np.zeros((8, HEADS), np.float32))
    refused(ValueError, "format|'int4'|'fp8_e4m3'", Cache, memory, format="int4")
    refused(ValueError, "format|'f64'", Cache, memory.astype(np.float64))
    refused(ValueError, "format|'uint8'", Cache, memory.astype(np.uint8))
    refused(ValueError, "tensor_scale|-1", Cache.zeros, 1, 8, HEADS, DIM, "fp8_e4m3", tensor_scale=-1.0)
    refused(ValueError, "data|stride of 0", Cache, np.lib.stride_tricks.as_strided(X, (1, 8, 3, 4), (0, 0, 16, 4)))
    refused(ValueError, "data|read-only", Cache, np.broadcast_to(np.float32(0), (1, 8, 3, 4)))
