"""NumPy, by the usual formulas. SPDX-License-Identifier: MIT"""
import numpy as np

from cases import PAIRS, Contender, Missing


def contenders(case):
    if case.dtype == "bf16":
        raise Missing("NumPy has no bfloat16")
    cos, sin = (t.astype(case.x.dtype)[:, None, :] for t in (case.cos, case.sin))
    full_cos, full_sin = (case.full(t).astype(case.x.dtype)[:, None, :] for t in (case.cos, case.sin))
    out = [None]

    def half():
        x = case.x
        out[0] = x * full_cos + np.concatenate((-x[..., PAIRS:], x[..., :PAIRS]), -1) * full_sin

    def interleaved():
        a, b = case.x[..., 0::2], case.x[..., 1::2]
        out[0] = np.stack((a * cos - b * sin, a * sin + b * cos), -1).reshape(case.x.shape)

    return [Contender("NumPy", half if case.pairing == "half" else interleaved,
                      lambda: out[0].astype(np.float64))]
