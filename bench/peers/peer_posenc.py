"""posenc through ctypes, and memcpy through the same door. SPDX-License-Identifier: MIT"""
import ctypes as C
import sys
from pathlib import Path

import numpy as np

from cases import BASE, FIRST_POSITION, HEAD_DIM, HEADS, Contender, from_bits

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from posenc_ctypes import DTYPES, Library  # noqa: E402


class Tensor(C.Structure):
    _fields_ = [("size", C.c_size_t), ("dtype", C.c_int), ("shape", C.c_size_t * 4),
                ("strides", C.c_ssize_t * 4)]


class Rotation(C.Structure):
    _fields_ = [("size", C.c_size_t), ("cos", C.c_void_p), ("sin", C.c_void_p), ("dtype", C.c_int),
                ("batch", C.c_size_t), ("tokens", C.c_size_t), ("batch_stride", C.c_ssize_t),
                ("row_stride", C.c_ssize_t), ("pair_stride", C.c_ssize_t), ("rotary_dim", C.c_size_t),
                ("rotary_start", C.c_size_t), ("pairing", C.c_int), ("attention_factor", C.c_double),
                ("second_stride", C.c_ssize_t), ("row_ids", C.c_void_p), ("row_ids_stride", C.c_ssize_t),
                ("row_starts", C.c_void_p), ("cu_seqlens", C.c_void_p), ("sequences", C.c_size_t)]


class Posenc:
    def __init__(self, path):
        self.library = Library(path)
        self.library.c.posenc_version.restype = self.library.c.posenc_cpu.restype = C.c_char_p
        self.version = self.library.c.posenc_version().decode()
        self.cpu = self.library.c.posenc_cpu().decode()

    def contenders(self, case):
        positions = FIRST_POSITION + np.arange(case.tokens)
        cos, sin = self.library.frequencies(HEAD_DIM, base=BASE).angles(positions)
        rotation = Rotation(size=C.sizeof(Rotation), cos=cos.ctypes.data, sin=sin.ctypes.data,
                            tokens=case.tokens, rotary_dim=HEAD_DIM, pairing=case.pairing == "interleaved")
        tensor = Tensor(C.sizeof(Tensor), DTYPES[case.dtype], (1, case.tokens, HEADS, HEAD_DIM),
                        (case.x.size, HEADS * HEAD_DIM, HEAD_DIM, 1))
        rotate, out, own = self.library.c.posenc_rotate, np.ones_like(case.x), case.x.copy()

        def caller(source, target):
            rows, shape = C.byref(rotation), C.byref(tensor)
            x, y = C.c_void_p(source.ctypes.data), C.c_void_p(target.ctypes.data)

            def call():
                if rotate(rows, shape, x, y, None, None):
                    raise RuntimeError("posenc_rotate failed")
                return rotation, tensor, cos, sin, source, target  # keeps them alive
            return call

        in_place = caller(own, own)

        def result_in_place():  # of one rotation, not of all that were timed
            own[...] = case.x
            in_place()
            return from_bits(own, case.dtype)

        size = case.x.nbytes
        to, source = C.c_void_p(out.ctypes.data), C.c_void_p(case.x.ctypes.data)
        return [Contender("posenc", caller(case.x, out), lambda: from_bits(out, case.dtype)),
                Contender("posenc, in place", in_place, result_in_place),
                Contender("memcpy", lambda: C.memmove(to, source, size), None)]
