/* Wide arithmetic, logarithms, powers and rounding against GMP and MPFR. SPDX-License-Identifier: MIT */

/* The portable multiplication, under another name, from the header itself; must come first. */
#define POSENC_NO_INT128
#define penc_multiply portable_multiply
#include "base/wide.h"
#undef penc_multiply

#include "base/half.h"
#include "base/memory_map.h"
#include "base/power.h"
#include "guard_pages.h"
#include "oracle.h"
#include "posenc/npy.h"
#include "posenc/posenc.h"
#include "random_data.h"

#include <errno.h>
#include <limits.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* --- Wide numbers as GMP integers: value * 2^256 ------------------------------------------------ */

static void integer_of_wide(mpz_t z, const penc_wide *a) {
    mpz_import(z, PENC_WIDE_LIMBS, -1, sizeof a->limb[0], 0, 0, a->limb);
}

/* Limbs of 0, of ones and random ones in equal parts, so that carries run far; then the integer part
 * is cut to `integer_bits`. */
static penc_wide random_wide(random_stream *rng, unsigned integer_bits) {
    penc_wide a;
    for (int i = 0; i < PENC_WIDE_LIMBS; i++) {
        uint64_t bits = random_bits(rng);
        a.limb[i] = bits % 3 == 0 ? 0 : bits % 3 == 1 ? UINT64_MAX : random_bits(rng);
    }
    a.limb[PENC_WIDE_LIMBS - 1] &= integer_bits ? UINT64_MAX >> (64 - integer_bits) : 0;
    return a;
}

static void assert_wide(const penc_wide *got, const mpz_t wanted, const char *what) {
    mpz_t z;
    mpz_init(z);
    integer_of_wide(z, got);
    if (mpz_cmp(z, wanted) != 0)
        fail_msg("%s is wrong: top limbs %#llx %#llx", what, (unsigned long long)got->limb[4],
                 (unsigned long long)got->limb[3]);
    mpz_clear(z);
}

static void wide_sums_and_differences_are_exact(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    mpz_t x, y, wanted;
    mpz_inits(x, y, wanted, NULL);
    for (size_t i = 0; i < random_trials(2000); i++) {
        penc_wide a = random_wide(&rng, 63), b = random_wide(&rng, 63);
        integer_of_wide(x, &a);
        integer_of_wide(y, &b);
        mpz_add(wanted, x, y);
        penc_wide sum = penc_wide_add(&a, &b);
        assert_wide(&sum, wanted, "a sum");
        penc_wide back = penc_wide_subtract(&sum, &b);
        assert_wide(&back, x, "a difference");
    }
    mpz_clears(x, y, wanted, NULL);
}

static void wide_products_and_quotients_drop_only_bits_below_2_to_minus_256(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    mpz_t x, y, wanted;
    mpz_inits(x, y, wanted, NULL);
    for (size_t i = 0; i < random_trials(2000); i++) {
        unsigned bits = (unsigned)random_below(&rng, 65);
        penc_wide a = random_wide(&rng, bits), b = random_wide(&rng, 64 - bits);
        integer_of_wide(x, &a);
        integer_of_wide(y, &b);
        mpz_mul(wanted, x, y);
        mpz_fdiv_q_2exp(wanted, wanted, 256);
        penc_wide product = penc_wide_multiply(&a, &b);
        assert_wide(&product, wanted, "a product");

        uint64_t factor = bits < 64 ? random_bits(&rng) >> bits : 1;
        mpz_mul_ui(wanted, x, factor);
        product = penc_wide_multiply_by(&a, factor);
        assert_wide(&product, wanted, "a product with an integer");

        uint64_t divisor = 1 + random_bits(&rng) % UINT32_MAX;
        mpz_fdiv_q_ui(wanted, x, divisor);
        penc_wide quotient = penc_wide_divide_by(&a, divisor);
        assert_wide(&quotient, wanted, "a quotient");
    }
    mpz_clears(x, y, wanted, NULL);
}

static void wide_ratios_are_exact_to_2_to_minus_256(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    mpz_t wanted;
    mpz_init(wanted);
    for (size_t i = 0; i < random_trials(1000); i++) {
        uint64_t a = random_bits(&rng) >> random_below(&rng, 64);
        uint64_t b = (random_bits(&rng) >> 1 >> random_below(&rng, 63)) | 1;
        mpz_set_ui(wanted, a);
        mpz_mul_2exp(wanted, wanted, 256);
        mpz_fdiv_q_ui(wanted, wanted, b);
        penc_wide ratio = penc_wide_ratio(a, b);
        assert_wide(&ratio, wanted, "a ratio");
    }
    mpz_clear(wanted);
}

static void wide_shifts_drop_what_leaves_at_either_end(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    mpz_t x, wanted;
    mpz_inits(x, wanted, NULL);
    for (int shift = -400; shift <= 400; shift++) {
        penc_wide a = random_wide(&rng, 64);
        integer_of_wide(x, &a);
        if (shift < 0)
            mpz_fdiv_q_2exp(wanted, x, (mp_bitcnt_t)-shift);
        else
            mpz_mul_2exp(wanted, x, (mp_bitcnt_t)shift);
        mpz_fdiv_r_2exp(wanted, wanted, 64 * PENC_WIDE_LIMBS);
        penc_wide shifted = penc_wide_shift(&a, shift);
        assert_wide(&shifted, wanted, "a shift");
    }
    mpz_clears(x, wanted, NULL);
}

static void wide_numbers_compare_and_know_their_highest_bit(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    mpz_t x, y;
    mpz_inits(x, y, NULL);
    for (size_t i = 0; i < random_trials(2000); i++) {
        penc_wide a = random_wide(&rng, 64), b = a;
        b.limb[random_below(&rng, PENC_WIDE_LIMBS)] ^= random_bits(&rng) & 1;
        integer_of_wide(x, &a);
        integer_of_wide(y, &b);
        int order = mpz_cmp(x, y);
        assert_int_equal(penc_wide_compare(&a, &b), (order > 0) - (order < 0));
        a = penc_wide_shift(&a, -(int)random_below(&rng, 320));
        integer_of_wide(x, &a);
        assert_int_equal(penc_wide_is_zero(&a), mpz_sgn(x) == 0);
        if (mpz_sgn(x))
            assert_int_equal(penc_wide_log2_floor(&a), (int)mpz_sizeinbase(x, 2) - 1 - 256);
    }
    penc_wide seven = penc_wide_of_integer(7);
    mpz_set_ui(y, 7);
    mpz_mul_2exp(y, y, 256);
    assert_wide(&seven, y, "an integer");
    mpz_clears(x, y, NULL);
}

static void portable_multiplication_equals_int128(void **state) {
    (void)state;
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 uint128;
    random_stream rng = random_of(__func__);
    static const uint64_t edges[] = {0,          1,           2,          UINT32_MAX,
                                     1ull << 32, 3ull << 31,  INT64_MAX,  1ull << 63,
                                     UINT64_MAX, ~1ull << 32, ~1ull >> 1, UINT64_MAX << 32};
    size_t pairs = COUNT(edges) * COUNT(edges);
    for (size_t i = 0; i < pairs + random_trials(100000); i++) {
        uint64_t a = i < pairs ? edges[i / COUNT(edges)] : random_bits(&rng);
        uint64_t b = i < pairs ? edges[i % COUNT(edges)] : random_bits(&rng);
        uint64_t high, low = portable_multiply(a, b, &high);
        uint128 product = (uint128)a * b;
        assert_true(low == (uint64_t)product && high == (uint64_t)(product >> 64));
    }
#else
    skip();
#endif
}

/* --- Logarithms and powers ---------------------------------------------------------------------- */

enum { POWER_BITS = 640 }; /* holds every wide number, and the errors looked for */

static void real_of_wide(mpfr_t x, const penc_wide *a, long exponent) {
    mpz_t z;
    mpz_init(z);
    integer_of_wide(z, a);
    mpfr_set_z_2exp(x, z, exponent - 256, MPFR_RNDN);
    mpz_clear(z);
}

static void real_of_exponent(mpfr_t x, const penc_exponent *e) {
    real_of_wide(x, &e->magnitude, 0);
    mpfr_setsign(x, x, e->negative, MPFR_RNDN);
}

/* Fails the test if |x - y| > 2^exponent; x becomes the distance. */
static void assert_near(mpfr_t x, const mpfr_t y, long exponent, const char *what) {
    mpfr_sub(x, x, y, MPFR_RNDN);
    if (!mpfr_zero_p(x) && mpfr_get_exp(x) > exponent)
        fail_msg("%s is off by 2^%ld", what, (long)mpfr_get_exp(x));
}

static void turn_constants_are_2_pi_and_its_inverse(void **state) {
    (void)state;
    mpfr_t wanted, got;
    mpfr_inits2(POWER_BITS, wanted, got, (mpfr_ptr)NULL);
    mpfr_const_pi(wanted, MPFR_RNDN);
    mpfr_mul_2ui(wanted, wanted, 1, MPFR_RNDN);
    real_of_wide(got, &penc_turn, 0);
    assert_near(got, wanted, -256, "2 pi");
    mpfr_ui_div(wanted, 1, wanted, MPFR_RNDN);
    real_of_wide(got, &penc_inverse_turn, 0);
    assert_near(got, wanted, -256, "1/(2 pi)");
    mpfr_clears(wanted, got, (mpfr_ptr)NULL);
}

static void assert_log2(double x) {
    mpfr_t wanted, got;
    char what[64];
    mpfr_inits2(POWER_BITS, wanted, got, (mpfr_ptr)NULL);
    snprintf(what, sizeof what, "log2(%a)", x);
    mpfr_set_d(wanted, x, MPFR_RNDN);
    mpfr_log2(wanted, wanted, MPFR_RNDN);
    penc_exponent e = penc_log2(x);
    real_of_exponent(got, &e);
    assert_near(got, wanted, -240, what);
    mpfr_clears(wanted, got, (mpfr_ptr)NULL);
}

static void log2_is_good_to_2_to_minus_240(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (int exponent = -1074; exponent < 1024; exponent += 7)
        assert_log2(ldexp(1.0, exponent));
    static const double edges[] = {1.0,
                                   0x1.fffffffffffffp-1,
                                   0x1.0000000000001p0,
                                   0x1p-1022,
                                   0x0.fffffffffffffp-1022,
                                   0x1.fffffffffffffp1023,
                                   0x1.6a09e667f3bcdp0,
                                   0x1.6a09e667f3bccp0,
                                   0x1.6a09e667f3bcep0,
                                   10000.0,
                                   500000.0,
                                   1e-6,
                                   1e30};
    for (size_t i = 0; i < COUNT(edges); i++)
        assert_log2(edges[i]);
    for (size_t i = 0; i < random_trials(1000); i++) {
        double x = fabs(random_double(&rng));
        if (x > 0.0 && x < (double)INFINITY)
            assert_log2(x);
        assert_log2(1.0 + random_normal(&rng) * 1e-9);
    }
}

/* 2^e against MPFR: the significand in [1, 2), the whole within 2^-240 of itself. */
static void assert_exp2(const penc_exponent *e) {
    mpfr_t wanted, got, exact;
    mpfr_inits2(POWER_BITS, wanted, got, exact, (mpfr_ptr)NULL);
    penc_real power = penc_exp2(e);
    assert_int_equal(penc_wide_log2_floor(&power.significand), 0);
    real_of_exponent(exact, e);
    mpfr_sub_si(exact, exact, power.exponent, MPFR_RNDN);
    mpfr_exp2(wanted, exact, MPFR_RNDN);
    real_of_wide(got, &power.significand, 0);
    assert_near(got, wanted, -240, "a power of two");
    mpfr_clears(wanted, got, exact, (mpfr_ptr)NULL);
}

static void exp2_is_good_to_2_to_minus_240(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < random_trials(1000); i++) {
        penc_exponent e = {(int)random_below(&rng, 2), random_wide(&rng, (unsigned)(i % 20))};
        assert_exp2(&e);
        e.magnitude = penc_wide_shift(&e.magnitude, -(int)random_below(&rng, 256)); /* tiny ones */
        assert_exp2(&e);
    }
    for (int whole = 0; whole < 2000; whole++) {
        penc_exponent e = {whole % 2, penc_wide_of_integer((uint64_t)whole)};
        penc_real power = penc_exp2(&e);
        penc_wide one = penc_wide_of_integer(1);
        assert_int_equal(penc_wide_compare(&power.significand, &one), 0);
        assert_int_equal(power.exponent, whole % 2 ? -whole : whole);
    }
}

static void exponents_of_doubles_and_their_fractions(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    mpfr_t wanted, got;
    mpfr_inits2(POWER_BITS, wanted, got, (mpfr_ptr)NULL);
    for (size_t i = 0; i < random_trials(1000); i++) {
        double x = random_normal(&rng) * random_magnitude(&rng, -40.0, 9.0);
        uint64_t numerator = random_bits(&rng) & 0xffffff, denominator = numerator + 1;
        penc_exponent e = penc_exponent_of(x);
        real_of_exponent(got, &e);
        mpfr_set_d(wanted, x, MPFR_RNDN);
        assert_near(got, wanted, -255, "the exponent of a double");
        e = penc_exponent_scale(&e, numerator, denominator);
        real_of_exponent(got, &e);
        mpfr_mul_ui(wanted, wanted, numerator, MPFR_RNDN);
        mpfr_div_ui(wanted, wanted, denominator, MPFR_RNDN);
        assert_near(got, wanted, -254, "a fraction of an exponent");
    }
    mpfr_clears(wanted, got, (mpfr_ptr)NULL);
}

static void doubles_split_into_integer_and_power(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < random_trials(10000); i++) {
        double x = fabs(random_double(&rng));
        if (x == (double)INFINITY)
            continue;
        int exponent;
        uint64_t integer = penc_split_double(x, &exponent);
        assert_true(integer < UINT64_C(1) << 53);
        assert_true(ldexp((double)integer, exponent) == x);
    }
}

/* --- Rounding ----------------------------------------------------------------------------------- */

/* The dtypes as penc_real_round takes them, and the binary exponents of their largest numbers. */
static const struct rounding {
    posenc_dtype dtype;
    int bits, min_exponent, max_exponent;
} roundings[] = {{POSENC_F64, 53, -1074, 1023},
                 {POSENC_F32, 24, -149, 127},
                 {POSENC_F16, 11, -24, 15},
                 {POSENC_BF16, 8, -133, 127}};

static void assert_rounded(const penc_real *value, const struct rounding *r) {
    mpfr_t exact;
    mpfr_init2(exact, POWER_BITS);
    real_of_wide(exact, &value->significand, value->exponent);
    double wanted = oracle_value(oracle_bits(exact, r->dtype), r->dtype);
    double got = penc_real_round(value, r->bits, r->min_exponent);
    if (got != wanted)
        fail_msg("%d bits: got %a, wanted %a", r->bits, got, wanted);
    mpfr_clear(exact);
}

/* A number whose leading bit is 2^lead, for a dtype that has it. */
static penc_real real_with_lead(penc_wide significand, int lead) {
    penc_real value = {significand, lead - penc_wide_log2_floor(&significand)};
    return value;
}

static void wide_numbers_round_once_to_every_dtype(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < random_trials(20000); i++) {
        const struct rounding *r = &roundings[i % COUNT(roundings)];
        penc_wide significand = {
            {1, random_bits(&rng), random_bits(&rng), random_bits(&rng), random_bits(&rng)}};
        significand = penc_wide_shift(&significand, -(int)random_below(&rng, 64));
        /* From below the smallest denormal to just below the largest number. */
        int lead = (int)random_between(&rng, r->min_exponent - 3, r->max_exponent - 1);
        penc_real value = real_with_lead(significand, lead);
        assert_rounded(&value, r);
    }
    penc_real zero = {{{0}}, 0};
    assert_true(penc_real_round(&zero, 53, -1074) == 0.0);
}

/* Midpoints between two numbers of a dtype, and what lies 2^-117 of them beside. */
static void wide_ties_go_to_even_and_near_ties_to_their_side(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < random_trials(20000); i++) {
        const struct rounding *r = &roundings[i % COUNT(roundings)];
        int lead = (int)random_between(&rng, r->min_exponent - 1, r->max_exponent - 1);
        int bits = lead - r->min_exponent + 1 < r->bits ? lead - r->min_exponent + 1 : r->bits;
        uint64_t midpoint = (random_bits(&rng) | UINT64_C(1) << 63) >> (63 - bits) | 1;
        penc_wide tie = penc_wide_of_integer(midpoint), little = {{0, 0, 0, 1, 0}};
        little = penc_wide_shift(&little, bits - 53);
        penc_wide above = penc_wide_add(&tie, &little), below = penc_wide_subtract(&tie, &little);
        penc_real value = {tie, lead - bits};
        assert_rounded(&value, r);
        value.significand = above;
        assert_rounded(&value, r);
        value.significand = below;
        assert_rounded(&value, r);
    }
}

static void ties_hidden_by_errors_below_2_to_minus_128_are_ties(void **state) {
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        /* 1 + 3 * 2^-24 lies between two float32 numbers, the even one above. */
        penc_wide tie = penc_wide_of_integer((1u << 24) + 3), error = {{1, 0, 0, 0, 0}};
        error = penc_wide_shift(&error, 100);
        tie = sign < 0 ? penc_wide_subtract(&tie, &error) : penc_wide_add(&tie, &error);
        penc_real value = {tie, -24};
        assert_true(penc_real_round(&value, 24, -149) == 1.0 + 4 * 0x1p-24);
    }
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_sums_and_differences_are_exact),
        cmocka_unit_test(wide_products_and_quotients_drop_only_bits_below_2_to_minus_256),
        cmocka_unit_test(wide_ratios_are_exact_to_2_to_minus_256),
        cmocka_unit_test(wide_shifts_drop_what_leaves_at_either_end),
        cmocka_unit_test(wide_numbers_compare_and_know_their_highest_bit),
        cmocka_unit_test(portable_multiplication_equals_int128),
        cmocka_unit_test(turn_constants_are_2_pi_and_its_inverse),
        cmocka_unit_test(log2_is_good_to_2_to_minus_240),
        cmocka_unit_test(exp2_is_good_to_2_to_minus_240),
        cmocka_unit_test(exponents_of_doubles_and_their_fractions),
        cmocka_unit_test(doubles_split_into_integer_and_power),
        cmocka_unit_test(wide_numbers_round_once_to_every_dtype),
        cmocka_unit_test(wide_ties_go_to_even_and_near_ties_to_their_side),
        cmocka_unit_test(ties_hidden_by_errors_below_2_to_minus_128_are_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
