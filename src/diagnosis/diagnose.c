/* The search: what was meant, single causes, two at once. SPDX-License-Identifier: MIT */
#include "diagnosis/cause_list.h"
#include "diagnosis/evidence.h"

#include "base/fail.h"
#include "base/struct_size.h"

#include <math.h>
#include <string.h>

/* An explanation is as good as the best one if its errors are not much larger. */
static const double penc_as_good = 1.2;
/* A number with few digits is as good as the measured one if its errors are not larger than by this. */
static const double penc_as_exact = 1.02;
/* It must bring the errors of what it explains down to less than this. */
static const double penc_explains = 0.85;

/* An explanation that holds on the sample. */
typedef struct penc_finding {
    posenc_explanation explanation;
    penc_hypothesis hypothesis;
    double error; /* in units of rounding noise, root of the mean square */
} penc_finding;

typedef struct penc_search {
    penc_evidence evidence;
    penc_trial trial;
    penc_frequency_cache *cache;
    penc_model model, scratch;
    penc_hypothesis meant;
    posenc_status status; /* OUT_OF_MEMORY once memory was short: nothing is concluded then */
    double meant_error;   /* of the doubted elements, root of the mean square */
    size_t found_count;
    penc_finding found[POSENC_MAX_EXPLANATIONS]; /* the closest first */
} penc_search;

const char *posenc_verdict_name(posenc_verdict verdict) {
    static const char *const names[] = {"agrees", "explained", "unexplained"};
    return (unsigned)verdict < 3 ? names[verdict] : NULL;
}

/* --- Checks ------------------------------------------------------------------------------------- */

static posenc_status penc_check_shapes(const posenc_observation *o, posenc_error *error) {
    const posenc_tensor *before = o->before_tensor, *after = o->after_tensor;
    static const char *const names[] = {"batch of after", "tokens of after", "heads of after",
                                        "head_dim of after"};
    for (size_t i = 0; i < POSENC_AXES; i++) {
        if (before->shape[i] != after->shape[i]) {
            penc_fail_size(error, names[i], after->shape[i], "be that of before");
            penc_fail_limit(error, "that of before", before->shape[i]);
            return POSENC_OUT_OF_RANGE;
        }
        if (before->shape[i] == 0)
            return penc_fail_size(error, names[i], 0,
                                  "be at least 1: there is nothing to diagnose");
    }
    if (!posenc_dtype_bytes(before->dtype))
        return penc_fail_integer(error, "dtype of before", before->dtype, "be a posenc_dtype");
    if (!posenc_dtype_bytes(after->dtype))
        return penc_fail_integer(error, "dtype of after", after->dtype, "be a posenc_dtype");
    if (before->shape[POSENC_AXIS_HEAD_DIM] != o->spec->head_dim) {
        penc_fail_size(error, "spec.head_dim", o->spec->head_dim, "be that of the arrays");
        penc_fail_limit(error, "that of the arrays", before->shape[POSENC_AXIS_HEAD_DIM]);
        return POSENC_OUT_OF_RANGE;
    }
    return POSENC_OK;
}

static posenc_status penc_check_observed_positions(const posenc_observation *o,
                                                   posenc_error *error) {
    size_t axes = o->spec->axes ? o->spec->axes->count : 1;
    size_t sequences = o->batch_stride ? o->before_tensor->shape[POSENC_AXIS_BATCH] : 1;
    for (size_t i = 0; i < axes * sequences; i++) {
        const int64_t *given = penc_observed_positions(o, i % axes, i / axes);
        for (size_t t = 0; t < o->before_tensor->shape[POSENC_AXIS_TOKENS]; t++) {
            int64_t position = given[t];
            if (position > POSENC_MAX_POSITION || position < -POSENC_MAX_POSITION) {
                penc_fail_integer(error, "positions", position, "be from -2^40 to 2^40");
                penc_fail_place(error, "index", (int64_t)t);
                return POSENC_OUT_OF_RANGE;
            }
        }
    }
    return POSENC_OK;
}

/* The whole spec, so that what follows may rely on it. */
static posenc_status penc_check_meant(const posenc_observation *o, posenc_error *error) {
    posenc_frequencies *made;
    posenc_status status = posenc_frequencies_create(o->spec, o->seq_len, &made, NULL, error);
    if (!status)
        posenc_frequencies_destroy(made);
    return status;
}

static posenc_status penc_check_observation(posenc_observation *o, posenc_error *error) {
    const struct {
        const void *pointer;
        const char *name;
    } needed[] = {{o->spec, "spec"},
                  {o->positions, "positions"},
                  {o->before_tensor, "before_tensor"},
                  {o->after_tensor, "after_tensor"},
                  {o->before, "before"},
                  {o->after, "after"}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (!needed[i].pointer)
            return penc_fail_null(error, needed[i].name);
    }
    if ((unsigned)o->mode > POSENC_MODE_FLOAT32)
        return penc_fail_integer(error, "mode", o->mode, "be a posenc_mode");
    if ((unsigned)o->direction > POSENC_BACKWARD)
        return penc_fail_integer(error, "direction", o->direction, "be a posenc_direction");
    posenc_status status = penc_check_struct(o->spec, sizeof *o->spec, "spec", error);
    if (!status)
        status =
            penc_check_struct(o->before_tensor, sizeof *o->before_tensor, "before_tensor", error);
    if (!status)
        status = penc_check_struct(o->after_tensor, sizeof *o->after_tensor, "after_tensor", error);
    if (!status)
        status = penc_check_shapes(o, error);
    if (!status)
        status = penc_check_meant(o, error);
    if (!status && o->axis_stride == 0)
        o->axis_stride = o->batch_stride ? o->batch_stride *
                                               (ptrdiff_t)o->before_tensor->shape[POSENC_AXIS_BATCH]
                                         : (ptrdiff_t)o->before_tensor->shape[POSENC_AXIS_TOKENS];
    return status ? status : penc_check_observed_positions(o, error);
}

/* --- Trying ------------------------------------------------------------------------------------- */

static void penc_move_finding(penc_finding *to, const penc_finding *from) {
    to->explanation = from->explanation;
    to->error = from->error;
    penc_hypothesis_copy(&to->hypothesis, &from->hypothesis);
}

static void penc_keep(penc_search *search, const penc_hypothesis *h,
                      const posenc_explanation *explanation, double error) {
    size_t at = search->found_count;
    if (at == POSENC_MAX_EXPLANATIONS) {
        if (error >= search->found[at - 1].error)
            return;
        at--;
    } else {
        search->found_count++;
    }
    for (; at > 0 && search->found[at - 1].error > error; at--)
        penc_move_finding(&search->found[at], &search->found[at - 1]);
    search->found[at].explanation = *explanation;
    search->found[at].error = error;
    penc_hypothesis_copy(&search->found[at].hypothesis, h);
}

/* Rotates the sample by a hypothesis. It holds if every element is within the noise, if it speaks of most of what
 * is to be explained, and if it is closer there than what was meant. */
static int penc_holds(penc_search *search, const penc_hypothesis *h, double *error) {
    penc_score score;
    posenc_status status = penc_model_make(&search->model, h, search->cache, NULL);
    if (status == POSENC_OUT_OF_MEMORY)
        search->status = status;
    if (status)
        return 0; /* there is no such encoding */
    penc_score_sample(&search->evidence, &search->model, 1, &score);
    if (score.beyond || 2 * score.doubted < search->evidence.doubted_count || score.doubted == 0)
        return 0;
    *error = sqrt(score.squares / (double)score.compared);
    return sqrt(score.doubted_squares / (double)score.doubted) <=
           penc_explains * search->meant_error;
}

/* Puts a cause into *h; returns 0 if it does not apply. */
static int penc_add_cause(const penc_search *search, penc_hypothesis *h,
                          posenc_explanation *explanation, size_t cause, size_t variant) {
    double value = NAN;
    if (!penc_causes[cause].alter(h, &search->trial, variant, &value))
        return 0;
    explanation->cause[explanation->count] = cause;
    explanation->value[explanation->count++] = value;
    return 1;
}

/* A measured number fits whatever is left, so it is tried after all that has a name. */
static int penc_is_last_resort(size_t cause) {
    return cause == PENC_CAUSE_other_magnitude || cause >= PENC_CAUSE_shift_measured;
}

/* Tries every variant of a cause on top of a hypothesis and keeps those that hold. Of a measured number only
 * the first variant is kept, the one with the fewest digits, that is as close as the closest: within `as_close`. */
static double penc_try_variants(penc_search *search, const penc_hypothesis *base,
                                const posenc_explanation *with, size_t cause, double as_close) {
    double closest = HUGE_VAL;
    for (size_t variant = 0; variant < penc_causes[cause].variants; variant++) {
        penc_hypothesis h;
        posenc_explanation explanation = *with;
        double error = 0.0;
        penc_hypothesis_copy(&h, base);
        if (!penc_add_cause(search, &h, &explanation, cause, variant) ||
            !penc_holds(search, &h, &error))
            continue;
        closest = fmin(closest, error);
        if (error > as_close)
            continue;
        explanation.mode = h.mode;
        penc_keep(search, &h, &explanation, error);
        if (penc_is_last_resort(cause))
            break;
    }
    return closest;
}

static void penc_try_cause(penc_search *search, const penc_hypothesis *base,
                           const posenc_explanation *with, size_t cause) {
    double as_close = HUGE_VAL;
    if (penc_is_last_resort(cause)) /* nothing has a negative error: this only looks */
        as_close = penc_as_exact * penc_try_variants(search, base, with, cause, -1.0);
    penc_try_variants(search, base, with, cause, as_close);
}

/* All causes that count for `weight`, or the last resort alone. */
static void penc_try_causes(penc_search *search, const penc_hypothesis *base,
                            const posenc_explanation *with, size_t first, size_t weight,
                            int last_resort) {
    for (size_t cause = first; cause < PENC_CAUSE_COUNT; cause++) {
        if (penc_causes[cause].weight == weight && penc_is_last_resort(cause) == last_resort)
            penc_try_cause(search, base, with, cause);
    }
}

/* Two causes at once; the second one is the last resort if that is wanted. */
static void penc_try_pairs(penc_search *search, const penc_hypothesis *base, int last_resort) {
    for (size_t cause = 0; cause < PENC_CAUSE_COUNT; cause++) {
        if (penc_is_last_resort(cause) || cause == PENC_CAUSE_other_mode ||
            penc_causes[cause].weight > 1)
            continue;
        for (size_t variant = 0; variant < penc_causes[cause].variants; variant++) {
            penc_hypothesis h;
            posenc_explanation explanation = {.mode = base->mode};
            penc_hypothesis_copy(&h, base);
            if (penc_add_cause(search, &h, &explanation, cause, variant))
                penc_try_causes(search, &h, &explanation, last_resort ? 0 : cause + 1, 1,
                                last_resort);
        }
    }
}

/* All explanations by as many deviations: causes, weights counted, and the other mode of angles. */
static void penc_try_deviations(penc_search *search, const penc_hypothesis *base, size_t deviations,
                                int last_resort) {
    posenc_explanation none = {.mode = base->mode};
    penc_try_causes(search, base, &none, 0, deviations, last_resort);
    if (deviations == 2)
        penc_try_pairs(search, base, last_resort);
}

/* Few deviations before many, those with a name before a measured number. */
static void penc_search_causes(penc_search *search) {
    penc_hypothesis other;
    penc_hypothesis_copy(&other, &search->meant);
    other.mode = other.mode == POSENC_MODE_EXACT ? POSENC_MODE_FLOAT32 : POSENC_MODE_EXACT;
    for (size_t deviations = 1; deviations <= 3; deviations++) {
        for (int last_resort = 0; last_resort < 2 && !search->found_count; last_resort++) {
            if (deviations <= 2)
                penc_try_deviations(search, &search->meant, deviations, last_resort);
            if (deviations >= 2)
                penc_try_deviations(search, &other, deviations - 1, last_resort);
        }
    }
}

/* Keeps the findings that are as good as the best and hold on every element. */
static void penc_conclude(penc_search *search, posenc_diagnosis *diagnosis) {
    double best = 0.0;
    for (size_t i = 0; i < search->found_count; i++) {
        const penc_finding *finding = &search->found[i];
        penc_score score;
        if (diagnosis->explanation_count && finding->error > penc_as_good * best)
            break;
        posenc_status status =
            penc_model_make(&search->model, &finding->hypothesis, search->cache, NULL);
        if (status) {
            search->status = status; /* it was made before: only memory can be short */
            continue;
        }
        penc_score_all(&search->evidence, &search->model, 1, &score);
        if (score.beyond)
            continue;
        if (!diagnosis->explanation_count)
            best = finding->error;
        diagnosis->explanations[diagnosis->explanation_count++] = finding->explanation;
    }
    diagnosis->verdict =
        diagnosis->explanation_count ? POSENC_VERDICT_EXPLAINED : POSENC_VERDICT_UNEXPLAINED;
}

static posenc_status penc_compare_with_meant(penc_search *search, posenc_diagnosis *diagnosis,
                                             posenc_error *error) {
    penc_score score;
    posenc_status status = penc_model_make(&search->model, &search->meant, search->cache, error);
    if (status)
        return status;
    penc_score_all(&search->evidence, &search->model, 0, &score);
    diagnosis->mode = search->meant.mode;
    diagnosis->worst_ratio = score.worst_ratio;
    diagnosis->worst_error = score.worst_error;
    diagnosis->allowed = score.worst_allowed;
    diagnosis->differing = score.beyond;
    diagnosis->compared = score.compared;
    memcpy(diagnosis->place, score.place, sizeof score.place);
    diagnosis->verdict = score.beyond ? POSENC_VERDICT_UNEXPLAINED : POSENC_VERDICT_AGREES;
    status = penc_evidence_sample(&search->evidence, &search->model, score.place, error);
    if (status)
        return status;
    penc_score_sample(&search->evidence, &search->model, 0, &score);
    search->meant_error =
        score.doubted ? sqrt(score.doubted_squares / (double)score.doubted) : HUGE_VAL;
    penc_measure_norms(&search->evidence, diagnosis);
    search->trial.measured_magnitude = diagnosis->magnitude;
    search->trial.meant_magnitude = search->model.attention_factor;
    return POSENC_OK;
}

static posenc_status penc_run_search(penc_search *search, posenc_diagnosis *diagnosis,
                                     posenc_error *error) {
    posenc_status status = penc_evidence_start(&search->evidence, search->trial.observation, error);
    search->cache = penc_frequency_cache_create();
    search->trial.evidence = &search->evidence;
    search->trial.cache = search->cache;
    search->trial.scratch = &search->scratch;
    if (!status && !search->cache)
        status = penc_fail(error, POSENC_OUT_OF_MEMORY, "spec", "fit into memory");
    if (!status)
        status = penc_compare_with_meant(search, diagnosis, error);
    if (!status && diagnosis->verdict != POSENC_VERDICT_AGREES) {
        penc_search_causes(search);
        penc_conclude(search, diagnosis);
        if (search->status)
            status = penc_fail(error, POSENC_OUT_OF_MEMORY, "spec", "fit into memory");
    }
    penc_model_free(&search->model);
    penc_model_free(&search->scratch);
    penc_frequency_cache_destroy(search->cache);
    penc_evidence_free(&search->evidence);
    return status;
}

posenc_status posenc_diagnose(const posenc_observation *observation, posenc_diagnosis *diagnosis,
                              posenc_error *error) {
    posenc_status status =
        penc_check_struct(observation, sizeof *observation, "observation", error);
    if (status)
        return status;
    if (!diagnosis)
        return penc_fail_null(error, "diagnosis");
    posenc_observation o = *observation;
    status = penc_check_observation(&o, error);
    if (status)
        return status;
    memset(diagnosis, 0, sizeof *diagnosis);
    penc_search search;
    memset(&search, 0, sizeof search);
    search.trial.observation = &o;
    penc_hypothesis_start(&search.meant, &o);
    return penc_run_search(&search, diagnosis, error);
}
