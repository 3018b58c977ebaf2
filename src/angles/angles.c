/* Writing cos and sin rows. SPDX-License-Identifier: MIT */
#include "posenc/rows.h"

#include "angles/fast_rows.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory_map.h"
#include "base/struct_size.h"
#include "frequencies/frequencies_object.h"

#include <limits.h>

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

/* 1 if rows lie one after another, the arrays' ends are within the address space, and no array reaches into another:
 * the usual case, told without maps. The rest is looked at with care. */
static int penc_rows_are_apart(const posenc_rows *rows, ptrdiff_t stride, size_t width,
                               const penc_positions *positions) {
    const size_t most = (size_t)1 << (sizeof(size_t) * CHAR_BIT / 2 - 4); /* of 16 bytes, squared */
    size_t count = positions->count, step = (size_t)stride;
    if (positions->axes != 1 || stride < 0 || step < width || step >= most || count >= most)
        return 0;
    size_t written = count * step * posenc_dtype_bytes(rows->dtype),
           read = count * positions->bytes;
    uintptr_t cos = (uintptr_t)rows->cos, sin = (uintptr_t)(rows->sin ? rows->sin : rows->cos),
              numbers = (uintptr_t)positions->numbers;
    if (cos > UINTPTR_MAX - written || sin > UINTPTR_MAX - written || numbers > UINTPTR_MAX - read)
        return 0;
    int share = rows->sin && penc_ranges_meet(cos, written, sin, written);
    return !share && !penc_ranges_meet(cos, written, numbers, read) &&
           !penc_ranges_meet(sin, written, numbers, read);
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

/* 1 if all are in range: the usual case, in loops without a branch, of which the compiler makes vectors. */
static int penc_integers_are_valid(const int64_t *numbers, size_t count) {
    uint64_t reached =
        0; /* from -MAX on, of which each has its bits here; MAX itself is looked for below */
    for (size_t i = 0; i < count; i++)
        reached |= (uint64_t)numbers[i] + (uint64_t)POSENC_MAX_POSITION;
    if (reached < 2 * (uint64_t)POSENC_MAX_POSITION)
        return 1;
    int good = 1;
    for (size_t i = 0; i < count; i++)
        good &= numbers[i] <= POSENC_MAX_POSITION && numbers[i] >= -POSENC_MAX_POSITION;
    return good;
}

/* False for NaN. */
static int penc_reals_are_valid(const double *numbers, size_t count) {
    const double most = (double)POSENC_MAX_POSITION;
    int good = 1;
    for (size_t i = 0; i < count; i++)
        good &= numbers[i] <= most && numbers[i] >= -most;
    return good;
}

static int penc_positions_are_valid(const penc_positions *positions, ptrdiff_t start,
                                    size_t count) {
    switch (positions->kind) {
    case PENC_INT64: /* before they are turned into float64 */
        return penc_integers_are_valid((const int64_t *)positions->numbers + start, count);
    case PENC_REAL:
        return penc_reals_are_valid((const double *)positions->numbers + start, count);
    case PENC_INT32:
        break;
    }
    return 1;
}

static posenc_status penc_fail_position(const penc_positions *positions, ptrdiff_t index,
                                        posenc_error *error) {
    static const char must[] = "be from -1099511627776 to 1099511627776 (2^40)";
    if (positions->kind == PENC_INT64)
        penc_fail_integer(error, "positions", ((const int64_t *)positions->numbers)[index], must);
    else
        penc_fail_real(error, "positions", penc_position_number(positions, index), must);
    penc_fail_place(error, "index", (int64_t)index);
    return POSENC_OUT_OF_RANGE;
}

static posenc_status penc_check_positions_range(const penc_positions *positions,
                                                posenc_error *error) {
    for (size_t axis = 0; axis < positions->axes; axis++) {
        ptrdiff_t start = (ptrdiff_t)axis * positions->axis_stride;
        if (penc_positions_are_valid(positions, start, positions->count))
            continue;
        while (penc_positions_are_valid(positions, start, 1))
            start++;
        return penc_fail_position(positions, start, error);
    }
    return POSENC_OK;
}

/* One row the slow clear way. */
static void penc_slow_row(const penc_row_job *job, size_t token) {
    posenc_dtype dtype = job->rows->mode == POSENC_MODE_EXACT ? job->rows->dtype : POSENC_F32;
    float factor = penc_row_factor(job);
    for (size_t pair = 0; pair < job->frequencies->pairs; pair++) {
        penc_sincos value = penc_angle_value(job, token, pair, dtype);
        if (job->rows->mode != POSENC_MODE_EXACT) { /* products in float32, as frameworks do */
            value.cos = (double)((float)value.cos * factor);
            value.sin = (double)((float)value.sin * factor);
        }
        penc_store_pair(job, token, pair, value);
    }
}

static posenc_status penc_write_rows(const posenc_frequencies *frequencies,
                                     penc_positions *positions, const posenc_rows *rows,
                                     posenc_error *error) {
    if (!frequencies)
        return penc_fail_null(error, "frequencies");
    posenc_status status = penc_check_rows_members(rows, error);
    if (status)
        return status;
    if (frequencies->exact_only && rows->mode != POSENC_MODE_EXACT)
        return penc_fail(error, POSENC_UNSUPPORTED, "rows.mode",
                         "be exact for a change of frequencies");
    if (positions->count == 0)
        return POSENC_OK;
    if (!positions->numbers)
        return penc_fail_null(error, "positions");
    size_t width = posenc_row_width(rows->layout, frequencies->pairs);
    ptrdiff_t stride = rows->row_stride ? rows->row_stride : (ptrdiff_t)width;
    positions->axes = frequencies->axes.count;
    positions->axis_stride = rows->axis_stride ? rows->axis_stride : (ptrdiff_t)positions->count;
    if (!penc_rows_are_apart(rows, stride, width, positions))
        status = penc_check_rows_memory(rows, stride, width, positions, error);
    if (!status)
        status = penc_check_positions_range(positions, error);
    if (status)
        return status;
    penc_row_job job = {frequencies, positions, rows, stride};
    penc_fast_job fast;
    int serves = penc_fast_start(&job, &fast);
    for (size_t token = 0; token < positions->count;) {
        size_t written = serves ? penc_fast_rows(&fast, token) : 0;
        if (!written)
            penc_slow_row(&job, token);
        token += written ? written : 1;
    }
    return POSENC_OK;
}

posenc_status posenc_angles(const posenc_frequencies *frequencies, const int64_t *positions,
                            size_t count, const posenc_rows *rows, posenc_error *error) {
    penc_positions all = {positions, PENC_INT64, sizeof *positions, count, 1, 0};
    return penc_write_rows(frequencies, &all, rows, error);
}

posenc_status posenc_angles_int32(const posenc_frequencies *frequencies, const int32_t *positions,
                                  size_t count, const posenc_rows *rows, posenc_error *error) {
    penc_positions all = {positions, PENC_INT32, sizeof *positions, count, 1, 0};
    return penc_write_rows(frequencies, &all, rows, error);
}

posenc_status posenc_angles_real(const posenc_frequencies *frequencies, const double *positions,
                                 size_t count, const posenc_rows *rows, posenc_error *error) {
    penc_positions all = {positions, PENC_REAL, sizeof *positions, count, 1, 0};
    return penc_write_rows(frequencies, &all, rows, error);
}
