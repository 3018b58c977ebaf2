/* cos and sin of some pairs, to where the dtype and layout of a row want them.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_ROW_SPREAD_H
#define PENC_ROW_SPREAD_H

#include "angles/row_job.h"

enum { PENC_SPREAD_PAIRS = 64 }; /* that one call takes at most */

/* Stores cos and sin of `pairs` pairs from `pair` on of token's row. `cos` and `sin` may be where the row wants
 * them already. In mode exact they are correctly rounded to float32 and are rounded on to a 16-bit dtype, but for
 * those in the middle between two of its numbers, which are computed again. */
void penc_spread_pairs(const penc_row_job *job, size_t token, size_t pair, size_t pairs,
                       const float *cos, const float *sin);

/* The same of float64 numbers for float64 rows. */
void penc_spread_doubles(const penc_row_job *job, size_t token, size_t pair, size_t pairs,
                         const double *cos, const double *sin);

#endif
