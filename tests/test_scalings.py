#!/usr/bin/env python3
"""Every scaling and axis order against 60-digit arithmetic (mpmath) and published numbers.

usage: test_scalings.py PATH_OF_LIBPOSENC_SO                          SPDX-License-Identifier: MIT
"""
import os
import random
import sys

import numpy as np
from mpmath import ceil, cos, floor, log, mp, mpf, nstr, pi, sin, sqrt

import tap
from posenc_ctypes import Library, Refused

mp.dps = 80
LIBRARY = Library(sys.argv[1])
SEED = int(os.environ.get("POSENC_SEED", "20261129"))
TRIALS = 20 if os.environ.get("POSENC_LONG") else 1
print(f"# seed {SEED}")
TENTH = mpf(1) / 10


def frequencies(*args, **kwargs):
    return LIBRARY.frequencies(*args, **kwargs)


def rounded(x, bits, least):
    """x rounded to `bits` significant bits and multiples of 2^least, to nearest even."""
    if x == 0:
        return 0.0
    exponent = int(floor(log(abs(x), 2))) - bits + 1
    while abs(x) >= mpf(2) ** (exponent + bits):  # log may be off by a hair
        exponent += 1
    exponent = max(exponent, least)
    q = x / mpf(2) ** exponent
    whole = floor(q)
    rest = q - whole
    whole += rest > 0.5 or (rest == 0.5 and int(whole) % 2)
    return float(whole * mpf(2) ** exponent)


PRECISION = {"f32": (24, -149), "f64": (53, -1074), "f16": (11, -24), "bf16": (8, -133)}


# --- The formulas, written again from their papers ----------------------------------------------

def ladder(base, d):
    return [mpf(base) ** (-mpf(2 * j) / d) for j in range(d // 2)]


def yarn_ramp(d, base, original, fast, slow, truncate):
    def pair_of(turns):
        return d * log(mpf(original) / (2 * pi * mpf(turns))) / (2 * log(mpf(base)))
    low, high = pair_of(fast), pair_of(slow)
    if truncate:
        low, high = floor(low), ceil(high)
    low, high = max(low, mpf(0)), min(high, mpf(d - 1))
    if low == high:
        high += mpf(1) / 1000
    return [min(max((j - low) / (high - low), mpf(0)), mpf(1)) for j in range(d // 2)]


def magnitude(s, m, coefficient=TENTH):
    return mpf(1) if s <= 1 else coefficient * mpf(m) * log(mpf(s)) + 1


def expected(d, base, scaling, max_positions=0, seq_len=0):
    """(inverse frequencies, attention factor) as real numbers."""
    kind, s = scaling["type"], mpf(scaling.get("factor", 1))
    original = scaling.get("original_max_positions", 0)
    f, attention = ladder(base, d), mpf(1)
    if kind == "linear":
        f = [x / s for x in f]
    elif kind in ("ntk", "dynamic"):
        form = scaling.get("dynamic", 0)
        if kind == "ntk":
            growth = s
        elif form == 1:
            growth = mpf(scaling["alpha"])
        elif form == 2:
            growth = max(mpf(1), mpf(2) ** ceil(log(mpf(seq_len) / original, 2) + 1) - 1)
        else:
            growth = s * max(seq_len, max_positions) / max_positions - (s - 1)
        f = ladder(mpf(base) * growth ** (mpf(d) / (d - 2)), d)
    elif kind == "yarn":
        ramp = yarn_ramp(d, base, original, scaling.get("beta_fast", 32), scaling.get("beta_slow", 1),
                         not scaling.get("no_truncate", 0))
        f = [x / s * r + x * (1 - r) for x, r in zip(f, ramp)]
        c = mpf(scaling["attention_coefficient"]) if "attention_coefficient" in scaling else TENTH
        if "attention_factor" in scaling:
            attention = mpf(scaling["attention_factor"])
        elif "mscale" in scaling and "mscale_all_dim" in scaling:
            attention = magnitude(s, scaling["mscale"], c) / magnitude(s, scaling["mscale_all_dim"], c)
        else:
            attention = magnitude(s, 1, c)
    elif kind == "longrope":
        e = scaling["long_factors" if seq_len > original else "short_factors"]
        f = [x / mpf(y) for x, y in zip(f, e)]
        stretch = s if "factor" in scaling else mpf(max_positions / original)
        if "attention_factor" in scaling:
            attention = mpf(scaling["attention_factor"])
        elif stretch > 1:
            attention = sqrt(1 + log(stretch) / log(mpf(original)))
    elif kind == "llama3":
        low, high = mpf(scaling["low_freq_factor"]), mpf(scaling["high_freq_factor"])
        out = []
        for x in f:
            turns = original * x / (2 * pi)
            t = min(max((turns - low) / (high - low), mpf(0)), mpf(1))
            out.append((1 - t) * x / s + t * x)
        f = out
    elif kind == "proportional":
        count = int(scaling.get("partial", 1.0) * d // 2)
        f = [x / s if j < count else mpf(0) for j, x in enumerate(f)]
    return f, attention


def random_case(r):
    """(head_dim, keyword arguments of frequencies) of a random scaling."""
    d = 2 * r.randint(2, 64)
    base = r.choice([10000.0, 500000.0, 1e6, 100.0, 1e8, r.uniform(2, 1e7)])
    kind = r.choice(["default", "linear", "ntk", "dynamic", "yarn", "longrope", "llama3", "proportional"])
    factor = r.choice([1.0, 2.0, 4.0, 8.0, 32.0, 40.0, r.uniform(1, 64)])
    original = r.choice([2048, 4096, 8192, 32768, r.randint(100, 200000)])
    scaling, extra = {"type": kind}, {}
    if kind in ("linear", "ntk", "yarn", "llama3"):
        scaling["factor"] = factor
    if kind in ("yarn", "longrope", "llama3"):
        scaling["original_max_positions"] = original
    if kind == "dynamic":
        scaling["dynamic"] = r.randint(0, 2)
        if scaling["dynamic"] == 0:
            scaling["factor"], extra["max_positions"] = factor, original
        elif scaling["dynamic"] == 1:
            scaling["alpha"] = r.uniform(0.5, 1000)
        else:
            scaling["original_max_positions"] = original
        extra["seq_len"] = r.randint(1, 10 * original)
    if kind == "yarn":
        if r.random() < 0.5:
            scaling["no_truncate"] = 1
        if r.random() < 0.5:
            scaling["beta_slow"] = r.choice([1.0, 0.5, 2.0])
            scaling["beta_fast"] = r.choice([4.0, 32.0, 64.0])
        choice = r.randint(0, 3)
        if choice == 1:
            scaling["attention_factor"] = r.uniform(0.5, 2)
        elif choice == 2:
            scaling["mscale"], scaling["mscale_all_dim"] = r.choice([(1.0, 1.0), (0.707, 1.0), (1.2, 0.4)])
        elif choice == 3:
            scaling["attention_coefficient"] = 0.07
    if kind == "longrope":
        scaling["short_factors"] = [r.uniform(1, 3) for _ in range(d // 2)]
        scaling["long_factors"] = [r.uniform(1, 60) for _ in range(d // 2)]
        extra["seq_len"] = r.choice([original - 1, original, original + 1, 10 * original])
        choice = r.randint(0, 2)
        if choice == 0:
            scaling["factor"] = factor
        elif choice == 1:
            scaling["attention_factor"] = r.uniform(0.5, 2)
        else:
            extra["max_positions"] = original * r.choice([1, 2, 32])
    if kind == "llama3":
        scaling["low_freq_factor"], scaling["high_freq_factor"] = r.choice([(1.0, 4.0), (0.5, 8.0)])
    if kind == "proportional":
        scaling["partial"] = r.choice([0.25, 0.5, 1.0])
        scaling["factor"] = factor
    return d, dict(base=base, scaling=scaling, **extra)


def positions_of(r, count):
    special = [0, 1, -1, 355, 2047, 4096, 131071, 1048575, 411557987, 21053343141, 881156436695, 2**40, -(2**40)]
    return special + [r.randint(-(2 ** r.randint(1, 40)), 2 ** r.randint(1, 40)) for _ in range(count)]


# --- Tests --------------------------------------------------------------------------------------

def test_frequencies_and_attention_factors_are_the_rounded_real_numbers():
    r = random.Random(SEED)
    for _ in range(200 * TRIALS):
        d, case = random_case(r)
        made = frequencies(d, **case)
        f, attention = expected(d, case["base"], case["scaling"], case.get("max_positions", 0),
                                case.get("seq_len", 0))
        for j, (got, x) in enumerate(zip(made.inv_freq(), f)):
            assert got == rounded(x, *PRECISION["f64"]), (d, case, j, got, nstr(x, 20))
        assert made.attention_factor() == rounded(attention, *PRECISION["f64"]), (d, case)


def check_values(d, case, made, positions, dtype):
    f, attention = expected(d, case["base"], case["scaling"], case.get("max_positions", 0),
                            case.get("seq_len", 0))
    got_cos, got_sin = made.angles(np.array(positions, dtype=np.int64), dtype)
    for i, p in enumerate(positions):
        for j in range(0, d // 2, max(1, d // 16)):
            for got, real in ((got_cos[i, j], attention * cos(p * f[j])), (got_sin[i, j], attention * sin(p * f[j]))):
                if dtype == "f64":
                    ulp = np.spacing(max(abs(float(real)), 1e-300))
                    assert abs(mpf(float(got)) - real) <= mpf(float(ulp)) + mpf(2) ** -75, (d, case, p, j)
                else:
                    assert float(got) == rounded(real, *PRECISION[dtype]), (d, case, p, j, dtype, nstr(real, 25))


def test_rows_are_correctly_rounded_for_every_scaling():
    r = random.Random(SEED + 1)
    for _ in range(100 * TRIALS):
        d, case = random_case(r)
        made = frequencies(d, **case)
        for dtype in ("f32", "f16", "bf16", "f64"):
            check_values(d, case, made, positions_of(r, 8), dtype)


def float32_power(base, exponent):
    return np.float32(rounded(mpf(float(np.float32(base))) ** mpf(float(exponent)), *PRECISION["f32"]))


def framework(d, base, scaling, max_positions, seq_len):
    """transformers' order of float32 operations, in NumPy, with correctly rounded powers."""
    one, kind = np.float32(1), scaling["type"]
    exponents = np.arange(0, d, 2).astype(np.float32) / np.float32(d)
    factor = np.float32(scaling.get("factor", 1))
    original = scaling.get("original_max_positions", 0)
    if kind in ("ntk", "dynamic"):
        real = expected(d, base, scaling, max_positions, seq_len)[0]
        base = float(real[1] ** (-mpf(d) / 2)) if d > 2 else base
    power = np.array([float32_power(base, e) for e in exponents])
    inv = one / power
    if kind == "linear":
        return inv / factor
    if kind == "proportional":
        count = int(scaling.get("partial", 1.0) * d // 2)
        return np.where(np.arange(d // 2) < count, inv / factor, np.float32(0))
    if kind == "longrope":
        e = np.float32(scaling["long_factors" if seq_len > original else "short_factors"])
        return one / (e * power)
    if kind == "yarn":
        interpolated, low_high = one / (factor * power), []
        for turns in (scaling.get("beta_fast", 32), scaling.get("beta_slow", 1)):
            low_high.append(float(d * log(mpf(original) / (2 * pi * mpf(turns))) / (2 * log(mpf(base)))))
        low, high = low_high
        if not scaling.get("no_truncate", 0):
            low, high = np.floor(low), np.ceil(high)
        low, high = max(low, 0), min(high, d - 1)
        if low == high:
            high += 0.001
        ramp = np.clip((np.arange(d // 2, dtype=np.float32) - np.float32(low)) / np.float32(high - low), 0, 1)
        keep = one - ramp
        return interpolated * (one - keep) + inv * keep
    if kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        wavelength = (one / inv) * np.float32(2 * np.pi)
        divided = np.where(wavelength > np.float32(original / low), inv / factor, inv)
        smooth = ((one / wavelength) * np.float32(original) - np.float32(low)) / np.float32(high - low)
        blend = (one - smooth) * divided / factor + smooth * divided
        middle = ~(wavelength < np.float32(original / high)) & ~(wavelength > np.float32(original / low))
        return np.where(middle, blend, divided)
    return inv


def test_float32_mode_follows_the_frameworks_order_of_operations():
    r = random.Random(SEED + 2)
    for _ in range(200 * TRIALS):
        d, case = random_case(r)
        got = np.float32(frequencies(d, **case).inv_freq(mode=1))
        wanted = framework(d, case["base"], case["scaling"], case.get("max_positions", 0), case.get("seq_len", 0))
        assert np.array_equal(got, wanted.astype(np.float32)), (d, case, got - wanted)


def test_float32_mode_multiplies_by_the_attention_factor_in_float32():
    scaling = {"type": "yarn", "factor": 4.0, "original_max_positions": 32768}
    made = frequencies(128, base=1e6, scaling=scaling)
    positions = np.array([0, 7, 40000, 131071, 1048575])
    got_cos, got_sin = made.angles(positions, "f32", mode=1)
    inv = np.float32(made.inv_freq(mode=1))
    attention = np.float32(0.1 * np.log(4.0) + 1.0)
    assert made.attention_factor(mode=1) == float(attention)
    angles = positions.astype(np.float32)[:, None] * inv
    for i in range(5):
        for j in range(64):
            for got, f in ((got_cos, cos), (got_sin, sin)):
                value = np.float32(rounded(f(mpf(float(angles[i, j]))), *PRECISION["f32"]))
                assert got[i, j] == value * attention


def test_published_check_values():
    def near(got, wanted, digits):
        assert abs(got / wanted - 1) < 10.0 ** -digits, (got, wanted)
    gpt_oss = {"type": "yarn", "factor": 32.0, "original_max_positions": 4096}
    f = frequencies(64, base=150000.0, scaling=dict(gpt_oss, no_truncate=1))
    for j, wanted in ((9, 0.0317056962), (12, 0.00679495949), (17, 1.29318701e-4)):
        near(f.inv_freq()[j], wanted, 8)
    near(f.attention_factor(), 1.346574, 6)
    f = frequencies(64, base=150000.0, scaling=gpt_oss)
    for j, wanted in ((9, 0.0316207523), (12, 0.00701571391), (17, 2.27947796e-4)):
        near(f.inv_freq()[j], wanted, 8)
    # The upper end of the ramp is clamped to d - 1, not d/2 - 1.
    f = frequencies(64, base=1e4, scaling={"type": "yarn", "factor": 4.0, "original_max_positions": 131072})
    near(f.inv_freq()[31], 6.411161e-5, 6)
    # DeepSeek: the two corrections are separate.
    for m, softmax in ((1.0, 1.8738542071), (0.707, 1.5896261651)):
        f = frequencies(64, base=1e4, scaling={"type": "yarn", "factor": 40.0, "original_max_positions": 4096,
                                               "mscale": m, "mscale_all_dim": m})
        assert f.attention_factor() == 1.0
        near(f.softmax_factor(), softmax, 10)
    yarn = {"type": "yarn", "original_max_positions": 4096}
    near(frequencies(64, scaling=dict(yarn, factor=16.0)).attention_factor(), 1.2772588722, 10)
    near(frequencies(64, scaling=dict(yarn, factor=64.0)).attention_factor(), 1.4158883084, 10)
    near(frequencies(64, scaling=dict(yarn, factor=1.25)).attention_factor(), 1.0223143551, 10)
    assert frequencies(64, scaling=dict(yarn, factor=36.0, attention_factor=1.0)).attention_factor() == 1.0
    # Llama 3.2 1B and Llama 3.1.
    llama = {"type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_positions": 8192}
    f = frequencies(64, base=5e5, scaling=dict(llama, factor=32.0)).inv_freq()
    for j, wanted in ((15, 0.001290547928), (16, 0.000429556797), (17, 9.70828780e-5), (18, 1.94616382e-5),
                      (31, 9.41830673e-8)):
        near(f[j], wanted, 8)
    plain = frequencies(64, base=5e5).inv_freq()
    kept = sum(a == b for a, b in zip(f, plain))
    assert kept == 15, kept
    f = frequencies(128, base=5e5, scaling=dict(llama, factor=8.0)).inv_freq()
    near(f[29], 2.16657e-3, 5)
    near(f[30], 0.001371893568, 9)
    near(f[34], 1.785078128e-4, 9)
    # LongRoPE's magnitude; the switch is at original + 1.
    lists = {"short_factors": [1.0] * 64, "long_factors": [2.0] * 64}
    longrope = {"type": "longrope", "original_max_positions": 4096, **lists}
    f = [frequencies(128, max_positions=131072, seq_len=n, scaling=longrope) for n in (4096, 4097)]
    near(f[0].attention_factor(), 1.1902380714, 10)
    assert f[0].inv_freq()[0] == 1.0 and f[1].inv_freq()[0] == 0.5
    # Dynamic NTK, HunYuan's alpha, static NTK: the base behind the second pair.
    def base_of(f):
        return float(mpf(f.inv_freq()[1]) ** -64)
    dynamic = {"type": "dynamic", "factor": 10.0}
    near(base_of(frequencies(128, max_positions=2048, seq_len=8192, scaling=dynamic)), 327366.40, 8)
    near(base_of(frequencies(128, max_positions=2048, seq_len=4096, scaling=dynamic)), 114267.50, 8)
    near(base_of(frequencies(128, base=5e7, max_positions=32768, seq_len=65536,
                             scaling={"type": "dynamic", "factor": 6.0})), 360979300.4, 9)
    near(base_of(frequencies(128, scaling={"type": "dynamic", "dynamic": 1, "alpha": 1000.0})),
         11158839.92507748, 12)
    near(base_of(frequencies(128, scaling={"type": "ntk", "factor": 4.0})), 40889.94, 7)
    # Partial rotary: the exponent divides by rotary_dim.
    near(frequencies(256, rotary_dim=64, base=1e7).inv_freq()[1], 0.6042963902, 9)


def test_custom_frequencies_are_taken_as_exact_numbers():
    r = random.Random(SEED + 3)
    for period in (0, 1):
        for single in (0, 1):
            numbers = [r.uniform(0.5, 3) * 10.0 ** (r.randint(0, 4) if period else -r.randint(0, 4)) for _ in range(16)]
            numbers = list(np.float32(numbers)) if not single else numbers
            made = frequencies(32, scaling={"type": "custom", "inv_freq": numbers, "inv_freq_dtype": single,
                                            "inv_freq_is_period": period})
            real = [1 / mpf(float(x)) if period else mpf(float(x)) for x in numbers]
            assert made.inv_freq() == [rounded(x, *PRECISION["f64"]) for x in real]
            got_cos, got_sin = made.angles(np.array([3, -70001, 2**40], np.int64))
            for i, p in enumerate((3, -70001, 2**40)):
                for j, x in enumerate(real):
                    assert float(got_cos[i, j]) == rounded(cos(p * x), *PRECISION["f32"])
                    assert float(got_sin[i, j]) == rounded(sin(p * x), *PRECISION["f32"])
    made = frequencies(4, scaling={"type": "custom", "inv_freq": [-0.5, 0.0], "inv_freq_dtype": 1})
    got_cos, got_sin = made.angles(np.array([3], np.int64))
    assert made.inv_freq() == [-0.5, 0.0] and got_sin[0, 0] == np.float32(np.sin(-1.5))
    assert got_cos[0, 1] == 1 and got_sin[0, 1] == 0


def axis_of_pairs(order, sections, pairs, count):
    """The assignment as each model's code makes it, by slices."""
    if order == 0:
        return [axis for axis, n in enumerate(sections) for _ in range(n)]
    axes = [0] * pairs
    if order == 1:
        for axis in range(1, count):
            for j in range(axis, count * sections[axis], count):
                if j < pairs:
                    axes[j] = axis
    elif order == 2:
        axes = [j % count for j in range(pairs)]
    else:
        h, w, _ = sections
        axes = [1 + j % 2 for j in range(h + w)] + [0] * (pairs - h - w)
    return axes


CASES = [  # order, exponents, sections, pairs
    (0, 0, [16, 24, 24], 64), (1, 0, [24, 20, 20], 64), (1, 0, [11, 11, 10], 32), (3, 0, [22, 22, 20], 64),
    (0, 0, [8, 12, 12], 32), (0, 1, [8, 28, 28], 64), (0, 1, [22, 21, 21], 64), (0, 1, [16, 16], 32),
    (2, 1, [], 32), (0, 2, [16, 16], 32), (0, 0, [64], 64), (0, 0, [8, 8, 8, 8], 32),
]


def test_axes_follow_the_models_orders():
    r = random.Random(SEED + 4)
    for order, exponents, sections, pairs in CASES:
        count = len(sections) or 2
        axes = {"count": count, "order": order, "exponents": exponents, "sections": sections}
        made = frequencies(2 * pairs, base=777.0, axes=axes)
        wanted = axis_of_pairs(order, sections, pairs, count)
        assert made.axes() == wanted, (order, sections)
        seen, real = [0] * count, []
        for j, axis in enumerate(wanted):
            own = wanted.count(axis)
            exponent = {0: mpf(j) / pairs, 1: mpf(seen[axis]) / own,
                        2: mpf(seen[axis] * count + axis) / pairs}[exponents]
            real.append(mpf(777) ** -exponent)
            seen[axis] += 1
        assert made.inv_freq() == [rounded(x, *PRECISION["f64"]) for x in real], (order, exponents)
        positions = np.array([[r.randint(-(2**40), 2**40) for _ in range(6)] for _ in range(count)], np.int64)
        got_cos, got_sin = made.angles(positions)
        for i in range(6):
            for j, axis in enumerate(wanted):
                angle = int(positions[axis, i]) * real[j]
                assert float(got_cos[i, j]) == rounded(cos(angle), *PRECISION["f32"])
                assert float(got_sin[i, j]) == rounded(sin(angle), *PRECISION["f32"])


def test_listed_axes():
    made = frequencies(8, axes={"count": 2, "order": 4, "pair_axis": [1, 0, 0, 1]})
    assert made.axes() == [1, 0, 0, 1]


def test_one_axis_is_the_same_as_none_and_text_is_the_same_on_every_axis():
    positions = np.array([0, 5, 1048575, -7], np.int64)
    plain = frequencies(128).angles(positions)
    one = frequencies(128, axes={"count": 1, "sections": [64]}).angles(positions)
    text = frequencies(128, axes={"count": 3, "sections": [16, 24, 24]}).angles(np.stack([positions] * 3))
    for other in (one, text):
        assert plain[0].tobytes() == other[0].tobytes() and plain[1].tobytes() == other[1].tobytes()


def test_positions_of_every_type():
    made = frequencies(32)
    whole = np.array([0, 1, -5, 2**31 - 1, -(2**31)], np.int64)
    for other in (whole.astype(np.int32), whole.astype(np.float64)):
        for dtype in ("f32", "f64", "bf16"):
            for a, b in zip(made.angles(whole, dtype), made.angles(other, dtype)):
                assert a.tobytes() == b.tobytes()
    fractions = np.array([0.5, -1.25, 0.1, 1e-9, 999.9999, 2.0**40 - 0.125])
    got_cos, got_sin = made.angles(fractions)
    for i, p in enumerate(fractions):
        for j, x in enumerate(ladder(10000, 32)):
            assert float(got_cos[i, j]) == rounded(cos(mpf(float(p)) * x), *PRECISION["f32"])
            assert float(got_sin[i, j]) == rounded(sin(mpf(float(p)) * x), *PRECISION["f32"])


def test_a_change_of_frequencies_is_one_exact_rotation():
    r = random.Random(SEED + 6)
    lists = {"short_factors": [r.uniform(1, 3) for _ in range(32)],
             "long_factors": [r.uniform(1, 60) for _ in range(32)]}
    longrope = {"type": "longrope", "original_max_positions": 4096, "factor": 32.0, **lists}
    dynamic = {"type": "dynamic", "factor": 4.0}
    yarn = {"type": "yarn", "factor": 4.0, "original_max_positions": 4096}
    for old, new in ((dict(scaling=longrope, seq_len=4096), dict(scaling=longrope, seq_len=4097)),
                     (dict(scaling=dynamic, seq_len=5000, max_positions=4096),
                      dict(scaling=dynamic, seq_len=9000, max_positions=4096)),
                     ({}, dict(scaling=yarn)), (dict(scaling=yarn), {})):
        change = LIBRARY.change(frequencies(64, **old), frequencies(64, **new))
        (f, m), (g, n) = [expected(64, 10000.0, case.get("scaling", {"type": "default"}),
                                   case.get("max_positions", 0), case.get("seq_len", 0)) for case in (old, new)]
        positions = list(range(40)) + [4095, -7, 1048576, 2**40, -(2**33) - 1]
        for dtype in ("f32", "f64", "bf16"):
            got_cos, got_sin = change.angles(np.array(positions, np.int64), dtype)
            for i, p in enumerate(positions):
                for j in range(32):
                    angle = p * (g[j] - f[j])
                    for got, real in ((got_cos[i, j], n / m * cos(angle)), (got_sin[i, j], n / m * sin(angle))):
                        if dtype == "f64":
                            assert abs(mpf(float(got)) - real) < mpf(2) ** -52
                        else:
                            assert float(got) == rounded(real, *PRECISION[dtype]), (old, new, p, j)
    try:
        change.angles(np.array([1], np.int64), mode=1)
    except Refused as error:
        assert "exact" in str(error)
    else:
        raise AssertionError("mode float32 of a change was accepted")
    try:
        LIBRARY.change(frequencies(64), frequencies(32))
    except Refused as error:
        assert "pairs" in str(error)
    else:
        raise AssertionError("different pairs were accepted")


def test_rows_without_the_attention_factor_shift_what_contains_it():
    scaling = {"type": "yarn", "factor": 4.0, "original_max_positions": 4096}
    made = frequencies(64, scaling=scaling)
    plain = frequencies(64, scaling=dict(scaling, attention_factor=1.0))
    for mode in (0, 1):
        for positions in (np.arange(100, dtype=np.int64), np.array([5, -3, 2**39, 77], np.int64)):
            for a, b in zip(made.angles(positions, mode=mode, without_attention=1), plain.angles(positions, mode=mode)):
                assert a.tobytes() == b.tobytes()


def refused(part, *args, **kwargs):
    try:
        frequencies(*args, **kwargs)
    except Refused as error:
        assert part in str(error), (part, str(error))
        return
    raise AssertionError(f"accepted: {args} {kwargs}")


def test_bad_scalings_are_refused_by_name():
    yarn = {"type": "yarn", "factor": 4.0, "original_max_positions": 4096}
    llama = {"type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "original_max_positions": 8192}
    lists = {"short_factors": [1.0] * 32, "long_factors": [1.0] * 32}
    longrope = {"type": "longrope", "original_max_positions": 4096, "factor": 8.0, **lists}
    for kind in ("linear", "ntk", "yarn", "llama3"):
        for factor in (0.0, 0.5, -1.0, float("nan"), float("inf")):
            refused("factor", 64, scaling=dict(yarn if kind == "yarn" else llama, type=kind, factor=factor))
    refused("original_max_positions", 64, scaling={"type": "yarn", "factor": 4.0})
    refused("original_max_positions", 64, scaling={"type": "llama3", "factor": 4.0})
    refused("beta_fast", 64, scaling=dict(yarn, beta_fast=1.0, beta_slow=2.0))
    refused("beta_slow", 64, scaling=dict(yarn, beta_slow=-1.0))
    refused("attention_factor", 64, scaling=dict(yarn, attention_factor=-1.0))
    refused("mscale", 64, scaling=dict(yarn, mscale=float("nan")))
    refused("base", 64, base=0.5, scaling=yarn)
    refused("high_freq_factor", 64, scaling=dict(llama, high_freq_factor=1.0))
    refused("low_freq_factor", 64, scaling=dict(llama, low_freq_factor=0.0))
    refused("seq_len", 64, scaling={"type": "dynamic", "factor": 2.0}, max_positions=2048)
    refused("max_positions", 64, scaling={"type": "dynamic", "factor": 2.0}, seq_len=2048)
    refused("alpha", 64, scaling={"type": "dynamic", "dynamic": 1})
    refused("rotary_dim", 2, scaling={"type": "ntk", "factor": 2.0})
    refused("seq_len", 64, scaling=longrope)
    refused("rotary_dim / 2 is 16", 32, scaling=longrope, seq_len=1)
    refused("index 3", 64, seq_len=1, scaling=dict(longrope, short_factors=[1.0] * 3 + [0.0] + [1.0] * 28))
    refused("max_positions", 64, seq_len=1, scaling={"type": "longrope", "original_max_positions": 4096, **lists})
    refused("partial", 64, scaling={"type": "proportional", "partial": 1.5})
    refused("rotary_dim", 64, rotary_dim=32, scaling={"type": "proportional"})
    refused("inv_freq", 64, scaling={"type": "custom"})
    refused("inv_freq_count is 3", 64, scaling={"type": "custom", "inv_freq": [1.0] * 3})
    refused("index 1", 4, scaling={"type": "custom", "inv_freq": [1.0, float("nan")]})
    refused("sections", 64, axes={"count": 2, "sections": [16, 17]})
    refused("axes.count", 64, axes={"count": 9})
    refused("pair_axis", 8, axes={"count": 2, "order": 4, "pair_axis": [0, 1, 2, 0]})
    refused("axes.exponents", 64, scaling=yarn, axes={"count": 2, "sections": [16, 16], "exponents": 1})
    refused("sections", 128, axes={"count": 3, "order": 3, "sections": [24, 20, 20]})


def test_parity_with_transformers_frequencies():
    try:
        import torch
        from transformers import PretrainedConfig
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    except ImportError:
        return "transformers and torch are not installed (pip install torch transformers)"
    r = random.Random(SEED + 5)
    worst = 0
    for _ in range(200 * TRIALS):
        d, case = random_case(r)
        scaling = case["scaling"]
        if scaling["type"] in ("default", "ntk") or scaling.get("dynamic") or "attention_coefficient" in scaling:
            continue
        parameters = {"rope_type": scaling["type"], "rope_theta": case["base"]}
        names = {"original_max_positions": "original_max_position_embeddings", "short_factors": "short_factor",
                 "long_factors": "long_factor", "partial": "partial_rotary_factor"}
        for key, value in scaling.items():
            if key == "no_truncate":
                parameters["truncate"] = False
            elif key not in ("type", "dynamic"):
                parameters[names.get(key, key)] = value
        config = PretrainedConfig()
        config.head_dim, config.hidden_size, config.num_attention_heads = d, 4 * d, 4
        config.max_position_embeddings = case.get("max_positions") or 4 * scaling.get("original_max_positions", 512)
        config.rope_parameters = parameters
        config.standardize_rope_params = lambda: None
        theirs, attention = ROPE_INIT_FUNCTIONS[scaling["type"]](config, "cpu", seq_len=case.get("seq_len"))
        case.setdefault("max_positions", config.max_position_embeddings)
        made = frequencies(d, **case)
        ours = np.float32(made.inv_freq(mode=1))
        theirs = theirs.numpy()
        ulps = np.abs(ours.view(np.int32).astype(np.int64) - theirs.view(np.int32))
        worst = max(worst, int(ulps.max()))
        assert ulps.max() <= 2, (d, case, ours, theirs)
        assert np.float32(made.attention_factor(mode=1)) == np.float32(attention), (case, attention)
    print(f"# largest difference from transformers: {worst} float32 ulp")


if __name__ == "__main__":
    sys.exit(tap.run(sys.modules["__main__"]))
