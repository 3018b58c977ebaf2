/* What an interviewer asks next, each answered by a number. SPDX-License-Identifier: MIT */
#include "demo.h"
#include "gauss_vectors.h"

#include <math.h>
#include <stdio.h>

static const double turn = 6.283185307179586477;

void demo_wavelengths(void) {
    enum { SHOWN = 5 };
    static const size_t pairs[SHOWN] = {0, 16, 32, 48, 63};
    demo_rope rope = demo_rope_make(128, 10000.0, POSENC_PAIRING_HALF);
    double wavelengths[SHOWN];
    demo_title("5. Why do low pairs turn fast and high pairs slowly?");
    demo_say("%6s %24s %24s\n", "pair", "radians per position", "positions per turn");
    for (int i = 0; i < SHOWN; i++) {
        double inv_freq =
            posenc_frequencies_inv_freq(rope.frequencies, pairs[i], POSENC_MODE_EXACT);
        wavelengths[i] = turn / inv_freq;
        demo_say("%6zu %24.9f %24.2f\n", pairs[i], inv_freq, wavelengths[i]);
    }
    demo_say("So that every scale is told apart: the first pair tells neighbours (it comes\n"
             "round after 2 pi = 6.28 positions), the last one regions (its wavelength is\n"
             "nearly 2 pi * 10000).\n");
    demo_numbers("wavelengths", wavelengths, SHOWN);
    demo_rope_free(&rope);
}

/* The output of two keys attended with equal weight, with values turned to their positions. */
static double output_change(const demo_rope *rope, const double *v0, const double *v1,
                            int64_t shift) {
    double change = 0.0, here[2][16], there[2][16];
    demo_rope_turn(rope, v0, 3, here[0]);
    demo_rope_turn(rope, v1, 5, here[1]);
    demo_rope_turn(rope, v0, 3 + shift, there[0]);
    demo_rope_turn(rope, v1, 5 + shift, there[1]);
    for (size_t i = 0; i < rope->dim; i++) {
        double difference = (there[0][i] + there[1][i]) / 2 - (here[0][i] + here[1][i]) / 2;
        change += difference * difference;
    }
    return sqrt(change);
}

void demo_values(void) {
    demo_rope rope = demo_rope_make(16, 10000.0, POSENC_PAIRING_INTERLEAVED);
    double q_k = fabs(demo_rope_score(&rope, gauss_seed0_q, 103, gauss_seed0_k, 105) -
                      demo_rope_score(&rope, gauss_seed0_q, 3, gauss_seed0_k, 5));
    double v = output_change(&rope, gauss_seed0_q, gauss_seed0_k, 100);
    demo_title("6. Why are q and k rotated, but not v?");
    demo_say("The same text 100 positions later changes\n"
             "  a score q . k of rotated q and k by           %12.2e\n"
             "  the output, if v were rotated too, by         %12.4f\n",
             q_k, v);
    demo_say("In q . k two rotations meet and leave the distance; in the sum over values\n"
             "nothing cancels them, and the output would depend on where the text stands.\n");
    double numbers[2] = {q_k, v};
    demo_numbers("shift_changes_score_and_rotated_values", numbers, 2);
    demo_rope_free(&rope);
}

void demo_mixed_pairings(void) {
    static const int64_t starts[] = {3, 7, 100, 1024};
    demo_rope half = demo_rope_make(16, 10000.0, POSENC_PAIRING_HALF);
    demo_rope interleaved = demo_rope_make(16, 10000.0, POSENC_PAIRING_INTERLEAVED);
    double right[4], mixed[4];
    demo_title("7. What does mixing the two pairings do to a score?");
    demo_say("%10s %10s %20s %24s\n", "query at", "key at", "both interleaved",
             "q interleaved, k half");
    for (int i = 0; i < 4; i++) {
        double q[16], k[16];
        right[i] =
            demo_rope_score(&interleaved, gauss_seed0_q, starts[i], gauss_seed0_k, starts[i] + 2);
        demo_rope_turn(&interleaved, gauss_seed0_q, starts[i], q);
        demo_rope_turn(&half, gauss_seed0_k, starts[i] + 2, k);
        mixed[i] = demo_dot(q, k, 16);
        demo_say("%10d %10d %20.6f %24.6f\n", (int)starts[i], (int)starts[i] + 2, right[i],
                 mixed[i]);
    }
    demo_say("Other channels turn together, so the two rotations no longer cancel and the\n"
             "score depends on where the tokens stand. At position 0 both do nothing: a test\n"
             "there finds no fault.\n");
    demo_numbers("mixed_pairing_scores", mixed, 4);
    demo_rope_free(&half);
    demo_rope_free(&interleaved);
}

/* The frequencies of head_dim 128 with a scaling from 2048 to 8192 positions. */
static demo_rope stretched(posenc_scaling_type type) {
    posenc_scaling scaling = POSENC_SCALING_INIT;
    scaling.type = type;
    scaling.factor = 4.0;
    scaling.original_max_positions = 2048;
    return demo_rope_scaled(128, 10000.0, POSENC_PAIRING_HALF, &scaling);
}

void demo_extension(void) {
    enum { SHOWN = 5, WAYS = 3 };
    static const size_t pairs[SHOWN] = {0, 16, 32, 48, 63};
    double factors[WAYS * SHOWN];
    demo_rope plain = demo_rope_make(128, 10000.0, POSENC_PAIRING_HALF);
    demo_rope ways[WAYS] = {stretched(POSENC_SCALING_LINEAR), stretched(POSENC_SCALING_NTK),
                            stretched(POSENC_SCALING_YARN)};
    demo_title("8. Why can a learned table not extrapolate, and what is done instead?");
    demo_say("A learned table of 2048 positions has rows 0 ... 2047: for position 2048 there\n"
             "is no row. RoPE has an angle everywhere, but beyond 2048 the slow pairs reach\n"
             "angles that training never showed. To stretch 2048 to 8192 their frequencies\n"
             "are multiplied:\n");
    demo_say("%5s %14s %14s %14s %10s %10s\n", "pair", "angle at 2047", "angle at 8191",
             "interpolation", "NTK base", "YaRN");
    for (int i = 0; i < SHOWN; i++) {
        double inv_freq =
            posenc_frequencies_inv_freq(plain.frequencies, pairs[i], POSENC_MODE_EXACT);
        double *factor = &factors[WAYS * i];
        for (int way = 0; way < WAYS; way++)
            factor[way] =
                posenc_frequencies_inv_freq(ways[way].frequencies, pairs[i], POSENC_MODE_EXACT) /
                inv_freq;
        demo_say("%5zu %14.4f %14.4f %14.4f %10.4f %10.4f\n", pairs[i], 2047.0 * inv_freq,
                 8191.0 * inv_freq, factor[0], factor[1], factor[2]);
    }
    demo_say("Position interpolation slows every pair, neighbours included; the NTK-aware\n"
             "base leaves the fast ones and slows the slowest by the whole factor; YaRN\n"
             "chooses by how often a pair turns within 2048 positions, and multiplies cos\n"
             "and sin by 0.1 ln 4 + 1 = %.6f.\n",
             posenc_frequencies_attention_factor(ways[2].frequencies, POSENC_MODE_EXACT));
    demo_numbers("extension_factors_interpolation_ntk_yarn", factors,
                 sizeof factors / sizeof *factors);
    demo_rope_free(&plain);
    for (int way = 0; way < WAYS; way++)
        demo_rope_free(&ways[way]);
}

void demo_bias(void) {
    enum { KEYS = 5 };
    float bias[2 * KEYS];
    posenc_alibi_spec spec = POSENC_ALIBI_INIT;
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    spec.heads = 8;
    tile.heads = 2;
    tile.queries = 1;
    tile.keys = KEYS;
    if (posenc_alibi_bias(&spec, &tile, bias, NULL))
        return;
    demo_title("9. And ALiBi?");
    demo_say("It adds to scores, so a decoding step needs only the distance to every cached\n"
             "key; the last query over 5 keys, heads 0 and 1 of 8:\n");
    for (int head = 0; head < 2; head++) {
        for (int key = 0; key < KEYS; key++)
            demo_say(" %8.4f", (double)bias[head * KEYS + key]);
        demo_say("\n");
    }
    demo_say("There is no table to run out of, and no frequency to stretch: the penalty just\n"
             "grows.\n");
    double numbers[2 * KEYS];
    for (int i = 0; i < 2 * KEYS; i++)
        numbers[i] = (double)bias[i];
    demo_numbers("alibi_decoding", numbers, 2 * KEYS);
}
