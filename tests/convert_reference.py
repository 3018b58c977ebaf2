"""Reordering of q and k rows in NumPy, and readers of safetensors and GGUF files that know raw bytes only. For tests.
SPDX-License-Identifier: MIT"""
import json
import struct

import numpy as np

OTHER = {"half": "interleaved", "interleaved": "half"}


def sources(rows, starts, rotary, to):
    """Which old row every new row is: `rotary` rows from each start on are halves that become pairs, or the reverse."""
    order = np.arange(rows)
    for start in starts:
        block = order[start:start + rotary]
        halves = block.reshape(2, -1) if to == "interleaved" else block.reshape(-1, 2)
        order[start:start + rotary] = halves.T.reshape(-1)
    return order


def moved(data, rows, order):
    """The bytes of a tensor of so many rows in that order."""
    return b"".join(data[i * (len(data) // rows):(i + 1) * (len(data) // rows)] for i in order)


def read_safetensors(path):
    """Header (with __metadata__) and the bytes of every tensor."""
    whole = path.read_bytes()
    length = struct.unpack_from("<Q", whole)[0]
    header = json.loads(whole[8:8 + length])
    data = whole[8 + length:]
    tensors = {name: data[entry["data_offsets"][0]:entry["data_offsets"][1]]
               for name, entry in header.items() if name != "__metadata__"}
    return header, tensors


class Gguf:
    """Keys (raw bytes of their values) and tensors (type, shape, raw bytes) of a GGUF file."""
    SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 8: (32, 34), 12: (256, 144), 14: (256, 210), 30: (1, 2)}

    def __init__(self, path):
        self.bytes, self.at = path.read_bytes(), 4
        self.order = "<" if struct.unpack_from("<I", self.bytes, 4)[0] < 65536 else ">"
        self.version = self.number("I")
        self.length = "I" if self.version == 1 else "Q"
        tensors, keys = self.number(self.length), self.number(self.length)
        self.keys, self.tensors = {}, {}
        for _ in range(keys):
            key = self.text()
            kind, begin = self.number("I"), self.at
            self.skip(kind)
            self.keys[key] = (kind, self.bytes[begin:self.at])
        index = []
        for _ in range(tensors):
            name = self.text()
            shape = [self.number(self.length) for _ in range(self.number("I"))][::-1]
            index.append((name, shape, self.number("I"), self.number("Q")))
        alignment = struct.unpack(self.order + "I", self.keys["general.alignment"][1])[0] \
            if "general.alignment" in self.keys else 32
        self.data = -(-self.at // alignment) * alignment
        for name, shape, kind, offset in index:
            elements, size = self.BLOCKS[kind]
            count = int(np.prod(shape)) // elements * size
            self.tensors[name] = (kind, shape, self.bytes[self.data + offset:self.data + offset + count])

    def number(self, kind):
        value = struct.unpack_from(self.order + kind, self.bytes, self.at)[0]
        self.at += struct.calcsize("<" + kind)
        return value

    def text(self):
        length = self.number(self.length)
        self.at += length
        return self.bytes[self.at - length:self.at].decode()

    def skip(self, kind):
        if kind == 8:
            self.text()
        elif kind == 9:
            element, count = self.number("I"), self.number(self.length)
            for _ in range(count):
                self.skip(element)
        else:
            self.at += self.SIZES[kind]
