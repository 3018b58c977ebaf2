/* Rotating single vectors, for the demonstrations. SPDX-License-Identifier: MIT */
#include "demo.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_PAIRS = 64 };

static void check(posenc_status status, const posenc_error *error) {
    if (!status)
        return;
    char text[256];
    posenc_error_text(error, text, sizeof text);
    fprintf(stderr, "posenc demo: %s\n", text);
    exit(2);
}

demo_rope demo_rope_make(size_t dim, double base, posenc_pairing pairing) {
    return demo_rope_scaled(dim, base, pairing, NULL);
}

demo_rope demo_rope_scaled(size_t dim, double base, posenc_pairing pairing,
                           const posenc_scaling *scaling) {
    posenc_spec spec = POSENC_SPEC_INIT;
    spec.head_dim = dim;
    spec.base = base;
    spec.pairing = pairing;
    spec.scaling = scaling;
    demo_rope rope = {NULL, dim};
    posenc_error error;
    check(posenc_frequencies_create(&spec, 0, &rope.frequencies, NULL, &error), &error);
    return rope;
}

void demo_rope_free(demo_rope *rope) {
    posenc_frequencies_destroy(rope->frequencies);
    rope->frequencies = NULL;
}

void demo_rope_turn(const demo_rope *rope, const double *x, int64_t position, double *to) {
    double cos[MAX_PAIRS], sin[MAX_PAIRS];
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.cos = cos;
    rows.sin = sin;
    rows.dtype = POSENC_F64;
    posenc_error error;
    check(posenc_angles(rope->frequencies, &position, 1, &rows, &error), &error);
    posenc_rotation rotation;
    check(posenc_rotation_of(rope->frequencies, &rows, 1, &rotation, &error), &error);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F64, 1, 1, 1, rope->dim);
    check(posenc_rotate(&rotation, &tensor, x, to, NULL, &error), &error);
}

double demo_dot(const double *a, const double *b, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

double demo_rope_score(const demo_rope *rope, const double *q, int64_t q_position, const double *k,
                       int64_t k_position) {
    double turned_q[2 * MAX_PAIRS], turned_k[2 * MAX_PAIRS];
    demo_rope_turn(rope, q, q_position, turned_q);
    demo_rope_turn(rope, k, k_position, turned_k);
    return demo_dot(turned_q, turned_k, rope->dim);
}
