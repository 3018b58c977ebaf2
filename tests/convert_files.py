"""Checkpoints for the tests of posenc convert, and what NumPy makes of them. For tests only.
SPDX-License-Identifier: MIT
"""
import json
import struct

import numpy as np

from weight_files import write_safetensors

HEADS, KV_HEADS, HEAD_DIM = 4, 2, 64
CONFIG = {"model_type": "llama", "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM}


def to_interleaved(rows, heads):
    """Row i of the first half of each head goes to 2 i, of the second half to 2 i + 1."""
    halves = rows.reshape(heads, 2, HEAD_DIM // 2, *rows.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)


def layer(random, number, width, ffn):
    shapes = {"self_attn.q_proj": HEADS * HEAD_DIM, "self_attn.k_proj": KV_HEADS * HEAD_DIM,
              "self_attn.v_proj": KV_HEADS * HEAD_DIM, "mlp.up_proj": ffn}
    return {f"model.layers.{number}.{name}.weight": random.standard_normal((rows, width), "f4")
            for name, rows in shapes.items()}


def write_file(path, tensors):
    write_safetensors(path, {name: ("F32", array.shape, array.tobytes()) for name, array in tensors.items()},
                      {"format": "pt"})


def write_config(folder, layers, width):
    (folder / "config.json").write_text(json.dumps({**CONFIG, "hidden_size": width, "num_hidden_layers": layers}))


def write_shards(folder, random, shards, width=64, ffn=100):
    """A folder with one layer in each shard, and what checkpoints have beside them. Returns all tensors."""
    folder.mkdir()
    everything, places = {}, {}
    for i in range(shards):
        name, tensors = f"model-{i + 1:05}-of-{shards:05}.safetensors", layer(random, i, width, ffn)
        if i == shards - 1:  # a shard in which nothing moves
            tensors = {"lm_head.weight": random.standard_normal((50, width), "f4")}
        write_file(folder / name, tensors)
        everything |= tensors
        places |= dict.fromkeys(tensors, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 1},
                                                                     "weight_map": places}))
    write_config(folder, shards - 1, width)
    (folder / "tokenizer.json").write_text('{"words": []}')
    (folder / "assets").mkdir()
    (folder / "assets" / "picture.bin").write_bytes(random.bytes(3000))
    return everything


def read_tensors(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    record = header.pop("__metadata__", {}).get("posenc.pairing")
    body = memoryview(data)[8 + length:]
    return {name: np.frombuffer(body[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
            for name, entry in header.items()}, record


def check_interleaved(path, tensors):
    """The file holds these tensors in the other order, and says so."""
    got, record = read_tensors(path)
    moved = 0
    for name, array in got.items():
        heads = HEADS if "q_proj" in name else KV_HEADS if "k_proj" in name else 0
        wanted = to_interleaved(tensors[name], heads) if heads else tensors[name]
        assert array.tobytes() == wanted.tobytes(), name
        moved += heads > 0
    assert (record is not None) == (moved > 0), record
    return len(got)
