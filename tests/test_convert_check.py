#!/usr/bin/env python3
"""posenc convert --check: what it says of two checkpoints.

usage: test_convert_check.py PROGRAM ROOT                                     SPDX-License-Identifier: MIT
"""
import os
import subprocess
import sys

import numpy as np

import tap
from convert_cases import (DIM, GROUPED, HEADS, K, KEYS, KV, PLACE, PROGRAM, Q, RANDOM, SHAPE, V, WIDTH,
                           check, grouped_starts, numbers, pair_names, plain, plain_orders, run, starts)
from convert_reference import OTHER, moved, sources
from weight_files import as_bytes, write_gguf, write_safetensors


def permute(tensors, **orders):
    return {name: (dtype, shape, moved(data, len(orders[name]), orders[name]) if name in orders else data)
            for name, (dtype, shape, data) in tensors.items()}


def test_check_names_the_order():
    a, b = PLACE / "a.safetensors", PLACE / "b.safetensors"
    tensors = plain(**{"other.weight": numbers(9, 5)})
    for rotary, start in ((DIM, 0), (8, 4), (6, 2), (4, 0)):
        for to in OTHER:
            orders = plain_orders(to, rotary, start)
            write_safetensors(a, tensors)
            write_safetensors(b, permute(tensors, **orders), {"format": "pt"})
            for options in ({}, {"rotary_dim": rotary, "rotary_start": start, **SHAPE}):
                found, answer = check(a, b, **options)
                assert (answer["identical"], answer["permuted"], answer["different"]) == (1, 2, 0)
                named = "interleaved" if rotary == 4 else to  # with 4 channels each order is its own inverse
                assert (answer["from"], answer["to"]) == (OTHER[named], named)
                for name, heads in zip(pair_names(), (HEADS, KV)):
                    order, entry = orders[name], found[name]
                    assert entry["relation"] == "permuted" and entry["rows"] == len(order)
                    assert entry["moved"] == (order != np.arange(len(order))).sum()
                    assert (entry["heads"], entry["rotary_dim"], entry["first"], entry["stride"]) == \
                        (heads, rotary, start, DIM), entry
                assert found["other.weight"]["relation"] == "identical"


def test_check_of_fused_rows_and_of_other_orders():
    a, b = PLACE / "a.safetensors", PLACE / "b.safetensors"
    name, rows = GROUPED[0].format(0) + ".weight", Q + K + V
    tensors = {name: numbers(rows, WIDTH)}
    write_safetensors(a, tensors)
    write_safetensors(b, permute(tensors, **{name: sources(rows, grouped_starts(), DIM, "half")}))
    for options in ({}, SHAPE):
        entry = check(a, b, **options)[0][name]
        assert (entry["from"], entry["to"], entry["heads"], entry["stride"]) == ("interleaved", "half", HEADS + KV, 0)
    for order in (RANDOM.permutation(rows), np.arange(rows)[::-1], np.roll(np.arange(rows), 1)):
        write_safetensors(b, permute(tensors, **{name: order}))
        entry = check(a, b, **SHAPE)[0][name]
        assert entry["relation"] == "permuted" and entry["from"] is None and entry["to"] is None
        assert entry["moved"] == (order != np.arange(rows)).sum()
    mixed = sources(rows, grouped_starts()[:2], DIM, "half")  # one head this way, one that way: no pairing
    mixed[2 * DIM:] = sources(rows, grouped_starts()[2:], DIM, "interleaved")[2 * DIM:]
    write_safetensors(b, permute(tensors, **{name: mixed}))
    assert check(a, b)[0][name]["to"] is None


def test_check_where_rows_are_alike():
    """Zero rows and biases of few values: bytes decide, the known shape names the order."""
    a, b = PLACE / "a.safetensors", PLACE / "b.safetensors"
    q, k = pair_names()
    bias = q[:-6] + "bias"
    weights = RANDOM.standard_normal((Q, WIDTH)) * (RANDOM.uniform(size=(Q, 1)) < 0.4)
    tensors = {q: ("F32", (Q, WIDTH), as_bytes(weights, "F32")[0]), k: numbers(K, WIDTH),
               bias: ("F32", (Q,), as_bytes(RANDOM.integers(0, 3, Q).astype("f8"), "F32")[0])}
    write_safetensors(a, tensors)
    for to in OTHER:
        orders = {**plain_orders(to), bias: sources(Q, starts(HEADS), DIM, to)}
        write_safetensors(b, permute(tensors, **orders))
        found, answer = check(a, b, **SHAPE)
        assert answer["permuted"] == 3 and answer["to"] == to
        assert all(found[name]["heads"] == HEADS for name in (q, bias))
        assert check(a, b)[1]["permuted"] == 3


def test_check_finds_what_differs():
    a, b = PLACE / "a.safetensors", PLACE / "b.safetensors"
    q, k = pair_names()
    tensors = plain(**{"x": numbers(4, 3), "y": numbers(5)})
    write_safetensors(a, tensors)
    for change, name, why in (
            ({q: ("F32", (Q, WIDTH), tensors[q][2][:-1] + b"\1")}, q, "values"),
            ({"x": numbers(3, 4)}, "x", "shape"), ({"y": ("I32", (5,), tensors["y"][2])}, "y", "type"),
            ({"x": ("F32", (4, 3), tensors["x"][2][12:] + tensors["x"][2][12:24])}, "x", "values"),
            ({"x": ("F32", (4, 3), moved(tensors["x"][2], 12, np.roll(np.arange(12), 3)[::-1]))}, "x", "values")):
        write_safetensors(b, {**tensors, **change})
        found, answer = check(a, b, 1)
        assert (answer["different"], answer["identical"]) == (1, 3)
        assert (found[name]["relation"], found[name]["why"]) == ("different", why)
    write_safetensors(b, {**{n: t for n, t in tensors.items() if n != "x"}, "z": numbers(1)})
    found, answer = check(a, b, 1)
    assert found["x"]["relation"] == "only in A" and found["z"]["relation"] == "only in B"
    assert (answer["only_a"], answer["only_b"]) == (1, 1)
    done = run("--check", a, PLACE / "absent.safetensors")
    assert done.returncode == 2 and "absent.safetensors" in done.stderr and not done.stdout
    assert run("--check", a, b, to="half").returncode == 2


def test_check_between_formats():
    from weight_files import GGUF_TYPES
    assert GGUF_TYPES["F32"] == 0
    a, b = PLACE / "a.safetensors", PLACE / "b.gguf"
    words = {"self_attn.q_proj": ("attn_q", Q), "self_attn.k_proj": ("attn_k", K), "self_attn.v_proj": ("attn_v", V),
             "mlp.up_proj": ("ffn_up", 40), "input_layernorm": ("attn_norm", 0)}
    tensors, others = {"model.embed_tokens.weight": numbers(11, WIDTH)}, {}
    others["token_embd.weight"] = tensors["model.embed_tokens.weight"]
    for layer in range(2):
        for word, (other, rows) in words.items():
            one = numbers(rows, WIDTH) if rows else numbers(WIDTH)
            tensors[f"model.layers.{layer}.{word}.weight"] = one
            heads = {"self_attn.q_proj": HEADS, "self_attn.k_proj": KV}.get(word)
            if heads:
                one = (*one[:2], moved(one[2], rows, sources(rows, starts(heads), DIM, "interleaved")))
            others[f"blk.{layer}.{other}.weight"] = one
    write_safetensors(a, tensors)
    write_gguf(b, KEYS, others)
    found, answer = check(a, b)
    assert (answer["identical"], answer["permuted"], answer["to"]) == (7, 4, "interleaved")
    assert found["model.layers.1.self_attn.k_proj.weight"]["tensor_b"] == "blk.1.attn_k.weight"
    assert check(b, a)[1]["to"] == "half"


def peak_memory(words):
    """KiB. A child is charged with the peak of what it was forked from, so a small process starts it."""
    program = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    return int(subprocess.run([sys.executable, "-S", "-c", program, *words], capture_output=True, text=True,
                              check=True).stdout)


def write_large_pair(a, b, width, many):
    rows = RANDOM.integers(0, 256, (8, 4 * width), "u1")
    other = RANDOM.integers(0, 256, many, "u1")
    write_safetensors(a, {"wide": ("F32", (8, width), rows.tobytes()), "tall": ("U8", (many, 1), other.tobytes())})
    rows = rows[sources(8, [0], 8, "half")]
    write_safetensors(b, {"wide": ("F32", (8, width), rows.tobytes()),
                          "tall": ("U8", (many, 1), other[::-1].tobytes())})


def test_check_takes_little_memory():
    """Rows longer than its window, as many rows as are looked through, and one more."""
    a, b = PLACE / "a.safetensors", PLACE / "b.safetensors"
    for extra, relation in ((0, "permuted"), (1, "different")):
        write_large_pair(a, b, 3 << 18, (1 << 20) + extra)
        peak = peak_memory([PROGRAM, "convert", "--check", str(a), str(b)])
        assert peak < 64 * 1024 or "libasan" in os.environ.get("LD_PRELOAD", ""), peak
        found, _ = check(a, b, extra)
        assert (found["wide"]["to"], found["wide"]["rotary_dim"]) == ("half", 8)
        assert (found["tall"]["relation"], found["tall"].get("why")) == (relation, "rows" if extra else None)
    a.unlink()
    b.unlink()


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules[__name__]))
