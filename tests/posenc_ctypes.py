"""The C library through ctypes, as thin as it gets: for tests only. SPDX-License-Identifier: MIT"""
import ctypes as C

import numpy as np

SCALINGS = ["default", "linear", "ntk", "dynamic", "yarn", "longrope", "llama3", "proportional", "custom"]
DTYPES = {"f32": 0, "f64": 1, "f16": 2, "bf16": 3}
MAX_AXES = 8


class Scaling(C.Structure):
    _fields_ = [("size", C.c_size_t), ("type", C.c_int), ("factor", C.c_double), ("shrinks", C.c_int),
                ("original_max_positions", C.c_uint64), ("dynamic", C.c_int), ("alpha", C.c_double),
                ("beta_fast", C.c_double), ("beta_slow", C.c_double), ("no_truncate", C.c_int),
                ("attention_factor", C.c_double), ("attention_coefficient", C.c_double),
                ("mscale", C.c_double), ("mscale_all_dim", C.c_double),
                ("low_freq_factor", C.c_double), ("high_freq_factor", C.c_double),
                ("short_factors", C.c_void_p), ("long_factors", C.c_void_p), ("factor_count", C.c_size_t),
                ("partial", C.c_double), ("inv_freq", C.c_void_p), ("inv_freq_dtype", C.c_int),
                ("inv_freq_count", C.c_size_t), ("inv_freq_is_period", C.c_int)]


class Axes(C.Structure):
    _fields_ = [("size", C.c_size_t), ("count", C.c_size_t), ("order", C.c_int), ("exponents", C.c_int),
                ("sections", C.c_size_t * MAX_AXES), ("pair_axis", C.c_void_p)]


class Spec(C.Structure):
    _fields_ = [("size", C.c_size_t), ("head_dim", C.c_size_t), ("rotary_dim", C.c_size_t),
                ("rotary_start", C.c_size_t), ("base", C.c_double), ("pairing", C.c_int),
                ("max_positions", C.c_uint64), ("scaling", C.POINTER(Scaling)), ("axes", C.POINTER(Axes))]


class Rows(C.Structure):
    _fields_ = [("size", C.c_size_t), ("cos", C.c_void_p), ("sin", C.c_void_p), ("dtype", C.c_int),
                ("layout", C.c_int), ("row_stride", C.c_ssize_t), ("mode", C.c_int),
                ("axis_stride", C.c_ssize_t), ("without_attention", C.c_int)]


class Refused(Exception):
    """The library's sentence."""


class Library:
    def __init__(self, path):
        self.c = C.CDLL(path)
        for name in ("inv_freq", "attention_factor", "softmax_factor"):
            getattr(self.c, "posenc_frequencies_" + name).restype = C.c_double

    def check(self, status, error):
        if status:
            text = C.create_string_buffer(512)
            self.c.posenc_error_text(error, text, 512)
            raise Refused(text.value.decode())

    def frequencies(self, head_dim, *, rotary_dim=0, base=0.0, max_positions=0, seq_len=0,
                    scaling=None, axes=None):
        """scaling and axes are dicts of struct members; lists become float64 (or byte) arrays."""
        keep = []

        def array(values, dtype=np.float64):
            keep.append(np.ascontiguousarray(values, dtype=dtype))
            return keep[-1].ctypes.data

        spec = Spec(size=C.sizeof(Spec), head_dim=head_dim, rotary_dim=rotary_dim, base=base,
                    max_positions=max_positions)
        if scaling:
            members = dict(scaling)
            members["type"] = SCALINGS.index(members["type"])
            for name in ("short_factors", "long_factors"):
                if name in members:
                    members["factor_count"] = len(members[name])
                    members[name] = array(members[name])
            if "inv_freq" in members:
                single = members.get("inv_freq_dtype", 0) == 0
                members["inv_freq_count"] = len(members["inv_freq"])
                members["inv_freq"] = array(members["inv_freq"], np.float32 if single else np.float64)
            keep.append(Scaling(size=C.sizeof(Scaling), **members))
            spec.scaling = C.pointer(keep[-1])
        if axes:
            members = dict(axes)
            sections = members.pop("sections", [])
            if "pair_axis" in members:
                members["pair_axis"] = array(members["pair_axis"], np.uint8)
            keep.append(Axes(size=C.sizeof(Axes), **members))
            for i, section in enumerate(sections):
                keep[-1].sections[i] = section
            spec.axes = C.pointer(keep[-1])
        made, error = C.c_void_p(), (C.c_char * 512)()
        self.check(self.c.posenc_frequencies_create(C.byref(spec), C.c_uint64(seq_len), C.byref(made),
                                                    None, error), error)
        return Frequencies(self, made)

    def change(self, old, new):
        made, error = C.c_void_p(), (C.c_char * 512)()
        self.check(self.c.posenc_frequencies_change(old.made, new.made, C.byref(made), error), error)
        return Frequencies(self, made)


class Frequencies:
    def __init__(self, library, made):
        self.library, self.made = library, made
        library.c.posenc_frequencies_pairs.restype = C.c_size_t
        library.c.posenc_frequencies_axis.restype = C.c_size_t
        self.pairs = library.c.posenc_frequencies_pairs(made)

    def __del__(self):
        self.library.c.posenc_frequencies_destroy(self.made)

    def inv_freq(self, mode=0):
        f = self.library.c.posenc_frequencies_inv_freq
        return [f(self.made, C.c_size_t(pair), mode) for pair in range(self.pairs)]

    def axes(self):
        f = self.library.c.posenc_frequencies_axis
        return [f(self.made, C.c_size_t(pair)) for pair in range(self.pairs)]

    def attention_factor(self, mode=0):
        return self.library.c.posenc_frequencies_attention_factor(self.made, mode)

    def softmax_factor(self):
        return self.library.c.posenc_frequencies_softmax_factor(self.made)

    def angles(self, positions, dtype="f32", mode=0, without_attention=0):
        """positions: (count,) or (axes, count), int64, int32 or float64. Returns cos, sin (count, pairs);
        bfloat16 as float32 values."""
        positions = np.ascontiguousarray(positions)
        call = {np.dtype(np.int64): self.library.c.posenc_angles,
                np.dtype(np.int32): self.library.c.posenc_angles_int32,
                np.dtype(np.float64): self.library.c.posenc_angles_real}[positions.dtype]
        count = positions.shape[-1]
        kind = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.uint16}[dtype]
        cos, sin = np.empty((count, self.pairs), kind), np.empty((count, self.pairs), kind)
        rows = Rows(size=C.sizeof(Rows), cos=cos.ctypes.data, sin=sin.ctypes.data, dtype=DTYPES[dtype],
                    mode=mode, without_attention=without_attention)
        error = (C.c_char * 512)()
        self.library.check(call(self.made, C.c_void_p(positions.ctypes.data), C.c_size_t(count),
                                C.byref(rows), error), error)
        if dtype == "bf16":
            cos, sin = ((x.astype(np.uint32) << 16).view(np.float32) for x in (cos, sin))
        return cos, sin
