/* Loops over peers' vector functions. SPDX-License-Identifier: MIT */
#include "bench_peers.h"

#include <immintrin.h>
#include <string.h>

/* A function from the pointer to an object that dlsym gives. */
#define FUNCTION(type, name, pointer)                                                              \
    type *name;                                                                                    \
    memcpy(&name, &(pointer), sizeof name)

/* One function of cos, one of sin. */
#define LOOP_OF_TWO(name, real, vector, lanes, load, store)                                        \
    typedef vector name##_function(vector);                                                        \
    void name(const bench_peer *peer, const void *angles, void *cos, void *sin, size_t count) {    \
        FUNCTION(name##_function, cos_of, peer->functions[0]);                                     \
        FUNCTION(name##_function, sin_of, peer->functions[1]);                                     \
        for (size_t i = 0; i < count; i += lanes) {                                                \
            vector angle = load((const real *)angles + i);                                         \
            store((real *)cos + i, cos_of(angle));                                                 \
            store((real *)sin + i, sin_of(angle));                                                 \
        }                                                                                          \
    }
LOOP_OF_TWO(bench_mvec_f32_avx512, float, __m512, 16, _mm512_loadu_ps, _mm512_storeu_ps)
LOOP_OF_TWO(bench_mvec_f64_avx512, double, __m512d, 8, _mm512_loadu_pd, _mm512_storeu_pd)
LOOP_OF_TWO(bench_mvec_f32_avx2, float, __m256, 8, _mm256_loadu_ps, _mm256_storeu_ps)

/* One function of both, sin first. */
#define LOOP_OF_BOTH(name, vector, lanes, load, store)                                             \
    typedef struct name##_pair {                                                                   \
        vector sin, cos;                                                                           \
    } name##_pair;                                                                                 \
    typedef name##_pair name##_function(vector);                                                   \
    void name(const bench_peer *peer, const void *angles, void *cos, void *sin, size_t count) {    \
        FUNCTION(name##_function, both_of, peer->functions[0]);                                    \
        for (size_t i = 0; i < count; i += lanes) {                                                \
            name##_pair both = both_of(load((const double *)angles + i));                          \
            store((double *)cos + i, both.cos);                                                    \
            store((double *)sin + i, both.sin);                                                    \
        }                                                                                          \
    }
LOOP_OF_BOTH(bench_sleef_avx512, __m512d, 8, _mm512_loadu_pd, _mm512_storeu_pd)
LOOP_OF_BOTH(bench_sleef_avx2, __m256d, 4, _mm256_loadu_pd, _mm256_storeu_pd)
