/* Reordering of a projection's rows against NumPy's reshape and swapaxes: every layout, grouped heads, partial rotary,
 * gates, gains, MLA; there and back. SPDX-License-Identifier: MIT */
#include "checkpoint/head_rows.h"

#include "guard_pages.h"

#include <stdio.h>

typedef struct row_order_case {
    size_t shape[5]; /* heads, kv_heads, head_dim, rotary_dim, rotary_start */
    penc_attention_layout layout;
    const char *sides; /* "Q", "K", or "QK" where one tensor holds both */
    int gains;
    posenc_pairing to;
    size_t rows;
    const uint16_t *sources;
} row_order_case;

#include "row_orders.h"

enum { CASES = sizeof row_order_cases / sizeof *row_order_cases };

static posenc_attention_shape shape_of(const row_order_case *c) {
    posenc_attention_shape shape = POSENC_ATTENTION_SHAPE_INIT;
    shape.heads = c->shape[0];
    shape.kv_heads = c->shape[1];
    shape.head_dim = c->shape[2];
    shape.rotary_dim = c->shape[3];
    shape.rotary_start = c->shape[4];
    return shape;
}

static penc_row_order order_of(const row_order_case *c, posenc_pairing to) {
    posenc_attention_shape shape = shape_of(c);
    penc_row_order order = {.to = to};
    for (const char *side = c->sides; *side; side++) {
        penc_head_rows *heads = &order.sides[order.side_count++];
        int which = *side == 'K' ? PENC_SIDE_K : PENC_SIDE_Q;
        uint64_t wanted = c->rows;
        int fits = c->gains
                       ? penc_head_rows_fill_gains(c->layout, &shape, which, c->rows, heads)
                       : penc_head_rows_fill(c->layout, &shape, which, c->rows, heads, &wanted);
        assert_true(fits);
        assert_true(wanted == c->rows || c->layout == PENC_LATENT);
    }
    return order;
}

static void test_rows_are_those_of_numpy(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        const row_order_case *c = &row_order_cases[i];
        penc_row_order order = order_of(c, c->to);
        for (size_t row = 0; row < c->rows; row++) {
            uint64_t got = penc_row_source(&order, row);
            if (got != c->sources[row])
                fail_msg("case %zu, row %zu of %zu: got %llu, wanted %u", i, row, c->rows,
                         (unsigned long long)got, c->sources[row]);
        }
    }
}

static void test_there_and_back_is_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        const row_order_case *c = &row_order_cases[i];
        posenc_pairing other =
            c->to == POSENC_PAIRING_HALF ? POSENC_PAIRING_INTERLEAVED : POSENC_PAIRING_HALF;
        penc_row_order there = order_of(c, c->to), back = order_of(c, other);
        for (size_t row = 0; row < c->rows; row++)
            assert_int_equal(penc_row_source(&there, penc_row_source(&back, row)), row);
    }
}

/* Sizes of real models, where products pass 2^32. */
static void test_large_projections(void **state) {
    (void)state;
    posenc_attention_shape shape = POSENC_ATTENTION_SHAPE_INIT;
    shape.heads = 65536;
    shape.kv_heads = 1024;
    shape.head_dim = shape.rotary_dim = 65536;
    penc_row_order order = {.side_count = 2, .to = POSENC_PAIRING_INTERLEAVED};
    uint64_t rows = UINT64_C(65536) * (65536 + 2 * 1024), wanted;
    assert_true(
        penc_head_rows_fill(PENC_GROUPED, &shape, PENC_SIDE_Q, rows, &order.sides[0], &wanted));
    assert_true(
        penc_head_rows_fill(PENC_GROUPED, &shape, PENC_SIDE_K, rows, &order.sides[1], &wanted));
    uint64_t group = UINT64_C(66) * 65536, k = 1023 * group + UINT64_C(64) * 65536;
    assert_true(penc_row_source(&order, k + 3) == k + 32769);
    assert_true(penc_row_source(&order, k + 65536 + 3) == k + 65536 + 3); /* v */
    assert_true(penc_row_source(&order, k - 65536 + 2) == k - 65536 + 1); /* the group's last q */
    assert_true(penc_row_source(&order, rows - 1) == rows - 1);
}

static void test_rows_that_do_not_fit(void **state) {
    (void)state;
    posenc_attention_shape shape = POSENC_ATTENTION_SHAPE_INIT;
    shape.heads = 4;
    shape.kv_heads = 2;
    shape.head_dim = shape.rotary_dim = 8;
    penc_head_rows heads;
    uint64_t wanted;
    static const penc_attention_layout layouts[] = {PENC_SEPARATE, PENC_JOINED, PENC_GROUPED};
    static const uint64_t right[][2] = {{32, 16}, {64, 64}, {64, 64}};
    for (size_t i = 0; i < 3; i++) {
        for (int side = 0; side < 2; side++) {
            for (uint64_t rows = 0; rows < 200; rows++) {
                int gated = layouts[i] == PENC_SEPARATE && side == PENC_SIDE_Q && rows == 64;
                int fits = penc_head_rows_fill(layouts[i], &shape, side, rows, &heads, &wanted);
                assert_int_equal(fits, rows == right[i][side] || gated);
                assert_int_equal(wanted, gated ? 64 : right[i][side]);
            }
        }
    }
    assert_false(penc_head_rows_fill(PENC_LATENT, &shape, PENC_SIDE_K, 8, &heads, &wanted));
    assert_int_equal(wanted, 9);
    assert_false(penc_head_rows_fill_gains(PENC_SEPARATE, &shape, PENC_SIDE_K, 32, &heads));
    assert_false(penc_head_rows_fill_gains(PENC_LATENT, &shape, PENC_SIDE_K, 8, &heads));
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_those_of_numpy),
        cmocka_unit_test(test_there_and_back_is_nothing),
        cmocka_unit_test(test_large_projections),
        cmocka_unit_test(test_rows_that_do_not_fit),
    };
    printf("# %d orders\n", CASES);
    return cmocka_run_group_tests_name("head_rows", tests, NULL, NULL);
}
