#!/usr/bin/env python3
"""Row powers of the small models that were trained for this project: make_row_powers.py FOLDER OUT.npz

FOLDER holds safetensors files whose metadata name position, head_dim and rotary_dim. One array per file and layer,
float64: the rows of q, then those of k. SPDX-License-Identifier: MIT
"""
import sys
from pathlib import Path

import numpy as np

import weight_powers as weights

arrays = {}
for path in sorted(Path(sys.argv[1]).glob("*.safetensors")):
    metadata, tensors = weights.read_safetensors(path)
    layers, tied = weights.layers_of(tensors, int(metadata["head_dim"]), int(metadata["rotary_dim"]))
    for index, (q, k) in enumerate(layers):
        key = f"{path.stem} {metadata['position']} {'tied' if tied else 'free'} {len(q)} {index}"
        arrays[key] = np.concatenate([q, k])
np.savez_compressed(sys.argv[2], **arrays)
