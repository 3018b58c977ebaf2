/* The kernels of heads in AVX2 instructions. SPDX-License-Identifier: MIT */
#include "kernels/head_vocabulary.h"

#if PENC_X86
#include <immintrin.h>

PENC_TARGET_AVX2

#define NAME(what) penc_head_avx2_##what
#include "kernels/rotate_avx2_vocabulary.inc"

PENC_ALWAYS_INLINE __m256 NAME(widen_fp8)(__m256i codes) {
    __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi32(0x7f));
    __m256i sign = _mm256_slli_epi32(_mm256_xor_si256(codes, magnitude), 24);
    __m256i normal =
        _mm256_add_epi32(_mm256_slli_epi32(magnitude, 20), _mm256_set1_epi32(120 << 23));
    __m256 units = _mm256_mul_ps(_mm256_cvtepi32_ps(magnitude), _mm256_set1_ps(0x1p-9f));
    __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(8), magnitude);
    __m256i nan = _mm256_cmpeq_epi32(magnitude, _mm256_set1_epi32(PENC_FP8_NAN));
    __m256i bits = _mm256_blendv_epi8(normal, _mm256_castps_si256(units), small);
    bits = _mm256_blendv_epi8(bits, _mm256_set1_epi32(0x7fc00000), nan);
    return _mm256_castsi256_ps(_mm256_or_si256(bits, sign));
}

PENC_ALWAYS_INLINE __m256i NAME(magnitude)(__m256 value) {
    return _mm256_and_si256(_mm256_castps_si256(value), _mm256_set1_epi32(0x7fffffff));
}

/* As penc_fp8_of_float. */
PENC_ALWAYS_INLINE __m256i NAME(round_fp8)(__m256 value) {
    __m256i all = NAME(magnitude)(value);
    __m256i sign = _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(value), 24),
                                    _mm256_set1_epi32(0x80));
    __m256i least = _mm256_min_epi32(all, _mm256_set1_epi32((int)PENC_FP8_MOST_BITS));
    __m256i even = _mm256_and_si256(_mm256_srli_epi32(least, 20), _mm256_set1_epi32(1));
    __m256i sum = _mm256_add_epi32(_mm256_add_epi32(least, _mm256_set1_epi32(0x7ffff)), even);
    __m256i code = _mm256_sub_epi32(_mm256_srli_epi32(sum, 20), _mm256_set1_epi32(120 << 3));
    __m256 units = _mm256_add_ps(_mm256_castsi256_ps(least), _mm256_set1_ps(PENC_FP8_INTEGER));
    __m256i small =
        _mm256_sub_epi32(_mm256_castps_si256(units), _mm256_set1_epi32((int)PENC_FP8_INTEGER_BITS));
    code = _mm256_blendv_epi8(
        code, small, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)PENC_FP8_NORMAL_BITS), least));
    code = _mm256_blendv_epi8(code, _mm256_set1_epi32(PENC_FP8_NAN),
                              _mm256_cmpgt_epi32(all, _mm256_set1_epi32(0x7f800000)));
    return _mm256_or_si256(code, sign);
}

/* The lower halves of 8 lanes that hold signed 16-bit numbers. */
PENC_ALWAYS_INLINE __m128i NAME(lower_16)(__m256i v) {
    return _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

PENC_ALWAYS_INLINE __m256 NAME(load_head)(penc_format format, const void *p) {
    if (format == PENC_FORMAT_F32)
        return _mm256_loadu_ps(p);
    if (format == PENC_FORMAT_F16)
        return _mm256_cvtph_ps(NAME(load_16)(p));
    if (format == PENC_FORMAT_BF16)
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(NAME(load_16)(p)), 16));
    __m128i bytes = _mm_loadl_epi64((const __m128i *)p);
    return format == PENC_FORMAT_INT8 ? _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))
                                      : NAME(widen_fp8)(_mm256_cvtepu8_epi32(bytes));
}

PENC_ALWAYS_INLINE void NAME(store_head)(penc_format format, void *p, __m256 v) {
    if (format == PENC_FORMAT_F32) {
        _mm256_storeu_ps(p, v);
    } else if (format == PENC_FORMAT_F16) {
        NAME(store_16)(p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT), 0);
    } else if (format == PENC_FORMAT_BF16) {
        __m256i rounded = _mm256_srli_epi32(NAME(round_bf16)(v, 1), 16);
        NAME(store_16)(p, _mm256_castsi256_si128(NAME(pack)(rounded, rounded)), 0);
    } else if (format == PENC_FORMAT_INT8) {
        __m128i words = NAME(lower_16)(_mm256_cvtps_epi32(v));
        _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(words, words));
    } else {
        __m128i words = NAME(lower_16)(NAME(round_fp8)(v));
        _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(words, words));
    }
}

/* Four vectors of numbers within +-127, 32 codes. */
PENC_ALWAYS_INLINE void NAME(store_int8)(char *y, const __m256 *v) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i low = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1]));
    __m256i high = _mm256_packs_epi32(_mm256_cvtps_epi32(v[2]), _mm256_cvtps_epi32(v[3]));
    __m256i codes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
    _mm256_storeu_si256((__m256i *)(void *)y, codes);
}

#include "kernels/head_four_x86.inc"

PENC_ALWAYS_INLINE void NAME(largest_row)(uint32_t *row, __m256i a) {
    _mm_store_si128((__m128i *)(void *)row,
                    _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1)));
}

#define H_LOAD         NAME(load_head)
#define H_STORE        NAME(store_head)
#define H_STORE_INT8   NAME(store_int8)
#define H_INTEGERS     __m256i
#define H_NOTHING      _mm256_setzero_si256()
#define H_LARGER(a, v) _mm256_max_epi32(a, NAME(magnitude)(v))
#define H_LARGEST_ROW  NAME(largest_row)

#include "kernels/head_vector.inc"

#include "kernels/head_turn_vector.inc"

#include "kernels/head_quantise_vector.inc"

#include "kernels/head_end.inc"

#include "kernels/rotate_end.inc"

PENC_TARGET_END
#endif
