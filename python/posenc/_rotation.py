"""Rows of cos and sin, and rotations made of them. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import numpy as np

from . import _core
from ._arrays import dtype_name, empty, give, is_torch, numpy_type, position_array, to_numpy, torch_or_none
from ._spec import frequencies_of, mode_number
from ._words import LAYOUTS, PAIRINGS, number, pairing_number, real, threads_number, whole

ONE_ARRAY = (LAYOUTS.index("cos-sin"), LAYOUTS.index("pairs"))


def shaped_positions(frequencies, positions):
    """positions as a contiguous array, the shape of the tokens, and (axes, tokens) or (tokens,) of it."""
    array = position_array(positions)
    axes = frequencies.axis_count
    tokens = array.shape
    if axes > 1:
        if array.ndim < 2 or array.shape[0] != axes:
            raise ValueError(f"positions has shape {array.shape} but must be ({axes}, tokens) or "
                             f"({axes}, batch, tokens): the frequencies follow {axes} axes")
        tokens = array.shape[1:]
    if len(tokens) > 2:
        raise ValueError(f"positions has shape {array.shape} but must be (tokens,) or (batch, tokens)"
                         + (f" on each of {axes} axes" if axes > 1 else ""))
    return array.reshape((axes, -1) if axes > 1 else -1), tokens


def compute_rows(frequencies, positions, tokens, *, mode, dtype, layout, attention, threads, out=None):
    """cos and sin (None in layouts of one array), each (*tokens, width)."""
    width = _core.row_width(layout, frequencies.pairs)
    count = 1 if layout in ONE_ARRAY else 2
    if out is None:
        out = [empty((*tokens, width), dtype) for _ in range(count)]
    flat = []
    for array in out:
        if array.shape != (*tokens, width):
            raise ValueError(f"out has shape {array.shape} but must be {(*tokens, width)}")
        rows = array.reshape(-1, width) if array.size else np.empty((0, width), array.dtype)
        if array.size and not np.shares_memory(rows, array):
            raise ValueError("out must have rows at one distance in memory")
        flat.append(rows)
    if flat[0].size:
        _core.angles(frequencies._core, positions, flat[0], flat[1] if count == 2 else None, layout, mode,
                     attention, threads)
    return (*out, None)[:2]


def angles(spec, positions, *, seq_len=None, mode="exact", dtype=None, layout="half", attention=True,
           out=None, threads=1):
    """Rows of cos and sin of a list of positions.

    spec: RopeSpec or Frequencies.
    positions: (tokens,) or (batch, tokens); integers or reals of magnitude up to 2^40. With several axes
        (axes, tokens) or (axes, batch, tokens).
    seq_len: context length, needed by scalings dynamic and longrope.
    mode: 'exact': cos and sin of the real-number angle, correctly rounded (float64: within 1 ulp plus
        2^-75). 'float32': of the angle as frameworks form it, in float32; float32 and narrower only.
    dtype: float32 (None), float64, float16 or bfloat16; a PyTorch dtype gives tensors.
    layout: for P pairs: 'half' cos (…, P), sin (…, P). 'full-half' 2P each, c0..cP-1 twice (Hugging Face).
        'full-interleaved' c0 c0 c1 c1 ... (GPT-J). One array of 2P: 'cos-sin' (vLLM), 'pairs' c0 s0 c1 s1 ...
        (TensorRT-LLM).
    attention: False leaves the attention factor out.
    out: a NumPy array for the result, or a pair of them. threads: how many share the rows; the bytes are the same.

    Returns (cos, sin), or one array for 'cos-sin' and 'pairs'. Raises ValueError or TypeError naming the
    argument.
    Source: Su et al., RoFormer, arXiv:2104.09864, section 3.2.2; docs/accuracy.md on the rounding.
    """
    frequencies = frequencies_of(spec, seq_len)
    layout = number("layout", layout, LAYOUTS)
    position, tokens = shaped_positions(frequencies, positions)
    one = layout in ONE_ARRAY
    given = out
    if out is not None:
        out = (out,) if one else tuple(out)
        if len(out) != (1 if one else 2) or not all(isinstance(array, np.ndarray) for array in out):
            raise TypeError("out must be " + ("a NumPy array" if one else "a pair of NumPy arrays, for cos and sin"))
    kind = numpy_type(dtype_name(dtype)) if out is None else None
    cos, sin = compute_rows(frequencies, position, tokens, mode=mode_number(mode), dtype=kind, layout=layout,
                            attention=bool(attention), threads=threads_number(threads), out=out)
    if given is not None:
        return given
    if one:
        return give(cos, dtype, positions)
    return give(cos, dtype, positions), give(sin, dtype, positions)


def read_only(array):
    view = array.view()
    view.flags.writeable = False
    return view


class Rotation:
    """The cos and sin rows that rotate turns tensors by; immutable, shared by layers, heads and threads.

    posenc.rotation makes one of a spec and positions. Rotation(cos, sin) makes one of your own tables:

    cos, sin: (tokens, width) or (batch, tokens, width), NumPy or PyTorch; float32 or float64 tables are used
        as they lie where that is possible, narrower ones are widened.
    layout: what `width` is for P pairs, as in posenc.angles; in 'cos-sin' and 'pairs' sin is None.
        Full-width tables whose two numbers of a pair differ are accepted: a' = a*c - b*s, b' = b*c2 + a*s2.
    pairing: 'half' or 'interleaved'.
    rotary_start: the first channel that rotates.
    attention_factor: what the rows contain, for inverse=True.

    Raises ValueError or TypeError naming the argument. rotation[a:b] has some of the rows.
    Source: Su et al., RoFormer, arXiv:2104.09864, section 3.4.2.
    """
    __slots__ = ("pairing", "rotary_start", "attention_factor", "layout", "head_dim", "mode", "_cos", "_sin",
                 "_differ", "_both", "_single", "_double", "_tensors", "_source", "_tables", "_sizes")

    def __init__(self, cos, sin=None, *, pairing="half", layout="half", rotary_start=0, attention_factor=1.0):
        layout = number("layout", layout, LAYOUTS)
        one = layout in ONE_ARRAY
        if one != (sin is None):
            raise TypeError(f"sin is {'given' if one else 'missing'}, but the layout {LAYOUTS[layout]} keeps cos "
                            f"and sin in {'one array' if one else 'two'}")
        cos = table_of(cos, "cos")
        sin = None if one else table_of(sin, "sin")
        if not one and cos.dtype != sin.dtype:
            raise TypeError(f"sin has dtype {sin.dtype} but cos has {cos.dtype}: they must have the same")
        if not one and cos.shape != sin.shape:
            raise ValueError(f"sin has shape {sin.shape} but cos has {cos.shape}: they must have the same")
        if not one and cos.strides != sin.strides:
            cos, sin = np.ascontiguousarray(cos), np.ascontiguousarray(sin)
        factor = real("attention_factor", attention_factor)
        if not 1e-6 <= factor <= 1e6:
            raise ValueError(f"attention_factor is {factor} but must be from 1e-6 to 1e6")
        self._fill(cos, sin, layout, pairing_number("pairing", pairing),
                   whole("rotary_start", rotary_start, 0, 1 << 24), factor, 0, None, None)

    def _fill(self, cos, sin, layout, pairing, rotary_start, factor, head_dim, mode, source):
        self._cos, self._sin = cos, sin
        self.layout, self.pairing, self.rotary_start = LAYOUTS[layout], PAIRINGS[pairing], rotary_start
        self.attention_factor, self.head_dim, self.mode = factor, head_dim, mode
        self._source, self._tables = source, {}
        self._differ = halves_differ(cos, sin, layout)
        self._single, self._double, self._tensors = None, None, (None, None)
        self._both = self._rows(*self._float32()), None
        self._sizes = cos.shape[0] if cos.ndim == 3 else 1, cos.shape[-2], self._both[0].rotary_dim
        if cos.dtype == np.float64:
            self._add_float64_rows()
        if torch_or_none() is not None:
            self._add_tensors()

    def _rows(self, cos, sin):
        return _core.rows(cos, sin, LAYOUTS.index(self.layout), self._differ, PAIRINGS.index(self.pairing),
                          self.rotary_start, self.attention_factor, self.head_dim)

    def _add_float64_rows(self):
        """The first float64 tensor asks for them; threads that do so at once make the same ones."""
        if self._both[1] is None:
            self._both = self._both[0], self._rows(*self._float64())

    def _add_tensors(self):
        """Tensors on the memory of the rows that there are, for float32 and float64: a compiler takes them as inputs
        in less time than arrays."""
        from . import _torch
        self._tensors = tuple(None if tables is None else _torch.table_tensors(*tables)
                              for tables in (self._float32(), self._double))

    def _float32(self):
        if self._single is None:
            self._single = tuple(None if table is None else table.astype(np.float32, copy=False)
                                 for table in (self._cos, self._sin))
        return self._single

    def _float64(self):
        """Exact rows are computed, others widened."""
        if self._double is None:
            if self._source is not None and self.mode == "exact" and self._cos.dtype != np.float64:
                frequencies, positions, tokens, attention = self._source
                self._double = compute_rows(frequencies, positions, tokens, mode=0, dtype=np.float64, layout=0,
                                            attention=attention, threads=1)
            else:
                self._double = tuple(None if table is None else table.astype(np.float64, copy=False)
                                     for table in (self._cos, self._sin))
        return self._double

    @property
    def cos(self):
        """(tokens, width) or (batch, tokens, width), read-only."""
        return read_only(self._cos)

    @property
    def sin(self):
        """As cos; None in the layouts that keep it there."""
        return None if self._sin is None else read_only(self._sin)

    @property
    def tokens(self):
        """Rows of a sequence's table."""
        return self._sizes[1]

    @property
    def rotary_dim(self):
        """Channels that rotate."""
        return self._sizes[2]

    def __len__(self):
        return self.tokens

    def __getitem__(self, rows):
        if not isinstance(rows, slice):
            raise TypeError(f"a Rotation is cut by a range of rows, such as rotation[3:5], not by {rows!r}")
        made = object.__new__(Rotation)
        source = self._source
        if source is not None:
            frequencies, positions, tokens, attention = source
            lead = positions.shape[:-1]
            cut = np.ascontiguousarray(positions.reshape(*lead, *tokens)[..., rows])
            tokens = cut.shape[len(lead):]
            source = frequencies, cut.reshape(*lead, -1), tokens, attention
        made._fill(self._cos[..., rows, :], None if self._sin is None else self._sin[..., rows, :],
                   LAYOUTS.index(self.layout), PAIRINGS.index(self.pairing), self.rotary_start,
                   self.attention_factor, self.head_dim, self.mode, source)
        return made

    def __repr__(self):
        how = "own tables" if self.mode is None else f"mode {self.mode}"
        return (f"<posenc.Rotation of {self._cos.shape[:-1]} tokens, {self.rotary_dim} channels from "
                f"{self.rotary_start}, {self.pairing}, {how}>")


def table_of(values, name):
    """A caller's table as NumPy array of float32 or float64."""
    if is_torch(values):
        if values.requires_grad:
            raise ValueError(f"{name} requires a gradient, which rotations do not give to their tables; detach it")
        if values.dtype.itemsize == 2:
            values = values.float()
        elif values.is_floating_point():
            return values.detach().cpu().numpy()
    array = to_numpy(values, name)
    if array.dtype.name in ("float16", "bfloat16"):
        array = array.astype(np.float32)
    if array.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} has dtype {array.dtype} but must have float32, float64, float16 or bfloat16")
    if array.ndim not in (2, 3):
        raise ValueError(f"{name} has shape {array.shape} but must be (tokens, width) or (batch, tokens, width)")
    repeats = any(size > 1 and stride == 0 for size, stride in zip(array.shape[-2:], array.strides[-2:]))
    return np.ascontiguousarray(array) if repeats else array


def halves_differ(cos, sin, layout):
    """Whether a full-width table has two different numbers for some pair."""
    if LAYOUTS[layout] == "full-half":
        half = cos.shape[-1] // 2
        return any(not np.array_equal(t[..., :half], t[..., half:2 * half], equal_nan=True) for t in (cos, sin))
    if LAYOUTS[layout] == "full-interleaved":
        end = cos.shape[-1] // 2 * 2
        return any(not np.array_equal(t[..., 0:end:2], t[..., 1:end:2], equal_nan=True) for t in (cos, sin))
    return False


def rotation(spec, positions, *, seq_len=None, mode="exact", dtype=None, attention=True, threads=1):
    """The Rotation of a list of positions: computed once a forward pass, used by every layer and head.

    spec: RopeSpec or Frequencies.
    positions: (tokens,), or (batch, tokens) where sequences have their own; with several axes (axes, tokens)
        or (axes, batch, tokens). Integers or reals of magnitude up to 2^40. range(n) for the first n.
    seq_len: context length, needed by scalings dynamic and longrope; never taken from the positions.
    mode: 'exact' or 'float32', as in posenc.angles.
    dtype: of .cos and .sin: float32 (None) or float64. Float64 tensors are turned by float64 rows in any case.
    attention: False leaves the attention factor out, to turn again what contains it: shifts of cached keys.
    threads: how many share the rows; the bytes are the same.

    Returns a Rotation; .cos and .sin are (tokens, pairs) or (batch, tokens, pairs). Raises ValueError or
    TypeError naming the argument.
    Source: Su et al., RoFormer, arXiv:2104.09864, section 3.2.2.
    """
    frequencies = frequencies_of(spec, seq_len)
    kind = dtype_name(dtype)
    if kind not in ("f32", "f64"):
        raise TypeError(f"dtype is {dtype!r} but must be float32 or float64: narrower rows would round twice")
    number_of_mode = mode_number(mode)
    if number_of_mode == 1 and kind == "f64":
        raise ValueError("dtype is float64 but mode 'float32' has float32 rows")
    flat, tokens = shaped_positions(frequencies, positions)
    if flat.base is not None or flat is positions:
        flat = flat.copy()  # the Rotation keeps them for float64 rows
    cos, sin = compute_rows(frequencies, flat, tokens, mode=number_of_mode, dtype=numpy_type(kind), layout=0,
                            attention=bool(attention), threads=threads_number(threads))
    made = object.__new__(Rotation)
    factor = frequencies._core.attention_factor(number_of_mode) if attention else 1.0
    made._fill(cos, sin, 0, PAIRINGS.index(frequencies.pairing), frequencies.rotary_start, factor,
               frequencies.head_dim, "float32" if number_of_mode else "exact",
               (frequencies, flat, tokens, bool(attention)))
    return made
