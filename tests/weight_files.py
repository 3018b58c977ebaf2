"""Writes small checkpoints: safetensors and GGUF files. For tests only. SPDX-License-Identifier: MIT"""
import json
import struct

import numpy as np

WORDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I32": "<i4"}
GGUF_TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14, "BF16": 30}


def as_bytes(array, dtype):
    """The array in that type, and what the bytes stand for."""
    if dtype == "BF16":
        bits = np.ascontiguousarray(array, "<f4").view("<u4")
        upper = (bits >> 16).astype("<u2")
        return upper.tobytes(), (upper.astype("<u4") << 16).view("<f4").reshape(array.shape).astype("f8")
    stored = np.ascontiguousarray(array, WORDS[dtype])
    return stored.tobytes(), stored.astype("f8")


def quantized(array, kind):
    """Blocks of 32 along the rows, and what they stand for."""
    blocks = array.reshape(-1, 32)
    most = {"Q8_0": 127, "Q4_0": 7}[kind]
    scale = (np.abs(blocks).max(1) / most).astype("<f2")
    steps = np.rint(blocks / np.maximum(scale.astype("f8"), 1e-30)[:, None]).clip(-most - 1, most).astype(int)
    if kind == "Q8_0":
        body = steps.astype("i1").view("u1")
    else:
        shifted = (steps + 8).astype("u1")
        body = shifted[:, :16] | shifted[:, 16:] << 4
    data = np.concatenate([scale.view("u1").reshape(-1, 2), body], 1)
    return data.tobytes(), (steps * scale.astype("f8")[:, None]).reshape(array.shape)


def write_safetensors(path, tensors, metadata=None):
    """tensors: name -> (dtype, shape, bytes)."""
    header, at = ({"__metadata__": metadata} if metadata else {}), 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def write_gguf(path, keys, tensors, version=3, order="<", alignment=32, tail=b""):
    """keys: name -> int or str; tensors: name -> (type, shape, bytes), which are not turned into another byte order."""
    length = "I" if version == 1 else "Q"

    def text(value):
        return struct.pack(order + length, len(value)) + value.encode()

    def pad(data):
        return b"\0" * (-len(data) % alignment)
    head, data, index = b"", b"", b""
    for key, value in keys.items():
        head += text(key)
        head += struct.pack(order + "I", 8) + text(value) if isinstance(value, str) else \
            struct.pack(order + "II", 4, value)
    for name, (kind, shape, body) in tensors.items():
        index += text(name) + struct.pack(order + "I", len(shape))
        index += struct.pack(f"{order}{len(shape)}{length}", *shape[::-1])
        index += struct.pack(order + "IQ", GGUF_TYPES[kind], len(data))
        data += body + pad(body)
    head = b"GGUF" + struct.pack(f"{order}I2{length}", version, len(tensors), len(keys)) + head + index
    path.write_bytes(head + pad(head) + data + tail)
