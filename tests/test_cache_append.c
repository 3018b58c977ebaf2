/* posenc_cache_append and posenc_cache_read: random layouts, formats, slots and stages against plain loops, in
 * memory that is poisoned around what may be written. SPDX-License-Identifier: MIT */
#include "cache_cases.h"

enum { MOST_BATCH = 3, MOST_TOKENS = 9, MOST_SLOTS = 64 };

static const size_t dims[] = {2, 6, 16, 24, 33, 64, 80, 128, 136};

/* --- Where tokens go ------------------------------------------------------------------------------ */

typedef struct slot_case {
    posenc_slots given;
    int64_t ids[MOST_BATCH * (MOST_TOKENS + 2)], starts[MOST_BATCH];
    int32_t table[MOST_BATCH * MOST_SLOTS];
    int64_t wanted[MOST_BATCH][MOST_TOKENS]; /* -1: none */
} slot_case;

static void shuffle(int64_t *list, size_t count, random_stream *rng) {
    for (size_t i = count; i > 1; i--) {
        size_t j = random_below(rng, i);
        int64_t kept = list[i - 1];
        list[i - 1] = list[j];
        list[j] = kept;
    }
}

/* A list of slots in any order, some tokens left out. */
static void choose_ids(slot_case *s, size_t slots, size_t batch, size_t tokens,
                       random_stream *rng) {
    int64_t all[MOST_SLOTS];
    size_t used = 0;
    for (size_t i = 0; i < slots; i++)
        all[i] = (int64_t)i;
    if (random_below(rng, 3))
        shuffle(all, slots, rng);
    ptrdiff_t stride = (ptrdiff_t)(tokens + random_below(rng, 3));
    s->given.slot_ids = s->ids;
    s->given.slot_ids_stride = stride == (ptrdiff_t)tokens && random_below(rng, 2) ? 0 : stride;
    for (size_t n = 0; n < batch; n++) {
        for (size_t t = 0; t < tokens; t++) {
            int64_t slot = random_below(rng, 6) && used < slots ? all[used++] : -1;
            s->ids[(ptrdiff_t)n * stride + (ptrdiff_t)t] = s->wanted[n][t] = slot;
        }
    }
}

/* Blocks handed out in any order, each to one sequence; entries that no token needs lie outside of the cache. */
static void choose_blocks(slot_case *s, size_t blocks, size_t block_tokens, size_t batch,
                          size_t tokens, random_stream *rng) {
    int64_t all[MOST_SLOTS];
    size_t used = 0, width = MOST_SLOTS - random_below(rng, 3);
    for (size_t i = 0; i < blocks; i++)
        all[i] = (int64_t)i;
    shuffle(all, blocks, rng);
    for (size_t i = 0; i < COUNT(s->table); i++)
        s->table[i] = random_below(rng, 2) ? -7 : INT32_MAX;
    s->given.block_table = s->table;
    s->given.table_blocks = width;
    s->given.starts = s->starts;
    for (size_t n = 0; n < batch; n++) {
        s->starts[n] = (int64_t)random_below(rng, 2 * block_tokens + 1);
        for (size_t t = 0; t < tokens; t++) {
            size_t place = (size_t)s->starts[n] + t;
            int32_t *entry = &s->table[n * width + place / block_tokens];
            if (*entry < 0 || *entry == INT32_MAX)
                *entry = (int32_t)all[used++];
            s->wanted[n][t] =
                (int64_t)*entry * (int64_t)block_tokens + (int64_t)(place % block_tokens);
        }
    }
    assert_true(used <= blocks);
}

/* A block for each sequence. */
static void choose_starts(slot_case *s, size_t block_tokens, size_t batch, size_t tokens,
                          random_stream *rng) {
    if (random_below(rng, 2))
        s->given.starts = s->starts;
    for (size_t n = 0; n < batch; n++) {
        s->starts[n] = (int64_t)random_below(rng, block_tokens - tokens + 1);
        for (size_t t = 0; t < tokens; t++)
            s->wanted[n][t] =
                (int64_t)(n * block_tokens + t) + (s->given.starts ? s->starts[n] : 0);
    }
}

/* --- Cases ---------------------------------------------------------------------------------------- */

typedef struct side_case {
    posenc_tensor tensor;
    strided x;
    stage_case stages;
    guarded weight, scales;
    posenc_head_stages given;
    cache_memory cache;
    posenc_append_item item;
    void *before;
} side_case;

static void random_side(side_case *s, size_t batch, size_t tokens, size_t heads, size_t dim,
                        size_t blocks, size_t block_tokens, random_stream *rng) {
    static const posenc_dtype from[] = {POSENC_F32, POSENC_F16, POSENC_BF16};
    int order[POSENC_AXES] = {0, 1, 2, 3};
    memset(s, 0, sizeof *s);
    s->tensor = posenc_tensor_dense(from[random_below(rng, 3)], batch, tokens, heads, dim);
    if (random_below(rng, 2)) {
        if (random_below(rng, 2))
            order_of(random_below(rng, 24), order);
        set_strides(&s->tensor, order, (unsigned)random_below(rng, 16), 3, rng);
    }
    s->x = strided_new(&s->tensor, (guard_side)random_below(rng, 2));
    strided_fill(&s->x, (int)random_below(rng, 4) == 0, rng);
    s->given = (posenc_head_stages)POSENC_HEAD_STAGES_INIT;
    s->weight = guarded_new(dim * sizeof(float), GUARD_AFTER);
    s->scales = guarded_new(tokens * sizeof(float), GUARD_AFTER);
    if (random_below(rng, 2)) {
        s->stages.has_norm = 1;
        s->stages.norm = (posenc_norm)POSENC_NORM_INIT;
        s->stages.norm.epsilon = 1e-6;
        s->stages.norm.order = (posenc_norm_order)random_below(rng, 2);
        for (size_t i = 0; i < dim; i++)
            ((float *)s->weight.data)[i] = (float)random_normal(rng);
        s->stages.norm.weight = random_below(rng, 3) ? s->weight.data : NULL;
        s->given.norm = &s->stages.norm;
    }
    if (random_below(rng, 4) == 0) {
        for (size_t i = 0; i < tokens; i++)
            ((float *)s->scales.data)[i] = (float)random_real(rng, 0.5, 2.0);
        s->given.scales = s->scales.data;
    }
    s->cache = cache_new(formats[random_below(rng, COUNT(formats))], blocks, block_tokens, heads,
                         dim, rng);
    s->item = (posenc_append_item){
        &s->tensor, s->x.data, &s->cache.cache,
        random_below(rng, 4) || s->given.norm || s->given.scales ? &s->given : NULL};
    cache_keep(&s->cache);
    s->before = copy_of(&s->x.memory);
}

static void free_side(side_case *s) {
    guarded_free(&s->x.memory);
    guarded_free(&s->weight);
    guarded_free(&s->scales);
    cache_free(&s->cache);
    free(s->before);
}

static void assert_side(side_case *s, const posenc_rotation *r, const slot_case *slots,
                        size_t first, size_t end) {
    double x[MOST_DIM];
    size_t place[3];
    const size_t *shape = s->tensor.shape;
    s->stages.rotates = r != NULL;
    for (place[0] = 0; place[0] < shape[0]; place[0]++) {
        for (place[1] = first; place[1] < end; place[1]++) {
            int64_t slot = slots->wanted[place[0]][place[1]];
            for (place[2] = 0; slot >= 0 && place[2] < shape[2]; place[2]++) {
                read_head(&s->tensor, s->x.data, place, x);
                s->stages.factor =
                    s->given.scales ? (double)((const float *)s->given.scales)[place[1]] : 1.0;
                oracle_head_float(&s->stages, r, r ? row_place_of(r, place[0], place[1]) : 0,
                                  r ? r->pairing : POSENC_PAIRING_HALF, shape[3], x);
                assert_cached(&s->cache, slot, place[2], x);
            }
        }
    }
    assert_rest_untouched(&s->cache);
    assert_memory_equal(s->x.memory.data, s->before, s->x.memory.bytes);
}

/* Rows one after another, or by ids, of which some follow one another and some do not. */
static void choose_rows(posenc_rotation *r, int64_t *ids, size_t batch, random_stream *rng) {
    if (random_below(rng, 2))
        return;
    for (size_t i = 0; i < batch * r->tokens; i++)
        ids[i] = i && ids[i - 1] + 1 < (int64_t)r->tokens && random_below(rng, 3)
                     ? ids[i - 1] + 1
                     : (int64_t)random_below(rng, r->tokens);
    r->row_ids = ids;
    r->row_ids_stride = random_below(rng, 2) ? (ptrdiff_t)r->tokens : 0;
}

static void assert_random_append(random_stream *rng) {
    size_t batch = 1 + random_below(rng, MOST_BATCH), tokens = 1 + random_below(rng, MOST_TOKENS);
    size_t block_tokens, blocks, dim = dims[random_below(rng, COUNT(dims))];
    size_t kind = random_below(rng, 3);
    slot_case slots;
    memset(&slots, 0, sizeof slots);
    slots.given = (posenc_slots)POSENC_SLOTS_INIT;
    if (kind == 0) { /* lists */
        block_tokens = 1 + random_below(rng, 8);
        blocks = 1 + random_below(rng, 8);
        choose_ids(&slots, blocks * block_tokens, batch, tokens, rng);
    } else if (kind == 1) { /* tables */
        block_tokens = 1 + random_below(rng, 5);
        blocks = batch * (tokens / block_tokens + 2);
        choose_blocks(&slots, blocks, block_tokens, batch, tokens, rng);
    } else {
        block_tokens = tokens + random_below(rng, 4);
        blocks = batch + random_below(rng, 2);
        choose_starts(&slots, block_tokens, batch, tokens, rng);
    }
    side_case keys, values;
    random_side(&keys, batch, tokens, 1 + random_below(rng, 11), dim, blocks, block_tokens, rng);
    random_side(&values, batch, tokens, 1 + random_below(rng, 3), dims[random_below(rng, 9)],
                blocks, block_tokens, rng);
    posenc_rotation r = POSENC_ROTATION_INIT;
    size_t even = dim / 2 * 2;
    r.dtype = POSENC_F32;
    r.tokens = tokens;
    r.rotary_dim = random_below(rng, 2) ? even : 2 + 2 * random_below(rng, even / 2);
    r.rotary_start = random_below(rng, dim - r.rotary_dim + 1);
    r.pairing = pairings[random_below(rng, 2)];
    r.pair_stride = random_below(rng, 4) ? 0 : 2;
    strided cosine = table_new(&r, GUARD_AFTER, rng), sine = table_new(&r, GUARD_BEFORE, rng);
    r.cos = cosine.data;
    r.sin = sine.data;
    int64_t ids[MOST_BATCH * MOST_TOKENS];
    choose_rows(&r, ids, batch, rng);
    const posenc_rotation *rotation = random_below(rng, 5) ? &r : NULL;
    posenc_append_options options = POSENC_APPEND_OPTIONS_INIT;
    options.first_token = random_below(rng, 2) ? 0 : random_below(rng, tokens);
    options.token_count =
        random_below(rng, 2) ? 0 : 1 + random_below(rng, tokens - options.first_token);
    options.stores = (posenc_stores)random_below(rng, 3);
    size_t end = options.token_count ? options.first_token + options.token_count : tokens;
    size_t both = random_below(rng, 4);
    posenc_error error;
    assert_done(posenc_cache_append(rotation, both != 1 ? &keys.item : NULL,
                                    both != 2 ? &values.item : NULL, &slots.given, &options,
                                    &error),
                &error);
    assert_side(&keys, rotation, &slots, options.first_token, both != 1 ? end : 0);
    assert_side(&values, NULL, &slots, options.first_token, both != 2 ? end : 0);
    free_side(&keys);
    free_side(&values);
    guarded_free(&cosine.memory);
    guarded_free(&sine.memory);
}

static void random_appends_give_the_bytes_of_plain_loops(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(1500); trial++)
        assert_random_append(&rng);
}

/* --- Numbers of 8 bits ---------------------------------------------------------------------------- */

/* Every float32 that a code stands for, its neighbours, the middles between codes and their neighbours. */
static void fp8_rounds_to_the_nearest(void **state) {
    (void)state;
    enum { NUMBERS = 0x7e * 2 * 3 * 2 };
    static float x[NUMBERS];
    uint8_t codes[NUMBERS];
    size_t count = 0;
    for (unsigned code = 0; code < 0x7e; code++) {
        double here = fp8_number(code), middle = (here + fp8_number(code + 1)) / 2.0;
        for (int step = -1; step <= 1; step++) {
            float numbers[2] = {(float)here, (float)middle};
            for (int i = 0; i < 2; i++) {
                float value = step ? nextafterf(numbers[i], (float)step * INFINITY) : numbers[i];
                x[count++] = value;
                x[count++] = -value;
            }
        }
    }
    posenc_cache cache = posenc_cache_dense(POSENC_CACHE_FP8_E4M3, codes, 1, count, 1, 1);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, count, 1, 1);
    posenc_append_item item = {&tensor, x, &cache, NULL};
    posenc_error error;
    cache.scaling = POSENC_SCALE_PER_TENSOR;
    cache.tensor_scale = 1.0f;
    assert_done(posenc_cache_append(NULL, NULL, &item, NULL, NULL, &error), &error);
    for (size_t i = 0; i < count; i++) {
        if (codes[i] != fp8_nearest((double)x[i]))
            fail_msg("%.9g became %#x, wanted %#x", (double)x[i], codes[i],
                     fp8_nearest((double)x[i]));
    }
}

/* All 256 codes are read as what they stand for, and written back as they were. */
static void fp8_codes_go_there_and_back(void **state) {
    (void)state;
    uint8_t codes[256], back[256];
    float numbers[256];
    int64_t slot = 0;
    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    posenc_cache cache = posenc_cache_dense(POSENC_CACHE_FP8_E4M3, codes, 1, 1, 1, 256);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, 1, 1, 256);
    posenc_append_item item = {&tensor, numbers, &cache, NULL};
    posenc_error error;
    cache.scaling = POSENC_SCALE_PER_TENSOR;
    cache.tensor_scale = 0.25f;
    assert_done(posenc_cache_read(&cache, &slot, 1, &tensor, numbers, &error), &error);
    for (unsigned i = 0; i < 256; i++) {
        double wanted = copysign(fp8_number(i & 0x7f) / 4.0, i & 0x80 ? -1.0 : 1.0);
        int alike = isnan(wanted)
                        ? isnan(numbers[i])
                        : (double)numbers[i] == wanted && !signbit(numbers[i]) == !(i & 0x80);
        if (!alike)
            fail_msg("code %#x reads as %.9g", i, (double)numbers[i]);
    }
    cache.data = back;
    assert_done(posenc_cache_append(NULL, &item, NULL, NULL, NULL, &error), &error);
    for (int i = 0; i < 256; i++)
        assert_int_equal(back[i] & 0x7f, codes[i] & 0x7f);
}

/* By hand: a head, one of zeros, one of denormals, one with a NaN, one with an infinity. */
static void int8_scales_are_those_of_the_header(void **state) {
    (void)state;
    float x[5][4] = {{1.0f, -2.54f, 0.01f, 0.03f},
                     {0.0f, -0.0f, 0.0f, 0.0f},
                     {0x1p-121f, -0x1p-140f, 0.0f, 0.0f},
                     {1.0f, NAN, 2.0f, 3.0f},
                     {-INFINITY, 1.0f, 2.0f, 3.0f}};
    int8_t codes[5][4];
    float scales[5], back[5][4];
    const int64_t slot = 0;
    posenc_cache cache = posenc_cache_dense(POSENC_CACHE_INT8, codes, 1, 1, 5, 4);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, 1, 5, 4);
    posenc_append_item item = {&tensor, x, &cache, NULL};
    posenc_error error;
    cache.scales = scales;
    cache.scale_count = 5;
    assert_done(posenc_cache_append(NULL, NULL, &item, NULL, NULL, &error), &error);
    const int8_t first[4] = {50, -127, 0,
                             2}; /* 0.01 and 0.03 times 50: 0.5 and 1.5, to even or near */
    assert_memory_equal(codes[0], first, 2);
    assert_true(codes[0][2] == 0 || codes[0][2] == 1);
    assert_true(codes[0][3] == 1 || codes[0][3] == 2);
    assert_true(scales[0] == 2.54f / 127.0f && scales[1] == 0.0f && scales[2] == 0.0f);
    assert_true(isnan(scales[3]) && isnan(scales[4]));
    const int8_t zeros[16] = {0};
    assert_memory_equal(codes[1], zeros, 16);
    assert_done(posenc_cache_read(&cache, &slot, 1, &tensor, back, &error), &error);
    assert_true(back[0][1] == -127.0f * (2.54f / 127.0f));
    for (int i = 0; i < 4; i++)
        assert_true(back[1][i] == 0.0f && back[2][i] == 0.0f && isnan(back[3][i]) &&
                    isnan(back[4][i]));
}

/* --- Reading -------------------------------------------------------------------------------------- */

static void random_reads_give_what_is_cached(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(300); trial++) {
        size_t heads = 1 + random_below(&rng, 5), dim = dims[random_below(&rng, COUNT(dims))];
        cache_memory m = cache_new(formats[trial % COUNT(formats)], 1 + random_below(&rng, 3),
                                   1 + random_below(&rng, 5), heads, dim, &rng);
        size_t count = random_below(&rng, 6), slots = m.cache.blocks * m.cache.block_tokens;
        int64_t list[6];
        cache_fill(&m, &rng);
        cache_keep(&m);
        for (size_t i = 0; i < count; i++)
            list[i] = (int64_t)random_below(&rng, slots);
        posenc_tensor tensor =
            posenc_tensor_dense(dtypes[random_below(&rng, 4)], 1, count ? count : 1, heads, dim);
        int order[POSENC_AXES] = {0, 1, 2, 3};
        if (random_below(&rng, 2))
            order_of(random_below(&rng, 24), order);
        set_strides(&tensor, order, (unsigned)random_below(&rng, 16), 2, &rng);
        strided y = strided_new(&tensor, (guard_side)random_below(&rng, 2));
        void *before = copy_of(&y.memory);
        posenc_error error;
        tensor.shape[POSENC_AXIS_TOKENS] = count;
        assert_done(posenc_cache_read(&m.cache, list, count, &tensor, y.data, &error), &error);
        for (size_t i = 0; i < count * heads * dim; i++) {
            size_t at[POSENC_AXES] = {0, i / dim / heads, i / dim % heads, i % dim};
            ptrdiff_t place = element_at(&tensor, at);
            double wanted = cache_number(&m, list[at[1]], at[2], at[3]);
            assert_true(oracle_same(oracle_load(y.data, tensor.dtype, place),
                                    oracle_bits_of_double(wanted, tensor.dtype), tensor.dtype));
            set_back(y.data, y.memory.data, before, (ptrdiff_t)oracle_bytes(tensor.dtype), place);
        }
        assert_memory_equal(y.memory.data, before, y.memory.bytes);
        assert_rest_untouched(&m);
        free(before);
        guarded_free(&y.memory);
        cache_free(&m);
    }
}

/* What is not changed keeps its bits, a signalling NaN too. */
static void plain_values_are_copied_bit_for_bit(void **state) {
    (void)state;
    uint16_t x[64], y[64];
    for (int i = 0; i < 64; i++)
        x[i] = (uint16_t)(0x7c01 + 997 * i);
    posenc_cache cache = posenc_cache_dense(POSENC_CACHE_F16, y, 1, 2, 2, 16);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F16, 1, 2, 2, 16);
    posenc_append_item item = {&tensor, x, &cache, NULL};
    posenc_error error;
    assert_done(posenc_cache_append(NULL, &item, NULL, NULL, NULL, &error), &error);
    assert_memory_equal(x, y, sizeof x);
}

int main(int argc, char **argv) {
    random_announce();
    if (argc > 1 && strcmp(posenc_cpu(), argv[1]) != 0) {
        printf("1..1\nok 1 - appends at level %s # SKIP this CPU has no %s\n", argv[1], argv[1]);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_appends_give_the_bytes_of_plain_loops),
        cmocka_unit_test(fp8_rounds_to_the_nearest),
        cmocka_unit_test(fp8_codes_go_there_and_back),
        cmocka_unit_test(int8_scales_are_those_of_the_header),
        cmocka_unit_test(random_reads_give_what_is_cached),
        cmocka_unit_test(plain_values_are_copied_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
