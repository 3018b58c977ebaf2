/* Logarithms and powers of two in wide fixed point, the same on every platform.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_POWER_H
#define PENC_POWER_H

#include "base/wide.h"

/* A signed exponent of two. */
typedef struct penc_exponent {
    int negative;
    penc_wide magnitude;
} penc_exponent;

/* 1/(2 pi) and 2 pi. */
extern const penc_wide penc_inverse_turn, penc_turn;

/* log2 of a finite x > 0, good to 2^-240. */
penc_exponent penc_log2(double x);
/* log2 of x > 0, good to 2^-230 if x is at least 2^-20. */
penc_exponent penc_log2_wide(const penc_wide *x);

/* The exponent that is the finite number x itself, |x| < 2^63; bits below 2^-256 are dropped. */
penc_exponent penc_exponent_of(double x);

/* e * numerator / denominator; numerator and denominator below 2^32, denominator above 0. */
penc_exponent penc_exponent_scale(const penc_exponent *e, uint64_t numerator, uint64_t denominator);

/* a - b. */
penc_exponent penc_exponent_subtract(const penc_exponent *a, const penc_exponent *b);

/* ln 2, to turn a log2 into a natural logarithm. */
extern const penc_wide penc_ln2;

/* 2^e, relative error below 2^-240; the significand is in [1, 2). */
penc_real penc_exp2(const penc_exponent *e);

#endif
