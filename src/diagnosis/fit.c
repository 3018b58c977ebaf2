/* The angle of every pair is known up to whole turns only. So pairs that react little to the number come first:
 * they tell it roughly and without doubt; then those that react twice as much, whose turns are clear by then; and so
 * on. SPDX-License-Identifier: MIT */
#include "diagnosis/fit.h"

#include <math.h>
#include <stdlib.h>

enum { PENC_FIT_VECTORS = 48, PENC_FIT_ROUNDS = 12 };

static const double penc_full_turn = 6.283185307179586;

/* One pair of one vector. */
typedef struct penc_measured {
    double seen, predicted; /* angles */
    double rate;            /* of the predicted one: by the number, at its start */
    double step;            /* shift: radians per position; base: exponent of the pair */
} penc_measured;

static double penc_predicted_at(const penc_measured *one, penc_fitted what, double value) {
    switch (what) {
    case PENC_FIT_SHIFT:
        return one->predicted + one->step * value;
    case PENC_FIT_SCALE:
        return one->predicted * (1.0 + value);
    case PENC_FIT_BASE:
        return one->predicted * exp(-one->step * value);
    }
    return 0.0;
}

static double penc_rate_at(const penc_measured *one, penc_fitted what, double value) {
    if (what == PENC_FIT_SHIFT)
        return one->step;
    return what == PENC_FIT_SCALE ? one->predicted
                                  : -one->step * penc_predicted_at(one, what, value);
}

/* The angle by which pair j was turned; 0 if its numbers are too small to tell. */
static int penc_see_angle(const penc_model *model, const penc_vector *at, size_t channel,
                          double *angle) {
    size_t partner = model->partner[channel];
    const double *x = at->before + model->first, *y = at->after + model->first;
    double x0 = x[channel], x1 = x[partner];
    double y0 = y[model->target[channel]], y1 = y[model->target[partner]];
    *angle = atan2(x0 * y1 - x1 * y0, x0 * y0 + x1 * y1);
    return hypot(x0, x1) > 1e-6 && isfinite(*angle);
}

static size_t penc_measure(const penc_evidence *evidence, const penc_model *model, penc_fitted what,
                           penc_measured *items) {
    size_t count = 0,
           vectors = evidence->count < PENC_FIT_VECTORS ? evidence->count : PENC_FIT_VECTORS;
    double turn = model->h->angle_scale * (model->h->direction == POSENC_FORWARD ? 1.0 : -1.0);
    for (size_t i = 0; i < vectors; i++) {
        const penc_vector *at = &evidence->vectors[i * evidence->count / vectors];
        if (penc_rest_of(model->h, at))
            continue;
        penc_model_angles(model, evidence->observation, &at->place, evidence->cos, evidence->noise);
        for (size_t channel = 0; channel < model->width; channel++) {
            size_t j = model->pair[channel];
            penc_measured *one = &items[count];
            if (model->sign[channel] > 0 || !penc_see_angle(model, at, channel, &one->seen))
                continue; /* a pair counts by its first channel */
            one->predicted = evidence->cos[j];
            one->step = what == PENC_FIT_SHIFT ? model->frequency[j] * turn
                                               : (double)j / (double)model->pairs;
            one->rate = fabs(penc_rate_at(one, what, 0.0));
            count += one->rate > 0.0;
        }
    }
    return count;
}

/* Least squares over the pairs whose rate is at most `most`. */
static double penc_improve(const penc_measured *items, size_t count, penc_fitted what, double most,
                           double value) {
    double weighted = 0.0, weights = 0.0;
    for (size_t i = 0; i < count; i++) {
        if (items[i].rate > most)
            continue;
        double rate = penc_rate_at(&items[i], what, value);
        double off = items[i].seen - penc_predicted_at(&items[i], what, value);
        off -= penc_full_turn * round(off / penc_full_turn);
        weighted += rate * off;
        weights += rate * rate;
    }
    return weights > 0.0 ? weighted / weights : 0.0;
}

int penc_fit(const penc_evidence *evidence, const penc_model *model, penc_fitted what,
             double *value) {
    if (model->h->swapped || model->h->mixed || model->h->recurrence)
        return 0;
    size_t vectors = evidence->count < PENC_FIT_VECTORS ? evidence->count : PENC_FIT_VECTORS;
    penc_measured *items = malloc(vectors * model->pairs * sizeof *items);
    if (!items)
        return 0;
    size_t count = penc_measure(evidence, model, what, items);
    double least = HUGE_VAL, most = 0.0;
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, items[i].rate);
        most = fmax(most, items[i].rate);
    }
    *value = 0.0;
    for (double reach = 2 * least; count > 0; reach *= 2) {
        for (int round = 0; round < PENC_FIT_ROUNDS; round++)
            *value += penc_improve(items, count, what, reach, *value);
        if (reach >= most)
            break;
    }
    free(items);
    return count > 0 && isfinite(*value) && fabs(*value) < 1e9;
}
