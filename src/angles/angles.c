/* Writing cos and sin rows. SPDX-License-Identifier: MIT */
#include "posenc/rows.h"

#include "angles/exact_value.h"
#include "angles/fast_rows.h"
#include "base/memory_map.h"
#include "base/number_access.h"
#include "base/struct_size.h"

#include <string.h>

size_t posenc_row_width(posenc_row_layout layout, size_t pairs) {
    switch (layout) {
    case POSENC_ROWS_HALF:
        return pairs;
    case POSENC_ROWS_FULL_HALF:
    case POSENC_ROWS_FULL_INTERLEAVED:
    case POSENC_ROWS_COS_SIN:
    case POSENC_ROWS_PAIRS:
        return 2 * pairs;
    }
    return 0;
}

/* Where pair j of a row goes: cos to element j * step and, if copy is not 0, again copy elements
 * later; sin alike, from its own pointer or `sin_offset` elements behind cos. */
typedef struct penc_row_shape {
    size_t step, copy, sin_offset;
} penc_row_shape;

static penc_row_shape penc_row_shape_of(posenc_row_layout layout, size_t pairs) {
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

/* The caller's positions, of one of three types. */
typedef enum penc_position_kind { PENC_INT64, PENC_INT32, PENC_REAL } penc_position_kind;

typedef struct penc_positions {
    const void *numbers;
    penc_position_kind kind;
    size_t bytes; /* of one number */
    size_t count, axes;
    ptrdiff_t axis_stride;
} penc_positions;

static double penc_position_number(const penc_positions *positions, ptrdiff_t index) {
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

/* Mode float32: as frameworks do it, the product, cos and sin, and the attention factor's product each
 * rounded to float32; narrower types are rounded from that. */
static penc_sincos penc_framework_value(const posenc_frequencies *frequencies, size_t pair,
                                        double position, int with_attention) {
    penc_angle angle = penc_angle_of_radians(frequencies->frequency[pair].factor * (float)position);
    penc_sincos value = penc_sincos_rounded(&angle, NULL, POSENC_F32);
    float attention = with_attention ? (float)frequencies->attention.framework : 1.0f;
    value.cos = (double)((float)value.cos * attention);
    value.sin = (double)((float)value.sin * attention);
    return value;
}

static void penc_write_row(const posenc_frequencies *frequencies, const penc_positions *positions,
                           size_t token, const posenc_rows *rows, ptrdiff_t start) {
    penc_row_shape shape = penc_row_shape_of(rows->layout, frequencies->pairs);
    void *sin_array = rows->sin ? rows->sin : rows->cos;
    for (size_t pair = 0; pair < frequencies->pairs; pair++) {
        ptrdiff_t axis = (ptrdiff_t)frequencies->frequency[pair].axis;
        double position =
            penc_position_number(positions, axis * positions->axis_stride + (ptrdiff_t)token);
        penc_sincos value =
            rows->mode == POSENC_MODE_FLOAT32
                ? penc_framework_value(frequencies, pair, position, !rows->without_attention)
                : penc_exact_value(frequencies, pair, position, !rows->without_attention,
                                   rows->dtype);
        ptrdiff_t at = start + (ptrdiff_t)(pair * shape.step);
        penc_store_number(rows->cos, rows->dtype, at, value.cos);
        penc_store_number(sin_array, rows->dtype, at + (ptrdiff_t)shape.sin_offset, value.sin);
        if (shape.copy) {
            penc_store_number(rows->cos, rows->dtype, at + (ptrdiff_t)shape.copy, value.cos);
            penc_store_number(sin_array, rows->dtype, at + (ptrdiff_t)shape.copy, value.sin);
        }
    }
}

static posenc_status penc_check_rows_members(const posenc_rows *rows, posenc_error *error) {
    posenc_status status = penc_check_struct(rows, sizeof *rows, "rows", error);
    if (status)
        return status;
    if (!posenc_dtype_bytes(rows->dtype))
        return penc_fail_integer(error, "rows.dtype", rows->dtype, "be a posenc_dtype");
    if (!posenc_row_width(rows->layout, 1))
        return penc_fail_integer(error, "rows.layout", rows->layout, "be a posenc_row_layout");
    if (!posenc_mode_name(rows->mode))
        return penc_fail_integer(error, "rows.mode", rows->mode, "be a posenc_mode");
    if (rows->mode == POSENC_MODE_FLOAT32 && rows->dtype == POSENC_F64)
        return penc_fail_integer(error, "rows.dtype", rows->dtype,
                                 "be float32 or narrower in mode float32");
    if (!rows->cos)
        return penc_fail_null(error, "rows.cos");
    int beside = rows->layout == POSENC_ROWS_COS_SIN || rows->layout == POSENC_ROWS_PAIRS;
    if (!beside && !rows->sin)
        return penc_fail_null(error, "rows.sin");
    if (beside && rows->sin)
        return penc_fail(error, POSENC_OUT_OF_RANGE, "rows.sin",
                         "be NULL in the layouts cos_sin and pairs, which keep sin beside cos");
    return POSENC_OK;
}

/* The arrays to be written: strides that do not overlap, and no memory shared with another array. */
static posenc_status penc_check_rows_memory(const posenc_rows *rows, ptrdiff_t stride, size_t width,
                                            const penc_positions *positions, posenc_error *error) {
    size_t shape[2] = {positions->count, width},
           read_shape[2] = {positions->axes, positions->count};
    ptrdiff_t strides[2] = {stride, 1}, read_strides[2] = {positions->axis_stride, 1};
    penc_memory_map written, read;
    if (!penc_map_array(&written, posenc_dtype_bytes(rows->dtype), 2, shape, strides) ||
        !penc_map_array(&read, positions->bytes, 2, read_shape, read_strides))
        return penc_fail(error, POSENC_OVERFLOW, "count", "keep all rows within the address space");
    if (!penc_map_writes_once(&written)) {
        penc_fail_integer(error, "rows.row_stride", stride,
                          "be 0 or at least the width of a row, so that rows do not overlap");
        penc_fail_limit(error, "the width", width);
        return POSENC_OUT_OF_RANGE;
    }
    if (!penc_map_fits_at(&written, rows->cos) || !penc_map_fits_at(&read, positions->numbers) ||
        (rows->sin && !penc_map_fits_at(&written, rows->sin)))
        return penc_fail(error, POSENC_OVERFLOW, "count", "keep all rows within the address space");
    if (!penc_maps_disjoint(&written, rows->cos, &read, positions->numbers))
        return penc_fail(error, POSENC_OVERLAP, "rows.cos", "not overlap positions");
    if (rows->sin && !penc_maps_disjoint(&written, rows->sin, &read, positions->numbers))
        return penc_fail(error, POSENC_OVERLAP, "rows.sin", "not overlap positions");
    if (rows->sin && !penc_maps_disjoint(&written, rows->cos, &written, rows->sin))
        return penc_fail(error, POSENC_OVERLAP, "rows.sin", "not overlap rows.cos");
    return POSENC_OK;
}

static int penc_position_is_valid(const penc_positions *positions, ptrdiff_t index) {
    if (positions->kind == PENC_INT64) { /* before it is turned into a float64 */
        int64_t number = ((const int64_t *)positions->numbers)[index];
        return number <= POSENC_MAX_POSITION && number >= -POSENC_MAX_POSITION;
    }
    double number = penc_position_number(positions, index);
    return number <= (double)POSENC_MAX_POSITION && number >= -(double)POSENC_MAX_POSITION;
}

static posenc_status penc_check_positions_range(const penc_positions *positions,
                                                posenc_error *error) {
    static const char must[] = "be from -1099511627776 to 1099511627776 (2^40)";
    for (size_t axis = 0; axis < positions->axes; axis++) {
        for (size_t i = 0; i < positions->count; i++) {
            ptrdiff_t index = (ptrdiff_t)axis * positions->axis_stride + (ptrdiff_t)i;
            if (penc_position_is_valid(positions, index))
                continue;
            if (positions->kind == PENC_INT64)
                penc_fail_integer(error, "positions", ((const int64_t *)positions->numbers)[index],
                                  must);
            else
                penc_fail_real(error, "positions", penc_position_number(positions, index), must);
            penc_fail_place(error, "index", (int64_t)index);
            return POSENC_OUT_OF_RANGE;
        }
    }
    return POSENC_OK;
}

/* Everything that a checked call needs. */
typedef struct penc_row_job {
    const posenc_frequencies *frequencies;
    const penc_positions *positions;
    const posenc_rows *rows;
    ptrdiff_t stride;
} penc_row_job;

/* Where the vector kernels may write at once: the layouts whose rows begin with the pairs in order. */
static int penc_fast_target_of(const penc_row_job *job, size_t token, penc_fast_target *target) {
    const posenc_rows *rows = job->rows;
    ptrdiff_t start = (ptrdiff_t)token * job->stride;
    if (rows->layout == POSENC_ROWS_PAIRS || rows->layout == POSENC_ROWS_FULL_INTERLEAVED)
        return 0;
    target->cos = (float *)rows->cos + start;
    target->sin = rows->sin ? (float *)rows->sin + start : target->cos + job->frequencies->pairs;
    target->stride = job->stride;
    target->attention = !rows->without_attention;
    return 1;
}

/* FULL_HALF has every row twice. */
static void penc_double_rows(const penc_row_job *job, penc_fast_target target, size_t count) {
    size_t pairs = job->frequencies->pairs;
    for (size_t row = 0; row < count && job->rows->layout == POSENC_ROWS_FULL_HALF; row++) {
        ptrdiff_t start = (ptrdiff_t)row * target.stride;
        memcpy(target.cos + start + pairs, target.cos + start, pairs * sizeof *target.cos);
        memcpy(target.sin + start + pairs, target.sin + start, pairs * sizeof *target.sin);
    }
}

/* How many positions from `token` on follow one another and are served by vector kernels (negative ones
 * one by one); 0 if the first one is not. */
static size_t penc_fast_length(const penc_row_job *job, size_t token) {
    const penc_positions *positions = job->positions;
    double first = penc_position_number(positions, (ptrdiff_t)token);
    size_t length = 0;
    if (first < 0.0)
        return (size_t)penc_fast_serves((int64_t)first);
    for (size_t i = token; i < positions->count; i++, length++) {
        double position = penc_position_number(positions, (ptrdiff_t)i);
        if (position != first + (double)length || !penc_fast_serves((int64_t)position))
            break;
    }
    return length;
}

/* Writes one row or, where positions run, many; returns how many. */
static size_t penc_write_some(const penc_row_job *job, size_t token, int may_be_fast) {
    enum { WORTH_A_RUN = 32 };
    penc_fast_target target;
    size_t length =
        may_be_fast && penc_fast_target_of(job, token, &target) ? penc_fast_length(job, token) : 0;
    if (length == 0) {
        penc_write_row(job->frequencies, job->positions, token, job->rows,
                       (ptrdiff_t)token * job->stride);
        return 1;
    }
    int64_t first = (int64_t)penc_position_number(job->positions, (ptrdiff_t)token);
    if (length < WORTH_A_RUN) {
        length = 1;
        penc_fast_row(job->frequencies, first, target);
    } else {
        penc_fast_run(job->frequencies, first, length, target);
    }
    penc_double_rows(job, target, length);
    return length;
}

static posenc_status penc_write_rows(const posenc_frequencies *frequencies,
                                     penc_positions positions, const posenc_rows *rows,
                                     posenc_error *error) {
    if (!frequencies)
        return penc_fail_null(error, "frequencies");
    posenc_status status = penc_check_rows_members(rows, error);
    if (status)
        return status;
    if (frequencies->exact_only && rows->mode != POSENC_MODE_EXACT)
        return penc_fail(error, POSENC_UNSUPPORTED, "rows.mode",
                         "be exact for a change of frequencies");
    if (positions.count == 0)
        return POSENC_OK;
    if (!positions.numbers)
        return penc_fail_null(error, "positions");
    size_t width = posenc_row_width(rows->layout, frequencies->pairs);
    ptrdiff_t stride = rows->row_stride ? rows->row_stride : (ptrdiff_t)width;
    positions.axes = frequencies->axes.count;
    positions.axis_stride = rows->axis_stride ? rows->axis_stride : (ptrdiff_t)positions.count;
    status = penc_check_rows_memory(rows, stride, width, &positions, error);
    if (!status)
        status = penc_check_positions_range(&positions, error);
    if (status)
        return status;
    penc_row_job job = {frequencies, &positions, rows, stride};
    int may_be_fast = rows->mode == POSENC_MODE_EXACT && rows->dtype == POSENC_F32 &&
                      positions.axes == 1 && positions.kind != PENC_REAL;
    for (size_t i = 0; i < positions.count;)
        i += penc_write_some(&job, i, may_be_fast);
    return POSENC_OK;
}

posenc_status posenc_angles(const posenc_frequencies *frequencies, const int64_t *positions,
                            size_t count, const posenc_rows *rows, posenc_error *error) {
    penc_positions all = {positions, PENC_INT64, sizeof *positions, count, 1, 0};
    return penc_write_rows(frequencies, all, rows, error);
}

posenc_status posenc_angles_int32(const posenc_frequencies *frequencies, const int32_t *positions,
                                  size_t count, const posenc_rows *rows, posenc_error *error) {
    penc_positions all = {positions, PENC_INT32, sizeof *positions, count, 1, 0};
    return penc_write_rows(frequencies, all, rows, error);
}

posenc_status posenc_angles_real(const posenc_frequencies *frequencies, const double *positions,
                                 size_t count, const posenc_rows *rows, posenc_error *error) {
    penc_positions all = {positions, PENC_REAL, sizeof *positions, count, 1, 0};
    return penc_write_rows(frequencies, all, rows, error);
}
