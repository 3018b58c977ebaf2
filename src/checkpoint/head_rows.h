/* Where the rotary rows of heads lie among the rows of a projection, and how a change of pairing reorders them: pure
 * arithmetic on row indices. SPDX-License-Identifier: MIT */
#ifndef PENC_HEAD_ROWS_H
#define PENC_HEAD_ROWS_H

#include "posenc/checkpoint.h"
#include "posenc/frequencies.h"

/* How q and k lie in their tensors. */
typedef enum penc_attention_layout {
    PENC_SEPARATE, /* a tensor each; q may have a gate beside every head: twice the rows */
    PENC_JOINED,   /* one tensor: all of q, all of k, all of v */
    PENC_GROUPED, /* one tensor: for every k head its q heads, itself, its v head (with one q head to each k head:
                      q, k, v of head 0, of head 1 ...) */
    PENC_LATENT /* MLA: q of its own; the rotary rows of k, one head for all, are the last of their tensor */
} penc_attention_layout;

enum { PENC_SIDE_Q = 0, PENC_SIDE_K = 1 };

/* The rotary rows of one side's heads: those of head h are `rotary_dim` from row
 * first + h / group * group_rows + h % group * head_rows on. */
typedef struct penc_head_rows {
    uint64_t first, group_rows, head_rows;
    size_t heads, group;
    size_t rotary_dim;
} penc_head_rows;

static inline uint64_t penc_head_rows_of(const penc_head_rows *side, size_t head) {
    return side->first + head / side->group * side->group_rows +
           head % side->group * side->head_rows;
}

/* Fills a side's rows of a projection whose tensor has `rows` rows; *wanted becomes how many rows it should have
 * (with MLA's k: more than its rotary rows). Returns whether it has. `shape` is full. */
int penc_head_rows_fill(penc_attention_layout layout, const posenc_attention_shape *shape, int side,
                        uint64_t rows, penc_head_rows *heads, uint64_t *wanted);

/* The same for norm gains: `count` elements, of one head or of all heads of the side. */
int penc_head_rows_fill_gains(penc_attention_layout layout, const posenc_attention_shape *shape,
                              int side, uint64_t count, penc_head_rows *heads);

/* A reordering of the rows of one tensor. Biases, scales of rows and LoRA's B have the rows of their projection. */
typedef struct penc_row_order {
    penc_head_rows sides[2]; /* one, or both where the tensor is fused */
    size_t side_count;
    posenc_pairing to; /* from the other one */
} penc_row_order;

/* Which row of the old tensor becomes row `row` of the new one. Rows that are not rotary stay. */
uint64_t penc_row_source(const penc_row_order *order, uint64_t row);

#endif
