/* The vector vocabulary of AVX-512 (F, DQ, VL, BW): 8 lanes. SPDX-License-Identifier: MIT */
#ifndef PENC_VECTOR_AVX512_H
#define PENC_VECTOR_AVX512_H

#define LANES 8
#define vd    __m512d
#define vu    __m512i
#define vf    __m256
#define vmask __mmask8 /* lanes */

#define V_SET(x)             _mm512_set1_pd(x)
#define V_SET_U(x)           _mm512_set1_epi64((long long)(x))
#define V_LOAD(p)            _mm512_loadu_pd(p)
#define V_STORE(p, a)        _mm512_storeu_pd(p, a)
#define V_ADD(a, b)          _mm512_add_pd(a, b)
#define V_SUB(a, b)          _mm512_sub_pd(a, b)
#define V_MUL(a, b)          _mm512_mul_pd(a, b)
#define V_FMA(a, b, c)       _mm512_fmadd_pd(a, b, c)
#define V_FNMA(a, b, c)      _mm512_fnmadd_pd(a, b, c)
#define V_FMS_EXACT(a, b, c) _mm512_fmsub_pd(a, b, c)
#define V_LESS(a, b)         ((unsigned)_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ))
/* a >= b, or c is 0 */
#define V_REACHES(a, b, c)                                                                         \
    _knot_mask8(_mm512_mask_cmp_pd_mask(                                                           \
        _mm512_test_epi64_mask(_mm512_castpd_si512(c), _mm512_set1_epi64(INT64_MAX)), a, b,        \
        _CMP_LT_OQ))
#define V_BITS(a)             _mm512_castpd_si512(a)
#define V_ADD_U(a, b)         _mm512_add_epi64(a, b)
#define V_XOR_U(a, b)         _mm512_xor_si512(a, b)
#define V_SHL(a, n)           _mm512_slli_epi64(a, n)
#define V_BLEND(choice, a, b) _mm512_mask_blend_pd(_mm512_movepi64_mask(choice), b, a) /* top bit */
#define V_FLIP(a, bits)                                                                            \
    _mm512_castsi512_pd(_mm512_ternarylogic_epi64(                                                 \
        _mm512_castpd_si512(a), bits, _mm512_castpd_si512(_mm512_set1_pd(-0.0)), 0x78))
#define V_BEFORE(a)                                                                                \
    _mm512_castsi512_pd(                                                                           \
        _mm512_add_epi64(_mm512_castpd_si512(a),                                                   \
                         _mm512_set1_epi64(-1))) /* the number before a, which is above 0 */
#define V_TO_FLOAT(a)                _mm512_cvtpd_ps(a)
#define V_OF_BITS(a)                 _mm512_castsi512_pd(a)
#define V_OR_U(a, b)                 _mm512_or_si512(a, b)
#define V_OR_DIFFERENCE(a, b, c)     _mm512_ternarylogic_epi64(a, b, c, 0xf6) /* a | (b ^ c) */
#define V_ANY_BIT(a, bits)           ((unsigned)_mm512_test_epi64_mask(a, bits))
#define V_ANY_BIT_OF(lanes, a, bits) _mm512_mask_test_epi64_mask(lanes, a, bits)
#define V_STORE_F(p, a, n)           penc_avx512_store(p, a, n)

static inline void penc_avx512_store(float *to, __m256 a, size_t lanes) {
    if (lanes == 8)
        _mm256_storeu_ps(to, a);
    else
        _mm256_mask_storeu_ps(to, (__mmask8)((1u << lanes) - 1), a);
}

#endif
