/* Rows by vector kernels against the same numbers by the slow way (penc_angle_value), which test_angles compares
 * with MPFR. Run once for every CPU level (POSENC_CPU). SPDX-License-Identifier: MIT */
#include "angles/row_job.h"
#include "kernels/sincos_kernels.h"
#include "posenc/posenc.h"

#include "guard_pages.h"
#include "random_data.h"

#include <math.h>
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

/* Positions of any kind, and what rows are wanted of them. */
typedef struct row_case {
    const posenc_frequencies *frequencies;
    penc_positions positions;
    posenc_dtype dtype;
    posenc_mode mode;
    int without_attention;
} row_case;

static row_case case_of(const posenc_frequencies *f, const int64_t *positions, size_t count) {
    size_t axes = posenc_frequencies_spec(f)->axes->count;
    row_case c = {f,
                  {positions, PENC_INT64, sizeof *positions, count, axes, (ptrdiff_t)count},
                  POSENC_F32,
                  POSENC_MODE_EXACT,
                  0};
    return c;
}

/* The slow way to token's pair: cos and sin as they are stored, widened to float64. */
static penc_sincos slow_pair(const row_case *c, size_t token, size_t pair) {
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.mode = c->mode;
    rows.without_attention = c->without_attention;
    penc_row_job job = {c->frequencies, &c->positions, &rows, 0};
    int exact = c->mode == POSENC_MODE_EXACT;
    penc_sincos value = penc_angle_value(&job, token, pair, exact ? c->dtype : POSENC_F32);
    if (!exact) {
        uint16_t narrow[2];
        int is_narrow = c->dtype == POSENC_F16 || c->dtype == POSENC_BF16;
        float products[2] = {(float)value.cos * penc_row_factor(&job),
                             (float)value.sin * penc_row_factor(&job)};
        if (is_narrow) {
            assert_int_equal(posenc_convert(products, POSENC_F32, narrow, c->dtype, 2, NULL),
                             POSENC_OK);
            assert_int_equal(posenc_convert(narrow, c->dtype, products, POSENC_F32, 2, NULL),
                             POSENC_OK);
        }
        value = (penc_sincos){(double)products[0], (double)products[1]};
    }
    return value;
}

static posenc_status angles_of(const row_case *c, const posenc_rows *rows) {
    switch (c->positions.kind) {
    case PENC_INT64:
        return posenc_angles(c->frequencies, c->positions.numbers, c->positions.count, rows, NULL);
    case PENC_INT32:
        return posenc_angles_int32(c->frequencies, c->positions.numbers, c->positions.count, rows,
                                   NULL);
    case PENC_REAL:
        break;
    }
    return posenc_angles_real(c->frequencies, c->positions.numbers, c->positions.count, rows, NULL);
}

static void assert_number(const row_case *c, const void *rows, size_t at, double slow,
                          const char *what) {
    double fast;
    size_t bytes = posenc_dtype_bytes(c->dtype);
    assert_int_equal(
        posenc_convert((const char *)rows + at * bytes, c->dtype, &fast, POSENC_F64, 1, NULL),
        POSENC_OK);
    size_t pairs = posenc_frequencies_pairs(c->frequencies);
    if (fast != slow || !signbit(fast) != !signbit(slow))
        fail_msg("%s of element %zu (%zu pairs a row), %s, mode %s: %.17g, slowly %.17g", what, at,
                 pairs, posenc_dtype_name(c->dtype), posenc_mode_name(c->mode), fast, slow);
}

/* Rows of layout half, flush against guard pages, equal the slow ones. */
static void assert_case_equal(const row_case *c) {
    size_t pairs = posenc_frequencies_pairs(c->frequencies), count = c->positions.count;
    size_t bytes = count * pairs * posenc_dtype_bytes(c->dtype);
    guarded cos = guarded_new(bytes, GUARD_AFTER), sin = guarded_new(bytes, GUARD_AFTER);
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.cos = cos.data;
    rows.sin = sin.data;
    rows.dtype = c->dtype;
    rows.mode = c->mode;
    rows.without_attention = c->without_attention;
    assert_int_equal(angles_of(c, &rows), POSENC_OK);
    for (size_t i = 0; i < count * pairs; i++) {
        penc_sincos slow = slow_pair(c, i / pairs, i % pairs);
        assert_number(c, cos.data, i, slow.cos, "cos");
        assert_number(c, sin.data, i, slow.sin, "sin");
    }
    guarded_free(&cos);
    guarded_free(&sin);
}

/* In float32 and in float64. */
static void assert_rows_equal(const posenc_frequencies *f, const int64_t *positions, size_t count) {
    row_case c = case_of(f, positions, count);
    assert_case_equal(&c);
    c.dtype = POSENC_F64;
    assert_case_equal(&c);
}

/* In every dtype and mode that vector kernels serve. */
static void assert_all_kinds_equal(row_case c) {
    static const posenc_dtype served[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};
    for (size_t d = 0; d < COUNT(served); d++) {
        c.dtype = served[d];
        for (int kind = 0; kind < 4; kind++) {
            if (kind & 1 && served[d] == POSENC_F64)
                continue; /* refused */
            c.mode = kind & 1 ? POSENC_MODE_FLOAT32 : POSENC_MODE_EXACT;
            c.without_attention = kind / 2;
            assert_case_equal(&c);
        }
    }
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

/* Rows of cos of which the anchor makes +-number, all around the middle between two float32 numbers, also where the margin
 * ends in it. */
static void assert_rounds_beside_middle(double sign, float below) {
    enum { AROUND = 160 };
    penc_sincos_block anchor = {{0.0}, {0.0}}, step = {{0.0}, {0.0}};
    float cos[2 * PENC_SINCOS_RUN], sin[2 * PENC_SINCOS_RUN];
    const double middle = 0.5 * ((double)below + (double)nextafterf(below, 2.0f));
    anchor.cos[0] = sign;
    anchor.sin[0] = 0.37; /* so that sin is settled */
    int settled = 0;
    for (int i = -AROUND; i <= AROUND; i++) {
        double number = step.cos[0] = middle + i * 0x1p-53;
        uint64_t open = penc_sincos_kernels_now()->round_run(1, 2, 1.0, &anchor, &step, cos, sin,
                                                             PENC_SINCOS_RUN);
        for (size_t row = 0; row < 2 && i; row++) {
            if (!(open >> row & 1))
                assert_true(cos[row * PENC_SINCOS_RUN] == (float)(sign * number));
            settled += !(open >> row & 1);
        }
    }
    assert_true(settled >= AROUND); /* beyond the margin, of both rows */
}

static void runs_round_right_beside_middles(void **state) {
    (void)state;
    static const float below[] = {0.5f, 0.50000006f, 0.75f, 0.99999994f, 0.9999999f, 0.6180340f};
    for (size_t i = 0; i < COUNT(below); i++) {
        assert_rounds_beside_middle(1.0, below[i]);
        assert_rounds_beside_middle(-1.0, below[i]);
    }
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

/* One position out of order, at any place of a list: those behind it stand where a run would have them. */
static void runs_broken_at_any_place_equal_the_slow_rows(void **state) {
    (void)state;
    int64_t positions[200];
    posenc_frequencies *f = frequencies_of(36, 10000.0, NULL);
    for (size_t broken = 0; broken < COUNT(positions); broken += 3) {
        for (size_t i = 0; i < COUNT(positions); i++)
            positions[i] = 5000 + (int64_t)i + (i == broken ? 77 : 0);
        assert_rows_equal(f, positions, COUNT(positions));
    }
    posenc_frequencies_destroy(f);
}

static void an_attention_factor_is_rounded_once(void **state) {
    (void)state;
    static const double factors[] = {
        0.75, 1.138629436111989, 2.5, 1e-3,  900.0, /* and those that vector kernels do not serve */
        1e-9, 0x1p-20,           1e6, 3e-41, 1.0 + 0x1p-24};
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

static posenc_scaling scaling_of(posenc_scaling_type type) {
    posenc_scaling scaling = POSENC_SCALING_INIT;
    scaling.type = type;
    scaling.factor = 4.0;
    scaling.original_max_positions = 4096;
    scaling.partial = 0.25;
    return scaling;
}

/* 16-bit numbers come from float32 ones, which lie between two of them once in some thousands. */
static void every_dtype_and_mode_equals_the_slow_rows(void **state) {
    (void)state;
    static const posenc_scaling_type types[] = {POSENC_SCALING_DEFAULT, POSENC_SCALING_YARN,
                                                POSENC_SCALING_PROPORTIONAL};
    random_stream rng = random_of(__func__);
    int64_t positions[200];
    for (size_t t = 0; t < COUNT(types); t++) {
        posenc_scaling scaling = scaling_of(types[t]);
        posenc_frequencies *f = frequencies_of(80, 1e6, &scaling);
        for (size_t i = 0; i < COUNT(positions); i++)
            positions[i] = i < 100 ? (int64_t)i - 20
                                   : (int64_t)random_below(&rng, UINT64_C(1) << (1 + i % 40)) *
                                         (i % 2 ? 1 : -1);
        assert_all_kinds_equal(case_of(f, positions, COUNT(positions)));
        posenc_frequencies_destroy(f);
    }
}

static void int32_and_real_positions_equal_the_slow_rows(void **state) {
    (void)state;
    enum { TOKENS = 120 };
    int32_t whole[TOKENS];
    double real[TOKENS];
    posenc_frequencies *f = frequencies_of(36, 10000.0, NULL);
    for (int i = 0; i < TOKENS; i++) {
        whole[i] = i < 60 ? i - 2147483647 : 2147483647 - (i - 60) * 1021;
        real[i] = i % 3 ? (i - 50) * 0.37 : (i - 50) * 1e9 / 7.0;
    }
    real[0] = -0.0;
    row_case c = case_of(f, NULL, TOKENS);
    c.positions.numbers = whole;
    c.positions.kind = PENC_INT32;
    c.positions.bytes = sizeof *whole;
    assert_all_kinds_equal(c);
    c.positions.numbers = real;
    c.positions.kind = PENC_REAL;
    c.positions.bytes = sizeof *real;
    assert_all_kinds_equal(c);
    posenc_frequencies_destroy(f);
}

static void several_axes_equal_the_slow_rows(void **state) {
    (void)state;
    enum { TOKENS = 50 };
    int64_t positions[3 * TOKENS];
    posenc_axes axes = POSENC_AXES_INIT;
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_frequencies *f;
    axes.count = 3;
    axes.sections[0] = 16;
    axes.sections[1] = axes.sections[2] = 24;
    spec.head_dim = 128;
    spec.axes = &axes;
    assert_int_equal(posenc_frequencies_create(&spec, 0, &f, NULL, NULL), POSENC_OK);
    for (int i = 0; i < TOKENS; i++) {
        positions[i] = 1000 + i;
        positions[TOKENS + i] = -i * 12345;
        positions[2 * TOKENS + i] = i % 7 ? (INT64_C(1) << 40) - i : 0;
    }
    assert_all_kinds_equal(case_of(f, positions, TOKENS));
    posenc_frequencies_destroy(f);
}

/* Frequency 1 leaves a position below a quarter of pi as it is, so that its next 53 bits are nearly zeros or ones; at odd
 * multiples of it the nearest quarter turn is not settled, at even ones the angle is near 0; others are tiny. */
static void rows_of_hard_angles_equal_the_slow_rows(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    const double frequencies[] = {1.0, 0.5, -2.0, 1e-20, 1e-37, 3.0e-30, 0.0, -1.0};
    double positions[400] = {0.0,
                             -0.0,
                             0.25,
                             -0.5,
                             0.7,
                             1e-30,
                             -1e-300,
                             5e-324,
                             0x1p40,
                             -0x1p40,
                             0x1p40 - 0.5,
                             1e-37,
                             1e-38,
                             /* middles between float32 numbers */ 0x1.8p-149,
                             0x1.4p-147,
                             -0x1.cp-148};
    for (size_t i = 16; i < COUNT(positions); i++) {
        double eighths = (double)random_below(&rng, i % 2 ? 16 : (uint64_t)1 << 38);
        positions[i] = eighths * 0x1.921fb54442d18p-1;
        if (i % 4 == 0)
            positions[i] = random_real(&rng, 0.0, 0.785);
        else if (i % 3 == 0)
            positions[i] += random_real(&rng, -1.0, 1.0) * ldexp(1.0, -(int)random_below(&rng, 60));
    }
    posenc_scaling scaling = POSENC_SCALING_INIT;
    scaling.type = POSENC_SCALING_CUSTOM;
    scaling.inv_freq = frequencies;
    scaling.inv_freq_dtype = POSENC_F64;
    scaling.inv_freq_count = COUNT(frequencies);
    posenc_frequencies *f = frequencies_of(2 * COUNT(frequencies), 0.0, &scaling);
    row_case c = case_of(f, NULL, COUNT(positions));
    c.positions = (penc_positions){positions,        PENC_REAL, sizeof *positions,
                                   COUNT(positions), 1,         (ptrdiff_t)COUNT(positions)};
    for (int kind = 0; kind < 3; kind++) {
        c.dtype = kind ? POSENC_F32 : POSENC_F64;
        c.mode = kind == 2 ? POSENC_MODE_FLOAT32 : POSENC_MODE_EXACT;
        assert_case_equal(&c);
    }
    posenc_frequencies_destroy(f);
}

/* Every layout, in runs and row by row, against the layout half of the same dtype. */
static void assert_layouts_agree(const posenc_frequencies *f, const int64_t *positions,
                                 size_t tokens, posenc_dtype dtype) {
    enum { MOST = 100, WIDTH = 2 * 130 + 3 };
    size_t pairs = posenc_frequencies_pairs(f), bytes = posenc_dtype_bytes(dtype);
    static char half[2][MOST * WIDTH * 8], cos[MOST * WIDTH * 8], sin[MOST * WIDTH * 8];
    posenc_rows plain = POSENC_ROWS_INIT;
    plain.cos = half[0];
    plain.sin = half[1];
    plain.dtype = dtype;
    assert_int_equal(posenc_angles(f, positions, tokens, &plain, NULL), POSENC_OK);
    for (int layout = POSENC_ROWS_FULL_HALF; layout <= POSENC_ROWS_PAIRS; layout++) {
        int beside = layout == POSENC_ROWS_COS_SIN || layout == POSENC_ROWS_PAIRS;
        posenc_rows rows = plain;
        rows.layout = (posenc_row_layout)layout;
        rows.cos = cos;
        rows.sin = beside ? NULL : sin;
        rows.row_stride = (ptrdiff_t)(2 * pairs + 3);
        assert_int_equal(posenc_angles(f, positions, tokens, &rows, NULL), POSENC_OK);
        size_t step = layout == POSENC_ROWS_FULL_INTERLEAVED || layout == POSENC_ROWS_PAIRS ? 2 : 1;
        size_t copy = layout == POSENC_ROWS_FULL_HALF ? pairs : 1;
        size_t behind = layout == POSENC_ROWS_COS_SIN ? pairs : 1;
        for (size_t i = 0; i < tokens * pairs; i++) {
            size_t at = i / pairs * (2 * pairs + 3) + i % pairs * step;
            const char *s = beside ? cos + (at + behind) * bytes : sin + at * bytes;
            assert_memory_equal(cos + at * bytes, half[0] + i * bytes, bytes);
            assert_memory_equal(s, half[1] + i * bytes, bytes);
            if (!beside) {
                assert_memory_equal(cos + (at + copy) * bytes, half[0] + i * bytes, bytes);
                assert_memory_equal(sin + (at + copy) * bytes, half[1] + i * bytes, bytes);
            }
        }
    }
}

static void every_layout_holds_the_same_numbers(void **state) {
    (void)state;
    static const size_t widths[] = {36, 130, 260};
    static const posenc_dtype served[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};
    int64_t runs[100], steps[100];
    for (int i = 0; i < 100; i++) {
        runs[i] = 4000 + i;
        steps[i] = 999 * i;
    }
    for (size_t w = 0; w < COUNT(widths); w++) {
        posenc_frequencies *f = frequencies_of(widths[w], 10000.0, NULL);
        for (size_t d = 0; d < COUNT(served); d++) {
            assert_layouts_agree(f, runs, 70, served[d]);
            assert_layouts_agree(f, steps, 9, served[d]);
        }
        posenc_frequencies_destroy(f);
    }
}

/* The slowest and fastest frequencies that a list may have, and positions times those beyond 2^40 quarters. */
static void positions_too_far_for_kernels_are_done_slowly(void **state) {
    (void)state;
    static const double lists[2][2] = {{1.0, 1e-37}, {1e6, 1.0}};
    static const int64_t positions[] = {3, -7, 1727108, 1727109, -1727109, INT64_C(1) << 40};
    for (int i = 0; i < 2; i++) {
        posenc_scaling scaling = POSENC_SCALING_INIT;
        scaling.type = POSENC_SCALING_CUSTOM;
        scaling.inv_freq = lists[i];
        scaling.inv_freq_dtype = POSENC_F64;
        scaling.inv_freq_count = 2;
        posenc_spec spec = POSENC_SPEC_INIT;
        posenc_frequencies *f;
        spec.head_dim = 4;
        spec.scaling = &scaling;
        assert_int_equal(posenc_frequencies_create(&spec, 0, &f, NULL, NULL), POSENC_OK);
        assert_rows_equal(f, positions, COUNT(positions));
        posenc_frequencies_destroy(f);
    }
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
        cmocka_unit_test(runs_round_right_beside_middles),
        cmocka_unit_test(scattered_positions_equal_the_slow_rows),
        cmocka_unit_test(lists_that_mix_runs_and_steps_equal_the_slow_rows),
        cmocka_unit_test(runs_broken_at_any_place_equal_the_slow_rows),
        cmocka_unit_test(an_attention_factor_is_rounded_once),
        cmocka_unit_test(any_frequency_is_served),
        cmocka_unit_test(every_dtype_and_mode_equals_the_slow_rows),
        cmocka_unit_test(int32_and_real_positions_equal_the_slow_rows),
        cmocka_unit_test(several_axes_equal_the_slow_rows),
        cmocka_unit_test(rows_of_hard_angles_equal_the_slow_rows),
        cmocka_unit_test(every_layout_holds_the_same_numbers),
        cmocka_unit_test(positions_too_far_for_kernels_are_done_slowly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
