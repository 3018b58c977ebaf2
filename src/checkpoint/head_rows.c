/* Where the rotary rows of heads lie, and how they are reordered. SPDX-License-Identifier: MIT */
#include "checkpoint/head_rows.h"

/* `heads` heads of `head_rows` rows each, one after the other from row `first` on. */
static penc_head_rows penc_heads_in_a_row(const posenc_attention_shape *shape, uint64_t first,
                                          size_t heads, uint64_t head_rows) {
    return (penc_head_rows){.first = first + shape->rotary_start,
                            .group_rows = heads * head_rows,
                            .head_rows = head_rows,
                            .heads = heads,
                            .group = heads,
                            .rotary_dim = shape->rotary_dim};
}

/* MLA's k: the last rows. */
static int penc_heads_latent_k(const posenc_attention_shape *shape, uint64_t rows,
                               penc_head_rows *heads, uint64_t *wanted) {
    *wanted = shape->rotary_dim + 1;
    if (rows < *wanted)
        return 0;
    *heads = (penc_head_rows){.first = rows - shape->rotary_dim,
                              .group_rows = shape->rotary_dim,
                              .head_rows = shape->rotary_dim,
                              .heads = 1,
                              .group = 1,
                              .rotary_dim = shape->rotary_dim};
    return 1;
}

static void penc_heads_grouped(const posenc_attention_shape *shape, int side,
                               penc_head_rows *heads) {
    size_t group = shape->heads / shape->kv_heads;
    uint64_t first = side == PENC_SIDE_K ? (uint64_t)group * shape->head_dim : 0;
    *heads = penc_heads_in_a_row(shape, first, side == PENC_SIDE_K ? shape->kv_heads : shape->heads,
                                 shape->head_dim);
    heads->group = side == PENC_SIDE_K ? 1 : group;
    heads->group_rows = (uint64_t)(group + 2) * shape->head_dim;
}

int penc_head_rows_fill(penc_attention_layout layout, const posenc_attention_shape *shape, int side,
                        uint64_t rows, penc_head_rows *heads, uint64_t *wanted) {
    size_t count = side == PENC_SIDE_K ? shape->kv_heads : shape->heads;
    uint64_t head_dim = shape->head_dim;
    *wanted = count * head_dim;
    switch (layout) {
    case PENC_LATENT:
        if (side == PENC_SIDE_K)
            return penc_heads_latent_k(shape, rows, heads, wanted);
        *heads = penc_heads_in_a_row(shape, 0, count, head_dim);
        break;
    case PENC_JOINED:
        *wanted = (shape->heads + 2 * shape->kv_heads) * head_dim;
        *heads = penc_heads_in_a_row(shape, side == PENC_SIDE_K ? shape->heads * head_dim : 0,
                                     count, head_dim);
        break;
    case PENC_GROUPED:
        *wanted = (shape->heads + 2 * shape->kv_heads) * head_dim;
        penc_heads_grouped(shape, side, heads);
        break;
    case PENC_SEPARATE:
    default:
        if (side == PENC_SIDE_Q &&
            rows == 2 * *wanted) { /* every head, then its gate (Qwen3-Next) */
            head_dim *= 2;
            *wanted = rows;
        }
        *heads = penc_heads_in_a_row(shape, 0, count, head_dim);
        break;
    }
    return rows == *wanted;
}

int penc_head_rows_fill_gains(penc_attention_layout layout, const posenc_attention_shape *shape,
                              int side, uint64_t count, penc_head_rows *heads) {
    size_t all = side == PENC_SIDE_K ? shape->kv_heads : shape->heads;
    uint64_t head_dim = shape->head_dim;
    if (layout == PENC_LATENT && side == PENC_SIDE_K)
        return 0; /* its norm is that of the compressed part */
    if (count != head_dim && count != all * head_dim)
        return 0;
    *heads = penc_heads_in_a_row(shape, 0, count == head_dim ? 1 : all, head_dim);
    return 1;
}

/* Where channel `j` of `dim` rotary channels comes from. */
static uint64_t penc_channel_source(uint64_t j, uint64_t dim, posenc_pairing to) {
    if (to == POSENC_PAIRING_INTERLEAVED)
        return j / 2 + j % 2 * (dim / 2);
    return j < dim / 2 ? 2 * j : 2 * (j - dim / 2) + 1;
}

uint64_t penc_row_source(const penc_row_order *order, uint64_t row) {
    for (size_t i = 0; i < order->side_count; i++) {
        const penc_head_rows *side = &order->sides[i];
        if (row < side->first)
            continue;
        uint64_t at = row - side->first, group = at / side->group_rows;
        uint64_t within = at % side->group_rows, channel = within % side->head_rows;
        if (group >= side->heads / side->group || within / side->head_rows >= side->group ||
            channel >= side->rotary_dim)
            continue;
        return row - channel + penc_channel_source(channel, side->rotary_dim, order->to);
    }
    return row;
}
