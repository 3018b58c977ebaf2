"""Model files written and read in Python, after the descriptions of the formats and without their libraries: the
counterpart of src/formats in tests.

GGUF keys are (name, type, value) with types from TYPES; an array's value is (element type, [values]). Tensors are
(name, shape, type number, bytes), the shape with the contiguous axis last.
SPDX-License-Identifier: MIT
"""
import json
import struct

TYPES = {"uint8": (0, "B"), "int8": (1, "b"), "uint16": (2, "H"), "int16": (3, "h"), "uint32": (4, "I"),
         "int32": (5, "i"), "float32": (6, "f"), "bool": (7, "?"), "string": (8, None), "array": (9, None),
         "uint64": (10, "Q"), "int64": (11, "q"), "float64": (12, "d")}
WORDS = {number: (word, code) for word, (number, code) in TYPES.items()}


# ---- GGUF ----

class GgufWriter:
    def __init__(self, version, big):
        self.order = ">" if big else "<"
        self.length = "I" if version == 1 else "Q"
        self.out = bytearray()

    def pack(self, code, value):
        self.out += struct.pack(self.order + code, value)

    def text(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        self.pack(self.length, len(data))
        self.out += data

    def value(self, word, value):
        if word == "string":
            self.text(value)
        elif word == "array":
            element, items = value
            self.pack("I", TYPES[element][0])
            self.pack(self.length, len(items))
            for item in items:
                self.value(element, item)
        else:
            self.pack(TYPES[word][1], value)


def gguf(version=3, big=False, keys=(), tensors=(), alignment=32):
    w = GgufWriter(version, big)
    w.out += b"GGUF"
    w.pack("I", version)
    w.pack(w.length, len(tensors))
    w.pack(w.length, len(keys))
    for name, word, value in keys:
        w.text(name)
        w.pack("I", TYPES[word][0])
        w.value(word, value)
    offset = 0
    for name, shape, number, data in tensors:
        w.text(name)
        w.pack("I", len(shape))
        for size in reversed(shape):
            w.pack(w.length, size)
        w.pack("I", number)
        w.pack("Q", offset)
        offset += -(-len(data) // alignment) * alignment
    for _, _, _, data in tensors:
        w.out += bytes(-len(w.out) % alignment) + data
    return bytes(w.out)


class GgufReader:
    """keys: {name: (type word, value)}; tensors: {name: (shape, type number, offset in the file)}."""

    def __init__(self, data):
        self.data, self.at = data, 8
        assert data[:4] == b"GGUF"
        version = struct.unpack_from("<I", data, 4)[0]
        self.order = "<"
        if version & 0xffff == 0:
            self.order, version = ">", struct.unpack_from(">I", data, 4)[0]
        self.version, self.length = version, "I" if version == 1 else "Q"
        tensor_count, key_count = self.take(self.length), self.take(self.length)
        self.keys = {}
        for _ in range(key_count):
            name = self.text().decode()
            word = WORDS[self.take("I")][0]
            self.keys[name] = (word, self.value(word))
        described = [self.tensor() for _ in range(tensor_count)]
        alignment = self.keys.get("general.alignment", (None, 32))[1]
        begin = -(-self.at // alignment) * alignment
        self.tensors = {name: (shape, number, begin + offset) for name, shape, number, offset in described}

    def take(self, code):
        value = struct.unpack_from(self.order + code, self.data, self.at)[0]
        self.at += struct.calcsize(self.order + code)
        return value

    def text(self):
        length = self.take(self.length)
        self.at += length
        return self.data[self.at - length:self.at]

    def value(self, word):
        if word == "string":
            return self.text()
        if word == "array":
            element = WORDS[self.take("I")][0]
            return element, [self.value(element) for _ in range(self.take(self.length))]
        return self.take(TYPES[word][1])

    def tensor(self):
        name = self.text().decode()
        shape = [self.take(self.length) for _ in range(self.take("I"))][::-1]
        return name, shape, self.take("I"), self.take("Q")


# ---- safetensors ----

def safetensors(tensors, metadata=None, pad=0):
    """tensors: (name, dtype word, shape, bytes)."""
    header, offset = {}, 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode() + b" " * pad
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, _, data in tensors)


# ---- llama2.c ----

def llama2c(dim, hidden, layers, heads, kv_heads, vocabulary, length, shared=True, order="<"):
    """Every float is its own index."""
    head = dim // heads
    layer = 2 * dim + 2 * dim * dim + 2 * kv_heads * head * dim + 3 * hidden * dim
    count = vocabulary * dim * (1 if shared else 2) + layers * layer + dim + 2 * length * (head // 2)
    sizes = (dim, hidden, layers, heads, kv_heads, vocabulary if shared else -vocabulary, length)
    return struct.pack(order + "7i", *sizes) + struct.pack(f"{order}{count}f", *range(count))
