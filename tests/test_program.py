#!/usr/bin/env python3
"""The program from outside: its numbers against NumPy, its files, its errors.

usage: test_program.py PATH_OF_POSENC SOURCE_DIR                      SPDX-License-Identifier: MIT
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tap

POSENC, SOURCE = sys.argv[1], Path(sys.argv[2])
ACTIVATIONS = SOURCE / "data" / "activations"
SHARED = SOURCE.parent / "shared"
FOLDER = tempfile.TemporaryDirectory(prefix="posenc-test-")
HERE = Path(FOLDER.name)
SEED = int(os.environ.get("POSENC_SEED", "20261129"))
print(f"# seed {SEED}")


def call(line, *more, status=0):
    """Runs posenc with the words of `line` and returns stdout and stderr; checks the exit status."""
    command = [POSENC, *shlex.split(line), *map(str, more)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=HERE)
    assert done.returncode == status, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def answer(line, *more):
    return json.loads(call(line, *more, "--json")[0])


def refused(line, *parts):
    """The call ends with status 2, one line on stderr that has all `parts`, and leaves no file."""
    before = sorted(p.name for p in HERE.iterdir())
    out, err = call(line, status=2)
    assert out == "", out
    assert err.startswith("posenc") and err.count("\n") == 1, err
    for part in parts:
        assert part in err, f"{part!r} not in {err!r}"
    assert sorted(p.name for p in HERE.iterdir()) == before


def rope(x, positions, base=10000.0, pairing="half"):
    """NumPy's rotation of x (..., tokens, d), with angles in long double."""
    d = x.shape[-1]
    w = np.longdouble(base) ** (-np.arange(0, d, 2, dtype=np.longdouble) / d)
    angles = np.asarray(positions, dtype=np.longdouble)[:, None] * w
    c, s = np.cos(angles), np.sin(angles)
    a, b = (x[..., : d // 2], x[..., d // 2 :]) if pairing == "half" else (x[..., 0::2], x[..., 1::2])
    y = np.empty(x.shape)
    ya, yb = a * c - b * s, a * s + b * c
    if pairing == "half":
        y[..., : d // 2], y[..., d // 2 :] = ya, yb
    else:
        y[..., 0::2], y[..., 1::2] = ya, yb
    return y


def pair_error(got, wanted):
    """Largest distance over interleaved pairs, relative to the pair's magnitude."""
    got, wanted = np.float64(got), np.float64(wanted)
    size = np.hypot(wanted[..., 0::2], wanted[..., 1::2])
    distance = np.hypot(got[..., 0::2] - wanted[..., 0::2], got[..., 1::2] - wanted[..., 1::2])
    return np.max(distance / size)


def check_activations(folder):
    for layer in (0, 4):
        for name in "qk":
            out = HERE / "out.npy"
            call("rotate --head-dim 8 --pairing interleaved --axes tokens,heads,head_dim -o", out,
                 folder / f"layer{layer}_{name}.npy")
            got, wanted = np.load(out), np.load(folder / f"layer{layer}_{name}_rotated_f64.npy")
            assert got.dtype == np.float32 and got.shape == wanted.shape
            error = pair_error(got, wanted)
            assert error <= 1.8e-7, error
            out.unlink()


def test_queries_and_keys_of_a_trained_model_are_rotated_rightly():
    check_activations(ACTIVATIONS)


def test_given_activations_outside_the_project_are_rotated_rightly():
    folder = SHARED / "data" / "activations"
    if not folder.is_dir():
        return "no shared data beside the project"
    check_activations(folder)


def test_rotate_in_every_dtype_order_and_byte_order():
    random = np.random.default_rng(SEED)
    shape, positions = (2, 3, 5, 16), np.array([0, 7, 1048576, -3, 65535])
    x = random.normal(size=shape)
    tolerance = {"f2": 4e-3, "f4": 1e-6, "f8": 1e-13}
    for kind, limit in tolerance.items():
        for order in "CF":
            for endian in "<>":
                given = np.array(x, dtype=endian + kind, order=order)
                np.save(HERE / "in.npy", given)
                for pairing in ("half", "interleaved"):
                    call("rotate in.npy -o out.npy --axes batch,heads,tokens,head_dim "
                         f"--positions 0,7,1048576,-3,65535 --pairing {pairing}")
                    got = np.load(HERE / "out.npy")
                    assert got.dtype == np.dtype(kind) and got.flags.f_contiguous == (order == "F")
                    wanted = rope(given.astype(np.float64), positions, pairing=pairing)
                    assert np.max(np.abs(got - wanted)) < limit * 4, (kind, order, endian, pairing)


def test_rotate_finds_its_axes_wherever_they_stand():
    random = np.random.default_rng(SEED)
    names = ["batch", "tokens", "heads", "head_dim"]
    x = random.normal(size=(2, 7, 3, 6)).astype(np.float64)  # in the order of names
    wanted = rope(x.transpose(0, 2, 1, 3), np.arange(7)).transpose(0, 2, 1, 3)
    import itertools
    for order in itertools.permutations(range(4)):
        for layout in "CF":
            np.save(HERE / "in.npy", np.array(x.transpose(order), order=layout))
            call("rotate in.npy -o out.npy --axes", ",".join(names[i] for i in order))
            got = np.load(HERE / "out.npy")
            assert np.max(np.abs(got - wanted.transpose(order))) < 1e-14, (order, layout)
    np.save(HERE / "in.npy", x.reshape(2, 1, 7, 3, 6))  # several batch axes
    call("rotate in.npy -o out.npy --axes batch,batch,tokens,heads,head_dim")
    assert np.max(np.abs(np.load(HERE / "out.npy").reshape(x.shape) - wanted)) < 1e-14


def test_rotate_default_axes_are_batch_tokens_head_dim():
    x = np.random.default_rng(SEED).normal(size=(3, 4, 10))
    np.save(HERE / "in.npy", x)
    call("rotate in.npy -o out.npy")
    assert np.max(np.abs(np.load(HERE / "out.npy") - rope(x, np.arange(4)))) < 1e-14
    np.save(HERE / "in.npy", x[0, 0])  # one vector
    call("rotate in.npy -o out.npy --positions 6:7")
    assert np.max(np.abs(np.load(HERE / "out.npy") - rope(x[0, :1], [6])[0])) < 1e-14


def test_rotate_in_blocks_and_threads_gives_the_same_bytes():
    x = np.random.default_rng(SEED).normal(size=(4000, 9, 160)).astype(np.float32)  # over one block
    np.save(HERE / "in.npy", x)
    for order in ("tokens,heads,head_dim", "heads,tokens,head_dim", "batch,tokens,head_dim"):
        call(f"rotate in.npy -o one.npy --axes {order}")
        call(f"rotate in.npy -o two.npy --axes {order} --threads 3")
        one, two = np.load(HERE / "one.npy"), np.load(HERE / "two.npy")
        assert one.tobytes() == two.tobytes()
    moved = rope(x.transpose(1, 0, 2)[:, 3000:3010].astype(np.float64), np.arange(3000, 3010))
    call("rotate in.npy -o one.npy --axes tokens,heads,head_dim")
    assert np.max(np.abs(np.load(HERE / "one.npy")[3000:3010] - moved.transpose(1, 0, 2))) < 2e-6
    np.save(HERE / "in.npy", np.asfortranarray(x))  # head_dim is the slowest axis of the file
    call("rotate in.npy -o two.npy --axes tokens,heads,head_dim")
    assert np.array_equal(np.load(HERE / "one.npy"), np.load(HERE / "two.npy"))


def test_rotate_memory_stays_small_for_large_files():
    shape = (64, 4096, 128)  # 256 MiB of float64
    np.lib.format.open_memmap(HERE / "big.npy", mode="w+", dtype=np.float64, shape=shape).flush()
    code = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=2);"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    command = [sys.executable, "-c", code, POSENC, "rotate", "big.npy", "-o", "big_out.npy"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, check=True)
    kibibytes = int(done.stdout)
    (HERE / "big.npy").unlink()
    (HERE / "big_out.npy").unlink()
    limit = 1 << 20 if "sanitize" in POSENC else 128 << 10  # sanitizers keep freed memory
    assert kibibytes < limit, kibibytes


def test_rotate_undoes_and_keeps_other_channels():
    x = np.random.default_rng(SEED).normal(size=(5, 24))
    np.save(HERE / "in.npy", x)
    flags = "--rotary-dim 8 --rotary-start 6 --positions 100000:100005"
    call(f"rotate in.npy -o out.npy {flags}")
    got = np.load(HERE / "out.npy")
    assert np.array_equal(got[:, :6], x[:, :6]) and np.array_equal(got[:, 14:], x[:, 14:])
    assert np.max(np.abs(got[:, 6:14] - rope(x[:, 6:14], np.arange(100000, 100005)))) < 1e-9
    for undo in ("--inverse", "--backward"):
        call(f"rotate out.npy -o back.npy {flags} {undo}")
        assert np.max(np.abs(np.load(HERE / "back.npy") - x)) < 1e-14
    call(f"rotate out.npy -o out.npy {flags} --inverse")  # onto itself
    assert np.max(np.abs(np.load(HERE / "out.npy") - x)) < 1e-14


def test_rotate_writes_the_other_pairing():
    x = np.random.default_rng(3).standard_normal((2, 7, 3, 12)).astype(np.float32)
    np.save(HERE / "in.npy", x)
    flags = "--axes batch,tokens,heads,head_dim --rotary-dim 8 --rotary-start 2"
    for pairing, other in (("half", "interleaved"), ("interleaved", "half")):
        call(f"rotate in.npy -o same.npy {flags} --pairing {pairing}")
        said = answer(f"rotate in.npy -o out.npy {flags} --pairing {pairing} --output-pairing {other}")
        assert (said["pairing"], said["output_pairing"]) == (pairing, other)
        same, out = np.load(HERE / "same.npy"), np.load(HERE / "out.npy")
        pairs = same[..., 2:10].reshape(2, 7, 3, *((2, 4) if pairing == "half" else (4, 2)))
        same[..., 2:10] = pairs.swapaxes(-1, -2).reshape(2, 7, 3, 8)
        assert np.array_equal(out.view(np.uint32), same.view(np.uint32)), pairing
    refused("rotate in.npy -o new.npy --output-pairing alternate", "--output-pairing", "interleaved for pairs")


def test_rotate_in_mode_float32_uses_the_angles_of_frameworks():
    d, positions = 64, np.array([0, 1, 5000, 131071, 1048575])
    power = np.float32(10000.0) ** (np.arange(0, d, 2).astype(np.float32) / np.float32(d))
    angles = positions.astype(np.float32)[:, None] * (np.float32(1) / power.astype(np.float32))
    out = answer("angles --head-dim 64 --mode float32 --positions 0,1,5000,131071,1048575")
    assert out["mode"] == "float32"
    # NumPy's power may differ by an ulp, which moves the angle by position * 2^-24 and a bit.
    bound = np.abs(positions)[:, None] * 2.0**-22 + 1e-7
    assert np.all(np.abs(np.array(out["cos"]) - np.cos(angles.astype(np.float64))) <= bound)
    assert np.all(np.abs(np.array(out["sin"]) - np.sin(angles.astype(np.float64))) <= bound)
    exact = answer("angles --head-dim 64 --positions 0,1,5000,131071,1048575")
    assert np.max(np.abs(np.array(out["cos"]) - np.array(exact["cos"]))[-1]) > 1e-3
    x = np.random.default_rng(SEED).normal(size=(5, d))
    np.save(HERE / "in.npy", x)
    call("rotate in.npy -o out.npy --mode float32 --positions 0,1,5000,131071,1048575")
    c, s = np.array(out["cos"]), np.array(out["sin"])
    wanted = np.concatenate([x[:, :32] * c - x[:, 32:] * s, x[:, :32] * s + x[:, 32:] * c], axis=1)
    assert np.max(np.abs(np.load(HERE / "out.npy") - wanted)) < 1e-15


def test_angles_in_every_row_layout():
    flags = "angles --head-dim 12 --rotary-dim 8 --base 500000 --positions 3,100000"
    half = answer(flags)
    assert half["positions"] == [3, 100000] and half["mode"] == "exact"
    cos, sin = np.array(half["cos"]), np.array(half["sin"])
    w = 500000.0 ** (-np.arange(0, 8, 2) / 8)
    for got, f in ((cos, np.cos), (sin, np.sin)):
        assert np.max(np.abs(got - f(np.array([[3], [100000]]) * w))) < 4e-8
        assert np.array_equal(got, got.astype(np.float32))
    full = answer(flags + " --rows full-half")
    assert np.array_equal(full["cos"], np.concatenate([cos, cos], axis=1))
    assert np.array_equal(full["sin"], np.concatenate([sin, sin], axis=1))
    full = answer(flags + " --rows full-interleaved")
    assert np.array_equal(full["cos"], np.repeat(cos, 2, axis=1))
    assert np.array_equal(full["sin"], np.repeat(sin, 2, axis=1))
    assert np.array_equal(answer(flags + " --rows cos-sin")["rows"], np.concatenate([cos, sin], axis=1))
    assert np.array_equal(answer(flags + " --rows pairs")["rows"],
                          np.stack([cos, sin], axis=2).reshape(2, 8))
    double = answer(flags + " --dtype f64")
    assert np.array_equal(np.float32(double["cos"]), np.float32(cos))
    assert not np.array_equal(double["cos"], cos)
    narrow = answer(flags + " --dtype f16")
    assert np.array_equal(np.float16(narrow["cos"]), np.array(narrow["cos"]))


def test_frequencies():
    out = answer("frequencies --head-dim 128 --base 500000")
    w = 500000.0 ** (-np.arange(0, 128, 2) / 128)
    assert np.max(np.abs(np.array(out["inv_freq"]) / w - 1)) < 1e-15
    assert out["inv_freq"][0] == 1 and out["attention_factor"] == 1
    assert set(out["defaulted"]) == {"rotary_dim", "pairing"}
    assert np.max(np.abs(np.array(out["wavelengths"]) * out["inv_freq"] - 2 * np.pi)) < 1e-14
    out = answer("frequencies --head-dim 128 --mode float32 --seq-len 4096")
    assert np.array_equal(np.float32(out["inv_freq"]), np.array(out["inv_freq"]))
    assert set(out["defaulted"]) == {"rotary_dim", "base", "pairing"}
    text = call("frequencies --head-dim 16 --rotary-dim 8 --pairing interleaved")[0]
    assert "(6, 7)" in text and "(8, 9)" not in text
    assert "(3, 7)" in call("frequencies --head-dim 16 --rotary-dim 8 --pairing half")[0]


def sinusoid(positions, d, layout="interleaved", shift=0, base=10000.0, scale=1.0):
    k = np.arange(d // 2)
    angles = np.asarray(positions, float)[:, None] * scale * base ** (-k / (d / 2 - shift))
    s, c = np.sin(angles), np.cos(angles)
    if layout == "interleaved":
        return np.stack([s, c], axis=2).reshape(len(s), d)
    return np.concatenate([s, c] if layout == "sin-cos" else [c, s], axis=1)


def test_sinusoidal_in_every_convention():
    for layout in ("interleaved", "sin-cos", "cos-sin"):
        for shift in (0, 1):
            flags = f"sinusoidal --dim 32 --layout {layout} --shift {shift} --base 777 --scale 2.5"
            wanted = sinusoid(np.arange(40), 32, layout, shift, 777.0, 2.5)
            assert np.max(np.abs(np.array(answer(flags + " --positions 40")["table"]) - wanted)) < 1e-13
            call(flags + " --positions 40 -o table.npy")
            got = np.load(HERE / "table.npy")
            assert got.shape == (40, 32) and np.max(np.abs(got - wanted)) < 1e-13
    got = np.array(answer("sinusoidal --dim 8 --positions 0.25,-1.5,999.125")["table"])
    assert np.max(np.abs(got - sinusoid([0.25, -1.5, 999.125], 8))) < 1e-13
    got = np.array(answer("sinusoidal --dim 8 --positions 4 --start 10 --padding 1")["table"])
    wanted = sinusoid(np.arange(10, 14), 8)
    wanted[1] = 0
    assert np.max(np.abs(got - wanted)) < 1e-13
    call("sinusoidal --dim 8 --positions 5 --dtype f16 -o table.npy")
    assert np.load(HERE / "table.npy").dtype == np.float16


def test_sinusoidal_odd_widths():
    paper = [0.841471, 0.540302, 0.025116, 0.999685, 0.000631]
    zero = [0.841471, 0.540302, 0.01, 0.99995, 0]
    concat = [0.841471, 0.025116, 0.000631, 0.540302, 0.999685]
    for rule, layout, wanted in (("truncate", "interleaved", paper), ("ceil", "interleaved", paper),
                                 ("zero", "interleaved", zero), ("ceil", "sin-cos", concat),
                                 ("truncate", "sin-cos", concat)):
        got = answer(f"sinusoidal --dim 5 --positions 1:2 --odd {rule} --layout {layout}")["table"][0]
        assert np.max(np.abs(np.array(got) - wanted)) < 1e-6, (rule, layout, got)


def test_alibi():
    out = answer("alibi --heads 6 --queries 3 --keys 5")
    assert out["slopes"] == [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]
    for h, slope in enumerate(out["slopes"]):
        for i in range(3):
            for j in range(5):
                wanted = None if j > i + 2 else -slope * (i + 2 - j)
                assert out["bias"][h][i][j] == wanted
    out = answer("alibi --heads 6 --queries 2 --keys 2 --slopes plain --symmetric --query-offset 0")
    assert abs(out["slopes"][0] - 0.3968502629920499) < 1e-16
    assert out["bias"][0] == [[0, -out["slopes"][0]], [-out["slopes"][0], 0]]
    assert answer("alibi --heads 4 --queries 1 --keys 1 --max-bias 4")["slopes"][3] == 2.0**-4
    call("alibi --heads 12 --queries 4 --keys 9 --query-offset 2 --dtype f32 -o bias.npy --threads 2")
    got = np.load(HERE / "bias.npy")
    assert got.shape == (12, 4, 9) and got.dtype == np.float32
    slopes = np.float32(answer("alibi --heads 12 --queries 1 --keys 1")["slopes"])
    distance = (np.arange(4)[:, None] + 2 - np.arange(9)).astype(np.float32)
    wanted = np.where(distance < 0, -np.inf, -slopes[:, None, None] * distance)
    assert np.array_equal(got, wanted)
    assert "no power of two" in call("alibi --heads 6 --queries 1 --keys 1")[0]
    assert "no power of two" not in call("alibi --heads 8 --queries 1 --keys 1")[0]


def test_demo_shows_the_known_numbers():
    text = call("demo")[0]
    assert text.count("-6.530165") >= 4
    for number in ("+1.331200", "+1.368584", "+1.388781", "0.3969", "0.2500"):
        assert number in text, number
    assert max(map(len, text.splitlines())) <= 80
    assert "\033" not in text, "colour although this is no terminal"
    numbers = answer("demo")
    assert np.max(np.abs(np.array(numbers["rope_scores"]) + 6.530165)) < 5e-7
    assert np.max(np.abs(np.array(numbers["base_scores"]) - [1.331200, 1.368584, 1.388781])) < 5e-7
    assert numbers["cached_decoding_difference"] == [0]


def scaled(scaling, more=""):
    """posenc frequencies with a rope_parameters block."""
    return answer(f"frequencies --head-dim 64 {more} --scaling", json.dumps(scaling))


def test_scalings_are_read_as_transformers_writes_them():
    yarn = {"rope_type": "yarn", "factor": 32, "original_max_position_embeddings": 4096, "truncate": False}
    out = scaled(yarn, "--base 150000")
    assert abs(out["inv_freq"][17] / 1.29318701e-4 - 1) < 1e-8 and out["scaling"] == "yarn"
    assert abs(out["attention_factor"] - 1.3465735902799727) < 1e-15
    assert {"beta_fast", "beta_slow"} <= set(out["defaulted"]) and out["warnings"] == []
    assert scaled({**yarn, "rope_theta": 150000.0})["inv_freq"] == out["inv_freq"]
    assert scaled({**yarn, "type": "yarn"}, "--base 150000")["inv_freq"] == out["inv_freq"]
    null = {**yarn, "factor": None}
    assert scaled(null, "--base 150000 --max-positions 131072")["inv_freq"] == out["inv_freq"]
    linear = scaled({"type": "linear", "factor": 4.0})["inv_freq"]
    assert np.max(np.abs(np.array(linear) * 4 - answer("frequencies --head-dim 64")["inv_freq"])) < 1e-16
    lists = {"short_factor": [1.0] * 32, "long_factor": [2] * 32, "original_max_position_embeddings": 4096}
    for kind in ("longrope", "su"):
        for length, first in ((4096, 1.0), (4097, 0.5)):
            out = scaled({"rope_type": kind, "factor": 8.0, **lists}, f"--seq-len {length}")
            assert out["inv_freq"][0] == first
    assert len(scaled({"rope_type": "default", "partial_rotary_factor": 0.5})["inv_freq"]) == 16
    out = scaled({"type": "mrope", "mrope_section": [8, 12, 12], "mrope_interleaved": True})
    assert out["axis"][:6] == [0, 1, 2, 0, 1, 2] and out["scaling"] == "default"
    assert scaled({"rope_type": "proportional", "partial_rotary_factor": 0.25})["inv_freq"][8:] == [0] * 24
    assert scaled({"type": "dynamic", "alpha": 1000, "factor": 1.0})["scaling"] == "dynamic"


def test_odd_scalings_are_warned_about_by_name():
    out = scaled({"rope_type": "yarn", "factor": "4.0", "original_max_position_embeddings": 4096, "finetuned": True},
                 "--max-positions 4096")
    text = " | ".join(out["warnings"])
    for part in ("finetuned is no key", "factor is a number written as a string", "original_max_positions is not below",
                 "factor does not follow"):
        assert part in text, (part, text)
    assert "below 1" in scaled({"rope_type": "linear", "factor": 0.5})["warnings"][0]


def test_bad_scalings_are_refused():
    for scaling, part in (('{"rope_type":"yarn","type":"linear","factor":4}', "agree with type"),
                          ('{"rope_type":"nonsense"}', "rope_type must be one of"), ("{", "byte 1"), ("[]", "object"),
                          ('{"rope_type":"linear"}', "factor must be given"), ('{"rope_type":"linear","factor":[4]}', "number"),
                          ('{"rope_type":"linear","factor":NaN}', "finite"), ('{"rope_type":"linear","factor":-1}', "factor is -1"),
                          ('{"rope_theta":5.0,"rope_type":"default"} x', "JSON"),
                          ('{"rope_type":"longrope"}', "--seq-len is missing"),
                          ('{"rope_type":"yarn","factor":4,"truncate":1}', "true or false"),
                          ('{"mrope_section":[1,2]}', "sum of sections is 3 "),
                          ('{"mrope_section":[24,20,20]}', "sum of sections is 64 "),
                          ('{"partial_rotary_factor":2}', "partial_rotary_factor is 2")):
        refused(f"frequencies --head-dim 64 --scaling '{scaling}'", part)
    refused("frequencies --head-dim 64 --base 7 --scaling '{\"rope_theta\":5.0}'", "rope_theta is 5", "agree")
    refused("frequencies --head-dim 64 --max-positions 0", "--max-positions")


def test_the_sequence_length_is_the_largest_position_and_one_unless_given():
    flags = "angles --head-dim 64 --max-positions 2048 --scaling '{\"rope_type\":\"dynamic\",\"factor\":2}'"
    derived = answer(flags + " --positions 8191:8192")
    assert "seq_len" in derived["defaulted"]
    given = answer(flags + " --positions 8191:8192 --seq-len 8192")
    assert "seq_len" not in given["defaulted"] and given["cos"] == derived["cos"]
    assert answer(flags + " --positions 8191:8192 --seq-len 4096")["cos"] != given["cos"]


def test_inverse_undoes_an_attention_factor_and_backward_is_the_transpose():
    x = np.random.default_rng(SEED).normal(size=(6, 64))
    np.save(HERE / "in.npy", x)
    flags = "--scaling '{\"rope_type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":4096}' --positions 70000:70006"
    for mode in ("exact", "float32"):
        call(f"rotate in.npy -o out.npy {flags} --mode {mode}")
        turned = np.load(HERE / "out.npy")
        stretch = np.linalg.norm(turned, axis=1) / np.linalg.norm(x, axis=1)
        assert np.max(np.abs(stretch - 1.138629436111989)) < 1e-6
        call(f"rotate out.npy -o back.npy {flags} --mode {mode} --inverse")
        assert np.max(np.abs(np.load(HERE / "back.npy") - x)) < (1e-14 if mode == "exact" else 1e-6)
        call(f"rotate out.npy -o back.npy {flags} --mode {mode} --backward")
        assert np.max(np.abs(np.load(HERE / "back.npy") - x * 1.138629436111989**2)) < 1e-6


def test_position_lists():
    def positions(text):
        return answer(f"angles --head-dim 2 --positions {text}")["positions"]
    assert positions("3") == [0, 1, 2]
    assert positions("4:7") == [4, 5, 6]
    assert positions("0:10:4") == [0, 4, 8]
    assert positions("5:0:-2") == [5, 3, 1]
    assert positions("3,5,1000000,-2") == [3, 5, 1000000, -2]
    assert positions("0:2,9,20:22") == [0, 1, 9, 20, 21]
    assert positions("2:2") == []
    assert positions("1099511627776,-1099511627776") == [2**40, -(2**40)]
    for text in ("5:", ":5", "5", "x", "1,,2", "1,", ",", "1:2:0", "0x10:", "1.5:3", "nan", "1e14",
                 "1099511627777,3", "''", "1:2:3:4", "' 1'", "-2"):
        if text != "5":
            refused(f"angles --head-dim 2 --positions {text}", "--positions")


def test_axes_have_positions_of_their_own():
    mrope = json.dumps({"type": "mrope", "mrope_section": [2, 3, 3]})
    out = answer("angles --head-dim 16 --positions '5,5;7,8;0:2' --scaling", mrope)
    assert out["positions"] == [[5, 5], [7, 8], [0, 1]]
    w = 10000.0 ** (-np.arange(0, 16, 2) / 16)
    places = np.array([[5] * 2 + [7] * 3 + [0] * 3, [5] * 2 + [8] * 3 + [1] * 3])
    assert np.max(np.abs(np.array(out["cos"]) - np.cos(places * w))) < 1e-7
    assert np.max(np.abs(np.array(out["sin"]) - np.sin(places * w))) < 1e-7
    text = answer("angles --head-dim 16 --positions 3:5 --scaling", mrope)
    assert text["cos"] == answer("angles --head-dim 16 --positions 3:5")["cos"]
    x = np.random.default_rng(SEED).normal(size=(2, 16))
    np.save(HERE / "in.npy", x)
    call("rotate in.npy -o out.npy --positions '5,5;7,8;0:2' --scaling", mrope)
    c, s = np.cos(places * w), np.sin(places * w)
    wanted = np.concatenate([x[:, :8] * c - x[:, 8:] * s, x[:, :8] * s + x[:, 8:] * c], axis=1)
    assert np.max(np.abs(np.load(HERE / "out.npy") - wanted)) < 1e-13
    refused("angles --head-dim 16 --positions '1,2;3,4'", "2 axes", "has 1")
    refused("angles --head-dim 16 --positions '1,2;3'", "equally long")
    refused("angles --head-dim 16 --positions '1,2;'", "--positions")
    refused("sinusoidal --dim 4 --positions '1;1'", "one axis")


def test_numbers_read_back_to_the_same_bits():
    out = answer("angles --head-dim 16 --positions 0:50 --dtype f32")
    again = np.array(out["cos"])
    assert np.array_equal(again.astype(np.float32).astype(np.float64), again)
    call("sinusoidal --positions 50 --dim 16 -o table.npy")
    assert np.array_equal(np.load(HERE / "table.npy"), answer("sinusoidal --positions 50 --dim 16")["table"])


def test_help_and_version():
    assert call("--version")[0].startswith("posenc 0.")
    commands = ("demo", "sinusoidal", "frequencies", "angles", "rotate", "alibi", "bench")
    for text in [call("--help")[0]] + [call(f"{c} --help")[0] for c in commands]:
        assert "usage: posenc" in text
        assert max(map(len, text.splitlines())) <= 80
    for c in commands:
        assert c in call("--help")[0]
    assert "usage" in call("", status=2)[1]


def test_bad_options_are_refused_with_a_sentence():
    refused("angles --head-dim 7 --positions 3", "rotary_dim is 7", "even", "head_dim")
    refused("angles --head-dim 8 --rotary-dim 5 --positions 3", "rotary_dim is 5")
    refused("angles --head-dim 8 --rotary-dim 10 --positions 3", "rotary_dim is 10", "8")
    refused("angles --head-dim 8 --rotary-dim 6 --rotary-start 4 --positions 3", "rotary_start is 4")
    refused("angles --head-dim 8 --base 0 --positions 3", "--base", "above 0")
    refused("angles --head-dim 8 --base -5 --positions 3", "--base", "above 0")
    refused("angles --head-dim 8 --base nan --positions 3", "--base", "finite")
    refused("angles --head-dim 8 --base 1e31 --positions 3", "base is", "1e30")
    refused("angles --head-dim x --positions 3", "--head-dim", "x", "whole number")
    refused("angles --head-dim -8 --positions 3", "--head-dim", "whole number")
    refused("angles --head-dim 99999999999999999999 --positions 3", "--head-dim")
    refused("angles --head-dim 8", "--positions is missing")
    refused("angles --positions 3", "--head-dim is missing")
    refused("angles --head-dim 8 --positions 3 --pairing consecutive", "opposite", "(2j, 2j + 1)")
    refused("angles --head-dim 8 --positions 3 --pairing foo", "(j, j + rotary_dim/2)")
    refused("angles --head-dim 8 --positions 3 --mode fp8", "exact, float32")
    refused("angles --head-dim 8 --positions 3 --rows x", "half, full-half")
    refused("angles --head-dim 8 --positions 3 --dtype f8", "f64, f32, f16, bf16")
    refused("angles --head-dim 8 --positions 3 --dtype f64 --mode float32", "--mode exact")
    refused("angles --head-dim 8 --positions 3 --colour", "--colour", "--help")
    refused("angles --head-dim", "--head-dim", "value")
    refused("angles --head-dim 8 --head-dim 8 --positions 3", "twice")
    refused("angles --head-dim 8 --positions 3 extra", "extra")
    refused("angles --head-dim 8 --positions 3 --threads 0", "--threads")
    refused("sinusoidal --positions 3 --dim 5", "odd", "truncate")
    refused("sinusoidal --positions 3 --dim 2 --shift 1", "dim is 2", "4")
    refused("sinusoidal --positions 3 --dim 4 --shift 2", "--shift")
    refused("sinusoidal --positions 3 --dim 0", "--dim")
    refused("sinusoidal --positions 3", "--dim is missing")
    refused("sinusoidal --dim 4", "--positions is missing")
    refused("alibi --heads 0 --queries 1 --keys 1", "--heads")
    refused("alibi --heads 4 --queries 1", "--keys is missing")
    refused("alibi --heads 4 --queries 1 --keys 1 --max-bias 0", "--max-bias")
    refused("alibi --heads 4 --queries 1 --keys 1 --slopes best", "paper, plain")
    refused("alibi --heads 9999999999 --queries 1 --keys 1", "heads is 9999999999")
    refused("nonsense", "nonsense", "rotate")


def test_bad_files_are_refused_and_leave_nothing_behind():
    np.save(HERE / "x.npy", np.zeros((4, 8), np.float32))
    refused("rotate missing.npy -o y.npy", "missing.npy", "No such file")
    refused("rotate x.npy", "-o OUT.npy")
    refused("rotate -o y.npy", "IN.npy is missing")
    refused("rotate x.npy -o y.npy --head-dim 16", "--head-dim is 16", "8")
    refused("rotate x.npy -o y.npy --positions 5", "5 positions", "4 tokens")
    refused("rotate x.npy -o y.npy --positions 5:", "5:")
    refused("rotate x.npy -o y.npy --axes tokens", "1 axes", "2")
    refused("rotate x.npy -o y.npy --axes tokens,channels", "head_dim")
    refused("rotate x.npy -o y.npy --axes tokens,tokens", "head_dim once")
    refused("rotate x.npy -o y.npy --axes head_dim,head_dim", "once")
    refused("rotate x.npy -o y.npy --inverse --backward", "exclude")
    refused("rotate x.npy -o nowhere/y.npy", "nowhere/y.npy")
    good = (HERE / "x.npy").read_bytes()
    for name, data in (("cut.npy", good[:-1]), ("head.npy", good[:40]), ("empty.npy", b""),
                       ("text.npy", b"hello, this is no array"), ("magic.npy", b"\x93NUMPX" + good[6:]),
                       ("ints.npy", good.replace(b"<f4", b"<i4")), ("version.npy", b"\x93NUMPY\x09" + good[7:]),
                       ("huge.npy", good.replace(b"(4, 8), }  ", b"(4, 8000), }"[:11])),):
        (HERE / name).write_bytes(data)
        refused(f"rotate {name} -o y.npy", name)
    (HERE / "y.npy").write_bytes(b"keep me")
    out = subprocess.run([POSENC, "rotate", "cut.npy", "-o", "y.npy"], cwd=HERE, capture_output=True)
    assert out.returncode == 2 and (HERE / "y.npy").read_bytes() == b"keep me"
    np.save(HERE / "x.npy", np.zeros(()))
    refused("rotate x.npy -o z.npy", "single number")


def test_output_can_go_to_a_device_or_a_pipe():
    np.save(HERE / "x.npy", np.ones((4, 8), np.float32))
    call("rotate x.npy -o /dev/null")
    assert not Path("/dev/null").is_file()
    done = subprocess.run([POSENC, "rotate", "x.npy", "-o", "/dev/stdout"], cwd=HERE,
                          capture_output=True, check=True)
    (HERE / "piped.npy").write_bytes(done.stdout)
    call("rotate x.npy -o y.npy")
    assert np.array_equal(np.load(HERE / "piped.npy"), np.load(HERE / "y.npy"))
    full = subprocess.run(f"'{POSENC}' frequencies --head-dim 128 > /dev/full", shell=True,
                          capture_output=True, text=True)
    assert full.returncode == 2 and "standard output" in full.stderr


BENCH_FIELDS = {"work": str, "dtype": str, "pairing": str, "tokens": int, "heads": int, "head_dim": int,
                "order": str, "in_place": bool, "threads": int, "gb_per_s": float, "memcpy_gb_per_s": float,
                "copy_loop_gb_per_s": float, "ratio": float, "ratio_least": float, "ratio_most": float,
                "nanoseconds": float}


def test_bench_measures_the_cases_that_are_asked_for():
    shape = "bench --quick --tokens 1 --head-dim 128 --work rotate"
    cases = answer(shape)
    seen = {(c["dtype"], c["pairing"], c["in_place"]) for c in cases}
    assert len(cases) == len(seen) == 12 and {d for d, _, _ in seen} == {"f32", "f16", "bf16"}
    for c in cases:
        for field, kind in BENCH_FIELDS.items():
            assert type(c[field]) is kind, (field, c)
        assert (c["work"], c["tokens"], c["heads"], c["head_dim"]) == ("rotate", 1, 32, 128)
        assert c["order"] == "tokens" and c["threads"] == 1 and c["memset_gb_per_s"] is None
        assert 0 < c["ratio_least"] <= c["ratio"] <= c["ratio_most"]
        moved = 2 * 32 * 128 * (4 if c["dtype"] == "f32" else 2)
        assert abs(c["gb_per_s"] * c["nanoseconds"] / moved - 1) < 1e-9, c
    (one,) = answer(shape + " --dtype bf16 --pairing neox --place in")
    assert (one["dtype"], one["pairing"], one["in_place"]) == ("bf16", "half", True)
    moved = answer("bench --quick --tokens 32 --order heads --dtype f32 --threads 2")
    assert len(moved) == 4 and {(c["order"], c["threads"]) for c in moved} == {("heads", 2)}
    text = call(shape)[0]
    assert max(map(len, text.splitlines())) <= 80 and "\nrotate, f16, interleaved\n" in text


def test_bench_measures_fused_calls_against_their_parts():
    norms = answer("bench --quick --work norm_rotate --tokens 1")
    assert {(c["dtype"], c["pairing"], c["in_place"]) for c in norms} == {
        (d, p, i) for d in ("f32", "f16", "bf16") for p in ("half", "interleaved") for i in (False, True)}
    placed = answer("bench --quick --work norm_rotate --tokens 1 --dtype bf16 --place in")
    assert [(c["pairing"], c["in_place"]) for c in placed] == [("half", True), ("interleaved", True)]
    appends = answer("bench --quick --work append --tokens 32")
    assert sorted((c["dtype"], c["cache"], c["pairing"]) for c in appends) == sorted(
        (*both, p) for both in [("f16", "f16"), ("f16", "int8")] + [
            ("f32", cache) for cache in ("f16", "bf16", "int8", "fp8_e4m3")] for p in ("half", "interleaved"))
    for c in norms + appends:
        assert c["memcpy_gb_per_s"] > 0 and c["parts_ratio"] > 0 and c["order"] == "tokens", c
        assert ("alone_ratio" in c) == (c["work"] == "norm_rotate"), c
    for c in appends: # keys and values in and out, and the scales
        size = {"f16": 2, "bf16": 2, "int8": 1 + 4 / 128, "fp8_e4m3": 1 + 4 / 128}[c["cache"]]
        moved = 2 * 32 * 8 * 128 * ((4 if c["dtype"] == "f32" else 2) + size)
        assert abs(c["gb_per_s"] * c["nanoseconds"] / moved - 1) < 1e-9, c


def test_bench_measures_rows_against_memset():
    cases = answer("bench --quick --work angles --tokens 1")
    assert {(c["dtype"], c["mode"], c["first_position"]) for c in cases} == {
        (d, "exact", p) for d in ("f32", "f16", "bf16", "f64") for p in (0, 1000000)} | {("f32", "float32", 0)}
    for c in cases:
        assert c["memset_gb_per_s"] > 0 and c["pairing"] is c["heads"] is c["memcpy_gb_per_s"] is None
        assert abs(c["nanoseconds"] / 64 / c["nanoseconds_per_pair"] - 1) < 1e-9


def test_bench_measures_other_libraries_beside_rows():
    cases = answer("bench --quick --work angles --dtype f32 --tokens 2048")
    beside = [c for c in cases if c["mode"] == "exact"]
    assert sorted((c["first_position"], c["scattered"]) for c in beside) == [(0, False), (0, True), (1000000, False)]
    for c in beside:
        assert "the C library's float64 sincos" in {peer["name"] for peer in c["peers"]}
        for peer in c["peers"]:
            assert 0 < peer["ratio_least"] <= peer["ratio"] <= peer["ratio_most"]
            assert 0.01 < peer["nanoseconds_per_pair"] < 1e5
    assert all("peers" not in c for c in cases if c["mode"] != "exact")
    threads = answer("bench --quick --work angles --dtype f32 --tokens 2048 --threads 2")
    assert all("peers" not in c for c in threads)


def test_bench_finds_one_wrong_bit_in_what_it_has_timed():
    wrong = os.environ.get("POSENC_WRONG_ROTATE")
    if not wrong:
        return "no shared library to put a wrong one before"
    for dtype in ("f32", "f16", "bf16"):
        words = f"bench --quick --json --tokens 32 --head-dim 80 --place out --pairing half --dtype {dtype}"
        done = subprocess.run([POSENC, *words.split()], capture_output=True, text=True, cwd=HERE,
                              env={**os.environ, "LD_PRELOAD": wrong})
        assert done.returncode == 1, done
        assert json.loads(done.stdout) == [] and done.stderr.count("\n") == 1, done
        assert f"wrong: {dtype}, half, token 31, head 31, pair 39 is" in done.stderr, done.stderr


def test_bench_refuses_what_it_has_not():
    refused("bench --quick --tokens 3", "no case", "--help")
    refused("bench --quick --work bias --pairing half", "no case")
    refused("bench --quick --work swim", "rotate, norm_rotate, append, angles, bias")
    refused("bench --quick --order rows", "tokens, heads")
    refused("bench --quick --place there", "out, in")
    refused("bench --quick --dtype f8", "f64, f32, f16, bf16")
    refused("bench --quick --pairing consecutive", "opposite")
    refused("bench --quick --tokens 0", "--tokens", "from 1 on")
    refused("bench --quick --threads x", "--threads")
    refused("bench --quick 4096", "4096")


def test_empty_arrays_pass_through():
    for shape in ((0, 8), (3, 0, 8)):
        np.save(HERE / "x.npy", np.zeros(shape, np.float32))
        call("rotate x.npy -o y.npy")
        assert np.load(HERE / "y.npy").shape == shape


if __name__ == "__main__":
    status = tap.run(sys.modules["__main__"])
    FOLDER.cleanup()
    sys.exit(status)
