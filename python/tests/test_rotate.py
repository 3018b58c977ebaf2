"""Rotations of NumPy arrays against the reference. SPDX-License-Identifier: MIT"""
import sys
import threading
import time

import numpy as np
import pytest
from reference import BF16, DTYPES, random_array, rotated, rows, same_bytes

import posenc

POSITIONS = np.array([0, 1, 5, 4096, 131071, 1048576 - 3, -7])
TOKENS = len(POSITIONS)


def expected(x, pairing="half", head_axis=False, **more):
    """For x (..., tokens, head_dim), or (..., tokens, heads, head_dim)."""
    computing = np.float64 if x.dtype == np.float64 else np.float32
    cos, sin = rows(POSITIONS, more.pop("rotary_dim", x.shape[-1]), dtype=computing)
    if head_axis:
        cos, sin = cos[:, None], sin[:, None]
    return rotated(x, cos, sin, pairing=pairing, **more)


def check(found, wanted):
    """Equal bytes, but for float64, whose rows here are those of long double."""
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    if found.dtype == np.float64:
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    else:
        assert same_bytes(found, wanted)


def rotation(head_dim, pairing="half", **more):
    return posenc.rotation(posenc.RopeSpec(head_dim, pairing=pairing, **more), POSITIONS)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("head_dim", [2, 6, 64, 128])
def test_every_dtype_and_pairing(dtype, pairing, head_dim):
    x = random_array((2, 3, TOKENS, head_dim), DTYPES[dtype])
    before = x.copy()
    check(posenc.rotate(x, rotation(head_dim, pairing)), expected(x, pairing))
    assert same_bytes(x, before)


@pytest.mark.parametrize("axes", [None, "tokens,heads,head_dim", "batch,tokens,heads,head_dim",
                                  "batch, heads, tokens, head_dim", ("head_dim", "tokens"),
                                  ("heads", "head_dim", "batch", "tokens"),
                                  ("batch", "heads", "heads", "tokens", "head_dim"),
                                  ("batch", "batch", "tokens", "heads", "head_dim")])
def test_orders_of_axes(axes):
    words = ("batch", "heads", "tokens", "head_dim") if axes is None else \
        tuple(axes.replace(" ", "").split(",")) if isinstance(axes, str) else axes
    sizes = {"batch": 2, "heads": 3, "tokens": TOKENS, "head_dim": 16}
    x = random_array([sizes[word] for word in words], np.float32)
    order = [i for word in ("batch", "heads", "tokens", "head_dim") for i, w in enumerate(words) if w == word]
    wanted = np.empty_like(x)
    wanted.transpose(order)[...] = expected(x.transpose(order))
    for same in (axes, axes, words, list(words)):
        check(posenc.rotate(x, rotation(16), axes=same), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_strides(dtype):
    whole = random_array((4, 2 * TOKENS, 6, 24), DTYPES[dtype])
    views = [whole[::2, ::2, ::-1, ::2], whole[:, ::-2, 1:4, 11::-1], whole.transpose(0, 2, 1, 3)[:, :, :TOKENS, :12]
             .transpose(0, 2, 1, 3), np.broadcast_to(whole[:1, :1, :1, :12], (3, TOKENS, 5, 12))]
    for view in views:
        wanted = expected(np.ascontiguousarray(view), head_axis=True)
        check(posenc.rotate(view, rotation(12), axes="batch,tokens,heads,head_dim"), wanted)


def test_axes_that_are_not_one_in_memory_are_copied():
    x = random_array((2, 4, 5, TOKENS, 8), np.float32)[:, ::2, ::2]
    check(posenc.rotate(x, rotation(8)), expected(x))
    with pytest.raises(ValueError, match="out"):
        posenc.rotate(x, rotation(8), out=x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_result_of_another_dtype(dtype, target):
    x = random_array((3, TOKENS, 16), DTYPES[dtype])
    wanted = expected(x, dtype=DTYPES[target])
    found = posenc.rotate(x, rotation(16), dtype=target)
    out = np.empty(x.shape, DTYPES[target])
    assert posenc.rotate(x, rotation(16), out=out) is out
    assert same_bytes(found, out)
    if dtype == "float64":
        np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=2e-2 if target == "bfloat16" else 2e-3)
    else:
        check(found, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_in_place_gives_the_same_bytes(dtype, pairing):
    x = random_array((2, 3, TOKENS, 20), DTYPES[dtype])
    wanted = posenc.rotate(x, rotation(20, pairing))
    assert posenc.rotate(x, rotation(20, pairing), out=x) is x
    assert same_bytes(x, wanted)


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("output", ["half", "interleaved"])
def test_output_pairing(pairing, output):
    x = random_array((3, TOKENS, 20), np.float32)
    found = posenc.rotate(x, rotation(20, pairing, rotary_dim=12, rotary_start=4), output_pairing=output)
    check(found, expected(x, pairing, rotary_dim=12, start=4, output_pairing=output))


def test_pairing_of_the_call_goes_before_that_of_the_rotation():
    x = random_array((3, TOKENS, 8), np.float32)
    check(posenc.rotate(x, rotation(8), pairing="interleaved"), expected(x, "interleaved"))
    check(posenc.rotate(x, rotation(8), pairing="gptj"), expected(x, "interleaved"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_inverse_and_backward(dtype):
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
    turn = rotation(32, scaling=scaling)
    factor = turn.attention_factor
    assert factor > 1.1
    x = random_array((3, TOKENS, 32), DTYPES[dtype])
    y = posenc.rotate(x, turn)
    tolerance = 1e-14 if dtype == "float64" else 1e-6
    np.testing.assert_allclose(posenc.rotate(y, turn, inverse=True), x, atol=10 * tolerance)
    np.testing.assert_allclose(posenc.rotate(y, turn, backward=True), x * factor * factor, atol=40 * tolerance)
    np.testing.assert_allclose(np.linalg.norm(y, axis=-1), factor * np.linalg.norm(x, axis=-1), rtol=10 * tolerance)


def test_sequences_with_positions_of_their_own():
    positions = np.array([[3, 4, 5], [100, 101, 102]])
    spec = posenc.RopeSpec(16)
    turn = posenc.rotation(spec, positions)
    assert turn.cos.shape == (2, 3, 8)
    x = random_array((2, 4, 3, 16), np.float32)
    cos, sin = rows(positions, 16)
    check(posenc.rotate(x, turn), rotated(x, cos[:, None], sin[:, None]))
    check(posenc.rotate(x[:, 0], turn), rotated(x[:, 0], cos, sin))  # of three axes the first is the batch


def test_rows_by_ids_starts_and_ragged_sequences():
    spec = posenc.RopeSpec(16)
    table = posenc.rotation(spec, range(50))
    cos, sin = rows(np.arange(50), 16)
    x = random_array((2, 4, 3, 16), np.float32)
    for ids in ([7, 0, 49], [[1, 2, 3], [49, 0, 8]]):
        numbers = np.array(ids)
        c, s = (t[numbers][None, None] if numbers.ndim == 1 else t[numbers][:, None] for t in (cos, sin))
        check(posenc.rotate(x, table, row_ids=ids), rotated(x, c, s))
        check(posenc.rotate(x, table, row_ids=numbers.astype(np.uint8)), rotated(x, c, s))
    numbers = np.array([5, 47])[:, None] + np.arange(3)
    check(posenc.rotate(x, table, row_starts=[5, 47]), rotated(x, cos[numbers][:, None], sin[numbers][:, None]))
    flat = random_array((9, 4, 16), np.float32)
    for starts in (None, [10, 20, 44]):
        numbers = np.concatenate([np.arange(n) + (starts[i] if starts else 0) for i, n in enumerate((2, 1, 6))])
        found = posenc.rotate(flat, table, axes="tokens,heads,head_dim", cu_seqlens=[0, 2, 3, 9], row_starts=starts)
        check(found, rotated(flat, cos[numbers][:, None], sin[numbers][:, None]))


def test_several_arrays_in_one_call():
    q, k = random_array((1, 8, TOKENS, 16), BF16), random_array((1, 2, TOKENS, 16), BF16, 1)
    made = posenc.rotate((q, k), rotation(16))
    assert isinstance(made, tuple)
    for x, y in zip((q, k), made):
        check(y, expected(x))
    outs = np.empty_like(q), np.empty_like(k)
    again = posenc.rotate([q, k], rotation(16), out=outs)
    assert again[0] is outs[0] and again[1] is outs[1]
    check(outs[1], expected(k))


def test_packed_queries_keys_and_values_in_place():
    packed = random_array((TOKENS, 3, 4, 16), np.float32)
    wanted = packed.copy()
    for part in (0, 1):
        wanted[:, part] = expected(packed[:, part], head_axis=True)
    posenc.rotate((packed[:, 0], packed[:, 1]), rotation(16), axes="tokens,heads,head_dim",
                  out=(packed[:, 0], packed[:, 1]))
    check(packed, wanted)


@pytest.mark.parametrize("threads", [2, 3, 64])
def test_threads_give_the_same_bytes(threads):
    x = random_array((2, 5, 77, 32), np.float32)
    turn = posenc.rotation(posenc.RopeSpec(32), range(77))
    assert same_bytes(posenc.rotate(x, turn, threads=threads), posenc.rotate(x, turn))


def test_other_threads_run_while_much_is_turned():
    """Nobody is asked to let the GIL go for 100 s: what runs meanwhile runs because the call has let it go."""
    x = random_array((512, 32, 128), np.float32)
    rows, out, ticks, done = posenc.rotation(posenc.RopeSpec(128), range(512)), np.empty_like(x), [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)

    other = threading.Thread(target=tick)
    interval = sys.getswitchinterval()
    other.start()
    try:
        sys.setswitchinterval(100)
        for _ in range(200):
            start = time.perf_counter()
            posenc.rotate(x, rows, axes="tokens,heads,head_dim", out=out)
            end = time.perf_counter()
            if any(start < at < end for at in ticks[-2000:]):
                return
    finally:
        sys.setswitchinterval(interval)
        done.set()
        other.join()
    raise AssertionError("200 calls, and no other thread ran within one")


def test_a_large_result_bypasses_the_caches():
    x = random_array((32, 1024, 128), np.float32)
    turn = posenc.rotation(posenc.RopeSpec(128), range(1024))
    made = posenc.rotate(x, turn)
    assert made.ctypes.data % 64 == 0
    assert same_bytes(made, posenc.rotate(x, turn, stores="cached"))


def test_read_only_input():
    x = random_array((3, TOKENS, 8), np.float32)
    x.flags.writeable = False
    check(posenc.rotate(x, rotation(8)), expected(x))


def test_own_tables_in_every_layout():
    c, s = rows(POSITIONS, 16)
    x = random_array((2, TOKENS, 16), np.float32)
    wanted = expected(x)
    interleave = np.stack((c, s), -1).reshape(TOKENS, 16)
    twice = [np.repeat(t, 2, -1) for t in (c, s)]
    for layout, tables in {"half": (c, s), "full-half": [np.concatenate((t, t), -1) for t in (c, s)],
                           "full-interleaved": twice, "full_interleaved": twice,
                           "cos-sin": (np.concatenate((c, s), -1),), "pairs": (interleave,)}.items():
        turn = posenc.Rotation(*tables, layout=layout)
        check(posenc.rotate(x, turn), wanted)
        back = posenc.rotate(posenc.rotate(x.astype(float), turn), turn, inverse=True)
        np.testing.assert_allclose(back, x, atol=1e-6)
        strided = [np.repeat(np.repeat(t, 2, 0), 2, 1)[::2, ::2] for t in tables]
        check(posenc.rotate(x, posenc.Rotation(*strided, layout=layout)), wanted)
    check(posenc.rotate(x, posenc.Rotation(c[:1], s[:1]), row_ids=[0] * TOKENS), rotated(x, c[:1], s[:1]))
    broadcast = [np.broadcast_to(t[3], t.shape) for t in (c, s)]
    check(posenc.rotate(x, posenc.Rotation(*broadcast)), rotated(x, *broadcast))


def test_tables_that_are_no_rotation():
    c, s = random_array((TOKENS, 8), np.float32), random_array((TOKENS, 8), np.float32, 1)
    x = random_array((2, TOKENS, 8), np.float32)
    turn = posenc.Rotation(c, s, layout="full-half")
    a, b = x[..., :4], x[..., 4:]
    wanted = np.concatenate((a * c[:, :4] - b * s[:, :4], b * c[:, 4:] + a * s[:, 4:]), -1)
    check(posenc.rotate(x, turn), wanted)
    with pytest.raises(ValueError, match="inverse"):
        posenc.rotate(x, turn, inverse=True)


def test_float64_tables_turn_float64_arrays_as_they_are():
    c, s = rows(POSITIONS, 16, dtype=np.float64)
    x = random_array((2, TOKENS, 16), np.float64)
    assert same_bytes(posenc.rotate(x, posenc.Rotation(c, s)), rotated(x, c, s))
    single = [t.astype(np.float32) for t in (c, s)]
    check(posenc.rotate(x, posenc.Rotation(*single)), rotated(x, *(t.astype(float) for t in single)))


def test_float32_mode_is_what_frameworks_compute():
    positions = np.array([0, 17, 99999])
    inv_freq = np.float32(1) / (np.longdouble(10000) ** (np.arange(0, 64, 2) / np.longdouble(64))).astype(np.float32)
    angles = positions.astype(np.float32)[:, None] * inv_freq
    turn = posenc.rotation(posenc.RopeSpec(64), positions, mode="float32")
    np.testing.assert_array_equal(turn.cos, np.cos(angles.astype(np.longdouble)).astype(np.float32))
    x = random_array((3, 64), np.float64)
    np.testing.assert_array_equal(posenc.rotate(x, turn), rotated(x, turn.cos.astype(float), turn.sin.astype(float)))


def test_a_rotation_is_cut_by_rows():
    x = random_array((2, 3, 16), np.float64)
    part = rotation(16)[2:5]
    assert len(part) == 3 and part.tokens == 3
    whole = np.zeros((2, TOKENS, 16))
    whole[:, 2:5] = x
    np.testing.assert_array_equal(posenc.rotate(x, part), posenc.rotate(whole, rotation(16))[:, 2:5])
    check(posenc.rotate(x.astype(np.float32), part), expected(whole.astype(np.float32))[:, 2:5])


@pytest.mark.parametrize("shape", [(0, TOKENS, 8), (3, 0, TOKENS, 8), (2, 0, 8)])
def test_empty_arrays(shape):
    turn = rotation(8) if shape[-2] else posenc.rotation(posenc.RopeSpec(8), [])
    for dtype in DTYPES.values():
        assert posenc.rotate(np.empty(shape, dtype), turn).shape == shape


class Producer:
    """Another library's array: nothing but DLPack."""
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_what_speaks_dlpack():
    x = random_array((2, TOKENS, 16), np.float32)
    check(posenc.rotate(Producer(x), rotation(16)), expected(x))
    check(posenc.rotate(Producer(x[:, :, ::2]), rotation(8)), expected(np.ascontiguousarray(x[:, :, ::2])))
    out = np.empty_like(x)
    posenc.rotate(Producer(x), rotation(16), out=Producer(out))
    check(out, expected(x))
    x.flags.writeable = False
    with pytest.raises((ValueError, TypeError), match="^out is "):  # NumPy 1 exports no read-only array
        posenc.rotate(out, rotation(16), out=Producer(x))


def test_positions_in_every_kind():
    spec = posenc.RopeSpec(16)
    wanted = posenc.rotation(spec, [0, 1, 2, 3])
    for positions in (range(4), (0, 1, 2, 3), np.arange(4, dtype=np.int8), np.arange(4, dtype=np.uint64),
                      np.arange(4, dtype=np.int32), np.arange(8)[::2] // 2, np.arange(4.0), np.arange(4, dtype=">i4"),
                      np.arange(4, dtype=np.float16)):
        assert same_bytes(posenc.rotation(spec, positions).cos, wanted.cos)
    cos, sin = rows([0.5, 2.25], 16)
    real = posenc.rotation(spec, [0.5, 2.25])
    assert same_bytes(real.cos, cos) and same_bytes(real.sin, sin)
    far = posenc.rotation(spec, [1 << 40])
    assert np.all(np.isfinite(far.cos))


def test_apply_rope():
    x = random_array((2, 3, TOKENS, 16), np.float32)
    check(posenc.apply_rope(x, POSITIONS), expected(x))
    check(posenc.apply_rope(x[0, 0, 4], int(POSITIONS[4])), expected(x)[0, 0, 4])
    cos, sin = rows(np.arange(TOKENS), 16, 500000.0)
    check(posenc.apply_rope(x, base=500000.0, pairing="interleaved"), rotated(x, cos, sin, pairing="interleaved"))
