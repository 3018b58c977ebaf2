/* Real arithmetic by MPFR and one rounding. SPDX-License-Identifier: MIT */
#include "oracle.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Significant bits, the exponent of the smallest positive number, and bytes. */
typedef struct number_format {
    int bits, min_exponent;
    size_t bytes;
} number_format;

static const number_format formats[] = {[POSENC_F32] = {24, -149, 4},
                                        [POSENC_F64] = {53, -1074, 8},
                                        [POSENC_F16] = {11, -24, 2},
                                        [POSENC_BF16] = {8, -133, 2}};

size_t oracle_bytes(posenc_dtype dtype) {
    return formats[dtype].bytes;
}

void oracle_frequency(mpfr_ptr w, double scale, double base, uint64_t numerator,
                      uint64_t denominator) {
    mpfr_t exponent;
    mpfr_init2(exponent, ORACLE_BITS);
    mpfr_set_ui(exponent, numerator, MPFR_RNDN);
    mpfr_div_ui(exponent, exponent, denominator, MPFR_RNDN);
    mpfr_neg(exponent, exponent, MPFR_RNDN);
    mpfr_set_d(w, base, MPFR_RNDN);
    mpfr_pow(w, w, exponent, MPFR_RNDN);
    mpfr_mul_d(w, w, scale, MPFR_RNDN);
    mpfr_clear(exponent);
}

void oracle_sincos(mpfr_ptr cosine, mpfr_ptr sine, double position, mpfr_srcptr w) {
    mpfr_t angle;
    mpfr_init2(angle, ORACLE_BITS);
    mpfr_mul_d(angle, w, position, MPFR_RNDN);
    mpfr_sin_cos(sine, cosine, angle, MPFR_RNDN);
    mpfr_clear(angle);
}

size_t oracle_closest_positions(mpfr_srcptr w, int64_t *positions, size_t capacity) {
    mpfr_t x, whole;
    mpfr_inits2(ORACLE_BITS, x, whole, (mpfr_ptr)NULL);
    mpfr_const_pi(x, MPFR_RNDN);
    mpfr_div(x, w, x, MPFR_RNDN);
    mpfr_mul_2ui(x, x, 1, MPFR_RNDN);
    double before = 0.0, denominator = 1.0; /* exact up to 2^53 */
    size_t count = 0;
    while (count < capacity && denominator <= 0x1p40) {
        positions[count++] = (int64_t)denominator;
        mpfr_floor(whole, x);
        mpfr_sub(x, x, whole, MPFR_RNDN);
        if (mpfr_zero_p(x))
            break;
        mpfr_ui_div(x, 1, x, MPFR_RNDN);
        double next = floor(mpfr_get_d(x, MPFR_RNDD)) * denominator + before;
        before = denominator;
        denominator = next;
    }
    mpfr_clears(x, whole, (mpfr_ptr)NULL);
    return count;
}

void oracle_slope(mpfr_ptr slope, double max_bias, uint64_t numerator, uint64_t denominator) {
    mpfr_set_d(slope, -max_bias, MPFR_RNDN);
    mpfr_mul_ui(slope, slope, numerator, MPFR_RNDN);
    mpfr_div_ui(slope, slope, denominator, MPFR_RNDN);
    mpfr_exp2(slope, slope, MPFR_RNDN);
}

static uint64_t infinity_bits(const number_format *format) {
    uint64_t exponents = (UINT64_C(1) << (8 * format->bytes - (size_t)format->bits)) - 1;
    return exponents << (format->bits - 1);
}

/* The exponent of the last place of a number in [2^(exponent - 1), 2^exponent). */
static long last_place(long exponent, const number_format *format) {
    long place = exponent - format->bits;
    return place < format->min_exponent ? format->min_exponent : place;
}

double oracle_ulp(long exponent, posenc_dtype dtype) {
    return ldexp(1.0, (int)last_place(exponent, &formats[dtype]));
}

/* |x| in steps of the last place that its binade has, denormals' places being the smallest; a carry
 * into the next binade counts on rightly, since patterns are in the order of their numbers. */
static uint64_t magnitude_bits(mpfr_srcptr x, const number_format *format) {
    long place = last_place(mpfr_get_exp(x), format);
    mpfr_t steps;
    mpfr_init2(steps, mpfr_get_prec(x));
    mpfr_mul_2si(steps, x, -place, MPFR_RNDN);
    mpfr_rint(steps, steps, MPFR_RNDN); /* ties to even */
    mpfr_abs(steps, steps, MPFR_RNDN);
    uint64_t bits = mpfr_get_ui(steps, MPFR_RNDN);
    mpfr_clear(steps);
    bits += (uint64_t)(place - format->min_exponent) << (format->bits - 1);
    return bits < infinity_bits(format) ? bits : infinity_bits(format);
}

uint64_t oracle_bits(mpfr_srcptr x, posenc_dtype dtype) {
    const number_format *format = &formats[dtype];
    uint64_t sign = mpfr_signbit(x) ? UINT64_C(1) << (8 * format->bytes - 1) : 0;
    if (mpfr_nan_p(x))
        return infinity_bits(format) | UINT64_C(1) << (format->bits - 2);
    if (mpfr_inf_p(x))
        return sign | infinity_bits(format);
    return mpfr_zero_p(x) ? sign : sign | magnitude_bits(x, format);
}

uint64_t oracle_bits_of_double(double x, posenc_dtype dtype) {
    mpfr_t exact;
    mpfr_init2(exact, 64);
    mpfr_set_d(exact, x, MPFR_RNDN);
    uint64_t bits = oracle_bits(exact, dtype);
    mpfr_clear(exact);
    return bits;
}

double oracle_value(uint64_t bits, posenc_dtype dtype) {
    const number_format *format = &formats[dtype];
    uint64_t sign = bits >> (8 * format->bytes - 1);
    uint64_t magnitude = bits & ~(sign << (8 * format->bytes - 1));
    double value;
    if (magnitude >= infinity_bits(format)) {
        value = magnitude == infinity_bits(format) ? (double)INFINITY : (double)NAN;
    } else {
        uint64_t hidden = UINT64_C(1) << (format->bits - 1), exponent = magnitude / hidden;
        uint64_t fraction = magnitude % hidden;
        if (exponent)
            fraction += hidden;
        value = ldexp((double)fraction, format->min_exponent + (exponent ? (int)exponent - 1 : 0));
    }
    return sign ? -value : value;
}

uint64_t oracle_load(const void *array, posenc_dtype dtype, ptrdiff_t index) {
    const char *from = (const char *)array + index * (ptrdiff_t)formats[dtype].bytes;
    uint64_t wide;
    uint32_t middle;
    uint16_t narrow;
    switch (formats[dtype].bytes) {
    case 8:
        memcpy(&wide, from, sizeof wide);
        return wide;
    case 4:
        memcpy(&middle, from, sizeof middle);
        return middle;
    default:
        memcpy(&narrow, from, sizeof narrow);
        return narrow;
    }
}

void oracle_store(void *array, posenc_dtype dtype, ptrdiff_t index, uint64_t bits) {
    char *to = (char *)array + index * (ptrdiff_t)formats[dtype].bytes;
    uint32_t middle = (uint32_t)bits;
    uint16_t narrow = (uint16_t)bits;
    if (formats[dtype].bytes == 8)
        memcpy(to, &bits, sizeof bits);
    else if (formats[dtype].bytes == 4)
        memcpy(to, &middle, sizeof middle);
    else
        memcpy(to, &narrow, sizeof narrow);
}

int oracle_same(uint64_t a, uint64_t b, posenc_dtype dtype) {
    return a == b || (isnan(oracle_value(a, dtype)) && isnan(oracle_value(b, dtype)));
}

/* |got - x| in `distance`. */
static void distance_of(mpfr_ptr distance, double got, mpfr_srcptr x) {
    mpfr_sub_d(distance, x, got, MPFR_RNDN);
    mpfr_abs(distance, distance, MPFR_RNDN);
}

double oracle_ulps(double got, mpfr_srcptr x) {
    mpfr_t distance;
    mpfr_init2(distance, ORACLE_BITS);
    distance_of(distance, got, x);
    if (!mpfr_zero_p(x))
        mpfr_mul_2si(distance, distance, 53 - (long)mpfr_get_exp(x), MPFR_RNDN);
    double ulps = mpfr_get_d(distance, MPFR_RNDU);
    mpfr_clear(distance);
    return ulps;
}

int oracle_is_close(double got, mpfr_srcptr x) {
    mpfr_t distance, allowed;
    mpfr_inits2(ORACLE_BITS, distance, allowed, (mpfr_ptr)NULL);
    distance_of(distance, got, x);
    mpfr_set_ui_2exp(allowed, 1, -75, MPFR_RNDN);
    if (!mpfr_zero_p(x)) {
        mpfr_t ulp;
        mpfr_init2(ulp, ORACLE_BITS);
        mpfr_set_ui_2exp(ulp, 1, mpfr_get_exp(x) - 53, MPFR_RNDN);
        mpfr_add(allowed, allowed, ulp, MPFR_RNDN);
        mpfr_clear(ulp);
    }
    int close = !isnan(got) && mpfr_cmp(distance, allowed) <= 0;
    mpfr_clears(distance, allowed, (mpfr_ptr)NULL);
    return close;
}

void oracle_assert(const void *array, posenc_dtype dtype, ptrdiff_t index, mpfr_srcptr x,
                   const char *format, ...) {
    uint64_t got = oracle_load(array, dtype, index), wanted = oracle_bits(x, dtype);
    double value = oracle_value(got, dtype);
    if (got == wanted || (dtype == POSENC_F64 && oracle_is_close(value, x)))
        return;
    char what[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fail_msg("%s, %zu-bit element %td: got %.17g (%#llx), wanted %.17g (%#llx), off by %g ulp",
             what, 8 * formats[dtype].bytes, index, value, (unsigned long long)got,
             oracle_value(wanted, dtype), (unsigned long long)wanted, oracle_ulps(value, x));
}
