/* The vector vocabulary of AVX-512 (F, DQ, VL, BW): 8 lanes. SPDX-License-Identifier: MIT */
#ifndef PENC_VECTOR_AVX512_H
#define PENC_VECTOR_AVX512_H

#define LANES 8
#define vd    __m512d
#define vu    __m512i
#define vf    __m256

#define V_SET(x)            _mm512_set1_pd(x)
#define V_SET_U(x)          _mm512_set1_epi64((long long)(x))
#define V_LOAD(p)           _mm512_loadu_pd(p)
#define V_LOAD_U(p)         _mm512_loadu_si512(p)
#define V_STORE(p, a)       _mm512_storeu_pd(p, a)
#define V_ADD(a, b)         _mm512_add_pd(a, b)
#define V_SUB(a, b)         _mm512_sub_pd(a, b)
#define V_MUL(a, b)         _mm512_mul_pd(a, b)
#define V_FMA(a, b, c)      _mm512_fmadd_pd(a, b, c)
#define V_FNMA(a, b, c)     _mm512_fnmadd_pd(a, b, c)
#define V_ABS(a)            _mm512_abs_pd(a)
#define V_ADD_U(a, b)       _mm512_add_epi64(a, b)
#define V_SUB_U(a, b)       _mm512_sub_epi64(a, b)
#define V_AND(a, b)         _mm512_and_si512(a, b)
#define V_XOR(a, b)         _mm512_xor_si512(a, b)
#define V_SHL(a, n)         _mm512_slli_epi64(a, n)
#define V_SHR(a, n)         _mm512_srli_epi64(a, n)
#define V_MUL32(a, b)       _mm512_mul_epu32(a, b)
#define V_OF_INT(a)         _mm512_cvtepi64_pd(a)
#define V_BLEND(mask, a, b) _mm512_mask_blend_pd(_mm512_movepi64_mask(mask), b, a)
#define V_FLIP(a, sign)     _mm512_xor_pd(a, _mm512_castsi512_pd(sign))
#define V_TO_FLOAT(a)       _mm512_cvtpd_ps(a)
#define V_STORE_F(p, a, n)  _mm256_mask_storeu_ps(p, (__mmask8)((1u << (n)) - 1), a)
/* Lanes whose bits agree from bit 29 on. */
#define V_SAME_FROM_29(a, b)                                                                       \
    (unsigned)_mm512_testn_epi64_mask(V_XOR(a, b), V_SET_U(~UINT64_C(0) << 29))
#define V_BITS(a) _mm512_castpd_si512(a)

#endif
