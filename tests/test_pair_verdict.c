/* Each threshold of the verdict, from both sides. SPDX-License-Identifier: MIT */
#include "checkpoint/pair_verdict.h"

#include "guard_pages.h"

/* Evidence that is enough for half in every respect. */
typedef struct evidence {
    penc_pair_ratios ratios;
    penc_pair_signs signs;
} evidence;

static evidence enough(void) {
    evidence e = {.signs = {.signs = 1000}};
    for (int part = 0; part < PENC_PARTS; part++) {
        for (int side = 0; side < PENC_SIDES; side++) {
            e.ratios.ratio[part][side] = 100.0;
            e.ratios.deviation[part][side] = 20.0;
        }
    }
    for (int side = 0; side < PENC_SIDES; side++)
        e.signs.nats[PENC_HALF][side] = 12.0;
    e.ratios.likelihood[PENC_HALF][PENC_HALF] = 100.0;
    return e;
}

/* The same evidence for the other pairing. */
static evidence mirrored(evidence e) {
    evidence m = e;
    for (int part = 0; part < PENC_PARTS; part++) {
        for (int side = 0; side < PENC_SIDES; side++) {
            m.ratios.ratio[part][side] = -e.ratios.ratio[part][side];
            m.ratios.deviation[part][side] = -e.ratios.deviation[part][side];
        }
    }
    for (int p = 0; p < PENC_PAIRINGS; p++) {
        memcpy(m.signs.nats[p], e.signs.nats[1 - p], sizeof m.signs.nats[p]);
        for (int r = 0; r < PENC_PAIRINGS; r++)
            m.ratios.likelihood[p][r] = e.ratios.likelihood[1 - p][1 - r];
    }
    return m;
}

static posenc_judgement judge(const evidence *e) {
    posenc_judgement judgement = {.layers = 0};
    penc_pair_conclude(&e->ratios, &e->signs, &judgement);
    return judgement;
}

/* 1 if it claims half, and its mirror image interleaved; 0 if neither claims anything. */
static int claims(evidence e) {
    evidence other = mirrored(e);
    posenc_detected half = judge(&e).both.verdict, interleaved = judge(&other).both.verdict;
    assert_true(half != POSENC_DETECTED_INTERLEAVED && interleaved != POSENC_DETECTED_HALF);
    assert_int_equal(half == POSENC_DETECTED_UNDETERMINED,
                     interleaved == POSENC_DETECTED_UNDETERMINED);
    return half == POSENC_DETECTED_HALF;
}

static void set_deviations(evidence *e, double total, double residual) {
    for (int side = 0; side < PENC_SIDES; side++) {
        e->ratios.deviation[PENC_TOTAL][side] = total;
        e->ratios.deviation[PENC_RESIDUAL][side] = residual;
    }
}

static void test_deviations(void **state) {
    (void)state;
    static const struct {
        double total, residual;
        int claim;
    } cases[] = {{20, 20, 1}, {6, 5.9, 1},  {5.9, 6, 1},  {5.9, 5.9, 0},
                 {0, 6, 1},   {-5.9, 6, 1}, {6, -5.9, 1}, {0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        evidence e = enough();
        set_deviations(&e, cases[i].total, cases[i].residual);
        assert_int_equal(claims(e), cases[i].claim);
        posenc_judgement judgement = judge(&e);
        double larger = cases[i].residual > cases[i].total ? cases[i].residual : cases[i].total;
        assert_true(judgement.both.statistic == larger);
    }
}

static void test_contradicting_deviations_claim_nothing(void **state) {
    (void)state;
    evidence e = enough();
    set_deviations(&e, 20, -20);
    for (int side = 0; side < PENC_SIDES; side++)
        e.ratios.ratio[PENC_RESIDUAL][side] = -100.0;
    assert_false(claims(e));
    evidence open = e; /* the exact test takes no side */
    open.signs.signs = 100;
    open.signs.nats[PENC_HALF][PENC_BOTH] = 2.0;
    open.signs.nats[PENC_INTERLEAVED][PENC_BOTH] = 3.0;
    assert_false(claims(open));
    for (int side = 0; side < PENC_SIDES; side++)
        e.ratios.ratio[PENC_RESIDUAL][side] = -15.9; /* too small to be a claim of its own */
    assert_true(claims(e));
}

static void test_ratios(void **state) {
    (void)state;
    evidence e = enough();
    e.ratios.ratio[PENC_TOTAL][PENC_BOTH] = e.ratios.ratio[PENC_RESIDUAL][PENC_BOTH] = 15.9;
    assert_false(claims(e));
    e.ratios.ratio[PENC_TOTAL][PENC_BOTH] = 16.0;
    assert_true(claims(e));
    for (int side = PENC_Q; side <= PENC_K; side++) {
        evidence one = enough();
        one.ratios.ratio[PENC_TOTAL][side] = one.ratios.ratio[PENC_RESIDUAL][side] = 7.9;
        assert_false(claims(one));
        one.ratios.ratio[PENC_RESIDUAL][side] = 8.0;
        assert_true(claims(one));
    }
}

static void test_exact_evidence(void **state) {
    (void)state;
    evidence e = enough();
    e.signs.nats[PENC_INTERLEAVED][PENC_BOTH] = 6.0; /* contradicts */
    assert_false(claims(e));
    e.signs.nats[PENC_INTERLEAVED][PENC_BOTH] = 5.9;
    assert_true(claims(e));
    e = enough();
    e.signs.nats[PENC_HALF][PENC_BOTH] = 9.9; /* does not support, with so many signs */
    assert_false(claims(e));
    e.signs.signs = 511;
    assert_true(claims(e));
}

/* Only interleaved takes a hint where there are few signs. */
static void test_hint(void **state) {
    (void)state;
    static const struct {
        double own, other;
        int claim;
    } cases[] = {{1.0, 0.0, 1}, {0.9, 0.0, 0}, {2.0, 2.0, 0}, {2.1, 2.0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        evidence e = enough();
        e.signs.signs = 100;
        e.signs.nats[PENC_HALF][PENC_BOTH] = cases[i].own;
        e.signs.nats[PENC_INTERLEAVED][PENC_BOTH] = cases[i].other;
        evidence other = mirrored(e);
        assert_int_equal(judge(&e).both.verdict, POSENC_DETECTED_HALF);
        assert_int_equal(judge(&other).both.verdict, cases[i].claim ? POSENC_DETECTED_INTERLEAVED
                                                                    : POSENC_DETECTED_UNDETERMINED);
    }
}

/* q is half, k interleaved. */
static evidence differing(void) {
    evidence e = enough();
    e.signs.signs = 100;
    e.ratios.likelihood[PENC_HALF][PENC_INTERLEAVED] = 100.1;
    for (int part = 0; part < PENC_PARTS; part++) {
        e.ratios.ratio[part][PENC_K] = -100.0;
        e.ratios.deviation[part][PENC_K] = -20.0;
    }
    memset(e.signs.nats, 0, sizeof e.signs.nats);
    e.signs.nats[PENC_HALF][PENC_Q] = 1.5;
    e.signs.nats[PENC_INTERLEAVED][PENC_K] = 1.5;
    return e;
}

static void test_q_and_k_that_differ(void **state) {
    (void)state;
    evidence e = differing();
    posenc_judgement judgement = judge(&e);
    assert_int_equal(judgement.q_k_differ, 1);
    assert_int_equal(judgement.both.verdict, POSENC_DETECTED_UNDETERMINED);
    assert_int_equal(judgement.q.verdict, POSENC_DETECTED_HALF);
    assert_int_equal(judgement.k.verdict, POSENC_DETECTED_INTERLEAVED);
    e.signs.nats[PENC_INTERLEAVED][PENC_K] = 1.4; /* together below 3 */
    judgement = judge(&e);
    assert_int_equal(judgement.q.verdict, POSENC_DETECTED_UNDETERMINED);
    assert_int_equal(judgement.k.verdict, POSENC_DETECTED_UNDETERMINED);
    e = mirrored(differing());
    judgement = judge(&e);
    assert_int_equal(judgement.q.verdict, POSENC_DETECTED_INTERLEAVED);
    assert_int_equal(judgement.k.verdict, POSENC_DETECTED_HALF);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deviations),
        cmocka_unit_test(test_contradicting_deviations_claim_nothing),
        cmocka_unit_test(test_ratios),
        cmocka_unit_test(test_exact_evidence),
        cmocka_unit_test(test_hint),
        cmocka_unit_test(test_q_and_k_that_differ),
    };
    return cmocka_run_group_tests_name("pair_verdict", tests, NULL, NULL);
}
