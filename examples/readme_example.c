/* The example of README.md. SPDX-License-Identifier: MIT */
#include <posenc/posenc.h>
#include <stdio.h>

enum { TOKENS = 4, Q_HEADS = 32, K_HEADS = 8, DIM = 128 };

static float q[TOKENS][Q_HEADS][DIM] = {{{1}}}, k[TOKENS][K_HEADS][DIM]; /* from your model */
static float cosines[TOKENS][DIM / 2], sines[TOKENS][DIM / 2];
static const int64_t positions[TOKENS] = {1000000, 1000001, 1000002, 1000003};
static const posenc_spec spec = {
    .size = sizeof spec, .head_dim = DIM, .base = 500000, .pairing = POSENC_PAIRING_HALF};

static int fail(const posenc_error *error) {
    char sentence[256]; /* such as: head_dim is 0 but must be from 2 to 16777216 */
    posenc_error_text(error, sentence, sizeof sentence);
    fprintf(stderr, "%s\n", sentence);
    return 1;
}

int main(void) {
    posenc_rows rows = {.size = sizeof rows, .cos = cosines, .sin = sines};
    posenc_tensor q_shape = posenc_tensor_dense(POSENC_F32, 1, TOKENS, Q_HEADS, DIM);
    posenc_tensor k_shape = posenc_tensor_dense(POSENC_F32, 1, TOKENS, K_HEADS, DIM);
    posenc_frequencies *frequencies;
    posenc_rotation rotation;
    posenc_error error;

    if (posenc_frequencies_create(&spec, 0, &frequencies, NULL, &error) || /* once per model */
        posenc_angles(frequencies, positions, TOKENS, &rows, &error) ||    /* once per pass */
        posenc_rotation_of(frequencies, &rows, TOKENS, &rotation, &error) ||
        posenc_rotate(&rotation, &q_shape, q, q, NULL, &error) || /* in every layer, in place */
        posenc_rotate(&rotation, &k_shape, k, k, NULL, &error))
        return fail(&error);
    printf("%.6f\n", q[0][0][0]); /* cos(1000000) = 0.936752 */
    posenc_frequencies_destroy(frequencies);
    return 0;
}
