/* The vector vocabulary of one lane in plain C, for machines without a vector instance.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_VECTOR_SCALAR_H
#define PENC_VECTOR_SCALAR_H

#include "base/half.h"

#include <math.h>

#define LANES 1
#define vd    double
#define vu    uint64_t
#define vf    float

#define V_SET(x)        (x)
#define V_SET_U(x)      ((uint64_t)(x))
#define V_LOAD(p)       (*(p))
#define V_LOAD_U(p)     (*(p))
#define V_STORE(p, a)   (*(p) = (a))
#define V_ADD(a, b)     ((a) + (b))
#define V_SUB(a, b)     ((a) - (b))
#define V_MUL(a, b)     ((a) * (b))
#define V_FMA(a, b, c)  ((a) * (b) + (c))
#define V_FNMA(a, b, c) ((c) - (a) * (b))
#define V_ABS(a)        fabs(a)
#define V_ADD_U(a, b)   ((a) + (b))
#define V_SUB_U(a, b)   ((a) - (b))
#define V_AND(a, b)     ((a) & (b))
#define V_XOR(a, b)     ((a) ^ (b))
#define V_SHL(a, n)     ((a) << (n))
#define V_SHR(a, n)     ((a) >> (n))
#define V_MUL32(a, b)   (((a)&0xffffffffu) * ((b)&0xffffffffu))
/* A two's complement number below 2^62 in magnitude. */
#define V_OF_INT(a)         ((a) >> 63 ? -(double)(UINT64_C(0) - (a)) : (double)(a))
#define V_BLEND(mask, a, b) ((mask) ? (a) : (b))
#define V_FLIP(a, sign)     penc_double_of_bits(penc_bits_of_double(a) ^ (sign))
#define V_TO_FLOAT(a)       ((float)(a))
#define V_STORE_F(p, a, n)  ((void)(n), *(p) = (a))
/* Lanes whose bits agree from bit 29 on. */
#define V_SAME_FROM_29(a, b) ((unsigned)(((a) ^ (b)) >> 29 == 0))
#define V_BITS(a)            penc_bits_of_double(a)

#endif
