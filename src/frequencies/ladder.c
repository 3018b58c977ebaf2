/* The geometric ladder of frequencies. SPDX-License-Identifier: MIT */
#include "frequencies/ladder.h"

penc_real penc_ladder_rung(const penc_exponent *log2_base, uint64_t numerator,
                           uint64_t denominator) {
    penc_exponent e = penc_exponent_scale(log2_base, numerator, denominator);
    e.negative = !e.negative;
    return penc_exp2(&e);
}

penc_turns penc_turns_of(const penc_real *radians, double scale) {
    penc_wide turns = penc_wide_multiply(&radians->significand, &penc_inverse_turn);
    int scale_exponent;
    uint64_t factor = penc_split_double(scale < 0 ? -scale : scale, &scale_exponent);
    turns = penc_wide_multiply_by(&turns, factor);

    if (penc_wide_is_zero(&turns))
        return (penc_turns){0, 0, 0, 0};
    int lead = penc_wide_log2_floor(&turns);
    penc_wide m = penc_wide_shift(&turns, 63 - lead); /* 128 bits in the upper two limbs */
    penc_turns result = {m.limb[4], m.limb[3], radians->exponent + scale_exponent + lead + 1,
                         scale < 0};
    return result;
}
