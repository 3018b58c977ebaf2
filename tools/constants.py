#!/usr/bin/env python3
"""Prints the wide constants of src/base/power.c from first principles (needs mpmath).

Each is floor(x * 2^256) as five 64-bit limbs, lowest first. tests/test_power.c checks them with MPFR.
"""
from mpmath import floor, log, mp, mpf, pi

mp.prec = 400


def limbs(x):
    value = int(floor(x * mpf(2) ** 256))
    return [(value >> (64 * i)) & (2**64 - 1) for i in range(5)]


for name, x in [
    ("penc_inverse_turn", 1 / (2 * pi)),
    ("penc_turn", 2 * pi),
    ("penc_ln2", log(2)),
    ("penc_log2_e", 1 / log(2)),
]:
    print(name, ", ".join(f"UINT64_C(0x{limb:016x})" for limb in limbs(x)))
