/* Logarithms and powers of two in wide fixed point. SPDX-License-Identifier: MIT */
#include "base/power.h"

#include <math.h>

/* Constants made by tools/constants.py: floor(x * 2^256), lowest limb first. */
const penc_wide penc_inverse_turn = {{UINT64_C(0x7f9458eaf7aef158), UINT64_C(0x36d8a5664f10e410),
                                      UINT64_C(0x7f09d5f47d4d3770), UINT64_C(0x28be60db9391054a),
                                      UINT64_C(0x0000000000000000)}};
const penc_wide penc_turn = {{UINT64_C(0x105df531d89cd912), UINT64_C(0x48127044533e63a0),
                              UINT64_C(0x2633145c06e0e689), UINT64_C(0x487ed5110b4611a6),
                              UINT64_C(0x0000000000000006)}};
const penc_wide penc_ln2 = {{UINT64_C(0x8a0d175b8baafa2b), UINT64_C(0x40f343267298b62d),
                             UINT64_C(0xc9e3b39803f2f6af), UINT64_C(0xb17217f7d1cf79ab),
                             UINT64_C(0x0000000000000000)}};
static const penc_wide penc_log2_e = {{UINT64_C(0x164a2cd9a342648f), UINT64_C(0xd6aef551bad2b4b1),
                                       UINT64_C(0x7d0ffda0d23a7d11), UINT64_C(0x71547652b82fe177),
                                       UINT64_C(0x0000000000000001)}};

/* atanh(z) = z + z^3/3 + z^5/5 + ... for 0 <= z < 0.2: each term takes at least 4.6 bits. */
static penc_wide penc_atanh(const penc_wide *z) {
    penc_wide square = penc_wide_multiply(z, z), power = *z, sum = *z;
    for (uint64_t k = 3; !penc_wide_is_zero(&power); k += 2) {
        power = penc_wide_multiply(&power, &square);
        penc_wide term = penc_wide_divide_by(&power, k);
        sum = penc_wide_add(&sum, &term);
    }
    return sum;
}

/* |value| + sign * part, where part < 1 and the result keeps the sign of value unless value is 0.
 */
static penc_exponent penc_exponent_sum(int value, const penc_wide *part, int part_negative) {
    penc_exponent e = {value < 0, penc_wide_of_integer((uint64_t)(value < 0 ? -value : value))};
    if (value == 0) {
        e.negative = part_negative;
        e.magnitude = *part;
    } else if (e.negative == part_negative) {
        e.magnitude = penc_wide_add(&e.magnitude, part);
    } else {
        e.magnitude = penc_wide_subtract(&e.magnitude, part);
    }
    return e;
}

penc_exponent penc_log2(double x) {
    /* x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)); log2 m = 2 atanh((m-1)/(m+1)) / ln 2. */
    int exponent;
    uint64_t m = penc_split_double(x, &exponent);
    while (m < UINT64_C(1) << 52) { /* denormals */
        m <<= 1;
        exponent--;
    }
    uint64_t one = UINT64_C(1) << 52;
    if (m > UINT64_C(0x16a09e667f3bcd)) /* sqrt(2) * 2^52 */
        one <<= 1;
    exponent += one == UINT64_C(1) << 52 ? 52 : 53;
    penc_wide z = penc_wide_ratio(m > one ? m - one : one - m, m + one);
    penc_wide log = penc_atanh(&z);
    log = penc_wide_multiply(&log, &penc_log2_e);
    log = penc_wide_shift(&log, 1);
    return penc_exponent_sum(exponent, &log, m < one);
}

penc_exponent penc_exponent_subtract(const penc_exponent *a, const penc_exponent *b) {
    penc_exponent result = *a;
    if (a->negative != b->negative) {
        result.magnitude = penc_wide_add(&a->magnitude, &b->magnitude);
    } else if (penc_wide_compare(&a->magnitude, &b->magnitude) >= 0) {
        result.magnitude = penc_wide_subtract(&a->magnitude, &b->magnitude);
    } else {
        result.magnitude = penc_wide_subtract(&b->magnitude, &a->magnitude);
        result.negative = !a->negative;
    }
    return result;
}

penc_exponent penc_log2_wide(const penc_wide *x) {
    /* x = d * (1 + r) with a float64 d just below x, so that r < 2^-51; ln(1 + r) = r - r^2/2 + ... */
    int lead = penc_wide_log2_floor(x);
    penc_wide top = penc_wide_shift(x, 52 - lead); /* 53 bits in the integer limb */
    uint64_t d = top.limb[PENC_WIDE_LIMBS - 1];
    penc_wide one = penc_wide_of_integer(1), r = penc_wide_divide_by(&top, d);
    r = penc_wide_subtract(&r, &one);
    penc_exponent log_d = penc_log2(ldexp((double)d, lead - 52));
    penc_wide term = r, log = {{0}};
    for (uint64_t k = 1; !penc_wide_is_zero(&term); k++) {
        penc_wide part = penc_wide_divide_by(&term, k);
        log = k % 2 ? penc_wide_add(&log, &part) : penc_wide_subtract(&log, &part);
        term = penc_wide_multiply(&term, &r);
    }
    penc_exponent log_rest = {1, penc_wide_multiply(&log, &penc_log2_e)};
    return penc_exponent_subtract(&log_d, &log_rest);
}

penc_exponent penc_exponent_of(double x) {
    penc_exponent e = {x < 0, penc_wide_of_double(x < 0 ? -x : x)};
    return e;
}

penc_exponent penc_exponent_scale(const penc_exponent *e, uint64_t numerator,
                                  uint64_t denominator) {
    penc_exponent result = *e;
    result.magnitude = penc_wide_multiply_by(&result.magnitude, numerator);
    result.magnitude = penc_wide_divide_by(&result.magnitude, denominator);
    return result;
}

/* exp(x) for 0 <= x < ln 2: the Taylor series of x / 2^6, squared six times. */
static penc_wide penc_exp(const penc_wide *x) {
    enum { HALVINGS = 6 };
    penc_wide small = penc_wide_shift(x, -HALVINGS);
    penc_wide term = penc_wide_of_integer(1), sum = term;
    for (uint64_t k = 1; !penc_wide_is_zero(&term); k++) {
        term = penc_wide_multiply(&term, &small);
        term = penc_wide_divide_by(&term, k);
        sum = penc_wide_add(&sum, &term);
    }
    for (int i = 0; i < HALVINGS; i++)
        sum = penc_wide_multiply(&sum, &sum);
    return sum;
}

penc_real penc_exp2(const penc_exponent *e) {
    uint64_t whole = e->magnitude.limb[PENC_WIDE_LIMBS - 1];
    penc_wide part = e->magnitude;
    part.limb[PENC_WIDE_LIMBS - 1] = 0;
    int exponent = whole < (1u << 20) ? (int)whole : 1 << 20; /* beyond every dtype either way */
    if (e->negative) {
        exponent = -exponent;
        if (!penc_wide_is_zero(&part)) { /* 2^-(n + f) = 2^-(n+1) * 2^(1-f) */
            penc_wide one = penc_wide_of_integer(1);
            part = penc_wide_subtract(&one, &part);
            exponent--;
        }
    }
    part = penc_wide_multiply(&part, &penc_ln2);
    penc_real result = {penc_exp(&part), exponent};
    return result;
}
