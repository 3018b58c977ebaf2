/* The vector vocabulary of one lane in plain C, for machines without a vector instance.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_VECTOR_SCALAR_H
#define PENC_VECTOR_SCALAR_H

#include "base/half.h"

#define LANES 1
#define vd    double
#define vu    uint64_t
#define vf    float
#define vmask unsigned /* lanes */

#define V_SET(x)             (x)
#define V_SET_U(x)           ((uint64_t)(x))
#define V_LOAD(p)            (*(p))
#define V_STORE(p, a)        (*(p) = (a))
#define V_ADD(a, b)          ((a) + (b))
#define V_SUB(a, b)          ((a) - (b))
#define V_MUL(a, b)          ((a) * (b))
#define V_FMA(a, b, c)       ((a) * (b) + (c))
#define V_FNMA(a, b, c)      ((c) - (a) * (b))
#define V_FMS_EXACT(a, b, c) penc_scalar_fms(a, b, c)
#define V_LESS(a, b)         ((unsigned)((a) < (b)))
/* a >= b, or c is 0 */
#define V_REACHES(a, b, c)    (((1u << LANES) - 1) ^ (V_LESS(a, b) & V_LESS(V_SET(0.0), V_MUL(c, c))))
#define V_BITS(a)             penc_bits_of_double(a)
#define V_ADD_U(a, b)         ((a) + (b))
#define V_XOR_U(a, b)         ((a) ^ (b))
#define V_SHL(a, n)           ((a) << (n))
#define V_BLEND(choice, a, b) ((choice) >> 63 ? (a) : (b)) /* by the top bit */
#define V_FLIP(a, bits)       penc_double_of_bits(penc_bits_of_double(a) ^ ((bits) >> 63 << 63))
#define V_BEFORE(a)                                                                                \
    penc_double_of_bits(penc_bits_of_double(a) - 1) /* the number before a, which is above 0 */
#define V_TO_FLOAT(a)      ((float)(a))
#define V_STORE_F(p, a, n) ((void)(n), *(p) = (a))
#define V_DIFFER(a, b)     ((unsigned)(penc_bits_of_float(a) != penc_bits_of_float(b)))

/* a * b - c rounded once or nearly so, where c is the whole number nearest to a * b: the product's error by
 * splitting both factors in halves (Dekker 1971). */
static inline double penc_scalar_fms(double a, double b, double c) {
    const double split = 0x1p27 + 1.0;
    double a_high = a * split - (a * split - a), a_low = a - a_high;
    double b_high = b * split - (b * split - b), b_low = b - b_high;
    double product = a * b;
    double error =
        a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low);
    return error == 0.0 ? product - c : (product - c) + error; /* which keeps the sign of 0 */
}

#endif
