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

static void penc_note_defaulted(posenc_notes *notes, const char *argument, posenc_number value) {
    if (!notes)
        return;
    if (notes->count < notes->capacity && notes->notes) {
        posenc_note note = {POSENC_NOTE_DEFAULTED, argument, value};
        notes->notes[notes->count] = note;
    }
    notes->count++;
}

void penc_note_defaulted_real(posenc_notes *notes, const char *argument, double value) {
    posenc_number number = {POSENC_NUMBER_REAL, {.real = value}};
    penc_note_defaulted(notes, argument, number);
}

void penc_note_defaulted_size(posenc_notes *notes, const char *argument, uint64_t value) {
    posenc_number number = {POSENC_NUMBER_SIZE, {.size = value}};
    penc_note_defaulted(notes, argument, number);
}

posenc_status penc_check_factor(const penc_scaling_case *c, posenc_error *error) {
    if (!(c->scaling.factor >= 1.0 && c->scaling.factor <= 1e12))
        return penc_fail_real(error, "factor", c->scaling.factor,
                              "be given, at least 1 and at most 1e12");
    return POSENC_OK;
}

posenc_status penc_check_original(const penc_scaling_case *c, posenc_error *error) {
    uint64_t length = c->scaling.original_max_positions;
    if (length == 0 || length > UINT64_C(1) << 40)
        return penc_fail_size(error, "original_max_positions", length, "be given, from 1 to 2^40");
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
