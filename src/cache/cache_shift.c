/* posenc_cache_shift: checks, the row of each slot's whole way, and the turn. SPDX-License-Identifier: MIT */
#include "cache/cache_slots.h"

#include "base/struct_size.h"

enum { PENC_MOST_PAIRS = PENC_HEAD_BYTES / 8 }; /* of the heads that a cache may have */

typedef struct penc_shift_plan {
    posenc_shift shift; /* `to` and axis_stride filled in */
    penc_cache_view view, source;
    size_t axes, pairs;
    int whole;    /* frequencies stay, angles are exact: the way is a difference of positions */
    double ratio; /* of the attention factors */
} penc_shift_plan;

/* --- Checks --------------------------------------------------------------------------------------- */

static posenc_status penc_check_fit(const penc_shift_plan *plan, posenc_error *error) {
    const posenc_spec *from = posenc_frequencies_spec(plan->shift.from);
    const posenc_spec *to = posenc_frequencies_spec(plan->shift.to);
    if (from->head_dim != plan->view.cache.head_dim) {
        penc_fail_size(error, "head_dim of shift.from", from->head_dim, "be the cache's");
        penc_fail_limit(error, "the cache's", plan->view.cache.head_dim);
        return POSENC_OUT_OF_RANGE;
    }
    if (to->head_dim != from->head_dim || to->rotary_dim != from->rotary_dim ||
        to->rotary_start != from->rotary_start || to->pairing != from->pairing ||
        to->axes->count != from->axes->count)
        return penc_fail(
            error, POSENC_OUT_OF_RANGE, "shift.to",
            "turn the same channels in the same pairs, by as many axes, as shift.from");
    for (size_t pair = 0; pair < plan->pairs; pair++) {
        size_t axis = posenc_frequencies_axis(plan->shift.to, pair);
        if (axis == posenc_frequencies_axis(plan->shift.from, pair))
            continue;
        penc_fail_size(error, "the axis of a pair of shift.to", axis, "be that of shift.from");
        penc_fail_place(error, "pair", (int64_t)pair);
        return POSENC_OUT_OF_RANGE;
    }
    return POSENC_OK;
}

static int64_t penc_shift_position_at(const penc_shift_plan *plan, const int64_t *positions,
                                      size_t axis, size_t i) {
    return positions[(ptrdiff_t)axis * plan->shift.axis_stride + (ptrdiff_t)i];
}

static posenc_status penc_fail_shift_position(posenc_error *error, const char *argument,
                                              int64_t value, const char *must, size_t index) {
    penc_fail_integer(error, argument, value, must);
    penc_fail_place(error, "index", (int64_t)index);
    return POSENC_OUT_OF_RANGE;
}

static posenc_status penc_check_shift_positions(const penc_shift_plan *plan, posenc_error *error) {
    static const char must[] = "be from -2^40 to 2^40";
    const posenc_shift *s = &plan->shift;
    if (!s->from_positions)
        return penc_fail_null(error, "shift.from_positions");
    if (!s->to_positions)
        return penc_fail_null(error, "shift.to_positions");
    for (size_t i = 0; i < plan->axes * s->count; i++) {
        size_t axis = i / s->count, index = i % s->count;
        int64_t from = penc_shift_position_at(plan, s->from_positions, axis, index);
        int64_t to = penc_shift_position_at(plan, s->to_positions, axis, index);
        if (from < -POSENC_MAX_POSITION || from > POSENC_MAX_POSITION)
            return penc_fail_shift_position(error, "shift.from_positions", from, must, index);
        if (to < -POSENC_MAX_POSITION || to > POSENC_MAX_POSITION)
            return penc_fail_shift_position(error, "shift.to_positions", to, must, index);
        if (to - from < -POSENC_MAX_POSITION || to - from > POSENC_MAX_POSITION)
            return penc_fail_shift_position(error, "shift.to_positions", to,
                                            "differ from from_positions by at most 2^40", index);
    }
    return POSENC_OK;
}

static posenc_status penc_check_originals(penc_shift_plan *plan, posenc_error *error) {
    const posenc_shift *s = &plan->shift;
    plan->source = plan->view;
    if (!s->originals) {
        if (s->original_slots)
            return penc_fail(error, POSENC_UNSUPPORTED, "shift.original_slots",
                             "be NULL where there are no originals");
        return POSENC_OK;
    }
    posenc_status status = penc_view_cache(s->originals, "shift.originals", &plan->source, error);
    if (status)
        return status;
    if (plan->source.cache.heads != plan->view.cache.heads ||
        plan->source.cache.head_dim != plan->view.cache.head_dim)
        return penc_fail(error, POSENC_OUT_OF_RANGE, "shift.originals",
                         "have the cache's heads and head_dim");
    status = penc_check_slot_list(s->original_slots ? s->original_slots : s->slots, s->count,
                                  &plan->source, 0, "shift.original_slots", error);
    if (!status)
        status = penc_check_cache_apart(&plan->view, &plan->source.data, plan->source.cache.data,
                                        "shift.originals", error);
    if (!status && plan->source.has_scales)
        status = penc_check_cache_apart(&plan->view, &plan->source.scales,
                                        plan->source.cache.scales, "shift.originals", error);
    return status;
}

static posenc_status penc_plan_shift(penc_shift_plan *plan, const posenc_cache *cache,
                                     const posenc_shift *shift, posenc_error *error) {
    posenc_status status = penc_view_cache(cache, "cache", &plan->view, error);
    if (!status)
        status = penc_check_struct(shift, sizeof *shift, "shift", error);
    if (status)
        return status;
    plan->shift = *shift;
    posenc_shift *s = &plan->shift;
    if (!s->from)
        return penc_fail_null(error, "shift.from");
    if (!posenc_mode_name(s->mode))
        return penc_fail_integer(error, "shift.mode", s->mode, "be a posenc_mode");
    s->to = s->to ? s->to : s->from;
    s->axis_stride = s->axis_stride ? s->axis_stride : (ptrdiff_t)s->count;
    plan->pairs = posenc_frequencies_pairs(s->from);
    plan->axes = posenc_frequencies_spec(s->from)->axes->count;
    plan->whole = s->to == s->from && s->mode == POSENC_MODE_EXACT;
    plan->ratio = posenc_frequencies_attention_factor(s->to, s->mode) /
                  posenc_frequencies_attention_factor(s->from, s->mode);
    status = penc_check_fit(plan, error);
    if (!status)
        status = penc_check_slot_list(s->slots, s->count, &plan->view, 1, "shift.slots", error);
    if (!status && s->count)
        status = penc_check_shift_positions(plan, error);
    return status ? status : penc_check_originals(plan, error);
}

/* --- Rows ----------------------------------------------------------------------------------------- */

/* The way of one slot: its row, and the positions that it was made for. */
typedef struct penc_shift_row {
    int64_t from[POSENC_MAX_AXES], to[POSENC_MAX_AXES];
    int made;
    float cos[PENC_MOST_PAIRS], sin[PENC_MOST_PAIRS];
} penc_shift_row;

/* Positions have been checked, and so has all else: it cannot fail. */
static void penc_rows_at(const posenc_frequencies *frequencies, const int64_t *positions,
                         posenc_dtype dtype, posenc_mode mode, void *cos, void *sin) {
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.cos = cos;
    rows.sin = sin;
    rows.dtype = dtype;
    rows.mode = mode;
    rows.axis_stride = 1;
    rows.without_attention = 1;
    if (posenc_angles(frequencies, positions, 1, &rows, NULL))
        return;
}

/* The row of the difference of positions, correctly rounded. */
static void penc_make_whole(const penc_shift_plan *plan, penc_shift_row *row) {
    int64_t way[POSENC_MAX_AXES];
    for (size_t axis = 0; axis < plan->axes; axis++)
        way[axis] = row->to[axis] - row->from[axis];
    penc_rows_at(plan->shift.from, way, POSENC_F32, POSENC_MODE_EXACT, row->cos, row->sin);
}

/* The row that goes from one angle to the other: the quotient of two complex numbers, in float64, rounded once. In mode
 * float32 these are float32 numbers, as the key was turned by. */
static void penc_make_quotient(const penc_shift_plan *plan, penc_shift_row *row) {
    double cos[2][PENC_MOST_PAIRS], sin[2][PENC_MOST_PAIRS];
    const posenc_frequencies *frequencies[2] = {plan->shift.from, plan->shift.to};
    const int64_t *positions[2] = {row->from, row->to};
    for (int i = 0; i < 2; i++) {
        if (plan->shift.mode == POSENC_MODE_EXACT) {
            penc_rows_at(frequencies[i], positions[i], POSENC_F64, POSENC_MODE_EXACT, cos[i],
                         sin[i]);
            continue;
        }
        penc_rows_at(frequencies[i], positions[i], POSENC_F32, POSENC_MODE_FLOAT32, row->cos,
                     row->sin);
        for (size_t j = 0; j < plan->pairs; j++) {
            cos[i][j] = (double)row->cos[j];
            sin[i][j] = (double)row->sin[j];
        }
    }
    for (size_t j = 0; j < plan->pairs; j++) {
        double across = sin[1][j] * cos[0][j] - cos[1][j] * sin[0][j];
        double along = cos[1][j] * cos[0][j] + sin[1][j] * sin[0][j];
        row->cos[j] = (float)(plan->ratio * along);
        row->sin[j] = (float)(plan->ratio * across);
    }
}

/* Makes the row of slot `i`, unless it is that of the slot before. Returns 0 if the key stays as it is. */
static int penc_make_row(const penc_shift_plan *plan, size_t i, penc_shift_row *row) {
    int same = row->made, moves = 0;
    for (size_t axis = 0; axis < plan->axes; axis++) {
        int64_t from = penc_shift_position_at(plan, plan->shift.from_positions, axis, i);
        int64_t to = penc_shift_position_at(plan, plan->shift.to_positions, axis, i);
        moves |= from != to;
        same = same && (plan->whole ? to - from == row->to[axis] - row->from[axis]
                                    : to == row->to[axis] && from == row->from[axis]);
        row->from[axis] = from;
        row->to[axis] = to;
    }
    if (!moves && plan->shift.from == plan->shift.to && !plan->shift.originals) {
        row->made = 0;
        return 0;
    }
    if (!same && plan->whole)
        penc_make_whole(plan, row);
    else if (!same)
        penc_make_quotient(plan, row);
    row->made = 1;
    return 1;
}

/* --- The run -------------------------------------------------------------------------------------- */

static void penc_run_shift(const penc_shift_plan *plan) {
    const posenc_spec *spec = posenc_frequencies_spec(plan->shift.from);
    const int64_t *sources =
        plan->shift.original_slots ? plan->shift.original_slots : plan->shift.slots;
    posenc_rotation rotation = POSENC_ROTATION_INIT;
    rotation.rotary_dim = spec->rotary_dim;
    rotation.rotary_start = spec->rotary_start;
    rotation.pairing = spec->pairing;
    rotation.pair_stride = 1;
    penc_head_pass pass = {
        .heads = plan->view.cache.heads,
        .head_dim = plan->view.cache.head_dim,
        .x = penc_side_of_cache(&plan->source),
        .y = penc_side_of_cache(&plan->view),
        .in_place = plan->shift.originals == NULL,
        .rotation = &rotation,
        .y_pairing = spec->pairing,
    };
    penc_ready_pass(&pass, NULL);
    penc_shift_row row;
    row.made = 0;
    for (size_t i = 0; i < plan->shift.count; i++) {
        int64_t to = plan->shift.slots[i], from = plan->shift.originals ? sources[i] : to;
        if (!penc_make_row(plan, i, &row))
            continue;
        penc_head_token token = {
            .x = penc_slot_data(&plan->source, from),
            .x_scales = penc_slot_scales(&plan->source, from),
            .y = penc_slot_data(&plan->view, to),
            .y_scales = penc_slot_scales(&plan->view, to),
            .cos = row.cos,
            .sin = row.sin,
            .factor = 1.0,
        };
        penc_pass_heads(&pass, &token);
    }
}

posenc_status posenc_cache_shift(const posenc_cache *cache, const posenc_shift *shift,
                                 posenc_error *error) {
    penc_shift_plan plan;
    posenc_status status = penc_plan_shift(&plan, cache, shift, error);
    if (!status && shift->count)
        penc_run_shift(&plan);
    return status;
}
