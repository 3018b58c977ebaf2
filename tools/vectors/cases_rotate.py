"""The cases of rotations. SPDX-License-Identifier: MIT"""
import numpy as np

from vectors.build import add_rotate
from vectors.cases_frequencies import (DYNAMIC, GLM_4V, LLAMA3, QWEN2_VL, QWEN3_VL, YARN, axes, longrope, rope)

THD, BSHD, BHSD = (["tokens", "heads", "head_dim"], ["batch", "tokens", "heads", "head_dim"],
                   ["batch", "heads", "tokens", "head_dim"])
PROBES = [0, 1, 2, 7, 40, 700, 2047, 4096]
BOTH = ("half", "interleaved")


def conventions(to, add):
    four = np.float32([[[1, 2, 3, 4]]])
    for pairing in BOTH:
        add(f"four_{pairing}", "the smallest case: [1, 2, 3, 4] at position 1. A table laid out for one pairing with "
            "channels paired by the other changes the norm too", rope(4, pairing=pairing), THD, (1, 1, 4), [1], x=four)
    for pairing in BOTH:
        add(pairing, f"pairing {pairing}: the other pairing, a negated angle, cos and sin exchanged; position 0 must "
            "leave every bit as it is", rope(64, pairing=pairing), THD, (8, 2, 64), PROBES)
        add(f"heads_first_{pairing}", "tokens and heads exchanged: the array is [batch, heads, tokens, head_dim]",
            rope(32, pairing=pairing), BHSD, (2, 3, 5, 32), [3, 4, 5, 6, 7])
    for d in (2, 6, 10, 34, 80, 96):
        for pairing in BOTH:
            add(f"width_{d}_{pairing}", "a width that is no multiple of a vector: lanes left out at the end",
                rope(d, pairing=pairing), THD, (2, 2, d), [5, 1000])
    for pairing, other in (BOTH, BOTH[::-1]):
        add(f"{pairing}_to_{other}", f"read {pairing} pairs, write {other} ones (DeepSeek reads interleaved pairs and "
            "writes halves): same scores, other order", rope(16, pairing=pairing), THD, (3, 2, 16), [0, 9, 1000],
            output_pairing=other)


def parts(to, add):
    for pairing in BOTH:
        add(f"partial_first_{pairing}", "partial rotary: exponents and pair distance by rotary_dim, the other channels "
            "untouched bit for bit", rope(64, rotary_dim=16, pairing=pairing), THD, (4, 2, 64), [1, 7, 700, 2355])
        add(f"partial_last_{pairing}", "the last channels rotate, the first do not (DeepSeek's nope first)",
            rope(48, rotary_dim=16, rotary_start=32, pairing=pairing), THD, (4, 2, 48), [1, 7, 700, 2355])
        add(f"partial_middle_{pairing}", "a slice in the middle rotates", rope(40, rotary_dim=20, rotary_start=6,
            pairing=pairing), THD, (4, 2, 40), [1, 7, 700, 2355])
    add("proportional", "Gemma 4: pairs over the whole head, exponents over head_dim, frequency 0 for the rest",
        rope(64, base=1e6, scaling={"rope_type": "proportional", "partial_rotary_factor": 0.25}), THD, (4, 2, 64),
        [1, 7, 700, 2355])
    odd = np.float32(np.linspace(-1.5, 1.5, 2 * 12)).reshape(2, 1, 12)
    odd[0, 0, 8:] = [-0.0, 1e-45, np.inf, -np.inf]
    odd.view(np.uint32)[1, 0, 8:] = [0x7FC01234, 0xFFC00001, 0x00000001, 0x80000000]
    add("untouched_bits", "channels that do not rotate keep -0, denormals, infinities and NaN payloads",
        rope(12, rotary_dim=8), THD, odd.shape, [3, 70], x=odd)


def places(to, add):
    grouped = rope(32, base=500000.0)
    for name, heads in (("q", 8), ("k", 2)):
        add(f"grouped_{name}", "grouped heads: 8 of q and 2 of k at the same positions; strides of one used for the "
            "other", grouped, BSHD, (2, 3, heads, 32), [[0, 1, 2], [4096, 4097, 4098]])
    ones = np.ones((2, 3, 1, 256), np.float32)
    add("decode_batch", "one token of two sequences, all ones: only the first row of the batch rotated, or position 0 "
        "in place of the cache's length", rope(256), BHSD, ones.shape, [6], x=ones)
    add("decode_long", "decoding at position 100000: positions that start at 0 again", rope(64, base=500000.0), BSHD,
        (1, 1, 4, 64), [100000])
    add("decode_ragged", "sequences of different length decode together, each at its own position", rope(32), BSHD,
        (3, 1, 2, 32), [[50], [20], [0]])
    add("decode_window", "four tokens verified at once from position 900 on: a constant position, or a shift by one",
        rope(32), BSHD, (1, 4, 2, 32), [900, 901, 902, 903])
    add("left_padding", "left padding: real tokens from 0 on, pads before them negative", rope(32), BSHD, (2, 6, 1, 32),
        [[-3, -2, -1, 0, 1, 2], [0, 1, 2, 3, 4, 5]])
    add("packed", "two documents in one sequence: the second starts at 0 again", rope(32), BSHD, (1, 6, 2, 32),
        [0, 1, 2, 0, 1, 2])
    add("scattered", "positions in no order: a running product or a step of 1 assumed", rope(32), THD, (6, 1, 32),
        [90, 3, 2047, 0, 512, 3])
    for pairing in BOTH:
        add(f"long_{pairing}", "long positions: positions or frequencies in bfloat16 or float16, angles in float32, a "
            "running product of frequencies", rope(64, base=500000.0, pairing=pairing), THD, (7, 1, 64),
            [2048, 8193, 32768, 65537, 131071, 1048575, 16777217])
    add("long_float32", "the same positions with angles as frameworks form them", rope(64, base=500000.0), THD,
        (6, 1, 64), [2048, 8193, 32768, 65537, 131071, 1048575], mode="float32")


def number_types(to, add):
    for dtype in ("f16", "bf16", "f64"):
        for pairing in BOTH:
            add(f"{dtype}_{pairing}", f"{dtype} arrays: computed in {'float64' if dtype == 'f64' else 'float32'}, rounded "
                "once at the end", rope(32, pairing=pairing), THD, (4, 2, 32), [1, 40, 257, 4095], dtype=dtype)
    tiny = np.float16([[[6e-8, -6e-8, 6e-5, 1.2e-4, 65504, -65504, 0, -0.0]]])
    add("f16_edges", "float16 denormals flushed to zero; sums that overflow become infinite", rope(8), THD, tiny.shape,
        [1], dtype="f16", x=tiny)


def directions(to, add):
    for pairing in BOTH:
        add(f"inverse_{pairing}", "undoing a rotation; also what a code with the opposite sign of the angle computes "
            "forward (nanochat)", rope(32, pairing=pairing), THD, (4, 2, 32), PROBES[:4], direction="inverse")
        add(f"yarn_{pairing}", "the attention factor multiplies both pairings, once, and not the channels that do not "
            "rotate", rope(48, rotary_dim=32, base=1e6, pairing=pairing, scaling=YARN), THD, (4, 2, 48),
            [0, 1, 40000, 131071])
    scaled = rope(32, base=1e6, scaling=YARN)
    add("inverse_scaled", "the inverse divides by the attention factor", scaled, THD, (3, 2, 32), [1, 700, 40000],
        direction="inverse")
    add("backward_scaled", "the gradient multiplies by the attention factor: backward is the transpose, not the inverse",
        scaled, THD, (3, 2, 32), [1, 700, 40000], direction="backward")
    key = np.float32(np.linspace(-1, 1, 2 * 32)).reshape(2, 1, 32)
    cached = add("shift_before", "a cached key under YaRN at positions 5000 and 5001", scaled, THD, key.shape,
                 [5000, 5001], x=key)
    add("shift_after", "the key of shift_before moved by -3000 in one step, by rows without the attention factor: with "
        "it the factor is applied twice", scaled, THD, key.shape, [-3000, -3000], x=cached, without_attention=True)
    add("shift_right", "what shift_after must agree with: the key rotated to 2000 and 2001 at once", scaled, THD,
        key.shape, [2000, 2001], x=key)


def scalings(to, add):
    positions = [1, 700, 8192, 20000, 60000]
    for name, base, scaling, extra in (
            ("linear", 10000.0, {"rope_type": "linear", "factor": 4.0}, {}),
            ("ntk", 10000.0, {"rope_type": "ntk", "factor": 4.0}, {}),
            ("dynamic", 10000.0, DYNAMIC, {"max_positions": 2048, "seq_len": 60001}),
            ("llama3", 500000.0, LLAMA3, {}), ("longrope", 10000.0, longrope(16), {"seq_len": 60001}),
            ("gpt_oss", 150000.0, {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096,
                                   "truncate": False}, {})):
        add(name, f"{name} left out, or read and not used: past the original length it shows",
            rope(32, base=base, scaling=scaling, **extra), THD, (5, 1, 32), positions)
    grid = [[7, 7, 7, 7, 7, 7, 10], [7, 7, 7, 8, 8, 8, 10], [7, 8, 9, 7, 8, 9, 10]]
    text = [[4096, 4097, 4098]] * 3
    for name, encoding in (("qwen2_vl", rope(128, base=1e6, axes=QWEN2_VL)), ("qwen3_vl", rope(128, base=5e6, axes=QWEN3_VL)),
                           ("glm_4v", rope(128, rotary_dim=64, pairing="interleaved", axes=GLM_4V)),
                           ("wan", rope(128, pairing="interleaved", axes=axes("chunked", [22, 21, 21], "own")))):
        add(name, "a 2 x 3 image at 7 and a text token behind it: axes exchanged, sections counted in channels",
            encoding, THD, (7, 1, 128), grid)
    add("qwen2_vl_text", "text under M-RoPE has one number on every axis and is plain RoPE", rope(128, base=1e6,
        axes=QWEN2_VL), THD, (3, 1, 128), text)


def rotations(to):
    def add(name, *arguments, **options):
        return add_rotate(to, "rotate_" + name, *arguments, **options)
    for part in (conventions, parts, places, number_types, directions, scalings):
        part(to, add)
