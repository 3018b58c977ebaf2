"""What a model declares, and the frequencies that come of it. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np

from . import _core
from ._arrays import to_numpy
from ._model import choose_part, open_model, spec_arguments
from ._words import (AXIS_EXPONENTS, AXIS_ORDERS, DYNAMIC_FORMS, MODES, PAIRINGS, number, pairing_number,
                     real, whole)

MAX_DIM = 1 << 24
MAX_POSITIONS = (1 << 64) - 1
NOTE_KINDS = ("defaulted", "unknown_key", "number_in_string", "factor_below_1", "original_not_below_maximum",
              "factor_differs")


class Note(NamedTuple):
    """Something that was assumed or looks odd, though it is no error.

    kind: 'defaulted', 'unknown_key' and the like, or the code of a model's warning (docs/models.md).
    argument, value: which one, and what it became. message: a sentence for people.
    """
    kind: str
    argument: str
    value: object
    message: str


def note_of(told):
    kind, argument, value, sentence = told
    shown = argument if value is None else f"{argument} ({value})"
    return Note(NOTE_KINDS[kind] if kind < len(NOTE_KINDS) else "other", argument, value,
                f"{shown} {sentence}")


@dataclass(frozen=True)
class Axes:
    """Several position numbers for one token; each pair of channels follows one of them.

    count: number of axes, 1 to 8.
    sections: pairs of each axis; their sum is rotary_dim / 2 (not used by 'alternating' and 'listed').
    order: which axis pair j follows. 'chunked': the first sections[0] pairs axis 0, and so on (Qwen2-VL).
        'interleaved': axis a > 0 if j % count == a and j < count * sections[a], else 0 (Qwen3-VL).
        'alternating': j % count (Llama 4 vision). 'ernie': sections of h, w, t (ERNIE-4.5-VL).
        'listed': pair_axis[j].
    exponents: 'whole': -2j/rotary_dim whatever the axis; 'own': each axis has a ladder of its own (Flux,
        2-D vision); 'strided': Pixtral.

    Raises ValueError or TypeError that names the argument; whether the sections fit is checked with a RopeSpec.
    Source: Wang et al., Qwen2-VL, arXiv:2409.12191, section 2.1; docs/methods/axes.md has every order with its own.
    """
    count: int
    sections: tuple = ()
    order: str = "chunked"
    exponents: str = "whole"
    pair_axis: tuple = ()

    def __post_init__(self):
        whole("count", self.count, 1, 8)
        for name in ("sections", "pair_axis"):
            most = MAX_DIM if name == "sections" else 7
            values = tuple(whole(name, value, 0, most) for value in getattr(self, name))
            object.__setattr__(self, name, values)
        number("order", self.order, AXIS_ORDERS)
        number("exponents", self.exponents, AXIS_EXPONENTS)

    def _plain(self):
        return (self.count, AXIS_ORDERS.index(self.order.replace("_", "-")),
                AXIS_EXPONENTS.index(self.exponents), list(self.sections), list(self.pair_axis))


class Frequencies:
    """One inverse frequency for each pair of channels; made by RopeSpec.frequencies or change.

    Immutable; threads may share it. Arrays that its properties give are the caller's own. Making one directly raises
    TypeError. Source: Su et al., RoFormer, arXiv:2104.09864, section 3.2.2; docs/methods for the scalings.
    """
    __slots__ = ("_core", "notes")

    def __init__(self, made, notes=()):
        if not isinstance(made, _core.Frequencies):
            raise TypeError("Frequencies are made by RopeSpec.frequencies")
        self._core = made
        self.notes = tuple(notes)

    @property
    def pairs(self):
        """rotary_dim / 2."""
        return self._core.pairs

    @property
    def inv_freq(self):
        """Radians per position of each pair: (pairs,) float64, correctly rounded."""
        return np.array(self._core.inv_freq(0))

    @property
    def inv_freq_float32(self):
        """The float32 factors that mode 'float32' multiplies positions by: (pairs,) float32."""
        return np.array(self._core.inv_freq(1), dtype=np.float32)

    @property
    def wavelengths(self):
        """Positions per turn of each pair: (pairs,) float64; infinite where a pair does not turn."""
        with np.errstate(divide="ignore"):
            return 2 * np.pi / np.abs(self.inv_freq)

    @property
    def axes(self):
        """The axis whose position each pair follows: (pairs,) int64; zeros for plain RoPE."""
        return np.array(self._core.axes(), dtype=np.int64)

    @property
    def axis_count(self):
        """Position numbers of one token; 1 for plain RoPE."""
        return self._core.spec()[7]

    @property
    def attention_factor(self):
        """What multiplies cos and sin (yarn, longrope); 1 otherwise. Rows contain it."""
        return self._core.attention_factor(0)

    @property
    def softmax_factor(self):
        """What DeepSeek's attention multiplies its softmax scale by under yarn; in no row. 1 otherwise."""
        return self._core.softmax_factor()

    @property
    def head_dim(self):
        """Channels of a head."""
        return self._core.spec()[0]

    @property
    def rotary_dim(self):
        """Channels that rotate."""
        return self._core.spec()[1]

    @property
    def rotary_start(self):
        """The first channel that rotates."""
        return self._core.spec()[2]

    @property
    def pairing(self):
        """'half' or 'interleaved'."""
        return self._core.spec()[4]

    def __repr__(self):
        return (f"<posenc.Frequencies of {self.pairs} pairs, attention_factor "
                f"{self.attention_factor:.6g}>")


def change(old, new):
    """The difference of two Frequencies with the same pairs and axes.

    A rotation by it (mode 'exact') turns keys that were rotated by `old` into keys rotated by `new`, at the
    same positions, attention factors included: cached keys when longrope or dynamic frequencies change
    with the length.

    old, new: posenc.Frequencies. Returns Frequencies, whose inverse frequencies (radians per position) are differences and may
    be negative. Raises TypeError, or ValueError where pairs, axes or channels differ. docs/methods/cache.md says when that is right.
    """
    for name, value in (("old", old), ("new", new)):
        if not isinstance(value, Frequencies):
            raise TypeError(f"{name} is of type {type(value).__name__} but must be posenc.Frequencies")
    return Frequencies(_core.change(old._core, new._core))


@dataclass(frozen=True, eq=False)
class RopeSpec:
    """What a model declares about its rotary encoding. Checked when made; immutable.

    head_dim: channels of a head, 2 to 2^24.
    rotary_dim: channels that rotate, even; None: all from rotary_start on.
    base: rope_theta, 1e-6 to 1e30; None: rope_theta of `scaling` if it has one, else 10000.
    pairing: 'half': channels (j, j + rotary_dim/2) turn together (Hugging Face, NeoX). 'interleaved':
        (2j, 2j + 1) (GPT-J, Meta, the paper).
    scaling: how the context is extended: a dict (or JSON text) as transformers' rope_parameters has it,
        {'rope_type': 'yarn', 'factor': 4.0, ...}. Types: default, linear, ntk, dynamic, yarn, longrope,
        llama3, proportional.
    rotary_start: the first channel that rotates.
    max_positions: the model's maximum, for scalings that ask for it; bounds no position.
    axes: posenc.Axes for several positions a token; None: one, or mrope_section of `scaling`.
    inv_freq: the caller's own inverse frequencies instead of a scaling: (rotary_dim/2,) float32 or float64,
        radians per position; with inv_freq_is_period positions per radian.
    dynamic: for rope_type dynamic, 'factor' (transformers), 'alpha' (HunYuan) or 'qwen' (Qwen 1).
    shrinks: accept a factor below 1.

    Raises ValueError or TypeError that names the argument. What was defaulted or looks odd is listed in
    `notes`; what looks odd is warned about too.
    Source: Su et al., RoFormer, arXiv:2104.09864; the scalings' sources stand in docs/methods.
    """
    head_dim: int
    rotary_dim: int | None = None
    base: float | None = None
    pairing: str = "half"
    scaling: object = None
    rotary_start: int = field(default=0, kw_only=True)
    max_positions: int | None = field(default=None, kw_only=True)
    axes: Axes | None = field(default=None, kw_only=True)
    inv_freq: object = field(default=None, kw_only=True)
    inv_freq_is_period: bool = field(default=False, kw_only=True)
    dynamic: str | None = field(default=None, kw_only=True)
    shrinks: bool = field(default=False, kw_only=True)
    notes: tuple = field(default=(), init=False, repr=False)
    needs_seq_len: bool = field(default=False, init=False, repr=False)
    _plain: tuple = field(default=(), init=False, repr=False)
    _made: Frequencies | None = field(default=None, init=False, repr=False)

    def __post_init__(self):
        self._resolve()
        for note in self.notes:
            if note.kind != "defaulted":
                warnings.warn(note.message, stacklevel=4)

    @classmethod
    def from_config(cls, config, layer_type=None, *, part=None, pairing=None):
        """The spec of a model from its own files.

        config: the path of a config.json, a params.json, a .gguf file or a model's folder; or a dict as
            config.json has it; or a configuration of transformers.
        layer_type: which layers, such as 'sliding_attention'; None: the only ones that rotate.
        part: which part of a composite model, such as 'vision_config' (posenc.inspect lists them as `parts`); None: the
            language model.
        pairing: for a model type that is not known, and only there.

        What the file leaves out comes from the rules of its model type. `notes` has what nobody says (kind
        'defaulted'; `defaulted` is the dict) and what looks wrong (the warning's code as kind): nothing is
        printed. posenc.inspect tells the source of every value.
        Raises ValueError: with several layer types and no layer_type (it lists them), without a rotary
        encoding, for broken files; OSError if there is no file.
        """
        return cls._from_model(choose_part(open_model(config), part), layer_type, pairing)

    @classmethod
    def from_gguf(cls, path, layer_type=None, *, pairing=None):
        """from_config for a GGUF file (versions 1 to 3, split ones too), or a folder of it.

        Raises ValueError for what is no GGUF file, and as from_config.
        """
        if isinstance(path, dict):
            raise TypeError("path is a dict but must be the path of a GGUF file")
        model = open_model(path)
        if model.format != "gguf":
            raise ValueError(f"path is {path!r}, which is no GGUF file; RopeSpec.from_config reads it")
        return cls._from_model(model, layer_type, pairing)

    @classmethod
    def _from_model(cls, model, layer_type, pairing):
        arguments, told = spec_arguments(model, layer_type, pairing)
        if "axes" in arguments:
            arguments["axes"] = Axes(*arguments["axes"])
        spec = object.__new__(cls)
        for one in fields(cls):
            object.__setattr__(spec, one.name, arguments.get(one.name, one.default))
        spec._resolve()
        notes = [Note(kind, name, getattr(spec, name, value), message) for kind, name, value, message in told]
        names = {note.argument for note in notes}
        object.__setattr__(spec, "notes",
                           (*notes, *(note for note in spec.notes if note.argument not in names)))
        return spec

    def _resolve(self):
        put = object.__setattr__.__get__(self)
        put("_plain", self._arguments())
        made, told = _core.frequencies(self._plain, 1)  # refuses what is wrong at any length
        head_dim, rotary_dim, start, base, pairing, _, kind, _ = made.spec()
        put("head_dim", head_dim)
        put("rotary_dim", rotary_dim)
        put("rotary_start", start)
        put("base", base)
        put("pairing", pairing)
        put("needs_seq_len", kind == "longrope" or (kind == "dynamic" and self._dynamic_form() != "alpha"))
        put("notes", tuple(map(note_of, told)))
        if not self.needs_seq_len:
            put("_made", Frequencies(made, self.notes))

    def _dynamic_form(self):
        if self.dynamic is not None:
            return self.dynamic
        block = json.loads(self._plain[6]) if self._plain[6] else {}
        return "alpha" if block.get("alpha") is not None else "factor"

    def _arguments(self):
        """Those of _core.frequencies without the length; 0 is what was not given."""
        head_dim = whole("head_dim", self.head_dim, 2, MAX_DIM)
        rotary_dim = 0 if self.rotary_dim is None else whole("rotary_dim", self.rotary_dim, 2, MAX_DIM)
        base = 0.0 if self.base is None else real("base", self.base)
        if self.base is not None and not base > 0:
            raise ValueError(f"base is {self.base} but must be from 1e-6 to 1e30")
        if self.axes is not None and not isinstance(self.axes, Axes):
            raise TypeError(f"axes is of type {type(self.axes).__name__} but must be posenc.Axes")
        inv_freq = self.inv_freq
        if inv_freq is not None:
            inv_freq = to_numpy(inv_freq, "inv_freq")
            if inv_freq.dtype not in (np.float32, np.float64):
                inv_freq = np.array(inv_freq, dtype=np.float64)
            inv_freq = np.ascontiguousarray(inv_freq)
            if inv_freq.ndim != 1:
                raise ValueError(f"inv_freq has {inv_freq.ndim} axes but must have one")
        return (head_dim, rotary_dim, whole("rotary_start", self.rotary_start, 0, MAX_DIM), base,
                pairing_number("pairing", self.pairing),
                0 if self.max_positions is None
                else whole("max_positions", self.max_positions, 1, MAX_POSITIONS),
                self._scaling_text(),
                0 if self.dynamic is None else number("dynamic", self.dynamic, DYNAMIC_FORMS),
                bool(self.shrinks), inv_freq, bool(self.inv_freq_is_period),
                None if self.axes is None else self.axes._plain())

    def _scaling_text(self):
        if self.scaling is None or isinstance(self.scaling, str):
            return self.scaling
        if not isinstance(self.scaling, dict):
            raise TypeError(f"scaling is of type {type(self.scaling).__name__} but must be a dict or JSON text "
                            "as rope_parameters has it")
        try:
            return json.dumps(self.scaling, default=lambda value: value.tolist())
        except (AttributeError, TypeError, ValueError) as error:
            raise TypeError(f"scaling must hold what JSON can hold: {error}") from None

    def frequencies(self, seq_len=None):
        """The Frequencies for a context of `seq_len` tokens, 1 to 2^64 - 1, which scalings dynamic and longrope need.

        Raises ValueError where it is missing or out of range, TypeError where it is no integer.
        """
        if not self.needs_seq_len:
            if seq_len is not None:
                whole("seq_len", seq_len, 1, MAX_POSITIONS)
            return self._made
        if seq_len is None:
            raise ValueError("seq_len is missing: the frequencies of this scaling depend on the context length")
        made, told = _core.frequencies(self._plain, whole("seq_len", seq_len, 1, MAX_POSITIONS))
        return Frequencies(made, map(note_of, told))

    @property
    def defaulted(self):
        """What was not given and what it became: a dict."""
        return {note.argument: note.value for note in self.notes if note.kind == "defaulted"}


def frequencies_of(spec, seq_len):
    """Those of a RopeSpec or Frequencies argument."""
    if isinstance(spec, RopeSpec):
        return spec.frequencies(seq_len)
    if isinstance(spec, Frequencies):
        if seq_len is not None:
            raise ValueError("seq_len is given, but these Frequencies have been made for one length already")
        return spec
    raise TypeError(f"spec is of type {type(spec).__name__} but must be posenc.RopeSpec or posenc.Frequencies")


def mode_number(mode):
    return number("mode", mode, MODES)


__all__ = ["Axes", "Frequencies", "Note", "PAIRINGS", "RopeSpec", "change"]
