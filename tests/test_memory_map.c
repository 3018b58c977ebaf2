/* Proofs about strides, byte for byte. SPDX-License-Identifier: MIT */

#include "base/wide.h"

#include "base/half.h"
#include "base/memory_map.h"
#include "base/power.h"
#include "guard_pages.h"
#include "oracle.h"
#include "posenc/npy.h"
#include "posenc/posenc.h"
#include "random_data.h"

#include <errno.h>
#include <limits.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* --- Proofs about strides ----------------------------------------------------------------------- */

enum { ARENA = 1 << 14 };

/* A strided array in an arena; `start` is its data pointer, in bytes from the arena's middle. */
typedef struct view {
    size_t element;
    int axes;
    size_t count[PENC_MAP_AXES];
    ptrdiff_t stride[PENC_MAP_AXES];
    ptrdiff_t start;
} view;

/* Tells for each byte of the arena whether 0, 1 or more (2) elements of the view lie on it. */
static void count_bytes(const view *v, unsigned char *bytes) {
    size_t total = 1;
    memset(bytes, 0, ARENA);
    for (int axis = 0; axis < v->axes; axis++)
        total *= v->count[axis];
    for (size_t i = 0; i < total; i++) {
        ptrdiff_t at = 0;
        size_t rest = i;
        for (int axis = 0; axis < v->axes; axis++) {
            at += (ptrdiff_t)(rest % v->count[axis]) * v->stride[axis];
            rest /= v->count[axis];
        }
        at = ARENA / 2 + v->start + at * (ptrdiff_t)v->element;
        for (size_t byte = 0; byte < v->element; byte++, at++)
            bytes[at] = bytes[at] ? 2 : 1;
    }
}

static penc_memory_map map_of(const view *v) {
    penc_memory_map map;
    assert_true(penc_map_array(&map, v->element, v->axes, v->count, v->stride));
    return map;
}

static int is_proven_disjoint(const view *a, const view *b) {
    static char arena[ARENA];
    penc_memory_map a_map = map_of(a), b_map = map_of(b);
    const char *middle = arena + ARENA / 2;
    int proven = penc_maps_disjoint(&a_map, middle + a->start, &b_map, middle + b->start);
    return proven;
}

static view random_view(random_stream *rng) {
    static const ptrdiff_t strides[] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24};
    view v = {
        (size_t)1 << random_below(rng, 4), (int)random_below(rng, PENC_MAP_AXES + 1), {0}, {0}, 0};
    for (int axis = 0; axis < v.axes; axis++) {
        v.count[axis] = random_below(rng, 20) ? 1 + random_below(rng, 4) : 0;
        v.stride[axis] = strides[random_below(rng, COUNT(strides))];
        if (random_bits(rng) & 1)
            v.stride[axis] = -v.stride[axis];
    }
    v.start = (ptrdiff_t)v.element * random_between(rng, -24, 24);
    return v;
}

static void maps_know_the_bytes_that_they_reach(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    static unsigned char bytes[ARENA];
    for (size_t trial = 0; trial < random_trials(3000); trial++) {
        view v = random_view(&rng);
        penc_memory_map map = map_of(&v);
        count_bytes(&v, bytes);
        ptrdiff_t low = 0, high = ARENA;
        while (low < ARENA && !bytes[low])
            low++;
        while (high > low && !bytes[high - 1])
            high--;
        if (low == ARENA) { /* no element */
            assert_true(map.low == map.high);
        } else {
            assert_int_equal(map.low, low - ARENA / 2 - v.start);
            assert_int_equal(map.high, high - ARENA / 2 - v.start);
        }
    }
}

static void proofs_of_single_writes_hold_byte_for_byte(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    static unsigned char bytes[ARENA];
    size_t proven = 0;
    for (size_t trial = 0; trial < random_trials(6000); trial++) {
        view v = random_view(&rng);
        penc_memory_map map = map_of(&v);
        if (!penc_map_writes_once(&map))
            continue;
        proven++;
        count_bytes(&v, bytes);
        assert_null(memchr(bytes, 2, sizeof bytes));
    }
    assert_true(proven > 500);
}

static void proofs_of_disjointness_hold_byte_for_byte(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    static unsigned char a_bytes[ARENA], b_bytes[ARENA];
    size_t interleaved = 0;
    for (size_t trial = 0; trial < random_trials(20000); trial++) {
        view a = random_view(&rng), b = random_view(&rng);
        if (random_bits(&rng) & 1) { /* often of one period, as in packed arrays */
            b.element = a.element;
            b.start = a.start + (ptrdiff_t)a.element * random_between(&rng, -12, 12);
            memcpy(b.stride, a.stride, sizeof b.stride);
        }
        if (!is_proven_disjoint(&a, &b))
            continue;
        count_bytes(&a, a_bytes);
        count_bytes(&b, b_bytes);
        for (size_t i = 0; i < ARENA; i++)
            assert_false(a_bytes[i] && b_bytes[i]);
        penc_memory_map a_map = map_of(&a), b_map = map_of(&b);
        interleaved += a.start + a_map.low < b.start + b_map.high &&
                       b.start + b_map.low < a.start + a_map.high;
    }
    assert_true(interleaved > 100);
}

/* Dense arrays in any order of their axes, some of them backwards, with gaps: all write once. */
static void single_writes_are_proven_for_every_order_of_axes(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(1000); trial++) {
        view v = {4, PENC_MAP_AXES, {0}, {0}, 0};
        ptrdiff_t reach = 1;
        int order[PENC_MAP_AXES] = {0, 1, 2, 3};
        for (int i = PENC_MAP_AXES - 1; i >= 0; i--) {
            int other = (int)random_below(&rng, (size_t)i + 1), axis = order[other];
            order[other] = order[i];
            v.count[axis] = 1 + random_below(&rng, 4);
            v.stride[axis] = random_bits(&rng) & 1 ? reach : -reach;
            reach = reach * (ptrdiff_t)v.count[axis] + (ptrdiff_t)random_below(&rng, 3);
        }
        penc_memory_map map = map_of(&v);
        assert_true(penc_map_writes_once(&map));
    }
}

static void assert_disjoint_both_ways(const view *a, const view *b) {
    assert_true(is_proven_disjoint(a, b));
    assert_true(is_proven_disjoint(b, a));
}

/* q, k and v of one array, `parts` channels apart; each a tensor of batch, tokens, heads, head_dim. */
static void assert_packed_parts_are_disjoint(const view *part, ptrdiff_t step) {
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            view a = *part, b = *part;
            a.start = i * step * (ptrdiff_t)part->element;
            b.start = j * step * (ptrdiff_t)part->element;
            if (i != j)
                assert_disjoint_both_ways(&a, &b);
            else
                assert_false(is_proven_disjoint(&a, &b));
        }
    }
}

static void packed_queries_keys_and_values_are_proven_disjoint(void **state) {
    (void)state;
    enum { B = 2, T = 3, H = 4, D = 6 };
    const size_t shape[4] = {B, T, H, D};
    static const struct {
        ptrdiff_t stride[4], step;
    } packed[] = {
        {{T * 3 * H * D, 3 * H * D, D, 1}, H * D},   /* tokens, 3, heads, head_dim */
        {{T * 3 * H * D, 3 * H * D, 3 * D, 1}, D},   /* tokens, heads, 3, head_dim */
        {{T * 3 * H * D, 3 * H * D, 3 * D, 3}, 1},   /* tokens, heads, head_dim, 3 */
        {{3 * H * D, B * 3 * H * D, D, 1}, H * D},   /* tokens, batch, 3, heads, head_dim */
        {{T * 3 * H * D, D, 3 * T * D, 1}, T * D},   /* batch, heads, 3, tokens, head_dim */
        {{H * T * D, D, T * D, 1}, B * H * T * D},   /* 3, batch, heads, tokens, head_dim */
        {{T * 3 * H * D, -3 * H * D, D, 1}, H * D},  /* tokens backwards */
        {{T * 3 * H * D, 3 * H * D, -D, -1}, H * D}, /* heads and channels backwards */
        {{(T + 1) * (3 * H * D + 1), 3 * H * D + 1, D, 1}, H * D}, /* padded */
    };
    for (size_t i = 0; i < COUNT(packed); i++) {
        view part = {4, 4, {0}, {0}, 0};
        memcpy(part.count, shape, sizeof shape);
        memcpy(part.stride, packed[i].stride, sizeof part.stride);
        assert_packed_parts_are_disjoint(&part, packed[i].step);
    }
}

static void grouped_heads_and_tables_in_one_row_are_proven_disjoint(void **state) {
    (void)state;
    enum { T = 5, Q = 8, K = 2, D = 6, ROW = (Q + 2 * K) * D };
    view q = {2, 4, {1, T, Q, D}, {0, ROW, D, 1}, 0};
    view k = {2, 4, {1, T, K, D}, {0, ROW, D, 1}, 2 * Q * D};
    view v = {2, 4, {1, T, K, D}, {0, ROW, D, 1}, 2 * (Q + K) * D};
    assert_disjoint_both_ways(&q, &k);
    assert_disjoint_both_ways(&q, &v);
    assert_disjoint_both_ways(&k, &v);
    view cosine = {4, 2, {T, D}, {2 * D, 1}, 0}, sine = {4, 2, {T, D}, {2 * D, 1}, 4 * D};
    assert_disjoint_both_ways(&cosine, &sine);
    view even = {8, 2, {T, D}, {2 * D, 2}, 0}, odd = {8, 2, {T, D}, {2 * D, 2}, 8};
    assert_disjoint_both_ways(&even, &odd);
}

static void maps_that_do_not_fit_the_address_space_are_refused(void **state) {
    (void)state;
    static const struct {
        size_t count[2];
        ptrdiff_t stride[2];
    } wrong[] = {{{SIZE_MAX, 1}, {1, 1}},
                 {{2, 1}, {PTRDIFF_MAX, 1}},
                 {{2, 1}, {PTRDIFF_MIN, 1}},
                 {{SIZE_MAX / 2 + 2, 2}, {0, 1}},
                 {{(size_t)1 << 32, (size_t)1 << 32}, {0, 0}},
                 {{(size_t)1 << 61, 1}, {0, 1}}, /* repeated, but more than memory can hold */
                 {{3, 3}, {PTRDIFF_MAX / 16, -(PTRDIFF_MAX / 16)}},
                 {{(size_t)1 << 60, 2}, {1, 1}}};
    penc_memory_map map;
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(penc_map_array(&map, 4, 2, wrong[i].count, wrong[i].stride));
    const size_t single[2] = {1, 1}, none[2] = {SIZE_MAX, 0};
    const ptrdiff_t stride[2] = {PTRDIFF_MIN, PTRDIFF_MAX};
    assert_true(penc_map_array(&map, 4, 2, single, stride)); /* these strides are not used */
    assert_true(map.high - map.low == 4);
    assert_true(penc_map_array(&map, 4, 2, none, stride));
    assert_true(map.low == map.high);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_know_the_bytes_that_they_reach),
        cmocka_unit_test(proofs_of_single_writes_hold_byte_for_byte),
        cmocka_unit_test(proofs_of_disjointness_hold_byte_for_byte),
        cmocka_unit_test(single_writes_are_proven_for_every_order_of_axes),
        cmocka_unit_test(packed_queries_keys_and_values_are_proven_disjoint),
        cmocka_unit_test(grouped_heads_and_tables_in_one_row_are_proven_disjoint),
        cmocka_unit_test(maps_that_do_not_fit_the_address_space_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
