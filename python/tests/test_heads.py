"""norm_rotate and query_scales against NumPy's float64 and exact arithmetic. SPDX-License-Identifier: MIT"""
import math

import numpy as np
import pytest
from reference import BF16
from test_refused import refused

import posenc

RANDOM = np.random.default_rng(23)
SPEC = posenc.RopeSpec(64, rotary_dim=48, base=1e6)
POSITIONS = np.arange(5000, 5007)
TURN = posenc.rotation(SPEC, POSITIONS)
X = RANDOM.standard_normal((2, 3, 7, 64))
WEIGHT = RANDOM.uniform(0.5, 1.5, 64)
SCALES = RANDOM.uniform(1, 2, 7)


def normed(x, weight=1.0, epsilon=1e-6):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def turned(x, positions=POSITIONS):
    angle = np.multiply.outer(positions.astype(float), 1e6 ** (-np.arange(0, 48, 2) / 48.0))
    c, s = np.cos(angle), np.sin(angle)
    out = x.copy()
    out[..., :24] = x[..., :24] * c - x[..., 24:48] * s
    out[..., 24:48] = x[..., 24:48] * c + x[..., :24] * s
    return out


ROUNDING = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 2e-6, np.dtype(np.float16): 4e-3, BF16: 3e-2}


@pytest.mark.parametrize("dtype", ROUNDING, ids=str)
@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("plus_one", [False, True])
def test_against_numpy(dtype, order, plus_one):
    x = X.astype(dtype)
    full, weight = x.astype(np.float64), WEIGHT + plus_one
    wanted = turned(normed(full, weight)) if order == "before" else normed(turned(full), weight)
    wanted *= SCALES[:, None]
    found = posenc.norm_rotate(x, TURN, epsilon=1e-6, weight=WEIGHT, weight_plus_one=plus_one, order=order, scales=SCALES)
    assert found.dtype == dtype and found.shape == x.shape
    assert np.abs(found.astype(np.float64) - wanted).max() < ROUNDING[dtype] * np.abs(wanted).max()
    again = x.copy()
    assert posenc.norm_rotate(again, TURN, epsilon=1e-6, weight=WEIGHT, weight_plus_one=plus_one, order=order,
                              scales=SCALES, out=again, threads=3) is again
    assert again.tobytes() == found.tobytes()


def test_parts_alone():
    x = X.astype(np.float32)
    assert posenc.norm_rotate(x, TURN).tobytes() == posenc.rotate(x, TURN).tobytes()
    for options, wanted in (({"epsilon": 0.5}, normed(X, epsilon=0.5)), ({"scales": SCALES}, X * SCALES[:, None]), ({}, X)):
        np.testing.assert_allclose(posenc.norm_rotate(x, None, **options), wanted, rtol=1e-5, atol=1e-6)
    each = RANDOM.uniform(1, 2, (2, 7))
    np.testing.assert_allclose(posenc.norm_rotate(x, None, scales=each), X * each[:, None, :, None], rtol=1e-6)


def test_axes_rows_and_dtypes():
    x = X.astype(np.float32)
    plain = posenc.norm_rotate(x, TURN, epsilon=1e-6, weight=WEIGHT)
    other = posenc.norm_rotate(x.transpose(0, 2, 1, 3), TURN, epsilon=1e-6, weight=WEIGHT, axes="batch,tokens,heads,head_dim")
    assert other.transpose(0, 2, 1, 3).tobytes() == plain.tobytes()
    table = posenc.rotation(SPEC, range(4990, 5010))
    chosen = posenc.norm_rotate(x, table, epsilon=1e-6, weight=WEIGHT, row_ids=POSITIONS - 4990)
    assert chosen.tobytes() == plain.tobytes()
    narrow = posenc.norm_rotate(x, TURN, epsilon=1e-6, weight=WEIGHT, dtype=np.float16)
    assert narrow.tobytes() == plain.astype(np.float16).tobytes()
    pairs = posenc.norm_rotate(x, TURN, output_pairing="interleaved")
    assert pairs.tobytes() == posenc.rotate(x, TURN, output_pairing="interleaved").tobytes()
    gaps = np.zeros((2, 7, 3, 2, 64), np.float32).transpose(0, 2, 3, 1, 4)[:, ::2]
    gaps[...] = x[:, :2, None]
    words = "batch,heads,heads,tokens,head_dim"
    assert posenc.norm_rotate(gaps, TURN, epsilon=1e-6, weight=WEIGHT, axes=words)[:, :, 1].tobytes() == plain[:, :2].tobytes()


def test_torch():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        x = torch.from_numpy(X).to(dtype)
        found = posenc.norm_rotate(x, TURN, epsilon=1e-6, weight=torch.from_numpy(WEIGHT), scales=torch.from_numpy(SCALES))
        wanted = turned(normed(x.double().numpy(), WEIGHT)) * SCALES[:, None]
        assert found.dtype is dtype
        assert np.abs(found.double().numpy() - wanted).max() < 0.05
        assert posenc.norm_rotate(x, TURN, epsilon=1e-6, out=x) is x
    for name, value in (("weight", WEIGHT), ("scales", SCALES)):
        refused(ValueError, name + "|gradient|detach", posenc.norm_rotate, x, TURN, epsilon=1e-6,
                **{name: torch.from_numpy(value).requires_grad_()})
    refused(ValueError, "x|gradient|detach", posenc.norm_rotate, x.requires_grad_(), TURN)
    with torch.no_grad():
        posenc.norm_rotate(x, TURN, epsilon=1e-6, weight=torch.from_numpy(WEIGHT).requires_grad_())
    assert posenc.query_scales(torch.arange(4), "floor", length=2, offset=0, coefficient=0.1).dtype is torch.float32


FORMULAS = {
    "floor": lambda p, a, n, o: 1 + a * math.log1p((p + o) // n),
    "smooth": lambda p, a, n, o: 1 + a * math.log(max(1, (p + o) / n)),
    "log-n": lambda p, a, n, o: max(1, math.log(max(p + o, 1)) / math.log(n)),
}


@pytest.mark.parametrize("kind", FORMULAS)
@pytest.mark.parametrize("offset", [0, 1])
def test_query_scales(kind, offset):
    positions = np.concatenate([np.arange(40), 2 ** np.arange(6, 41) - 1, [8190, 8191, 8192]]).reshape(2, -1)
    a = None if kind == "log-n" else 0.1
    wanted = np.vectorize(lambda p: FORMULAS[kind](int(p), a, 8192, offset), otypes=[float])(positions)
    found = posenc.query_scales(positions, kind, length=8192, offset=offset, coefficient=a, dtype=np.float64)
    assert found.shape == positions.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-15)
    narrow = posenc.query_scales(positions, kind, length=8192, offset=offset, coefficient=a)
    assert narrow.dtype == np.float32 and narrow.tobytes() == found.astype(np.float32).tobytes()
    formed = posenc.query_scales(positions, kind, length=8192, offset=offset, coefficient=a, mode="float32")
    np.testing.assert_allclose(formed, wanted, rtol=2e-5)
    if kind == "floor":
        quotient = np.floor((positions + offset).astype(np.float32) / np.float32(8192))
        by_hand = np.float32(1) + np.float32(0.1) * np.log(np.float32(1) + quotient)
        np.testing.assert_array_max_ulp(formed, by_hand, 2)
        assert formed.tobytes() != narrow.tobytes() or offset
    assert posenc.query_scales(range(3), kind, length=8192, offset=offset, coefficient=a).tolist() == [1, 1, 1]


def test_refused():
    x = X.astype(np.float32)
    rotate, scales = posenc.norm_rotate, posenc.query_scales
    refused(TypeError, "rotation|RopeSpec", rotate, x, SPEC)
    refused(ValueError, "epsilon|weight", rotate, x, TURN, weight=WEIGHT)
    refused(ValueError, "epsilon|-1", rotate, x, TURN, epsilon=-1.0)
    refused(TypeError, "epsilon|'1'", rotate, x, TURN, epsilon="1")
    refused(ValueError, "weight|64", rotate, x, TURN, epsilon=1e-6, weight=WEIGHT[:48])
    refused(ValueError, "order|'between'|'after'", rotate, x, TURN, epsilon=1e-6, order="between")
    refused(ValueError, "scales|(batch, tokens)", rotate, x, TURN, scales=SCALES[:4])
    refused(TypeError, "scales|complex", rotate, x, TURN, scales=SCALES * 1j)
    refused(ValueError, "rotation|None", rotate, x, None, row_ids=[0] * 7)
    refused(ValueError, "head_dim|64", rotate, x[..., :32].copy(), TURN)
    refused(ValueError, "out|shape", rotate, x, TURN, out=np.empty((2, 3, 7, 32), np.float32))
    refused(ValueError, "axes|3|4", rotate, x, TURN, axes="heads,tokens,head_dim")
    refused(ValueError, "2048", rotate, np.ones((2, 4096), np.float32), None, epsilon=1e-6)
    refused(TypeError, "x|int64", rotate, np.arange(8), None)
    refused(ValueError, "kind|'linear'", scales, range(3), "linear", length=8, offset=0)
    refused(ValueError, "coefficient|0", scales, range(3), "floor", length=8, offset=0)
    refused(ValueError, "coefficient|log_n", scales, range(3), "log_n", length=8, offset=0, coefficient=1)
    refused(ValueError, "length|0", scales, range(3), "floor", length=0, offset=0, coefficient=0.1)
    refused(ValueError, "offset|2", scales, range(3), "floor", length=8, offset=2, coefficient=0.1)
    refused(ValueError, "positions|-1|index 1", scales, [0, -1], "floor", length=8, offset=0, coefficient=0.1)
    refused(TypeError, "dtype|float16", scales, [0], "floor", length=8, offset=0, coefficient=0.1, dtype=np.float16)
    refused(ValueError, "mode|dtype|float64", scales, [0], "floor", length=8, offset=0, coefficient=0.1, dtype="f64", mode="float32")
