/* Position interpolation: f_j / s. Chen et al., arXiv:2306.15595. SPDX-License-Identifier: MIT */
#include "frequencies/scaling_rule.h"

static posenc_status penc_linear_prepare(penc_scaling_case *c, posenc_notes *notes,
                                         posenc_error *error) {
    (void)notes;
    return penc_check_factor(c, error);
}

static penc_real penc_linear_exact(const penc_scaling_case *c) {
    penc_real radians = penc_ladder_rung(&c->log2_base, c->place.rung, c->place.ladder);
    return penc_real_divide(&radians, c->scaling.factor);
}

static float penc_linear_framework(const penc_scaling_case *c) {
    return 1.0f / penc_framework_power(c) / (float)c->scaling.factor;
}

const penc_scaling_rule penc_scaling_linear = {
    penc_linear_prepare, penc_linear_exact, penc_linear_framework, NULL, NULL, 1};
