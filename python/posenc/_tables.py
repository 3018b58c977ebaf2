"""Encodings that are added: sinusoidal tables and ALiBi; and conversion. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import numpy as np

from . import _core
from ._arrays import dtype_name, empty, give, is_torch, numpy_type, position_array, to_numpy
from ._words import ODD_RULES, SINUSOIDAL_LAYOUTS, SLOPES, number, real, threads_number, whole

MAX_HEADS = 1 << 20
MAX_OFFSET = 1 << 40
MAX_SIZE = (1 << 62) - 1


def output_array(out, shape, dtype):
    """The caller's `out`, checked, or a new array."""
    if out is None:
        return empty(shape, numpy_type(dtype_name(dtype)))
    if is_torch(out):
        from . import _torch
        return _torch.output_array(out, shape, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is of type {type(out).__name__} but must be a NumPy array or a PyTorch tensor")
    if out.shape != tuple(shape):
        raise ValueError(f"out has shape {out.shape} but must have {tuple(shape)}")
    if dtype is not None and dtype_name(out.dtype) != dtype_name(dtype):
        raise TypeError(f"dtype is {dtype!r} but out has {out.dtype}: leave one away")
    return out


def sinusoidal(positions, dim, *, base=10000.0, layout="interleaved", shift=0, scale=1.0, dtype=None, start=0.0,
               odd=None, padding=None, out=None, threads=1):
    """Sinusoidal position tables, in every convention that is in use.

    positions: an integer N for 0 ... N-1, or (n,) real numbers up to 2^40 (diffusion timesteps).
    dim: width d of a row. Frequency k is scale * base^(-k / (d/2 - shift)).
    layout: 'interleaved' s0 c0 s1 c1 ... (the paper), 'sin-cos' s0 s1 ... c0 c1 ..., 'cos-sin'.
    shift: 0, or 1: exponents run to exactly -1 (tensor2tensor, fairseq, Whisper); d is at least 4 then.
    start: added to every position.
    odd: what an odd d does: 'truncate', 'zero' or 'ceil' (docs/methods/sinusoidal.md); None refuses one.
    padding: the position whose row is all 0; None: none.
    dtype: float32 (None), float64, float16, bfloat16; a PyTorch dtype gives a tensor.
    out: an array or tensor for the result. threads: how many share the rows.

    Returns (n, d): correctly rounded, float64 within 1 ulp plus 2^-75. Raises ValueError or TypeError.
    Source: Vaswani et al., Attention Is All You Need, arXiv:1706.03762, section 3.5.
    """
    dim = whole("dim", dim, 1, 1 << 24)
    if hasattr(positions, "__index__") and not isinstance(positions, (np.ndarray, list)) \
            and not is_torch(positions):
        position = np.arange(whole("positions", positions, 0, MAX_OFFSET), dtype=np.float64)
    else:
        position = position_array(positions)
        if position.size and position.dtype == np.int64 and not -MAX_OFFSET <= position.min() <= position.max() \
                <= MAX_OFFSET:
            raise ValueError("positions must be from -2^40 to 2^40")
        position = position.astype(np.float64)
    if position.ndim != 1:
        raise ValueError(f"positions has shape {position.shape} but must have one axis")
    base, scale = real("base", base), real("scale", scale)
    for name, value in (("base", base), ("scale", scale)):
        if value == 0:
            raise ValueError(f"{name} is 0 but must be " + ("from 1e-6 to 1e30" if name == "base" else
                                                            "1e-30 to 1e6 or negative alike"))
    made = output_array(out, (position.size, dim), dtype)
    _core.sinusoidal(position, made, base, number("layout", layout, SINUSOIDAL_LAYOUTS),
                     whole("shift", shift, 0, 1), scale, real("start", start),
                     0 if odd is None else number("odd", odd, ODD_RULES),
                     None if padding is None else real("padding", padding), threads_number(threads))
    return out if out is not None else give(made, dtype, positions)


def alibi_numbers(heads, slopes, max_bias):
    max_bias = real("max_bias", max_bias)
    if not max_bias > 0:
        raise ValueError(f"max_bias is {max_bias} but must be above 0 and at most 1024")
    return whole("heads", heads, 1, MAX_HEADS), number("slopes", slopes, SLOPES), max_bias


def alibi_slopes(heads, *, slopes="paper", max_bias=8.0, first_head=0, head_count=None):
    """The slope of each head: (heads,) float64, correctly rounded.

    heads: heads of the whole model. slopes: 'paper' (Hugging Face, MPT, ggml) or 'plain',
        2^(-max_bias (h+1) / heads); they agree where the head count is a power of two.
    first_head, head_count: those of one tensor-parallel rank; None: all from first_head on.
    Raises ValueError or TypeError that names the argument.
    Source: Press, Smith, Lewis, arXiv:2108.12409.
    """
    heads, slopes, max_bias = alibi_numbers(heads, slopes, max_bias)
    first, count = head_range(heads, first_head, head_count)
    return np.array(_core.alibi_slopes(heads, slopes, max_bias, first, count), dtype=np.float64)


def slope_list(slopes):
    array = to_numpy(slopes, "slopes")
    if array.ndim != 1 or array.dtype.kind not in "fiu" or not array.size:
        raise TypeError(f"slopes is {slopes!r} but must be 'paper', 'plain' or a list of numbers")
    return array.astype(np.float64).tolist()


def head_range(heads, first_head, head_count):
    first = whole("first_head", first_head, 0, heads)
    if head_count is None:
        return first, heads - first
    return first, whole("head_count", head_count, 0, heads - first)


def alibi_bias(heads, queries, keys, *, causal=True, query_offset=None, slopes="paper", max_bias=8.0, dtype=None,
               first_head=0, head_count=None, out=None, add=False, threads=1):
    """The ALiBi bias of attention scores: -slope * distance, [heads][queries][keys].

    heads, slopes, max_bias, first_head, head_count: as in alibi_slopes; slopes may be a list of your own, one for
        each head of the result.
    queries, keys: numbers of them. causal: keys after the query get -infinity; False: -slope * |distance|.
    query_offset: the key position of the first query; None: keys - queries (the last query sees the last key).
    dtype: float32 (None), float64, float16, bfloat16; a PyTorch dtype gives a tensor.
    out: an array or tensor of that shape for the result, keys contiguous. add: add to what stands in `out`.
    threads: how many share the heads.

    Returns the bias, or `out`. Raises ValueError or TypeError. Source: Press, Smith, Lewis, arXiv:2108.12409.
    """
    own_slopes = []
    if not isinstance(slopes, str):
        own_slopes = slope_list(slopes)
        slopes = "paper"
    heads, slopes, max_bias = alibi_numbers(heads, slopes, max_bias)
    first, count = head_range(heads, first_head, head_count)
    if own_slopes and len(own_slopes) != count:
        raise ValueError(f"slopes has {len(own_slopes)} numbers but must have one for each of {count} heads")
    shape = count, whole("queries", queries, 0, MAX_SIZE), whole("keys", keys, 0, MAX_SIZE)
    if add and out is None:
        raise ValueError("add is given but out is missing: there is nothing to add to")
    if query_offset is not None:
        query_offset = whole("query_offset", query_offset, -MAX_OFFSET, MAX_OFFSET)
    made = output_array(out, shape, dtype)
    if count:
        _core.alibi_bias(heads, made, slopes, max_bias, 0 if causal else 1, first, query_offset, bool(add),
                         own_slopes, threads_number(threads))
    return out if out is not None else give(made, dtype)


def convert(x, dtype, *, out=None):
    """x in another dtype, rounded once to nearest, ties to even (float64 to 16 bits does not pass float32).

    x: array or tensor on the CPU, of any shape: float64, float32, float16 or bfloat16; without a gradient.
    dtype: one of these four, as NumPy, PyTorch or a text names it. out: where the result goes, of x's shape.
    Returns a new one, contiguous, or `out`. Raises ValueError or TypeError that names the argument.
    Source: IEEE 754-2019, roundTiesToEven; denormals are kept, a NaN stays one.
    """
    if is_torch(x):
        from . import _torch
        source, shape = _torch.plain_array(x.contiguous()), tuple(x.shape)
    else:
        source = np.ascontiguousarray(x)
        shape = source.shape
    made = output_array(out, shape, dtype)
    _core.convert(source, made)
    return out if out is not None else give(made, dtype, x)
