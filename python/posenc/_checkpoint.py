"""Which pairing trained weights use, and checkpoints brought into the other one. SPDX-License-Identifier: MIT"""
from __future__ import annotations

from . import _core
from ._words import pairing_number, path_bytes, whole

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


def _sizes(heads, kv_heads, head_dim, rotary_dim, rotary_start):
    """0 for what the checkpoint is to say itself."""
    return tuple(0 if value is None else whole(name, value, least, MAX_SIZE) for name, value, least in (
        ("heads", heads, 1), ("kv_heads", kv_heads, 1), ("head_dim", head_dim, 1), ("rotary_dim", rotary_dim, 1),
        ("rotary_start", rotary_start, 0)))


def _part(part):
    """(number, how many); (0, 0) for all."""
    if part is None:
        return 0, 0
    try:
        number, parts = part
    except (TypeError, ValueError):
        raise TypeError(f"part is {part!r} but must be two integers: (number, parts)") from None
    parts = whole("part[1]", parts, 1, 10**9)
    return whole("part[0]", number, 0, parts - 1), parts


def convert_checkpoint(path, out, to, *, from_pairing=None, heads=None, kv_heads=None, head_dim=None, rotary_dim=None,
                       rotary_start=None, force=False, part=None):
    """Brings the q and k rows of a checkpoint into the order of the other pairing, and all that has a row or a number
    for each of them: biases, norm gains, scales, LoRA's B. Nothing is computed; everything else stays byte for byte.

    path: as in detect; adapters are checkpoints too. out: the file to write or, where path is a folder or an index,
        the folder; it may be path itself if that is one file. None: only tell what would move.
    to: 'half' or 'interleaved', the order that rows get. from_pairing: the one that they have; None: what the
        files' record says, else the other one.
    heads, kv_heads, head_dim, rotary_dim, rotary_start: the attention's shape; None: the record, the config beside
        the weights, or the file itself says it.
    force: convert in spite of what docs/conversion.md lists as refused unless forced; GGUF files need it, since
        programs take the pairing from their architecture.
    part: (i, n): write only every n-th file of weights, from number i on, so that n processes share the work.

    Returns the dict that `posenc convert --json` prints: what it is, 'moves' (a dict for each tensor that changes),
    'remarks' (which programs will read the result rightly, what was forced), and 'left_out', names of other weights
    beside these, which are not copied. A record in the files' metadata tells the pairing; the conversion back takes
    it out, and there and back gives the same bytes. Raises OSError or ValueError that names file and tensor, before
    anything is written. The GIL is released.
    """
    start = None if from_pairing is None else pairing_number("from_pairing", from_pairing)
    return _core.convert_checkpoint(
        path_bytes("path", path), None if out is None else path_bytes("out", out), pairing_number("to", to),
        0 if start is None else start + 1, _sizes(heads, kv_heads, head_dim, rotary_dim, rotary_start), bool(force),
        *_part(part))


def compare_checkpoints(a, b, *, heads=None, kv_heads=None, head_dim=None, rotary_dim=None, rotary_start=None):
    """Which tensors of two checkpoints are the same, which have the same rows in another order, and which order.

    a, b: as path in detect; formats may differ, names of transformers, GGUF and llama2.c are matched.
    heads, kv_heads, head_dim, rotary_dim, rotary_start: the shape of a, as in convert_checkpoint; it helps to name orders
        where rows are alike. None: what the files say.

    Returns the dict that `posenc convert --check --json` prints: 'same' (no tensor differs or is missing), counts of
    'identical', 'permuted', 'different', 'only_a', 'only_b', 'from' and 'to' (what all permuted tensors agree in:
    a's rows are in the order of the pairing 'from', b's in that of 'to'; None: another order), 'tensors'.

    Raises OSError and ValueError as convert_checkpoint does. Source: docs/conversion.md.
    """
    return _core.compare_checkpoints(path_bytes("a", a), path_bytes("b", b),
                                     _sizes(heads, kv_heads, head_dim, rotary_dim, rotary_start))
