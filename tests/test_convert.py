#!/usr/bin/env python3
"""posenc convert: which rows move, against NumPy; there and back; records; what is refused and leaves nothing behind.

usage: test_convert.py PROGRAM ROOT                                           SPDX-License-Identifier: MIT
"""
import json
import os
import struct
import subprocess
import sys

import numpy as np

import tap
from convert_cases import (DIM, GROUPED, HEADS, K, KEYS, KV, PLACE, PROGRAM, Q, RANDOM, SHAPE, SHARED, V,
                           WIDTH, check, check_both, check_safetensors, check_tensors, converted,
                           grouped_starts, numbers, pair_names, plain, plain_orders, raw, refused, run,
                           starts)
from convert_reference import OTHER, Gguf, moved, read_safetensors, sources
from weight_files import write_gguf, write_safetensors

# --- Layouts ---------------------------------------------------------------------------------------

SEPARATE = ["model.layers.{}.self_attn.{}_proj", "transformer.h.{}.attn.{}_proj", "layers.{}.attention.w{}",
            "model.decoder.layers.{}.self_attn.{}_proj", "base_model.model.model.layers.{}.self_attn.{}_proj"]
JOINED = ["model.layers.{}.self_attn.qkv_proj", "model.layers.{}.self_attn.W_pack", "transformer.blocks.{}.attn.Wqkv",
          "transformer.encoder.layers.{}.self_attention.query_key_value"]


def test_separate_projections_with_biases():
    for pattern in SEPARATE:
        names = {side: [pattern.format(layer, side) for layer in range(2)] for side in "qkv"}
        tensors = {"model.embed_tokens.weight": numbers(7, WIDTH)}
        for side, rows in (("q", Q), ("k", K), ("v", V)):
            for name in names[side]:
                tensors[name + ".weight"] = numbers(rows, WIDTH)
                tensors[name + ".bias"] = numbers(rows)
        check_both("separate.safetensors", tensors, lambda to, names=names: {
            name + end: sources(rows, starts(heads), DIM, to) for side, rows, heads in (("q", Q, HEADS), ("k", K, KV))
            for name in names[side] for end in (".weight", ".bias")}, **SHAPE)


def joined_starts(rotary_start=0):
    return starts(HEADS, start=rotary_start) + starts(KV, first=Q, start=rotary_start)


def test_fused_projections_in_three_orders():
    rows = Q + K + V
    for patterns, begins in ((JOINED, joined_starts()), (GROUPED, grouped_starts())):
        for pattern in patterns:
            names = [pattern.format(layer) for layer in range(2)]
            tensors = {name + end: numbers(*shape) for name in names
                       for end, shape in ((".weight", (rows, WIDTH)), (".bias", (rows,)))}
            check_both("fused.safetensors", tensors, lambda to, names=names, begins=begins: {
                name + end: sources(rows, begins, DIM, to) for name in names for end in (".weight", ".bias")}, **SHAPE)
    name = "gpt_neox.layers.0.attention.query_key_value.weight"  # by head: q, k, v of each
    begins = [(3 * head + i) * DIM for head in range(HEADS) for i in range(2)]
    check_both("by_head.safetensors", {name: numbers(3 * Q, WIDTH)},
               lambda to: {name: sources(3 * Q, begins, DIM, to)}, heads=HEADS, head_dim=DIM)


def test_partial_rotary_moves_rotary_rows_only():
    for rotary, start in ((8, 0), (4, 0), (12, 4), (8, 8), (6, 2)):
        check_both("partial.safetensors", plain(), lambda to, r=rotary, s=start: plain_orders(to, r, s),
                   rotary_dim=rotary, rotary_start=start, **SHAPE)
    write_safetensors(PLACE / "two.safetensors", plain())
    refused(PLACE / "two.safetensors", "rows that change", rotary_dim=2, **SHAPE)  # one pair: nothing to move


def test_norm_gains_of_one_head_and_of_all():
    names = [f"model.layers.0.self_attn.{side}_norm" for side in "qk"]
    for wide in (False, True):
        for shape_of in (lambda heads: (heads * DIM,), lambda heads: (heads, DIM)):
            if not wide and len(shape_of(1)) == 2:
                continue
            tensors = plain(**{name + end: numbers(*shape_of(heads if wide else 1)) for end in (".weight", ".bias")
                               for name, heads in zip(names, (HEADS, KV))})
            check_both("gains.safetensors", tensors, lambda to, wide=wide: {**plain_orders(to), **{
                name + end: sources((heads if wide else 1) * DIM, starts(heads if wide else 1), DIM, to)
                for end in (".weight", ".bias") for name, heads in zip(names, (HEADS, KV))}}, **SHAPE)
    tensors = plain(**{names[0] + ".weight": numbers(DIM)})
    check_both("gains.safetensors", tensors, lambda to: {
        **plain_orders(to, 8), names[0] + ".weight": sources(DIM, [0], 8, to)}, rotary_dim=8, **SHAPE)


def test_latent_attention_moves_the_rotary_block():
    start, latent = 8, 24
    for q_name in ("q_b_proj", "q_proj"):
        base = "model.layers.{}.self_attn."
        tensors = {}
        for layer in range(2):
            at = base.format(layer)
            tensors.update({at + q_name + ".weight": numbers(Q, WIDTH),
                            at + "kv_a_proj_with_mqa.weight": numbers(latent + 8, WIDTH),
                            at + "kv_a_proj_with_mqa.bias": numbers(latent + 8),
                            at + "kv_a_layernorm.weight": numbers(latent), at + "q_a_layernorm.weight": numbers(8),
                            at + "kv_b_proj.weight": numbers(HEADS * 24, latent)})

        def orders(to, q_name=q_name):
            return {base.format(layer) + name: sources(rows, begins, 8, to) for layer in range(2) for
                    name, rows, begins in ((q_name + ".weight", Q, starts(HEADS, start=start)),
                                           ("kv_a_proj_with_mqa.weight", latent + 8, [latent]),
                                           ("kv_a_proj_with_mqa.bias", latent + 8, [latent]))}
        check_both("latent.safetensors", tensors, orders, heads=HEADS, head_dim=DIM, rotary_start=start)


def test_a_gate_beside_every_head_stays():
    q, k = pair_names()
    output = "model.layers.0.self_attn.o_proj.weight"
    tensors = {q: numbers(2 * Q, WIDTH), k: numbers(K, WIDTH), output: numbers(WIDTH, Q)}
    check_both("gate.safetensors", tensors, lambda to: {
        q: sources(2 * Q, starts(HEADS, 2 * DIM), DIM, to), k: sources(K, starts(KV), DIM, to)}, **SHAPE)
    mlx = {name[:-6] + end: value for name, rows in ((q, 2 * Q), (k, K), (output, WIDTH)) for end, value in (
        ("weight", raw("U32", (rows, WIDTH // 8), WIDTH // 2)), ("scales", numbers(rows, 1)))}  # o_proj tells nothing
    orders = {name + end: sources(rows, begins, DIM, "half") for name, rows, begins in (
        (q[:-6], 2 * Q, starts(HEADS, 2 * DIM)), (k[:-6], K, starts(KV))) for end in ("weight", "scales")}
    check_safetensors(write_folder({**LLAMA, "model_type": "cohere"}, mlx), "half", orders)
    for output_columns in (2 * Q, None):  # then it is no gate, but a wrong number of heads
        tensors = {q: numbers(2 * Q, WIDTH), k: numbers(K, WIDTH)}
        if output_columns:
            tensors[output] = numbers(WIDTH, output_columns)
        write_safetensors(PLACE / "wrong.safetensors", tensors)
        refused(PLACE / "wrong.safetensors", "wrong.safetensors", q, "is 128", "gate", **SHAPE)


def random_case():
    """A layout of random sizes: options, tensors, orders."""
    kv, group = (int(RANDOM.integers(1, 5)) for _ in range(2))
    heads, dim = kv * group, 2 * int(RANDOM.integers(2, 20))
    start = int(RANDOM.integers(0, dim - 3)) if RANDOM.integers(2) else 0
    rotary = 2 * int(RANDOM.integers(2, (dim - start) // 2 + 1))
    q, k, v = heads * dim, kv * dim, kv * dim
    layout = RANDOM.choice(["separate", "joined", "grouped"])
    if layout == "separate":
        sides = {"m.layers.0.self_attn.q_proj": (q, starts(heads, dim, 0, start)),
                 "m.layers.0.self_attn.k_proj": (k, starts(kv, dim, 0, start))}
    elif layout == "joined":
        sides = {"m.layers.0.self_attn.qkv_proj": (q + k + v, starts(heads + kv, dim, 0, start))}
    else:
        sides = {"m.h.0.attention.query_key_value": (q + k + v, [
            (g * (group + 2) + i) * dim + start for g in range(kv) for i in range(group + 1)])}
    dtype = str(RANDOM.choice(["F32", "F16", "BF16"]))
    tensors = {name + end: numbers(*shape, dtype=dtype) for name, (rows, _) in sides.items()
               for end, shape in ((".weight", (rows, int(RANDOM.integers(1, 9)))), (".bias", (rows,)))}
    options = {"heads": heads, "kv_heads": kv, "head_dim": dim, "rotary_dim": rotary, "rotary_start": start}
    return options, tensors, lambda to: {name + end: sources(rows, begins, rotary, to) for name, (rows, begins) in
                                         sides.items() for end in (".weight", ".bias")}


def test_random_shapes():
    for _ in range(400 if os.environ.get("POSENC_LONG") else 25):
        options, tensors, orders_of = random_case()
        try:
            check_both("random.safetensors", tensors, orders_of, **options)
        except AssertionError:
            print(f"# {options} {[(name, shape) for name, (_, shape, _) in tensors.items()]}")
            raise


# --- What moves along --------------------------------------------------------------------------------

def test_lora():
    rank, base = 6, "base_model.model.model.layers.3.self_attn."
    for end in (".lora_{}.weight", ".lora_{}.default.weight"):
        tensors, rows = {}, {"q": (Q, HEADS), "k": (K, KV), "v": (V, KV)}
        for side, (count, _) in rows.items():
            tensors[f"{base}{side}_proj{end.format('A')}"] = numbers(rank, WIDTH, dtype="F16")
            tensors[f"{base}{side}_proj{end.format('B')}"] = numbers(count, rank, dtype="F16")
            tensors[f"{base}{side}_proj.lora_magnitude_vector"] = numbers(count)
        check_both("adapter_model.safetensors", tensors, lambda to, end=end, rows=rows: {
            f"{base}{side}_proj{e}": sources(rows[side][0], starts(rows[side][1]), DIM, to)
            for side in "qk" for e in (end.format("B"), ".lora_magnitude_vector")}, **SHAPE)
    only_k = {f"{base}k_proj.lora_A.weight": numbers(rank, WIDTH), f"{base}k_proj.lora_B.weight": numbers(K, rank),
              f"{base}v_proj.lora_B.weight": numbers(V, rank)}
    check_both("only_k.safetensors", only_k, lambda to: {
        f"{base}k_proj.lora_B.weight": sources(K, starts(KV), DIM, to)}, **SHAPE)
    fused = "base_model.model.model.layers.0.self_attn.qkv_proj.lora_B.weight"
    check_both("fused_lora.safetensors", {fused: numbers(Q + K + V, rank)}, lambda to: {
        fused: sources(Q + K + V, joined_starts(), DIM, to)}, **SHAPE)


def test_an_adapter_takes_its_models_shape():
    base, adapter = PLACE / "base", PLACE / "adapter"
    base.mkdir()
    adapter.mkdir()
    (base / "config.json").write_text(json.dumps({**LLAMA, "num_hidden_layers": 4}))
    name = "base_model.model.model.layers.3.self_attn.k_proj.lora_B.weight"
    write_safetensors(adapter / "adapter_model.safetensors", {name: numbers(K, 6)})
    path = adapter / "adapter_model.safetensors"
    for text, words in (('{"base_model_name_or_path": "/nowhere"}', "given"), ("{}", "given"), ("{", "adapter_config")):
        (adapter / "adapter_config.json").write_text(text)
        refused(path, words)
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base), "r": 6}))
    answer = check_safetensors(path, "interleaved", {name: sources(K, starts(KV), DIM, "interleaved")})
    assert answer["model_type"] == "llama" and answer["implied"] == "half"
    assert "adapter" in [r["code"] for r in answer["remarks"]]


def test_shards_hold_what_belongs_together():
    """q, k and their scales in different files: one plan, a record in the files that change and in no other."""
    folder = PLACE / "sharded"
    folder.mkdir()
    q, k = pair_names()
    parts = [{q: raw("F8_E4M3", (Q, WIDTH), WIDTH)}, {k: raw("F8_E4M3", (K, WIDTH), WIDTH)},
             {q + "_scale": numbers(Q, 1), k[:-6] + "bias": numbers(K)}, {"model.norm.weight": numbers(WIDTH)}]
    names = [f"model-{i + 1:05d}-of-00004.safetensors" for i in range(4)]
    for name, part in zip(names, parts):
        write_safetensors(folder / name, part)
    index = {"metadata": {}, "weight_map": {key: name for name, part in zip(names, parts) for key in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    out, back = PLACE / "sharded_out", PLACE / "sharded_back"
    assert run(folder, out, to="half", **SHAPE).returncode == 0
    orders = {q: (Q, HEADS), k: (K, KV), q + "_scale": (Q, HEADS), k[:-6] + "bias": (K, KV)}
    for i, (name, part) in enumerate(zip(names, parts)):
        header, tensors = read_safetensors(out / name)
        check_tensors({key: data for key, (_, _, data) in part.items()}, tensors, {
            key: sources(rows, starts(heads), DIM, "half") for key, (rows, heads) in orders.items() if key in part})
        assert (header.get("__metadata__") or {}).get("posenc.pairing", "").endswith(f"tensors={(1, 1, 2, 0)[i]}") == (i < 3)
    assert run(out, back, to="interleaved").returncode == 0
    for name in [*names, "model.safetensors.index.json"]:
        assert (back / name).read_bytes() == (folder / name).read_bytes()
    whole = (out / names[1]).read_bytes()
    (out / names[1]).write_bytes((folder / names[1]).read_bytes())  # one shard of the other order
    refused(out, names[1], "in part", to="interleaved")
    (out / names[1]).write_bytes(whole)
    other = PLACE / "other.safetensors"
    assert run(folder / names[1], other, to="half", heads=2, head_dim=16).returncode == 2  # a lone k: no plan
    record = read_safetensors(out / names[0])[0]["__metadata__"]["posenc.pairing"]
    write_safetensors(out / names[1], parts[1], {"posenc.pairing": record.replace("half", "interleaved")})
    refused(out, names[1], "same in all files", to="interleaved")


def test_lora_of_mlx_moves_columns():
    name, rank = "model.layers.30.self_attn.q_proj.lora_b", 5
    tensors = {name: numbers(rank, Q), "model.layers.30.self_attn.q_proj.lora_a": numbers(WIDTH, rank)}
    check_both("mlx.safetensors", tensors, lambda to: {name: np.concatenate(
        [row * Q + sources(Q, starts(HEADS), DIM, to) for row in range(rank)])}, **SHAPE)
    path = SHARED / "data/models/ollama_tiny/discollama_adapters.safetensors"
    if not path.is_file():
        return "no ../shared: its published adapters"
    order = {to: np.concatenate([row * 4096 + sources(4096, starts(32, 128), 128, to) for row in range(8)])
             for to in OTHER}
    for to in OTHER:
        check_safetensors(path, to, {f"model.layers.{n}.self_attn.q_proj.lora_b": order[to] for n in (30, 31)},
                          heads=32, kv_heads=8, head_dim=128)
    return None


def test_scales_of_rows_move_and_of_whole_blocks_stay():
    q, k = (name.removesuffix(".weight") for name in pair_names())
    rows = {q: (Q, HEADS), k: (K, KV)}

    def orders(ends):
        return lambda to: {name + end: sources(count, starts(heads), DIM, to)
                           for name, (count, heads) in rows.items() for end in ends}
    for scale_shape in (lambda n: (n,), lambda n: (n, 1), lambda n: (n, 3)):
        tensors = {q + ".weight": raw("F8_E4M3", (Q, WIDTH), WIDTH), k + ".weight": raw("F8_E4M3", (K, WIDTH), WIDTH)}
        for name, (count, _) in rows.items():
            tensors[name + ".weight_scale"] = numbers(*scale_shape(count))
            tensors[name + ".input_scale"] = numbers()
            tensors[name + ".bias"] = numbers(count, dtype="BF16")
        check_both("scales.safetensors", tensors, orders((".weight", ".weight_scale", ".bias")), **SHAPE)
    packed = {}
    for name, (count, _) in rows.items():  # compressed-tensors: 8 numbers of 4 bits in each int32, along the row
        packed[name + ".weight_packed"] = raw("I32", (count, WIDTH // 8), WIDTH // 2)
        packed[name + ".weight_scale"] = numbers(count, 2, dtype="BF16")
        packed[name + ".weight_shape"] = ("I64", (2,), struct.pack("<2q", count, WIDTH))
    check_both("packed.safetensors", packed, orders((".weight_packed", ".weight_scale")), **SHAPE)
    mlx = {}
    for name, (count, _) in rows.items():
        mlx[name + ".weight"] = raw("U32", (count, WIDTH // 8), WIDTH // 2)
        mlx[name + ".scales"], mlx[name + ".biases"] = (numbers(count, 3, dtype="F16") for _ in range(2))
    check_both("mlx.safetensors", mlx, orders((".weight", ".scales", ".biases")), **SHAPE)
    for block in (16, 32):  # one head, two heads
        whole = {}
        for name, (count, _) in rows.items():
            whole[name + ".weight"] = raw("F8_E4M3", (count, WIDTH), WIDTH)
            whole[name + ".weight_scale_inv"] = numbers(count // block, 2)
        check_both("blocks.safetensors", whole, orders((".weight",)), **SHAPE)
        write_safetensors(PLACE / "cut.safetensors", {
            q + ".weight": raw("F8_E4M3", (24 * 8, WIDTH), WIDTH), k + ".weight": raw("F8_E4M3", (24 * 8, WIDTH), WIDTH),
            q + ".weight_scale_inv": numbers(24 * 8 // block, 1)})
        refused(PLACE / "cut.safetensors", "cut.safetensors", q + ".weight_scale_inv", f"block is {block}", heads=8,
                head_dim=24)
    write_safetensors(PLACE / "odd.safetensors", {**plain(), q + ".weight_scale_inv": numbers(5, 2)})
    refused(PLACE / "odd.safetensors", q + ".weight_scale_inv", "is 5", **SHAPE)


def test_every_type_of_numbers():
    q, k = pair_names()
    for dtype, size in (("F64", 8), ("F32", 4), ("F16", 2), ("BF16", 2), ("F8_E4M3", 1), ("F8_E5M2", 1), ("I8", 1)):
        tensors = {q: raw(dtype, (Q, WIDTH), size * WIDTH), k: raw(dtype, (K, WIDTH), size * WIDTH)}
        check_both("type.safetensors", tensors, plain_orders, **SHAPE)


# --- Headers ------------------------------------------------------------------------------------------

def write_header(path, text, tensors, pad=0):
    """A file with exactly this header."""
    text = text.encode() + b" " * pad
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def header_of(tensors, metadata, compact):
    header, at = {}, 0
    if metadata != "absent":
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    return json.dumps(header, separators=(",", ":") if compact else None)


def test_there_and_back_is_the_same_file_whatever_its_header():
    tensors = plain(**{"other.weight": numbers(3, 5)})
    path = PLACE / "header.safetensors"
    for metadata in ("absent", None, {}, {"format": "pt"}, {"a": "b" * 300, "format": "pt"}, {"posenc": "x"}):
        for compact in (False, True):
            text = header_of(tensors, metadata, compact)
            for pad in (0, 1, 7, 40):
                write_header(path, text, tensors, pad)
                check_safetensors(path, "interleaved", plain_orders("interleaved"), **SHAPE)
    text = header_of(tensors, {"z": "1", "a": "2"}, False)
    last = text.replace('"__metadata__": {"z": "1", "a": "2"}, ', "")[:-1] + ', "__metadata__" :{ "z"\t: "1",\n"a":"2" } }'
    for odd in (last, text.replace("{", "{ ").replace("}", " }")[0:1] + text[1:], text.replace('{"z"', '{ "z"'),
                text.replace('{"z"', '{  "z"'), text.replace('{"z": "1", "a": "2"}', "{ }"),
                text.replace('{"z": "1", "a": "2"}', "{  }"), text.replace('{"z": "1", "a": "2"}', "{\n}")):
        write_header(path, odd, tensors, 3)
        check_safetensors(path, "half", plain_orders("half"), **SHAPE)


def test_records_that_others_have_written_anew():
    tensors = plain()
    path = PLACE / "header.safetensors"
    for metadata in ("absent", {"format": "pt"}, {"z": "y", "a": "b"}):
        write_header(path, header_of(tensors, metadata, True), tensors)
        out, _ = converted(path, "interleaved", **SHAPE)
        header, data = read_safetensors(out)
        record = header["__metadata__"]["posenc.pairing"]
        texts = [(key, value) for key, value in header["__metadata__"].items() if key != "posenc.pairing"]
        changed = {name: (dtype, shape, data[name]) for name, (dtype, shape, _) in tensors.items()}
        for place in range(len(texts) + 1):
            anew = dict(texts[:place] + [("posenc.pairing", record)] + texts[place:])
            for compact in (False, True):
                for indent in (None, 2):
                    text = json.dumps({"__metadata__": anew, **{k: v for k, v in header.items() if k != "__metadata__"}},
                                      separators=(",", ":") if compact else None, indent=indent)
                    write_header(path, text, changed)
                    back, _ = converted(path, "half")
                    left, rows = read_safetensors(back)
                    assert (left.get("__metadata__") or {}) == dict(texts)
                    assert rows == {name: body for name, (_, _, body) in tensors.items()}


def gguf_model(kinds, dtype="F32", width=256):
    tensors = {"token_embd.weight": raw("F32", (5, width), 4 * width)}
    for layer in range(2):
        for side, rows in (("q", Q), ("k", K), ("v", V)):
            elements, size = Gguf.BLOCKS[kinds[dtype]]
            tensors[f"blk.{layer}.attn_{side}.weight"] = raw(dtype, (rows, width), width // elements * size)
            tensors[f"blk.{layer}.attn_{side}.bias"] = raw("F32", (rows,), 4 * rows)
        tensors[f"blk.{layer}.attn_q_norm.weight"] = raw("F32", (DIM,), 4 * DIM)
    return tensors


def check_gguf(path, to, **options):
    out, answer = converted(path, to, force=True, **options)
    old, new = Gguf(path), Gguf(out)
    kind, value = new.keys.pop("posenc.pairing")
    assert kind == 8 and value.split()[0].endswith(to.encode())
    assert list(old.keys.items()) == list(new.keys.items()) and old.version == new.version
    assert [(n, k, s) for n, (k, s, _) in old.tensors.items()] == [(n, k, s) for n, (k, s, _) in new.tensors.items()]
    orders = {}
    for layer in range(2):
        for side, rows, heads in (("q", Q, HEADS), ("k", K, KV)):
            for end in (".weight", ".bias"):
                orders[f"blk.{layer}.attn_{side}{end}"] = sources(rows, starts(heads), DIM, to)
        orders[f"blk.{layer}.attn_q_norm.weight"] = sources(DIM, [0], DIM, to)
    check_tensors({n: d for n, (_, _, d) in old.tensors.items()}, {n: d for n, (_, _, d) in new.tensors.items()}, orders)
    back = PLACE / "back.gguf"
    done = run(out, back, to=OTHER[to], force=True)
    assert done.returncode == 0, done.stderr
    assert back.read_bytes() == path.read_bytes()
    return answer


def test_gguf_moves_quantised_rows_whole():
    from weight_files import GGUF_TYPES
    path = PLACE / "model.gguf"
    for dtype in ("F32", "F16", "BF16", "Q4_0", "Q8_0", "Q4_K", "Q6_K"):
        write_gguf(path, KEYS, gguf_model(GGUF_TYPES, dtype))
        for to in OTHER:
            check_gguf(path, to)


def test_gguf_of_every_version_order_and_alignment():
    from weight_files import GGUF_TYPES
    path = PLACE / "model.gguf"
    for version in (1, 2, 3):
        for order in "<>":
            for alignment in (None, 1, 8, 64, 4096):
                keys = {**KEYS, **({"general.alignment": alignment} if alignment else {})}
                write_gguf(path, keys, gguf_model(GGUF_TYPES), version=version, order=order,
                           alignment=alignment or 32, tail=b"abc")
                check_gguf(path, "interleaved")


def test_a_gguf_needs_force_unless_its_name_is_served():
    from weight_files import GGUF_TYPES
    path = PLACE / "model.gguf"
    write_gguf(path, KEYS, gguf_model(GGUF_TYPES))
    refused(path, "qwen2", "architecture", "--force does it all the same")
    refused(path, "half", "from", to="half")  # which is what the name says already
    out, answer = converted(path, "half", **{"from": "interleaved"})
    assert [r["code"] for r in answer["remarks"] if r["code"].startswith("reads-")] == ["reads-rightly", "reads-when-told"]
    out, answer = converted(path, "interleaved", force=True)
    codes = [r["code"] for r in answer["remarks"]]
    assert "forced" in codes and "reads-wrongly" in codes
    out.rename(path)
    refused(path, "record", "interleaved", to="interleaved", force=True)
    _, answer = converted(path, "half")  # back to what the name says: no force
    assert answer["recorded"] == "interleaved" and not answer["records"]


# --- Records ------------------------------------------------------------------------------------------

def test_records():
    path = PLACE / "plain.safetensors"
    write_safetensors(path, plain())
    out, answer = converted(path, "half", **SHAPE)
    assert answer["records"] and answer["recorded"] is None and answer["from"] == "interleaved"
    record = read_safetensors(out)[0]["__metadata__"]["posenc.pairing"]
    assert record == "half heads=4 kv_heads=2 head_dim=16 rotary_start=0 rotary_dim=16 tensors=2"
    copy = PLACE / "copy.safetensors"
    out.rename(copy)
    refused(copy, "copy.safetensors", "record", "half", to="half")
    refused(copy, "from", "interleaved", to="interleaved", **{"from": "interleaved"})
    refused(copy, "heads is 2", "there is 4", heads=2)
    refused(copy, "rotary_dim is 8", rotary_dim=8)
    _, answer = converted(copy, "interleaved", **{"from": "half"})
    assert answer["recorded"] == "half" and not answer["records"]
    for text in ("both", "half", "half heads=4", record + " shapes=1 ", record.replace("half", "Half"), record + "x"):
        write_safetensors(PLACE / "odd.safetensors", plain(), {"posenc.pairing": text})
        refused(PLACE / "odd.safetensors", "odd.safetensors", "posenc.pairing", **SHAPE)
    refused(path, "from", "half", to="half", **{"from": "half"}, **SHAPE)


def test_a_dry_run_writes_nothing():
    path = PLACE / "dry.safetensors"
    write_safetensors(path, plain())
    before = sorted(PLACE.iterdir())
    done = run(path, PLACE / "nothing", "--dry-run", to="half", **SHAPE)
    assert done.returncode == 0 and sorted(PLACE.iterdir()) == before
    for name in pair_names():
        assert name in done.stdout
    assert "56 of       64 rows" in done.stdout and "would move" in done.stdout
    assert run(path, "--dry-run", to="half", **SHAPE).stdout == done.stdout
    assert "OUT is missing" in run(path, to="half", **SHAPE).stderr and "IN [OUT]" in run(to="half").stderr


# --- Configurations -------------------------------------------------------------------------------------

def write_folder(config, tensors, name="folder"):
    folder = PLACE / name
    folder.mkdir(exist_ok=True)
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(config))
    return folder / "model.safetensors"


LLAMA = {"model_type": "llama", "hidden_size": HEADS * DIM, "num_attention_heads": HEADS, "num_key_value_heads": KV,
         "num_hidden_layers": 1}


def test_the_config_beside_the_weights():
    path = write_folder(LLAMA, plain())
    answer = check_safetensors(path, "interleaved", plain_orders("interleaved"))
    texts = [r["text"] for r in answer["remarks"] if r["code"] == "reads-wrongly"]
    assert len(texts) == 2 and all("half" in text and "WRONGLY" in text for text in texts)
    assert "llama" in texts[0] and "GGUF" in texts[1]
    refused(path, "half", "from", to="half")
    assert check_safetensors(path, "half", plain_orders("half"), **{"from": "interleaved"})["implied"] == "half"
    path = write_folder({**LLAMA, "model_type": "cohere"}, plain())
    answer = check_safetensors(path, "half", plain_orders("half"))
    assert answer["implied"] == "interleaved" and answer["from"] == "interleaved"
    path = write_folder({**LLAMA, "model_type": "phi", "partial_rotary_factor": 0.5}, plain())
    check_safetensors(path, "interleaved", plain_orders("interleaved", 8))
    path = write_folder({**LLAMA, "model_type": "glm", "head_dim": DIM, "partial_rotary_factor": 0.5}, plain())
    check_safetensors(path, "half", plain_orders("half", 8))


def test_layers_that_do_not_rotate_and_layers_of_other_shapes():
    tensors, orders = {}, {}
    for layer in range(8):
        q, k = pair_names(layer)
        tensors.update({q: numbers(Q, WIDTH), k: numbers(K, WIDTH)})
        if (layer + 1) % 4:
            orders.update({q: sources(Q, starts(HEADS), DIM, "interleaved"),
                           k: sources(K, starts(KV), DIM, "interleaved")})
    path = write_folder({**LLAMA, "model_type": "smollm3", "num_hidden_layers": 8}, tensors)
    check_safetensors(path, "interleaved", orders)
    lone, _ = converted(path, "interleaved")  # nothing beside it says which layers moved
    refused(lone.rename(PLACE / "lone.safetensors"), "tensors=12", "is 16", to="half")
    words = ["full_attention", "sliding_attention"]
    path = write_folder({**LLAMA, "model_type": "laguna", "num_hidden_layers": 2, "head_dim": DIM, "layer_types": words,
                         "rope_parameters": {word: {"rope_theta": 10000, "partial_rotary_factor": part}
                                             for word, part in zip(words, (0.5, 1.0))}},
                        {name: tensors[name] for layer in range(2) for name in pair_names(layer)})
    check_safetensors(path, "interleaved", {
        name: sources(rows, starts(heads), rotary, "interleaved") for layer, rotary in enumerate((8, 16))
        for name, rows, heads in zip(pair_names(layer), (Q, K), (HEADS, KV))})
    lone, _ = converted(path, "interleaved")
    lone = lone.rename(PLACE / "lone.safetensors")
    refused(lone, "given", to="half")
    refused(lone, "shapes=2", to="half", **SHAPE)


def test_models_that_must_not_be_touched():
    cases = [("bloom", {"n_head": 4}, ("alibi", "bloom")), ("gpt2", {"n_head": 4, "n_embd": 64}, ("learned", "gpt2")),
             ("nobody_knows", {}, ("model_type", "nobody_knows", "rotary_dim")),
             ("roformer", {}, ("values", "roformer")),
             ("qwen2_vl", {"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}, ("axes", "sections"))]
    for name, more, words in cases:
        path = write_folder({**LLAMA, "model_type": name, **more}, plain())
        other = "half" if name == "roformer" else "interleaved"
        refused(path, *words, "forced", to=other)
        out, answer = converted(path, other, force=True, **SHAPE)
        assert any(r["code"] == "forced" and words[0] in r["text"] for r in answer["remarks"])
    path = write_folder({**LLAMA, "model_type": "nobody_knows"}, plain())
    check_safetensors(path, "interleaved", plain_orders("interleaved", 8), rotary_dim=8)


# --- Refused ----------------------------------------------------------------------------------------------

def test_packed_formats():
    q, k = (name.removesuffix(".weight") for name in pair_names())
    gptq = {q + ".qweight": raw("I32", (WIDTH // 8, Q), 4 * Q), q + ".qzeros": raw("I32", (1, Q // 8), Q // 2),
            q + ".scales": numbers(1, Q), q + ".g_idx": raw("I32", (WIDTH,), 4 * WIDTH)}
    awq = {q + ".qweight": raw("I32", (WIDTH, Q // 8), Q // 2), q + ".qzeros": raw("I32", (1, Q // 8), Q // 2),
           q + ".scales": numbers(1, Q)}
    bits = {q + ".weight": raw("U8", (Q * WIDTH // 2, 1), 1), q + ".weight.absmax": numbers(24),
            q + ".weight.quant_map": numbers(16), q + ".weight.quant_state.bitsandbytes__nf4": raw("U8", (80,), 80)}
    eight = {q + ".weight": raw("I8", (Q, WIDTH), WIDTH), q + ".SCB": numbers(Q), k + ".weight": numbers(K, WIDTH)}
    for tensors, words in ((gptq, ("GPTQ",)), (awq, ("AWQ",)), (bits, ("bitsandbytes",)), (eight, ("bitsandbytes",)),
                           (plain(**{q + ".codebook": numbers(3)}), (q + ".codebook", "known")),
                           (plain(**{k + ".k_scale": numbers(K)}), (k + ".k_scale", "32"))):
        write_safetensors(PLACE / "packed.safetensors", tensors)
        for force in ({}, {"force": True}):
            refused(PLACE / "packed.safetensors", "packed.safetensors", *words, **force, **SHAPE)


def test_pickles():
    for start in (b"PK\x03\x04", b"\x80\x02}q\x00"):
        (PLACE / "pytorch_model.bin").write_bytes(start + b"\0" * 100)
        refused(PLACE / "pytorch_model.bin", "pickle", "safetensors.torch.save_file", **SHAPE)
    (PLACE / "pytorch_model.bin").unlink()
    folder = PLACE / "pickled"
    folder.mkdir()
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    (folder / "config.json").write_text(json.dumps(LLAMA))
    refused(folder, "safetensors.torch.save_file", **SHAPE)


def test_keys_that_are_values_too():
    v = "model.layers.{}.self_attn.v_proj.weight"
    tensors = {}
    for layer in range(2):
        tensors.update({name: numbers(rows, WIDTH) for name, rows in zip(pair_names(layer), (Q, K))})
    tensors[v.format(0)] = numbers(V, WIDTH)
    write_safetensors(PLACE / "shared.safetensors", tensors)
    refused(PLACE / "shared.safetensors", v.format(1), "values", **SHAPE)
    tensors[v.format(1)] = numbers(V, WIDTH)
    tensors["model.layers.1.self_attn.indexer.wk.weight"] = numbers(K, WIDTH)
    write_safetensors(PLACE / "shared.safetensors", tensors)
    refused(PLACE / "shared.safetensors", "indexer", **SHAPE)


def test_other_stacks_of_layers():
    def stack(prefix, layers=1, rows=(Q, K)):
        return {f"{prefix}layers.{layer}.self_attn.{side}_proj.weight": numbers(count, WIDTH)
                for layer in range(layers) for side, count in zip("qk", rows)}

    def orders(prefix, layers):
        return {f"{prefix}layers.{layer}.self_attn.{side}_proj.weight": sources(rows, starts(heads), DIM, "half")
                for layer in range(layers) for side, rows, heads in (("q", Q, HEADS), ("k", K, KV))}
    path = PLACE / "stacks.safetensors"
    write_safetensors(path, {**stack("vision_tower.", 5, (48, 48)), **stack("model.", 2), **stack("mtp.")})
    answer = check_safetensors(path, "half", {**orders("model.", 2), **orders("mtp.", 1)}, **SHAPE)
    assert "tower-stays" in [r["code"] for r in answer["remarks"]]
    write_safetensors(path, {**stack("model.", 2), **stack("depth.")})
    refused(path, "depth.", "forced", **SHAPE)
    out, _ = converted(path, "half", force=True, **SHAPE)
    check_tensors(read_safetensors(path)[1], read_safetensors(out)[1], orders("model.", 2))
    write_safetensors(path, stack("vision_model."))
    refused(path, "vision_model.", "pictures", **SHAPE)


def test_bad_input_names_file_tensor_and_numbers():
    q, k = pair_names()
    path = PLACE / "bad.safetensors"
    write_safetensors(path, plain())
    refused(path, "bad.safetensors", q, "64", "96", heads=6, kv_heads=2, head_dim=16)
    refused(path, k, "32", "64", heads=4, head_dim=16)
    refused(path, "kv_heads", "3", heads=4, kv_heads=3, head_dim=16)
    refused(path, "rotary_dim", "20", rotary_dim=20, **SHAPE)
    refused(path, "rotary_dim", "7", "even", rotary_dim=7, **SHAPE)
    refused(path, "heads", "given", kv_heads=2)
    refused(path, "--to", to="alternate", **SHAPE)
    write_safetensors(path, {q: plain()[q]})
    refused(path, "bad.safetensors", k, **SHAPE)
    for change, words in (({q: ("F32", (64, 8, 3), plain()[q][2])}, ("rows", q)),
                          ({q[:-6] + "bias": numbers(3)}, ("is 3", "64", "q_proj.bias")),
                          ({q.replace("proj", "norm"): numbers(5)}, ("is 5", "q_norm")),
                          ({q[:-6] + "weight_scale": numbers(7, 9)}, ("7", "weight_scale"))):
        write_safetensors(path, {**plain(), **change})
        refused(path, "bad.safetensors", *words, **SHAPE)
    write_safetensors(path, plain())
    whole = path.read_bytes()
    length = struct.unpack_from("<Q", whole)[0]
    header = whole[8:8 + length].decode()
    begin = header.index(q)
    for odd, words in ((header.replace('"F32"', '"F33"', 1), ("dtype", q)),
                       (header.replace("[0, 6144]", "[0, 6148]"), ("data_offsets", q)),
                       (header.replace("[6144, 9216]", "[3072, 6144]"), (k,)),
                       (header.replace(k, q), (q,)), (header[:begin] + header[begin + 5:], ("header",))):
        write_header(path, odd, plain())
        refused(path, "bad.safetensors", *(words if words != ("header",) else ()), **SHAPE)
    path.write_bytes(whole[:-1])
    refused(path, "bad.safetensors", **SHAPE)
    refused(PLACE / "absent.safetensors", "absent.safetensors", **SHAPE)


def test_a_config_that_contradicts_the_tensors():
    path = write_folder({**LLAMA, "num_attention_heads": 8}, plain())  # then heads are 8 wide and k does not fit
    refused(path, "k_proj", "32")
    path = write_folder({**LLAMA, "head_dim": 32}, plain())
    refused(path, "q_proj", "64", "128")
    path = write_folder(LLAMA, plain())
    refused(path, "heads is 8", "there is 4", "forced", heads=8, head_dim=8)
    path = write_folder({**LLAMA, "num_hidden_layers": 2}, plain())
    refused(path, "layers.1", "forced")
    index = {"weight_map": {name: "model-00001-of-00002.safetensors" for name in pair_names()}}
    (PLACE / "folder/model.safetensors.index.json").write_text(json.dumps(index))
    refused(PLACE / "folder/model.safetensors.index.json", "model-00001-of-00002.safetensors")
    (PLACE / "folder/model.safetensors.index.json").unlink()


# --- Real files -------------------------------------------------------------------------------------------

def detect(path, **shape):
    words = [text for key, value in shape.items() for text in (f"--{key.replace('_', '-')}", str(value))]
    done = subprocess.run([PROGRAM, "detect", str(path), "--json", *words], capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["pairing"]


def orders_of_file(path, to):
    header, _ = read_safetensors(path)
    metadata = header.pop("__metadata__")
    heads, kv, dim = (int(metadata[key]) for key in ("heads", "kv_heads", "head_dim"))
    rotary = int(metadata.get("rotary_dim") or dim)
    orders = {}
    for name, entry in header.items():
        count = heads if ".q_" in name else kv
        if "_norm" in name:
            count = int(np.prod(entry["shape"])) // dim
        if ".q_" in name or ".k_" in name:
            orders[name] = sources(count * dim, starts(count, dim), rotary, to)
    return metadata, orders


def test_trained_models():
    """Every tensor is NumPy's, there and back is the same file, and the weights then tell the other pairing."""
    paths = sorted((SHARED / "data/models/qk").glob("*.safetensors")) + \
        sorted((SHARED / "data/models/own_trained").glob("*.safetensors"))
    if not paths:
        return "no ../shared"
    trials, undetermined = 0, 0
    for path in paths:
        metadata, _ = orders_of_file(path, "half")
        right = metadata["position"].removeprefix("rope-")
        rotary = right in OTHER
        for to in (OTHER[right],) if rotary else OTHER:
            check_safetensors(path, to, orders_of_file(path, to)[1])
            _, answer = check(path, PLACE / "out.safetensors")
            assert answer["to"] in (to, None) and not answer["different"]
        if not rotary or "_step0" in path.name:
            continue
        shape = {key: metadata[key] for key in ("heads", "kv_heads", "head_dim", "rotary_dim") if key in metadata}
        for pairing in OTHER:
            out = path if pairing == right else converted(path, pairing)[0]
            header, tensors = read_safetensors(out)
            write_safetensors(PLACE / "bare.safetensors", {name: (header[name]["dtype"], header[name]["shape"], data)
                                                           for name, data in tensors.items()})
            found = detect(PLACE / "bare.safetensors", **shape)
            trials, undetermined = trials + 1, undetermined + (found == "undetermined")
            assert found in (pairing, "undetermined"), (path, pairing, found)
    print(f"# {trials} trials, {undetermined} undetermined")
    assert trials == 24 and undetermined <= 1
    return None


def test_real_files():
    if not SHARED.is_dir():
        return "no ../shared"
    tiny = SHARED / "data/models/paged_infer_tiny"
    orders = {f"model.layers.{n}.self_attn.{side}_proj.weight": sources(rows, starts(heads, 24), 24, "interleaved")
              for n in range(2) for side, rows, heads in (("q", 96, 4), ("k", 48, 2))}
    check_safetensors(tiny / "tiny_llama.safetensors", "interleaved", orders)
    path = SHARED / "data/models/ollama_tiny/llama-2-tiny-random.gguf"
    out, _ = converted(path, "half", force=True)
    old, new = Gguf(path), Gguf(out)
    for name, (_, shape, data) in old.tensors.items():
        order = sources(shape[0], starts(shape[0] // 4, 4), 4, "half") if "attn_q." in name or "attn_k." in name else None
        assert new.tensors[name][2] == (data if order is None else moved(data, shape[0], order)), name
    back, _ = converted(out.rename(PLACE / "there.gguf"), "interleaved")
    assert back.read_bytes() == path.read_bytes()
    return None


def test_llama2c():
    path = SHARED / "data/models/stories260K/stories260K.bin"
    if not path.is_file():
        return "no ../shared"
    refused(path, "forced", to="half")
    out, answer = converted(path, "half", force=True)
    assert not answer["records"] and "no-record" in [r["code"] for r in answer["remarks"]]
    old, new = path.read_bytes(), out.read_bytes()
    dim, hidden, layers, heads, kv, vocabulary, _ = struct.unpack("<7i", old[:28])
    at = 28 + 4 * (vocabulary * dim + layers * dim)
    wanted = old[:at]
    for rows, count in ((dim, heads), (dim // heads * kv, kv)):
        for _ in range(layers):
            wanted += moved(old[at:at + 4 * rows * dim], rows, sources(rows, starts(count, dim // heads), dim // heads, "half"))
            at += 4 * rows * dim
    assert new == wanted + old[at:] and hidden
    assert detect(out) == "half"
    back, _ = converted(out.rename(PLACE / "there.bin"), "interleaved", **{"from": "half"})
    assert back.read_bytes() == old
    return None


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules[__name__]))
