/* posenc/rows.h - cos and sin rows of a list of positions.
 *
 * A row holds cos and sin of every pair at one position. It is computed once a forward pass into
 * the caller's memory and then serves every layer and head. A row has the same bytes whether it is
 * computed alone or among others, in any order, on any machine.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_ROWS_H
#define POSENC_ROWS_H

#include "posenc/dtype.h"
#include "posenc/frequencies.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Positions run from -POSENC_MAX_POSITION to POSENC_MAX_POSITION. */
#define POSENC_MAX_POSITION ((int64_t)1 << 40)

/* How the numbers of one row lie in memory, for P pairs.
 *   half:             cos: P, sin: P                                       (flash-attention, ONNX)
 *   full_half:        cos: c0 .. cP-1 c0 .. cP-1, sin alike; 2P each       (Hugging Face)
 *   full_interleaved: cos: c0 c0 c1 c1 ..., sin alike; 2P each             (GPT-J, diffusers)
 *   cos_sin:          one row of 2P: c0 .. cP-1 s0 .. sP-1; sin is NULL    (vLLM, SGLang)
 *   pairs:            one row of 2P: c0 s0 c1 s1 ...; sin is NULL          (TensorRT-LLM) */
typedef enum posenc_row_layout {
    POSENC_ROWS_HALF = 0,
    POSENC_ROWS_FULL_HALF = 1,
    POSENC_ROWS_FULL_INTERLEAVED = 2,
    POSENC_ROWS_COS_SIN = 3,
    POSENC_ROWS_PAIRS = 4
} posenc_row_layout;

/* Elements of one row in `cos`: pairs or 2 * pairs; 0 for a number that is no layout. */
POSENC_API size_t posenc_row_width(posenc_row_layout layout, size_t pairs);

/* Where rows go. Start from POSENC_ROWS_INIT. */
typedef struct posenc_rows {
    size_t size;        /* sizeof(posenc_rows), set by POSENC_ROWS_INIT */
    void *cos;          /* the caller's memory */
    void *sin;          /* NULL in the layouts that keep sin beside cos */
    posenc_dtype dtype; /* 0: float32 */
    posenc_row_layout layout;
    ptrdiff_t row_stride;  /* elements from one row to the next; 0: the row's width */
    posenc_mode mode;      /* 0: exact */
    ptrdiff_t axis_stride; /* of positions: from one axis to the next; 0: count */
    int without_attention; /* 1: leave the attention factor out, to turn again what contains it:
                               shifts of cached keys */
} posenc_rows;

#define POSENC_ROWS_INIT                                                                           \
    { sizeof(posenc_rows), NULL, NULL, POSENC_F32, POSENC_ROWS_HALF, 0, POSENC_MODE_EXACT, 0, 0 }

/* Writes the rows of `count` tokens, token i into row i, attention factor included unless the rows are
 * without_attention.
 *
 * With one axis positions[i] is token i's position; with several, that of axis a is
 * positions[a * axis_stride + i]. Text under M-RoPE has the same number on every axis.
 *
 * In mode exact a float32, float16 or bfloat16 number is the correctly rounded real value; a float64
 * one is within 1 ulp plus 2^-75 while the angle stays below 2^48 radians, which every base from 1 on
 * ensures (correctly rounded where there is an attention factor). In mode
 * float32 the dtype must be float32 or narrower (OUT_OF_RANGE otherwise); 16-bit numbers are rounded
 * from the float32 one. Positions must be within +-POSENC_MAX_POSITION: all are checked before anything
 * is written. `positions`, cos and sin must not overlap one another. Allocates nothing; any number of
 * threads may call it on disjoint rows with the same frequencies.
 *
 * The contracts, which tests/test_contracts.c reads: the largest error as a share of the bound was found at
 * that base, head_dim, pair and position.
 * contract: posenc_angles.narrow ulp=0.5 absolute=0x1p-78 interval=0:0x1p40
 *   witness=100,128,7,9339897 worst=1.000000
 * contract: posenc_angles.float64 ulp=1 absolute=0x1p-75 interval=0:0x1p40
 *   witness=1000000,128,25,174658474 worst=0.809398 */
POSENC_API POSENC_CHECKED posenc_status posenc_angles(const posenc_frequencies *frequencies,
                                                      const int64_t *positions, size_t count,
                                                      const posenc_rows *rows, posenc_error *error);

/* The same for positions in int32 (never out of range). */
POSENC_API POSENC_CHECKED posenc_status posenc_angles_int32(const posenc_frequencies *frequencies,
                                                            const int32_t *positions, size_t count,
                                                            const posenc_rows *rows,
                                                            posenc_error *error);

/* The same for real positions: coordinates of images, seconds, timesteps. In mode exact they are taken
 * as the float64 numbers they are, in mode float32 they are rounded to float32 first. */
POSENC_API POSENC_CHECKED posenc_status posenc_angles_real(const posenc_frequencies *frequencies,
                                                           const double *positions, size_t count,
                                                           const posenc_rows *rows,
                                                           posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
