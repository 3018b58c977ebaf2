/* Rows by vector kernels: values whose rounding is settled, and the slow way for those where it is not (about one in a
 * million; of float64 fewer still). SPDX-License-Identifier: MIT */
#include "angles/fast_rows.h"

#include "angles/row_spread.h"
#include "frequencies/frequencies_object.h"

#include <math.h>

/* A block of rows: the float32 numbers of `pairs` pairs from `pair` on, of tokens from `token` on. They are made
 * in the caller's rows where those are float32 with pairs side by side, else in scratch memory. */
typedef struct penc_block {
    const penc_fast_job *fast;
    size_t token, pair, pairs;
    float *cos, *sin;
    ptrdiff_t stride;
} penc_block;

typedef struct penc_scratch {
    float cos[PENC_SINCOS_ROWS * PENC_SINCOS_RUN], sin[PENC_SINCOS_ROWS * PENC_SINCOS_RUN];
} penc_scratch;

int penc_fast_start(const penc_row_job *job, penc_fast_job *fast) {
    const posenc_frequencies *frequencies = job->frequencies;
    const posenc_rows *rows = job->rows;
    fast->job = job;
    fast->kernels = penc_sincos_kernels_now();
    fast->exact = rows->mode == POSENC_MODE_EXACT;
    fast->scale = fast->exact && !rows->without_attention ? frequencies->attention_factor : 1.0;
    fast->factor = penc_row_factor(job);
    fast->farthest = (double)POSENC_MAX_POSITION;
    if (frequencies->fastest * fast->farthest > PENC_SINCOS_MOST_QUARTERS)
        fast->farthest = floor(PENC_SINCOS_MOST_QUARTERS / frequencies->fastest);
    fast->one_axis = job->positions->axes == 1;
    for (size_t j = 0; j < PENC_SINCOS_ROW && !fast->exact; j++) { /* 2/pi */
        fast->radian_high[j] = 0x1.45f306dc9c882p-1;
        fast->radian_low[j] = 0x1.4a7f09d5f47d4p-54;
    }
    fast->direct = rows->dtype == POSENC_F32 && rows->layout != POSENC_ROWS_PAIRS &&
                   rows->layout != POSENC_ROWS_FULL_INTERLEAVED;
    fast->doubles = rows->dtype == POSENC_F64;
    /* A float64 times a factor is no longer within 1 ulp, so that takes all the bits. */
    if (fast->doubles)
        return rows->without_attention || !frequencies->has_attention;
    return fast->scale >= PENC_SINCOS_LEAST_SCALE;
}

/* The position of a token's farthest axis. */
static double penc_farthest_axis(const penc_fast_job *fast, size_t token) {
    const penc_positions *positions = fast->job->positions;
    double farthest = 0.0;
    for (size_t axis = 0; axis < positions->axes; axis++) {
        ptrdiff_t index = (ptrdiff_t)axis * positions->axis_stride + (ptrdiff_t)token;
        double position = fabs(penc_position_number(positions, index));
        farthest = position > farthest ? position : farthest;
    }
    return farthest;
}

/* What its angles must reach to be settled. Float32 frequencies may be a little faster than exact ones. */
static double penc_least_at(const penc_fast_job *fast, size_t token) {
    double fastest = 1.001 * fast->job->frequencies->fastest;
    return penc_place_least(penc_farthest_axis(fast, token) * fastest);
}

/* --- One block -------------------------------------------------------------------------------- */

static penc_block penc_block_at(const penc_fast_job *fast, size_t token, size_t pair, size_t most,
                                penc_scratch *scratch) {
    const penc_row_job *job = fast->job;
    size_t left = job->frequencies->pairs - pair;
    penc_block block = {fast, token, pair, left < most ? left : most, NULL, NULL, PENC_SINCOS_RUN};
    if (!fast->direct) {
        block.cos = scratch->cos;
        block.sin = scratch->sin;
    } else {
        ptrdiff_t start = (ptrdiff_t)token * job->stride + (ptrdiff_t)pair;
        block.cos = (float *)job->rows->cos + start;
        block.sin =
            job->rows->sin ? (float *)job->rows->sin + start : block.cos + job->frequencies->pairs;
        block.stride = job->stride;
    }
    return block;
}

/* From the kernels' numbers to the caller's rows. */
static void penc_finish_rows(const penc_block *block, size_t rows) {
    const penc_row_job *job = block->fast->job;
    float factor = block->fast->factor;
    if (block->fast->direct && factor == 1.0f && job->rows->layout != POSENC_ROWS_FULL_HALF)
        return;
    for (size_t row = 0; row < rows; row++) {
        float *cos = block->cos + (ptrdiff_t)row * block->stride,
              *sin = block->sin + (ptrdiff_t)row * block->stride;
        for (size_t j = 0; j < block->pairs && factor != 1.0f; j++) {
            cos[j] *= factor;
            sin[j] *= factor;
        }
        penc_spread_pairs(job, block->token + row, block->pair, block->pairs, cos, sin);
    }
}

/* --- Rows one by one ------------------------------------------------------------------------------ */

/* The numbers of row `row` that rounding left open, one bit each, computed the slow way. */
static void penc_settle(const penc_block *block, size_t row, uint64_t unsettled) {
    for (size_t j = 0; unsettled; j++, unsettled >>= 1) {
        if (!(unsettled & 1))
            continue;
        penc_sincos value =
            penc_angle_value(block->fast->job, block->token + row, block->pair + j, POSENC_F32);
        block->cos[(ptrdiff_t)row * block->stride + (ptrdiff_t)j] = (float)value.cos;
        block->sin[(ptrdiff_t)row * block->stride + (ptrdiff_t)j] = (float)value.sin;
    }
}

/* Rows of which every pair needs a factor of its own: in mode exact the position of its axis, in mode float32 the
 * float32 angle. Adding 0 makes 0 of -0. */
static void penc_fill_places(const penc_block *block, size_t row, double *each) {
    const penc_row_job *job = block->fast->job;
    const penc_frequency *frequency = job->frequencies->frequency + block->pair;
    size_t token = block->token + row;
    double position = penc_pair_position(job, token, 0);
    for (size_t j = 0; j < block->pairs; j++) {
        if (!block->fast->one_axis)
            position = penc_pair_position(job, token, block->pair + j);
        each[j] = block->fast->exact ? position + 0.0
                                     : (double)(frequency[j].factor * (float)position) + 0.0;
    }
    for (size_t j = block->pairs; j % PENC_SINCOS_PAD; j++)
        each[j] = 0.0;
}

static penc_quarter_table penc_quarters_of(const penc_block *block) {
    const posenc_frequencies *frequencies = block->fast->job->frequencies;
    if (!block->fast->exact)
        return (penc_quarter_table){block->fast->radian_high, block->fast->radian_low};
    return (penc_quarter_table){frequencies->quarter_high + block->pair,
                                frequencies->quarter_low + block->pair};
}

/* Where a row's pairs are; `each` is memory for that. Filled in place: a copy of what has just been written costs as much
 * as a vector of pairs. */
static void penc_fill_place(const penc_block *block, size_t row, double *each, penc_place *place) {
    const penc_fast_job *fast = block->fast;
    place->each = NULL;
    place->all = 0.0;
    place->least = penc_least_at(fast, block->token + row);
    if (fast->exact && fast->one_axis) {
        ptrdiff_t token = (ptrdiff_t)(block->token + row);
        place->all = penc_position_number(fast->job->positions, token) + 0.0;
    } else {
        penc_fill_places(block, row, each);
        place->each = each;
    }
}

static void penc_round_row(const penc_block *block, size_t row) {
    const penc_fast_job *fast = block->fast;
    double each[PENC_SINCOS_ROW];
    penc_place place;
    penc_fill_place(block, row, each, &place);
    penc_quarter_table table = penc_quarters_of(block);
    ptrdiff_t start = (ptrdiff_t)row * block->stride;
    uint64_t unsettled = fast->kernels->round_row(table, block->pairs, &place, fast->scale,
                                                  block->cos + start, block->sin + start);
    if (unsettled)
        penc_settle(block, row, unsettled);
}

/* One row of float64. */
static void penc_double_row(const penc_fast_job *fast, size_t token) {
    const penc_row_job *job = fast->job;
    double each[PENC_SINCOS_ROW], cos[PENC_SINCOS_ROW], sin[PENC_SINCOS_ROW];
    for (size_t pair = 0; pair < job->frequencies->pairs; pair += PENC_SINCOS_ROW) {
        size_t left = job->frequencies->pairs - pair;
        size_t pairs = left < PENC_SINCOS_ROW ? left : PENC_SINCOS_ROW;
        penc_block block = {fast, token, pair, pairs, NULL, NULL, 0};
        penc_place place;
        penc_fill_place(&block, 0, each, &place);
        uint64_t unsettled = fast->kernels->double_row(penc_quarters_of(&block),
                                                       job->frequencies->quarter_rest + pair, pairs,
                                                       &place, cos, sin);
        for (size_t j = 0; unsettled; j++, unsettled >>= 1) {
            if (!(unsettled & 1))
                continue;
            penc_sincos value = penc_angle_value(job, token, pair + j, POSENC_F64);
            cos[j] = value.cos;
            sin[j] = value.sin;
        }
        penc_spread_doubles(job, token, pair, pairs, cos, sin);
    }
}

/* scratch: NULL where kernels write into the caller's rows. */
static void penc_row_pairs(const penc_fast_job *fast, size_t token, penc_scratch *scratch) {
    for (size_t pair = 0; pair < fast->job->frequencies->pairs; pair += PENC_SINCOS_ROW) {
        penc_block block = penc_block_at(fast, token, pair, PENC_SINCOS_ROW, scratch);
        penc_round_row(&block, 0);
        penc_finish_rows(&block, 1);
    }
}

static void penc_fast_row(const penc_fast_job *fast, size_t token) {
    penc_scratch scratch;
    penc_row_pairs(fast, token, fast->direct ? NULL : &scratch);
}

/* --- Runs of positions ---------------------------------------------------------------------------- */

/* How many whole numbers follow one another from the first one on; many are looked at together, without a branch
 * between them, so that the compiler makes vectors of the loop. */
#define PENC_COUNT_RUN(name, type)                                                                 \
    static size_t name(const type *numbers, size_t count) {                                        \
        enum { TOGETHER = 64 };                                                                    \
        const uint64_t first = (uint64_t)numbers[0];                                               \
        size_t length = 1;                                                                         \
        if (count < 2 || (uint64_t)numbers[1] - 1 != first)                                        \
            return length;                                                                         \
        for (; length + TOGETHER <= count; length += TOGETHER) {                                   \
            uint64_t differ = 0;                                                                   \
            for (size_t i = length; i < length + TOGETHER; i++)                                    \
                differ |= ((uint64_t)numbers[i] - i) ^ first;                                      \
            if (differ)                                                                            \
                break;                                                                             \
        }                                                                                          \
        while (length < count && (uint64_t)numbers[length] - length == first)                      \
            length++;                                                                              \
        return length;                                                                             \
    }
PENC_COUNT_RUN(penc_run_of_int64, int64_t)
PENC_COUNT_RUN(penc_run_of_int32, int32_t)

/* How many positions from `token` on, which is served, follow one another and are served. */
static size_t penc_run_length(const penc_fast_job *fast, size_t token) {
    const penc_positions *positions = fast->job->positions;
    if (!fast->exact || !fast->one_axis || positions->kind == PENC_REAL)
        return 1;
    double first = penc_position_number(positions, (ptrdiff_t)token);
    size_t left = positions->count - token, most = (size_t)(fast->farthest - first) + 1;
    if (most > left)
        most = left;
    return positions->kind == PENC_INT64
               ? penc_run_of_int64((const int64_t *)positions->numbers + token, most)
               : penc_run_of_int32((const int32_t *)positions->numbers + token, most);
}

/* `take` rows around an anchor, an even number. A row in which something is not settled is made again by itself, with
 * the narrower margin of single rows; where sin is small, that is what settles it. */
static void penc_run_around(const penc_block *block, size_t take, const penc_sincos_block *anchor,
                            const penc_sincos_block *steps) {
    const penc_fast_job *fast = block->fast;
    uint64_t unsettled = fast->kernels->round_run(block->pairs, take, fast->scale, anchor, steps,
                                                  block->cos, block->sin, block->stride);
    for (size_t row = 0; unsettled; row++, unsettled >>= 1) {
        if (unsettled & 1)
            penc_round_row(block, row);
    }
    penc_finish_rows(block, take);
}

static void penc_advance(penc_block *block, size_t rows) {
    block->token += rows;
    block->cos += block->fast->direct ? (ptrdiff_t)rows * block->stride : 0;
    block->sin += block->fast->direct ? (ptrdiff_t)rows * block->stride : 0;
}

/* One block of pairs of a whole run, in pieces of rows around anchors; anchors are made several at once. */
static void penc_run_pairs(penc_block block, size_t rows) {
    enum { ANCHORS = 32 };
    const penc_fast_job *fast = block.fast;
    penc_quarter_table table = penc_quarters_of(&block);
    penc_sincos_block steps[PENC_SINCOS_ROWS / 2], anchors[ANCHORS];
    fast->kernels->blocks(table, block.pairs, 0.5, 1.0, PENC_SINCOS_ROWS / 2, 1.0, steps);
    while (rows > 1) {
        size_t take = rows < PENC_SINCOS_ROWS ? rows & ~(size_t)1 : PENC_SINCOS_ROWS;
        size_t pieces = rows / take < ANCHORS ? rows / take : ANCHORS;
        double first = penc_position_number(fast->job->positions, (ptrdiff_t)block.token);
        fast->kernels->blocks(table, block.pairs, first + 0.5 * (double)(take - 1), (double)take,
                              pieces, fast->scale, anchors);
        for (size_t piece = 0; piece < pieces; piece++, rows -= take) {
            penc_run_around(&block, take, &anchors[piece], steps);
            penc_advance(&block, take);
        }
    }
    if (rows) {
        penc_round_row(&block, 0);
        penc_finish_rows(&block, 1);
    }
}

size_t penc_fast_rows(const penc_fast_job *fast, size_t token) {
    enum { WORTH_A_RUN = 32 };
    if (penc_farthest_axis(fast, token) > fast->farthest)
        return 0;
    if (fast->doubles) {
        penc_double_row(fast, token);
        return 1;
    }
    size_t length = penc_run_length(fast, token);
    if (length < WORTH_A_RUN) {
        penc_fast_row(fast, token);
        return 1;
    }
    penc_scratch scratch;
    for (size_t pair = 0; pair < fast->job->frequencies->pairs; pair += PENC_SINCOS_RUN)
        penc_run_pairs(penc_block_at(fast, token, pair, PENC_SINCOS_RUN, &scratch), length);
    return length;
}
