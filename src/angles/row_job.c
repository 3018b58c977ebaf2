/* One pair of a row: its value by the slow clear way, and its place. SPDX-License-Identifier: MIT */
#include "angles/row_job.h"

#include "base/number_access.h"
#include "frequencies/frequencies_object.h"

penc_row_shape penc_row_shape_of(posenc_row_layout layout, size_t pairs) {
    switch (layout) {
    case POSENC_ROWS_FULL_HALF:
        return (penc_row_shape){1, pairs, 0};
    case POSENC_ROWS_FULL_INTERLEAVED:
        return (penc_row_shape){2, 1, 0};
    case POSENC_ROWS_COS_SIN:
        return (penc_row_shape){1, 0, pairs};
    case POSENC_ROWS_PAIRS:
        return (penc_row_shape){2, 0, 1};
    case POSENC_ROWS_HALF:
        break;
    }
    return (penc_row_shape){1, 0, 0};
}

double penc_pair_position(const penc_row_job *job, size_t token, size_t pair) {
    ptrdiff_t axis = (ptrdiff_t)job->frequencies->frequency[pair].axis;
    return penc_position_number(job->positions,
                                axis * job->positions->axis_stride + (ptrdiff_t)token);
}

/* Position times frequency as a real number, times the attention factor, rounded once. */
static penc_sincos penc_exact_value(const penc_row_job *job, size_t pair, double position,
                                    posenc_dtype dtype) {
    const posenc_frequencies *frequencies = job->frequencies;
    penc_magnitude magnitude = {frequencies->attention.exact, frequencies->attention_factor};
    int attention = frequencies->has_attention && !job->rows->without_attention;
    penc_position place = penc_position_of_double(position);
    penc_angle angle = penc_angle_at(&place, &frequencies->frequency[pair].turns);
    return penc_sincos_rounded(&angle, attention ? &magnitude : NULL, dtype);
}

penc_sincos penc_angle_value(const penc_row_job *job, size_t token, size_t pair,
                             posenc_dtype dtype) {
    double position = penc_pair_position(job, token, pair);
    if (job->rows->mode == POSENC_MODE_EXACT)
        return penc_exact_value(job, pair, position, dtype);
    float factor = job->frequencies->frequency[pair].factor;
    penc_angle angle = penc_angle_of_radians(factor * (float)position);
    return penc_sincos_rounded(&angle, NULL, dtype);
}

float penc_row_factor(const penc_row_job *job) {
    if (job->rows->mode == POSENC_MODE_EXACT || job->rows->without_attention)
        return 1.0f;
    return (float)job->frequencies->attention.framework;
}

void penc_store_pair(const penc_row_job *job, size_t token, size_t pair, penc_sincos value) {
    const posenc_rows *rows = job->rows;
    penc_row_shape shape = penc_row_shape_of(rows->layout, job->frequencies->pairs);
    void *sin_array = rows->sin ? rows->sin : rows->cos;
    ptrdiff_t at = (ptrdiff_t)token * job->stride + (ptrdiff_t)(pair * shape.step);
    penc_store_number(rows->cos, rows->dtype, at, value.cos);
    penc_store_number(sin_array, rows->dtype, at + (ptrdiff_t)shape.sin_offset, value.sin);
    if (shape.copy) {
        penc_store_number(rows->cos, rows->dtype, at + (ptrdiff_t)shape.copy, value.cos);
        penc_store_number(sin_array, rows->dtype, at + (ptrdiff_t)shape.copy, value.sin);
    }
}
