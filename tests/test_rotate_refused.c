/* Refused calls, and overlap byte for byte. SPDX-License-Identifier: MIT */
#include "rotation_cases.h"

/* --- Refused calls ------------------------------------------------------------------------------ */

/* A valid call on a tensor of 2 x 3 x 2 x 8 float32, to be spoilt in one place. */
typedef struct rotate_call {
    posenc_rotation rotation, *rotation_pointer;
    posenc_tensor x, y, *x_pointer;
    posenc_rotate_options options;
    const void *input;
    void *output;
} rotate_call;

typedef void spoil_rotate(rotate_call *call);

/* clang-format off */
static void no_rotation(rotate_call *c) { c->rotation_pointer = NULL; }
static void no_tensor(rotate_call *c) { c->x_pointer = NULL; }
static void no_input(rotate_call *c) { c->input = NULL; }
static void no_output(rotate_call *c) { c->output = NULL; }
static void no_cos(rotate_call *c) { c->rotation.cos = NULL; }
static void no_sin(rotate_call *c) { c->rotation.sin = NULL; }
static void rotation_size(rotate_call *c) { c->rotation.size = 0; }
static void tensor_size(rotate_call *c) { c->x.size = 0; }
static void output_size(rotate_call *c) { c->y.size = 0; }
static void options_size(rotate_call *c) { c->options.size = 0; }
static void odd_rotary_dim(rotate_call *c) { c->rotation.rotary_dim = 5; }
static void no_rotary_dim(rotate_call *c) { c->rotation.rotary_dim = 0; }
static void long_rotary_dim(rotate_call *c) { c->rotation.rotary_dim = 10; }
static void huge_rotary_dim(rotate_call *c) { c->rotation.rotary_dim = SIZE_MAX - 1; }
static void late_start(rotate_call *c) { c->rotation.rotary_start = 1; }
static void huge_start(rotate_call *c) { c->rotation.rotary_start = SIZE_MAX - 6; }
static void bad_pairing(rotate_call *c) { c->rotation.pairing = (posenc_pairing)2; }
static void fewer_tokens(rotate_call *c) { c->rotation.tokens = 2; }
static void more_tokens(rotate_call *c) { c->rotation.tokens = 4; }
static void no_tokens(rotate_call *c) { c->rotation.tokens = 0; }
static void more_batch(rotate_call *c) { c->rotation.batch = 3; }
static void batch_of_one(rotate_call *c) { c->rotation.batch = 2; c->x.shape[0] = c->y.shape[0] = 1; }
static void negative_factor(rotate_call *c) { c->rotation.attention_factor = -1.0; }
static void nan_factor(rotate_call *c) { c->rotation.attention_factor = (double)NAN; }
static void infinite_factor(rotate_call *c) { c->rotation.attention_factor = (double)INFINITY; }
static void table_f64(rotate_call *c) { c->rotation.dtype = POSENC_F64; }
static void table_f16(rotate_call *c) { c->rotation.dtype = POSENC_F16; }
static void table_unknown(rotate_call *c) { c->rotation.dtype = (posenc_dtype)7; }
static void tensor_f64(rotate_call *c) { c->x.dtype = c->y.dtype = POSENC_F64; }
static void tensor_unknown(rotate_call *c) { c->x.dtype = (posenc_dtype)7; }
static void output_unknown(rotate_call *c) { c->y.dtype = (posenc_dtype)7; }
static void another_dtype_in_place(rotate_call *c) { c->y.dtype = POSENC_BF16; c->input = c->output; }
static void another_dtype_one_row_on(rotate_call *c) { c->y.dtype = POSENC_F16; c->input = (float *)c->output - 48; }
static void nothing_into_something(rotate_call *c) { c->x.shape[0] = 0; }
static void something_into_nothing(rotate_call *c) { c->y.shape[0] = 0; }
static void output_batch(rotate_call *c) { c->y.shape[0] = 1; }
static void output_tokens(rotate_call *c) { c->y.shape[1] = 2; }
static void output_heads(rotate_call *c) { c->y.shape[2] = 1; }
static void output_head_dim(rotate_call *c) { c->y.shape[3] = 7; }
static void bad_direction(rotate_call *c) { c->options.direction = (posenc_direction)3; }
static void negative_direction(rotate_call *c) { c->options.direction = (posenc_direction)-1; }
static void bad_output_pairing(rotate_call *c) { c->options.output_pairing = (posenc_output_pairing)3; }
static void negative_output_pairing(rotate_call *c) { c->options.output_pairing = (posenc_output_pairing)-1; }
static void bad_stores(rotate_call *c) { c->options.stores = (posenc_stores)3; }
static void negative_stores(rotate_call *c) { c->options.stores = (posenc_stores)-1; }
static void inverse_of_no_rotation(rotate_call *c) { c->rotation.second_stride = 1; c->options.direction = POSENC_INVERSE; }
static void one_element_on(rotate_call *c) { c->output = (float *)c->output + 1; c->input = (float *)c->output - 1; }
static void one_head_back(rotate_call *c) { c->input = (float *)c->output + 8; }
static void in_place_transposed(rotate_call *c) { c->input = c->output; c->y.strides[1] = 8; c->y.strides[2] = 24; }
static void in_place_spread(rotate_call *c) { c->input = c->output; c->y.strides[0] = 50; }
static void input_repeats_output(rotate_call *c) { c->input = c->output; c->x.strides[2] = 0; }
static void output_repeats(rotate_call *c) { c->y.strides[0] = 0; }
static void in_place_repeats(rotate_call *c) { c->input = c->output; c->x.strides[2] = 0; c->options.output = NULL; }
static void output_overlaps(rotate_call *c) { c->y.strides[1] = 15; }
static void output_overlaps_back(rotate_call *c) { c->y.strides[2] = -7; }
static void huge_shape(rotate_call *c) { c->x.shape[0] = c->y.shape[0] = SIZE_MAX; }
static void huge_product(rotate_call *c) { c->x.shape[0] = c->x.shape[2] = (size_t)1 << 31; }
static void huge_stride(rotate_call *c) { c->x.strides[0] = PTRDIFF_MAX; }
static void least_stride(rotate_call *c) { c->x.strides[0] = PTRDIFF_MIN; }
static void huge_output_stride(rotate_call *c) { c->y.strides[1] = PTRDIFF_MAX / 4; }
static void huge_row_stride(rotate_call *c) { c->rotation.row_stride = PTRDIFF_MAX; }
static void least_row_stride(rotate_call *c) { c->rotation.row_stride = PTRDIFF_MIN; }
static void huge_pair_stride(rotate_call *c) { c->rotation.pair_stride = PTRDIFF_MAX; }
static void least_pair_stride(rotate_call *c) { c->rotation.pair_stride = PTRDIFF_MIN; }
static void huge_batch_stride(rotate_call *c) { c->rotation.batch = 2; c->rotation.batch_stride = PTRDIFF_MAX; }
/* Small enough for sizes, but from any real address they run below 0. */
static void input_below_zero(rotate_call *c) { c->x.strides[1] = -((ptrdiff_t)1 << 56); }
static void output_below_zero(rotate_call *c) { c->y.strides[1] = -((ptrdiff_t)1 << 56); }
static void rows_below_zero(rotate_call *c) { c->rotation.row_stride = -((ptrdiff_t)1 << 56); }
static void huge_second_stride(rotate_call *c) { c->rotation.second_stride = PTRDIFF_MAX; }
static void second_cos_in_output(rotate_call *c) { c->rotation.cos = (float *)c->output - 200; c->rotation.second_stride = 200; }
static void cos_in_output(rotate_call *c) { c->rotation.cos = (float *)c->output + 90; }
static void sin_in_output(rotate_call *c) { c->rotation.sin = (float *)c->output - 11; }
/* clang-format on */

/* The call with NULL for the error too; afterwards not a byte of the output has changed. Returns the error. */
static posenc_error assert_rotate_refused(spoil_rotate *spoil, posenc_status status,
                                          const char *argument) {
    enum { ELEMENTS = 2 * 3 * 2 * 8, ROOM = ELEMENTS + 40 };
    static const float input[ROOM], table[12];
    guarded output = guarded_new(ROOM * sizeof(double), GUARD_BEFORE);
    rotate_call c = {POSENC_ROTATION_INIT,       NULL, {0}, {0}, NULL,
                     POSENC_ROTATE_OPTIONS_INIT, NULL, NULL};
    c.x = c.y = posenc_tensor_dense(POSENC_F32, 2, 3, 2, 8);
    c.rotation.cos = c.rotation.sin = table;
    c.rotation.tokens = 3;
    c.rotation.rotary_dim = 8;
    c.rotation_pointer = &c.rotation;
    c.x_pointer = &c.x;
    c.options.output = &c.y;
    c.input = input;
    c.output = (float *)output.data + 20;
    spoil(&c);
    posenc_error error;
    assert_refused(
        posenc_rotate(c.rotation_pointer, c.x_pointer, c.input, c.output, &c.options, &error),
        &error, status, argument);
    assert_int_equal(
        posenc_rotate(c.rotation_pointer, c.x_pointer, c.input, c.output, &c.options, NULL),
        status);
    assert_true(guarded_is_untouched(&output));
    guarded_free(&output);
    return error;
}

static void bad_calls_of_rotate_are_refused_and_write_nothing(void **state) {
    (void)state;
    static const struct {
        spoil_rotate *spoil;
        posenc_status status;
        const char *argument;
    } bad[] = {
        {no_rotation, POSENC_NULL_POINTER, "rotation"},
        {no_tensor, POSENC_NULL_POINTER, "tensor"},
        {no_input, POSENC_NULL_POINTER, "input"},
        {no_output, POSENC_NULL_POINTER, "output"},
        {no_cos, POSENC_NULL_POINTER, "rotation.cos"},
        {no_sin, POSENC_NULL_POINTER, "rotation.sin"},
        {rotation_size, POSENC_OUT_OF_RANGE, "rotation"},
        {tensor_size, POSENC_OUT_OF_RANGE, "tensor"},
        {output_size, POSENC_OUT_OF_RANGE, "options.output"},
        {options_size, POSENC_OUT_OF_RANGE, "options"},
        {odd_rotary_dim, POSENC_OUT_OF_RANGE, "rotation.rotary_dim"},
        {no_rotary_dim, POSENC_OUT_OF_RANGE, "rotation.rotary_dim"},
        {long_rotary_dim, POSENC_OUT_OF_RANGE, "rotation.rotary_dim"},
        {huge_rotary_dim, POSENC_OUT_OF_RANGE, "rotation.rotary_dim"},
        {late_start, POSENC_OUT_OF_RANGE, "rotation.rotary_start"},
        {huge_start, POSENC_OUT_OF_RANGE, "rotation.rotary_start"},
        {bad_pairing, POSENC_OUT_OF_RANGE, "rotation.pairing"},
        {fewer_tokens, POSENC_OUT_OF_RANGE, "rotation.tokens"},
        {more_tokens, POSENC_OUT_OF_RANGE, "rotation.tokens"},
        {no_tokens, POSENC_OUT_OF_RANGE, "rotation.tokens"},
        {more_batch, POSENC_OUT_OF_RANGE, "rotation.batch"},
        {batch_of_one, POSENC_OUT_OF_RANGE, "rotation.batch"},
        {negative_factor, POSENC_OUT_OF_RANGE, "rotation.attention_factor"},
        {nan_factor, POSENC_OUT_OF_RANGE, "rotation.attention_factor"},
        {infinite_factor, POSENC_OUT_OF_RANGE, "rotation.attention_factor"},
        {table_f64, POSENC_OUT_OF_RANGE, "rotation.dtype"},
        {table_f16, POSENC_OUT_OF_RANGE, "rotation.dtype"},
        {table_unknown, POSENC_OUT_OF_RANGE, "rotation.dtype"},
        {tensor_f64, POSENC_OUT_OF_RANGE, "rotation.dtype"},
        {tensor_unknown, POSENC_OUT_OF_RANGE, "dtype"},
        {output_unknown, POSENC_OUT_OF_RANGE, "dtype"},
        {another_dtype_in_place, POSENC_OVERLAP, "output"},
        {another_dtype_one_row_on, POSENC_OVERLAP, "output"},
        {nothing_into_something, POSENC_OUT_OF_RANGE, "options.output"},
        {something_into_nothing, POSENC_OUT_OF_RANGE, "options.output"},
        {output_batch, POSENC_OUT_OF_RANGE, "options.output"},
        {output_tokens, POSENC_OUT_OF_RANGE, "options.output"},
        {output_heads, POSENC_OUT_OF_RANGE, "options.output"},
        {output_head_dim, POSENC_OUT_OF_RANGE, "options.output"},
        {bad_direction, POSENC_OUT_OF_RANGE, "options.direction"},
        {negative_direction, POSENC_OUT_OF_RANGE, "options.direction"},
        {bad_output_pairing, POSENC_OUT_OF_RANGE, "options.output_pairing"},
        {negative_output_pairing, POSENC_OUT_OF_RANGE, "options.output_pairing"},
        {bad_stores, POSENC_OUT_OF_RANGE, "options.stores"},
        {negative_stores, POSENC_OUT_OF_RANGE, "options.stores"},
        {inverse_of_no_rotation, POSENC_UNSUPPORTED, "options.direction"},
        {one_element_on, POSENC_OVERLAP, "output"},
        {one_head_back, POSENC_OVERLAP, "output"},
        {in_place_transposed, POSENC_OVERLAP, "output"},
        {in_place_spread, POSENC_OVERLAP, "output"},
        {input_repeats_output, POSENC_OVERLAP, "output"},
        {output_repeats, POSENC_OVERLAP, "options.output"},
        {in_place_repeats, POSENC_OVERLAP, "options.output"},
        {output_overlaps, POSENC_OVERLAP, "options.output"},
        {output_overlaps_back, POSENC_OVERLAP, "options.output"},
        {huge_shape, POSENC_OVERFLOW, "tensor"},
        {huge_product, POSENC_OVERFLOW, "tensor"},
        {huge_stride, POSENC_OVERFLOW, "tensor"},
        {least_stride, POSENC_OVERFLOW, "tensor"},
        {huge_output_stride, POSENC_OVERFLOW, "options.output"},
        {huge_row_stride, POSENC_OVERFLOW, "rotation"},
        {least_row_stride, POSENC_OVERFLOW, "rotation"},
        {huge_pair_stride, POSENC_OVERFLOW,
         "rotation.pair_stride"}, /* row_stride 0 is a multiple of it */
        {least_pair_stride, POSENC_OVERFLOW, "rotation.pair_stride"},
        {huge_batch_stride, POSENC_OVERFLOW, "rotation"},
        {input_below_zero, POSENC_OVERFLOW, "tensor"},
        {output_below_zero, POSENC_OVERFLOW, "options.output"},
        {rows_below_zero, POSENC_OVERFLOW, "rotation"},
        {huge_second_stride, POSENC_OVERFLOW, "rotation"},
        {second_cos_in_output, POSENC_OVERLAP, "rotation.cos"},
        {cos_in_output, POSENC_OVERLAP, "rotation.cos"},
        {sin_in_output, POSENC_OVERLAP, "rotation.sin"},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_rotate_refused(bad[i].spoil, bad[i].status, bad[i].argument);
}

/* --- Chosen rows and ranges ------------------------------------------------------------------------ */

/* Lists for 2 sequences of 3 tokens and tables of 3 rows, each wrong in one place. */
static const int64_t ids_negative[] = {0, 1, -1}, ids_late[] = {0, 3, 1},
                     ids_huge[] = {INT64_MAX, 0, 0}, ids_least[] = {0, INT64_MIN, 0},
                     ids_second[] = {0, 1, 2, 9, 2, 1, 7}, starts_late[] = {0, 1},
                     starts_negative[] = {-1, 0}, starts_huge[] = {0, INT64_MAX},
                     starts_least[] = {INT64_MIN, 0}, ragged_late[] = {0, 2}, no_starts[] = {0, 0};
static const int32_t ends_from_1[] = {1, 3}, ends_falling[] = {0, 2, 1, 3},
                     ends_early[] = {0, 1, 2}, ends_late[] = {0, 2, 4},
                     ends_negative[] = {0, -1, 3}, ends_right[] = {0, 1, 3}, ends_long[] = {0, 4};

static void take_ragged(rotate_call *c, const int32_t *ends, size_t sequences) {
    c->x.shape[0] = c->y.shape[0] = 1;
    c->rotation.cu_seqlens = ends;
    c->rotation.sequences = sequences;
}

/* clang-format off */
static void negative_id(rotate_call *c) { c->rotation.row_ids = ids_negative; }
static void late_id(rotate_call *c) { c->rotation.row_ids = ids_late; }
static void huge_id(rotate_call *c) { c->rotation.row_ids = ids_huge; }
static void least_id(rotate_call *c) { c->rotation.row_ids = ids_least; }
static void id_of_second_list(rotate_call *c) { c->rotation.row_ids = ids_second; c->rotation.row_ids_stride = 4; }
static void id_outside_the_range_of_tokens(rotate_call *c) { c->rotation.row_ids = ids_negative; c->options.token_count = 1; }
static void late_row_start(rotate_call *c) { c->rotation.row_starts = starts_late; }
static void negative_row_start(rotate_call *c) { c->rotation.row_starts = starts_negative; }
static void huge_row_start(rotate_call *c) { c->rotation.row_starts = starts_huge; }
static void least_row_start(rotate_call *c) { c->rotation.row_starts = starts_least; }
static void ragged_from_1(rotate_call *c) { take_ragged(c, ends_from_1, 1); }
static void ragged_falling(rotate_call *c) { take_ragged(c, ends_falling, 3); }
static void ragged_negative(rotate_call *c) { take_ragged(c, ends_negative, 2); }
static void ragged_too_short(rotate_call *c) { take_ragged(c, ends_early, 2); }
static void ragged_too_long(rotate_call *c) { take_ragged(c, ends_late, 2); }
static void ragged_of_none(rotate_call *c) { take_ragged(c, ends_right, 0); }
static void ragged_start_late(rotate_call *c) { take_ragged(c, ends_right, 2); c->rotation.row_starts = ragged_late; }
static void ragged_batch(rotate_call *c) { take_ragged(c, ends_right, 2); c->x.shape[0] = c->y.shape[0] = 2; }
static void ragged_beyond_table(rotate_call *c) { take_ragged(c, ends_long, 1); }
static void ragged_tables(rotate_call *c) { take_ragged(c, ends_right, 2); c->rotation.batch = 2; }
static void ids_and_starts(rotate_call *c) { c->rotation.row_ids = ids_second; c->rotation.row_starts = no_starts; }
static void ids_and_ragged(rotate_call *c) { take_ragged(c, ends_right, 2); c->rotation.row_ids = ids_second; }
static void range_begins_late(rotate_call *c) { c->options.first_token = 4; }
static void range_ends_late(rotate_call *c) { c->options.first_token = 1; c->options.token_count = 3; }
static void huge_first_token(rotate_call *c) { c->options.first_token = SIZE_MAX; c->options.token_count = 2; }
static void huge_token_count(rotate_call *c) { c->options.first_token = 2; c->options.token_count = SIZE_MAX; }
/* clang-format on */

static void assert_number_is(const posenc_number *number, int64_t wanted) {
    if (number->kind == POSENC_NUMBER_INTEGER)
        assert_true(number->as.integer == wanted);
    else
        assert_true(number->kind == POSENC_NUMBER_SIZE && number->as.size == (uint64_t)wanted);
}

/* The error names the number, its index and the range. */
static void bad_lists_and_ranges_are_refused_by_number_index_and_limit(void **state) {
    (void)state;
    static const struct {
        spoil_rotate *spoil;
        const char *argument;
        int64_t value;
        const char *limit_name;
        int64_t index; /* -1: none */
    } bad[] = {
        {negative_id, "rotation.row_ids", -1, "rows", 2},
        {late_id, "rotation.row_ids", 3, "rows", 1},
        {huge_id, "rotation.row_ids", INT64_MAX, "rows", 0},
        {least_id, "rotation.row_ids", INT64_MIN, "rows", 1},
        {id_of_second_list, "rotation.row_ids", 7, "rows", 6},
        {id_outside_the_range_of_tokens, "rotation.row_ids", -1, "rows", 2},
        {late_row_start, "rotation.row_starts", 1, "rows", 1},
        {negative_row_start, "rotation.row_starts", -1, "rows", 0},
        {huge_row_start, "rotation.row_starts", INT64_MAX, "rows", 1},
        {least_row_start, "rotation.row_starts", INT64_MIN, "rows", 0},
        {ragged_from_1, "rotation.cu_seqlens", 1, "tokens", 0},
        {ragged_falling, "rotation.cu_seqlens", 1, "tokens", 2},
        {ragged_negative, "rotation.cu_seqlens", -1, "tokens", 1},
        {ragged_too_short, "rotation.cu_seqlens", 2, "tokens", 2},
        {ragged_too_long, "rotation.cu_seqlens", 4, "tokens", 2},
        {ragged_of_none, "rotation.cu_seqlens", 0, "tokens", 0},
        {ragged_beyond_table, "rotation.cu_seqlens", 4, "rows", 1},
        {ragged_start_late, "rotation.row_starts", 2, "rows", 1},
        {range_begins_late, "options.first_token", 4, "tokens", -1},
        {range_ends_late, "options.first_token", 1, "tokens", -1},
        {huge_first_token, "options.first_token", -1, "tokens", -1}, /* SIZE_MAX */
        {huge_token_count, "options.first_token", 2, "tokens", -1},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        posenc_error error =
            assert_rotate_refused(bad[i].spoil, POSENC_OUT_OF_RANGE, bad[i].argument);
        assert_number_is(&error.value, bad[i].value);
        assert_non_null(error.limit_name);
        assert_string_equal(error.limit_name, bad[i].limit_name);
        assert_number_is(&error.limit, 3);
        if (bad[i].index < 0)
            continue;
        assert_non_null(error.place_name);
        assert_string_equal(error.place_name, "index");
        assert_true(error.place == bad[i].index);
    }
}

static void lists_that_do_not_go_together_are_refused(void **state) {
    (void)state;
    assert_rotate_refused(ids_and_starts, POSENC_UNSUPPORTED, "rotation.row_ids");
    assert_rotate_refused(ids_and_ragged, POSENC_UNSUPPORTED, "rotation.row_ids");
    assert_rotate_refused(ragged_batch, POSENC_OUT_OF_RANGE, "rotation.cu_seqlens");
    assert_rotate_refused(ragged_tables, POSENC_OUT_OF_RANGE, "rotation.batch");
}

/* In place with another pairing: up to 16 KiB of a head. */
static void slices_too_wide_to_rearrange_in_place_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < 2 * COUNT(dtypes); i++) {
        posenc_dtype dtype = dtypes[i / 2];
        size_t most = 16384 / oracle_bytes(dtype), width = most + 2;
        const size_t shape[] = {1, 1, 1, width};
        rotate_case c = case_of(dtype, shape, pairings[i % 2]);
        guarded data = guarded_new(width * oracle_bytes(dtype), GUARD_AFTER);
        static const double zeros[8194];
        posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
        posenc_error error;
        c.rotation.cos = c.rotation.sin = zeros;
        options.output_pairing = i % 2 ? POSENC_OUTPUT_HALF : POSENC_OUTPUT_INTERLEAVED;
        assert_refused(posenc_rotate(&c.rotation, &c.x, data.data, data.data, &options, &error),
                       &error, POSENC_OUT_OF_RANGE, "rotation.rotary_dim");
        assert_number_is(&error.limit, (int64_t)most);
        assert_true(guarded_is_untouched(&data));
        c.rotation.rotary_dim = most;
        assert_done(posenc_rotate(&c.rotation, &c.x, data.data, data.data, &options, &error),
                    &error);
        guarded_free(&data);
    }
}

/* --- Overlap, byte for byte --------------------------------------------------------------------- */

enum { ARENA = 360, ARENA_ROTARY = 4, ARENA_TABLE = 2 * ARENA_ROTARY / 2 };

/* Tensors of 2 tokens of 2 heads of 4 somewhere in an arena of float32 elements, and dense tables. */
typedef struct arena_call {
    posenc_tensor x, y;
    ptrdiff_t x_at, y_at, cos_at, sin_at;
} arena_call;

static void arena_tensor(posenc_tensor *tensor, random_stream *rng) {
    int order[POSENC_AXES];
    order_of(random_below(rng, 24), order);
    *tensor = posenc_tensor_dense(POSENC_F32, 1, 2, 2, ARENA_ROTARY);
    set_strides(tensor, order, (unsigned)random_below(rng, 16), 3, rng);
}

/* Often alike and near each other, so that there are elements side by side as well as shared ones. */
static arena_call arena_call_of(random_stream *rng) {
    arena_call c;
    arena_tensor(&c.x, rng);
    arena_tensor(&c.y, rng);
    if (random_below(rng, 4))
        c.y = c.x;
    c.x_at = random_between(rng, 150, 190);
    c.y_at = random_below(rng, 4) ? c.x_at + random_between(rng, -24, 24) : c.x_at;
    c.cos_at = random_between(rng, 80, 260 - ARENA_TABLE);
    c.sin_at = random_between(rng, 80, 260 - ARENA_TABLE);
    return c;
}

/* Marks a tensor's elements; returns its lowest and highest in low and high. */
static void mark_elements(const posenc_tensor *t, ptrdiff_t start, unsigned char *marks,
                          ptrdiff_t *low, ptrdiff_t *high) {
    size_t at[POSENC_AXES] = {0};
    memset(marks, 0, ARENA);
    *low = ARENA;
    *high = -1;
    do {
        ptrdiff_t place = start + element_at(t, at);
        assert_true(place >= 0 && place < ARENA);
        marks[place] = 1;
        *low = place < *low ? place : *low;
        *high = place > *high ? place : *high;
    } while (next_element(t, at));
}

/* What there is between the output and something else. */
typedef enum meeting { APART, INTERLEAVED, SHARED } meeting;

static meeting meets_output(const arena_call *c, const posenc_tensor *t, ptrdiff_t start) {
    unsigned char output[ARENA], other[ARENA];
    ptrdiff_t output_low, output_high, low, high;
    mark_elements(&c->y, c->y_at, output, &output_low, &output_high);
    mark_elements(t, start, other, &low, &high);
    for (size_t i = 0; i < ARENA; i++) {
        if (output[i] && other[i])
            return SHARED;
    }
    return low > output_high || high < output_low ? APART : INTERLEAVED;
}

static int is_in_place(const arena_call *c) {
    return c->x_at == c->y_at && memcmp(c->x.strides + 1, c->y.strides + 1,
                                        (POSENC_AXES - 1) * sizeof *c->x.strides) == 0;
}

/* The strongest meeting of the output with the input and the tables. */
static meeting worst_meeting(const arena_call *c) {
    posenc_tensor table = posenc_tensor_dense(POSENC_F32, 1, 1, 1, ARENA_TABLE);
    meeting worst = is_in_place(c) ? APART : meets_output(c, &c->x, c->x_at);
    meeting cos_meets = meets_output(c, &table, c->cos_at);
    meeting sin_meets = meets_output(c, &table, c->sin_at);
    worst = cos_meets > worst ? cos_meets : worst;
    return sin_meets > worst ? sin_meets : worst;
}

/* Runs it on an arena of random numbers: refused without a change, or every element right and nothing
 * else changed. */
static posenc_status arena_run(const arena_call *c, random_stream *rng) {
    float arena[ARENA], before[ARENA];
    for (size_t i = 0; i < ARENA; i++)
        arena[i] = before[i] = (float)random_normal(rng);
    posenc_rotation r = POSENC_ROTATION_INIT;
    r.cos = arena + c->cos_at;
    r.sin = arena + c->sin_at;
    r.tokens = 2;
    r.rotary_dim = ARENA_ROTARY;
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.output = &c->y;
    posenc_status status =
        posenc_rotate(&r, &c->x, arena + c->x_at, arena + c->y_at, &options, NULL);
    size_t at[POSENC_AXES] = {0};
    r.cos = before + c->cos_at;
    r.sin = before + c->sin_at;
    rotate_case wanted = {.x = c->x, .y = c->y, .rotation = r};
    do {
        ptrdiff_t place = c->y_at + element_at(&c->y, at);
        if (status)
            break;
        assert_int_equal(oracle_load(arena, POSENC_F32, place),
                         expected(&wanted, &r, before + c->x_at, at));
        arena[place] = before[place];
    } while (next_element(&c->y, at));
    assert_memory_equal(arena, before, sizeof arena);
    return status;
}

/* Memory of its own is always accepted, a shared element never; what interleaves without sharing is
 * accepted where the strides prove it, which must happen. */
static void calls_are_accepted_only_where_the_output_shares_no_element(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    size_t met[3] = {0, 0, 0}, proved = 0;
    for (size_t trial = 0; trial < random_trials(6000); trial++) {
        arena_call c = arena_call_of(&rng);
        meeting worst = worst_meeting(&c);
        posenc_status status = arena_run(&c, &rng);
        if (worst != INTERLEAVED)
            assert_int_equal(status, worst == APART ? POSENC_OK : POSENC_OVERLAP);
        else
            assert_true(status == POSENC_OK || status == POSENC_OVERLAP);
        met[worst]++;
        proved += worst == INTERLEAVED && status == POSENC_OK;
    }
    assert_true(met[APART] > 100 && met[SHARED] > 100 && proved > 100);
}

static void assert_rotation_of_refused(const posenc_frequencies *f, const posenc_rows *rows,
                                       posenc_status status, const char *argument) {
    posenc_rotation rotation;
    posenc_error error;
    memset(&rotation, GUARD_FILL, sizeof rotation);
    assert_refused(posenc_rotation_of(f, rows, 1, &rotation, &error), &error, status, argument);
    assert_true(guard_is_filled(&rotation, sizeof rotation));
}

static void bad_calls_of_rotation_of_are_refused(void **state) {
    (void)state;
    const int64_t position = 1;
    posenc_spec spec = spec_of(8, 0.0, POSENC_PAIRING_HALF);
    rotor r = rotor_new(&spec, &position, 1, POSENC_F32, POSENC_ROWS_HALF);
    posenc_rows rows = r.rows;
    posenc_error error;
    assert_rotation_of_refused(NULL, &rows, POSENC_NULL_POINTER, "frequencies");
    assert_rotation_of_refused(r.frequencies, NULL, POSENC_NULL_POINTER, "rows");
    assert_refused(posenc_rotation_of(r.frequencies, &rows, 1, NULL, &error), &error,
                   POSENC_NULL_POINTER, "rotation");
    rows.size = 3;
    assert_rotation_of_refused(r.frequencies, &rows, POSENC_OUT_OF_RANGE, "rows");
    rows = r.rows;
    rows.dtype = POSENC_F16;
    assert_rotation_of_refused(r.frequencies, &rows, POSENC_UNSUPPORTED, "rows.dtype");
    rows.dtype = POSENC_BF16;
    assert_rotation_of_refused(r.frequencies, &rows, POSENC_UNSUPPORTED, "rows.dtype");
    rows = r.rows;
    rows.layout = (posenc_row_layout)5;
    assert_rotation_of_refused(r.frequencies, &rows, POSENC_OUT_OF_RANGE, "rows.layout");
    rotor_free(&r);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_calls_of_rotate_are_refused_and_write_nothing),
        cmocka_unit_test(bad_lists_and_ranges_are_refused_by_number_index_and_limit),
        cmocka_unit_test(lists_that_do_not_go_together_are_refused),
        cmocka_unit_test(slices_too_wide_to_rearrange_in_place_are_refused),
        cmocka_unit_test(calls_are_accepted_only_where_the_output_shares_no_element),
        cmocka_unit_test(bad_calls_of_rotation_of_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
