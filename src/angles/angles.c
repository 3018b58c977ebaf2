/* Writing cos and sin rows. SPDX-License-Identifier: MIT */
#include "posenc/rows.h"

#include "angles/sincos.h"
#include "base/memory_map.h"
#include "base/number_access.h"
#include "base/struct_size.h"
#include "frequencies/frequencies_object.h"

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

/* Mode exact: position times frequency as a real number, times the attention factor, rounded once. */
static penc_sincos penc_exact_value(const posenc_frequencies *frequencies, size_t pair,
                                    int64_t position, posenc_dtype dtype) {
    penc_magnitude magnitude = {frequencies->attention.exact, frequencies->attention_factor};
    penc_position place = penc_position_of_integer(position);
    penc_angle angle = penc_angle_at(&place, &frequencies->frequency[pair].turns);
    return penc_sincos_rounded(&angle, frequencies->has_attention ? &magnitude : NULL, dtype);
}

/* Mode float32: as frameworks do it, the product, cos and sin, and the attention factor's product each
 * rounded to float32; narrower types are rounded from that. */
static penc_sincos penc_framework_value(const posenc_frequencies *frequencies, size_t pair,
                                        int64_t position) {
    penc_angle angle = penc_angle_of_radians(frequencies->frequency[pair].factor * (float)position);
    penc_sincos value = penc_sincos_rounded(&angle, NULL, POSENC_F32);
    float attention = (float)frequencies->attention.framework;
    value.cos = (double)((float)value.cos * attention);
    value.sin = (double)((float)value.sin * attention);
    return value;
}

static void penc_write_row(const posenc_frequencies *frequencies, int64_t position,
                           const posenc_rows *rows, ptrdiff_t start) {
    penc_row_shape shape = penc_row_shape_of(rows->layout, frequencies->pairs);
    void *sin_array = rows->sin ? rows->sin : rows->cos;
    for (size_t pair = 0; pair < frequencies->pairs; pair++) {
        penc_sincos value = rows->mode == POSENC_MODE_FLOAT32
                                ? penc_framework_value(frequencies, pair, position)
                                : penc_exact_value(frequencies, pair, position, rows->dtype);
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

/* The arrays to be written: strides that do not overlap, and no memory shared with another array.
 */
static posenc_status penc_check_rows_memory(const posenc_rows *rows, ptrdiff_t stride, size_t width,
                                            const int64_t *positions, size_t count,
                                            posenc_error *error) {
    size_t shape[2] = {count, width};
    ptrdiff_t strides[2] = {stride, 1}, step = 1;
    penc_memory_map written, read;
    if (!penc_map_array(&written, posenc_dtype_bytes(rows->dtype), 2, shape, strides) ||
        !penc_map_array(&read, sizeof *positions, 1, &count, &step))
        return penc_fail(error, POSENC_OVERFLOW, "count", "keep all rows within the address space");
    if (!penc_map_writes_once(&written)) {
        penc_fail_integer(error, "rows.row_stride", stride,
                          "be 0 or at least the width of a row, so that rows do not overlap");
        penc_fail_limit(error, "the width", width);
        return POSENC_OUT_OF_RANGE;
    }
    if (!penc_maps_disjoint(&written, rows->cos, &read, positions))
        return penc_fail(error, POSENC_OVERLAP, "rows.cos", "not overlap positions");
    if (rows->sin && !penc_maps_disjoint(&written, rows->sin, &read, positions))
        return penc_fail(error, POSENC_OVERLAP, "rows.sin", "not overlap positions");
    if (rows->sin && !penc_maps_disjoint(&written, rows->cos, &written, rows->sin))
        return penc_fail(error, POSENC_OVERLAP, "rows.sin", "not overlap rows.cos");
    return POSENC_OK;
}

posenc_status posenc_angles(const posenc_frequencies *frequencies, const int64_t *positions,
                            size_t count, const posenc_rows *rows, posenc_error *error) {
    if (!frequencies)
        return penc_fail_null(error, "frequencies");
    posenc_status status = penc_check_rows_members(rows, error);
    if (status)
        return status;
    if (count == 0)
        return POSENC_OK;
    if (!positions)
        return penc_fail_null(error, "positions");
    size_t width = posenc_row_width(rows->layout, frequencies->pairs);
    ptrdiff_t stride = rows->row_stride ? rows->row_stride : (ptrdiff_t)width;
    status = penc_check_rows_memory(rows, stride, width, positions, count, error);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++) {
        if (positions[i] > POSENC_MAX_POSITION || positions[i] < -POSENC_MAX_POSITION) {
            penc_fail_integer(error, "positions", positions[i],
                              "be from -1099511627776 to 1099511627776 (2^40)");
            penc_fail_place(error, "index", (int64_t)i);
            return POSENC_OUT_OF_RANGE;
        }
    }
    for (size_t i = 0; i < count; i++)
        penc_write_row(frequencies, positions[i], rows, (ptrdiff_t)i * stride);
    return POSENC_OK;
}
