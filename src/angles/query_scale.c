/* posenc_query_scales. SPDX-License-Identifier: MIT */
#include "posenc/query_scale.h"

#include "base/checked.h"
#include "base/power.h"
#include "base/struct_size.h"
#include "posenc/rows.h"

const char *posenc_query_scale_name(posenc_query_scale_kind kind) {
    static const char *const names[] = {"floor", "smooth", "log_n"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : NULL;
}

/* ln of an integer from 1 to 2^41. */
static penc_wide penc_log_of_integer(uint64_t value) {
    penc_wide binary = penc_log2((double)value).magnitude;
    return penc_wide_multiply(&binary, &penc_ln2);
}

static double penc_round_wide(const penc_wide *value, posenc_dtype dtype) {
    penc_real real = {*value, 0};
    return dtype == POSENC_F64 ? penc_real_round(&real, 53, -1074)
                               : penc_real_round(&real, 24, -149);
}

/* `n` is the position plus the offset. */
static double penc_exact_scale(const posenc_query_scale *s, uint64_t n, posenc_dtype dtype) {
    penc_wide one = penc_wide_of_integer(1), value;
    if (s->kind == POSENC_QUERY_SCALE_FLOOR) {
        value = penc_log_of_integer(1 + n / s->length);
    } else if (n <= s->length) {
        return 1.0;
    } else if (s->kind == POSENC_QUERY_SCALE_SMOOTH) {
        penc_wide upper = penc_log_of_integer(n), lower = penc_log_of_integer(s->length);
        value = penc_wide_subtract(&upper, &lower);
    } else {
        penc_wide upper = penc_log2((double)n).magnitude;
        penc_wide lower = penc_log2((double)s->length).magnitude;
        value = penc_wide_divide(&upper, &lower);
        return penc_round_wide(&value, dtype);
    }
    penc_wide coefficient = penc_wide_of_double(s->coefficient);
    value = penc_wide_multiply(&value, &coefficient);
    value = penc_wide_add(&value, &one);
    return penc_round_wide(&value, dtype);
}

/* The correctly rounded logarithm of a number from 1 on. */
static double penc_rounded_log(double value, posenc_dtype dtype) {
    penc_wide binary = penc_log2(value).magnitude;
    penc_wide natural = penc_wide_multiply(&binary, &penc_ln2);
    return penc_wide_is_zero(&natural) ? 0.0 : penc_round_wide(&natural, dtype);
}

static float penc_framework_scale(const posenc_query_scale *s, int64_t position) {
    float length = (float)s->length, n = (float)position + (float)s->offset;
    uint64_t whole = (uint64_t)(position + s->offset);
    if (s->kind == POSENC_QUERY_SCALE_LOG_N) /* a list of Python's floats */
        return whole <= s->length ? 1.0f
                                  : (float)(penc_rounded_log((double)whole, POSENC_F64) /
                                            penc_rounded_log((double)s->length, POSENC_F64));
    float quotient = n / length;
    if (s->kind == POSENC_QUERY_SCALE_FLOOR)
        quotient = 1.0f + (float)(uint64_t)quotient;
    else if (quotient < 1.0f)
        quotient = 1.0f;
    float product = (float)s->coefficient * (float)penc_rounded_log((double)quotient, POSENC_F32);
    return product + 1.0f;
}

static posenc_status penc_check_query_scale(const posenc_query_scale *s, posenc_error *error) {
    int is_log_n = s->kind == POSENC_QUERY_SCALE_LOG_N;
    uint64_t most = (uint64_t)POSENC_MAX_POSITION, least = is_log_n ? 2 : 1;
    if (!posenc_query_scale_name(s->kind))
        return penc_fail_integer(error, "query_scale.kind", s->kind,
                                 "be a posenc_query_scale_kind");
    if (is_log_n && s->coefficient != 0.0)
        return penc_fail_real(error, "query_scale.coefficient", s->coefficient, "be 0 for log_n");
    if (!is_log_n && !(s->coefficient > 0.0 && s->coefficient <= 1000.0))
        return penc_fail_real(error, "query_scale.coefficient", s->coefficient,
                              "be given, above 0 and at most 1000");
    if (s->length < least || s->length > most)
        return penc_fail_size(error, "query_scale.length", s->length,
                              is_log_n ? "be given, from 2 to 2^40" : "be given, from 1 to 2^40");
    if (s->offset < 0 || s->offset > 1)
        return penc_fail_integer(error, "query_scale.offset", s->offset, "be 0 or 1");
    return POSENC_OK;
}

static posenc_status penc_check_scale_lists(const int64_t *positions, size_t count,
                                            posenc_dtype dtype, const void *scales,
                                            posenc_error *error) {
    size_t bytes, scale_bytes;
    if (!positions)
        return penc_fail_null(error, "positions");
    if (!scales)
        return penc_fail_null(error, "scales");
    if (!penc_size_multiply(count, sizeof *positions, &bytes) || bytes > PTRDIFF_MAX)
        return penc_fail(error, POSENC_OVERFLOW, "count",
                         "keep the lists within the address space");
    scale_bytes = count * posenc_dtype_bytes(dtype);
    if (penc_ranges_meet((uintptr_t)positions, bytes, (uintptr_t)scales, scale_bytes))
        return penc_fail(error, POSENC_OVERLAP, "scales", "not overlap the positions");
    for (size_t i = 0; i < count; i++) {
        if (positions[i] < 0 || positions[i] > POSENC_MAX_POSITION) {
            penc_fail_integer(error, "positions", positions[i], "be from 0 to 2^40");
            penc_fail_place(error, "index", (int64_t)i);
            return POSENC_OUT_OF_RANGE;
        }
    }
    return POSENC_OK;
}

posenc_status posenc_query_scales(const posenc_query_scale *query_scale, const int64_t *positions,
                                  size_t count, posenc_mode mode, posenc_dtype dtype, void *scales,
                                  posenc_error *error) {
    posenc_status status =
        penc_check_struct(query_scale, sizeof *query_scale, "query_scale", error);
    if (!status)
        status = penc_check_query_scale(query_scale, error);
    if (!status && !posenc_mode_name(mode))
        status = penc_fail_integer(error, "mode", mode, "be a posenc_mode");
    if (!status && dtype != POSENC_F32 && (dtype != POSENC_F64 || mode == POSENC_MODE_FLOAT32))
        status = penc_fail_integer(error, "dtype", dtype, "be float32, or float64 in mode exact");
    if (status || count == 0)
        return status;
    status = penc_check_scale_lists(positions, count, dtype, scales, error);
    if (status)
        return status;
    double value = 0.0;
    uint64_t computed =
        UINT64_MAX; /* the quotient that `value` belongs to: many positions share one */
    for (size_t i = 0; i < count; i++) {
        uint64_t n = (uint64_t)(positions[i] + query_scale->offset);
        uint64_t key = query_scale->kind == POSENC_QUERY_SCALE_FLOOR && mode == POSENC_MODE_EXACT
                           ? n / query_scale->length
                           : n;
        if (key != computed)
            value = mode == POSENC_MODE_EXACT
                        ? penc_exact_scale(query_scale, n, dtype)
                        : (double)penc_framework_scale(query_scale, positions[i]);
        computed = key;
        if (dtype == POSENC_F64)
            ((double *)scales)[i] = value;
        else
            ((float *)scales)[i] = (float)value;
    }
    return POSENC_OK;
}
