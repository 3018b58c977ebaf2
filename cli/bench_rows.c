/* Cos and sin rows of consecutive positions, and their check. SPDX-License-Identifier: MIT */
#include "bench_rows.h"

#include "bench_check.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double base = 10000.0;

posenc_status bench_frequencies(size_t head_dim, posenc_pairing pairing, posenc_frequencies **made,
                                posenc_error *error) {
    posenc_spec spec = POSENC_SPEC_INIT;
    spec.head_dim = head_dim;
    spec.pairing = pairing;
    spec.base = base;
    return posenc_frequencies_create(&spec, 0, made, NULL, error);
}

/* The angle of a mode and how far it may be off. Frameworks' float32 frequency may differ from the real one
 * by the roundings of a power and a reciprocal, so the library's own is taken if it is that near. */
static long double angle_of(const posenc_frequencies *frequencies, posenc_mode mode, size_t pair,
                            int64_t position, long double *doubt) {
    long double exponent = (long double)pair / (long double)posenc_frequencies_pairs(frequencies);
    long double real = powl(base, -exponent);
    if (mode == POSENC_MODE_FLOAT32) {
        double single = posenc_frequencies_inv_freq(frequencies, pair, mode);
        *doubt = 4 * LDBL_EPSILON;
        if (!(fabsl(single - real) <= 4 * FLT_EPSILON * real))
            return NAN;
        return (float)((float)position * (float)single);
    }
    long double angle = (long double)position * real;
    *doubt = 16 * LDBL_EPSILON * (1 + fabsl(angle));
    return angle;
}

static int number_is_right(const char *name, const void *array, posenc_dtype dtype, size_t index,
                           long double wanted, long double doubt, int64_t position, size_t pair) {
    double got = bench_number(array, dtype, index);
    if (bench_is_rounded(got, wanted, doubt, dtype))
        return 1;
    fprintf(stderr,
            "posenc bench: wrong: %s of position %" PRId64 ", pair %zu is %.17g, not %.17Lg\n",
            name, position, pair, got, wanted);
    return 0;
}

int64_t bench_position(int64_t first, size_t step, size_t row, size_t count) {
    return first + (int64_t)(row * step % count);
}

int bench_rows_are_right(const posenc_rows *rows, const posenc_frequencies *frequencies,
                         int64_t first, size_t step, size_t count) {
    enum { SAMPLES = 4096 };
    size_t pairs = posenc_frequencies_pairs(frequencies), total = count * pairs;
    uint64_t random = 1;
    for (size_t i = 0; i < SAMPLES && i < total; i++) {
        size_t index = total <= SAMPLES ? i : bench_random(&random, total), pair = index % pairs;
        int64_t position = bench_position(first, step, index / pairs, count);
        long double doubt, angle = angle_of(frequencies, rows->mode, pair, position, &doubt);
        if (!number_is_right("cos", rows->cos, rows->dtype, index, cosl(angle), doubt, position,
                             pair) ||
            !number_is_right("sin", rows->sin, rows->dtype, index, sinl(angle), doubt, position,
                             pair))
            return 0;
    }
    return 1;
}

posenc_status bench_turner_make(bench_turner *turner, size_t tokens, size_t head_dim,
                                posenc_pairing pairing, posenc_error *error) {
    int64_t *positions = malloc(tokens * sizeof *positions);
    posenc_rows rows = POSENC_ROWS_INIT;
    *turner = (bench_turner){.memory = malloc(tokens * head_dim * sizeof(float))};
    rows.cos = turner->memory;
    rows.sin = turner->memory + tokens * head_dim / 2;
    turner->rows = rows;
    posenc_status status = POSENC_OUT_OF_MEMORY;
    if (positions && turner->memory) {
        for (size_t i = 0; i < tokens; i++)
            positions[i] = BENCH_FIRST_POSITION + (int64_t)i;
        status = bench_frequencies(head_dim, pairing, &turner->frequencies, error);
        if (!status)
            status = posenc_angles(turner->frequencies, positions, tokens, &rows, error);
        if (!status)
            status =
                posenc_rotation_of(turner->frequencies, &rows, tokens, &turner->rotation, error);
    } else {
        *error = (posenc_error){.status = status, .argument = "rows", .must = "fit into memory"};
    }
    free(positions);
    return status;
}

void bench_turner_free(bench_turner *turner) {
    posenc_frequencies_destroy(turner->frequencies);
    free(turner->memory);
}

void bench_turn(const bench_turner *turner, size_t token, size_t pair, float *a, float *b) {
    size_t at = token * posenc_frequencies_pairs(turner->frequencies) + pair;
    float c = ((const float *)turner->rows.cos)[at], s = ((const float *)turner->rows.sin)[at];
    float ac = *a * c, bs = *b * s, as = *a * s, bc = *b * c;
    *a = ac - bs;
    *b = as + bc;
}
