"""Dtypes, positions and new arrays. PyTorch is never imported here, only recognised. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import sys

import numpy as np

from . import _core

ALIGNMENT = 64  # bytes: large outputs that begin there can bypass the caches
LARGE = 16 << 20
NUMPY_TYPES = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "f16": np.dtype(np.float16)}
ALLOWED = "float32, float64, float16 or bfloat16"


def torch_or_none():
    return sys.modules.get("torch")


def is_torch(x):
    """Whether x is a PyTorch tensor; without PyTorch there can be none."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_torch_dtype(dtype):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(dtype, torch.dtype)


def dtype_name(dtype, default="f32"):
    """'f32', 'f64', 'f16' or 'bf16' of what NumPy, PyTorch or a person calls it."""
    if dtype is None:
        return default
    if isinstance(dtype, str):
        text = dtype
    elif is_torch_dtype(dtype):
        text = str(dtype).split(".")[-1]
    else:
        try:
            text = np.dtype(dtype)
        except TypeError:
            raise TypeError(f"dtype is {dtype!r} but must be {ALLOWED}") from None
        text = text.name if text.isnative else str(text)
    try:
        return _core.dtype(text)
    except ValueError:
        raise TypeError(f"dtype is {dtype!r} but must be {ALLOWED}") from None


def numpy_type(name):
    """NumPy's dtype; bfloat16 is that of ml_dtypes."""
    if name != "bf16":
        return NUMPY_TYPES[name]
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError("NumPy has bfloat16 through the package ml_dtypes: pip install ml_dtypes") from None
    return np.dtype(ml_dtypes.bfloat16)


def empty(shape, dtype):
    """A new C-order array; a large one begins at a multiple of 64 bytes."""
    dtype = np.dtype(dtype)
    count = 1
    for size in shape:
        count *= size
    if count * dtype.itemsize < LARGE:
        return np.empty(shape, dtype)
    memory = np.empty(count * dtype.itemsize + ALIGNMENT, np.uint8)
    skip = -memory.ctypes.data % ALIGNMENT
    return memory[skip:skip + count * dtype.itemsize].view(dtype).reshape(shape)


def to_numpy(values, name):
    """A NumPy array of integers or reals, from NumPy, PyTorch (any device), lists and ranges."""
    if is_torch(values):
        values = values.detach().cpu()
        if values.is_floating_point():
            values = values.double()
        return values.numpy()
    if isinstance(values, range):
        try:
            return np.arange(values.start, values.stop, values.step, dtype=np.int64)
        except OverflowError:
            raise ValueError(f"{name} has numbers beyond 64 bits") from None
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers: {error}") from None
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost; fill it")
    return array


def integers(values, name, dtype):
    """A contiguous array of `dtype`; integers only, all of which must fit."""
    array = to_numpy(values, name)
    if array.size == 0 and array.dtype == np.float64:  # an empty list
        array = array.astype(dtype)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {array.dtype} but must have integers")
    limits = np.iinfo(dtype)
    if array.size and (int(array.min()) < limits.min or int(array.max()) > limits.max):
        raise ValueError(f"{name} has numbers that do not fit into {np.dtype(dtype).name}")
    return np.ascontiguousarray(array, dtype=dtype)


def row_lists(row_ids, row_starts, cu_seqlens):
    """The lists as contiguous arrays of the C library's types."""
    return (None if row_ids is None else integers(row_ids, "row_ids", np.int64),
            None if row_starts is None else integers(row_starts, "row_starts", np.int64),
            None if cu_seqlens is None else integers(cu_seqlens, "cu_seqlens", np.int32))


def position_array(positions, name="positions"):
    """positions as contiguous int32, int64 or float64."""
    if isinstance(positions, (int, float)) and not isinstance(positions, bool):
        raise TypeError(f"{name} is {positions} but must be a list of positions: "
                        f"range({positions}) for the first ones, [{positions}] for that one")
    array = to_numpy(positions, name)
    if array.ndim == 0:
        raise TypeError(f"{name} is a single number but must be a list of positions")
    if array.size == 0 and array.dtype == np.float64:
        return array.astype(np.int64)
    if array.dtype.kind in "iu":
        return integers(array, name, np.int32 if array.dtype == np.int32 else np.int64)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return np.ascontiguousarray(array, dtype=np.float64)
    raise TypeError(f"{name} has dtype {array.dtype} but must have integers or reals")


def give(array, dtype, *others):
    """`array` as a tensor if a PyTorch dtype or tensor asked for it, else as it is."""
    if is_torch_dtype(dtype) or any(map(is_torch, others)):
        from . import _torch
        return _torch.from_numpy(array)
    return array
