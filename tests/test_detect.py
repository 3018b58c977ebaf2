#!/usr/bin/env python3
"""posenc detect on files: names, fused orders, dtypes, biases, gains, shards; what it says against the twin in NumPy.

usage: test_detect.py PROGRAM ROOT                                            SPDX-License-Identifier: MIT
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tap
from weight_files import as_bytes, quantized, write_gguf, write_safetensors

PROGRAM, ROOT = sys.argv[1], Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / "tools"))
import pair_statistic as twin  # noqa: E402
import weight_powers as weights  # noqa: E402

SHARED = Path(os.environ.get("POSENC_SHARED") or ROOT.parent / "shared")
RANDOM = np.random.default_rng(int(os.environ.get("POSENC_SEED", "20261129")))
FOLDER = tempfile.TemporaryDirectory()
PLACE = Path(FOLDER.name)
HEADS, KV, DIM, WIDTH, LAYERS = 4, 2, 16, 64, 3
SHAPE = {"heads": HEADS, "kv-heads": KV, "head-dim": DIM}


def run(path, *more, **shape):
    options = [text for key, value in shape.items() for text in (f"--{key.replace('_', '-')}", str(value))]
    return subprocess.run([PROGRAM, "detect", str(path), *options, *more], capture_output=True, text=True, check=False)


def detect(path, *more, **shape):
    done = run(path, "--json", *more, **shape)
    assert done.returncode in (0, 1), done.stderr
    answer = json.loads(done.stdout)
    assert done.returncode == (answer["pairing"] == "undetermined")
    return answer


def refused(path, *words, **shape):
    done = run(path, **(shape or {key.replace("-", "_"): value for key, value in SHAPE.items()}))
    assert done.returncode == 2 and not done.stdout, (done.returncode, done.stdout)
    for word in words:
        assert word in done.stderr, (word, done.stderr)


def random_layer():
    """q, k, v of a layer whose row powers differ."""
    return [RANDOM.standard_normal((h * DIM, WIDTH)) * np.exp(RANDOM.standard_normal((h * DIM, 1)) / 2)
            for h in (HEADS, KV, KV)]


MODEL = [random_layer() for _ in range(LAYERS)]


def compare(answer, layers, tied=False):
    """What the program says is what the twin says of these row powers."""
    want = twin.judge(layers, tied)
    assert len(answer["layers"]) == len(layers)
    for i, side in enumerate(("both", "q", "k")):
        got = answer[side]
        for a, b in ((got["log_likelihood_ratio"], want["ratio"][0, i]),
                     (got["log_likelihood_ratio_residual"], want["ratio"][1, i]),
                     (got["statistic"], max(want["deviation"][:, i], key=abs)),
                     (got["exact_half"], want["exact"][0, i]), (got["exact_interleaved"], want["exact"][1, i])):
            assert abs(a - b) <= 1e-6 * max(1, abs(b)), (side, a, b)


def rows_of(*sides, bias=(None, None), gain=(None, None), rotary=DIM):
    return tuple(weights.powers(w, b, g, DIM, rotary) for w, b, g in zip(sides, bias, gain))


def entry(array, dtype="F32"):
    data, stands_for = as_bytes(array, dtype)
    return (dtype, array.shape, data), stands_for


def shape_options():
    return {key.replace("-", "_"): value for key, value in SHAPE.items()}


# --- Names and orders ------------------------------------------------------------------------------

SEPARATE = ["model.layers.{}.self_attn.{}_proj", "model.language_model.layers.{}.self_attn.{}_proj",
            "transformer.h.{}.attn.{}_proj", "layers.{}.attention.w{}", "blk.{}.attn_{}"]
JOINED = ["model.layers.{}.self_attn.qkv_proj", "model.layers.{}.self_attn.W_pack", "blk.{}.attn_qkv",
          "transformer.blocks.{}.attn.Wqkv", "transformer.h.{}.attn.c_attn",
          "transformer.encoder.layers.{}.self_attention.query_key_value"]
GROUPED = ["gpt_neox.layers.{}.attention.query_key_value", "transformer.h.{}.self_attention.query_key_value",
           "model.layers.{}.attention.wqkv"]


def grouped(q, k, v):
    """For every k head its q heads, itself, its v head."""
    parts = []
    for head in range(KV):
        group = HEADS // KV
        parts += [q[head * group * DIM:(head + 1) * group * DIM], k[head * DIM:(head + 1) * DIM],
                  v[head * DIM:(head + 1) * DIM]]
    return np.concatenate(parts)


def write_model(name, tensors_of, dtype="F32"):
    """One file with what tensors_of(layer number, q, k, v) names; the powers that the rows stand for."""
    tensors = {}
    for number, (q, k, v) in enumerate(MODEL):
        for key, array in tensors_of(number, q, k, v).items():
            tensors[key], _ = entry(array, dtype)
    path = PLACE / name
    write_safetensors(path, tensors)
    return path


def stored(array, dtype="F32"):
    return as_bytes(array, dtype)[1]


def test_separate_names():
    layers = [rows_of(stored(q), stored(k)) for q, k, _ in MODEL]
    for number, pattern in enumerate(SEPARATE):
        path = write_model(f"separate{number}.safetensors", lambda n, q, k, v: {
            f"vision_tower.layers.{n}.self_attn.q_proj.weight": q[:8],  # of a stack with more layers
            f"vision_tower.layers.{n + LAYERS}.self_attn.q_proj.weight": q[:8],
            f"mtp.layers.{n // 2}.self_attn.{'qk'[n % 2]}_proj.weight": q[:8],
            pattern.format(n, "q") + ".weight": q, pattern.format(n, "k") + ".weight": k})
        compare(detect(path, **shape_options()), layers)


def test_fused_orders():
    layers = [rows_of(stored(q), stored(k)) for q, k, _ in MODEL]
    for number, (pattern, fuse) in enumerate([(p, lambda *qkv: np.concatenate(qkv)) for p in JOINED] +
                                             [(p, grouped) for p in GROUPED]):
        path = write_model(f"fused{number}.safetensors",
                           lambda n, q, k, v: {pattern.format(n) + ".weight": fuse(q, k, v)})
        compare(detect(path, **shape_options()), layers)


def test_fused_by_head():
    """gpt_neox and bloom: q, k, v of every head, with as many k heads as q heads."""
    def by_head(n, q, k, v):
        k, v = np.concatenate([k, 2 * k]), np.concatenate([v, v])
        parts = np.stack([x.reshape(HEADS, DIM, WIDTH) for x in (q, k, v)], 1)
        return {f"gpt_neox.layers.{n}.attention.query_key_value.weight": parts.reshape(-1, WIDTH)}
    path = write_model("by_head.safetensors", by_head)
    compare(detect(path, heads=HEADS, head_dim=DIM),
            [rows_of(stored(q), stored(np.concatenate([k, 2 * k]))) for q, k, _ in MODEL])


def test_gated_q():
    """Twice the rows: every head's q, then its gate."""
    def gated(n, q, k, v):
        gate = RANDOM.standard_normal((HEADS, DIM, WIDTH))
        both = np.concatenate([q.reshape(HEADS, DIM, WIDTH), gate], 1).reshape(-1, WIDTH)
        return {f"model.layers.{n}.self_attn.q_proj.weight": both, f"model.layers.{n}.self_attn.k_proj.weight": k}
    path = write_model("gated.safetensors", gated)
    compare(detect(path, **shape_options()), [rows_of(stored(q), stored(k)) for q, k, _ in MODEL])


def test_latent_attention():
    """MLA: q heads are [nope | rotary], k's rotary rows are one head, the last of their tensor."""
    latent = RANDOM.standard_normal((LAYERS, 24 + 8, WIDTH))
    for q_name in ("q_b_proj", "q_proj"):
        path = write_model("latent.safetensors", lambda n, q, k, v: {
            f"model.layers.{n}.self_attn.{q_name}.weight": q,
            f"model.layers.{n}.self_attn.kv_a_proj_with_mqa.weight": latent[n]})
        layers = [(weights.powers(stored(q), None, None, DIM, DIM)[:, 8:],
                   (stored(latent[n]) ** 2).sum(1)[None, 24:]) for n, (q, _, _) in enumerate(MODEL)]
        compare(detect(path, heads=HEADS, head_dim=DIM, rotary_start=8), layers)


def test_partial_rotary():
    path = write_model("partial.safetensors", lambda n, q, k, v: {
        f"model.layers.{n}.self_attn.q_proj.weight": q, f"model.layers.{n}.self_attn.k_proj.weight": k})
    compare(detect(path, rotary_dim=8, **shape_options()),
            [rows_of(stored(q), stored(k), rotary=8) for q, k, _ in MODEL])


# --- What stands beside the weights ------------------------------------------------------------------

def test_biases():
    for fuse in (None, grouped):
        biases = [[RANDOM.standard_normal(len(x)) * 4 for x in layer] for layer in MODEL]

        def with_bias(n, q, k, v):
            names = ("model.layers.{}.self_attn.q_proj", "model.layers.{}.self_attn.k_proj")
            if not fuse:
                return {names[i].format(n) + end: (biases[n][i] if end == ".bias" else (q, k)[i])
                        for i in range(2) for end in (".weight", ".bias")}
            name = f"gpt_neox.layers.{n}.attention.query_key_value"
            return {name + ".weight": fuse(q, k, v), name + ".bias": fuse(*biases[n])}
        path = write_model("bias.safetensors", with_bias)
        compare(detect(path, **shape_options()),
                [rows_of(stored(q), stored(k), bias=[stored(b) for b in biases[n][:2]])
                 for n, (q, k, _) in enumerate(MODEL)])


def test_norm_gains():
    for wide in (False, True):
        gains = [[RANDOM.uniform(0.5, 2, (h if wide else 1) * DIM) for h in (HEADS, KV)] for _ in MODEL]
        for offset in (0, 1):
            path = write_model("gains.safetensors", lambda n, q, k, v: {
                f"model.layers.{n}.self_attn.q_proj.weight": q, f"model.layers.{n}.self_attn.k_proj.weight": k,
                f"model.layers.{n}.self_attn.q_norm.weight": gains[n][0] - offset,
                f"model.layers.{n}.self_attn.k_norm.weight": gains[n][1] - offset})
            layers = [rows_of(stored(q), stored(k), gain=[stored(g - offset) + offset for g in gains[n]])
                      for n, (q, k, _) in enumerate(MODEL)]
            compare(detect(path, gain_offset=offset, **shape_options()), layers, tied=not wide)


def test_scales_of_rows():
    scales = [[RANDOM.uniform(0.5, 2, (len(x), 1)) for x in layer] for layer in MODEL]
    path = write_model("scales.safetensors", lambda n, q, k, v: {
        f"model.layers.{n}.self_attn.{x}_proj.{end}": (scales[n] if end == "weight_scale" else (q, k))[i]
        for i, x in enumerate("qk") for end in ("weight", "weight_scale")})
    layers = [rows_of(*(stored(w) * stored(s) for w, s in zip((q, k), scales[n]))) for n, (q, k, _) in
              enumerate(MODEL)]
    compare(detect(path, **shape_options()), layers)


# --- Files -------------------------------------------------------------------------------------------

def plain(n, q, k, v):
    return {f"model.layers.{n}.self_attn.q_proj.weight": q, f"model.layers.{n}.self_attn.k_proj.weight": k}


def test_dtypes_of_safetensors():
    for dtype in ("F64", "F32", "F16", "BF16"):
        path = write_model(f"{dtype}.safetensors", plain, dtype)
        compare(detect(path, **shape_options()), [rows_of(stored(q, dtype), stored(k, dtype)) for q, k, _ in MODEL])


def test_shards_and_config():
    folder = PLACE / "sharded"
    folder.mkdir()
    index = {}
    for number, (q, k, v) in enumerate(MODEL):
        name = f"model-{number + 1:05d}-of-{LAYERS:05d}.safetensors"
        tensors = {key: entry(array)[0] for key, array in plain(number, q, k, v).items()}
        write_safetensors(folder / name, tensors)
        index.update(dict.fromkeys(tensors, name))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "anything", "hidden_size": 4096, "num_attention_heads": HEADS, "num_key_value_heads": KV,
        "head_dim": DIM, "partial_rotary_factor": 0.5}))
    answer = detect(folder)
    assert answer["model_type"] == "anything" and answer["format"] == "safetensors"
    compare(answer, [rows_of(stored(q), stored(k), rotary=8) for q, k, _ in MODEL])
    compare(detect(folder / "model.safetensors.index.json", rotary_dim=16),
            [rows_of(stored(q), stored(k)) for q, k, _ in MODEL])


def test_gguf_and_its_keys():
    for kind in ("F32", "F16", "Q8_0", "Q4_0"):
        tensors, layers = {}, []
        for number, (q, k, _) in enumerate(MODEL):
            pair = []
            for x, array in (("q", q), ("k", k)):
                data, stands_for = quantized(array, kind) if kind[0] == "Q" else as_bytes(array, kind)
                tensors[f"blk.{number}.attn_{x}.weight"] = (kind, array.shape, data)
                pair.append(stands_for)
            layers.append(rows_of(*pair))
        path = PLACE / f"{kind}.gguf"
        write_gguf(path, {"general.architecture": "llama", "llama.embedding_length": HEADS * DIM,
                          "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": KV,
                          "llama.rope.dimension_count": DIM}, tensors)
        answer = detect(path)
        assert answer["format"] == "GGUF" and answer["model_type"] == "llama"
        compare(answer, layers)


def test_contradictions_with_the_models_name():
    """Rows of the powers of a model that was trained with half pairs, under names that imply either pairing."""
    with np.load(ROOT / "data/pairing/own_trained.npz") as arrays:
        powers = [rows for key, rows in arrays.items() if key.startswith("mha32_step800 ")]
    sides = [[np.pad(np.sqrt(p.reshape(-1, 1)), ((0, 0), (0, 31))) for p in np.split(rows, 2)] for rows in powers]
    folder = PLACE / "named"
    folder.mkdir()
    for name, implied in (("llama", "interleaved"), ("qwen2", "half")):
        tensors = {f"blk.{n}.attn_{x}.weight": ("F32", w.shape, as_bytes(w, "F32")[0])
                   for n, pair in enumerate(sides) for x, w in zip("qk", pair)}
        write_gguf(folder / "named.gguf", {"general.architecture": name, f"{name}.embedding_length": 128,
                                           f"{name}.block_count": 3, f"{name}.attention.head_count": 4}, tensors)
        answer = detect(folder / "named.gguf")
        assert answer["pairing"] == "half" and answer["implied"] == implied, answer
        assert answer["contradicts"] == (implied != "half")
        assert ("CONTRADICTION" in run(folder / "named.gguf").stdout) == answer["contradicts"]
    (folder / "named.gguf").unlink()
    write_safetensors(folder / "model.safetensors", {
        f"model.layers.{n}.self_attn.{x}_proj.weight": entry(w)[0] for n, pair in enumerate(sides) for x, w in
        zip("qk", pair)})
    for name, implied in (("llama", "half"), ("gptj", "interleaved"), ("nobody_knows", None)):
        (folder / "config.json").write_text(json.dumps({"model_type": name, "hidden_size": 128, "n_embd": 128,
                                                        "num_attention_heads": 4, "n_head": 4, "rotary_dim": 32}))
        answer = detect(folder)
        assert (answer["pairing"], answer["implied"], answer["model_type"]) == ("half", implied, name), answer
        assert answer["contradicts"] == (implied == "interleaved")


def test_some_layers_only():
    path = write_model("few.safetensors", plain)
    for count, chosen in ((1, [1]), (2, [0, 2]), (3, [0, 1, 2]), (9, [0, 1, 2])):
        answer = detect(path, layers=count, **shape_options())
        assert [layer["layer"] for layer in answer["layers"]] == chosen, answer["layers"]
        compare(answer, [rows_of(stored(MODEL[n][0]), stored(MODEL[n][1])) for n in chosen])


def test_memory_does_not_grow_with_the_file():
    path = PLACE / "large.safetensors"
    heads, dim, width = 128, 128, 16384
    size = heads * dim * width * 4
    header = json.dumps({f"model.layers.0.self_attn.{x}_proj.weight": {
        "dtype": "F32", "shape": [heads * dim, width], "data_offsets": [i * size, (i + 1) * size]}
        for i, x in enumerate("qk")}).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + 2 * size)  # 2 GiB of zeros that take no room
    process = subprocess.Popen([PROGRAM, "detect", str(path), "--heads", str(heads), "--head-dim", str(dim)],
                               stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    path.unlink()
    assert process.returncode == 1
    assert usage.ru_maxrss < 64 * 1024 or "libasan" in os.environ.get("LD_PRELOAD", ""), usage.ru_maxrss


# --- Refused -----------------------------------------------------------------------------------------

def test_bad_input_names_file_tensor_and_numbers():
    path = write_model("bad.safetensors", plain)
    refused(path, "bad.safetensors", "q_proj", "64", "96", heads=6, kv_heads=2, head_dim=16)
    refused(path, "k_proj", "32", "64", heads=4, head_dim=16)
    refused(path, "kv_heads", "3", heads=4, kv_heads=3, head_dim=16)
    refused(path, "rotary_dim", "20", heads=4, kv_heads=2, head_dim=16, rotary_dim=20)
    refused(path, "rotary_dim", "10", "multiple of 4", heads=4, kv_heads=2, head_dim=16, rotary_dim=10)
    refused(path, "head-dim", "heads", kv_heads=2)
    missing = write_model("missing.safetensors", lambda n, q, k, v: {
        key: array for key, array in plain(n, q, k, v).items() if n != 1 or "k_proj" not in key})
    refused(missing, "model.layers.1.self_attn.k_proj.weight", "missing.safetensors")
    nothing = write_model("nothing.safetensors", lambda n, q, k, v: {f"model.layers.{n}.mlp.up_proj.weight": q})
    refused(nothing, "nothing.safetensors", "q and k")
    bad = {key: entry(array)[0] for n, layer in enumerate(MODEL) for key, array in plain(n, *layer).items()}
    name = "model.layers.2.self_attn.q_proj.weight"
    for change, words in (({name: ("I32", (64, 64), bad[name][2])}, ("type", name)),
                          ({name: ("F32", (64, 64), b"\0\0\xc0\x7f" + bad[name][2][4:])}, ("finite", "row 0", name)),
                          ({name: ("F32", (64, 8, 8), bad[name][2])}, ("rows", name)),
                          ({name + "_scale_inv": ("F32", (1, 2), b"\0" * 8)}, ("scales", name + "_scale_inv")),
                          ({name[:-6] + "bias": ("F32", (3,), b"\0" * 12)}, ("is 3", "rows is 64", "q_proj.bias"))):
        write_safetensors(PLACE / "changed.safetensors", {**bad, **change})
        refused(PLACE / "changed.safetensors", "changed.safetensors", *words)
    whole = (PLACE / "bad.safetensors").read_bytes()
    (PLACE / "short.safetensors").write_bytes(whole[:-1])
    refused(PLACE / "short.safetensors", "short.safetensors")


# --- Real files --------------------------------------------------------------------------------------

def test_models_of_others():
    if not SHARED.is_dir():
        return "no ../shared"
    for path in sorted((SHARED / "data/models/qk").glob("*.safetensors")):
        metadata, tensors = weights.read_safetensors(path)
        right = metadata["position"].removeprefix("rope-")
        assert detect(path)["pairing"] == right, path
        bare = {name: entry(array)[0] for name, array in tensors.items()}
        write_safetensors(PLACE / "bare.safetensors", bare)
        shape = {"heads": metadata["heads"], "kv_heads": metadata["kv_heads"], "head_dim": metadata["head_dim"]}
        assert detect(PLACE / "bare.safetensors", **shape)["pairing"] == right, path
    assert detect(SHARED / "data/models/stories260K/stories260K.bin")["pairing"] == "interleaved"
    assert detect(SHARED / "data/models/paged_infer_tiny")["pairing"] == "undetermined"
    refused(SHARED / "data/models/ollama_tiny/discollama_adapters.safetensors", "q and k")
    return None


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules[__name__]))
