/* Outputs that differ from the input: dtype, pairing, strides, parts of heads; tables that are no rotation;
 * streaming stores. SPDX-License-Identifier: MIT */
#include "rotation_cases.h"

/* --- Dtypes, pairings, parts and layouts ------------------------------------------------------------ */

/* The layouts of engines: batch, tokens, heads; batch, heads, tokens; tokens, batch, heads; a part of packed q, k
 * and v; any padding. */
static void random_layout(posenc_tensor *t, random_stream *rng) {
    static const int orders[3][POSENC_AXES] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {1, 0, 2, 3}};
    size_t layout = random_below(rng, 5);
    *t = posenc_tensor_dense(t->dtype, t->shape[0], t->shape[1], t->shape[2], t->shape[3]);
    if (layout < 3)
        set_strides(t, orders[layout], 0, 0, rng);
    else if (layout == 3)
        set_strides(t, orders[random_below(rng, 3)], (unsigned)random_below(rng, 16), 5, rng);
    else {
        t->strides[POSENC_AXIS_TOKENS] *= 3;
        t->strides[POSENC_AXIS_BATCH] *= 3;
    }
}

/* Whole heads, or their first, last or middle channels. */
static void random_part(posenc_rotation *r, size_t head_dim, random_stream *rng) {
    r->rotary_dim = head_dim;
    if (random_below(rng, 2) == 0)
        return;
    r->rotary_dim = 2 + 2 * random_below(rng, head_dim / 2);
    size_t places[] = {0, head_dim - r->rotary_dim,
                       random_below(rng, head_dim - r->rotary_dim + 1)};
    r->rotary_start = places[random_below(rng, 3)];
}

static rotate_case random_case(posenc_dtype from, posenc_dtype to, random_stream *rng) {
    static const size_t widths[] = {6, 36, 80, 96, 128, 256};
    const size_t shape[] = {1 + random_below(rng, 2), 1 + random_below(rng, 3),
                            random_below(rng, 6) ? 1 + random_below(rng, 3) : 9,
                            widths[random_below(rng, COUNT(widths))]};
    rotate_case c = case_of(from, shape, pairings[random_below(rng, 2)]);
    c.y.dtype = to;
    random_layout(&c.x, rng);
    random_layout(&c.y, rng);
    random_part(&c.rotation, shape[3], rng);
    c.rotation.pair_stride = random_below(rng, 4) ? 0 : 2;
    c.rotation.attention_factor = random_below(rng, 2) ? 0.0 : random_real(rng, 0.5, 2.0);
    c.direction = (posenc_direction)random_below(rng, 3);
    c.output_pairing = (posenc_output_pairing)random_below(rng, 3);
    c.stores = (posenc_stores)random_below(rng, 3);
    c.any_pattern = random_below(rng, 4) == 0;
    return c;
}

static void every_dtype_is_written_from_every_dtype(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(16 * 50); trial++) {
        rotate_case c = random_case(dtypes[trial % 4], dtypes[trial / 4 % 4], &rng);
        assert_rotated(&c, &rng);
    }
}

static void pairings_are_rearranged_in_place(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(240); trial++) {
        posenc_dtype dtype = dtypes[trial % 4];
        rotate_case c = random_case(dtype, dtype, &rng);
        c.y = c.x;
        c.in_place = 1;
        assert_rotated(&c, &rng);
    }
}

/* The widest heads that can: they fill the memory of the call. */
static void the_widest_slices_are_rearranged_in_place(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < 4 * 3; trial++) {
        posenc_dtype dtype = dtypes[trial % 4];
        size_t most = 16384 / oracle_bytes(dtype);
        const size_t shape[] = {1, 2, 1, most + 1};
        rotate_case c = case_of(dtype, shape, pairings[trial % 2]);
        c.rotation.rotary_dim = most;
        c.rotation.rotary_start = 1;
        c.rotation.second_stride = trial / 4 == 2 ? (ptrdiff_t)most : 0;
        c.output_pairing = trial % 2 ? POSENC_OUTPUT_HALF : POSENC_OUTPUT_INTERLEAVED;
        c.direction = trial / 4 == 1 ? POSENC_BACKWARD : POSENC_FORWARD;
        c.in_place = 1;
        assert_rotated(&c, &rng);
    }
}

/* Forth and back is nothing but the turn: channel by channel where all angles are 0. */
static void pairs_in_and_halves_out_is_undone_by_the_other_way(void **state) {
    (void)state;
    enum { D = 36, N = 2 * D };
    float cos[D / 2], sin[D / 2] = {0}, x[N], kept[N];
    random_stream rng = random_of(__func__);
    for (size_t j = 0; j < D / 2; j++)
        cos[j] = 1.0f;
    for (size_t i = 0; i < N; i++)
        x[i] = kept[i] = (float)random_normal(&rng);
    posenc_rotation r = POSENC_ROTATION_INIT;
    r.cos = cos;
    r.sin = sin;
    r.rotary_dim = D;
    r.tokens = 1;
    r.pairing = POSENC_PAIRING_INTERLEAVED;
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, 1, 2, D);
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.output_pairing = POSENC_OUTPUT_HALF;
    assert_int_equal(posenc_rotate(&r, &tensor, x, x, &options, NULL), POSENC_OK);
    for (size_t i = 0; i < N; i++)
        assert_true(x[i] == kept[i / D * D + 2 * (i % D % (D / 2)) + i % D / (D / 2)]);
    r.pairing = POSENC_PAIRING_HALF;
    options.output_pairing = POSENC_OUTPUT_INTERLEAVED;
    assert_int_equal(posenc_rotate(&r, &tensor, x, x, &options, NULL), POSENC_OK);
    assert_memory_equal(x, kept, sizeof x);
}

/* Rows of posenc_angles whose pairs lie two apart give the bytes of those side by side, both ways. */
static void rows_two_apart_rotate_like_rows_side_by_side(void **state) {
    (void)state;
    enum { T = 19, H = 2, D = 80 };
    static const posenc_row_layout spread[] = {POSENC_ROWS_PAIRS, POSENC_ROWS_FULL_INTERLEAVED};
    int64_t positions[T];
    random_stream rng = random_of(__func__);
    for (size_t t = 0; t < T; t++)
        positions[t] = random_position(&rng);
    for (size_t i = 0; i < 4 * 2 * 3 * 2; i++) {
        posenc_dtype dtype = dtypes[i % 4];
        posenc_spec spec = spec_of(D, 10000.0, pairings[i / 4 % 2]);
        rotor dense = rotor_new(&spec, positions, T, table_dtype_of(dtype), POSENC_ROWS_HALF);
        rotor apart = rotor_new(&spec, positions, T, table_dtype_of(dtype), spread[i / 24]);
        assert_int_equal(apart.rotation.pair_stride, 2);
        posenc_tensor tensor = posenc_tensor_dense(dtype, 1, T, H, D);
        strided x = strided_new(&tensor, GUARD_AFTER), y = strided_new(&tensor, GUARD_AFTER);
        posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
        options.direction = (posenc_direction)(i / 8 % 3);
        strided_fill(&x, 0, &rng);
        assert_int_equal(posenc_rotate(&dense.rotation, &tensor, x.data, y.data, &options, NULL),
                         POSENC_OK);
        assert_int_equal(posenc_rotate(&apart.rotation, &tensor, x.data, x.data, &options, NULL),
                         POSENC_OK);
        assert_memory_equal(x.data, y.data, x.memory.bytes);
        rotor_free(&dense);
        rotor_free(&apart);
        guarded_free(&x.memory);
        guarded_free(&y.memory);
    }
}

/* --- Tables whose halves differ --------------------------------------------------------------------- */

/* Full-width rows: the numbers of second channels stand behind those of the first, or beside them. */
static void take_full_width(posenc_rotation *r, random_stream *rng) {
    ptrdiff_t pairs = (ptrdiff_t)r->rotary_dim / 2;
    int beside = (int)random_below(rng, 2);
    r->pair_stride = beside ? 2 : 1;
    r->second_stride = beside ? 1 : pairs;
    r->row_stride = 2 * pairs + (ptrdiff_t)random_below(rng, 3);
}

static void tables_whose_halves_differ_are_applied(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(300); trial++) {
        posenc_dtype from = dtypes[trial % 4],
                     to = random_below(&rng, 2) ? from : dtypes[trial / 4 % 4];
        rotate_case c = random_case(from, to, &rng);
        c.direction = random_below(&rng, 2) ? POSENC_BACKWARD : POSENC_FORWARD;
        take_full_width(&c.rotation, &rng);
        if (from == to && random_below(&rng, 2)) {
            c.y = c.x;
            c.in_place = 1;
        }
        assert_rotated(&c, &rng);
    }
}

static double dot(const double *a, const double *b, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static void fill_integers(double *to, size_t count, random_stream *rng) {
    for (size_t i = 0; i < count; i++)
        to[i] = (double)random_between(rng, -50, 50);
}

/* <A x, y> = <x, A^T y>, in integers that float64 holds exactly; through another pairing of the output too, whose
 * transpose goes back to the input's. */
static void backward_is_the_transpose_of_any_table(void **state) {
    (void)state;
    enum { D = 36, T = 3, N = T * D };
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(60); trial++) {
        double cos[N], sin[N], x[N], y[N], ax[N], aty[N];
        fill_integers(cos, N, &rng);
        fill_integers(sin, N, &rng);
        fill_integers(x, N, &rng);
        fill_integers(y, N, &rng);
        posenc_rotation r = POSENC_ROTATION_INIT;
        r.cos = cos;
        r.sin = sin;
        r.dtype = POSENC_F64;
        r.tokens = T;
        r.rotary_dim = D;
        r.pairing = pairings[trial % 2];
        r.row_stride = D;
        r.pair_stride = trial / 2 % 2 ? 2 : 1;
        r.second_stride = trial / 2 % 2 ? 1 : D / 2;
        posenc_tensor tensor = posenc_tensor_dense(POSENC_F64, 1, T, 1, D);
        posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
        posenc_pairing other = (posenc_pairing)!r.pairing;
        if (trial / 4 % 2)
            options.output_pairing =
                r.pairing == POSENC_PAIRING_HALF ? POSENC_OUTPUT_INTERLEAVED : POSENC_OUTPUT_HALF;
        assert_int_equal(posenc_rotate(&r, &tensor, x, ax, &options, NULL), POSENC_OK);
        if (options.output_pairing != POSENC_OUTPUT_SAME) {
            options.output_pairing =
                r.pairing == POSENC_PAIRING_HALF ? POSENC_OUTPUT_HALF : POSENC_OUTPUT_INTERLEAVED;
            r.pairing = other;
        }
        options.direction = POSENC_BACKWARD;
        assert_int_equal(posenc_rotate(&r, &tensor, y, aty, &options, NULL), POSENC_OK);
        assert_true(dot(ax, y, N) == dot(x, aty, N));
        assert_true(dot(ax, y, N) != 0.0);
    }
}

/* --- Sizes ------------------------------------------------------------------------------------------- */

/* Tensors beyond the caches go in another order than small ones, and heads that lie outside of tokens in groups:
 * the same bytes as head by head, a call each, which the tests above compare with the oracle. */
enum { LARGE_BATCH = 2, LARGE_TOKENS = 70, LARGE_HEADS = 19, LARGE_DIM = 208 };

/* Numbers that repeat after a prime number of elements. */
static void fill_repeating(strided *s, random_stream *rng) {
    enum { PERIOD = 4093 };
    size_t bytes = oracle_bytes(s->tensor.dtype), elements = s->memory.bytes / bytes;
    for (size_t i = 0; i < elements && i < PERIOD; i++)
        oracle_store(s->memory.data, s->tensor.dtype, (ptrdiff_t)i,
                     oracle_bits_of_double(random_normal(rng), s->tensor.dtype));
    for (size_t i = PERIOD; i < elements; i++)
        memcpy((char *)s->memory.data + i * bytes, (char *)s->memory.data + (i - PERIOD) * bytes,
               bytes);
}

/* The head of one token, by itself. */
static void rotate_one_head(const rotate_case *c, const posenc_rotation *r, const strided *x,
                            const size_t at[POSENC_AXES], void *to) {
    posenc_tensor one = posenc_tensor_dense(c->x.dtype, 1, 1, 1, LARGE_DIM), out = one;
    posenc_rotation row = *r;
    size_t offset = at[POSENC_AXIS_TOKENS] * (r->rotary_dim / 2);
    out.dtype = c->y.dtype;
    row.tokens = 1;
    row.cos = (const char *)r->cos + offset * oracle_bytes(r->dtype);
    row.sin = (const char *)r->sin + offset * oracle_bytes(r->dtype);
    posenc_rotate_options options = options_of(c);
    options.output = &out;
    const char *from =
        (const char *)x->data + element_at(&c->x, at) * (ptrdiff_t)oracle_bytes(c->x.dtype);
    posenc_error error;
    assert_done(posenc_rotate(&row, &one, from, to, &options, &error), &error);
}

static void assert_large(rotate_case *c, random_stream *rng) {
    strided cosine = table_new(&c->rotation, GUARD_AFTER, rng);
    strided sine = table_new(&c->rotation, GUARD_AFTER, rng);
    strided x = strided_new(&c->x, GUARD_AFTER), y = strided_new(&c->y, GUARD_AFTER);
    posenc_rotation r = c->rotation;
    r.cos = cosine.data;
    r.sin = sine.data;
    fill_repeating(&x, rng);
    if (c->in_place)
        memcpy(y.memory.data, x.memory.data, x.memory.bytes);
    posenc_rotate_options options = options_of(c);
    posenc_error error;
    assert_done(posenc_rotate(&r, &c->x, c->in_place ? y.data : x.data, y.data, &options, &error),
                &error);
    double wanted[LARGE_DIM];
    for (size_t i = 0; i < LARGE_BATCH * LARGE_TOKENS * LARGE_HEADS; i++) {
        const size_t at[] = {i / LARGE_HEADS / LARGE_TOKENS, i / LARGE_HEADS % LARGE_TOKENS,
                             i % LARGE_HEADS, 0};
        rotate_one_head(c, &r, &x, at, wanted);
        const char *got =
            (const char *)y.data + element_at(&c->y, at) * (ptrdiff_t)oracle_bytes(c->y.dtype);
        if (memcmp(got, wanted, LARGE_DIM * oracle_bytes(c->y.dtype)) != 0)
            fail_msg("batch %zu, token %zu, head %zu differs from that head alone", at[0], at[1],
                     at[2]);
    }
    guarded_free(&cosine.memory);
    guarded_free(&sine.memory);
    guarded_free(&x.memory);
    guarded_free(&y.memory);
}

static void large_tensors_give_the_bytes_of_their_heads(void **state) {
    (void)state;
    static const int orders[2][POSENC_AXES] = {{0, 1, 2, 3}, {0, 2, 1, 3}};
    static const size_t parts[] = {LARGE_DIM, 128, 100};
    const size_t shape[] = {LARGE_BATCH, LARGE_TOKENS, LARGE_HEADS, LARGE_DIM};
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < 4 * 2 * 2 * 2; i++) {
        rotate_case c = case_of(dtypes[i % 4], shape, pairings[i / 4 % 2]);
        set_strides(&c.x, orders[i / 8 % 2], 0, 0, &rng);
        c.y = c.x;
        c.in_place = (int)(i / 16);
        c.rotation.rotary_dim = parts[random_below(&rng, COUNT(parts))];
        c.direction = (posenc_direction)random_below(&rng, 3);
        if (random_below(&rng, 2))
            c.output_pairing = (posenc_output_pairing)random_below(&rng, 3);
        if (!c.in_place && random_below(&rng, 4) == 0)
            c.y.dtype = dtypes[random_below(&rng, 4)];
        c.stores = (posenc_stores)random_below(&rng, 3);
        assert_large(&c, &rng);
    }
}

/* --- Stores ----------------------------------------------------------------------------------------- */

/* More than 16 MiB of output, where streaming is what is chosen by itself; the whole output is compared with one
 * through the caches, and some tokens with the oracle. */
static void streaming_gives_the_bytes_of_cached_stores(void **state) {
    (void)state;
    enum { T = 1300, H = 32, D = 128, BYTES = T * H * D * 4 };
    char *memory = malloc(3 * (size_t)BYTES + 64);
    assert_non_null(memory);
    char *x = memory + (64 - (size_t)((uintptr_t)memory % 64)), *cached = x + BYTES,
         *streamed = cached + BYTES;
    static float cos[T * D / 2], sin[T * D / 2];
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < T * D / 2; i++) {
        cos[i] = (float)random_real(&rng, -1.0, 1.0);
        sin[i] = (float)random_real(&rng, -1.0, 1.0);
    }
    for (size_t i = 0; i < BYTES / 4; i++)
        ((float *)(void *)x)[i] = (float)random_real(&rng, -4.0, 4.0);
    for (size_t i = 0; i < 4; i++) {
        const size_t shape[] = {1, T, H, D};
        rotate_case c = case_of(POSENC_F32, shape, pairings[i % 2]);
        c.rotation.cos = cos;
        c.rotation.sin = sin;
        c.y.dtype = i / 2 ? POSENC_BF16 : POSENC_F32;
        c.output_pairing = i == 1 ? POSENC_OUTPUT_HALF : POSENC_OUTPUT_SAME;
        c.stores = POSENC_STORES_CACHED;
        posenc_rotate_options options = options_of(&c);
        assert_int_equal(posenc_rotate(&c.rotation, &c.x, x, cached, &options, NULL), POSENC_OK);
        size_t bytes = (size_t)BYTES / (i / 2 ? 2 : 1);
        for (int stores = POSENC_STORES_AUTO; stores <= POSENC_STORES_STREAMING; stores += 2) {
            memset(streamed, GUARD_FILL, bytes);
            options.stores = (posenc_stores)stores;
            assert_int_equal(posenc_rotate(&c.rotation, &c.x, x, streamed, &options, NULL),
                             POSENC_OK);
            assert_memory_equal(streamed, cached, bytes);
        }
        for (size_t trial = 0; trial < 500; trial++) {
            size_t at[] = {0, random_below(&rng, T), random_below(&rng, H), random_below(&rng, D)};
            assert_true(oracle_load(cached, c.y.dtype, element_at(&c.y, at)) ==
                        expected(&c, &c.rotation, x, at));
        }
    }
    free(memory);
}

/* Outputs that are not aligned, or whose strides are not, take cached stores: an aligned one would fault. */
static void streaming_is_left_out_where_the_output_is_not_aligned(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(240); trial++) {
        const size_t shape[] = {2, 3, 2, 64};
        posenc_dtype dtype = dtypes[trial % 4];
        rotate_case c = case_of(dtype, shape, pairings[trial / 4 % 2]);
        /* All strides are aligned, or one axis' is not. */
        size_t odd = random_below(&rng, POSENC_AXES);
        c.y.strides[POSENC_AXIS_HEADS] += odd == POSENC_AXIS_HEADS;
        c.y.strides[POSENC_AXIS_TOKENS] = 192 + (odd == POSENC_AXIS_TOKENS);
        c.y.strides[POSENC_AXIS_BATCH] = 640 + (odd == POSENC_AXIS_BATCH);
        c.rotation.rotary_dim = trial / 8 % 2 ? 64 : 2 * (1 + random_below(&rng, 31));
        c.rotation.rotary_start = random_below(&rng, 64 - c.rotation.rotary_dim + 1);
        c.stores = POSENC_STORES_STREAMING;
        assert_rotated(&c, &rng);
    }
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_is_written_from_every_dtype),
        cmocka_unit_test(pairings_are_rearranged_in_place),
        cmocka_unit_test(the_widest_slices_are_rearranged_in_place),
        cmocka_unit_test(pairs_in_and_halves_out_is_undone_by_the_other_way),
        cmocka_unit_test(rows_two_apart_rotate_like_rows_side_by_side),
        cmocka_unit_test(tables_whose_halves_differ_are_applied),
        cmocka_unit_test(backward_is_the_transpose_of_any_table),
        cmocka_unit_test(large_tensors_give_the_bytes_of_their_heads),
        cmocka_unit_test(streaming_gives_the_bytes_of_cached_stores),
        cmocka_unit_test(streaming_is_left_out_where_the_output_is_not_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
