/* Peers that bench_angles measures where they are installed: cos and sin of `count` angles.
 * SPDX-License-Identifier: MIT */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

void bench_mvec_f32_avx512(const float *x, float *cos, float *sin, int count);
void bench_mvec_f32_avx2(const float *x, float *cos, float *sin, int count);
void bench_mvec_f64_avx512(const double *x, double *cos, double *sin, int count);
void bench_sleef_avx512(const double *x, double *cos, double *sin, int count);
void bench_sleef_avx2(const double *x, double *cos, double *sin, int count);

#endif
