/* Rows of ALiBi bias, in pointers and counts. SPDX-License-Identifier: MIT */
#ifndef PENC_BIAS_KERNELS_H
#define PENC_BIAS_KERNELS_H

#include "kernels/target.h"
#include "posenc/dtype.h"

#include <stddef.h>
#include <stdint.h>

/* A row in which key i lies `place + i` behind the query (before it where that is negative): becomes -slope times the
 * distance, or has it added; keys behind the query become -infinity if the row is causal, but for a NaN to which it
 * is added. Computed in float64 for float64 rows, else in float32 and rounded once. Every place must be within
 * +-(2^31 - 1). */
typedef void penc_bias_kernel(void *row, size_t count, int32_t place, double slope, int causal,
                              int add);

enum { PENC_BIAS_DTYPES = 4 };
typedef penc_bias_kernel *penc_bias_kernel_set[PENC_BIAS_DTYPES];

/* Every instance: suffix and level, from worst to best. */
#if PENC_X86
#define PENC_BIAS_INSTANCES(X)                                                                     \
    X(portable, PENC_CPU_SCALAR)                                                                   \
    X(avx2, PENC_CPU_AVX2)                                                                         \
    X(avx512, PENC_CPU_AVX512)
#else
#define PENC_BIAS_INSTANCES(X) X(portable, PENC_CPU_SCALAR)
#endif

#define PENC_BIAS_DECLARE(suffix, level)                                                           \
    extern const penc_bias_kernel_set penc_bias_##suffix##_every_kernel;
PENC_BIAS_INSTANCES(PENC_BIAS_DECLARE)
#undef PENC_BIAS_DECLARE

/* That of a dtype and of the CPU level in use. */
penc_bias_kernel *penc_bias_kernel_of(posenc_dtype dtype);

#endif
