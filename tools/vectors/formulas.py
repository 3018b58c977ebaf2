"""Positional encodings as real numbers: the formulas of the papers and releases, in 60 digits (mpmath).

Nothing here calls posenc. An encoding is the dict that stands in the index: head_dim, rotary_dim,
rotary_start, base, pairing, and, where they apply, scaling (transformers' rope_parameters keys),
max_positions, seq_len, axes.                                        SPDX-License-Identifier: MIT
"""
from mpmath import ceil, floor, frexp, ldexp, log, mp, mpf, pi, sqrt

mp.dps = 60
TENTH = mpf(1) / 10
PRECISION = {"f64": (53, -1074), "f32": (24, -149), "f16": (11, -24), "bf16": (8, -133)}


def rounded(x, dtype):
    """The real number x in `dtype`, to nearest, ties to even, denormals kept; as a float."""
    bits, least = PRECISION[dtype]
    if x == 0:
        return 0.0
    exponent = max(int(frexp(x)[1]) - bits, least)
    steps = ldexp(abs(x), -exponent)
    whole = int(floor(steps))
    rest = steps - whole
    whole += rest > 0.5 or (rest == 0.5 and whole % 2 == 1)
    return float(ldexp(mpf(whole), exponent)) * (-1.0 if x < 0 else 1.0)


# --- RoPE ---------------------------------------------------------------------------------------

def axis_of_pairs(axes, pairs):
    """Which axis each pair follows, as the models assemble their tables."""
    if axes is None:
        return [0] * pairs
    count, order, sections = axes["count"], axes["order"], axes.get("sections")
    if order == "chunked":
        return [axis for axis, n in enumerate(sections) for _ in range(n)]
    if order == "alternating":
        return [j % count for j in range(pairs)]
    if order == "listed":
        return axes["pair_axis"]
    if order == "ernie":  # sections h, w, t: h and w alternate on the fast pairs, t has the slow ones
        return [1 + j % 2 for j in range(2 * sections[0])] + [0] * sections[2]
    assert order == "interleaved"  # start from the first axis, put every other into its slots
    result = [0] * pairs
    for axis in range(1, count):
        for j in range(axis, min(pairs, count * sections[axis]), count):
            result[j] = axis
    return result


def exponents(encoding):
    """Pair j has the frequency base^-exponent."""
    pairs, axes = encoding["rotary_dim"] // 2, encoding.get("axes")
    follows = axis_of_pairs(axes, pairs)
    kind = axes["exponents"] if axes else "whole"
    if kind == "whole":
        return [mpf(j) / pairs for j in range(pairs)]
    seen, result = [0] * axes["count"], []
    for axis in follows:
        if kind == "own":  # a ladder for each axis, over its own pairs
            result.append(mpf(seen[axis]) / follows.count(axis))
        else:  # strided: every count-th step of one ladder
            result.append(mpf(seen[axis] * axes["count"] + axis) / pairs)
        seen[axis] += 1
    return result


def ladder(encoding, base):
    return [mpf(base) ** -e for e in exponents(encoding)]


def yarn_range(d, base, scaling):
    """First and last pair of the ramp."""
    def pair_that_turns(times):
        return d * log(mpf(scaling["original_max_position_embeddings"]) / (2 * pi * times)) / (2 * log(mpf(base)))
    low, high = pair_that_turns(mpf(scaling.get("beta_fast", 32))), pair_that_turns(mpf(scaling.get("beta_slow", 1)))
    if scaling.get("truncate", True):
        low, high = floor(low), ceil(high)
    low, high = max(low, mpf(0)), min(high, mpf(d - 1))
    return low, high + (mpf(1) / 1000 if low == high else 0)


def magnitude(s, m):
    return 1 + TENTH * mpf(m) * log(s) if s > 1 else mpf(1)


def attention_factor(encoding):
    scaling = encoding.get("scaling", {})
    kind, given = scaling.get("rope_type"), scaling.get("attention_factor")
    if given is not None:
        return mpf(given)
    if kind == "yarn":
        s, one, all_dim = mpf(scaling["factor"]), scaling.get("mscale"), scaling.get("mscale_all_dim")
        return magnitude(s, one) / magnitude(s, all_dim) if one and all_dim else magnitude(s, 1)
    if kind == "longrope":
        original = scaling["original_max_position_embeddings"]
        s = mpf(scaling["factor"]) if "factor" in scaling else mpf(encoding["max_positions"]) / original
        return sqrt(1 + log(s) / log(mpf(original))) if s > 1 else mpf(1)
    return mpf(1)


def softmax_factor(encoding):
    """What DeepSeek-style models multiply their softmax scale by, beside the rows."""
    scaling = encoding.get("scaling", {})
    if scaling.get("rope_type") != "yarn" or not scaling.get("mscale_all_dim"):
        return mpf(1)
    return magnitude(mpf(scaling["factor"]), scaling["mscale_all_dim"]) ** 2


def grown_base(encoding):
    """The base of ntk and dynamic."""
    scaling, d, growth = encoding["scaling"], encoding["rotary_dim"], None
    if scaling["rope_type"] == "ntk":
        growth = mpf(scaling["factor"])
    elif "alpha" in scaling:
        growth = mpf(scaling["alpha"])
    else:
        s, longest = mpf(scaling["factor"]), encoding["max_positions"]
        growth = s * max(encoding["seq_len"], longest) / longest - (s - 1)
    return mpf(encoding["base"]) * growth ** (mpf(d) / (d - 2))


def inverse_frequencies(encoding):
    """Radians per position of every pair, real numbers."""
    scaling = encoding.get("scaling", {"rope_type": "default"})
    kind, d = scaling["rope_type"], encoding["rotary_dim"]
    if kind == "custom":
        given = [mpf(x) for x in scaling["inv_freq"]]
        return [1 / x for x in given] if scaling.get("inv_freq_is_period") else given
    base = grown_base(encoding) if kind in ("ntk", "dynamic") else encoding["base"]
    f, s = ladder(encoding, base), mpf(scaling.get("factor") or 1)
    original = scaling.get("original_max_position_embeddings")
    if kind == "linear":
        return [x / s for x in f]
    if kind == "yarn":
        low, high = yarn_range(d, base, scaling)
        ramp = [min(max((j - low) / (high - low), mpf(0)), mpf(1)) for j in range(d // 2)]
        return [x / s * r + x * (1 - r) for x, r in zip(f, ramp)]
    if kind == "longrope":
        divisors = scaling["long_factor" if encoding["seq_len"] > original else "short_factor"]
        return [x / mpf(e) for x, e in zip(f, divisors)]
    if kind == "llama3":
        low, high = mpf(scaling["low_freq_factor"]), mpf(scaling["high_freq_factor"])
        turns = [original * x / (2 * pi) for x in f]
        keep = [min(max((t - low) / (high - low), mpf(0)), mpf(1)) for t in turns]
        return [x * k + x / s * (1 - k) for x, k in zip(f, keep)]
    if kind == "proportional":
        turning = int(mpf(scaling.get("partial_rotary_factor", 1)) * d / 2)
        return [x / s if j < turning else mpf(0) for j, x in enumerate(f)]
    assert kind in ("default", "ntk", "dynamic"), kind
    return f


# --- Sinusoids and ALiBi ------------------------------------------------------------------------

def sinusoid_frequencies(table):
    d, shift = table["dim"], table["shift"]
    half = mpf(d) / 2
    count = (d + 1) // 2
    if d % 2 and table["odd"] == "zero":
        half, count = mpf(d // 2), d // 2
    return [mpf(table["scale"]) * mpf(table["base"]) ** (-k / (half - shift)) for k in range(count)]


def alibi_slopes(heads, rule, max_bias):
    bias = mpf(max_bias)
    if rule == "plain":
        return [mpf(2) ** (-bias * (h + 1) / heads) for h in range(heads)]
    closest = 1
    while 2 * closest <= heads:
        closest *= 2
    first = [mpf(2) ** (-bias * (h + 1) / closest) for h in range(closest)]
    twice = [mpf(2) ** (-bias * (h + 1) / (2 * closest)) for h in range(2 * closest)]
    return first + twice[0::2][:heads - closest]  # every other slope of twice as many heads
