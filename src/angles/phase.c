/* Position times frequency, reduced exactly. SPDX-License-Identifier: MIT */
#include "angles/phase.h"

penc_position penc_position_of_double(double position) {
    penc_position result = {0, 0, position < 0};
    result.significand = penc_split_double(position < 0 ? -position : position, &result.exponent);
    return result;
}

/* significand * (high:low) as a 192-bit integer in the fraction's upper three limbs (unit 2^-192).
 */
static penc_wide penc_phase_product(uint64_t significand, const penc_turns *frequency) {
    uint64_t high, carry;
    uint64_t low = penc_multiply(significand, frequency->low, &carry);
    uint64_t middle = penc_multiply(significand, frequency->high, &high);
    middle += carry;
    high += middle < carry;
    penc_wide product = {{0, low, middle, high, 0}};
    return product;
}

penc_angle penc_angle_at(const penc_position *position, const penc_turns *frequency) {
    /* The product counts 2^(e - 128) turns; shifting to fraction bits drops whole turns at the top.
     */
    penc_wide turns = penc_phase_product(position->significand, frequency);
    turns = penc_wide_shift(&turns, 64 + position->exponent + frequency->exponent);
    turns.limb[4] = 0;

    unsigned eighth = (unsigned)(turns.limb[3] >> 61);
    penc_wide nearest = {{0, 0, 0, (uint64_t)((eighth + 1) / 2) << 62, eighth == 7}};
    penc_angle angle;
    angle.negative = position->negative != frequency->negative;
    angle.quarter = (eighth + 1) / 2 % 4;
    angle.rest_negative = (int)(eighth % 2);
    turns = angle.rest_negative ? penc_wide_subtract(&nearest, &turns)
                                : penc_wide_subtract(&turns, &nearest);
    angle.radians = penc_wide_multiply(&turns, &penc_turn);
    return angle;
}

penc_angle penc_angle_of_radians(float radians) {
    /* One radian per position: 1/(2 pi) = 0.159 turns, whose leading bit is 2^-3. */
    penc_wide m = penc_wide_shift(&penc_inverse_turn, 66);
    penc_turns one = {m.limb[4], m.limb[3], -2, 0};
    penc_position position = penc_position_of_double((double)radians);
    return penc_angle_at(&position, &one);
}
