/* posenc_compare as a function: sides, what is refused, ownership. Verdicts: tests/test_compare.py.
 * SPDX-License-Identifier: MIT */
#include "guard_pages.h"
#include "posenc/compare.h"
#include "posenc/posenc.h"

static posenc_side *side_of(const char *json) {
    posenc_side *side;
    posenc_error error;
    if (posenc_side_of_json(json, strlen(json), &side, &error))
        fail_msg("%s: %s must %s", json, error.argument, error.must);
    return side;
}

static void a_spec_and_its_json_are_equal(void **state) {
    (void)state;
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_scaling scaling = POSENC_SCALING_INIT;
    posenc_comparison found;
    posenc_side *a, *b;
    static const int64_t positions[] = {0, 5, 1048575, -3};
    scaling.type = POSENC_SCALING_LINEAR;
    scaling.factor = 4;
    spec.head_dim = 64;
    spec.rotary_dim = 32;
    spec.scaling = &scaling;
    assert_int_equal(posenc_side_of_spec(&spec, 0, POSENC_MODE_EXACT, &a, NULL), POSENC_OK);
    b = side_of("{\"head_dim\": 64, \"rotary_dim\": 32, \"scaling\": {\"rope_type\": \"linear\", "
                "\"factor\": 4}}");
    assert_int_equal(posenc_side_rows(a), 0);
    assert_int_equal(posenc_compare(a, b, positions, 0, 4, &found, NULL), POSENC_OK);
    assert_int_equal(found.agreement, POSENC_AGREEMENT_EQUAL);
    assert_true(found.pairs_a == 16 && found.pairs_b == 16 && found.positions == 4);
    assert_true(found.largest.exists && found.largest.error == 0.0 && !found.beyond_f32.exists);
    posenc_side_free(b);
    b = side_of("{\"head_dim\": 64, \"rotary_dim\": 32}");
    assert_int_equal(posenc_compare(a, b, positions, 0, 4, &found, NULL), POSENC_OK);
    assert_int_equal(found.agreement, POSENC_AGREEMENT_DIFFERENT);
    assert_int_equal(found.explanation_count, 1);
    assert_string_equal(posenc_cause_name(found.explanations[0].cause[0]), "scaling_not_applied");
    assert_int_equal(found.beyond_bf16.position, 5);
    posenc_side_free(a);
    posenc_side_free(b);
    posenc_side_free(NULL);
}

static void bad_calls_are_refused_by_name(void **state) {
    (void)state;
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_comparison found;
    posenc_side *a = side_of("{\"head_dim\": 64}"), *made = a;
    posenc_error error;
    int64_t position = 3, far = POSENC_MAX_POSITION + 1;
#define REFUSED(call, code, name)                                                                  \
    assert_int_equal(call, POSENC_##code);                                                         \
    assert_string_equal(error.argument, name)
    REFUSED(posenc_compare(NULL, a, &position, 0, 1, &found, &error), NULL_POINTER, "a");
    REFUSED(posenc_compare(a, NULL, &position, 0, 1, &found, &error), NULL_POINTER, "b");
    REFUSED(posenc_compare(a, a, NULL, 0, 1, &found, &error), NULL_POINTER, "positions");
    REFUSED(posenc_compare(a, a, &position, 0, 1, NULL, &error), NULL_POINTER, "comparison");
    REFUSED(posenc_compare(a, a, &position, 0, 0, &found, &error), OUT_OF_RANGE, "count");
    REFUSED(posenc_compare(a, a, &far, 0, 1, &found, &error), OUT_OF_RANGE, "positions");
    REFUSED(posenc_side_of_spec(NULL, 0, POSENC_MODE_EXACT, &made, &error), NULL_POINTER, "spec");
    REFUSED(posenc_side_of_spec(&spec, 0, (posenc_mode)5, &made, &error), OUT_OF_RANGE, "mode");
    REFUSED(posenc_side_of_spec(&spec, 0, POSENC_MODE_EXACT, NULL, &error), NULL_POINTER, "side");
    REFUSED(posenc_side_of_spec(&spec, 0, POSENC_MODE_EXACT, &made, &error), OUT_OF_RANGE,
            "head_dim");
    assert_null(made);
    REFUSED(posenc_side_of_json(NULL, 0, &made, &error), NULL_POINTER, "json");
    REFUSED(posenc_side_of_json("{}", 2, NULL, &error), NULL_POINTER, "side");
    REFUSED(posenc_side_of_json("{}", 2, &made, &error), FORMAT, "head_dim");
    REFUSED(posenc_side_open(NULL, &made, &error), NULL_POINTER, "path");
    REFUSED(posenc_side_open("x.json", NULL, &error), NULL_POINTER, "side");
    REFUSED(posenc_side_open("x.npz", NULL, &error), NULL_POINTER, "side");
#undef REFUSED
    assert_int_equal(posenc_side_open("no such file.npz", &made, NULL), POSENC_IO);
    assert_null(made);
    assert_int_equal(posenc_side_open("no such file.json", &made, NULL), POSENC_IO);
    assert_int_equal(posenc_compare(NULL, a, &position, 0, 1, &found, NULL), POSENC_NULL_POINTER);
    assert_int_equal(posenc_side_rows(NULL), 0);
    assert_int_equal(posenc_side_axes(NULL), 0);
    assert_int_equal(posenc_side_axes(a), 1);
    posenc_side_free(a);
    a = side_of(
        "{\"head_dim\": 8, \"axes\": {\"count\": 2, \"order\": \"chunked\", \"sections\": [2, 2]}}");
    int64_t two[] = {3, POSENC_MAX_POSITION + 1};
    assert_int_equal(posenc_side_axes(a), 2);
    assert_int_equal(posenc_compare(a, a, two, 0, 1, &found, &error), POSENC_OK);
    assert_int_equal(posenc_compare(a, a, two, 1, 1, &found, &error), POSENC_OUT_OF_RANGE);
    assert_string_equal(error.argument, "positions");
    posenc_side_free(a);
}

static void numbers_have_names(void **state) {
    (void)state;
    assert_string_equal(posenc_agreement_name(POSENC_AGREEMENT_EQUIVALENT), "equivalent");
    assert_null(posenc_agreement_name((posenc_agreement)3));
    assert_string_equal(posenc_equivalence_name(POSENC_EQUIVALENCE_SHIFT), "shift");
    assert_null(posenc_equivalence_name((posenc_equivalence)-1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_and_its_json_are_equal),
        cmocka_unit_test(bad_calls_are_refused_by_name),
        cmocka_unit_test(numbers_have_names),
    };
    return cmocka_run_group_tests_name("compare sides", tests, NULL, NULL);
}
