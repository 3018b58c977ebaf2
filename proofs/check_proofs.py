#!/usr/bin/env python3
"""Proves with Gappa the error bounds which the contracts in the headers state. Prints TAP.

    check_proofs.py [--show]        --show prints the scripts that Gappa gets, and proves nothing

A proof is a file *.g.in beside this one: Gappa's language, and lines that begin with %, which take formulas
out of the C sources and bounds out of the contracts, so that neither can change without its proof:

    %from FILE FUNCTION             where the formulas below stand
    %code NAME                      `double NAME = ...;` of that function, every operation rounded
    %horner X of T                  the kernels' steps of X: fused, and in a second run not
    %polynomial NEW from X of T     the same polynomial without rounding
    %include FILE                   the lines of another file
    %last V = X + REST of NAME      NAME = X + (REST) of that function: REST rounded, the last sum V not
    %requires FILE: TEXT            the file must contain this text
    %number NAME = EXPRESSION       $NAME below: Python over contract(FILE, FUNCTION, KEY), rounded down
    %given HYPOTHESES               hold in every case
    %case HYPOTHESES -> GOAL        each case is a run of Gappa

SPDX-License-Identifier: MIT
"""
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from math import comb, factorial
from pathlib import Path

from mpmath import mp

LIMIT = 120  # seconds for one run; each takes about 3
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
from tap import run  # noqa: E402


def number(text):
    """A C literal as an exact number."""
    return Fraction(float.fromhex(text)) if "0x" in text else Fraction(text)


def contract(file, function, key):
    """A number of the line `contract: FUNCTION key=... key=...` in a header."""
    words = re.search(rf"contract: {re.escape(function)} (.*)", (ROOT / file).read_text()).group(1)
    return number(re.search(rf"\b{key}=(\S+)", words).group(1))


def dyadic(value, bits=60):
    """value > 0 rounded down to `bits` bits, as Gappa writes it."""
    shift = bits + value.denominator.bit_length() - value.numerator.bit_length()
    return f"{value.numerator * 2**shift // value.denominator}b{-shift}"


def squeeze(text):
    return " ".join(text.split())


class Script:
    """The runs that NAME.g.in stands for, for kernels with or without fused steps."""

    def __init__(self, name, fused=True):
        self.fused, self.body, self.function = fused, "", ""
        self.numbers, self.given, self.cases = {}, "", []
        self.do_include(f"{name}.g.in")

    def do_include(self, file):
        for line in (HERE / file).read_text().splitlines():
            word, _, rest = line.partition(" ")
            if word.startswith("%"):
                getattr(self, "do_" + word[1:])(rest)
            elif not line.startswith("#"):
                self.body += line + "\n"

    def definition(self, name):
        found = re.findall(rf"\bdouble {name}\s*=\s*([^;]*);", self.function)
        assert len(found) == 1, f"{len(found)} definitions of {name}"
        return squeeze(found[0])

    def do_from(self, rest):
        file, function = rest.split()
        source = (ROOT / file).read_text()
        self.function = re.search(rf"^[^\n;]*(?<!\w){re.escape(function)}\([^;{{]*\) {{\n(.*?)^}}", source,
                                  re.M | re.S).group(1)

    def do_code(self, name):
        self.body += f"{name} rnd= {self.definition(name)};\n"

    def coefficients(self, name):
        """Of a polynomial in the kernels, the highest power's first."""
        number = r"(-?[0-9][0-9a-fxp.+-]*)"
        first = re.findall(rf"\b{name}\[k\] = V_SET\({number}\);", self.function)
        assert len(first) == 1
        return first + re.findall(rf"NAME\(step\)\(n, {name}, t, {number}\);", self.function)

    def do_horner(self, rest):
        name, variable = rest.split(" of ")
        first, *others = self.coefficients(name)
        self.body += f"{name}0 = {first};\n"
        for i, coefficient in enumerate(others):
            product = f"{name}{i} * {variable}" if self.fused else f"rnd({name}{i} * {variable})"
            new = name if i + 1 == len(others) else f"{name}{i + 1}"
            self.body += f"{new} = rnd({product} + {coefficient});\n"

    def do_polynomial(self, rest):
        new, name, variable = re.fullmatch(r"(\w+) from (\w+) of (\w+)", rest).groups()
        formula, *others = self.coefficients(name)
        for coefficient in others:
            formula = f"({formula}) * {variable} + {coefficient}"
        self.body += f"{new} = {formula};\n"

    def do_last(self, rest):
        last, first, inner, name = re.fullmatch(r"(\w+) = (\w+) \+ (\w+) of (\w+)", rest).groups()
        formula = re.fullmatch(rf"{first} \+ \((.*)\)", self.definition(name)).group(1)
        self.body += f"{inner} rnd= {formula};\n{last} = {first} + {inner};\n"

    def do_requires(self, rest):
        file, text = rest.split(": ", 1)
        assert squeeze(text) in squeeze((ROOT / file).read_text()), f"{file} has no {text}"

    def do_number(self, rest):
        name, expression = rest.split(" = ", 1)
        self.numbers[name] = eval(expression, {"contract": contract, "Fraction": Fraction})

    def do_given(self, rest):
        self.given += rest + " /\\ "

    def do_case(self, rest):
        self.cases.append((self.with_numbers(self.given + rest), len(self.body)))

    def with_numbers(self, text):
        return re.sub(r"\$(\w+)", lambda name: dyadic(self.numbers[name.group(1)]), text)

    def texts(self):
        """What Gappa gets, a text for each case: definitions, the formula, and hints below it."""
        assert self.cases
        for formula, at in self.cases:
            yield f"{self.body[:at]}{{ {formula} }}\n{self.body[at:]}"


def texts(name):
    """The runs of a proof, those for kernels with and without fused steps where they differ."""
    fused = list(Script(name).texts())
    return fused + [text for text in Script(name, fused=False).texts() if text not in fused]


def gappa(text, limit=LIMIT):
    """None if it is proved, else what Gappa says."""
    try:
        done = subprocess.run(["gappa"], input=text, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"no proof within {limit} seconds"
    said = done.stdout + done.stderr
    proved = done.returncode == 0 and "Error" not in said
    return None if proved else "\n".join(said.splitlines()[-6:])


# --- The kernels' polynomials ---------------------------------------------------------------------

SERIES_TERMS = 14
TOP = Fraction("0.5004")  # quarter turns: a half, and what the product's rounding and its low part add


def half_pi(bits=300):
    """pi/2 to 2^-bits."""
    mp.prec = bits + 20
    return Fraction(int(mp.floor(mp.pi / 2 * mp.mpf(2) ** bits)), 2**bits)


def taylor(first):
    """Coefficients in t = r^2 of sin(pi/2 r) / r (first = 1) or cos(pi/2 r) (first = 0)."""
    x = half_pi()
    return [(-1) ** k * x ** (2 * k + first) / factorial(2 * k + first) for k in range(SERIES_TERMS)]


def bernstein(coefficients, low, high):
    """The same polynomial's coefficients in Bernstein's basis on [low, high]: they enclose its values."""
    n = len(coefficients) - 1
    moved = [sum(coefficients[j] * comb(j, i) * low ** (j - i) for j in range(i, n + 1)) * (high - low) ** i
             for i in range(n + 1)]
    return [sum(Fraction(comb(k, i), comb(n, i)) * moved[i] for i in range(k + 1))
            for k in range(n + 1)]


def series_error_is_below(script, name, first, bound):
    """Is |polynomial - series| <= bound * series for all t in [0, TOP^2]? In exact fractions: both
    bound * series +- the difference are polynomials, whose Bernstein coefficients on 64 pieces must exceed
    what the series leaves out (its next term) and what half_pi does."""
    series = taylor(first)
    next_term = 2**first * Fraction(8, 10) ** (2 * SERIES_TERMS) / factorial(2 * SERIES_TERMS)
    left_out = 2 * next_term + Fraction(1, 2**250)
    ours = [number(text) for text in reversed(script.coefficients(name))]
    difference = [a - b for a, b in zip(ours + [0] * (len(series) - len(ours)), series)]
    for sign in (1, -1):
        slack = [bound * b + sign * d for b, d in zip(series, difference)]
        for piece in range(64):
            ends = TOP**2 * piece / 64, TOP**2 * (piece + 1) / 64
            if min(bernstein(slack, *ends)) <= left_out:
                return False
    return True


def missing():
    return None if shutil.which("gappa") else "gappa is not installed"


def prove(name):
    if missing():
        return missing()
    for text in texts(name):
        said = gappa(text)
        assert said is None, f"{said}\n{text}"
    return None


def test_the_float64_sequence_of_sin_keeps_its_contract():
    return prove("sincos_double_sin")


def test_the_float64_sequence_of_cos_keeps_its_contract():
    return prove("sincos_double_cos")


def test_a_settled_value_is_rounded_right():
    return prove("settled")


def test_the_range_reduction_keeps_its_contract():
    return prove("phase")


def test_the_kernels_polynomials_are_near_sin_and_cos():
    for name, first in (("sin", 1), ("cos", 0)):
        script = Script(f"kernel_{name}")
        bound = script.numbers[f"{name}_series"]
        assert series_error_is_below(script, name[0], first, bound), name
        assert not series_error_is_below(script, name[0], first, bound * Fraction(9, 10)), name


def test_the_kernels_polynomial_of_sin_loses_no_more_than_its_budget():
    return prove("kernel_sin")


def test_the_kernels_polynomial_of_cos_loses_no_more_than_its_budget():
    return prove("kernel_cos")


def test_the_kernels_angle_loses_no_more_than_its_budget():
    return prove("kernel_angle")


def test_the_kernels_float64_values_lose_no_more_than_their_budget():
    return prove("kernel_value")


def test_the_kernels_blocks_keep_their_contract():
    return prove("kernel_turn")


def test_the_margin_of_single_rows_holds_the_real_value():
    return prove("kernel_round")


def test_the_margin_of_runs_holds_the_real_value():
    return prove("kernel_run")


def test_the_margin_of_float64_rows_holds_the_slow_angle():
    return prove("kernel_double_angle")


def test_the_constant_of_a_turn_is_2_pi_cut_at_256_bits():
    mp.prec = 400
    text = (ROOT / "src/base/power.c").read_text()
    limbs = re.search(r"penc_turn = {{(.*?)}}", text, re.S).group(1)
    digits = [int(limb, 0) for limb in re.findall(r"0x[0-9a-f]+|\d+", re.sub(r"UINT64_C|[()]", " ", limbs))]
    assert len(digits) == 5
    assert sum(limb << 64 * i for i, limb in enumerate(digits)) == int(mp.floor(2 * mp.pi * mp.mpf(2) ** 256))


def test_a_wrong_coefficient_or_margin_is_not_proved():
    """The proofs can fail: what is wrong by a little is refused."""
    if missing():
        return missing()
    for name, right, wrong in (("sincos_double_sin", "1.0 / 5040", "1.0 / 5041"),
                               ("sincos_double_cos", "1.0 / 40320", "1.0 / 40321"),
                               ("settled", "0x1p-50", "0x1p-52"),
                               ("phase", "fixed<-256, dn>", "fixed<-252, dn>"),
                               ("kernel_sin", "0x1.466bc67754ffdp-4", "0x1.466bc67754f00p-4"),
                               ("kernel_round", "0x1p-49", "0x1p-50"),
                               ("kernel_run", "0x1.8p-48", "0x1p-48"),
                               ("kernel_double_angle", "1b-91", "1b-102")):
        text = texts(name)[-1]
        assert right in text
        once = name.startswith("sincos") or name == "kernel_sin"  # and not in the exact polynomial
        wrong_text = text.replace(right, wrong, 1 if once else -1)
        assert gappa(wrong_text, limit=10), f"{name}: proved with {wrong}"
    return None


if __name__ == "__main__":
    if sys.argv[1:] == ["--show"]:
        print("\n".join(text for path in sorted(HERE.glob("*.g.in"))
                        if "%case" in path.read_text() for text in texts(path.name.removesuffix(".g.in"))))
    else:
        sys.exit(run(sys.modules[__name__]))
