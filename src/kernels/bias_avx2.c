/* The bias kernels in avx2 instructions. SPDX-License-Identifier: MIT */
#include "kernels/bias_kernels.h"

#include "base/number_access.h"

#include <math.h>

#if PENC_X86
#include <immintrin.h>
PENC_TARGET_AVX2

#define LANES         8
#define VF            __m256
#define VI            __m256i
#define B_SET(x)      _mm256_set1_ps(x)
#define B_SET_I(x)    _mm256_set1_epi32(x)
#define B_COUNT()     _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)
#define B_ADD_I(a, b) _mm256_add_epi32(a, b)
#define B_SUB_I(a, b) _mm256_sub_epi32(a, b)
#define B_MIN_I(a, b) _mm256_min_epi32(a, b)
#define B_MUL(a, b)   _mm256_mul_ps(a, b)
#define B_FLOAT(a)    _mm256_cvtepi32_ps(a)
#define B_HIDE(i, a)                                                                               \
    _mm256_blendv_ps(a, _mm256_set1_ps(-INFINITY),                                                 \
                     _mm256_castsi256_ps(_mm256_cmpgt_epi32(i, _mm256_setzero_si256())))
#define B_STORE(to, a) _mm256_storeu_ps(to, a)
#define NAME(what)     penc_bias_avx2_##what
#include "kernels/bias_blocks.inc"

#define F32_BLOCKS          penc_bias_avx2_blocks
#define KERNEL(dtype, what) penc_bias_avx2_##dtype##_##what
#include "kernels/bias_dtypes.inc"
PENC_TARGET_END
#endif
