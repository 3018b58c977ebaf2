"""Key-value caches. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import numpy as np

from . import _core
from ._arrays import dtype_name, empty, integers, is_torch, numpy_type, row_lists
from ._heads import norm_arguments, plain_input, plain_output
from ._rotate import NEEDS_COPY, axis_letters
from ._rotation import Rotation
from ._spec import Frequencies, mode_number
from ._words import pairing_number, threads_number

FORMATS = {"f32": 0, "f16": 2, "bf16": 3, "int8": 4, "fp8_e4m3": 5}
BYTES = {"int8": np.int8, "fp8_e4m3": np.uint8}


def format_name(format, dtype):
    """The word of a format; of the dtype where none is given."""
    word = str(dtype).split(".")[-1] if format is None else format
    if word == "float8_e4m3fn":
        return "fp8_e4m3"
    if isinstance(word, str) and word not in FORMATS:
        try:
            word = dtype_name(word)
        except TypeError:
            pass
    if not isinstance(word, str) or word not in FORMATS:
        raise ValueError(f"format is {word!r} but must be one of {', '.join(map(repr, FORMATS))}")
    return word


def slot_list(name, slots):
    slots = integers(slots, name, np.int64)
    if slots.ndim != 1:
        raise ValueError(f"{name} has shape {slots.shape} but must have one axis")
    return slots


class Cache:
    """The keys, or the values, of one layer, in memory of the caller's: append, read, shift.

    data: a NumPy array or PyTorch CPU tensor (blocks, block_tokens, heads, head_dim), any strides: a view of whatever
        layout the engine has (transpose it). One sequence: 1 block of the capacity; a batch: a block for each; paged:
        blocks of, say, 16 tokens. Slot b * block_tokens + t is token t of block b.
    format: 'f32', 'f16', 'bf16', 'int8' or 'fp8_e4m3'; None: data's dtype says it (fp8 in uint8 needs the word).
    scales: int8 and fp8_e4m3: (blocks, block_tokens, heads) float32, one for each token and head, written by append.
    tensor_scale: fp8_e4m3: one scale for all instead.

    Cache.zeros makes the memory too. Nothing is copied; slots that are not named stay as they are, to the byte. No
    gradients. Raises ValueError or TypeError that names the argument, before anything is written.
    Source: Kwon et al., PagedAttention, arXiv:2309.06180; Micikevicius et al., FP8 Formats, arXiv:2209.05433; docs/methods/cache.md.
    """

    def __init__(self, data, *, format=None, scales=None, tensor_scale=None):
        if not is_torch(data) and not isinstance(data, np.ndarray):
            raise TypeError(f"data is of type {type(data).__name__} but must be a NumPy array or a PyTorch tensor")
        self.format = format_name(format, data.dtype)
        self.data, self.scales, self.tensor_scale = data, scales, tensor_scale
        memory = plain_output("data", data)
        if str(memory.dtype).endswith("float8_e4m3fn"):
            if is_torch(memory):
                import torch
                memory = memory.view(torch.uint8)
            else:
                memory = memory.view(np.uint8)
        if tensor_scale is not None and not (isinstance(tensor_scale, (int, float)) and tensor_scale > 0):
            raise ValueError(f"tensor_scale is {tensor_scale!r} but must be a number above 0")
        if self.format in BYTES and scales is None and tensor_scale is None:
            raise ValueError(f"scales is missing: format {self.format} needs one for each token and head")
        self._core = _core.Cache(memory, FORMATS[self.format], None if scales is None else plain_output("scales", scales),
                                 tensor_scale or 0.0)

    @classmethod
    def zeros(cls, blocks, block_tokens, heads, head_dim, format="f32", *, tensor_scale=None):
        """A new cache of zeros in NumPy's memory, with scales where the format needs them.

        blocks, block_tokens, heads, head_dim: the shape of data. Raises ValueError for a format that is not known.
        """
        format = format_name(format, None)
        shape = blocks, block_tokens, heads, head_dim
        data = empty(shape, BYTES[format] if format in BYTES else numpy_type(format))
        data[...] = 0
        scales = np.zeros(shape[:3], np.float32) if format in BYTES and tensor_scale is None else None
        return cls(data, format=format, scales=scales, tensor_scale=tensor_scale)

    def append(self, x, rotation=None, *, starts=None, block_table=None, slot_ids=None, epsilon=None, weight=None,
               weight_plus_one=False, order="before", pairing=None, axes=None, row_ids=None, row_starts=None,
               cu_seqlens=None, threads=1):
        """Stores new heads: keys, normalised and turned; values with rotation=None.

        x: (batch, heads, tokens, head_dim) or as `axes` says; float32, float16 or bfloat16; the cache's heads.
        rotation, pairing, row_ids, row_starts, cu_seqlens: as for posenc.rotate. epsilon, weight, weight_plus_one,
            order: as for posenc.norm_rotate.
        starts: (batch,) tokens that each sequence has in the cache already; None: 0. Sequence n fills block n, or with
            block_table (batch, n) its blocks one after another.
        slot_ids: (tokens,) or (batch, tokens) slots instead of that; -1 leaves a token out.
        threads: how many share the work, by ranges of tokens.

        Heads are computed in float32 and rounded once to the format; what nothing is done to is copied bit for bit.
        Raises ValueError or TypeError that names the argument, before anything is written.
        """
        if rotation is not None and not isinstance(rotation, Rotation):
            raise TypeError(f"rotation is of type {type(rotation).__name__} but must be posenc.Rotation or None")
        if rotation is None and not (row_ids is row_starts is cu_seqlens is pairing is None):
            raise ValueError("rotation is None but rows or a pairing are chosen")
        if slot_ids is not None and not (starts is block_table is None):
            raise ValueError("slot_ids stands beside starts or block_table but says all places")
        x = plain_input("x", x)
        slots = (None if slot_ids is None else integers(slot_ids, "slot_ids", np.int64),
                 None if starts is None else integers(starts, "starts", np.int64),
                 None if block_table is None else integers(block_table, "block_table", np.int32))
        rest = (norm_arguments(epsilon, weight, weight_plus_one, order), "" if axes is None else axis_letters(axes),
                -1 if pairing is None else pairing_number("pairing", pairing),
                row_lists(row_ids, row_starts, cu_seqlens), slots, threads_number(threads))
        tables = () if rotation is None else rotation._both
        if self._core.append(tables, x, *rest) == NEEDS_COPY:
            x = x.contiguous() if is_torch(x) else np.array(x, order="C")
            if self._core.append(tables, x, *rest) == NEEDS_COPY:
                raise ValueError("axes names one word in places that are not beside each other")

    def read(self, slots, *, dtype=None, out=None):
        """Slots as numbers: (slots, heads, head_dim), of data's kind; dtype: None: float32. 8-bit ones times their scale.

        slots: (n,) integers, any order. out: where they go instead. Raises ValueError or TypeError that names the argument.
        """
        slots = slot_list("slots", slots)
        shape = len(slots), *self.data.shape[2:]
        made = out
        if out is None and is_torch(self.data):
            import torch
            from ._torch import torch_type
            made = torch.empty(shape, dtype=torch.float32 if dtype is None else torch_type(dtype))
        elif out is None:
            made = empty(shape, numpy_type(dtype_name(dtype)))
        elif dtype is not None:
            raise ValueError("dtype stands beside out, which has one")
        self._core.read(slots, made if out is None else plain_output("out", out))
        return made

    def shift(self, slots, from_positions, to_positions, frequencies, *, to=None, mode="exact", originals=None,
              original_slots=None):
        """Turns cached keys to other positions, or to other frequencies.

        slots: each named once. from_positions, to_positions: where their keys are and shall be, (slots,) integers,
            with several axes (axes, slots).
        frequencies: posenc.Frequencies by which the keys are rotated now; to: those wanted (None: the same).
        mode: by which the keys were rotated.
        originals: a Cache of keys to start from, whose positions from_positions are then; original_slots: their slots
            there (None: the same). Each shift rounds once more: with originals errors do not add up.

        The angle is that of the whole way, rounded once; the attention factor changes from the one to the other.
        Raises ValueError or TypeError that names the argument, before anything is written.
        """
        for name, value in (("frequencies", frequencies), ("to", to)):
            if not isinstance(value, Frequencies) and (name, value) != ("to", None):
                raise TypeError(f"{name} is of type {type(value).__name__} but must be posenc.Frequencies")
        if originals is not None and not isinstance(originals, Cache):
            raise TypeError(f"originals is of type {type(originals).__name__} but must be posenc.Cache")
        if original_slots is not None and originals is None:
            raise ValueError("original_slots is given without originals")
        self._core.shift(frequencies._core, None if to is None else to._core, mode_number(mode), slot_list("slots", slots),
                         integers(from_positions, "from_positions", np.int64),
                         integers(to_positions, "to_positions", np.int64),
                         None if originals is None else originals._core,
                         None if original_slots is None else slot_list("original_slots", original_slots))

    def __repr__(self):
        return f"<posenc.Cache {self.format} {tuple(self.data.shape)}>"
