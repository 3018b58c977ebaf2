"""What somebody's rotation did, and whether two encodings agree. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import json
import os
import tempfile

import numpy as np

from . import _core
from ._arrays import integers, is_torch, to_numpy
from ._model import open_model
from ._rotate import axis_letters, direction_number
from ._spec import MAX_POSITIONS, RopeSpec, mode_number
from ._words import path_bytes, whole

FAR = (4096, 8191, 8192, 16384, 32767, 32768, 65535, 65537, 131071, 131072, 262144, 524288, 1000000, 1048575, -1, -1000)
DUMPS = (".npy", ".npz", ".safetensors")


def length_number(spec, seq_len):
    if seq_len is None:
        if spec.needs_seq_len:
            raise ValueError("seq_len is missing: the frequencies of this scaling depend on the context length")
        return 1
    return whole("seq_len", seq_len, 1, MAX_POSITIONS)


def diagnose(before, after, spec, positions, *, axes=None, mode="exact", inverse=False, backward=False, seq_len=None):
    """What a rotation did to an array, by name: whether `after` is `before` rotated as `spec` means, and if not, why.

    before, after: arrays of one shape (NumPy, PyTorch on the CPU, DLPack), dtypes may differ.
    spec: posenc.RopeSpec, what should have been computed. positions: (tokens,) integers, or (batch, tokens) where
        sequences have their own; with several axes (axes, tokens) or (axes, batch, tokens). axes, mode, inverse, backward, seq_len: as for posenc.rotate and posenc.rotation.

    Faults are tried, one and two at a time; one is named only if it gives `after` within the rounding noise of its
    dtype. Several explanations: these numbers cannot tell them apart.
    Returns the dict that `posenc diagnose --json` prints: verdict ('agrees', 'explained', 'unexplained'),
    explanations (causes with name, sentence and value; mode), is_rotation_half, is_rotation_interleaved and
    magnitude (measured without any hypothesis), compared, differing, worst (place, position, error and what is
    allowed there). docs/diagnosis.md lists the causes.
    Raises ValueError or TypeError that names the argument. The GIL is released.
    """
    if not isinstance(spec, RopeSpec):
        raise TypeError(f"spec is of type {type(spec).__name__} but must be posenc.RopeSpec")
    pair = tuple(x.detach() if is_torch(x) else x for x in (before, after))
    rest = (spec._plain, integers(positions, "positions", np.int64), "" if axes is None else axis_letters(axes),
            mode_number(mode), direction_number(inverse, backward), length_number(spec, seq_len))
    found = _core.diagnose(*pair, *rest)
    if found is None:
        found = _core.diagnose(*(x.contiguous() if is_torch(x) else np.ascontiguousarray(x) for x in pair), *rest)
    if found is None:
        raise ValueError("axes names one word in places that are not beside each other")
    return found


def is_model(path):
    """Whether a path names a model; others are specs in JSON and dumps."""
    name = os.fsdecode(path)
    if not os.path.exists(name):
        return not name.endswith((".json", *DUMPS))
    if os.path.isdir(name) or name.endswith(".gguf"):
        return True
    if not name.endswith(".json"):
        return False
    try:
        told = open_model(path)
    except ValueError:
        return False
    return bool(told.rule or told.model_type)


def side_of_arrays(name, arrays):
    """cos and sin, both in one, or frequencies: through a file, as the program reads them."""
    arrays = [np.asarray(to_numpy(array, name)) for array in arrays]
    with tempfile.TemporaryDirectory(prefix="posenc-") as folder:
        path = os.path.join(folder, f"{name}.npz" if len(arrays) == 2 else f"{name}.npy")
        if len(arrays) == 2:
            np.savez(path, cos=arrays[0], sin=arrays[1])
        else:
            np.save(path, arrays[0])
        return _core.open_side(os.fsencode(path))


def side_of(name, given, layer_type, part, seq_len, mode):
    if isinstance(given, dict) and "model_type" not in given:
        try:
            return _core.side_of_json(json.dumps(given))
        except (TypeError, RecursionError) as error:
            raise TypeError(f"{name} must hold what JSON can hold: {error}") from None
    if isinstance(given, tuple):
        if len(given) != 2:
            raise ValueError(f"{name} has {len(given)} arrays but must have two, cos and sin")
        return side_of_arrays(name, given)
    if isinstance(given, (str, bytes, os.PathLike)) and not is_model(given):
        return _core.open_side(path_bytes(name, given))
    if isinstance(given, (str, bytes, os.PathLike, dict)) or hasattr(given, "to_dict"):
        given = RopeSpec.from_config(given, layer_type, part=part)
        seq_len = seq_len or given.max_positions or 1
    if isinstance(given, RopeSpec):
        return _core.side_of_spec(given._plain, length_number(given, seq_len), mode_number(mode))
    if is_torch(given) or isinstance(given, np.ndarray):
        return side_of_arrays(name, (given,))
    raise TypeError(f"{name} is of type {type(given).__name__} but must be a posenc.RopeSpec, a path, a dict, an array or "
                    "(cos, sin)")


def compare(a, b, *, positions=None, layer_type=None, layer_type_b=None, part=None, part_b=None, seq_len=None,
            mode="exact", mode_b=None):
    """Do two encodings agree, from which position on do they not, and why.

    a, b: each a posenc.RopeSpec; a model (a path, a dict with model_type, or a configuration of transformers); a dict as
        {'head_dim': 128, 'base': 500000.0, 'pairing': 'half', 'scaling': {...}}, or a .json file of it; or what an
        implementation has: (cos, sin) arrays (positions, width), one array with both, inverse frequencies (pairs,),
        or a .npy, .npz or .safetensors file of them. Layouts are found out (docs/compare.md).
    positions: (n,) integers, those of a table's rows, or (axes, n), as images have; None: a table's rows are 0, 1, 2, ...; without tables 0 ... 4095
        and far ones up to 1048575.
    layer_type, layer_type_b: of models; b's where it differs. part, part_b: of composite models, as RopeSpec.from_config
        has it. seq_len: for scalings dynamic and longrope; None: a
        model's own maximum. mode, mode_b: how angles of specs and models are formed, 'exact' or 'float32'; b's
        where it differs.

    Returns the dict that `posenc compare --json` prints: verdict ('equal', 'equivalent', 'different'),
    equivalence (up to 'pairing', 'conjugate', 'shift'; 'none'), pairs_a, pairs_b, positions (how many),
    pairing_differs, slices_differ, axes_differ, halves_differ, halves (the first place where they do), largest,
    beyond (the first position at which cos or sin differ by more than a rounding of bf16, f16, f32), decades, explanations. Raises ValueError, TypeError or OSError.
    """
    if seq_len is not None:
        whole("seq_len", seq_len, 1, MAX_POSITIONS)
    first = side_of("a", a, layer_type, part, seq_len, mode)
    second = side_of("b", b, layer_type if layer_type_b is None else layer_type_b, part if part_b is None else part_b, seq_len,
                     mode if mode_b is None else mode_b)
    if positions is None:
        rows = min((side.rows for side in (first, second) if side.rows), default=0)
        positions = np.arange(rows) if rows else np.concatenate([np.arange(4096), FAR])
    positions = integers(positions, "positions", np.int64)
    if positions.ndim not in (1, 2):
        raise ValueError(f"positions has shape {positions.shape} but must be (n,) or (axes, n)")
    return _core.compare(first, second, positions)
