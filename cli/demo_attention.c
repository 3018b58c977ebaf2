/* The real thing: queries and keys of a trained model, rotated. SPDX-License-Identifier: MIT */
#include "demo.h"
#include "embedded_activations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Layer 4 of a small llama trained on stories, for a story of 96 tokens: 8 query heads share 4 key
 * heads; interleaved pairs, base 10000. Shape (tokens, heads, head_dim). */
enum { TOKENS = 96, Q_HEADS = 8, K_HEADS = 4, DIM = 8, PAIRS = DIM / 2, SHOWN = 8, SHOWN_HEAD = 7 };

typedef struct model {
    float q[TOKENS * Q_HEADS * DIM], k[TOKENS * K_HEADS * DIM];
    float cos[TOKENS * PAIRS], sin[TOKENS * PAIRS];
    demo_rope rope;
} model;

static void load_model(model *m) {
    memcpy(m->q, embedded_layer4_q, sizeof m->q);
    memcpy(m->k, embedded_layer4_k, sizeof m->k);
    m->rope = demo_rope_make(DIM, 10000.0, POSENC_PAIRING_INTERLEAVED);
}

/* Rotates tokens first ... first + count - 1 of q and k in place, at these positions. */
static posenc_status rotate_tokens(model *m, size_t first, size_t count, const int64_t *positions) {
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_rotation rotation;
    rows.cos = m->cos;
    rows.sin = m->sin;
    posenc_status status = posenc_angles(m->rope.frequencies, positions, count, &rows, NULL);
    if (!status)
        status = posenc_rotation_of(m->rope.frequencies, &rows, count, &rotation, NULL);
    if (status)
        return status;
    posenc_tensor q = posenc_tensor_dense(POSENC_F32, 1, count, Q_HEADS, DIM);
    posenc_tensor k = posenc_tensor_dense(POSENC_F32, 1, count, K_HEADS, DIM);
    float *q_at = m->q + first * Q_HEADS * DIM, *k_at = m->k + first * K_HEADS * DIM;
    status = posenc_rotate(&rotation, &q, q_at, q_at, NULL, NULL);
    return status ? status : posenc_rotate(&rotation, &k, k_at, k_at, NULL, NULL);
}

static void count_up(int64_t positions[TOKENS]) {
    for (int i = 0; i < TOKENS; i++)
        positions[i] = i;
}

/* Attention weights of token `query` in one query head over keys 0 ... query. */
static void attend(const model *m, size_t query, size_t head, double weights[TOKENS]) {
    double sum = 0.0;
    for (size_t key = 0; key <= query; key++) {
        const float *q = m->q + (query * Q_HEADS + head) * DIM;
        const float *k = m->k + (key * K_HEADS + head * K_HEADS / Q_HEADS) * DIM;
        double score = 0.0;
        for (int i = 0; i < DIM; i++)
            score += (double)q[i] * (double)k[i];
        weights[key] = exp(score / sqrt((double)DIM));
        sum += weights[key];
    }
    for (size_t key = 0; key <= query; key++)
        weights[key] /= sum;
}

/* How far back a head looks: the mean distance under its weights, over the second half of the story. */
static double mean_distance(const model *m, size_t head) {
    double weights[TOKENS], total = 0.0;
    for (size_t query = TOKENS / 2; query < TOKENS; query++) {
        attend(m, query, head, weights);
        for (size_t key = 0; key <= query; key++)
            total += weights[key] * (double)(query - key);
    }
    return total / (TOKENS / 2);
}

void demo_model_scores(void) {
    model *m = malloc(sizeof *m);
    if (!m)
        return;
    load_model(m);
    double before[TOKENS], after[TOKENS], distance[2][Q_HEADS];
    int64_t positions[TOKENS];
    count_up(positions);
    attend(m, TOKENS - 1, SHOWN_HEAD, before);
    for (size_t head = 0; head < Q_HEADS; head++)
        distance[0][head] = mean_distance(m, head);
    if (!rotate_tokens(m, 0, TOKENS, positions)) {
        attend(m, TOKENS - 1, SHOWN_HEAD, after);
        for (size_t head = 0; head < Q_HEADS; head++)
            distance[1][head] = mean_distance(m, head);
        demo_title("10. A trained model: layer 4 of a small llama reading a story of 96 tokens");
        demo_say(
            "Attention of the last token to the 8 before it and itself (head %d), in percent:\n",
            SHOWN_HEAD);
        demo_say("%-16s", "distance");
        for (int d = SHOWN; d >= 0; d--)
            demo_say(" %6d", d);
        demo_say("\n%-16s", "before rotating");
        for (int d = SHOWN; d >= 0; d--)
            demo_say(" %6.2f", 100.0 * before[TOKENS - 1 - d]);
        demo_say("\n%-16s", "after");
        for (int d = SHOWN; d >= 0; d--)
            demo_say(" %6.2f", 100.0 * after[TOKENS - 1 - d]);
        demo_say("\n\nMean distance that each head looks back, over the second half of the "
                 "story:\n%-16s",
                 "head");
        for (int head = 0; head < Q_HEADS; head++)
            demo_say(" %6d", head);
        demo_say("\n%-16s", "before rotating");
        for (int head = 0; head < Q_HEADS; head++)
            demo_say(" %6.2f", distance[0][head]);
        demo_say("\n%-16s", "after");
        for (int head = 0; head < Q_HEADS; head++)
            demo_say(" %6.2f", distance[1][head]);
        demo_say("\nWithout rotation the model cannot tell where a token stands; rotation is what\n"
                 "the weights were trained to use.\n");
        demo_numbers("mean_distance_before", distance[0], Q_HEADS);
        demo_numbers("mean_distance_after", distance[1], Q_HEADS);
    }
    demo_rope_free(&m->rope);
    free(m);
}

/* The largest difference of q and k between two models. */
static double largest_difference(const model *a, const model *b) {
    double largest = 0.0;
    for (size_t i = 0; i < sizeof a->q / sizeof *a->q; i++)
        largest = fmax(largest, fabs((double)a->q[i] - (double)b->q[i]));
    for (size_t i = 0; i < sizeof a->k / sizeof *a->k; i++)
        largest = fmax(largest, fabs((double)a->k[i] - (double)b->k[i]));
    return largest;
}

void demo_model_decoding(void) {
    model *models = malloc(3 * sizeof *models);
    if (!models)
        return;
    model *full = &models[0], *cached = &models[1], *wrong = &models[2];
    int64_t positions[TOKENS];
    posenc_status status = POSENC_OK;
    count_up(positions);
    for (int i = 0; i < 3; i++)
        load_model(&models[i]);
    status = rotate_tokens(full, 0, TOKENS, positions);
    for (size_t token = 0; !status && token < TOKENS; token++) {
        static const int64_t zero = 0;
        status = rotate_tokens(cached, token, 1, &positions[token]);
        if (!status)
            status = rotate_tokens(wrong, token, 1, &zero);
    }
    if (!status) {
        double numbers[2] = {largest_difference(full, cached), largest_difference(full, wrong)};
        demo_title("11. Decoding with a cache: one token at a time");
        demo_say("Largest difference from the pass over the whole story:\n"
                 "  each token at its own position                %12g\n"
                 "  each token at position 0 (the usual mistake)  %12.4f\n",
                 numbers[0], numbers[1]);
        demo_say("A row has the same bytes alone and among others, so a cached key never differs\n"
                 "from one that is computed anew.\n");
        demo_numbers("cached_decoding_difference", numbers, 1);
    }
    for (int i = 0; i < 3; i++)
        demo_rope_free(&models[i].rope);
    free(models);
}
