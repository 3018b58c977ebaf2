"""Specs, frequencies, rows. SPDX-License-Identifier: MIT"""
import math
import warnings

import numpy as np
import pytest
from reference import BF16, DTYPES, inv_freq, rows, same_bytes

import posenc

POSITIONS = np.array([0, 1, 77, 4096, 524288, -3])


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_every_dtype(dtype):
    cos, sin = posenc.angles(posenc.RopeSpec(64), POSITIONS, dtype=dtype)
    wanted = rows(POSITIONS, 64, dtype=np.longdouble)
    for found, exact in zip((cos, sin), wanted):
        assert found.dtype == DTYPES[dtype]
        if dtype == "float64":
            np.testing.assert_allclose(found, exact.astype(float), rtol=0, atol=1e-12)
        elif dtype == "bfloat16":
            assert np.max(np.abs(found.astype(np.longdouble) - exact)) <= 2.0 ** -9
        else:
            assert same_bytes(found, exact.astype(DTYPES[dtype]))


def test_layouts():
    spec = posenc.RopeSpec(8)
    cos, sin = posenc.angles(spec, POSITIONS)
    for layout, wanted in {"full-half": [np.concatenate((t, t), -1) for t in (cos, sin)],
                           "full_interleaved": [np.repeat(t, 2, -1) for t in (cos, sin)]}.items():
        for found, right in zip(posenc.angles(spec, POSITIONS, layout=layout), wanted):
            assert same_bytes(found, right)
    assert same_bytes(posenc.angles(spec, POSITIONS, layout="cos-sin"), np.concatenate((cos, sin), -1))
    assert same_bytes(posenc.angles(spec, POSITIONS, layout="pairs"), np.stack((cos, sin), -1).reshape(-1, 8))


def test_rows_into_the_callers_arrays():
    spec = posenc.RopeSpec(8)
    cos, sin = posenc.angles(spec, POSITIONS)
    memory = np.zeros((2, 2 * len(POSITIONS), 9), np.float32)
    out = memory[0, ::2, :4], memory[1, ::2, :4]
    assert posenc.angles(spec, POSITIONS, out=out, threads=3) is out
    assert same_bytes(np.ascontiguousarray(out[0]), cos) and same_bytes(np.ascontiguousarray(out[1]), sin)
    assert not memory[:, 1::2].any() and not memory[..., 4:].any()


def test_rows_of_several_axes():
    spec = posenc.RopeSpec(16, axes=posenc.Axes(3, (2, 3, 3)))
    positions = np.array([[[1, 2], [3, 4]], [[10, 20], [30, 40]], [[5, 6], [7, 8]]])
    turn = posenc.rotation(spec, positions)
    assert turn.cos.shape == (2, 2, 8)
    assert spec.frequencies().axes.tolist() == [0, 0, 1, 1, 1, 2, 2, 2]
    chosen = positions[spec.frequencies().axes].transpose(1, 2, 0)
    angles = chosen * inv_freq(16)
    assert same_bytes(turn.cos, np.cos(angles).astype(np.float32))
    same = posenc.RopeSpec(16, scaling={"rope_type": "default", "mrope_section": [2, 3, 3]})
    assert same_bytes(posenc.rotation(same, positions).sin, np.sin(angles).astype(np.float32))


def test_frequencies_of_plain_rope():
    spec = posenc.RopeSpec(128, base=500000)
    frequencies = spec.frequencies()
    np.testing.assert_allclose(frequencies.inv_freq, inv_freq(128, 500000).astype(float), rtol=2e-16)
    np.testing.assert_allclose(frequencies.wavelengths, 2 * np.pi / frequencies.inv_freq)
    assert frequencies.attention_factor == frequencies.softmax_factor == 1.0
    assert (spec.head_dim, spec.rotary_dim, spec.base, spec.pairing) == (128, 128, 500000.0, "half")
    assert spec.defaulted == {"rotary_dim": 128}
    assert posenc.RopeSpec(128).defaulted == {"rotary_dim": 128, "base": 10000.0}


def linear(f, d):
    return f / 4


def ntk(f, d):
    return inv_freq(d, 10000.0 * np.longdouble(4) ** (d / (d - 2)))


def llama3(f, d):
    low, high, length, made = 1.0, 4.0, 8192, []
    for value in f:
        turns = length * value / (2 * np.pi)
        blend = min(max((turns - low) / (high - low), 0), 1)
        made.append(value * blend + value / 8 * (1 - blend))
    return np.array(made)


@pytest.mark.parametrize("block, formula", [
    ({"rope_type": "default"}, lambda f, d: f),
    ({"rope_type": "linear", "factor": 4.0}, linear),
    ({"type": "linear", "factor": 4}, linear),
    ({"rope_type": "ntk", "factor": 4.0}, ntk),
    ({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 8192}, llama3)])
def test_scalings_by_their_formulas(block, formula):
    found = posenc.RopeSpec(64, scaling=block).frequencies().inv_freq
    np.testing.assert_allclose(found, formula(inv_freq(64), 64).astype(float), rtol=1e-12)


def test_a_factor_below_1_is_for_those_who_ask():
    block = {"rope_type": "linear", "factor": 0.5}
    with pytest.warns(UserWarning, match="factor"):
        spec = posenc.RopeSpec(16, scaling=block, shrinks=True)
    np.testing.assert_allclose(spec.frequencies().inv_freq, (2 * inv_freq(16)).astype(float), rtol=1e-15)


def test_scalings_that_need_a_length():
    longrope = {"rope_type": "longrope", "original_max_position_embeddings": 64,
                "short_factor": [1.0] * 8, "long_factor": np.arange(1.0, 9.0)}
    spec = posenc.RopeSpec(16, scaling=longrope, max_positions=256)
    assert spec.needs_seq_len
    np.testing.assert_allclose(spec.frequencies(64).inv_freq, inv_freq(16).astype(float), rtol=1e-15)
    long = spec.frequencies(65)
    np.testing.assert_allclose(long.inv_freq, (inv_freq(16) / np.arange(1, 9)).astype(float), rtol=1e-15)
    assert long.attention_factor == pytest.approx(math.sqrt(1 + math.log(4) / math.log(64)), rel=1e-15)
    with pytest.raises(ValueError, match="seq_len"):
        posenc.rotation(spec, range(4))
    x = np.random.default_rng(0).standard_normal((4, 16))
    short, long = (posenc.rotation(spec, range(4), seq_len=n) for n in (10, 100))
    again = posenc.rotation(posenc.change(spec.frequencies(10), spec.frequencies(100)), range(4))
    np.testing.assert_allclose(posenc.rotate(posenc.rotate(x, short), again), posenc.rotate(x, long), atol=1e-13)
    dynamic = posenc.RopeSpec(16, scaling={"rope_type": "dynamic", "factor": 2.0}, max_positions=100)
    np.testing.assert_allclose(dynamic.frequencies(50).inv_freq, inv_freq(16).astype(float), rtol=1e-15)
    grown = inv_freq(16, 10000.0 * np.longdouble(2 * 400 / 100 - 1) ** (16 / 14))
    np.testing.assert_allclose(dynamic.frequencies(400).inv_freq, grown.astype(float), rtol=1e-14)
    assert not posenc.RopeSpec(16, scaling={"rope_type": "dynamic", "alpha": 3.0}, dynamic="alpha",
                               max_positions=100).needs_seq_len


def test_own_frequencies():
    own = np.array([1.0, 0.5, 0.25, 2.0])
    for values, more in ((own, {}), (own.tolist(), {}), (own.astype(np.float32), {}),
                         (1 / own, {"inv_freq_is_period": True})):
        spec = posenc.RopeSpec(8, inv_freq=values, **more)
        np.testing.assert_array_equal(spec.frequencies().inv_freq, own)


def test_rows_without_the_attention_factor():
    spec = posenc.RopeSpec(16, scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64})
    factor = spec.frequencies().attention_factor
    assert factor == pytest.approx(0.1 * math.log(4) + 1, rel=1e-15)
    with_it, without = (posenc.angles(spec, [3], dtype="float64", attention=a)[0] for a in (True, False))
    np.testing.assert_allclose(with_it, factor * without, rtol=1e-15)


def test_odd_settings_are_warned_about():
    with pytest.warns(UserWarning, match="surprise"):
        spec = posenc.RopeSpec(16, scaling={"rope_type": "default", "surprise": 1})
    assert [note.kind for note in spec.notes if note.kind != "defaulted"] == ["unknown_key"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posenc.RopeSpec(16)


def test_a_rotation_cannot_be_changed_by_the_callers_arrays():
    positions = np.arange(4)
    turn = posenc.rotation(posenc.RopeSpec(8), positions)
    x = np.ones((4, 8))
    wanted = posenc.apply_rope(x)
    positions += 100
    assert same_bytes(posenc.rotate(x, turn), wanted)
    with pytest.raises(ValueError):
        turn.cos[0, 0] = 2


def test_bfloat16_rows_are_those_of_ml_dtypes():
    cos, _ = posenc.angles(posenc.RopeSpec(8), [1, 2], dtype=BF16)
    assert same_bytes(cos, rows([1, 2], 8, dtype=np.float32)[0].astype(BF16))
