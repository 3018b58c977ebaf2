/* The caller's own inverse frequencies (or their reciprocals, as MLX calls "freqs"), taken as exact
 * numbers in mode exact and as float32 factors in mode float32. SPDX-License-Identifier: MIT */
#include "frequencies/scaling_rule.h"

#include <math.h>

static double penc_custom_number(const penc_scaling_case *c, size_t pair) {
    const void *list = c->scaling.inv_freq;
    return c->scaling.inv_freq_dtype == POSENC_F64 ? ((const double *)list)[pair]
                                                   : (double)((const float *)list)[pair];
}

static posenc_status penc_custom_prepare(penc_scaling_case *c, posenc_notes *notes,
                                         posenc_error *error) {
    (void)notes;
    const posenc_scaling *s = &c->scaling;
    if (!s->inv_freq)
        return penc_fail_null(error, "inv_freq");
    if (s->inv_freq_dtype != POSENC_F32 && s->inv_freq_dtype != POSENC_F64)
        return penc_fail_integer(error, "inv_freq_dtype", s->inv_freq_dtype,
                                 "be float32 or float64");
    if (s->inv_freq_count != c->pairs) {
        penc_fail_size(error, "inv_freq_count", s->inv_freq_count, "be rotary_dim / 2");
        penc_fail_limit(error, "rotary_dim / 2", c->pairs);
        return POSENC_OUT_OF_RANGE;
    }
    for (size_t i = 0; i < c->pairs; i++) {
        double number = penc_custom_number(c, i), size = fabs(number);
        int zero = number == 0.0 && !s->inv_freq_is_period;
        if (!zero && !(size >= 1e-37 && size <= (s->inv_freq_is_period ? 1e37 : 1e6))) {
            penc_fail_real(error, "inv_freq", number,
                           "be 0 or of magnitude 1e-37 to 1e6 (periods: 1e-6 to 1e37)");
            penc_fail_place(error, "index", (int64_t)i);
            return POSENC_OUT_OF_RANGE;
        }
        if (s->inv_freq_is_period && size < 1e-6) {
            penc_fail_real(error, "inv_freq", number, "be of magnitude 1e-6 to 1e37 as a period");
            penc_fail_place(error, "index", (int64_t)i);
            return POSENC_OUT_OF_RANGE;
        }
    }
    return POSENC_OK;
}

static penc_real penc_custom_exact(const penc_scaling_case *c) {
    double number = penc_custom_number(c, c->pair);
    int exponent;
    penc_real radians = {{{0}}, 0};
    if (number == 0.0)
        return radians;
    uint64_t significand = penc_split_double(fabs(number), &exponent);
    if (c->scaling.inv_freq_is_period) { /* 2^-52 ... 1, times 2^52 */
        radians.significand = penc_wide_ratio(UINT64_C(1) << 52, significand);
        radians.exponent = -exponent - 52;
    } else { /* 1 ... 2 */
        penc_wide whole = penc_wide_of_integer(significand);
        radians.significand = penc_wide_shift(&whole, -52);
        radians.exponent = exponent + 52;
    }
    return radians;
}

static float penc_custom_framework(const penc_scaling_case *c) {
    float number = (float)penc_custom_number(c, c->pair);
    return c->scaling.inv_freq_is_period ? 1.0f / number : number;
}

const penc_scaling_rule penc_scaling_custom = {
    penc_custom_prepare, penc_custom_exact, penc_custom_framework, NULL, NULL, 1};
