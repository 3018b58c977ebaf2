"""Rotating queries and keys. SPDX-License-Identifier: MIT"""
from __future__ import annotations

from functools import lru_cache

import numpy as np

from . import _core
from ._arrays import LARGE, dtype_name, empty, is_torch, numpy_type, row_lists
from ._rotation import Rotation, rotation as make_rotation
from ._spec import RopeSpec
from ._words import STORES, number, pairing_number, threads_number

AXES = ("batch", "tokens", "heads", "head_dim")
DIRECTIONS = FORWARD, INVERSE, BACKWARD = range(3)
NEEDS_COPY, NEEDS_FLOAT64_ROWS = _core.NEEDS_COPY, _core.NEEDS_FLOAT64_ROWS
ndarray, empty_like = np.ndarray, np.empty_like
torch_rotate_one = None  # once a tensor has come in


def rotate(x, rotation, *, pairing=None, axes=None, inverse=False, backward=False, output_pairing=None,
           dtype=None, out=None, row_ids=None, row_starts=None, cu_seqlens=None, threads=1, stores="auto"):
    """Rotates queries or keys by the rows of their tokens (RoPE). Differentiable for PyTorch tensors.

    x: NumPy array (bfloat16 through ml_dtypes), PyTorch tensor, or what speaks DLPack; float32, float64,
        float16 or bfloat16, any strides. A tuple of up to 8 of them (queries and keys, whose numbers of heads
        differ) is rotated in one call and gives a tuple.
    rotation: posenc.Rotation; its number of rows is that of x's tokens unless rows are chosen below.
    pairing: 'half' or 'interleaved'; None: the rotation's.
    axes: what the axes of x are, in order, of batch, tokens, heads and head_dim: 'batch,tokens,heads,head_dim'
        or a sequence of words. None: the last two are tokens and head_dim: (tokens, head_dim), (heads, tokens, head_dim),
        (batch, heads, tokens, head_dim); of three axes the first is the batch if sequences have rows of their own.
    inverse: undo a rotation. backward: the transpose, the gradient with respect to x; it is the inverse
        where the rows contain no attention factor.
    output_pairing: write the pairs 'half' or 'interleaved' whatever x has; None: as in x.
    dtype: of the result; None: that of x (or of `out`). Computed is in float64 for float64 x, else in float32,
        and rounded once.
    out: where the result goes (a tuple for a tuple); `out=x` rotates in place. Other overlaps are refused.
    row_ids: (tokens,) or (batch, tokens) integers: which row of the rotation turns each token.
    row_starts: (batch,) integers: the row of each sequence's first token.
    cu_seqlens: (sequences + 1,) integers from 0 to the tokens: where ragged sequences begin in the one axis of
        tokens; row_starts then has one number for each.
    threads: how many share the work, by ranges of tokens. The bytes are the same.
    stores: 'auto', 'cached' or 'streaming': whether stores pass the caches by.

    Returns a new array or tensor, or `out`. Channels that do not rotate are copied. For NumPy and PyTorch the
    result is of the same kind; for others it is a NumPy array.
    Raises ValueError or TypeError that names the argument, what came and what is allowed; nothing is
    written then. The GIL is released where there is much to do.
    Source: Su et al., RoFormer, arXiv:2104.09864, section 3.4.2.
    """
    letters = "" if axes is None else type(axes) is str and known_axes(axes) or axis_letters(axes)
    direction = 0 if not (inverse or backward) else direction_number(inverse, backward)
    output = 0 if output_pairing is None else pairing_number("output_pairing", output_pairing) + 1
    pairs = -1 if pairing is None else pairing_number("pairing", pairing)
    if threads != 1:
        threads = threads_number(threads)
    passing = 0 if stores == "auto" else number("stores", stores, STORES)
    lists = ()
    if not (row_ids is row_starts is cu_seqlens is None):
        lists = row_ids, row_starts, cu_seqlens
    if dtype is None and type(rotation) is Rotation:  # the short ways; what they do not do is done by rotate_others
        if type(x) is ndarray:
            made = out if out is not None else empty_like(x) if x.nbytes < LARGE else None
            if type(made) is ndarray and not _core.rotate(
                    rotation._both, (x,), (made,), letters, direction, output, pairs, lists and row_lists(*lists),
                    threads, passing):
                return made
        elif torch_rotate_one is not None and not lists and type(x) is not tuple:
            made = torch_rotate_one(x, out, rotation._both, letters, direction, output, pairs, threads, passing)
            if made is not None:
                return made
        elif type(x) is tuple and out is None and are_small_arrays(x):
            made = tuple([empty_like(array) for array in x])
            if not _core.rotate(rotation._both, x, made, letters, direction, output, pairs,
                                lists and row_lists(*lists), threads, passing):
                return made
    return rotate_others(x, rotation, dtype, out, (letters, direction, output, pairs), lists or (None,) * 3,
                         (threads, passing))


def are_small_arrays(xs):
    for x in xs:
        if type(x) is not ndarray or x.nbytes >= LARGE:
            return False
    return 1 <= len(xs) <= 8


def rotate_others(x, rotation, dtype, out, options, lists, rest):
    """All but the shortest way: several arrays, PyTorch, DLPack, copies where axes do not merge."""
    several = isinstance(x, (tuple, list))
    xs = tuple(x) if several else (x,)
    if several and out is not None and (not isinstance(out, (tuple, list)) or len(out) != len(xs)):
        raise TypeError(f"out must be a tuple of {len(xs)} arrays, one for each of x")
    outs = (None,) * len(xs) if out is None else tuple(out) if several else (out,)
    if not 1 <= len(xs) <= 8:
        raise ValueError(f"x has {len(xs)} arrays but must have 1 to 8")
    tensors = sum(map(is_torch, xs))
    if tensors and tensors < len(xs):
        raise TypeError("x has PyTorch tensors and others but must have one kind")
    if not isinstance(rotation, Rotation):
        raise TypeError(f"rotation is of type {type(rotation).__name__} but must be posenc.Rotation")
    if tensors:
        global torch_rotate_one
        from . import _torch
        torch_rotate_one = _torch.rotate_one
        made = _torch.rotate(xs, outs, rotation, dtype, options, lists, rest)
    else:
        made = rotate_arrays(xs, outs, rotation, dtype, options, row_lists(*lists), rest)
    return made if several else made[0]


def rotate_arrays(xs, outs, rotation, dtype, options, lists, rest):
    check_arguments(xs, rotation)
    given = [out for out in outs if out is not None]
    if dtype is not None:
        check_out_dtype(given, dtype)
    outs = tuple(new_output(x, dtype) if out is None else out for x, out in zip(xs, outs))
    result = NEEDS_FLOAT64_ROWS
    while result:
        result = _core.rotate(rotation._both, xs, outs, *options, lists, *rest)
        if result == NEEDS_FLOAT64_ROWS:
            rotation._add_float64_rows()
        elif result == NEEDS_COPY:
            if given:
                raise ValueError("out or x has batch or heads axes that are not one axis in memory; leave out= away "
                                 "or give contiguous arrays")
            copies = tuple(np.array(x, order="C", copy=True, subok=False) for x in xs)
            if all(a is b for a, b in zip(copies, xs)):
                raise ValueError("axes names one word in places that are not beside each other")
            xs, outs = copies, tuple(new_output(x, dtype) for x in copies)
            result = _core.rotate(rotation._both, xs, outs, *options, lists, *rest)
            if result == NEEDS_COPY:
                raise ValueError("axes names one word in places that are not beside each other")
    return outs


def new_output(x, dtype):
    """A new array of x's shape; for what is no NumPy array a C-order one."""
    if isinstance(x, ndarray):
        kind = x.dtype if dtype is None else numpy_type(dtype_name(dtype))
        return empty(x.shape, kind) if x.size * kind.itemsize >= LARGE else empty_like(x, dtype=kind)
    name, shape = _core.describe(x, "x")
    return empty(shape, numpy_type(name if dtype is None else dtype_name(dtype)))


def check_arguments(xs, rotation):
    if not isinstance(rotation, Rotation):
        raise TypeError(f"rotation is of type {type(rotation).__name__} but must be posenc.Rotation")
    for x in xs:
        if x is None:
            raise TypeError("x is None but must be an array")
        if isinstance(x, np.ma.MaskedArray):
            raise TypeError("x is a masked array, whose mask would be lost; fill it")


def check_out_dtype(outs, dtype):
    wanted = dtype_name(dtype)
    for out in outs:
        found = dtype_name(out.dtype)
        if found != wanted:
            raise TypeError(f"dtype is {dtype!r} but out has {out.dtype}: leave one away")


def direction_number(inverse, backward):
    if inverse and backward:
        raise ValueError("inverse and backward are both given but only one direction is possible")
    return INVERSE if inverse else BACKWARD if backward else FORWARD


@lru_cache(maxsize=256)
def letters_of(words):
    for word in words:
        if word not in AXES:
            raise ValueError(f"axes has {word!r} but must have words of {', '.join(AXES)}")
    if words.count("tokens") > 1 or words.count("head_dim") != 1:
        raise ValueError(f"axes is {','.join(words)} but must name head_dim once and tokens at most once")
    return "".join("d" if word == "head_dim" else word[0] for word in words)


texts_of_axes = {}  # what axes= was -> its letters; only texts, which do not change
known_axes = texts_of_axes.get


def axis_letters(axes):
    """One letter for each axis."""
    text = axes
    if isinstance(axes, str):
        axes = axes.replace(" ", "").split(",")
    try:
        letters = letters_of(tuple(axes))
    except TypeError:
        raise TypeError(f"axes is {axes!r} but must be words of {', '.join(AXES)}") from None
    if type(text) is str:
        if len(texts_of_axes) > 256:
            texts_of_axes.clear()
        texts_of_axes[text] = letters
    return letters


@lru_cache(maxsize=64)
def plain_spec(head_dim, base, pairing):
    return RopeSpec(head_dim, base=base, pairing=pairing)


def apply_rope(x, positions=None, base=10000.0, *, pairing="half"):
    """RoPE in one line: exact angles, all channels, one base.

    x: (..., tokens, head_dim), or (head_dim,) with one position: NumPy array or PyTorch tensor
        (differentiable), head_dim even.
    positions: (tokens,) integers or reals; for (head_dim,) one number. None: 0, 1, 2, ...
    base: rope_theta. pairing: 'half' (j, j + head_dim/2) or 'interleaved' (2j, 2j + 1).

    Returns a new array of x's kind and dtype. Many calls with the same positions: posenc.rotation once,
    posenc.rotate for each. Raises ValueError or TypeError that names the argument.
    Source: Su et al., RoFormer, arXiv:2104.09864, section 3.4.2.
    """
    shape = getattr(x, "shape", None)
    if shape is None:
        raise TypeError(f"x is of type {type(x).__name__} but must be an array")
    if len(shape) == 0:
        raise ValueError("x is a single number but must have the shape (..., tokens, head_dim)")
    if isinstance(base, (np.generic, np.ndarray)):
        base = float(base)
    spec = plain_spec(int(shape[-1]), base, pairing)
    if len(shape) == 1:
        if positions is None:
            raise ValueError("positions is missing: x has one token, whose position must be said")
        positions = [one_position(positions)]
    elif positions is None:
        positions = range(int(shape[-2]))
    letters = None if len(shape) < 3 else ("heads",) * (len(shape) - 2) + ("tokens", "head_dim")
    if len(shape) > 3 and positions_have_batch(positions):
        letters = None
    return rotate(x, make_rotation(spec, positions), axes=letters)


def one_position(positions):
    value = np.asarray(positions.cpu() if is_torch(positions) else positions)
    if value.size != 1:
        raise ValueError(f"positions has {value.size} numbers but x has one token")
    return value.reshape(()).item()


def positions_have_batch(positions):
    return getattr(positions, "ndim", 1) > 1
