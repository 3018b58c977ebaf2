"""The words of arguments and the numbers that the C library has for them. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import os

from . import _core

LAYOUTS = ("half", "full-half", "full-interleaved", "cos-sin", "pairs")
SINUSOIDAL_LAYOUTS = ("interleaved", "sin-cos", "cos-sin")
ODD_RULES = ("refuse", "truncate", "zero", "ceil")
MODES = ("exact", "float32")
SLOPES = ("paper", "plain")
STORES = ("auto", "cached", "streaming")
DYNAMIC_FORMS = ("factor", "alpha", "qwen")
AXIS_ORDERS = ("chunked", "interleaved", "alternating", "ernie", "listed")
AXIS_EXPONENTS = ("whole", "own", "strided")
PAIRINGS = ("half", "interleaved")


def number(name, word, words):
    """The place of `word` among `words`; '_' and '-' are the same."""
    if isinstance(word, str):
        plain = word.replace("_", "-")
        if plain in words:
            return words.index(plain)
    raise ValueError(f"{name} is {word!r} but must be one of {', '.join(map(repr, words))}")


def pairing_number(name, word):
    """0 half, 1 interleaved; the C library knows the aliases, and why some words are refused."""
    if word == "half":
        return 0
    if word == "interleaved":
        return 1
    if not isinstance(word, str):
        raise TypeError(f"{name} is {word!r} but must be 'half' or 'interleaved'")
    try:
        return _core.pairing(word)
    except ValueError as error:
        raise ValueError(f"{name} is {word!r}: {error}") from None


def whole(name, value, least, most):
    """An integer argument within its range; numbers of NumPy are integers too, truth values are not."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r} but must be an integer from {least} to {most}")
    try:
        value = value.__index__()
    except TypeError:
        raise TypeError(f"{name} is {value!r} but must be an integer from {least} to {most}") from None
    if not least <= value <= most:
        raise ValueError(f"{name} is {value} but must be from {least} to {most}")
    return value


def real(name, value):
    if isinstance(value, (bool, str)):
        raise TypeError(f"{name} is {value!r} but must be a number")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r} but must be a number") from None


def path_bytes(name, path):
    """A path as the C library takes it."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} is of type {type(path).__name__} but must be a path")
    found = os.fsencode(path)
    if b"\0" in found:
        raise ValueError(f"{name} is {path!r} but a path holds no zero bytes")
    return found


def threads_number(threads):
    return 1 if threads == 1 else whole("threads", threads, 1, 1024)
