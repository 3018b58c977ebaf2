/* Sinusoidal position tables. SPDX-License-Identifier: MIT */
#include "posenc/sinusoidal.h"

#include "angles/sincos.h"
#include "base/memory_map.h"
#include "base/number_access.h"
#include "base/struct_size.h"
#include "posenc/frequencies.h"
#include "posenc/rows.h"

#include <math.h>

/* Columns of a row: sin of frequency k in column sin_first + k * step, cos likewise; column dim - 1
 * is 0 if zero_column. The exponent of frequency k is 2k / denominator. */
typedef struct penc_sinusoidal_plan {
    size_t sines, cosines, sin_first, cos_first, step, denominator;
    int zero_column;
} penc_sinusoidal_plan;

static penc_sinusoidal_plan penc_sinusoidal_columns(const posenc_sinusoidal_spec *spec) {
    penc_sinusoidal_plan plan = {0};
    plan.zero_column = spec->dim % 2 && spec->odd == POSENC_ODD_ZERO;
    size_t width = plan.zero_column ? spec->dim - 1 : spec->dim;
    plan.sines = (width + 1) / 2;
    plan.cosines = width / 2;
    plan.denominator = width - 2 * (size_t)spec->shift;
    switch (spec->layout) {
    case POSENC_SINUSOIDAL_INTERLEAVED:
        plan.step = 2;
        plan.cos_first = 1;
        break;
    case POSENC_SINUSOIDAL_SIN_COS:
        plan.step = 1;
        plan.cos_first = plan.sines;
        break;
    case POSENC_SINUSOIDAL_COS_SIN:
        plan.step = 1;
        plan.sin_first = plan.cosines;
        break;
    }
    return plan;
}

static posenc_status penc_sinusoidal_resolve(posenc_sinusoidal_spec *spec, posenc_error *error) {
    if (spec->base == 0.0)
        spec->base = 10000.0;
    if (spec->scale == 0.0)
        spec->scale = 1.0;
    if (spec->dim == 0 || spec->dim > POSENC_MAX_DIM)
        return penc_fail_size(error, "dim", spec->dim, "be from 1 to 16777216");
    if ((unsigned)spec->layout > POSENC_SINUSOIDAL_COS_SIN)
        return penc_fail_integer(error, "layout", spec->layout, "be a posenc_sinusoidal_layout");
    if (spec->shift != 0 && spec->shift != 1)
        return penc_fail_integer(error, "shift", spec->shift, "be 0 or 1");
    if (spec->shift == 1 && spec->dim < 4)
        return penc_fail_size(error, "dim", spec->dim,
                              "be at least 4 with shift 1, whose exponents divide by dim/2 - 1");
    if ((unsigned)spec->odd > POSENC_ODD_CEIL)
        return penc_fail_integer(error, "odd", spec->odd, "be a posenc_odd_rule");
    if (spec->dim % 2 && spec->odd == POSENC_ODD_REFUSE)
        return penc_fail_size(
            error, "dim", spec->dim,
            "be even, or come with a rule for odd widths: truncate, zero or ceil");
    if (!penc_base_is_valid(spec->base))
        return penc_fail_real(error, "base", spec->base, PENC_BASE_RANGE);
    if (!(fabs(spec->scale) >= 1e-30 && fabs(spec->scale) <= 1e6))
        return penc_fail_real(error, "scale", spec->scale,
                              "be from 1e-30 to 1e6, or negative alike");
    if (!(fabs(spec->start) <= 0x1p40)) /* false for NaN too */
        return penc_fail_real(error, "start", spec->start, "be a number from -2^40 to 2^40");
    return POSENC_OK;
}

static double penc_position_at(const double *positions, size_t i) {
    return positions ? positions[i] : (double)i;
}

static posenc_status penc_check_positions(const double *positions, size_t count,
                                          posenc_error *error) {
    for (size_t i = 0; i < count; i++) {
        double position = penc_position_at(positions, i);
        if (!(fabs(position) <= 0x1p40)) {
            penc_fail_real(error, "positions", position, "be a number from -2^40 to 2^40");
            penc_fail_place(error, "index", (int64_t)i);
            return POSENC_OUT_OF_RANGE;
        }
    }
    return POSENC_OK;
}

static posenc_status penc_check_table_memory(const posenc_sinusoidal_spec *spec,
                                             const double *positions, size_t count,
                                             posenc_dtype dtype, ptrdiff_t stride,
                                             const void *table, posenc_error *error) {
    size_t shape[2] = {count, spec->dim};
    ptrdiff_t strides[2] = {stride, 1}, step = 1;
    penc_memory_map written, read;
    if (!penc_map_array(&written, posenc_dtype_bytes(dtype), 2, shape, strides) ||
        !penc_map_array(&read, sizeof *positions, 1, &count, &step) ||
        !penc_map_fits_at(&written, table) || (positions && !penc_map_fits_at(&read, positions)))
        return penc_fail(error, POSENC_OVERFLOW, "count", "keep all rows within the address space");
    if (!penc_map_writes_once(&written)) {
        penc_fail_integer(error, "row_stride", stride,
                          "be 0 or at least dim, so that rows do not overlap");
        penc_fail_limit(error, "dim", spec->dim);
        return POSENC_OUT_OF_RANGE;
    }
    if (positions && !penc_maps_disjoint(&written, table, &read, positions))
        return penc_fail(error, POSENC_OVERLAP, "table", "not overlap positions");
    return POSENC_OK;
}

/* What all rows of one call share. */
typedef struct penc_sinusoidal_job {
    const posenc_sinusoidal_spec *spec;
    const penc_sinusoidal_plan *plan;
    const double *positions;
    size_t count;
    posenc_dtype dtype;
    ptrdiff_t stride;
    void *table;
} penc_sinusoidal_job;

static int penc_is_padding(const penc_sinusoidal_job *job, size_t row) {
    return job->spec->has_padding &&
           penc_position_at(job->positions, row) == job->spec->padding_position;
}

/* Frequency k of every row: down the columns, so that no list of frequencies is needed. */
static void penc_sinusoidal_frequency(const penc_sinusoidal_job *job, const penc_turns *turns,
                                      size_t k) {
    const penc_sinusoidal_plan *plan = job->plan;
    ptrdiff_t sin_column = (ptrdiff_t)(plan->sin_first + k * plan->step);
    ptrdiff_t cos_column = (ptrdiff_t)(plan->cos_first + k * plan->step);
    for (size_t row = 0; row < job->count; row++) {
        penc_position position =
            penc_position_of_double(job->spec->start + penc_position_at(job->positions, row));
        penc_angle angle = penc_angle_at(&position, turns);
        penc_sincos value = penc_sincos_rounded(&angle, NULL, job->dtype);
        if (penc_is_padding(job, row))
            value = (penc_sincos){0.0, 0.0};
        ptrdiff_t start = (ptrdiff_t)row * job->stride;
        penc_store_number(job->table, job->dtype, start + sin_column, value.sin);
        if (k < plan->cosines)
            penc_store_number(job->table, job->dtype, start + cos_column, value.cos);
    }
}

posenc_status posenc_sinusoidal(const posenc_sinusoidal_spec *spec, const double *positions,
                                size_t count, posenc_dtype dtype, ptrdiff_t row_stride, void *table,
                                posenc_error *error) {
    posenc_status status = penc_check_struct(spec, sizeof *spec, "spec", error);
    if (status)
        return status;
    posenc_sinusoidal_spec resolved = *spec;
    status = penc_sinusoidal_resolve(&resolved, error);
    if (status)
        return status;
    if (!posenc_dtype_bytes(dtype))
        return penc_fail_integer(error, "dtype", dtype, "be a posenc_dtype");
    if (count == 0)
        return POSENC_OK;
    if (!table)
        return penc_fail_null(error, "table");
    ptrdiff_t stride = row_stride ? row_stride : (ptrdiff_t)resolved.dim;
    status = penc_check_table_memory(&resolved, positions, count, dtype, stride, table, error);
    if (!status)
        status = penc_check_positions(positions, count, error);
    if (status)
        return status;

    penc_sinusoidal_plan plan = penc_sinusoidal_columns(&resolved);
    penc_sinusoidal_job job = {&resolved, &plan, positions, count, dtype, stride, table};
    penc_exponent log2_base = penc_log2(resolved.base);
    for (size_t k = 0; k < plan.sines; k++) {
        penc_real radians = penc_ladder_rung(&log2_base, 2 * k, plan.denominator);
        penc_turns turns = penc_turns_of(&radians, resolved.scale);
        penc_sinusoidal_frequency(&job, &turns, k);
    }
    for (size_t row = 0; plan.zero_column && row < count; row++)
        penc_store_number(table, dtype, (ptrdiff_t)row * stride + (ptrdiff_t)resolved.dim - 1, 0.0);
    return POSENC_OK;
}
