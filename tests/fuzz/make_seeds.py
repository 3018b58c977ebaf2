#!/usr/bin/env python3
"""Small files for the fuzz targets to begin with: make_seeds.py FOLDER fills FOLDER/TARGET/ for each target.
SPDX-License-Identifier: MIT
"""
import io
import json
import math
import struct
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import model_files as files # noqa: E402

EVERY_KEY = [
    ("general.architecture", "string", "llama"), ("general.alignment", "uint32", 32),
    ("llama.rope.freq_base", "float32", 500000.0), ("a.u8", "uint8", 255), ("a.i8", "int8", -1),
    ("a.u16", "uint16", 65535), ("a.i16", "int16", -2), ("a.i32", "int32", -3), ("a.bool", "bool", True),
    ("a.u64", "uint64", 2**64 - 1), ("a.i64", "int64", -2**63), ("a.f64", "float64", 0.1),
    ("tokenizer.ggml.tokens", "array", ("string", ["a", "", "\u00e9"])),
    ("a.nested", "array", ("array", [("uint8", [1, 2]), ("array", [("float32", [0.5])]), ("string", [])])),
]
TENSORS = [("blk.0.attn_q.weight", [2, 32], 8, bytes(68)), ("blk.0.attn_norm.weight", [4], 0, bytes(16)),
           ("blk.0.odd", [], 24, b"x")]

ROPE = [
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768, "beta_fast": 32,
     "beta_slow": 1, "truncate": False, "mscale": 0.7, "mscale_all_dim": "1.0", "attention_factor": None},
    {"type": "su", "short_factor": [1.0] * 4, "long_factor": [2, 3, 4, 5], "rope_theta": 10000},
    {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
     "original_max_position_embeddings": 8192},
    {"type": "mrope", "mrope_section": [16, 24, 24], "mrope_interleaved": True},
    {"rope_type": "dynamic", "alpha": 1000.0, "factor": 1}, {"rope_type": "proportional", "partial_rotary_factor": 0.25},
]


def seeds_of_gguf():
    for version in 1, 2, 3:
        for big in False, True:
            yield files.gguf(version, big, EVERY_KEY, TENSORS)
    yield files.gguf(keys=[("split.no", "uint16", 0), ("split.count", "uint16", 1)])


def seeds_of_safetensors():
    every = ("F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL F8_E4M3 F8_E5M2 F8_E8M0 C64".split())
    widths = dict(F64=8, F32=4, F16=2, BF16=2, I64=8, I32=4, I16=2, U64=8, U32=4, U16=2, C64=8)
    yield files.safetensors([])
    yield files.safetensors([(f"t.{word}", word, [2], bytes(2 * widths.get(word, 1))) for word in every])
    yield files.safetensors([("q\u00e9", "F32", [2, 0], b""), ("k", "BF16", [2, 2], bytes(8))],
                            {"format": "pt", "x": "\u20ac\n"}, pad=5)
    yield files.safetensors([("four", "F4", [4], bytes(2)), ("six", "F6_E2M3", [4], bytes(3))])


def seeds_of_convert():
    """Two heads of 4 channels, one of k."""
    record = "half heads=2 kv_heads=1 head_dim=4 rotary_start=0 rotary_dim=4 tensors=2"
    pair = [("a.0.attn_q.weight", "F32", [8, 1], bytes(range(32))), ("a.0.attn_k.weight", "F16", [4, 1], bytes(range(8)))]
    for metadata in None, {}, {"format": "pt"}, {"posenc.pairing": record}, {"x": "y", "posenc.pairing": record}:
        yield files.safetensors(pair, metadata)
    yield files.safetensors([*pair, ("a.0.attn_q.bias", "F8_E4M3", [8], bytes(range(8))), ("a.0.attn_q_norm.weight", "F32", [4], bytes(16)),
                             ("a.0.attn_k.weight_scale", "F32", [4, 1], bytes(16)), ("a.0.attn_q.lora_b", "F16", [1, 8], bytes(16))])
    yield files.safetensors([("h.1.self_attn.qkv_proj.weight", "BF16", [16, 1], bytes(range(32))),
                             ("h.1.self_attn.qkv_proj.weight_scale_inv", "F32", [4, 1], bytes(16))])
    keys = [("general.architecture", "string", "llama"), ("general.alignment", "uint32", 32)]
    tensors = [("blk.0.attn_q.weight", [8, 32], 8, bytes(8 * 34)), ("blk.0.attn_k.weight", [4, 32], 8, bytes(4 * 34))]
    for version in 1, 2, 3:
        yield files.gguf(version, version == 2, keys, tensors)
    yield files.gguf(3, False, [*keys, ("posenc.pairing", "string", record + " " * (-(34 + len(record)) % 32))], tensors)
    yield files.llama2c(8, 6, 1, 2, 1, 5, 3)


def seeds_of_index():
    yield b'{"metadata":{"total_size":4},"weight_map":{"a":"a.safetensors","b":"b.safetensors"}}'
    yield b'{"weight_map":{"b":"b.safetensors"}}'
    yield b'{"weight_map":{"a":"c.safetensors"}}'


def seeds_of_json():
    yield b'{"a":[1,-2.5e3,Infinity,-Infinity,NaN,true,false,null,"\\u00e9\\ud83d\\ude00"],"b":{"c":{}}}'
    yield b'{"i":18446744073709551615,"j":-9223372036854775808,"k":123456789012345678901234567890}'
    for rope in ROPE:
        yield json.dumps({"model_type": "llama", "rope_parameters": rope}, indent=2).encode()


def seeds_of_rope_parameters():
    for rope in ROPE:
        yield json.dumps(rope).encode()


def seeds_of_model():
    """One of each of the rules' branches."""
    dims = {"hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 6, "max_position_embeddings": 8192}
    for rope in ROPE:
        yield json.dumps({"model_type": "llama", **dims, "rope_scaling": rope}).encode()
        yield json.dumps({"model_type": "gemma3_text", **dims, "rope_parameters": {"full_attention": rope}}).encode()
    for model_type in ("smollm3", "deepseek_v3", "deepseek_v4", "granite_swa", "modernbert", "qwen2_vl_text", "gptj", "mpt", "?"):
        yield json.dumps({"model_type": model_type, **dims, "no_rope_layers": [1, 0], "layer_rope_theta": [1e4, 0, 5],
                          "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "compress_ratios": [0, 4, 128],
                          "rope_scaling": "{\"type\":\"linear\",\"factor\":2}"}).encode()
    yield json.dumps({"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3", **dims}, "vision_config": {"num_heads": 4},
                      "audio_config": {"model_type": "wav2vec2"}, "vision_tower": "x/y"}).encode()
    yield json.dumps({"model_type": "llava", "text_config": {"model_type": "qwen3", **dims, "layer_types": ["x", "y"]}}).encode()


def seeds_of_llama2c():
    yield files.llama2c(8, 6, 2, 4, 2, 5, 3)
    yield files.llama2c(8, 6, 1, 4, 4, 5, 3, shared=False, order=">")


def npy(descr, shape, data, major=1, fortran=False):
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + bytes([major, 0]) + struct.pack("<H" if major == 1 else "<I", len(text)) + text + data


def seeds_of_npy():
    for major in 1, 2, 3:
        for descr in "<f4", ">f8", "<f2", "|V2":
            yield npy(descr, "(2, 3L)", bytes(48), major, major == 2)


def npz(**arrays):
    """As numpy.savez writes it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), array)
    return file.getvalue()


def seeds_of_npz():
    yield npz()
    yield npz(cos=npy("<f4", "(2,)", bytes(8)), sin=npy("<f2", "(2, 1)", bytes(4)))
    yield npz(a=b"") + b"x"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("packed.npy", bytes(100))
        archive.comment = b"a comment"
    yield file.getvalue()


def tables(rows, pairs):
    """cos and sin of the ladder of base 10000, rows of float32."""
    angles = [[position * 10000.0 ** (-pair / pairs) for pair in range(pairs)] for position in range(rows)]
    for function in math.cos, math.sin:
        yield struct.pack(f"<{rows * pairs}f", *(function(angle) for row in angles for angle in row))


def seeds_of_dump():
    """The first byte tells the ending: .npy, .npz, .safetensors, .json."""
    cos, sin = tables(5, 4)
    yield b"\0" + npy("<f8", "(4,)", struct.pack("<4d", 1, 0.1, 0.01, 0.001))
    yield b"\0" + npy("<f4", "(5, 8)", cos + sin)
    yield b"\0" + npy("<f4", "(5, 4, 2)", cos + sin)
    yield b"\0" + npy("<f4", "(5, 8)", cos + sin, fortran=True)
    yield b"\1" + npz(cos=npy("<f4", "(5, 4)", cos), sin=npy("<f4", "(1, 5, 4)", sin))
    yield b"\1" + npz(inv_freq=npy("<f4", "(4,)", struct.pack("<4f", 1, 0.1, 0.01, 0.001)))
    yield b"\2" + files.safetensors([("rope.cos", "F32", [5, 4], cos), ("rope.sin", "F32", [5, 4], sin)])
    yield b"\2" + files.safetensors([("cos_sin", "BF16", [2, 8], bytes(32))])
    for rope in ROPE:
        yield b"\3" + json.dumps({"head_dim": 8, "base": 500000, "pairing": "interleaved", "max_positions": 4096,
                                  "scaling": rope}).encode()
    yield b'\3{"head_dim":8,"rotary_dim":8,"mode":"float32","axes":{"count":2,"order":"chunked","exponents":"own","sections":[2,2]}}'


def seeds_of_names():
    """A store's name and what its files hold; or names of files in a folder."""
    yield b"-o/m\nabc\n"
    yield b"-o/m@abc"
    yield b"-m:latest\n" + json.dumps({"layers": [
        {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:00"}]}).encode()
    yield b"-m\n" + b'{"layers":[{"mediaType":"application/vnd.ollama.image.license"}]}'
    yield b"Fconfig.json\nmodel.safetensors"
    yield b"Fa-00001-of-00002.gguf\na-00002-of-00002.gguf\nmmproj-a.gguf"
    yield b"Fparams.json\nx.safetensors.index.json\nx.safetensors\ny.safetensors"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_seeds.py FOLDER")
    for name, make in list(globals().items()):
        if not name.startswith("seeds_of_"):
            continue
        folder = Path(sys.argv[1]) / name.removeprefix("seeds_of_")
        folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(make()):
            (folder / str(number)).write_bytes(data)


if __name__ == "__main__":
    main()
