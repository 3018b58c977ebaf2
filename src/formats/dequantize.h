/* Elements of tensors as float32, whatever their type. SPDX-License-Identifier: MIT */
#ifndef PENC_DEQUANTIZE_H
#define PENC_DEQUANTIZE_H

#include "formats/tensor_info.h"

/* 1 if elements of the type can be read: F64, F32, F16, BF16, the four F8 types, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K,
 * Q5_K, Q6_K. */
int penc_can_dequantize(penc_tensor_type type);

/* Writes `count` elements, a multiple of the type's block, to `to`; the type can be dequantised. Every product and
 * sum is rounded to float32, as in ggml. float64 is rounded to float32. */
void penc_dequantize(penc_tensor_type type, int big_endian, const unsigned char *from, size_t count,
                     float *to);

#endif
