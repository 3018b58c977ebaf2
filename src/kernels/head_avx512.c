/* The kernels of heads in AVX-512 instructions. SPDX-License-Identifier: MIT */
#include "kernels/head_vocabulary.h"

#if PENC_X86
#include <immintrin.h>

/* For the functions of this file only: the library itself is compiled for any CPU. */
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,f16c"))),                   \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,f16c")
#endif

#define NAME(what)            penc_head_avx512_##what
#define PENC_BF16_INSTRUCTION 0
#include "kernels/rotate_avx512_vocabulary.inc"

PENC_ALWAYS_INLINE __m512 NAME(widen_fp8)(__m512i codes) {
    __m512i magnitude = _mm512_and_si512(codes, _mm512_set1_epi32(0x7f));
    __m512i sign = _mm512_slli_epi32(_mm512_xor_si512(codes, magnitude), 24);
    __m512i normal =
        _mm512_add_epi32(_mm512_slli_epi32(magnitude, 20), _mm512_set1_epi32(120 << 23));
    __m512 units = _mm512_mul_ps(_mm512_cvtepi32_ps(magnitude), _mm512_set1_ps(0x1p-9f));
    __mmask16 small = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(8));
    __mmask16 nan = _mm512_cmpeq_epi32_mask(magnitude, _mm512_set1_epi32(PENC_FP8_NAN));
    __m512i bits = _mm512_mask_mov_epi32(normal, small, _mm512_castps_si512(units));
    bits = _mm512_mask_mov_epi32(bits, nan, _mm512_set1_epi32(0x7fc00000));
    return _mm512_castsi512_ps(_mm512_or_si512(bits, sign));
}

PENC_ALWAYS_INLINE __m512i NAME(magnitude)(__m512 value) {
    return _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(0x7fffffff));
}

/* As penc_fp8_of_float. */
PENC_ALWAYS_INLINE __m512i NAME(round_fp8)(__m512 value) {
    __m512i all = NAME(magnitude)(value);
    __m512i sign = _mm512_and_si512(_mm512_srli_epi32(_mm512_castps_si512(value), 24),
                                    _mm512_set1_epi32(0x80));
    __m512i least = _mm512_min_epi32(all, _mm512_set1_epi32((int)PENC_FP8_MOST_BITS));
    __m512i even = _mm512_and_si512(_mm512_srli_epi32(least, 20), _mm512_set1_epi32(1));
    __m512i sum = _mm512_add_epi32(_mm512_add_epi32(least, _mm512_set1_epi32(0x7ffff)), even);
    __m512i code = _mm512_sub_epi32(_mm512_srli_epi32(sum, 20), _mm512_set1_epi32(120 << 3));
    __m512 units = _mm512_add_ps(_mm512_castsi512_ps(least), _mm512_set1_ps(PENC_FP8_INTEGER));
    __m512i small = _mm512_sub_epi32(_mm512_castps_si512(units),
                                     _mm512_set1_epi32((int)PENC_FP8_INTEGER_BITS));
    code = _mm512_mask_mov_epi32(
        code, _mm512_cmplt_epi32_mask(least, _mm512_set1_epi32((int)PENC_FP8_NORMAL_BITS)), small);
    code = _mm512_mask_mov_epi32(
        code, _mm512_cmpgt_epi32_mask(all, _mm512_set1_epi32(0x7f800000)),
        _mm512_set1_epi32(PENC_FP8_NAN));
    return _mm512_or_si512(code, sign);
}

PENC_ALWAYS_INLINE __m512 NAME(load_head)(penc_format format, const void *p) {
    if (format == PENC_FORMAT_F32)
        return _mm512_loadu_ps(p);
    if (format == PENC_FORMAT_F16)
        return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
    if (format == PENC_FORMAT_BF16)
        return _mm512_castsi512_ps(_mm512_slli_epi32(
            _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
    __m128i bytes = _mm_loadu_si128((const __m128i *)p);
    return format == PENC_FORMAT_INT8 ? _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))
                                      : NAME(widen_fp8)(_mm512_cvtepu8_epi32(bytes));
}

PENC_ALWAYS_INLINE void NAME(store_head)(penc_format format, void *p, __m512 v) {
    if (format == PENC_FORMAT_F32)
        _mm512_storeu_ps(p, v);
    else if (format == PENC_FORMAT_F16)
        _mm256_storeu_si256((__m256i *)p,
                            _mm512_maskz_cvtps_ph(0xffff, v, _MM_FROUND_TO_NEAREST_INT));
    else if (format == PENC_FORMAT_BF16)
        _mm256_storeu_si256((__m256i *)p,
                            _mm512_cvtepi32_epi16(_mm512_srli_epi32(NAME(round_bf16)(v), 16)));
    else
        _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(format == PENC_FORMAT_INT8
                                                                ? _mm512_cvtps_epi32(v)
                                                                : NAME(round_fp8)(v)));
}

PENC_ALWAYS_INLINE float NAME(sum)(__m512 v) {
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#define H_LOAD         NAME(load_head)
#define H_STORE        NAME(store_head)
#define H_SUM          NAME(sum)
#define H_INTEGERS     __m512i
#define H_NOTHING      _mm512_setzero_si512()
#define H_LARGER(a, v) _mm512_max_epi32(a, NAME(magnitude)(v))
#define H_LARGEST(a)   (uint32_t)_mm512_reduce_max_epi32(a)

#include "kernels/head_vector.inc"

#include "kernels/rotate_end.inc"
#undef PENC_BF16_INSTRUCTION

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
