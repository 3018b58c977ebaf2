/* The vector vocabulary of AVX2 with FMA: 4 lanes. SPDX-License-Identifier: MIT */
#ifndef PENC_VECTOR_AVX2_H
#define PENC_VECTOR_AVX2_H

#define LANES 4
#define vd    __m256d
#define vu    __m256i
#define vf    __m128
#define vmask unsigned /* lanes */

#define V_SET(x)             _mm256_set1_pd(x)
#define V_SET_U(x)           _mm256_set1_epi64x((long long)(x))
#define V_LOAD(p)            _mm256_loadu_pd(p)
#define V_STORE(p, a)        _mm256_storeu_pd(p, a)
#define V_ADD(a, b)          _mm256_add_pd(a, b)
#define V_SUB(a, b)          _mm256_sub_pd(a, b)
#define V_MUL(a, b)          _mm256_mul_pd(a, b)
#define V_FMA(a, b, c)       _mm256_fmadd_pd(a, b, c)
#define V_FNMA(a, b, c)      _mm256_fnmadd_pd(a, b, c)
#define V_FMS_EXACT(a, b, c) _mm256_fmsub_pd(a, b, c)
#define V_LESS(a, b)         ((unsigned)_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ)))
/* a >= b, or c is 0 */
#define V_REACHES(a, b, c) (((1u << LANES) - 1) ^ (V_LESS(a, b) & V_LESS(V_SET(0.0), V_MUL(c, c))))
#define V_BITS(a)          _mm256_castpd_si256(a)
#define V_ADD_U(a, b)      _mm256_add_epi64(a, b)
#define V_XOR_U(a, b)      _mm256_xor_si256(a, b)
#define V_SHL(a, n)        _mm256_slli_epi64(a, n)
#define V_BLEND(choice, a, b)                                                                      \
    _mm256_blendv_pd(b, a, _mm256_castsi256_pd(choice)) /* by the top bit */
#define V_FLIP(a, bits)                                                                            \
    _mm256_xor_pd(a, _mm256_and_pd(_mm256_castsi256_pd(bits), _mm256_set1_pd(-0.0)))
#define V_BEFORE(a)                                                                                \
    _mm256_castsi256_pd(                                                                           \
        _mm256_add_epi64(_mm256_castpd_si256(a),                                                   \
                         _mm256_set1_epi64x(-1))) /* the number before a, which is above 0 */
#define V_TO_FLOAT(a)      _mm256_cvtpd_ps(a)
#define V_STORE_F(p, a, n) penc_avx2_store(p, a, n)
#define V_DIFFER(a, b)                                                                             \
    (15u ^ (unsigned)_mm_movemask_ps(                                                              \
               _mm_castsi128_ps(_mm_cmpeq_epi32(_mm_castps_si128(a), _mm_castps_si128(b)))))

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
