"""Arrays as .npy bytes, 16-bit numbers, inputs from a fixed sequence. SPDX-License-Identifier: MIT"""
import struct

import numpy as np

NUMPY_DTYPE = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2", "i64": "<i8"}


def npy(array, dtype):
    """The bytes of an .npy file, version 1.0. bfloat16 comes as its 16 bits and is stored as NumPy does: V2."""
    descr = "|V2" if dtype == "bf16" else NUMPY_DTYPE[dtype]
    assert array.dtype == np.dtype(NUMPY_DTYPE[dtype]), (array.dtype, dtype)
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(array.shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.tobytes()


def bf16_bits(values):
    """float32 to the nearest bfloat16, ties to even, as uint16. No NaN."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def widened(array, dtype):
    """What an array of `dtype` is computed in: float64 for f64, float32 for all others."""
    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64 if dtype == "f64" else np.float32)


def narrowed(values, dtype):
    """Results in `dtype`, rounded once."""
    return bf16_bits(values) if dtype == "bf16" else np.asarray(values).astype(NUMPY_DTYPE[dtype])


def sequence(name, count):
    """`count` numbers in (-2, 2), none near 0, from a counter hashed with the case's name (splitmix64):
    no library's random numbers, whose streams may change."""
    state = int.from_bytes(name.encode().ljust(8)[:8], "little") + 31 * sum(name.encode())
    numbers = []
    for i in range(count):
        z = (state + (i + 1) * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        z ^= z >> 31
        size = 0.25 + 1.75 * ((z >> 11) / 2**53)
        numbers.append(-size if z & 1 else size)
    return np.array(numbers)


def inputs(name, shape, dtype):
    values = sequence(name, int(np.prod(shape))).reshape(shape)
    return narrowed(values.astype(np.float32) if dtype != "f64" else values, dtype)
