"""The functions that rotate queries and keys in transformers' modeling files. SPDX-License-Identifier: MIT

A function is a name in a modeling file that every model of the file shares. It is replaced by one that turns by the
Rotation hanging on its cos, where a swapped module has made that cos, and is the old function for everything else:
other models of the file do not notice. What a function does is tried with random numbers, not guessed.
"""
from __future__ import annotations

import functools
import inspect
import itertools
import re
import sys
from dataclasses import dataclass

import torch

from ._rotate import rotate
from ._torch import BACKWARD, FORWARD, is_host, rotate_by_rows, threads_for
from ._transformers_rows import Tag, is_traced, is_watched
from ._words import PAIRINGS

NAMES = re.compile(r"apply.*(rot|rope)", re.IGNORECASE)
TENSORS = (("q", "k"), ("query", "key"), ("xq", "xk"), ("x",), ("tensor",))
TABLES = (("cos", "sin"), ("freqs_cis",), ("freqs_ci",))
AXES = {"bhtd": ("batch", "heads", "tokens", "head_dim"), "bthd": ("batch", "tokens", "heads", "head_dim"),
        "thd": ("tokens", "heads", "head_dim")}
OF_UNSQUEEZE = {(3, 1): "bhtd", (3, 2): "bthd", (3, -2): "bthd", (2, 1): "thd", (2, -2): "thd"}


@dataclass(frozen=True)
class Style:
    """What a function does with tables of one layout.

    axes: of the tensors; None: as unsqueeze_dim says. pairing, output_pairing: as in posenc.rotate.
    backward: turns the other way. trailing: the last channels turn, not the first. wider: heads may be wider than
    the rows. promotes: the result's dtype is that of x and cos together; else that of x.
    """
    axes: str | None
    pairing: str
    output_pairing: str
    backward: bool
    trailing: bool
    wider: bool
    promotes: bool


class Signature:
    """The arguments of a function by role."""

    def __init__(self, function):
        parameters = inspect.signature(function).parameters
        self.names = list(parameters)
        self.tensors = next((t for t in TENSORS if all(name in parameters for name in t)), None)
        self.tables = next((t for t in TABLES if all(name in parameters for name in t)), None)
        self.defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
        self.unsqueeze = "unsqueeze_dim" in parameters
        rest = set(self.names) - {*(self.tensors or ()), *(self.tables or ()), "unsqueeze_dim", "position_ids"}
        self.known = self.tensors is not None and self.tables is not None and not rest

    def values(self, args, kwargs):
        return {**self.defaults, **dict(zip(self.names, args)), **kwargs}


# --- What it does -------------------------------------------------------------------------------------

def random_tables(table, axes):
    """Tables of a layout with (batch, tokens) or (tokens,) rows of 4 pairs, and the Tag that would hang there."""
    generator = torch.Generator().manual_seed(5)
    shape = (2, 5, 4) if axes == 3 else (5, 4)
    angle = torch.rand(shape, generator=generator) * 6 - 3
    cos, sin = angle.cos(), angle.sin()
    tag = Tag(table, cos, sin, None)
    if table == "complex":
        return (torch.complex(cos, sin),), tag
    if table == "full-half":
        cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
    elif table == "full-interleaved":
        cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    return (cos, sin), tag


def random_tensors(count, axes, width):
    generator = torch.Generator().manual_seed(6)
    sizes = {"b": 2, "t": 5, "d": width}
    return [torch.randn([{**sizes, "h": heads}[letter] for letter in axes], generator=generator)
            for heads in (3, 2)[:count]]


def attempt(function, signature, tensors, tables):
    """What the function gives as a tuple, or None where it takes no such arguments."""
    arguments = dict(zip(signature.tensors + signature.tables, (*tensors, *tables)))
    try:
        with torch.no_grad():
            made = function(**arguments)
    except Exception:
        return None
    made = made if isinstance(made, tuple) else (made,)
    return made if len(made) == len(tensors) and all(isinstance(x, torch.Tensor) for x in made) else None


def style_of(function, signature, table, axes):
    """The Style of a function for tables of one layout, or None."""
    if not signature.known or (table == "complex") != (len(signature.tables) == 1):
        return None
    tables, tag = random_tables(table, axes)
    count = len(signature.tensors)
    if signature.unsqueeze:
        letters = [OF_UNSQUEEZE.get((axes, signature.defaults.get("unsqueeze_dim", 1)))]
    else:
        letters = ["bhtd", "bthd"] if axes == 3 else ["thd"]
    for axis_letters in filter(None, letters):
        exact = attempt(function, signature, random_tensors(count, axis_letters, tag.width), tables)
        if exact is None:
            continue
        wide = attempt(function, signature, random_tensors(count, axis_letters, tag.width + 6), tables)
        for pairing, output, backward in itertools.product(("half", "interleaved"), ("half", "interleaved"),
                                                           (False, True)):
            for trailing in (False, True):
                style = Style(None if signature.unsqueeze else axis_letters, pairing, output, backward, trailing,
                              False, promotes(function, signature, axis_letters, tag.width, tables))
                if not same(style, tag, axis_letters, count, tag.width, exact):
                    continue
                if wide is None:
                    return style
                style = Style(**{**style.__dict__, "wider": True})
                if same(style, tag, axis_letters, count, tag.width + 6, wide):
                    return style
    return None


def same(style, tag, letters, count, width, wanted):
    found = [turn(x, tag, style, letters, x.dtype) for x in random_tensors(count, letters, width)]
    return all(a.shape == b.shape and torch.allclose(a, b.to(a.dtype), rtol=1e-6, atol=2e-6)
               for a, b in zip(found, wanted))


def promotes(function, signature, letters, width, tables):
    """Whether bfloat16 tensors with float32 tables give float32."""
    tensors = [x.bfloat16() for x in random_tensors(len(signature.tensors), letters, width)]
    made = attempt(function, signature, tensors, tables)
    return made is not None and made[0].dtype is torch.float32


# --- In its place -------------------------------------------------------------------------------------

def turn(x, tag, style, letters, kind):
    start = x.shape[-1] - tag.width if style.trailing else 0
    if is_watched() or not is_host(x):
        return rotate_by_rows(x, tag.cos, tag.sin, letters, start, BACKWARD if style.backward else FORWARD,
                              PAIRINGS.index(style.pairing), PAIRINGS.index(style.output_pairing), kind)
    same_pairs = style.output_pairing == style.pairing
    return rotate(x, tag.rotation(start, style.pairing), axes=AXES[letters], backward=style.backward,
                  output_pairing=None if same_pairs else style.output_pairing,
                  dtype=None if kind is x.dtype else kind, threads=threads_for(x))


def fits(x, tag, style, letters):
    """Whether a tensor has the shape that was tried."""
    if x.dim() != len(letters) or not x.is_floating_point():
        return False
    width = x.shape[-1]
    if width != tag.width and not (style.wider and width > tag.width):
        return False
    if x.shape[letters.index("t")] != tag.tokens:
        return False
    return tag.batch == 1 or (letters[0] == "b" and x.shape[0] == tag.batch)


def replacement(original, signature, styles):
    """The function that stands in for `original`; styles: (layout, axes of the table) -> Style."""
    names, tables = signature.tensors, signature.tables
    single = len(names) == 1
    default = signature.defaults.get("unsqueeze_dim")

    @functools.wraps(original)
    def apply(*args, **kwargs):
        if is_traced():
            return original(*args, **kwargs)
        values = dict(zip(signature.names, args))
        values.update(kwargs)
        bearer = values.get(tables[0])
        if len(tables) == 2 and not hasattr(bearer, "_posenc"):
            bearer = None
        tag = getattr(bearer, "_posenc", None)
        style = None if tag is None else styles.get((tag.table, tag.axes))
        if style is None or (tag.partner is not None and tag.partner is not values.get(tables[1])):
            return original(*args, **kwargs)
        letters = style.axes or OF_UNSQUEEZE.get((tag.axes, values.get("unsqueeze_dim", default)))
        xs = [values.get(name) for name in names]
        if letters is None or not all(x is not None and fits(x, tag, style, letters) for x in xs):
            return original(*args, **kwargs)
        made = tuple(turn(x, tag, style, letters,
                          torch.promote_types(x.dtype, bearer.dtype) if style.promotes else x.dtype) for x in xs)
        return made[0] if single else made

    apply.posenc_original, apply.posenc_styles = original, styles
    return apply


installed = {}  # (name of a modeling file, name of a function) -> what stands there for now


def functions_of(file):
    """The names in a modeling file that may be functions to replace, and what stands there."""
    module = sys.modules[file]
    return [(name, value) for name, value in sorted(vars(module).items())
            if NAMES.search(name) and callable(value) and not inspect.isclass(value)]


def names_in(kind):
    """Global names that the methods of a class mention."""
    found = set()
    for value in vars(kind).values():
        function = inspect.unwrap(getattr(value, "__func__", value))
        code = [getattr(function, "__code__", None)]
        while code:
            part = code.pop()
            if part is not None:
                found.update(part.co_names)
                code += [inner for inner in part.co_consts if inspect.iscode(inner)]
    return found


def original_of(function):
    return getattr(function, "posenc_original", function)


def styles_of(file, tables, mentioned):
    """For each function of a modeling file that is mentioned: its name and its styles for these tables (layout,
    axes)."""
    found = []
    for name, value in functions_of(file):
        if name not in mentioned:
            continue
        original = original_of(value)
        signature = Signature(original if not isinstance(original, torch.nn.Module) else original.forward)
        styles = {}
        for table, axes in sorted(tables):
            style = style_of(original, signature, table, axes)
            if style is not None:
                styles[table, axes] = style
        found.append((name, original, signature, styles))
    return found


def install(file, name, original, signature, styles):
    module = sys.modules[file]
    now = getattr(module, name)
    known = getattr(now, "posenc_styles", {})
    setattr(module, name, replacement(original, signature, {**known, **styles}))


def uninstall(file):
    """Puts a modeling file's own functions back."""
    module = sys.modules[file]
    for name, value in functions_of(file):
        if hasattr(value, "posenc_original"):
            setattr(module, name, value.posenc_original)
