/* YaRN: fast pairs kept, slow ones interpolated, a ramp between; and its attention factor.
 * Peng et al., arXiv:2309.00071. SPDX-License-Identifier: MIT */
#include "frequencies/scaling_rule.h"

#include <math.h>

/* The pair, as a real number, that turns `turns` times within L0: d log(L0 / (2 pi turns)) / (2 log base).
 * In logarithms of two, whose unit cancels. */
static penc_exponent penc_yarn_pair_of(const penc_scaling_case *c, double turns) {
    penc_exponent length = penc_log2((double)c->scaling.original_max_positions);
    penc_exponent full = penc_log2_wide(&penc_turn), often = penc_log2(turns);
    penc_exponent e = penc_exponent_subtract(&length, &full);
    e = penc_exponent_subtract(&e, &often);
    e.magnitude = penc_wide_multiply_by(&e.magnitude, c->pairs);
    e.magnitude = penc_wide_divide(&e.magnitude, &c->log2_base.magnitude);
    e.negative = e.negative != c->log2_base.negative;
    return e;
}

/* max(0, floor(e)) or max(0, ceil(e)); unrounded if the model does not truncate. */
static penc_wide penc_yarn_end(const penc_exponent *e, int rounds, int up) {
    penc_wide end = e->magnitude, zero = {{0}};
    if (e->negative)
        return zero;
    if (rounds) {
        uint64_t whole = end.limb[PENC_WIDE_LIMBS - 1];
        end.limb[PENC_WIDE_LIMBS - 1] = 0;
        end = penc_wide_of_integer(whole + (up && !penc_wide_is_zero(&end)));
    }
    return end;
}

static void penc_yarn_ramp(penc_scaling_case *c) {
    penc_exponent fast = penc_yarn_pair_of(c, c->scaling.beta_fast);
    penc_exponent slow = penc_yarn_pair_of(c, c->scaling.beta_slow);
    int rounds = !c->scaling.no_truncate;
    penc_wide low = penc_yarn_end(&fast, rounds, 0), high = penc_yarn_end(&slow, rounds, 1);
    penc_wide most = penc_wide_of_integer(2 * c->pairs - 1); /* d - 1, not d/2 - 1: as released */
    if (penc_wide_compare(&high, &most) > 0)
        high = most;
    penc_real low_real = {low, 0}, high_real = {high, 0};
    double float_low = penc_real_round(&low_real, 53, -1074);
    double float_high = penc_real_round(&high_real, 53, -1074);
    if (float_low == float_high) {
        penc_wide thousandth = penc_wide_ratio(1, 1000);
        high = penc_wide_add(&high, &thousandth);
        float_high += 0.001;
    }
    c->float_low = (float)float_low;
    c->float_length = (float)(float_high - float_low);
    c->ramp_low = low;
    c->ramp_high_below_low = penc_wide_compare(&high, &low) < 0;
    penc_wide length =
        c->ramp_high_below_low ? penc_wide_subtract(&low, &high) : penc_wide_subtract(&high, &low);
    penc_wide one = penc_wide_of_integer(1);
    c->ramp_slope = penc_wide_divide(&one, &length);
}

static posenc_status penc_yarn_prepare(penc_scaling_case *c, posenc_notes *notes,
                                       posenc_error *error) {
    posenc_scaling *s = &c->scaling;
    posenc_status status = penc_check_factor(c, error);
    if (!status)
        status = penc_check_original(c, notes, error);
    if (status)
        return status;
    double implied = (double)c->spec.max_positions / (double)s->original_max_positions;
    if (c->spec.max_positions && s->factor != implied)
        penc_note_real(notes, POSENC_NOTE_FACTOR_DIFFERS, "factor", s->factor);
    if (s->beta_fast == 0.0)
        penc_note_real(notes, POSENC_NOTE_DEFAULTED, "beta_fast", s->beta_fast = 32.0);
    if (s->beta_slow == 0.0)
        penc_note_real(notes, POSENC_NOTE_DEFAULTED, "beta_slow", s->beta_slow = 1.0);
    if (!(s->beta_slow >= 1e-6 && s->beta_slow <= 1e6))
        return penc_fail_real(error, "beta_slow", s->beta_slow, "be from 1e-6 to 1e6");
    if (!(s->beta_fast >= s->beta_slow && s->beta_fast <= 1e6))
        return penc_fail_real(error, "beta_fast", s->beta_fast,
                              "be at least beta_slow and at most 1e6");
    if (c->log2_base.negative || c->spec.base < 1.0 + 1e-6)
        return penc_fail_real(error, "base", c->spec.base, "be above 1 with yarn");
    if (!(s->attention_factor >= 0.0 && s->attention_factor <= 1e6))
        return penc_fail_real(error, "attention_factor", s->attention_factor, "be from 0 to 1e6");
    if (!(s->attention_coefficient >= 0.0 && s->attention_coefficient <= 1e3))
        return penc_fail_real(error, "attention_coefficient", s->attention_coefficient,
                              "be from 0 to 1000");
    if (!(s->mscale >= 0.0 && s->mscale <= 1e3))
        return penc_fail_real(error, "mscale", s->mscale, "be from 0 to 1000");
    if (!(s->mscale_all_dim >= 0.0 && s->mscale_all_dim <= 1e3))
        return penc_fail_real(error, "mscale_all_dim", s->mscale_all_dim, "be from 0 to 1000");
    penc_yarn_ramp(c);
    return POSENC_OK;
}

/* clamp((pair - low) / (high - low), 0, 1) */
static penc_wide penc_yarn_ramp_at(const penc_scaling_case *c) {
    penc_wide at = penc_wide_of_integer(c->pair), one = penc_wide_of_integer(1), zero = {{0}};
    int below = penc_wide_compare(&at, &c->ramp_low) < 0;
    if (below != c->ramp_high_below_low)
        return zero;
    penc_wide ramp =
        below ? penc_wide_subtract(&c->ramp_low, &at) : penc_wide_subtract(&at, &c->ramp_low);
    ramp = penc_wide_multiply(&ramp, &c->ramp_slope);
    return penc_wide_compare(&ramp, &one) > 0 ? one : ramp;
}

static penc_real penc_yarn_exact(const penc_scaling_case *c) {
    penc_real kept = penc_ladder_rung(&c->log2_base, c->place.rung, c->place.ladder);
    penc_wide ramp = penc_yarn_ramp_at(c), one = penc_wide_of_integer(1);
    /* f (r / s + 1 - r) */
    penc_real scaled = {ramp, 0};
    scaled = penc_real_divide(&scaled, c->scaling.factor);
    ramp = penc_wide_subtract(&one, &ramp);
    ramp = penc_wide_add(&ramp, &scaled.significand);
    kept.significand = penc_wide_multiply(&kept.significand, &ramp);
    return kept;
}

static float penc_yarn_framework(const penc_scaling_case *c) {
    float power = penc_framework_power(c);
    float extrapolated = 1.0f / power, interpolated = 1.0f / ((float)c->scaling.factor * power);
    float ramp = ((float)c->pair - c->float_low) / c->float_length;
    ramp = ramp < 0.0f ? 0.0f : ramp > 1.0f ? 1.0f : ramp;
    float keep = 1.0f - ramp;
    return interpolated * (1.0f - keep) + extrapolated * keep;
}

/* g(s, m) = coefficient * m * ln s + 1 */
static penc_wide penc_yarn_magnitude(const penc_scaling_case *c, double m) {
    penc_wide g = penc_log2(c->scaling.factor).magnitude,
              one = penc_wide_of_integer(1); /* s >= 1 */
    g = penc_wide_multiply(&g, &penc_ln2);
    penc_wide coefficient = c->scaling.attention_coefficient == 0.0
                                ? penc_wide_ratio(1, 10)
                                : penc_wide_of_double(c->scaling.attention_coefficient);
    g = penc_wide_multiply(&g, &coefficient);
    coefficient = penc_wide_of_double(m);
    g = penc_wide_multiply(&g, &coefficient);
    return penc_wide_add(&g, &one);
}

/* transformers' float64 operations, with our own logarithm in the place of libm's. */
static double penc_yarn_magnitude_double(const penc_scaling_case *c, double m) {
    if (c->scaling.factor <= 1.0)
        return 1.0;
    penc_real log = {penc_log2(c->scaling.factor).magnitude, 0};
    log.significand = penc_wide_multiply(&log.significand, &penc_ln2);
    double coefficient = c->scaling.attention_coefficient;
    return (coefficient == 0.0 ? 0.1 : coefficient) * m * penc_real_round(&log, 53, -1074) + 1.0;
}

static penc_attention penc_yarn_attention(const penc_scaling_case *c) {
    const posenc_scaling *s = &c->scaling;
    penc_attention attention = {{{{0}}, 0}, s->attention_factor};
    if (s->attention_factor != 0.0) {
        attention.exact.significand = penc_wide_of_double(s->attention_factor);
    } else if (s->mscale != 0.0 && s->mscale_all_dim != 0.0) {
        penc_wide upper = penc_yarn_magnitude(c, s->mscale);
        penc_wide lower = penc_yarn_magnitude(c, s->mscale_all_dim);
        attention.exact.significand = penc_wide_divide(&upper, &lower);
        attention.framework = penc_yarn_magnitude_double(c, s->mscale) /
                              penc_yarn_magnitude_double(c, s->mscale_all_dim);
    } else {
        attention.exact.significand = penc_yarn_magnitude(c, 1.0);
        attention.framework = penc_yarn_magnitude_double(c, 1.0);
    }
    return attention;
}

/* g(s, mscale_all_dim)^2 */
static double penc_yarn_softmax(const penc_scaling_case *c) {
    penc_real square = {penc_yarn_magnitude(c, c->scaling.mscale_all_dim), 0};
    square.significand = penc_wide_multiply(&square.significand, &square.significand);
    return penc_real_round(&square, 53, -1074);
}

const penc_scaling_rule penc_scaling_yarn = {penc_yarn_prepare,   penc_yarn_exact,
                                             penc_yarn_framework, penc_yarn_attention,
                                             penc_yarn_softmax,   0};
