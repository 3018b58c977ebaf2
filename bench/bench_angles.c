/* Speed of exact cos and sin rows against what else there is: glibc's vector float32 sin and cos (libmvec) of
 * float32 angles, SLEEF's float64 sincos of float64 angles, glibc's scalar sincos. All compute the same
 * pairs, 64 frequencies times 2048 positions, in turns within one process; printed are nanoseconds a pair
 * (median over rounds) and how many times faster posenc is (median and range of the rounds' ratios).
 * Peers that were not there at build time, or that this CPU cannot run, are left out by name.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* sincos */
#include "bench_peers.h"
#include "posenc/posenc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAIRS = 64, POSITIONS = 2048, COUNT = PAIRS * POSITIONS, ROUNDS = 21 };

static float angles_f32[COUNT], cos_f32[COUNT], sin_f32[COUNT];
static double angles_f64[COUNT], cos_f64[COUNT], sin_f64[COUNT];
static int64_t running[POSITIONS], scattered[POSITIONS];
static posenc_frequencies *frequencies;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* --- What is measured: each computes all pairs once ---------------------------------------------- */

static void run_posenc(const int64_t *positions) {
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_error error;
    rows.cos = cos_f32;
    rows.sin = sin_f32;
    if (posenc_angles(frequencies, positions, POSITIONS, &rows, &error))
        exit(2);
}

static void posenc_run(void) {
    run_posenc(running);
}

static void posenc_scattered(void) {
    run_posenc(scattered);
}

static void glibc_sincos(void) {
    for (int i = 0; i < COUNT; i++)
        sincos(angles_f64[i], &sin_f64[i], &cos_f64[i]);
}

/* Peers in bench_peers.c, which is compiled for their CPUs. */
#if defined(BENCH_MVEC)
static void mvec_f32_avx512(void) {
    bench_mvec_f32_avx512(angles_f32, cos_f32, sin_f32, COUNT);
}

static void mvec_f64_avx512(void) {
    bench_mvec_f64_avx512(angles_f64, cos_f64, sin_f64, COUNT);
}

static void mvec_f32_avx2(void) {
    bench_mvec_f32_avx2(angles_f32, cos_f32, sin_f32, COUNT);
}
#endif

#if defined(BENCH_SLEEF)
static void sleef_avx512(void) {
    bench_sleef_avx512(angles_f64, cos_f64, sin_f64, COUNT);
}

static void sleef_avx2(void) {
    bench_sleef_avx2(angles_f64, cos_f64, sin_f64, COUNT);
}
#endif

typedef struct contender {
    const char *name;
    void (*run)(void);
    int available;
    double seconds[ROUNDS];
} contender;

static int has_avx512(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") != 0;
#else
    return 0;
#endif
}

static int has_avx2(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 0;
#endif
}

/* --- Measuring ----------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values) {
    double sorted[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        sorted[i] = values[i];
    qsort(sorted, ROUNDS, sizeof *sorted, compare);
    return sorted[ROUNDS / 2];
}

static void print_row(const contender *peer, const contender *run, const contender *other) {
    double ratio[2][ROUNDS], low = INFINITY, high = 0.0;
    for (int i = 0; i < ROUNDS; i++) {
        ratio[0][i] = peer->seconds[i] / run->seconds[i];
        ratio[1][i] = peer->seconds[i] / other->seconds[i];
        low = fmin(low, ratio[0][i]);
        high = fmax(high, ratio[0][i]);
    }
    printf("%-34s %8.3f %8.2f [%.2f .. %.2f] %8.2f\n", peer->name,
           median(peer->seconds) / (double)COUNT * 1e9, median(ratio[0]), low, high,
           median(ratio[1]));
}

static void prepare(double first) {
    for (int i = 0; i < POSITIONS; i++) {
        running[i] = (int64_t)first + i;
        scattered[i] = (int64_t)first + i * 1021 % POSITIONS;
        for (int j = 0; j < PAIRS; j++) {
            double inv_freq =
                posenc_frequencies_inv_freq(frequencies, (size_t)j, POSENC_MODE_EXACT);
            angles_f64[i * PAIRS + j] = (first + i) * inv_freq;
            angles_f32[i * PAIRS + j] = (float)(first + i) * (float)inv_freq;
        }
    }
}

static void measure(double first) {
    contender all[] = {
        {"posenc, running positions", posenc_run, 1, {0}},
        {"posenc, scattered positions", posenc_scattered, 1, {0}},
#if defined(BENCH_MVEC)
        {"libmvec float32 sin and cos, AVX-512", mvec_f32_avx512, has_avx512(), {0}},
        {"libmvec float64 sin and cos, AVX-512", mvec_f64_avx512, has_avx512(), {0}},
        {"libmvec float32 sin and cos, AVX2", mvec_f32_avx2, has_avx2(), {0}},
#endif
#if defined(BENCH_SLEEF)
        {"SLEEF float64 sincos, AVX-512", sleef_avx512, has_avx512(), {0}},
        {"SLEEF float64 sincos, AVX2", sleef_avx2, has_avx2(), {0}},
#endif
        {"glibc float64 sincos", glibc_sincos, 1, {0}},
    };
    enum { CONTENDERS = sizeof all / sizeof *all };
    prepare(first);
    for (int round = -1; round < ROUNDS; round++) { /* one round to warm up */
        for (int i = 0; i < CONTENDERS; i++) {
            if (!all[i].available)
                continue;
            all[i].run(); /* so that its arrays are warm, whatever ran before */
            double start = now();
            all[i].run();
            if (round >= 0)
                all[i].seconds[round] = now() - start;
        }
    }
    printf("\npositions %.0f ... %.0f, %d pairs\n%-34s %8s %17s %18s\n", first,
           first + (double)POSITIONS - 1.0, PAIRS, "", "ns/pair", "times the run's",
           "the scattered's");
    for (int i = 0; i < CONTENDERS; i++) {
        if (all[i].available)
            print_row(&all[i], &all[0], &all[1]);
    }
}

int main(void) {
    posenc_spec spec = POSENC_SPEC_INIT;
    spec.head_dim = 2 * PAIRS;
    posenc_error error;
    if (posenc_frequencies_create(&spec, 0, &frequencies, NULL, &error))
        return 2;
    printf("posenc %s, CPU level %s; posenc's values are float32, correctly rounded\n",
           posenc_version(), posenc_cpu());
    measure(0.0);
    measure(1000000.0);
    posenc_frequencies_destroy(frequencies);
    return 0;
}
