/* Loading and storing single numbers of any dtype, and the conversions that kernel templates name.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_NUMBER_ACCESS_H
#define PENC_NUMBER_ACCESS_H

#include "base/half.h"
#include "posenc/dtype.h"

/* For templates: a type that is computed in as it is stored. */
#define PENC_SAME(value) (value)

static inline uint16_t penc_f16_of_float(float value) {
    return penc_f16_of_double((double)value);
}

static inline uint16_t penc_bf16_of_float(float value) {
    return penc_bf16_of_double((double)value);
}

static inline double penc_load_number(const void *array, posenc_dtype dtype, ptrdiff_t index) {
    switch (dtype) {
    case POSENC_F64:
        return ((const double *)array)[index];
    case POSENC_F32:
        return (double)((const float *)array)[index];
    case POSENC_F16:
        return (double)penc_float_of_f16(((const uint16_t *)array)[index]);
    case POSENC_BF16:
        return (double)penc_float_of_bf16(((const uint16_t *)array)[index]);
    }
    return 0.0;
}

/* 1 if a float32 number lies in the middle between two neighbours of a 16-bit dtype, where rounding twice could
 * go wrong. */
static inline int penc_is_middle(posenc_dtype dtype, float value) {
    uint32_t bits = penc_bits_of_float(value);
    float magnitude = penc_float_of_bits(bits & 0x7fffffffu);
    if (dtype == POSENC_BF16)
        return (bits & 0xffffu) == 0x8000u;
    if (magnitude >= 0x1p-14f)
        return (bits & 0x1fffu) == 0x1000u;
    float units = magnitude * 0x1p24f; /* of the last place of its denormals: exact, below 1024 */
    return units - (float)(int)units == 0.5f;
}

/* Rounds once, to nearest. */
static inline void penc_store_number(void *array, posenc_dtype dtype, ptrdiff_t index,
                                     double value) {
    switch (dtype) {
    case POSENC_F64:
        ((double *)array)[index] = value;
        break;
    case POSENC_F32:
        ((float *)array)[index] = (float)value;
        break;
    case POSENC_F16:
        ((uint16_t *)array)[index] = penc_f16_of_double(value);
        break;
    case POSENC_BF16:
        ((uint16_t *)array)[index] = penc_bf16_of_double(value);
        break;
    }
}

#endif
