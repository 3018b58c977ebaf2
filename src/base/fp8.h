/* Numbers in 8 bits: fp8 e4m3fn (a sign, 4 bits of exponent with bias 7, 3 of fraction, no infinity, one NaN), and
 * float32 to integer. Micikevicius et al., "FP8 Formats for Deep Learning", arXiv:2209.05433.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_FP8_H
#define PENC_FP8_H

#include "base/half.h"

/* The largest number, the NaN and where normal numbers begin, as bits of float32 or of fp8. */
#define PENC_FP8_MOST        448.0f
#define PENC_FP8_MOST_BITS   0x43e00000u
#define PENC_FP8_NAN         0x7fu
#define PENC_FP8_NORMAL_BITS 0x3c800000u /* 2^-6 */
#define PENC_FP8_INTEGER                                                                           \
    16384.0f /* float32 numbers around it are multiples of 2^-9, fp8's last place */
#define PENC_FP8_INTEGER_BITS 0x46800000u

/* To nearest, ties to even; what is too large becomes +-448, infinities too; a NaN stays one. */
static inline uint8_t penc_fp8_of_float(float value) {
    uint32_t bits = penc_bits_of_float(value), magnitude = bits & 0x7fffffffu;
    uint8_t sign = (uint8_t)(bits >> 24 & 0x80u);
    if (magnitude > 0x7f800000u)
        return (uint8_t)(sign | PENC_FP8_NAN);
    if (magnitude > PENC_FP8_MOST_BITS)
        magnitude = PENC_FP8_MOST_BITS;
    if (magnitude < PENC_FP8_NORMAL_BITS) {
        float units = penc_float_of_bits(magnitude) + PENC_FP8_INTEGER;
        return (uint8_t)(sign | (penc_bits_of_float(units) - PENC_FP8_INTEGER_BITS));
    }
    uint32_t rounded = (magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20;
    return (uint8_t)(sign | (rounded - (120u << 3)));
}

static inline float penc_float_of_fp8(uint8_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x80u) << 24, magnitude = bits & 0x7fu;
    if (magnitude == PENC_FP8_NAN)
        return penc_float_of_bits(sign | 0x7fc00000u);
    if (magnitude < 8u)
        return penc_float_of_bits(sign | penc_bits_of_float((float)magnitude * 0x1p-9f));
    return penc_float_of_bits(sign | ((magnitude << 20) + (120u << 23)));
}

/* The nearest integer, ties to even; |value| at most 2^21. */
static inline int32_t penc_nearest_integer(float value) {
    float shifted =
        value + 12582912.0f; /* 1.5 * 2^23: float32 numbers around it are the integers */
    return (int32_t)(penc_bits_of_float(shifted) - 0x4b400000u);
}

#endif
