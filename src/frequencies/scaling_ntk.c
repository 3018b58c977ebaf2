/* A base that grows: fixed (NTK-aware) or with the sequence (dynamic NTK). SPDX-License-Identifier: MIT */
#include "frequencies/scaling_rule.h"

/* log2(base * growth^(d/(d-2))) in both modes. */
static posenc_status penc_grow_base(penc_scaling_case *c, const penc_wide *growth,
                                    posenc_error *error) {
    uint64_t dim = 2 * (uint64_t)c->pairs;
    if (dim == 2) {
        penc_fail_size(
            error, "rotary_dim", dim,
            "be at least 4 where the base grows, since the exponent divides by rotary_dim - 2");
        return POSENC_OUT_OF_RANGE;
    }
    penc_exponent grown = penc_log2_wide(growth);
    grown = penc_exponent_scale(&grown, dim, dim - 2);
    grown.negative = !grown.negative;
    c->log2_base = penc_exponent_subtract(&c->log2_base, &grown);
    penc_real base = penc_exp2(&c->log2_base);
    c->float_base = penc_real_round(&base, 53, -1074);
    c->log2_float = penc_log2((double)(float)c->float_base);
    if (!(c->float_base <= 1e38))
        return penc_fail_real(error, "base", c->float_base, "stay below 1e38 after it has grown");
    return POSENC_OK;
}

static posenc_status penc_ntk_prepare(penc_scaling_case *c, posenc_notes *notes,
                                      posenc_error *error) {
    (void)notes;
    posenc_status status = penc_check_factor(c, error);
    penc_wide growth = penc_wide_of_double(c->scaling.factor);
    return status ? status : penc_grow_base(c, &growth, error);
}

const penc_scaling_rule penc_scaling_ntk = {penc_ntk_prepare, NULL, NULL, NULL, NULL, 0};

/* transformers: s * max(n, L) / L - (s - 1), at least 1 since s is. */
static posenc_status penc_dynamic_by_factor(penc_scaling_case *c, posenc_error *error) {
    uint64_t trained = c->spec.max_positions;
    posenc_status status = penc_check_factor(c, error);
    if (status)
        return status;
    if (!trained)
        return penc_fail_size(error, "max_positions", 0, "be given for dynamic scaling");
    uint64_t beyond = c->seq_len > trained ? c->seq_len - trained : 0;
    /* s n / L - s + 1 = s (n - L) / L + 1 */
    penc_wide growth = penc_wide_of_double(c->scaling.factor), one = penc_wide_of_integer(1);
    growth = penc_wide_multiply_by(&growth, beyond);
    growth = penc_wide_divide_by(&growth, trained);
    growth = penc_wide_add(&growth, &one);
    return penc_grow_base(c, &growth, error);
}

/* Qwen 1: max(1, 2^(ceil(log2(n / L0) + 1)) - 1): the next power of two above n / L0, doubled. */
static posenc_status penc_dynamic_by_qwen(penc_scaling_case *c, posenc_notes *notes,
                                          posenc_error *error) {
    posenc_status status = penc_check_original(c, notes, error);
    if (status)
        return status;
    uint64_t doubled = 2, length = c->scaling.original_max_positions;
    if (c->seq_len <= length)
        doubled = 2; /* alpha = 1 */
    for (; length < c->seq_len; length *= 2)
        doubled *= 2;
    penc_wide growth = penc_wide_of_integer(doubled - 1);
    return penc_grow_base(c, &growth, error);
}

static posenc_status penc_dynamic_by_alpha(penc_scaling_case *c, posenc_error *error) {
    double alpha = c->scaling.alpha;
    if (!(alpha >= 1e-3 && alpha <= 1e12))
        return penc_fail_real(error, "alpha", alpha, "be from 0.001 to 1e12");
    penc_wide growth = penc_wide_of_double(alpha);
    return penc_grow_base(c, &growth, error);
}

static posenc_status penc_dynamic_prepare(penc_scaling_case *c, posenc_notes *notes,
                                          posenc_error *error) {
    if (c->scaling.dynamic == POSENC_DYNAMIC_ALPHA)
        return penc_dynamic_by_alpha(c, error);
    if (c->seq_len == 0 || c->seq_len > (UINT64_C(1) << 40))
        return penc_fail_size(error, "seq_len", c->seq_len,
                              "be from 1 to 2^40: dynamic scaling depends on it");
    if (c->scaling.dynamic == POSENC_DYNAMIC_QWEN)
        return penc_dynamic_by_qwen(c, notes, error);
    if (c->scaling.dynamic == POSENC_DYNAMIC_FACTOR)
        return penc_dynamic_by_factor(c, error);
    return penc_fail_integer(error, "dynamic", c->scaling.dynamic, "be a posenc_dynamic_form");
}

const penc_scaling_rule penc_scaling_dynamic = {penc_dynamic_prepare, NULL, NULL, NULL, NULL, 0};
