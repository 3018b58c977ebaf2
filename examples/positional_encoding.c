/* Positional encodings in four demonstrations: the sinusoidal table, RoPE's relative scores, RoPE's
 * base, and ALiBi. SPDX-License-Identifier: MIT */
#include "posenc/posenc.h"

#include "gauss_vectors.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_DIM = 16 };

static void must(posenc_status status, const posenc_error *error) {
    if (status == POSENC_OK)
        return;
    char text[256];
    posenc_error_text(error, text, sizeof text);
    fprintf(stderr, "positional_encoding: %s\n", text);
    exit(2);
}

static posenc_frequencies *interleaved_frequencies(size_t dim, double base) {
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_frequencies *frequencies;
    posenc_error error;
    spec.head_dim = dim;
    spec.base = base;
    spec.pairing = POSENC_PAIRING_INTERLEAVED;
    must(posenc_frequencies_create(&spec, 0, &frequencies, NULL, &error), &error);
    return frequencies;
}

/* One head of one token, turned to its position. */
static void apply_rope(const posenc_frequencies *frequencies, const double *x, int64_t position,
                       double *turned) {
    double cos[MAX_DIM / 2], sin[MAX_DIM / 2];
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_error error;
    rows.cos = cos;
    rows.sin = sin;
    rows.dtype = POSENC_F64;
    must(posenc_angles(frequencies, &position, 1, &rows, &error), &error);
    posenc_rotate_row_interleaved_f64(x, cos, sin, 2 * posenc_frequencies_pairs(frequencies),
                                      turned);
}

/* The attention score of q at one position and k at another. */
static double score(const posenc_frequencies *frequencies, const double *q, int64_t q_position,
                    const double *k, int64_t k_position) {
    double q_turned[MAX_DIM], k_turned[MAX_DIM], sum = 0.0;
    apply_rope(frequencies, q, q_position, q_turned);
    apply_rope(frequencies, k, k_position, k_turned);
    for (size_t i = 0; i < 2 * posenc_frequencies_pairs(frequencies); i++)
        sum += q_turned[i] * k_turned[i];
    return sum;
}

static void show_sinusoidal(void) {
    double table[8][8];
    posenc_sinusoidal_spec spec = POSENC_SINUSOIDAL_INIT;
    posenc_error error;
    spec.dim = 8;
    must(posenc_sinusoidal(&spec, NULL, 8, POSENC_F64, 0, table, &error), &error);
    printf("Sinusoidal table of width 8: the first 4 positions, the first 4 columns\n");
    for (int p = 0; p < 4; p++)
        printf("  position %d: %+.3f %+.3f %+.3f %+.3f\n", p, table[p][0], table[p][1], table[p][2],
               table[p][3]);
}

static void show_relative_scores(void) {
    static const int positions[][2] = {{3, 5}, {7, 9}, {100, 102}, {1024, 1026}};
    posenc_frequencies *frequencies = interleaved_frequencies(16, 10000.0);
    printf("\nRoPE: the score of a query and a key depends only on their distance\n");
    printf("  %8s %8s %4s %12s\n", "query at", "key at", "gap", "score");
    for (int i = 0; i < 4; i++) {
        int m = positions[i][0], n = positions[i][1];
        printf("  %8d %8d %4d %12.6f\n", m, n, n - m,
               score(frequencies, gauss_seed0_q, m, gauss_seed0_k, n));
    }
    posenc_frequencies_destroy(frequencies);
}

static void show_bases(void) {
    static const double bases[] = {10000.0, 100000.0, 1000000.0};
    printf("\nRoPE: a larger base turns more slowly, so that long contexts do not come round\n");
    for (int i = 0; i < 3; i++) {
        posenc_frequencies *frequencies = interleaved_frequencies(8, bases[i]);
        printf("  base %7.0f: score at 4096 and 4098 %+.6f\n", bases[i],
               score(frequencies, gauss_seed1_q, 4096, gauss_seed1_k, 4098));
        posenc_frequencies_destroy(frequencies);
    }
}

static void show_alibi(void) {
    double slopes[4], bias[6][6];
    posenc_alibi_spec spec = POSENC_ALIBI_INIT;
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    posenc_error error;
    spec.heads = 4;
    tile.dtype = POSENC_F64;
    tile.mask = POSENC_BIAS_SYMMETRIC;
    tile.heads = 1;
    tile.queries = tile.keys = 6;
    must(posenc_alibi_slopes(&spec, 0, 4, slopes, &error), &error);
    must(posenc_alibi_bias(&spec, &tile, bias, &error), &error);
    printf("\nALiBi: nothing is rotated, distance is a penalty on the score\n");
    printf("  slopes of 4 heads: %.4f %.4f %.4f %.4f\n  symmetric bias of head 0:\n", slopes[0],
           slopes[1], slopes[2], slopes[3]);
    for (int i = 0; i < 6; i++) {
        printf("   ");
        for (int j = 0; j < 6; j++)
            printf(" %+6.2f", bias[i][j]);
        printf("\n");
    }
}

int main(void) {
    show_sinusoidal();
    show_relative_scores();
    show_bases();
    show_alibi();
    return 0;
}
