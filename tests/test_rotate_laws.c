/* The laws of rotations, and attention factors. SPDX-License-Identifier: MIT */
#include "rotation_cases.h"

/* --- Laws --------------------------------------------------------------------------------------- */

static void in_place_gives_the_bytes_of_out_of_place(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(64); trial++) {
        const size_t shape[] = {2, 3, 2, 10};
        rotate_case c = case_of(dtypes[trial % 4], shape, pairings[trial / 4 % 2]);
        c.rotation.rotary_dim = 6;
        c.rotation.rotary_start = trial % 5;
        strided x = strided_new(&c.x, GUARD_AFTER), y = strided_new(&c.x, GUARD_AFTER);
        strided table = table_new(&c.rotation, GUARD_AFTER, &rng);
        posenc_rotation r = c.rotation;
        r.cos = r.sin = table.data;
        strided_fill(&x, 1, &rng);
        assert_int_equal(posenc_rotate(&r, &c.x, x.data, y.data, NULL, NULL), POSENC_OK);
        assert_int_equal(posenc_rotate(&r, &c.x, x.data, x.data, NULL, NULL), POSENC_OK);
        assert_memory_equal(x.data, y.data, x.memory.bytes);
        guarded_free(&x.memory);
        guarded_free(&y.memory);
        guarded_free(&table.memory);
    }
}

/* The output's place chooses the order in which heads pass. */
static void every_distance_of_the_output_gives_the_same_bytes(void **state) {
    (void)state;
    enum { PAGE = 4096, TOKENS = 70, BYTES = TOKENS * 5 * 10 * 8 };
    static _Alignas(64) char input[BYTES], memory[2 * PAGE + 2 * BYTES];
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(512); trial++) {
        const size_t shape[] = {1, trial % 3 ? 3 : TOKENS, 5, 10};
        rotate_case c = case_of(dtypes[trial % 4], shape, pairings[trial / 4 % 2]);
        c.rotation.rotary_dim = 6;
        c.rotation.rotary_start = trial % 5;
        strided table = table_new(&c.rotation, GUARD_AFTER, &rng);
        posenc_rotation r = c.rotation;
        r.cos = r.sin = table.data;
        size_t bytes = shape[1] * shape[2] * shape[3] * oracle_bytes(c.x.dtype);
        for (size_t i = 0; i < BYTES; i++)
            input[i] = memory[i] = (char)random_bits(&rng);
        char *output = memory + BYTES + random_below(&rng, PAGE / 8) * 8;
        assert_int_equal(posenc_rotate(&r, &c.x, input, output, NULL, NULL), POSENC_OK);
        assert_int_equal(posenc_rotate(&r, &c.x, memory, memory, NULL, NULL), POSENC_OK);
        assert_memory_equal(output, memory, bytes);
        guarded_free(&table.memory);
    }
}

/* Random float64 vectors of one width and a random position, for the laws below. */
typedef struct law {
    double x[96], y[96], rx[96], ry[96], back[96];
    size_t dim;
    double base;
    posenc_pairing pairing;
    int64_t position;
} law;

static law law_of(random_stream *rng) {
    static const size_t dims[] = {2, 6, 36, 64, 80, 96};
    static const double bases[] = {10000.0, 500000.0, 1e6, 100.0};
    law l;
    memset(&l, 0, sizeof l);
    l.dim = dims[random_below(rng, COUNT(dims))];
    l.base = bases[random_below(rng, COUNT(bases))];
    l.pairing = pairings[random_below(rng, 2)];
    l.position = random_position(rng);
    for (size_t i = 0; i < l.dim; i++) {
        l.x[i] = random_normal(rng);
        l.y[i] = random_normal(rng);
    }
    rotate_vector(l.x, l.dim, l.base, l.pairing, l.position, POSENC_FORWARD, l.rx);
    rotate_vector(l.y, l.dim, l.base, l.pairing, l.position, POSENC_FORWARD, l.ry);
    return l;
}

static double dot(const double *a, const double *b, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static void the_inverse_undoes_and_norms_are_kept(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(200); trial++) {
        law l = law_of(&rng);
        rotate_vector(l.rx, l.dim, l.base, l.pairing, l.position, POSENC_INVERSE, l.back);
        assert_close(l.back, l.x, l.dim, 2e-14);
        assert_true(fabs(norm(l.rx, l.dim) - norm(l.x, l.dim)) < 1e-14 * norm(l.x, l.dim) * 4);
    }
}

/* <R x, y> = <x, R^T y>: what a gradient needs. */
static void backward_is_the_transpose(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(200); trial++) {
        law l = law_of(&rng);
        rotate_vector(l.y, l.dim, l.base, l.pairing, l.position, POSENC_BACKWARD, l.back);
        assert_true(fabs(dot(l.rx, l.y, l.dim) - dot(l.x, l.back, l.dim)) < 1e-12);
        rotate_vector(l.y, l.dim, l.base, l.pairing, -l.position, POSENC_FORWARD, l.ry);
        assert_close(l.back, l.ry, l.dim, 0.0); /* and the rotation by the negated position */
    }
}

static void rotation_is_linear(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(200); trial++) {
        law l = law_of(&rng);
        double sum[96], rotated[96];
        for (size_t i = 0; i < l.dim; i++)
            sum[i] = l.x[i] - 2.0 * l.y[i];
        rotate_vector(sum, l.dim, l.base, l.pairing, l.position, POSENC_FORWARD, rotated);
        for (size_t i = 0; i < l.dim; i++)
            sum[i] = l.rx[i] - 2.0 * l.ry[i];
        assert_close(rotated, sum, l.dim, 5e-14);
    }
}

static double score(const law *l, int64_t m, int64_t n) {
    double q[96], k[96];
    rotate_vector(l->x, l->dim, l->base, l->pairing, m, POSENC_FORWARD, q);
    rotate_vector(l->y, l->dim, l->base, l->pairing, n, POSENC_FORWARD, k);
    return dot(q, k, l->dim);
}

static void scores_depend_on_the_distance_of_positions_only(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(200); trial++) {
        law l = law_of(&rng);
        int64_t distance = random_between(&rng, -5000, 5000), m = random_position(&rng) / 2;
        double at_zero = score(&l, distance, 0);
        assert_true(fabs(score(&l, m + distance, m) - at_zero) < 1e-12);
        assert_true(fabs(score(&l, 1048576, 1048576 - distance) - at_zero) < 1e-12);
        assert_true(fabs(score(&l, distance + 1, 0) - at_zero) > 1e-9); /* and do depend on it */
    }
}

static void position_0_changes_nothing(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    law l = law_of(&rng);
    for (size_t i = 0; i < COUNT(pairings); i++) {
        rotate_vector(l.x, l.dim, l.base, pairings[i], 0, POSENC_FORWARD, l.back);
        assert_close(l.back, l.x, l.dim, 0.0);
    }
}

/* Channel j of the half pairing is channel 2j of the interleaved one, j + d/2 is 2j + 1. */
static void the_pairings_are_one_permutation_apart(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(100); trial++) {
        law l = law_of(&rng);
        double mixed[96], half[96], interleaved[96];
        for (size_t j = 0; j < l.dim / 2; j++) {
            mixed[2 * j] = l.x[j];
            mixed[2 * j + 1] = l.x[j + l.dim / 2];
        }
        rotate_vector(l.x, l.dim, l.base, POSENC_PAIRING_HALF, l.position, POSENC_FORWARD, half);
        rotate_vector(mixed, l.dim, l.base, POSENC_PAIRING_INTERLEAVED, l.position, POSENC_FORWARD,
                      interleaved);
        for (size_t j = 0; j < l.dim / 2; j++) {
            assert_memory_equal(&half[j], &interleaved[2 * j], sizeof half[j]);
            assert_memory_equal(&half[j + l.dim / 2], &interleaved[2 * j + 1], sizeof half[j]);
        }
    }
}

/* A whole sequence equals its tokens one by one, as a cache decodes them, at explicit positions. */
static void prefill_equals_single_tokens(void **state) {
    (void)state;
    enum { B = 2, T = 9, H = 3, D = 36 };
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(24); trial++) {
        posenc_dtype dtype = dtypes[trial % 4];
        posenc_spec spec = spec_of(D, 10000.0, pairings[trial / 4 % 2]);
        int64_t positions[T], first = random_position(&rng) / 2; /* negative ones: left padding */
        for (int64_t t = 0; t < T; t++)
            positions[t] = first + t;
        rotor all = rotor_new(&spec, positions, T, table_dtype_of(dtype), POSENC_ROWS_COS_SIN);
        posenc_tensor whole = posenc_tensor_dense(dtype, B, T, H, D), one = whole;
        strided x = strided_new(&whole, GUARD_AFTER), y = strided_new(&whole, GUARD_AFTER);
        strided_fill(&x, 0, &rng);
        assert_int_equal(posenc_rotate(&all.rotation, &whole, x.data, y.data, NULL, NULL),
                         POSENC_OK);
        one.shape[POSENC_AXIS_TOKENS] = 1;
        for (size_t t = 0; t < T; t++) {
            rotor single =
                rotor_new(&spec, &positions[t], 1, table_dtype_of(dtype), POSENC_ROWS_HALF);
            void *token = (char *)x.data + t * H * D * oracle_bytes(dtype);
            assert_int_equal(posenc_rotate(&single.rotation, &one, token, token, NULL, NULL),
                             POSENC_OK);
            rotor_free(&single);
        }
        assert_memory_equal(x.data, y.data, x.memory.bytes);
        rotor_free(&all);
        guarded_free(&x.memory);
        guarded_free(&y.memory);
    }
}

/* Rows of its own for each sequence equal a call for each sequence. */
static void sequences_may_have_positions_of_their_own(void **state) {
    (void)state;
    enum { B = 3, T = 4, H = 2, D = 6 };
    random_stream rng = random_of(__func__);
    int64_t positions[B * T];
    for (size_t i = 0; i < B * T; i++)
        positions[i] = random_position(&rng);
    posenc_spec spec = spec_of(D, 10000.0, POSENC_PAIRING_INTERLEAVED);
    rotor r = rotor_new(&spec, positions, B * T, POSENC_F32, POSENC_ROWS_HALF);
    r.rotation.tokens = T;
    r.rotation.batch = B;
    r.rotation.batch_stride = T * D / 2;
    float x[B][T * H * D], y[B][T * H * D];
    for (size_t i = 0; i < B * T * H * D; i++)
        x[i / (T * H * D)][i % (T * H * D)] = (float)random_normal(&rng);
    posenc_tensor all = posenc_tensor_dense(POSENC_F32, B, T, H, D), one = all;
    assert_int_equal(posenc_rotate(&r.rotation, &all, x, y, NULL, NULL), POSENC_OK);
    one.shape[POSENC_AXIS_BATCH] = 1;
    for (size_t b = 0; b < B; b++) {
        rotor single = rotor_new(&spec, positions + b * T, T, POSENC_F32, POSENC_ROWS_HALF);
        assert_int_equal(posenc_rotate(&single.rotation, &one, x[b], x[b], NULL, NULL), POSENC_OK);
        assert_memory_equal(x[b], y[b], sizeof x[b]);
        rotor_free(&single);
    }
    rotor_free(&r);
}

/* --- Attention factors -------------------------------------------------------------------------- */

/* y = x of 2 tokens of 2 heads of 8, by rows that contain `in_rows`, where the rotation says `said`. */
static void rotate_with_factor(double in_rows, double said, posenc_direction direction,
                               const double x[32], double y[32]) {
    static const int64_t positions[2] = {3, 700};
    posenc_spec spec = spec_of(8, 10000.0, POSENC_PAIRING_HALF);
    rotor r = rotor_new(&spec, positions, 2, POSENC_F64, POSENC_ROWS_HALF);
    for (size_t i = 0; i < 8; i++) {
        ((double *)r.cos.data)[i] *= in_rows;
        ((double *)r.sin.data)[i] *= in_rows;
    }
    r.rotation.attention_factor = said;
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F64, 1, 2, 2, 8);
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.direction = direction;
    posenc_error error;
    assert_done(posenc_rotate(&r.rotation, &tensor, x, y, &options, &error), &error);
    rotor_free(&r);
}

static void the_inverse_undoes_rows_with_an_attention_factor(void **state) {
    (void)state;
    static const double factors[] = {0.5, 0.9, 1.0, 1.3465735902799727, 4.0};
    random_stream rng = random_of(__func__);
    double x[32], y[32], back[32];
    for (size_t i = 0; i < COUNT(factors); i++) {
        for (size_t k = 0; k < 32; k++)
            x[k] = random_normal(&rng);
        rotate_with_factor(factors[i], factors[i], POSENC_FORWARD, x, y);
        rotate_with_factor(factors[i], factors[i], POSENC_INVERSE, y, back);
        assert_close(back, x, 32, 1e-14);
        assert_true(fabs(norm(y, 32) - factors[i] * norm(x, 32)) < 1e-13);
    }
}

static void the_inverse_alone_asks_for_the_attention_factor(void **state) {
    (void)state;
    static const posenc_direction directions[] = {POSENC_FORWARD, POSENC_BACKWARD, POSENC_INVERSE};
    random_stream rng = random_of(__func__);
    double x[32], without[32], with[32], quarter[32];
    for (size_t k = 0; k < 32; k++)
        x[k] = random_normal(&rng);
    for (size_t i = 0; i < COUNT(directions); i++) {
        rotate_with_factor(2.0, 0.0, directions[i], x, without);
        rotate_with_factor(2.0, 1.0, directions[i], x, with);
        assert_memory_equal(with, without, sizeof with); /* 0 is 1 */
        rotate_with_factor(2.0, 2.0, directions[i], x, with);
        for (size_t k = 0; k < 32; k++)
            quarter[k] = directions[i] == POSENC_INVERSE ? without[k] / 4.0 : without[k];
        assert_memory_equal(with, quarter, sizeof with); /* times 1/2^2, which is exact */
    }
}

static void rotations_know_the_attention_factor_of_their_rows(void **state) {
    (void)state;
    const int64_t position = 1;
    posenc_scaling yarn = POSENC_SCALING_INIT;
    yarn.type = POSENC_SCALING_YARN;
    yarn.factor = 4.0;
    yarn.original_max_positions = 4096;
    yarn.attention_factor = 1.25;
    posenc_spec spec = spec_of(8, 10000.0, POSENC_PAIRING_HALF);
    rotor plain = rotor_new(&spec, &position, 1, POSENC_F32, POSENC_ROWS_HALF);
    spec.scaling = &yarn;
    rotor scaled = rotor_new(&spec, &position, 1, POSENC_F32, POSENC_ROWS_HALF);
    assert_true(plain.rotation.attention_factor == 1.0);
    assert_true(scaled.rotation.attention_factor == 1.25);
    rotor_free(&plain);
    rotor_free(&scaled);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_place_gives_the_bytes_of_out_of_place),
        cmocka_unit_test(every_distance_of_the_output_gives_the_same_bytes),
        cmocka_unit_test(the_inverse_undoes_and_norms_are_kept),
        cmocka_unit_test(backward_is_the_transpose),
        cmocka_unit_test(rotation_is_linear),
        cmocka_unit_test(scores_depend_on_the_distance_of_positions_only),
        cmocka_unit_test(position_0_changes_nothing),
        cmocka_unit_test(the_pairings_are_one_permutation_apart),
        cmocka_unit_test(prefill_equals_single_tokens),
        cmocka_unit_test(sequences_may_have_positions_of_their_own),
        cmocka_unit_test(the_inverse_undoes_rows_with_an_attention_factor),
        cmocka_unit_test(the_inverse_alone_asks_for_the_attention_factor),
        cmocka_unit_test(rotations_know_the_attention_factor_of_their_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
