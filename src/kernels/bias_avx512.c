/* The bias kernels in avx512 instructions. SPDX-License-Identifier: MIT */
#include "kernels/bias_kernels.h"

#include "base/number_access.h"

#include <math.h>

#if PENC_X86
#include <immintrin.h>
PENC_TARGET_AVX512

#define LANES         16
#define VF            __m512
#define VI            __m512i
#define B_SET(x)      _mm512_set1_ps(x)
#define B_SET_I(x)    _mm512_set1_epi32(x)
#define B_COUNT()     _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define B_ADD_I(a, b) _mm512_add_epi32(a, b)
#define B_SUB_I(a, b) _mm512_sub_epi32(a, b)
#define B_MIN_I(a, b) _mm512_min_epi32(a, b)
#define B_MUL(a, b)   _mm512_mul_ps(a, b)
#define B_FLOAT(a)    _mm512_cvtepi32_ps(a)
#define B_HIDE(i, a)                                                                               \
    _mm512_mask_mov_ps(a, _mm512_cmpgt_epi32_mask(i, _mm512_setzero_si512()),                      \
                       _mm512_set1_ps(-INFINITY))
#define B_STORE(to, a) _mm512_storeu_ps(to, a)
#define NAME(what)     penc_bias_avx512_##what
#include "kernels/bias_blocks.inc"

#define F32_BLOCKS          penc_bias_avx512_blocks
#define KERNEL(dtype, what) penc_bias_avx512_##dtype##_##what
#include "kernels/bias_dtypes.inc"
PENC_TARGET_END
#endif
