/* What a checked call for rows has to write: positions, values and where they go.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_ROW_JOB_H
#define PENC_ROW_JOB_H

#include "angles/sincos.h"
#include "posenc/rows.h"

/* The caller's positions, of one of three types. */
typedef enum penc_position_kind { PENC_INT64, PENC_INT32, PENC_REAL } penc_position_kind;

typedef struct penc_positions {
    const void *numbers;
    penc_position_kind kind;
    size_t bytes; /* of one number */
    size_t count, axes;
    ptrdiff_t axis_stride;
} penc_positions;

static inline double penc_position_number(const penc_positions *positions, ptrdiff_t index) {
    switch (positions->kind) {
    case PENC_INT64:
        return (double)((const int64_t *)positions->numbers)[index]; /* exact: below 2^53 */
    case PENC_INT32:
        return (double)((const int32_t *)positions->numbers)[index];
    case PENC_REAL:
        break;
    }
    return ((const double *)positions->numbers)[index];
}

typedef struct penc_row_job {
    const posenc_frequencies *frequencies;
    const penc_positions *positions;
    const posenc_rows *rows;
    ptrdiff_t stride; /* elements from row to row */
} penc_row_job;

/* Where pair j of a row goes: cos to element j * step and, if copy is not 0, again copy elements
 * later; sin alike, from its own pointer or `sin_offset` elements behind cos. */
typedef struct penc_row_shape {
    size_t step, copy, sin_offset;
} penc_row_shape;

penc_row_shape penc_row_shape_of(posenc_row_layout layout, size_t pairs);

/* The position of a pair's axis. */
double penc_pair_position(const penc_row_job *job, size_t token, size_t pair);

/* cos and sin of one pair by the slow clear way, rounded once to `dtype`: in mode exact times the attention
 * factor, in mode float32 of the float32 angle and without it. */
penc_sincos penc_angle_value(const penc_row_job *job, size_t token, size_t pair,
                             posenc_dtype dtype);

/* The number that mode float32 multiplies cos and sin by; 1 in mode exact. */
float penc_row_factor(const penc_row_job *job);

/* Stores one pair of a row. */
void penc_store_pair(const penc_row_job *job, size_t token, size_t pair, penc_sincos value);

#endif
