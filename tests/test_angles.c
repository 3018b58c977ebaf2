/* The cos and sin rows of frequencies, against MPFR. SPDX-License-Identifier: MIT */
#include "angles/sincos.h"
#include "frequencies_of.h"
#include "guard_pages.h"
#include "oracle.h"
#include "random_data.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};

/* Positions that show what position 0 and short sequences hide. */
static const int64_t probes[] = {
    0,     1,     2,      7,       40,         700,         2047,
    2048,  4095,  4096,   8191,    8192,       32768,       131071,
    -1,    -4097, 100000, 1048575, 1048576,    -1048576,    INT64_C(1) << 40,
    65535, 65536, 65537,  -131071, 1073741823, -4294967297, -(INT64_C(1) << 40)};

/* Where sin or cos of the position itself (frequency 1) nearly vanishes: near multiples of pi/2. */
static const int64_t near_zeros[] = {11,         355,        103993,      104348,      208341,
                                     312689,     833719,     1146408,     4272943,     5419351,
                                     80143857,   165707065,  245850922,   411557987,   1068966896,
                                     2549491779, 6167950454, 21053343141, 881156436695};

/* The only callers of these functions. */
static penc_sincos rounded_sincos(const penc_angle *angle, posenc_dtype dtype) {
    return penc_sincos_rounded(angle, NULL, dtype);
}

static penc_sincos wide_sincos(const penc_angle *angle, posenc_dtype dtype) {
    return penc_sincos_wide(angle, NULL, dtype);
}

/* --- Rows against MPFR -------------------------------------------------------------------------- */

/* Rows of one dtype, layout pairs, in memory of their own: element 2j is cos of pair j. */
static guarded pairs_rows(const posenc_frequencies *f, const int64_t *positions, size_t count,
                          posenc_dtype dtype, posenc_mode mode) {
    size_t width = 2 * posenc_frequencies_pairs(f);
    guarded memory = guarded_new(count * width * oracle_bytes(dtype), GUARD_AFTER);
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_error error;
    rows.cos = memory.data;
    rows.layout = POSENC_ROWS_PAIRS;
    rows.dtype = dtype;
    rows.mode = mode;
    assert_done(posenc_angles(f, positions, count, &rows, &error), &error);
    return memory;
}

/* The angle of one pair at one position as the mode forms it, as a factor of `w`. */
static double turned_by(posenc_mode mode, double base, size_t dim, size_t pair, int64_t position,
                        mpfr_ptr w) {
    if (mode == POSENC_MODE_EXACT)
        return (double)position;
    mpfr_set_ui(w, 1, MPFR_RNDN);
    return (double)(transformers_factor(base, pair, dim) * (float)position);
}

static void round_to_float32(mpfr_ptr x) {
    mpfr_set_d(x, oracle_value(oracle_bits(x, POSENC_F32), POSENC_F32), MPFR_RNDN);
}

/* One pair of all rows in all dtypes (float64 is refused in mode float32). */
static void assert_column(const guarded *rows, double base, size_t dim, size_t pair,
                          const int64_t *positions, size_t count, posenc_mode mode) {
    mpfr_t w, cosine, sine;
    mpfr_inits2(ORACLE_BITS, w, cosine, sine, (mpfr_ptr)NULL);
    oracle_frequency(w, 1.0, base, 2 * pair, dim);
    for (size_t i = 0; i < count; i++) {
        oracle_sincos(cosine, sine, turned_by(mode, base, dim, pair, positions[i], w), w);
        ptrdiff_t at = (ptrdiff_t)(i * dim + 2 * pair);
        if (mode == POSENC_MODE_FLOAT32) { /* 16-bit values are rounded from the float32 ones */
            round_to_float32(cosine);
            round_to_float32(sine);
        }
        for (size_t k = 0; k < COUNT(dtypes); k++) {
            if (!rows[k].data)
                continue;
            oracle_assert(rows[k].data, dtypes[k], at, cosine,
                          "cos, base %g, dim %zu, pair %zu, "
                          "position %lld, mode %d",
                          base, dim, pair, (long long)positions[i], mode);
            oracle_assert(rows[k].data, dtypes[k], at + 1, sine,
                          "sin, base %g, dim %zu, pair %zu, "
                          "position %lld, mode %d",
                          base, dim, pair, (long long)positions[i], mode);
        }
    }
    mpfr_clears(w, cosine, sine, (mpfr_ptr)NULL);
}

static void assert_rows(size_t dim, double base, const int64_t *positions, size_t count,
                        posenc_mode mode) {
    posenc_spec spec = spec_of(dim, base);
    posenc_frequencies *f = frequencies_of(&spec);
    guarded rows[COUNT(dtypes)] = {{NULL, 0, NULL, 0}};
    for (size_t k = 0; k < COUNT(dtypes); k++) {
        if (mode == POSENC_MODE_EXACT || dtypes[k] != POSENC_F64)
            rows[k] = pairs_rows(f, positions, count, dtypes[k], mode);
    }
    for (size_t pair = 0; pair < dim / 2; pair++)
        assert_column(rows, base, dim, pair, positions, count, mode);
    for (size_t k = 0; k < COUNT(dtypes); k++) {
        if (rows[k].data)
            guarded_free(&rows[k]);
    }
    posenc_frequencies_destroy(f);
}

static void assert_rows_at_random_positions(posenc_mode mode, const char *name) {
    static const size_t dims[] = {2, 6, 36, 64, 80, 96, 128, 256};
    random_stream rng = random_of(name);
    int64_t positions[60];
    for (size_t trial = 0; trial < random_trials(COUNT(bases)); trial++) {
        for (size_t d = 0; d < COUNT(dims); d++) {
            for (size_t i = 0; i < COUNT(positions); i++)
                positions[i] = random_position(&rng);
            assert_rows(dims[d], bases[trial % COUNT(bases)], positions, COUNT(positions), mode);
        }
    }
}

static void exact_rows_are_right_at_random_positions_up_to_2_to_40(void **state) {
    (void)state;
    assert_rows_at_random_positions(POSENC_MODE_EXACT, __func__);
}

static void float32_rows_are_right_at_random_positions_up_to_2_to_40(void **state) {
    (void)state;
    assert_rows_at_random_positions(POSENC_MODE_FLOAT32, __func__);
}

static void rows_are_right_at_the_usual_probe_positions(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(bases); i++) {
        assert_rows(64, bases[i], probes, COUNT(probes), POSENC_MODE_EXACT);
        assert_rows(36, bases[i], probes, COUNT(probes), POSENC_MODE_FLOAT32);
    }
}

static void rows_are_right_where_sin_or_cos_of_the_position_nearly_vanishes(void **state) {
    (void)state;
    assert_rows(2, 10000.0, near_zeros, COUNT(near_zeros), POSENC_MODE_EXACT);
    assert_rows(4, 10000.0, near_zeros, COUNT(near_zeros), POSENC_MODE_EXACT);
    assert_rows(2, 10000.0, near_zeros, COUNT(near_zeros), POSENC_MODE_FLOAT32);
}

static void exact_rows_are_right_at_every_frequencys_worst_positions(void **state) {
    (void)state;
    static const size_t dims[] = {8, 36, 80, 128};
    mpfr_t w;
    mpfr_init2(w, ORACLE_BITS);
    for (size_t trial = 0; trial < COUNT(bases) * COUNT(dims); trial++) {
        double base = bases[trial % COUNT(bases)];
        size_t dim = dims[trial / COUNT(bases)];
        posenc_spec spec = spec_of(dim, base);
        posenc_frequencies *f = frequencies_of(&spec);
        for (size_t pair = 0; pair < dim / 2; pair++) {
            int64_t positions[64];
            guarded rows[COUNT(dtypes)];
            oracle_frequency(w, 1.0, base, 2 * pair, dim);
            size_t count = oracle_closest_positions(w, positions, COUNT(positions));
            assert_true(count > 5);
            for (size_t k = 0; k < COUNT(dtypes); k++)
                rows[k] = pairs_rows(f, positions, count, dtypes[k], POSENC_MODE_EXACT);
            assert_column(rows, base, dim, pair, positions, count, POSENC_MODE_EXACT);
            for (size_t k = 0; k < COUNT(dtypes); k++)
                guarded_free(&rows[k]);
        }
        posenc_frequencies_destroy(f);
    }
    mpfr_clear(w);
}

/* Bases below 1 make frequencies up to 1e6: positions are kept so far down that no angle exceeds 2^48
 * radians, since float64's 2^-75 needs that. */
static void rows_are_right_at_extreme_bases(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    int64_t positions[20];
    for (size_t trial = 0; trial < random_trials(100); trial++) {
        int is_small = trial % 2;
        for (size_t i = 0; i < COUNT(positions); i++)
            positions[i] = random_position(&rng) / (is_small ? 4096 : 1);
        double base = is_small ? random_magnitude(&rng, -6, 0) : random_magnitude(&rng, 9, 30);
        assert_rows(36, base, positions, COUNT(positions), POSENC_MODE_EXACT);
        assert_rows(36, base, positions, COUNT(positions), POSENC_MODE_FLOAT32);
    }
}

/* Frequencies 2^-2j and positions one bit too long for float32, float16 or bfloat16: sines that lie
 * just below a midpoint, by less and less of themselves as j grows. */
static void sines_just_below_a_midpoint_round_down(void **state) {
    (void)state;
    static const int64_t positions[] = {16777217, 16777219, 16777221, -16777219, 33554431, 33554434,
                                        2049,     2051,     -2053,    4095,      257,      259,
                                        261,      -263,     511,      385};
    for (int exponent = 8; exponent <= 98; exponent += 18)
        assert_rows(2 * (size_t)exponent, ldexp(1.0, exponent), positions, COUNT(positions),
                    POSENC_MODE_EXACT);
}

/* Largest difference of cos or sin between the two modes at one position. */
static double mode_difference(const posenc_frequencies *f, int64_t position) {
    size_t width = 2 * posenc_frequencies_pairs(f);
    guarded exact = pairs_rows(f, &position, 1, POSENC_F32, POSENC_MODE_EXACT);
    guarded rounded = pairs_rows(f, &position, 1, POSENC_F32, POSENC_MODE_FLOAT32);
    double most = 0.0;
    for (size_t i = 0; i < width; i++)
        most =
            fmax(most, fabs((double)((float *)exact.data)[i] - (double)((float *)rounded.data)[i]));
    guarded_free(&exact);
    guarded_free(&rounded);
    return most;
}

/* The numbers come from NumPy in long double; cos differs nowhere more up to 100,000 than at 97504. */
static void modes_differ_by_a_visible_amount_far_out(void **state) {
    (void)state;
    posenc_spec spec = spec_of(128, 10000.0);
    posenc_frequencies *f = frequencies_of(&spec);
    assert_true(fabs(mode_difference(f, 100000) - 0.0051639) < 2e-7);
    assert_true(fabs(mode_difference(f, 97504) - 0.0068003) < 2e-7);
    assert_true(fabs(mode_difference(f, 1000000) - 0.0515883) < 2e-7);
    posenc_frequencies_destroy(f);
}

/* --- Rows among themselves ---------------------------------------------------------------------- */

static void negated_positions_negate_sin_and_keep_cos(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    posenc_spec spec = spec_of(80, 500000.0);
    posenc_frequencies *f = frequencies_of(&spec);
    for (size_t trial = 0; trial < random_trials(100); trial++) {
        int64_t position = random_position(&rng), negated = -position;
        for (size_t k = 0; k < COUNT(dtypes) + 3; k++) {
            posenc_mode mode = k < COUNT(dtypes) ? POSENC_MODE_EXACT : POSENC_MODE_FLOAT32;
            posenc_dtype dtype = dtypes[k % COUNT(dtypes) + (mode && k % COUNT(dtypes) == 1)];
            guarded plain = pairs_rows(f, &position, 1, dtype, mode);
            guarded mirror = pairs_rows(f, &negated, 1, dtype, mode);
            uint64_t sign = position ? UINT64_C(1) << (8 * oracle_bytes(dtype) - 1) : 0;
            for (ptrdiff_t i = 0; i < 80; i++)
                assert_true(oracle_load(mirror.data, dtype, i) ==
                            (oracle_load(plain.data, dtype, i) ^ (i % 2 ? sign : 0)));
            guarded_free(&plain);
            guarded_free(&mirror);
        }
    }
    posenc_frequencies_destroy(f);
}

/* Runs of random start and length, backwards and scattered: the bytes of the rows alone. */
static void a_row_has_the_same_bytes_alone_and_among_others(void **state) {
    (void)state;
    enum { N = 60, DIM = 36 };
    random_stream rng = random_of(__func__);
    posenc_spec spec = spec_of(DIM, 10000.0);
    posenc_frequencies *f = frequencies_of(&spec);
    for (size_t trial = 0; trial < random_trials(40); trial++) {
        posenc_dtype dtype = dtypes[trial % 4];
        posenc_mode mode =
            dtype != POSENC_F64 && trial / 4 % 2 ? POSENC_MODE_FLOAT32 : POSENC_MODE_EXACT;
        int64_t positions[N], first = random_position(&rng) / 2, step = trial % 3 ? 1 : -1;
        for (int64_t i = 0; i < N; i++)
            positions[i] = trial % 5 ? first + i * step : random_position(&rng);
        guarded all = pairs_rows(f, positions, N, dtype, mode);
        size_t row_bytes = DIM * oracle_bytes(dtype);
        for (size_t start = 0; start < N;) {
            size_t count = 1 + random_below(&rng, N - start);
            if (trial % 2)
                count = 1;
            guarded some = pairs_rows(f, positions + start, count, dtype, mode);
            assert_memory_equal(some.data, (char *)all.data + start * row_bytes, some.bytes);
            guarded_free(&some);
            start += count;
        }
        guarded_free(&all);
    }
    posenc_frequencies_destroy(f);
}

/* --- Layouts and strides ------------------------------------------------------------------------ */

/* Where a number of pair j stands: the columns in its array and whether that array is sin. */
typedef struct place {
    size_t columns[2], count;
    int in_sin_array;
} place;

static place place_of(posenc_row_layout layout, size_t pairs, size_t j, int is_sin) {
    switch (layout) {
    case POSENC_ROWS_HALF:
        return (place){{j, 0}, 1, is_sin};
    case POSENC_ROWS_FULL_HALF:
        return (place){{j, j + pairs}, 2, is_sin};
    case POSENC_ROWS_FULL_INTERLEAVED:
        return (place){{2 * j, 2 * j + 1}, 2, is_sin};
    case POSENC_ROWS_COS_SIN:
        return (place){{is_sin ? pairs + j : j, 0}, 1, 0};
    case POSENC_ROWS_PAIRS:
        return (place){{is_sin ? 2 * j + 1 : 2 * j, 0}, 1, 0};
    }
    return (place){{0, 0}, 0, 0};
}

static const posenc_row_layout layouts[] = {POSENC_ROWS_HALF, POSENC_ROWS_FULL_HALF,
                                            POSENC_ROWS_FULL_INTERLEAVED, POSENC_ROWS_COS_SIN,
                                            POSENC_ROWS_PAIRS};

static int has_sin_array(posenc_row_layout layout) {
    return layout != POSENC_ROWS_COS_SIN && layout != POSENC_ROWS_PAIRS;
}

enum { LAYOUT_ROWS = 4, LAYOUT_DIM = 6, LAYOUT_PAIRS = 3 };
static const int64_t layout_positions[LAYOUT_ROWS] = {1, -77, 1048576, 4097};

/* All numbers of pair j, in all rows; each that was found right is set to GUARD_FILL again, so that
 * in the end only what should not have been written can differ from it. */
static void assert_and_clear_pair(const posenc_rows *rows, void *first_cos, void *first_sin,
                                  size_t j) {
    mpfr_t w, number[2];
    mpfr_inits2(ORACLE_BITS, w, number[0], number[1], (mpfr_ptr)NULL);
    oracle_frequency(w, 1.0, 10000.0, 2 * j, LAYOUT_DIM);
    for (size_t i = 0; i < LAYOUT_ROWS; i++) {
        oracle_sincos(number[0], number[1],
                      turned_by(rows->mode, 10000.0, LAYOUT_DIM, j, layout_positions[i], w), w);
        for (int is_sin = 0; is_sin < 2; is_sin++) {
            place where = place_of(rows->layout, LAYOUT_PAIRS, j, is_sin);
            void *array = where.in_sin_array ? first_sin : first_cos;
            for (size_t k = 0; k < where.count; k++) {
                ptrdiff_t at = (ptrdiff_t)i * rows->row_stride + (ptrdiff_t)where.columns[k];
                oracle_assert(array, rows->dtype, at, number[is_sin],
                              "layout %d, row %zu, pair %zu", (int)rows->layout, i, j);
                oracle_store(array, rows->dtype, at, UINT64_C(0xa5a5a5a5a5a5a5a5));
            }
        }
    }
    mpfr_clears(w, number[0], number[1], (mpfr_ptr)NULL);
}

/* Rows of one layout; cos, sin and positions begin or end at a page that faults. */
static void assert_layout(posenc_row_layout layout, posenc_dtype dtype, posenc_mode mode,
                          ptrdiff_t stride, guard_side side) {
    posenc_spec spec = spec_of(LAYOUT_DIM, 10000.0);
    posenc_frequencies *f = frequencies_of(&spec);
    size_t width = posenc_row_width(layout, LAYOUT_PAIRS),
           step = (size_t)(stride < 0 ? -stride : stride);
    if (stride == 0)
        step = width;
    size_t bytes = ((LAYOUT_ROWS - 1) * step + width) * oracle_bytes(dtype);
    guarded cos_memory = guarded_new(bytes, side), sin_memory = guarded_new(bytes, side);
    guarded positions = guarded_new(sizeof layout_positions, side);
    memcpy(positions.data, layout_positions, sizeof layout_positions);
    size_t first = stride < 0 ? (LAYOUT_ROWS - 1) * step * oracle_bytes(dtype) : 0;
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_error error;
    rows.cos = (char *)cos_memory.data + first;
    rows.sin = has_sin_array(layout) ? (char *)sin_memory.data + first : NULL;
    rows.dtype = dtype;
    rows.layout = layout;
    rows.row_stride = stride;
    rows.mode = mode;
    assert_done(posenc_angles(f, positions.data, LAYOUT_ROWS, &rows, &error), &error);
    assert_memory_equal(positions.data, layout_positions, sizeof layout_positions);
    guarded_free(&positions);
    rows.row_stride = stride ? stride : (ptrdiff_t)width;
    for (size_t j = 0; j < LAYOUT_PAIRS; j++)
        assert_and_clear_pair(&rows, rows.cos, rows.sin, j);
    assert_true(guarded_is_untouched(&cos_memory));
    assert_true(guarded_is_untouched(&sin_memory));
    guarded_free(&cos_memory);
    guarded_free(&sin_memory);
    posenc_frequencies_destroy(f);
}

static void every_layout_dtype_and_stride_puts_numbers_where_it_says(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(layouts) * COUNT(dtypes) * 2; i++) {
        posenc_row_layout layout = layouts[i % COUNT(layouts)];
        posenc_dtype dtype = dtypes[i / COUNT(layouts) % COUNT(dtypes)];
        posenc_mode mode =
            i < COUNT(layouts) * COUNT(dtypes) ? POSENC_MODE_EXACT : POSENC_MODE_FLOAT32;
        if (mode == POSENC_MODE_FLOAT32 && dtype == POSENC_F64)
            continue;
        ptrdiff_t width = (ptrdiff_t)posenc_row_width(layout, LAYOUT_PAIRS);
        const ptrdiff_t strides[] = {0, width, width + 1, 100, -width, -width - 5};
        for (size_t k = 0; k < COUNT(strides); k++) {
            assert_layout(layout, dtype, mode, strides[k], GUARD_BEFORE);
            assert_layout(layout, dtype, mode, strides[k], GUARD_AFTER);
        }
    }
}

static void row_widths_are_pairs_or_twice_as_many(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(layouts); i++) {
        size_t wanted = layouts[i] == POSENC_ROWS_HALF ? 7 : 14;
        assert_int_equal(posenc_row_width(layouts[i], 7), wanted);
    }
    assert_int_equal(posenc_row_width((posenc_row_layout)5, 7), 0);
    assert_int_equal(posenc_row_width((posenc_row_layout)-1, 7), 0);
}

/* cos and sin of layout half side by side in one array: the bytes of layout cos_sin. */
static void cos_and_sin_may_share_an_array_without_sharing_elements(void **state) {
    (void)state;
    enum { N = 5, DIM = 36, PAIRS = 18 };
    posenc_spec spec = spec_of(DIM, 10000.0);
    posenc_frequencies *f = frequencies_of(&spec);
    float apart[N][DIM], together[N][DIM];
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.cos = apart[0];
    rows.sin = apart[0] + PAIRS;
    rows.row_stride = DIM;
    assert_int_equal(posenc_angles(f, probes, N, &rows, NULL), POSENC_OK);
    rows.cos = together[0];
    rows.sin = NULL;
    rows.layout = POSENC_ROWS_COS_SIN;
    assert_int_equal(posenc_angles(f, probes, N, &rows, NULL), POSENC_OK);
    assert_memory_equal(apart, together, sizeof apart);
    posenc_frequencies_destroy(f);
}

static void no_positions_write_nothing(void **state) {
    (void)state;
    posenc_spec spec = spec_of(8, 0.0);
    posenc_frequencies *f = frequencies_of(&spec);
    guarded memory = guarded_new(64, GUARD_AFTER);
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.cos = memory.data;
    rows.layout = POSENC_ROWS_PAIRS;
    assert_int_equal(posenc_angles(f, NULL, 0, &rows, NULL), POSENC_OK);
    assert_true(guarded_is_untouched(&memory));
    guarded_free(&memory);
    posenc_frequencies_destroy(f);
}

/* --- Refused calls ------------------------------------------------------------------------------ */

/* A valid call of posenc_angles, to be spoilt in one place. */
typedef struct angles_call {
    const posenc_frequencies *frequencies;
    const int64_t *positions;
    size_t count;
    posenc_rows rows;
    const posenc_rows *rows_pointer;
    int64_t own_positions[3];
} angles_call;

typedef void spoil_angles(angles_call *call);

/* clang-format off */
static void spoil_frequencies(angles_call *c) { c->frequencies = NULL; }
static void spoil_positions(angles_call *c) { c->positions = NULL; }
static void spoil_rows(angles_call *c) { c->rows_pointer = NULL; }
static void spoil_size(angles_call *c) { c->rows.size--; }
static void spoil_cos(angles_call *c) { c->rows.cos = NULL; }
static void spoil_sin(angles_call *c) { c->rows.sin = NULL; }
static void spoil_sin_full(angles_call *c) { c->rows.sin = NULL; c->rows.layout = POSENC_ROWS_FULL_HALF; }
static void spoil_sin_spread(angles_call *c) { c->rows.sin = NULL; c->rows.layout = POSENC_ROWS_FULL_INTERLEAVED; }
static void spoil_beside(angles_call *c) { c->rows.layout = POSENC_ROWS_COS_SIN; }
static void spoil_pairs(angles_call *c) { c->rows.layout = POSENC_ROWS_PAIRS; }
static void spoil_dtype(angles_call *c) { c->rows.dtype = (posenc_dtype)4; }
static void spoil_layout(angles_call *c) { c->rows.layout = (posenc_row_layout)5; }
static void spoil_mode(angles_call *c) { c->rows.mode = (posenc_mode)2; }
static void spoil_precision(angles_call *c) { c->rows.dtype = POSENC_F64; c->rows.mode = POSENC_MODE_FLOAT32; }
static void spoil_high(angles_call *c) { c->own_positions[2] = POSENC_MAX_POSITION + 1; }
static void spoil_low(angles_call *c) { c->own_positions[2] = -POSENC_MAX_POSITION - 1; }
static void spoil_lowest(angles_call *c) { c->own_positions[2] = INT64_MIN; }
static void spoil_stride(angles_call *c) { c->rows.row_stride = 3; }
static void spoil_stride_back(angles_call *c) { c->rows.row_stride = -3; }
static void spoil_stride_huge(angles_call *c) { c->rows.row_stride = PTRDIFF_MAX; }
static void spoil_stride_least(angles_call *c) { c->rows.row_stride = PTRDIFF_MIN; }
static void spoil_count(angles_call *c) { c->count = SIZE_MAX; }
static void spoil_same_array(angles_call *c) { c->rows.sin = c->rows.cos; }
static void spoil_overlap(angles_call *c) { c->rows.sin = (float *)c->rows.cos + 11; }
static void spoil_inputs_cos(angles_call *c) { c->positions = c->rows.cos; }
static void spoil_inputs_sin(angles_call *c) { c->positions = c->rows.sin; }
/* clang-format on */

static void assert_angles_refused(spoil_angles *spoil, posenc_status status, const char *argument) {
    posenc_spec spec = spec_of(8, 0.0);
    posenc_frequencies *f = frequencies_of(&spec);
    guarded cosine = guarded_new(3 * 16 * sizeof(double), GUARD_BEFORE);
    guarded sine = guarded_new(3 * 16 * sizeof(double), GUARD_BEFORE);
    angles_call call = {f, NULL, 3, POSENC_ROWS_INIT, NULL, {5, 6, 7}};
    posenc_error error;
    call.positions = call.own_positions;
    call.rows.cos = cosine.data;
    call.rows.sin = sine.data;
    call.rows_pointer = &call.rows;
    spoil(&call);
    assert_refused(
        posenc_angles(call.frequencies, call.positions, call.count, call.rows_pointer, &error),
        &error, status, argument);
    assert_int_equal(
        posenc_angles(call.frequencies, call.positions, call.count, call.rows_pointer, NULL),
        status);
    assert_true(guarded_is_untouched(&cosine));
    assert_true(guarded_is_untouched(&sine));
    if (strcmp(argument, "positions") == 0 && status == POSENC_OUT_OF_RANGE) {
        assert_string_equal(error.place_name, "index");
        assert_int_equal(error.place, 2);
        assert_true(error.value.as.integer == call.own_positions[2]);
    }
    guarded_free(&cosine);
    guarded_free(&sine);
    posenc_frequencies_destroy(f);
}

static void bad_calls_of_angles_are_refused_and_write_nothing(void **state) {
    (void)state;
    static const struct {
        spoil_angles *spoil;
        posenc_status status;
        const char *argument;
    } bad[] = {
        {spoil_frequencies, POSENC_NULL_POINTER, "frequencies"},
        {spoil_positions, POSENC_NULL_POINTER, "positions"},
        {spoil_rows, POSENC_NULL_POINTER, "rows"},
        {spoil_size, POSENC_OUT_OF_RANGE, "rows"},
        {spoil_cos, POSENC_NULL_POINTER, "rows.cos"},
        {spoil_sin, POSENC_NULL_POINTER, "rows.sin"},
        {spoil_sin_full, POSENC_NULL_POINTER, "rows.sin"},
        {spoil_sin_spread, POSENC_NULL_POINTER, "rows.sin"},
        {spoil_beside, POSENC_OUT_OF_RANGE, "rows.sin"},
        {spoil_pairs, POSENC_OUT_OF_RANGE, "rows.sin"},
        {spoil_dtype, POSENC_OUT_OF_RANGE, "rows.dtype"},
        {spoil_layout, POSENC_OUT_OF_RANGE, "rows.layout"},
        {spoil_mode, POSENC_OUT_OF_RANGE, "rows.mode"},
        {spoil_precision, POSENC_OUT_OF_RANGE, "rows.dtype"},
        {spoil_high, POSENC_OUT_OF_RANGE, "positions"},
        {spoil_low, POSENC_OUT_OF_RANGE, "positions"},
        {spoil_lowest, POSENC_OUT_OF_RANGE, "positions"},
        {spoil_stride, POSENC_OUT_OF_RANGE, "rows.row_stride"},
        {spoil_stride_back, POSENC_OUT_OF_RANGE, "rows.row_stride"},
        {spoil_stride_huge, POSENC_OVERFLOW, "count"},
        {spoil_stride_least, POSENC_OVERFLOW, "count"},
        {spoil_count, POSENC_OVERFLOW, "count"},
        {spoil_same_array, POSENC_OVERLAP, "rows.sin"},
        {spoil_overlap, POSENC_OVERLAP, "rows.sin"},
        {spoil_inputs_cos, POSENC_OVERLAP, "rows.cos"},
        {spoil_inputs_sin, POSENC_OVERLAP, "rows.sin"},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_angles_refused(bad[i].spoil, bad[i].status, bad[i].argument);
}

/* --- The fast sin and cos and their slow twin --------------------------------------------------- */

/* |rest| of any size from pi/4 down to 2^-200, in any quarter, of any sign. */
static penc_angle random_angle(random_stream *rng) {
    penc_angle angle = {(int)random_below(rng, 2),
                        (unsigned)random_below(rng, 4),
                        (int)random_below(rng, 2),
                        {{0}}};
    for (int i = 0; i < PENC_WIDE_LIMBS - 1; i++)
        angle.radians.limb[i] = random_bits(rng);
    do /* pi/4 < 0.7854 */
        angle.radians.limb[PENC_WIDE_LIMBS - 2] = random_bits(rng);
    while (angle.radians.limb[PENC_WIDE_LIMBS - 2] >= UINT64_C(0xc90fdaa22168c234));
    if (random_below(rng, 2))
        angle.radians = penc_wide_shift(&angle.radians, -(int)random_below(rng, 200));
    return angle;
}

static void the_fast_sincos_equals_its_slow_twin(void **state) {
    (void)state;
    static const posenc_dtype narrow[] = {POSENC_F32, POSENC_F16, POSENC_BF16};
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(100000); trial++) {
        penc_angle angle = random_angle(&rng);
        posenc_dtype dtype = narrow[trial % COUNT(narrow)];
        penc_sincos fast = rounded_sincos(&angle, dtype), slow = wide_sincos(&angle, dtype);
        assert_memory_equal(&fast, &slow, sizeof fast);
    }
}

static void set_radians(mpfr_t x, const penc_angle *angle) {
    mpz_t z;
    mpz_init(z);
    mpz_import(z, PENC_WIDE_LIMBS, -1, sizeof(uint64_t), 0, 0, angle->radians.limb);
    mpfr_set_z_2exp(x, z, -256, MPFR_RNDN);
    mpz_clear(z);
}

/* Real cos and sin of an angle in its parts: sign * (quarter * pi/2 +- radians). */
static void sincos_of_parts(mpfr_t cosine, mpfr_t sine, const penc_angle *angle) {
    mpfr_t x, quarter;
    mpfr_inits2(ORACLE_BITS + 300, x, quarter, (mpfr_ptr)NULL);
    set_radians(x, angle);
    if (angle->rest_negative)
        mpfr_neg(x, x, MPFR_RNDN);
    mpfr_const_pi(quarter, MPFR_RNDN);
    mpfr_mul_ui(quarter, quarter, angle->quarter, MPFR_RNDN);
    mpfr_div_2ui(quarter, quarter, 1, MPFR_RNDN);
    mpfr_add(x, x, quarter, MPFR_RNDN);
    if (angle->negative)
        mpfr_neg(x, x, MPFR_RNDN);
    mpfr_sin_cos(sine, cosine, x, MPFR_RNDN);
    mpfr_clears(x, quarter, (mpfr_ptr)NULL);
}

static void assert_sincos(const penc_sincos *got, const penc_angle *angle, posenc_dtype dtype) {
    mpfr_t cosine, sine;
    uint64_t bits[2] = {oracle_bits_of_double(got->cos, dtype),
                        oracle_bits_of_double(got->sin, dtype)};
    char array[16];
    mpfr_inits2(ORACLE_BITS, cosine, sine, (mpfr_ptr)NULL);
    sincos_of_parts(cosine, sine, angle);
    oracle_store(array, dtype, 0, bits[0]);
    oracle_store(array, dtype, 1, bits[1]);
    oracle_assert(array, dtype, 0, cosine, "cos of quarter %u", angle->quarter);
    oracle_assert(array, dtype, 1, sine, "sin of quarter %u", angle->quarter);
    mpfr_clears(cosine, sine, (mpfr_ptr)NULL);
}

static void sincos_of_any_reduced_angle_is_right_in_every_dtype(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(20000); trial++) {
        penc_angle angle = random_angle(&rng);
        posenc_dtype dtype = dtypes[trial % COUNT(dtypes)];
        penc_sincos got = rounded_sincos(&angle, dtype);
        assert_sincos(&got, &angle, dtype);
        if (trial % 8 == 1) { /* the twin knows float64 too, correctly rounded */
            got = wide_sincos(&angle, POSENC_F64);
            assert_sincos(&got, &angle, POSENC_F64);
        }
    }
}

static penc_wide wide_of_real(const mpfr_t x) {
    penc_wide wide = {{0}};
    mpfr_t scaled;
    mpz_t z;
    mpz_init(z);
    mpfr_init2(scaled, ORACLE_BITS);
    mpfr_mul_2ui(scaled, x, 256, MPFR_RNDN);
    mpfr_get_z(z, scaled, MPFR_RNDN);
    mpz_export(wide.limb, NULL, -1, sizeof(uint64_t), 0, 0, z);
    mpfr_clear(scaled);
    mpz_clear(z);
    return wide;
}

/* Angles made so that sin lies 2^-70 (relative) beside the midpoint of two numbers of a dtype:
 * float64 cannot tell the side, so this goes the slow way. */
static void sines_beside_a_midpoint_round_to_their_side(void **state) {
    (void)state;
    static const posenc_dtype narrow[] = {POSENC_F32, POSENC_F16, POSENC_BF16};
    random_stream rng = random_of(__func__);
    mpfr_t x, shift;
    mpfr_inits2(ORACLE_BITS, x, shift, (mpfr_ptr)NULL);
    for (size_t trial = 0; trial < random_trials(2000); trial++) {
        posenc_dtype dtype = narrow[trial % COUNT(narrow)];
        uint64_t bits = oracle_bits_of_double(random_real(&rng, 0.001, 0.7), dtype);
        mpfr_set_d(x, oracle_value(bits, dtype), MPFR_RNDN);
        mpfr_add_d(x, x, oracle_value(bits + 1, dtype), MPFR_RNDN);
        mpfr_div_2ui(x, x, 1, MPFR_RNDN);
        mpfr_mul_2si(shift, x, -70, MPFR_RNDN);
        (trial & 1 ? mpfr_add : mpfr_sub)(x, x, shift, MPFR_RNDN);
        mpfr_asin(x, x, MPFR_RNDN);
        penc_angle angle = {0, (unsigned)random_below(&rng, 4), 0, wide_of_real(x)};
        penc_sincos got = rounded_sincos(&angle, dtype);
        assert_sincos(&got, &angle, dtype);
        double part = angle.quarter % 2 ? got.cos : got.sin;
        assert_true(fabs(part) == oracle_value(bits + (trial & 1), dtype));
    }
    mpfr_clears(x, shift, (mpfr_ptr)NULL);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_rows_are_right_at_random_positions_up_to_2_to_40),
        cmocka_unit_test(float32_rows_are_right_at_random_positions_up_to_2_to_40),
        cmocka_unit_test(rows_are_right_at_the_usual_probe_positions),
        cmocka_unit_test(rows_are_right_where_sin_or_cos_of_the_position_nearly_vanishes),
        cmocka_unit_test(exact_rows_are_right_at_every_frequencys_worst_positions),
        cmocka_unit_test(rows_are_right_at_extreme_bases),
        cmocka_unit_test(sines_just_below_a_midpoint_round_down),
        cmocka_unit_test(modes_differ_by_a_visible_amount_far_out),
        cmocka_unit_test(negated_positions_negate_sin_and_keep_cos),
        cmocka_unit_test(a_row_has_the_same_bytes_alone_and_among_others),
        cmocka_unit_test(every_layout_dtype_and_stride_puts_numbers_where_it_says),
        cmocka_unit_test(row_widths_are_pairs_or_twice_as_many),
        cmocka_unit_test(cos_and_sin_may_share_an_array_without_sharing_elements),
        cmocka_unit_test(no_positions_write_nothing),
        cmocka_unit_test(bad_calls_of_angles_are_refused_and_write_nothing),
        cmocka_unit_test(the_fast_sincos_equals_its_slow_twin),
        cmocka_unit_test(sincos_of_any_reduced_angle_is_right_in_every_dtype),
        cmocka_unit_test(sines_beside_a_midpoint_round_to_their_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
