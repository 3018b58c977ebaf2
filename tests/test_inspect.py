#!/usr/bin/env python3
"""posenc inspect and --config from outside: test_inspect.py PROGRAM. SPDX-License-Identifier: MIT"""
import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import model_files
import numpy as np
import tap

PROGRAM = sys.argv[1]
SHARED = Path(os.environ.get("POSENC_SHARED", Path(__file__).resolve().parents[2] / "shared"))
FOLDER = tempfile.TemporaryDirectory()

GEMMA = {"model_type": "gemma3_text", "num_hidden_layers": 6, "hidden_size": 512, "num_attention_heads": 8, "head_dim": 64,
         "max_position_embeddings": 32768, "rope_theta": 1000000, "rope_local_base_freq": 10000,
         "rope_scaling": {"rope_type": "linear", "factor": 8}}
LLAMA = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 4096}
MEMBERS = ["name", "kind", "head_dim", "rotary_dim", "rotary_start", "pairing", "base", "scaling", "attention_factor", "axes", "layers"]


def write(name, keys):
    path = Path(FOLDER.name) / name
    path.parent.mkdir(exist_ok=True)
    if isinstance(keys, bytes):
        path.write_bytes(keys)
    else:
        path.write_text(keys if isinstance(keys, str) else json.dumps(keys))
    return str(path)


def run(*arguments, status=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, f"{arguments}: {done.returncode}, not {status}: {done.stderr}"
    return done.stdout if status == 0 else done.stderr


def test_json_has_what_scripts_rely_on():
    path = write("gemma.json", GEMMA)
    page = json.loads(run("inspect", path, "--json"))
    assert page["path"] == path and page["model_type"] == "gemma3_text" and page["warnings"] == []
    sliding, full = page["layer_types"]
    assert all(member in sliding for member in MEMBERS), sliding.keys()
    assert (sliding["name"], sliding["layers"], sliding["base"]) == ("sliding_attention", [0, 1, 2, 3, 4], 10000)
    assert (full["name"], full["layers"], full["base"]) == ("full_attention", [5], 1000000)
    assert full["scaling"] == {"rope_type": "linear", "factor": 8} and sliding["scaling"] == {"rope_type": "default"}
    assert full["kind"] == "rope" and full["pairing"] == "half" and full["axes"] is None
    assert {"name": "rope_theta", "value": 1000000, "source": "file", "place": "rope_theta"} in full["values"]


def test_other_kinds_have_null():
    page = json.loads(run("inspect", write("bloom.json", {"model_type": "bloom", "n_head": 8}), "--json"))
    (entry,) = page["layer_types"]
    assert entry["kind"] == "alibi" and entry["max_bias"] == 8 and entry["pairing"] is None and entry["head_dim"] is None


def test_parts_of_composite_models():
    keys = {"model_type": "qwen3_vl", "text_config": {**LLAMA, "model_type": "qwen3_vl_text"}, "audio_config": {"model_type": "x"},
            "vision_config": {"model_type": "qwen3_vl", "depth": 5, "hidden_size": 1152, "num_heads": 16}}
    path = write("composite.json", keys)
    page = json.loads(run("inspect", path, "--json"))
    audio, vision = page["parts"]
    assert audio == {"name": "audio_config", "unread": "no rule knows its model type x"}
    assert (vision["name"], vision["rule"], vision["layer_count"], vision["unread"]) == ("vision_config", "qwen3_vl_vision", 5, None)
    (entry,) = vision["layer_types"]
    assert (entry["kind"], entry["head_dim"], entry["axes"]["sections"]) == ("rope", 72, [18, 18])
    text = run("inspect", path)
    assert "vision_config: model type qwen3_vl_vision, 5 layers" in text
    assert "audio_config: not read: no rule knows its model type x" in text
    assert json.loads(run("inspect", write("plain.json", LLAMA), "--json"))["parts"] == []


def test_a_part_is_chosen():
    tower = {"depth": 2, "embed_dim": 1280, "num_heads": 16, "hidden_size": 1536}
    language = {**LLAMA, "model_type": "qwen2_vl", "rope_scaling": {"type": "mrope", "mrope_section": [4, 6, 6]}}
    path = write("parts.json", {**language, "vision_config": tower, "audio_config": {"model_type": "x"}})
    alone = write("alone.json", {**tower, "model_type": "qwen2_vl_vision"})
    chosen = run("frequencies", "--config", path, "--part", "vision_config", "--json")
    assert chosen == run("frequencies", "--config", alone, "--json") and len(json.loads(chosen)["inv_freq"]) == 40
    assert len(json.loads(run("frequencies", "--config", path, "--json"))["inv_freq"]) == 16
    assert "has no other parts" in compare(path, alone, "--part", "vision_config", status=2)
    assert compare(alone, path, "--part-b", "vision_config", status=0)["verdict"] == "equal"
    assert compare(path, path, "--part", "vision_config", status=0)["pairs_a"] == 40
    assert compare(path, path, "--part-b", "vision_config", status=1)["pairs_b"] == 40
    for words, said in ((("--config", path, "--part", "vision"), 'must be one of: vision_config'),
                        (("--config", path, "--part", "audio_config"), "not read: no rule knows its model type x"),
                        (("--config", alone, "--part", "vision_config"), "has no other parts"),
                        (("--head-dim", 8, "--part", "vision_config"), "--part is given without --config")):
        assert said in run("frequencies", *words, status=2), words
    still = write("still.json", {"model_type": "clip", "text_config": {"model_type": "clip_text_model"}, "vision_config": {
        "model_type": "qwen2_vl_vision", **tower}})
    assert "--part chooses another part: vision_config" in run("frequencies", "--config", still, status=2)


def test_warnings_have_code_and_message():
    page = json.loads(run("inspect", write("w.json", {**LLAMA, "rope_scaling": {"type": "linear", "factor": 0.5}}), "--json"))
    (warning,) = page["warnings"]
    assert warning["code"] == "factor-below-1" and "0.5" in warning["message"] and warning["fix"]


def test_facts_against_numpy():
    """Wavelengths, pairs below one turn, and from which position float32 angles show."""
    path = write("llama.json", {**LLAMA, "rope_theta": 500000})
    (entry,) = json.loads(run("inspect", path, "--json"))["layer_types"]
    inv_freq = 500000.0 ** (-np.arange(16) / 16)
    wavelengths = 2 * np.pi / inv_freq
    assert np.isclose(entry["longest_wavelength"], wavelengths[-1]) and np.isclose(entry["shortest_wavelength"], 2 * np.pi)
    assert entry["pairs_below_one_turn"] == int((wavelengths > 4096).sum())
    factors = (1 / np.float32(500000) ** (np.arange(0, 32, 2, dtype=np.float32) / np.float32(32))).astype(np.float32)
    positions = np.arange(60000)
    exact = positions[:, None].astype(np.longdouble) * np.longdouble(500000) ** (-np.arange(16, dtype=np.longdouble) / 16)
    float32 = (positions[:, None].astype(np.float32) * factors).astype(np.longdouble)
    worst = np.maximum(abs(np.cos(exact) - np.cos(float32)), abs(np.sin(exact) - np.sin(float32))).max(axis=1)
    for key, half_unit in (("float32_visible_in_f16_from", 2.0**-12), ("float32_visible_in_bf16_from", 2.0**-9)):
        first = int(np.argmax(worst > half_unit))
        # both are rounded to float32 before they are compared, and NumPy's power is another
        assert abs(entry[key] - first) <= 0.02 * first, (key, entry[key], first)


def test_a_page_is_80_columns_wide():
    for keys in (GEMMA, {**LLAMA, "rope_scaling": {"rope_type": "longrope", "short_factor": [1.25] * 16, "long_factor": [1.0625] * 16,
                                                   "original_max_position_embeddings": 2048}}):
        for line in run("inspect", write("page.json", keys)).splitlines()[1:]:
            assert len(line) <= 80, line


def test_config_gives_the_spec():
    path = write("gemma.json", GEMMA)
    full = json.loads(run("frequencies", "--config", path, "--layer-type", "full_attention", "--json"))
    by_hand = json.loads(run("frequencies", "--head-dim", 64, "--base", 1000000, "--scaling", '{"rope_type":"linear","factor":8}', "--json"))
    assert full["inv_freq"] == by_hand["inv_freq"]
    assert "pairing" in full["defaulted"] and "base" not in full["defaulted"]


def test_one_rotating_type_needs_no_name():
    path = write("cohere.json", {"model_type": "cohere2", "num_hidden_layers": 8, "hidden_size": 512, "num_attention_heads": 8})
    assert json.loads(run("frequencies", "--config", path, "--json"))["inv_freq"]


def test_a_merged_type_answers_to_the_files_words():
    path = write("gemma2.json", {"model_type": "gemma2", "num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8})
    assert run("frequencies", "--config", path, "--layer-type", "sliding_attention", "--json") == run("frequencies", "--config", path, "--json")


def test_folders_and_rotation():
    write("model/config.json", LLAMA)
    folder = Path(FOLDER.name) / "model"
    q = np.random.default_rng(1).standard_normal((5, 3, 32)).astype(np.float32)
    np.save(folder / "q.npy", q)
    run("rotate", folder / "q.npy", "-o", folder / "a.npy", "--config", folder)
    run("rotate", folder / "q.npy", "-o", folder / "b.npy", "--base", 10000)
    assert (np.load(folder / "a.npy") == np.load(folder / "b.npy")).all()
    np.save(folder / "q.npy", q[..., :16])
    assert "32 channels" in run("rotate", folder / "q.npy", "-o", folder / "a.npy", "--config", folder, status=2)


def test_the_rotary_part_of_latent_attention_alone():
    path = write("mla.json", {"model_type": "deepseek_v3", "num_attention_heads": 4, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8})
    folder = Path(FOLDER.name)
    q = np.random.default_rng(2).standard_normal((5, 3, 24)).astype(np.float32)
    np.save(folder / "q.npy", q)
    np.save(folder / "part.npy", q[..., 16:])
    run("rotate", folder / "q.npy", "-o", folder / "a.npy", "--config", path)
    run("rotate", folder / "part.npy", "-o", folder / "b.npy", "--config", path)
    turned = np.load(folder / "a.npy")
    assert (turned[..., :16] == q[..., :16]).all() and (turned[..., 16:] == np.load(folder / "b.npy")).all()


def test_errors_say_what_to_do():
    path = write("gemma.json", GEMMA)
    several = run("frequencies", "--config", path, status=2)
    assert "sliding_attention" in several and "full_attention" in several and "--layer-type" in several
    assert "must be one of" in run("frequencies", "--config", path, "--layer-type", "nope", status=2)
    assert "--base cannot stand beside --config" in run("frequencies", "--config", path, "--layer-type", "full_attention", "--base", 5, status=2)
    assert "--layer-type is given without --config" in run("frequencies", "--head-dim", 8, "--layer-type", "x", status=2)
    assert "no rotary encoding" in run("frequencies", "--config", write("b.json", {"model_type": "bloom"}), status=2)
    unknown = write("u.json", {"model_type": "zorblax", "hidden_size": 64, "num_attention_heads": 2})
    assert "--pairing" in run("frequencies", "--config", unknown, status=2)
    assert json.loads(run("frequencies", "--config", unknown, "--pairing", "half", "--json"))["inv_freq"]
    assert "linear" in run("frequencies", "--config", write("v.json", {**LLAMA, "rope_scaling": {"type": "zig"}}), status=2)
    assert "byte" in run("inspect", write("broken.json", "{"), status=2)
    run("inspect", Path(FOLDER.name) / "nowhere", status=2)
    assert "--seq-len" in run("frequencies", "--config", write("d.json", {**LLAMA, "rope_scaling": {"type": "dynamic", "factor": 2}}), status=2)


def compare(*arguments, status):
    done = subprocess.run([PROGRAM, "compare", *map(str, arguments), "--json"], capture_output=True, text=True)
    assert done.returncode == status, (arguments, done.stderr)
    return json.loads(done.stdout) if status < 2 else done.stderr


def test_what_is_no_model_is_named():
    """Every kind of file, folder and name that people give by mistake: what it is, and what to do."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    weights = len(header).to_bytes(8, "little") + header + bytes(4)
    lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 123\n"
    files = { # name: content, what is said of it
        "pytorch_model.bin": (pickle.dumps({"a": 1}), "pickle of PyTorch: name the config.json"),
        "model.pt": (b"PK\3\4" + bytes(40), "an archive (PyTorch"), "README.md": ("# A model\n", "a text that is no JSON"),
        "empty.bin": ("", "an empty file"), "empty.json": ("", "an empty file"), "blank.json": (" \n", "an empty file"),
        "words.json": ("this is not json\n", "a text that is no JSON"), "page.json": ("\n<!DOCTYPE html>", "a text that is no"),
        "page.gguf": ("<!DOCTYPE html>", "a web page"), "lfs.gguf": (lfs, "git lfs pull"), "lfs.json": (lfs, "git lfs pull"),
        "wide.json": ("{}".encode("utf-16"), "UTF-16"), "x.npy": (b"\x93NUMPY\1\0", "posenc compare"),
        "old.bin": (b"lmgg" + bytes(9), "GGML, which came before GGUF"), "x.h5": (b"\x89HDF\r\n", "HDF5"),
        "x.onnx": (b"\x08\x07\x12\x04", "binary data of an unknown kind"), "gguf.json": (b"GGUF" + bytes(9), "ends in .json"),
        "weights.bin": (weights, "safetensors under another name"), "broken.json": ('{"a" 1}', "at byte 5"),
        "list.json": ("[1]", "an object"), "alone/m.safetensors": (weights, "config.json beside it"),
        "tokenizer.json": ({"version": "1.0", "added_tokens": [], "model": {"vocab": {}}}, "not a tokenizer.json"),
        "tokenizer_config.json": ({"tokenizer_class": "LlamaTokenizer"}, "not a tokenizer_config.json"),
        "generation_config.json": ({"_from_model_config": True, "bos_token_id": 1}, "not a generation_config.json"),
        "preprocessor_config.json": ({"image_processor_type": "X"}, "not a preprocessor_config.json"),
        "feature.json": ({"feature_extractor_type": "X"}, "not a preprocessor_config.json"),
        "processor.json": ({"processor_class": "X"}, "not a processor's file"),
        "lora/adapter_config.json": ({"peft_type": "LORA"}, "base_model_name_or_path"),
        "sd/model_index.json": ({"_class_name": "X", "_diffusers_version": "0.1"}, "a pipeline of diffusers"),
        "index.json": ({"weight_map": {}}, "an index of weights"),
        "kinds/notes.txt": ("", None),
    }
    paths = {name: write(name, content) for name, (content, _) in files.items()}
    for name, (_, told) in files.items():
        if told:
            error = run("inspect", paths[name], status=2)
            assert told in error and error.count(paths[name]) == 1, f"{name}: {error}"
    for name, told in {
            "kinds": "hold config.json, params.json, a GGUF or safetensors", "lora": "not only an adapter",
            "sd": "name the folder of a part of it", "missing.json": "a file that is there: No such file",
            "missing/dir/x": "a file or a folder that is there"}.items():
        error = run("inspect", Path(FOLDER.name) / name, status=2)
        assert told in error, f"{name}: {error}"
    stores = {**os.environ, "HF_HUB_CACHE": FOLDER.name, "OLLAMA_MODELS": FOLDER.name}
    for name, told in {
            "https://huggingface.co/org/m": "nothing is downloaded", "hf.co/org/m": "nothing is downloaded",
            "org/no-such-model": "org/model in the Hugging Face cache", "no-such-model:7b": "name[:tag] in Ollama's store",
            "no-such.gguf": "a file that is there", "~/m": "a file or a folder that is there", "": "a file or a folder"}.items():
        done = subprocess.run([PROGRAM, "inspect", name], capture_output=True, text=True, env=stores)
        assert done.returncode == 2 and told in done.stderr, f"{name}: {done.returncode} {done.stderr}"


def test_models_are_compared():
    llama = write("llama.json", {**LLAMA, "rope_theta": 500000})
    paper = write("paper.json", {**LLAMA, "rope_theta": 500000, "model_type": "cohere"})
    scaled = write("scaled.json", {**LLAMA, "rope_theta": 500000, "rope_scaling": {"type": "linear", "factor": 2}})
    write("folder/config.json", {**LLAMA, "rope_theta": 500000})
    assert compare(llama, Path(FOLDER.name) / "folder", status=0)["verdict"] == "equal"
    assert compare(llama, '{"head_dim": 32, "base": 500000}', status=0)["verdict"] == "equal"
    assert compare(llama, paper, status=1)["equivalence"] == "pairing"
    assert compare(llama, scaled, status=1)["verdict"] == "different"


def test_layer_types_are_compared():
    gemma = write("gemma.json", GEMMA)
    assert "--layer-type" in compare(gemma, gemma, status=2)
    assert compare(gemma, gemma, "--layer-type", "full_attention", status=0)["verdict"] == "equal"
    both = compare(gemma, gemma, "--layer-type", "full_attention", "--layer-type-b", "sliding_attention", status=1)
    assert both["verdict"] == "different"
    assert "no rotary" in compare(gemma, write("b.json", {"model_type": "bloom"}), "--layer-type", "full_attention",
                                  "--layer-type-b", "all", status=2)


def test_models_are_compared_with_tables_of_frameworks():
    """float32 tables, as frameworks make them, of NumPy's float32 products."""
    llama = write("mode.json", {**LLAMA, "rope_theta": 500000})
    f = (1.0 / (np.float32(500000) ** (np.arange(0, 32, 2, dtype=np.float32) / np.float32(32)))).astype(np.float32)
    angles = np.arange(3000, dtype=np.float32)[:, None] * f
    np.savez(Path(FOLDER.name) / "float32.npz", cos=np.cos(angles.astype(float)).astype(np.float32),
             sin=np.sin(angles.astype(float)).astype(np.float32))
    tables = Path(FOLDER.name) / "float32.npz"
    assert compare(llama, tables, status=1)["explanations"][0]["causes"][0]["name"] == "other_mode"
    assert compare(llama, tables, "--mode", "float32", status=0)["verdict"] == "equal"
    assert compare(tables, llama, "--mode-b", "float32", status=0)["verdict"] == "equal"
    assert compare(llama, llama, "--mode-b", "float32", status=1)["verdict"] == "different"
    assert compare(llama, llama, "--mode", "float32", status=0)["verdict"] == "equal"
    assert "must be one of: exact, float32" in compare(llama, tables, "--mode", "double", status=2)


def test_dynamic_models_are_compared_at_a_length():
    dynamic = write("dynamic.json", {**LLAMA, "rope_scaling": {"type": "dynamic", "factor": 2}})
    plain = write("plain.json", LLAMA)
    assert compare(dynamic, plain, status=0)["verdict"] == "equal" # at its own maximum nothing has grown
    assert compare(dynamic, plain, "--seq-len", 16384, status=1)["verdict"] == "different"


def test_a_gguf_of_50_gb_takes_little():
    """150,000 tokens and a tensor of 45 GB, in a file with a hole: peak memory, read by the kernel's own count."""
    dims = [("llama.attention.head_count", "uint32", 8), ("llama.embedding_length", "uint32", 1024),
            ("llama.block_count", "uint32", 4), ("llama.context_length", "uint32", 4096), ("llama.rope.freq_base", "float32", 10000.0)]
    tokens = [("tokenizer.ggml.tokens", "array", ("string", ["token"] * 150000)),
              ("tokenizer.ggml.scores", "array", ("float32", [0.0] * 150000))]
    path = write("large.gguf", model_files.gguf(keys=[("general.architecture", "string", "llama"), *tokens, *dims],
                                                tensors=[("large", [45 * 2**23, 32], 0, b"")]))
    try:
        os.truncate(path, 50 * 10**9)
    except OSError as error:
        return f"no room for a sparse file: {error}"
    # Linux counts the memory of the process that starts another as that one's too, so a small one starts it.
    starter = "import os, sys; print(os.wait4(os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0)[1:])"
    done = subprocess.run([sys.executable, "-S", "-c", starter, PROGRAM, "inspect", path], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.splitlines()[-1].startswith("(0, "), done.stdout + done.stderr
    used = int(done.stdout.split("ru_maxrss=")[1].split(",")[0])
    if b"asan" not in Path(PROGRAM).read_bytes(): # the sanitizer needs memory of its own
        assert used < 64 * 1024, f"{used} KiB"
    return None


def test_every_real_file_is_inspected():
    files = sorted((SHARED / "data/configs").glob("*.json")) + sorted((SHARED / "data/gguf").glob("*.gguf"))
    if not files:
        return f"no files at {SHARED}"
    for path in files:
        page = json.loads(run("inspect", path, "--json"))
        assert page["layer_types"], path.name
        for entry in page["layer_types"]:
            assert entry["kind"] != "unknown" and "invalid" not in entry, (path.name, entry)
    return None


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules[__name__]))
