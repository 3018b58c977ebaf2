"""posenc.diagnose and posenc.compare: faults planted here, and the program's answers. SPDX-License-Identifier: MIT"""
import json

import numpy as np
import pytest
from test_models import GEMMA, LLAMA3, LONGROPE, program, written
from test_refused import refused

import posenc

POSITIONS = np.arange(1000, 1012)
X = np.random.default_rng(11).standard_normal((2, 3, 12, 64), dtype=np.float32)
SPEC = posenc.RopeSpec(64, base=500000.0)
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}


def turned(x, base=500000.0, positions=POSITIONS, pairing="half", sign=1.0):
    """In NumPy, float64 throughout."""
    angle = sign * np.multiply.outer(positions.astype(float), base ** (-np.arange(0, 64, 2) / 64.0))
    c, s = np.cos(angle), np.sin(angle)
    first, second = (slice(0, 32), slice(32, 64)) if pairing == "half" else (slice(0, 64, 2), slice(1, 64, 2))
    out = np.empty(x.shape)
    out[..., first] = x[..., first] * c - x[..., second] * s
    out[..., second] = x[..., second] * c + x[..., first] * s
    return out.astype(x.dtype)


def names(found):
    return [[cause["name"] for cause in one["causes"]] for one in found["explanations"]]


def test_a_right_rotation_agrees():
    found = posenc.diagnose(X, turned(X), SPEC, POSITIONS)
    assert (found["verdict"], found["differing"], found["compared"]) == ("agrees", 0, X.size)
    assert posenc.diagnose(turned(X), X, SPEC, POSITIONS, inverse=True)["verdict"] == "agrees"
    assert posenc.diagnose(turned(X), X, SPEC, POSITIONS, backward=True)["verdict"] == "agrees"


@pytest.mark.parametrize("cause, fault, value", [
    ("other_pairing", {"pairing": "interleaved"}, None), ("negated_angle", {"sign": -1.0}, None),
    ("base", {"base": 10000.0}, 10000.0), ("position_shifted", {"positions": POSITIONS + 1}, 1.0)])
def test_faults_have_names(tmp_path, cause, fault, value):
    after = turned(X, **fault)
    found = posenc.diagnose(X, after, SPEC, POSITIONS)
    assert found["verdict"] == "explained" and names(found) == [[cause]]
    (told,) = found["explanations"][0]["causes"]
    assert told["value"] == value or told["value"] == pytest.approx(value)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", after)
    page = program("diagnose", "--before", tmp_path / "x.npy", "--after", tmp_path / "y.npy", "--base", 500000,
                   "--head-dim", 64, "--positions", "1000:1012", "--axes", "batch,heads,tokens,head_dim", no=True)
    assert found == {key: page[key] for key in found}


def test_sequences_with_positions_of_their_own():
    own = np.stack([POSITIONS, np.arange(12)])
    after = np.stack([turned(X[0], positions=own[0]), turned(X[1], positions=own[1])])
    assert posenc.diagnose(X, after, SPEC, own)["verdict"] == "agrees"
    assert posenc.diagnose(X, after, SPEC, POSITIONS)["verdict"] == "unexplained"
    found = posenc.diagnose(X, turned(X), SPEC, own)
    assert names(found) == [["positions_of_first"]] and found["worst"]["batch"] == 1
    assert found["worst"]["position"] == found["worst"]["token"]  # the second sequence's
    grid = posenc.RopeSpec(64, base=500000.0, axes=posenc.Axes(3, sections=(8, 12, 12)))
    assert posenc.diagnose(X, after, grid, np.stack([own] * 3))["verdict"] == "agrees"
    assert posenc.diagnose(X, turned(X), grid, np.stack([POSITIONS] * 3))["verdict"] == "agrees"
    for shape in ((3, 12), (2, 11), (2, 2, 12), (24,)):
        refused(ValueError, "positions|12 tokens", posenc.diagnose, X, after, SPEC, np.zeros(shape, np.int64))
    refused(ValueError, "positions|3 axes", posenc.diagnose, X, after, grid, own)


def test_what_has_no_name():
    found = posenc.diagnose(X, np.random.default_rng(1).permuted(X, axis=-1), SPEC, POSITIONS)
    assert found["verdict"] == "unexplained" and not found["explanations"]
    assert not found["is_rotation_half"] and not found["is_rotation_interleaved"]
    after = turned(X)
    after[1, 2, 3, 4] += 0.5
    worst = posenc.diagnose(X, after, SPEC, POSITIONS)["worst"]
    assert {key: worst[key] for key in ("batch", "head", "token", "channel", "position")} == {
        "batch": 1, "head": 2, "token": 3, "channel": 4, "position": 1003}


def test_axes_strides_and_dtypes():
    x = X.transpose(0, 2, 1, 3)
    y = turned(X).transpose(0, 2, 1, 3)
    words = "batch,tokens,heads,head_dim"
    assert posenc.diagnose(x, y, SPEC, POSITIONS, axes=words)["verdict"] == "agrees"
    assert posenc.diagnose(np.ascontiguousarray(x), y, SPEC, POSITIONS, axes=words)["verdict"] == "agrees"
    assert posenc.diagnose(X, turned(X).astype(np.float16), SPEC, POSITIONS)["verdict"] == "agrees"
    five = np.zeros((2, 12, 3, 2, 64), np.float32).transpose(0, 2, 3, 1, 4)[:, ::2]  # heads that are no one axis
    five[...] = X[:, :2, None]
    assert posenc.diagnose(five, turned(np.ascontiguousarray(five)), SPEC, POSITIONS,
                           axes="batch,heads,heads,tokens,head_dim")["verdict"] == "agrees"


def test_axes_of_positions_modes_and_lengths():
    spec = posenc.RopeSpec(64, axes=posenc.Axes(3, (8, 12, 12)))
    grid = np.array([[50] * 12, list(range(50, 62)), list(range(62, 50, -1))])
    after = posenc.rotate(X, posenc.rotation(spec, grid))
    assert posenc.diagnose(X, after, spec, grid)["verdict"] == "agrees"
    assert names(posenc.diagnose(X, after, spec, grid[::-1].copy())) == [["axes_reversed"]]
    long = posenc.RopeSpec.from_config(LONGROPE)
    after = posenc.rotate(X, posenc.rotation(long, POSITIONS, seq_len=8000))
    assert posenc.diagnose(X, after, long, POSITIONS, seq_len=8000)["verdict"] == "agrees"
    assert names(posenc.diagnose(X, after, long, POSITIONS, seq_len=4000)) == [["longrope_other_list"]]
    far = POSITIONS * 12345
    after = posenc.rotate(X, posenc.rotation(SPEC, far, mode="float32"))
    assert posenc.diagnose(X, after, SPEC, far, mode="float32")["verdict"] == "agrees"
    assert names(posenc.diagnose(X, after, SPEC, far)) == [["other_mode"]]


def test_torch():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X).bfloat16().requires_grad_()
    after = posenc.rotate(x, posenc.rotation(SPEC, POSITIONS))
    assert posenc.diagnose(x, after, SPEC, POSITIONS)["verdict"] == "agrees"
    other = posenc.rotate(x, posenc.rotation(SPEC, POSITIONS), pairing="interleaved")
    assert names(posenc.diagnose(x, other, SPEC, POSITIONS)) == [["other_pairing"]]
    angle = torch.arange(50.0, dtype=torch.float64)[:, None] * torch.from_numpy(SPEC.frequencies().inv_freq)
    assert posenc.compare((angle.cos(), angle.sin()), SPEC)["beyond"]["f32"] is None


def test_compare_is_the_programs(tmp_path):
    a, b = {"head_dim": 64, "base": 500000.0}, {"head_dim": 64, "base": 10000.0, "pairing": "interleaved"}
    for one, other, no in ((a, a, False), (a, b, True), (a, {**a, "mode": "float32"}, True), (a, {**a, "scaling": YARN}, True)):
        page = program("compare", json.dumps(one), json.dumps(other), no=no)
        assert posenc.compare(one, other) == page
    assert posenc.compare(SPEC, posenc.RopeSpec(64, base=10000.0, pairing="interleaved")) == posenc.compare(a, b)
    assert posenc.compare(SPEC, a, mode="float32") == posenc.compare({**a, "mode": "float32"}, a)
    assert posenc.compare(SPEC, SPEC, mode_b="float32") == posenc.compare(a, {**a, "mode": "float32"})
    model, other = written(tmp_path, GEMMA), tmp_path / "long.json"
    other.write_text(json.dumps(LONGROPE))
    for layer_type, no in (("full_attention", False), ("sliding_attention", True)):
        page = program("compare", model, model, "--layer-type", "full_attention", "--layer-type-b", layer_type, no=no)
        assert posenc.compare(model, GEMMA, layer_type="full_attention", layer_type_b=layer_type) == page
    for more in ({}, {"seq_len": 4000}):
        page = program("compare", other, json.dumps(a), *(["--seq-len", 4000] if more else []), no=True)
        assert posenc.compare(other, a, **more) == page


def test_compare_says_how():
    equal = posenc.compare(SPEC, LLAMA3 | {"rope_scaling": None})
    assert (equal["verdict"], equal["positions"]) == ("equal", 4112)
    pairing = posenc.compare(SPEC, posenc.RopeSpec(64, base=500000.0, pairing="interleaved"))
    assert (pairing["verdict"], pairing["equivalence"]) == ("equivalent", "pairing")
    found = posenc.compare(SPEC, posenc.RopeSpec(64, base=10000.0), positions=range(5, 9))
    assert found["beyond"]["bf16"]["position"] == 5 and found["positions"] == 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_compare_own_tables(tmp_path, dtype):
    angle = np.multiply.outer(np.arange(300.0), 500000.0 ** (-np.arange(0, 64, 2) / 64.0))
    cos, sin = np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)
    for side in ((cos, sin), (np.tile(cos, 2), np.tile(sin, 2)), np.concatenate([cos, sin], axis=1)):
        found = posenc.compare(SPEC, side)
        assert found["positions"] == 300
        assert found["beyond"]["f16"] is None and (dtype is np.float16 or found["beyond"]["f32"] is None)
    np.savez(tmp_path / "t.npz", cos=cos, sin=sin)
    assert posenc.compare(SPEC, tmp_path / "t.npz") == posenc.compare(SPEC, (cos, sin))
    shifted = posenc.compare(SPEC, (cos, sin), positions=range(1, 301))
    assert shifted["verdict"] != "equal"
    conjugate = posenc.compare((cos, -sin), SPEC)
    assert (conjugate["verdict"], conjugate["equivalence"]) == ("equivalent", "conjugate")
    assert posenc.compare((cos[:100], sin[:100]), (cos, sin))["positions"] == 100
    if dtype is np.float64:
        assert posenc.compare(500000.0 ** (-np.arange(0, 64, 2) / 64.0), SPEC)["beyond"]["f32"] is None


def test_image_positions():
    first = posenc.RopeSpec(64, axes=posenc.Axes(3, (8, 12, 12)))
    second = posenc.RopeSpec(64, axes=posenc.Axes(3, (8, 12, 12), "interleaved"))
    image = np.array([[7, 7, 7, 7], [7, 7, 8, 8], [7, 8, 7, 8]])
    assert posenc.compare(first, first, positions=image)["verdict"] == "equal"
    found = posenc.compare(first, second, positions=image)
    assert found["verdict"] == "different" and found["axes_differ"] and found["largest"]["error"] > 0.1
    angle = image[np.repeat([0, 1, 2], (8, 12, 12))].T * 10000.0 ** (-np.arange(32) / 32)
    assert posenc.compare(first, (np.cos(angle), np.sin(angle)), positions=image)["verdict"] == "equal"
    assert posenc.compare(second, (np.cos(angle), np.sin(angle)), positions=image)["verdict"] == "different"


def test_refused(tmp_path):
    diagnose, compare = posenc.diagnose, posenc.compare
    refused(TypeError, "spec|dict|RopeSpec", diagnose, X, X, {}, POSITIONS)
    refused(ValueError, "after|shape", diagnose, X, X[:1], SPEC, POSITIONS)
    refused(ValueError, "after|shape", diagnose, X, X[0], SPEC, POSITIONS)
    refused(ValueError, "positions|12", diagnose, X, X, SPEC, range(5))
    refused(TypeError, "positions|float", diagnose, X, X, SPEC, POSITIONS / 2)
    refused(ValueError, "positions|2^40", diagnose, X, X, SPEC, POSITIONS + (1 << 41))
    refused(ValueError, "positions|2 axes", diagnose, X, X, posenc.RopeSpec(64, axes=posenc.Axes(2, (16, 16))), POSITIONS)
    refused(ValueError, "64|128", diagnose, X, X, posenc.RopeSpec(128), POSITIONS)
    refused(ValueError, "axes|3|4", diagnose, X, X, SPEC, POSITIONS, axes="heads,tokens,head_dim")
    refused(ValueError, "seq_len", diagnose, X, X, posenc.RopeSpec.from_config(LONGROPE), POSITIONS)
    refused(ValueError, "mode|'fast'", diagnose, X, X, SPEC, POSITIONS, mode="fast")
    refused(TypeError, "before|int32", diagnose, X.astype(np.int32), X, SPEC, POSITIONS)
    refused(TypeError, "a|int", compare, 3, SPEC)
    refused(ValueError, "b|3 arrays", compare, SPEC, (X, X, X))
    refused(ValueError, "bases", compare, {"head_dim": 64, "bases": 3}, SPEC)
    refused(ValueError, "layer_type|full_attention", compare, GEMMA, SPEC)
    refused(ValueError, "positions|shape", compare, SPEC, SPEC, positions=[[[1]]])
    refused(ValueError, "positions|2 lists|1 axes", compare, SPEC, SPEC, positions=[[1], [2]])
    refused(ValueError, "seq_len|0", compare, SPEC, SPEC, seq_len=0)
    refused(ValueError, "b|cos", compare, SPEC, np.ones((2, 3, 4, 5)))
    refused(FileNotFoundError, "no.npz", compare, tmp_path / "no.npz", SPEC)
