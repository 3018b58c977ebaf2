/* Peers, compiled for the CPUs that they are called on only. SPDX-License-Identifier: MIT */
#include "bench_peers.h"

#include <immintrin.h>

#if defined(BENCH_MVEC)
/* glibc's vector functions, by the names of the x86 vector ABI. */
__m512 _ZGVeN16v_sinf(__m512 x);
__m512 _ZGVeN16v_cosf(__m512 x);
__m512d _ZGVeN8v_sin(__m512d x);
__m512d _ZGVeN8v_cos(__m512d x);
__m256 _ZGVdN8v_sinf(__m256 x);
__m256 _ZGVdN8v_cosf(__m256 x);

void bench_mvec_f32_avx512(const float *x, float *cos, float *sin, int count) {
    for (int i = 0; i < count; i += 16) {
        __m512 angle = _mm512_loadu_ps(x + i);
        _mm512_storeu_ps(cos + i, _ZGVeN16v_cosf(angle));
        _mm512_storeu_ps(sin + i, _ZGVeN16v_sinf(angle));
    }
}

void bench_mvec_f32_avx2(const float *x, float *cos, float *sin, int count) {
    for (int i = 0; i < count; i += 8) {
        __m256 angle = _mm256_loadu_ps(x + i);
        _mm256_storeu_ps(cos + i, _ZGVdN8v_cosf(angle));
        _mm256_storeu_ps(sin + i, _ZGVdN8v_sinf(angle));
    }
}

void bench_mvec_f64_avx512(const double *x, double *cos, double *sin, int count) {
    for (int i = 0; i < count; i += 8) {
        __m512d angle = _mm512_loadu_pd(x + i);
        _mm512_storeu_pd(cos + i, _ZGVeN8v_cos(angle));
        _mm512_storeu_pd(sin + i, _ZGVeN8v_sin(angle));
    }
}
#endif

#if defined(BENCH_SLEEF)
#include <sleef.h>

void bench_sleef_avx512(const double *x, double *cos, double *sin, int count) {
    for (int i = 0; i < count; i += 8) {
        Sleef___m512d_2 both = Sleef_sincosd8_u10avx512f(_mm512_loadu_pd(x + i));
        _mm512_storeu_pd(sin + i, both.x);
        _mm512_storeu_pd(cos + i, both.y);
    }
}

void bench_sleef_avx2(const double *x, double *cos, double *sin, int count) {
    for (int i = 0; i < count; i += 4) {
        Sleef___m256d_2 both = Sleef_sincosd4_u10avx2(_mm256_loadu_pd(x + i));
        _mm256_storeu_pd(sin + i, both.x);
        _mm256_storeu_pd(cos + i, both.y);
    }
}
#endif
