/* posenc/query_scale.h - numbers that multiply queries by their position ("attention temperature").
 *
 * They keep the attention of very long contexts sharp. Each is one number for a token, for all heads and channels;
 * posenc_norm_rotate applies it in the same pass as the rotation (head_stages.scales).
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_QUERY_SCALE_H
#define POSENC_QUERY_SCALE_H

#include "posenc/dtype.h"
#include "posenc/frequencies.h"

#ifdef __cplusplus
extern "C" {
#endif

/* p is the position, a the coefficient, L the length.
 *   floor:   1 + a * ln(1 + floor((p + offset) / L))      Llama 4 (a 0.1, L 8192, offset 1; layers without rotation
 *                                                         only), Ministral 3 and Mistral 4 (offset 0)
 *   smooth:  1 + a * ln(max(1, (p + offset) / L))         Inkling (offset 1)
 *   log_n:   max(1, ln(p + offset) / ln(L))               Qwen's "logn_attn" (offset 1, L the length of training);
 *                                                         Su, "Scaling attention by length", 2021; no coefficient */
typedef enum posenc_query_scale_kind {
    POSENC_QUERY_SCALE_FLOOR = 0,
    POSENC_QUERY_SCALE_SMOOTH = 1,
    POSENC_QUERY_SCALE_LOG_N = 2
} posenc_query_scale_kind;

/* "floor", "smooth" or "log_n"; NULL for other numbers. */
POSENC_API const char *posenc_query_scale_name(posenc_query_scale_kind kind);

/* Start from POSENC_QUERY_SCALE_INIT. */
typedef struct posenc_query_scale {
    size_t size; /* sizeof(posenc_query_scale) */
    posenc_query_scale_kind kind;
    double coefficient; /* a: above 0, at most 1000, required for floor and smooth; 0 for log_n */
    uint64_t length;    /* L: 1 ... 2^40 (log_n: 2 ...); required */
    int64_t offset;     /* 0 or 1; required as the model has it */
} posenc_query_scale;

#define POSENC_QUERY_SCALE_INIT                                                                    \
    { .size = sizeof(posenc_query_scale) }

/* Writes the numbers of `count` positions, 0 ... POSENC_MAX_POSITION, in float32 or float64.
 *
 * In mode exact each is the correctly rounded value of the formula (the coefficient being the double that it parses
 * to). In mode float32 (dtype float32 only) it is formed as transformers forms it: the quotient, its logarithm
 * (correctly rounded), the product and the sum are float32 numbers.
 * Fails with NULL_POINTER or OUT_OF_RANGE, naming the position's index; nothing is written then. The lists must not
 * overlap. Allocates nothing. */
POSENC_API POSENC_CHECKED posenc_status posenc_query_scales(const posenc_query_scale *query_scale,
                                                            const int64_t *positions, size_t count,
                                                            posenc_mode mode, posenc_dtype dtype,
                                                            void *scales, posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
