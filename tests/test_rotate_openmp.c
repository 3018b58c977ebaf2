/* posenc/openmp.h: the bytes and the errors of one posenc_rotate, whatever the threads. SPDX-License-Identifier: MIT */
#include "posenc/openmp.h"
#include "rotation_cases.h"

/* A batch of tokens in place, rows chosen by ids. */
typedef struct openmp_case {
    posenc_tensor tensor;
    posenc_rotation rotation;
    posenc_rotate_options options;
    void *cos, *sin;
    int64_t *ids;
    strided input;
    guarded got; /* the memory of another output, all of it */
} openmp_case;

enum { ROWS = 11 };

static openmp_case openmp_case_new(random_stream *rng) {
    size_t tokens = 1 + random_below(rng, 40), pairs = 1 + random_below(rng, 40);
    openmp_case c = {.rotation = POSENC_ROTATION_INIT, .options = POSENC_ROTATE_OPTIONS_INIT};
    c.tensor = posenc_tensor_dense(dtypes[random_below(rng, 4)], 1 + random_below(rng, 3), tokens,
                                   1 + random_below(rng, 3), 2 * pairs);
    posenc_dtype table = table_dtype_of(c.tensor.dtype);
    size_t bytes = ROWS * pairs * posenc_dtype_bytes(table);
    c.cos = malloc(bytes);
    c.sin = malloc(bytes);
    c.ids = malloc(tokens * sizeof *c.ids);
    for (size_t i = 0; i < ROWS * pairs; i++) {
        oracle_store(c.cos, table, (ptrdiff_t)i, oracle_bits_of_double(random_normal(rng), table));
        oracle_store(c.sin, table, (ptrdiff_t)i, oracle_bits_of_double(random_normal(rng), table));
    }
    for (size_t t = 0; t < tokens; t++)
        c.ids[t] = (int64_t)random_below(rng, ROWS);
    c.rotation.cos = c.cos;
    c.rotation.sin = c.sin;
    c.rotation.dtype = table;
    c.rotation.tokens = ROWS;
    c.rotation.rotary_dim = 2 * pairs;
    c.rotation.row_ids = c.ids;
    if (random_below(rng, 2)) {
        c.options.first_token = random_below(rng, tokens);
        c.options.token_count = random_below(rng, tokens - c.options.first_token + 1);
    }
    c.input = strided_new(&c.tensor, GUARD_AFTER);
    strided_fill(&c.input, 0, rng);
    c.got = guarded_new(c.input.memory.bytes, GUARD_AFTER);
    return c;
}

static void openmp_case_free(openmp_case *c) {
    free(c->cos);
    free(c->sin);
    free(c->ids);
    guarded_free(&c->input.memory);
    guarded_free(&c->got);
}

static void any_number_of_threads_gives_the_same_bytes(void **state) {
    (void)state;
    static const unsigned threads[] = {0, 1, 2, 3, 7, 100};
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(200); trial++) {
        openmp_case c = openmp_case_new(&rng);
        size_t size = c.input.memory.bytes;
        char *wanted = malloc(size);
        memcpy(wanted, c.input.data, size); /* in place: what turned twice would differ */
        assert_int_equal(posenc_rotate(&c.rotation, &c.tensor, wanted, wanted, &c.options, NULL),
                         POSENC_OK);
        for (size_t i = 0; i < COUNT(threads); i++) {
            memcpy(c.got.data, c.input.data, size);
            assert_int_equal(posenc_rotate_openmp(&c.rotation, &c.tensor, c.got.data, c.got.data,
                                                  &c.options, threads[i], NULL),
                             POSENC_OK);
            assert_memory_equal(c.got.data, wanted, size);
        }
        free(wanted);
        openmp_case_free(&c);
    }
}

/* The parts by themselves: also where OpenMP is not there, or has one thread. */
static void parts_cover_the_range_once(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(200); trial++) {
        openmp_case c = openmp_case_new(&rng);
        size_t size = c.input.memory.bytes, tokens = c.tensor.shape[POSENC_AXIS_TOKENS];
        if (!c.options.token_count)
            c.options.token_count = tokens - c.options.first_token;
        size_t parts = 1 + random_below(&rng, c.options.token_count);
        char *wanted = malloc(size);
        memcpy(wanted, c.input.data, size);
        memcpy(c.got.data, c.input.data, size);
        assert_int_equal(posenc_rotate(&c.rotation, &c.tensor, wanted, wanted, &c.options, NULL),
                         POSENC_OK);
        for (size_t part = 0; part < parts; part++)
            assert_int_equal(posenc_rotate_part(&c.rotation, &c.tensor, c.got.data, c.got.data,
                                                &c.options, part, parts, NULL),
                             POSENC_OK);
        assert_memory_equal(c.got.data, wanted, size);
        free(wanted);
        openmp_case_free(&c);
    }
}

static void a_refused_call_writes_nothing_and_says_why(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (unsigned threads = 0; threads < 9; threads++) {
        openmp_case c = openmp_case_new(&rng);
        size_t last = c.tensor.shape[POSENC_AXIS_TOKENS] - 1;
        posenc_error error;
        c.ids[last] = ROWS;
        assert_int_equal(posenc_rotate_openmp(&c.rotation, &c.tensor, c.input.data, c.got.data,
                                              &c.options, threads, &error),
                         POSENC_OUT_OF_RANGE);
        assert_string_equal(error.argument, "rotation.row_ids");
        assert_int_equal(error.place, last);
        assert_true(guard_is_filled(c.got.data, c.got.bytes));
        assert_int_equal(posenc_rotate_openmp(&c.rotation, NULL, c.input.data, c.got.data,
                                              &c.options, threads, &error),
                         POSENC_NULL_POINTER);
        c.options.first_token = last + 2;
        assert_int_equal(posenc_rotate_openmp(&c.rotation, &c.tensor, c.input.data, c.got.data,
                                              &c.options, threads, NULL),
                         POSENC_OUT_OF_RANGE);
        openmp_case_free(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_gives_the_same_bytes),
        cmocka_unit_test(parts_cover_the_range_once),
        cmocka_unit_test(a_refused_call_writes_nothing_and_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
