/* Two sides, row by row; and why they differ. SPDX-License-Identifier: MIT */
#include "diagnosis/cause_list.h"
#include "diagnosis/side.h"

#include "base/fail.h"
#include "base/number_access.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tokens of the arrays from which causes are found, at most. */
enum { PENC_COMPARED_TOKENS = 4096 };

const char *posenc_agreement_name(posenc_agreement agreement) {
    static const char *const names[] = {"equal", "equivalent", "different"};
    return (unsigned)agreement < 3 ? names[agreement] : NULL;
}

const char *posenc_equivalence_name(posenc_equivalence equivalence) {
    static const char *const names[] = {"none", "pairing", "conjugate", "shift"};
    return (unsigned)equivalence < 4 ? names[equivalence] : NULL;
}

/* --- Differences --------------------------------------------------------------------------------- */

static size_t penc_decade_of(int64_t position) {
    uint64_t size = position < 0 ? (uint64_t)0 - (uint64_t)position : (uint64_t)position;
    size_t decade = 0;
    for (; size > 0; size /= 10)
        decade++;
    return decade < POSENC_MAX_DECADES ? decade : POSENC_MAX_DECADES - 1;
}

static void penc_take_largest(posenc_difference *largest, const posenc_difference *one) {
    if (!largest->exists || one->error > largest->error)
        *largest = *one;
}

static void penc_take_first(posenc_difference *first, const posenc_difference *one,
                            double tolerance) {
    if (!first->exists && one->error > tolerance)
        *first = *one;
}

static void penc_compare_rows(const penc_table *a, const penc_table *b, const int64_t *positions,
                              size_t count, posenc_comparison *comparison) {
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < a->pairs; j++) {
            size_t at = i * a->pairs + j;
            double error = fmax(fabs(a->cos[at] - b->cos[at]), fabs(a->sin[at] - b->sin[at]));
            posenc_difference one = {1, isnan(error) ? HUGE_VAL : error, positions[i], j};
            penc_take_largest(&comparison->largest, &one);
            penc_take_largest(&comparison->decades[penc_decade_of(positions[i])], &one);
            penc_take_first(&comparison->beyond_bf16, &one, 0x1p-8);
            penc_take_first(&comparison->beyond_f16, &one, 0x1p-11);
            penc_take_first(&comparison->beyond_f32, &one, 0x1p-23);
        }
    }
}

/* The first place of either table where the two numbers of a pair differ. */
static void penc_take_odd(const penc_table *table, const int64_t *positions, size_t count,
                          posenc_comparison *comparison) {
    posenc_difference one = {1, table->odd_error, 0, table->odd_pair};
    if (!table->odd_count || table->odd_row >= count || comparison->halves.exists)
        return;
    one.position = positions[table->odd_row];
    comparison->halves = one;
}

static void penc_compare_structure(const posenc_side *a, const posenc_side *b, const penc_table *ta,
                                   const penc_table *tb, posenc_comparison *comparison) {
    comparison->pairs_a = ta->pairs;
    comparison->pairs_b = tb->pairs;
    comparison->halves_differ = ta->odd_count || tb->odd_count;
    comparison->pairing_differs = ta->has_pairing && tb->has_pairing && ta->pairing != tb->pairing;
    if (a->is_dump || b->is_dump)
        return;
    comparison->slices_differ =
        a->spec.head_dim != b->spec.head_dim || a->spec.rotary_start != b->spec.rotary_start;
    for (size_t j = 0; ta->pairs == tb->pairs && j < ta->pairs; j++) {
        comparison->axes_differ |= posenc_frequencies_axis(a->frequencies, j) !=
                                   posenc_frequencies_axis(b->frequencies, j);
    }
}

/* --- Causes: an array that `b` has rotated, diagnosed by `a`'s spec ----------------------------------- */

/* The precision of what a side gives. */
static posenc_dtype penc_dtype_of_side(const posenc_side *side) {
    if (penc_side_is_table(side))
        return side->dump.dtype;
    return side->mode == POSENC_MODE_EXACT ? POSENC_F64 : POSENC_F32;
}

static posenc_dtype penc_coarser(posenc_dtype a, posenc_dtype b) {
    static const int digits[] = {24, 53, 11, 8}; /* by posenc_dtype */
    return digits[a] < digits[b] ? a : b;
}

typedef struct penc_array_job {
    const posenc_side *a, *b;
    const penc_table *table; /* of b */
    posenc_spec spec;        /* a's, or for tables one whose head is what rotates */
    size_t tokens, step;     /* every step-th position */
    posenc_dtype dtype;
    double *before, *after; /* [tokens][head_dim], then stored as `dtype` in place */
} penc_array_job;

/* How b pairs channels and where they begin: its own way if it has a spec, else a's. */
static void penc_rotate_arrays(penc_array_job *job) {
    const posenc_spec *by =
        penc_side_is_table(job->b) || job->b->is_dump ? &job->spec : &job->b->spec;
    size_t pairs = job->table->pairs, d = job->spec.head_dim;
    size_t step = by->pairing == POSENC_PAIRING_HALF ? 1 : 2;
    size_t apart = by->pairing == POSENC_PAIRING_HALF ? pairs : 1;
    for (size_t t = 0; t < job->tokens; t++) {
        const double *cos = job->table->cos + t * job->step * pairs;
        const double *sin = job->table->sin + t * job->step * pairs;
        double *y = job->after + t * d + by->rotary_start;
        for (size_t i = 0; i < d; i++)
            job->after[t * d + i] = job->before[t * d + i];
        for (size_t j = 0; j < pairs; j++) {
            double x0 = y[j * step], x1 = y[j * step + apart];
            y[j * step] = x0 * cos[j] - x1 * sin[j];
            y[j * step + apart] = x0 * sin[j] + x1 * cos[j];
        }
    }
}

/* Tables are seen as they are where the first channel of a pair is 1 and the second 0. Specs are told apart by
 * channels that are all different. */
static void penc_fill_before(penc_array_job *job) {
    size_t d = job->spec.head_dim;
    int plain = penc_side_is_table(job->b) || job->b->is_dump;
    for (size_t i = 0; i < job->tokens * d; i++) {
        size_t channel = i % d;
        int first = job->spec.pairing == POSENC_PAIRING_HALF ? channel < d / 2 : channel % 2 == 0;
        job->before[i] = plain ? (double)first : 0.5 + (double)(channel * 37 % 64 + 1) / 64;
    }
}

/* To `dtype` in place, which is never wider. */
static void penc_store_array(double *numbers, size_t count, posenc_dtype dtype) {
    size_t width = posenc_dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        double stored = 0.0;
        penc_store_number(&stored, dtype, 0, numbers[i]);
        memcpy((char *)numbers + i * width, &stored, width);
    }
}

static posenc_status penc_diagnose_arrays(const penc_array_job *job, const penc_compared *compared,
                                          posenc_diagnosis *diagnosis, posenc_error *error) {
    size_t axes = job->spec.axes ? job->spec.axes->count : 1;
    int64_t *sampled = malloc(axes * job->tokens * sizeof *sampled);
    if (!sampled)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "positions", "fit into memory");
    for (size_t i = 0; i < axes * job->tokens; i++)
        sampled[i] = compared->positions[(ptrdiff_t)(i / job->tokens) * compared->axis_stride +
                                         (ptrdiff_t)(i % job->tokens * job->step)];
    posenc_tensor tensor = posenc_tensor_dense(job->dtype, 1, job->tokens, 1, job->spec.head_dim);
    posenc_observation seen = POSENC_OBSERVATION_INIT;
    seen.spec = &job->spec;
    seen.seq_len = job->a->seq_len;
    seen.mode = job->b->is_dump && !penc_side_is_table(job->b) ? job->b->mode : job->a->mode;
    seen.positions = sampled;
    seen.before_tensor = seen.after_tensor = &tensor;
    seen.before = job->before;
    seen.after = job->after;
    posenc_status status = posenc_diagnose(&seen, diagnosis, error);
    free(sampled);
    return status;
}

static posenc_status penc_explain(const posenc_side *a, const posenc_side *b,
                                  const penc_table *table, const penc_compared *compared,
                                  posenc_diagnosis *diagnosis, posenc_error *error) {
    penc_array_job job = {.a = a, .b = b, .table = table, .spec = a->spec};
    if (b->is_dump) { /* nothing is known but the pairs: a head of just these */
        job.spec.head_dim = job.spec.rotary_dim = 2 * table->pairs;
        job.spec.rotary_start = 0;
    }
    size_t count = compared->count;
    job.step = (count + PENC_COMPARED_TOKENS - 1) / PENC_COMPARED_TOKENS;
    job.tokens = (count + job.step - 1) / job.step;
    job.dtype = penc_coarser(penc_dtype_of_side(a), penc_dtype_of_side(b));
    if (b->is_dump)
        job.dtype = penc_dtype_of_side(b);
    size_t numbers = job.tokens * job.spec.head_dim;
    job.before = malloc(numbers * sizeof *job.before);
    job.after = malloc(numbers * sizeof *job.after);
    posenc_status status = POSENC_OK;
    if (!job.before || !job.after)
        status = penc_fail(error, POSENC_OUT_OF_MEMORY, "positions", "fit into memory");
    if (!status) {
        penc_fill_before(&job);
        penc_rotate_arrays(&job);
        penc_store_array(job.before, numbers, job.dtype);
        penc_store_array(job.after, numbers, job.dtype);
        status = penc_diagnose_arrays(&job, compared, diagnosis, error);
    }
    free(job.before);
    free(job.after);
    return status;
}

/* --- Verdicts ------------------------------------------------------------------------------------ */

static posenc_equivalence penc_equivalence_of(const posenc_explanation *explanation) {
    if (explanation->count != 1)
        return POSENC_EQUIVALENCE_NONE;
    switch (explanation->cause[0]) {
    case PENC_CAUSE_other_pairing:
        return POSENC_EQUIVALENCE_PAIRING;
    case PENC_CAUSE_negated_angle:
    case PENC_CAUSE_cos_sin_swapped:
        return POSENC_EQUIVALENCE_CONJUGATE;
    case PENC_CAUSE_position_shifted:
    case PENC_CAUSE_position_restarts:
    case PENC_CAUSE_shift_measured:
        return POSENC_EQUIVALENCE_SHIFT;
    default:
        return POSENC_EQUIVALENCE_NONE;
    }
}

static void penc_take_diagnosis(const posenc_diagnosis *diagnosis, posenc_comparison *comparison) {
    if (diagnosis->verdict == POSENC_VERDICT_AGREES) {
        comparison->agreement = POSENC_AGREEMENT_EQUAL;
        return;
    }
    comparison->explanation_count = diagnosis->explanation_count;
    memcpy(comparison->explanations, diagnosis->explanations, sizeof diagnosis->explanations);
    if (diagnosis->explanation_count)
        comparison->equivalence = penc_equivalence_of(&diagnosis->explanations[0]);
    if (comparison->equivalence)
        comparison->agreement = POSENC_AGREEMENT_EQUIVALENT;
}

/* The largest relative difference of two lists of frequencies. */
static double penc_compare_lists(const posenc_side *a, const posenc_side *b) {
    double largest = 0.0;
    for (size_t j = 0; j < posenc_frequencies_pairs(a->frequencies); j++) {
        double x = posenc_frequencies_inv_freq(a->frequencies, j, POSENC_MODE_EXACT);
        double y = posenc_frequencies_inv_freq(b->frequencies, j, POSENC_MODE_EXACT);
        largest = fmax(largest, x == y ? 0.0 : fabs(x - y) / fmax(fabs(x), fabs(y)));
    }
    return largest;
}

/* Two tables, or two lists of frequencies: without a spec nothing can be tried. */
static void penc_compare_dumps(const posenc_side *a, const posenc_side *b,
                               posenc_comparison *comparison) {
    static const double roundings[] = {0x1p-24, 0x1p-53, 0x1p-11, 0x1p-8}; /* by posenc_dtype */
    double allowed = 2 * roundings[penc_coarser(a->dump.dtype, b->dump.dtype)];
    double error = comparison->largest.error;
    if (!penc_side_is_table(a) && !penc_side_is_table(b)) {
        error = penc_compare_lists(a, b);
        allowed *= 6; /* what recipes of frequencies differ by */
    }
    if (error <= allowed)
        comparison->agreement = POSENC_AGREEMENT_EQUAL;
}

static posenc_status penc_judge(const posenc_side *a, const posenc_side *b, const penc_table *ta,
                                const penc_table *tb, const penc_compared *compared,
                                posenc_comparison *comparison, posenc_error *error) {
    posenc_diagnosis diagnosis;
    posenc_status status = POSENC_OK;
    comparison->agreement = POSENC_AGREEMENT_DIFFERENT;
    int same_pairs = ta->pairs == tb->pairs;
    if (comparison->halves_differ || (comparison->axes_differ && !compared->axis_stride))
        return POSENC_OK;
    if (a->is_dump && b->is_dump) {
        if (same_pairs)
            penc_compare_dumps(a, b, comparison);
    } else if (!a->is_dump && !b->is_dump) {
        if (a->spec.head_dim != b->spec.head_dim)
            return POSENC_OK;
        if (same_pairs && comparison->largest.error == 0.0 && !comparison->pairing_differs &&
            !comparison->slices_differ) {
            comparison->agreement = POSENC_AGREEMENT_EQUAL;
            return POSENC_OK;
        }
        status = penc_explain(a, b, tb, compared, &diagnosis, error);
        if (!status && diagnosis.verdict != POSENC_VERDICT_AGREES)
            penc_take_diagnosis(&diagnosis, comparison);
    } else if (same_pairs) {
        status = b->is_dump ? penc_explain(a, b, tb, compared, &diagnosis, error)
                            : penc_explain(b, a, ta, compared, &diagnosis, error);
        if (!status)
            penc_take_diagnosis(&diagnosis, comparison);
    }
    if (!status && comparison->pairing_differs && comparison->agreement == POSENC_AGREEMENT_EQUAL) {
        comparison->agreement = POSENC_AGREEMENT_EQUIVALENT;
        comparison->equivalence = POSENC_EQUIVALENCE_PAIRING;
    }
    return status;
}

/* A list of frequencies says nothing of the attention factor that goes with it: it gets the other side's. */
static void penc_lend_magnitude(const posenc_side *list, const posenc_side *other,
                                penc_table *table) {
    if (!list->is_dump || penc_side_is_table(list) || other->is_dump)
        return;
    double m = posenc_frequencies_attention_factor(other->frequencies, other->mode);
    for (size_t i = 0; i < table->rows * table->pairs; i++) {
        table->cos[i] *= m;
        table->sin[i] *= m;
    }
}

static posenc_status penc_check_compare(const posenc_side *a, const posenc_side *b,
                                        const int64_t *positions, ptrdiff_t axis_stride,
                                        size_t count, posenc_error *error) {
    if (!a || !b || !positions)
        return penc_fail_null(error, !a ? "a" : !b ? "b" : "positions");
    if (count == 0)
        return penc_fail_size(error, "count", 0, "be at least 1");
    const posenc_side *sides[] = {a, b};
    for (size_t i = 0; i < 2; i++) {
        if (penc_side_is_table(sides[i]) && count > posenc_side_rows(sides[i])) {
            penc_fail_size(error, "count of positions", count, "not exceed the rows of the table");
            penc_fail_limit(error, "those", posenc_side_rows(sides[i]));
            return POSENC_OUT_OF_RANGE;
        }
    }
    size_t of_a = posenc_side_axes(a), of_b = posenc_side_axes(b);
    size_t axes = !axis_stride ? 1 : of_a > of_b ? of_a : of_b;
    for (size_t i = 0; i < axes * count; i++) {
        int64_t position = positions[(ptrdiff_t)(i / count) * axis_stride + (ptrdiff_t)(i % count)];
        if (position > POSENC_MAX_POSITION || position < -POSENC_MAX_POSITION) {
            penc_fail_integer(error, "positions", position, "be from -2^40 to 2^40");
            penc_fail_place(error, "index", (int64_t)(i % count));
            return POSENC_OUT_OF_RANGE;
        }
    }
    return POSENC_OK;
}

/* 0: a table's width has to tell. */
static size_t penc_pairs_of_side(const posenc_side *side) {
    return side->frequencies ? posenc_frequencies_pairs(side->frequencies) : 0;
}

/* Folds a table of full width that no layout repeats exactly, where the other table has half as many pairs. */
static posenc_status penc_fold_again(const posenc_side *side, const penc_compared *compared,
                                     const penc_table *other, penc_table *table,
                                     posenc_error *error) {
    if (!penc_side_is_table(side) || table->pairs != 2 * other->pairs ||
        !penc_table_is_doubled(&side->dump, other->pairs))
        return POSENC_OK;
    penc_table_free(table);
    return penc_side_table(side, compared, other->pairs, table, error);
}

posenc_status posenc_compare(const posenc_side *a, const posenc_side *b, const int64_t *positions,
                             ptrdiff_t axis_stride, size_t count, posenc_comparison *comparison,
                             posenc_error *error) {
    const penc_compared compared = {positions, axis_stride, count};
    penc_table ta = {0}, tb = {0};
    posenc_status status = penc_check_compare(a, b, positions, axis_stride, count, error);
    if (status)
        return status;
    if (!comparison)
        return penc_fail_null(error, "comparison");
    memset(comparison, 0, sizeof *comparison);
    status = penc_side_table(a, &compared, penc_pairs_of_side(b), &ta, error);
    if (!status)
        status = penc_side_table(b, &compared, penc_pairs_of_side(a), &tb, error);
    if (!status)
        status = penc_fold_again(a, &compared, &tb, &ta, error);
    if (!status)
        status = penc_fold_again(b, &compared, &ta, &tb, error);
    if (!status) {
        comparison->positions = count;
        penc_lend_magnitude(a, b, &ta);
        penc_lend_magnitude(b, a, &tb);
        penc_compare_structure(a, b, &ta, &tb, comparison);
        penc_take_odd(&ta, positions, count, comparison);
        penc_take_odd(&tb, positions, count, comparison);
        if (ta.pairs == tb.pairs)
            penc_compare_rows(&ta, &tb, positions, count, comparison);
        status = penc_judge(a, b, &ta, &tb, &compared, comparison, error);
    }
    penc_table_free(&ta);
    penc_table_free(&tb);
    return status;
}
