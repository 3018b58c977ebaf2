/* posenc_cache_shift: bit for bit where the way is a difference of positions, against keys that were rotated at their
 * goal at once elsewhere; attention factors, repeated shifts, originals. SPDX-License-Identifier: MIT */
#include "cache_cases.h"

enum { MOST_SLOTS = 24 };

static const size_t dims[] = {6, 16, 33, 64, 80, 128};

/* A new dense cache of `count` slots with keys k (float32), rotated at positions[i] by `f`. */
static void cache_keys(const posenc_cache *cache, const posenc_frequencies *f, const float *k,
                       const int64_t *positions, size_t count, posenc_mode mode) {
    float cos[MOST_SLOTS * MOST_DIM], sin[MOST_SLOTS * MOST_DIM];
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_rotation rotation;
    posenc_error error;
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, count, cache->heads, cache->head_dim);
    posenc_append_item item = {&tensor, k, cache, NULL};
    rows.cos = cos;
    rows.sin = sin;
    rows.mode = mode;
    assert_done(posenc_angles(f, positions, count, &rows, &error), &error);
    assert_done(posenc_rotation_of(f, &rows, count, &rotation, &error), &error);
    assert_done(posenc_cache_append(&rotation, &item, NULL, NULL, NULL, &error), &error);
}

static posenc_frequencies *frequencies_of(const posenc_spec *spec, uint64_t seq_len) {
    posenc_frequencies *f;
    posenc_error error;
    assert_done(posenc_frequencies_create(spec, seq_len, &f, NULL, &error), &error);
    return f;
}

/* --- Bit for bit ---------------------------------------------------------------------------------- */

/* Distinct slots in any order. */
static size_t choose_slots(int64_t *slots, size_t most, random_stream *rng) {
    int64_t all[MOST_SLOTS];
    size_t count = random_below(rng, most + 1);
    for (size_t i = 0; i < most; i++)
        all[i] = (int64_t)i;
    for (size_t i = 0; i < count; i++) {
        size_t j = i + random_below(rng, most - i);
        slots[i] = all[j];
        all[j] = all[i];
    }
    return count;
}

/* The row of a difference, by posenc_angles without the attention factor. */
static void assert_slot(cache_memory *m, const cache_memory *source, int64_t slot, int64_t from,
                        const posenc_frequencies *f, int64_t way) {
    float cos[MOST_DIM], sin[MOST_DIM];
    const posenc_spec *spec = posenc_frequencies_spec(f);
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_error error;
    rows.cos = cos;
    rows.sin = sin;
    rows.without_attention = 1;
    assert_done(posenc_angles(f, &way, 1, &rows, &error), &error);
    posenc_rotation r = POSENC_ROTATION_INIT;
    r.cos = cos;
    r.sin = sin;
    r.rotary_dim = spec->rotary_dim;
    r.rotary_start = spec->rotary_start;
    r.pairing = spec->pairing;
    for (size_t head = 0; head < m->cache.heads; head++) {
        double x[MOST_DIM];
        for (size_t i = 0; i < m->cache.head_dim; i++)
            x[i] = cache_number(source, from, head, i);
        oracle_turn_float(&r, 0, r.pairing, m->cache.head_dim, x);
        assert_cached(m, slot, head, x);
    }
}

static void random_shift(size_t trial, random_stream *rng) {
    size_t heads = 1 + random_below(rng, 10), dim = dims[random_below(rng, COUNT(dims))];
    size_t blocks = 1 + random_below(rng, 4), block_tokens = 1 + random_below(rng, 6);
    posenc_spec spec = spec_of(dim, 10000.0, pairings[random_below(rng, 2)]);
    posenc_scaling yarn = POSENC_SCALING_INIT;
    yarn.type = POSENC_SCALING_YARN;
    yarn.factor = 4.0;
    yarn.original_max_positions = 4096;
    spec.scaling = random_below(rng, 2) ? &yarn : NULL; /* its attention factor must not come in */
    spec.rotary_dim = random_below(rng, 2) ? dim / 2 * 2 : 2 + 2 * random_below(rng, dim / 2);
    spec.rotary_start = random_below(rng, dim - spec.rotary_dim + 1);
    posenc_frequencies *f = frequencies_of(&spec, 0);
    cache_memory m =
        cache_new(formats[trial % COUNT(formats)], blocks, block_tokens, heads, dim, rng);
    cache_memory originals =
        cache_new(formats[random_below(rng, COUNT(formats))], MOST_SLOTS, 1, heads, dim, rng);
    int with_originals = random_below(rng, 3) == 0;
    cache_fill(&m, rng);
    cache_fill(&originals, rng);
    cache_keep(&m);
    cache_keep(&originals);
    int64_t slots[MOST_SLOTS], from[MOST_SLOTS], to[MOST_SLOTS], sources[MOST_SLOTS];
    size_t count = choose_slots(slots, blocks * block_tokens, rng);
    int64_t same = random_between(rng, -3000, 3000);
    int one_way = (int)random_below(rng, 2);
    for (size_t i = 0; i < count; i++) {
        from[i] = random_position(rng) / 2;
        to[i] = one_way                ? from[i] + same
                : random_below(rng, 4) ? random_position(rng) / 2
                                       : from[i];
        sources[i] = (int64_t)random_below(rng, MOST_SLOTS);
    }
    posenc_shift shift = POSENC_SHIFT_INIT;
    shift.from = f;
    shift.slots = slots;
    shift.count = count;
    shift.from_positions = from;
    shift.to_positions = to;
    if (with_originals) {
        shift.originals = &originals.cache;
        shift.original_slots = sources;
    }
    /* What the cache held, to be read while the cache itself changes. */
    cache_memory was = m;
    was.data = guarded_new(m.data.bytes, GUARD_AFTER);
    was.scales = guarded_new(m.scales.bytes, GUARD_AFTER);
    memcpy(was.data.data, m.data.data, m.data.bytes);
    memcpy(was.scales.data, m.scales.data, m.scales.bytes);
    was.cache.data = (char *)was.data.data + ((char *)m.cache.data - (char *)m.data.data);
    was.cache.scales = m.cache.scales ? was.scales.data : NULL;
    posenc_error error;
    assert_done(posenc_cache_shift(&m.cache, &shift, &error), &error);
    for (size_t i = 0; i < count; i++) {
        if (with_originals)
            assert_slot(&m, &originals, slots[i], sources[i], f, to[i] - from[i]);
        else if (from[i] != to[i])
            assert_slot(&m, &was, slots[i], slots[i], f, to[i] - from[i]);
    }
    assert_rest_untouched(&m);
    assert_rest_untouched(&originals);
    guarded_free(&was.data);
    guarded_free(&was.scales);
    cache_free(&m);
    cache_free(&originals);
    posenc_frequencies_destroy(f);
}

static void random_shifts_give_the_bytes_of_plain_loops(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(600); trial++)
        random_shift(trial, &rng);
}

/* A key whose position stays keeps any bytes, signalling NaN and codes that no quantising makes. */
static void keys_that_stay_are_untouched(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    posenc_spec spec = spec_of(16, 10000.0, POSENC_PAIRING_HALF);
    posenc_frequencies *f = frequencies_of(&spec, 0);
    for (int mode = 0; mode < 2; mode++) {
        for (size_t i = 0; i < COUNT(formats); i++) {
            cache_memory m = cache_new(formats[i], 1, 4, 3, 16, &rng); /* all GUARD_FILL */
            const int64_t slots[3] = {2, 0, 3}, positions[3] = {7, 0, -100000};
            posenc_shift shift = POSENC_SHIFT_INIT;
            posenc_error error;
            for (size_t b = 0; b < m.data.bytes; b++)
                ((unsigned char *)m.data.data)[b] = (unsigned char)random_bits(&rng);
            cache_keep(&m);
            shift.from = f;
            shift.mode = (posenc_mode)mode;
            shift.slots = slots;
            shift.count = 3;
            shift.from_positions = shift.to_positions = positions;
            assert_done(posenc_cache_shift(&m.cache, &shift, &error), &error);
            assert_rest_untouched(&m);
            cache_free(&m);
        }
    }
    posenc_frequencies_destroy(f);
}

/* --- Against keys that went to their goal at once ---------------------------------------------------- */

enum { KEYS = 6, HEADS = 2, DIM = 64, ALL = KEYS * HEADS * DIM };

typedef struct keys {
    float plain[ALL], cached[ALL], goal[ALL];
    posenc_cache cache, at_goal;
    int64_t from[KEYS], to[KEYS], slots[KEYS];
} keys;

static void keys_new(keys *k, random_stream *rng) {
    for (size_t i = 0; i < ALL; i++)
        k->plain[i] = (float)random_normal(rng);
    for (size_t i = 0; i < KEYS; i++) {
        k->slots[i] = (int64_t)i;
        k->from[i] = (int64_t)random_below(rng, 100000);
        k->to[i] = (int64_t)random_below(rng, 100000);
    }
    k->to[0] = k->from[0];
    k->cache = posenc_cache_dense(POSENC_CACHE_F32, k->cached, 1, KEYS, HEADS, DIM);
    k->at_goal = posenc_cache_dense(POSENC_CACHE_F32, k->goal, 1, KEYS, HEADS, DIM);
}

static void shift_keys(keys *k, const posenc_frequencies *from, const posenc_frequencies *to,
                       posenc_mode mode) {
    posenc_shift shift = POSENC_SHIFT_INIT;
    posenc_error error;
    shift.from = from;
    shift.to = to;
    shift.mode = mode;
    shift.slots = k->slots;
    shift.count = KEYS;
    shift.from_positions = k->from;
    shift.to_positions = k->to;
    assert_done(posenc_cache_shift(&k->cache, &shift, &error), &error);
}

static void assert_at_goal(const keys *k, double tolerance) {
    for (size_t i = 0; i < ALL; i++) {
        if (!(fabs((double)k->cached[i] - (double)k->goal[i]) <= tolerance))
            fail_msg("key %zu, channel %zu: %.9g, wanted %.9g", i / DIM / HEADS, i % DIM,
                     (double)k->cached[i], (double)k->goal[i]);
    }
}

static posenc_scaling longrope(double *lists) {
    posenc_scaling s = POSENC_SCALING_INIT;
    for (size_t j = 0; j < DIM / 2; j++) {
        lists[j] = 1.0 + 0.01 * (double)j;
        lists[DIM / 2 + j] = 1.5 + 0.7 * (double)j;
    }
    s.type = POSENC_SCALING_LONGROPE;
    s.factor = 32.0;
    s.original_max_positions = 4096;
    s.short_factors = lists;
    s.long_factors = lists + DIM / 2;
    s.factor_count = DIM / 2;
    return s;
}

/* From every scaling to every other one, both modes: positions, frequencies and attention factor at once. */
static void keys_reach_other_frequencies(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    double lists[DIM];
    posenc_scaling scalings[4] = {POSENC_SCALING_INIT, POSENC_SCALING_INIT, longrope(lists),
                                  longrope(lists)};
    posenc_frequencies *f[4];
    scalings[1].type = POSENC_SCALING_YARN;
    scalings[1].factor = 4.0;
    scalings[1].original_max_positions = 4096;
    for (int i = 0; i < 4; i++) {
        posenc_spec spec = spec_of(DIM, 10000.0, POSENC_PAIRING_HALF);
        spec.scaling = &scalings[i];
        f[i] = frequencies_of(&spec, i == 3 ? 100000 : 2048);
    }
    assert_true(posenc_frequencies_attention_factor(f[1], POSENC_MODE_EXACT) > 1.13);
    for (int number = 0; number < 32; number++) {
        keys k;
        posenc_mode mode = (posenc_mode)(number / 16);
        keys_new(&k, &rng);
        cache_keys(&k.cache, f[number % 4], k.plain, k.from, KEYS, mode);
        cache_keys(&k.at_goal, f[number / 4 % 4], k.plain, k.to, KEYS, mode);
        shift_keys(&k, f[number % 4], f[number / 4 % 4], mode);
        assert_at_goal(&k, 2e-6);
    }
    for (int i = 0; i < 4; i++)
        posenc_frequencies_destroy(f[i]);
}

/* Under YaRN a key that is shifted 64 times is as long as at first: the factor is not applied again. */
static void shifts_do_not_change_the_length_of_keys(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    posenc_spec spec = spec_of(DIM, 1e6, POSENC_PAIRING_HALF);
    posenc_scaling yarn = POSENC_SCALING_INIT;
    yarn.type = POSENC_SCALING_YARN;
    yarn.factor = 4.0;
    yarn.original_max_positions = 32768;
    spec.scaling = &yarn;
    posenc_frequencies *f = frequencies_of(&spec, 0);
    for (int mode = 0; mode < 2; mode++) {
        keys k;
        double before = 0.0, after = 0.0;
        keys_new(&k, &rng);
        cache_keys(&k.cache, f, k.plain, k.from, KEYS, (posenc_mode)mode);
        for (size_t i = 0; i < ALL; i++)
            before += (double)k.cached[i] * (double)k.cached[i];
        for (int i = 0; i < 64; i++) {
            shift_keys(&k, f, NULL, (posenc_mode)mode);
            for (size_t j = 0; j < KEYS; j++) {
                k.from[j] = k.to[j];
                k.to[j] = (int64_t)random_below(&rng, 100000);
            }
        }
        for (size_t i = 0; i < ALL; i++)
            after += (double)k.cached[i] * (double)k.cached[i];
        assert_true(fabs(after / before - 1.0) < 1e-5);
    }
    posenc_frequencies_destroy(f);
}

/* Several axes: each pair by the difference on its own axis. */
static void axes_shift_by_their_own_way(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    posenc_axes axes = POSENC_AXES_INIT;
    axes.count = 3;
    axes.sections[0] = 8;
    axes.sections[1] = axes.sections[2] = 12;
    posenc_spec spec = spec_of(DIM, 10000.0, POSENC_PAIRING_HALF);
    spec.axes = &axes;
    posenc_frequencies *f = frequencies_of(&spec, 0);
    float plain[HEADS * DIM], rows[2][DIM / 2];
    int64_t positions[2][3] = {{100, 2000, 30}, {177, 2000, 5}};
    float got[2][HEADS * DIM];
    for (size_t i = 0; i < HEADS * DIM; i++)
        plain[i] = (float)random_normal(&rng);
    posenc_error error;
    for (int i = 0; i < 2; i++) {
        posenc_cache cache = posenc_cache_dense(POSENC_CACHE_F32, got[i], 1, 1, HEADS, DIM);
        posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, 1, HEADS, DIM);
        posenc_append_item item = {&tensor, plain, &cache, NULL};
        posenc_rows r = POSENC_ROWS_INIT;
        posenc_rotation rotation;
        r.cos = rows[0];
        r.sin = rows[1];
        assert_done(posenc_angles(f, positions[i], 1, &r, &error), &error);
        assert_done(posenc_rotation_of(f, &r, 1, &rotation, &error), &error);
        assert_done(posenc_cache_append(&rotation, &item, NULL, NULL, NULL, &error), &error);
    }
    posenc_cache cache = posenc_cache_dense(POSENC_CACHE_F32, got[0], 1, 1, HEADS, DIM);
    posenc_shift shift = POSENC_SHIFT_INIT;
    const int64_t slot = 0;
    shift.from = f;
    shift.slots = &slot;
    shift.count = 1;
    shift.from_positions = positions[0];
    shift.to_positions = positions[1];
    assert_done(posenc_cache_shift(&cache, &shift, &error), &error);
    for (size_t i = 0; i < HEADS * DIM; i++)
        assert_true(fabs((double)got[0][i] - (double)got[1][i]) < 1e-6);
    posenc_frequencies_destroy(f);
}

/* --- Originals ------------------------------------------------------------------------------------ */

/* From originals 200 steps of one position end in the bytes of one step, in every format; without them float16 keys
 * drift. */
static void originals_make_many_shifts_one(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    posenc_spec spec = spec_of(DIM, 10000.0, POSENC_PAIRING_HALF);
    posenc_frequencies *f = frequencies_of(&spec, 0);
    for (size_t n = 0; n < COUNT(formats); n++) {
        cache_memory m = cache_new(formats[n], 1, KEYS, HEADS, DIM, &rng);
        cache_memory once = cache_new(formats[n], 1, KEYS, HEADS, DIM, &rng);
        keys k;
        keys_new(&k, &rng);
        once.cache.tensor_scale = m.cache.tensor_scale;
        if (once.cache.scaling != m.cache.scaling) {
            cache_free(&once);
            cache_free(&m);
            n--;
            continue;
        }
        cache_keys(&k.cache, f, k.plain, k.from, KEYS, POSENC_MODE_EXACT);
        posenc_shift shift = POSENC_SHIFT_INIT;
        posenc_error error;
        shift.from = f;
        shift.slots = k.slots;
        shift.count = KEYS;
        shift.from_positions = k.from;
        shift.to_positions = k.to;
        shift.originals = &k.cache;
        for (int step = 1; step <= 200; step++) {
            for (size_t i = 0; i < KEYS; i++)
                k.to[i] = k.from[i] - step;
            assert_done(posenc_cache_shift(&m.cache, &shift, &error), &error);
        }
        assert_done(posenc_cache_shift(&once.cache, &shift, &error), &error);
        for (size_t i = 0; i < ALL; i++) {
            int64_t slot = (int64_t)(i / DIM / HEADS);
            assert_true(cache_bits(&m, slot, i / DIM % HEADS, i % DIM) ==
                        cache_bits(&once, slot, i / DIM % HEADS, i % DIM));
        }
        m.data_before = m.scales_before = once.data_before = once.scales_before = NULL;
        cache_free(&m);
        cache_free(&once);
    }
    posenc_frequencies_destroy(f);
}

/* reports of engines: a float16 pair (1, 0.5) of the slowest frequency never moves in unit steps; from an original it
 * is where it should be. */
static void small_steps_are_not_lost_with_originals(void **state) {
    (void)state;
    enum { WIDE = 128, SLOWEST = 63, STEPS = 256 };
    posenc_spec spec = spec_of(WIDE, 10000.0, POSENC_PAIRING_HALF);
    posenc_frequencies *f = frequencies_of(&spec, 0);
    float original[WIDE] = {0};
    uint16_t shifted[WIDE], stepped[WIDE];
    original[SLOWEST] = 1.0f;
    original[SLOWEST + 64] = 0.5f;
    posenc_cache from = posenc_cache_dense(POSENC_CACHE_F32, original, 1, 1, 1, WIDE);
    posenc_cache there = posenc_cache_dense(POSENC_CACHE_F16, shifted, 1, 1, 1, WIDE);
    posenc_cache steps = posenc_cache_dense(POSENC_CACHE_F16, stepped, 1, 1, 1, WIDE);
    int64_t slot = 0, before = 5000, after = 5000;
    posenc_shift shift = POSENC_SHIFT_INIT;
    posenc_error error;
    shift.from = f;
    shift.slots = &slot;
    shift.count = 1;
    shift.from_positions = &before;
    shift.to_positions = &after;
    shift.originals = &from;
    assert_done(posenc_cache_shift(&steps, &shift, &error), &error);
    shift.originals = NULL;
    for (int i = 0; i < STEPS; i++) {
        after = before - 1;
        assert_done(posenc_cache_shift(&steps, &shift, &error), &error);
        before = after;
    }
    shift.originals = &from;
    before = 5000;
    assert_done(posenc_cache_shift(&there, &shift, &error), &error);
    double angle = -256.0 * pow(10000.0, -126.0 / 128.0);
    double wanted[2] = {cos(angle) - 0.5 * sin(angle), 0.5 * cos(angle) + sin(angle)};
    for (int i = 0; i < 2; i++) {
        double got = oracle_value(shifted[SLOWEST + 64 * i], POSENC_F16);
        double lost = oracle_value(stepped[SLOWEST + 64 * i], POSENC_F16);
        assert_true(fabs(got - wanted[i]) < 5e-4);
        assert_true(lost == (i ? 0.5 : 1.0));
    }
    posenc_frequencies_destroy(f);
}

int main(int argc, char **argv) {
    random_announce();
    if (argc > 1 && strcmp(posenc_cpu(), argv[1]) != 0) {
        printf("1..1\nok 1 - shifts at level %s # SKIP this CPU has no %s\n", argv[1], argv[1]);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shifts_give_the_bytes_of_plain_loops),
        cmocka_unit_test(keys_that_stay_are_untouched),
        cmocka_unit_test(keys_reach_other_frequencies),
        cmocka_unit_test(shifts_do_not_change_the_length_of_keys),
        cmocka_unit_test(axes_shift_by_their_own_way),
        cmocka_unit_test(originals_make_many_shifts_one),
        cmocka_unit_test(small_steps_are_not_lost_with_originals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
