/* Proportional (Gemma 4): the ladder over the whole head's width, its tail not turning at all.
 * SPDX-License-Identifier: MIT */
#include "frequencies/scaling_rule.h"

static posenc_status penc_proportional_prepare(penc_scaling_case *c, posenc_notes *notes,
                                               posenc_error *error) {
    posenc_scaling *s = &c->scaling;
    if (s->factor == 0.0)
        penc_note_real(notes, POSENC_NOTE_DEFAULTED, "factor", s->factor = 1.0);
    if (s->partial == 0.0)
        penc_note_real(notes, POSENC_NOTE_DEFAULTED, "partial", s->partial = 1.0);
    posenc_status status = penc_check_factor(c, error);
    if (status)
        return status;
    if (!(s->partial > 0.0 && s->partial <= 1.0))
        return penc_fail_real(error, "partial", s->partial, "be above 0 and at most 1");
    if (c->spec.rotary_dim != c->spec.head_dim) {
        penc_fail_size(error, "rotary_dim", c->spec.rotary_dim,
                       "be head_dim with proportional scaling, which pairs over the whole head");
        penc_fail_limit(error, "head_dim", c->spec.head_dim);
        return POSENC_OUT_OF_RANGE;
    }
    return POSENC_OK;
}

/* int(partial * head_dim // 2) */
static int penc_proportional_turns(const penc_scaling_case *c) {
    double channels = c->scaling.partial * (double)c->spec.head_dim;
    return c->pair < (size_t)(channels / 2.0);
}

static penc_real penc_proportional_exact(const penc_scaling_case *c) {
    penc_real still = {{{0}}, 0};
    if (!penc_proportional_turns(c))
        return still;
    penc_real radians = penc_ladder_rung(&c->log2_base, c->place.rung, c->place.ladder);
    return penc_real_divide(&radians, c->scaling.factor);
}

static float penc_proportional_framework(const penc_scaling_case *c) {
    if (!penc_proportional_turns(c))
        return 0.0f;
    return 1.0f / penc_framework_power(c) / (float)c->scaling.factor;
}

const penc_scaling_rule penc_scaling_proportional = {
    penc_proportional_prepare, penc_proportional_exact, penc_proportional_framework, NULL, NULL, 0};
