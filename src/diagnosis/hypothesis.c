/* From a hypothesis to cos and sin. float64 and libm: verdicts rest on noise far above theirs.
 * SPDX-License-Identifier: MIT */
#include "diagnosis/hypothesis.h"

#include "base/fail.h"
#include "base/number_access.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void penc_hypothesis_copy(penc_hypothesis *to, const penc_hypothesis *from) {
    *to = *from;
    if (from->spec.scaling)
        to->spec.scaling = &to->scaling;
    if (from->spec.axes)
        to->spec.axes = &to->axes;
}

void penc_hypothesis_start(penc_hypothesis *h, const posenc_observation *observation) {
    memset(h, 0, sizeof *h);
    h->spec = *observation->spec;
    if (h->spec.rotary_dim == 0)
        h->spec.rotary_dim = h->spec.head_dim - h->spec.rotary_start;
    if (h->spec.base == 0.0)
        h->spec.base = 10000.0;
    if (h->spec.scaling) {
        h->scaling = *h->spec.scaling;
        h->spec.scaling = &h->scaling;
    }
    if (h->spec.axes) {
        h->axes = *h->spec.axes;
        h->spec.axes = &h->axes;
    }
    h->seq_len = observation->seq_len;
    h->mode = observation->mode;
    h->direction = observation->direction;
    h->frequency_dtype = h->position_dtype = h->table_dtype = POSENC_F64;
    h->angle_scale = 1.0;
}

/* --- Frequencies ------------------------------------------------------------------------------ */

enum { PENC_CACHED = 256 };

/* What the frequencies of a hypothesis depend on. */
typedef struct penc_frequency_key {
    posenc_spec spec;
    posenc_scaling scaling;
    posenc_axes axes;
    uint64_t seq_len;
} penc_frequency_key;

struct penc_frequency_cache {
    size_t count;
    penc_frequency_key key[PENC_CACHED];
    posenc_frequencies *made[PENC_CACHED];
};

penc_frequency_cache *penc_frequency_cache_create(void) {
    return calloc(1, sizeof(penc_frequency_cache));
}

void penc_frequency_cache_destroy(penc_frequency_cache *cache) {
    for (size_t i = 0; cache && i < cache->count; i++)
        posenc_frequencies_destroy(cache->made[i]);
    free(cache);
}

static void penc_frequency_key_of(penc_frequency_key *key, const penc_hypothesis *h) {
    memset(key, 0, sizeof *key);
    key->spec = h->spec;
    key->spec.pairing = POSENC_PAIRING_HALF;
    key->spec.scaling = NULL;
    key->spec.axes = NULL;
    if (h->frequency_dim) {
        key->spec.head_dim = key->spec.rotary_dim = h->frequency_dim;
        key->spec.rotary_start = 0;
    }
    if (h->spec.scaling)
        key->scaling = h->scaling;
    if (h->spec.axes)
        key->axes = h->axes;
    key->seq_len = h->seq_len;
}

static posenc_status penc_frequencies_of(const penc_hypothesis *h, penc_frequency_cache *cache,
                                         const posenc_frequencies **made, posenc_error *error) {
    penc_frequency_key key;
    penc_frequency_key_of(&key, h);
    for (size_t i = 0; i < cache->count; i++) {
        if (memcmp(&cache->key[i], &key, sizeof key) == 0) {
            *made = cache->made[i];
            return POSENC_OK;
        }
    }
    posenc_spec spec = key.spec;
    spec.scaling = h->spec.scaling ? &key.scaling : NULL;
    spec.axes = h->spec.axes ? &key.axes : NULL;
    posenc_frequencies *fresh;
    posenc_status status = posenc_frequencies_create(&spec, h->seq_len, &fresh, NULL, error);
    if (status)
        return status;
    size_t slot = cache->count < PENC_CACHED ? cache->count++ : PENC_CACHED - 1;
    posenc_frequencies_destroy(cache->made[slot]); /* the last place serves all that find none */
    cache->key[slot] = key;
    cache->made[slot] = fresh;
    *made = fresh;
    return POSENC_OK;
}

static double penc_rounded_to(double value, posenc_dtype dtype) {
    double stored;
    if (dtype == POSENC_F64)
        return value;
    penc_store_number(&stored, dtype, 0, value);
    return penc_load_number(&stored, dtype, 0);
}

/* The factor of the running product, moved by some units in the last place. */
static float penc_recurrence_step(const penc_hypothesis *h) {
    float step = (float)pow((double)(float)h->spec.base, -2.0 / (double)h->spec.rotary_dim);
    uint32_t bits = penc_bits_of_float(step);
    return penc_float_of_bits((uint32_t)((int64_t)bits + h->step_ulps));
}

/* How far angles may be off beside what the hypothesis says, per radian. Frameworks' float32 frequencies are
 * within some units in the last place of one another, more where scalings blend (the distance from the exact
 * one is added), and the product is rounded. */
static double penc_angle_noise(const penc_hypothesis *h) {
    if (h->recurrence)
        return 0x1p-30; /* its very bits are made again */
    if (h->mode == POSENC_MODE_EXACT)
        return 0x1p-51;
    return h->frequency_dtype == POSENC_F64 ? 12 * 0x1p-24 : 0x1p-23;
}

static void penc_fill_frequencies(penc_model *model, const posenc_frequencies *made) {
    const penc_hypothesis *h = model->h;
    posenc_mode mode = h->frequency_dtype == POSENC_F64 ? h->mode : POSENC_MODE_FLOAT32;
    for (size_t j = 0; j < model->pairs; j++) {
        double f = posenc_frequencies_inv_freq(made, j, mode);
        model->frequency[j] = penc_rounded_to(f, h->frequency_dtype);
        model->relative_noise[j] = penc_angle_noise(h);
        if (mode == POSENC_MODE_FLOAT32 && h->frequency_dtype == POSENC_F64) {
            double exact = posenc_frequencies_inv_freq(made, j, POSENC_MODE_EXACT);
            model->relative_noise[j] += exact != 0.0 ? fabs(f / exact - 1.0) : 0.0;
        }
        model->axis[j] = (unsigned char)posenc_frequencies_axis(made, j);
    }
    double m = posenc_frequencies_attention_factor(made, POSENC_MODE_EXACT);
    model->attention_factor = m;
    static const double powers[] = {1.0, 0.0, 2.0, 0.0};
    model->magnitude = h->magnitude_rule == PENC_MAGNITUDE_OTHER
                           ? h->magnitude
                           : pow(m, powers[h->magnitude_rule]);
    if (h->direction == POSENC_INVERSE)
        model->magnitude /= m * m;
}

/* --- Channels --------------------------------------------------------------------------------- */

/* Channel number `second` (0 or 1) of pair j. */
static size_t penc_channel_of(posenc_pairing pairing, size_t pairs, size_t j, size_t second) {
    return pairing == POSENC_PAIRING_HALF ? j + second * pairs : 2 * j + second;
}

static size_t penc_pair_of(posenc_pairing pairing, size_t pairs, size_t channel) {
    return pairing == POSENC_PAIRING_HALF ? channel % pairs : channel / 2;
}

static posenc_pairing penc_other_pairing(posenc_pairing pairing) {
    return pairing == POSENC_PAIRING_HALF ? POSENC_PAIRING_INTERLEAVED : POSENC_PAIRING_HALF;
}

static void penc_fill_channels(penc_model *model) {
    const penc_hypothesis *h = model->h;
    posenc_pairing pairing = h->spec.pairing, out = pairing;
    posenc_pairing table = h->mixed ? penc_other_pairing(pairing) : pairing;
    if (h->output)
        out = h->output == POSENC_OUTPUT_HALF ? POSENC_PAIRING_HALF : POSENC_PAIRING_INTERLEAVED;
    for (size_t j = 0; j < model->pairs; j++) {
        for (size_t second = 0; second < 2; second++) {
            size_t channel = penc_channel_of(pairing, model->pairs, j, second);
            model->partner[channel] = penc_channel_of(pairing, model->pairs, j, !second);
            model->sign[channel] = second ? 1 : -1;
            model->pair[channel] = penc_pair_of(table, model->pairs, channel);
            model->target[channel] = penc_channel_of(out, model->pairs, j, second);
        }
    }
}

static posenc_status penc_model_allocate(penc_model *model, size_t pairs, posenc_error *error) {
    penc_model_free(model);
    model->pairs = pairs;
    model->frequency = malloc(pairs * sizeof *model->frequency);
    model->relative_noise = malloc(pairs * sizeof *model->relative_noise);
    model->axis = malloc(pairs);
    model->partner = malloc(2 * pairs * sizeof *model->partner);
    model->pair = malloc(2 * pairs * sizeof *model->pair);
    model->target = malloc(2 * pairs * sizeof *model->target);
    model->sign = malloc(2 * pairs);
    if (!model->frequency || !model->relative_noise || !model->axis || !model->partner ||
        !model->pair || !model->target || !model->sign)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "spec", "fit into memory");
    return POSENC_OK;
}

posenc_status penc_model_make(penc_model *model, const penc_hypothesis *h,
                              penc_frequency_cache *cache, posenc_error *error) {
    const posenc_frequencies *made = NULL;
    posenc_status status = penc_frequencies_of(h, cache, &made, error);
    if (!status && (model->pairs != h->spec.rotary_dim / 2 || !model->sign))
        status = penc_model_allocate(model, h->spec.rotary_dim / 2, error);
    if (status)
        return status;
    model->h = h;
    model->first = h->spec.rotary_start;
    model->width = h->spec.rotary_dim;
    penc_fill_frequencies(model, made);
    penc_fill_channels(model);
    return POSENC_OK;
}

void penc_model_free(penc_model *model) {
    free(model->frequency);
    free(model->relative_noise);
    free(model->axis);
    free(model->partner);
    free(model->pair);
    free(model->target);
    free(model->sign);
    memset(model, 0, sizeof *model);
}

/* --- Angles ----------------------------------------------------------------------------------- */

const int64_t *penc_observed_positions(const posenc_observation *observation, size_t axis,
                                       size_t batch) {
    return observation->positions + (ptrdiff_t)axis * observation->axis_stride +
           (ptrdiff_t)batch * observation->batch_stride;
}

static double penc_position_used(const penc_hypothesis *h, const posenc_observation *o, size_t axis,
                                 const penc_place *at) {
    size_t tokens = o->before_tensor->shape[POSENC_AXIS_TOKENS];
    if (h->axis_turn)
        axis = h->axes.count - 1 - axis;
    const int64_t *given = penc_observed_positions(o, axis, at->batch);
    double position = (double)given[at->token], first = (double)given[0];
    switch (h->positions) {
    case PENC_POSITIONS_MEANT:
        break;
    case PENC_POSITIONS_FIRST:
        position = first;
        break;
    case PENC_POSITIONS_LAST:
        position = (double)given[tokens - 1];
        break;
    case PENC_POSITIONS_RESTART:
        position -= first;
        break;
    case PENC_POSITIONS_INDEX:
        position = (double)at->token;
        break;
    case PENC_POSITIONS_HEAD:
        position = (double)given[at->head % tokens];
        break;
    case PENC_POSITIONS_SEQUENCE:
        position = (double)penc_observed_positions(o, axis, 0)[at->token];
        break;
    }
    return penc_rounded_to(position + h->shift, h->position_dtype);
}

static double penc_angle_of(const penc_model *model, size_t j, double position) {
    const penc_hypothesis *h = model->h;
    double angle = position * model->frequency[j];
    if (h->mode == POSENC_MODE_FLOAT32)
        angle = (double)((float)position * (float)model->frequency[j]);
    return h->angle_rounded ? penc_rounded_to(angle, POSENC_BF16) : angle;
}

void penc_model_angles(const penc_model *model, const posenc_observation *observation,
                       const penc_place *at, double *angles, double *noise) {
    const penc_hypothesis *h = model->h;
    double scale = h->direction == POSENC_FORWARD ? h->angle_scale : -h->angle_scale;
    float running = 0.0f, step = h->recurrence ? penc_recurrence_step(h) : 0.0f;
    for (size_t j = 0; j < model->pairs; j++) {
        double position = penc_position_used(h, observation, model->axis[j], at);
        double angle = penc_angle_of(model, j, position);
        if (h->recurrence) {
            running = j ? running * step : (float)position;
            angle = (double)running;
        }
        noise[j] = fabs(angle) * model->relative_noise[j] * fabs(scale);
        angles[j] = angle * scale;
    }
}

void penc_model_rows(const penc_model *model, const posenc_observation *observation,
                     const penc_place *at, double *cosines, double *sines, double *noise) {
    const penc_hypothesis *h = model->h;
    penc_model_angles(model, observation, at, cosines, noise);
    for (size_t j = 0; j < model->pairs; j++) {
        double c = model->magnitude * cos(cosines[j]), s = model->magnitude * sin(cosines[j]);
        cosines[j] = penc_rounded_to(h->swapped ? s : c, h->table_dtype);
        sines[j] = penc_rounded_to(h->swapped ? c : s, h->table_dtype);
    }
}
