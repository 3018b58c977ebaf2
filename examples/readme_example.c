/* README shows what stands between the two marks. SPDX-License-Identifier: MIT */
#include <posenc/posenc.h>

#include <stdio.h>

enum { TOKENS = 4 };
static float q[TOKENS][32][128] = {{{1}}}, k[TOKENS][8][128]; /* from your model */
static float cosines[TOKENS][64], sines[TOKENS][64];
static const int64_t positions[TOKENS] = {1000000, 1000001, 1000002, 1000003};

static int fail(const posenc_error *error) {
    char sentence[256]; /* such as: head_dim is 0 but must be from 2 to 16777216 */
    posenc_error_text(error, sentence, sizeof sentence);
    fprintf(stderr, "%s\n", sentence);
    return 1;
}

int main(void) {
    /* README begins */
    posenc_spec spec = {.size = sizeof spec, .head_dim = 128, .base = 500000};
    posenc_rows rows = {.size = sizeof rows, .cos = cosines, .sin = sines};
    posenc_tensor q_shape = posenc_tensor_dense(POSENC_F32, 1, TOKENS, 32, 128);
    posenc_tensor k_shape = posenc_tensor_dense(POSENC_F32, 1, TOKENS, 8, 128);
    posenc_frequencies *frequencies;
    posenc_rotation rotation;
    posenc_error error;

    if (posenc_frequencies_create(&spec, 0, &frequencies, NULL, &error) ||   /* once a model */
        posenc_angles(frequencies, positions, TOKENS, &rows, &error) ||      /* once a pass */
        posenc_rotation_of(frequencies, &rows, TOKENS, &rotation, &error) || /* with it */
        posenc_rotate(&rotation, &q_shape, q, q, NULL, &error) || /* every layer, in place */
        posenc_rotate(&rotation, &k_shape, k, k, NULL, &error))
        return fail(&error); /* a sentence that names the argument, its value and the range */
    /* README ends */
    printf("%.6f\n", (double)q[0][0][0]); /* cos(1000000) = 0.936752 */
    posenc_frequencies_destroy(frequencies);
    return 0;
}
