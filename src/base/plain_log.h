/* A natural logarithm of float64 that is the same on every platform; libm's differ in the last bits.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_PLAIN_LOG_H
#define PENC_PLAIN_LOG_H

#include "base/half.h"

/* ln of a finite x >= 2^-1022, within 2 units in the last place of the larger of 1 and the result. */
static inline double penc_log(double x) {
    uint64_t bits = penc_bits_of_double(x);
    int exponent = (int)(bits >> 52) - 1023;
    double m =
        penc_double_of_bits((bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52); /* [1, 2) */
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    double s = (m - 1.0) / (m + 1.0), square = s * s, sum = 0.0; /* |s| < 0.172 */
    for (int k = 23; k >= 3; k -= 2)
        sum = (sum + 1.0 / (double)k) * square;
    return (double)exponent * 0x1.62e42fefa39efp-1 + 2.0 * (s + s * sum);
}

#endif
