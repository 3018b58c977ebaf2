"""One case of the comparison: its numbers, and the right answer in float64. SPDX-License-Identifier: MIT"""
from dataclasses import dataclass, field

import numpy as np

HEADS, HEAD_DIM, PAIRS, BASE = 32, 128, 64, 10000.0
FIRST_POSITION = 1000  # at position 0 nothing turns
# How far from the right answer the numbers of a dtype may be: inputs are below 1, so results below sqrt(2).
# Peers round their tables and each product to 16 bits; the errors that were seen stand in the table.
TOLERANCE = {"f32": 2e-6, "f16": 6e-3, "bf16": 5e-2}
BYTES = {"f32": 4, "f16": 2, "bf16": 2}


class Missing(Exception):
    """A peer cannot do this case, or is not there; the text says why."""


@dataclass
class Contender:
    """`call` does the work once; `result` gives (tokens, heads, head_dim) of what the last call made."""
    name: str
    call: object
    result: object
    note: str = ""
    tolerance: float = 0.0  # 0: the dtype's


def to_bits(values, dtype):
    """float64 to the dtype's array; bfloat16 as uint16, rounded to nearest even."""
    if dtype != "bf16":
        return values.astype(np.float32 if dtype == "f32" else np.float16)
    single = values.astype(np.float32).view(np.uint32)
    return ((single + 0x7FFF + (single >> 16 & 1)) >> 16).astype(np.uint16)


def from_bits(array, dtype):
    if dtype == "bf16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


@dataclass
class Case:
    dtype: str
    pairing: str
    tokens: int
    x: np.ndarray = field(init=False)     # (tokens, heads, head_dim)
    cos: np.ndarray = field(init=False)   # (tokens, pairs), float64
    sin: np.ndarray = field(init=False)
    wanted: np.ndarray = field(init=False)

    def __post_init__(self):
        random = np.random.default_rng(1)
        self.x = to_bits(random.uniform(-1, 1, (self.tokens, HEADS, HEAD_DIM)), self.dtype)
        inv_freq = np.longdouble(BASE) ** (-np.arange(PAIRS, dtype=np.longdouble) / PAIRS)
        angles = (FIRST_POSITION + np.arange(self.tokens, dtype=np.longdouble))[:, None] * inv_freq
        self.cos, self.sin = (f(angles).astype(np.float64) for f in (np.cos, np.sin))
        self.wanted = self.rotated()

    def pairs_of(self, x):
        """Views of the first and the second channel of every pair."""
        if self.pairing == "half":
            return x[..., :PAIRS], x[..., PAIRS:]
        return x[..., 0::2], x[..., 1::2]

    def rotated(self):
        x = from_bits(self.x, self.dtype)
        y = np.empty_like(x)
        (a, b), (ya, yb) = self.pairs_of(x), self.pairs_of(y)
        c, s = self.cos[:, None, :], self.sin[:, None, :]
        ya[...], yb[...] = a * c - b * s, a * s + b * c
        return y

    def full(self, table):
        """(tokens, head_dim): one cos or sin for each channel."""
        return np.concatenate((table, table), -1) if self.pairing == "half" else np.repeat(table, 2, -1)

    def bytes_moved(self):
        return 2 * self.x.nbytes
