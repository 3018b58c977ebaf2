/* What each cause does to a hypothesis. SPDX-License-Identifier: MIT */
#include "diagnosis/cause_list.h"
#include "diagnosis/fit.h"

#include <math.h>
#include <string.h>

#define PENC_CAUSE(name)                                                                           \
    static int penc_cause_##name(penc_hypothesis *h, const penc_trial *trial, size_t variant,      \
                                 double *value)
#define PENC_UNUSED (void)trial, (void)variant, (void)value

static size_t penc_tokens(const penc_trial *trial) {
    return trial->observation->before_tensor->shape[POSENC_AXIS_TOKENS];
}

/* Sequences that may have positions of their own; 1: all have the same. */
static size_t penc_sequences(const penc_trial *trial) {
    const posenc_observation *o = trial->observation;
    return o->batch_stride ? o->before_tensor->shape[POSENC_AXIS_BATCH] : 1;
}

/* Whether token t of every sequence has its sequence's first position + t, on every axis from the same one on. */
static int penc_counts(const penc_trial *trial) {
    const posenc_observation *o = trial->observation;
    size_t axes = o->spec->axes ? o->spec->axes->count : 1;
    for (size_t i = 0; i < axes * penc_sequences(trial); i++) {
        size_t batch = i / axes;
        const int64_t *given = penc_observed_positions(o, i % axes, batch);
        for (size_t t = 0; t < penc_tokens(trial); t++) {
            if (given[t] != *penc_observed_positions(o, 0, batch) + (int64_t)t)
                return 0;
        }
    }
    return 1;
}

/* Whether a sequence has the positions of the first one. */
static int penc_is_like_first(const penc_trial *trial, size_t batch) {
    const posenc_observation *o = trial->observation;
    size_t axes = o->spec->axes ? o->spec->axes->count : 1;
    for (size_t a = 0; a < axes; a++) {
        if (memcmp(penc_observed_positions(o, a, batch), penc_observed_positions(o, a, 0),
                   penc_tokens(trial) * sizeof *o->positions) != 0)
            return 0;
    }
    return 1;
}

/* --- Angles and pairs --------------------------------------------------------------------------- */

PENC_CAUSE(other_mode) {
    PENC_UNUSED;
    if (h->recurrence || h->mode != trial->observation->mode)
        return 0;
    h->mode = h->mode == POSENC_MODE_EXACT ? POSENC_MODE_FLOAT32 : POSENC_MODE_EXACT;
    return 1;
}

PENC_CAUSE(other_pairing) {
    PENC_UNUSED;
    if (h->mixed || h->spec.rotary_dim < 4)
        return 0; /* the mix-up has both variants already */
    h->spec.pairing =
        h->spec.pairing == POSENC_PAIRING_HALF ? POSENC_PAIRING_INTERLEAVED : POSENC_PAIRING_HALF;
    return 1;
}

PENC_CAUSE(pair_mix_up) {
    if (h->spec.pairing != trial->observation->spec->pairing || h->spec.rotary_dim < 4)
        return 0;
    h->mixed = 1;
    if (variant)
        h->spec.pairing = h->spec.pairing == POSENC_PAIRING_HALF ? POSENC_PAIRING_INTERLEAVED
                                                                 : POSENC_PAIRING_HALF;
    (void)value;
    return 1;
}

PENC_CAUSE(other_output_pairing) {
    PENC_UNUSED;
    if (h->output || h->spec.rotary_dim < 4)
        return 0;
    h->output =
        h->spec.pairing == POSENC_PAIRING_HALF ? POSENC_OUTPUT_INTERLEAVED : POSENC_OUTPUT_HALF;
    return 1;
}

static int penc_scale_angles(penc_hypothesis *h, double by) {
    if (fabs(h->angle_scale) != 1.0)
        return 0;
    h->angle_scale *= by;
    return 1;
}

PENC_CAUSE(negated_angle) {
    PENC_UNUSED;
    if (h->angle_scale == 0.0)
        return 0;
    h->angle_scale = -h->angle_scale;
    return 1;
}

PENC_CAUSE(cos_sin_swapped) {
    PENC_UNUSED;
    h->swapped = 1;
    return 1;
}

PENC_CAUSE(not_rotated) {
    PENC_UNUSED;
    if (h->magnitude_rule)
        return 0;
    h->magnitude_rule = PENC_MAGNITUDE_OTHER;
    h->magnitude = 1.0;
    h->angle_scale = 0.0;
    return 1;
}

PENC_CAUSE(angle_doubled) {
    PENC_UNUSED;
    return penc_scale_angles(h, 2.0);
}

PENC_CAUSE(angle_halved) {
    PENC_UNUSED;
    return penc_scale_angles(h, 0.5);
}

/* --- Frequencies -------------------------------------------------------------------------------- */

/* Bases of released models. */
static const double penc_bases[] = {10000,  500000, 1e6,    1e5, 5e6,   1e7,   150000, 2e6,
                                    1e8,    100,    1000,   256, 25000, 20000, 40000,  50000,
                                    160000, 250000, 640000, 8e6, 1.2e7, 3e6,   1e9,    4e6};

PENC_CAUSE(base) {
    (void)trial;
    if (penc_bases[variant] == h->spec.base)
        return 0;
    *value = h->spec.base = penc_bases[variant];
    return 1;
}

PENC_CAUSE(exponent_over_head_dim) {
    PENC_UNUSED;
    if (h->spec.rotary_dim == h->spec.head_dim || h->spec.axes)
        return 0;
    h->frequency_dim = h->spec.head_dim;
    return 1;
}

PENC_CAUSE(whole_head_rotated) {
    PENC_UNUSED;
    if (h->spec.rotary_dim == h->spec.head_dim || h->frequency_dim || h->spec.axes)
        return 0;
    h->spec.rotary_dim = h->spec.head_dim;
    h->spec.rotary_start = 0;
    return 1;
}

PENC_CAUSE(other_slice) {
    size_t start = variant ? h->spec.head_dim - h->spec.rotary_dim : 0;
    if (start == h->spec.rotary_start ||
        h->spec.rotary_start != trial->observation->spec->rotary_start)
        return 0;
    h->spec.rotary_start = start;
    *value = (double)start;
    return 1;
}

static int penc_scaling_is(const penc_hypothesis *h, posenc_scaling_type type) {
    return h->spec.scaling && h->scaling.type == type;
}

/* Variant 1 keeps the attention factor, which variant 0 drops with the rest. */
PENC_CAUSE(scaling_not_applied) {
    if (!h->spec.scaling || h->scaling.type == POSENC_SCALING_DEFAULT ||
        h->scaling.type == POSENC_SCALING_CUSTOM)
        return 0;
    if (variant) {
        if (trial->meant_magnitude == 1.0 || h->magnitude_rule)
            return 0;
        h->magnitude_rule = PENC_MAGNITUDE_OTHER;
        h->magnitude = trial->meant_magnitude;
    }
    h->spec.scaling = NULL;
    (void)value;
    return 1;
}

PENC_CAUSE(scaling_linear_instead) {
    PENC_UNUSED;
    if (!h->spec.scaling || h->scaling.type == POSENC_SCALING_LINEAR ||
        h->scaling.type == POSENC_SCALING_PROPORTIONAL || !(h->scaling.factor > 1.0))
        return 0;
    double factor = h->scaling.factor;
    h->scaling = (posenc_scaling)POSENC_SCALING_INIT;
    h->scaling.type = POSENC_SCALING_LINEAR;
    h->scaling.factor = factor;
    return 1;
}

PENC_CAUSE(yarn_truncate) {
    PENC_UNUSED;
    if (!penc_scaling_is(h, POSENC_SCALING_YARN))
        return 0;
    h->scaling.no_truncate = !h->scaling.no_truncate;
    return 1;
}

PENC_CAUSE(longrope_other_list) {
    PENC_UNUSED;
    if (!penc_scaling_is(h, POSENC_SCALING_LONGROPE))
        return 0;
    uint64_t original = h->scaling.original_max_positions;
    h->seq_len = h->seq_len > original ? original : original + 1;
    return 1;
}

/* --- Magnitude ---------------------------------------------------------------------------------- */

static int penc_set_magnitude(penc_hypothesis *h, penc_magnitude_rule rule) {
    int has_factor =
        penc_scaling_is(h, POSENC_SCALING_YARN) || penc_scaling_is(h, POSENC_SCALING_LONGROPE);
    if (!has_factor || h->magnitude_rule)
        return 0;
    h->magnitude_rule = rule;
    return 1;
}

PENC_CAUSE(magnitude_missing) {
    PENC_UNUSED;
    return penc_set_magnitude(h, PENC_MAGNITUDE_MISSING);
}

PENC_CAUSE(magnitude_doubled) {
    PENC_UNUSED;
    return penc_set_magnitude(h, PENC_MAGNITUDE_TWICE);
}

/* What it is was measured; names of magnitudes come before it. */
PENC_CAUSE(other_magnitude) {
    (void)variant;
    if (h->magnitude_rule || !(trial->measured_magnitude > 0.0))
        return 0;
    h->magnitude_rule = PENC_MAGNITUDE_OTHER;
    *value = h->magnitude = trial->measured_magnitude;
    return 1;
}

/* --- Positions ---------------------------------------------------------------------------------- */

static int penc_set_positions(penc_hypothesis *h, penc_position_rule rule) {
    if (h->positions)
        return 0;
    h->positions = rule;
    return 1;
}

PENC_CAUSE(constant_position) {
    const posenc_observation *o = trial->observation;
    if (penc_tokens(trial) < 2)
        return 0;
    *value = (double)o->positions[variant ? penc_tokens(trial) - 1 : 0];
    return penc_set_positions(h, variant ? PENC_POSITIONS_LAST : PENC_POSITIONS_FIRST);
}

PENC_CAUSE(position_restarts) {
    PENC_UNUSED;
    int64_t first = trial->observation->positions[0];
    int same = 1;
    for (size_t b = 1; b < penc_sequences(trial); b++)
        same &= penc_observed_positions(trial->observation, 0, b)[0] == first;
    if (same && first >= -2 && first <= 2)
        return 0; /* a shift by 1 or 2 says the same */
    return penc_set_positions(h, PENC_POSITIONS_RESTART);
}

PENC_CAUSE(position_from_index) {
    PENC_UNUSED;
    if (penc_counts(trial))
        return 0; /* a restart or a shift */
    return penc_set_positions(h, PENC_POSITIONS_INDEX);
}

PENC_CAUSE(position_of_head) {
    PENC_UNUSED;
    if (penc_tokens(trial) < 2 || trial->observation->before_tensor->shape[POSENC_AXIS_HEADS] < 2)
        return 0;
    return penc_set_positions(h, PENC_POSITIONS_HEAD);
}

PENC_CAUSE(positions_of_first) {
    PENC_UNUSED;
    for (size_t b = 1; b < penc_sequences(trial); b++) {
        if (!penc_is_like_first(trial, b))
            return penc_set_positions(h, PENC_POSITIONS_SEQUENCE);
    }
    return 0;
}

PENC_CAUSE(position_shifted) {
    static const double shifts[] = {1, -1, 2, -2, 3, -3, 4, -4};
    (void)trial;
    if (h->shift != 0.0)
        return 0;
    *value = h->shift = shifts[variant];
    return 1;
}

PENC_CAUSE(axes_reversed) {
    PENC_UNUSED;
    if (!h->spec.axes || h->axes.count < 2)
        return 0;
    h->axis_turn = 1;
    return 1;
}

/* --- Narrow numbers ------------------------------------------------------------------------------- */

static int penc_narrow(posenc_dtype *place, posenc_dtype dtype) {
    if (*place != POSENC_F64)
        return 0;
    *place = dtype;
    return 1;
}

PENC_CAUSE(positions_bf16) {
    PENC_UNUSED;
    return penc_narrow(&h->position_dtype, POSENC_BF16);
}

PENC_CAUSE(positions_f16) {
    PENC_UNUSED;
    return penc_narrow(&h->position_dtype, POSENC_F16);
}

PENC_CAUSE(frequencies_bf16) {
    PENC_UNUSED;
    return !h->recurrence && penc_narrow(&h->frequency_dtype, POSENC_BF16);
}

PENC_CAUSE(frequencies_f16) {
    PENC_UNUSED;
    return !h->recurrence && penc_narrow(&h->frequency_dtype, POSENC_F16);
}

PENC_CAUSE(angles_bf16) {
    PENC_UNUSED;
    if (h->recurrence || !penc_narrow(&h->frequency_dtype, POSENC_BF16))
        return 0;
    h->angle_rounded = 1;
    return penc_narrow(&h->position_dtype, POSENC_BF16);
}

static int penc_narrow_tables(penc_hypothesis *h, const penc_trial *trial, posenc_dtype dtype) {
    posenc_dtype stored = trial->observation->after_tensor->dtype;
    if (stored == POSENC_BF16 || stored == POSENC_F16)
        return 0; /* within the noise of such arrays */
    return penc_narrow(&h->table_dtype, dtype);
}

PENC_CAUSE(tables_bf16) {
    PENC_UNUSED;
    return penc_narrow_tables(h, trial, POSENC_BF16);
}

PENC_CAUSE(tables_f16) {
    PENC_UNUSED;
    return penc_narrow_tables(h, trial, POSENC_F16);
}

PENC_CAUSE(recurrence_drift) {
    static const int ulps[] = {0, 1, -1};
    (void)value;
    posenc_scaling_type type = h->spec.scaling ? h->scaling.type : POSENC_SCALING_DEFAULT;
    if (h->recurrence || h->spec.axes || h->mode != trial->observation->mode ||
        type != POSENC_SCALING_DEFAULT || h->frequency_dtype != POSENC_F64 || h->frequency_dim)
        return 0;
    h->recurrence = 1;
    h->step_ulps = ulps[variant];
    return 1;
}

/* --- What was left out ------------------------------------------------------------------------------ */

PENC_CAUSE(batch_left_out) {
    (void)value;
    if (trial->observation->before_tensor->shape[POSENC_AXIS_BATCH] < 2)
        return 0;
    h->other_sequences = variant ? PENC_REST_ZERO : PENC_REST_COPIED;
    return 1;
}

PENC_CAUSE(heads_left_out) {
    PENC_UNUSED;
    if (trial->observation->before_tensor->shape[POSENC_AXIS_HEADS] < 2)
        return 0;
    h->other_heads = PENC_REST_COPIED;
    return 1;
}

/* --- Measured numbers: tried after all that has a name ------------------------------------------------ */

static int penc_measure_number(const penc_hypothesis *h, const penc_trial *trial, penc_fitted what,
                               double *value) {
    return penc_model_make(trial->scratch, h, trial->cache, NULL) == POSENC_OK &&
           penc_fit(trial->evidence, trial->scratch, what, value);
}

/* To `digits` significant digits; 0: as it is. */
static double penc_rounded_digits(double value, int digits) {
    if (digits == 0 || value == 0.0 || !isfinite(value))
        return value;
    double unit = pow(10.0, digits - 1 - floor(log10(fabs(value))));
    return round(value * unit) / unit;
}

PENC_CAUSE(shift_measured) {
    double shift;
    (void)variant;
    if (h->shift != 0.0 || h->positions || /* one number that fits one position says nothing */
        h->position_dtype != POSENC_F64 || !penc_measure_number(h, trial, PENC_FIT_SHIFT, &shift))
        return 0;
    shift = round(shift);
    if (shift == 0.0 || fabs(shift) > 0x1p40)
        return 0;
    *value = h->shift = shift;
    return 1;
}

/* A factor that divides is tried first, as position interpolation has it; then one that multiplies; then any number. */
PENC_CAUSE(angles_scaled) {
    double scale;
    if (fabs(h->angle_scale) != 1.0 || !penc_measure_number(h, trial, PENC_FIT_SCALE, &scale))
        return 0;
    scale += 1.0;
    int digits = (int)variant % 5 + 1;
    if (variant < 5)
        scale = 1.0 / penc_rounded_digits(1.0 / scale, digits);
    else
        scale = penc_rounded_digits(scale, variant == 9 ? 0 : digits);
    if (!(scale > 1e-3 && scale < 1e3) || scale == 1.0)
        return 0;
    *value = scale;
    h->angle_scale *= scale;
    return 1;
}

PENC_CAUSE(base_measured) {
    double growth;
    posenc_scaling_type type = h->spec.scaling ? h->scaling.type : POSENC_SCALING_DEFAULT;
    if (type > POSENC_SCALING_DYNAMIC || h->spec.axes || /* those whose frequencies are powers */
        h->frequency_dim || !penc_measure_number(h, trial, PENC_FIT_BASE, &growth))
        return 0;
    double base = penc_rounded_digits(h->spec.base * exp(growth), ((int)variant + 1) % 7);
    if (!(base > 1.0 && base < 1e15) || base == h->spec.base)
        return 0;
    *value = h->spec.base = base;
    return 1;
}

#define PENC_CAUSE_ENTRY(name, variants, weight, sentence)                                         \
    {#name, sentence, variants, weight, penc_cause_##name},
const penc_cause penc_causes[PENC_CAUSE_COUNT] = {PENC_CAUSE_LIST(PENC_CAUSE_ENTRY)};
#undef PENC_CAUSE_ENTRY

size_t posenc_cause_count(void) {
    return PENC_CAUSE_COUNT;
}

const char *posenc_cause_name(size_t index) {
    return index < PENC_CAUSE_COUNT ? penc_causes[index].name : NULL;
}

const char *posenc_cause_sentence(size_t index) {
    return index < PENC_CAUSE_COUNT ? penc_causes[index].sentence : NULL;
}
