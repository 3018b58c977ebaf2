/* SLEEF's float64 sincos, compiled for the CPUs that it is called on only. SPDX-License-Identifier: MIT */
#include <sleef.h>

void bench_sleef_avx512(const double *x, double *cos, double *sin, int count);
void bench_sleef_avx2(const double *x, double *cos, double *sin, int count);

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
