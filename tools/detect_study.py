#!/usr/bin/env python3
"""What the pairing statistic finds in checkpoints, in both layouts: the tables of docs/detection.md.

  detect_study.py [--noise N] NAME=PAIRING=PATH ...

PAIRING is half, interleaved or none; PATH a safetensors file whose metadata give head_dim, or a GGUF file (needs
`pip install gguf`). Each file is judged as it is, permuted to the other layout, and with only q or only k permuted,
pooled and layer by layer. --noise judges N models of random numbers of several kinds. Uses the statistic in NumPy
(pair_statistic.py), so that it repeats without a build. SPDX-License-Identifier: MIT
"""
import sys
from pathlib import Path

import numpy as np

import pair_statistic as statistic
import weight_powers as weights

OTHER = {"half": "interleaved", "interleaved": "half", "none": "interleaved"}


def read_gguf(path):
    """[(q, k)] of a GGUF file's layers, and whether norm gains tie the heads."""
    from gguf import GGUFReader
    from gguf.quants import dequantize
    reader = GGUFReader(path)
    keys = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("tokenizer")}
    architecture = keys["general.architecture"]
    tensors = {tensor.name: tensor for tensor in reader.tensors}

    def numbers(name):
        tensor = tensors.get(name)
        return None if tensor is None else dequantize(tensor.data, tensor.tensor_type).astype("f8")

    heads = keys[f"{architecture}.attention.head_count"]
    head_dim = keys.get(f"{architecture}.attention.key_length",
                        keys[f"{architecture}.embedding_length"] // heads)
    rotary = keys.get(f"{architecture}.rope.dimension_count", head_dim)
    layers = []
    for number in range(keys[f"{architecture}.block_count"]):
        layers.append(tuple(weights.powers(*(numbers(f"blk.{number}.attn_{x}{end}") for end in
                                             (".weight", ".bias", "_norm.weight")), head_dim, rotary) for x in "qk"))
    return layers, "blk.0.attn_q_norm.weight" in tensors


def read(path):
    if path.suffix == ".gguf":
        return read_gguf(path)
    metadata, tensors = weights.read_safetensors(path)
    head_dim = int(metadata["head_dim"])
    return weights.layers_of(tensors, head_dim, int(metadata.get("rotary_dim", head_dim)))


def word(verdict):
    return "-" if verdict is None else statistic.NAMES[verdict]


def study(name, own, path):
    layers, tied = read(path)
    for sides in ("", "qk", "q", "k"):
        model = [tuple(weights.to_other(p, OTHER[own]) if x in sides else p for x, p in zip("qk", pair))
                 for pair in layers]
        got = statistic.judge(model, tied)
        counts = {}
        for pair in model:
            verdict = word(statistic.judge([pair], tied)["both"])
            counts[verdict] = counts.get(verdict, 0) + 1
        layout = {"": "as it is", "qk": "other layout"}.get(sides, f"only {sides} permuted")
        deviation = got["deviation"][:, 0]
        print(f"| {name} ({own}) | {layout} | {deviation[0]:.1f} | {deviation[1]:.1f} | {got['exact'][0, 0]:.1f} | "
              f"{got['exact'][1, 0]:.1f} | {word(got['both'])} | {word(got['q'])} | {word(got['k'])} | "
              f"{', '.join(f'{count} {key}' for key, count in sorted(counts.items()))} |", flush=True)


def noise_models(random):
    """Models without pairs: untrained; heavy tails, alike in q and k; gains that all heads of a layer share."""
    d, heads, group, layers = (int(random.choice(c)) for c in ((8, 16, 32, 64, 128), (1, 2, 4, 8), (1, 4), (1, 2, 8, 32)))
    q, k = random.chisquare(64, (layers, heads * group, d)), random.chisquare(64, (layers, heads, d))
    yield "untrained", list(zip(q, k)), False
    tail = np.exp(random.standard_t(float(random.choice([1.5, 2, 4])), (layers, heads, d)).clip(-40, 40) / 2)
    yield "heavy tails", list(zip(q * np.repeat(tail, group, 1), k * tail)), False
    gains = np.exp(random.standard_t(3, (2, layers, 1, d)))
    yield "shared gains", list(zip(q * gains[0], k * gains[1])), True


def study_noise(count):
    random, claims, largest = np.random.default_rng(20261129), {}, {}
    for _ in range(count):
        for kind, layers, tied in noise_models(random):
            for model in (layers, layers[:1]):
                got = statistic.judge(model, tied)
                claims[kind] = claims.get(kind, 0) + any(got[side] is not None for side in ("both", "q", "k"))
                largest[kind] = max(largest.get(kind, 0), np.abs(got["deviation"]).max())
    for kind, claim in claims.items():
        print(f"| {kind} | {2 * count} | {claim} | {largest[kind]:.1f} |")


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--noise"]:
        print("| models | trials | claims | largest deviation |\n|---|---|---|---|")
        study_noise(int(arguments[1]))
        arguments = arguments[2:]
    if arguments:
        print("| model (true pairing) | rows | deviation, total | residual | exact, half | interleaved | both | q | k | "
              "layers |\n|---|---|---|---|---|---|---|---|---|---|")
    for argument in arguments:
        name, own, path = argument.split("=", 2)
        study(name, own, Path(path))


main()
