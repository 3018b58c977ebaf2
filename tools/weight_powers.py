"""Row powers of W_q and W_k from safetensors files with transformers' names: for tests and studies of detection.
SPDX-License-Identifier: MIT
"""
import json
import struct

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}


def read_safetensors(path):
    """The metadata and the tensors as float64."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        if entry["dtype"] == "BF16":
            numbers = (np.frombuffer(data[begin:end], "<u2").astype("<u4") << 16).view("<f4")
        else:
            numbers = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]])
        tensors[name] = numbers.reshape(entry["shape"]).astype("f8")
    return header.get("__metadata__", {}), tensors


def powers(weight, bias, gain, head_dim, rotary_dim):
    """Sums of squares of the rotary rows, [heads][rotary_dim]; gain of one head or of the whole width."""
    power = (weight ** 2).sum(1)
    if bias is not None:
        power = power + bias ** 2
    power = power.reshape(-1, head_dim)
    if gain is not None:
        power = power * gain.reshape(-1, head_dim) ** 2
    return power[:, :rotary_dim]


def layers_of(tensors, head_dim, rotary_dim):
    """[(q, k)] of all layers, and whether norm gains tie the heads of a layer."""
    layers, tied = [], False
    while f"model.layers.{len(layers)}.self_attn.q_proj.weight" in tensors:
        prefix = f"model.layers.{len(layers)}.self_attn."
        layers.append(tuple(powers(tensors[f"{prefix}{x}_proj.weight"], tensors.get(f"{prefix}{x}_proj.bias"),
                                   tensors.get(f"{prefix}{x}_norm.weight"), head_dim, rotary_dim) for x in "qk"))
        gain = tensors.get(f"{prefix}q_norm.weight")
        tied = tied or (gain is not None and gain.size == head_dim)
    return layers, tied


def to_other(power, pairing):
    """Channels in the order of `pairing`, from that of the other one."""
    heads, d = power.shape
    shape = (heads, 2, d // 2) if pairing == "interleaved" else (heads, d // 2, 2)
    return power.reshape(shape).swapaxes(1, 2).reshape(heads, d)
