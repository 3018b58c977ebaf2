#!/usr/bin/env python3
"""Frozen test vectors of tests/test_dequantize.c: blocks of random bytes, and the float32 numbers that ggml's own
Python package makes of them; every 8-bit float, as ml_dtypes reads it.

  pip install gguf ml_dtypes && tools/make_quantized_vectors.py > data/quantized_vectors.h
SPDX-License-Identifier: MIT
"""
import ml_dtypes
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

# Type, bytes of a block that hold float16 scales, blocks.
BLOCKS = [("Q4_0", [0], 3), ("Q4_1", [0, 2], 3), ("Q5_0", [0], 3), ("Q5_1", [0, 2], 3), ("Q8_0", [0], 3),
          ("Q4_K", [0, 2], 2), ("Q5_K", [0, 2], 2), ("Q6_K", [208], 2)]
FLOATS = [("F8_E4M3", ml_dtypes.float8_e4m3fn), ("F8_E5M2", ml_dtypes.float8_e5m2),
          ("F8_E4M3FNUZ", ml_dtypes.float8_e4m3fnuz), ("F8_E5M2FNUZ", ml_dtypes.float8_e5m2fnuz)]


def print_array(kind, name, values, width):
    print(f"static const {kind} {name}[] = {{")
    texts = [f"0x{int(v):0{width}x}" for v in values]
    per_line = 90 // (width + 4)
    for i in range(0, len(texts), per_line):
        print("    " + ", ".join(texts[i:i + per_line]) + ",")
    print("};")


def main():
    random = np.random.default_rng(20261129)
    print("/* Made by tools/make_quantized_vectors.py: bytes of blocks and the float32 bits that they stand for.\n"
          " * SPDX-License-Identifier: MIT */\n/* clang-format off */")
    for name, scales, blocks in BLOCKS:
        kind = GGMLQuantizationType[name]
        data = random.integers(0, 256, (blocks, GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
        for at in scales:
            half = random.normal(0, 0.1, blocks).astype("<f2")
            data[:, at:at + 2] = half.view(np.uint8).reshape(blocks, 2)
        print_array("unsigned char", f"quantized_{name}", data.ravel(), 2)
        print_array("uint32_t", f"dequantized_{name}", dequantize(data, kind).ravel().view(np.uint32), 8)
    for name, dtype in FLOATS:
        data = np.arange(256, dtype=np.uint8)
        numbers = data.view(dtype).astype(np.float32)
        bits = np.where(np.isnan(numbers), 0x7fc00000, numbers.view(np.uint32))
        print_array("uint32_t", f"dequantized_{name}", bits, 8)


main()
