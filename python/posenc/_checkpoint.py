"""Which pairing trained weights use. SPDX-License-Identifier: MIT"""
from __future__ import annotations

from . import _core
from ._words import path_bytes, whole

MAX_SIZE = 1 << 24


def detect(path, *, heads=None, kv_heads=None, head_dim=None, rotary_dim=None, rotary_start=None, gain_offset=None,
           layers=None):
    """Which pairing the q and k weights of a checkpoint were trained with, from the numbers alone.

    path: a safetensors file or the index of a sharded one, a GGUF file, a llama2.c file, a model's folder, or a
        model's name in the local cache of Hugging Face or Ollama. Weights are streamed (5 MiB of memory).
    heads, kv_heads, head_dim, rotary_dim, rotary_start: the attention's shape; None: the config beside the
        weights (or the file itself) says it. gain_offset: True: gains of q and k norms are stored minus 1.
    layers: judge so many only, spread evenly over the model; None: all.

    Returns the dict that `posenc detect --json` prints: pairing ('half', 'interleaved', 'undetermined'),
    statistic (deviations from the same channels in random order, positive for half), both, q, k (the evidence of
    q and k together and of each alone), q_k_differ, layers (a verdict of each), format, model_type, implied
    (what programs assume by that name; it does not enter the answer), contradicts. 'undetermined' is an honest
    answer: untrained weights and models without rotary encoding give it. docs/detection.md has the statistic.
    Raises OSError or ValueError that names the file and the tensor. The GIL is released while it reads.
    """
    sizes = [None if value is None else whole(name, value, least, MAX_SIZE) for name, value, least in (
        ("heads", heads, 1), ("kv_heads", kv_heads, 1), ("head_dim", head_dim, 1), ("rotary_dim", rotary_dim, 1),
        ("rotary_start", rotary_start, 0))]
    return _core.detect(path_bytes("path", path), *sizes, None if gain_offset is None else int(bool(gain_offset)),
                        0 if layers is None else whole("layers", layers, 1, MAX_SIZE))
