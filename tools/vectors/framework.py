"""Inverse frequencies as transformers forms them: its order of float32 operations, in NumPy.

Powers are correctly rounded here (libraries are within an ulp or two of that), every other operation is
one float32 operation.                                               SPDX-License-Identifier: MIT
"""
import numpy as np
from mpmath import log, mpf, pi

from vectors.formulas import attention_factor, grown_base, rounded

ONE = np.float32(1)


def powers(encoding, base):
    """base ** (arange(0, d, 2) / d)"""
    d = encoding["rotary_dim"]
    exponent = np.arange(0, d, 2).astype(np.float32) / np.float32(d)
    single = mpf(float(np.float32(base)))
    return np.array([rounded(single ** mpf(float(e)), "f32") for e in exponent], np.float32)


def yarn(scaling, d, base, power):
    original = scaling["original_max_position_embeddings"]

    def pair_that_turns(times):
        return float(d * log(mpf(original) / (2 * pi * mpf(times))) / (2 * log(mpf(base))))
    low, high = pair_that_turns(scaling.get("beta_fast", 32)), pair_that_turns(scaling.get("beta_slow", 1))
    if scaling.get("truncate", True):
        low, high = np.floor(low), np.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    if low == high:
        high += 0.001
    steps = np.arange(d // 2, dtype=np.float32) - np.float32(low)
    keep = ONE - np.clip(steps / np.float32(high - low), 0, 1)
    return ONE / (np.float32(scaling["factor"]) * power) * (ONE - keep) + ONE / power * keep


def llama3(scaling, inv):
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    original, factor = scaling["original_max_position_embeddings"], np.float32(scaling["factor"])
    wavelength = ONE / inv * np.float32(2 * np.pi)
    divided = np.where(wavelength > np.float32(original / low), inv / factor, inv)
    smooth = (ONE / wavelength * np.float32(original) - np.float32(low)) / np.float32(high - low)
    blend = (ONE - smooth) * divided / factor + smooth * divided
    middle = (wavelength >= np.float32(original / high)) & (wavelength <= np.float32(original / low))
    return np.where(middle, blend, divided)


def inverse_frequencies(encoding):
    """float32; None where transformers has no such chain (axes with ladders of their own)."""
    scaling = encoding.get("scaling", {"rope_type": "default"})
    kind, d = scaling["rope_type"], encoding["rotary_dim"]
    if encoding.get("axes", {}).get("exponents", "whole") != "whole":
        return None
    if kind == "custom":
        given = np.float32(scaling["inv_freq"])
        return ONE / given if scaling.get("inv_freq_is_period") else given
    base = float(grown_base(encoding)) if kind in ("ntk", "dynamic") else encoding["base"]
    power = powers(encoding, base)
    inv = ONE / power
    if kind == "yarn":
        return yarn(scaling, d, base, power)
    if kind == "llama3":
        return llama3(scaling, inv)
    if kind == "longrope":
        longer = encoding["seq_len"] > scaling["original_max_position_embeddings"]
        return ONE / (np.float32(scaling["long_factor" if longer else "short_factor"]) * power)
    if kind in ("linear", "proportional"):
        inv = inv / np.float32(scaling.get("factor") or 1)
    if kind == "proportional":
        turning = int(scaling.get("partial_rotary_factor", 1.0) * d // 2)
        inv = np.where(np.arange(d // 2) < turning, inv, np.float32(0))
    return inv


def attention(encoding):
    return np.float32(float(attention_factor(encoding)))
