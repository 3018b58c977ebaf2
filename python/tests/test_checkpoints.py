"""posenc.detect: weights whose pairing is known, and the program's answers. SPDX-License-Identifier: MIT"""
import json
import os
import struct

import numpy as np
import pytest
from test_models import SHARED, program
from test_refused import refused

import posenc

HEADS, KV, DIM, WIDTH, LAYERS = 4, 2, 64, 96, 3
SHAPE = {"heads": HEADS, "kv_heads": KV, "head_dim": DIM}


def options(shape):
    return [word for key, value in shape.items() for word in ("--" + key.replace("_", "-"), value)]


def weights(pairing, seed=7):
    """Rows whose powers are those of their pairs, q and k alike, as training leaves them; None: of no pairs."""
    random = np.random.default_rng(seed)
    tensors = {}
    for layer in range(LAYERS):
        group = np.exp(random.standard_normal((KV, DIM // 2)))
        for name, heads in (("q", HEADS), ("k", KV)):
            power = np.repeat(group, heads // KV, axis=0) * np.exp(0.2 * random.standard_normal((heads, DIM // 2)))
            rows = {"half": np.concatenate([power, power], axis=1), "interleaved": np.repeat(power, 2, axis=1),
                    None: np.ones((heads, DIM))}[pairing]
            tensors[f"model.layers.{layer}.self_attn.{name}_proj.weight"] = (
                random.standard_normal((heads * DIM, WIDTH)) * np.sqrt(rows).reshape(-1, 1)).astype(np.float32)
    return tensors


def write(path, tensors):
    header, body = {}, b""
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [len(body), len(body) + array.nbytes]}
        body += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


@pytest.mark.parametrize("pairing", ["half", "interleaved", None])
def test_the_pairing_is_found(tmp_path, pairing):
    path = write(tmp_path / "model.safetensors", weights(pairing))
    answer = posenc.detect(path, **SHAPE)
    assert answer["pairing"] == (pairing or "undetermined")
    assert [layer["layer"] for layer in answer["layers"]] == list(range(LAYERS))
    if pairing:
        assert (answer["statistic"] > 0) == (pairing == "half")
    assert answer == program("detect", path, *options(SHAPE), no=pairing is None)
    assert posenc.detect(os.fsencode(path), layers=1, **SHAPE) == program(
        "detect", path, *options({**SHAPE, "layers": 1}), no=pairing is None)


def test_the_config_beside_the_weights(tmp_path):
    write(tmp_path / "model.safetensors", weights("interleaved"))
    (tmp_path / "config.json").write_text(json.dumps({
        "model_type": "llama", "hidden_size": HEADS * DIM, "num_attention_heads": HEADS, "num_key_value_heads": KV}))
    answer = posenc.detect(tmp_path)
    assert (answer["pairing"], answer["implied"], answer["contradicts"]) == ("interleaved", "half", True)
    assert answer == program("detect", tmp_path)
    assert posenc.detect(tmp_path, rotary_dim=32) == program("detect", tmp_path, "--rotary-dim", 32, no=None)
    assert posenc.detect(tmp_path, rotary_dim=32) != answer
    assert posenc.detect(tmp_path, rotary_dim=32, rotary_start=32) == program(
        "detect", tmp_path, "--rotary-dim", 32, "--rotary-start", 32, no=None)


def test_offsets_of_gains(tmp_path):
    gains = np.random.default_rng(3).uniform(-0.5, 0.5, DIM).astype(np.float32)
    tensors = weights("half")
    tensors.update({f"model.layers.{layer}.self_attn.{side}_norm.weight": gains for layer in range(LAYERS)
                    for side in "qk"})
    path = write(tmp_path / "model.safetensors", tensors)
    found = [posenc.detect(path, gain_offset=offset, **SHAPE) for offset in (False, True)]
    assert found[0] != found[1]
    for offset, answer in enumerate(found):
        assert answer == program("detect", path, "--gain-offset", offset, *options(SHAPE), no=None)


@pytest.mark.parametrize("name", ["stories260K/stories260K.bin", "ollama_tiny/llama-2-tiny-random.gguf"])
def test_real_files(name):
    path = SHARED / "data/models" / name
    if not path.is_file():
        pytest.skip("no data of trained models at hand")
    assert posenc.detect(path) == program("detect", path, no=None)


def test_refused(tmp_path):
    path = write(tmp_path / "model.safetensors", weights("half"))
    refused(ValueError, "heads|head_dim|missing", posenc.detect, path)
    refused(ValueError, "heads|0|from 1", posenc.detect, path, heads=0)
    refused(TypeError, "head_dim|8.5", posenc.detect, path, head_dim=8.5)
    refused(ValueError, "layers|0", posenc.detect, path, layers=0, **SHAPE)
    refused(ValueError, "model.safetensors|k_proj", posenc.detect, path, heads=4, kv_heads=2, head_dim=32)
    refused(ValueError, "rotary_dim", posenc.detect, path, rotary_dim=30, **SHAPE)
    refused(TypeError, "path|int", posenc.detect, 3)
    refused(ValueError, "path|zero bytes", posenc.detect, "a\0b")
    refused(FileNotFoundError, "none.safetensors", posenc.detect, tmp_path / "none.safetensors")
    path.write_bytes(path.read_bytes()[:1000])
    refused(ValueError, "model.safetensors", posenc.detect, path, **SHAPE)


# --- Conversion ------------------------------------------------------------------------------------

def permuted(array, heads, to):
    """NumPy's order of a projection's rows."""
    halves = (heads, 2, DIM // 2, -1) if to == "interleaved" else (heads, DIM // 2, 2, -1)
    return array.reshape(halves).swapaxes(1, 2).reshape(array.shape)


def read(path):
    """Metadata and float32 arrays."""
    whole = path.read_bytes()
    length = struct.unpack_from("<Q", whole)[0]
    header, data = json.loads(whole[8:8 + length]), whole[8 + length:]
    metadata = header.pop("__metadata__", None)
    return metadata, {name: np.frombuffer(data[entry["data_offsets"][0]:entry["data_offsets"][1]], "<f4").reshape(
        entry["shape"]) for name, entry in header.items()}


@pytest.mark.parametrize("to", ["half", "interleaved"])
def test_rows_of_a_converted_file(tmp_path, to):
    path = write(tmp_path / "model.safetensors", weights("half" if to == "interleaved" else "interleaved"))
    out, back, third = tmp_path / "out.safetensors", tmp_path / "back.safetensors", tmp_path / "third.safetensors"
    dry = posenc.convert_checkpoint(path, None, to, **SHAPE)
    assert not out.exists() and not dry["written"] and dry["moved_tensors"] == 2 * LAYERS
    answer = posenc.convert_checkpoint(path, os.fsencode(out), to, **SHAPE)
    assert answer["moves"] == dry["moves"] and answer["written"] and answer["complete"] and answer.pop("left_out") == []
    assert answer == program("convert", path, third, "--to", to, *options(SHAPE))
    assert third.read_bytes() == out.read_bytes()
    metadata, arrays = read(out)
    assert metadata["posenc.pairing"].startswith(to + " ")
    for name, array in read(path)[1].items():
        assert np.array_equal(arrays[name], permuted(array, KV if "k_proj" in name else HEADS, to)), name
    assert posenc.detect(out, **SHAPE)["pairing"] == to
    other = "half" if to == "interleaved" else "interleaved"
    assert posenc.convert_checkpoint(out, back, other, from_pairing=to)["recorded"] == to
    assert back.read_bytes() == path.read_bytes()
    found = posenc.compare_checkpoints(path, out)
    assert found["same"] and found["permuted"] == 2 * LAYERS and (found["from"], found["to"]) == (other, to)
    assert found == program("convert", "--check", path, out)
    assert posenc.compare_checkpoints(path, out, **SHAPE) == program("convert", "--check", path, out, *options(SHAPE))


def test_parts_and_force(tmp_path):
    write(tmp_path / "model.safetensors", weights("half"))
    (tmp_path / "config.json").write_text(json.dumps({
        "model_type": "llama", "hidden_size": HEADS * DIM, "num_attention_heads": HEADS, "num_key_value_heads": KV,
        "num_hidden_layers": LAYERS}))
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK\3\4")
    answer = posenc.convert_checkpoint(tmp_path, tmp_path.with_name("out"), "interleaved", part=(1, 2))
    assert (answer["files_written"], answer["files_missing"], answer["complete"]) == (0, 1, False)
    answer = posenc.convert_checkpoint(tmp_path, tmp_path.with_name("out"), "interleaved", part=(0, 2))
    assert (answer["files_written"], answer["complete"], answer["left_out"]) == (1, True, ["pytorch_model.bin"])
    assert any(r["warning"] and "llama" in r["text"] for r in answer["remarks"])
    assert sorted(path.name for path in tmp_path.with_name("out").iterdir()) == ["config.json", "model.safetensors"]
    with pytest.raises(ValueError, match="heads"):
        posenc.convert_checkpoint(tmp_path, None, "interleaved", heads=HEADS * 2)
    with pytest.raises(ValueError, match="half"):
        posenc.convert_checkpoint(tmp_path, None, "half")
    assert posenc.convert_checkpoint(tmp_path, None, "half", force=True)["remarks"][0]["code"] == "forced"


def test_refused_conversions(tmp_path):
    path = write(tmp_path / "model.safetensors", weights("half"))
    convert = posenc.convert_checkpoint
    refused(ValueError, "heads|given", convert, path, None, "interleaved")
    refused(ValueError, "to|sideways", convert, path, None, "sideways", **SHAPE)
    refused(ValueError, "from", convert, path, None, "half", from_pairing="half", **SHAPE)
    refused(ValueError, "from_pairing", convert, path, None, "half", from_pairing="alternate", **SHAPE)
    refused(TypeError, "part", convert, path, None, "half", part=3, **SHAPE)
    refused(ValueError, "part", convert, path, None, "half", part=(2, 2), **SHAPE)
    refused(TypeError, "path|int", convert, 3, None, "half")
    refused(ValueError, "model.safetensors|k_proj", convert, path, None, "half", heads=4, kv_heads=1, head_dim=64)
    tensors = weights("half")
    del tensors["model.layers.1.self_attn.k_proj.weight"]
    refused(ValueError, "tensor|layers.1.self_attn.k_proj", convert, write(tmp_path / "lack.safetensors", tensors), None,
            "half", **SHAPE)
    refused(FileNotFoundError, "none.safetensors", convert, tmp_path / "none.safetensors", None, "half", **SHAPE)
    refused(FileNotFoundError, "none", convert, path, tmp_path / "none" / "out.safetensors", "half", **SHAPE)
    refused(FileNotFoundError, "none.safetensors", posenc.compare_checkpoints, path, tmp_path / "none.safetensors")
    refused(TypeError, "b|float", posenc.compare_checkpoints, path, 0.5)
