/* Sinusoidal tables in every convention, against MPFR and published numbers.
 * SPDX-License-Identifier: MIT */
#include "guard_pages.h"
#include "oracle.h"
#include "posenc/posenc.h"
#include "random_data.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};

/* --- The oracle --------------------------------------------------------------------------------- */

typedef enum column_kind { COLUMN_ZERO, COLUMN_SIN, COLUMN_COS } column_kind;

/* What stands in a column: sin or cos of frequency k, or 0. */
typedef struct column {
    column_kind kind;
    size_t k;
} column;

/* The width that counts for frequencies: without the zero column. */
static size_t paired_width(const posenc_sinusoidal_spec *spec) {
    return spec->dim % 2 && spec->odd == POSENC_ODD_ZERO ? spec->dim - 1 : spec->dim;
}

static column column_of(const posenc_sinusoidal_spec *spec, size_t at) {
    size_t width = paired_width(spec), cosines = width / 2, sines = width - cosines;
    if (at >= width)
        return (column){COLUMN_ZERO, 0};
    switch (spec->layout) {
    case POSENC_SINUSOIDAL_INTERLEAVED:
        return (column){at % 2 ? COLUMN_COS : COLUMN_SIN, at / 2};
    case POSENC_SINUSOIDAL_SIN_COS:
        return at < sines ? (column){COLUMN_SIN, at} : (column){COLUMN_COS, at - sines};
    case POSENC_SINUSOIDAL_COS_SIN:
        return at < cosines ? (column){COLUMN_COS, at} : (column){COLUMN_SIN, at - cosines};
    }
    return (column){COLUMN_ZERO, 0};
}

/* scale * base^(-k / (d/2 - shift)). */
static void set_frequency(mpfr_ptr w, const posenc_sinusoidal_spec *spec, size_t k) {
    size_t denominator = paired_width(spec) - 2 * (size_t)spec->shift;
    oracle_frequency(w, spec->scale != 0.0 ? spec->scale : 1.0,
                     spec->base != 0.0 ? spec->base : 10000.0, 2 * k, denominator);
}

static double position_at(const double *positions, size_t i) {
    return positions ? positions[i] : (double)i;
}

/* A call of posenc_sinusoidal, and where its rows are. */
typedef struct table_call {
    posenc_sinusoidal_spec spec;
    const double *positions;
    size_t count;
    posenc_dtype dtype;
    ptrdiff_t row_stride;
} table_call;

/* One column of all rows. Each number that was found right is set to the filling of guarded memory,
 * so that in the end only what should not have been written can differ from it. */
static void assert_column(const table_call *c, void *table, size_t at) {
    column what = column_of(&c->spec, at);
    mpfr_t w, number[3];
    mpfr_inits2(ORACLE_BITS, w, number[0], number[1], number[2], (mpfr_ptr)NULL);
    if (what.kind != COLUMN_ZERO)
        set_frequency(w, &c->spec, what.k);
    for (size_t i = 0; i < c->count; i++) {
        double position = position_at(c->positions, i);
        int is_zero = what.kind == COLUMN_ZERO ||
                      (c->spec.has_padding && position == c->spec.padding_position);
        mpfr_set_zero(number[COLUMN_ZERO], 1);
        if (!is_zero)
            oracle_sincos(number[COLUMN_COS], number[COLUMN_SIN], c->spec.start + position, w);
        ptrdiff_t place = (ptrdiff_t)i * c->row_stride + (ptrdiff_t)at;
        oracle_assert(table, c->dtype, place, number[is_zero ? COLUMN_ZERO : what.kind],
                      "dim %zu, layout %d, shift %d, odd %d, column %zu, position %.17g, scale %g",
                      c->spec.dim, (int)c->spec.layout, c->spec.shift, (int)c->spec.odd, at,
                      position, c->spec.scale);
        oracle_store(table, c->dtype, place, UINT64_C(0xa5a5a5a5a5a5a5a5));
    }
    mpfr_clears(w, number[0], number[1], number[2], (mpfr_ptr)NULL);
}

/* The positions of a call at a page that faults; none where they are NULL. */
static guarded guarded_positions(const table_call *c, guard_side side) {
    guarded positions = guarded_new(c->count * sizeof(double), side);
    if (c->positions)
        memcpy(positions.data, c->positions, positions.bytes);
    return positions;
}

/* Makes the table in memory that ends, forwards or backwards, at a page that faults. */
static void assert_table(table_call c, guard_side side) {
    ptrdiff_t dim = (ptrdiff_t)c.spec.dim, given = c.row_stride;
    size_t bytes = oracle_bytes(c.dtype);
    c.row_stride = given ? given : dim;
    size_t step = (size_t)(c.row_stride < 0 ? -c.row_stride : c.row_stride);
    size_t before = (c.count - 1) * step * bytes;
    guarded memory = guarded_new(before + (size_t)dim * bytes, side);
    guarded positions = guarded_positions(&c, side);
    char *table = (char *)memory.data + (c.row_stride < 0 ? before : 0);
    posenc_error error;
    assert_done(posenc_sinusoidal(&c.spec, c.positions ? positions.data : NULL, c.count, c.dtype,
                                  given, table, &error),
                &error);
    for (size_t at = 0; at < c.spec.dim; at++)
        assert_column(&c, table, at);
    assert_true(guarded_is_untouched(&memory));
    guarded_free(&positions);
    guarded_free(&memory);
}

/* --- Conventions -------------------------------------------------------------------------------- */

static const double some_positions[] = {0.0, 1.0, 2.0, 7.0, 4096.0, 1048575.0, -1.0, 0.5, -33.25};

static void every_layout_shift_width_and_odd_rule_has_its_columns(void **state) {
    (void)state;
    for (size_t dim = 1; dim <= 14; dim++) {
        for (int i = 0; i < 3 * 2 * 4; i++) {
            table_call c = {POSENC_SINUSOIDAL_INIT, some_positions, COUNT(some_positions), 0, 0};
            c.spec.dim = dim;
            c.spec.layout = (posenc_sinusoidal_layout)(i % 3);
            c.spec.shift = i / 3 % 2;
            c.spec.odd = (posenc_odd_rule)(i / 6);
            if ((c.spec.shift && dim < 4) || (dim % 2 && c.spec.odd == POSENC_ODD_REFUSE))
                continue;
            c.dtype = dtypes[((size_t)i + dim) % COUNT(dtypes)];
            assert_table(c, (guard_side)(i % 2));
        }
    }
}

/* Positions up to which angles stay below 2^60. Exponents run to -4/3 (width 5, shift 1), so that bases
 * below 1 make frequencies larger. */
static double largest_position(const posenc_sinusoidal_spec *spec) {
    double base = spec->base != 0.0 ? spec->base : 10000.0;
    double scale = spec->scale != 0.0 ? fabs(spec->scale) : 1.0;
    return fmin(0x1p40, 0x1p59 / scale * fmin(1.0, pow(base, 4.0 / 3.0)));
}

static void set_random_convention(posenc_sinusoidal_spec *spec, random_stream *rng) {
    static const size_t dims[] = {2, 4, 6, 36, 80, 96, 5, 37, 128};
    spec->dim = dims[random_below(rng, COUNT(dims))];
    spec->layout = (posenc_sinusoidal_layout)random_below(rng, 3);
    spec->shift = spec->dim >= 4 && random_below(rng, 2);
    spec->odd = (posenc_odd_rule)(1 + random_below(rng, 3));
    spec->base = random_below(rng, 2) ? random_magnitude(rng, -6, 30) : 0.0;
    spec->scale = random_below(rng, 2) ? random_magnitude(rng, -30, 6) : 0.0;
    if (random_below(rng, 2))
        spec->scale = -spec->scale;
    spec->start = random_below(rng, 2) ? random_real(rng, -2.0, 2.0) : 0.0;
}

/* Whole and fractional positions of all sizes, or (every other trial) near the largest. */
static void random_conventions_are_right_at_random_positions(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    double positions[24];
    for (size_t trial = 0; trial < random_trials(300); trial++) {
        table_call c = {POSENC_SINUSOIDAL_INIT, positions, COUNT(positions), dtypes[trial % 4], 0};
        set_random_convention(&c.spec, &rng);
        double most = largest_position(&c.spec);
        for (size_t i = 0; i < COUNT(positions); i++) {
            double bound =
                trial / 4 % 2 ? most : fmin(most, ldexp(1.0, (int)random_below(&rng, 41)));
            positions[i] = random_real(&rng, -bound, bound);
            positions[i] = i % 3 ? positions[i] : nearbyint(positions[i]) + 0.0;
        }
        assert_table(c, (guard_side)(trial % 2));
    }
}

static void rows_may_be_apart_and_backwards(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        static const ptrdiff_t strides[] = {0, 6, 7, 100, -6, -11};
        for (size_t k = 0; k < COUNT(strides); k++) {
            table_call c = {POSENC_SINUSOIDAL_INIT, some_positions, 5, dtypes[i], strides[k]};
            c.spec.dim = 6;
            c.spec.layout = (posenc_sinusoidal_layout)(k % 3);
            assert_table(c, (guard_side)(k % 2));
        }
    }
}

static void positions_are_counted_from_0_where_none_are_given(void **state) {
    (void)state;
    table_call c = {POSENC_SINUSOIDAL_INIT, NULL, 50, POSENC_F32, 0};
    c.spec.dim = 10;
    assert_table(c, GUARD_AFTER);
    c.spec.start = 2.0; /* as models do whose first token stands at 2 */
    assert_table(c, GUARD_AFTER);
}

/* Padding is compared before `start` is added. */
static void padding_rows_are_0(void **state) {
    (void)state;
    static const double positions[] = {3.0, 1.0, 0.0, 1.0, 4.0, 1.5};
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        table_call c = {POSENC_SINUSOIDAL_INIT, positions, COUNT(positions), dtypes[i], 0};
        c.spec.dim = 8;
        c.spec.shift = 1;
        c.spec.layout = POSENC_SINUSOIDAL_SIN_COS;
        c.spec.has_padding = 1;
        c.spec.padding_position = 1.0;
        c.spec.start = -2.0;
        assert_table(c, GUARD_AFTER);
        uint64_t row[8] = {1, 1, 1, 1, 1, 1, 1, 1}, zeros[8] = {0};
        assert_int_equal(posenc_sinusoidal(&c.spec, positions + 1, 1, dtypes[i], 0, row, NULL), 0);
        assert_memory_equal(row, zeros, 8 * oracle_bytes(dtypes[i])); /* +0, not -0 */
        c.spec.padding_position = 1.5;                                /* any number can be one */
        assert_table(c, GUARD_AFTER);
        c.spec.has_padding = 0;
        assert_table(c, GUARD_AFTER);
    }
}

/* --- Known numbers ------------------------------------------------------------------------------ */

static void assert_known(posenc_sinusoidal_spec spec, double position, const double *wanted) {
    double row[16];
    posenc_error error;
    assert_done(posenc_sinusoidal(&spec, &position, 1, POSENC_F64, 0, row, &error), &error);
    for (size_t i = 0; i < spec.dim; i++) {
        if (!(fabs(row[i] - wanted[i]) <= 6e-7))
            fail_msg("dim %zu, layout %d, shift %d, odd %d, column %zu: got %.9f, wanted %.9f",
                     spec.dim, (int)spec.layout, spec.shift, (int)spec.odd, i, row[i], wanted[i]);
    }
}

static posenc_sinusoidal_spec convention(size_t dim, posenc_sinusoidal_layout layout, int shift,
                                         posenc_odd_rule odd) {
    posenc_sinusoidal_spec spec = POSENC_SINUSOIDAL_INIT;
    spec.dim = dim;
    spec.layout = layout;
    spec.shift = shift;
    spec.odd = odd;
    return spec;
}

/* Position 1 in the paper's form, concatenated, and with d/2 - 1 as fairseq, Whisper and DDPM have it;
 * an exponent that is wrong by 2 would give 0.999950 in column 1 of width 4. */
static void known_rows_of_published_conventions(void **state) {
    (void)state;
    static const struct {
        size_t dim;
        posenc_sinusoidal_layout layout;
        int shift;
        double row[8];
    } known[] = {
        {4, POSENC_SINUSOIDAL_INTERLEAVED, 0, {0.841471, 0.540302, 0.01, 0.999950}},
        {8,
         POSENC_SINUSOIDAL_INTERLEAVED,
         0,
         {0.841471, 0.540302, 0.099833, 0.995004, 0.01, 0.99995, 0.001, 1}},
        {8,
         POSENC_SINUSOIDAL_SIN_COS,
         0,
         {0.841471, 0.099833, 0.01, 0.001, 0.540302, 0.995004, 0.99995, 1}},
        {8,
         POSENC_SINUSOIDAL_SIN_COS,
         1,
         {0.841471, 0.046399, 0.002154, 0.0001, 0.540302, 0.998923, 0.999998, 1}},
        {8,
         POSENC_SINUSOIDAL_COS_SIN,
         1,
         {0.540302, 0.998923, 0.999998, 1, 0.841471, 0.046399, 0.002154, 0.0001}},
    };
    for (size_t i = 0; i < COUNT(known); i++)
        assert_known(convention(known[i].dim, known[i].layout, known[i].shift, POSENC_ODD_REFUSE),
                     1.0, known[i].row);
}

static void known_rows_of_odd_widths(void **state) {
    (void)state;
    static const double truncated[] = {0.841471, 0.540302, 0.025116, 0.999685, 0.000631};
    static const double padded[] = {0.841471, 0.540302, 0.01, 0.99995, 0.0};
    static const double concatenated[] = {0.841471, 0.025116, 0.000631, 0.540302, 0.999685};
    /* fairseq: d/2 - 1 = 1, so that the second frequency is 1/10000 */
    static const double fairseq[] = {0.841471, 0.0001, 0.540302, 1.0, 0.0};
    posenc_sinusoidal_layout paper = POSENC_SINUSOIDAL_INTERLEAVED;
    assert_known(convention(5, paper, 0, POSENC_ODD_TRUNCATE), 1.0, truncated);
    assert_known(convention(5, paper, 0, POSENC_ODD_CEIL), 1.0, truncated);
    assert_known(convention(5, paper, 0, POSENC_ODD_ZERO), 1.0, padded);
    assert_known(convention(5, POSENC_SINUSOIDAL_SIN_COS, 0, POSENC_ODD_CEIL), 1.0, concatenated);
    assert_known(convention(5, POSENC_SINUSOIDAL_SIN_COS, 0, POSENC_ODD_TRUNCATE), 1.0,
                 concatenated);
    assert_known(convention(5, POSENC_SINUSOIDAL_SIN_COS, 1, POSENC_ODD_ZERO), 1.0, fairseq);
}

static void position_0_is_0_1_0_1(void **state) {
    (void)state;
    static const double paper[] = {0, 1, 0, 1, 0, 1}, sin_cos[] = {0, 0, 0, 1, 1, 1};
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        uint64_t row[6], wide[6];
        posenc_sinusoidal_spec spec = convention(6, POSENC_SINUSOIDAL_INTERLEAVED, 0, 0);
        assert_int_equal(posenc_sinusoidal(&spec, NULL, 1, dtypes[i], 0, row, NULL), POSENC_OK);
        assert_int_equal(posenc_convert(row, dtypes[i], wide, POSENC_F64, 6, NULL), POSENC_OK);
        assert_memory_equal(wide, paper, sizeof paper);
        spec.layout = POSENC_SINUSOIDAL_SIN_COS;
        assert_int_equal(posenc_sinusoidal(&spec, NULL, 1, dtypes[i], 0, row, NULL), POSENC_OK);
        assert_int_equal(posenc_convert(row, dtypes[i], wide, POSENC_F64, 6, NULL), POSENC_OK);
        assert_memory_equal(wide, sin_cos, sizeof sin_cos);
    }
}

/* sin(5/100) in column 2 of width 4 at position 5; Flux feeds 1000 times the time. */
static void known_numbers_of_scales_and_bases(void **state) {
    (void)state;
    double row[4], time = 0.0075;
    posenc_sinusoidal_spec spec = convention(4, POSENC_SINUSOIDAL_INTERLEAVED, 0, 0);
    static const double five[] = {-0.9589242746631385, 0.28366218546322625, 0.04997916927067833,
                                  0.9987502603949663};
    assert_known(spec, 5.0, five);
    spec.base = 4.0; /* the second frequency is 1/2 */
    static const double halves[] = {-0.9589242746631385, 0.28366218546322625, 0.5984721441039565,
                                    -0.8011436155469337};
    assert_known(spec, 5.0, halves);
    spec = convention(4, POSENC_SINUSOIDAL_COS_SIN, 0, 0);
    spec.scale = 1000.0;
    assert_int_equal(posenc_sinusoidal(&spec, &time, 1, POSENC_F64, 0, row, NULL), POSENC_OK);
    static const double flux[] = {0.3466353178350258, 0.9971888181122075, 0.9379999767747389,
                                  0.0749297072727423};
    for (size_t i = 0; i < 4; i++)
        assert_true(fabs(row[i] - flux[i]) < 1e-15);
}

/* --- Laws --------------------------------------------------------------------------------------- */

static void sin_and_cos_lie_on_the_unit_circle(void **state) {
    (void)state;
    enum { D = 64, N = 50 };
    random_stream rng = random_of(__func__);
    double positions[N], table[N][D];
    for (size_t i = 0; i < N; i++)
        positions[i] = (double)random_position(&rng);
    posenc_sinusoidal_spec spec = convention(D, POSENC_SINUSOIDAL_INTERLEAVED, 0, 0);
    assert_int_equal(posenc_sinusoidal(&spec, positions, N, POSENC_F64, 0, table, NULL), POSENC_OK);
    for (size_t i = 0; i < N * D / 2; i++) {
        const double *pair = &table[i / (D / 2)][i % (D / 2) * 2];
        assert_true(fabs(pair[0] * pair[0] + pair[1] * pair[1] - 1.0) < 1e-15);
        assert_true(fabs(pair[0]) <= 1.0 && fabs(pair[1]) <= 1.0);
    }
}

/* Rows alone, in any order, and counted from a start: the bytes of the whole table. */
static void a_row_has_the_same_bytes_alone_and_among_others(void **state) {
    (void)state;
    enum { D = 36, N = 40 };
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(16); trial++) {
        posenc_dtype dtype = dtypes[trial % 4];
        posenc_sinusoidal_spec spec = convention(D, (posenc_sinusoidal_layout)(trial % 3), 1, 0);
        char table[N * D * 8], row[D * 8];
        size_t bytes = D * oracle_bytes(dtype);
        assert_int_equal(posenc_sinusoidal(&spec, NULL, N, dtype, 0, table, NULL), POSENC_OK);
        for (size_t i = 0; i < N; i++) {
            size_t at = random_below(&rng, N);
            double position = (double)at;
            assert_int_equal(posenc_sinusoidal(&spec, &position, 1, dtype, 0, row, NULL),
                             POSENC_OK);
            assert_memory_equal(row, table + at * bytes, bytes);
            posenc_sinusoidal_spec later = spec;
            later.start = position;
            assert_int_equal(posenc_sinusoidal(&later, NULL, 1, dtype, 0, row, NULL), POSENC_OK);
            assert_memory_equal(row, table + at * bytes, bytes);
        }
    }
}

static void negated_positions_negate_sin_and_keep_cos(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(100); trial++) {
        double position = (double)random_position(&rng) + 0.25, row[6], mirror[6];
        posenc_sinusoidal_spec spec = convention(6, POSENC_SINUSOIDAL_SIN_COS, 0, 0);
        assert_int_equal(posenc_sinusoidal(&spec, &position, 1, POSENC_F64, 0, row, NULL), 0);
        position = -position;
        assert_int_equal(posenc_sinusoidal(&spec, &position, 1, POSENC_F64, 0, mirror, NULL), 0);
        for (size_t i = 0; i < 3; i++)
            assert_true(row[i] == -mirror[i] && row[i + 3] == mirror[i + 3]);
        spec.scale = -1.0; /* and a negative scale is the same */
        assert_int_equal(posenc_sinusoidal(&spec, &position, 1, POSENC_F64, 0, mirror, NULL), 0);
        assert_memory_equal(row, mirror, sizeof row);
    }
}

static void no_positions_write_nothing(void **state) {
    (void)state;
    posenc_sinusoidal_spec spec = convention(6, POSENC_SINUSOIDAL_SIN_COS, 0, 0);
    guarded memory = guarded_new(48, GUARD_AFTER);
    assert_int_equal(posenc_sinusoidal(&spec, NULL, 0, POSENC_F64, 0, memory.data, NULL),
                     POSENC_OK);
    assert_int_equal(posenc_sinusoidal(&spec, NULL, 0, POSENC_F64, 0, NULL, NULL), POSENC_OK);
    spec.dim = POSENC_MAX_DIM;
    assert_int_equal(posenc_sinusoidal(&spec, NULL, 0, POSENC_F64, 0, memory.data, NULL),
                     POSENC_OK);
    assert_true(guarded_is_untouched(&memory));
    guarded_free(&memory);
}

/* Two rows with their positions next to them, or between them where rows are apart. */
static void positions_may_lie_beside_the_table_and_between_its_rows(void **state) {
    (void)state;
    enum { D = 4 };
    static const struct {
        ptrdiff_t stride, place; /* place: in elements from the table on */
    } known[] = {{D, -2}, {D, 2 * D}, {6, -2}, {6, D}, {6, 6 + D}};
    static const double positions[] = {3.0, 5.0};
    posenc_sinusoidal_spec spec = convention(D, POSENC_SINUSOIDAL_INTERLEAVED, 0, 0);
    double wanted[2 * D];
    assert_int_equal(posenc_sinusoidal(&spec, positions, 2, POSENC_F64, 0, wanted, NULL), 0);
    for (size_t i = 0; i < COUNT(known); i++) {
        double memory[16], *table = memory + 2, *beside = table + known[i].place;
        memcpy(beside, positions, sizeof positions);
        assert_int_equal(
            posenc_sinusoidal(&spec, beside, 2, POSENC_F64, known[i].stride, table, NULL), 0);
        assert_memory_equal(beside, positions, sizeof positions);
        assert_memory_equal(table, wanted, sizeof wanted / 2);
        assert_memory_equal(table + known[i].stride, wanted + D, sizeof wanted / 2);
    }
}

static void limits_are_accepted(void **state) {
    (void)state;
    table_call c = {POSENC_SINUSOIDAL_INIT, NULL, 1, POSENC_F32, 0};
    const double positions[] = {0x1p40, -0x1p40};
    c.positions = positions;
    c.count = 2;
    c.spec = convention(4, POSENC_SINUSOIDAL_SIN_COS, 1, 0);
    c.spec.start = -0x1p40;
    c.spec.scale = 1e6;
    c.spec.base = 1e30;
    assert_table(c, GUARD_AFTER);
    c.spec.scale = -1e-30;
    c.spec.base = 1e-6;
    c.spec.start = 0x1p40;
    assert_table(c, GUARD_AFTER);
}

/* --- Refused calls ------------------------------------------------------------------------------ */

/* A valid call to be spoilt in one place. */
typedef struct sinusoidal_call {
    posenc_sinusoidal_spec spec, *spec_pointer;
    double own_positions[3];
    const double *positions;
    size_t count;
    posenc_dtype dtype;
    ptrdiff_t row_stride;
    void *table;
} sinusoidal_call;

typedef void spoil_sinusoidal(sinusoidal_call *call);

/* clang-format off */
static void no_spec(sinusoidal_call *c) { c->spec_pointer = NULL; }
static void no_table(sinusoidal_call *c) { c->table = NULL; }
static void spec_size(sinusoidal_call *c) { c->spec.size = 0; }
static void no_dim(sinusoidal_call *c) { c->spec.dim = 0; }
static void huge_dim(sinusoidal_call *c) { c->spec.dim = POSENC_MAX_DIM + 2; }
static void odd_dim(sinusoidal_call *c) { c->spec.dim = 7; }
static void short_dim(sinusoidal_call *c) { c->spec.shift = 1; c->spec.dim = 2; }
static void short_odd_dim(sinusoidal_call *c) { c->spec.shift = 1; c->spec.dim = 3; c->spec.odd = POSENC_ODD_ZERO; }
static void bad_layout(sinusoidal_call *c) { c->spec.layout = (posenc_sinusoidal_layout)3; }
static void negative_layout(sinusoidal_call *c) { c->spec.layout = (posenc_sinusoidal_layout)-1; }
static void bad_odd(sinusoidal_call *c) { c->spec.odd = (posenc_odd_rule)4; }
static void bad_shift(sinusoidal_call *c) { c->spec.shift = 2; }
static void negative_shift(sinusoidal_call *c) { c->spec.shift = -1; }
static void negative_base(sinusoidal_call *c) { c->spec.base = -10000.0; }
static void small_base(sinusoidal_call *c) { c->spec.base = 9e-7; }
static void large_base(sinusoidal_call *c) { c->spec.base = 1.1e30; }
static void nan_base(sinusoidal_call *c) { c->spec.base = (double)NAN; }
static void small_scale(sinusoidal_call *c) { c->spec.scale = -9e-31; }
static void large_scale(sinusoidal_call *c) { c->spec.scale = 1.1e6; }
static void nan_scale(sinusoidal_call *c) { c->spec.scale = (double)NAN; }
static void large_start(sinusoidal_call *c) { c->spec.start = 0x1.0000000000001p40; }
static void nan_start(sinusoidal_call *c) { c->spec.start = (double)NAN; }
static void infinite_start(sinusoidal_call *c) { c->spec.start = -(double)INFINITY; }
static void bad_dtype(sinusoidal_call *c) { c->dtype = (posenc_dtype)4; }
static void large_position(sinusoidal_call *c) { c->own_positions[2] = 0x1.0000000000001p40; }
static void nan_position(sinusoidal_call *c) { c->own_positions[2] = (double)NAN; }
static void infinite_position(sinusoidal_call *c) { c->own_positions[2] = (double)INFINITY; }
static void nan_first_position(sinusoidal_call *c) { c->own_positions[0] = (double)NAN; }
static void short_stride(sinusoidal_call *c) { c->row_stride = 7; }
static void short_stride_back(sinusoidal_call *c) { c->row_stride = -7; }
static void huge_stride(sinusoidal_call *c) { c->row_stride = PTRDIFF_MAX; }
static void least_stride(sinusoidal_call *c) { c->row_stride = PTRDIFF_MIN; }
static void huge_count(sinusoidal_call *c) { c->count = SIZE_MAX; }
static void table_at_the_end(sinusoidal_call *c) { c->table = (void *)(UINTPTR_MAX - 23); }
static void table_at_the_start(sinusoidal_call *c) { c->table = (void *)(uintptr_t)64; c->row_stride = -8; }
static void positions_at_the_end(sinusoidal_call *c) { c->positions = (const double *)(UINTPTR_MAX - 15); }
static void positions_in_table(sinusoidal_call *c) { c->positions = (const double *)c->table + 2; }
/* clang-format on */

static void assert_sinusoidal_refused(spoil_sinusoidal *spoil, posenc_status status,
                                      const char *argument) {
    guarded table = guarded_new(3 * 8 * sizeof(double), GUARD_BEFORE);
    sinusoidal_call c = {convention(8, POSENC_SINUSOIDAL_SIN_COS, 0, 0),
                         NULL,
                         {1.0, 2.0, 3.0},
                         NULL,
                         3,
                         POSENC_F64,
                         0,
                         table.data};
    posenc_error error;
    c.spec_pointer = &c.spec;
    c.positions = c.own_positions;
    spoil(&c);
    assert_refused(posenc_sinusoidal(c.spec_pointer, c.positions, c.count, c.dtype, c.row_stride,
                                     c.table, &error),
                   &error, status, argument);
    assert_int_equal(posenc_sinusoidal(c.spec_pointer, c.positions, c.count, c.dtype, c.row_stride,
                                       c.table, NULL),
                     status);
    assert_true(guarded_is_untouched(&table));
    if (strcmp(argument, "positions") == 0)
        assert_true(strcmp(error.place_name, "index") == 0 &&
                    error.place == (spoil == nan_first_position ? 0 : 2));
    guarded_free(&table);
}

static void bad_calls_of_sinusoidal_are_refused_and_write_nothing(void **state) {
    (void)state;
    static const struct {
        spoil_sinusoidal *spoil;
        posenc_status status;
        const char *argument;
    } bad[] = {
        {no_spec, POSENC_NULL_POINTER, "spec"},
        {no_table, POSENC_NULL_POINTER, "table"},
        {spec_size, POSENC_OUT_OF_RANGE, "spec"},
        {no_dim, POSENC_OUT_OF_RANGE, "dim"},
        {huge_dim, POSENC_OUT_OF_RANGE, "dim"},
        {odd_dim, POSENC_OUT_OF_RANGE, "dim"},
        {short_dim, POSENC_OUT_OF_RANGE, "dim"},
        {short_odd_dim, POSENC_OUT_OF_RANGE, "dim"},
        {bad_layout, POSENC_OUT_OF_RANGE, "layout"},
        {negative_layout, POSENC_OUT_OF_RANGE, "layout"},
        {bad_odd, POSENC_OUT_OF_RANGE, "odd"},
        {bad_shift, POSENC_OUT_OF_RANGE, "shift"},
        {negative_shift, POSENC_OUT_OF_RANGE, "shift"},
        {negative_base, POSENC_OUT_OF_RANGE, "base"},
        {small_base, POSENC_OUT_OF_RANGE, "base"},
        {large_base, POSENC_OUT_OF_RANGE, "base"},
        {nan_base, POSENC_OUT_OF_RANGE, "base"},
        {small_scale, POSENC_OUT_OF_RANGE, "scale"},
        {large_scale, POSENC_OUT_OF_RANGE, "scale"},
        {nan_scale, POSENC_OUT_OF_RANGE, "scale"},
        {large_start, POSENC_OUT_OF_RANGE, "start"},
        {nan_start, POSENC_OUT_OF_RANGE, "start"},
        {infinite_start, POSENC_OUT_OF_RANGE, "start"},
        {bad_dtype, POSENC_OUT_OF_RANGE, "dtype"},
        {large_position, POSENC_OUT_OF_RANGE, "positions"},
        {nan_position, POSENC_OUT_OF_RANGE, "positions"},
        {infinite_position, POSENC_OUT_OF_RANGE, "positions"},
        {nan_first_position, POSENC_OUT_OF_RANGE, "positions"},
        {short_stride, POSENC_OUT_OF_RANGE, "row_stride"},
        {short_stride_back, POSENC_OUT_OF_RANGE, "row_stride"},
        {huge_stride, POSENC_OVERFLOW, "count"},
        {least_stride, POSENC_OVERFLOW, "count"},
        {huge_count, POSENC_OVERFLOW, "count"},
        {table_at_the_end, POSENC_OVERFLOW, "count"},
        {table_at_the_start, POSENC_OVERFLOW, "count"},
        {positions_at_the_end, POSENC_OVERFLOW, "count"},
        {positions_in_table, POSENC_OVERLAP, "table"},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_sinusoidal_refused(bad[i].spoil, bad[i].status, bad[i].argument);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_shift_width_and_odd_rule_has_its_columns),
        cmocka_unit_test(random_conventions_are_right_at_random_positions),
        cmocka_unit_test(rows_may_be_apart_and_backwards),
        cmocka_unit_test(positions_are_counted_from_0_where_none_are_given),
        cmocka_unit_test(padding_rows_are_0),
        cmocka_unit_test(known_rows_of_published_conventions),
        cmocka_unit_test(known_rows_of_odd_widths),
        cmocka_unit_test(position_0_is_0_1_0_1),
        cmocka_unit_test(known_numbers_of_scales_and_bases),
        cmocka_unit_test(sin_and_cos_lie_on_the_unit_circle),
        cmocka_unit_test(a_row_has_the_same_bytes_alone_and_among_others),
        cmocka_unit_test(negated_positions_negate_sin_and_keep_cos),
        cmocka_unit_test(no_positions_write_nothing),
        cmocka_unit_test(positions_may_lie_beside_the_table_and_between_its_rows),
        cmocka_unit_test(limits_are_accepted),
        cmocka_unit_test(bad_calls_of_sinusoidal_are_refused_and_write_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
