/* Several tensors in one call: queries and keys. SPDX-License-Identifier: MIT */
#include "rotation_cases.h"

/* --- Calls that are done ------------------------------------------------------------------------- */

enum { MOST = 8, TOKENS = 5, WIDTH = 20 };

/* Some tensors of TOKENS tokens, of any heads and layout, with memory and expected results of their own. */
typedef struct several {
    size_t count;
    rotate_case cases[MOST];
    strided x[MOST], y[MOST];
    void *x_before[MOST], *y_before[MOST];
    posenc_rotate_item items[MOST];
} several;

static void add_item(several *s, posenc_dtype dtype, size_t heads, int in_place,
                     random_stream *rng) {
    const size_t shape[] = {2, TOKENS, heads, WIDTH};
    int order[POSENC_AXES];
    size_t i = s->count++;
    rotate_case *c = &s->cases[i];
    *c = case_of(dtype, shape, POSENC_PAIRING_HALF);
    order_of(random_below(rng, 24), order);
    set_strides(&c->x, order, (unsigned)random_below(rng, 16), 2, rng);
    c->y = c->x;
    c->in_place = in_place;
    s->x[i] = strided_new(&c->x, GUARD_AFTER);
    strided_fill(&s->x[i], 0, rng);
    s->y[i] = in_place ? s->x[i] : strided_new(&c->y, GUARD_BEFORE);
    s->x_before[i] = copy_of(&s->x[i].memory);
    s->y_before[i] = copy_of(&s->y[i].memory);
    s->items[i] = (posenc_rotate_item){&c->x, s->x[i].data, s->y[i].data, NULL};
}

static void several_free(several *s) {
    for (size_t i = 0; i < s->count; i++) {
        free(s->x_before[i]);
        free(s->y_before[i]);
        if (!s->cases[i].in_place)
            guarded_free(&s->x[i].memory);
        guarded_free(&s->y[i].memory);
    }
}

/* The oracle of one tensor, for each. */
static void assert_all_rotated(several *s, const posenc_rotation *r, const rotate_case *shared) {
    for (size_t i = 0; i < s->count; i++) {
        rotate_case *c = &s->cases[i];
        c->rotation = *r;
        c->direction = shared->direction;
        c->output_pairing = shared->output_pairing;
        c->first_token = shared->first_token;
        c->token_count = shared->token_count;
        const char *input =
            (const char *)s->x_before[i] + ((char *)s->x[i].data - (char *)s->x[i].memory.data);
        assert_output(c, r, input, &s->y[i], s->y_before[i]);
        assert_memory_equal(s->x[i].memory.data, s->x_before[i], s->x[i].memory.bytes);
    }
}

static posenc_rotation random_rotation(strided *cosine, strided *sine, random_stream *rng) {
    posenc_rotation r = POSENC_ROTATION_INIT;
    r.tokens = TOKENS;
    r.rotary_dim = 2 + 2 * random_below(rng, WIDTH / 2);
    r.rotary_start = random_below(rng, WIDTH - r.rotary_dim + 1);
    r.pairing = pairings[random_below(rng, 2)];
    *cosine = table_new(&r, GUARD_AFTER, rng);
    *sine = table_new(&r, GUARD_AFTER, rng);
    r.cos = cosine->data;
    r.sin = sine->data;
    return r;
}

static void every_item_is_rotated_with_its_own_heads_and_strides(void **state) {
    (void)state;
    static const posenc_dtype narrow[] = {POSENC_F32, POSENC_F16, POSENC_BF16};
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(60); trial++) {
        strided cosine, sine;
        several s = {.count = 0};
        posenc_rotation r = random_rotation(&cosine, &sine, &rng);
        size_t count = trial % (MOST + 1);
        for (size_t i = 0; i < count; i++)
            add_item(&s, narrow[random_below(&rng, 3)], 1 + random_below(&rng, 5),
                     (int)random_below(&rng, 2), &rng);
        rotate_case shared = {.direction = (posenc_direction)random_below(&rng, 3)};
        shared.output_pairing = (posenc_output_pairing)random_below(&rng, 3);
        shared.first_token = random_below(&rng, 2);
        shared.token_count = random_below(&rng, TOKENS - shared.first_token + 1);
        shared.in_place = 1; /* no output described for all */
        posenc_rotate_options options = options_of(&shared);
        posenc_error error;
        assert_done(posenc_rotate_all(&r, s.items, s.count, &options, &error), &error);
        assert_all_rotated(&s, &r, &shared);
        several_free(&s);
        guarded_free(&cosine.memory);
        guarded_free(&sine.memory);
    }
}

/* An item's own description of its output, and that of the options for items without one. */
static void outputs_are_described_by_item_or_for_all(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    strided cosine, sine;
    several s = {.count = 0};
    posenc_rotation r = random_rotation(&cosine, &sine, &rng);
    add_item(&s, POSENC_F32, 3, 0, &rng);
    add_item(&s, POSENC_F32, 3, 0, &rng);
    posenc_tensor dense = posenc_tensor_dense(POSENC_F32, 2, TOKENS, 3, WIDTH), half = dense;
    half.dtype = POSENC_F16;
    for (size_t i = 0; i < 2; i++) {
        s.cases[i].y = i ? half : dense;
        free(s.y_before[i]);
        guarded_free(&s.y[i].memory);
        s.y[i] = strided_new(&s.cases[i].y, GUARD_AFTER);
        s.y_before[i] = copy_of(&s.y[i].memory);
        s.items[i].output = s.y[i].data;
    }
    s.items[1].output_tensor = &half;
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.output = &dense;
    posenc_error error;
    assert_done(posenc_rotate_all(&r, s.items, 2, &options, &error), &error);
    rotate_case shared = {.direction = POSENC_FORWARD};
    assert_all_rotated(&s, &r, &shared);
    several_free(&s);
    guarded_free(&cosine.memory);
    guarded_free(&sine.memory);
}

/* q and k within one packed array, v left alone, as two calls leave it. */
static void queries_and_keys_of_a_packed_array_are_rotated_in_place(void **state) {
    (void)state;
    enum { Q = 6, K = 2, D = 8, T = 4, PACKED = (Q + 2 * K) * D };
    float cos[T * D / 2], sin[T * D / 2], one[T * PACKED], two[T * PACKED];
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < T * D / 2; i++) {
        cos[i] = (float)random_normal(&rng);
        sin[i] = (float)random_normal(&rng);
    }
    for (size_t i = 0; i < T * PACKED; i++)
        one[i] = two[i] = (float)random_normal(&rng);
    posenc_rotation r = POSENC_ROTATION_INIT;
    r.cos = cos;
    r.sin = sin;
    r.tokens = T;
    r.rotary_dim = D;
    posenc_tensor q = posenc_tensor_dense(POSENC_F32, 1, T, Q, D), k = q;
    q.strides[POSENC_AXIS_TOKENS] = k.strides[POSENC_AXIS_TOKENS] = PACKED;
    k.shape[POSENC_AXIS_HEADS] = K;
    float *keys = one + Q * D;
    const posenc_rotate_item items[] = {{&k, keys, keys, NULL}, {&q, one, one, NULL}};
    posenc_error error;
    assert_done(posenc_rotate_all(&r, items, 2, NULL, &error), &error);
    keys = two + Q * D;
    assert_int_equal(posenc_rotate(&r, &q, two, two, NULL, NULL), POSENC_OK);
    assert_int_equal(posenc_rotate(&r, &k, keys, keys, NULL, NULL), POSENC_OK);
    assert_memory_equal(one, two, sizeof one);
}

/* --- Refused calls -------------------------------------------------------------------------------- */

/* Two valid items in one array of float32, to be spoilt in one place. */
typedef struct pair_call {
    posenc_rotation rotation;
    posenc_tensor q, k, other;
    posenc_rotate_item items[2];
    posenc_rotate_options options;
} pair_call;

typedef void spoil_pair(pair_call *call);

/* clang-format off */
static void no_tensor_0(pair_call *c) { c->items[0].tensor = NULL; }
static void no_tensor_1(pair_call *c) { c->items[1].tensor = NULL; }
static void no_input_1(pair_call *c) { c->items[1].input = NULL; }
static void no_output_0(pair_call *c) { c->items[0].output = NULL; }
static void other_tokens_1(pair_call *c) { c->k.shape[POSENC_AXIS_TOKENS] = 2; }
static void narrow_1(pair_call *c) { c->k.shape[POSENC_AXIS_HEAD_DIM] = 2; }
static void other_table_1(pair_call *c) { c->k.dtype = POSENC_F64; }
static void output_repeats_0(pair_call *c) { c->q.strides[POSENC_AXIS_HEADS] = 0; }
static void output_shape_1(pair_call *c) { c->other.shape[POSENC_AXIS_HEADS] = 3; c->items[1].output_tensor = &c->other; }
static void bad_direction(pair_call *c) { c->options.direction = (posenc_direction)9; }
static void same_item_twice(pair_call *c) { c->items[1] = c->items[0]; }
static void same_output(pair_call *c) { c->items[1].output = c->items[0].output; }
static void second_reads_first_output(pair_call *c) { c->items[1].input = c->items[0].output; c->items[1].output = (float *)c->items[0].output + 100; }
static void first_reads_second_output(pair_call *c) { c->items[0].input = c->items[1].output; c->items[0].output = (float *)c->items[0].output + 100; }
static void one_element_shared(pair_call *c) { c->items[1].output = (float *)c->items[0].output + 47; c->items[1].input = (const float *)c->items[1].input + 200; }
static void cos_in_second_output(pair_call *c) { c->rotation.cos = (float *)c->items[1].output + 10; }
/* clang-format on */

/* Writes nothing, to no item: not to those before the bad one either. */
static void assert_pair_refused(spoil_pair *spoil, posenc_status status, const char *argument,
                                int64_t item) {
    static const float table[6];
    guarded data = guarded_new(400 * sizeof(float), GUARD_AFTER);
    pair_call c = {.rotation = POSENC_ROTATION_INIT, .options = POSENC_ROTATE_OPTIONS_INIT};
    float *q = (float *)data.data, *k = q + 50;
    c.rotation.cos = c.rotation.sin = table;
    c.rotation.tokens = 3;
    c.rotation.rotary_dim = 4;
    c.q = posenc_tensor_dense(POSENC_F32, 1, 3, 4, 4);
    c.k = c.other = posenc_tensor_dense(POSENC_F32, 1, 3, 2, 4);
    c.items[0] = (posenc_rotate_item){&c.q, q, q, NULL};
    c.items[1] = (posenc_rotate_item){&c.k, k, k, NULL};
    spoil(&c);
    posenc_error error;
    assert_refused(posenc_rotate_all(&c.rotation, c.items, 2, &c.options, &error), &error, status,
                   argument);
    assert_non_null(error.place_name);
    assert_string_equal(error.place_name, "item");
    assert_true(error.place == item);
    assert_int_equal(posenc_rotate_all(&c.rotation, c.items, 2, &c.options, NULL), status);
    assert_true(guarded_is_untouched(&data));
    guarded_free(&data);
}

static void bad_items_are_refused_by_number_before_any_is_written(void **state) {
    (void)state;
    static const struct {
        spoil_pair *spoil;
        posenc_status status;
        const char *argument;
        int64_t item;
    } bad[] = {
        {no_tensor_0, POSENC_NULL_POINTER, "tensor", 0},
        {no_tensor_1, POSENC_NULL_POINTER, "tensor", 1},
        {no_input_1, POSENC_NULL_POINTER, "input", 1},
        {no_output_0, POSENC_NULL_POINTER, "output", 0},
        {other_tokens_1, POSENC_OUT_OF_RANGE, "rotation.tokens", 1},
        {narrow_1, POSENC_OUT_OF_RANGE, "rotation.rotary_dim", 1},
        {other_table_1, POSENC_OUT_OF_RANGE, "rotation.dtype", 1},
        {output_repeats_0, POSENC_OVERLAP, "options.output", 0},
        {output_shape_1, POSENC_OUT_OF_RANGE, "options.output", 1},
        {bad_direction, POSENC_OUT_OF_RANGE, "options.direction", 0},
        {same_item_twice, POSENC_OVERLAP, "output", 1},
        {same_output, POSENC_OVERLAP, "output", 1},
        {second_reads_first_output, POSENC_OVERLAP, "output", 1},
        {first_reads_second_output, POSENC_OVERLAP, "output", 1},
        {one_element_shared, POSENC_OVERLAP, "output", 1},
        {cos_in_second_output, POSENC_OVERLAP, "rotation.cos", 1},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_pair_refused(bad[i].spoil, bad[i].status, bad[i].argument, bad[i].item);
}

static void bad_lists_of_items_are_refused(void **state) {
    (void)state;
    static const posenc_rotate_item items[MOST + 1];
    static const posenc_rotation rotation = POSENC_ROTATION_INIT;
    posenc_error error;
    assert_refused(posenc_rotate_all(&rotation, NULL, 1, NULL, &error), &error, POSENC_NULL_POINTER,
                   "items");
    assert_refused(posenc_rotate_all(&rotation, items, MOST + 1, NULL, &error), &error,
                   POSENC_OUT_OF_RANGE, "count");
    assert_true(error.value.as.size == MOST + 1);
    assert_refused(posenc_rotate_all(&rotation, items, SIZE_MAX, NULL, &error), &error,
                   POSENC_OUT_OF_RANGE, "count");
    assert_int_equal(posenc_rotate_all(&rotation, NULL, 0, NULL, NULL), POSENC_OK);
}

/* Items without elements overlap nothing, whatever their pointers. */
static void empty_items_share_nothing(void **state) {
    (void)state;
    static const float table[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    float x[8] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f};
    posenc_rotation r = POSENC_ROTATION_INIT;
    r.cos = r.sin = table;
    r.tokens = 1;
    r.rotary_dim = 8;
    posenc_tensor some = posenc_tensor_dense(POSENC_F32, 1, 1, 1, 8), none = some;
    none.shape[POSENC_AXIS_HEADS] = 0;
    const posenc_rotate_item items[] = {
        {&some, x, x, NULL}, {&none, x, x, NULL}, {&none, NULL, NULL, NULL}};
    posenc_error error;
    assert_done(posenc_rotate_all(&r, items, 3, NULL, &error), &error);
    assert_true(x[0] == -4.0f && x[4] == 6.0f);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_rotated_with_its_own_heads_and_strides),
        cmocka_unit_test(outputs_are_described_by_item_or_for_all),
        cmocka_unit_test(queries_and_keys_of_a_packed_array_are_rotated_in_place),
        cmocka_unit_test(bad_items_are_refused_by_number_before_any_is_written),
        cmocka_unit_test(bad_lists_of_items_are_refused),
        cmocka_unit_test(empty_items_share_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
