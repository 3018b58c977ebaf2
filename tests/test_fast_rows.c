/* Float32 rows by vector kernels against the same rows by the slow way, which test_angles compares with MPFR:
 * the layout pairs is never served by vector kernels, the layout half is wherever it can be. Run once for
 * every CPU level (POSENC_CPU). SPDX-License-Identifier: MIT */
#include "posenc/posenc.h"

#include "guard_pages.h"
#include "random_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const double bases[] = {10000.0, 500000.0, 1e8, 100.0, 3.5};
static const size_t dims[] = {2, 6, 16, 36, 80, 128, 130, 256, 384};

static posenc_frequencies *frequencies_of(size_t dim, double base, const posenc_scaling *scaling) {
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_frequencies *made;
    spec.head_dim = dim;
    spec.base = base;
    spec.scaling = scaling;
    assert_int_equal(posenc_frequencies_create(&spec, 0, &made, NULL, NULL), POSENC_OK);
    return made;
}

/* cos, sin, cos, sin ... of every pair and position, the slow way. */
static float *slow_rows(const posenc_frequencies *f, const int64_t *positions, size_t count) {
    float *pairs = malloc(count * 2 * posenc_frequencies_pairs(f) * sizeof *pairs);
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.cos = pairs;
    rows.layout = POSENC_ROWS_PAIRS;
    assert_int_equal(posenc_angles(f, positions, count, &rows, NULL), POSENC_OK);
    return pairs;
}

/* Rows of layout half, flush against guard pages, equal the slow ones. */
static void assert_rows_equal(const posenc_frequencies *f, const int64_t *positions, size_t count) {
    size_t pairs = posenc_frequencies_pairs(f), bytes = count * pairs * sizeof(float);
    float *slow = slow_rows(f, positions, count);
    guarded cos = guarded_new(bytes, GUARD_AFTER), sin = guarded_new(bytes, GUARD_AFTER);
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.cos = cos.data;
    rows.sin = sin.data;
    assert_int_equal(posenc_angles(f, positions, count, &rows, NULL), POSENC_OK);
    for (size_t i = 0; i < count * pairs; i++) {
        const float *c = (const float *)cos.data + i, *s = (const float *)sin.data + i;
        if (memcmp(c, slow + 2 * i, sizeof *c) || memcmp(s, slow + 2 * i + 1, sizeof *s))
            fail_msg("position %lld, pair %zu of %zu: (%.9g, %.9g), slowly (%.9g, %.9g)",
                     (long long)positions[i / pairs], i % pairs, pairs, (double)*c, (double)*s,
                     (double)slow[2 * i], (double)slow[2 * i + 1]);
    }
    guarded_free(&cos);
    guarded_free(&sin);
    free(slow);
}

static void assert_run_equal(const posenc_frequencies *f, int64_t first, size_t count,
                             int64_t step) {
    int64_t *positions = malloc(count * sizeof *positions);
    for (size_t i = 0; i < count; i++)
        positions[i] = first + (int64_t)i * step;
    assert_rows_equal(f, positions, count);
    free(positions);
}

static void runs_equal_the_slow_rows(void **state) {
    (void)state;
    static const int64_t firsts[] = {0, 1, 31, 1000000, 1048576 - 50, -40, -100000, 16777216};
    for (size_t b = 0; b < COUNT(bases); b++) {
        for (size_t d = 0; d < COUNT(dims); d++) {
            posenc_frequencies *f = frequencies_of(dims[d], bases[b], NULL);
            for (size_t i = 0; i < COUNT(firsts); i++)
                assert_run_equal(f, firsts[i], 100 + dims[d] % 7, 1);
            posenc_frequencies_destroy(f);
        }
    }
}

/* Kernels hold positions in 32 bits. */
static void runs_across_2_to_32_and_up_to_2_to_40_equal_the_slow_rows(void **state) {
    (void)state;
    static const int64_t firsts[] = {4294967296 - 50, 4294967296, 1099511627776 - 99,
                                     -4294967296 - 50};
    for (size_t b = 0; b < COUNT(bases); b++) {
        posenc_frequencies *f = frequencies_of(80, bases[b], NULL);
        for (size_t i = 0; i < COUNT(firsts); i++)
            assert_run_equal(f, firsts[i], 100, 1);
        posenc_frequencies_destroy(f);
    }
}

/* Slow pairs of a large base have small sines, which a margin settles least often. */
static void hard_roundings_are_computed_again(void **state) {
    (void)state;
    posenc_frequencies *f = frequencies_of(128, 1e8, NULL);
    assert_run_equal(f, 0, random_trials(4096), 1);
    assert_run_equal(f, 1, random_trials(4096), 37);
    posenc_frequencies_destroy(f);
}

static void scattered_positions_equal_the_slow_rows(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    int64_t positions[300];
    for (size_t trial = 0; trial < random_trials(40); trial++) {
        posenc_frequencies *f =
            frequencies_of(dims[trial % COUNT(dims)], bases[trial % COUNT(bases)], NULL);
        for (size_t i = 0; i < COUNT(positions); i++)
            positions[i] = (int64_t)random_below(&rng, UINT64_C(1) << (1 + trial % 40)) *
                           (random_below(&rng, 2) ? 1 : -1);
        assert_rows_equal(f, positions, COUNT(positions));
        posenc_frequencies_destroy(f);
    }
}

/* Runs that begin, end and turn in the middle of a list. */
static void lists_that_mix_runs_and_steps_equal_the_slow_rows(void **state) {
    (void)state;
    int64_t positions[400];
    for (size_t i = 0; i < COUNT(positions); i++)
        positions[i] = i < 40    ? (int64_t)i * 3
                       : i < 200 ? 5000 + (int64_t)i
                       : i < 300 ? 300 - (int64_t)i
                                 : (int64_t)i;
    posenc_frequencies *f = frequencies_of(128, 10000.0, NULL);
    assert_rows_equal(f, positions, COUNT(positions));
    posenc_frequencies_destroy(f);
}

static void an_attention_factor_is_rounded_once(void **state) {
    (void)state;
    static const double factors[] = {0.75, 1.138629436111989, 2.5, 1e-3, 900.0};
    for (size_t i = 0; i < COUNT(factors); i++) {
        posenc_scaling scaling = POSENC_SCALING_INIT;
        scaling.type = POSENC_SCALING_YARN;
        scaling.factor = 4.0;
        scaling.original_max_positions = 4096;
        scaling.attention_factor = factors[i];
        posenc_frequencies *f = frequencies_of(128, 1e6, &scaling);
        assert_run_equal(f, 0, 600, 1);
        assert_run_equal(f, 131072, 300, 11);
        posenc_frequencies_destroy(f);
    }
}

/* Negative and large frequencies: more than a turn per position. */
static void any_frequency_is_served(void **state) {
    (void)state;
    static const double list[] = {
        -1.0, 7.5, 1e-9, -1e-3, 0.0, 1000.25, 3.141592653589793, -6.283185307179586, 1e6};
    posenc_scaling scaling = POSENC_SCALING_INIT;
    scaling.type = POSENC_SCALING_CUSTOM;
    scaling.inv_freq = list;
    scaling.inv_freq_dtype = POSENC_F64;
    scaling.inv_freq_count = COUNT(list);
    posenc_frequencies *f = frequencies_of(2 * COUNT(list), 0.0, &scaling);
    assert_run_equal(f, 0, 500, 1);
    assert_run_equal(f, -9, 100, 1234567);
    posenc_frequencies_destroy(f);
}

static void every_layout_holds_the_same_numbers(void **state) {
    (void)state;
    enum { TOKENS = 70, PAIRS = 18 };
    int64_t positions[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        positions[i] = 4000 + i;
    posenc_frequencies *f = frequencies_of(2 * PAIRS, 10000.0, NULL);
    float *slow = slow_rows(f, positions, TOKENS);
    float cos[TOKENS][2 * PAIRS + 3], sin[TOKENS][2 * PAIRS + 3];
    for (int layout = POSENC_ROWS_HALF; layout <= POSENC_ROWS_COS_SIN; layout++) {
        posenc_rows rows = POSENC_ROWS_INIT;
        rows.layout = (posenc_row_layout)layout;
        rows.cos = cos;
        rows.sin = layout == POSENC_ROWS_COS_SIN ? NULL : sin;
        rows.row_stride = 2 * PAIRS + 3;
        assert_int_equal(posenc_angles(f, positions, TOKENS, &rows, NULL), POSENC_OK);
        int spread = layout == POSENC_ROWS_FULL_INTERLEAVED ? 2 : 1;
        for (int i = 0; i < TOKENS * PAIRS; i++) {
            int row = i / PAIRS, j = i % PAIRS;
            const float *s = layout == POSENC_ROWS_COS_SIN ? &cos[row][PAIRS] : sin[row];
            assert_true(cos[row][j * spread] == slow[2 * i] && s[j * spread] == slow[2 * i + 1]);
            int copy = layout == POSENC_ROWS_FULL_HALF ? j + PAIRS : 2 * j + 1;
            if (layout == POSENC_ROWS_FULL_HALF || layout == POSENC_ROWS_FULL_INTERLEAVED)
                assert_true(cos[row][copy] == slow[2 * i] && s[copy] == slow[2 * i + 1]);
        }
    }
    free(slow);
    posenc_frequencies_destroy(f);
}

int main(int argc, char **argv) {
    random_announce();
    if (argc > 1 && strcmp(posenc_cpu(), argv[1]) != 0) {
        printf("1..1\nok 1 - vector rows at level %s # SKIP this CPU has no %s\n", argv[1],
               argv[1]);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_equal_the_slow_rows),
        cmocka_unit_test(runs_across_2_to_32_and_up_to_2_to_40_equal_the_slow_rows),
        cmocka_unit_test(hard_roundings_are_computed_again),
        cmocka_unit_test(scattered_positions_equal_the_slow_rows),
        cmocka_unit_test(lists_that_mix_runs_and_steps_equal_the_slow_rows),
        cmocka_unit_test(an_attention_factor_is_rounded_once),
        cmocka_unit_test(any_frequency_is_served),
        cmocka_unit_test(every_layout_holds_the_same_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
