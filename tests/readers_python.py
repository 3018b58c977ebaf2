#!/usr/bin/env python3
"""Files that Python has written at random, and the published ones where they are at hand, read by both sides.

usage: readers_python.py PATH_OF_DUMP_READERS ROOT                      SPDX-License-Identifier: MIT
"""
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import model_files as files
import tap

DUMP, ROOT = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
SHARED = Path(os.environ.get("POSENC_SHARED") or ROOT.parent / "shared")
FOLDER = tempfile.TemporaryDirectory(prefix="posenc-readers-")
SEED = int(os.environ.get("POSENC_SEED", "20261129"))
TRIALS = 400 if os.environ.get("POSENC_LONG") else 40
print(f"# seed {SEED}")

# Name, number in GGUF, elements and bytes of a block, as ggml defines them.
GGML = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144),
        "Q6_K": (14, 256, 210), "I8": (24, 1, 1), "BF16": (30, 1, 2), "MXFP4": (39, 32, 17)}
GGML_NAMES = {number: (name, elements, size) for name, (number, elements, size) in GGML.items()}
DTYPES = dict(F64=8, F32=4, F16=2, BF16=2, I64=8, I32=4, I16=2, I8=1, U8=1, BOOL=1, F8_E4M3=1, F8_E5M2=1, U64=8)


def dump(*paths):
    """What the C side prints, {path: [lines]}."""
    done = subprocess.run([DUMP, *paths], capture_output=True, check=True)
    found = {}
    for line in done.stdout.decode("utf-8", "surrogateescape").splitlines():
        if line.startswith("file\t"):
            lines = found[line.split("\t", 1)[1]] = []
        else:
            lines.append(line)
    return found


def same(got, wanted, what):
    for number, (a, b) in enumerate(zip(got, wanted)):
        assert a == b, f"{what}, line {number}:\n  got    {a[:300]}\n  wanted {b[:300]}"
    assert len(got) == len(wanted), f"{what}: {len(got)} lines, not {len(wanted)}"


def tensor_line(name, dtype, shape, offset, data):
    shape = ",".join(map(str, shape))
    return f"tensor\t{name.encode().hex()}\t{dtype}\t{shape}\t{offset}\t{len(data)}\t{zlib.crc32(data):08x}"


# ---- GGUF ----

def value_text(word, value):
    if word == "string":
        return (value if isinstance(value, bytes) else value.encode()).hex()
    if word == "array":
        element, items = value
        return "[" + ",".join([element, *(value_text(element, item) for item in items)]) + "]"
    if word in ("float32", "float64"):
        number = struct.unpack("f", struct.pack("f", value))[0] if word == "float32" else value
        return struct.pack(">d", number).hex()
    return str(int(value))


def gguf_lines(data):
    reader = files.GgufReader(data)
    yield f"gguf\t{reader.version}\t{int(reader.order == '>')}"
    for name, (word, value) in reader.keys.items():
        yield f"key\t{name}\t{word}\t{value_text(word, value)}"
    for name, (shape, number, offset) in sorted(reader.tensors.items(), key=lambda t: t[1][2]):
        dtype, elements, size = GGML_NAMES[number]
        count = math.prod(shape) // elements * size
        yield tensor_line(name, dtype, shape, offset, data[offset:offset + count])


def random_text(rng):
    return "".join(rng.choice("abz._0/ \u00e9\u20ac\U0001f600") for _ in range(rng.choice((0, 1, 5, 30, 3000))))


def random_value(rng, word, depth=0):
    if word == "string":
        return random_text(rng)
    if word == "array":
        words = [w for w in files.TYPES if w != "array" or depth < 3]
        element = rng.choice(words)
        count = rng.choice((0, 1, 3, 20 if depth else 3000))
        if element in ("array", "string"):
            count = min(count, 20)
        return element, [random_value(rng, element, depth + 1) for _ in range(count)]
    if word == "bool":
        return rng.random() < 0.5
    if word == "float32":
        return struct.unpack("f", struct.pack("f", rng.gauss(0, 1e6)))[0]
    if word == "float64":
        return rng.gauss(0, 1e100)
    size = struct.calcsize(files.TYPES[word][1])
    return struct.unpack(files.TYPES[word][1], rng.randbytes(size))[0]


def random_shape(rng, elements):
    shape = [rng.randrange(4) for _ in range(rng.randrange(4))] if rng.random() < 0.1 else \
        [rng.randrange(1, 5) for _ in range(rng.randrange(4))]
    if elements > 1:
        shape = [*shape[:3], elements * rng.randrange(1, 3)]
    return shape


def random_gguf(rng):
    alignment = rng.choice((1, 8, 32, 32, 64, 4096))
    keys = [(f"k{i}." + random_text(rng)[:100].replace("/", "-"), word, random_value(rng, word))
            for i, word in enumerate(rng.choices(list(files.TYPES), k=rng.randrange(20)))]
    keys.insert(0, ("general.alignment", "uint32", alignment))
    tensors = []
    for i in range(rng.randrange(30)):
        number, elements, size = GGML[rng.choice(list(GGML))]
        shape = random_shape(rng, elements)
        tensors.append((f"t{i}", shape, number, rng.randbytes(math.prod(shape) // elements * size)))
    # Nothing of no bytes: two of the same offset have no order.
    tensors = [tensor for tensor in tensors if tensor[3]]
    return files.gguf(rng.choice((1, 2, 3)), rng.random() < 0.3, keys, tensors, alignment)


def write(name, data):
    path = Path(FOLDER.name) / name
    path.write_bytes(data)
    return str(path)


def test_random_gguf_files_read_as_they_were_written():
    rng = random.Random(f"{SEED} gguf")
    for trial in range(TRIALS):
        data = random_gguf(rng)
        path = write("a.gguf", data)
        same(dump(path)[path], list(gguf_lines(data)), f"trial {trial}")


# ---- safetensors ----

def safetensors_lines(data):
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    for key, text in (header.pop("__metadata__", None) or {}).items():
        yield f"metadata\t{key.encode().hex()}\t{text.encode().hex()}"
    for name, entry in sorted(header.items(), key=lambda t: t[1]["data_offsets"]):
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        yield tensor_line(name, entry["dtype"], entry["shape"], begin, data[begin:end])


def random_safetensors(rng):
    tensors = []
    for i in range(rng.randrange(40)):
        dtype = rng.choice(list(DTYPES))
        shape = [rng.randrange(1, 6) for _ in range(rng.randrange(5))]
        tensors.append((f"{i}{random_text(rng)[:100]}", dtype, shape, rng.randbytes(math.prod(shape) * DTYPES[dtype])))
    metadata = {f"{i}{random_text(rng)[:100]}": random_text(rng) for i in range(rng.randrange(5))}
    return files.safetensors(tensors, rng.choice((None, metadata)), pad=rng.randrange(9))


def test_random_safetensors_files_read_as_they_were_written():
    rng = random.Random(f"{SEED} safetensors")
    for trial in range(TRIALS):
        data = random_safetensors(rng)
        path = write("a.safetensors", data)
        same(dump(path)[path], list(safetensors_lines(data)), f"trial {trial}")


# ---- JSON ----

def random_json(rng, depth=0):
    kind = rng.randrange(8 if depth < 5 else 6)
    if kind == 0:
        return rng.choice((True, False, None, math.inf, -math.inf, math.nan))
    if kind == 1:
        return rng.randrange(-2**rng.randrange(1, 64), 2**rng.randrange(1, 65))
    if kind in (2, 3):
        return struct.unpack("d", rng.randbytes(8))[0]
    if kind in (4, 5):
        return random_text(rng)[:50] + rng.choice(("", "\"\\\n\t", "\u0001"))
    if kind == 6:
        return [random_json(rng, depth + 1) for _ in range(rng.randrange(5))]
    return {random_text(rng)[:10] + str(i): random_json(rng, depth + 1) for i in range(rng.randrange(5))}


def same_json(lines, wanted, what):
    assert len(lines) == 1 and lines[0].startswith("json\t"), f"{what}: {lines}"
    got = json.loads(lines[0].split("\t", 1)[1])
    # repr tells 1 from 1.0 and True, and writes NaN as one.
    assert repr(got) == repr(wanted), f"{what}:\n  got    {got!r}\n  wanted {wanted!r}"


def test_random_json_reads_as_it_was_written():
    rng = random.Random(f"{SEED} json")
    for trial in range(10 * TRIALS):
        value = {"x": [random_json(rng) for _ in range(5)]}
        text = json.dumps(value, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, 2)))
        path = write("a.json", text.encode())
        same_json(dump(path)[path], value, f"trial {trial}")


# ---- Published files ----

def published(*patterns):
    return [str(path) for pattern in patterns for path in sorted(SHARED.glob(pattern))]


def test_published_gguf_files_read_alike():
    paths = published("data/gguf/*.gguf", "data/models/*/*.gguf")
    if not paths:
        return f"no files in {SHARED}"
    for path, lines in dump(*paths).items():
        same(lines, list(gguf_lines(Path(path).read_bytes())), path)


def test_published_safetensors_files_read_alike():
    paths = published("data/models/*/*.safetensors")
    if not paths:
        return f"no files in {SHARED}"
    for path, lines in dump(*paths).items():
        same(lines, list(safetensors_lines(Path(path).read_bytes())), path)


def test_published_configurations_read_alike():
    paths = published("data/configs/*.json", "data/models/*/*.json")
    if not paths:
        return f"no files in {SHARED}"
    for path, lines in dump(*paths).items():
        same_json(lines, json.loads(Path(path).read_text(encoding="utf-8")), path)


def test_a_published_llama2c_file_equals_its_safetensors():
    model = SHARED / "data/models/stories260K/stories260K.bin"
    if not model.exists():
        return f"no file {model}"
    lines = dump(str(model))[str(model)]
    parts = [line.split("\t") for line in lines]
    assert len(parts) == 4 + 9 * 5
    assert sum(int(part[5]) for part in parts) + 28 == model.stat().st_size
    data = model.read_bytes()
    sums = {bytes.fromhex(part[1]).decode(): part[6] for part in parts}
    other = (SHARED / "data/models/qk/stories260K.safetensors").read_bytes()
    length = struct.unpack("<Q", other[:8])[0]
    compared = 0
    for name, entry in json.loads(other[8:8 + length]).items():
        if not name.endswith(("q_proj.weight", "k_proj.weight")):
            continue
        layer = name.split("layers.")[1].split(".")[0]
        word = "wq" if "q_proj" in name else "wk"
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        assert sums[f"layers.{layer}.attention.{word}.weight"] == f"{zlib.crc32(other[begin:end]):08x}", name
        compared += 1
    assert compared == 10 and len(data) > 0


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules["__main__"]))
