/* LongRoPE: one divisor per pair, from the short or the long list. Ding et al., arXiv:2402.13753.
 * SPDX-License-Identifier: MIT */
#include "frequencies/scaling_rule.h"

#include <math.h>

static posenc_status penc_longrope_check_list(const double *list, size_t count, const char *name,
                                              posenc_error *error) {
    if (!list)
        return penc_fail_null(error, name);
    for (size_t i = 0; i < count; i++) {
        if (!(list[i] >= 1e-6 && list[i] <= 1e12)) {
            penc_fail_real(error, name, list[i], "be numbers from 1e-6 to 1e12");
            penc_fail_place(error, "index", (int64_t)i);
            return POSENC_OUT_OF_RANGE;
        }
    }
    return POSENC_OK;
}

static posenc_status penc_longrope_prepare(penc_scaling_case *c, posenc_notes *notes,
                                           posenc_error *error) {
    posenc_scaling *s = &c->scaling;
    posenc_status status = penc_check_original(c, notes, error);
    if (status)
        return status;
    if (s->factor_count != c->pairs) {
        penc_fail_size(error, "length of short_factor and long_factor", s->factor_count,
                       "be rotary_dim / 2");
        penc_fail_limit(error, "rotary_dim / 2", c->pairs);
        return POSENC_OUT_OF_RANGE;
    }
    status = penc_longrope_check_list(s->short_factors, c->pairs, "short_factors", error);
    if (!status)
        status = penc_longrope_check_list(s->long_factors, c->pairs, "long_factors", error);
    if (status)
        return status;
    if (c->seq_len == 0)
        return penc_fail_size(error, "seq_len", 0,
                              "be given: it chooses between the short and the long list");
    if (!(s->attention_factor >= 0.0 && s->attention_factor <= 1e6))
        return penc_fail_real(error, "attention_factor", s->attention_factor, "be from 0 to 1e6");
    if (s->attention_factor == 0.0 && s->factor == 0.0) {
        if (!c->spec.max_positions)
            return penc_fail_size(error, "max_positions", 0,
                                  "be given where factor and attention_factor are not");
        penc_note_real(notes, POSENC_NOTE_DEFAULTED, "factor",
                       s->factor =
                           (double)c->spec.max_positions / (double)s->original_max_positions);
    }
    if (s->factor != 0.0 && !(s->factor >= 1e-6 && s->factor <= 1e12))
        return penc_fail_real(error, "factor", s->factor, "be from 1e-6 to 1e12");
    return POSENC_OK;
}

static double penc_longrope_divisor(const penc_scaling_case *c) {
    int is_long = c->seq_len > c->scaling.original_max_positions;
    return (is_long ? c->scaling.long_factors : c->scaling.short_factors)[c->pair];
}

static penc_real penc_longrope_exact(const penc_scaling_case *c) {
    penc_real radians = penc_ladder_rung(&c->log2_base, c->place.rung, c->place.ladder);
    return penc_real_divide(&radians, penc_longrope_divisor(c));
}

static float penc_longrope_framework(const penc_scaling_case *c) {
    return 1.0f / ((float)penc_longrope_divisor(c) * penc_framework_power(c));
}

/* sqrt(1 + ln S / ln L0), S = factor; 1 if S <= 1. */
static penc_attention penc_longrope_attention(const penc_scaling_case *c) {
    const posenc_scaling *s = &c->scaling;
    penc_attention attention = {{penc_wide_of_integer(1), 0}, 1.0};
    if (s->attention_factor != 0.0) {
        attention.exact.significand = penc_wide_of_double(s->attention_factor);
        attention.framework = s->attention_factor;
    } else if (s->factor > 1.0 && s->original_max_positions > 1) {
        penc_wide one = penc_wide_of_integer(1), upper = penc_log2(s->factor).magnitude;
        penc_wide lower = penc_log2((double)s->original_max_positions).magnitude;
        penc_wide square = penc_wide_divide(&upper, &lower);
        square = penc_wide_add(&square, &one);
        penc_exponent root = penc_log2_wide(&square);
        root.magnitude = penc_wide_shift(&root.magnitude, -1);
        attention.exact = penc_exp2(&root);
        penc_real log_s = {penc_wide_multiply(&upper, &penc_ln2), 0};
        penc_real log_l = {penc_wide_multiply(&lower, &penc_ln2), 0};
        attention.framework =
            sqrt(1.0 + penc_real_round(&log_s, 53, -1074) / penc_real_round(&log_l, 53, -1074));
    }
    return attention;
}

const penc_scaling_rule penc_scaling_longrope = {penc_longrope_prepare,
                                                 penc_longrope_exact,
                                                 penc_longrope_framework,
                                                 penc_longrope_attention,
                                                 NULL,
                                                 0};
