/* posenc/norm_rotate.h - the RMS norm of each head and a scale of each token, in the same pass as the rotation.
 *
 * Models with "q/k norm" divide every head by its root mean square before they rotate it (Qwen3, Gemma 3, OLMo 2
 * with one head) or afterwards (Hunyuan, nanochat; Llama 4 without a weight), and some multiply queries by a
 * number that grows with the position (query_scale.h). Done on their own these steps read and write every head
 * again; here a head is normalised, rotated and scaled while it is in the nearest cache.
 *
 * The norm of a head x of n channels, in float32 (float64 for float64 tensors), every operation rounded, nothing
 * fused:
 *     in lanes i = 0 ... 15 the squares of channels i, i + 16, i + 32 ... are added, in that order;
 *     then lane i + 8 is added to lane i (i < 8), lane i + 4 to lane i (i < 4), i + 2 to i, 1 to 0: the sum;
 *     r = 1 / sqrt(sum / n + epsilon);        y_i = (x_i * r) * w_i
 * where w_i is the weight, or 1 + weight (rounded), or the product is left out. So the bytes are the same on every
 * machine. Rounding to a 16-bit output happens once, at the end: frameworks that round between the steps differ by
 * that. A sum that overflows float32 (numbers beyond 1e18) gives zeros, as it does there.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_NORM_ROTATE_H
#define POSENC_NORM_ROTATE_H

#include "posenc/rotate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum posenc_norm_order {
    POSENC_NORM_BEFORE = 0, /* norm, then rotation */
    POSENC_NORM_AFTER = 1   /* rotation, then norm: of all channels, those that do not turn too */
} posenc_norm_order;

/* The RMS norm of each head. Start from POSENC_NORM_INIT. */
typedef struct posenc_norm {
    size_t size;    /* sizeof(posenc_norm) */
    double epsilon; /* >= 0, finite; models use 1e-5 or 1e-6. Rounded to the computing type. 0 is
                                allowed: a head of zeros becomes NaN then */
    posenc_norm_order order;   /* 0: before */
    const void *weight;        /* head_dim numbers that all heads share; NULL: none */
    posenc_dtype weight_dtype; /* any; 0: float32 */
    int weight_plus_one;       /* 1: the weight is added to 1 (Gemma) */
} posenc_norm;

#define POSENC_NORM_INIT                                                                           \
    { .size = sizeof(posenc_norm) }

/* What is done to heads beside the rotation. Start from POSENC_HEAD_STAGES_INIT. */
typedef struct posenc_head_stages {
    size_t size;             /* sizeof(posenc_head_stages) */
    const posenc_norm *norm; /* NULL: none */
    const void *
        scales; /* multiplies all channels of token t of sequence n, last of all, rounded once more: element
                           n * scales_stride + t. float32, float64 for float64 tensors; NULL: none.
                           posenc_query_scales makes them */
    ptrdiff_t scales_stride; /* in elements, from sequence to sequence; 0: all share one list */
} posenc_head_stages;

#define POSENC_HEAD_STAGES_INIT                                                                    \
    { .size = sizeof(posenc_head_stages) }

/* Norm, rotation and scale of every head in one pass: what posenc_rotate does, with `stages` around it. Where
 * `stages` is NULL or empty the bytes are those of posenc_rotate.
 *
 * `rotation` may be NULL: layers without a rotation (Llama 4's every fourth) are normalised and scaled only.
 * head_dim is at most 2048 (1024 in float64). options.direction must be forward. `weight` and `scales` must not
 * overlap the output. All else, aliasing and errors too, is as for posenc_rotate; channels that do not rotate are
 * normalised and scaled as well, and copied bit for bit if nothing is done to them. */
POSENC_API POSENC_CHECKED posenc_status posenc_norm_rotate(
    const posenc_rotation *rotation, const posenc_head_stages *stages, const posenc_tensor *tensor,
    const void *input, void *output, const posenc_rotate_options *options, posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
