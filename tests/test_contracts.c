/* Tries to break the contracts of angle functions, which it reads from their headers: with sampled values
 * (10^7 of each with POSENC_LONG, a twentieth of it else) and with adversarial ones, and checks the recorded
 * witnesses. The real values come from MPFR; a long double estimate only says which need no such care.
 * SPDX-License-Identifier: MIT */
#include "contracts.h"

#include "angles/sincos.h"
#include "ladders.h"
#include "random_data.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const posenc_dtype narrow[] = {POSENC_F32, POSENC_F16, POSENC_BF16};

/* --- Reduced angles: penc_sincos_double, penc_sincos_rounded ------------------------------------------ */

/* radians in [0, pi/4] as its first 53 bits and the next ones. */
typedef struct radians {
    double high, low;
} radians;

static radians random_radians(random_stream *rng, double most) {
    radians x;
    x.high = random_real(rng, 0.0, most);
    if (random_below(rng, 3) == 0)
        x.high = ldexp(x.high, -(int)random_below(rng, random_below(rng, 2) ? 140 : 12));
    int exponent;
    (void)frexp(x.high, &exponent);
    x.low = x.high == 0.0 ? 0.0 : ldexp((double)(random_bits(rng) >> 11), exponent - 106);
    return x;
}

static penc_wide wide_of(radians x) {
    penc_wide high = penc_wide_of_double(x.high), low = penc_wide_of_double(x.low);
    return penc_wide_add(&high, &low);
}

static void real_of_wide(mpfr_ptr real, const penc_wide *x) {
    mpfr_set_ui(real, 0, MPFR_RNDN);
    for (int i = PENC_WIDE_LIMBS - 1; i >= 0; i--) {
        mpfr_mul_2ui(real, real, 64, MPFR_RNDN);
        mpfr_add_ui(real, real, x->limb[i], MPFR_RNDN);
    }
    mpfr_mul_2si(real, real, -256, MPFR_RNDN);
}

static void wide_of_real(penc_wide *x, mpfr_srcptr real) {
    mpfr_t rest, limb;
    mpfr_inits2(ORACLE_BITS, rest, limb, (mpfr_ptr)NULL);
    mpfr_set(rest, real, MPFR_RNDN);
    for (int i = PENC_WIDE_LIMBS - 1; i >= 0; i--) {
        mpfr_floor(limb, rest);
        x->limb[i] = mpfr_get_ui(limb, MPFR_RNDN);
        mpfr_sub(rest, rest, limb, MPFR_RNDN);
        mpfr_mul_2ui(rest, rest, 64, MPFR_RNDN);
    }
    mpfr_clears(rest, limb, (mpfr_ptr)NULL);
}

/* The pair (cos, sin) of one reduced angle, as a function gives it. */
static penc_sincos sincos_of(const penc_wide *x, posenc_dtype dtype) {
    penc_angle angle = {0, 0, 0, *x};
    return dtype == POSENC_F64 ? penc_sincos_double(&angle)
                               : penc_sincos_rounded(&angle, NULL, dtype);
}

static void note_exactly(search *s, posenc_dtype dtype, penc_sincos got, const penc_wide *x,
                         const double *witness) {
    mpfr_t angle, cosine, sine;
    mpfr_inits2(ORACLE_BITS, angle, cosine, sine, (mpfr_ptr)NULL);
    real_of_wide(angle, x);
    mpfr_sin_cos(sine, cosine, angle, MPFR_RNDN);
    double of_cos = search_share(s, dtype, got.cos, cosine, mpfr_get_d(cosine, MPFR_RNDN));
    double of_sin = search_share(s, dtype, got.sin, sine, mpfr_get_d(sine, MPFR_RNDN));
    search_note(s, dtype, fmax(of_cos, of_sin), witness);
    mpfr_clears(angle, cosine, sine, (mpfr_ptr)NULL);
}

static void try_radians(search *s, radians x, posenc_dtype dtype) {
    double witness[CONTRACT_INPUTS] = {x.high, x.low};
    penc_wide wide = wide_of(x);
    penc_sincos got = sincos_of(&wide, dtype);
    long double near = (long double)x.high + (long double)x.low;
    double estimate = fmax(search_estimate(s, dtype, got.cos, cosl(near)),
                           search_estimate(s, dtype, got.sin, sinl(near)));
    s->tried++;
    if (search_is_near_worst(s, estimate))
        note_exactly(s, dtype, got, &wide, witness);
}

static void the_float64_sequence_keeps_its_contract(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    search s = search_of("src/angles/sincos.h", "penc_sincos_double", POSENC_F64), recorded = s;
    try_radians(&recorded, (radians){s.contract.witness[0], s.contract.witness[1]}, POSENC_F64);
    for (size_t i = 0; i < random_trials(SAMPLES); i++)
        try_radians(&s, random_radians(&rng, s.contract.high), POSENC_F64);
    for (int k = 0; k <= 256; k++) { /* the smallest, and powers of two with their neighbours */
        double power = k ? ldexp(1.0, -k) : s.contract.high;
        try_radians(&s, (radians){power, 0.0}, POSENC_F64);
        try_radians(&s, (radians){nextafter(power, 0.0), 0.0}, POSENC_F64);
        try_radians(&s, (radians){power, k < 150 ? ldexp(power, -53) : 0.0}, POSENC_F64);
    }
    search_report(&s);
    search_assert_witness(&recorded);
}

/* Angles whose sin or cos is a midpoint of two numbers of `dtype` to 2^-26 ... 2^-126 of itself. */
static void try_ties(search *s, posenc_dtype dtype, random_stream *rng) {
    mpfr_t tie, angle;
    mpfr_inits2(ORACLE_BITS, tie, angle, (mpfr_ptr)NULL);
    for (size_t trial = 0; trial < random_trials(2000); trial++) {
        int is_sin = random_below(rng, 2) == 0, exponent;
        double y = is_sin ? random_real(rng, 0.0, 0.707) : random_real(rng, 0.708, 1.0);
        if (is_sin && trial % 2)
            y = ldexp(y, -(int)random_below(rng, 100));
        (void)frexp(y, &exponent);
        double ulp = oracle_ulp(exponent, dtype);
        mpfr_set_d(tie, (floor(y / ulp) + 0.5) * ulp, MPFR_RNDN);
        mpfr_set_si_2exp(angle, trial % 3 ? 1 : -1, -26 - (long)random_below(rng, 101), MPFR_RNDN);
        mpfr_mul(angle, angle, tie, MPFR_RNDN);
        mpfr_add(tie, tie, angle, MPFR_RNDN);
        (is_sin ? mpfr_asin : mpfr_acos)(angle, tie, MPFR_RNDN);
        penc_wide x;
        wide_of_real(&x, angle);
        double high = mpfr_get_d(angle, MPFR_RNDZ);
        mpfr_sub_d(tie, angle, high, MPFR_RNDN);
        double witness[CONTRACT_INPUTS] = {high, mpfr_get_d(tie, MPFR_RNDZ)};
        s->tried++;
        note_exactly(s, dtype, sincos_of(&x, dtype), &x, witness);
    }
    mpfr_clears(tie, angle, (mpfr_ptr)NULL);
}

static void rounded_values_keep_their_contract(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    search s = search_of("src/angles/sincos.h", "penc_sincos_rounded", POSENC_F32), recorded = s;
    radians witness = {s.contract.witness[0], s.contract.witness[1]};
    try_radians(&recorded, witness, POSENC_F32);
    for (size_t i = 0; i < random_trials(SAMPLES); i++)
        try_radians(&s, random_radians(&rng, s.contract.high), narrow[i % COUNT(narrow)]);
    search_report(&s);
    for (size_t i = 0; i < COUNT(narrow); i++)
        try_ties(&s, narrow[i], &rng);
    search_assert_witness(&recorded);
}

/* --- Frequencies: penc_angle_at, posenc_angles ---------------------------------------------------- */

/* The angle as penc_angle_at gives it, in radians. */
static void real_of_angle(mpfr_ptr real, const penc_angle *angle) {
    mpfr_t quarters;
    mpfr_init2(quarters, ORACLE_BITS);
    mpfr_const_pi(quarters, MPFR_RNDN);
    mpfr_div_2ui(quarters, quarters, 1, MPFR_RNDN);
    mpfr_mul_ui(quarters, quarters, angle->quarter, MPFR_RNDN);
    real_of_wide(real, &angle->radians);
    (angle->rest_negative ? mpfr_sub : mpfr_add)(real, quarters, real, MPFR_RNDN);
    if (angle->negative)
        mpfr_neg(real, real, MPFR_RNDN);
    mpfr_clear(quarters);
}

static void try_angle(search *s, const ladder *l, size_t pair, double position) {
    double witness[CONTRACT_INPUTS] = {l->base, (double)l->dim, (double)pair, position};
    penc_position place = penc_position_of_double(position);
    penc_angle angle = penc_angle_at(&place, &l->made->frequency[pair].turns);
    mpfr_t whole, rest, got;
    mpfr_inits2(ORACLE_BITS, whole, rest, got, (mpfr_ptr)NULL);
    /* What is left of the real angle after whole turns, in radians. */
    mpfr_mul_d(rest, l->turns[pair], position, MPFR_RNDN);
    mpfr_rint(whole, rest, MPFR_RNDN);
    mpfr_sub(rest, rest, whole, MPFR_RNDN);
    mpfr_const_pi(whole, MPFR_RNDN);
    mpfr_mul_2ui(whole, whole, 1, MPFR_RNDN);
    mpfr_mul(rest, rest, whole, MPFR_RNDN);
    real_of_angle(got, &angle);
    mpfr_sub(got, got, rest, MPFR_RNDN);
    mpfr_remainder(got, got, whole, MPFR_RNDN); /* the error, whole turns apart */
    double size = fabs(position) * mpfr_get_d(l->radians[pair], MPFR_RNDN);
    s->tried++;
    search_note(s, POSENC_F64, search_share(s, POSENC_F64, 0.0, got, size), witness);
    mpfr_clears(whole, rest, got, (mpfr_ptr)NULL);
}

static void angles_keep_their_contract(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    search s = search_of("src/angles/phase.h", "penc_angle_at", POSENC_F64), recorded = s;
    static ladder all[LADDERS];
    ladders_start(all);
    try_angle(&recorded, witness_ladder(all, &s), (size_t)s.contract.witness[2],
              s.contract.witness[3]);
    for (size_t i = 0; i < random_trials(SAMPLES); i++) {
        const ladder *l = &all[random_below(&rng, LADDERS)];
        try_angle(&s, l, random_below(&rng, l->pairs), random_place(&rng));
    }
    visit_closest(&s, all, try_angle);
    visit_extremes(&s, all, try_angle);
    search_report(&s);
    ladders_end(all);
    search_assert_witness(&recorded);
}

enum { RUN = 40 }; /* rows of one call at most */

/* Rows of whole positions by posenc_angles, of others by posenc_angles_real; checks `pairs` pairs from
 * `pair` on. */
static void try_rows(search *s, const ladder *l, const double *positions, size_t count,
                     posenc_dtype dtype, size_t pair, size_t pairs) {
    static double cos_rows[RUN * MOST_PAIRS], sin_rows[RUN * MOST_PAIRS];
    int64_t whole[RUN];
    int is_whole = 1;
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_error error;
    rows.cos = cos_rows;
    rows.sin = sin_rows;
    rows.dtype = dtype;
    for (size_t i = 0; i < count; i++) {
        is_whole &= positions[i] == trunc(positions[i]);
        whole[i] = (int64_t)positions[i];
    }
    posenc_status status = is_whole ? posenc_angles(l->made, whole, count, &rows, &error)
                                    : posenc_angles_real(l->made, positions, count, &rows, &error);
    assert_done(status, &error);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = pair; j < pair + pairs; j++) {
            ptrdiff_t at = (ptrdiff_t)(i * l->pairs + j);
            penc_sincos got = {oracle_value(oracle_load(cos_rows, dtype, at), dtype),
                               oracle_value(oracle_load(sin_rows, dtype, at), dtype)};
            check_value(s, l, j, positions[i], dtype, got);
        }
    }
}

static void try_narrow_value(search *s, const ladder *l, size_t pair, double position) {
    for (size_t i = 0; i < COUNT(narrow); i++)
        try_rows(s, l, &position, 1, narrow[i], pair, 1);
}

static void try_float64_value(search *s, const ladder *l, size_t pair, double position) {
    try_rows(s, l, &position, 1, POSENC_F64, pair, 1);
}

/* Single rows, lists of any positions, and runs, which vector kernels compute by another way. */
static void try_random_rows(search *s, const ladder *all, random_stream *rng,
                            const posenc_dtype *dtypes, size_t dtypes_count) {
    double positions[RUN];
    for (size_t round = 0; s->tried < random_trials(SAMPLES); round++) {
        size_t count = round % 2 ? 1 + random_below(rng, 4) : RUN;
        double first = (double)random_between(rng, 0, INT64_C(1) << random_below(rng, 40));
        for (size_t i = 0; i < count; i++)
            positions[i] = round % 2 ? random_place(rng) : first + (double)i;
        const ladder *l = &all[random_below(rng, LADDERS)];
        try_rows(s, l, positions, count, dtypes[round / 2 % dtypes_count], 0, l->pairs);
    }
}

static void narrow_rows_keep_their_contract(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    search s = search_of("include/posenc/rows.h", "posenc_angles.narrow", POSENC_F32), recorded = s;
    static ladder all[LADDERS];
    ladders_start(all);
    try_rows(&recorded, witness_ladder(all, &s), &s.contract.witness[3], 1, POSENC_F32,
             (size_t)s.contract.witness[2], 1);
    try_random_rows(&s, all, &rng, narrow, COUNT(narrow));
    search_report(&s);
    for (size_t i = 0; i < COUNT(narrow); i++)
        visit_ties(&s, all, narrow[i], &rng, try_narrow_value);
    visit_closest(&s, all, try_narrow_value);
    visit_extremes(&s, all, try_narrow_value);
    ladders_end(all);
    search_assert_witness(&recorded);
}

static void float64_rows_keep_their_contract(void **state) {
    (void)state;
    static const posenc_dtype dtype = POSENC_F64;
    random_stream rng = random_of(__func__);
    search s = search_of("include/posenc/rows.h", "posenc_angles.float64", POSENC_F64),
           recorded = s;
    static ladder all[LADDERS];
    ladders_start(all);
    try_rows(&recorded, witness_ladder(all, &s), &s.contract.witness[3], 1, dtype,
             (size_t)s.contract.witness[2], 1);
    try_random_rows(&s, all, &rng, &dtype, 1);
    visit_closest(&s, all, try_float64_value);
    visit_extremes(&s, all, try_float64_value);
    search_report(&s);
    ladders_end(all);
    search_assert_witness(&recorded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_float64_sequence_keeps_its_contract),
        cmocka_unit_test(rounded_values_keep_their_contract),
        cmocka_unit_test(angles_keep_their_contract),
        cmocka_unit_test(narrow_rows_keep_their_contract),
        cmocka_unit_test(float64_rows_keep_their_contract),
    };
    random_announce();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
