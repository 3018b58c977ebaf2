/* ALiBi slopes and bias tiles. SPDX-License-Identifier: MIT */
#include "posenc/alibi.h"

#include "base/checked.h"
#include "base/memory_map.h"
#include "base/number_access.h"
#include "base/power.h"
#include "base/struct_size.h"
#include "kernels/bias_kernels.h"

#include <math.h>

#define NAME   penc_alibi_row_f32
#define MEMORY float
#define REAL   float
#define LOAD   PENC_SAME
#define STORE  PENC_SAME
#include "bias/alibi_row.inc"

#define NAME   penc_alibi_row_f64
#define MEMORY double
#define REAL   double
#define LOAD   PENC_SAME
#define STORE  PENC_SAME
#include "bias/alibi_row.inc"

#define NAME   penc_alibi_row_f16
#define MEMORY uint16_t
#define REAL   float
#define LOAD   penc_float_of_f16
#define STORE  penc_f16_of_float
#include "bias/alibi_row.inc"

#define NAME   penc_alibi_row_bf16
#define MEMORY uint16_t
#define REAL   float
#define LOAD   penc_float_of_bf16
#define STORE  penc_bf16_of_float
#include "bias/alibi_row.inc"

typedef void penc_alibi_row(void *row, size_t keys, int64_t query, double slope,
                            posenc_bias_mask mask, int add);

static penc_alibi_row *penc_alibi_row_of(posenc_dtype dtype) {
    switch (dtype) {
    case POSENC_F32:
        return penc_alibi_row_f32;
    case POSENC_F64:
        return penc_alibi_row_f64;
    case POSENC_F16:
        return penc_alibi_row_f16;
    case POSENC_BF16:
        return penc_alibi_row_bf16;
    }
    return NULL;
}

/* Checks a spec and fills in its defaults. */
static posenc_status penc_alibi_resolve(const posenc_alibi_spec *spec, posenc_alibi_spec *resolved,
                                        posenc_error *error) {
    posenc_status status = penc_check_struct(spec, sizeof *spec, "spec", error);
    if (status)
        return status;
    *resolved = *spec;
    if (resolved->max_bias == 0.0)
        resolved->max_bias = 8.0;
    if (resolved->heads == 0 || resolved->heads > POSENC_MAX_HEADS)
        return penc_fail_size(error, "heads", resolved->heads, "be from 1 to 1048576");
    if (resolved->slopes != POSENC_SLOPES_PAPER && resolved->slopes != POSENC_SLOPES_PLAIN)
        return penc_fail_integer(error, "slopes", resolved->slopes, "be a posenc_slopes");
    if (!(resolved->max_bias > 0.0) || resolved->max_bias > 1024.0)
        return penc_fail_real(error, "max_bias", resolved->max_bias,
                              "be a number above 0 and at most 1024");
    return POSENC_OK;
}

static posenc_status penc_check_heads(const posenc_alibi_spec *spec, size_t first, size_t count,
                                      posenc_error *error) {
    posenc_status status = POSENC_OK;
    if (first > spec->heads)
        status = penc_fail_size(error, "first_head", first, "be at most heads");
    else if (count > spec->heads - first)
        status = penc_fail_size(error, "count of heads", count,
                                "not run past the last head, counted from first_head");
    if (status)
        penc_fail_limit(error, "heads", spec->heads);
    return status;
}

/* 2^(-max_bias * numerator / denominator), correctly rounded. */
static double penc_alibi_slope(const posenc_alibi_spec *spec, size_t head) {
    uint64_t numerator = head + 1, denominator = spec->heads;
    if (spec->slopes == POSENC_SLOPES_PAPER) {
        denominator = 1;
        while (denominator * 2 <= spec->heads)
            denominator *= 2;
        if (head >= denominator) {
            numerator = 2 * (head - denominator) + 1;
            denominator *= 2;
        }
    }
    penc_exponent bias = penc_exponent_of(spec->max_bias);
    penc_exponent e = penc_exponent_scale(&bias, numerator, denominator);
    e.negative = 1;
    penc_real slope = penc_exp2(&e);
    return penc_real_round(&slope, 53, -1074);
}

posenc_status posenc_alibi_slopes(const posenc_alibi_spec *spec, size_t first_head, size_t count,
                                  double *slopes, posenc_error *error) {
    posenc_alibi_spec resolved;
    posenc_status status = penc_alibi_resolve(spec, &resolved, error);
    if (!status)
        status = penc_check_heads(&resolved, first_head, count, error);
    if (status)
        return status;
    if (count && !slopes)
        return penc_fail_null(error, "slopes");
    for (size_t i = 0; i < count; i++)
        slopes[i] = penc_alibi_slope(&resolved, first_head + i);
    return POSENC_OK;
}

/* Fills in a tile's defaults and checks what does not concern memory. */
static posenc_status penc_tile_resolve(const posenc_bias_tile *tile, const posenc_alibi_spec *spec,
                                       posenc_bias_tile *resolved, posenc_error *error) {
    posenc_status status = penc_check_struct(tile, sizeof *tile, "tile", error);
    if (status)
        return status;
    *resolved = *tile;
    if (!posenc_dtype_bytes(tile->dtype))
        return penc_fail_integer(error, "tile.dtype", tile->dtype, "be a posenc_dtype");
    if (tile->mask != POSENC_BIAS_CAUSAL && tile->mask != POSENC_BIAS_SYMMETRIC)
        return penc_fail_integer(error, "tile.mask", tile->mask, "be a posenc_bias_mask");
    if (tile->heads == 0 && tile->first_head <= spec->heads)
        resolved->heads = spec->heads - tile->first_head;
    status = penc_check_heads(spec, tile->first_head, resolved->heads, error);
    if (status)
        return status;
    int64_t most = INT64_C(1) << 40;
    if (tile->queries > (uint64_t)most)
        return penc_fail_size(error, "tile.queries", tile->queries, "be at most 2^40");
    if (tile->keys > (uint64_t)most)
        return penc_fail_size(error, "tile.keys", tile->keys, "be at most 2^40");
    if (!tile->has_query_offset)
        resolved->query_offset = (int64_t)tile->keys - (int64_t)tile->queries;
    else if (tile->query_offset > most || tile->query_offset < -most)
        return penc_fail_integer(error, "tile.query_offset", tile->query_offset,
                                 "be from -2^40 to 2^40");
    if (tile->query_stride == 0)
        resolved->query_stride = (ptrdiff_t)tile->keys;
    if (tile->head_stride == 0 &&
        !penc_offset(tile->queries, resolved->query_stride, 1, &resolved->head_stride))
        return penc_fail(error, POSENC_OVERFLOW, "tile",
                         "have sizes and strides whose products fit the address space");
    return POSENC_OK;
}

static posenc_status penc_check_tile_memory(const posenc_bias_tile *tile, const void *bias,
                                            posenc_error *error) {
    size_t shape[3] = {tile->heads, tile->queries, tile->keys};
    ptrdiff_t strides[3] = {tile->head_stride, tile->query_stride, 1};
    penc_memory_map map;
    if (!penc_map_array(&map, posenc_dtype_bytes(tile->dtype), 3, shape, strides) ||
        (bias && !penc_map_fits_at(&map, bias)))
        return penc_fail(error, POSENC_OVERFLOW, "tile",
                         "have sizes and strides whose products fit the address space");
    if (!penc_map_writes_once(&map))
        return penc_fail(error, POSENC_OVERLAP, "tile's strides",
                         "write every element once: query_stride at least keys, and head_stride at "
                         "least what all queries reach (or the other way round)");
    return POSENC_OK;
}

/* Whether int32 holds every distance of a row. */
static int penc_is_near(int64_t query, size_t keys) {
    return keys <= INT32_MAX / 2 && query <= INT32_MAX / 2 && query >= -INT32_MAX / 2;
}

static posenc_status penc_check_tile_slopes(const posenc_bias_tile *tile, const void *bias,
                                            posenc_error *error) {
    size_t shape[3] = {tile->heads, tile->queries, tile->keys};
    ptrdiff_t strides[3] = {tile->head_stride, tile->query_stride, 1}, step = 1;
    penc_memory_map written, read;
    if (!tile->slopes)
        return POSENC_OK;
    for (size_t head = 0; head < tile->heads; head++) {
        if (tile->slopes[head] >= 0.0 && isfinite(tile->slopes[head]))
            continue;
        penc_fail_real(error, "tile.slopes", tile->slopes[head], "be finite and not negative");
        penc_fail_place(error, "index", (int64_t)head);
        return POSENC_OUT_OF_RANGE;
    }
    if (!penc_map_array(&written, posenc_dtype_bytes(tile->dtype), 3, shape, strides) ||
        !penc_map_array(&read, sizeof *tile->slopes, 1, &tile->heads, &step) ||
        !penc_map_fits_at(&read, tile->slopes) ||
        !penc_maps_disjoint(&written, bias, &read, tile->slopes))
        return penc_fail(error, POSENC_OVERLAP, "tile.slopes", "not overlap the bias");
    return POSENC_OK;
}

posenc_status posenc_alibi_bias(const posenc_alibi_spec *spec, const posenc_bias_tile *tile,
                                void *bias, posenc_error *error) {
    posenc_alibi_spec alibi;
    posenc_bias_tile t;
    posenc_status status = penc_alibi_resolve(spec, &alibi, error);
    if (!status)
        status = penc_tile_resolve(tile, &alibi, &t, error);
    if (!status)
        status = penc_check_tile_memory(&t, bias, error);
    if (status)
        return status;
    if (t.heads == 0 || t.queries == 0 || t.keys == 0)
        return POSENC_OK;
    if (!bias)
        return penc_fail_null(error, "bias");
    status = penc_check_tile_slopes(&t, bias, error);
    if (status)
        return status;
    penc_alibi_row *row = penc_alibi_row_of(t.dtype);
    penc_bias_kernel *near_row = penc_bias_kernel_of(t.dtype);
    int causal = t.mask == POSENC_BIAS_CAUSAL;
    ptrdiff_t bytes = (ptrdiff_t)posenc_dtype_bytes(t.dtype);
    for (size_t head = 0; head < t.heads; head++) {
        double slope = t.slopes ? t.slopes[head] : penc_alibi_slope(&alibi, t.first_head + head);
        for (size_t query = 0; query < t.queries; query++) {
            ptrdiff_t at = (ptrdiff_t)head * t.head_stride + (ptrdiff_t)query * t.query_stride;
            void *to = (char *)bias + at * bytes;
            int64_t place = t.query_offset + (int64_t)query;
            if (penc_is_near(place, t.keys))
                near_row(to, t.keys, -(int32_t)place, slope, causal, t.add);
            else
                row(to, t.keys, place, slope, t.mask, t.add);
        }
    }
    return POSENC_OK;
}
