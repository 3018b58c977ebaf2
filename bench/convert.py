#!/usr/bin/env python3
"""posenc convert beside `cp --reflink=never A B && sync B`: both in turn, in one run, on checkpoints made here.

usage: convert.py PROGRAM [--gb G] [--runs N] [--folder F] [--kinds safetensors,gguf]

The checkpoints have the shapes of a Llama of 8 billion parameters with as many layers as fit into G gigabytes, and
random bytes. Times include the flush to the disk. Prints medians, the quotient of each pair of runs, and the largest
anonymous memory of the process (RssAnon). SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import shutil
import statistics
import struct
import subprocess
import tempfile
import time
from pathlib import Path

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCABULARY = 4096, 32, 8, 128, 14336, 32000
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
          "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM,
          "intermediate_size": FFN, "vocab_size": VOCABULARY, "rope_theta": 500000.0, "max_position_embeddings": 8192,
          "torch_dtype": "bfloat16"}
LAYER = {"self_attn.q_proj": ("attn_q", (HEADS * HEAD_DIM, HIDDEN)),
         "self_attn.k_proj": ("attn_k", (KV_HEADS * HEAD_DIM, HIDDEN)),
         "self_attn.v_proj": ("attn_v", (KV_HEADS * HEAD_DIM, HIDDEN)),
         "self_attn.o_proj": ("attn_output", (HIDDEN, HEADS * HEAD_DIM)),
         "mlp.gate_proj": ("ffn_gate", (FFN, HIDDEN)), "mlp.up_proj": ("ffn_up", (FFN, HIDDEN)),
         "mlp.down_proj": ("ffn_down", (HIDDEN, FFN))}


def layers_in(gb, bytes_of):
    layer = sum(bytes_of(shape) for _, shape in LAYER.values())
    return max(1, int((gb * 1e9 - 2 * bytes_of((VOCABULARY, HIDDEN))) // layer))


def tensors_of(layers, gguf):
    yield ("token_embd" if gguf else "model.embed_tokens") + ".weight", (VOCABULARY, HIDDEN)
    for i in range(layers):
        for name, (short, shape) in LAYER.items():
            yield (f"blk.{i}.{short}.weight" if gguf else f"model.layers.{i}.{name}.weight"), shape
    yield ("output" if gguf else "lm_head") + ".weight", (VOCABULARY, HIDDEN)


def write_random(file, count):
    while count:
        count -= file.write(os.urandom(min(count, 16 << 20)))


def bf16_bytes(shape):
    return 2 * shape[0] * shape[1]


def q8_0_bytes(shape):
    return shape[0] * shape[1] // 32 * 34


def write_safetensors(path, gb):
    layers, header, at = layers_in(gb, bf16_bytes), {}, 0
    for name, shape in tensors_of(layers, False):
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + bf16_bytes(shape)]}
        at += bf16_bytes(shape)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        write_random(file, at)
    (path.parent / "config.json").write_text(json.dumps({**CONFIG, "num_hidden_layers": layers}))


def gguf_text(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_key(key, value):
    if isinstance(value, str):
        return gguf_text(key) + struct.pack("<I", 8) + gguf_text(value)
    return gguf_text(key) + (struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value))


def write_gguf(path, gb):
    layers, index, at, count = layers_in(gb, q8_0_bytes), b"", 0, 0
    keys = {"general.architecture": "llama", "llama.block_count": layers, "llama.embedding_length": HIDDEN,
            "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": KV_HEADS,
            "llama.rope.dimension_count": HEAD_DIM, "llama.context_length": 8192, "llama.rope.freq_base": 500000.0}
    for name, shape in tensors_of(layers, True):
        index += gguf_text(name) + struct.pack("<IQQIQ", 2, shape[1], shape[0], 8, at)
        at += q8_0_bytes(shape)
        count += 1
    head = b"GGUF" + struct.pack("<IQQ", 3, count, len(keys)) + b"".join(gguf_key(*item) for item in keys.items()) + index
    with path.open("wb") as file:
        file.write(head + b"\0" * (-len(head) % 32))
        write_random(file, at)


def anonymous_memory(pid):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def run(command):
    """Seconds, and the largest anonymous memory seen."""
    start, most = time.monotonic(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            most = max(most, anonymous_memory(process.pid))
            time.sleep(0.005)
        seconds = time.monotonic() - start
        if process.returncode:
            raise SystemExit(f"{command}: {process.stderr.read()}")
    return seconds, most


def compare(name, source, target, convert, runs):
    copy = ["sh", "-c", 'cp --reflink=never "$0" "$1" && sync "$1"', str(source), str(target)]
    times, most = {"convert": [], "copy": []}, 0
    for i in range(runs + 1):  # the first pair only warms the cache
        for side in ("convert", "copy")[::1 if i % 2 else -1]:
            target.unlink(missing_ok=True)
            os.sync()
            seconds, memory = run(convert if side == "convert" else copy)
            if i:
                times[side].append(seconds)
                most = max(most, memory if side == "convert" else 0)
    target.unlink()
    size = source.stat().st_size
    for side, seconds in times.items():
        print(f"{name}: {side:8} median {statistics.median(seconds):.2f} s of {min(seconds):.2f} ... {max(seconds):.2f},"
              f" {size / statistics.median(seconds) / 1e9:.2f} GB/s")
    ratios = sorted(b / a for a, b in zip(times["convert"], times["copy"]))
    print(f"{name}: {size / 1e9:.2f} GB, speed over that of the copy: median {statistics.median(ratios):.2f}"
          f" of {ratios[0]:.2f} ... {ratios[-1]:.2f} in {runs} pairs; RssAnon at most {most / 2**20:.1f} MiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--gb", type=float, default=2.0)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--kinds", default="safetensors,gguf")
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="posenc-convert-", dir=options.folder))
    try:
        for kind in options.kinds.split(","):
            source, target = place / f"model.{kind}", place / f"converted.{kind}"
            (write_gguf if kind == "gguf" else write_safetensors)(source, options.gb)
            to = "half" if kind == "gguf" else "interleaved"
            compare(kind, source, target, [options.program, "convert", str(source), str(target), "--to", to, "--force"],
                    options.runs)
            source.unlink()
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
