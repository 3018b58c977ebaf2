/* Cos and sin rows of consecutive positions, and their check. SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_ROWS_H
#define CLI_BENCH_ROWS_H

#include "posenc/rotate.h"

/* Frequencies of base 10000. */
posenc_status bench_frequencies(size_t head_dim, posenc_pairing pairing, posenc_frequencies **made,
                                posenc_error *error);

/* The position of row `row`: those of a run of `count` positions from `first` on, in steps of `step` around it. */
int64_t bench_position(int64_t first, size_t step, size_t row, size_t count);

/* Compares samples of `count` dense rows at those positions with cosl and sinl. Returns 1 if they are
 * right; else prints the first wrong one and returns 0. */
int bench_rows_are_right(const posenc_rows *rows, const posenc_frequencies *frequencies,
                         int64_t first, size_t step, size_t count);

/* The rotation of `tokens` tokens from position FIRST on, with rows of its own. */
enum { BENCH_FIRST_POSITION = 1000 }; /* at 0 nothing turns, and nothing would be checked */
typedef struct bench_turner {
    posenc_rotation rotation;
    posenc_rows rows;
    posenc_frequencies *frequencies;
    float *memory;
} bench_turner;

/* Fails as posenc does, with OUT_OF_MEMORY too. To be freed in any case. */
posenc_status bench_turner_make(bench_turner *turner, size_t tokens, size_t head_dim,
                                posenc_pairing pairing, posenc_error *error);
void bench_turner_free(bench_turner *turner);

/* Rotates one pair in float32 as posenc/rotate.h says. */
void bench_turn(const bench_turner *turner, size_t token, size_t pair, float *a, float *b);

#endif
