#!/usr/bin/env python3
"""posenc diagnose against faults planted in NumPy: each cause by its name, random specs with one or two of them.

usage: test_diagnose.py PATH_OF_POSENC                               SPDX-License-Identifier: MIT
"""
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tap
from numpy_rope import NARROW, rotate, to_bf16
from vectors.cases_frequencies import GPT_OSS, LLAMA3, QWEN2_VL, YARN, longrope, rope

POSENC = Path(sys.argv[1]).resolve()
SEED = int(os.environ.get("POSENC_SEED", "20261129"))
TRIALS = 1000 if os.environ.get("POSENC_LONG") else 200
FOLDER = tempfile.TemporaryDirectory(prefix="posenc-diagnose-")
HERE = Path(FOLDER.name)
print(f"# seed {SEED}")


def save(path, x, dtype):
    """An array of values that `dtype` holds exactly."""
    if dtype == "bf16":
        bits = (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)
        np.save(path, bits.view("V2"))
    else:
        np.save(path, x.astype({"f64": np.float64, "f32": np.float32, "f16": np.float16}[dtype]))


def options(encoding, mode):
    words = ["--head-dim", encoding["head_dim"], "--rotary-dim", encoding["rotary_dim"], "--rotary-start",
             encoding["rotary_start"], "--base", repr(encoding["base"]), "--pairing", encoding["pairing"], "--mode", mode]
    scaling = dict(encoding.get("scaling", {}))
    if encoding.get("axes"):
        scaling = {"rope_type": "default", "mrope_section": encoding["axes"]["sections"]}
    if scaling:
        words += ["--scaling", json.dumps(scaling)]
    for name in ("max_positions", "seq_len"):
        if name in encoding:
            words += ["--" + name.replace("_", "-"), encoding[name]]
    return [str(word) for word in words]


def has_lists(positions):
    """One for each axis, or one for each sequence of the batch."""
    return isinstance(positions[0], (list, tuple))


def tokens_of(positions):
    return len(positions[0]) if has_lists(positions) else len(positions)


def diagnose(before, after, encoding, positions, *, dtype="f32", after_dtype=None, mode="exact", more=(), status=None):
    save(HERE / "before.npy", before, dtype)
    save(HERE / "after.npy", after, after_dtype or dtype)
    lists = positions if has_lists(positions) else [positions]
    text = (";" if "axes" in encoding else "/").join(",".join(map(str, one)) for one in lists)
    done = subprocess.run([POSENC, "diagnose", "--before", "before.npy", "--after", "after.npy", "--json", "--axes",
                           "batch,tokens,heads,head_dim", f"--positions={text}", *options(encoding, mode), *more],
                          capture_output=True, text=True, timeout=300, cwd=HERE)
    assert done.stderr == "", done.stderr
    answer = json.loads(done.stdout)
    assert done.returncode == (answer["verdict"] != "agrees"), (done.returncode, answer["verdict"])
    answer["names"] = [sorted(cause["name"] for cause in one["causes"]) for one in answer["explanations"]]
    return answer


def rotated(x, encoding, positions, faults, dtype):
    """As frameworks do: cos, sin, products and sums rounded in the array's dtype."""
    arithmetic = "f64" if dtype == "f32" else dtype
    return NARROW[dtype](rotate(x, encoding, positions, faults=faults, arithmetic=arithmetic))


def numbers(rng, shape, dtype):
    return NARROW[dtype](rng.standard_normal(shape))


# --- Every cause by its name ----------------------------------------------------------------------

PLAIN = rope(64, base=500000.0)
PART = rope(80, rotary_dim=32, rotary_start=8)
SCALED = rope(64, base=1e6, scaling=YARN)
FAR = list(range(1000, 1012))
MODELS = rope(128, base=1e6, axes=QWEN2_VL)
GRID = [[50] * 6 + [53], [50, 50, 50, 51, 51, 51, 53], [50, 51, 52, 50, 51, 52, 53]]
LONG = rope(64, scaling=longrope(32), seq_len=8000)
BATCH = [list(range(1000, 1008)), list(range(20, 28))] # each sequence its own
PADDED = [list(range(8)), [0, 0, 0, 0, 1, 2, 3, 4]]

SINGLE = [  # name, encoding, positions, faults, value
    ("other_mode", PLAIN, [100001, 99999, 123457, 5], {"float32_angles": True}, None),
    ("other_pairing", PLAIN, FAR, {"other_pairing": True}, None),
    ("pair_mix_up", PLAIN, FAR, {"pair_mix_up": True}, None),
    ("pair_mix_up", PLAIN, FAR, {"pair_mix_up": True, "other_pairing": True}, None),
    ("other_output_pairing", PLAIN, FAR, {"other_output_pairing": True}, None),
    ("negated_angle", PLAIN, FAR, {"negated_angle": True}, None),
    ("cos_sin_swapped", PLAIN, FAR, {"cos_sin_swapped": True}, None),
    ("not_rotated", PLAIN, FAR, {"not_rotated": True}, None),
    ("angle_doubled", PLAIN, FAR, {"angle_scale": 2}, None),
    ("angle_halved", PLAIN, FAR, {"angle_scale": 0.5}, None),
    ("base", PLAIN, FAR, {"encoding": {"base": 10000.0}}, 10000),
    ("base", PART, FAR, {"encoding": {"base": 5e6}}, 5e6),
    ("exponent_over_head_dim", PART, FAR, {"exponent_over_head_dim": True}, None),
    ("whole_head_rotated", PART, FAR, {"encoding": {"rotary_dim": 80, "rotary_start": 0}}, None),
    ("other_slice", PART, FAR, {"encoding": {"rotary_start": 0}}, 0),
    ("other_slice", PART, FAR, {"encoding": {"rotary_start": 48}}, 48),
    ("scaling_not_applied", rope(64, base=500000.0, scaling=LLAMA3), FAR, {"scaling_not_applied": True}, None),
    ("scaling_not_applied", SCALED, FAR, {"scaling_not_applied": True}, None),
    ("scaling_linear_instead", rope(64, base=500000.0, scaling=LLAMA3), FAR,
     {"encoding": {"scaling": {"rope_type": "linear", "factor": 8.0}}}, None),
    ("yarn_truncate", rope(64, base=150000.0, scaling=GPT_OSS), FAR,
     {"encoding": {"scaling": {**GPT_OSS, "truncate": True}}}, None),
    ("longrope_other_list", LONG, FAR, {"encoding": {"seq_len": 4096}}, None),
    ("magnitude_missing", SCALED, FAR, {"magnitude": "magnitude_missing"}, None),
    ("magnitude_doubled", SCALED, FAR, {"magnitude": "magnitude_doubled"}, None),
    ("other_magnitude", PLAIN, FAR, {"other_magnitude": 1.25}, 1.25),
    ("constant_position", PLAIN, FAR, {"constant_position": True}, 1000),
    ("position_restarts", PLAIN, FAR, {"position_restarts": True}, None),
    ("position_from_index", PLAIN, [7, 8, 9, 0, 1, 2, 3, 4], {"position_from_index": True}, None),
    ("position_of_head", PLAIN, FAR, {"position_of_head": True}, None),
    ("position_shifted", PLAIN, FAR, {"position_shifted": 1}, 1),
    ("position_shifted", PLAIN, FAR, {"position_shifted": -2}, -2),
    ("axes_reversed", MODELS, GRID, {"axes_reversed": True}, None),
    ("positions_bf16", PLAIN, FAR, {"positions_bf16": True}, None),
    ("positions_f16", PLAIN, [4001, 4003, 2051, 9], {"positions_f16": True}, None),
    ("frequencies_bf16", PLAIN, FAR, {"frequencies_bf16": True}, None),
    ("frequencies_f16", PLAIN, FAR, {"frequencies_f16": True}, None),
    ("angles_bf16", PLAIN, FAR, {"angles_bf16": True}, None),
    ("tables_bf16", PLAIN, FAR, {"tables_bf16": True}, None),
    ("tables_f16", PLAIN, FAR, {"tables_f16": True}, None),
    ("recurrence_drift", PLAIN, FAR, {"recurrence_drift": True}, None),
    ("batch_left_out", PLAIN, FAR, {"batch_left_out": 1}, None),
    ("batch_left_out", PLAIN, FAR, {"batch_left_out": 0}, None),
    ("heads_left_out", PLAIN, FAR, {"heads_left_out": True}, None),
    ("positions_of_first", PLAIN, BATCH, {"positions_of_first": True}, None),
    ("positions_of_first", PART, [[3, 3, 4, 5, 9], [0, 0, 1, 2, 3]], {"positions_of_first": True}, None),
    ("position_restarts", PLAIN, BATCH, {"position_restarts": True}, None),
    ("position_restarts", PLAIN, [BATCH[1][:4], [0, 1, 2, 3]], {"position_restarts": True}, None),
    ("position_from_index", PLAIN, [[5, 5, 6, 7, 8], [9, 10, 11, 12, 13]], {"position_from_index": True}, None),
    ("constant_position", PLAIN, BATCH, {"constant_position": True}, 1000),
    ("position_shifted", PLAIN, BATCH, {"position_shifted": 1}, 1),
    ("other_pairing", PLAIN, BATCH, {"other_pairing": True}, None),
    ("batch_left_out", PLAIN, BATCH, {"batch_left_out": 1}, None),
    ("shift_measured", PLAIN, BATCH, {"position_shifted": 700}, 700),
    ("shift_measured", PLAIN, FAR, {"position_shifted": 700}, 700),
    ("shift_measured", PART, [5, 900, 31], {"position_shifted": -37}, -37),
    ("angles_scaled", PLAIN, FAR, {"angle_scale": 0.25}, 0.25),
    ("angles_scaled", SCALED, FAR, {"angle_scale": 1 / 3}, 1 / 3),
    ("angles_scaled", PLAIN, FAR, {"angle_scale": 1.375}, 1.375),
    ("base_measured", PLAIN, FAR, {"encoding": {"base": 123456.0}}, 123456),
    ("base_measured", PART, FAR, {"encoding": {"base": 40890.0}}, 40890),
]


def test_every_cause_is_named():
    rng = np.random.default_rng(SEED)
    for name, encoding, positions, faults, value in SINGLE:
        x = numbers(rng, (2, tokens_of(positions), 3, encoding["head_dim"]), "f32")
        answer = diagnose(x, rotated(x, encoding, positions, faults, "f32"), encoding, positions)
        assert answer["names"] == [[name]], (name, faults, answer["names"], answer["verdict"])
        cause = answer["explanations"][0]["causes"][0]
        assert value is None or abs(cause["value"] / (value or 1) - (value != 0)) < 1e-6, (name, cause)
    listed = subprocess.run([POSENC, "diagnose", "--causes"], capture_output=True, text=True).stdout
    assert sorted(line.split(" ")[0] for line in listed.splitlines()) == sorted({row[0] for row in SINGLE})


def test_what_agrees_agrees():
    rng = np.random.default_rng(SEED + 1)
    for dtype in ("f64", "f32", "f16", "bf16"):
        for encoding, positions in ((PLAIN, FAR), (PART, [0, 1, -5, 4095]), (SCALED, [131071, 7, 40000]),
                                    (MODELS, GRID), (LONG, FAR), (PLAIN, BATCH), (PART, PADDED)):
            x = numbers(rng, (2, tokens_of(positions), 3, encoding["head_dim"]), dtype)
            for faults, mode in (({}, "exact"), ({"float32_angles": True}, "float32")):
                if mode == "float32" and dtype == "f64":
                    continue  # its rows are float32 numbers
                answer = diagnose(x, rotated(x, encoding, positions, faults, dtype), encoding, positions, dtype=dtype,
                                  mode=mode)
                assert answer["verdict"] == "agrees" and answer["differing"] == 0, (dtype, encoding, answer)
    # Other dtypes before and after, and what the program itself writes.
    x = numbers(rng, (1, 12, 2, 64), "f32")
    answer = diagnose(x, to_bf16(rotate(x, PLAIN, FAR)), PLAIN, FAR, after_dtype="bf16")
    assert answer["verdict"] == "agrees"
    inverse = rotate(x, SCALED, FAR, direction="inverse")
    assert diagnose(x, inverse, SCALED, FAR, more=["--inverse"])["verdict"] == "agrees"


def test_other_things_are_unexplained():
    rng = np.random.default_rng(SEED + 2)
    x = numbers(rng, (2, 12, 2, 64), "f32")
    y = rotated(x, PLAIN, FAR, {}, "f32")
    one_element, scaled_channel, permuted = y.copy(), y.copy(), y[..., rng.permutation(64)]
    one_element[1, 5, 1, 7] += 0.5
    scaled_channel[..., 3] *= 1.5
    three = rotated(x, PLAIN, FAR, {"other_pairing": True, "negated_angle": True, "encoding": {"base": 1e7}}, "f32")
    for after in (rng.standard_normal(x.shape), one_element, scaled_channel, permuted, three, y * 0, y + 1e-3):
        answer = diagnose(x, after, PLAIN, FAR)
        assert answer["verdict"] == "unexplained" and answer["names"] == [], answer
    answer = diagnose(x, one_element, PLAIN, FAR)
    worst = answer["worst"]
    assert answer["differing"] == 1 and (worst["batch"], worst["token"], worst["head"], worst["channel"]) == (1, 5, 1, 7)
    assert worst["position"] == 1005 and abs(worst["error"] - 0.5) < 1e-5
    assert not answer["is_rotation_half"]
    answer = diagnose(x, three, PLAIN, FAR)
    assert answer["is_rotation_interleaved"] and not answer["is_rotation_half"] and abs(answer["magnitude"] - 1) < 1e-6


def test_a_hypothesis_of_infinite_angles_needs_them():
    """Float16 positions overflow; what is predicted to be no number has to be none."""
    rng = np.random.default_rng(SEED + 6)
    part = rope(48, rotary_dim=18, rotary_start=30)
    positions = [[84342 + i for i in range(7)], [56017 + i for i in range(7)], [20 + i for i in range(7)]]
    for dtype, names, planted in (("f16", ["batch_left_out", "negated_angle"], {"batch_left_out": 1, "negated_angle": True}),
                                  ("f32", ["batch_left_out", "negated_angle"], {"batch_left_out": 1, "negated_angle": True}),
                                  ("f16", ["negated_angle", "position_shifted"], {"negated_angle": True, "position_shifted": 2}),
                                  ("f16", ["positions_f16"], {"positions_f16": True})):
        for encoding in (part, PLAIN):
            x = numbers(rng, (3, 7, 1, encoding["head_dim"]), dtype)
            answer = diagnose(x, rotated(x, encoding, positions, planted, dtype), encoding, positions, dtype=dtype)
            assert answer["names"][0] == names, (dtype, names, answer["names"])
            assert not any("not_rotated" in one or ("positions_f16" in one and one != names) for one in answer["names"]), \
                answer["names"]


# --- Random specs, one or two faults ------------------------------------------------------------

def random_encoding(r):
    d = r.choice([32, 48, 64, 80, 96, 128])
    part = r.random() < 0.3
    rotary = 2 * r.randint(4, d // 4) if part else d
    start = r.choice([0, d - rotary]) if part else 0
    encoding = rope(d, rotary_dim=rotary, rotary_start=start, base=r.choice([10000.0, 500000.0, 1e6, 5e6, 150000.0]),
                    pairing=r.choice(["half", "interleaved"]))
    kind = r.choice(["none", "none", "linear", "ntk", "dynamic", "yarn", "gpt_oss", "llama3", "longrope"])
    if kind == "linear" or kind == "ntk":
        encoding["scaling"] = {"rope_type": kind, "factor": r.choice([2.0, 4.0, 8.0])}
    elif kind == "dynamic":
        encoding.update(scaling={"rope_type": kind, "factor": 4.0}, max_positions=2048, seq_len=r.randint(3000, 9000))
    elif kind == "longrope":
        encoding.update(scaling=longrope(rotary // 2), seq_len=r.choice([4000, 9000]))
    elif kind != "none":
        encoding["scaling"] = {"yarn": YARN, "gpt_oss": GPT_OSS, "llama3": LLAMA3}[kind]
    return encoding


def random_positions(r):
    """One list, or one for each of two or three sequences."""
    tokens = r.randint(6, 20)
    if r.random() < 0.7:
        return random_list(r, tokens)
    return [random_list(r, tokens) for _ in range(r.randint(2, 3))]


def random_list(r, tokens):
    start = r.choice([20, 300, 4096, r.randint(10, 20000), r.randint(10, 100000)])
    if r.random() < 0.7:
        return list(range(start, start + tokens))
    return [start + r.randint(0, 3 * tokens) for _ in range(tokens)]


def random_shape(r, positions, encoding):
    batch = len(positions) if has_lists(positions) else r.randint(2, 3)
    return batch, tokens_of(positions), r.randint(1, 4), encoding["head_dim"]


def random_fault(r, encoding, positions):
    """(name, faults) or None if it does not apply."""
    scaling = encoding.get("scaling", {})
    part = encoding["rotary_dim"] < encoding["head_dim"]
    has_factor = scaling.get("rope_type") in ("yarn", "longrope")
    shift = r.choice([1, -1, 2])
    base = r.choice([10000.0, 500000.0, 1e6, 1e7, 100000.0])
    name, faults, applies = r.choice([
        ("other_pairing", {"other_pairing": True}, True),
        ("pair_mix_up", {"pair_mix_up": True}, True),
        ("exponent_over_head_dim", {"exponent_over_head_dim": True}, part and scaling.get("rope_type") != "longrope"),
        ("scaling_not_applied", {"scaling_not_applied": True}, bool(scaling)),
        ("magnitude_missing", {"magnitude": "magnitude_missing"}, has_factor),
        ("magnitude_doubled", {"magnitude": "magnitude_doubled"}, has_factor),
        ("constant_position", {"constant_position": True}, True),
        ("position_restarts", {"position_restarts": True}, True),
        ("positions_of_first", {"positions_of_first": True}, has_lists(positions)),
        ("position_shifted", {"position_shifted": shift}, True),
        ("positions_bf16", {"positions_bf16": True}, True),
        ("positions_f16", {"positions_f16": True}, True),
        ("frequencies_bf16", {"frequencies_bf16": True}, True),
        ("angle_doubled", {"angle_scale": 2}, True),
        ("recurrence_drift", {"recurrence_drift": True}, not scaling),
        ("base", {"encoding": {"base": base}}, base != encoding["base"]),
        ("batch_left_out", {"batch_left_out": 1}, True),
        ("negated_angle", {"negated_angle": True}, True),
        ("cos_sin_swapped", {"cos_sin_swapped": True}, True),
    ])
    return (name, faults) if applies else None


# Two of one group overwrite or imitate one another.
GROUPS = [{"other_pairing", "pair_mix_up"}, {"magnitude_missing", "magnitude_doubled", "scaling_not_applied"},
          {"constant_position", "position_restarts", "position_shifted", "positions_of_first"},
          {"batch_left_out", "positions_of_first"},
          {"recurrence_drift", "exponent_over_head_dim", "frequencies_bf16"}]


def random_faults(r, encoding, positions, count):
    while True:
        drawn = [random_fault(r, encoding, positions) for _ in range(count)]
        names = {fault[0] for fault in drawn if fault}
        if len(names) == count and not any(len(names & group) > 1 for group in GROUPS):
            return names, [fault[1] for fault in drawn]


def merged(list_of_faults):
    return {key: value for faults in list_of_faults for key, value in faults.items()}


def shows(x, encoding, positions, planted, dtype):
    """Whether every fault changes the array by much more than its rounding does, given the others."""
    whole = rotate(x, encoding, positions, faults=merged(planted))
    unit = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}[dtype]
    for i in range(len(planted)):
        part = rotate(x, encoding, positions, faults=merged(planted[:i] + planted[i + 1:]))
        if np.sum(np.abs(whole - part) > 40 * unit) < 8:
            return False
    return True


def random_trial(r, rng):
    """A trial whose faults show."""
    while True:
        encoding, positions, dtype = random_encoding(r), random_positions(r), r.choice(["f32", "f16", "bf16", "bf16"])
        x = numbers(rng, random_shape(r, positions, encoding), dtype)
        names, planted = random_faults(r, encoding, positions, r.choice([1, 2]))
        if shows(x, encoding, positions, planted, dtype):
            return encoding, positions, dtype, x, names, planted


# How to plant what posenc names, for the test below.
PLANT = {"other_mode": {"float32_angles": True}, "angle_doubled": {"angle_scale": 2}, "angle_halved": {"angle_scale": 0.5},
         "magnitude_missing": {"magnitude": "magnitude_missing"}, "magnitude_doubled": {"magnitude": "magnitude_doubled"}}


def is_the_same_array(explanation, x, encoding, positions, faults, dtype):
    """Whether rotating with the faults that were named gives what was given: positions that all round to one
    number are a constant position, and nobody can tell."""
    named = {}
    for cause in explanation["causes"]:
        planted = PLANT.get(cause["name"], {cause["name"]: True if cause["value"] is None else cause["value"]})
        named.update({"encoding": {"base": cause["value"]}} if cause["name"] == "base" else planted)
    if explanation["mode"] == "float32":
        named["float32_angles"] = True
    return np.array_equal(rotated(x, encoding, positions, named, dtype), rotated(x, encoding, positions, faults, dtype))


def test_random_faults_are_diagnosed_rightly():
    r, rng = random.Random(SEED), np.random.default_rng(SEED + 3)
    right = alone = unexplained = same = 0
    wrong = []
    for trial in range(TRIALS):
        encoding, positions, dtype, x, names, planted = random_trial(r, rng)
        faults = merged(planted)
        # A running product differs from float32 angles by little more than these from one another.
        mode = r.choice(["exact", "float32"]) if "recurrence_drift" not in faults else "exact"
        if mode == "float32":
            faults["float32_angles"] = True
        answer = diagnose(x, rotated(x, encoding, positions, faults, dtype), encoding, positions, dtype=dtype, mode=mode)
        if sorted(names) in answer["names"]:
            right += 1
            alone += len(answer["names"]) == 1
        elif answer["verdict"] == "unexplained":
            unexplained += 1
            print(f"# unexplained: {sorted(names)} {dtype} {mode} {encoding} {positions}")
        elif any(is_the_same_array(one, x, encoding, positions, faults, dtype) for one in answer["explanations"]):
            same += 1
        else:
            wrong.append((trial, sorted(names), answer["verdict"], answer["names"], dtype, mode, encoding, positions))
    print(f"# of {TRIALS}: {right} right, {alone} of them without an alternative, {same} by another name "
          f"for the same bytes, {unexplained} unexplained")
    assert not wrong, f"{len(wrong)} named wrongly: {wrong[:5]}"
    assert right >= 0.99 * TRIALS and alone >= 0.9 * TRIALS


def test_three_random_faults_are_not_explained_by_fewer():
    r, rng = random.Random(SEED + 5), np.random.default_rng(SEED + 5)
    seen, wrong = 0, []
    while seen < TRIALS // 4:
        encoding, positions, dtype = random_encoding(r), random_positions(r), r.choice(["f32", "f16", "bf16"])
        x = numbers(rng, random_shape(r, positions, encoding), dtype)
        names, planted = random_faults(r, encoding, positions, 3)
        if "recurrence_drift" in names or not shows(x, encoding, positions, planted, dtype):
            continue  # drift is little more than float32 angles are, which may stand beside two causes
        seen += 1
        faults = merged(planted)
        answer = diagnose(x, rotated(x, encoding, positions, faults, dtype), encoding, positions, dtype=dtype)
        if answer["verdict"] != "unexplained" and not any(
                is_the_same_array(one, x, encoding, positions, faults, dtype) for one in answer["explanations"]):
            wrong.append((sorted(names), answer["names"], dtype, encoding, positions))
    assert not wrong, f"{len(wrong)} of {seen} wrong: {wrong[:3]}"


COARSE = {"base_measured": 0.05, "angles_scaled": 0.01}  # 16-bit arrays tell no more of a few tokens


def test_random_numbers_are_measured():
    r, rng = random.Random(SEED + 4), np.random.default_rng(SEED + 4)
    planted = [lambda: ("base_measured", {"encoding": {"base": float(r.randint(11000, 90000))}}, 1e-9),
               lambda: ("shift_measured", {"position_shifted": r.randint(9, 90)}, 1e-9),
               lambda: ("angles_scaled", {"angle_scale": 1 / r.choice([3, 4, 8, 16, 2.5, 1.25])}, 1e-9),
               lambda: ("angles_scaled", {"angle_scale": r.uniform(0.6, 0.9)}, 2e-3)]
    wrong, seen, measured, alone = [], 0, 0, 0
    while seen < TRIALS // 2:
        encoding, positions, dtype = random_encoding(r), random_positions(r), r.choice(["f32", "f16", "bf16"])
        x = numbers(rng, random_shape(r, positions, encoding), dtype)
        name, faults, allowed = r.choice(planted)()
        if not shows(x, encoding, positions, [faults], dtype):
            continue
        seen += 1
        number = faults.get("position_shifted") or faults.get("angle_scale") or faults["encoding"]["base"]
        answer = diagnose(x, rotated(x, encoding, positions, faults, dtype), encoding, positions, dtype=dtype)
        right = [one for one in answer["explanations"] if [cause["name"] for cause in one["causes"]] == [name] and
                 abs(one["causes"][0]["value"] / number - 1) <= (allowed if dtype == "f32" else COARSE.get(name, 0))]
        measured += bool(right)
        alone += bool(right) and len(answer["explanations"]) == 1
        if answer["explanations"] and not right:
            wrong.append((answer["explanations"], faults, dtype, encoding, positions))
    print(f"# of {seen}: {measured} measured, {alone} of them without an alternative")
    assert not wrong, f"{len(wrong)} of {seen} wrong: {wrong[:3]}"
    assert measured > 0.7 * seen


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules["__main__"]))
