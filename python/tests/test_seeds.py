"""Checks of two teaching implementations, with their functions replaced by ours, to their tolerances.
SPDX-License-Identifier: MIT"""
import math
import random

import numpy as np
import pytest

import posenc


def sinusoidal_encoding(n, d):
    return posenc.sinusoidal(n, d, dtype=np.float64)


def apply_rope(x, positions=None, base=10000.0):
    return posenc.apply_rope(x, positions, base)


def apply_rope_to_vector(x, position, base=10000.0):
    return posenc.apply_rope(np.asarray(x, dtype=np.float64), position, base, pairing="interleaved").tolist()


def alibi_slopes(n):
    return posenc.alibi_slopes(n, slopes="plain").tolist()


def alibi_bias(n, length, causal=True):
    return posenc.alibi_bias(n, length, length, causal=causal, slopes="plain", dtype=np.float64).tolist()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_sinusoidal_values_by_hand():
    table = sinusoidal_encoding(8, 4)
    assert table.shape == (8, 4) and table.dtype == np.float64
    assert np.allclose(table[0], [0, 1, 0, 1])
    assert np.allclose(table[1], [np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)])
    assert np.allclose(table[5, 2], np.sin(0.05))


def test_sinusoidal_pairs_lie_on_the_unit_circle():
    table = sinusoidal_encoding(50, 64)
    assert np.allclose(table[:, 0::2] ** 2 + table[:, 1::2] ** 2, 1)
    assert np.all(np.abs(table) <= 1)
    angles = np.arange(50)[:, None] / 10000.0 ** (np.arange(0, 64, 2) / 64)
    assert np.allclose(table[:, 0::2], np.sin(angles)) and np.allclose(table[:, 1::2], np.cos(angles))


def test_position_0_turns_nothing(rng):
    q = rng.normal(size=(1, 16))
    assert np.allclose(apply_rope(q, positions=np.array([0])), q)


def test_norms_are_kept(rng):
    x = rng.normal(size=(7, 16))
    assert np.allclose(np.linalg.norm(apply_rope(x), axis=-1), np.linalg.norm(x, axis=-1))


def test_scores_depend_on_the_distance_alone(rng):
    q, k = rng.normal(size=(1, 16)), rng.normal(size=(1, 16))

    def score(m, n):
        return (apply_rope(q, positions=np.array([m])) @ apply_rope(k, positions=np.array([n])).T).item()

    assert np.isclose(score(3, 7), score(10, 14), atol=1e-9)
    assert np.isclose(score(0, 5), score(100, 105), atol=1e-9)
    assert not np.isclose(score(3, 7), score(3, 8), atol=1e-6)


def test_a_decoded_token_has_its_own_position(rng):
    x = rng.normal(size=(7, 16))
    assert np.allclose(apply_rope(x)[-1:], apply_rope(x[-1:], positions=np.array([6])))


def test_leading_axes_are_independent(rng):
    x = rng.normal(size=(2, 4, 7, 16))
    assert apply_rope(x).shape == x.shape
    assert np.allclose(apply_rope(x)[1, 2], apply_rope(x[1, 2]))


def test_rotation_is_linear(rng):
    a, b = rng.normal(size=(5, 16)), rng.normal(size=(5, 16))
    assert np.allclose(apply_rope(a + b), apply_rope(a) + apply_rope(b))


def test_rope_by_the_formula_in_halves(rng):
    x = rng.normal(size=(9, 16))
    angles = np.arange(9)[:, None] * 10000.0 ** (-np.arange(0, 16, 2) / 16)
    a, b, c, s = x[:, :8], x[:, 8:], np.cos(angles), np.sin(angles)
    assert np.allclose(apply_rope(x), np.concatenate((a * c - b * s, a * s + b * c), -1), rtol=0, atol=1e-13)


def test_interleaved_vectors_by_the_formula():
    draw = random.Random(0)
    for base, position in ((10000.0, 3), (100000, 4096), (1000000, 1026)):
        x = [draw.gauss(0, 1) for _ in range(16)]
        wanted = []
        for i in range(8):
            angle = position / base ** (2 * i / 16)
            c, s = math.cos(angle), math.sin(angle)
            wanted += [x[2 * i] * c - x[2 * i + 1] * s, x[2 * i] * s + x[2 * i + 1] * c]
        assert np.allclose(apply_rope_to_vector(x, position, base), wanted, rtol=0, atol=1e-11)


def test_interleaved_scores_of_one_distance_agree():
    draw = random.Random(0)
    q, k = ([draw.gauss(0, 1) for _ in range(16)] for _ in range(2))
    scores = [np.dot(apply_rope_to_vector(q, m), apply_rope_to_vector(k, n))
              for m, n in ((3, 5), (7, 9), (100, 102), (1024, 1026))]
    assert {f"{score:.6f}" for score in scores} == {f"{scores[0]:.6f}"}


@pytest.mark.parametrize("heads", [1, 4, 6, 8, 12])
def test_plain_slopes(heads):
    wanted = [2 ** (-8 * (h + 1) / heads) for h in range(heads)]
    assert np.allclose(alibi_slopes(heads), wanted, rtol=1e-15, atol=0)


@pytest.mark.parametrize("heads", [4, 6])
@pytest.mark.parametrize("causal", [True, False])
def test_bias_matrices(heads, causal):
    wanted = [[[-math.inf if causal and j > i else -slope * abs(i - j) for j in range(6)] for i in range(6)]
              for slope in (2 ** (-8 * (h + 1) / heads) for h in range(heads))]
    assert np.allclose(alibi_bias(heads, 6, causal), wanted, rtol=1e-14, atol=0)
