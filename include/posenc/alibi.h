/* posenc/alibi.h - ALiBi: attention with linear biases.
 *
 * Head h subtracts slope_h * distance from the attention score of every query and key. Scores are
 * biased after they have been scaled by 1/sqrt(head_dim); nothing is added to embeddings or
 * rotated.
 * Source: Press, Smith, Lewis, "Train Short, Test Long", arXiv:2108.12409.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_ALIBI_H
#define POSENC_ALIBI_H

#include "posenc/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Two rules are in use. They agree where the head count H is a power of two and nowhere else: at 6
 * heads the first slope is 0.25 by the paper and 0.397 by the plain rule.
 *   paper: with c the largest power of two <= H: 2^(-max_bias (h+1)/c) for h < c, then
 *          2^(-max_bias/2 (2(h-c)+1)/c). Hugging Face, MPT, ggml, flash-attention. Not monotone.
 *   plain: 2^(-max_bias (h+1)/H). Teaching code; MLX before 2026. */
typedef enum posenc_slopes { POSENC_SLOPES_PAPER = 0, POSENC_SLOPES_PLAIN = 1 } posenc_slopes;

typedef enum posenc_bias_mask {
    POSENC_BIAS_CAUSAL = 0,   /* keys after the query get -infinity */
    POSENC_BIAS_SYMMETRIC = 1 /* -slope * |query - key| both ways (JINA-BERT, encoders) */
} posenc_bias_mask;

/* Head counts above this are refused. */
#define POSENC_MAX_HEADS ((size_t)1 << 20)

/* Start from POSENC_ALIBI_INIT; a member that is 0 takes its default. */
typedef struct posenc_alibi_spec {
    size_t size;          /* sizeof(posenc_alibi_spec) */
    size_t heads;         /* heads of the whole model, 1 ... POSENC_MAX_HEADS; required */
    posenc_slopes slopes; /* 0: paper */
    double max_bias;      /* finite, above 0, at most 1024; 0: 8 */
} posenc_alibi_spec;

#define POSENC_ALIBI_INIT                                                                          \
    { sizeof(posenc_alibi_spec), 0, POSENC_SLOPES_PAPER, 0.0 }

/* Writes the slopes of heads first_head ... first_head + count - 1 (those of one tensor-parallel
 * rank, or all: 0, heads), correctly rounded. */
POSENC_API POSENC_CHECKED posenc_status posenc_alibi_slopes(const posenc_alibi_spec *spec,
                                                            size_t first_head, size_t count,
                                                            double *slopes, posenc_error *error);

/* A tile of the bias [heads][queries][keys] of some heads. Start from POSENC_BIAS_TILE_INIT.
 * Query i of the tile stands at key position query_offset + i, counted from the tile's first key;
 * for tiles that begin at another key than the first subtract that key's index from query_offset.
 */
typedef struct posenc_bias_tile {
    size_t size;           /* sizeof(posenc_bias_tile) */
    posenc_dtype dtype;    /* 0: float32 */
    posenc_bias_mask mask; /* 0: causal */
    size_t first_head;     /* the tile's first head */
    size_t heads;          /* heads in the tile; 0: all from first_head on */
    size_t queries, keys;
    int has_query_offset; /* 0: query_offset is keys - queries: the last query sees the last key, */
    int64_t
        query_offset; /*    as in decoding with a cache; 1: query_offset is used, |it| <= 2^40 */
    ptrdiff_t head_stride;  /* in elements; 0: queries * query_stride */
    ptrdiff_t query_stride; /* in elements; 0: keys. Keys are contiguous. */
    int add;                /* 1: add to what stands in the tile (rounded once); 0: write */
    const double *
        slopes; /* one for each head of the tile, finite and not negative, not overlapping the bias:
                               what posenc_alibi_slopes gave once (about 2 microseconds a slope), or slopes of
                               your own; NULL: made here by the spec's rule */
} posenc_bias_tile;

#define POSENC_BIAS_TILE_INIT                                                                      \
    { sizeof(posenc_bias_tile), POSENC_F32, POSENC_BIAS_CAUSAL, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL }

/* Writes or adds the bias of `tile` to `bias`. The value is -(slope * distance): for float64 tiles in
 * float64; for others the slope and the distance are rounded to float32, the product too, and 16-bit
 * tiles are rounded once from that (from the float32 sum where the bias is added). Distance 0 gives +0.
 * Where a causal bias is added, masked elements become -infinity, whatever they were (NaN stays NaN).
 * Fails with NULL_POINTER, OUT_OF_RANGE, OVERFLOW or OVERLAP (strides that write an element twice); all
 * is checked before anything is written. Allocates nothing; threads may work on disjoint tiles. */
POSENC_API POSENC_CHECKED posenc_status posenc_alibi_bias(const posenc_alibi_spec *spec,
                                                          const posenc_bias_tile *tile, void *bias,
                                                          posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
