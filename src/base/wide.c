/* Fixed-point arithmetic of 64.256 bits. SPDX-License-Identifier: MIT */
#include "base/wide.h"

#include "base/half.h"

#include <math.h>
#include <string.h>

penc_wide penc_wide_of_integer(uint64_t value) {
    penc_wide a = {{0, 0, 0, 0, value}};
    return a;
}

int penc_wide_is_zero(const penc_wide *a) {
    uint64_t any = 0;
    for (int i = 0; i < PENC_WIDE_LIMBS; i++)
        any |= a->limb[i];
    return any == 0;
}

int penc_wide_compare(const penc_wide *a, const penc_wide *b) {
    for (int i = PENC_WIDE_LIMBS - 1; i >= 0; i--) {
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    }
    return 0;
}

penc_wide penc_wide_add(const penc_wide *a, const penc_wide *b) {
    penc_wide sum;
    uint64_t carry = 0;
    for (int i = 0; i < PENC_WIDE_LIMBS; i++) {
        uint64_t part = a->limb[i] + carry;
        carry = part < carry;
        sum.limb[i] = part + b->limb[i];
        carry += sum.limb[i] < part;
    }
    return sum;
}

penc_wide penc_wide_subtract(const penc_wide *a, const penc_wide *b) {
    penc_wide difference;
    uint64_t borrow = 0;
    for (int i = 0; i < PENC_WIDE_LIMBS; i++) {
        uint64_t part = a->limb[i] - borrow;
        borrow = part > a->limb[i];
        difference.limb[i] = part - b->limb[i];
        borrow += difference.limb[i] > part;
    }
    return difference;
}

penc_wide penc_wide_multiply(const penc_wide *a, const penc_wide *b) {
    uint64_t product[2 * PENC_WIDE_LIMBS] = {0};
    for (int i = 0; i < PENC_WIDE_LIMBS; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < PENC_WIDE_LIMBS; j++) {
            uint64_t high, low = penc_multiply(a->limb[i], b->limb[j], &high);
            low += carry;
            high += low < carry;
            product[i + j] += low;
            carry = high + (product[i + j] < low);
        }
        product[i + PENC_WIDE_LIMBS] = carry;
    }
    penc_wide result;
    memcpy(result.limb, product + PENC_WIDE_LIMBS - 1, sizeof result.limb);
    return result;
}

penc_wide penc_wide_multiply_by(const penc_wide *a, uint64_t b) {
    penc_wide result;
    uint64_t carry = 0;
    for (int i = 0; i < PENC_WIDE_LIMBS; i++) {
        uint64_t high, low = penc_multiply(a->limb[i], b, &high);
        result.limb[i] = low + carry;
        carry = high + (result.limb[i] < low);
    }
    return result;
}

/* By 32 bits at a time; rest stays below b, so that rest << 32 does not overflow. */
static penc_wide penc_wide_divide_by_small(const penc_wide *a, uint64_t b) {
    penc_wide quotient;
    uint64_t rest = 0;
    for (int i = PENC_WIDE_LIMBS - 1; i >= 0; i--) {
        uint64_t upper = rest << 32 | a->limb[i] >> 32;
        uint64_t lower = (upper % b) << 32 | (a->limb[i] & 0xffffffffu);
        quotient.limb[i] = (upper / b) << 32 | lower / b;
        rest = lower % b;
    }
    return quotient;
}

penc_wide penc_wide_divide_by(const penc_wide *a, uint64_t b) {
    if (b >> 32 == 0)
        return penc_wide_divide_by_small(a, b);
    penc_wide quotient;
    uint64_t rest = 0;
    for (int i = PENC_WIDE_LIMBS - 1; i >= 0; i--) {
        uint64_t limb = 0;
        for (int bit = 63; bit >= 0; bit--) {
            rest = rest << 1 | (a->limb[i] >> bit & 1);
            limb <<= 1;
            if (rest >= b) {
                rest -= b;
                limb |= 1;
            }
        }
        quotient.limb[i] = limb;
    }
    return quotient;
}

penc_wide penc_wide_ratio(uint64_t a, uint64_t b) {
    penc_wide numerator = penc_wide_of_integer(a);
    return penc_wide_divide_by(&numerator, b);
}

penc_wide penc_wide_divide(const penc_wide *a, const penc_wide *b) {
    penc_wide quotient = {{0}}, rest = {{0}};
    /* Bit by bit: all 320 of a, then 256 zeros behind its point. */
    for (int bit = 64 * (2 * PENC_WIDE_LIMBS - 1) - 1; bit >= 0; bit--) {
        int in_a = bit - 64 * (PENC_WIDE_LIMBS - 1);
        rest = penc_wide_shift(&rest, 1);
        if (in_a >= 0)
            rest.limb[0] |= a->limb[in_a / 64] >> in_a % 64 & 1;
        quotient = penc_wide_shift(&quotient, 1);
        if (penc_wide_compare(&rest, b) >= 0) {
            rest = penc_wide_subtract(&rest, b);
            quotient.limb[0] |= 1;
        }
    }
    return quotient;
}

/* Limb i of a, and 0 outside. */
static uint64_t penc_wide_limb(const penc_wide *a, int i) {
    return i >= 0 && i < PENC_WIDE_LIMBS ? a->limb[i] : 0;
}

penc_wide penc_wide_shift(const penc_wide *a, int shift) {
    penc_wide result;
    int limbs = shift >= 0 ? shift / 64 : -((-shift + 63) / 64);
    int bits = shift - limbs * 64; /* 0 ... 63 to the left */
    for (int i = 0; i < PENC_WIDE_LIMBS; i++) {
        result.limb[i] = penc_wide_limb(a, i - limbs) << bits;
        if (bits)
            result.limb[i] |= penc_wide_limb(a, i - limbs - 1) >> (64 - bits);
    }
    return result;
}

int penc_wide_log2_floor(const penc_wide *a) {
    int i = PENC_WIDE_LIMBS - 1, bit = 63;
    while (i > 0 && a->limb[i] == 0)
        i--;
    while (bit > 0 && !(a->limb[i] >> bit))
        bit--;
    return 64 * (i - (PENC_WIDE_LIMBS - 1)) + bit;
}

uint64_t penc_split_double(double value, int *exponent) {
    uint64_t bits = penc_bits_of_double(value);
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int biased = (int)(bits >> 52 & 0x7ff);
    *exponent = (biased ? biased : 1) - 1075;
    return biased ? fraction | UINT64_C(1) << 52 : fraction;
}

penc_wide penc_wide_of_double(double value) {
    int exponent;
    penc_wide whole = penc_wide_of_integer(penc_split_double(value, &exponent));
    return penc_wide_shift(&whole, exponent);
}

double penc_real_round(const penc_real *value, int bits, int min_exponent) {
    if (penc_wide_is_zero(&value->significand))
        return 0.0;
    /* The leading one goes to 2^63, so that the integer limb and the next one hold 128 bits. */
    int lead = penc_wide_log2_floor(&value->significand);
    penc_wide m = penc_wide_shift(&value->significand, 63 - lead);
    int unit = value->exponent + lead - 63; /* m.limb[4] counts 2^unit */
    if (m.limb[2] >> 63) {
        m.limb[3]++;
        m.limb[4] += m.limb[3] == 0;
        if (m.limb[3] == 0 && m.limb[4] == 0) {
            m.limb[4] = UINT64_C(1) << 63;
            unit++;
        }
    }
    int dropped = 64 - bits; /* low bits of limb[4] that leave */
    if (unit + dropped < min_exponent)
        dropped = min_exponent - unit;
    if (dropped > 64)
        return 0.0;
    uint64_t kept = dropped == 64 ? 0 : m.limb[4] >> dropped;
    uint64_t half = UINT64_C(1) << (dropped - 1);
    uint64_t rest = dropped == 64 ? m.limb[4] : m.limb[4] & ((half << 1) - 1);
    if (rest > half || (rest == half && (m.limb[3] || (kept & 1))))
        kept++;
    return ldexp((double)kept, unit + dropped);
}
