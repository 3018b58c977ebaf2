"""Rows of transformers' rotary embedding modules, made by posenc. SPDX-License-Identifier: MIT

A module's forward is described by a Form: which positions it takes, how it lays cos and sin out, in which dtype it
gives them. Forms are tried on the module itself: the first whose numbers equal the module's own is taken, so that
no form is guessed from a name.
"""
from __future__ import annotations

import atexit
import copy
import copyreg
import itertools
import weakref
from dataclasses import dataclass
from typing import Optional

import torch

from ._rotation import Rotation, angles
from ._spec import RopeSpec

is_compiling, tracing_state = torch.compiler.is_compiling, torch._C._get_tracing_state
dispatch_modes = torch._C._len_torch_dispatch_stack
OWN_VALUES = -1  # instead of an exact spec's number: the module's inverse frequencies, mode float32


class LeftAlone(Exception):
    """Why something is not swapped, in words for the report."""


# --- The rows themselves ------------------------------------------------------------------------------

class ExactSource:
    """Frequencies of a spec, by context length where the scaling needs one."""

    def __init__(self, spec, lengths):
        self.spec, self.lengths, self.made = spec, tuple(sorted(lengths)), {}

    def frequencies(self, seq_len):
        if not self.spec.needs_seq_len:
            seq_len = None
        elif self.lengths:  # longrope: only on which side of the original length
            seq_len = self.lengths[0] + (seq_len > self.lengths[0])
        found = self.made.get(seq_len)
        if found is None:
            if len(self.made) > 64:
                self.made.clear()
            found = self.made[seq_len] = self.spec.frequencies(seq_len)
        return found


sources = weakref.WeakValueDictionary()  # number -> ExactSource, which its Part keeps: what a compiled graph can name
own_frequencies = {}  # bytes of inverse frequencies -> Frequencies
atexit.register(own_frequencies.clear)
numbers = itertools.count()


def frequencies_of_values(inv_freq):
    """Frequencies of a module's own inverse frequencies, as float32 numbers."""
    values = inv_freq.detach().float().cpu().contiguous().numpy()
    key = values.tobytes()
    found = own_frequencies.get(key)
    if found is None:
        if len(own_frequencies) > 256:
            own_frequencies.clear()
        spec = RopeSpec(2 * values.size, inv_freq=values)
        found = own_frequencies[key] = spec.frequencies()
    return found


def compute(position_ids, inv_freq, factor, source, seq_len, wide):
    """cos and sin of every number of position_ids: tensors (*position_ids.shape, pairs), attention factor included.

    source: OWN_VALUES, or the number of an ExactSource. factor: what multiplies the rows; None: the spec's own.
    seq_len: 0: max(position_ids) + 1 where the source needs one. wide: float64.
    """
    positions = position_ids.detach().cpu()
    if source == OWN_VALUES:
        frequencies, mode = frequencies_of_values(inv_freq), "float32"
        if positions.dtype != torch.float32:
            positions = positions.float()
    else:
        made = sources[source]
        if made.spec.needs_seq_len and not seq_len:
            seq_len = int(positions.max()) + 1 if positions.numel() else 1
        frequencies, mode = made.frequencies(max(int(seq_len), 1)), "exact"
        if positions.dtype == torch.float16 or positions.dtype == torch.bfloat16:
            positions = positions.float()
    kind = torch.float64 if wide and mode == "exact" else torch.float32
    cos, sin = angles(frequencies, positions.reshape(-1), mode=mode, dtype=kind, attention=factor is None)
    if factor is not None and factor != 1.0:
        cos, sin = cos.mul_(factor), sin.mul_(factor)
    shape = (*position_ids.shape, cos.shape[-1])
    return cos.reshape(shape), sin.reshape(shape)


@torch.library.custom_op("posenc::rope_rows", mutates_args=())
def rope_rows(position_ids: torch.Tensor, inv_freq: torch.Tensor, factor: Optional[float], source: int, seq_len: int,
              wide: bool) -> tuple[torch.Tensor, torch.Tensor]:
    cos, sin = compute(position_ids, inv_freq, factor, source, seq_len, wide)
    return cos.to(position_ids.device), sin.to(position_ids.device)


@rope_rows.register_fake
def _(position_ids, inv_freq, factor, source, seq_len, wide):
    kind = torch.float64 if wide and source != OWN_VALUES else torch.float32
    shape = (*position_ids.shape, inv_freq.shape[-1])
    return position_ids.new_empty(shape, dtype=kind), position_ids.new_empty(shape, dtype=kind)


def is_traced():
    """Whether torch.jit.trace records: it keeps transformers' own functions."""
    return not is_compiling() and tracing_state() is not None


def is_watched():
    """Whether somebody records operations, or stands for tensors without numbers: only registered operators may run
    then."""
    return is_compiling() or tracing_state() is not None or dispatch_modes() > 0


def rows(position_ids, inv_freq, factor, source, seq_len, wide):
    if is_watched():
        return torch.ops.posenc.rope_rows(position_ids, inv_freq, factor, source, seq_len, wide)
    cos, sin = compute(position_ids, inv_freq, factor, source, seq_len, wide)
    return cos.to(position_ids.device), sin.to(position_ids.device)


# --- What the apply function finds -----------------------------------------------------------------

class Tag:
    """Hangs on the cos (or complex) tensor that a swapped module gives: the rows that the apply function of a layer
    turns by, as they were before they were rounded to the model's dtype, and which sin belongs to it. Compilers follow
    it, so it holds tensors; outside of them the Rotation is made once.

    cos, sin: (tokens, pairs) or (batch, tokens, pairs). axes: of the tensor that bears the Tag."""
    __slots__ = ("table", "axes", "cos", "sin", "partner", "made")

    def __init__(self, table, cos, sin, partner):
        self.table, self.axes, self.partner, self.made = table, cos.dim(), partner, {}
        if cos.dim() == 3 and cos.shape[0] == 1:
            cos, sin = cos[0], sin[0]
        self.cos, self.sin = cos.detach(), sin.detach()  # without the bearer, which would bear itself

    @property
    def batch(self):
        return self.cos.shape[0] if self.cos.dim() == 3 else 1

    @property
    def tokens(self):
        return self.cos.shape[-2]

    @property
    def width(self):
        return 2 * self.cos.shape[-1]

    def rotation(self, start, pairing):
        key = start, pairing
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = Rotation(self.cos, self.sin, pairing=pairing, rotary_start=start)
        return found


def half_of(table, rows):
    """One number for each pair."""
    if table == "full-interleaved":
        return rows[..., 0::2].contiguous()
    return rows[..., :rows.shape[-1] // 2] if table == "full-half" else rows


def hang(table, cos, sin, first, second):
    """first: the tensor that bears the tag; second: the other one, None for complex numbers."""
    if not is_traced() and cos.dim() in (2, 3) and cos.shape[-1] > 0:
        first._posenc = Tag(table, cos, sin, second)


# --- A module's forward ----------------------------------------------------------------------------

@dataclass(frozen=True)
class Form:
    """How a module makes cos and sin of positions.

    table: the layout: 'full-half' [c, c], 'full-interleaved' c0 c0 c1 c1, 'half', 'complex' one tensor cos + i sin.
    expand: position_ids are expanded to so many axes first; 0: taken as they come.
    recompose: the module's recomposition_frequencies lays the rows of several axes out; it only moves numbers.
    factor: 'attention_scaling'; 'mscale': long_mscale or short_mscale by length, with the short factors (phimoe);
        'none'.
    updates: transformers' dynamic_rope_update runs first (dynamic and longrope).
    follows: the dtype is that of x; else float32, or that of the table.
    kept: what the module keeps: 'inv_freq', or 'table': rows of the first positions; it gives sin before cos (gptj).
    """
    table: str
    expand: int = 0
    recompose: bool = False
    factor: str = "attention_scaling"
    updates: bool = False
    follows: bool = True
    kept: str = "inv_freq"


@dataclass
class Part:
    """One set of inverse frequencies of a module: the whole module, or one layer type."""
    layer_type: str | None
    form: Form
    source: int = OWN_VALUES
    exact: ExactSource | None = None
    values: torch.Tensor | None = None  # inverse frequencies that the module does not keep

    @property
    def prefix(self):
        return "" if self.layer_type is None else f"{self.layer_type}_"


class Plan:
    """What a swapped module does: a Part for each layer type."""

    def __init__(self, parts):
        self.parts = {part.layer_type: part for part in parts}

    def class_for(self, original):
        return swapped_class(original)


def factor_of(module, part, position_ids):
    if part.form.factor == "none":
        return 1.0
    if part.form.factor == "attention_scaling":
        return float(getattr(module, part.prefix + "attention_scaling", 1.0))  # remote code may have none
    parameters = module.config.rope_parameters
    if parameters["rope_type"] == "default":
        return float(module.attention_scaling)
    beyond = int(position_ids.max()) + 1 > parameters["original_max_position_embeddings"]
    return float(parameters["long_mscale" if beyond else "short_mscale"])


def length_of(module, part):
    """dynamic: the length that transformers has the frequencies for; else 0."""
    if part.source == OWN_VALUES or not part.form.updates:
        return 0
    kind = module.rope_type if part.layer_type is None else module.rope_type[part.layer_type]
    if kind != "dynamic":
        return 0
    own = getattr(module, part.prefix + "max_seq_len_cached", None)
    return int(module.max_seq_len_cached if own is None else own)


def forward_of_part(module, part, x, position_ids):
    form = part.form
    if form.expand:
        position_ids = position_ids.expand(form.expand, -1, -1)
    inv_freq = part.values
    if inv_freq is None:  # phimoe switches inv_freq with the length, but turns by the short factors always
        inv_freq = getattr(module, "original_inv_freq" if form.factor == "mscale" else part.prefix + "inv_freq")
    factor = factor_of(module, part, position_ids)
    if part.source != OWN_VALUES and form.factor == "attention_scaling":
        factor = None
    seq_len = 1 if form.factor == "mscale" else length_of(module, part)
    cos, sin = rows(position_ids, inv_freq, factor, part.source, seq_len, x.dtype is torch.float64)
    cos, sin = cos.to(x.device), sin.to(x.device)
    if form.table == "complex":
        made = torch.complex(cos.float(), sin.float())
        hang("complex", cos, sin, made, None)
        return made
    halves = cos, sin
    if form.recompose:
        more = () if part.layer_type is None else (part.layer_type,)
        cos, sin = module.recomposition_frequencies(cos, *more), module.recomposition_frequencies(sin, *more)
        halves = half_of(form.table, cos), half_of(form.table, sin)
    elif form.table == "full-half":
        cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
    elif form.table == "full-interleaved":
        cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    kind = x.dtype if form.follows else torch.float32 if form.kept == "inv_freq" else module.embed_positions.dtype
    first, second = cos.to(kind), sin.to(kind)
    hang(form.table, *halves, first, second)
    return (first, second) if form.kept == "inv_freq" else (second, first)


def updating(function):
    """`function` behind transformers' own switching of dynamic and longrope frequencies."""
    from transformers.modeling_rope_utils import dynamic_rope_update

    def raw(self, x, position_ids, layer_type=None):
        return function(self, self._posenc_plan.parts[layer_type], x, position_ids)

    return dynamic_rope_update(raw)


classes = weakref.WeakKeyDictionary()  # a module's class -> its swapped classes by kind of plan


def subclass_of(original, kind, members):
    """A subclass of a module's class with other members, made once for each kind of plan. A copy of a swapped module is
    a swapped one; a pickled one comes back as transformers made it."""
    made = classes.setdefault(original, {})
    if kind in made:
        return made[kind]

    def deepcopy(self, memo):
        other = original.__new__(original)
        memo[id(self)] = other
        plan = self.__dict__["_posenc_plan"]
        other.__dict__.update(copy.deepcopy({k: v for k, v in self.__dict__.items() if k != "_posenc_plan"}, memo))
        swap_module(other, plan)
        return other

    def reduce_ex(self, protocol):
        state = {k: v for k, v in self.__dict__.items() if k != "_posenc_plan"}
        return copyreg._reconstructor, (original, object, None), state

    made[kind] = type(original.__name__, (original,), {
        **members, "posenc_original": original, "__deepcopy__": deepcopy, "__reduce_ex__": reduce_ex,
        "__qualname__": original.__qualname__, "__module__": original.__module__, "__doc__": original.__doc__})
    return made[kind]


def swapped_class(original):
    """The class of a rotary module whose forward follows the module's Plan."""
    updates = updating(forward_of_part)

    def forward(self, x, position_ids=None, layer_type=None):
        part = self._posenc_plan.parts.get(layer_type)
        if part is None or position_ids is None:
            more = {} if layer_type is None else {"layer_type": layer_type}
            return original.forward(self, x, position_ids, **more)
        with torch.no_grad():
            if part.form.updates:
                return updates(self, x, position_ids, layer_type)
            return forward_of_part(self, part, x, position_ids)

    return subclass_of(original, Plan, {"forward": forward})


swapped = weakref.WeakSet()  # every swapped module, copies too


def is_swapped(module):
    return "_posenc_plan" in module.__dict__


def swap_module(module, plan):
    module.__class__ = plan.class_for(type(module))
    module.__dict__["_posenc_plan"] = plan
    swapped.add(module)


def restore_module(module):
    del module.__dict__["_posenc_plan"]
    module.__class__ = type(module).posenc_original
    swapped.discard(module)
