/* Comparing what was computed with what a model predicts. SPDX-License-Identifier: MIT */
#include "diagnosis/evidence.h"

#include "base/fail.h"
#include "base/number_access.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PENC_SAMPLE_TOKENS = 64, PENC_SAMPLE_OTHERS = 3, PENC_SAMPLE_NUMBERS = 1 << 21 };

/* An angle that may be off by more says nothing about its pair. */
static const double penc_vague_angle = 0.25;

/* Near its zeros a library's cos or sin is accurate to a share of 1, not of itself. */
static const double penc_floor = 1.0 / 16;

/* Three roundings (cos or sin, product, sum), and more where libraries' cos and sin are no better than a
 * few units in the last place. */
static double penc_unit_of(posenc_dtype before, posenc_dtype after) {
    double extra = before == after || before == POSENC_F16 || before == POSENC_BF16 ? 0.0 : 1.0;
    switch (after) {
    case POSENC_F64:
        return 16 * 0x1p-53;
    case POSENC_F32:
        return 6 * 0x1p-24;
    case POSENC_F16:
        return (3.1 + extra) * 0x1p-11;
    case POSENC_BF16:
        return (3.1 + extra) * 0x1p-8;
    }
    return 0.0;
}

static double penc_rounding_of(posenc_dtype dtype) {
    return penc_unit_of(dtype, dtype) / (dtype == POSENC_F64   ? 16.0
                                         : dtype == POSENC_F32 ? 6
                                                               : 3.1);
}

posenc_status penc_evidence_start(penc_evidence *evidence, const posenc_observation *observation,
                                  posenc_error *error) {
    memset(evidence, 0, sizeof *evidence);
    posenc_dtype before = observation->before_tensor->dtype,
                 after = observation->after_tensor->dtype;
    size_t d = observation->before_tensor->shape[POSENC_AXIS_HEAD_DIM];
    evidence->observation = observation;
    evidence->head_dim = d;
    evidence->unit = penc_unit_of(before, after);
    evidence->copy_unit = before == after ? 0.0 : penc_rounding_of(after);
    evidence->denormal = after == POSENC_F16 ? 0x1p-24 : 1e-40;
    evidence->cos =
        malloc(8 * d * sizeof(double)); /* cos, sin and noise of pairs are half as long */
    if (!evidence->cos)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "before", "fit into memory");
    evidence->sin = evidence->cos + d;
    evidence->noise = evidence->sin + d;
    evidence->predicted = evidence->noise + d;
    evidence->rounding = evidence->predicted + d;
    evidence->allowed = evidence->rounding + d;
    evidence->head = evidence->allowed + d;
    return POSENC_OK;
}

void penc_evidence_free(penc_evidence *evidence) {
    free(evidence->cos);
    free(evidence->vectors);
    free(evidence->numbers);
    free(evidence->doubted);
    memset(evidence, 0, sizeof *evidence);
}

static void penc_load_vector(const posenc_tensor *tensor, const void *data, const penc_vector *at,
                             double *to) {
    ptrdiff_t start = (ptrdiff_t)at->place.batch * tensor->strides[POSENC_AXIS_BATCH] +
                      (ptrdiff_t)at->place.token * tensor->strides[POSENC_AXIS_TOKENS] +
                      (ptrdiff_t)at->place.head * tensor->strides[POSENC_AXIS_HEADS];
    for (size_t i = 0; i < tensor->shape[POSENC_AXIS_HEAD_DIM]; i++)
        to[i] = penc_load_number(data, tensor->dtype,
                                 start + (ptrdiff_t)i * tensor->strides[POSENC_AXIS_HEAD_DIM]);
}

/* --- Prediction of one vector -------------------------------------------------------------------- */

penc_rest_rule penc_rest_of(const penc_hypothesis *h, const penc_vector *at) {
    if (at->place.batch > 0 && h->other_sequences)
        return h->other_sequences;
    return at->place.head > 0 ? h->other_heads : PENC_REST_ROTATED;
}

/* Every channel copied, or zero. */
static void penc_predict_rest(penc_evidence *evidence, const penc_vector *at, penc_rest_rule rest) {
    for (size_t i = 0; i < evidence->head_dim; i++) {
        evidence->predicted[i] = rest == PENC_REST_ZERO ? 0.0 : at->before[i];
        evidence->rounding[i] = evidence->allowed[i] =
            evidence->copy_unit * fabs(evidence->predicted[i]) + evidence->denormal;
    }
}

static void penc_predict(penc_evidence *evidence, const penc_model *model, const penc_vector *at) {
    penc_rest_rule rest = penc_rest_of(model->h, at);
    penc_predict_rest(evidence, at, rest);
    if (rest)
        return;
    penc_model_rows(model, evidence->observation, &at->place, evidence->cos, evidence->sin,
                    evidence->noise);
    const double *x = at->before + model->first;
    double *y = evidence->predicted + model->first, *allowed = evidence->allowed + model->first;
    double *rounding = evidence->rounding + model->first;
    for (size_t i = 0; i < model->width; i++) {
        size_t j = model->pair[i], to = model->target[i];
        double own = x[i] * evidence->cos[j];
        double other = model->sign[i] * x[model->partner[i]] * evidence->sin[j];
        double size = fabs(model->magnitude) * (fabs(x[i]) + fabs(x[model->partner[i]]));
        y[to] = own + other;
        rounding[to] =
            evidence->unit * (fabs(own) + fabs(other) + penc_floor * size) + evidence->denormal;
        allowed[to] = rounding[to] + evidence->noise[j] * size;
    }
}

/* --- Comparison ---------------------------------------------------------------------------------- */

static void penc_note_worst(penc_score *score, const penc_vector *at, size_t channel, double error,
                            double allowed) {
    score->worst_error = error;
    score->worst_allowed = allowed;
    score->place[POSENC_AXIS_BATCH] = at->place.batch;
    score->place[POSENC_AXIS_TOKENS] = at->place.token;
    score->place[POSENC_AXIS_HEADS] = at->place.head;
    score->place[POSENC_AXIS_HEAD_DIM] = channel;
}

static int penc_is_finite(const double *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(numbers[i]))
            return 0;
    }
    return 1;
}

/* Numbers that are not finite tell nothing where some were so before, or where 16 bits overflow. Where all were
 * finite, a prediction that is not (float16 positions overflow) is one as any other: a finite number denies it. */
static int penc_is_comparable(const penc_evidence *evidence, double predicted, double after,
                              int finite_before) {
    double largest = evidence->observation->after_tensor->dtype == POSENC_F16 ? 65504.0 : 3e38;
    if (!isfinite(predicted))
        return finite_before && isfinite(after);
    return isfinite(after) || fabs(predicted) < largest;
}

/* Returns 0 if it stopped at an element that is beyond. */
static int penc_compare_vector(penc_evidence *evidence, const penc_model *model,
                               const penc_vector *at, const unsigned char *doubted, int stop,
                               penc_score *score) {
    int finite_before = penc_is_finite(at->before, evidence->head_dim);
    penc_predict(evidence, model, at);
    for (size_t i = 0; i < evidence->head_dim; i++) {
        double predicted = evidence->predicted[i], after = at->after[i];
        if (!isfinite(predicted) && !isfinite(after) && isfinite(at->before[i]))
            score->doubted += doubted && doubted[i]; /* as predicted: float16 positions overflow */
        if (!penc_is_comparable(evidence, predicted, after, finite_before))
            continue;
        int both = isfinite(predicted) && isfinite(after);
        double allowed = evidence->allowed[i];
        double error = both ? fabs(after - predicted) : HUGE_VAL;
        double ratio = both ? error / allowed : HUGE_VAL;
        size_t inside = i - model->first; /* wraps around for channels before the first */
        int vague =
            inside < model->width && evidence->noise[model->pair[inside]] > penc_vague_angle;
        score->compared++;
        if (ratio > 1.0 && score->beyond++ == 0)
            score->worst_error = 0.0; /* from here on only what is beyond counts */
        if (!vague)
            score->squares += fmin(pow(error / evidence->rounding[i], 2.0), 1e6);
        score->worst_ratio = fmax(score->worst_ratio, ratio);
        if (error > score->worst_error && (ratio > 1.0 || score->beyond == 0))
            penc_note_worst(score, at, i, error, allowed);
        if (doubted && doubted[i] && !vague) {
            score->doubted++;
            score->doubted_squares += fmin(ratio * ratio, 1e6);
        }
        if (stop && ratio > 1.0)
            return 0;
    }
    return 1;
}

void penc_score_all(penc_evidence *evidence, const penc_model *model, int stop, penc_score *score) {
    const posenc_observation *o = evidence->observation;
    const size_t *shape = o->before_tensor->shape;
    penc_vector at = {{0, 0, 0}, evidence->head, evidence->head + evidence->head_dim};
    memset(score, 0, sizeof *score);
    for (at.place.batch = 0; at.place.batch < shape[POSENC_AXIS_BATCH]; at.place.batch++) {
        for (at.place.token = 0; at.place.token < shape[POSENC_AXIS_TOKENS]; at.place.token++) {
            for (at.place.head = 0; at.place.head < shape[POSENC_AXIS_HEADS]; at.place.head++) {
                penc_load_vector(o->before_tensor, o->before, &at, at.before);
                penc_load_vector(o->after_tensor, o->after, &at, at.after);
                if (!penc_compare_vector(evidence, model, &at, NULL, stop, score))
                    return;
            }
        }
    }
}

void penc_score_sample(penc_evidence *evidence, const penc_model *model, int stop,
                       penc_score *score) {
    memset(score, 0, sizeof *score);
    for (size_t i = 0; i < evidence->count; i++) {
        if (!penc_compare_vector(evidence, model, &evidence->vectors[i],
                                 evidence->doubted + i * evidence->head_dim, stop, score))
            return;
    }
}

/* --- The sample ------------------------------------------------------------------------------------ */

/* At most `most` indices below `size`, spread, both ends and `needed` among them. */
static size_t penc_spread(size_t size, size_t most, size_t needed, size_t *indices) {
    size_t count = size < most ? size : most, has = 0;
    for (size_t i = 0; i < count; i++) {
        indices[i] = count == size ? i : i * (size - 1) / (count - 1);
        has |= indices[i] == needed;
    }
    if (!has && count > 2)
        indices[count / 2] = needed;
    return count;
}

/* Of the first sequence and the last one, which may have other positions. */
static double penc_reach(const posenc_observation *o, size_t token) {
    size_t axes = o->spec->axes ? o->spec->axes->count : 1;
    size_t last = o->before_tensor->shape[POSENC_AXIS_BATCH] - 1;
    double reach = 0.0;
    for (size_t a = 0; a < axes; a++)
        reach += fabs((double)penc_observed_positions(o, a, 0)[token]) +
                 fabs((double)penc_observed_positions(o, a, last)[token]);
    return reach;
}

/* Tokens at far positions first: wrong hypotheses fail there at once. */
static void penc_sort_by_reach(const posenc_observation *o, size_t *tokens, size_t count) {
    for (size_t i = 1; i < count; i++) {
        size_t token = tokens[i], at = i;
        for (; at > 0 && penc_reach(o, tokens[at - 1]) < penc_reach(o, token); at--)
            tokens[at] = tokens[at - 1];
        tokens[at] = token;
    }
}

static posenc_status penc_allocate_sample(penc_evidence *evidence, size_t count,
                                          posenc_error *error) {
    size_t d = evidence->head_dim;
    evidence->count = count;
    evidence->vectors = malloc(count * sizeof *evidence->vectors);
    evidence->numbers = malloc(count * 2 * d * sizeof *evidence->numbers);
    evidence->doubted = calloc(count, d);
    if (!evidence->vectors || !evidence->numbers || !evidence->doubted)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "before", "fit into memory");
    return POSENC_OK;
}

static void penc_mark_doubted(penc_evidence *evidence, const penc_model *meant) {
    size_t d = evidence->head_dim;
    for (size_t i = 0; i < evidence->count; i++) {
        const penc_vector *at = &evidence->vectors[i];
        penc_predict(evidence, meant, at);
        for (size_t k = 0; k < d; k++) {
            int beyond = !(fabs(at->after[k] - evidence->predicted[k]) <= evidence->allowed[k]);
            evidence->doubted[i * d + k] =
                (unsigned char)(beyond && isfinite(evidence->predicted[k]));
            evidence->doubted_count += evidence->doubted[i * d + k];
        }
    }
}

posenc_status penc_evidence_sample(penc_evidence *evidence, const penc_model *meant,
                                   const size_t *place, posenc_error *error) {
    const posenc_observation *o = evidence->observation;
    const size_t *shape = o->before_tensor->shape;
    size_t d = evidence->head_dim, most = PENC_SAMPLE_NUMBERS / d;
    size_t tokens[PENC_SAMPLE_TOKENS], heads[PENC_SAMPLE_OTHERS], batches[PENC_SAMPLE_OTHERS];
    size_t room = most < PENC_SAMPLE_TOKENS ? (most ? most : 1) : PENC_SAMPLE_TOKENS;
    size_t nt = penc_spread(shape[POSENC_AXIS_TOKENS], room, place[POSENC_AXIS_TOKENS], tokens);
    size_t nh =
        penc_spread(shape[POSENC_AXIS_HEADS], PENC_SAMPLE_OTHERS, place[POSENC_AXIS_HEADS], heads);
    size_t nb = penc_spread(shape[POSENC_AXIS_BATCH], PENC_SAMPLE_OTHERS, place[POSENC_AXIS_BATCH],
                            batches);
    penc_sort_by_reach(o, tokens, nt);
    posenc_status status = penc_allocate_sample(evidence, nt * nh * nb, error);
    if (status)
        return status;
    double *numbers = evidence->numbers;
    for (size_t i = 0; i < nt * nh * nb; i++, numbers += 2 * d) {
        penc_vector *at = &evidence->vectors[i];
        *at = (penc_vector){
            {batches[i % nb], tokens[i / nb / nh], heads[i / nb % nh]}, numbers, numbers + d};
        penc_load_vector(o->before_tensor, o->before, at, at->before);
        penc_load_vector(o->after_tensor, o->after, at, at->after);
    }
    penc_mark_doubted(evidence, meant);
    return POSENC_OK;
}

/* --- Norms ----------------------------------------------------------------------------------------- */

static void penc_measure_magnitude(penc_evidence *evidence, size_t first, size_t width,
                                   posenc_diagnosis *diagnosis) {
    double before = 0.0, after = 0.0;
    for (size_t i = 0; i < evidence->count; i++) {
        for (size_t k = first; k < first + width; k++) {
            double x = evidence->vectors[i].before[k], y = evidence->vectors[i].after[k];
            if (isfinite(x) && isfinite(y)) {
                before += x * x;
                after += y * y;
            }
        }
    }
    diagnosis->magnitude = before > 0.0 ? sqrt(after / before) : 1.0;
}

/* Whether channels a and b keep their norm, times the magnitude, in every vector. */
static int penc_pair_keeps_norm(const penc_evidence *evidence, size_t a, size_t b, double m) {
    for (size_t i = 0; i < evidence->count; i++) {
        const double *x = evidence->vectors[i].before, *y = evidence->vectors[i].after;
        double off = fabs(hypot(y[a], y[b]) - m * hypot(x[a], x[b]));
        if (off > 2 * evidence->unit * m * (fabs(x[a]) + fabs(x[b])))
            return 0;
    }
    return 1;
}

void penc_measure_norms(penc_evidence *evidence, posenc_diagnosis *diagnosis) {
    const posenc_spec *spec = evidence->observation->spec;
    size_t width = spec->rotary_dim ? spec->rotary_dim : spec->head_dim - spec->rotary_start;
    size_t first = spec->rotary_start;
    penc_measure_magnitude(evidence, first, width, diagnosis);
    diagnosis->is_rotation_half = diagnosis->is_rotation_interleaved = 1;
    for (size_t j = 0; j < width / 2; j++) {
        diagnosis->is_rotation_half &=
            penc_pair_keeps_norm(evidence, first + j, first + j + width / 2, diagnosis->magnitude);
        diagnosis->is_rotation_interleaved &=
            penc_pair_keeps_norm(evidence, first + 2 * j, first + 2 * j + 1, diagnosis->magnitude);
    }
}
