/* The list of scalings, and what several rules share. SPDX-License-Identifier: MIT */
#include "frequencies/scaling_rule.h"

#include "frequencies/scaling_list.h"

#define PENC_DECLARE(name, type) extern const penc_scaling_rule penc_scaling_##name;
PENC_SCALINGS(PENC_DECLARE)
#undef PENC_DECLARE

const penc_scaling_rule *penc_scaling_rule_of(posenc_scaling_type type) {
    switch (type) {
#define PENC_CASE(name, type)                                                                      \
    case type:                                                                                     \
        return &penc_scaling_##name;
        PENC_SCALINGS(PENC_CASE)
#undef PENC_CASE
    }
    return NULL;
}

const char *posenc_scaling_name(posenc_scaling_type type) {
    switch (type) {
#define PENC_WORD(name, number, word)                                                              \
    case POSENC_SCALING_##name:                                                                    \
        return word;
        POSENC_SCALING_LIST(PENC_WORD)
#undef PENC_WORD
    }
    return NULL;
}

/* PyTorch rounds a base that is a Python float to float32 before it raises it. */
float penc_framework_power(const penc_scaling_case *c) {
    float exponent = (float)(2 * c->place.rung) / (float)(2 * c->place.ladder);
    int shift;
    uint64_t numerator = penc_split_double((double)exponent, &shift); /* 24 bits at the top of 53 */
    penc_exponent e = penc_exponent_scale(&c->log2_float, numerator >> 29, 1);
    e.magnitude = penc_wide_shift(&e.magnitude, shift + 29);
    penc_real power = penc_exp2(&e);
    return (float)penc_real_round(&power, 24, -149);
}

posenc_status penc_check_factor(const penc_scaling_case *c, posenc_error *error) {
    double least = c->scaling.shrinks ? 1e-6 : 1.0;
    if (c->scaling.factor == 0.0)
        return penc_fail(error, POSENC_OUT_OF_RANGE, "factor",
                         "be given with this scaling, at least 1 and at most 1e12");
    if (!(c->scaling.factor >= least && c->scaling.factor <= 1e12))
        return penc_fail_real(error, "factor", c->scaling.factor,
                              c->scaling.shrinks ? "be from 1e-6 to 1e12"
                                                 : "be at least 1 and at most 1e12");
    return POSENC_OK;
}

posenc_status penc_check_original(const penc_scaling_case *c, posenc_notes *notes,
                                  posenc_error *error) {
    uint64_t original = c->scaling.original_max_positions, maximum = c->spec.max_positions;
    if (original == 0)
        return penc_fail(error, POSENC_OUT_OF_RANGE, "original_max_positions",
                         "be given with this scaling (original_max_position_embeddings), from 1 "
                         "to 2^40");
    if (original > UINT64_C(1) << 40)
        return penc_fail_size(error, "original_max_positions", original, "be from 1 to 2^40");
    if (maximum && original >= maximum)
        penc_note_size(notes, POSENC_NOTE_ORIGINAL_NOT_BELOW_MAXIMUM, "original_max_positions",
                       original);
    return POSENC_OK;
}

penc_real penc_real_divide(const penc_real *radians, double divisor) {
    int exponent;
    uint64_t significand = penc_split_double(divisor, &exponent);
    penc_real quotient = {penc_wide_divide_by(&radians->significand, significand),
                          radians->exponent};
    quotient.significand = penc_wide_shift(&quotient.significand, -exponent);
    return quotient;
}
