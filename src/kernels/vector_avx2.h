/* The vector vocabulary of AVX2 with FMA: 4 lanes. SPDX-License-Identifier: MIT */
#ifndef PENC_VECTOR_AVX2_H
#define PENC_VECTOR_AVX2_H

#define LANES 4
#define vd    __m256d
#define vu    __m256i
#define vf    __m128

#define V_SET(x)        _mm256_set1_pd(x)
#define V_SET_U(x)      _mm256_set1_epi64x((long long)(x))
#define V_LOAD(p)       _mm256_loadu_pd(p)
#define V_LOAD_U(p)     _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define V_STORE(p, a)   _mm256_storeu_pd(p, a)
#define V_ADD(a, b)     _mm256_add_pd(a, b)
#define V_SUB(a, b)     _mm256_sub_pd(a, b)
#define V_MUL(a, b)     _mm256_mul_pd(a, b)
#define V_FMA(a, b, c)  _mm256_fmadd_pd(a, b, c)
#define V_FNMA(a, b, c) _mm256_fnmadd_pd(a, b, c)
#define V_ABS(a)        _mm256_andnot_pd(_mm256_set1_pd(-0.0), a)
#define V_ADD_U(a, b)   _mm256_add_epi64(a, b)
#define V_SUB_U(a, b)   _mm256_sub_epi64(a, b)
#define V_AND(a, b)     _mm256_and_si256(a, b)
#define V_XOR(a, b)     _mm256_xor_si256(a, b)
#define V_SHL(a, n)     _mm256_slli_epi64(a, n)
#define V_SHR(a, n)     _mm256_srli_epi64(a, n)
#define V_MUL32(a, b)   _mm256_mul_epu32(a, b)
#define V_OF_INT(a)     penc_avx2_of_int(a)
#define V_BLEND(mask, a, b)                                                                        \
    _mm256_blendv_pd(b, a, _mm256_castsi256_pd(mask)) /* by the top bit of the mask */
#define V_FLIP(a, sign)    _mm256_xor_pd(a, _mm256_castsi256_pd(sign))
#define V_TO_FLOAT(a)      _mm256_cvtpd_ps(a)
#define V_STORE_F(p, a, n) penc_avx2_store(p, a, n)
/* Lanes whose bits agree from bit 29 on. */
#define V_SAME_FROM_29(a, b)                                                                       \
    (unsigned)_mm256_movemask_pd(                                                                  \
        _mm256_castsi256_pd(_mm256_cmpeq_epi64(V_SHR(a, 29), V_SHR(b, 29))))
#define V_BITS(a) _mm256_castpd_si256(a)

/* int64 to float64: the halves become the low digits of 2^84 + 2^63 (signed) and 2^52, which are exact,
 * and their sum is rounded once. */
static inline __m256d penc_avx2_of_int(__m256i a) {
    __m256i upper =
        _mm256_xor_si256(_mm256_srli_epi64(a, 32), _mm256_set1_epi64x(0x4530000080000000));
    __m256i lower = _mm256_blend_epi32(a, _mm256_set1_epi64x(0x4330000000000000), 0xaa);
    __m256d high =
        _mm256_sub_pd(_mm256_castsi256_pd(upper), _mm256_set1_pd(0x1.00000001p84 + 0x1p63));
    return _mm256_add_pd(high, _mm256_castsi256_pd(lower));
}

static inline void penc_avx2_store(float *to, __m128 a, size_t lanes) {
    float all[4];
    if (lanes == 4) {
        _mm_storeu_ps(to, a);
        return;
    }
    _mm_storeu_ps(all, a);
    memcpy(to, all, lanes * sizeof *to);
}

#endif
