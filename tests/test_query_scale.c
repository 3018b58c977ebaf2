/* posenc_query_scales against MPFR, and against the float32 steps of frameworks. SPDX-License-Identifier: MIT */
#include "guard_pages.h"
#include "oracle.h"
#include "posenc/posenc.h"
#include "random_data.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static posenc_query_scale scale_of(posenc_query_scale_kind kind, double coefficient,
                                   uint64_t length, int64_t offset) {
    posenc_query_scale s = POSENC_QUERY_SCALE_INIT;
    s.kind = kind;
    s.coefficient = coefficient;
    s.length = length;
    s.offset = offset;
    return s;
}

/* The formula of posenc/query_scale.h in real arithmetic. */
static void real_scale(mpfr_ptr result, const posenc_query_scale *s, int64_t position) {
    mpfr_t length;
    mpfr_init2(length, ORACLE_BITS);
    mpfr_set_ui(length, (unsigned long)s->length, MPFR_RNDN);
    mpfr_set_si(result, (long)(position + s->offset), MPFR_RNDN);
    if (s->kind == POSENC_QUERY_SCALE_LOG_N) {
        mpfr_log(result, result, MPFR_RNDN);
        mpfr_log(length, length, MPFR_RNDN);
        if (position + s->offset > 0)
            mpfr_div(result, result, length, MPFR_RNDN);
    } else {
        mpfr_div(result, result, length, MPFR_RNDN);
        if (s->kind == POSENC_QUERY_SCALE_FLOOR) {
            mpfr_floor(result, result);
            mpfr_add_ui(result, result, 1, MPFR_RNDN);
        } else if (mpfr_cmp_ui(result, 1) < 0) {
            mpfr_set_ui(result, 1, MPFR_RNDN);
        }
        mpfr_log(result, result, MPFR_RNDN);
        mpfr_mul_d(result, result, s->coefficient, MPFR_RNDN);
        mpfr_add_ui(result, result, 1, MPFR_RNDN);
    }
    if (mpfr_cmp_ui(result, 1) < 0)
        mpfr_set_ui(result, 1, MPFR_RNDN);
    mpfr_clear(length);
}

static posenc_query_scale random_scale(random_stream *rng) {
    posenc_query_scale_kind kind = (posenc_query_scale_kind)random_below(rng, 3);
    uint64_t length = random_below(rng, 2) ? UINT64_C(1) << random_between(rng, 1, 20)
                                           : 2 + random_below(rng, 100000);
    return scale_of(kind, kind == POSENC_QUERY_SCALE_LOG_N ? 0.0 : random_magnitude(rng, -3, 2.9),
                    length, random_between(rng, 0, 1));
}

/* Around multiples of the length too. */
static int64_t random_place(const posenc_query_scale *s, random_stream *rng) {
    int64_t position = random_position(rng);
    if (random_below(rng, 2))
        position = (int64_t)(s->length * random_below(rng, 2000)) + random_between(rng, -2, 2);
    return position < 0 ? 0 : position;
}

static void exact_scales_are_correctly_rounded(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    mpfr_t wanted;
    mpfr_init2(wanted, ORACLE_BITS);
    for (size_t trial = 0; trial < random_trials(300); trial++) {
        posenc_query_scale s = random_scale(&rng);
        posenc_dtype dtype = trial % 2 ? POSENC_F64 : POSENC_F32;
        int64_t positions[20];
        for (size_t i = 0; i < 20; i++)
            positions[i] = random_place(&s, &rng);
        guarded got = guarded_new(20 * oracle_bytes(dtype), GUARD_AFTER);
        posenc_error error;
        assert_done(
            posenc_query_scales(&s, positions, 20, POSENC_MODE_EXACT, dtype, got.data, &error),
            &error);
        for (size_t i = 0; i < 20; i++) {
            real_scale(wanted, &s, positions[i]);
            if (oracle_load(got.data, dtype, (ptrdiff_t)i) != oracle_bits(wanted, dtype))
                fail_msg("%s, a %g, L %llu, offset %lld, position %lld: %.17g, wanted %.17g",
                         posenc_query_scale_name(s.kind), s.coefficient,
                         (unsigned long long)s.length, (long long)s.offset, (long long)positions[i],
                         oracle_value(oracle_load(got.data, dtype, (ptrdiff_t)i), dtype),
                         mpfr_get_d(wanted, MPFR_RNDN));
        }
        guarded_free(&got);
    }
    mpfr_clear(wanted);
}

/* transformers' steps in float32, the logarithm rounded by MPFR. */
static float framework_scale(const posenc_query_scale *s, int64_t position) {
    mpfr_t value;
    mpfr_init2(value, 24);
    float quotient = ((float)position + (float)s->offset) / (float)s->length;
    quotient =
        s->kind == POSENC_QUERY_SCALE_FLOOR ? 1.0f + floorf(quotient) : fmaxf(quotient, 1.0f);
    mpfr_set_flt(value, quotient, MPFR_RNDN);
    mpfr_log(value, value, MPFR_RNDN);
    float product = mpfr_get_flt(value, MPFR_RNDN) * (float)s->coefficient;
    mpfr_clear(value);
    return 1.0f + product;
}

static void float32_scales_are_the_frameworks(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(3000); trial++) {
        posenc_query_scale s = random_scale(&rng);
        int64_t position = random_place(&s, &rng);
        float got;
        posenc_error error;
        assert_done(
            posenc_query_scales(&s, &position, 1, POSENC_MODE_FLOAT32, POSENC_F32, &got, &error),
            &error);
        int64_t n = position + s.offset;
        double ratio = log((double)n) / log((double)s.length); /* of Python's list, within 1 ulp */
        float wanted = s.kind != POSENC_QUERY_SCALE_LOG_N ? framework_scale(&s, position)
                       : (uint64_t)n > s.length           ? (float)ratio
                                                          : 1.0f;
        double slack = s.kind == POSENC_QUERY_SCALE_LOG_N ? 0x1p-23 * (double)wanted : 0.0;
        if (!(fabs((double)got - (double)wanted) <= slack))
            fail_msg("%s, a %g, L %llu, position %lld: %.9g, wanted %.9g",
                     posenc_query_scale_name(s.kind), s.coefficient, (unsigned long long)s.length,
                     (long long)position, (double)got, (double)wanted);
    }
}

/* Llama 4 Scout, Ministral 3, and Qwen's list, from 30 digits of the formulas. */
static void known_numbers(void **state) {
    (void)state;
    static const struct {
        posenc_query_scale_kind kind;
        double coefficient;
        uint64_t length;
        int64_t offset, position;
        double wanted;
    } known[] = {
        {POSENC_QUERY_SCALE_FLOOR, 0.1, 8192, 1, 0, 1.0},
        {POSENC_QUERY_SCALE_FLOOR, 0.1, 8192, 1, 8190, 1.0},
        {POSENC_QUERY_SCALE_FLOOR, 0.1, 8192, 1, 8191, 1.0693147180559945},
        {POSENC_QUERY_SCALE_FLOOR, 0.1, 16384, 0, 262143, 1.2772588722239781},
        {POSENC_QUERY_SCALE_LOG_N, 0.0, 2048, 1, 2047, 1.0},
        {POSENC_QUERY_SCALE_LOG_N, 0.0, 2048, 1, 32766, 1.3636323610699599},
        {POSENC_QUERY_SCALE_SMOOTH, 0.1, 128000, 1, 255999, 1.0693147180559945},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        posenc_query_scale s =
            scale_of(known[i].kind, known[i].coefficient, known[i].length, known[i].offset);
        double got;
        posenc_error error;
        assert_done(posenc_query_scales(&s, &known[i].position, 1, POSENC_MODE_EXACT, POSENC_F64,
                                        &got, &error),
                    &error);
        if (!(fabs(got - known[i].wanted) <= 0x1p-52))
            fail_msg("case %zu: %.17g, wanted %.17g", i, got, known[i].wanted);
    }
}

static void bad_calls_are_refused_and_write_nothing(void **state) {
    (void)state;
    const posenc_query_scale good = scale_of(POSENC_QUERY_SCALE_FLOOR, 0.1, 8192, 1);
    const posenc_query_scale log_n = scale_of(POSENC_QUERY_SCALE_LOG_N, 0.0, 2048, 1);
    struct {
        posenc_query_scale s;
        int64_t last;
        posenc_mode mode;
        posenc_dtype dtype;
        posenc_status status;
        const char *argument;
    } bad[] = {
        {good, 7, POSENC_MODE_EXACT, POSENC_F32, POSENC_OK, NULL},
        {log_n, 7, POSENC_MODE_EXACT, POSENC_F32, POSENC_OK, NULL},
        {good, -1, POSENC_MODE_EXACT, POSENC_F32, POSENC_OUT_OF_RANGE, "positions"},
        {good, POSENC_MAX_POSITION + 1, POSENC_MODE_EXACT, POSENC_F32, POSENC_OUT_OF_RANGE,
         "positions"},
        {good, 7, (posenc_mode)2, POSENC_F32, POSENC_OUT_OF_RANGE, "mode"},
        {good, 7, POSENC_MODE_EXACT, POSENC_F16, POSENC_OUT_OF_RANGE, "dtype"},
        {good, 7, POSENC_MODE_FLOAT32, POSENC_F64, POSENC_OUT_OF_RANGE, "dtype"},
        {good, 7, POSENC_MODE_EXACT, POSENC_F32, POSENC_OUT_OF_RANGE, "query_scale"},
        {good, 7, POSENC_MODE_EXACT, POSENC_F32, POSENC_OUT_OF_RANGE, "query_scale.kind"},
        {good, 7, POSENC_MODE_EXACT, POSENC_F32, POSENC_OUT_OF_RANGE, "query_scale.coefficient"},
        {good, 7, POSENC_MODE_EXACT, POSENC_F32, POSENC_OUT_OF_RANGE, "query_scale.coefficient"},
        {log_n, 7, POSENC_MODE_EXACT, POSENC_F32, POSENC_OUT_OF_RANGE, "query_scale.coefficient"},
        {good, 7, POSENC_MODE_EXACT, POSENC_F32, POSENC_OUT_OF_RANGE, "query_scale.length"},
        {log_n, 7, POSENC_MODE_EXACT, POSENC_F32, POSENC_OUT_OF_RANGE, "query_scale.length"},
        {good, 7, POSENC_MODE_EXACT, POSENC_F32, POSENC_OUT_OF_RANGE, "query_scale.offset"},
    };
    bad[7].s.size = 4;
    bad[8].s.kind = (posenc_query_scale_kind)3;
    bad[9].s.coefficient = 0.0;
    bad[10].s.coefficient = (double)NAN;
    bad[11].s.coefficient = 0.1;
    bad[12].s.length = 0;
    bad[13].s.length = 1;
    bad[14].s.offset = 2;
    for (size_t i = 0; i < COUNT(bad); i++) {
        const int64_t positions[3] = {1, 2, bad[i].last};
        guarded scales = guarded_new(3 * sizeof(double), GUARD_BEFORE);
        posenc_error error;
        posenc_status got = posenc_query_scales(&bad[i].s, positions, 3, bad[i].mode, bad[i].dtype,
                                                scales.data, &error);
        if (bad[i].status)
            assert_refused(got, &error, bad[i].status, bad[i].argument);
        else
            assert_done(got, &error);
        assert_int_equal(guarded_is_untouched(&scales), bad[i].status != POSENC_OK);
        guarded_free(&scales);
    }
    int64_t list[4] = {0};
    posenc_error error;
    posenc_status got = posenc_query_scales(&good, list, 4, POSENC_MODE_EXACT, POSENC_F32,
                                            (char *)list + 28, &error);
    assert_refused(got, &error, POSENC_OVERLAP, "scales");
    got = posenc_query_scales(&good, NULL, 4, POSENC_MODE_EXACT, POSENC_F32, list, &error);
    assert_refused(got, &error, POSENC_NULL_POINTER, "positions");
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_scales_are_correctly_rounded),
        cmocka_unit_test(float32_scales_are_the_frameworks),
        cmocka_unit_test(known_numbers),
        cmocka_unit_test(bad_calls_are_refused_and_write_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
