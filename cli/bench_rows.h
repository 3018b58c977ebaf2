/* Cos and sin rows of consecutive positions, and their check. SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_ROWS_H
#define CLI_BENCH_ROWS_H

#include "posenc/rows.h"

/* Frequencies of base 10000. */
posenc_status bench_frequencies(size_t head_dim, posenc_pairing pairing, posenc_frequencies **made,
                                posenc_error *error);

/* Compares samples of `count` dense rows from position `first` on with cosl and sinl. Returns 1 if they are
 * right; else prints the first wrong one and returns 0. */
int bench_rows_are_right(const posenc_rows *rows, const posenc_frequencies *frequencies,
                         int64_t first, size_t count);

#endif
