#!/usr/bin/env python3
"""Writes docs/accuracy.md: measured errors of angles by position decade (needs NumPy and mpmath).

usage: accuracy.py PATH_OF_LIBPOSENC_SO > docs/accuracy.md            SPDX-License-Identifier: MIT
"""
import random
import sys
from pathlib import Path

import numpy as np
from mpmath import cos, mp, mpf, sin

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from posenc_ctypes import Library  # noqa: E402

mp.dps = 60
LIBRARY = Library(sys.argv[1])
DIM, SAMPLES = 128, 48
DECADES = [(10**k, 10 ** (k + 1)) for k in range(0, 7)] + [(10**9, 10**10), (10**11, 2**40)]


def bfloat16(x):
    bits = np.float32(x).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def recurrence(base, position):
    """Angles by the float32 running product theta *= scale."""
    scale = np.float32(base) ** np.float32(-2.0 / DIM)
    theta, out = np.float32(position), []
    for _ in range(DIM // 2):
        out.append(theta)
        theta = np.float32(theta * scale)
    return out


def ulps(got, real, bits):
    """Distance in units of the last place of a float with `bits` significant bits."""
    if real == 0:
        return 0.0
    exponent = int(mp.floor(mp.log(abs(real), 2)))
    return float(abs(mpf(float(got)) - real) / mpf(2) ** (exponent - bits + 1))


def measure(base, low, high):
    made = LIBRARY.frequencies(DIM, base=base)
    r = random.Random(low)
    positions = np.array(sorted({low, high - 1} | {r.randrange(low, high) for _ in range(SAMPLES)}), np.int64)
    exact, double = made.angles(positions), made.angles(positions, "f64")
    framework = made.angles(positions, mode=1)
    inv = [mpf(base) ** (-mpf(2 * j) / DIM) for j in range(DIM // 2)]
    worst = dict.fromkeys(("exact", "double", "float32", "recurrence", "bf16"), 0.0)
    for i, p in enumerate(int(p) for p in positions):
        theta = recurrence(base, p)
        for j in range(0, DIM // 2, 3):
            for k, f in enumerate((cos, sin)):
                real = f(p * inv[j])
                worst["exact"] = max(worst["exact"], ulps(exact[k][i, j], real, 24))
                error = max(0.0, abs(float(mpf(float(double[k][i, j])) - real)) - 2.0**-75)
                worst["double"] = max(worst["double"], error / 2.0 ** (float(mp.floor(mp.log(abs(real), 2))) - 52))
                worst["float32"] = max(worst["float32"], abs(float(mpf(float(framework[k][i, j])) - real)))
                worst["recurrence"] = max(worst["recurrence"], abs(float(f(mpf(float(theta[j]))) - real)))
                worst["bf16"] = max(worst["bf16"], abs(float(mpf(float(bfloat16(float(real)))) - real)))
    return worst


def table(base):
    print(f"\nBase {base:g}:\n")
    print("| positions | exact f32, ulp | exact f64, ulp | mode float32 | float32 recurrence | exact, stored in bf16 |")
    print("|---|---|---|---|---|---|")
    for low, high in DECADES:
        w = measure(base, low, high)
        name = f"{low:,} ... {high - 1:,}" if high <= 10**7 else f"{low:.0e} ... {high:.0e}"
        print(f"| {name} | {w['exact']:.4f} | {w['double']:.2f} | {w['float32']:.1e} | {w['recurrence']:.1e} | "
              f"{w['bf16']:.1e} |")


print("""# Accuracy of angles

Made by `tools/accuracy.py`; the errors are those of cos and sin against 60-digit arithmetic, the largest of
50 positions in each range (its ends among them) and every third pair of head_dim 128.

- **exact f32**: rows of mode exact in float32. 0.5 ulp is what correct rounding means; every value is
  correctly rounded.
- **exact f64**: in units of the last place, beyond the 2^-75 that the contract allows.
- **mode float32**: absolute; what frameworks compute, and what models were trained with.
- **float32 recurrence**: absolute; angles by a running float32 product (`theta *= scale`).
- **bf16**: absolute; exact values stored in bfloat16: what is lost if a table is kept in 16 bits.""")
for value in (10000.0, 500000.0, 1e6):
    table(value)
print("""
## The bound of exact rows

Each function states its contract in its header: a bound, the interval it holds in, and the worst argument
found. `proofs/check_proofs.py` proves with Gappa what is marked (machine), with formulas read out of the C
sources and bounds read out of the contracts; `tests/test_contracts.c` tries to break each contract and checks
the worst arguments. What is marked (text) is argued here.

**The phase** (`angles/phase.c`). A position p and a frequency w are multiplied as integers: |p| <= 2^40 times a
128-bit significand of w in turns, cut, so off by less than 2^-127 of w and what the wide arithmetic before it
loses, 2^-229 of w (`frequencies/ladder.c`) (text). The whole turns are bits that fall off, so the reduction to
an eighth of a turn is exact (text). Bits below 2^-256 are cut off the product and off the angle x in
[0, pi/4], and the constant 2 pi is cut there: less than 2^-252 together (machine).

**The float64 sequence** (`angles/sincos.c`). x is split into a float64 and the next 53 bits. The remainders of
the Taylor series are below the first term left out, since signs alternate and terms fall (text); with them,
the sums before the last rounding are within 0.41 ulp (machine). Rounding a number to nearest adds half an ulp
of the real value, even where the number has crossed a power of two, which is representable (text): 0.91 ulp.
With an angle below 2^48 radians the phase adds 2^-78, which makes 1 ulp plus 2^-75.

**Rounded values** (`angles/sincos.c`). A float32 (float16, bfloat16) is stored if the value plus and minus
2^-50 of itself round to the same number; since the value is nearer to the real one than that (machine), and
rounding keeps order (text), this is the real value's rounding. Else it is computed from x with all 256 bits,
where what is within 2^-128 of a tie counts as a tie. So a stored number is the correctly rounded cos or sin of
x, and x is off by the phase: within half an ulp plus 2^-78 of the real value for angles below 2^48, and
correctly rounded unless the real value lies nearer than that to a midpoint. No sampled one does: that is
tested, not proved. Of all 2^48 float32 numbers of a head of 64 pairs at positions up to 2^40, one lies so near with a chance of about
2^-14 (frequencies up to 1, angles up to 2^40, the phase off by 2^-87). With frequencies of 192 bits, which the logarithms are good for
(2^-229), that would be 2^-70; it would cost a word a frequency and one multiplication in the slow way, and is not done. It would still be
no proof: cos of an algebraic number other than 0 is transcendental (Lindemann), so no value of a plain frequency is a midpoint, but how near
it may come to one is not known for every base; only precision that grows until it settles would prove it.

**The vector kernels** (`kernels/sincos_vector.inc`) keep w as two float64 numbers in quarter turns, cut off after
53 bits each: within 2^-105 of itself. The whole quarters n of p w come from a float64 product; then
r = p w - n by two fused steps (without FMA: an exact product after Dekker, and one more rounding), and is off by
2^-105 p w besides (text). Where |r| is below 2^-52 of the row's largest p w, or 2^-100, the lane goes the slow way, unless p w is 0; else r is within 5.0001 e of
itself, e = 2^-53, and within 2.8 e above 2^-50 of p w (machine). sin and cos are minimax polynomials in r
(`tools/sincos.sollya`), within 0.36 e and 0.7 e of themselves: in exact fractions, the difference from a
Taylor series is a polynomial whose Bernstein coefficients bound it (machine; Gappa itself knows no sin, and
this needs no other tool). Their steps lose 1.95 e, fused or not, and the whole is within 6.99 e (machine): an
angle's relative error is not magnified by sin and cos below an eighth of a turn (text). The factor, its margin
and the product add 3 e: below 16 e, the margin that must not change the rounding to float32 (machine).
A run adds the angles of its anchor and of a step. In absolute terms cos and sin of an angle are within 3.45 e
(machine), which weighs at most sqrt 2 in a sum of angles as cos^2 + sin^2 = 1 (text). Most anchors and steps are such sums
themselves, of two angles: within 13.9 e (machine). Their sum, with all roundings, is within 48 e of the factor, the margin
(machine). What a margin does change goes the slow way.
Whether it does is told by rounding both ends, or with AVX-512 by their bits (`kernels/sincos_round.inc`): a float64 has 29 bits more than
a float32, and there is a middle between two float32 numbers where these are 2^28. In a single row they must be farther than 16 last
places from that, each at least 2^-53 of the number. In a run both ends must agree in all bits from the 28th on; the real number lies between
them, and is no end itself. So if the upper end is a middle, as it may be below 0, the real number lies beyond it in magnitude: one is
set in the last bit before rounding, which leads there (text). Numbers below 2^-126, which have fewer bits in float32, do not come here: |r| is
above 2^-100 and the factor at least 2^-20.
16-bit numbers are rounded from the float32 ones, which is right unless those lie in the middle between two
of them: then they go the slow way too. Mode float32 takes the float32 angle times 2/pi in the same kernels.

**Float64 rows in vectors** (`kernels/sincos_double.inc`) give the bytes of the float64 sequence. w is exact as three float64
numbers; p w less the nearest quarter turn, times pi/2, comes as a sum h + l of two, within 2^-91 of h and 2^-141 of p w of what the
sequence is given, its own errors included (machine). The first 53 bits of that are h, or the number before h if l is below 0, provided
that l is farther than this from 0; the next 53 bits lie between two numbers. Each step of the sequence from those on is one
rounded operation that keeps order, so if both numbers lead to the same cos and sin, all between do (text). Other pairs go
the slow way, one in some 10^10 by the width of the margin, but for positions that are angles by themselves (below pi/4 at frequency 1). Rows with an attention
factor in float64 go there too.

The tests: contracts (`test_contracts`), every row layout, dtype and mode against MPFR (`test_angles`), all
scalings and axes against 80 digits (`test_scalings.py`), vector rows against the slow way at every CPU level
(`test_fast_rows`), and the same bytes from every compiler, level and machine (`check_same_bytes.sh`).""")
