/* The base: wide arithmetic, logarithms and powers, 16-bit conversion, errors, struct sizes, proofs
 * about strides. SPDX-License-Identifier: MIT */

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

/* --- float16 and bfloat16 ----------------------------------------------------------------------- */

static const posenc_dtype narrow_dtypes[] = {POSENC_F16, POSENC_BF16};
static const posenc_dtype all_dtypes[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};

/* One number through posenc_convert, as patterns. */
static uint64_t converted(uint64_t bits, posenc_dtype from, posenc_dtype to) {
    uint64_t source = 0, target = 0;
    oracle_store(&source, from, 0, bits);
    assert_int_equal(posenc_convert(&source, from, &target, to, 1, NULL), POSENC_OK);
    return oracle_load(&target, to, 0);
}

static void every_16_bit_pattern_widens_exactly_and_comes_back(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(narrow_dtypes); i++) {
        posenc_dtype dtype = narrow_dtypes[i];
        for (uint64_t bits = 0; bits <= UINT16_MAX; bits++) {
            double value = oracle_value(bits, dtype);
            uint64_t wide = converted(bits, dtype, POSENC_F64);
            uint64_t single = converted(bits, dtype, POSENC_F32);
            assert_true(oracle_same(wide, oracle_bits_of_double(value, POSENC_F64), POSENC_F64));
            assert_true(oracle_same(single, oracle_bits_of_double(value, POSENC_F32), POSENC_F32));
            assert_true(oracle_same(converted(wide, POSENC_F64, dtype), bits, dtype));
            assert_true(oracle_same(converted(single, POSENC_F32, dtype), bits, dtype));
        }
    }
}

static void assert_narrowed(double value, posenc_dtype dtype) {
    uint64_t bits = oracle_bits_of_double(value, POSENC_F64);
    uint64_t got = converted(bits, POSENC_F64, dtype), wanted = oracle_bits_of_double(value, dtype);
    uint64_t direct = dtype == POSENC_F16 ? penc_f16_of_double(value) : penc_bf16_of_double(value);
    if (!oracle_same(got, wanted, dtype) || !oracle_same(direct, wanted, dtype))
        fail_msg("%a to %s: got %#llx and %#llx, wanted %#llx", value, posenc_dtype_name(dtype),
                 (unsigned long long)got, (unsigned long long)direct, (unsigned long long)wanted);
}

/* The midpoint of two neighbours and its nearest float64 neighbours: a step through float32 would
 * land on the midpoint and then go wrong. */
static void narrowing_is_right_at_every_midpoint(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(narrow_dtypes); i++) {
        posenc_dtype dtype = narrow_dtypes[i];
        for (uint64_t bits = 0; bits < 0x7f80; bits++) {
            double low = oracle_value(bits, dtype), high = oracle_value(bits + 1, dtype);
            if (!(high < (double)INFINITY))
                break;
            double midpoint = 0.5 * (low + high);
            for (int sign = -1; sign <= 1; sign += 2) {
                assert_narrowed(sign * midpoint, dtype);
                assert_narrowed(sign * nextafter(midpoint, 0.0), dtype);
                assert_narrowed(sign * nextafter(midpoint, 1e300), dtype);
            }
        }
    }
}

static void narrowing_rounds_any_float64_once(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < random_trials(50000); i++) {
        double any = random_double(&rng);
        double near = random_normal(&rng) * random_magnitude(&rng, -9.0, 5.0); /* float16's range */
        double small = random_normal(&rng) * random_magnitude(&rng, -42.0, -36.0);
        for (size_t j = 0; j < COUNT(narrow_dtypes); j++) {
            assert_narrowed(any, narrow_dtypes[j]);
            assert_narrowed(near, narrow_dtypes[j]);
            assert_narrowed(small, narrow_dtypes[j]);
        }
    }
}

static void assert_narrowed_to_float32(double value) {
    uint64_t got = converted(oracle_bits_of_double(value, POSENC_F64), POSENC_F64, POSENC_F32);
    uint64_t wanted = oracle_bits_of_double(value, POSENC_F32);
    if (got != wanted)
        fail_msg("%a to float32: got %#llx, wanted %#llx", value, (unsigned long long)got,
                 (unsigned long long)wanted);
}

/* Midpoints of float32 neighbours of all magnitudes, from the smallest denormals to where the next
 * number is infinity, and what lies beside them. */
static void narrowing_to_float32_is_right_at_midpoints(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < 20 + random_trials(10000); i++) {
        uint64_t bits = i < 10   ? i
                        : i < 20 ? 0x7f7fffff - (i - 10)
                                 : random_bits(&rng) % 0x7f800000;
        double low = oracle_value(bits, POSENC_F32);
        double step = low < 0x1p-126 ? 0x1p-149 : ldexp(1.0, ilogb(low) - 23);
        double midpoint = (i & 1 ? -1.0 : 1.0) * (low + 0.5 * step);
        assert_narrowed_to_float32(midpoint);
        assert_narrowed_to_float32(nextafter(midpoint, 0.0));
        assert_narrowed_to_float32(nextafter(midpoint, 2.0 * midpoint));
    }
}

static void narrowing_of_known_numbers(void **state) {
    (void)state;
    static const struct {
        double value;
        uint16_t f16, bf16;
    } known[] = {
        {0.0, 0x0000, 0x0000},
        {-0.0, 0x8000, 0x8000},
        {1.0, 0x3c00, 0x3f80},
        {-2.0, 0xc000, 0xc000},
        {65504.0, 0x7bff, 0x4780},
        {65519.99, 0x7bff, 0x4780},
        {65520.0, 0x7c00, 0x4780},
        {0x1p-24, 0x0001, 0x3380},
        {0x1p-25, 0x0000, 0x3300},
        {0x1.0000000000001p-25, 0x0001, 0x3300},
        {0x1.8p-24, 0x0002, 0x33c0},
        {0x1p-14, 0x0400, 0x3880},
        {0x1p-133, 0x0000, 0x0001},
        {0x1p-134, 0x0000, 0x0000},
        {0x1.fep127, 0x7c00, 0x7f7f},
        {0x1.feffffffffff8p127, 0x7c00, 0x7f7f},
        {0x1.ffp127, 0x7c00, 0x7f80},
        {1e300, 0x7c00, 0x7f80},
        {-1e300, 0xfc00, 0xff80},
        {1.0 + 0x1p-11, 0x3c00, 0x3f80},
        {1.0 + 0x1p-11 + 0x1p-50, 0x3c01, 0x3f80},
        {1.0 + 0x3p-11, 0x3c02, 0x3f80},
        {1.0 + 0x1p-8, 0x3c04, 0x3f80},
        {1.0 + 0x1p-8 + 0x1p-50, 0x3c04, 0x3f81},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        assert_int_equal(penc_f16_of_double(known[i].value), known[i].f16);
        assert_int_equal(penc_bf16_of_double(known[i].value), known[i].bf16);
    }
}

static void nan_stays_nan_in_every_conversion(void **state) {
    (void)state;
    static const uint64_t patterns[][4] = {
        [POSENC_F32] = {0x7fffffff, 0x7f800001, 0xffc00000, 0xffbfffff},
        [POSENC_F64] = {0x7fffffffffffffff, 0x7ff0000000000001, 0xfff8000000000000,
                        0xfff0000000010000},
        [POSENC_F16] = {0x7fff, 0x7c01, 0xfe00, 0xfdff},
        [POSENC_BF16] = {0x7fff, 0x7f81, 0xffc0, 0xffbf},
    };
    for (size_t from = 0; from < COUNT(all_dtypes); from++) {
        for (size_t to = 0; to < COUNT(all_dtypes); to++) {
            for (size_t i = 0; i < COUNT(patterns[0]); i++) {
                uint64_t bits = converted(patterns[from][i], (posenc_dtype)from, (posenc_dtype)to);
                assert_true(isnan(oracle_value(bits, (posenc_dtype)to)));
            }
        }
    }
}

static void arrays_convert_between_all_dtypes(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(20 * 16); trial++) {
        posenc_dtype from = all_dtypes[trial % 4], to = all_dtypes[trial / 4 % 4];
        size_t count = random_below(&rng, 40);
        guarded source = guarded_new(count * oracle_bytes(from), GUARD_AFTER);
        guarded target = guarded_new(count * oracle_bytes(to), (guard_side)(trial & 1));
        for (size_t i = 0; i < count; i++)
            oracle_store(source.data, from, (ptrdiff_t)i, random_bits(&rng));
        assert_int_equal(posenc_convert(source.data, from, target.data, to, count, NULL),
                         POSENC_OK);
        for (size_t i = 0; i < count; i++) {
            uint64_t bits = oracle_load(source.data, from, (ptrdiff_t)i);
            uint64_t wanted = oracle_bits_of_double(oracle_value(bits, from), to);
            assert_true(oracle_same(oracle_load(target.data, to, (ptrdiff_t)i), wanted, to));
        }
        if (from == to) /* copied, payloads of NaN too */
            assert_memory_equal(source.data, target.data, target.bytes);
        guarded_free(&source);
        guarded_free(&target);
    }
}

static void equal_dtypes_may_be_converted_in_place(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(all_dtypes); i++) {
        unsigned char bytes[24], before[24];
        random_stream rng = random_of(__func__);
        for (size_t k = 0; k < sizeof bytes; k++)
            before[k] = bytes[k] = (unsigned char)random_bits(&rng);
        assert_int_equal(posenc_convert(bytes, all_dtypes[i], bytes, all_dtypes[i],
                                        sizeof bytes / oracle_bytes(all_dtypes[i]), NULL),
                         POSENC_OK);
        assert_memory_equal(bytes, before, sizeof bytes);
    }
}

static void conversion_of_bad_arguments_is_refused(void **state) {
    (void)state;
    float from = 1.0f;
    guarded to = guarded_new(8, GUARD_AFTER);
    posenc_error error;
    assert_refused(posenc_convert(&from, (posenc_dtype)4, to.data, POSENC_F64, 1, &error), &error,
                   POSENC_OUT_OF_RANGE, "from_dtype");
    assert_refused(posenc_convert(&from, POSENC_F32, to.data, (posenc_dtype)99, 1, &error), &error,
                   POSENC_OUT_OF_RANGE, "to_dtype");
    assert_refused(posenc_convert(NULL, POSENC_F32, to.data, POSENC_F64, 1, &error), &error,
                   POSENC_NULL_POINTER, "from");
    assert_refused(posenc_convert(&from, POSENC_F32, NULL, POSENC_F64, 1, &error), &error,
                   POSENC_NULL_POINTER, "to");
    assert_refused(posenc_convert(&from, POSENC_F32, to.data, POSENC_F64, SIZE_MAX, &error), &error,
                   POSENC_OUT_OF_RANGE, "count");
    assert_int_equal(posenc_convert(NULL, POSENC_F32, NULL, POSENC_F64, 0, NULL), POSENC_OK);
    assert_true(guarded_is_untouched(&to));
    guarded_free(&to);
}

/* --- Names -------------------------------------------------------------------------------------- */

static void dtypes_have_names_and_sizes(void **state) {
    (void)state;
    static const struct {
        posenc_dtype dtype;
        size_t bytes;
        const char *names[4];
    } known[] = {{POSENC_F64, 8, {"f64", "float64", "double", NULL}},
                 {POSENC_F32, 4, {"f32", "float32", "float", NULL}},
                 {POSENC_F16, 2, {"f16", "float16", "half", NULL}},
                 {POSENC_BF16, 2, {"bf16", "bfloat16", NULL, NULL}}};
    for (size_t i = 0; i < COUNT(known); i++) {
        assert_int_equal(posenc_dtype_bytes(known[i].dtype), known[i].bytes);
        assert_string_equal(posenc_dtype_name(known[i].dtype), known[i].names[0]);
        for (const char *const *name = known[i].names; *name; name++) {
            posenc_dtype dtype = (posenc_dtype)99;
            assert_int_equal(posenc_dtype_parse(*name, &dtype, NULL), POSENC_OK);
            assert_int_equal(dtype, known[i].dtype);
        }
    }
    assert_int_equal(posenc_dtype_bytes((posenc_dtype)4), 0);
    assert_int_equal(posenc_dtype_bytes((posenc_dtype)-1), 0);
    assert_null(posenc_dtype_name((posenc_dtype)4));
}

static void unknown_dtype_names_are_refused(void **state) {
    (void)state;
    static const char *const names[] = {"", "F32", "f32 ", "fp16", "f8", "floats", "bf"};
    posenc_error error;
    for (size_t i = 0; i < COUNT(names); i++) {
        posenc_dtype dtype = (posenc_dtype)99;
        assert_refused(posenc_dtype_parse(names[i], &dtype, &error), &error, POSENC_OUT_OF_RANGE,
                       "dtype");
        assert_int_equal(dtype, 99);
    }
    posenc_dtype dtype;
    assert_refused(posenc_dtype_parse(NULL, &dtype, &error), &error, POSENC_NULL_POINTER, "text");
    assert_refused(posenc_dtype_parse("f32", NULL, &error), &error, POSENC_NULL_POINTER, "dtype");
}

static void the_version_is_that_of_the_headers(void **state) {
    (void)state;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%d.%d.%d", POSENC_VERSION_MAJOR, POSENC_VERSION_MINOR,
             POSENC_VERSION_PATCH);
    assert_string_equal(posenc_version(), wanted);
}

/* --- Errors ------------------------------------------------------------------------------------- */

/* The calls that end with each status; OUT_OF_MEMORY is provoked in test_no_memory.c. */
static posenc_status provoke_ok(posenc_error *error) {
    posenc_dtype dtype;
    return posenc_dtype_parse("f32", &dtype, error);
}

static posenc_status provoke_null_pointer(posenc_error *error) {
    posenc_dtype dtype;
    return posenc_dtype_parse(NULL, &dtype, error);
}

static posenc_status provoke_out_of_range(posenc_error *error) {
    posenc_dtype dtype;
    return posenc_dtype_parse("f31", &dtype, error);
}

static posenc_status provoke_overflow(posenc_error *error) {
    posenc_sinusoidal_spec spec = POSENC_SINUSOIDAL_INIT;
    double table[4];
    spec.dim = 4;
    return posenc_sinusoidal(&spec, NULL, SIZE_MAX / 2, POSENC_F64, 0, table, error);
}

static posenc_status provoke_overlap(posenc_error *error) {
    posenc_alibi_spec spec = POSENC_ALIBI_INIT;
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    float bias[4];
    spec.heads = 1;
    tile.queries = tile.keys = 2;
    tile.query_stride = 1;
    return posenc_alibi_bias(&spec, &tile, bias, error);
}

static posenc_status provoke_unsupported(posenc_error *error) {
    struct {
        posenc_alibi_spec spec;
        size_t of_the_future;
    } newer = {POSENC_ALIBI_INIT, 1};
    newer.spec.size = sizeof newer;
    newer.spec.heads = 1;
    double slope;
    return posenc_alibi_slopes(&newer.spec, 0, 1, &slope, error);
}

static posenc_status provoke_io(posenc_error *error) {
    posenc_npy_reader *reader;
    return posenc_npy_open(TEST_BINARY_DIR "/no/such/file.npy", &reader, NULL, error);
}

static posenc_status provoke_format(posenc_error *error) {
    posenc_npy_reader *reader;
    return posenc_npy_open(TEST_SOURCE_DIR "/LICENSE", &reader, NULL, error);
}

static void every_status_can_be_provoked_and_tells_its_argument(void **state) {
    (void)state;
    static posenc_status (*const provoke[])(posenc_error *) = {
        [POSENC_OK] = provoke_ok,
        [POSENC_NULL_POINTER] = provoke_null_pointer,
        [POSENC_OUT_OF_RANGE] = provoke_out_of_range,
        [POSENC_OVERFLOW] = provoke_overflow,
        [POSENC_OVERLAP] = provoke_overlap,
        [POSENC_UNSUPPORTED] = provoke_unsupported,
        [POSENC_OUT_OF_MEMORY] = NULL,
        [POSENC_IO] = provoke_io,
        [POSENC_FORMAT] = provoke_format,
    };
#define ONE(name, number, sentence) +1
    assert_int_equal(COUNT(provoke), 0 POSENC_STATUS_LIST(ONE));
#undef ONE
    for (size_t i = 1; i < COUNT(provoke); i++) {
        if (!provoke[i])
            continue;
        posenc_error error;
        memset(&error, GUARD_FILL, sizeof error); /* needs no initialisation */
        assert_int_equal(provoke[i](&error), i);
        assert_int_equal(error.status, i);
        assert_non_null(error.argument);
        assert_int_equal(provoke[i](NULL), i);
    }
    posenc_error error;
    memset(&error, GUARD_FILL, sizeof error);
    assert_int_equal(provoke_ok(&error), POSENC_OK);
    assert_true(guard_is_filled(&error, sizeof error)); /* written only on failure */
}

static void statuses_have_names_numbers_and_sentences(void **state) {
    (void)state;
    static const char *const names[] = {"OK",      "NULL_POINTER", "OUT_OF_RANGE",  "OVERFLOW",
                                        "OVERLAP", "UNSUPPORTED",  "OUT_OF_MEMORY", "IO",
                                        "FORMAT"};
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_string_equal(posenc_status_name((posenc_status)i), names[i]);
        assert_true(strlen(posenc_status_sentence((posenc_status)i)) >= 4);
    }
    assert_string_equal(posenc_status_sentence(POSENC_OK), "done");
    assert_string_equal(posenc_status_sentence(POSENC_OUT_OF_RANGE),
                        "an argument is outside its valid range");
    assert_string_equal(posenc_status_name((posenc_status)COUNT(names)), "UNKNOWN");
    assert_string_equal(posenc_status_name((posenc_status)-1), "UNKNOWN");
    assert_string_equal(posenc_status_sentence((posenc_status)1000), "unknown status");
}

static posenc_error error_with_everything(void) {
    posenc_error error;
    memset(&error, 0, sizeof error);
    error.status = POSENC_OUT_OF_RANGE;
    error.argument = "rotary_dim";
    error.value.kind = POSENC_NUMBER_SIZE;
    error.value.as.size = 18446744073709551615u;
    error.must = "be even and from 2 to head_dim";
    error.limit_name = "head_dim";
    error.limit.kind = POSENC_NUMBER_SIZE;
    error.limit.as.size = 64;
    error.place_name = "index";
    error.place = -3;
    return error;
}

static void assert_text(const posenc_error *error, const char *wanted) {
    char text[400];
    assert_int_equal(posenc_error_text(error, text, sizeof text), strlen(wanted));
    assert_string_equal(text, wanted);
}

static void errors_read_as_sentences(void **state) {
    (void)state;
    posenc_error error = error_with_everything();
    assert_text(&error,
                "rotary_dim is 18446744073709551615 but must be even and from 2 to head_dim "
                "(head_dim is 64), at index -3");
    error.place_name = NULL;
    error.value.kind = POSENC_NUMBER_INTEGER;
    error.value.as.integer = INT64_MIN;
    assert_text(&error,
                "rotary_dim is -9223372036854775808 but must be even and from 2 to head_dim "
                "(head_dim is 64)");
    error.limit_name = NULL;
    error.value.kind = POSENC_NUMBER_REAL;
    error.value.as.real = 0.1;
    assert_text(&error,
                "rotary_dim is 0.10000000000000001 but must be even and from 2 to head_dim");
    error.value.kind = POSENC_NUMBER_NONE;
    assert_text(&error, "rotary_dim must be even and from 2 to head_dim");
    error.os_error = ENOENT;
    assert_text(&error,
                "rotary_dim must be even and from 2 to head_dim: No such file or directory");
    error.os_error = 0;
    error.argument = error.must = NULL;
    assert_text(&error, "the call must be valid");
    error.status = POSENC_OK;
    assert_text(&error, "no error");
    assert_text(NULL, "no error");
}

static void error_texts_are_cut_to_the_buffer(void **state) {
    (void)state;
    posenc_error error = error_with_everything();
    char whole[400];
    size_t length = posenc_error_text(&error, whole, sizeof whole);
    assert_int_equal(posenc_error_text(&error, NULL, 0), length);
    for (size_t capacity = 0; capacity <= length + 3; capacity++) {
        guarded buffer = guarded_new(capacity, GUARD_AFTER);
        assert_int_equal(posenc_error_text(&error, buffer.data, capacity), length);
        if (capacity) {
            size_t kept = capacity - 1 < length ? capacity - 1 : length;
            assert_memory_equal(buffer.data, whole, kept);
            assert_int_equal(((char *)buffer.data)[kept], 0);
            assert_true(guard_is_filled((char *)buffer.data + kept + 1, capacity - kept - 1));
        }
        guarded_free(&buffer);
    }
}

/* --- Structs that begin with their size --------------------------------------------------------- */

static posenc_status use_spec(const void *object, posenc_error *error) {
    posenc_frequencies *frequencies;
    posenc_status status = posenc_frequencies_create(object, 0, &frequencies, NULL, error);
    posenc_frequencies_destroy(frequencies);
    return status;
}

static posenc_status use_rows(const void *object, posenc_error *error) {
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_frequencies *frequencies;
    spec.head_dim = 2;
    assert_int_equal(posenc_frequencies_create(&spec, 0, &frequencies, NULL, NULL), POSENC_OK);
    int64_t position = 1;
    posenc_status status = posenc_angles(frequencies, &position, 1, object, error);
    posenc_rotation rotation;
    assert_int_equal(posenc_rotation_of(frequencies, object, 1, &rotation, NULL), status);
    posenc_frequencies_destroy(frequencies);
    return status;
}

/* posenc_rotate of one pair with each of its structs in turn. */
static posenc_status use_in_rotate(const posenc_rotation *rotation, const posenc_tensor *tensor,
                                   const posenc_rotate_options *options, posenc_error *error) {
    static const float table[] = {1.0f};
    posenc_rotation own_rotation = POSENC_ROTATION_INIT;
    posenc_tensor own_tensor = posenc_tensor_dense(POSENC_F32, 1, 1, 1, 2);
    own_rotation.cos = own_rotation.sin = table;
    own_rotation.tokens = 1;
    own_rotation.rotary_dim = 2;
    float x[2] = {1.0f, 2.0f};
    return posenc_rotate(rotation ? rotation : &own_rotation, tensor ? tensor : &own_tensor, x, x,
                         options, error);
}

static posenc_status use_rotation(const void *object, posenc_error *error) {
    return use_in_rotate(object, NULL, NULL, error);
}

static posenc_status use_tensor(const void *object, posenc_error *error) {
    return use_in_rotate(NULL, object, NULL, error);
}

static posenc_status use_options(const void *object, posenc_error *error) {
    return use_in_rotate(NULL, NULL, object, error);
}

static posenc_status use_output_tensor(const void *object, posenc_error *error) {
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.output = object;
    return use_in_rotate(NULL, NULL, &options, error);
}

static posenc_status use_sinusoidal_spec(const void *object, posenc_error *error) {
    double row[2];
    return posenc_sinusoidal(object, NULL, 1, POSENC_F64, 0, row, error);
}

static posenc_status use_alibi_spec(const void *object, posenc_error *error) {
    double slope;
    return posenc_alibi_slopes(object, 0, 1, &slope, error);
}

static posenc_status use_tile(const void *object, posenc_error *error) {
    posenc_alibi_spec spec = POSENC_ALIBI_INIT;
    spec.heads = 1;
    float bias[1];
    return posenc_alibi_bias(&spec, object, bias, error);
}

typedef posenc_status use_struct(const void *object, posenc_error *error);

/* A valid struct of `bytes` bytes with `size` in front and `extra` in the last byte that it claims.
 * What lies behind that is not 0 and must not be read. */
static posenc_status use_resized(use_struct *use, const void *valid, size_t bytes, size_t size,
                                 unsigned char extra, posenc_error *error) {
    size_t claimed = size > bytes ? size : bytes;
    guarded room = guarded_new((claimed + 7) / 8 * 8, GUARD_AFTER);
    memset(room.data, 0, claimed);
    memcpy(room.data, valid, bytes);
    memcpy(room.data, &size, sizeof size);
    if (extra)
        ((unsigned char *)room.data)[size - 1] = extra;
    posenc_status status = use(room.data, error);
    guarded_free(&room);
    return status;
}

static void assert_size_is_checked(use_struct *use, const char *argument, const void *valid,
                                   size_t bytes) {
    posenc_error error;
    assert_int_equal(use_resized(use, valid, bytes, bytes, 0, &error), POSENC_OK);
    assert_int_equal(use_resized(use, valid, bytes, bytes + 8, 0, &error), POSENC_OK);
    assert_int_equal(use_resized(use, valid, bytes, 4096, 0, &error), POSENC_OK);
    const size_t wrong[] = {0, 1, 8, bytes - 8, bytes - 1, 4097};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_refused(use_resized(use, valid, bytes, wrong[i], 0, &error), &error,
                       POSENC_OUT_OF_RANGE, argument);
        assert_int_equal(error.value.as.size, wrong[i]);
    }
    for (size_t size = bytes + 1; size < bytes + 20; size++)
        assert_refused(use_resized(use, valid, bytes, size, 1, &error), &error, POSENC_UNSUPPORTED,
                       argument);
}

static void sizes_of_specs_and_rows_are_checked(void **state) {
    (void)state;
    static float row[2];
    posenc_spec spec = POSENC_SPEC_INIT;
    spec.head_dim = 2;
    assert_size_is_checked(use_spec, "spec", &spec, sizeof spec);
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.cos = row;
    rows.layout = POSENC_ROWS_COS_SIN;
    assert_size_is_checked(use_rows, "rows", &rows, sizeof rows);
    posenc_sinusoidal_spec sinusoidal = POSENC_SINUSOIDAL_INIT;
    sinusoidal.dim = 2;
    assert_size_is_checked(use_sinusoidal_spec, "spec", &sinusoidal, sizeof sinusoidal);
    posenc_alibi_spec alibi = POSENC_ALIBI_INIT;
    alibi.heads = 1;
    assert_size_is_checked(use_alibi_spec, "spec", &alibi, sizeof alibi);
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    tile.queries = tile.keys = 1;
    assert_size_is_checked(use_tile, "tile", &tile, sizeof tile);
}

static void sizes_of_the_structs_of_rotate_are_checked(void **state) {
    (void)state;
    static const float table[] = {1.0f};
    posenc_rotation rotation = POSENC_ROTATION_INIT;
    rotation.cos = rotation.sin = table;
    rotation.tokens = 1;
    rotation.rotary_dim = 2;
    assert_size_is_checked(use_rotation, "rotation", &rotation, sizeof rotation);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, 1, 1, 2);
    assert_size_is_checked(use_tensor, "tensor", &tensor, sizeof tensor);
    assert_size_is_checked(use_output_tensor, "options.output", &tensor, sizeof tensor);
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    assert_size_is_checked(use_options, "options", &options, sizeof options);
}

/* --- Proofs about strides ----------------------------------------------------------------------- */

enum { ARENA = 1 << 14 };

/* A strided array in an arena; `start` is its data pointer, in bytes from the arena's middle. */
typedef struct view {
    size_t element;
    int axes;
    size_t count[PENC_MAP_AXES];
    ptrdiff_t stride[PENC_MAP_AXES];
    ptrdiff_t start;
} view;

/* Tells for each byte of the arena whether 0, 1 or more (2) elements of the view lie on it. */
static void count_bytes(const view *v, unsigned char *bytes) {
    size_t total = 1;
    memset(bytes, 0, ARENA);
    for (int axis = 0; axis < v->axes; axis++)
        total *= v->count[axis];
    for (size_t i = 0; i < total; i++) {
        ptrdiff_t at = 0;
        size_t rest = i;
        for (int axis = 0; axis < v->axes; axis++) {
            at += (ptrdiff_t)(rest % v->count[axis]) * v->stride[axis];
            rest /= v->count[axis];
        }
        at = ARENA / 2 + v->start + at * (ptrdiff_t)v->element;
        for (size_t byte = 0; byte < v->element; byte++, at++)
            bytes[at] = bytes[at] ? 2 : 1;
    }
}

static penc_memory_map map_of(const view *v) {
    penc_memory_map map;
    assert_true(penc_map_array(&map, v->element, v->axes, v->count, v->stride));
    return map;
}

static int is_proven_disjoint(const view *a, const view *b) {
    static char arena[ARENA];
    penc_memory_map a_map = map_of(a), b_map = map_of(b);
    const char *middle = arena + ARENA / 2;
    int proven = penc_maps_disjoint(&a_map, middle + a->start, &b_map, middle + b->start);
    return proven;
}

static view random_view(random_stream *rng) {
    static const ptrdiff_t strides[] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24};
    view v = {
        (size_t)1 << random_below(rng, 4), (int)random_below(rng, PENC_MAP_AXES + 1), {0}, {0}, 0};
    for (int axis = 0; axis < v.axes; axis++) {
        v.count[axis] = random_below(rng, 20) ? 1 + random_below(rng, 4) : 0;
        v.stride[axis] = strides[random_below(rng, COUNT(strides))];
        if (random_bits(rng) & 1)
            v.stride[axis] = -v.stride[axis];
    }
    v.start = (ptrdiff_t)v.element * random_between(rng, -24, 24);
    return v;
}

static void maps_know_the_bytes_that_they_reach(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    static unsigned char bytes[ARENA];
    for (size_t trial = 0; trial < random_trials(3000); trial++) {
        view v = random_view(&rng);
        penc_memory_map map = map_of(&v);
        count_bytes(&v, bytes);
        ptrdiff_t low = 0, high = ARENA;
        while (low < ARENA && !bytes[low])
            low++;
        while (high > low && !bytes[high - 1])
            high--;
        if (low == ARENA) { /* no element */
            assert_true(map.low == map.high);
        } else {
            assert_int_equal(map.low, low - ARENA / 2 - v.start);
            assert_int_equal(map.high, high - ARENA / 2 - v.start);
        }
    }
}

static void proofs_of_single_writes_hold_byte_for_byte(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    static unsigned char bytes[ARENA];
    size_t proven = 0;
    for (size_t trial = 0; trial < random_trials(6000); trial++) {
        view v = random_view(&rng);
        penc_memory_map map = map_of(&v);
        if (!penc_map_writes_once(&map))
            continue;
        proven++;
        count_bytes(&v, bytes);
        assert_null(memchr(bytes, 2, sizeof bytes));
    }
    assert_true(proven > 500);
}

static void proofs_of_disjointness_hold_byte_for_byte(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    static unsigned char a_bytes[ARENA], b_bytes[ARENA];
    size_t interleaved = 0;
    for (size_t trial = 0; trial < random_trials(20000); trial++) {
        view a = random_view(&rng), b = random_view(&rng);
        if (random_bits(&rng) & 1) { /* often of one period, as in packed arrays */
            b.element = a.element;
            b.start = a.start + (ptrdiff_t)a.element * random_between(&rng, -12, 12);
            memcpy(b.stride, a.stride, sizeof b.stride);
        }
        if (!is_proven_disjoint(&a, &b))
            continue;
        count_bytes(&a, a_bytes);
        count_bytes(&b, b_bytes);
        for (size_t i = 0; i < ARENA; i++)
            assert_false(a_bytes[i] && b_bytes[i]);
        penc_memory_map a_map = map_of(&a), b_map = map_of(&b);
        interleaved += a.start + a_map.low < b.start + b_map.high &&
                       b.start + b_map.low < a.start + a_map.high;
    }
    assert_true(interleaved > 100);
}

/* Dense arrays in any order of their axes, some of them backwards, with gaps: all write once. */
static void single_writes_are_proven_for_every_order_of_axes(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(1000); trial++) {
        view v = {4, PENC_MAP_AXES, {0}, {0}, 0};
        ptrdiff_t reach = 1;
        int order[PENC_MAP_AXES] = {0, 1, 2, 3};
        for (int i = PENC_MAP_AXES - 1; i >= 0; i--) {
            int other = (int)random_below(&rng, (size_t)i + 1), axis = order[other];
            order[other] = order[i];
            v.count[axis] = 1 + random_below(&rng, 4);
            v.stride[axis] = random_bits(&rng) & 1 ? reach : -reach;
            reach = reach * (ptrdiff_t)v.count[axis] + (ptrdiff_t)random_below(&rng, 3);
        }
        penc_memory_map map = map_of(&v);
        assert_true(penc_map_writes_once(&map));
    }
}

static void assert_disjoint_both_ways(const view *a, const view *b) {
    assert_true(is_proven_disjoint(a, b));
    assert_true(is_proven_disjoint(b, a));
}

/* q, k and v of one array, `parts` channels apart; each a tensor of batch, tokens, heads, head_dim. */
static void assert_packed_parts_are_disjoint(const view *part, ptrdiff_t step) {
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            view a = *part, b = *part;
            a.start = i * step * (ptrdiff_t)part->element;
            b.start = j * step * (ptrdiff_t)part->element;
            if (i != j)
                assert_disjoint_both_ways(&a, &b);
            else
                assert_false(is_proven_disjoint(&a, &b));
        }
    }
}

static void packed_queries_keys_and_values_are_proven_disjoint(void **state) {
    (void)state;
    enum { B = 2, T = 3, H = 4, D = 6 };
    const size_t shape[4] = {B, T, H, D};
    static const struct {
        ptrdiff_t stride[4], step;
    } packed[] = {
        {{T * 3 * H * D, 3 * H * D, D, 1}, H * D},   /* tokens, 3, heads, head_dim */
        {{T * 3 * H * D, 3 * H * D, 3 * D, 1}, D},   /* tokens, heads, 3, head_dim */
        {{T * 3 * H * D, 3 * H * D, 3 * D, 3}, 1},   /* tokens, heads, head_dim, 3 */
        {{3 * H * D, B * 3 * H * D, D, 1}, H * D},   /* tokens, batch, 3, heads, head_dim */
        {{T * 3 * H * D, D, 3 * T * D, 1}, T * D},   /* batch, heads, 3, tokens, head_dim */
        {{H * T * D, D, T * D, 1}, B * H * T * D},   /* 3, batch, heads, tokens, head_dim */
        {{T * 3 * H * D, -3 * H * D, D, 1}, H * D},  /* tokens backwards */
        {{T * 3 * H * D, 3 * H * D, -D, -1}, H * D}, /* heads and channels backwards */
        {{(T + 1) * (3 * H * D + 1), 3 * H * D + 1, D, 1}, H * D}, /* padded */
    };
    for (size_t i = 0; i < COUNT(packed); i++) {
        view part = {4, 4, {0}, {0}, 0};
        memcpy(part.count, shape, sizeof shape);
        memcpy(part.stride, packed[i].stride, sizeof part.stride);
        assert_packed_parts_are_disjoint(&part, packed[i].step);
    }
}

static void grouped_heads_and_tables_in_one_row_are_proven_disjoint(void **state) {
    (void)state;
    enum { T = 5, Q = 8, K = 2, D = 6, ROW = (Q + 2 * K) * D };
    view q = {2, 4, {1, T, Q, D}, {0, ROW, D, 1}, 0};
    view k = {2, 4, {1, T, K, D}, {0, ROW, D, 1}, 2 * Q * D};
    view v = {2, 4, {1, T, K, D}, {0, ROW, D, 1}, 2 * (Q + K) * D};
    assert_disjoint_both_ways(&q, &k);
    assert_disjoint_both_ways(&q, &v);
    assert_disjoint_both_ways(&k, &v);
    view cosine = {4, 2, {T, D}, {2 * D, 1}, 0}, sine = {4, 2, {T, D}, {2 * D, 1}, 4 * D};
    assert_disjoint_both_ways(&cosine, &sine);
    view even = {8, 2, {T, D}, {2 * D, 2}, 0}, odd = {8, 2, {T, D}, {2 * D, 2}, 8};
    assert_disjoint_both_ways(&even, &odd);
}

static void maps_that_do_not_fit_the_address_space_are_refused(void **state) {
    (void)state;
    static const struct {
        size_t count[2];
        ptrdiff_t stride[2];
    } wrong[] = {{{SIZE_MAX, 1}, {1, 1}},
                 {{2, 1}, {PTRDIFF_MAX, 1}},
                 {{2, 1}, {PTRDIFF_MIN, 1}},
                 {{SIZE_MAX / 2 + 2, 2}, {0, 1}},
                 {{(size_t)1 << 32, (size_t)1 << 32}, {0, 0}},
                 {{(size_t)1 << 61, 1}, {0, 1}}, /* repeated, but more than memory can hold */
                 {{3, 3}, {PTRDIFF_MAX / 16, -(PTRDIFF_MAX / 16)}},
                 {{(size_t)1 << 60, 2}, {1, 1}}};
    penc_memory_map map;
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(penc_map_array(&map, 4, 2, wrong[i].count, wrong[i].stride));
    const size_t single[2] = {1, 1}, none[2] = {SIZE_MAX, 0};
    const ptrdiff_t stride[2] = {PTRDIFF_MIN, PTRDIFF_MAX};
    assert_true(penc_map_array(&map, 4, 2, single, stride)); /* these strides are not used */
    assert_true(map.high - map.low == 4);
    assert_true(penc_map_array(&map, 4, 2, none, stride));
    assert_true(map.low == map.high);
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
        cmocka_unit_test(every_16_bit_pattern_widens_exactly_and_comes_back),
        cmocka_unit_test(narrowing_is_right_at_every_midpoint),
        cmocka_unit_test(narrowing_rounds_any_float64_once),
        cmocka_unit_test(narrowing_to_float32_is_right_at_midpoints),
        cmocka_unit_test(narrowing_of_known_numbers),
        cmocka_unit_test(nan_stays_nan_in_every_conversion),
        cmocka_unit_test(arrays_convert_between_all_dtypes),
        cmocka_unit_test(equal_dtypes_may_be_converted_in_place),
        cmocka_unit_test(conversion_of_bad_arguments_is_refused),
        cmocka_unit_test(dtypes_have_names_and_sizes),
        cmocka_unit_test(unknown_dtype_names_are_refused),
        cmocka_unit_test(the_version_is_that_of_the_headers),
        cmocka_unit_test(every_status_can_be_provoked_and_tells_its_argument),
        cmocka_unit_test(statuses_have_names_numbers_and_sentences),
        cmocka_unit_test(errors_read_as_sentences),
        cmocka_unit_test(error_texts_are_cut_to_the_buffer),
        cmocka_unit_test(sizes_of_specs_and_rows_are_checked),
        cmocka_unit_test(sizes_of_the_structs_of_rotate_are_checked),
        cmocka_unit_test(maps_know_the_bytes_that_they_reach),
        cmocka_unit_test(proofs_of_single_writes_hold_byte_for_byte),
        cmocka_unit_test(proofs_of_disjointness_hold_byte_for_byte),
        cmocka_unit_test(single_writes_are_proven_for_every_order_of_axes),
        cmocka_unit_test(packed_queries_keys_and_values_are_proven_disjoint),
        cmocka_unit_test(grouped_heads_and_tables_in_one_row_are_proven_disjoint),
        cmocka_unit_test(maps_that_do_not_fit_the_address_space_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
