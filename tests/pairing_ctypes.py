"""posenc_pair_powers through ctypes: for tests only. SPDX-License-Identifier: MIT"""
import ctypes as C

import numpy as np

VERDICTS = (None, "half", "interleaved")
SIDES = ("both", "q", "k")


class Evidence(C.Structure):
    _fields_ = [("verdict", C.c_int), ("statistic", C.c_double), ("ratio", C.c_double * 2),
                ("deviation", C.c_double * 2), ("exact_half", C.c_double), ("exact_interleaved", C.c_double)]


class Judgement(C.Structure):
    _fields_ = [("both", Evidence), ("q", Evidence), ("k", Evidence), ("q_k_differ", C.c_int),
                ("layers", C.c_size_t), ("heads", C.c_size_t), ("exact_signs", C.c_size_t)]

    def verdicts(self):
        return tuple(VERDICTS[getattr(self, side).verdict] for side in SIDES)


class Pairings:
    """Judges layers of row powers: [(q, k)], q of shape (heads, rotary_dim), k of (kv_heads, rotary_dim)."""

    def __init__(self, path):
        self.c = C.CDLL(path)
        self.c.posenc_pair_powers_free.restype = None

    def judge(self, layers, tied=False, which=None):
        """The judgement of all layers, or of layer number `which`."""
        powers = C.c_void_p()
        assert self.c.posenc_pair_powers_create(C.c_size_t(layers[0][0].shape[1]), C.byref(powers), None) == 0
        try:
            for q, k in layers:
                q, k = (np.ascontiguousarray(p, "f8") for p in (q, k))
                assert self.c.posenc_pair_powers_add(powers, C.c_size_t(len(q)), C.c_size_t(len(k)),
                                                     q.ctypes.data_as(C.c_void_p), k.ctypes.data_as(C.c_void_p),
                                                     int(tied), None) == 0
            judgement = Judgement()
            layer = C.c_size_t(-1) if which is None else C.c_size_t(which)
            assert self.c.posenc_pair_powers_judge(powers, layer, C.byref(judgement), None) == 0
            return judgement
        finally:
            self.c.posenc_pair_powers_free(powers)
