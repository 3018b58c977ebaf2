/* Exact float32 rows by vector kernels. SPDX-License-Identifier: MIT */
#ifndef PENC_FAST_ROWS_H
#define PENC_FAST_ROWS_H

#include "frequencies/frequencies_object.h"

/* Where float32 rows go, half-width: cos and sin of pair j of row i at element i * stride + j; with the
 * attention factor if `attention` is 1. */
typedef struct penc_fast_target {
    float *cos, *sin;
    ptrdiff_t stride;
    int attention;
} penc_fast_target;

/* 1 if fast rows serve this position. */
int penc_fast_serves(int64_t position);

/* The row of one position. */
void penc_fast_row(const posenc_frequencies *frequencies, int64_t position,
                   penc_fast_target target);

/* The rows of first, first + 1, ...; all of them served, first >= 0. */
void penc_fast_run(const posenc_frequencies *frequencies, int64_t first, size_t count,
                   penc_fast_target target);

#endif
