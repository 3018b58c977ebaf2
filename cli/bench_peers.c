/* Finding peers at run time, so that the program needs none. SPDX-License-Identifier: MIT */
#if defined(__GLIBC__) || defined(__linux__)
#define _GNU_SOURCE /* sincos */
#endif
#include "bench_peers.h"

#include <dlfcn.h>
#include <math.h>

static void scalar_loop(const bench_peer *peer, const void *angles, void *cos_to, void *sin_to,
                        size_t count) {
    const double *angle = angles;
    double *c = cos_to, *s = sin_to;
    (void)peer;
    for (size_t i = 0; i < count; i++) {
#if defined(_GNU_SOURCE)
        sincos(angle[i], &s[i], &c[i]);
#else
        c[i] = cos(angle[i]);
        s[i] = sin(angle[i]);
#endif
    }
}

#if defined(__x86_64__)
/* Libraries by the names of their binary interfaces, functions by those of the x86 vector ABI. */
typedef struct peer_place {
    bench_peer peer;
    int needs_avx512;
    const char *library, *functions[2];
} peer_place;

static const peer_place places[] = {
    {{"libmvec float32, AVX-512", 1, bench_mvec_f32_avx512, {NULL, NULL}},
     1,
     "libmvec.so.1",
     {"_ZGVeN16v_cosf", "_ZGVeN16v_sinf"}},
    {{"libmvec float64, AVX-512", 0, bench_mvec_f64_avx512, {NULL, NULL}},
     1,
     "libmvec.so.1",
     {"_ZGVeN8v_cos", "_ZGVeN8v_sin"}},
    {{"libmvec float32, AVX2", 1, bench_mvec_f32_avx2, {NULL, NULL}},
     0,
     "libmvec.so.1",
     {"_ZGVdN8v_cosf", "_ZGVdN8v_sinf"}},
    {{"SLEEF float64, AVX-512", 0, bench_sleef_avx512, {NULL, NULL}},
     1,
     "libsleef.so.3",
     {"Sleef_sincosd8_u10avx512f", NULL}},
    {{"SLEEF float64, AVX2", 0, bench_sleef_avx2, {NULL, NULL}},
     0,
     "libsleef.so.3",
     {"Sleef_sincosd4_u10avx2", NULL}},
};

/* Libraries stay open until the program ends. */
static int is_there(const peer_place *place, bench_peer *peer) {
    *peer = place->peer;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        (place->needs_avx512 && !__builtin_cpu_supports("avx512f")))
        return 0;
    void *library = dlopen(place->library, RTLD_NOW | RTLD_LOCAL);
    for (int i = 0; library && i < 2 && place->functions[i]; i++) {
        peer->functions[i] = dlsym(library, place->functions[i]);
        if (!peer->functions[i])
            return 0;
    }
    return library != NULL;
}
#endif

size_t bench_peers_find(bench_peer *peers) {
    size_t found = 0;
#if defined(__x86_64__)
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        found += (size_t)is_there(&places[i], &peers[found]);
#endif
    peers[found++] = (bench_peer){"the C library's float64 sincos", 0, scalar_loop, {NULL, NULL}};
    return found;
}
