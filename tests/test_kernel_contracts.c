/* Tries to break the contracts of the vector kernels, every instance that this machine has, as test_contracts
 * does with other functions. SPDX-License-Identifier: MIT */
#include "ladders.h"

#include "kernels/sincos_kernels.h"

typedef struct instance {
    const char *name;
    penc_cpu_level level;
    const penc_sincos_kernels *kernels;
} instance;

#define INSTANCE(suffix, level) {#suffix, level, &penc_sincos_##suffix##_kernels},
static const instance instances[] = {PENC_SINCOS_INSTANCES(INSTANCE)};

static const penc_sincos_kernels *kernels; /* those that are being tried */

/* One kernel at one position, pairs from `from` to before `to`: all of them, or one. */
typedef void try_kernel(search *s, const ladder *l, double position, size_t from, size_t to);

static void try_blocks(search *s, const ladder *l, double position, size_t from, size_t to) {
    enum { BLOCKS = 19 }; /* some of them turned from others */
    penc_sincos_block blocks[BLOCKS];
    for (size_t pair = from / PENC_SINCOS_RUN * PENC_SINCOS_RUN; pair < to;
         pair += PENC_SINCOS_RUN) {
        size_t left = l->pairs - pair, count = left < PENC_SINCOS_RUN ? left : PENC_SINCOS_RUN;
        penc_quarter_table table = {l->made->quarter_high + pair, l->made->quarter_low + pair};
        for (size_t b = 0; b < BLOCKS; b += 6) {
            double first = position - 0.5 * (double)b; /* rounded perhaps, but not its sum */
            if (first + 0.5 * (double)b != position)
                continue;
            kernels->blocks(table, count, first, 0.5, BLOCKS, 1.0, blocks);
            for (size_t j = pair > from ? pair : from; j < pair + count && j < to; j++) {
                penc_sincos got = {blocks[b].cos[j - pair], blocks[b].sin[j - pair]};
                check_value(s, l, j, position, POSENC_F64, got);
            }
        }
    }
}

static void try_round_row(search *s, const ladder *l, double position, size_t from, size_t to) {
    float cos_row[MOST_PAIRS], sin_row[MOST_PAIRS];
    penc_quarter_table table = {l->made->quarter_high, l->made->quarter_low};
    penc_place place = {NULL, position, penc_place_least(fabs(position) * l->made->fastest)};
    uint64_t open = kernels->round_row(table, l->pairs, &place, 1.0, cos_row, sin_row);
    for (size_t j = from; j < to; j++) {
        penc_sincos got = {(double)cos_row[j], (double)sin_row[j]};
        if (!(open >> j & 1))
            check_value(s, l, j, position, POSENC_F32, got);
    }
}

static void try_double_row(search *s, const ladder *l, double position, size_t from, size_t to) {
    double cos_row[MOST_PAIRS + PENC_SINCOS_PAD], sin_row[MOST_PAIRS + PENC_SINCOS_PAD];
    penc_quarter_table table = {l->made->quarter_high, l->made->quarter_low};
    penc_place place = {NULL, position, 0.0};
    uint64_t open =
        kernels->double_row(table, l->made->quarter_rest, l->pairs, &place, cos_row, sin_row);
    for (size_t j = from; j < to; j++)
        if (!(open >> j & 1))
            check_value(s, l, j, position, POSENC_F64, (penc_sincos){cos_row[j], sin_row[j]});
}

/* The position as one of a run that begins at a multiple of ROWS. */
static void try_round_run(search *s, const ladder *l, double position, size_t from, size_t to) {
    float cos_rows[PENC_SINCOS_ROWS * PENC_SINCOS_RUN];
    float sin_rows[PENC_SINCOS_ROWS * PENC_SINCOS_RUN];
    penc_sincos_block anchor, steps[PENC_SINCOS_ROWS / 2];
    const double rows = (double)PENC_SINCOS_ROWS;
    double start = floor(position / rows) * rows;
    if (position < 0.0 || position != trunc(position)) /* no run has such positions */
        return;
    for (size_t pair = from / PENC_SINCOS_RUN * PENC_SINCOS_RUN; pair < to;
         pair += PENC_SINCOS_RUN) {
        size_t left = l->pairs - pair, count = left < PENC_SINCOS_RUN ? left : PENC_SINCOS_RUN;
        penc_quarter_table table = {l->made->quarter_high + pair, l->made->quarter_low + pair};
        kernels->blocks(table, count, start + 0.5 * (rows - 1.0), 0.0, 1, 1.0, &anchor);
        kernels->blocks(table, count, 0.5, 1.0, PENC_SINCOS_ROWS / 2, 1.0, steps);
        uint64_t open = kernels->round_run(count, PENC_SINCOS_ROWS, 1.0, &anchor, steps, cos_rows,
                                           sin_rows, PENC_SINCOS_RUN);
        for (size_t i = 0; i < PENC_SINCOS_ROWS * count; i++) {
            size_t row = i / count, j = i % count, at = row * PENC_SINCOS_RUN + j;
            penc_sincos got = {(double)cos_rows[at], (double)sin_rows[at]};
            int wanted = pair + j >= from && pair + j < to &&
                         (to - from > 1 || start + (double)row == position);
            if (wanted && !(open >> row & 1))
                check_value(s, l, pair + j, start + (double)row, POSENC_F32, got);
        }
    }
}

static try_kernel *tried;

static void try_place(search *s, const ladder *l, size_t pair, double position) {
    tried(s, l, position, pair, pair + 1);
}

/* All pairs at random positions, all instances; the witness is one of the scalar instance. */
static void attack(const char *name, try_kernel *kernel, posenc_dtype dtype) {
    random_stream rng = random_of(name);
    search recorded = search_of("src/kernels/sincos_kernels.h", name, dtype);
    static ladder all[LADDERS];
    ladders_start(all);
    tried = kernel;
    kernels = &penc_sincos_scalar_kernels;
    try_place(&recorded, witness_ladder(all, &recorded), (size_t)recorded.contract.witness[2],
              recorded.contract.witness[3]);
    for (size_t i = 0; i < sizeof instances / sizeof *instances; i++) {
        search s = search_of("src/kernels/sincos_kernels.h", name, dtype);
        kernels = instances[i].kernels;
        if (instances[i].level > penc_cpu_level_now()) {
            printf("# no %s here\n", instances[i].name);
            continue;
        }
        while (s.tried < random_trials(SAMPLES)) {
            const ladder *l = &all[random_below(&rng, LADDERS)];
            double whole = floor(fabs((double)random_position(&rng)));
            kernel(&s, l, kernel == try_round_run ? whole : random_place(&rng), 0, l->pairs);
        }
        visit_closest(&s, all, try_place);
        visit_extremes(&s, all, try_place);
        visit_ties(&s, all, POSENC_F32, &rng, try_place);
        printf("# %s:\n", instances[i].name);
        search_report(&s);
    }
    ladders_end(all);
    search_assert_witness(&recorded);
}

static void row_kernels_keep_their_contract(void **state) {
    (void)state;
    attack("penc_sincos_blocks_kernel", try_blocks, POSENC_F64);
}

static void rounding_row_kernels_keep_their_contract(void **state) {
    (void)state;
    attack("penc_round_row_kernel", try_round_row, POSENC_F32);
}

static void rounding_run_kernels_keep_their_contract(void **state) {
    (void)state;
    attack("penc_round_run_kernel", try_round_run, POSENC_F32);
}

static void float64_row_kernels_keep_their_contract(void **state) {
    (void)state;
    attack("penc_double_row_kernel", try_double_row, POSENC_F64);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_kernels_keep_their_contract),
        cmocka_unit_test(rounding_row_kernels_keep_their_contract),
        cmocka_unit_test(rounding_run_kernels_keep_their_contract),
        cmocka_unit_test(float64_row_kernels_keep_their_contract),
    };
    random_announce();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
