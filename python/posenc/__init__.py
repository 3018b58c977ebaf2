"""posenc: positional encodings for transformers, exact at every position, in every convention.

    spec = posenc.RopeSpec(head_dim=128, base=500000)
    rotation = posenc.rotation(spec, positions)          # once a forward pass
    q, k = posenc.rotate((q, k), rotation)               # every layer; NumPy or PyTorch

The way through: RopeSpec (what a model declares) -> Frequencies -> Rotation (cos and sin of the positions at
hand) -> rotate. Beside it: angles, sinusoidal, alibi_slopes, alibi_bias, apply_rope (RoPE in one line),
norm_rotate (q/k norm in the same pass), query_scales, Cache (keys and values).
What a model's own files say: RopeSpec.from_config, inspect; what its weights show: detect.
Checkpoints of the other pairing: convert_checkpoint, compare_checkpoints.
What somebody's rotation did: diagnose; whether two encodings agree: compare.
The program `posenc` comes with the package.

SPDX-License-Identifier: MIT
"""
from . import _core
from ._cache import Cache
from ._checkpoint import compare_checkpoints, convert_checkpoint, detect
from ._diagnosis import compare, diagnose
from ._heads import norm_rotate, query_scales
from ._model import inspect
from ._rotate import apply_rope, rotate
from ._rotation import Rotation, angles, rotation
from ._spec import Axes, Frequencies, Note, RopeSpec, change
from ._tables import alibi_bias, alibi_slopes, convert, sinusoidal

__version__ = _core.version()


def cpu():
    """Which vector instructions are in use: 'scalar', 'neon', 'avx2', 'avx512' or 'avx512bf16'.

    The environment variable POSENC_CPU lowers it; the bytes are the same at every level. ValueError if it is
    set to another word.
    """
    return _core.cpu()


__all__ = ["Axes", "Cache", "Frequencies", "Note", "RopeSpec", "Rotation", "alibi_bias", "alibi_slopes", "angles",
           "apply_rope", "change", "compare", "compare_checkpoints", "convert", "convert_checkpoint", "cpu", "detect", "diagnose", "inspect", "norm_rotate", "query_scales", "rotate", "rotation", "sinusoidal"]
