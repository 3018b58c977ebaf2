/* Llama 3.1: slow pairs divided, fast ones kept, a blend by how often a pair turns within L0.
 * SPDX-License-Identifier: MIT */
#include "frequencies/scaling_rule.h"

static posenc_status penc_llama3_prepare(penc_scaling_case *c, posenc_notes *notes,
                                         posenc_error *error) {
    const posenc_scaling *s = &c->scaling;
    posenc_status status = penc_check_factor(c, error);
    if (!status)
        status = penc_check_original(c, notes, error);
    if (status)
        return status;
    if (s->low_freq_factor == 0.0 || s->high_freq_factor == 0.0)
        return penc_fail(error, POSENC_OUT_OF_RANGE,
                         s->low_freq_factor == 0.0 ? "low_freq_factor" : "high_freq_factor",
                         "be given with this scaling, above 0 and at most 1e6");
    if (!(s->low_freq_factor > 0.0 && s->low_freq_factor <= 1e6))
        return penc_fail_real(error, "low_freq_factor", s->low_freq_factor,
                              "be above 0 and at most 1e6");
    if (!(s->high_freq_factor > s->low_freq_factor && s->high_freq_factor <= 1e6))
        return penc_fail_real(error, "high_freq_factor", s->high_freq_factor,
                              "be above low_freq_factor and at most 1e6");
    return POSENC_OK;
}

static penc_real penc_llama3_exact(const penc_scaling_case *c) {
    const posenc_scaling *s = &c->scaling;
    penc_real kept = penc_ladder_rung(&c->log2_base, c->place.rung, c->place.ladder);
    penc_real divided = penc_real_divide(&kept, s->factor);
    /* How often the pair turns within L0, as a wide number: L0 f / (2 pi). */
    penc_wide turns = penc_wide_multiply(&kept.significand, &penc_inverse_turn);
    turns = penc_wide_shift(&turns, kept.exponent);
    turns = penc_wide_multiply_by(&turns, s->original_max_positions);
    penc_wide low = penc_wide_of_double(s->low_freq_factor);
    penc_wide high = penc_wide_of_double(s->high_freq_factor), one = penc_wide_of_integer(1);
    if (penc_wide_compare(&turns, &high) > 0)
        return kept;
    if (penc_wide_compare(&turns, &low) < 0)
        return divided;
    /* t f + (1 - t) f / s, t = (turns - low) / (high - low) */
    high = penc_wide_subtract(&high, &low);
    turns = penc_wide_subtract(&turns, &low);
    penc_wide t = penc_wide_divide(&turns, &high), rest = penc_wide_subtract(&one, &t);
    kept.significand = penc_wide_multiply(&kept.significand, &t);
    rest = penc_wide_multiply(&divided.significand, &rest); /* both have kept's exponent */
    kept.significand = penc_wide_add(&kept.significand, &rest);
    return kept;
}

static float penc_llama3_framework(const penc_scaling_case *c) {
    const posenc_scaling *s = &c->scaling;
    const double length = (double)s->original_max_positions;
    float inv_freq = 1.0f / penc_framework_power(c), factor = (float)s->factor;
    float wavelength =
        1.0f / inv_freq * 6.283185307179586f; /* a scalar divided is a reciprocal times it */
    float low_wavelength = (float)(length / s->low_freq_factor);
    float high_wavelength = (float)(length / s->high_freq_factor);
    if (wavelength < high_wavelength)
        return inv_freq;
    if (wavelength > low_wavelength)
        return inv_freq / factor;
    float smooth = (1.0f / wavelength * (float)length - (float)s->low_freq_factor) /
                   (float)(s->high_freq_factor - s->low_freq_factor);
    return (1.0f - smooth) * inv_freq / factor + smooth * inv_freq;
}

const penc_scaling_rule penc_scaling_llama3 = {
    penc_llama3_prepare, penc_llama3_exact, penc_llama3_framework, NULL, NULL, 0};
