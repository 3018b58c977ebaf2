/* Other libraries' cos and sin, found where they are installed: glibc's vector functions (libmvec) and scalar sincos, SLEEF.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_PEERS_H
#define CLI_BENCH_PEERS_H

#include <stddef.h>

/* Computes cos and sin of `count` angles, a multiple of 16. */
typedef struct bench_peer bench_peer;
typedef void bench_peer_loop(const bench_peer *peer, const void *angles, void *cos, void *sin,
                             size_t count);

struct bench_peer {
    const char *name;
    int single; /* 1: numbers are float32, else float64 */
    bench_peer_loop *loop;
    void *functions[2]; /* as dlsym gave them: of cos and of sin, or one of both */
};

enum { BENCH_MOST_PEERS = 6 };

/* Fills in those that are installed and that this CPU can run; returns how many. */
size_t bench_peers_find(bench_peer *peers);

/* In bench_peer_loops.c, which is compiled for the CPUs that it is called on only. */
bench_peer_loop bench_mvec_f32_avx512, bench_mvec_f64_avx512, bench_mvec_f32_avx2,
    bench_sleef_avx512, bench_sleef_avx2;

#endif
