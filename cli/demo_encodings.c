/* The four demonstrations: sinusoids, RoPE's relative scores, its base, ALiBi.
 * SPDX-License-Identifier: MIT */
#include "demo.h"
#include "gauss_vectors.h"

#include <stdio.h>
#include <stdlib.h>

void demo_sinusoidal(void) {
    enum { ROWS = 4, DIM = 8 };
    double table[ROWS * DIM];
    posenc_sinusoidal_spec spec = POSENC_SINUSOIDAL_INIT;
    spec.dim = DIM;
    if (posenc_sinusoidal(&spec, NULL, ROWS, POSENC_F64, 0, table, NULL))
        return;
    demo_title("1. Sinusoidal table (width 8): a position as a set of clock hands");
    demo_say("%8s", "position");
    for (int k = 0; k < DIM / 2; k++)
        demo_say("    sin %d    cos %d", k, k);
    demo_say("\n");
    for (int row = 0; row < ROWS; row++) {
        demo_say("%8d", row);
        for (int i = 0; i < DIM; i++)
            demo_say(" %8.4f", table[row * DIM + i]);
        demo_say("\n");
    }
    demo_say("Each (sin, cos) pair is a hand on a circle; hand k turns by 10000^(-k/4)\n"
             "radians a position. Position 0 is 0, 1, 0, 1 ...; the table is added to\n"
             "embeddings.\n");
    demo_numbers("sinusoidal", table, sizeof table / sizeof *table);
}

void demo_relative(void) {
    static const int64_t pairs[][2] = {{3, 5}, {7, 9}, {100, 102}, {1024, 1026}};
    demo_rope rope = demo_rope_make(16, 10000.0, POSENC_PAIRING_INTERLEAVED);
    double scores[4];
    demo_title("2. RoPE: a score depends only on the distance");
    demo_say("%10s %10s %6s %14s\n", "query at", "key at", "gap", "q . k");
    for (int i = 0; i < 4; i++) {
        scores[i] = demo_rope_score(&rope, gauss_seed0_q, pairs[i][0], gauss_seed0_k, pairs[i][1]);
        demo_say("%10d %10d %6d %14.6f\n", (int)pairs[i][0], (int)pairs[i][1],
                 (int)(pairs[i][1] - pairs[i][0]), scores[i]);
    }
    double other = demo_rope_score(&rope, gauss_seed0_q, 3, gauss_seed0_k, 6);
    demo_say("%10d %10d %6d %14.6f\n", 3, 6, 3, other);
    demo_say("Turning q by 3 and k by 5 steps leaves the angle of 2 steps between them,\n"
             "wherever they stand; another gap gives another score. Lengths do not change.\n");
    demo_numbers("rope_scores", scores, 4);
    demo_rope_free(&rope);
}

void demo_bases(void) {
    static const double bases[] = {10000.0, 100000.0, 1000000.0};
    double scores[3];
    demo_title("3. RoPE's base: a larger one turns slower");
    demo_say("%10s %26s\n", "base", "q . k at 4096 and 4098");
    for (int i = 0; i < 3; i++) {
        demo_rope rope = demo_rope_make(8, bases[i], POSENC_PAIRING_INTERLEAVED);
        scores[i] = demo_rope_score(&rope, gauss_seed1_q, 4096, gauss_seed1_k, 4098);
        demo_say("%10.0f %+26.6f\n", bases[i], scores[i]);
        demo_rope_free(&rope);
    }
    demo_say("Models for long contexts are trained with larger bases (Llama 3: 500000), so\n"
             "that the slow pairs do not come round within the context.\n");
    demo_numbers("base_scores", scores, 3);
}

void demo_alibi(void) {
    enum { HEADS = 4, TOKENS = 6 };
    double slopes[HEADS], paper[6], plain[6], bias[TOKENS * TOKENS];
    posenc_alibi_spec spec = POSENC_ALIBI_INIT;
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    spec.heads = HEADS;
    tile.dtype = POSENC_F64;
    tile.mask = POSENC_BIAS_SYMMETRIC;
    tile.heads = 1;
    tile.queries = tile.keys = TOKENS;
    if (posenc_alibi_slopes(&spec, 0, HEADS, slopes, NULL) ||
        posenc_alibi_bias(&spec, &tile, bias, NULL))
        return;
    spec.heads = 6;
    if (posenc_alibi_slopes(&spec, 0, 6, paper, NULL))
        return;
    spec.slopes = POSENC_SLOPES_PLAIN;
    if (posenc_alibi_slopes(&spec, 0, 6, plain, NULL))
        return;
    demo_title("4. ALiBi: nothing is rotated, far keys are penalised");
    demo_say("slopes of 4 heads: %.4f %.4f %.4f %.4f; bias of head 0, both ways:\n", slopes[0],
             slopes[1], slopes[2], slopes[3]);
    for (int i = 0; i < TOKENS; i++) {
        for (int j = 0; j < TOKENS; j++)
            demo_say(" %8.2f", bias[i * TOKENS + j]);
        demo_say("\n");
    }
    demo_say("Each head looks back at its own scale. Two slope rules are in use, and they\n"
             "differ where the head count is no power of two. At 6 heads:\n");
    demo_say("  paper: %8.4f %8.4f %8.4f %8.4f %8.4f %8.4f\n", paper[0], paper[1], paper[2],
             paper[3], paper[4], paper[5]);
    demo_say("  plain: %8.4f %8.4f %8.4f %8.4f %8.4f %8.4f\n", plain[0], plain[1], plain[2],
             plain[3], plain[4], plain[5]);
    demo_numbers("alibi_slopes", slopes, HEADS);
    demo_numbers("alibi_bias_head_0", bias, TOKENS * TOKENS);
    demo_numbers("alibi_slopes_6_paper", paper, 6);
    demo_numbers("alibi_slopes_6_plain", plain, 6);
}
