/* Unsigned fixed-point numbers of 64 integer and 256 fraction bits, and the one helper that
 * multiplies 64 by 64 bits. Logarithms, powers, phases and the slow sin/cos are made of these, so
 * that they do not depend on any libm. All operations are exact but for bits below 2^-256, which
 * are dropped. SPDX-License-Identifier: MIT */
#ifndef PENC_WIDE_H
#define PENC_WIDE_H

#include <stdint.h>

#define PENC_WIDE_LIMBS 5

/* value = sum of limb[i] * 2^(64 * (i - 4)): limb[4] is the integer part. */
typedef struct penc_wide {
    uint64_t limb[PENC_WIDE_LIMBS];
} penc_wide;

/* A wide number times a power of two. */
typedef struct penc_real {
    penc_wide significand;
    int exponent;
} penc_real;

/* Returns the low 64 bits of a * b and puts the high ones into *high. */
static inline uint64_t penc_multiply(uint64_t a, uint64_t b, uint64_t *high) {
#if defined(__SIZEOF_INT128__) && !defined(POSENC_NO_INT128)
    __extension__ typedef unsigned __int128 penc_uint128;
    penc_uint128 product = (penc_uint128)a * b;
    *high = (uint64_t)(product >> 64);
    return (uint64_t)product;
#else
    uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32),
             cross = a0 * b1 + (middle & 0xffffffffu);
    *high = a1 * b1 + (middle >> 32) + (cross >> 32);
    return cross << 32 | (low & 0xffffffffu);
#endif
}

penc_wide penc_wide_of_integer(uint64_t value);
/* value >= 0, below 2^64; bits below 2^-256 are dropped. */
penc_wide penc_wide_of_double(double value);
int penc_wide_is_zero(const penc_wide *a);
/* -1, 0 or 1 as a is below, equal to or above b. */
int penc_wide_compare(const penc_wide *a, const penc_wide *b);
/* Sums and products must stay below 2^64, differences must not be negative. */
penc_wide penc_wide_add(const penc_wide *a, const penc_wide *b);
penc_wide penc_wide_subtract(const penc_wide *a, const penc_wide *b);
penc_wide penc_wide_multiply(const penc_wide *a, const penc_wide *b);
penc_wide penc_wide_multiply_by(const penc_wide *a, uint64_t b);
/* 0 < b < 2^63; quick below 2^32. */
penc_wide penc_wide_divide_by(const penc_wide *a, uint64_t b);
/* a / b of two integers, 0 < b < 2^63. */
penc_wide penc_wide_ratio(uint64_t a, uint64_t b);
/* a / b, 0 < b < 2^63; the quotient must be below 2^64. About 5 microseconds. */
penc_wide penc_wide_divide(const penc_wide *a, const penc_wide *b);
/* Times 2^shift; bits that leave at either end are dropped. */
penc_wide penc_wide_shift(const penc_wide *a, int shift);
/* The position of the highest set bit as a power of two: 0 for 1.0, -1 for 0.5. a must not be 0. */
int penc_wide_log2_floor(const penc_wide *a);

/* Splits a finite positive double into an integer below 2^53 and a power of two. */
uint64_t penc_split_double(double value, int *exponent);

/* Rounds to `bits` significant bits and to multiples of 2^min_exponent, to nearest, ties to even.
 * Bits below 2^-128 of the leading one are rounded away first, so that the errors of a computation
 * (below 2^-200) cannot turn an exact tie into a near one. The result must fit a double. */
double penc_real_round(const penc_real *value, int bits, int min_exponent);

#endif
