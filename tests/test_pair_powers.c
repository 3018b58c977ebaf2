/* Row powers to be judged, in memory: what is refused and where, and that the same layers give the same bytes. The
 * statistic itself is tested in test_pairing.py, files in test_detect.py. SPDX-License-Identifier: MIT */
#include "posenc/checkpoint.h"

#include "guard_pages.h"
#include "random_data.h"

enum { DIM = 8, HEADS = 4, KV = 2 };

static posenc_pair_powers *powers_of(size_t dim) {
    posenc_pair_powers *powers;
    posenc_error error;
    assert_done(posenc_pair_powers_create(dim, &powers, &error), &error);
    return powers;
}

static void fill(random_stream *rng, double *powers, size_t count) {
    for (size_t i = 0; i < count; i++)
        powers[i] = (double)(1 + random_below(rng, 1000)) / 100.0;
}

static void assert_refused_for(posenc_status got, posenc_status wanted, const posenc_error *error,
                               const char *argument) {
    assert_int_equal(got, wanted);
    assert_int_equal(error->status, wanted);
    assert_string_equal(error->argument, argument);
    assert_non_null(error->must);
}

static void test_create_is_checked(void **state) {
    (void)state;
    static const size_t bad[] = {0, 1, 2, 3, 5, 6, 65540, SIZE_MAX};
    posenc_error error;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        posenc_pair_powers *powers = (posenc_pair_powers *)(void *)&error;
        assert_refused_for(posenc_pair_powers_create(bad[i], &powers, &error), POSENC_OUT_OF_RANGE,
                           &error, "rotary_dim");
        assert_null(powers);
        assert_int_equal(error.value.as.size, bad[i]);
    }
    assert_refused_for(posenc_pair_powers_create(8, NULL, &error), POSENC_NULL_POINTER, &error,
                       "powers");
    posenc_pair_powers_free(NULL);
    posenc_pair_powers_free(powers_of(65536));
}

static void test_add_is_checked(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    posenc_pair_powers *powers = powers_of(DIM);
    double q[HEADS * DIM], k[KV * DIM];
    posenc_error error;
    fill(&rng, q, HEADS * DIM);
    fill(&rng, k, KV * DIM);
    assert_refused_for(posenc_pair_powers_add(NULL, 1, 1, q, k, 0, &error), POSENC_NULL_POINTER,
                       &error, "powers");
    assert_refused_for(posenc_pair_powers_add(powers, 1, 1, NULL, k, 0, &error),
                       POSENC_NULL_POINTER, &error, "q");
    assert_refused_for(posenc_pair_powers_add(powers, 1, 1, q, NULL, 0, &error),
                       POSENC_NULL_POINTER, &error, "k");
    assert_refused_for(posenc_pair_powers_add(powers, 3, 2, q, k, 0, &error), POSENC_OUT_OF_RANGE,
                       &error, "heads");
    assert_refused_for(posenc_pair_powers_add(powers, 0, 1, q, k, 0, &error), POSENC_OUT_OF_RANGE,
                       &error, "heads");
    assert_refused_for(posenc_pair_powers_add(powers, 2, 0, q, k, 0, &error), POSENC_OUT_OF_RANGE,
                       &error, "kv_heads");
    static const double bad[] = {-1.0, -1e-300, INFINITY, -INFINITY, NAN, 1e301};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t at = random_below(&rng, KV * DIM);
        double kept = k[at];
        k[at] = bad[i];
        assert_refused_for(posenc_pair_powers_add(powers, HEADS, KV, q, k, 0, &error),
                           POSENC_OUT_OF_RANGE, &error, "k");
        assert_int_equal(error.place, at);
        k[at] = kept;
    }
    assert_int_equal(posenc_pair_powers_count(powers), 0); /* as it was */
    posenc_pair_powers_free(powers);
}

static void test_judge_is_checked(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    posenc_pair_powers *powers = powers_of(DIM);
    double q[HEADS * DIM], k[KV * DIM];
    posenc_judgement judgement;
    posenc_error error;
    assert_done(posenc_pair_powers_judge(powers, POSENC_ALL_LAYERS, &judgement, &error), &error);
    assert_int_equal(judgement.both.verdict, POSENC_DETECTED_UNDETERMINED); /* no layer */
    assert_int_equal(judgement.layers, 0);
    fill(&rng, q, HEADS * DIM);
    fill(&rng, k, KV * DIM);
    assert_done(posenc_pair_powers_add(powers, HEADS, KV, q, k, 0, &error), &error);
    assert_refused_for(posenc_pair_powers_judge(powers, 1, &judgement, &error), POSENC_OUT_OF_RANGE,
                       &error, "layer");
    assert_refused_for(posenc_pair_powers_judge(NULL, 0, &judgement, &error), POSENC_NULL_POINTER,
                       &error, "powers");
    assert_refused_for(posenc_pair_powers_judge(powers, 0, NULL, &error), POSENC_NULL_POINTER,
                       &error, "judgement");
    assert_int_equal(posenc_pair_powers_count(powers), 1);
    assert_int_equal(posenc_pair_powers_layer(powers, 0), 0);
    assert_int_equal(posenc_pair_powers_layer(powers, 1), 0);
    assert_int_equal(posenc_pair_powers_count(NULL), 0);
    posenc_pair_powers_free(powers);
}

/* Each array at the end of its memory; the judgement does not depend on where it is or what was judged before. */
static void test_judging_twice_gives_the_same_bytes(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(20); trial++) {
        size_t dim = 4 * (1 + random_below(&rng, 8)), kv = 1 + random_below(&rng, 3);
        size_t heads = kv * (1 + random_below(&rng, 3)), layers = 1 + random_below(&rng, 3);
        posenc_pair_powers *twice[2] = {powers_of(dim), powers_of(dim)};
        posenc_error error;
        for (size_t layer = 0; layer < layers; layer++) {
            guarded q = guarded_new(heads * dim * sizeof(double), GUARD_AFTER);
            guarded k = guarded_new(kv * dim * sizeof(double), GUARD_AFTER);
            fill(&rng, q.data, heads * dim);
            fill(&rng, k.data, kv * dim);
            for (int i = 0; i < 2; i++)
                assert_done(
                    posenc_pair_powers_add(twice[i], heads, kv, q.data, k.data, trial % 2, &error),
                    &error);
            guarded_free(&q);
            guarded_free(&k);
        }
        posenc_judgement a, b, all;
        for (size_t layer = 0; layer <= layers; layer++) {
            size_t which = layer < layers ? layer : POSENC_ALL_LAYERS;
            assert_done(posenc_pair_powers_judge(twice[0], which, &a, &error), &error);
            assert_done(posenc_pair_powers_judge(twice[1], POSENC_ALL_LAYERS, &all, &error),
                        &error);
            assert_done(posenc_pair_powers_judge(twice[1], which, &b, &error), &error);
            assert_memory_equal(&a, &b, sizeof a);
            assert_int_equal(a.heads, layer < layers ? kv : kv * layers);
            assert_int_equal(a.exact_signs, (trial % 2 ? a.heads / kv : a.heads) * dim / 4);
        }
        posenc_pair_powers_free(twice[0]);
        posenc_pair_powers_free(twice[1]);
    }
}

static void test_reading_checks_shape_and_options(void **state) {
    (void)state;
    static const struct {
        size_t heads, kv_heads, head_dim, rotary_dim, rotary_start;
        int gain_offset;
        const char *argument;
    } bad[] = {{0, 0, 8, 0, 0, 0, "heads"},        {65537, 0, 8, 0, 0, 0, "heads"},
               {4, 3, 8, 0, 0, 0, "kv_heads"},     {4, 8, 8, 0, 0, 0, "kv_heads"},
               {4, 2, 0, 0, 0, 0, "head_dim"},     {4, 2, 3, 0, 0, 0, "head_dim"},
               {4, 2, 8, 0, 5, 0, "rotary_start"}, {4, 2, 8, 12, 0, 0, "rotary_dim"},
               {4, 2, 8, 8, 4, 0, "rotary_dim"},   {4, 2, 8, 6, 0, 0, "rotary_dim"},
               {4, 2, 8, 0, 0, 2, "gain_offset"}};
    posenc_pair_powers *powers;
    posenc_error error;
    posenc_attention_shape shape = POSENC_ATTENTION_SHAPE_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        shape.heads = bad[i].heads;
        shape.kv_heads = bad[i].kv_heads;
        shape.head_dim = bad[i].head_dim;
        shape.rotary_dim = bad[i].rotary_dim;
        shape.rotary_start = bad[i].rotary_start;
        shape.gain_offset = bad[i].gain_offset;
        assert_refused_for(posenc_pair_powers_read("/nowhere", &shape, NULL, &powers, &error),
                           POSENC_OUT_OF_RANGE, &error, bad[i].argument);
        assert_null(powers);
    }
    assert_int_equal(posenc_pair_powers_read(NULL, &shape, NULL, &powers, &error),
                     POSENC_NULL_POINTER);
    assert_int_equal(posenc_pair_powers_read("x", NULL, NULL, &powers, &error),
                     POSENC_NULL_POINTER);
    assert_int_equal(posenc_pair_powers_read("x", &shape, NULL, NULL, &error), POSENC_NULL_POINTER);
    shape.size = 3;
    assert_refused_for(posenc_pair_powers_read("x", &shape, NULL, &powers, &error),
                       POSENC_OUT_OF_RANGE, &error, "shape");
    shape = (posenc_attention_shape)POSENC_ATTENTION_SHAPE_INIT;
    shape.heads = 4;
    shape.head_dim = 8;
    posenc_read_options options = POSENC_READ_OPTIONS_INIT;
    options.size = 0;
    assert_refused_for(posenc_pair_powers_read("x", &shape, &options, &powers, &error),
                       POSENC_OUT_OF_RANGE, &error, "options");
    assert_int_equal(posenc_pair_powers_read("/nowhere", &shape, NULL, &powers, &error), POSENC_IO);
    assert_int_equal(posenc_attention_shape_read("/nowhere", &shape, NULL, &error), POSENC_IO);
    assert_int_equal(posenc_attention_shape_read(NULL, &shape, NULL, &error), POSENC_NULL_POINTER);
}

static void test_names_of_verdicts(void **state) {
    (void)state;
    assert_string_equal(posenc_detected_name(POSENC_DETECTED_UNDETERMINED), "undetermined");
    assert_string_equal(posenc_detected_name(POSENC_DETECTED_HALF), "half");
    assert_string_equal(posenc_detected_name(POSENC_DETECTED_INTERLEAVED), "interleaved");
    assert_null(posenc_detected_name((posenc_detected)7));
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_is_checked),
        cmocka_unit_test(test_add_is_checked),
        cmocka_unit_test(test_judge_is_checked),
        cmocka_unit_test(test_judging_twice_gives_the_same_bytes),
        cmocka_unit_test(test_reading_checks_shape_and_options),
        cmocka_unit_test(test_names_of_verdicts),
    };
    random_announce();
    return cmocka_run_group_tests_name("pair_powers", tests, NULL, NULL);
}
