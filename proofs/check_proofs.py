#!/usr/bin/env python3
"""Proves with Gappa the error bounds which the contracts in the headers state. Prints TAP.

    check_proofs.py [--show]        --show prints the scripts that Gappa gets, and proves nothing

A proof is a file *.g.in beside this one: Gappa's language, and lines that begin with %, which take formulas
out of the C sources and bounds out of the contracts, so that neither can change without its proof:

    %from FILE FUNCTION             where the formulas below stand
    %code NAME                      `double NAME = ...;` of that function, every operation rounded
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
    """The runs that a *.g.in stands for; `change` edits the C sources as they are read."""

    def __init__(self, path, change=lambda text: text):
        self.change, self.body, self.function = change, "", ""
        self.numbers, self.given, self.cases = {}, "", []
        for line in path.read_text().splitlines():
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
        source = self.change((ROOT / file).read_text())
        self.function = re.search(rf"^[^\n;]*\b{function}\([^;{{]*\) {{\n(.*?)^}}", source, re.M | re.S).group(1)

    def do_code(self, name):
        self.body += f"{name} rnd= {self.definition(name)};\n"

    def do_last(self, rest):
        last, first, inner, name = re.fullmatch(r"(\w+) = (\w+) \+ (\w+) of (\w+)", rest).groups()
        formula = re.fullmatch(rf"{first} \+ \((.*)\)", self.definition(name)).group(1)
        self.body += f"{inner} rnd= {formula};\n{last} = {first} + {inner};\n"

    def do_requires(self, rest):
        file, text = rest.split(": ", 1)
        assert squeeze(text) in squeeze(self.change((ROOT / file).read_text())), f"{file} has no {text}"

    def do_number(self, rest):
        name, expression = rest.split(" = ", 1)
        self.numbers["$" + name] = dyadic(eval(expression, {"contract": contract, "Fraction": Fraction}))

    def do_given(self, rest):
        self.given = rest

    def do_case(self, rest):
        for name, value in self.numbers.items():
            rest, self.given = rest.replace(name, value), self.given.replace(name, value)
        self.cases.append((rest, len(self.body)))

    def texts(self):
        """What Gappa gets, a text for each case: definitions, the formula, and what stands below it: hints."""
        assert self.cases
        for formula, at in self.cases:
            yield f"{self.body[:at]}{{ {self.given} /\\ {formula} }}\n{self.body[at:]}"


def gappa(text, limit=LIMIT):
    """None if it is proved, else what Gappa says."""
    try:
        done = subprocess.run(["gappa"], input=text, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"no proof within {limit} seconds"
    said = done.stdout + done.stderr
    proved = done.returncode == 0 and "Error" not in said
    return None if proved else "\n".join(said.splitlines()[-6:])


def missing():
    return None if shutil.which("gappa") else "gappa is not installed"


def prove(name):
    if missing():
        return missing()
    for text in Script(HERE / f"{name}.g.in").texts():
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


def test_the_constant_of_a_turn_is_2_pi_cut_at_256_bits():
    mp.prec = 400
    text = (ROOT / "src/base/power.c").read_text()
    limbs = re.search(r"penc_turn = {{(.*?)}}", text, re.S).group(1)
    digits = [int(limb, 0) for limb in re.findall(r"0x[0-9a-f]+|\d+", re.sub(r"UINT64_C|[()]", " ", limbs))]
    assert len(digits) == 5
    assert sum(limb << 64 * i for i, limb in enumerate(digits)) == int(mp.floor(2 * mp.pi * mp.mpf(2) ** 256))


def test_no_other_coefficients_or_margin_are_proved():
    """The proofs can fail: what is wrong by a little is refused."""
    if missing():
        return missing()
    for name, right, wrong in (("sincos_double_sin", "1.0 / 5040", "1.0 / 5041"),
                               ("sincos_double_cos", "1.0 / 40320", "1.0 / 40321"),
                               ("settled", "0x1p-50", "0x1p-52")):
        def change(text):
            assert text.count(right) == 1
            return text.replace(right, wrong)
        texts = list(Script(HERE / f"{name}.g.in", change).texts())
        assert any(gappa(text, limit=10) for text in texts[-1:]), f"{name}: proved with {wrong}"
    return None


if __name__ == "__main__":
    if sys.argv[1:] == ["--show"]:
        print("\n".join(text for path in sorted(HERE.glob("*.g.in")) for text in Script(path).texts()))
    else:
        sys.exit(run(sys.modules[__name__]))
