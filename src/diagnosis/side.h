/* The sides of a comparison. SPDX-License-Identifier: MIT */
#ifndef PENC_SIDE_H
#define PENC_SIDE_H

#include "diagnosis/dump.h"
#include "posenc/compare.h"
#include "posenc/rope_parameters.h"

struct posenc_side {
    posenc_frequencies *frequencies; /* NULL: a table */
    posenc_spec spec;      /* of a dumped list of frequencies: head_dim is twice its length */
    posenc_scaling custom; /* of such a list */
    posenc_axes axes;      /* of JSON */
    posenc_rope_parameters *parameters;
    uint64_t seq_len;
    posenc_mode mode;
    int is_dump;
    penc_dump dump;
};

/* 1 if a table tells the rows: only positions that it has can be compared. */
static inline int penc_side_is_table(const posenc_side *side) {
    return !side->frequencies;
}

/* What is compared: see posenc_compare. */
typedef struct penc_compared {
    const int64_t *positions;
    ptrdiff_t axis_stride;
    size_t count;
} penc_compared;

/* cos and sin of these tokens. `pairs`: what the other side has; 0: not known. */
posenc_status penc_side_table(const posenc_side *side, const penc_compared *compared, size_t pairs,
                              penc_table *table, posenc_error *error);

#endif
