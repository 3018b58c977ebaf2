/* Random test data that can be repeated: every test draws from a stream of its own, made of its name
 * and the seed, so that it gives the same data alone and among others. The seed is printed; POSENC_SEED
 * sets it, POSENC_LONG makes 20 times as many trials. SPDX-License-Identifier: MIT */
#ifndef TEST_RANDOM_DATA_H
#define TEST_RANDOM_DATA_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct random_stream {
    uint64_t state;
} random_stream;

static inline uint64_t random_seed(void) {
    const char *text = getenv("POSENC_SEED");
    return text && *text ? strtoull(text, NULL, 0) : UINT64_C(20261129);
}

static inline int random_is_long(void) {
    const char *text = getenv("POSENC_LONG");
    return text && *text;
}

static inline size_t random_trials(size_t usual) {
    return random_is_long() ? 20 * usual : usual;
}

/* For trials that take long: fewer under sanitizers, where every access is checked and which run them at every CPU
 * level too. */
static inline size_t random_slow_trials(size_t usual) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
    usual /= 5;
#endif
#endif
    return random_trials(usual);
}

/* To be called before the tests run. */
static inline void random_announce(void) {
    printf("# seed %llu%s\n", (unsigned long long)random_seed(), random_is_long() ? ", long" : "");
    fflush(stdout);
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t random_bits(random_stream *rng) {
    uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The stream of the test `name` (pass __func__). */
static inline random_stream random_of(const char *name) {
    random_stream rng = {random_seed()};
    for (; *name; name++)
        rng.state = random_bits(&rng) ^ (unsigned char)*name;
    return rng;
}

/* 0 ... bound - 1; the slight bias of the remainder does not matter here. */
static inline size_t random_below(random_stream *rng, size_t bound) {
    return (size_t)(random_bits(rng) % bound);
}

/* low ... high, both included. */
static inline int64_t random_between(random_stream *rng, int64_t low, int64_t high) {
    return low + (int64_t)(random_bits(rng) % ((uint64_t)(high - low) + 1));
}

/* Uniform in [low, high). */
static inline double random_real(random_stream *rng, double low, double high) {
    return low + (high - low) * ((double)(random_bits(rng) >> 11) * 0x1p-53);
}

/* Normal with mean 0 and deviation 1 (Box and Muller). */
static inline double random_normal(random_stream *rng) {
    double radius = sqrt(-2.0 * log(1.0 - random_real(rng, 0.0, 1.0)));
    return radius * cos(6.283185307179586 * random_real(rng, 0.0, 1.0));
}

/* 10^low ... 10^high, all magnitudes alike. */
static inline double random_magnitude(random_stream *rng, double low, double high) {
    return pow(10.0, random_real(rng, low, high));
}

/* A position of any size up to 2^40 either way: as many small ones as large ones. */
static inline int64_t random_position(random_stream *rng) {
    int64_t bound = INT64_C(1) << random_below(rng, 41);
    return random_between(rng, -bound, bound);
}

/* Any float64 but NaN: all exponents alike, denormals and infinities too. */
static inline double random_double(random_stream *rng) {
    uint64_t bits = random_bits(rng);
    double value;
    memcpy(&value, &bits, sizeof value);
    return isnan(value) ? (double)INFINITY : value;
}

#endif
