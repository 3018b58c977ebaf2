/* Rows that are chosen (ids, starts, ragged sequences) and ranges of tokens. SPDX-License-Identifier: MIT */
#include "rotation_cases.h"

#include <pthread.h>

/* --- Cases ---------------------------------------------------------------------------------------- */

enum { MOST_TOKENS = 40, MOST_BATCH = 3, MOST_ROWS = 50 };

/* Lists of rows for a case, whose rotation points into them. */
typedef struct row_lists {
    int64_t ids[MOST_BATCH * (MOST_TOKENS + 3)], starts[MOST_TOKENS + 1];
    int32_t ends[MOST_TOKENS + 1];
} row_lists;

typedef enum row_choice { IDS, STARTS, RAGGED, RAGGED_STARTS, NOT_CHOSEN, CHOICES } row_choice;

/* A tensor in any order of axes, more tokens than go to a kernel at once now and then, part of each head turning;
 * tables of any strides, for each sequence or for all. */
static rotate_case random_case(random_stream *rng) {
    static const size_t widths[] = {6, 10, 36, 80};
    size_t tokens = random_below(rng, 3) ? 1 + random_below(rng, 6) : 12 + random_below(rng, 29);
    const size_t shape[] = {1 + random_below(rng, MOST_BATCH), tokens, 1 + random_below(rng, 3),
                            widths[random_below(rng, COUNT(widths))]};
    rotate_case c = case_of(dtypes[random_below(rng, 4)], shape, pairings[random_below(rng, 2)]);
    int order[POSENC_AXES] = {0, 1, 2, 3};
    if (random_below(rng, 2))
        order_of(random_below(rng, 24), order);
    set_strides(&c.x, order, (unsigned)random_below(rng, 8), 3, rng);
    c.y = c.x;
    c.in_place = (int)random_below(rng, 2);
    c.rotation.rotary_dim = 2 + 2 * random_below(rng, shape[3] / 2);
    c.rotation.rotary_start = random_below(rng, shape[3] - c.rotation.rotary_dim + 1);
    c.direction = (posenc_direction)random_below(rng, 3);
    return c;
}

/* Rows of the table side by side, and a table for each sequence if `tables`. */
static void take_rows(rotate_case *c, size_t rows, int tables, random_stream *rng) {
    posenc_rotation *r = &c->rotation;
    ptrdiff_t pairs = (ptrdiff_t)r->rotary_dim / 2;
    r->tokens = rows;
    r->pair_stride = random_below(rng, 3) ? 0 : random_between(rng, -2, 2);
    r->row_stride = random_below(rng, 2) ? random_between(rng, -3 * pairs, 3 * pairs) : 0;
    r->batch = tables ? c->x.shape[POSENC_AXIS_BATCH] : random_below(rng, 2);
    r->batch_stride = (ptrdiff_t)rows * 2 * pairs;
}

/* Any ids, repeated and unordered; one list for all sequences, or one each, not side by side. */
static void choose_ids(rotate_case *c, row_lists *lists, random_stream *rng) {
    size_t rows = 1 + random_below(rng, MOST_ROWS);
    for (size_t i = 0; i < COUNT(lists->ids); i++)
        lists->ids[i] = (int64_t)random_below(rng, rows);
    lists->ids[0] = (int64_t)rows - 1;
    c->rotation.row_ids = lists->ids;
    if (random_below(rng, 2))
        c->rotation.row_ids_stride =
            (ptrdiff_t)(c->x.shape[POSENC_AXIS_TOKENS] + random_below(rng, 4));
    take_rows(c, rows, (int)random_below(rng, 2), rng);
}

/* A start for each sequence, the first at the end of the table. */
static void choose_starts(rotate_case *c, row_lists *lists, random_stream *rng) {
    size_t spare = random_below(rng, 8);
    for (size_t n = 0; n < MOST_BATCH; n++)
        lists->starts[n] = n ? (int64_t)random_below(rng, spare + 1) : (int64_t)spare;
    c->rotation.row_starts = lists->starts;
    take_rows(c, c->x.shape[POSENC_AXIS_TOKENS] + spare, (int)random_below(rng, 2), rng);
}

/* Sequences of any length, none too, in a batch of one. */
static void choose_ragged(rotate_case *c, row_lists *lists, int with_starts, random_stream *rng) {
    size_t tokens = c->x.shape[POSENC_AXIS_TOKENS], spare = random_below(rng, 8);
    size_t sequences = 1 + random_below(rng, tokens < 7 ? tokens : 7);
    c->x.shape[POSENC_AXIS_BATCH] = c->y.shape[POSENC_AXIS_BATCH] = 1;
    lists->ends[0] = 0;
    for (size_t s = 0; s < sequences; s++) {
        size_t left = tokens - (size_t)lists->ends[s];
        int32_t length = (int32_t)(s + 1 == sequences ? left : random_below(rng, left + 1));
        lists->ends[s + 1] = lists->ends[s] + length;
        lists->starts[s] = (int64_t)random_below(rng, spare + 1);
    }
    c->rotation.cu_seqlens = lists->ends;
    c->rotation.sequences = sequences;
    c->rotation.row_starts = with_starts ? lists->starts : NULL;
    take_rows(c, tokens + spare, 0, rng);
}

static void choose_rows(rotate_case *c, row_choice choice, row_lists *lists, random_stream *rng) {
    if (choice == IDS)
        choose_ids(c, lists, rng);
    else if (choice == STARTS)
        choose_starts(c, lists, rng);
    else if (choice == RAGGED || choice == RAGGED_STARTS)
        choose_ragged(c, lists, choice == RAGGED_STARTS, rng);
    else
        take_rows(c, c->x.shape[POSENC_AXIS_TOKENS], (int)random_below(rng, 2), rng);
}

/* A range within the tokens, to their end if the count is left out. */
static void choose_range(rotate_case *c, random_stream *rng) {
    size_t tokens = c->x.shape[POSENC_AXIS_TOKENS];
    c->first_token = random_below(rng, tokens);
    c->token_count = random_below(rng, tokens - c->first_token + 1);
}

static void assert_choice(const char *name, row_choice choice) {
    random_stream rng = random_of(name);
    for (size_t trial = 0; trial < random_trials(150); trial++) {
        row_lists lists;
        rotate_case c = random_case(&rng);
        choose_rows(&c, choice, &lists, &rng);
        if (random_below(&rng, 3) == 0)
            choose_range(&c, &rng);
        assert_rotated(&c, &rng);
    }
}

static void ids_choose_rows_of_a_table(void **state) {
    (void)state;
    assert_choice(__func__, IDS);
}

static void starts_choose_rows_for_each_sequence(void **state) {
    (void)state;
    assert_choice(__func__, STARTS);
}

static void ragged_sequences_begin_at_row_0(void **state) {
    (void)state;
    assert_choice(__func__, RAGGED);
}

static void ragged_sequences_begin_at_their_starts(void **state) {
    (void)state;
    assert_choice(__func__, RAGGED_STARTS);
}

static void ranges_of_tokens_rotate_no_others(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(150); trial++) {
        rotate_case c = random_case(&rng);
        row_lists lists;
        choose_rows(&c, NOT_CHOSEN, &lists, &rng);
        choose_range(&c, &rng);
        assert_rotated(&c, &rng);
    }
}

/* Empty sequences at both ends and in the middle; one sequence is a call without any. */
static void sequences_may_be_empty_or_one(void **state) {
    (void)state;
    static const int32_t ends[] = {0, 0, 0, 2, 2, 5, 5, 5};
    static const int64_t starts[] = {9, 0, 1, 7, 3, 8, 4};
    const size_t shape[] = {1, 5, 2, 8};
    random_stream rng = random_of(__func__);
    rotate_case c = case_of(POSENC_F32, shape, POSENC_PAIRING_HALF);
    c.rotation.cu_seqlens = ends;
    c.rotation.sequences = COUNT(ends) - 1;
    c.rotation.tokens = 9;
    for (c.first_token = 0; c.first_token < 5; c.first_token++)
        assert_rotated(&c, &rng);
    c.first_token = 0;
    c.rotation.row_starts = starts;
    assert_rotated(&c, &rng);
    /* One sequence. */
    static const int32_t whole[] = {0, 5};
    strided table = table_new(&c.rotation, GUARD_AFTER, &rng), x = strided_new(&c.x, GUARD_AFTER);
    float plain[80], one[80];
    strided_fill(&x, 0, &rng);
    posenc_rotation r = POSENC_ROTATION_INIT;
    r.cos = r.sin = table.data;
    r.tokens = 5;
    r.rotary_dim = 8;
    assert_int_equal(posenc_rotate(&r, &c.x, x.data, plain, NULL, NULL), POSENC_OK);
    r.cu_seqlens = whole;
    r.sequences = 1;
    assert_int_equal(posenc_rotate(&r, &c.x, x.data, one, NULL, NULL), POSENC_OK);
    assert_memory_equal(plain, one, sizeof one);
    guarded_free(&table.memory);
    guarded_free(&x.memory);
}

/* No token: lists of none. */
static void tensors_without_tokens_take_lists_of_none(void **state) {
    (void)state;
    static const int32_t ends[] = {0, 0};
    const size_t shape[] = {1, 0, 2, 8};
    rotate_case c = case_of(POSENC_F32, shape, POSENC_PAIRING_HALF);
    c.rotation.cu_seqlens = ends;
    c.rotation.sequences = 1;
    assert_int_equal(posenc_rotate(&c.rotation, &c.x, NULL, NULL, NULL, NULL), POSENC_OK);
    c.rotation.sequences = 0;
    assert_int_equal(posenc_rotate(&c.rotation, &c.x, NULL, NULL, NULL, NULL), POSENC_OK);
}

/* More pairs than a call prepares rows of at once, so that heads are turned in pieces. */
static void heads_wider_than_the_memory_of_a_call_are_rotated(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(8); trial++) {
        posenc_dtype dtype = dtypes[trial % 4];
        size_t room = 16384 / oracle_bytes(table_dtype_of(dtype));
        size_t pairs = trial / 4 % 2 ? room * 3 / 4 : 2 * room + 5 + random_below(&rng, 40);
        const size_t shape[] = {1, 2, 2, 2 * pairs + 3};
        row_lists lists;
        rotate_case c = case_of(dtype, shape, pairings[random_below(&rng, 2)]);
        c.rotation.rotary_dim = 2 * pairs;
        c.rotation.rotary_start = random_below(&rng, 4);
        choose_rows(&c, NOT_CHOSEN, &lists, &rng);
        c.direction = (posenc_direction)(1 + random_below(&rng, 2));
        c.output_pairing = (posenc_output_pairing)random_below(&rng, 3);
        assert_rotated(&c, &rng);
    }
}

/* --- Ranges --------------------------------------------------------------------------------------- */

/* A whole call's memory, and the same call by ranges. */
typedef struct split {
    rotate_case c;
    strided x, y, table, whole;
    posenc_rotation rotation;
} split;

static split split_of(const rotate_case *c, random_stream *rng) {
    split s = {.c = *c, .rotation = c->rotation};
    s.x = strided_new(&c->x, GUARD_AFTER);
    s.y = strided_new(&c->y, GUARD_AFTER);
    s.whole = strided_new(&c->y, GUARD_AFTER);
    s.table = table_new(&c->rotation, GUARD_AFTER, rng);
    s.rotation.cos = s.rotation.sin = s.table.data;
    strided_fill(&s.x, 0, rng);
    posenc_rotate_options options = options_of(c);
    options.output = &s.c.y;
    posenc_error error;
    assert_done(posenc_rotate(&s.rotation, &c->x, s.x.data, s.whole.data, &options, &error),
                &error);
    if (c->in_place) { /* from here on the input is the output */
        memcpy(s.y.memory.data, s.x.memory.data, s.x.memory.bytes);
        guarded_free(&s.x.memory);
        s.x = s.y;
    }
    return s;
}

static posenc_status rotate_range(const split *s, size_t first, size_t count) {
    posenc_rotate_options options = options_of(&s->c);
    options.output = &s->c.y;
    options.first_token = first;
    options.token_count = count;
    return posenc_rotate(&s->rotation, &s->c.x, s->x.data, s->y.data, &options, NULL);
}

/* Gaps between elements keep what they held: the elements alone are compared. */
static void assert_union(split *s) {
    size_t at[POSENC_AXES] = {0};
    do {
        ptrdiff_t place = element_at(&s->c.y, at);
        assert_true(oracle_load(s->y.data, s->c.y.dtype, place) ==
                    oracle_load(s->whole.data, s->c.y.dtype, place));
    } while (next_element(&s->c.y, at));
    if (!s->c.in_place)
        guarded_free(&s->x.memory);
    guarded_free(&s->y.memory);
    guarded_free(&s->whole.memory);
    guarded_free(&s->table.memory);
}

/* In any order: ranges of one call do not depend on each other. */
static void the_union_of_ranges_gives_the_bytes_of_the_whole_call(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(150); trial++) {
        rotate_case c = random_case(&rng);
        row_lists lists;
        choose_rows(&c, (row_choice)(trial % CHOICES), &lists, &rng);
        split s = split_of(&c, &rng);
        size_t tokens = c.x.shape[POSENC_AXIS_TOKENS], first = random_below(&rng, tokens);
        size_t second = first + random_below(&rng, tokens - first + 1);
        if (second < tokens)
            assert_int_equal(rotate_range(&s, second, 0), POSENC_OK);
        if (first)
            assert_int_equal(rotate_range(&s, 0, first), POSENC_OK);
        if (second > first)
            assert_int_equal(rotate_range(&s, first, second - first), POSENC_OK);
        assert_union(&s);
    }
}

typedef struct half_of_tokens {
    const split *split;
    size_t first, count;
    posenc_status status;
} half_of_tokens;

static void *rotate_half(void *argument) {
    half_of_tokens *half = argument;
    half->status = rotate_range(half->split, half->first, half->count);
    return NULL;
}

static void two_threads_give_the_bytes_of_one(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(30); trial++) {
        const size_t shape[] = {2, 2 + random_below(&rng, 60), 3, 80};
        rotate_case c = case_of(dtypes[trial % 4], shape, pairings[trial / 4 % 2]);
        c.in_place = (int)(trial % 3 == 0);
        c.stores = (posenc_stores)random_below(&rng, 3);
        split s = split_of(&c, &rng);
        size_t middle = shape[1] / 2;
        half_of_tokens halves[2] = {{&s, 0, middle, POSENC_IO},
                                    {&s, middle, shape[1] - middle, POSENC_IO}};
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, rotate_half, &halves[i]), 0);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(halves[i].status, POSENC_OK);
        }
        assert_union(&s);
    }
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_choose_rows_of_a_table),
        cmocka_unit_test(starts_choose_rows_for_each_sequence),
        cmocka_unit_test(ragged_sequences_begin_at_row_0),
        cmocka_unit_test(ragged_sequences_begin_at_their_starts),
        cmocka_unit_test(ranges_of_tokens_rotate_no_others),
        cmocka_unit_test(sequences_may_be_empty_or_one),
        cmocka_unit_test(tensors_without_tokens_take_lists_of_none),
        cmocka_unit_test(heads_wider_than_the_memory_of_a_call_are_rotated),
        cmocka_unit_test(the_union_of_ranges_gives_the_bytes_of_the_whole_call),
        cmocka_unit_test(two_threads_give_the_bytes_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
