"""Sinusoidal tables, ALiBi, conversion. SPDX-License-Identifier: MIT"""
import numpy as np
import pytest
from reference import BF16, DTYPES, same_bytes

import posenc


def sinusoids(positions, dim, base=10000.0, shift=0, scale=1.0):
    k = np.arange(dim // 2, dtype=np.longdouble)
    w = scale * np.longdouble(base) ** (-k / (np.longdouble(dim) / 2 - shift))
    angles = np.asarray(positions, dtype=np.longdouble)[:, None] * w
    return np.sin(angles), np.cos(angles)


@pytest.mark.parametrize("layout", ["interleaved", "sin-cos", "cos_sin"])
@pytest.mark.parametrize("shift", [0, 1])
def test_sinusoidal_layouts(layout, shift):
    s, c = sinusoids(np.arange(40), 16, shift=shift)
    wanted = {"interleaved": np.stack((s, c), -1).reshape(40, 16), "sin-cos": np.concatenate((s, c), -1),
              "cos_sin": np.concatenate((c, s), -1)}[layout]
    found = posenc.sinusoidal(40, 16, layout=layout, shift=shift)
    assert same_bytes(found, wanted.astype(np.float32))
    assert same_bytes(posenc.sinusoidal(range(40), 16, layout=layout, shift=shift, threads=4), found)
    double = posenc.sinusoidal(np.arange(40), 16, layout=layout, shift=shift, dtype=np.float64)
    np.testing.assert_allclose(double, wanted.astype(float), rtol=0, atol=1e-15)


def test_sinusoidal_options():
    times = [0.0, 0.25, 17.5, 999.0]
    s, c = sinusoids(np.array(times) + 2, 8, base=100.0, scale=3.0)
    found = posenc.sinusoidal(times, 8, base=100.0, scale=3.0, start=2, layout="cos-sin", dtype="f64")
    np.testing.assert_allclose(found, np.concatenate((c, s), -1).astype(float), atol=1e-14)
    padded = posenc.sinusoidal(4, 8, padding=1)
    assert not padded[1].any() and padded[2].any()
    assert posenc.sinusoidal(3, 7, odd="zero").shape == (3, 7)
    assert not posenc.sinusoidal(3, 7, odd="zero")[:, -1].any()
    memory = np.zeros((8, 12), np.float16)
    out = memory[::2, :8]
    assert posenc.sinusoidal(4, 8, out=out) is out
    assert same_bytes(np.ascontiguousarray(out), posenc.sinusoidal(4, 8, dtype=np.float16))
    assert not memory[1::2].any() and not memory[:, 8:].any()
    assert posenc.sinusoidal(0, 8).shape == (0, 8)


def test_slopes():
    for heads in (1, 2, 8, 64):
        wanted = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
        np.testing.assert_allclose(posenc.alibi_slopes(heads), wanted, rtol=2e-16)
        np.testing.assert_allclose(posenc.alibi_slopes(heads, slopes="plain"), wanted, rtol=2e-16)
    assert posenc.alibi_slopes(6)[0] == 0.25  # the paper's rule
    exact = np.longdouble(2) ** (-8 * np.arange(1, 7) / np.longdouble(6))
    np.testing.assert_array_equal(posenc.alibi_slopes(6, slopes="plain"), exact.astype(float))
    assert same_bytes(posenc.alibi_slopes(12, first_head=4, head_count=3), posenc.alibi_slopes(12)[4:7])


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("offset", [None, 0, 2, -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bias(causal, offset, dtype):
    queries, keys = 3, 7
    at = (keys - queries if offset is None else offset) + np.arange(queries)[:, None]
    distance = at - np.arange(keys)
    wanted = -posenc.alibi_slopes(8)[:, None, None] * np.abs(distance)
    if causal:
        wanted[:, distance < 0] = -np.inf
    found = posenc.alibi_bias(8, queries, keys, causal=causal, query_offset=offset, dtype=dtype, threads=3)
    # Slopes of 8 heads are powers of two: the products are exact.
    assert found.dtype == DTYPES[dtype]
    np.testing.assert_array_equal(found.astype(float), wanted + 0.0)


def test_slopes_of_your_own():
    slopes = [0.5, 2.0, 0.0]
    found = posenc.alibi_bias(3, 2, 4, slopes=slopes, threads=2)
    np.testing.assert_array_equal(found, posenc.alibi_bias(3, 2, 4, slopes=np.array(slopes)))
    np.testing.assert_array_equal(found[:2, 1, :], -np.array([[0.5], [2.0]]) * [3, 2, 1, 0])
    for wrong, kind in (([1.0], ValueError), ([-1.0, 0, 0], ValueError), (5, TypeError), (["a"] * 3, TypeError)):
        with pytest.raises(kind, match="slopes"):
            posenc.alibi_bias(3, 2, 4, slopes=wrong)


def test_bias_added_to_scores():
    scores = np.random.default_rng(0).standard_normal((4, 3, 5)).astype(np.float32)
    wanted = scores + posenc.alibi_bias(8, 3, 5, first_head=2, head_count=4)
    assert posenc.alibi_bias(8, 3, 5, first_head=2, head_count=4, out=scores, add=True) is scores
    assert same_bytes(scores, wanted)
    tile = np.zeros((4, 6, 9), np.float32)
    posenc.alibi_bias(8, 3, 5, first_head=2, head_count=4, out=tile[:, ::2, :5])
    assert same_bytes(np.ascontiguousarray(tile[:, ::2, :5]), posenc.alibi_bias(8, 3, 5)[2:6])
    assert not tile[:, 1::2].any() and not tile[..., 5:].any()


def test_convert_rounds_once():
    between = np.array([1 + 2.0 ** -8 + 2.0 ** -30, 1 + 2.0 ** -8, -(1 + 3 * 2.0 ** -8), np.inf, 3e-41])
    assert posenc.convert(between, "bf16").astype(float).tolist() == [1 + 2.0 ** -7, 1.0, -(1 + 2.0 ** -6), np.inf,
                                                                    pytest.approx(3e-41, rel=.1)]
    x = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
    assert same_bytes(posenc.convert(x.T, np.float16), np.ascontiguousarray(x.T.astype(np.float16)))
    out = np.empty((5, 6), BF16)
    assert posenc.convert(x, "bfloat16", out=out) is out
    assert same_bytes(out, x.astype(BF16))


def test_cpu_and_version():
    assert posenc.cpu() in ("scalar", "neon", "avx2", "avx512", "avx512bf16")
    assert posenc.__version__.count(".") == 2
