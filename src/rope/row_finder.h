/* Which row of its table a token turns by. SPDX-License-Identifier: MIT */
#ifndef PENC_ROW_FINDER_H
#define PENC_ROW_FINDER_H

#include "posenc/rotate.h"

/* Of one call: tokens of ragged sequences are asked for in rising order. */
typedef struct penc_row_finder {
    const posenc_rotation *rotation;
    size_t sequence; /* 0 at first */
} penc_row_finder;

static inline ptrdiff_t penc_row_of(penc_row_finder *finder, size_t batch, size_t token) {
    const posenc_rotation *rotation = finder->rotation;
    if (rotation->row_ids)
        return (ptrdiff_t)
            rotation->row_ids[(ptrdiff_t)batch * rotation->row_ids_stride + (ptrdiff_t)token];
    if (rotation->cu_seqlens) {
        while (token >= (size_t)rotation->cu_seqlens[finder->sequence + 1])
            finder->sequence++;
        ptrdiff_t start =
            rotation->row_starts ? (ptrdiff_t)rotation->row_starts[finder->sequence] : 0;
        return start + (ptrdiff_t)token - rotation->cu_seqlens[finder->sequence];
    }
    return (rotation->row_starts ? (ptrdiff_t)rotation->row_starts[batch] : 0) + (ptrdiff_t)token;
}

/* The same in elements from cos and sin. */
static inline ptrdiff_t penc_row_place(penc_row_finder *finder, size_t batch, size_t token) {
    const posenc_rotation *rotation = finder->rotation;
    ptrdiff_t table = rotation->batch > 1 ? (ptrdiff_t)batch * rotation->batch_stride : 0;
    return table + penc_row_of(finder, batch, token) * rotation->row_stride;
}

/* How many tokens from `token` on, `most` at most, turn by rows that follow one another; the first of them. */
static inline size_t penc_row_run(penc_row_finder *finder, size_t batch, size_t token, size_t most,
                                  ptrdiff_t *row) {
    size_t run = 1;
    *row = penc_row_place(finder, batch, token);
    while (run < most && penc_row_place(finder, batch, token + run) ==
                             *row + (ptrdiff_t)run * finder->rotation->row_stride)
        run++;
    return run;
}

#endif
