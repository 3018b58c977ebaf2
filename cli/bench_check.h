/* Slow computations of what the kernels compute. SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_CHECK_H
#define CLI_BENCH_CHECK_H

#include "posenc/dtype.h"

#include <stddef.h>

/* Rounds to the nearest number of a dtype, ties to even, from arithmetic alone. */
double bench_round(double value, posenc_dtype dtype);

/* Element `index` of an array. */
double bench_number(const void *array, posenc_dtype dtype, size_t index);

/* Whether `value` may be what a dtype holds of the real number `wanted`, which is known up to `doubt`: the
 * nearest number, float64 within one unit more. */
int bench_is_rounded(double value, long double wanted, long double doubt, posenc_dtype dtype);

/* Numbers from 0 to limit - 1 that repeat in every run. */
size_t bench_random(uint64_t *state, size_t limit);

#endif
