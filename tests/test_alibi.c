/* ALiBi slopes and bias tiles, against MPFR and the recursion of the paper.
 * SPDX-License-Identifier: MIT */
#include "guard_pages.h"
#include "oracle.h"
#include "posenc/posenc.h"
#include "random_data.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};
static const double max_biases[] = {8.0, 4.0, 16.0, 1.0, 0.3, 1024.0, 1e-300};

static posenc_alibi_spec spec_of(size_t heads, posenc_slopes slopes, double max_bias) {
    posenc_alibi_spec spec = POSENC_ALIBI_INIT;
    spec.heads = heads;
    spec.slopes = slopes;
    spec.max_bias = max_bias;
    return spec;
}

/* --- Slopes ------------------------------------------------------------------------------------- */

/* The paper's code for a power of two: start, start^2, start^3 ... with start = 2^(-max_bias/heads). */
static void power_of_two_slopes(size_t heads, double max_bias, double *slopes) {
    mpfr_t start, slope;
    mpfr_inits2(ORACLE_BITS, start, slope, (mpfr_ptr)NULL);
    mpfr_set_d(start, -max_bias, MPFR_RNDN);
    mpfr_div_ui(start, start, heads, MPFR_RNDN);
    mpfr_exp2(start, start, MPFR_RNDN);
    mpfr_set(slope, start, MPFR_RNDN);
    for (size_t h = 0; h < heads; h++) {
        slopes[h] = mpfr_get_d(slope, MPFR_RNDN);
        mpfr_mul(slope, slope, start, MPFR_RNDN);
    }
    mpfr_clears(start, slope, (mpfr_ptr)NULL);
}

/* The paper's code for any count: the slopes of the power of two below, then every other slope of the
 * next power of two. */
static void paper_slopes(size_t heads, double max_bias, double *slopes) {
    size_t below = 1;
    while (2 * below <= heads)
        below *= 2;
    power_of_two_slopes(below, max_bias, slopes);
    double *next = calloc(2 * below, sizeof *next);
    assert_non_null(next);
    power_of_two_slopes(2 * below, max_bias, next);
    for (size_t i = 0; below + i < heads; i++)
        slopes[below + i] = next[2 * i];
    free(next);
}

static void assert_slopes(const posenc_alibi_spec *spec, const double *wanted) {
    guarded got = guarded_new(spec->heads * sizeof(double), GUARD_AFTER);
    posenc_error error;
    assert_done(posenc_alibi_slopes(spec, 0, spec->heads, got.data, &error), &error);
    for (size_t h = 0; h < spec->heads; h++) {
        double slope = ((double *)got.data)[h];
        if (slope != wanted[h])
            fail_msg("%zu heads, max_bias %g, head %zu: got %.17g, wanted %.17g", spec->heads,
                     spec->max_bias, h, slope, wanted[h]);
    }
    guarded_free(&got);
}

static void slopes_of_the_paper_rule_are_those_of_its_recursion(void **state) {
    (void)state;
    double wanted[256];
    for (size_t i = 0; i < COUNT(max_biases); i++) {
        for (size_t heads = 1; heads <= 128; heads++) {
            posenc_alibi_spec spec = spec_of(heads, POSENC_SLOPES_PAPER, max_biases[i]);
            paper_slopes(heads, max_biases[i], wanted);
            assert_slopes(&spec, wanted);
        }
    }
}

static void slopes_of_the_plain_rule_are_one_geometric_series(void **state) {
    (void)state;
    double wanted[128];
    mpfr_t slope;
    mpfr_init2(slope, ORACLE_BITS);
    for (size_t i = 0; i < COUNT(max_biases); i++) {
        for (size_t heads = 1; heads <= 128; heads++) {
            posenc_alibi_spec spec = spec_of(heads, POSENC_SLOPES_PLAIN, max_biases[i]);
            for (size_t h = 0; h < heads; h++) {
                oracle_slope(slope, max_biases[i], h + 1, heads);
                wanted[h] = mpfr_get_d(slope, MPFR_RNDN);
            }
            assert_slopes(&spec, wanted);
        }
    }
    mpfr_clear(slope);
}

static void the_rules_agree_at_powers_of_two_and_nowhere_else(void **state) {
    (void)state;
    double paper[128], plain[128];
    for (size_t heads = 1; heads <= 128; heads++) {
        posenc_alibi_spec spec = spec_of(heads, POSENC_SLOPES_PAPER, 0.0);
        assert_int_equal(posenc_alibi_slopes(&spec, 0, heads, paper, NULL), POSENC_OK);
        spec.slopes = POSENC_SLOPES_PLAIN;
        assert_int_equal(posenc_alibi_slopes(&spec, 0, heads, plain, NULL), POSENC_OK);
        int same = memcmp(paper, plain, heads * sizeof *paper) == 0;
        assert_int_equal(same, (heads & (heads - 1)) == 0);
    }
}

/* First slopes of known head counts; exact powers of two but for those marked by many digits. */
static void known_slopes(void **state) {
    (void)state;
    static const struct {
        size_t heads, head;
        posenc_slopes rule;
        double slope;
    } known[] = {
        {8, 0, POSENC_SLOPES_PAPER, 0.5},
        {8, 7, POSENC_SLOPES_PAPER, 0.00390625},
        {8, 0, POSENC_SLOPES_PLAIN, 0.5},
        {8, 7, POSENC_SLOPES_PLAIN, 0.00390625},
        {3, 0, POSENC_SLOPES_PAPER, 0.0625},
        {3, 1, POSENC_SLOPES_PAPER, 0.00390625},
        {3, 2, POSENC_SLOPES_PAPER, 0.25},
        {6, 0, POSENC_SLOPES_PAPER, 0.25},
        {6, 1, POSENC_SLOPES_PAPER, 0.0625},
        {6, 2, POSENC_SLOPES_PAPER, 0.015625},
        {6, 3, POSENC_SLOPES_PAPER, 0.00390625},
        {6, 4, POSENC_SLOPES_PAPER, 0.5},
        {6, 5, POSENC_SLOPES_PAPER, 0.125},
        {6, 0, POSENC_SLOPES_PLAIN, 0.3968502629920499},
        {12, 0, POSENC_SLOPES_PAPER, 0.5},
        {12, 7, POSENC_SLOPES_PAPER, 0.00390625},
        {12, 8, POSENC_SLOPES_PAPER, 0.7071067811865476},
        {12, 9, POSENC_SLOPES_PAPER, 0.3535533905932738},
        {12, 10, POSENC_SLOPES_PAPER, 0.1767766952966369},
        {12, 11, POSENC_SLOPES_PAPER, 0.08838834764831845},
        {12, 0, POSENC_SLOPES_PLAIN, 0.6299605249474366},
        {12, 1, POSENC_SLOPES_PLAIN, 0.3968502629920499},
        {40, 0, POSENC_SLOPES_PAPER, 0.8408964152537145},
        {40, 31, POSENC_SLOPES_PAPER, 0.00390625},
        {40, 32, POSENC_SLOPES_PAPER, 0.9170040432046712},
        {40, 39, POSENC_SLOPES_PAPER, 0.2726269331663144},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        posenc_alibi_spec spec = spec_of(known[i].heads, known[i].rule, 0.0);
        double slope;
        assert_int_equal(posenc_alibi_slopes(&spec, known[i].head, 1, &slope, NULL), POSENC_OK);
        assert_true(fabs(slope - known[i].slope) <= 2e-16 * known[i].slope);
    }
}

static void slopes_of_some_heads_are_a_slice_of_all(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(200); trial++) {
        size_t heads = 1 + random_below(&rng, 100), first = random_below(&rng, heads + 1);
        size_t count = random_below(&rng, heads - first + 1);
        posenc_alibi_spec spec = spec_of(heads, (posenc_slopes)(trial % 2), 0.0);
        double all[100];
        guarded some = guarded_new(count * sizeof(double), (guard_side)(trial % 2));
        assert_int_equal(posenc_alibi_slopes(&spec, 0, heads, all, NULL), POSENC_OK);
        assert_int_equal(posenc_alibi_slopes(&spec, first, count, some.data, NULL), POSENC_OK);
        assert_memory_equal(some.data, all + first, some.bytes);
        guarded_free(&some);
    }
}

static void slopes_of_a_million_heads(void **state) {
    (void)state;
    mpfr_t slope;
    mpfr_init2(slope, ORACLE_BITS);
    for (int plain = 0; plain < 2; plain++) {
        size_t heads = plain ? POSENC_MAX_HEADS - 3 : POSENC_MAX_HEADS;
        posenc_alibi_spec spec = spec_of(heads, (posenc_slopes)plain, 0.0);
        for (size_t head = 0; head < heads; head += heads / 7) {
            double got;
            assert_int_equal(posenc_alibi_slopes(&spec, head, 1, &got, NULL), POSENC_OK);
            oracle_slope(slope, 8.0, head + 1, heads);
            assert_true(got == mpfr_get_d(slope, MPFR_RNDN));
        }
    }
    mpfr_clear(slope);
}

/* --- Tiles against the oracle ------------------------------------------------------------------- */

/* The slope of a head, rounded once to the type that a tile is computed in. */
static double oracle_head_slope(const posenc_alibi_spec *spec, size_t head, posenc_dtype dtype) {
    size_t numerator = head + 1, denominator = spec->heads;
    if (spec->slopes == POSENC_SLOPES_PAPER) {
        for (denominator = 1; 2 * denominator <= spec->heads;)
            denominator *= 2;
        if (head >= denominator) { /* 2^(-max_bias/2 (2(h-c)+1)/c) */
            numerator = 2 * (head - denominator) + 1;
            denominator *= 2;
        }
    }
    mpfr_t slope;
    mpfr_init2(slope, ORACLE_BITS);
    oracle_slope(slope, spec->max_bias != 0.0 ? spec->max_bias : 8.0, numerator, denominator);
    posenc_dtype computed = dtype == POSENC_F64 ? POSENC_F64 : POSENC_F32;
    double rounded = oracle_value(oracle_bits(slope, computed), computed);
    mpfr_clear(slope);
    return rounded;
}

/* What should stand in an element; `old` is what stood there. */
static uint64_t expected(const posenc_bias_tile *t, double slope, int64_t distance, uint64_t old) {
    double before = oracle_value(old, t->dtype);
    if (t->mask == POSENC_BIAS_CAUSAL && distance < 0)
        return oracle_bits_of_double(t->add && isnan(before) ? before : -(double)INFINITY,
                                     t->dtype);
    double length = fabs((double)distance);
    if (t->dtype == POSENC_F64) {
        double bias = distance ? slope * -length : 0.0;
        return oracle_bits_of_double(t->add ? before + bias : bias, t->dtype);
    }
    float bias = distance ? (float)slope * -(float)length : 0.0f;
    return oracle_bits_of_double((double)(t->add ? (float)before + bias : bias), t->dtype);
}

/* Places in a tile: an axis' stride, its number and what it reaches below the first element. */
static size_t reach_of(size_t count, ptrdiff_t stride) {
    return (count - 1) * (size_t)(stride < 0 ? -stride : stride);
}

/* A tile with every default filled in. */
static posenc_bias_tile resolved(const posenc_alibi_spec *spec, const posenc_bias_tile *tile) {
    posenc_bias_tile t = *tile;
    if (t.heads == 0)
        t.heads = spec->heads - t.first_head;
    if (!t.has_query_offset)
        t.query_offset = (int64_t)t.keys - (int64_t)t.queries;
    if (t.query_stride == 0)
        t.query_stride = (ptrdiff_t)t.keys;
    if (t.head_stride == 0)
        t.head_stride = (ptrdiff_t)t.queries * t.query_stride;
    return t;
}

/* Every element is what the oracle says; each that was found right is set back to what stood there, so
 * that in the end all memory must equal `before`. */
static void assert_elements(const posenc_alibi_spec *spec, const posenc_bias_tile *t, void *bias,
                            const void *before) {
    for (size_t h = 0; h < t->heads; h++) {
        double slope =
            t->slopes ? t->slopes[h] : oracle_head_slope(spec, t->first_head + h, t->dtype);
        for (size_t i = 0; i < t->queries * t->keys; i++) {
            size_t query = i / t->keys, key = i % t->keys;
            ptrdiff_t at =
                (ptrdiff_t)h * t->head_stride + (ptrdiff_t)query * t->query_stride + (ptrdiff_t)key;
            int64_t distance = t->query_offset + (int64_t)query - (int64_t)key;
            uint64_t old = oracle_load(before, t->dtype, at);
            uint64_t got = oracle_load(bias, t->dtype, at),
                     wanted = expected(t, slope, distance, old);
            if (!oracle_same(got, wanted, t->dtype))
                fail_msg("head %zu, query %zu, key %zu, distance %lld: got %#llx, wanted %#llx", h,
                         query, key, (long long)distance, (unsigned long long)got,
                         (unsigned long long)wanted);
            oracle_store(bias, t->dtype, at, old);
        }
    }
}

/* Random numbers; where a bias is added also infinities, NaN and whatever else a pattern can be, but
 * +infinity. */
static void fill_scores(void *scores, posenc_dtype dtype, size_t count, random_stream *rng) {
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = oracle_bits_of_double(random_normal(rng) * 10.0, dtype);
        if (random_below(rng, 4) == 0)
            bits = random_bits(rng);
        if (random_below(rng, 8) == 0)
            bits = oracle_bits_of_double(random_below(rng, 2) ? (double)NAN : -(double)INFINITY,
                                         dtype);
        oracle_store(scores, dtype, (ptrdiff_t)i, bits);
        if (oracle_value(oracle_load(scores, dtype, (ptrdiff_t)i), dtype) == (double)INFINITY)
            oracle_store(scores, dtype, (ptrdiff_t)i, 0);
    }
}

static void assert_tile(const posenc_alibi_spec *spec, const posenc_bias_tile *tile,
                        random_stream *rng) {
    posenc_bias_tile t = resolved(spec, tile);
    size_t bytes = oracle_bytes(t.dtype), heads = reach_of(t.heads, t.head_stride);
    size_t queries = reach_of(t.queries, t.query_stride), elements = heads + queries + t.keys;
    size_t first = (t.head_stride < 0 ? heads : 0) + (t.query_stride < 0 ? queries : 0);
    guarded memory = guarded_new(elements * bytes, (guard_side)random_below(rng, 2));
    fill_scores(memory.data, t.dtype, elements, rng);
    char *before = malloc(memory.bytes);
    assert_non_null(before);
    memcpy(before, memory.data, memory.bytes);
    char *bias = (char *)memory.data + first * bytes;
    posenc_error error;
    assert_done(posenc_alibi_bias(spec, tile, bias, &error), &error);
    assert_elements(spec, &t, bias, before + first * bytes);
    assert_memory_equal(memory.data, before, memory.bytes);
    free(before);
    guarded_free(&memory);
}

static posenc_bias_tile tile_of(posenc_dtype dtype, posenc_bias_mask mask, size_t queries,
                                size_t keys) {
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    tile.dtype = dtype;
    tile.mask = mask;
    tile.queries = queries;
    tile.keys = keys;
    return tile;
}

/* Random strides of one order: heads slowest, or queries slowest ([query][head][key]); padded, and
 * backwards. */
static void set_strides(posenc_bias_tile *t, size_t heads, random_stream *rng) {
    int queries_slowest = (int)random_below(rng, 2);
    ptrdiff_t inner = (ptrdiff_t)(t->keys + random_below(rng, 3));
    size_t inner_count = queries_slowest ? heads : t->queries;
    ptrdiff_t outer = inner * (ptrdiff_t)inner_count + (ptrdiff_t)random_below(rng, 5);
    t->query_stride = queries_slowest ? outer : inner;
    t->head_stride = queries_slowest ? inner : outer;
    if (random_below(rng, 3) == 0)
        t->query_stride = -t->query_stride;
    if (random_below(rng, 3) == 0)
        t->head_stride = -t->head_stride;
}

static void tiles_of_every_kind_are_written_and_added(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(1500); trial++) {
        size_t heads = 1 + random_below(&rng, 12);
        posenc_alibi_spec spec = spec_of(heads, (posenc_slopes)random_below(&rng, 2), 0.0);
        if (random_below(&rng, 3) == 0)
            spec.max_bias = random_magnitude(&rng, -3, 3);
        posenc_bias_tile t = tile_of(dtypes[trial % 4], (posenc_bias_mask)(trial / 4 % 2),
                                     1 + random_below(&rng, 7), 1 + random_below(&rng, 9));
        if (random_below(&rng, 3) == 0) /* several cache lines */
            t.keys = 1 + random_below(&rng, 200);
        t.add = trial / 8 % 2 != 0;
        t.first_head = random_below(&rng, heads);
        t.heads = random_below(&rng, heads - t.first_head + 1); /* 0: all from the first on */
        t.has_query_offset = (int)random_below(&rng, 2);
        t.query_offset = random_between(&rng, -12, (int64_t)t.keys + 3);
        double slopes[12];
        for (size_t h = 0; h < COUNT(slopes); h++)
            slopes[h] = random_below(&rng, 9) ? random_magnitude(&rng, -9, 3) : 0.0;
        if (random_below(&rng, 3) == 0)
            t.slopes = slopes;
        if (random_below(&rng, 2))
            set_strides(&t, t.heads ? t.heads : heads - t.first_head, &rng);
        assert_tile(&spec, &t, &rng);
    }
}

/* Slope and distance are rounded to float32, distances from 2^24 on too; vector kernels end near 2^30. */
static void far_distances_are_right(void **state) {
    (void)state;
    static const int64_t ends[] = {1 << 24, INT32_MAX / 2, INT32_MAX, INT64_C(1) << 40};
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(2000); trial++) {
        posenc_alibi_spec spec = spec_of(12, (posenc_slopes)(trial % 2), 0.0);
        posenc_bias_tile t = tile_of(dtypes[trial % 4], (posenc_bias_mask)(trial / 4 % 2), 2,
                                     1 + random_below(&rng, 40));
        t.add = (int)random_below(&rng, 2);
        t.first_head = random_below(&rng, 12);
        t.heads = 1;
        t.has_query_offset = 1;
        int64_t end = ends[random_below(&rng, COUNT(ends))];
        t.query_offset = end - random_between(&rng, 0, random_below(&rng, 2) ? 50 : end);
        if (random_below(&rng, 2))
            t.query_offset = -t.query_offset;
        assert_tile(&spec, &t, &rng);
    }
}

/* --- Tiles by hand ------------------------------------------------------------------------------ */

static void causal_and_symmetric_tiles_by_hand(void **state) {
    (void)state;
    const float inf = INFINITY;
    const float causal[3][3] = {{0, -inf, -inf}, {-0.5f, 0, -inf}, {-1, -0.5f, 0}};
    const float symmetric[3][3] = {{0, -0.5f, -1}, {-0.5f, 0, -0.5f}, {-1, -0.5f, 0}};
    const float cached[2][4] = {{-1, -0.5f, 0, -inf}, {-1.5f, -1, -0.5f, 0}};
    float got[3][3], late[2][4];
    posenc_alibi_spec spec = spec_of(8, POSENC_SLOPES_PAPER, 0.0);
    posenc_bias_tile t = tile_of(POSENC_F32, POSENC_BIAS_CAUSAL, 3, 3);
    t.heads = 1;
    assert_int_equal(posenc_alibi_bias(&spec, &t, got, NULL), POSENC_OK);
    assert_memory_equal(got, causal, sizeof got); /* +0 on the diagonal, by its bits */
    t.mask = POSENC_BIAS_SYMMETRIC;
    assert_int_equal(posenc_alibi_bias(&spec, &t, got, NULL), POSENC_OK);
    assert_memory_equal(got, symmetric, sizeof got);
    t = tile_of(POSENC_F32, POSENC_BIAS_CAUSAL, 2, 4);
    t.heads = 1;
    assert_int_equal(posenc_alibi_bias(&spec, &t, late, NULL), POSENC_OK);
    assert_memory_equal(late, cached, sizeof late);
}

/* Two heads, one query, 20 keys: an implementation that counts from the query's own length gives 0. */
static void a_decode_step_sees_its_distance_to_every_cached_key(void **state) {
    (void)state;
    double bias[2][20];
    posenc_alibi_spec spec = spec_of(2, POSENC_SLOPES_PAPER, 0.0);
    posenc_bias_tile t = tile_of(POSENC_F64, POSENC_BIAS_CAUSAL, 1, 20);
    assert_int_equal(posenc_alibi_bias(&spec, &t, bias, NULL), POSENC_OK);
    assert_true(bias[0][0] == -1.1875 && bias[1][0] == -0.07421875);
    assert_true(bias[0][19] == 0.0 && bias[1][18] == -0.00390625);
}

static void adding_masks_and_keeps_nan(void **state) {
    (void)state;
    const float inf = INFINITY;
    posenc_alibi_spec spec = spec_of(8, POSENC_SLOPES_PAPER, 0.0);
    posenc_bias_tile t = tile_of(POSENC_F32, POSENC_BIAS_CAUSAL, 1, 6);
    t.heads = 1;
    t.add = 1;
    t.has_query_offset = 1;
    t.query_offset = 2;
    float scores[6] = {10.0f, -inf, NAN, 1.0f, NAN, -inf};
    assert_int_equal(posenc_alibi_bias(&spec, &t, scores, NULL), POSENC_OK);
    assert_true(scores[0] == 9.0f && scores[1] == -inf && isnan(scores[2]));
    assert_true(scores[3] == -inf && isnan(scores[4]) && scores[5] == -inf);
}

/* --- Tiles among themselves --------------------------------------------------------------------- */

enum { FULL_HEADS = 6, FULL = 12 };

/* The whole bias [head][query][key] of a sequence. */
static void full_bias(posenc_dtype dtype, posenc_bias_mask mask, void *bias) {
    posenc_alibi_spec spec = spec_of(FULL_HEADS, POSENC_SLOPES_PAPER, 0.0);
    posenc_bias_tile t = tile_of(dtype, mask, FULL, FULL);
    assert_int_equal(posenc_alibi_bias(&spec, &t, bias, NULL), POSENC_OK);
}

/* A tile equals the part of the whole bias that it is, byte for byte. */
static void assert_part(const posenc_bias_tile *t, size_t first_query, size_t first_key) {
    char whole[FULL_HEADS * FULL * FULL * 8], part[FULL_HEADS * FULL * FULL * 8];
    size_t bytes = oracle_bytes(t->dtype), heads = t->heads ? t->heads : FULL_HEADS - t->first_head;
    posenc_alibi_spec spec = spec_of(FULL_HEADS, POSENC_SLOPES_PAPER, 0.0);
    posenc_error error;
    full_bias(t->dtype, t->mask, whole);
    assert_done(posenc_alibi_bias(&spec, t, part, &error), &error);
    for (size_t h = 0; h < heads; h++) {
        for (size_t q = 0; q < t->queries; q++) {
            size_t row = (t->first_head + h) * FULL + first_query + q;
            assert_memory_equal(part + (h * t->queries + q) * t->keys * bytes,
                                whole + (row * FULL + first_key) * bytes, t->keys * bytes);
        }
    }
}

static void decode_steps_and_chunks_equal_the_full_pass(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        for (size_t query = 0; query < FULL; query++) {
            /* One query that sees the keys up to itself, as in decoding with a cache. */
            posenc_bias_tile t = tile_of(dtypes[i], POSENC_BIAS_CAUSAL, 1, query + 1);
            assert_part(&t, query, 0);
            /* The last queries of the full pass: no offset is needed. */
            t = tile_of(dtypes[i], POSENC_BIAS_SYMMETRIC, FULL - query, FULL);
            assert_part(&t, query, 0);
            /* A chunk in the middle, with all keys, at its offset. */
            t = tile_of(dtypes[i], POSENC_BIAS_CAUSAL, FULL - query > 3 ? 3 : FULL - query, FULL);
            t.has_query_offset = 1;
            t.query_offset = (int64_t)query;
            assert_part(&t, query, 0);
        }
    }
}

static void blocks_of_keys_subtract_their_first_key_from_the_offset(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(100); trial++) {
        size_t query = random_below(&rng, FULL), key = random_below(&rng, FULL);
        posenc_bias_tile t =
            tile_of(dtypes[trial % 4], (posenc_bias_mask)(trial / 4 % 2),
                    1 + random_below(&rng, FULL - query), 1 + random_below(&rng, FULL - key));
        t.has_query_offset = 1;
        t.query_offset = (int64_t)query - (int64_t)key;
        assert_part(&t, query, key);
    }
}

static void head_ranges_are_slices_of_the_whole(void **state) {
    (void)state;
    for (size_t first = 0; first < FULL_HEADS; first++) {
        for (size_t heads = 0; heads <= FULL_HEADS - first; heads++) {
            posenc_bias_tile t = tile_of(dtypes[heads % 4], POSENC_BIAS_CAUSAL, FULL, FULL);
            t.first_head = first;
            t.heads = heads;
            assert_part(&t, 0, 0);
        }
    }
}

static void tiles_without_elements_write_nothing(void **state) {
    (void)state;
    posenc_alibi_spec spec = spec_of(4, POSENC_SLOPES_PAPER, 0.0);
    posenc_bias_tile t = tile_of(POSENC_F32, POSENC_BIAS_CAUSAL, 0, 5);
    assert_int_equal(posenc_alibi_bias(&spec, &t, NULL, NULL), POSENC_OK);
    t = tile_of(POSENC_F32, POSENC_BIAS_CAUSAL, 5, 0);
    assert_int_equal(posenc_alibi_bias(&spec, &t, NULL, NULL), POSENC_OK);
    t = tile_of(POSENC_F32, POSENC_BIAS_CAUSAL, 5, 5);
    t.first_head = 4; /* none are left */
    assert_int_equal(posenc_alibi_bias(&spec, &t, NULL, NULL), POSENC_OK);
    assert_int_equal(posenc_alibi_slopes(&spec, 4, 0, NULL, NULL), POSENC_OK);
}

/* --- Refused calls ------------------------------------------------------------------------------ */

static void assert_slopes_refused(posenc_alibi_spec spec, size_t first, size_t count,
                                  const char *argument) {
    guarded slopes = guarded_new(8 * sizeof(double), GUARD_AFTER);
    posenc_error error;
    assert_refused(posenc_alibi_slopes(&spec, first, count, slopes.data, &error), &error,
                   POSENC_OUT_OF_RANGE, argument);
    assert_int_equal(posenc_alibi_slopes(&spec, first, count, slopes.data, NULL),
                     POSENC_OUT_OF_RANGE);
    assert_true(guarded_is_untouched(&slopes));
    guarded_free(&slopes);
}

static void bad_specs_and_head_ranges_are_refused(void **state) {
    (void)state;
    static const double bad[] = {-8.0, 1024.0000001, (double)INFINITY, (double)NAN};
    posenc_alibi_spec spec = spec_of(8, POSENC_SLOPES_PAPER, 0.0);
    assert_slopes_refused(spec_of(0, POSENC_SLOPES_PAPER, 0.0), 0, 0, "heads");
    assert_slopes_refused(spec_of(POSENC_MAX_HEADS + 1, POSENC_SLOPES_PAPER, 0.0), 0, 1, "heads");
    assert_slopes_refused(spec_of(8, (posenc_slopes)2, 0.0), 0, 8, "slopes");
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_slopes_refused(spec_of(8, POSENC_SLOPES_PAPER, bad[i]), 0, 8, "max_bias");
    assert_slopes_refused(spec, 9, 0, "first_head");
    assert_slopes_refused(spec, SIZE_MAX, 2, "first_head");
    assert_slopes_refused(spec, 0, 9, "count of heads");
    assert_slopes_refused(spec, 7, 2, "count of heads");
    assert_slopes_refused(spec, 1, SIZE_MAX, "count of heads");
    double slope;
    posenc_error error;
    assert_refused(posenc_alibi_slopes(NULL, 0, 1, &slope, &error), &error, POSENC_NULL_POINTER,
                   "spec");
    assert_refused(posenc_alibi_slopes(&spec, 0, 1, NULL, &error), &error, POSENC_NULL_POINTER,
                   "slopes");
}

/* A valid call to be spoilt in one place. */
typedef struct bias_call {
    posenc_alibi_spec spec, *spec_pointer;
    posenc_bias_tile tile, *tile_pointer;
    void *bias;
} bias_call;

typedef void spoil_bias(bias_call *call);

/* clang-format off */
static void no_spec(bias_call *c) { c->spec_pointer = NULL; }
static void no_tile(bias_call *c) { c->tile_pointer = NULL; }
static void no_bias(bias_call *c) { c->bias = NULL; }
static void spec_size(bias_call *c) { c->spec.size = 0; }
static void tile_size(bias_call *c) { c->tile.size = 0; }
static void no_heads(bias_call *c) { c->spec.heads = 0; }
static void bad_dtype(bias_call *c) { c->tile.dtype = (posenc_dtype)4; }
static void bad_mask(bias_call *c) { c->tile.mask = (posenc_bias_mask)2; }
static void late_head(bias_call *c) { c->tile.first_head = 5; }
static void many_heads(bias_call *c) { c->tile.first_head = 2; c->tile.heads = 3; }
static void many_queries(bias_call *c) { c->tile.queries = ((size_t)1 << 40) + 1; c->tile.head_stride = 1; }
static void many_keys(bias_call *c) { c->tile.keys = ((size_t)1 << 40) + 1; }
static void high_offset(bias_call *c) { c->tile.has_query_offset = 1; c->tile.query_offset = (INT64_C(1) << 40) + 1; }
static void low_offset(bias_call *c) { c->tile.has_query_offset = 1; c->tile.query_offset = INT64_MIN; }
static void short_query_stride(bias_call *c) { c->tile.query_stride = 4; }
static void short_query_stride_back(bias_call *c) { c->tile.query_stride = -4; }
static void short_head_stride(bias_call *c) { c->tile.head_stride = 14; }
static void same_strides(bias_call *c) { c->tile.head_stride = c->tile.query_stride = 5; }
static void huge_head_stride(bias_call *c) { c->tile.head_stride = PTRDIFF_MAX; }
static void least_head_stride(bias_call *c) { c->tile.head_stride = PTRDIFF_MIN; }
static void huge_query_stride(bias_call *c) { c->tile.query_stride = PTRDIFF_MAX; c->tile.head_stride = 5; }
static void bias_at_the_end(bias_call *c) { c->bias = (void *)(UINTPTR_MAX - 15); }
static void bias_at_the_start(bias_call *c) { c->bias = (void *)(uintptr_t)16; c->tile.query_stride = -5; }
static void huge_product(bias_call *c) { c->tile.queries = c->tile.keys = (size_t)1 << 40; c->tile.head_stride = 1; }
static const double negative_slope[] = {1.0, 0.5, -0.0625, 0.25}, endless_slope[] = {1.0, 1.0, 1.0, (double)INFINITY};
static void negative_slopes(bias_call *c) { c->tile.slopes = negative_slope; }
static void endless_slopes(bias_call *c) { c->tile.slopes = endless_slope; }
/* clang-format on */

static void assert_bias_refused(spoil_bias *spoil, posenc_status status, const char *argument) {
    guarded bias = guarded_new(4 * 3 * 5 * sizeof(float), GUARD_AFTER);
    bias_call c = {spec_of(4, POSENC_SLOPES_PAPER, 0.0), NULL,
                   tile_of(POSENC_F32, POSENC_BIAS_CAUSAL, 3, 5), NULL, bias.data};
    posenc_error error;
    c.spec_pointer = &c.spec;
    c.tile_pointer = &c.tile;
    spoil(&c);
    assert_refused(posenc_alibi_bias(c.spec_pointer, c.tile_pointer, c.bias, &error), &error,
                   status, argument);
    assert_int_equal(posenc_alibi_bias(c.spec_pointer, c.tile_pointer, c.bias, NULL), status);
    assert_true(guarded_is_untouched(&bias));
    guarded_free(&bias);
}

static void bad_calls_of_bias_are_refused_and_write_nothing(void **state) {
    (void)state;
    static const struct {
        spoil_bias *spoil;
        posenc_status status;
        const char *argument;
    } bad[] = {
        {no_spec, POSENC_NULL_POINTER, "spec"},
        {no_tile, POSENC_NULL_POINTER, "tile"},
        {no_bias, POSENC_NULL_POINTER, "bias"},
        {spec_size, POSENC_OUT_OF_RANGE, "spec"},
        {tile_size, POSENC_OUT_OF_RANGE, "tile"},
        {no_heads, POSENC_OUT_OF_RANGE, "heads"},
        {bad_dtype, POSENC_OUT_OF_RANGE, "tile.dtype"},
        {bad_mask, POSENC_OUT_OF_RANGE, "tile.mask"},
        {late_head, POSENC_OUT_OF_RANGE, "first_head"},
        {many_heads, POSENC_OUT_OF_RANGE, "count of heads"},
        {many_queries, POSENC_OUT_OF_RANGE, "tile.queries"},
        {many_keys, POSENC_OUT_OF_RANGE, "tile.keys"},
        {high_offset, POSENC_OUT_OF_RANGE, "tile.query_offset"},
        {low_offset, POSENC_OUT_OF_RANGE, "tile.query_offset"},
        {short_query_stride, POSENC_OVERLAP, "tile's strides"},
        {short_query_stride_back, POSENC_OVERLAP, "tile's strides"},
        {short_head_stride, POSENC_OVERLAP, "tile's strides"},
        {same_strides, POSENC_OVERLAP, "tile's strides"},
        {huge_head_stride, POSENC_OVERFLOW, "tile"},
        {least_head_stride, POSENC_OVERFLOW, "tile"},
        {huge_query_stride, POSENC_OVERFLOW, "tile"},
        {huge_product, POSENC_OVERFLOW, "tile"},
        {negative_slopes, POSENC_OUT_OF_RANGE, "tile.slopes"},
        {endless_slopes, POSENC_OUT_OF_RANGE, "tile.slopes"},
        {bias_at_the_end, POSENC_OVERFLOW, "tile"},
        {bias_at_the_start, POSENC_OVERFLOW, "tile"},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_bias_refused(bad[i].spoil, bad[i].status, bad[i].argument);
}

static void slopes_in_the_bias_are_refused(void **state) {
    (void)state;
    double memory[20] = {0.5, 0.25};
    posenc_alibi_spec spec = spec_of(2, POSENC_SLOPES_PAPER, 0.0);
    posenc_bias_tile tile = tile_of(POSENC_F64, POSENC_BIAS_CAUSAL, 2, 4);
    posenc_error error;
    tile.slopes = memory + 1;
    assert_refused(posenc_alibi_bias(&spec, &tile, memory + 2, &error), &error, POSENC_OVERLAP,
                   "tile.slopes");
    assert_true(memory[2] == 0.0);
    assert_done(posenc_alibi_bias(&spec, &tile, memory + 3, &error), &error);
}

/* A score that has overflowed is masked like any other; a NaN is not hidden. */
static void masking_replaces_infinity_and_shows_nan(void **state) {
    (void)state;
    float scores[3] = {0.0f, INFINITY, NAN};
    posenc_alibi_spec spec = POSENC_ALIBI_INIT;
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    spec.heads = 1;
    tile.queries = 1;
    tile.keys = 3;
    tile.has_query_offset = 1;
    tile.add = 1;
    assert_int_equal(posenc_alibi_bias(&spec, &tile, scores, NULL), POSENC_OK);
    assert_true(scores[0] == 0.0f && scores[1] == -INFINITY && isnan(scores[2]));
}

static void default_strides_that_overflow_are_refused(void **state) {
    (void)state;
    float score = 1.0f;
    posenc_alibi_spec spec = POSENC_ALIBI_INIT;
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    posenc_error error;
    spec.heads = 2;
    tile.queries = tile.keys = (size_t)1 << 40;
    assert_int_equal(posenc_alibi_bias(&spec, &tile, &score, &error), POSENC_OVERFLOW);
    assert_true(score == 1.0f);
}

int main(int argc, char **argv) {
    random_announce();
    if (argc > 1 && strcmp(posenc_cpu(), argv[1]) != 0) {
        printf("1..1\nok 1 - biases at level %s # SKIP this CPU has no %s\n", argv[1], argv[1]);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slopes_of_the_paper_rule_are_those_of_its_recursion),
        cmocka_unit_test(slopes_of_the_plain_rule_are_one_geometric_series),
        cmocka_unit_test(the_rules_agree_at_powers_of_two_and_nowhere_else),
        cmocka_unit_test(known_slopes),
        cmocka_unit_test(slopes_of_some_heads_are_a_slice_of_all),
        cmocka_unit_test(slopes_of_a_million_heads),
        cmocka_unit_test(tiles_of_every_kind_are_written_and_added),
        cmocka_unit_test(far_distances_are_right),
        cmocka_unit_test(causal_and_symmetric_tiles_by_hand),
        cmocka_unit_test(a_decode_step_sees_its_distance_to_every_cached_key),
        cmocka_unit_test(adding_masks_and_keeps_nan),
        cmocka_unit_test(decode_steps_and_chunks_equal_the_full_pass),
        cmocka_unit_test(blocks_of_keys_subtract_their_first_key_from_the_offset),
        cmocka_unit_test(head_ranges_are_slices_of_the_whole),
        cmocka_unit_test(tiles_without_elements_write_nothing),
        cmocka_unit_test(bad_specs_and_head_ranges_are_refused),
        cmocka_unit_test(bad_calls_of_bias_are_refused_and_write_nothing),
        cmocka_unit_test(slopes_in_the_bias_are_refused),
        cmocka_unit_test(masking_replaces_infinity_and_shows_nan),
        cmocka_unit_test(default_strides_that_overflow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
