#!/usr/bin/env python3
"""Makes data/vectors: frozen inputs and exact outputs, from formulas (mpmath, 60 digits), without posenc.

usage: make_vectors.py [DIR]            write all files of DIR (data/vectors)
       make_vectors.py --check [DIR]    compare: exit status 1 if a byte differs or a file is missing or odd

Change or add a case: edit tools/vectors, raise CONTENT, run this, say so in CHANGELOG.md.
SPDX-License-Identifier: MIT
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from vectors import cases_frequencies, cases_rotate, cases_tables  # noqa: E402
from vectors.build import Collection  # noqa: E402

FORMAT = 1   # how to read the index: grows when a member changes its meaning
CONTENT = 2  # what is in it: grows with every change of a case
MOST_BYTES = 2_000_000
LICENCE = Path(__file__).resolve().parent.parent / "LICENSE"

ABOUT = ("Inputs and right outputs of positional encodings, to test an implementation in any language against. All "
         "numbers come from 60-digit arithmetic. Every case says in `catches` which faults it is there for, in `kind` "
         "how it is run, and names its files, which are NumPy's .npy (version 1.0, little-endian, C order).")

CONVENTIONS = {
    "encoding": "pairs = rotary_dim / 2; pair j turns by base^(-2j/rotary_dim) radians per position unless scaling or "
                "axes say otherwise. Channels rotary_start ... rotary_start + rotary_dim - 1 of a head rotate, the "
                "others are copied bit for bit. scaling has the keys of transformers' rope_parameters, beside rope_type "
                "ntk (base * factor^(d/(d-2))) and custom (inv_freq: radians per position, or positions per radian "
                "with inv_freq_is_period).",
    "pairing": "half: channels (j, j + rotary_dim/2) turn together; interleaved: (2j, 2j + 1); counted from rotary_start.",
    "rotation": "forward: a' = a cos - b sin, b' = a sin + b cos. backward: a' = a cos + b sin, b' = b cos - a sin. "
                "inverse: backward divided by the square of the attention factor.",
    "axes": "several positions for one token: pair j turns with the position of its axis. order chunked: the first "
            "sections[0] pairs follow axis 0, and so on; interleaved: axis a > 0 if j mod count = a and j < count * "
            "sections[a], else axis 0; alternating: axis j mod count; ernie: sections are of height, width, time, the "
            "fast pairs alternate between axes 1 and 2, the rest follows axis 0. exponents whole: 2j/rotary_dim; own: "
            "each axis counts its own pairs, over their number; strided: pair i of axis a has step i * count + a.",
    "dtype": "f64, f32, f16, bf16. bfloat16 files have the dtype V2: two bytes a number, little-endian.",
    "mode": "exact: cos and sin of the real number position * inverse frequency, rounded once to the dtype. float32: "
            "inverse frequency and position rounded to float32, their product too, then cos and sin of that rounded, "
            "times the attention factor in float32; what frameworks compute.",
    "tolerance": "the largest absolute difference allowed to an implementation that computes in that dtype. Add "
                 "float32_angles if it forms angles in float32 and mode is exact: where that is above 0.1 such an "
                 "implementation cannot be judged by the case. The outputs themselves are bytes: every product and sum "
                 "rounded in float32 (float64 for f64), 16 bits rounded once at the end, nothing fused.",
}

KINDS = {
    "frequencies": "Resolve `encoding` (at length seq_len where it has one). Compare `inv_freq` (float64 [pairs], "
                   "radians per position) to the precision that is yours, `inv_freq_float32` (as transformers forms "
                   "them) within 2 units in the last place, attention_factor (multiplies cos and sin) and "
                   "softmax_factor (multiplies the softmax scale, beside it).",
    "rows": "Compute cos and sin, times the attention factor, for `positions` ([tokens], or [axes][tokens] where the "
            "encoding has axes) in the row layout `layout`: half: cos and sin [tokens][pairs]; full_half: c0 c1 ... c0 "
            "c1 ...; full_interleaved: c0 c0 c1 c1 ...; cos_sin: one row c0 c1 ... s0 s1 ...; pairs: c0 s0 c1 s1 ...",
    "change": "cos and sin rows of the rotation that turns a key rotated by `from` at these positions into the key "
              "rotated by `to`: angle position * (to - from), times the ratio of the attention factors.",
    "rotate": "Rotate `input`, whose axes are named in `axes`, in `direction`, by rows of `positions` (their axes are "
              "named in positions_axes) and compare with `output`. output_pairing: write the pairs in that pairing. "
              "without_attention: rows without the attention factor.",
    "sinusoidal": "Make the table [positions][dim]: w_k = scale * base^(-k / (dim/2 - shift)), angle = (start + "
                  "position) * w_k, laid out as interleaved (s0 c0 s1 c1 ...), sin_cos or cos_sin. Odd widths: truncate "
                  "and ceil have (dim + 1) / 2 frequencies and leave the last cosine out, zero is the table of dim - 1 "
                  "with a column of 0 behind it. The row of padding_position is 0.",
    "alibi_slopes": "The slopes (float64 [heads]) by the paper's or the plain rule.",
    "alibi_bias": "The bias [count][queries][keys] of heads first_head on; query i stands at key query_offset + i. "
                  "Causal: minus infinity for later keys.",
}


def make():
    """All files: name to bytes."""
    cases = Collection()
    for part in (cases_frequencies.frequencies, cases_frequencies.rows, cases_frequencies.changes,
                 cases_rotate.rotations, cases_tables.sinusoids, cases_tables.alibi):
        part(cases)
    index = {"format": FORMAT, "content": CONTENT, "licence": "MIT", "about": ABOUT, "conventions": CONVENTIONS,
             "kinds": KINDS, "cases": cases.cases}
    lines = [json.dumps(case) for case in index.pop("cases")]  # one line a case: small, and diffs name the case
    text = json.dumps(index, indent=1)[:-2] + ',\n "cases": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"
    return {"index.json": text.encode(), "LICENSE": LICENCE.read_bytes(), **cases.files}


def differences(files, folder):
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    for name in sorted(there | set(files)):
        if name not in files:
            yield f"{name} is no file of the vectors"
        elif name not in there:
            yield f"{name} is missing"
        elif (folder / name).read_bytes() != files[name]:
            yield f"{name} differs"


def main():
    words = sys.argv[1:]
    check = words[:1] == ["--check"]
    words = words[1:] if check else words
    if len(words) > 1 or any(word.startswith("-") for word in words):
        sys.exit(__doc__)
    folder = Path(words[0]) if words else Path(__file__).resolve().parent.parent / "data" / "vectors"
    files = make()
    size = sum(map(len, files.values()))
    assert size < MOST_BYTES, size
    if check:
        found = list(differences(files, folder))
        print("\n".join(found) or f"{folder}: {len(files)} files, every byte as the formulas give it")
        return 1 if found else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    print(f"{folder}: {len(files)} files, {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
