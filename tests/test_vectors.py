#!/usr/bin/env python3
"""data/vectors from outside: made again byte by byte, written by the program, used as docs/vectors.md shows, and
able to tell the faults that they speak of.

usage: test_vectors.py PATH_OF_POSENC SOURCE_DIR                     SPDX-License-Identifier: MIT
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tap
from numpy_rope import cos_sin, rotate

POSENC, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
VECTORS = SOURCE / "data" / "vectors"
INDEX = json.loads((VECTORS / "index.json").read_text())
CASES = {case["name"]: case for case in INDEX["cases"]}
FOLDER = tempfile.TemporaryDirectory(prefix="posenc-vectors-")
HERE = Path(FOLDER.name)


def run(*command, status=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, cwd=HERE)
    assert done.returncode == status, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_an_independent_program_makes_the_same_bytes():
    run(sys.executable, SOURCE / "tools" / "make_vectors.py", "--check", VECTORS)


def test_a_changed_byte_is_found():
    folder = HERE / "changed"
    run(POSENC, "vectors", "-o", folder)
    path = folder / "rotate_half.output.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    (folder / "stray.npy").write_bytes(b"")
    (folder / "rows_first.cos.npy").unlink()
    out = run(sys.executable, SOURCE / "tools" / "make_vectors.py", "--check", folder, status=1)
    assert out.split("\n")[:3] == ["rotate_half.output.npy differs", "rows_first.cos.npy is missing",
                                   "stray.npy is no file of the vectors"], out


def test_the_program_writes_them():
    folder = HERE / "written"
    for _ in range(2):  # into a new folder and over the old files
        out = json.loads(run(POSENC, "vectors", "-o", folder, "--json"))
        assert out["files"] == len(list(VECTORS.iterdir())) and out["format"] == INDEX["format"]
        assert [case["name"] for case in out["cases"]] == list(CASES)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == \
            {path.name: path.read_bytes() for path in VECTORS.iterdir()}
    listed = run(POSENC, "vectors").splitlines()
    assert len(listed) == len(CASES)
    for line, (name, case) in zip(listed, CASES.items()):
        assert name in line and line.endswith(case["catches"])
    (HERE / "file").write_text("")
    for bad in ("no/such/folder", "file", ""):
        done = subprocess.run([POSENC, "vectors", "-o", bad], capture_output=True, text=True, cwd=HERE)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and done.stdout == "", done


def test_they_are_small_and_every_file_is_used_once():
    assert sum(path.stat().st_size for path in VECTORS.iterdir()) < 2_000_000
    used = [file for case in INDEX["cases"] for file in [case.get("input"), *case["outputs"].values()] if file]
    assert sorted(used) == sorted(path.name for path in VECTORS.iterdir() if path.suffix == ".npy")
    assert (VECTORS / "LICENSE").read_bytes() == (SOURCE / "LICENSE").read_bytes()  # a copied folder keeps its terms
    assert len(CASES) == len(INDEX["cases"]) and {case["kind"] for case in INDEX["cases"]} == set(INDEX["kinds"])


def test_the_example_of_the_manual_runs_and_fails_when_it_should():
    text = (SOURCE / "docs" / "vectors.md").read_text()
    example = re.search(r"^```python\n(.*?)^```$", text, re.M | re.S).group(1)
    (HERE / "example.py").write_text(example)
    out = run(sys.executable, "example.py", VECTORS)
    assert out.strip().endswith("passed"), out
    (HERE / "example.py").write_text(example.replace("a * s + b * c", "a * s - b * c"))
    run(sys.executable, "example.py", VECTORS, status=1)


# --- What the cases tell ------------------------------------------------------------------------

ORDER = ["batch", "tokens", "heads", "head_dim"]


def array(name):
    """float64 values, whatever the file's dtype."""
    x = np.load(VECTORS / name)
    if x.dtype == np.dtype("V2"):
        return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(float)
    return x.astype(float)


def in_order(x, case):
    names = list(case["axes"])
    for missing in [name for name in ORDER if name not in names]:
        x, names = x[None], [missing, *names]
    return x.transpose([names.index(name) for name in ORDER])


def largest_difference(case, faults=None):
    got = rotate(in_order(array(case["input"]), case), case["encoding"], case["positions"], faults=faults,
                 direction=case["direction"], output_pairing=case.get("output_pairing"),
                 with_attention=not case.get("without_attention"))
    wanted = in_order(array(case["outputs"]["output"]), case)
    turned = slice(case["encoding"]["rotary_start"], case["encoding"]["rotary_start"] + case["encoding"]["rotary_dim"])
    difference = np.abs(np.nan_to_num(got, nan=np.inf) - wanted)  # a NaN is as wrong as can be
    return np.max(difference[..., turned])


def float64_noise(case):
    """What float64 angles of this program are off by; mode float32 differs on purpose."""
    on_purpose = case["float32_angles"] if case["mode"] == "float32" else 0
    return case["tolerance"][case["dtype"]] + case["float32_angles"] * 2.0**-26 + on_purpose


def rotations():
    return [case for case in CASES.values() if case["kind"] == "rotate" and case["name"] != "rotate_f16_edges"]


def test_a_right_rotation_passes_every_case():
    for case in rotations():
        assert largest_difference(case) <= float64_noise(case), (case["name"], largest_difference(case))


def rows_in(layout, cosines, sines):
    """The outputs of a case in its layout."""
    if layout == "cos_sin":
        return {"rows": np.concatenate([cosines, sines], -1)}
    if layout == "pairs":
        return {"rows": np.stack([cosines, sines], -1).reshape(*cosines.shape[:-1], -1)}
    wide = {"half": lambda x: x, "full_half": lambda x: np.concatenate([x, x], -1),
            "full_interleaved": lambda x: np.repeat(x, 2, -1)}[layout]
    return {"cos": wide(cosines), "sin": wide(sines)}


def test_float64_angles_pass_with_the_allowance_that_the_documents_give():
    rows = [case for case in CASES.values() if case["kind"] == "rows" and case["mode"] == "exact"]
    assert len(rows) > 15 and any(case["float32_angles"] > 1000 for case in rows)
    for case in rows:
        cosines, sines = cos_sin(case["encoding"], np.array(case["positions"]), {},
                                 with_attention=not case.get("without_attention"))
        allowed = case["tolerance"][case["dtype"]] + case["float32_angles"] * 2.0**-29
        for name, got in rows_in(case["layout"], cosines, sines).items():
            off = np.abs(got - array(case["outputs"][name]).reshape(got.shape)).max()
            assert off <= allowed, (case["name"], name, off, allowed)


# A fault and the cases that must tell it even in bfloat16.
TOLD_BY = [
    ({"other_pairing": True}, ["rotate_half", "rotate_interleaved", "rotate_four_half", "rotate_partial_middle_half"]),
    ({"pair_mix_up": True}, ["rotate_half", "rotate_interleaved", "rotate_four_interleaved"]),
    ({"negated_angle": True}, ["rotate_half", "rotate_inverse_half", "rotate_decode_long"]),
    ({"cos_sin_swapped": True}, ["rotate_half", "rotate_decode_batch"]),
    ({"exponent_over_head_dim": True}, ["rotate_partial_first_half", "rotate_partial_last_interleaved"]),
    ({"scaling_not_applied": True}, ["rotate_llama3", "rotate_linear", "rotate_ntk", "rotate_dynamic",
                                     "rotate_longrope", "rotate_gpt_oss", "rotate_yarn_half", "rotate_proportional"]),
    ({"encoding": {"base": 10000.0}}, ["rotate_decode_long", "rotate_long_half", "rotate_grouped_q", "rotate_llama3"]),
    ({"magnitude": "magnitude_missing"}, ["rotate_yarn_half", "rotate_yarn_interleaved", "rotate_longrope"]),
    ({"magnitude": "magnitude_doubled"}, ["rotate_yarn_half", "rotate_yarn_interleaved"]),
    ({"constant_position": True}, ["rotate_half", "rotate_decode_window", "rotate_packed"]),
    ({"position_restarts": True}, ["rotate_decode_batch", "rotate_decode_long", "rotate_decode_ragged"]),
    ({"position_shifted": 1}, ["rotate_half", "rotate_decode_window", "rotate_qwen2_vl"]),
    ({"positions_bf16": True}, ["rotate_long_half", "rotate_decode_window", "rotate_long_interleaved"]),
    ({"positions_f16": True}, ["rotate_long_half"]),
    ({"frequencies_bf16": True}, ["rotate_long_half", "rotate_decode_long", "rotate_half"]),
    ({"angle_scale": 2}, ["rotate_half", "rotate_partial_first_half"]),
    ({"recurrence_drift": True}, ["rotate_long_half", "rotate_long_interleaved"]),
    ({"batch_left_out": 1}, ["rotate_decode_batch", "rotate_decode_ragged", "rotate_grouped_k"]),
]


def test_every_fault_is_told_by_the_cases_made_for_it():
    for fault, names in TOLD_BY:
        for name in names:
            case = CASES[name]
            difference = largest_difference(case, fault)
            assert difference > 2 * case["tolerance"]["bf16"], (fault, name, difference)
        # and position 0 tells none: that is why the cases stand elsewhere
        told = sum(largest_difference(case, fault) > 2 * case["tolerance"]["bf16"] for case in rotations())
        print(f"# {' '.join(fault)}: told by {told} of {len(rotations())} rotations")


def test_axes_in_another_order_are_told():
    for name in ("rotate_qwen2_vl", "rotate_qwen3_vl", "rotate_glm_4v", "rotate_wan"):
        case = dict(CASES[name])
        case["positions"] = case["positions"][::-1]
        assert largest_difference(case) > 2 * case["tolerance"]["bf16"], name


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules["__main__"]))
