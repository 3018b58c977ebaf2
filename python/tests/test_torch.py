"""PyTorch: equal bytes on the CPU, gradients, compilers, vmap, other devices. SPDX-License-Identifier: MIT"""
import os

import ml_dtypes
import numpy as np
import pytest

try:
    import torch
except ImportError:
    if os.environ.get("POSENC_TORCH"):
        raise
    pytest.skip("PyTorch is not installed; POSENC_TORCH=1 ./dev test installs a CPU build", allow_module_level=True)

from reference import BF16, random_array, rotated, same_bytes

import posenc
from posenc import _torch

TYPES = {torch.float32: np.float32, torch.float64: np.float64, torch.float16: np.float16,
         torch.bfloat16: ml_dtypes.bfloat16}
SPEC = posenc.RopeSpec(8, 4, pairing="interleaved", rotary_start=2)
YARN = posenc.RopeSpec(8, scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64})
TURN = posenc.rotation(SPEC, [3, 500, 70000])
OWN = posenc.rotation(SPEC, [[1, 2, 3], [10, 20, 30]])
WAYS = [{}, {"inverse": True}, {"backward": True}, {"output_pairing": "half"}, {"pairing": "half"},
        {"output_pairing": "half", "inverse": True}, {"axes": "batch,heads,tokens,head_dim"}, {"threads": 2}]


def to_numpy(tensor):
    tensor = tensor.detach().contiguous()
    return tensor.view(torch.int16).numpy().view(BF16) if tensor.dtype == torch.bfloat16 else tensor.numpy()


def tensor(shape, kind=torch.float32, seed=0):
    return torch.from_numpy(random_array(shape, np.float64, seed)).to(kind)


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_same_bytes_as_numpy(kind, way):
    x = tensor((2, 4, 3, 8), kind)
    wanted = posenc.rotate(to_numpy(x), TURN, **WAYS[way])
    watched = x.clone().requires_grad_()
    for found in (posenc.rotate(x, TURN, **WAYS[way]), posenc.rotate(watched, TURN, **WAYS[way]),
                  posenc.rotate((x, x), TURN, **WAYS[way])[1]):
        assert found.dtype == kind
        assert same_bytes(to_numpy(found), wanted)
    assert posenc.rotate(watched, TURN).requires_grad


@pytest.mark.parametrize("kind", TYPES)
def test_strides_and_in_place(kind):
    whole = tensor((2, 5, 6, 16), kind)
    x = whole[:, ::2, ::2, ::2].transpose(1, 2)
    wanted = posenc.rotate(to_numpy(x), TURN)
    assert same_bytes(to_numpy(posenc.rotate(x, TURN)), wanted)
    version = x._version
    assert posenc.rotate(x, TURN, out=x) is x
    assert x._version > version
    assert same_bytes(to_numpy(x), wanted)
    expanded = tensor((1, 1, 3, 8), kind).expand(2, 4, 3, 8)
    assert same_bytes(to_numpy(posenc.rotate(expanded, TURN)), posenc.rotate(to_numpy(expanded), TURN))


def test_tensors_that_are_negated_when_they_are_read():
    x = torch.complex(tensor((3, 8)), tensor((3, 8), seed=1)).conj().imag
    assert x.is_neg()
    wanted = posenc.rotate(x.clone().resolve_neg().numpy(), TURN)
    for y in (x, x.detach().requires_grad_()):
        assert same_bytes(to_numpy(posenc.rotate(y, TURN).resolve_neg()), wanted)


def test_axes_that_are_not_one_in_memory():
    x = tensor((2, 4, 5, 3, 8))[:, ::2, ::2]
    wanted = posenc.rotate(x.numpy(), TURN)
    for y in (x, x.clone(memory_format=torch.preserve_format).requires_grad_()):
        assert same_bytes(to_numpy(posenc.rotate(y, TURN)), wanted)
    with pytest.raises(ValueError, match="out"):
        posenc.rotate(x, TURN, out=x)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_result_of_another_dtype(kind, target):
    x = tensor((4, 3, 8), kind)
    wanted = posenc.rotate(to_numpy(x), TURN, dtype=TYPES[target])
    for found in (posenc.rotate(x, TURN, dtype=target), posenc.rotate(x.clone().requires_grad_(), TURN, dtype=target),
                  posenc.rotate(x, TURN, out=torch.empty(4, 3, 8, dtype=target))):
        assert found.dtype == target and same_bytes(to_numpy(found), wanted)


def test_rows_by_lists():
    table = posenc.rotation(SPEC, range(50))
    x = tensor((2, 4, 3, 8))
    for lists in ({"row_ids": torch.tensor([4, 0, 49])}, {"row_ids": torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.int32)},
                  {"row_starts": [7, 40]}):
        wanted = posenc.rotate(x.numpy(), table, **lists)
        for y in (x, x.clone().requires_grad_()):
            assert same_bytes(to_numpy(posenc.rotate(y, table, **lists)), wanted)
    flat = tensor((9, 4, 8))
    ragged = {"cu_seqlens": torch.tensor([0, 2, 9]), "axes": "tokens,heads,head_dim", "row_starts": torch.tensor([3, 30])}
    wanted = posenc.rotate(flat.numpy(), table, **ragged)
    for y in (flat, flat.clone().requires_grad_()):
        assert same_bytes(to_numpy(posenc.rotate(y, table, **ragged)), wanted)


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("turn", ["plain", "own", "yarn", "tables"])
def test_gradients_of_first_and_second_order(way, turn):
    turn = {"plain": TURN, "own": OWN, "yarn": posenc.rotation(YARN, [3, 40, 900]),
            "tables": posenc.Rotation(random_array((3, 8), np.float64), random_array((3, 8), np.float64, 1),
                                      layout="full-half")}[turn]
    if WAYS[way].get("inverse") and turn._differ:
        with pytest.raises(ValueError, match="inverse"):
            posenc.rotate(tensor((2, 2, 3, 8)), turn, **WAYS[way])
        return
    x = tensor((2, 2, 3, 8), torch.float64).requires_grad_()

    def rotated(x):
        return posenc.rotate(x, turn, **WAYS[way])

    assert torch.autograd.gradcheck(rotated, (x,))
    assert torch.autograd.gradgradcheck(rotated, (x,))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_gradients_have_the_dtype_of_their_tensor(kind, target):
    x = tensor((2, 3, 8), kind).requires_grad_()
    weights = tensor((2, 3, 8), target, 1)
    (posenc.rotate(x, TURN, dtype=target) * weights).sum().backward()
    assert x.grad.dtype == kind
    wanted = posenc.rotate(to_numpy(weights).astype(np.float64), TURN, backward=True)
    tolerance = 2e-2 if torch.bfloat16 in (kind, target) else 2e-3 if torch.float16 in (kind, target) else 1e-6
    np.testing.assert_allclose(to_numpy(x.grad).astype(float), wanted, atol=tolerance)


def test_a_gradient_in_float64_is_rounded_once():
    x = tensor((2, 3, 8)).requires_grad_()
    weights = tensor((2, 3, 8), torch.float64, 1)
    (posenc.rotate(x, TURN, dtype=torch.float64) * weights).sum().backward()
    tables = [np.array(table, dtype=np.float64) for table in (TURN.cos, TURN.sin)]
    assert same_bytes(x.grad.numpy(), rotated(weights.numpy(), *tables, pairing="interleaved", start=2, direction=-1,
                                              dtype=np.float32))


def test_gradients_with_lists_and_strides():
    table = posenc.rotation(SPEC, range(50))
    x = tensor((2, 3, 4, 8), torch.float64).transpose(1, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: posenc.rotate(x, table, row_ids=[[4, 5, 6], [7, 8, 49]]), (x,))
    both = tensor((2, 4, 3, 8), torch.float64).requires_grad_(), tensor((2, 1, 3, 8), torch.float64, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda q, k: posenc.rotate((q, k), TURN), both)


def test_the_operator_passes_pytorchs_own_checks():
    for kind in TYPES:
        x = tensor((2, 4, 3, 8), kind).requires_grad_()
        tables = _torch.cpu_tables(OWN, kind is torch.float64)
        torch.library.opcheck(torch.ops.posenc.rotate.default,
                              (x, *tables, None, None, None, "", [0, 0, 1, 2, 0, 0, 1], 1.0, kind))


@pytest.mark.parametrize("kind", TYPES)
def test_compiled(kind):
    q, k = tensor((2, 4, 3, 8), kind), tensor((2, 1, 3, 8), kind, 1)

    def scores(q, k, turn):
        q, k = posenc.rotate((q, k), turn)
        return q @ k.transpose(-1, -2)

    compiled = torch.compile(scores, fullgraph=True, backend="aot_eager")
    for turn in (TURN, posenc.rotation(SPEC, [7, 8, 9])):
        if kind is torch.float64:
            turn._float64()
        assert torch.equal(compiled(q, k, turn), scores(q, k, turn))
    assert len(torch._dynamo.utils.counters["graph_break"]) == 0


def test_compiled_by_the_default_backend_with_gradients():
    x = tensor((2, 4, 3, 8)).requires_grad_()

    def loss(x):
        return (posenc.rotate(x, TURN) ** 2 * torch.arange(8.0)).sum()

    torch.compile(loss, fullgraph=True)(x).backward()
    found, x.grad = x.grad, None
    loss(x).backward()
    torch.testing.assert_close(found, x.grad)


def test_vmap():
    x = tensor((5, 2, 4, 3, 8))
    for turn in (TURN, OWN):
        wanted = torch.stack([posenc.rotate(part, turn) for part in x])
        assert torch.equal(torch.vmap(lambda x: posenc.rotate(x, turn))(x), wanted)
        moved = torch.vmap(lambda x: posenc.rotate(x, turn), in_dims=2, out_dims=3)(x.movedim(0, 2))
        assert torch.equal(moved, wanted.movedim(0, 3))
    of_sequences = torch.stack([posenc.rotate(part[:, 0], OWN) for part in x])  # (batch, tokens, head_dim)
    assert torch.equal(torch.vmap(lambda x: posenc.rotate(x, OWN))(x[:, :, 0]), of_sequences)
    twice = torch.vmap(torch.vmap(lambda x: posenc.rotate(x, TURN)))(x[..., 0, :, :])
    assert torch.equal(twice, posenc.rotate(x[..., 0, :, :], TURN))
    one = torch.vmap(lambda x: posenc.rotate(x, TURN, axes="tokens,head_dim"))(x[0, 0])
    assert torch.equal(one, posenc.rotate(x[0, 0], TURN))


def test_torch_func_grad():
    x = tensor((3, 8), torch.float64)
    found = torch.func.grad(lambda x: (posenc.rotate(x, TURN) * torch.arange(8.0, dtype=torch.float64)).sum())(x)
    wanted = posenc.rotate(torch.arange(8.0, dtype=torch.float64).expand(3, 8), TURN, backward=True)
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("turn", ["plain", "own", "yarn"])
def test_forward_mode(way, turn):
    turn = {"plain": TURN, "own": OWN, "yarn": posenc.rotation(YARN, [3, 40, 900])}[turn]
    x, tangent = tensor((2, 2, 3, 8), torch.float64), tensor((2, 2, 3, 8), torch.float64, 1)

    def rotated(x):
        return posenc.rotate(x, turn, **WAYS[way])

    wanted = rotated(x), rotated(tangent)
    for made in (torch.func.jvp(rotated, (x,), (tangent,)), torch.func.linearize(rotated, x)[1](tangent)):
        for found, right in zip(made if isinstance(made, tuple) else (wanted[0], made), wanted):
            assert torch.equal(found, right)
    with torch.autograd.forward_ad.dual_level():
        made = torch.autograd.forward_ad.unpack_dual(rotated(torch.autograd.forward_ad.make_dual(x, tangent)))
    assert torch.equal(made.primal, wanted[0]) and torch.equal(made.tangent, wanted[1])
    with torch.autograd.forward_ad.dual_level():  # a gradient too
        dual = torch.autograd.forward_ad.make_dual(x.clone().requires_grad_(), tangent)
        made = torch.autograd.forward_ad.unpack_dual(rotated(dual))
    assert torch.equal(made.tangent, wanted[1])
    assert torch.autograd.gradcheck(rotated, (x.clone().requires_grad_(),), check_forward_ad=True)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_tangents_have_the_dtype_of_the_result(kind, target):
    x, tangent = tensor((2, 3, 8), kind), tensor((2, 3, 8), kind, 1)
    value, found = torch.func.jvp(lambda x: posenc.rotate(x, TURN, dtype=target), (x,), (tangent,))
    assert value.dtype == found.dtype == target
    assert same_bytes(to_numpy(found), posenc.rotate(to_numpy(tangent), TURN, dtype=TYPES[target]))


def test_jacobians():
    table = posenc.rotation(SPEC, range(50))
    x = tensor((2, 3, 8), torch.float64)

    def squares(x):
        return posenc.rotate(x, table, row_ids=[[4, 5, 6], [7, 8, 49]]) ** 2

    forward, reverse = torch.func.jacfwd(squares)(x), torch.func.jacrev(squares)(x)
    torch.testing.assert_close(forward, reverse, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(forward, torch.autograd.functional.jacobian(squares, x), rtol=1e-12, atol=1e-12)
    hessian = torch.func.hessian(lambda x: (squares(x) ** 2).sum())(x)  # jacfwd of jacrev
    torch.testing.assert_close(hessian, torch.autograd.functional.hessian(lambda x: (squares(x) ** 2).sum(), x))
    tangents = tensor((4, 2, 3, 8), torch.float64, 1)
    each = torch.vmap(lambda t: torch.func.jvp(squares, (x,), (t,))[1])(tangents)
    torch.testing.assert_close(each, torch.stack([torch.func.jvp(squares, (x,), (t,))[1] for t in tangents]))
    both = torch.func.jvp(lambda x, y: posenc.rotate((x, y), TURN)[1], (x, x), (tangents[0], tangents[1]))[1]
    assert torch.equal(both, posenc.rotate(tangents[1], TURN))


def test_out_takes_the_tangent():
    x, tangent = tensor((3, 8)), tensor((3, 8), seed=1)
    with torch.autograd.forward_ad.dual_level():
        out = torch.empty(3, 8)
        assert posenc.rotate(torch.autograd.forward_ad.make_dual(x, tangent), TURN, out=out) is out
        made = torch.autograd.forward_ad.unpack_dual(out)
    assert torch.equal(made.primal, posenc.rotate(x, TURN)) and torch.equal(made.tangent, posenc.rotate(tangent, TURN))


@pytest.mark.parametrize("lists", [{}, {"row_ids": [4, 0, 49]}, {"row_starts": [7, 40]}])
def test_compiled_derivatives(lists):
    """A compiler within transforms of torch.func sees PyTorch's operations: registered operators have no derivatives
    there, and tangents that are zero."""
    table = posenc.rotation(SPEC, range(50))
    turn, lists = table if lists else TURN, {name: torch.tensor(values) for name, values in lists.items()}
    x, other = tensor((2, 4, 3, 8)), tensor((2, 4, 3, 8), seed=1)

    def rotated(x):
        return posenc.rotate(x, turn, **lists)

    for work in (lambda x: torch.func.jvp(rotated, (x,), (other,))[1], torch.func.grad(lambda x: (rotated(x) * other).sum()),
                 torch.func.jacfwd(rotated)):
        found = torch.compile(work, backend="aot_eager", fullgraph=True)(x)
        torch.testing.assert_close(found, work(x))


# --- Other devices ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_plain_operations_give_the_bytes_of_the_library(kind, way, monkeypatch):
    """What a tensor of another device goes through, on the CPU."""
    table = posenc.rotation(SPEC, range(50))
    x = tensor((2, 4, 3, 8), kind)
    sets = [(TURN, {}), (OWN, {}), (posenc.rotation(YARN, [3, 40, 900]), {}), (table, {"row_ids": [4, 0, 49]}),
            (table, {"row_ids": [[4, 0, 49], [1, 1, 1]]}), (table, {"row_starts": [7, 40]})]
    wanted = [posenc.rotate(x, turn, **lists, **WAYS[way]) for turn, lists in sets]
    elsewhere(monkeypatch)
    for (turn, lists), right in zip(sets, wanted):
        found = posenc.rotate(x, turn, **lists, **WAYS[way])
        assert found.dtype == kind and torch.equal(found, right)


def elsewhere(monkeypatch):
    """The CPU taken for another device."""
    monkeypatch.setattr(_torch, "is_plain", lambda x: False)
    monkeypatch.setattr(_torch, "is_host", lambda x: False)


def test_plain_operations_with_ragged_sequences_and_own_tables(monkeypatch):
    table = posenc.rotation(SPEC, range(50))
    flat = tensor((9, 4, 8))
    x = tensor((2, 3, 8))
    ragged = [{"cu_seqlens": [0, 2, 9], "axes": "tokens,heads,head_dim", "row_starts": starts} for starts in (None, [3, 30])]
    c, s = random_array((3, 8), np.float32), random_array((3, 8), np.float32, 1)
    half = c[:, :4], s[:, :4]
    own = [posenc.Rotation(c, s, layout="full-half"), posenc.Rotation(c, s, layout="full-interleaved"),
           posenc.Rotation(c, layout="pairs"), posenc.Rotation(c, layout="cos-sin"), posenc.Rotation(*half)]
    wanted = [posenc.rotate(flat, table, **lists) for lists in ragged]
    of_own = [[posenc.rotate(x, turn, backward=back) for turn in own] for back in (False, True)]
    elsewhere(monkeypatch)
    for lists, right in zip(ragged, wanted):
        assert torch.equal(posenc.rotate(flat, table, **lists), right)
    for back in (False, True):
        for turn, right in zip(own, of_own[back]):
            assert torch.equal(posenc.rotate(x, turn, backward=back), right)
    for lists in ({"row_ids": [0, 1, 50]}, {"row_ids": [-1, 1, 2]}, {"row_starts": [0, 48]}, {"row_starts": [1]},
                  {"row_ids": [1, 2]}):
        with pytest.raises(ValueError, match="row_"):
            posenc.rotate(x, table, **lists)
    with pytest.raises(ValueError, match="rows"):
        posenc.rotate(x[:, :2], TURN)


def test_plain_operations_are_differentiable(monkeypatch):
    elsewhere(monkeypatch)
    x = tensor((2, 4, 3, 8), torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: posenc.rotate(x, TURN), (x,))
    out = torch.empty(2, 4, 3, 8, dtype=torch.float64)
    assert posenc.rotate(x.detach(), TURN, out=out) is out
    assert torch.equal(out, posenc.rotate(x, TURN))


@pytest.mark.parametrize("first_use", ["eager", "compiled"])
def test_plain_operations_compile(first_use, monkeypatch):
    table = posenc.rotation(SPEC, range(50))
    x = tensor((2, 4, 3, 8))
    sets = [(TURN, {}), (table, {"row_ids": [4, 0, 49]}), (table, {"row_ids": [[4, 0, 49], [1, 1, 1]]}),
            (table, {"row_starts": [7, 40]})]
    wanted = [posenc.rotate(x, turn, **lists) for turn, lists in sets]
    elsewhere(monkeypatch)
    for (turn, lists), right in zip(sets, wanted):
        turn._tables.clear()
        if first_use == "eager":
            posenc.rotate(x, turn, **lists)
        lists = {name: torch.tensor(values) for name, values in lists.items()}
        compiled = torch.compile(lambda x, lists: posenc.rotate(x, turn, **lists), backend="aot_eager", fullgraph=True)
        assert torch.equal(compiled(x, lists), right)
    assert len(TURN._tables) == (first_use == "eager")
    with pytest.raises(RuntimeError, match="choose rows"):
        compiled(x, {"row_starts": torch.tensor([7, 48])})


@pytest.mark.parametrize("kind", TYPES)
def test_meta_tensors(kind):
    x = torch.empty(2, 4, 3, 8, dtype=kind, device="meta")
    found = posenc.rotate(x, OWN, output_pairing="half")
    assert found.device.type == "meta" and found.shape == x.shape and found.dtype == kind


def test_rows_are_moved_to_a_device_once(monkeypatch):
    from torch._subclasses.fake_tensor import FakeTensorMode
    turn = posenc.rotation(SPEC, [1, 2, 3])
    with FakeTensorMode(allow_non_fake_inputs=True):
        x = torch.empty(2, 4, 3, 8, device="cuda", dtype=torch.bfloat16)
        found = posenc.rotate(x, turn)
        assert found.device.type == "cuda" and found.shape == x.shape and found.dtype == x.dtype
        tables = dict(turn._tables)
        posenc.rotate(x, turn)
        assert len(tables) == 1 and all(turn._tables[key] is value for key, value in tables.items())


# --- The rest -------------------------------------------------------------------------------------------------------

def test_tables_and_positions_from_tensors():
    positions = torch.tensor([3, 500, 70000])
    for given in (positions, positions.int(), positions.double(), positions.float()):
        assert same_bytes(posenc.rotation(SPEC, given).cos, TURN.cos)
    cos, sin = posenc.angles(SPEC, positions)
    assert isinstance(cos, torch.Tensor) and same_bytes(cos.numpy(), np.array(TURN.cos))
    x = tensor((3, 8))
    turn = posenc.Rotation(cos, sin, pairing="interleaved", rotary_start=2)
    assert torch.equal(posenc.rotate(x, turn), posenc.rotate(x, TURN))
    assert torch.equal(posenc.apply_rope(x), torch.from_numpy(posenc.apply_rope(x.numpy())))


def test_tables_that_are_added():
    for kind, name in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        found = posenc.sinusoidal(5, 8, dtype=kind)
        assert found.dtype == kind and same_bytes(to_numpy(found), posenc.sinusoidal(5, 8, dtype=name))
        bias = posenc.alibi_bias(4, 3, 5, dtype=kind)
        assert same_bytes(to_numpy(bias), posenc.alibi_bias(4, 3, 5, dtype=name))
        out = torch.zeros(4, 3, 5, dtype=kind)
        version = out._version
        assert posenc.alibi_bias(4, 3, 5, out=out) is out and torch.equal(out, bias) and out._version > version
        x = tensor((3, 4), torch.float64)
        assert same_bytes(to_numpy(posenc.convert(x, kind)), posenc.convert(x.numpy(), name))


@pytest.mark.parametrize("kind, words, call", [
    (TypeError, "x|int64", lambda: posenc.rotate(torch.zeros(3, 8, dtype=torch.int64), TURN)),
    (TypeError, "x|complex64", lambda: posenc.rotate(torch.zeros(3, 8, dtype=torch.complex64), TURN)),
    (TypeError, "x|sparse", lambda: posenc.rotate(torch.zeros(3, 8).to_sparse(), TURN)),
    (TypeError, "x|PyTorch", lambda: posenc.rotate((torch.zeros(3, 8), np.zeros((3, 8))), TURN)),
    (ValueError, "x|head_dim|9", lambda: posenc.rotate(torch.zeros(3, 9), TURN)),
    (ValueError, "x|head_dim|9", lambda: posenc.rotate(torch.zeros(3, 9, device="meta"), TURN)),
    (ValueError, "x|head_dim|9", lambda: posenc.rotate(torch.zeros(3, 9, requires_grad=True), TURN)),
    (ValueError, "rows|4", lambda: posenc.rotate(torch.zeros(4, 8), TURN)),
    (ValueError, "rows|4", lambda: posenc.rotate(torch.zeros(4, 8, requires_grad=True), TURN)),
    (ValueError, "out|gradient", lambda: posenc.rotate(torch.zeros(3, 8, requires_grad=True), TURN,
                                                       out=torch.zeros(3, 8))),
    (ValueError, "out|shape", lambda: posenc.rotate(torch.zeros(3, 8), TURN, out=torch.zeros(3, 9))),
    (ValueError, "out|meta", lambda: posenc.rotate(torch.zeros(3, 8), TURN, out=torch.zeros(3, 8, device="meta"))),
    (TypeError, "out|ndarray", lambda: posenc.rotate(torch.zeros(3, 8), TURN, out=np.zeros((3, 8)))),
    (ValueError, "out", lambda: posenc.rotate(torch.zeros(3, 8), TURN, out=torch.zeros(8).expand(3, 8))),
    (TypeError, "dtype|float16|float32", lambda: posenc.rotate(torch.zeros(3, 8), TURN, dtype=torch.float16,
                                                               out=torch.zeros(3, 8))),
    (TypeError, "dtype|int8", lambda: posenc.rotate(torch.zeros(3, 8), TURN, dtype=torch.int8)),
    (TypeError, "row_ids|float32", lambda: posenc.rotate(torch.zeros(3, 8, requires_grad=True), TURN,
                                                         row_ids=torch.zeros(3))),
    (ValueError, "cos|gradient", lambda: posenc.Rotation(torch.zeros(3, 4, requires_grad=True), torch.zeros(3, 4))),
    (TypeError, "positions|bool", lambda: posenc.rotation(SPEC, torch.tensor([True]))),
    (TypeError, "out|meta", lambda: posenc.sinusoidal(3, 8, out=torch.zeros(3, 8, device="meta"))),
    (ValueError, "out|gradient", lambda: posenc.sinusoidal(3, 8, out=torch.zeros(3, 8, requires_grad=True))),
    (ValueError, "x|gradient", lambda: posenc.convert(torch.zeros(3, 8, requires_grad=True), torch.float16)),
])
def test_refused(kind, words, call):
    with pytest.raises(kind) as caught:
        call()
    for word in words.split("|"):
        assert word in str(caught.value), caught.value
