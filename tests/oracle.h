/* What the numbers should be: real arithmetic by MPFR, rounded once. Written from the formulas alone;
 * nothing here calls the library. SPDX-License-Identifier: MIT */
#ifndef TEST_ORACLE_H
#define TEST_ORACLE_H

#include "posenc/dtype.h"

#include <mpfr.h>

/* Precision of every number here: angles up to 2^60 keep 240 bits after the point. */
#define ORACLE_BITS 300

/* w = scale * base^(-numerator/denominator), in radians per position. */
void oracle_frequency(mpfr_ptr w, double scale, double base, uint64_t numerator,
                      uint64_t denominator);

/* Real cos and sin of position * w. */
void oracle_sincos(mpfr_ptr cosine, mpfr_ptr sine, double position, mpfr_srcptr w);

/* The positions up to 2^40 whose angle at frequency w comes closest to a multiple of pi/2: the
 * denominators of the continued fraction of w / (pi/2). Returns how many. */
size_t oracle_closest_positions(mpfr_srcptr w, int64_t *positions, size_t capacity);

/* slope = 2^(-max_bias * numerator / denominator). */
void oracle_slope(mpfr_ptr slope, double max_bias, uint64_t numerator, uint64_t denominator);

/* The bit pattern of x, rounded once to `dtype`, to nearest, ties to even. NaN gives a quiet one. */
uint64_t oracle_bits(mpfr_srcptr x, posenc_dtype dtype);
uint64_t oracle_bits_of_double(double x, posenc_dtype dtype);

/* The number that a bit pattern of `dtype` stands for; every one fits a double. */
double oracle_value(uint64_t bits, posenc_dtype dtype);

size_t oracle_bytes(posenc_dtype dtype);

/* The unit in the last place of numbers in [2^(exponent - 1), 2^exponent), exponent as of mpfr_get_exp. */
double oracle_ulp(long exponent, posenc_dtype dtype);

/* The bit pattern of an array's element, and storing one. */
uint64_t oracle_load(const void *array, posenc_dtype dtype, ptrdiff_t index);
void oracle_store(void *array, posenc_dtype dtype, ptrdiff_t index, uint64_t bits);

/* 1 if the patterns are equal or both are NaN (whose payload is free). */
int oracle_same(uint64_t a, uint64_t b, posenc_dtype dtype);

/* How far `got` is from x, in units of x's last float64 place. */
double oracle_ulps(double got, mpfr_srcptr x);

/* 1 if `got` is within 1 ulp plus 2^-75 of x: the promise for cos and sin in float64. */
int oracle_is_close(double got, mpfr_srcptr x);

/* Fails the test unless the element is x: correctly rounded in float32 and narrower, close in
 * float64. The rest says in printf's manner which number it is. */
__attribute__((format(printf, 5, 6))) void oracle_assert(const void *array, posenc_dtype dtype,
                                                         ptrdiff_t index, mpfr_srcptr x,
                                                         const char *format, ...);

#endif
