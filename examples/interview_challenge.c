/* An interview question about positional encodings, answered with posenc: a sinusoidal table and
 * RoPE (half pairing) in float64, and the properties that a right answer has.
 *
 * Prints one line a property, with its largest deviation and the bound, and exits 1 if one fails.
 * SPDX-License-Identifier: MIT */
#include "posenc/posenc.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIM = 16, TOKENS = 7 };
static const double BASE = 10000.0;

/* --- The answer: two wrappers ---------------------------------------------------------------- */

static void must(posenc_status status, const posenc_error *error) {
    if (status == POSENC_OK)
        return;
    char text[256];
    posenc_error_text(error, text, sizeof text);
    fprintf(stderr, "interview_challenge: %s\n", text);
    exit(2);
}

/* table (n_positions, d_model): sin and cos of position / 10000^(2i / d_model), in turn. */
static void sinusoidal_encoding(size_t n_positions, size_t d_model, double *table) {
    posenc_sinusoidal_spec spec = POSENC_SINUSOIDAL_INIT;
    posenc_error error;
    spec.dim = d_model;
    must(posenc_sinusoidal(&spec, NULL, n_positions, POSENC_F64, 0, table, &error), &error);
}

/* out = x (leading, tokens, dim) with each token turned to its position; positions (tokens), or
 * NULL for 0, 1, 2, ... */
static void apply_rope(const double *x, size_t leading, size_t tokens, size_t dim,
                       const int64_t *positions, double base, double *out) {
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_frequencies *frequencies;
    posenc_rotation rotation;
    posenc_error error;
    int64_t *range = malloc(tokens * sizeof *range);
    double *table = malloc(tokens * dim * sizeof *table);
    if (!range || !table) {
        fprintf(stderr, "interview_challenge: out of memory\n");
        exit(2);
    }
    for (size_t t = 0; t < tokens; t++)
        range[t] = positions ? positions[t] : (int64_t)t;
    spec.head_dim = dim;
    spec.base = base;
    rows.cos = table;
    rows.dtype = POSENC_F64;
    rows.layout = POSENC_ROWS_COS_SIN;
    must(posenc_frequencies_create(&spec, 0, &frequencies, NULL, &error), &error);
    must(posenc_angles(frequencies, range, tokens, &rows, &error), &error);
    must(posenc_rotation_of(frequencies, &rows, tokens, &rotation, &error), &error);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F64, leading, tokens, 1, dim);
    must(posenc_rotate(&rotation, &tensor, x, out, NULL, &error), &error);
    posenc_frequencies_destroy(frequencies);
    free(table);
    free(range);
}

/* --- What the properties are measured with --------------------------------------------------- */

/* Numbers in [-1, 1) from a counter, mixed (splitmix64): the same in every run. */
static void fill_random(double *x, size_t count) {
    static uint64_t counter;
    for (size_t i = 0; i < count; i++) {
        uint64_t z = counter += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        x[i] = (double)((z ^ z >> 31) >> 11) * 0x1p-52 - 1.0;
    }
}

/* The larger of the two; once it is NaN it stays NaN. */
static double larger(double largest, double candidate) {
    return isnan(largest) || candidate <= largest ? largest : candidate;
}

static double largest_difference(const double *a, const double *b, size_t count) {
    double largest = 0.0;
    for (size_t i = 0; i < count; i++)
        largest = larger(largest, fabs(a[i] - b[i]));
    return largest;
}

static double dot(const double *a, const double *b, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static double norm(const double *x) {
    return sqrt(dot(x, x, DIM));
}

/* The attention score of a query at position m and a key at position n. */
static double score(const double *q, const double *k, int64_t m, int64_t n) {
    double q_m[DIM], k_n[DIM];
    apply_rope(q, 1, 1, DIM, &m, BASE, q_m);
    apply_rope(k, 1, 1, DIM, &n, BASE, k_n);
    return dot(q_m, k_n, DIM);
}

static int properties, failures;

/* A comparison with NaN is false, so that NaN never holds. */
static void report(int holds, const char *property, double value, const char *relation,
                   double bound) {
    properties++;
    failures += !holds;
    printf("%-6s  %-52s %7.1e %s %g\n", holds ? "ok" : "FAILED", property, value, relation, bound);
}

static void at_most(const char *property, double deviation, double bound) {
    report(deviation <= bound, property, deviation, "<=", bound);
}

static void at_least(const char *property, double difference, double bound) {
    report(difference >= bound, property, difference, ">=", bound);
}

/* --- The properties -------------------------------------------------------------------------- */

static void check_sinusoidal(void) {
    /* Width 4 has the frequencies 1 and 10000^(-2/4) = 1/100. */
    static const double row_0[4] = {0.0, 1.0, 0.0, 1.0};
    static const double row_1[4] = {0.8414709848078965, 0.5403023058681398, 0.009999833334166664,
                                    0.9999500004166653};
    static const double row_5_column_2 = 0.04997916927067833; /* sin(5/100) */
    double small[8][4], table[50][64];
    sinusoidal_encoding(8, 4, small[0]);
    double deviation = largest_difference(small[0], row_0, 4);
    deviation = larger(deviation, largest_difference(small[1], row_1, 4));
    deviation = larger(deviation, fabs(small[5][2] - row_5_column_2));
    at_most("table: values computed by hand, d_model 4", deviation, 1e-15);

    sinusoidal_encoding(50, 64, table[0]);
    double off_circle = 0.0, magnitude = 0.0;
    for (int p = 0; p < 50; p++) {
        for (int i = 0; i < 64; i += 2) {
            double sin = table[p][i], cos = table[p][i + 1];
            off_circle = larger(off_circle, fabs(sin * sin + cos * cos - 1.0));
            magnitude = larger(magnitude, larger(fabs(sin), fabs(cos)));
        }
    }
    at_most("table: sin^2 + cos^2 = 1", off_circle, 1e-15);
    at_most("table: no value beyond 1", magnitude, 1.0);
}

static void check_rotations(const double *x) {
    static const int64_t zero = 0;
    double q[DIM], same[DIM], turned[TOKENS][DIM], deviation = 0.0;
    fill_random(q, DIM);
    apply_rope(q, 1, 1, DIM, &zero, BASE, same);
    at_most("rope: position 0 changes nothing", largest_difference(same, q, DIM), 0.0);

    apply_rope(x, 1, TOKENS, DIM, NULL, BASE, turned[0]);
    for (int t = 0; t < TOKENS; t++)
        deviation = larger(deviation, fabs(norm(turned[t]) - norm(x + t * DIM)));
    at_most("rope: norms are kept", deviation, 1e-14);
}

static void check_relative_scores(void) {
    double q[DIM], k[DIM];
    fill_random(q, DIM);
    fill_random(k, DIM);
    double shift_7 = fabs(score(q, k, 3, 7) - score(q, k, 10, 14));
    double shift_100 = fabs(score(q, k, 0, 5) - score(q, k, 100, 105));
    at_most("rope: q_m . k_n depends on m - n only", larger(shift_7, shift_100), 1e-13);
    at_least("rope: and it does depend on m - n", fabs(score(q, k, 3, 7) - score(q, k, 3, 8)),
             1e-6);
}

static void check_shapes(const double *x) {
    static const int64_t range[TOKENS] = {0, 1, 2, 3, 4, 5, 6}, last = 6;
    double full[TOKENS][DIM], explicit[TOKENS][DIM], alone[DIM];
    apply_rope(x, 1, TOKENS, DIM, NULL, BASE, full[0]);
    apply_rope(x, 1, TOKENS, DIM, range, BASE, explicit[0]);
    apply_rope(x + (TOKENS - 1) * DIM, 1, 1, DIM, &last, BASE, alone);
    at_most("rope: explicit positions equal the default range",
            largest_difference(full[0], explicit[0], TOKENS * DIM), 0.0);
    at_most("rope: position 6 alone equals row 6 (a cached token)",
            largest_difference(full[TOKENS - 1], alone, DIM), 0.0);

    enum { LEADING = 2 * 4 }; /* a batch of 2, 4 heads each */
    static double many[LEADING][TOKENS * DIM], turned[LEADING][TOKENS * DIM];
    double one[TOKENS * DIM], deviation = 0.0;
    fill_random(many[0], LEADING * TOKENS * DIM);
    apply_rope(many[0], LEADING, TOKENS, DIM, NULL, BASE, turned[0]);
    for (int i = 0; i < LEADING; i++) {
        apply_rope(many[i], 1, TOKENS, DIM, NULL, BASE, one);
        deviation = larger(deviation, largest_difference(turned[i], one, TOKENS * DIM));
    }
    at_most("rope: leading axes broadcast", deviation, 0.0);
}

static void check_linearity(void) {
    enum { COUNT = 5 * DIM };
    double a[COUNT], b[COUNT], sum[COUNT], separately[COUNT];
    fill_random(a, COUNT);
    fill_random(b, COUNT);
    for (int i = 0; i < COUNT; i++)
        sum[i] = a[i] + b[i];
    apply_rope(a, 1, 5, DIM, NULL, BASE, a);
    apply_rope(b, 1, 5, DIM, NULL, BASE, b);
    apply_rope(sum, 1, 5, DIM, NULL, BASE, sum);
    for (int i = 0; i < COUNT; i++)
        separately[i] = a[i] + b[i];
    at_most("rope: rope(a + b) = rope(a) + rope(b)", largest_difference(sum, separately, COUNT),
            1e-14);
}

int main(void) {
    double x[TOKENS * DIM];
    fill_random(x, TOKENS * DIM);
    check_sinusoidal();
    check_rotations(x);
    check_relative_scores();
    check_shapes(x);
    check_linearity();
    if (failures)
        printf("%d of %d properties FAILED\n", failures, properties);
    else
        printf("all %d properties hold\n", properties);
    return failures != 0;
}
