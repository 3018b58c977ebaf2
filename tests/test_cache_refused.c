/* Bad calls of posenc/cache.h: each is refused with the right argument, and nothing is written.
 * SPDX-License-Identifier: MIT */
#include "cache_cases.h"

enum { BLOCKS = 4, BLOCK_TOKENS = 2, SLOTS = BLOCKS * BLOCK_TOKENS, HEADS = 2, DIM = 16 };
enum { BATCH = 2, TOKENS = 2, ALL = BATCH * TOKENS * HEADS * DIM };

/* Good calls of all three functions in parts that a test spoils: int8 keys, float16 values. */
typedef struct parts {
    posenc_rotation rotation;
    posenc_tensor tensor, v_tensor, output;
    posenc_cache cache, v_cache, originals;
    posenc_append_item keys, values;
    posenc_slots slots;
    posenc_append_options options;
    posenc_norm norm;
    posenc_head_stages stages;
    posenc_shift shift;
    posenc_frequencies *frequencies, *others;
    const posenc_append_item *given_keys, *given_values;
    const posenc_shift *given_shift;
    const posenc_cache *given_cache;
    void *read_to;
    guarded data, scales, v_data, read;
    int64_t ids[BATCH * TOKENS], list[3], positions[2][3], starts[BATCH];
    int32_t table[BATCH * 2];
    float x[ALL], cos[TOKENS * DIM / 2], sin[TOKENS * DIM / 2], weight[DIM];
    float original[SLOTS * HEADS * DIM];
} parts;

static posenc_frequencies *made(size_t dim, posenc_pairing pairing) {
    posenc_spec spec = spec_of(dim, 10000.0, pairing);
    posenc_frequencies *f;
    posenc_error error;
    assert_done(posenc_frequencies_create(&spec, 0, &f, NULL, &error), &error);
    return f;
}

static void parts_new(parts *p) {
    memset(p, 0, sizeof *p);
    p->data = guarded_new(SLOTS * HEADS * DIM, GUARD_AFTER);
    p->scales = guarded_new(SLOTS * HEADS * sizeof(float), GUARD_AFTER);
    p->v_data = guarded_new(SLOTS * HEADS * DIM * 2, GUARD_AFTER);
    p->read = guarded_new(3 * HEADS * DIM * sizeof(float), GUARD_AFTER);
    p->rotation = (posenc_rotation)POSENC_ROTATION_INIT;
    p->rotation.cos = p->cos;
    p->rotation.sin = p->sin;
    p->rotation.tokens = TOKENS;
    p->rotation.rotary_dim = DIM;
    p->tensor = p->v_tensor = posenc_tensor_dense(POSENC_F32, BATCH, TOKENS, HEADS, DIM);
    p->output = posenc_tensor_dense(POSENC_F32, 1, 3, HEADS, DIM);
    p->cache =
        posenc_cache_dense(POSENC_CACHE_INT8, p->data.data, BLOCKS, BLOCK_TOKENS, HEADS, DIM);
    p->cache.scales = p->scales.data;
    p->cache.scale_count = SLOTS * HEADS;
    p->v_cache =
        posenc_cache_dense(POSENC_CACHE_F16, p->v_data.data, BLOCKS, BLOCK_TOKENS, HEADS, DIM);
    p->originals =
        posenc_cache_dense(POSENC_CACHE_F32, p->original, BLOCKS, BLOCK_TOKENS, HEADS, DIM);
    p->norm = (posenc_norm)POSENC_NORM_INIT;
    p->norm.weight = p->weight;
    p->stages = (posenc_head_stages)POSENC_HEAD_STAGES_INIT;
    p->stages.norm = &p->norm;
    p->keys = (posenc_append_item){&p->tensor, p->x, &p->cache, &p->stages};
    p->values = (posenc_append_item){&p->v_tensor, p->x, &p->v_cache, NULL};
    p->slots = (posenc_slots)POSENC_SLOTS_INIT;
    p->options = (posenc_append_options)POSENC_APPEND_OPTIONS_INIT;
    for (int i = 0; i < BATCH * TOKENS; i++)
        p->ids[i] = (5 * i + 3) % SLOTS;
    p->slots.slot_ids = p->ids;
    for (int i = 0; i < 3; i++) {
        p->list[i] = 7 - 2 * i;
        p->positions[0][i] = 100 + i;
        p->positions[1][i] = 50;
    }
    p->frequencies = made(DIM, POSENC_PAIRING_HALF);
    p->others = made(DIM, POSENC_PAIRING_INTERLEAVED);
    p->shift = (posenc_shift)POSENC_SHIFT_INIT;
    p->shift.from = p->frequencies;
    p->shift.slots = p->list;
    p->shift.count = 3;
    p->shift.from_positions = p->positions[0];
    p->shift.to_positions = p->positions[1];
    p->given_keys = &p->keys;
    p->given_values = &p->values;
    p->given_shift = &p->shift;
    p->given_cache = &p->cache;
    p->read_to = p->read.data;
}

static void parts_free(parts *p) {
    guarded *all[] = {&p->data, &p->scales, &p->v_data, &p->read};
    for (size_t i = 0; i < COUNT(all); i++)
        guarded_free(all[i]);
    posenc_frequencies_destroy(p->frequencies);
    posenc_frequencies_destroy(p->others);
}

typedef enum callee { APPEND, READ, SHIFT } callee;

static posenc_status call(parts *p, callee which, posenc_error *error) {
    if (which == APPEND)
        return posenc_cache_append(&p->rotation, p->given_keys, p->given_values, &p->slots,
                                   &p->options, error);
    if (which == READ)
        return posenc_cache_read(p->given_cache, p->list, 3, &p->output, p->read_to, error);
    return posenc_cache_shift(p->given_cache, p->given_shift, error);
}

/* --- The cache itself ----------------------------------------------------------------------------- */

static void no_cache_size(parts *p) {
    p->cache.size = 0;
}
static void no_cache(parts *p) {
    p->keys.cache = p->given_cache = NULL;
}
static void bad_format(parts *p) {
    p->cache.format = (posenc_cache_format)1;
}
static void no_data(parts *p) {
    p->cache.data = NULL;
}
static void no_blocks(parts *p) {
    p->cache.blocks = 0;
}
static void no_tokens(parts *p) {
    p->cache.block_tokens = 0;
}
static void wide_head(parts *p) {
    p->cache.head_dim = 2049;
}
static void huge_cache(parts *p) {
    p->cache.blocks = SIZE_MAX / 4;
}
static void huge_stride(parts *p) {
    p->cache.block_stride = PTRDIFF_MAX / 2;
}
static void slots_meet(parts *p) {
    p->cache.token_stride = HEADS * DIM - 1;
}
static void channels_meet(parts *p) {
    p->cache.channel_stride = 1, p->cache.head_stride = DIM / 2;
}
static void no_scales(parts *p) {
    p->cache.scales = NULL;
}
static void few_scales(parts *p) {
    p->cache.scale_count = SLOTS * HEADS - 1;
}
static void far_scales(parts *p) {
    p->cache.scale_token_stride = 4;
}
static void scales_before(parts *p) {
    p->cache.scale_head_stride = -1;
}
static void scales_meet(parts *p) {
    p->cache.scale_token_stride = 1;
}
static void scales_in_data(parts *p) {
    p->cache.scales = (float *)p->data.data;
}
static void scales_of_floats(parts *p) {
    p->cache.format = POSENC_CACHE_F32;
    p->cache.data = p->original;
}
static void bad_scaling(parts *p) {
    p->cache.scaling = (posenc_cache_scaling)2;
}
static void int8_per_tensor(parts *p) {
    p->cache.scaling = POSENC_SCALE_PER_TENSOR;
}
static void fp8_without_scale(parts *p) {
    p->cache.format = POSENC_CACHE_FP8_E4M3;
    p->cache.scaling = POSENC_SCALE_PER_TENSOR;
    p->cache.scales = NULL;
}
static void fp8_with_nan(parts *p) {
    fp8_without_scale(p);
    p->cache.tensor_scale = NAN;
}
static void fp8_with_both(parts *p) {
    p->cache.format = POSENC_CACHE_FP8_E4M3;
    p->cache.scaling = POSENC_SCALE_PER_TENSOR;
    p->cache.tensor_scale = 1.0f;
}
static void int8_with_tensor_scale(parts *p) {
    p->cache.tensor_scale = 1.0f;
}

/* --- Appending ------------------------------------------------------------------------------------ */

static void nothing_to_append(parts *p) {
    p->given_keys = p->given_values = NULL;
}
static void slot_outside(parts *p) {
    p->ids[2] = SLOTS;
}
static void slot_negative(parts *p) {
    p->ids[1] = -2;
}
static void slot_twice(parts *p) {
    p->ids[3] = p->ids[0];
}
static void use_table(parts *p) {
    p->slots.slot_ids = NULL;
    p->slots.block_table = p->table;
    p->slots.table_blocks = 2;
    p->slots.starts = p->starts;
    p->table[0] = 2, p->table[1] = 0, p->table[2] = 3, p->table[3] = 1;
}
static void block_outside(parts *p) {
    use_table(p);
    p->table[2] = BLOCKS;
}
static void block_negative(parts *p) {
    use_table(p);
    p->starts[1] = 1;
    p->table[3] = -1;
}
static void block_shared(parts *p) {
    use_table(p);
    p->table[2] = p->table[0];
}
static void block_twice_in_a_row(
    parts *p) { /* tokens 1 and 2 of blocks that are one: places 1 and 0 */
    use_table(p);
    p->tensor.shape[POSENC_AXIS_TOKENS] = p->v_tensor.shape[POSENC_AXIS_TOKENS] = 4;
    p->tensor.shape[POSENC_AXIS_BATCH] = p->v_tensor.shape[POSENC_AXIS_BATCH] = 1;
    p->rotation.row_starts = NULL;
    p->rotation.tokens = 4;
    p->rotation.row_stride = 0;
    p->rotation.rotary_dim = DIM / 2; /* the tables have room for four rows then */
    p->table[1] = p->table[0];
}
static void start_beyond(parts *p) {
    use_table(p);
    p->starts[1] = 3;
}
static void start_negative(parts *p) {
    use_table(p);
    p->starts[0] = -1;
}
static void start_beyond_block(parts *p) {
    p->slots.slot_ids = NULL;
    p->slots.starts = p->starts;
    p->starts[0] = 1;
}
static void more_sequences_than_blocks(parts *p) {
    p->slots.slot_ids = NULL;
    p->cache.blocks = p->v_cache.blocks = 1;
}
static void table_without_width(parts *p) {
    use_table(p);
    p->slots.table_blocks = 0;
}
static void table_and_list(parts *p) {
    use_table(p);
    p->slots.slot_ids = p->ids;
}
static void slots_without_size(parts *p) {
    p->slots.size = 0;
}
static void value_slot_outside(parts *p) {
    p->v_cache.blocks = 1;
}
static void other_heads(parts *p) {
    p->tensor.shape[POSENC_AXIS_HEADS] = 1;
}
static void other_dim(parts *p) {
    p->v_tensor.shape[POSENC_AXIS_HEAD_DIM] = 8;
}
static void other_tokens(parts *p) {
    p->v_tensor.shape[POSENC_AXIS_TOKENS] = 1;
}
static void other_batch(parts *p) {
    p->v_tensor.shape[POSENC_AXIS_BATCH] = 1;
}
static void doubles(parts *p) {
    p->v_tensor.dtype = POSENC_F64;
}
static void no_input(parts *p) {
    p->keys.input = NULL;
}
static void range_beyond(parts *p) {
    p->options.first_token = TOKENS + 1;
}
static void bad_stores(parts *p) {
    p->options.stores = (posenc_stores)3;
}
static void options_without_size(parts *p) {
    p->options.size = 1;
}
static void bad_norm(parts *p) {
    p->norm.epsilon = -1.0;
}
static void bad_rotation(parts *p) {
    p->rotation.rotary_dim = DIM + 2;
}
static void few_rows(parts *p) {
    p->rotation.tokens = 1;
}
static void input_in_cache(parts *p) {
    p->tensor = posenc_tensor_dense(POSENC_F16, BATCH, TOKENS, HEADS, DIM);
    p->keys.input = p->data.data;
}
static void value_input_in_keys(parts *p) {
    p->v_tensor = posenc_tensor_dense(POSENC_F16, BATCH, TOKENS, HEADS, DIM);
    p->values.input = p->data.data;
}
static void input_in_scales(parts *p) {
    p->tensor = posenc_tensor_dense(POSENC_BF16, 1, 1, HEADS, DIM);
    p->v_tensor = p->tensor;
    p->rotation.tokens = 1;
    p->keys.input = p->scales.data;
}
static void tables_in_cache(parts *p) {
    p->rotation.sin = p->v_data.data;
}
static void weight_in_cache(parts *p) {
    p->norm.weight = p->data.data;
}
static void weight_in_values(parts *p) {
    p->norm.weight = p->v_data.data;
}
static void same_caches(parts *p) {
    p->v_cache = p->cache;
}
static void values_in_scales(parts *p) {
    p->v_cache.blocks = 1, p->v_cache.block_tokens = 1;
    p->v_cache.data = p->scales.data;
    p->slots.slot_ids = p->ids;
    for (int i = 0; i < BATCH * TOKENS; i++)
        p->ids[i] = i ? -1 : 0;
}

/* --- Reading and shifting ------------------------------------------------------------------------- */

static void listed_outside(parts *p) {
    p->list[2] = SLOTS;
}
static void listed_negative(parts *p) {
    p->list[0] = -1;
}
static void listed_twice(parts *p) {
    p->list[2] = p->list[0];
}
static void output_shape(parts *p) {
    p->output.shape[POSENC_AXIS_TOKENS] = 2;
}
static void output_meets(parts *p) {
    p->output.strides[POSENC_AXIS_HEADS] = 1;
}
static void output_in_cache(parts *p) {
    p->output.dtype = POSENC_F16;
    p->read_to = p->data.data;
}
static void no_output(parts *p) {
    p->read_to = NULL;
}
static void no_shift(parts *p) {
    p->given_shift = NULL;
}
static void shift_without_size(parts *p) {
    p->shift.size = 3;
}
static void no_from(parts *p) {
    p->shift.from = NULL;
}
static void bad_mode(parts *p) {
    p->shift.mode = (posenc_mode)7;
}
static void other_pairing(parts *p) {
    p->shift.to = p->others;
}
static void other_width(parts *p) {
    posenc_frequencies_destroy(p->others);
    p->shift.from = p->others = made(8, POSENC_PAIRING_HALF);
}
static void no_slots(parts *p) {
    p->shift.slots = NULL;
}
static void no_positions(parts *p) {
    p->shift.from_positions = NULL;
}
static void no_goal(parts *p) {
    p->shift.to_positions = NULL;
}
static void far_position(parts *p) {
    p->positions[0][1] = POSENC_MAX_POSITION + 1;
}
static void far_goal(parts *p) {
    p->positions[1][2] = -POSENC_MAX_POSITION - 1;
}
static void far_way(parts *p) {
    p->positions[0][2] = -POSENC_MAX_POSITION;
    p->positions[1][2] = 1;
}
static void original_slots_alone(parts *p) {
    p->shift.original_slots = p->list;
}
static void originals_in_cache(parts *p) {
    p->originals = p->cache;
    p->shift.originals = &p->originals;
}
static void other_originals(parts *p) {
    p->originals.heads = 1;
    p->shift.originals = &p->originals;
}
static void few_originals(parts *p) {
    p->originals.blocks = 1;
    p->shift.originals = &p->originals;
}

typedef struct bad_call {
    callee which;
    void (*spoil)(parts *);
    posenc_status status;
    const char *argument;
} bad_call;

#define RANGE POSENC_OUT_OF_RANGE
static const bad_call bad_caches[] = {
    {READ, no_cache_size, RANGE, "cache"},
    {READ, no_cache, POSENC_NULL_POINTER, "cache"},
    {READ, bad_format, RANGE, "cache.format"},
    {READ, no_data, POSENC_NULL_POINTER, "cache.data"},
    {READ, no_blocks, RANGE, "cache.blocks"},
    {READ, no_tokens, RANGE, "cache.block_tokens"},
    {READ, wide_head, RANGE, "cache.head_dim"},
    {READ, huge_cache, POSENC_OVERFLOW, "cache"},
    {READ, huge_stride, POSENC_OVERFLOW, "cache"},
    {READ, slots_meet, POSENC_OVERLAP, "cache"},
    {READ, channels_meet, POSENC_OVERLAP, "cache"},
    {READ, no_scales, POSENC_NULL_POINTER, "cache.scales"},
    {READ, few_scales, RANGE, "cache.scale_count"},
    {READ, far_scales, RANGE, "cache.scale_count"},
    {READ, scales_before, RANGE, "cache.scale_count"},
    {READ, scales_meet, POSENC_OVERLAP, "cache.scales"},
    {READ, scales_in_data, POSENC_OVERLAP, "cache.scales"},
    {READ, scales_of_floats, POSENC_UNSUPPORTED, "cache.scales"},
    {READ, bad_scaling, RANGE, "cache.scaling"},
    {READ, int8_per_tensor, POSENC_UNSUPPORTED, "cache.scaling"},
    {READ, fp8_without_scale, RANGE, "cache.tensor_scale"},
    {READ, fp8_with_nan, RANGE, "cache.tensor_scale"},
    {READ, fp8_with_both, POSENC_UNSUPPORTED, "cache.scales"},
    {READ, int8_with_tensor_scale, RANGE, "cache.tensor_scale"},
};
static const bad_call bad_calls[] = {
    {APPEND, nothing_to_append, POSENC_NULL_POINTER, "keys"},
    {APPEND, slot_outside, RANGE, "slots.slot_ids"},
    {APPEND, slot_negative, RANGE, "slots.slot_ids"},
    {APPEND, slot_twice, RANGE, "slots.slot_ids"},
    {APPEND, block_outside, RANGE, "slots.block_table"},
    {APPEND, block_negative, RANGE, "slots.block_table"},
    {APPEND, block_shared, RANGE, "slots.block_table"},
    {APPEND, block_twice_in_a_row, RANGE, "slots.block_table"},
    {APPEND, start_beyond, RANGE, "slots.starts"},
    {APPEND, start_negative, RANGE, "slots.starts"},
    {APPEND, start_beyond_block, RANGE, "slots.starts"},
    {APPEND, more_sequences_than_blocks, RANGE, "cache.blocks"},
    {APPEND, table_without_width, RANGE, "slots.table_blocks"},
    {APPEND, table_and_list, POSENC_UNSUPPORTED, "slots.slot_ids"},
    {APPEND, slots_without_size, RANGE, "slots"},
    {APPEND, value_slot_outside, RANGE, "slots.slot_ids"},
    {APPEND, other_heads, RANGE, "heads"},
    {APPEND, other_dim, RANGE, "head_dim"},
    {APPEND, other_tokens, RANGE, "tokens"},
    {APPEND, other_batch, RANGE, "batch"},
    {APPEND, doubles, POSENC_UNSUPPORTED, "tensor"},
    {APPEND, no_input, POSENC_NULL_POINTER, "input"},
    {APPEND, range_beyond, RANGE, "options.first_token"},
    {APPEND, bad_stores, RANGE, "options.stores"},
    {APPEND, options_without_size, RANGE, "options"},
    {APPEND, bad_norm, RANGE, "norm.epsilon"},
    {APPEND, bad_rotation, RANGE, "rotation.rotary_dim"},
    {APPEND, few_rows, RANGE, "rotation.tokens"},
    {APPEND, input_in_cache, POSENC_OVERLAP, "input"},
    {APPEND, value_input_in_keys, POSENC_OVERLAP, "input"},
    {APPEND, input_in_scales, POSENC_OVERLAP, "input"},
    {APPEND, tables_in_cache, POSENC_OVERLAP, "rotation.sin"},
    {APPEND, weight_in_cache, POSENC_OVERLAP, "norm.weight"},
    {APPEND, weight_in_values, POSENC_OVERLAP, "norm.weight"},
    {APPEND, same_caches, POSENC_OVERLAP, "values.cache"},
    {APPEND, values_in_scales, POSENC_OVERLAP, "values.cache"},
    {READ, listed_outside, RANGE, "slots"},
    {READ, listed_negative, RANGE, "slots"},
    {READ, output_shape, RANGE, "tensor"},
    {READ, output_meets, POSENC_OVERLAP, "tensor"},
    {READ, output_in_cache, POSENC_OVERLAP, "output"},
    {READ, no_output, POSENC_NULL_POINTER, "output"},
    {SHIFT, listed_outside, RANGE, "shift.slots"},
    {SHIFT, listed_twice, RANGE, "shift.slots"},
    {SHIFT, no_shift, POSENC_NULL_POINTER, "shift"},
    {SHIFT, shift_without_size, RANGE, "shift"},
    {SHIFT, no_from, POSENC_NULL_POINTER, "shift.from"},
    {SHIFT, bad_mode, RANGE, "shift.mode"},
    {SHIFT, other_pairing, RANGE, "shift.to"},
    {SHIFT, other_width, RANGE, "head_dim of shift.from"},
    {SHIFT, no_slots, POSENC_NULL_POINTER, "shift.slots"},
    {SHIFT, no_positions, POSENC_NULL_POINTER, "shift.from_positions"},
    {SHIFT, no_goal, POSENC_NULL_POINTER, "shift.to_positions"},
    {SHIFT, far_position, RANGE, "shift.from_positions"},
    {SHIFT, far_goal, RANGE, "shift.to_positions"},
    {SHIFT, far_way, RANGE, "shift.to_positions"},
    {SHIFT, original_slots_alone, POSENC_UNSUPPORTED, "shift.original_slots"},
    {SHIFT, originals_in_cache, POSENC_OVERLAP, "shift.originals"},
    {SHIFT, other_originals, RANGE, "shift.originals"},
    {SHIFT, few_originals, RANGE, "shift.original_slots"},
};

static void assert_bad(const bad_call *bad, callee which) {
    static parts p, before;
    posenc_error error;
    parts_new(&p);
    bad->spoil(&p);
    before = p;
    assert_refused(call(&p, which, &error), &error, bad->status, bad->argument);
    assert_true(guarded_is_untouched(&p.data) && guarded_is_untouched(&p.scales));
    assert_true(guarded_is_untouched(&p.v_data) && guarded_is_untouched(&p.read));
    assert_memory_equal(&p, &before, sizeof p);
    parts_free(&p);
}

static void good_calls_are_not_refused(void **state) {
    (void)state;
    static parts p;
    posenc_error error;
    for (int which = APPEND; which <= SHIFT; which++) {
        parts_new(&p);
        assert_done(call(&p, (callee)which, &error), &error);
        assert_int_equal(guarded_is_untouched(which == READ ? &p.read : &p.data), 0);
        parts_free(&p);
    }
    parts_new(&p);
    use_table(&p);
    assert_done(call(&p, APPEND, &error), &error);
    parts_free(&p);
}

static void bad_caches_are_refused_by_all(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(bad_caches); i++) {
        for (int which = APPEND; which <= SHIFT; which++)
            assert_bad(&bad_caches[i], (callee)which);
    }
}

static void bad_calls_are_refused_and_write_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(bad_calls); i++)
        assert_bad(&bad_calls[i], bad_calls[i].which);
}

/* Slots named twice far apart in a large list: more of them than are marked at a time. */
static void a_slot_named_twice_is_found_anywhere(void **state) {
    (void)state;
    enum { MANY = 400000, COUNT_OF = 5000 };
    static int8_t data[MANY];
    static float scales[MANY], x[COUNT_OF];
    static int64_t ids[COUNT_OF];
    random_stream rng = random_of(__func__);
    posenc_cache cache = posenc_cache_dense(POSENC_CACHE_INT8, data, 1, MANY, 1, 1);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, COUNT_OF, 1, 1);
    posenc_append_item item = {&tensor, x, &cache, NULL};
    posenc_slots slots = POSENC_SLOTS_INIT;
    posenc_error error;
    cache.scales = scales;
    cache.scale_count = MANY;
    slots.slot_ids = ids;
    for (size_t trial = 0; trial < 50; trial++) {
        int64_t step = 7919, start = (int64_t)random_below(&rng, MANY);
        for (size_t i = 0; i < COUNT_OF; i++) /* 7919 is prime to 400000 */
            ids[i] = (start + (int64_t)i * step) % MANY;
        assert_done(posenc_cache_append(NULL, &item, NULL, &slots, NULL, &error), &error);
        size_t a = random_below(&rng, COUNT_OF), b = random_below(&rng, COUNT_OF);
        if (a == b)
            continue;
        ids[a] = ids[b];
        posenc_status got = posenc_cache_append(NULL, &item, NULL, &slots, NULL, &error);
        assert_refused(got, &error, POSENC_OUT_OF_RANGE, "slots.slot_ids");
        assert_int_equal(error.place, a > b ? a : b);
        assert_int_equal(error.value.as.integer, ids[a]);
    }
}

static void words_of_formats(void **state) {
    (void)state;
    assert_string_equal(posenc_cache_format_name(POSENC_CACHE_INT8), "int8");
    assert_string_equal(posenc_cache_format_name(POSENC_CACHE_FP8_E4M3), "fp8_e4m3");
    assert_null(posenc_cache_format_name((posenc_cache_format)1));
    assert_int_equal(posenc_cache_format_bytes(POSENC_CACHE_BF16), 2);
    assert_int_equal(posenc_cache_format_bytes((posenc_cache_format)6), 0);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_calls_are_not_refused),
        cmocka_unit_test(bad_caches_are_refused_by_all),
        cmocka_unit_test(bad_calls_are_refused_and_write_nothing),
        cmocka_unit_test(a_slot_named_twice_is_found_anywhere),
        cmocka_unit_test(words_of_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
