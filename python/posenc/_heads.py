"""The norm of heads and scales of queries beside the rotation. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import numpy as np

from . import _core
from ._arrays import dtype_name, give, integers, is_torch, numpy_type, row_lists, to_numpy
from ._rotate import NEEDS_COPY, NEEDS_FLOAT64_ROWS, axis_letters, check_out_dtype, new_output
from ._rotation import Rotation
from ._spec import mode_number
from ._words import STORES, number, pairing_number, real, threads_number, whole

NORM_ORDERS = ("before", "after")
QUERY_SCALES = ("floor", "smooth", "log-n")
MAX_POSITION = 1 << 40


def plain_input(name, x):
    """What the C library reads: a tensor without its gradient, which the functions here have none for."""
    if not is_torch(x):
        if isinstance(x, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array, whose mask would be lost; fill it")
        return x
    import torch
    if x.requires_grad and torch.is_grad_enabled():
        raise ValueError(f"{name} requires a gradient but this function has none: {name}.detach(), or torch.no_grad()")
    return x.detach().resolve_neg()


def plain_output(name, out):
    """Where the C library writes; autograd is told."""
    if is_torch(out):
        import torch
        if out.requires_grad and torch.is_grad_enabled():
            raise ValueError(f"{name} requires a gradient, which writing into it would lose; detach it")
        out = out.detach()
        torch.autograd.graph.increment_version(out)
    return out


def norm_arguments(epsilon, weight, weight_plus_one, order):
    if epsilon is None and (weight is not None or weight_plus_one):
        raise ValueError("epsilon is missing: without it there is no norm, and weight has no use")
    if weight is not None:
        weight = plain_input("weight", weight)
        weight = weight.contiguous() if is_torch(weight) else np.ascontiguousarray(weight)
    return (None if epsilon is None else real("epsilon", epsilon), number("order", order, NORM_ORDERS), weight,
            bool(weight_plus_one))


def scale_array(scales, wide):
    if scales is None:
        return None
    array = to_numpy(plain_input("scales", scales), "scales")
    if array.dtype.kind not in "iuf":
        raise TypeError(f"scales has dtype {array.dtype} but must have reals")
    return np.ascontiguousarray(array, np.float64 if wide else np.float32)


def new_like(x, dtype):
    if not is_torch(x):
        return new_output(x, dtype)
    import torch
    from ._torch import torch_type
    return torch.empty(x.shape, dtype=x.dtype if dtype is None else torch_type(dtype))


def norm_rotate(x, rotation, *, epsilon=None, weight=None, weight_plus_one=False, order="before", scales=None,
                pairing=None, axes=None, output_pairing=None, dtype=None, out=None, row_ids=None, row_starts=None,
                cu_seqlens=None, threads=1, stores="auto"):
    """RMS norm, rotation and a scale of every head in one pass (q/k norm). Not differentiable: tensors that require a
    gradient are refused where PyTorch records gradients.

    x: NumPy array, PyTorch tensor on the CPU, or what speaks DLPack; head_dim at most 2048 (1024 in float64).
    rotation: posenc.Rotation; None: layers that do not rotate.
    epsilon: of the norm, x / sqrt(mean(x^2) + epsilon) * weight; None: no norm. weight: (head_dim,) numbers;
        weight_plus_one: 1 + weight (Gemma). order: 'before' the rotation (Qwen3, Gemma 3) or 'after' it (Hunyuan);
        all channels of the head are normalised.
    scales: (tokens,) or (batch, tokens) reals that multiply each token last of all; posenc.query_scales.
    pairing, axes, output_pairing, dtype, out, row_ids, row_starts, cu_seqlens, threads, stores: as for posenc.rotate.

    Computed is in float64 for float64 x, else in float32, and rounded once, at the end. Returns a new array or
    tensor, or `out`; `out=x` works in place. Raises ValueError or TypeError that names the argument; nothing
    is written then.
    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv:1910.07467; Henry et al. on normalised
    queries and keys, arXiv:2010.04245.
    """
    if rotation is not None and not isinstance(rotation, Rotation):
        raise TypeError(f"rotation is of type {type(rotation).__name__} but must be posenc.Rotation or None")
    if rotation is None and not (row_ids is row_starts is cu_seqlens is pairing is None):
        raise ValueError("rotation is None but rows or a pairing are chosen")
    x = plain_input("x", x)
    if out is not None and dtype is not None:
        check_out_dtype((out,), dtype)
    wide = _core.describe(x, "x")[0] == "f64"
    rest = (norm_arguments(epsilon, weight, weight_plus_one, order), scale_array(scales, wide),
            "" if axes is None else axis_letters(axes),
            0 if output_pairing is None else pairing_number("output_pairing", output_pairing) + 1,
            -1 if pairing is None else pairing_number("pairing", pairing), row_lists(row_ids, row_starts, cu_seqlens),
            threads_number(threads), number("stores", stores, STORES))
    made = new_like(x, dtype) if out is None else plain_output("out", out)
    result = NEEDS_FLOAT64_ROWS
    copied = False
    while result:
        result = _core.norm_rotate(() if rotation is None else rotation._both, x, made, *rest)
        if result == NEEDS_FLOAT64_ROWS:
            rotation._add_float64_rows()
        elif result == NEEDS_COPY:
            if out is not None:
                raise ValueError("out or x has batch or heads axes that are not one axis in memory; leave out= away "
                                 "or give contiguous arrays")
            if copied:
                raise ValueError("axes names one word in places that are not beside each other")
            x, copied = x.contiguous() if is_torch(x) else np.array(x, order="C"), True
            made = new_like(x, dtype)
    return made if out is None else out


def query_scales(positions, kind, *, length, offset, coefficient=None, mode="exact", dtype=None):
    """Numbers that multiply queries by their position ("attention temperature"), for norm_rotate's `scales`.

    positions: integers from 0 to 2^40, any shape. kind, with L = length and a = coefficient:
        'floor':  1 + a ln(1 + floor((p + offset) / L))    Llama 4 (a 0.1, L 8192, offset 1), Ministral 3 (offset 0)
        'smooth': 1 + a ln(max(1, (p + offset) / L))       Inkling (offset 1)
        'log-n':  max(1, ln(p + offset) / ln(L))           Qwen's logn_attn (offset 1); no coefficient
    offset: 0 or 1, as the model has it. mode: 'exact': correctly rounded; 'float32': formed as transformers does.
    dtype: float32 (None) or float64.

    Returns an array of the shape of positions; a tensor if dtype or positions are PyTorch's. Raises ValueError or TypeError
    that names the argument.
    Source: the models' own code, as listed; Nakanishi, Scalable-Softmax, arXiv:2501.19399 on such scales.
    """
    name = dtype_name(dtype)
    if name not in ("f32", "f64"):
        raise TypeError(f"dtype is {dtype!r} but must be float32 or float64")
    number_of_kind = number("kind", kind, QUERY_SCALES)
    array = integers(positions, "positions", np.int64)
    out = np.empty(array.shape, numpy_type(name))
    _core.query_scales(array, out, number_of_kind, 0.0 if coefficient is None else real("coefficient", coefficient),
                       whole("length", length, 1, MAX_POSITION), whole("offset", offset, 0, 1), mode_number(mode))
    return give(out, dtype, positions)
