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
 * POSENC_ROTATION_INIT). It owns nothing; the tables and lists must outlive it.
 *
 * Token t of sequence n turns by row t of the sequence's table, unless rows are chosen:
 *     row_ids:      by row row_ids[n * row_ids_stride + t] (position ids of a table)
 *     row_starts:   by row row_starts[n] + t (how long each sequence's cache is)
 *     cu_seqlens:   the tensor's one batch holds sequences one after another, token cu_seqlens[s] being the
 *                   first of sequence s; by row t - cu_seqlens[s], plus row_starts[s] if that is given too
 */
typedef struct posenc_rotation {
    size_t size;     /* sizeof(posenc_rotation), set by POSENC_ROTATION_INIT */
    const void *cos; /* cos of pair j of row t of sequence n is element
                        n * batch_stride + t * row_stride + j * pair_stride; sin alike */
    const void *sin;
    posenc_dtype dtype; /* float64 for float64 tensors, float32 for all others */
    size_t batch;       /* sequences with tables of their own; 0 or 1: all share one */
    size_t tokens;      /* rows of a table: the tensor's tokens, or any number if rows are chosen */
    ptrdiff_t batch_stride; /* in elements; not used if batch is 0 or 1 */
    ptrdiff_t row_stride;   /* in elements; 0: rotary_dim / 2 * pair_stride */
    ptrdiff_t pair_stride;  /* in elements; 0: 1 */
    size_t rotary_dim;      /* even, 2 ... head_dim */
    size_t rotary_start;    /* rotary_start + rotary_dim <= head_dim */
    posenc_pairing pairing;
    double
        attention_factor; /* what the rows contain: 1e-6 ... 1e6; 0: 1. For POSENC_INVERSE only */
    ptrdiff_t
        second_stride; /* in elements, from cos and sin of a pair's first channel to those of its
                                  second; 0: the same numbers. For full-width tables whose halves
                                  differ: a' = a*c - b*s, b' = b*c2 + a*s2. No rotation then, and
                                  POSENC_INVERSE is refused */
    const int64_t *row_ids;    /* of all tokens of the tensor; NULL: none */
    ptrdiff_t row_ids_stride;  /* in elements, from sequence to sequence; 0: all share one list */
    const int64_t *row_starts; /* one for each sequence; NULL: none */
    const int32_t
        *cu_seqlens; /* sequences + 1 numbers, from 0 up to the tensor's tokens; NULL: none */
    size_t sequences;
} posenc_rotation;

#define POSENC_ROTATION_INIT                                                                       \
    { .size = sizeof(posenc_rotation) }

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

/* How the pairs of the output lie. Multi-head latent attention stores pairs and computes on halves. */
typedef enum posenc_output_pairing {
    POSENC_OUTPUT_SAME = 0, /* as in the input */
    POSENC_OUTPUT_HALF = 1,
    POSENC_OUTPUT_INTERLEAVED = 2
} posenc_output_pairing;

/* Whether stores go through the caches. Streaming is faster where the output is larger than the caches, and
 * halves the speed where it is not; it needs an output and strides that are multiples of 64 bytes, and is
 * left out otherwise. The bytes are the same. */
typedef enum posenc_stores {
    POSENC_STORES_AUTO = 0, /* streaming out of place from 16 MiB of output on */
    POSENC_STORES_CACHED = 1,
    POSENC_STORES_STREAMING = 2
} posenc_stores;

/* Options of posenc_rotate; NULL or zeros are the defaults. */
typedef struct posenc_rotate_options {
    size_t size;                /* sizeof(posenc_rotate_options) */
    posenc_direction direction; /* 0: forward */
    const posenc_tensor
        *output; /* of the output; NULL: as the input. Its shape must equal the input's,
                                    strides and dtype may differ. Computed is in float64 for a float64
                                    input, else in float32 */
    posenc_output_pairing output_pairing;
    size_t
        first_token; /* the tokens to rotate, of every sequence, so that a pool of threads can split
                           one call into ranges */
    size_t token_count; /* 0: all from first_token on. A pool must not hand out empty ranges */
    posenc_stores stores;
} posenc_rotate_options;

#define POSENC_ROTATE_OPTIONS_INIT                                                                 \
    { .size = sizeof(posenc_rotate_options) }

/* Rotates `input`, described by `tensor`, into `output`. Channels outside rotary_start ...
 * rotary_start + rotary_dim - 1 are copied bit for bit (converted where the dtypes differ).
 *
 * Aliasing: output may be input with the same strides and dtype (in place; with another
 * output_pairing only for slices of at most 16 KiB). Otherwise no element of the
 * output may be one of the input; views that interleave in memory without sharing elements (q, k
 * and v in one packed array) are accepted where that can be proved from the strides. Strides that
 * write an element twice are refused. cos and sin must not overlap the output. All is checked
 * before anything is written, whatever the range of tokens. Fails with NULL_POINTER, OUT_OF_RANGE,
 * OVERFLOW, OVERLAP or UNSUPPORTED; a row that a list chooses outside its table is named with its
 * index. Any size may be 0: nothing is done then. Allocates nothing; threads may work on
 * disjoint token ranges of one tensor. */
POSENC_API POSENC_CHECKED posenc_status posenc_rotate(const posenc_rotation *rotation,
                                                      const posenc_tensor *tensor,
                                                      const void *input, void *output,
                                                      const posenc_rotate_options *options,
                                                      posenc_error *error);

/* One of the tensors of posenc_rotate_all. */
typedef struct posenc_rotate_item {
    const posenc_tensor *tensor;
    const void *input;
    void *output;
    const posenc_tensor *output_tensor; /* NULL: options.output, or as the input */
} posenc_rotate_item;

/* Rotates several tensors by the same rotation: queries and keys, whose numbers of heads differ. All of them are
 * checked, and that no output shares an element with another item's input or output, before anything is
 * written; an error's place is the item, in the stead of an index within it. `count` is at most 8. */
POSENC_API POSENC_CHECKED posenc_status posenc_rotate_all(const posenc_rotation *rotation,
                                                          const posenc_rotate_item *items,
                                                          size_t count,
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
