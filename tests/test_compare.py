#!/usr/bin/env python3
"""posenc compare: specs in JSON, dumps of cos and sin and of frequencies in every format and layout, against NumPy.

usage: test_compare.py PATH_OF_POSENC                                SPDX-License-Identifier: MIT
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tap
from numpy_rope import cos_sin, to_bf16
from vectors import framework
from vectors.cases_frequencies import GPT_OSS, LLAMA3, QWEN2_VL, QWEN3_VL, YARN, longrope, rope
from vectors.formulas import inverse_frequencies

POSENC = Path(sys.argv[1]).resolve()
FOLDER = tempfile.TemporaryDirectory(prefix="posenc-compare-")
HERE = Path(FOLDER.name)
TRIALS = 1000 if os.environ.get("POSENC_LONG") else 60
CALLS = []
ROUNDING = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-23}


def call(*words):
    return subprocess.run([POSENC, "compare", *map(str, words)], capture_output=True, text=True, timeout=300, cwd=HERE)


def text(encoding, **more):
    return encoding if isinstance(encoding, str) else json.dumps({**encoding, **more})


def compare(a, b, *more):
    done = call(text(a), text(b), *more, "--json")
    assert done.stderr == "", done.stderr
    answer = json.loads(done.stdout)
    assert done.returncode == (answer["verdict"] != "equal"), answer
    answer["names"] = [[cause["name"] for cause in one["causes"]] for one in answer["explanations"]]
    CALLS.append(done)
    if len(CALLS) % 7 == 0:
        people = call(text(a), text(b), *more)
        assert people.returncode == done.returncode and people.stdout.startswith(answer["verdict"])
    return answer


def refused(part, *words):
    done = call(*words)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done
    assert part in done.stderr, (part, done.stderr)


PLAIN = rope(64, base=500000.0)
SCALED = rope(64, base=1e6, scaling=YARN)


# --- Specs ----------------------------------------------------------------------------------------

def test_equal_specs():
    for encoding in (PLAIN, SCALED, rope(128, base=5e6, axes=QWEN3_VL), rope(64, scaling=longrope(32), seq_len=5000),
                     rope(80, rotary_dim=32, rotary_start=8, pairing="interleaved")):
        answer = compare(encoding, encoding)
        assert answer["verdict"] == "equal" and answer["largest"]["error"] == 0 and answer["names"] == []
    assert compare('{"head_dim": 64}', rope(64))["verdict"] == "equal"  # defaults are what they are
    (HERE / "spec.json").write_text(json.dumps(SCALED, indent=1))
    assert compare("spec.json", SCALED)["verdict"] == "equal"
    # Written otherwise, the same encoding.
    assert compare(rope(64, rotary_dim=32), rope(64, scaling={"rope_type": "default", "partial_rotary_factor": 0.5}) |
                   {"rotary_dim": 32})["verdict"] == "equal"


SPECS = [  # a, b, verdict, equivalence, causes
    (PLAIN, rope(64, base=500000.0, pairing="interleaved"), "equivalent", "pairing", [["other_pairing"]]),
    (PLAIN, rope(64), "different", "none", [["base"]]),
    (rope(64, base=500000.0, scaling=LLAMA3), PLAIN, "different", "none", [["scaling_not_applied"]]),
    (SCALED, rope(64, base=1e6), "different", "none", [["scaling_not_applied"]]),
    (rope(64, base=150000.0, scaling=GPT_OSS), rope(64, base=150000.0, scaling={**GPT_OSS, "truncate": True}),
     "different", "none", [["yarn_truncate"]]),
    (rope(64, scaling=longrope(32), seq_len=5000), rope(64, scaling=longrope(32), seq_len=4000), "different", "none",
     [["longrope_other_list"]]),
    (rope(64, rotary_dim=16), rope(64), "different", "none", [["whole_head_rotated"]]),
    (rope(64, rotary_dim=16), rope(64, rotary_dim=16, rotary_start=48), "different", "none", [["other_slice"]]),
    ({**PLAIN, "mode": "exact"}, {**PLAIN, "mode": "float32"}, "different", "none", [["other_mode"]]),
    (PLAIN, rope(64, base=10000.0, pairing="interleaved"), "different", "none", [["other_pairing", "base"]]),
    (PLAIN, rope(64, base=123456.0), "different", "none", [["base_measured"]]),
    (PLAIN, rope(128, base=500000.0), "different", "none", []),
    (rope(128, axes=QWEN2_VL), rope(128, axes=QWEN3_VL), "different", "none", []),
]


def test_specs_that_differ():
    for a, b, verdict, equivalence, causes in SPECS:
        answer = compare(a, b)
        assert (answer["verdict"], answer["equivalence"]) == (verdict, equivalence), (a, b, answer)
        assert answer["names"] == causes, (a, b, answer["names"])
        assert answer["pairing_differs"] == (a["pairing"] != b["pairing"])
    assert compare(rope(64, rotary_dim=16), rope(64, rotary_dim=16, rotary_start=48))["slices_differ"]
    assert compare(rope(128, axes=QWEN2_VL), rope(128, axes=QWEN3_VL))["axes_differ"]
    answer = compare(PLAIN, rope(128, base=500000.0))
    assert (answer["pairs_a"], answer["pairs_b"], answer["largest"]) == (32, 64, None)


def exact_rows(encoding, positions):
    f = np.array([np.longdouble(str(x)) for x in inverse_frequencies(encoding)])
    angles = np.asarray(positions, np.longdouble)[:, None] * f
    return np.stack([np.cos(angles), np.sin(angles)])


def test_differences_are_those_of_numpy():
    positions = [*range(300), 5000, 40000, -70, 1048575]
    a, b = PLAIN, rope(64, base=500001.0)
    answer = compare(a, b, "--positions", ",".join(map(str, positions)))
    off = np.abs(exact_rows(a, positions) - exact_rows(b, positions)).max(axis=0).astype(float)
    assert abs(answer["largest"]["error"] - off.max()) < 1e-9
    for dtype, tolerance in ROUNDING.items():
        rows = np.flatnonzero((off > tolerance).any(axis=1))
        found = answer["beyond"][dtype]
        if not len(rows):
            assert found is None, (dtype, found)
            continue
        pair = int(np.flatnonzero(off[rows[0]] > tolerance)[0])
        assert (found["position"], found["pair"]) == (positions[rows[0]], pair), (dtype, found)
    for decade, found in enumerate(answer["decades"]):
        least, most = (0, 0) if decade == 0 else (10 ** (decade - 1), 10**decade - 1)
        rows = [i for i, p in enumerate(positions) if least <= abs(p) <= most]
        assert (found is None) == (not rows)
        if rows:
            assert abs(found["error"] - off[rows].max()) < 1e-9, decade


IMAGE = [[7, 7, 7, 7, 7, 11], [7, 7, 7, 8, 8, 11], [7, 8, 9, 7, 8, 11]]  # two rows of patches, then text
IMAGE_WORDS = ("--positions", ";".join(",".join(map(str, axis)) for axis in IMAGE))


def test_image_positions():
    """Axes that differ are told apart by rows: where the first pair that follows another axis is, NumPy says too."""
    chunked, interleaved = rope(128, axes=QWEN2_VL), rope(128, axes=QWEN3_VL)
    for encoding in (chunked, interleaved):
        assert compare(encoding, encoding, *IMAGE_WORDS)["verdict"] == "equal"
    answer = compare(chunked, interleaved, *IMAGE_WORDS)
    off = np.max([abs(x - y) for x, y in zip(cos_sin(chunked, IMAGE, {}), cos_sin(interleaved, IMAGE, {}))], axis=0)
    assert answer["verdict"] == "different" and answer["axes_differ"]
    assert abs(answer["largest"]["error"] - off.max()) < 1e-9
    first = answer["beyond"]["f16"]
    row = int(np.flatnonzero((off > ROUNDING["f16"]).any(axis=1))[0])
    pair = int(np.flatnonzero(off[row] > ROUNDING["f16"])[0])
    assert (first["position"], first["pair"]) == (IMAGE[0][row], pair), first
    assert compare(chunked, {**chunked, "axes": {**chunked["axes"], "sections": [24, 16, 24]}}, *IMAGE_WORDS)["axes_differ"]
    # What an implementation dumped of an image, one right and one with height and width exchanged.
    for name, positions in (("right", IMAGE), ("exchanged", [IMAGE[0], IMAGE[2], IMAGE[1]])):
        c, s = cos_sin(chunked, positions, {})
        np.savez(HERE / f"{name}.npz", cos=np.concatenate([c, c], -1), sin=np.concatenate([s, s], -1))
    assert compare(chunked, "right.npz", *IMAGE_WORDS)["verdict"] == "equal"
    assert compare("right.npz", chunked, *IMAGE_WORDS)["verdict"] == "equal"
    assert compare(chunked, "exchanged.npz", *IMAGE_WORDS)["verdict"] == "different"
    turned = cos_sin(chunked, IMAGE, {"axes_reversed": True})
    np.savez(HERE / "reversed.npz", cos=turned[0], sin=turned[1])
    assert compare(chunked, "reversed.npz", *IMAGE_WORDS)["names"] == [["axes_reversed"]]
    refused("--positions has 2 lists but A has 3 axes and B 3", json.dumps(chunked), json.dumps(chunked), "--positions", "1,2;3,4")
    refused("--positions has 3 lists but A has 1 axes and B 1", json.dumps(PLAIN), json.dumps(PLAIN), *IMAGE_WORDS)


# --- Dumps ----------------------------------------------------------------------------------------

def narrowed(x, dtype):
    """(numbers as stored, NumPy dtype, safetensors word)"""
    if dtype == "bf16":
        return (np.asarray(x, np.float32).view(np.uint32) + 0x7FFF + ((np.asarray(x, np.float32).view(np.uint32) >> 16) & 1)
                >> 16).astype(np.uint16).view("V2"), "BF16"
    kind = {"f64": np.float64, "f32": np.float32, "f16": np.float16}[dtype]
    return np.asarray(x).astype(kind), dtype.upper()


def laid_out(c, s, layout):
    if layout == "half":
        return {"cos": c, "sin": s}
    if layout == "full_half":
        return {"cos_cached": np.concatenate([c, c], -1), "sin_cached": np.concatenate([s, s], -1)}
    if layout == "full_interleaved":
        return {"freqs_cos": np.repeat(c, 2, -1), "freqs_sin": np.repeat(s, 2, -1)}
    if layout == "cos_sin":
        return {"cos_sin_cache": np.concatenate([c, s], -1)}
    if layout == "pairs":
        return {"cos_sin": np.stack([c, s], -1).reshape(len(c), -1)}
    return {"cos_sin": np.stack([c, s], -1)}  # split: [rows][pairs][2]


def write(name, arrays, dtype, kind):
    arrays = {key: narrowed(value, dtype) for key, value in arrays.items()}
    path = HERE / f"{name}.{kind}"
    if kind == "npy":
        np.save(path, next(iter(arrays.values()))[0])
    elif kind == "npz":
        np.savez(path, other=np.zeros(3), **{key: value[0] for key, value in arrays.items()})
    else:
        header, data = {"__metadata__": {"format": "pt"}}, b""
        for key, (value, word) in arrays.items():
            header[key] = {"dtype": word, "shape": list(value.shape),
                           "data_offsets": [len(data), len(data) + value.nbytes]}
            data += value.tobytes()
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        path.write_bytes(struct.pack("<Q", len(head)) + head + data)
    return path.name


LAYOUTS = ["half", "full_half", "full_interleaved", "cos_sin", "pairs", "split"]


def test_dumps_in_every_layout_dtype_and_format_are_equal():
    c, s = cos_sin(SCALED, np.arange(50), {})
    interleaved = {**SCALED, "pairing": "interleaved"}
    for layout in LAYOUTS:
        arrays = laid_out(c, s, layout)
        for dtype in ("f64", "f32", "f16", "bf16"):
            for kind in ("npz", "safetensors", "npy"):
                if kind == "npy" and len(arrays) == 2:
                    continue
                name = write("dump", arrays, dtype, kind)
                own = interleaved if layout == "full_interleaved" else SCALED
                for sides in ((own, name), (name, own)):
                    answer = compare(*sides)
                    assert answer["verdict"] == "equal" and answer["positions"] == 50, (layout, dtype, kind, answer)
    # A full-width table tells the pairing.
    for layout, other in (("full_half", interleaved), ("full_interleaved", SCALED)):
        answer = compare(other, write("dump", laid_out(c, s, layout), "f32", "npz"))
        assert (answer["verdict"], answer["equivalence"]) == ("equivalent", "pairing") and answer["pairing_differs"]
    # Axes of size 1, Fortran order, positions of one's own.
    name = write("dump", {key: value[None, :, None] for key, value in laid_out(c, s, "full_half").items()}, "f32", "npz")
    assert compare(SCALED, name)["verdict"] == "equal"
    np.save(HERE / "fortran.npy", np.asfortranarray(np.concatenate([c, s], -1)))
    assert compare(SCALED, "fortran.npy")["verdict"] == "equal"
    np.save(HERE / "big.npy", np.concatenate([c, s], -1).astype(">f4"))
    assert compare(SCALED, "big.npy")["verdict"] == "equal"
    c, s = cos_sin(PLAIN, [5, 1000000, -7], {})
    name = write("dump", laid_out(c, s, "half"), "f64", "npz")
    assert compare(PLAIN, name, "--positions=5,1000000,-7")["verdict"] == "equal"
    assert compare(PLAIN, name)["verdict"] == "different"


FAULTS = [  # encoding, faults, verdict, equivalence, causes
    (PLAIN, {"negated_angle": True}, "equivalent", "conjugate", [["negated_angle"]]),
    (PLAIN, {"cos_sin_swapped": True}, "equivalent", "conjugate", [["cos_sin_swapped"]]),
    (PLAIN, {"position_shifted": 1}, "equivalent", "shift", [["position_shifted"]]),
    (PLAIN, {"encoding": {"base": 10000.0}}, "different", "none", [["base"]]),
    (PLAIN, {"frequencies_bf16": True}, "different", "none", [["frequencies_bf16"]]),
    (PLAIN, {"positions_bf16": True}, "different", "none", [["positions_bf16"]]),
    (PLAIN, {"angle_scale": 2}, "different", "none", [["angle_doubled"]]),
    (SCALED, {"magnitude": "magnitude_missing"}, "different", "none", [["magnitude_missing"]]),
    (SCALED, {"magnitude": "magnitude_doubled"}, "different", "none", [["magnitude_doubled"]]),
    (SCALED, {"scaling_not_applied": True}, "different", "none", [["scaling_not_applied"]]),
    (rope(64, base=500000.0, scaling=LLAMA3), {"scaling_not_applied": True}, "different", "none",
     [["scaling_not_applied"]]),
    (PLAIN, {"encoding": {"base": 10000.0}, "negated_angle": True}, "different", "none", [["base", "negated_angle"]]),
    (PLAIN, {"recurrence_drift": True}, "different", "none", [["recurrence_drift"]]),
    (PLAIN, {"float32_angles": True}, "different", "none", [["other_mode"]]),
    (PLAIN, {"angle_scale": 1.37}, "different", "none", [["angles_scaled"]]),
    (PLAIN, {"position_shifted": 99}, "equivalent", "shift", [["shift_measured"]]),
    (PLAIN, {"encoding": {"base": 123456.0}, "angle_scale": 1.37}, "different", "none", []),
]


def test_causes_of_dumps():
    for i, (encoding, faults, verdict, equivalence, causes) in enumerate(FAULTS):
        layout = ("half", "full_half", "cos_sin")[i % 3]
        c, s = cos_sin(encoding, np.arange(2000), faults)
        answer = compare(encoding, write("dump", laid_out(c, s, layout), "f32", "npz"))
        assert (answer["verdict"], answer["equivalence"]) == (verdict, equivalence), (faults, layout, answer)
        assert [sorted(one) for one in answer["names"]] == causes, (faults, layout, answer["names"])


def test_a_framework_s_table_is_equal_in_mode_float32():
    for encoding in (PLAIN, SCALED, rope(64, base=500000.0, scaling=LLAMA3), rope(96)):
        c, s = cos_sin(encoding, np.arange(3000), {"float32_angles": True})
        name = write("dump", laid_out(c, s, "full_half"), "f32", "safetensors")
        assert compare({**encoding, "mode": "float32"}, name)["verdict"] == "equal", encoding
        bf16 = write("dump16", laid_out(c, s, "full_half"), "bf16", "safetensors")
        assert compare(encoding, bf16)["verdict"] == "equal", encoding  # below bfloat16's rounding


def test_frequencies():
    for encoding in (PLAIN, rope(64, base=500000.0, scaling=LLAMA3), rope(96), rope(64, scaling=longrope(32), seq_len=5000),
                     SCALED, rope(64, rotary_dim=16)):
        single = framework.inverse_frequencies(encoding)
        for kind in ("npy", "npz", "safetensors"):
            name = write("inv", {"rotary.inv_freq": single}, "f32", kind)
            assert compare(encoding, name)["verdict"] == "equal", (encoding, kind)
            assert compare(name, encoding)["verdict"] == "equal", (encoding, kind)
    nudged = np.nextafter(framework.inverse_frequencies(PLAIN), np.float32(2))
    lists = [write(str(i), {"inv_freq": x}, "f32", "npz") for i, x in enumerate((nudged, framework.inverse_frequencies(PLAIN)))]
    assert compare(*lists)["verdict"] == "equal"
    assert compare(lists[0], write("2", {"inv_freq": nudged * 1.001}, "f32", "npz"))["verdict"] == "different"
    answer = compare(PLAIN, write("inv", {"inv_freq": to_bf16(framework.inverse_frequencies(PLAIN))}, "f32", "npy"))
    assert (answer["verdict"], answer["names"]) == ("different", [["frequencies_bf16"]]), answer
    answer = compare(PLAIN, write("inv", {"inv_freq": framework.inverse_frequencies(rope(64))}, "f32", "npz"))
    assert (answer["verdict"], answer["names"]) == ("different", [["base"]]), answer


def test_two_dumps():
    c, s = cos_sin(PLAIN, np.arange(100), {})
    a = write("a", laid_out(c, s, "half"), "f32", "npz")
    for layout in LAYOUTS:
        assert compare(a, write("b", laid_out(c, s, layout), "bf16", "safetensors"))["verdict"] == "equal", layout
    c, s = cos_sin(rope(64), np.arange(100), {})
    answer = compare(a, write("b", laid_out(c, s, "half"), "f32", "npz"))
    assert answer["verdict"] == "different" and answer["beyond"]["bf16"]["position"] == 1


def test_one_wrong_number_of_a_full_width_table_has_a_place():
    """In the first number of a pair or the second, in either layout; beside a spec, and beside other tables."""
    c, s = cos_sin(PLAIN, np.arange(3000), {})
    pairs = c.shape[1]
    for layout in ("full_half", "full_interleaved"):
        for second in (0, 1):
            tables = {name: array.copy() for name, array in laid_out(c, s, layout).items()}
            column = 9 + second * pairs if layout == "full_half" else 18 + second
            next(array for name, array in tables.items() if "cos" in name)[2017, column] += 0.25
            odd = write("odd", tables, "f32", "npz")
            for other in (PLAIN, write("whole", laid_out(c, s, layout), "f32", "npz"),
                          write("narrow", laid_out(c, s, "half"), "f32", "safetensors")):
                for a, b in ((other, odd), (odd, other)):
                    answer = compare(a, b)
                    assert answer["verdict"] == "different" and answer["pairs_a"] == answer["pairs_b"] == pairs
                    halves = answer["halves"]
                    assert (halves["position"], halves["pair"]) == (2017, 9) and abs(halves["error"] - 0.25) < 1e-6, answer
    other = compare(write("a", laid_out(c, s, "half"), "f32", "npz"),
                    write("b", laid_out(*cos_sin(rope(4 * pairs), np.arange(3000), {}), "half"), "f32", "npz"))
    assert (other["pairs_a"], other["pairs_b"], other["halves"]) == (pairs, 2 * pairs, None)


def test_no_rotation():
    c, s = cos_sin(PLAIN, np.arange(100), {})
    wrong = {"cos": np.concatenate([c, c[:, ::-1]], -1), "sin": np.concatenate([s, s[:, ::-1]], -1)}
    answer = compare(PLAIN, write("dump", wrong, "f32", "npz"))
    assert answer["verdict"] == "different" and answer["halves_differ"]
    answer = compare(PLAIN, write("dump", laid_out(c * np.nan, s, "half"), "f32", "npz"))
    assert answer["verdict"] == "different" and answer["names"] == []


def test_bad_sides_are_refused_by_name():
    spec = '{"head_dim": 64}'
    c, s = cos_sin(PLAIN, np.arange(10), {})
    table = write("table", laid_out(c, s, "half"), "f32", "npz")
    refused("missing", spec)
    refused("no such.npz", spec, "no such.npz")
    refused("head_dim", spec, "{}")
    refused("hidden_size", spec, '{"hidden_size": 4096}')
    refused("byte", spec, '{"head_dim": 64')
    refused("base", spec, '{"head_dim": 64, "base": "big"}')
    refused("base", spec, '{"head_dim": 64, "base": 0}')
    refused("pairing", spec, '{"head_dim": 64, "pairing": "neox_style"}')
    refused("mode", spec, '{"head_dim": 64, "mode": 3}')
    refused("rotary_dim", spec, '{"head_dim": 64, "rotary_dim": 65}')
    refused("head_dim", spec, '{"head_dim": 64.5}')
    refused("head_dim", spec, '{"head_dim": -2}')
    refused("scaling", spec, '{"head_dim": 64, "scaling": 4}')
    refused("factor", spec, '{"head_dim": 64, "scaling": {"rope_type": "linear"}}')
    refused("sections", spec, '{"head_dim": 64, "axes": {"sections": []}}')
    refused("order", spec, '{"head_dim": 64, "axes": {"sections": [16, 16], "order": "zigzag"}}')
    refused("rows of the table", spec, table, "--positions", "11")
    (HERE / "bad.json").write_text("[1]")
    refused("bad.json", spec, "bad.json")
    for name, arrays in (("only", {"cos": c}), ("none", {"x": c}), ("shapes", {"cos": c, "sin": s[:5]}),
                         ("twice", {"cos": c, "cos_b": c, "sin": s}), ("odd", {"cos_sin": c[:, :7]})):
        for kind in ("npz", "safetensors"):
            refused("", spec, write(name, arrays, "f32", kind))
    np.savez_compressed(HERE / "packed.npz", cos=c, sin=s)
    refused("savez_compressed", spec, "packed.npz")
    np.savez(HERE / "whole.npz", cos=np.arange(10), sin=np.arange(10))
    refused("f4", spec, "whole.npz")
    np.save(HERE / "empty.npy", np.zeros((0, 64)))
    refused("empty.npy", spec, "empty.npy")


def test_damaged_archives_are_refused():
    c, s = cos_sin(PLAIN, np.arange(10), {})
    data = (HERE / write("table", laid_out(c, s, "half"), "f32", "npz")).read_bytes()
    spec = '{"head_dim": 64}'
    for cut in [*range(0, 60, 7), *range(60, len(data), 401), len(data) - 1]:
        (HERE / "cut.npz").write_bytes(data[:cut])
        refused("cut.npz", spec, "cut.npz")
    rng = np.random.default_rng(5)
    for _ in range(TRIALS):  # a changed byte may change a number, or the length of a name: never more than a message
        damaged = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            place = len(data) - 1 - rng.integers(0, 400) if rng.random() < 0.7 else rng.integers(0, len(data))
            damaged[place] = rng.integers(0, 256)
        (HERE / "damaged.npz").write_bytes(damaged)
        done = call(spec, "damaged.npz")
        assert done.returncode in (0, 1, 2), done
        assert (done.returncode == 2) == (done.stderr != "") and done.stderr.count("\n") <= 1, done


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules["__main__"]))
