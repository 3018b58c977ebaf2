/* posenc_diagnose as a function: strides and dtypes, what is measured, what is refused. Which cause is named for
 * what fault: tests/test_diagnose.py. SPDX-License-Identifier: MIT */
#include "guard_pages.h"
#include "posenc/diagnosis.h"
#include "posenc/posenc.h"
#include "random_data.h"

#include <string.h>

enum { BATCH = 2, TOKENS = 12, HEADS = 3, DIM = 32, COUNT = BATCH * TOKENS * HEADS * DIM };

typedef struct fixture {
    posenc_spec spec;
    posenc_tensor tensor, after_tensor;
    int64_t positions[TOKENS];
    float before[COUNT], after[COUNT];
    posenc_observation seen;
} fixture;

/* `after` is the rotation of `before` that a spec and a shift of positions give. */
static void rotate_with(fixture *f, const posenc_spec *spec, int64_t shift) {
    posenc_frequencies *made;
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_rotation rotation;
    float cos[TOKENS * DIM / 2], sin[TOKENS * DIM / 2];
    int64_t positions[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        positions[i] = f->positions[i] + shift;
    rows.cos = cos;
    rows.sin = sin;
    assert_int_equal(posenc_frequencies_create(spec, 0, &made, NULL, NULL), 0);
    assert_int_equal(posenc_angles(made, positions, TOKENS, &rows, NULL), 0);
    assert_int_equal(posenc_rotation_of(made, &rows, TOKENS, &rotation, NULL), 0);
    assert_int_equal(posenc_rotate(&rotation, &f->tensor, f->before, f->after, NULL, NULL), 0);
    posenc_frequencies_destroy(made);
}

static void fixture_make(fixture *f) {
    random_stream rng = random_of("diagnosis");
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_observation seen = POSENC_OBSERVATION_INIT;
    spec.head_dim = DIM;
    f->spec = spec;
    f->tensor = posenc_tensor_dense(POSENC_F32, BATCH, TOKENS, HEADS, DIM);
    f->after_tensor = f->tensor;
    for (int i = 0; i < TOKENS; i++)
        f->positions[i] = 500 + 3 * i;
    for (int i = 0; i < COUNT; i++)
        f->before[i] = (float)random_normal(&rng);
    seen.spec = &f->spec;
    seen.positions = f->positions;
    seen.before_tensor = &f->tensor;
    seen.after_tensor = &f->after_tensor;
    seen.before = f->before;
    seen.after = f->after;
    f->seen = seen;
    rotate_with(f, &f->spec, 0);
}

static posenc_diagnosis diagnosed(const fixture *f) {
    posenc_diagnosis found;
    posenc_error error;
    if (posenc_diagnose(&f->seen, &found, &error))
        fail_msg("refused: %s must %s", error.argument, error.must);
    return found;
}

static int names(const posenc_diagnosis *found, const char *cause) {
    return found->verdict == POSENC_VERDICT_EXPLAINED && found->explanation_count == 1 &&
           found->explanations[0].count == 1 &&
           strcmp(posenc_cause_name(found->explanations[0].cause[0]), cause) == 0;
}

static void what_the_library_rotates_agrees(void **state) {
    (void)state;
    static fixture f;
    fixture_make(&f);
    posenc_diagnosis found = diagnosed(&f);
    assert_int_equal(found.verdict, POSENC_VERDICT_AGREES);
    assert_int_equal(found.compared, COUNT);
    assert_int_equal(found.differing, 0);
    assert_true(found.worst_ratio <= 1.0);
    assert_true(found.is_rotation_half && !found.is_rotation_interleaved);
    assert_true(found.magnitude > 1 - 1e-6 && found.magnitude < 1 + 1e-6);
}

static void a_fault_is_named_with_its_value(void **state) {
    (void)state;
    static fixture f;
    fixture_make(&f);
    rotate_with(&f, &f.spec, -1);
    posenc_diagnosis found = diagnosed(&f);
    assert_true(names(&found, "position_shifted"));
    assert_true(found.explanations[0].value[0] == -1.0);
    posenc_spec other = f.spec;
    other.base = 500000;
    rotate_with(&f, &other, 0);
    found = diagnosed(&f);
    assert_true(names(&found, "base") && found.explanations[0].value[0] == 500000.0);
}

static void refuses(const fixture *f, posenc_status status, const char *argument) {
    posenc_diagnosis found;
    posenc_error error;
    assert_int_equal(posenc_diagnose(&f->seen, &found, &error), status);
    assert_string_equal(error.argument, argument);
    assert_int_equal(posenc_diagnose(&f->seen, &found, NULL), status);
}

/* Rotates every sequence by its own positions minus its own `less`. */
static void rotate_sequences(fixture *f, int64_t positions[BATCH][TOKENS],
                             const int64_t less[BATCH]) {
    static float rotated[COUNT];
    enum { ONE = COUNT / BATCH };
    for (int b = 0; b < BATCH; b++) {
        memcpy(f->positions, positions[b], sizeof f->positions);
        rotate_with(f, &f->spec, -less[b]);
        memcpy(rotated + b * ONE, f->after + b * ONE, ONE * sizeof *rotated);
    }
    memcpy(f->after, rotated, sizeof rotated);
}

static void sequences_have_positions_of_their_own(void **state) {
    (void)state;
    static fixture f;
    static const int64_t none[BATCH] = {0, 0};
    int64_t own[BATCH][TOKENS], first[BATCH];
    fixture_make(&f);
    for (int b = 0; b < BATCH; b++) {
        for (int t = 0; t < TOKENS; t++)
            own[b][t] = b ? 40 + 2 * t : 500 + 3 * t;
        first[b] = own[b][0];
    }
    f.seen.positions = own[0];
    f.seen.batch_stride = TOKENS;
    rotate_sequences(&f, own, none);
    assert_int_equal(diagnosed(&f).verdict, POSENC_VERDICT_AGREES);
    rotate_sequences(&f, own, first);
    posenc_diagnosis found = diagnosed(&f);
    assert_true(names(&found, "position_restarts"));
    memcpy(f.positions, own[0], sizeof f.positions);
    rotate_with(&f, &f.spec, 0);
    found = diagnosed(&f);
    assert_true(names(&found, "positions_of_first"));
    assert_int_equal(found.place[POSENC_AXIS_BATCH], 1);
    own[1][2] = POSENC_MAX_POSITION + 1;
    refuses(&f, POSENC_OUT_OF_RANGE, "positions");
}

/* The same arrays as (batch, heads, tokens, head_dim), heads backwards in memory, and in float16. */
static void strides_and_dtypes_change_nothing(void **state) {
    (void)state;
    static fixture f;
    static float moved[COUNT];
    static uint16_t narrow[COUNT];
    fixture_make(&f);
    rotate_with(&f, &f.spec, 1);
    posenc_tensor strided = f.tensor;
    strided.strides[POSENC_AXIS_TOKENS] = DIM;
    strided.strides[POSENC_AXIS_HEADS] = -TOKENS * DIM;
    float *first = moved + (HEADS - 1) * TOKENS * DIM;
    for (int b = 0; b < BATCH; b++)
        for (int t = 0; t < TOKENS; t++)
            for (int h = 0; h < HEADS; h++)
                memcpy(first + b * TOKENS * HEADS * DIM + t * DIM - h * TOKENS * DIM,
                       f.after + ((b * TOKENS + t) * HEADS + h) * DIM, DIM * sizeof(float));
    f.after_tensor = strided;
    f.seen.after = first;
    posenc_diagnosis found = diagnosed(&f);
    assert_true(names(&found, "position_shifted"));
    assert_int_equal(posenc_convert(f.after, POSENC_F32, narrow, POSENC_F16, COUNT, NULL), 0);
    f.after_tensor = f.tensor;
    f.after_tensor.dtype = POSENC_F16;
    f.seen.after = narrow;
    found = diagnosed(&f);
    assert_true(names(&found, "position_shifted"));
}

static void a_difference_outside_of_the_sample_is_seen(void **state) {
    (void)state;
    static float before[2000 * 8 * 4], after[2000 * 8 * 4];
    static int64_t positions[2000];
    random_stream rng = random_of(__func__);
    fixture f;
    fixture_make(&f);
    f.spec.head_dim = 4;
    f.tensor = f.after_tensor = posenc_tensor_dense(POSENC_F32, 1, 2000, 8, 4);
    for (int i = 0; i < 2000; i++)
        positions[i] = 0; /* so that a copy is a rotation */
    for (int i = 0; i < 2000 * 8 * 4; i++)
        before[i] = after[i] = (float)random_normal(&rng);
    f.seen.positions = positions;
    f.seen.before = before;
    f.seen.after = after;
    posenc_diagnosis found = diagnosed(&f);
    assert_int_equal(found.verdict, POSENC_VERDICT_AGREES);
    after[(777 * 8 + 5) * 4 + 1] += 1.0f;
    found = diagnosed(&f);
    assert_int_equal(found.verdict, POSENC_VERDICT_UNEXPLAINED);
    assert_int_equal(found.differing, 1);
    assert_int_equal(found.place[POSENC_AXIS_TOKENS], 777);
    assert_int_equal(found.place[POSENC_AXIS_HEADS], 5);
    assert_int_equal(found.place[POSENC_AXIS_HEAD_DIM], 1);
}

static void infinities_and_nan_do_not_disturb(void **state) {
    (void)state;
    static fixture f;
    fixture_make(&f);
    f.before[7] = (float)INFINITY;
    f.before[100] = (float)NAN;
    rotate_with(&f, &f.spec, 0);
    posenc_diagnosis found = diagnosed(&f);
    assert_int_equal(found.verdict, POSENC_VERDICT_AGREES);
    f.after[300] = (float)NAN; /* where a number should be */
    found = diagnosed(&f);
    assert_int_equal(found.verdict, POSENC_VERDICT_UNEXPLAINED);
    assert_int_equal(found.differing, 1);
}

/* Copies, but for tokens whose positions float16 does not hold: what is there is no infinity. */
static void infinite_angles_explain_no_finite_numbers(void **state) {
    (void)state;
    static fixture f;
    fixture_make(&f);
    for (int t = 9; t < TOKENS; t++)
        f.positions[t] = 70000 + t;
    rotate_with(&f, &f.spec, 7);
    for (int i = 0; i < COUNT; i++) {
        if (i / (HEADS * DIM) % TOKENS < 9)
            f.after[i] = f.before[i];
    }
    assert_int_equal(diagnosed(&f).verdict, POSENC_VERDICT_UNEXPLAINED);
}

static void bad_input_is_refused_by_name(void **state) {
    (void)state;
    static fixture f;
#define REFUSED(change, status, argument)                                                          \
    fixture_make(&f);                                                                              \
    change;                                                                                        \
    refuses(&f, POSENC_##status, argument)
    REFUSED(f.seen.size = 3, OUT_OF_RANGE, "observation");
    REFUSED(f.seen.spec = NULL, NULL_POINTER, "spec");
    REFUSED(f.seen.positions = NULL, NULL_POINTER, "positions");
    REFUSED(f.seen.before_tensor = NULL, NULL_POINTER, "before_tensor");
    REFUSED(f.seen.after_tensor = NULL, NULL_POINTER, "after_tensor");
    REFUSED(f.seen.before = NULL, NULL_POINTER, "before");
    REFUSED(f.seen.after = NULL, NULL_POINTER, "after");
    REFUSED(f.seen.mode = (posenc_mode)7, OUT_OF_RANGE, "mode");
    REFUSED(f.seen.direction = (posenc_direction)-1, OUT_OF_RANGE, "direction");
    REFUSED(f.spec.head_dim = 16, OUT_OF_RANGE, "spec.head_dim");
    REFUSED(f.spec.rotary_dim = 34, OUT_OF_RANGE, "rotary_dim");
    REFUSED(f.spec.rotary_start = 40, OUT_OF_RANGE, "rotary_start");
    REFUSED(f.spec.base = -1, OUT_OF_RANGE, "base");
    REFUSED(f.after_tensor.shape[POSENC_AXIS_TOKENS] = 11, OUT_OF_RANGE, "tokens of after");
    REFUSED(f.tensor.shape[0] = f.after_tensor.shape[0] = 0, OUT_OF_RANGE, "batch of after");
    REFUSED(f.after_tensor.dtype = (posenc_dtype)9, OUT_OF_RANGE, "dtype of after");
    REFUSED(f.tensor.dtype = (posenc_dtype)9, OUT_OF_RANGE, "dtype of before");
    REFUSED(f.positions[3] = INT64_MIN, OUT_OF_RANGE, "positions");
#undef REFUSED
    fixture_make(&f);
    assert_int_equal(posenc_diagnose(NULL, NULL, NULL), POSENC_NULL_POINTER);
    assert_int_equal(posenc_diagnose(&f.seen, NULL, NULL), POSENC_NULL_POINTER);
}

static void causes_have_names_of_their_own(void **state) {
    (void)state;
    size_t count = posenc_cause_count();
    assert_true(count > 30);
    for (size_t i = 0; i < count; i++) {
        assert_true(strlen(posenc_cause_name(i)) > 0 && strlen(posenc_cause_sentence(i)) > 10);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(posenc_cause_name(i), posenc_cause_name(k));
    }
    assert_null(posenc_cause_name(count));
    assert_null(posenc_cause_sentence(count));
    assert_string_equal(posenc_verdict_name(POSENC_VERDICT_EXPLAINED), "explained");
    assert_null(posenc_verdict_name((posenc_verdict)3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_library_rotates_agrees),
        cmocka_unit_test(a_fault_is_named_with_its_value),
        cmocka_unit_test(sequences_have_positions_of_their_own),
        cmocka_unit_test(strides_and_dtypes_change_nothing),
        cmocka_unit_test(a_difference_outside_of_the_sample_is_seen),
        cmocka_unit_test(infinities_and_nan_do_not_disturb),
        cmocka_unit_test(infinite_angles_explain_no_finite_numbers),
        cmocka_unit_test(bad_input_is_refused_by_name),
        cmocka_unit_test(causes_have_names_of_their_own),
    };
    return cmocka_run_group_tests_name("diagnosis", tests, NULL, NULL);
}
