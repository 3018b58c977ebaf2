"""What the tests of posenc convert share: running it, and each tensor of its output against NumPy.

Program and root are the arguments of the test that imports this.               SPDX-License-Identifier: MIT
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from convert_reference import OTHER, moved, read_safetensors, sources
from weight_files import as_bytes, write_safetensors

PROGRAM, ROOT = sys.argv[1], Path(sys.argv[2]).resolve()
SHARED = Path(os.environ.get("POSENC_SHARED") or ROOT.parent / "shared")
RANDOM = np.random.default_rng(int(os.environ.get("POSENC_SEED", "20261130")))
FOLDER = tempfile.TemporaryDirectory()
PLACE = Path(FOLDER.name)
HEADS, KV, DIM, WIDTH = 4, 2, 16, 24
SHAPE = {"heads": HEADS, "kv_heads": KV, "head_dim": DIM}
KEYS = {"general.architecture": "qwen2", "qwen2.embedding_length": HEADS * DIM, "qwen2.block_count": 2,
        "qwen2.attention.head_count": HEADS, "qwen2.attention.head_count_kv": KV, "qwen2.rope.dimension_count": DIM}
Q, K, V = HEADS * DIM, KV * DIM, KV * DIM
GROUPED = ["gpt_neox.layers.{}.attention.query_key_value", "transformer.h.{}.self_attention.query_key_value",
           "model.layers.{}.attention.wqkv"]


def run(*words, **options):
    flags = [text for key, value in options.items() for text in
             ([f"--{key.replace('_', '-')}"] + ([] if value is True else [str(value)]))]
    return subprocess.run([PROGRAM, "convert", *map(str, words), *flags], capture_output=True, text=True, check=False)


def converted(path, to, folder=None, **options):
    """The path of the converted file."""
    out = (folder or PLACE) / ("out" + path.suffix)
    out.unlink(missing_ok=True)
    done = run(path, out, "--json", to=to, **options)
    assert done.returncode == 0, done.stderr
    return out, json.loads(done.stdout)


def refused(path, *words, to="interleaved", **options):
    """Exit status 2, the words in the message, and nothing written."""
    out = PLACE / "refused.out"
    before = sorted(PLACE.iterdir())
    done = run(path, out, to=to, **options)
    assert done.returncode == 2 and not done.stdout, (done.returncode, done.stdout)
    for word in words:
        assert word in done.stderr, (word, done.stderr)
    assert sorted(PLACE.iterdir()) == before


def numbers(*shape, dtype="F32"):
    array = RANDOM.standard_normal(shape)
    return (dtype, shape, as_bytes(array, dtype)[0])


def raw(dtype, shape, row_bytes):
    """Rows of any bytes."""
    return (dtype, shape, RANDOM.integers(0, 256, int(np.prod(shape[:-1])) * row_bytes, "u1").tobytes())


def starts(heads, dim=DIM, first=0, start=0):
    return [first + head * dim + start for head in range(heads)]


def grouped_starts(heads=HEADS, kv=KV):
    group = heads // kv
    return [(k * (group + 2) + i) * DIM for k in range(kv) for i in range(group + 1)]


def pair_names(layer=0):
    return [f"model.layers.{layer}.self_attn.{side}_proj.weight" for side in "qk"]


def plain(**more):
    q, k = pair_names()
    return {q: numbers(Q, WIDTH), k: numbers(K, WIDTH), **more}


def plain_orders(to, rotary=DIM, start=0):
    q, k = pair_names()
    return {q: sources(Q, starts(HEADS, start=start), rotary, to), k: sources(K, starts(KV, start=start), rotary, to)}


def check_tensors(old, new, orders):
    """Every tensor of the new file is that of the old one, its rows in the order given for it; others are the same."""
    assert list(old) == list(new)
    for name, data in old.items():
        order = orders.get(name)
        assert new[name] == (data if order is None else moved(data, len(order), order)), name


def check_safetensors(path, to, orders, **options):
    out, answer = converted(path, to, path.parent if os.access(path.parent, os.W_OK) and
                            SHARED not in path.parents else None, **options)
    old_header, old = read_safetensors(path)
    new_header, new = read_safetensors(out)
    record = new_header["__metadata__"].pop("posenc.pairing")
    assert record.split()[0] == to
    if not old_header.get("__metadata__"):
        old_header.pop("__metadata__", None)
        assert new_header.pop("__metadata__") == {}
    assert list(old_header) == list(new_header) and old_header == new_header
    check_tensors(old, new, orders)
    assert answer["moved_tensors"] == len(orders) and {m["tensor"] for m in answer["moves"]} == set(orders)
    for move in answer["moves"]:
        order = orders[move["tensor"]]
        assert move["rows"] == len(order) and move["moving"] == (order != np.arange(len(order))).sum(), move
    back = PLACE / "back"
    done = run(out, back, to=OTHER[to])
    assert done.returncode == 0, done.stderr
    assert back.read_bytes() == path.read_bytes()
    back.unlink()
    return answer


def check_both(name, tensors, orders_of, metadata=None, **options):
    """orders_of(to) gives the orders."""
    path = PLACE / name
    write_safetensors(path, tensors, metadata)
    for to in OTHER:
        check_safetensors(path, to, orders_of(to), **options)
    return path


def check(a, b, status=0, **options):
    """What --check says, by tensor, and the rest of its answer."""
    done = run("--check", a, b, "--json", **options)
    assert done.returncode == status, (done.returncode, done.stderr)
    answer = json.loads(done.stdout)
    assert answer["same"] == (status == 0)
    text = run("--check", a, b, **options)
    assert text.returncode == status and text.stdout.splitlines()[-1].startswith(f"{answer['identical']} identical")
    return {entry["tensor"] or entry["tensor_b"]: entry for entry in answer["tensors"]}, answer
