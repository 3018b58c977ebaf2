/* Loading and storing single numbers of any dtype, and the conversions that kernel templates name.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_NUMBER_ACCESS_H
#define PENC_NUMBER_ACCESS_H

#include "base/half.h"
#include "posenc/dtype.h"

/* For templates: a type that is computed in as it is stored. */
#define PENC_SAME(value) (value)

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
