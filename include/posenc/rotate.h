/* posenc/rotate.h - rotating queries and keys by cos and sin rows (RoPE).
 *
 * For each pair of channels (a, b) of each head, with the cos c and sin s of its token's position:
 *     forward:            a' = a*c - b*s    b' = a*s + b*c
 *     backward:           a' = a*c + b*s    b' = b*c - a*s         (the transpose)
 *     inverse:            the same, times 1/m^2 where the rows contain an attention factor m
 * Every product and sum is rounded in the computing type (float64 for float64 tensors, float32 for
 * all others), nothing is fused, 16-bit results are rounded once at the end: the same inputs give
 * the same bytes on every machine, whatever the strides. Queries and keys are rotated, values are
 * not.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_ROTATE_H
#define POSENC_ROTATE_H

#include "posenc/dtype.h"
#include "posenc/frequencies.h"
#include "posenc/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The axes of a posenc_tensor, in this order whatever the order in memory. */
enum {
    POSENC_AXIS_BATCH = 0,
    POSENC_AXIS_TOKENS = 1,
    POSENC_AXIS_HEADS = 2,
    POSENC_AXIS_HEAD_DIM = 3,
    POSENC_AXES = 4
};

/* Shape and strides of a tensor in memory; the pointer is passed beside it, so that one description
 * serves every layer. A stride is in elements and may be negative; that of an axis of size 1 is not
 * used. Stride 0 repeats data and may be read, never written. */
typedef struct posenc_tensor {
    size_t size; /* sizeof(posenc_tensor), set by posenc_tensor_dense */
    posenc_dtype dtype;
    size_t shape[POSENC_AXES];
    ptrdiff_t strides[POSENC_AXES];
} posenc_tensor;

/* A dense tensor in the order batch, tokens, heads, head_dim (BSHD), head_dim fastest. For other
 * orders change the strides; for (batch, heads, tokens, head_dim): strides[TOKENS] = head_dim,
 * strides[HEADS] = tokens * head_dim. Checks nothing: functions that take a tensor do. */
POSENC_API posenc_tensor posenc_tensor_dense(posenc_dtype dtype, size_t batch, size_t tokens,
                                             size_t heads, size_t head_dim);

/* The cos and sin rows of the tokens at hand and which channels they turn. Plain: made by
 * posenc_rotation_of, or filled by a caller who brings tables of its own (start from
 * POSENC_ROTATION_INIT). It owns nothing; the tables must outlive it. */
typedef struct posenc_rotation {
    size_t size;     /* sizeof(posenc_rotation), set by POSENC_ROTATION_INIT */
    const void *cos; /* cos of pair j of token t of sequence n is element
                        n * batch_stride + t * row_stride + j * pair_stride; sin alike */
    const void *sin;
    posenc_dtype dtype;     /* float64 for float64 tensors, float32 for all others */
    size_t batch;           /* sequences with rows of their own; 0 or 1: all share the same rows */
    size_t tokens;          /* rows of a sequence: the tensor's tokens */
    ptrdiff_t batch_stride; /* in elements; not used if batch is 0 or 1 */
    ptrdiff_t row_stride;   /* in elements; 0: rotary_dim / 2 * pair_stride */
    ptrdiff_t pair_stride;  /* in elements; 0: 1 */
    size_t rotary_dim;      /* even, 2 ... head_dim */
    size_t rotary_start;    /* rotary_start + rotary_dim <= head_dim */
    posenc_pairing pairing;
    double
        attention_factor; /* what the rows contain: 1e-6 ... 1e6; 0: 1. For POSENC_INVERSE only */
} posenc_rotation;

#define POSENC_ROTATION_INIT                                                                       \
    {                                                                                              \
        sizeof(posenc_rotation), NULL, NULL, POSENC_F32, 0, 0, 0, 0, 0, 0, 0, POSENC_PAIRING_HALF, \
            0.0                                                                                    \
    }

/* The rotation of `tokens` rows that posenc_angles wrote (or will write) to `rows`, for the pairing
 * and the channels of `frequencies`; every sequence of a batch shares them. For a batch with
 * positions of its own compute batch * tokens rows and set `batch` and `batch_stride` afterwards.
 * Fails with NULL_POINTER, OUT_OF_RANGE or UNSUPPORTED (16-bit rows cannot rotate yet). */
POSENC_API POSENC_CHECKED posenc_status posenc_rotation_of(const posenc_frequencies *frequencies,
                                                           const posenc_rows *rows, size_t tokens,
                                                           posenc_rotation *rotation,
                                                           posenc_error *error);

typedef enum posenc_direction {
    POSENC_FORWARD = 0,
    POSENC_INVERSE = 1, /* undoes FORWARD */
    POSENC_BACKWARD = 2 /* the transpose: the gradient with respect to the input */
} posenc_direction;

/* Options of posenc_rotate; NULL or zeros are the defaults. */
typedef struct posenc_rotate_options {
    size_t size;                 /* sizeof(posenc_rotate_options) */
    posenc_direction direction;  /* 0: forward */
    const posenc_tensor *output; /* shape and strides of the output; NULL: those of the input. Shape
                                    and dtype must equal the input's, strides may differ */
} posenc_rotate_options;

#define POSENC_ROTATE_OPTIONS_INIT                                                                 \
    { sizeof(posenc_rotate_options), POSENC_FORWARD, NULL }

/* Rotates `input`, described by `tensor`, into `output`. Channels outside rotary_start ...
 * rotary_start + rotary_dim - 1 are copied bit for bit. Query and key heads may differ in number:
 * call it once for each with the same rotation.
 *
 * Aliasing: output may be input with the same strides (in place). Otherwise no element of the
 * output may be one of the input; views that interleave in memory without sharing elements (q, k
 * and v in one packed array) are accepted where that can be proved from the strides. Strides that
 * write an element twice are refused. cos and sin must not overlap the output. All is checked
 * before anything is written. Fails with NULL_POINTER, OUT_OF_RANGE, OVERFLOW, OVERLAP or
 * UNSUPPORTED. Any size may be 0: nothing is done then. Allocates nothing; threads may work on
 * disjoint token ranges of one tensor. */
POSENC_API POSENC_CHECKED posenc_status posenc_rotate(const posenc_rotation *rotation,
                                                      const posenc_tensor *tensor,
                                                      const void *input, void *output,
                                                      const posenc_rotate_options *options,
                                                      posenc_error *error);

/* Row primitives, for engines that want nothing else: one head of one token, in plain pointers. x
 * and y are rotary_dim contiguous numbers (y may be x, else they must not overlap), cos and sin
 * rotary_dim/2. Nothing is checked; rotary_dim must be even. The inverse is the same call with
 * every sin negated. */
POSENC_API void posenc_rotate_row_half_f32(const float *x, const float *cos, const float *sin,
                                           size_t rotary_dim, float *y);
POSENC_API void posenc_rotate_row_half_f64(const double *x, const double *cos, const double *sin,
                                           size_t rotary_dim, double *y);
POSENC_API void posenc_rotate_row_interleaved_f32(const float *x, const float *cos,
                                                  const float *sin, size_t rotary_dim, float *y);
POSENC_API void posenc_rotate_row_interleaved_f64(const double *x, const double *cos,
                                                  const double *sin, size_t rotary_dim, double *y);

#ifdef __cplusplus
}
#endif
#endif
