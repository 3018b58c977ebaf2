/* cos and sin of a reduced angle: quickly in float64, and with all the bits where that does not
 * settle the rounding. SPDX-License-Identifier: MIT */
#include "angles/sincos.h"

#include "base/half.h"

#include <math.h>

/* Turns cos and sin of |rest| into those of the whole angle. */
static penc_sincos penc_unfold(const penc_angle *angle, double cosine, double sine) {
    if (angle->rest_negative)
        sine = -sine;
    penc_sincos result;
    switch (angle->quarter) {
    case 0:
        result = (penc_sincos){cosine, sine};
        break;
    case 1:
        result = (penc_sincos){-sine, cosine};
        break;
    case 2:
        result = (penc_sincos){-cosine, -sine};
        break;
    default:
        result = (penc_sincos){sine, -cosine};
        break;
    }
    if (angle->negative)
        result.sin = -result.sin;
    return result;
}

/* x as the sum of two float64 numbers: the first 53 bits and the next 53. */
static void penc_split_wide(const penc_wide *x, double *high, double *low) {
    *high = *low = 0.0;
    if (penc_wide_is_zero(x))
        return;
    int lead = penc_wide_log2_floor(x);
    penc_wide m = penc_wide_shift(x, 52 - lead); /* 53 bits in the integer limb */
    uint64_t next = m.limb[3] >> 11;
    *high = ldexp((double)m.limb[4], lead - 52);
    *low = ldexp((double)next, lead - 105);
}

/* Taylor series on [0, pi/4] (the first term left out is below 2^-58 of the result), with the
 * argument's low part to first order. No operation here may be fused or reordered: its bits are
 * promised. */
penc_sincos penc_sincos_double(const penc_angle *angle) {
    double x, low;
    penc_split_wide(&angle->radians, &x, &low);
    double t = x * x;
    double s = -1.0 / 6 +
               t * (1.0 / 120 +
                    t * (-1.0 / 5040 +
                         t * (1.0 / 362880 +
                              t * (-1.0 / 39916800 +
                                   t * (1.0 / 6227020800 + t * (-1.0 / 1307674368000 +
                                                                t * (1.0 / 355687428096000)))))));
    double c =
        1.0 / 24 +
        t * (-1.0 / 720 +
             t * (1.0 / 40320 +
                  t * (-1.0 / 3628800 +
                       t * (1.0 / 479001600 +
                            t * (-1.0 / 87178291200 +
                                 t * (1.0 / 20922789888000 + t * (-1.0 / 6402373705728000)))))));
    double half = 0.5 * t;
    double sine = x + (x * t * s + low * (1.0 - half));
    /* 1 - half is rounded; what the rounding lost is recovered exactly. */
    double w = 1.0 - half;
    double cosine = w + (((1.0 - w) - half) + (t * t * c - x * low));
    return penc_unfold(angle, cosine, sine);
}

/* The Taylor series of cos (first = 0) or sin (first = 1) in wide fixed point. */
static penc_wide penc_series(const penc_wide *x, unsigned first) {
    penc_wide square = penc_wide_multiply(x, x);
    penc_wide term = first ? *x : penc_wide_of_integer(1);
    penc_wide sum = term;
    for (unsigned k = first; !penc_wide_is_zero(&term); k += 2) {
        term = penc_wide_multiply(&term, &square);
        term = penc_wide_divide_by(&term, (uint64_t)(k + 1) * (k + 2));
        sum = (k - first) / 2 % 2 ? penc_wide_add(&sum, &term) : penc_wide_subtract(&sum, &term);
    }
    return sum;
}

/* Significant bits and the exponent of the smallest positive number of a dtype. */
static void penc_dtype_precision(posenc_dtype dtype, int *bits, int *min_exponent) {
    static const struct {
        int bits, min_exponent;
    } precision[] = {[POSENC_F32] = {24, -149},
                     [POSENC_F64] = {53, -1074},
                     [POSENC_F16] = {11, -24},
                     [POSENC_BF16] = {8, -133}};
    *bits = precision[dtype].bits;
    *min_exponent = precision[dtype].min_exponent;
}

penc_sincos penc_sincos_wide(const penc_angle *angle, const penc_magnitude *magnitude,
                             posenc_dtype dtype) {
    int bits, min_exponent;
    penc_dtype_precision(dtype, &bits, &min_exponent);
    penc_real cosine = {penc_series(&angle->radians, 0), 0};
    penc_real sine = {penc_series(&angle->radians, 1), 0};
    if (magnitude) {
        cosine.significand = penc_wide_multiply(&cosine.significand, &magnitude->exact.significand);
        sine.significand = penc_wide_multiply(&sine.significand, &magnitude->exact.significand);
        cosine.exponent = sine.exponent = magnitude->exact.exponent;
    }
    return penc_unfold(angle, penc_real_round(&cosine, bits, min_exponent),
                       penc_real_round(&sine, bits, min_exponent));
}

static double penc_narrow(double value, posenc_dtype dtype) {
    switch (dtype) {
    case POSENC_F32:
        return (double)(float)value;
    case POSENC_F16:
        return (double)penc_float_of_f16(penc_f16_of_double(value));
    case POSENC_BF16:
        return (double)penc_float_of_bf16(penc_bf16_of_double(value));
    case POSENC_F64:
        break;
    }
    return value;
}

/* Rounds `value`, known to 2^-50 of itself; returns 0 if that does not settle the result. */
static int penc_settled(double value, posenc_dtype dtype, double *rounded) {
    double margin = value * 0x1p-50;
    *rounded = penc_narrow(value + margin, dtype);
    return penc_narrow(value - margin, dtype) == *rounded;
}

penc_sincos penc_sincos_rounded(const penc_angle *angle, const penc_magnitude *magnitude,
                                posenc_dtype dtype) {
    penc_sincos value, rounded;
    if (dtype == POSENC_F64) /* a float64 product would not stay within 1 ulp */
        return magnitude ? penc_sincos_wide(angle, magnitude, dtype) : penc_sincos_double(angle);
    value = penc_sincos_double(angle);
    if (magnitude) {
        value.cos *= magnitude->rounded;
        value.sin *= magnitude->rounded;
    }
    if (penc_settled(value.cos, dtype, &rounded.cos) &&
        penc_settled(value.sin, dtype, &rounded.sin))
        return rounded;
    return penc_sincos_wide(angle, magnitude, dtype);
}
