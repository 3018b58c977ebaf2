"""Models' own files: against the program, formulas written here, and transformers. SPDX-License-Identifier: MIT"""
import dataclasses
import json
import math
import os
import shutil
import struct
import subprocess
import sysconfig
import warnings
from pathlib import Path

import numpy as np
import pytest
from test_refused import refused

import posenc

PROGRAM = shutil.which("posenc", path=sysconfig.get_path("scripts"))
SHARED = Path(os.environ.get("POSENC_SHARED", Path(__file__).resolve().parents[3] / "shared"))
LLAMA = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 131072, "rope_theta": 500000.0}
LLAMA3 = {**LLAMA, "rope_scaling": {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192}}
YARN = {**LLAMA, "model_type": "qwen2", "rope_theta": 1000000.0, "rope_scaling": {
    "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}
GEMMA = {"model_type": "gemma3_text", "num_hidden_layers": 6, "hidden_size": 512, "num_attention_heads": 8,
         "num_key_value_heads": 4, "head_dim": 64, "max_position_embeddings": 32768, "rope_theta": 1000000.0,
         "rope_local_base_freq": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
LONGROPE = {**LLAMA, "model_type": "phi3", "original_max_position_embeddings": 4096, "rope_scaling": {
    "type": "longrope", "short_factor": [1.0 + i / 32 for i in range(32)],
    "long_factor": [2.0 + i for i in range(32)]}}
OTHERS = {
    "dynamic": {**LLAMA, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
    "qwen": {"model_type": "qwen", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4, "seq_length": 2048,
             "use_dynamic_ntk": True, "kv_channels": 64},
    "mrope": {**LLAMA, "model_type": "qwen2_vl", "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]}},
    "deepseek": {"model_type": "deepseek_v3", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4,
                 "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "max_position_embeddings": 163840,
                 "rope_theta": 10000, "rope_scaling": {
                     "type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32,
                     "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}},
    "bloom": {"model_type": "bloom", "n_head": 8},
    "unknown": {"model_type": "never_heard_of", "hidden_size": 64, "num_attention_heads": 4},
    "short": {**LLAMA, "rope_scaling": {"type": "linear", "factor": 0.5}},
    "odd": {**LLAMA, "model_type": "llama", "head_dim": 7},
}
CONFIGS = {"llama3": LLAMA3, "yarn": YARN, "gemma": GEMMA, "longrope": LONGROPE, **OTHERS}


def program(*arguments, no=False):
    """The program's JSON. Its status must be 0, or 1 with no=True ("the answer is no"); no=None: either."""
    if PROGRAM is None:
        pytest.skip("the program posenc is not beside Python")
    done = subprocess.run([PROGRAM, *map(str, arguments), "--json"], capture_output=True, check=False)
    assert done.returncode in ((0, 1) if no is None else (int(no),)), done.stderr
    return json.loads(done.stdout)


def written(folder, config):
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


def real_files():
    files = sorted([*SHARED.glob("data/configs/*.json"), *SHARED.glob("data/gguf/*.gguf")])
    return files if os.environ.get("POSENC_LONG") else files[::9]


@pytest.mark.parametrize("name", CONFIGS)
def test_inspect_is_the_programs(tmp_path, name):
    path = written(tmp_path, CONFIGS[name])
    page = program("inspect", path)
    assert posenc.inspect(path) == page
    assert posenc.inspect(str(path)) == posenc.inspect(os.fsencode(path)) == page
    assert posenc.inspect(CONFIGS[name]) == {**page, "path": None}


def check_against_program(path):
    """Every layer type that rotates has the frequencies that the program takes from the file."""
    count = 0
    for entry in posenc.inspect(path)["layer_types"]:
        if entry["kind"] != "rope" or "invalid" in entry:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            spec = posenc.RopeSpec.from_config(path, entry["name"])
        length = entry["max_positions"] or 1
        mine = spec.frequencies(length)
        theirs = program("frequencies", "--config", path, "--layer-type", entry["name"], "--seq-len", length)
        assert mine.inv_freq.tolist() == theirs["inv_freq"]
        assert mine.attention_factor == theirs["attention_factor"]
        rounded = program("frequencies", "--config", path, "--layer-type", entry["name"], "--seq-len", length, "--mode",
                      "float32")
        assert mine.inv_freq_float32.tolist() == rounded["inv_freq"]
        assert (spec.pairing, spec.head_dim, spec.rotary_dim, spec.rotary_start, spec.base) == tuple(
            entry[key] for key in ("pairing", "head_dim", "rotary_dim", "rotary_start", "base"))
        assert (spec.axes is None) == (entry["axes"] is None)
        if spec.axes:
            assert [spec.axes.count, spec.axes.order, list(spec.axes.sections)] == [
                entry["axes"][key] for key in ("count", "order", "sections")]
        again = dataclasses.replace(spec, head_dim=spec.head_dim) if not spec.notes else spec
        assert again.frequencies(length).inv_freq.tolist() == theirs["inv_freq"]
        count += 1
    return count


@pytest.mark.parametrize("name", CONFIGS)
def test_specs_are_the_programs(tmp_path, name):
    rotary = check_against_program(written(tmp_path, CONFIGS[name]))
    assert rotary == {"gemma": 2, "bloom": 0, "unknown": 0, "odd": 0}.get(name, 1)


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_real_files(path):
    assert posenc.inspect(path) == program("inspect", path)
    check_against_program(path)


def plain(base, dim):
    return (1.0 / np.float32(base) ** (np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim))).astype(np.float32)


def close(mine, wanted):
    assert mine.dtype == np.float32
    np.testing.assert_array_max_ulp(mine, np.asarray(wanted, np.float32), 4)


def test_llama3():
    spec = posenc.RopeSpec.from_config(LLAMA3)
    wanted = []
    for f in plain(500000.0, 64).astype(float):
        turns = 8192 * f / (2 * math.pi)
        share = min(max((turns - 1) / (4 - 1), 0), 1)
        wanted.append(share * f + (1 - share) * f / 8)
    close(spec.frequencies().inv_freq_float32, wanted)
    assert (spec.pairing, spec.head_dim, spec.base, spec.max_positions) == ("half", 64, 500000.0, 131072)


def test_yarn():
    frequencies = posenc.RopeSpec.from_config(YARN).frequencies()

    def pair_of(turns):
        return 64 * math.log(32768 / (turns * 2 * math.pi)) / (2 * math.log(1e6))

    low, high = math.floor(pair_of(32)), math.ceil(pair_of(1))
    ramp = np.clip((np.arange(32) - low) / (high - low), 0, 1)
    f = plain(1e6, 64).astype(float)
    close(frequencies.inv_freq_float32, f / 4 * ramp + f * (1 - ramp))
    assert frequencies.attention_factor == pytest.approx(0.1 * math.log(4) + 1, rel=1e-15)


def test_gemma3_layer_types():
    with pytest.raises(ValueError) as caught:
        posenc.RopeSpec.from_config(GEMMA)
    assert "layer_type" in str(caught.value)
    assert "sliding_attention (rope), full_attention (rope)" in str(caught.value)
    sliding = posenc.RopeSpec.from_config(GEMMA, "sliding_attention")
    full = posenc.RopeSpec.from_config(GEMMA, layer_type="full_attention")
    close(sliding.frequencies().inv_freq_float32, plain(1e4, 64))
    close(full.frequencies().inv_freq_float32, plain(1e6, 64) / np.float32(8))


def test_parts_are_chosen():
    tower = {"depth": 2, "embed_dim": 1280, "num_heads": 16, "hidden_size": 1536}
    whole = {"model_type": "qwen2_vl", "hidden_size": 256, "num_attention_heads": 4, "rope_theta": 1e6,
             "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]}, "vision_config": tower,
             "audio_config": {"model_type": "x"}}
    spec = posenc.RopeSpec.from_config(whole, part="vision_config")
    alone = posenc.RopeSpec.from_config({**tower, "model_type": "qwen2_vl_vision"})
    assert (spec.head_dim, spec.axes) == (80, alone.axes) and posenc.RopeSpec.from_config(whole).head_dim == 64
    np.testing.assert_array_equal(spec.frequencies().inv_freq, alone.frequencies().inv_freq)
    assert posenc.compare(whole, alone, part="vision_config")["verdict"] == "equal"
    assert posenc.compare(alone, whole, part_b="vision_config")["verdict"] == "equal"
    for part, kind, said in (("vision", ValueError, r"must be one of \['vision_config'\]"),
                             ("audio_config", ValueError, "not read: no rule knows its model type x"),
                             (3, TypeError, "must be a word")):
        with pytest.raises(kind, match=said):
            posenc.RopeSpec.from_config(whole, part=part)
    with pytest.raises(ValueError, match="has no other parts"):
        posenc.RopeSpec.from_config(LLAMA3, part="vision_config")


def test_notes_are_kept_and_not_printed(recwarn, capfd):
    spec = posenc.RopeSpec.from_config(OTHERS["short"])
    assert [note.kind for note in spec.notes].count("factor-below-1") == 1
    assert "0.5" in next(note for note in spec.notes if note.kind == "factor-below-1").message
    spec = posenc.RopeSpec.from_config({"hidden_size": 256, "num_attention_heads": 4}, pairing="half")
    assert spec.defaulted["base"] == 10000.0 and spec.defaulted["rotary_dim"] == 64
    assert "rope_theta (10000) was not given" in next(n for n in spec.notes if n.argument == "base").message
    assert isinstance(spec.defaulted["rotary_dim"], int)
    kinds = {note.kind: note for note in posenc.RopeSpec.from_config(OTHERS["deepseek"]).notes}
    assert kinds["output_half"].value == "half" and "output_pairing='half'" in kinds["output_half"].message
    assert not recwarn.list and capfd.readouterr() == ("", "")


def test_rotates_like_the_same_spec_by_hand():
    x = np.random.default_rng(5).standard_normal((2, 16, 64), dtype=np.float32)
    hand = posenc.RopeSpec(64, base=500000.0, scaling={**LLAMA3["rope_scaling"]}, max_positions=131072)
    a, b = (posenc.rotate(x, posenc.rotation(spec, range(100000, 100016)))
            for spec in (posenc.RopeSpec.from_config(LLAMA3), hand))
    assert a.tobytes() == b.tobytes()


def test_lengths_are_asked_for():
    spec = posenc.RopeSpec.from_config(LONGROPE)
    assert spec.needs_seq_len and posenc.RopeSpec.from_config(OTHERS["qwen"]).needs_seq_len
    f = plain(500000.0, 64).astype(float)
    close(spec.frequencies(4096).inv_freq_float32, f / (1 + np.arange(32) / 32))
    close(spec.frequencies(4097).inv_freq_float32, f / (2 + np.arange(32)))


def gguf(keys):
    """GGUF version 3 without tensors."""
    def text(word):
        return struct.pack("<Q", len(word)) + word.encode()
    body = b""
    for key, value in keys.items():
        kind = (8, text(value)) if isinstance(value, str) else (6, struct.pack("<f", value)) if isinstance(
            value, float) else (4, struct.pack("<I", value))
        body += text(key) + struct.pack("<I", kind[0]) + kind[1]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + body


def test_gguf(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf({
        "general.architecture": "llama", "llama.block_count": 2, "llama.context_length": 4096,
        "llama.embedding_length": 256, "llama.attention.head_count": 4, "llama.rope.freq_base": 20000.0}))
    spec = posenc.RopeSpec.from_gguf(path)
    assert (spec.head_dim, spec.base, spec.pairing, spec.max_positions) == (64, 20000.0, "interleaved", 4096)
    assert check_against_program(path) == 1
    assert posenc.inspect(path)["format"] == "gguf"
    refused(ValueError, "GGUF|from_config", posenc.RopeSpec.from_gguf, written(tmp_path, LLAMA))
    refused(TypeError, "dict|GGUF", posenc.RopeSpec.from_gguf, LLAMA)


def test_unknown_models_want_the_pairing():
    unknown = OTHERS["unknown"]
    refused(ValueError, "pairing|'half'|'interleaved'", posenc.RopeSpec.from_config, unknown)
    assert posenc.RopeSpec.from_config(unknown, pairing="interleaved").pairing == "interleaved"
    refused(ValueError, "pairing|'half'|model type", posenc.RopeSpec.from_config, LLAMA, pairing="half")


@pytest.mark.parametrize("kind, words, config, named", [
    (TypeError, "config|int|path", 5, {}),
    (TypeError, "config|JSON", {"model_type": object()}, {}),
    (FileNotFoundError, "/no/such/file", "/no/such/file", {}),
    (ValueError, "zero bytes", "a\0b", {}),
    (ValueError, "rotary|all (alibi)", OTHERS["bloom"], {}),
    (ValueError, "'all'|alibi", OTHERS["bloom"], {"layer_type": "all"}),
    (ValueError, "layer_type|'middle'|sliding_attention (rope)", GEMMA, {"layer_type": "middle"}),
    (TypeError, "layer_type|3|sliding_attention", GEMMA, {"layer_type": 3}),
    (ValueError, "head_dim|64.5|whole number", {**LLAMA, "head_dim": 64.5}, {}),
    (ValueError, "'all'|base is -1", {**LLAMA, "rope_theta": -1.0}, {}),
])
def test_refused(kind, words, config, named):
    refused(kind, words, posenc.RopeSpec.from_config, config, **named)


def test_broken_files(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", ')
    refused(ValueError, "config.json|byte", posenc.inspect, path)
    refused(FileNotFoundError, "nothing.json", posenc.inspect, tmp_path / "nothing.json")


@pytest.mark.parametrize("name", ["llama3", "yarn", "gemma", "longrope", "dynamic"])
def test_transformers(name):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    keys = {key: value for key, value in CONFIGS[name].items() if key != "model_type"}
    config = transformers.AutoConfig.for_model(CONFIGS[name]["model_type"], **keys, pad_token_id=0)
    theirs = transformers.AutoModel.from_config(config.__class__(**{**config.to_dict(), "vocab_size": 8}))
    theirs = next(part for part in theirs.modules() if type(part).__name__.endswith("RotaryEmbedding"))
    for entry in posenc.inspect(config)["layer_types"]:
        spec = posenc.RopeSpec.from_config(config, entry["name"])
        for length in (1000, 140000) if spec.needs_seq_len else (1000,):
            arguments = (entry["name"],) if name == "gemma" else ()
            theirs(torch.zeros(1, 1), torch.tensor([[0, length - 1]]), *arguments)
            wanted = getattr(theirs, f"{entry['name']}_inv_freq" if arguments else "inv_freq")
            close(spec.frequencies(length).inv_freq_float32, wanted.float().numpy())
