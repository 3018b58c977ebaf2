/* Checking a spec and resolving its frequencies. SPDX-License-Identifier: MIT */
#include "frequencies/frequencies_object.h"

#include "base/fail.h"
#include "base/struct_size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *posenc_pairing_name(posenc_pairing pairing) {
    switch (pairing) {
    case POSENC_PAIRING_HALF:
        return "half";
    case POSENC_PAIRING_INTERLEAVED:
        return "interleaved";
    }
    return NULL;
}

posenc_status posenc_pairing_parse(const char *text, posenc_pairing *pairing, posenc_error *error) {
    static const struct {
        const char *text;
        posenc_pairing pairing;
    } names[] = {
        {"half", POSENC_PAIRING_HALF},
        {"neox", POSENC_PAIRING_HALF},
        {"rotate_half", POSENC_PAIRING_HALF},
        {"half_split", POSENC_PAIRING_HALF},
        {"split_half", POSENC_PAIRING_HALF},
        {"interleaved", POSENC_PAIRING_INTERLEAVED},
        {"gptj", POSENC_PAIRING_INTERLEAVED},
        {"meta", POSENC_PAIRING_INTERLEAVED},
        {"adjacent", POSENC_PAIRING_INTERLEAVED},
        {"pairs", POSENC_PAIRING_INTERLEAVED},
    };
    static const char *const ambiguous[] = {"alternate", "consecutive", "neox_style"};
    if (!text)
        return penc_fail_null(error, "text");
    if (!pairing)
        return penc_fail_null(error, "pairing");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i].text) == 0) {
            *pairing = names[i].pairing;
            return POSENC_OK;
        }
    }
    for (size_t i = 0; i < sizeof ambiguous / sizeof *ambiguous; i++) {
        if (strcmp(text, ambiguous[i]) == 0)
            return penc_fail(error, POSENC_OUT_OF_RANGE, "pairing",
                             "be named otherwise, since \"alternate\", \"consecutive\" and "
                             "\"neox_style\" mean opposite things in different libraries: half for "
                             "pairs (j, j + rotary_dim/2), interleaved for pairs (2j, 2j + 1)");
    }
    return penc_fail(error, POSENC_OUT_OF_RANGE, "pairing",
                     "be half, pairs (j, j + rotary_dim/2), or interleaved, pairs (2j, 2j + 1)");
}

const char *posenc_mode_name(posenc_mode mode) {
    switch (mode) {
    case POSENC_MODE_EXACT:
        return "exact";
    case POSENC_MODE_FLOAT32:
        return "float32";
    }
    return NULL;
}

/* Fills in what the spec leaves out. `pairing` has no unset value, so it is never noted. */
static void penc_spec_defaults(posenc_spec *spec, posenc_notes *notes) {
    if (spec->rotary_dim == 0 && spec->rotary_start < spec->head_dim) {
        spec->rotary_dim = spec->head_dim - spec->rotary_start;
        penc_note_size(notes, POSENC_NOTE_DEFAULTED, "rotary_dim", spec->rotary_dim);
    }
    if (spec->base == 0.0) {
        spec->base = 10000.0;
        penc_note_real(notes, POSENC_NOTE_DEFAULTED, "base", spec->base);
    }
}

static posenc_status penc_spec_check(const posenc_spec *spec, posenc_error *error) {
    posenc_status status = POSENC_OK;
    if (spec->head_dim < 2 || spec->head_dim > POSENC_MAX_DIM) {
        return penc_fail_size(error, "head_dim", spec->head_dim, "be from 2 to 16777216");
    } else if (spec->rotary_start >= spec->head_dim) {
        status = penc_fail_size(error, "rotary_start", spec->rotary_start, "be below head_dim");
    } else if (spec->rotary_dim % 2 || spec->rotary_dim == 0 || spec->rotary_dim > spec->head_dim) {
        status =
            penc_fail_size(error, "rotary_dim", spec->rotary_dim, "be even and from 2 to head_dim");
    } else if (spec->rotary_dim > spec->head_dim - spec->rotary_start) {
        status = penc_fail_size(error, "rotary_start", spec->rotary_start,
                                "leave room for rotary_dim channels below head_dim");
    } else if (!penc_base_is_valid(spec->base)) {
        return penc_fail_real(error, "base", spec->base, PENC_BASE_RANGE);
    } else if (!posenc_pairing_name(spec->pairing)) {
        return penc_fail_integer(error, "pairing", spec->pairing,
                                 "be POSENC_PAIRING_HALF or POSENC_PAIRING_INTERLEAVED");
    }
    if (status)
        penc_fail_limit(error, "head_dim", spec->head_dim);
    return status;
}

/* A pair in every form that the modes need. */
static penc_frequency penc_resolve_pair(const penc_scaling_rule *rule, const penc_scaling_case *c) {
    penc_frequency frequency = {.axis = c->place.axis};
    penc_real radians = rule->exact
                            ? rule->exact(c)
                            : penc_ladder_rung(&c->log2_base, c->place.rung, c->place.ladder);
    frequency.factor = rule->framework ? rule->framework(c) : 1.0f / penc_framework_power(c);
    frequency.inv_freq = penc_real_round(&radians, 53, -1074);
    if (!penc_wide_is_zero(&radians.significand)) { /* a divisor may have moved it: back below 2 */
        int lead = penc_wide_log2_floor(&radians.significand);
        radians.significand = penc_wide_shift(&radians.significand, -lead);
        radians.exponent += lead;
    }
    frequency.turns = penc_turns_of(&radians, 1.0);
    if (frequency.factor < 0.0f) {
        frequency.inv_freq = -frequency.inv_freq;
        frequency.turns.negative = 1;
    }
    return frequency;
}

static void penc_set_attention(posenc_frequencies *made, penc_real exact, double framework) {
    made->attention.exact = exact;
    made->attention.framework = (double)(float)framework;
    made->attention_factor = penc_real_round(&exact, 53, -1074);
    made->has_attention = made->attention_factor != 1.0;
}

static void penc_resolve_attention(const penc_scaling_rule *rule, const penc_scaling_case *c,
                                   posenc_frequencies *made) {
    penc_attention attention = {{penc_wide_of_integer(1), 0}, 1.0};
    if (rule->attention)
        attention = rule->attention(c);
    penc_set_attention(made, attention.exact, attention.framework);
    made->softmax_factor = rule->softmax ? rule->softmax(c) : 1.0;
}

/* A frequency in quarter turns per position as float64 numbers of 53, 53 and 22 bits. */
static void penc_split_turns(const penc_turns *turns, double *high, double *low, double *rest) {
    int exponent = turns->exponent + 2 - 64; /* of the upper word's last bit */
    double sign = turns->negative ? -1.0 : 1.0;
    uint64_t next = turns->high << 53 | turns->low >> 11;
    *high = sign * ldexp((double)(turns->high >> 11), exponent + 11);
    *low = sign * ldexp((double)(next >> 11), exponent + 11 - 53);
    *rest = sign * ldexp((double)(turns->low & 0x3fffff), exponent - 64);
}

/* The quarter turns of every pair, behind the last frequency. */
static void penc_resolve_quarters(posenc_frequencies *made, size_t padded) {
    made->quarter_high = (double *)(made->frequency + made->pairs);
    made->quarter_low = made->quarter_high + padded;
    made->quarter_rest = made->quarter_low + padded;
    made->fastest = 0.0;
    for (size_t pair = 0; pair < padded; pair++) {
        penc_turns turns = {0, 0, 0, 0};
        if (pair < made->pairs)
            turns = made->frequency[pair].turns;
        penc_split_turns(&turns, &made->quarter_high[pair], &made->quarter_low[pair],
                         &made->quarter_rest[pair]);
        made->fastest = fmax(made->fastest, fabs(made->quarter_high[pair]));
    }
}

/* Checks the scaling and computes what its pairs share. */
static posenc_status penc_prepare_case(penc_scaling_case *c, const penc_scaling_rule **rule,
                                       posenc_notes *notes, posenc_error *error) {
    posenc_scaling none = POSENC_SCALING_INIT;
    c->scaling = none;
    if (c->spec.scaling) {
        posenc_status status = penc_check_struct(c->spec.scaling, sizeof none, "scaling", error);
        if (status)
            return status;
        c->scaling = *c->spec.scaling;
    }
    *rule = penc_scaling_rule_of(c->scaling.type);
    if (!*rule)
        return penc_fail_integer(error, "scaling.type", c->scaling.type,
                                 "be a posenc_scaling_type");
    if (c->spec.max_positions > UINT64_C(1) << 40)
        return penc_fail_size(error, "max_positions", c->spec.max_positions, "be at most 2^40");
    c->pairs = c->spec.rotary_dim / 2;
    c->log2_base = penc_log2(c->spec.base);
    c->float_base = c->spec.base;
    c->log2_float = penc_log2((double)(float)c->spec.base);
    return (*rule)->prepare(c, notes, error);
}

/* Memory for `pairs` frequencies and their quarter turns. */
static posenc_frequencies *penc_allocate_frequencies(size_t pairs, size_t *padded) {
    posenc_frequencies *made;
    *padded = (pairs + 15) / 16 * 16;
    made = malloc(sizeof *made + pairs * sizeof made->frequency[0] +
                  3 * *padded * sizeof made->quarter_high[0]);
    if (made)
        made->pairs = pairs;
    return made;
}

posenc_status posenc_frequencies_create(const posenc_spec *spec, uint64_t seq_len,
                                        posenc_frequencies **frequencies, posenc_notes *notes,
                                        posenc_error *error) {
    if (!frequencies)
        return penc_fail_null(error, "frequencies");
    *frequencies = NULL;
    if (notes)
        notes->count = 0;
    posenc_status status = penc_check_struct(spec, sizeof *spec, "spec", error);
    if (status)
        return status;
    const penc_scaling_rule *rule;
    penc_scaling_case c = {.spec = *spec, .seq_len = seq_len};
    c.spec.size = sizeof c.spec;
    penc_spec_defaults(&c.spec, notes);
    status = penc_spec_check(&c.spec, error);
    if (!status)
        status = penc_prepare_case(&c, &rule, notes, error);
    penc_axis_map map;
    if (!status)
        status = penc_axis_map_start(c.spec.axes, c.pairs, &map, error);
    if (!status && map.axes.exponents != POSENC_EXPONENTS_WHOLE && !rule->any_ladder)
        status = penc_fail_integer(error, "axes.exponents", map.axes.exponents,
                                   "be whole with this scaling");
    if (status)
        return status;
    size_t padded;
    posenc_frequencies *made = penc_allocate_frequencies(c.pairs, &padded);
    if (!made)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "frequencies", "have memory to be made in");
    for (size_t pair = 0; pair < c.pairs; pair++) {
        c.pair = pair;
        c.place = penc_axis_map_next(&map, pair);
        made->frequency[pair] = penc_resolve_pair(rule, &c);
    }
    penc_resolve_quarters(made, padded);
    penc_resolve_attention(rule, &c, made);
    made->exact_only = 0;
    made->spec = c.spec;
    made->scaling = c.scaling;
    made->scaling.short_factors = made->scaling.long_factors = NULL;
    made->scaling.inv_freq = NULL;
    made->spec.scaling = &made->scaling;
    made->axes = map.axes;
    made->axes.pair_axis = NULL;
    made->spec.axes = &made->axes;
    *frequencies = made;
    return POSENC_OK;
}

/* Turns per position as a wide number and a sign. */
static penc_exponent penc_signed_turns(const penc_turns *turns) {
    penc_exponent e = {turns->negative, {{0, 0, turns->low, turns->high, 0}}};
    e.magnitude = penc_wide_shift(&e.magnitude, turns->exponent);
    return e;
}

static penc_frequency penc_change_pair(const penc_frequency *from, const penc_frequency *to) {
    penc_frequency change = {.axis = to->axis, .factor = to->factor - from->factor};
    penc_exponent a = penc_signed_turns(&to->turns), b = penc_signed_turns(&from->turns);
    penc_exponent difference = penc_exponent_subtract(&a, &b);
    penc_real radians = {penc_wide_multiply(&difference.magnitude, &penc_turn), 0};
    change.inv_freq = penc_real_round(&radians, 53, -1074);
    if (difference.negative)
        change.inv_freq = -change.inv_freq;
    if (!penc_wide_is_zero(&difference.magnitude)) {
        int lead = penc_wide_log2_floor(&difference.magnitude);
        penc_wide m = penc_wide_shift(&difference.magnitude, 63 - lead);
        change.turns = (penc_turns){m.limb[4], m.limb[3], lead + 1, difference.negative};
    }
    return change;
}

static posenc_status penc_check_change(const posenc_frequencies *from, const posenc_frequencies *to,
                                       posenc_error *error) {
    if (!from)
        return penc_fail_null(error, "from");
    if (!to)
        return penc_fail_null(error, "to");
    if (from->pairs != to->pairs) {
        penc_fail_size(error, "pairs of `to`", to->pairs, "be those of `from`");
        penc_fail_limit(error, "from", from->pairs);
        return POSENC_OUT_OF_RANGE;
    }
    for (size_t pair = 0; pair < to->pairs; pair++) {
        if (from->frequency[pair].axis != to->frequency[pair].axis) {
            penc_fail_size(error, "the axis of a pair of `to`", to->frequency[pair].axis,
                           "be that of `from`");
            penc_fail_place(error, "pair", (int64_t)pair);
            return POSENC_OUT_OF_RANGE;
        }
    }
    return POSENC_OK;
}

posenc_status posenc_frequencies_change(const posenc_frequencies *from,
                                        const posenc_frequencies *to, posenc_frequencies **change,
                                        posenc_error *error) {
    if (!change)
        return penc_fail_null(error, "change");
    *change = NULL;
    posenc_status status = penc_check_change(from, to, error);
    if (status)
        return status;
    size_t padded;
    posenc_frequencies *made = penc_allocate_frequencies(to->pairs, &padded);
    if (!made)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "change", "have memory to be made in");
    made->spec = to->spec;
    made->scaling = to->scaling;
    made->axes = to->axes;
    made->spec.scaling = &made->scaling;
    made->spec.axes = &made->axes;
    made->exact_only = 1;
    for (size_t pair = 0; pair < to->pairs; pair++)
        made->frequency[pair] = penc_change_pair(&from->frequency[pair], &to->frequency[pair]);
    penc_resolve_quarters(made, padded);
    penc_real quotient = to->attention.exact; /* m_to / m_from: both significands are below 2^20 */
    quotient.significand =
        penc_wide_divide(&quotient.significand, &from->attention.exact.significand);
    quotient.exponent -= from->attention.exact.exponent;
    penc_set_attention(made, quotient, to->attention.framework / from->attention.framework);
    made->softmax_factor = to->softmax_factor;
    *change = made;
    return POSENC_OK;
}

void posenc_frequencies_destroy(posenc_frequencies *frequencies) {
    free(frequencies);
}

size_t posenc_frequencies_pairs(const posenc_frequencies *frequencies) {
    return frequencies ? frequencies->pairs : 0;
}

double posenc_frequencies_inv_freq(const posenc_frequencies *frequencies, size_t pair,
                                   posenc_mode mode) {
    if (!frequencies || pair >= frequencies->pairs)
        return (double)NAN;
    const penc_frequency *frequency = &frequencies->frequency[pair];
    return mode == POSENC_MODE_FLOAT32 ? (double)frequency->factor : frequency->inv_freq;
}

double posenc_frequencies_attention_factor(const posenc_frequencies *frequencies,
                                           posenc_mode mode) {
    if (!frequencies)
        return (double)NAN;
    return mode == POSENC_MODE_FLOAT32 ? frequencies->attention.framework
                                       : frequencies->attention_factor;
}

double posenc_frequencies_softmax_factor(const posenc_frequencies *frequencies) {
    return frequencies ? frequencies->softmax_factor : (double)NAN;
}

size_t posenc_frequencies_axis(const posenc_frequencies *frequencies, size_t pair) {
    return frequencies && pair < frequencies->pairs ? frequencies->frequency[pair].axis : 0;
}

const posenc_spec *posenc_frequencies_spec(const posenc_frequencies *frequencies) {
    return frequencies ? &frequencies->spec : NULL;
}
