/* Conversions between float16 or bfloat16 and float32/float64, by integer steps, so that every
 * compiler and CPU gives the same bits. Rounding is to nearest, ties to even, once.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_HALF_H
#define PENC_HALF_H

#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "posenc must not be compiled with -ffast-math: its results are promised bit for bit"
#endif
#include <float.h>
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "posenc needs float and double expressions evaluated in their own type (FLT_EVAL_METHOD 0)"
#endif

static inline uint32_t penc_bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float penc_float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t penc_bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double penc_double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Shifts right by `shift` bits, rounding to nearest, ties to even. */
static inline uint64_t penc_shift_round(uint64_t value, unsigned shift) {
    if (shift == 0)
        return value;
    if (shift > 63)
        return 0; /* callers hold at most 54 significant bits: less than half of the last place */
    uint64_t kept = value >> shift, rest = value & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* Narrows a finite or infinite float64 to a 16-bit format with `fraction_bits` and the exponent
 * bias `bias`; carries of the rounding run into the exponent, which is what makes infinity right.
 */
static inline uint16_t penc_narrow16(double value, unsigned fraction_bits, int bias) {
    uint64_t bits = penc_bits_of_double(value);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000u);
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    uint64_t infinity = (uint64_t)(2 * bias + 1) << fraction_bits;
    if (exponent == 0x7ff)
        return (uint16_t)(sign | infinity | (fraction ? UINT64_C(1) << (fraction_bits - 1) : 0));
    if (exponent == 0) /* zero, or below 2^-1022: zero in every 16-bit format */
        return sign;
    int target = exponent - 1023 + bias;
    uint64_t significand = fraction | UINT64_C(1) << 52;
    uint64_t rounded;
    if (target > 0)
        rounded = penc_shift_round(significand, 52 - fraction_bits) +
                  ((uint64_t)(target - 1) << fraction_bits);
    else
        rounded = penc_shift_round(significand, 53 - fraction_bits + (unsigned)-target);
    return (uint16_t)(sign | (rounded < infinity ? rounded : infinity));
}

static inline uint16_t penc_f16_of_double(double value) {
    return penc_narrow16(value, 10, 15);
}

static inline uint16_t penc_bf16_of_double(double value) {
    return penc_narrow16(value, 7, 127);
}

/* All bits set if a < b, for numbers up to 2^31; with penc_choose a choice without the branch that `?:` may
 * become. */
static inline uint32_t penc_if_less(uint32_t a, uint32_t b) {
    return 0u - ((a - b) >> 31);
}

static inline uint32_t penc_choose(uint32_t all_bits, uint32_t yes, uint32_t no) {
    return (yes & all_bits) | (no & ~all_bits);
}

/* The same from float32, without a branch, so that compilers make vectors of loops over it. */
static inline uint16_t penc_bf16_of_float(float value) {
    uint32_t bits = penc_bits_of_float(value), nan = (bits >> 16 & 0x8000u) | 0x7fc0u;
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)penc_choose(penc_if_less(0x7f800000u, bits & 0x7fffffffu), nan, rounded);
}

static inline uint16_t penc_f16_of_float(float value) {
    uint32_t bits = penc_bits_of_float(value), magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    /* A denormal counts in units of 2^-24, the last place of 0.5 in float32. */
    uint32_t denormal = penc_bits_of_float(penc_float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t rounded = penc_choose(penc_if_less(magnitude, 0x38800000u), denormal, normal);
    rounded = rounded < 0x7c00u ? rounded : 0x7c00u;
    rounded = penc_choose(penc_if_less(0x7f800000u, magnitude), 0x7e00u, rounded);
    return (uint16_t)((bits >> 16 & 0x8000u) | rounded);
}

/* 1 if a float32 number lies in the middle between two neighbours of a 16-bit format, where rounding twice can
 * go wrong. */
static inline uint32_t penc_is_bf16_middle(float value) {
    return (penc_bits_of_float(value) & 0xffffu) == 0x8000u;
}

static inline uint32_t penc_is_f16_middle(float value) {
    uint32_t magnitude = penc_bits_of_float(value) & 0x7fffffffu;
    uint32_t normal = (magnitude & 0x1fffu) == 0x1000u;
    /* 0.25 counts in halves of a denormal's unit: a middle is an odd number of them. */
    float alone = penc_float_of_bits(magnitude), halves = alone + 0.25f;
    uint32_t denormal = penc_bits_of_float(halves) & (halves - 0.25f == alone);
    return penc_choose(penc_if_less(magnitude, 0x38800000u), denormal, normal);
}

static inline float penc_float_of_bf16(uint16_t bits) {
    return penc_float_of_bits((uint32_t)bits << 16);
}

static inline float penc_float_of_f16(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u;
    uint32_t fraction = bits & 0x3ffu;
    if (exponent == 31)
        return penc_float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent)
        return penc_float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    float magnitude = (float)fraction * 0x1p-24f; /* denormal: exact in float32 */
    return penc_float_of_bits(sign | penc_bits_of_float(magnitude));
}

#endif
