/* posenc/axes.h - several positions for one token: M-RoPE, 2-D images, video.
 *
 * A token has one position number per axis, and every pair of channels follows one axis: its angle is
 * position[axis of the pair] * frequency of the pair. Plain RoPE is the case of one axis.
 *
 *   model                                       axes     order         exponents
 *   Qwen2-VL, Qwen2.5-VL, GLM-4V, HunyuanVL      t,h,w    chunked       whole
 *   Qwen3-VL, Qwen3.5                            t,h,w    interleaved   whole
 *   ERNIE-4.5-VL                                 t,h,w    ernie         whole
 *   Flux, Wan, HunyuanVideo, CogVideoX           t,h,w    chunked       own
 *   Qwen2-VL vision, EVA, rope-ViT axial         h,w      chunked       own
 *   Llama 4 vision                               x,y      alternating   own
 *   Pixtral                                      h,w      chunked       strided
 *
 * The order of axes is not the pairing of channels: both are called "interleaved" by some models.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_AXES_H
#define POSENC_AXES_H

#include "posenc/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define POSENC_MAX_AXES 8

/* Which axis pair j follows; S_a = sections[a], counted in pairs.
 *   chunked:     the first S_0 pairs follow axis 0, the next S_1 axis 1, ...
 *   interleaved: axis a > 0 if j mod A = a and j < A * S_a, else axis 0 (A axes)
 *   alternating: axis j mod A; sections are not used
 *   ernie:       sections are those of h, w, t: the first S_0 + S_1 pairs alternate between axes 1 and 2,
 *                the rest follows axis 0; needs S_0 = S_1
 *   listed:      axis pair_axis[j] */
typedef enum posenc_axis_order {
    POSENC_AXES_CHUNKED = 0,
    POSENC_AXES_INTERLEAVED = 1,
    POSENC_AXES_ALTERNATING = 2,
    POSENC_AXES_ERNIE = 3,
    POSENC_AXES_LISTED = 4
} posenc_axis_order;

/* The exponent -2k/w of a pair's frequency, d = rotary_dim.
 *   whole:   k = j, w = d, whatever axis the pair follows
 *   own:     k counts the pairs of the same axis before it, w is twice their number: each axis has a ladder
 *            of its own
 *   strided: k = i * A + a for the i-th pair of axis a, w = d */
typedef enum posenc_axis_exponents {
    POSENC_EXPONENTS_WHOLE = 0,
    POSENC_EXPONENTS_OWN = 1,
    POSENC_EXPONENTS_STRIDED = 2
} posenc_axis_exponents;

/* Start from POSENC_AXES_INIT. */
typedef struct posenc_axes {
    size_t size;                      /* sizeof(posenc_axes) */
    size_t count;                     /* axes, 1 ... POSENC_MAX_AXES; required */
    posenc_axis_order order;          /* 0: chunked */
    posenc_axis_exponents exponents;  /* 0: whole; the others go with the scalings default, linear
                                             and custom only */
    size_t sections[POSENC_MAX_AXES]; /* pairs of each axis; their sum must be rotary_dim / 2 */
    const unsigned char *pair_axis; /* listed: rotary_dim / 2 axis numbers; read during creation */
} posenc_axes;

#define POSENC_AXES_INIT                                                                           \
    { .size = sizeof(posenc_axes) }

#ifdef __cplusplus
}
#endif
#endif
