"""What a rotation is, once more, in NumPy's long double and one rounding at a time. SPDX-License-Identifier: MIT"""
import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {"float32": np.dtype(np.float32), "float64": np.dtype(np.float64), "float16": np.dtype(np.float16),
          "bfloat16": BF16}


def inv_freq(rotary_dim, base=10000.0):
    return np.longdouble(base) ** (-np.arange(0, rotary_dim, 2, dtype=np.longdouble) / rotary_dim)


def rows(positions, rotary_dim, base=10000.0, dtype=np.float32):
    """cos and sin (..., pairs). Right to the last bit of float32 for positions up to 2^20 or so, but for ties that
    come once in 2^19 numbers; to 1e-13 in float64."""
    angles = np.asarray(positions, dtype=np.longdouble)[..., None] * inv_freq(rotary_dim, base)
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


def pairs_of(x, start, rotary_dim, pairing):
    """Views of the first and second channels of every pair."""
    part = x[..., start:start + rotary_dim]
    half = rotary_dim // 2
    return (part[..., :half], part[..., half:]) if pairing == "half" else (part[..., 0::2], part[..., 1::2])


def rotated(x, cos, sin, *, pairing="half", start=0, output_pairing=None, direction=1, dtype=None, scale=1.0):
    """x (..., head_dim); cos and sin broadcast to its pairs. The computing type is theirs."""
    rotary_dim = 2 * cos.shape[-1]
    wide = x.astype(cos.dtype)
    y = wide.copy()
    a, b = pairs_of(wide, start, rotary_dim, pairing)
    ya, yb = pairs_of(y, start, rotary_dim, output_pairing or pairing)
    s = sin if direction > 0 else -sin
    scale = cos.dtype.type(scale)
    new_a, new_b = a * cos - b * s, a * s + b * cos
    ya[...], yb[...] = (new_a, new_b) if scale == 1 else (new_a * scale, new_b * scale)
    return y.astype(x.dtype if dtype is None else dtype)


def random_array(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def same_bytes(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
