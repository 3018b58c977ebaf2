/* Tables of rows: the same bytes as posenc_angles, for any range, and what is refused.
 * SPDX-License-Identifier: MIT */
#include "guard_pages.h"
#include "posenc/posenc.h"
#include "random_data.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static posenc_frequencies *frequencies_of(const posenc_axes *axes) {
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_frequencies *made;
    spec.head_dim = 24;
    spec.axes = axes;
    assert_int_equal(posenc_frequencies_create(&spec, 0, &made, NULL, NULL), POSENC_OK);
    return made;
}

/* More rows than the table fills at a time, in every layout and dtype. */
static void a_table_holds_the_bytes_of_angles(void **state) {
    (void)state;
    enum { ROWS = 1300, WIDTH = 24 };
    static const int64_t firsts[] = {0, -700, 1048000, (INT64_C(1) << 40) - ROWS + 1};
    static double cos[ROWS * WIDTH], sin[ROWS * WIDTH];
    posenc_frequencies *f = frequencies_of(NULL);
    for (int trial = 0; trial < 5 * 4; trial++) {
        int64_t positions[ROWS], first = firsts[trial % 4];
        posenc_rows rows = POSENC_ROWS_INIT;
        posenc_table *table;
        rows.layout = (posenc_row_layout)(trial % 5);
        rows.dtype = (posenc_dtype)(trial % 4);
        assert_int_equal(posenc_table_create(f, first, ROWS, &rows, &table, NULL), POSENC_OK);
        for (int i = 0; i < ROWS; i++)
            positions[i] = first + i;
        rows.cos = cos;
        rows.sin = rows.layout >= POSENC_ROWS_COS_SIN ? NULL : sin;
        assert_int_equal(posenc_angles(f, positions, ROWS, &rows, NULL), POSENC_OK);
        size_t bytes = ROWS * posenc_row_width(rows.layout, 12) * posenc_dtype_bytes(rows.dtype);
        const posenc_rows *held = posenc_table_rows(table);
        assert_memory_equal(held->cos, cos, bytes);
        assert_true((held->sin == NULL) == (rows.sin == NULL));
        if (rows.sin)
            assert_memory_equal(held->sin, sin, bytes);
        posenc_table_destroy(table);
    }
    posenc_frequencies_destroy(f);
}

/* Decoding at a position of the table, whose frequencies are gone by then. */
static void a_table_rotates_any_of_its_positions(void **state) {
    (void)state;
    posenc_frequencies *f = frequencies_of(NULL);
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_table *table;
    float x[3 * 2 * 24], y[3 * 2 * 24], wanted[3 * 2 * 24], cos[3 * 12], sin[3 * 12];
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < COUNT(x); i++)
        x[i] = (float)random_normal(&rng);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, 3, 2, 24);
    for (int layout = POSENC_ROWS_HALF; layout <= POSENC_ROWS_PAIRS; layout++) {
        rows.layout = (posenc_row_layout)layout;
        assert_int_equal(posenc_table_create(f, -5, 2000, &rows, &table, NULL), POSENC_OK);
        for (int64_t start = -5; start <= 1992; start += 399) {
            int64_t positions[3] = {start, start + 1, start + 2};
            posenc_rows direct = POSENC_ROWS_INIT;
            posenc_rotation rotation;
            direct.cos = cos;
            direct.sin = sin;
            assert_int_equal(posenc_angles(f, positions, 3, &direct, NULL), POSENC_OK);
            assert_int_equal(posenc_rotation_of(f, &direct, 3, &rotation, NULL), POSENC_OK);
            assert_int_equal(posenc_rotate(&rotation, &tensor, x, wanted, NULL, NULL), POSENC_OK);
            assert_int_equal(posenc_table_rotation(table, start, 3, &rotation, NULL), POSENC_OK);
            assert_int_equal(posenc_rotate(&rotation, &tensor, x, y, NULL, NULL), POSENC_OK);
            assert_memory_equal(y, wanted, sizeof y);
        }
        posenc_table_destroy(table);
    }
    posenc_frequencies_destroy(f);
}

static void every_axis_has_the_rows_position(void **state) {
    (void)state;
    posenc_axes axes = POSENC_AXES_INIT;
    axes.count = 3;
    axes.sections[0] = axes.sections[1] = axes.sections[2] = 4;
    posenc_frequencies *several = frequencies_of(&axes), *one = frequencies_of(NULL);
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_table *a, *b;
    assert_int_equal(posenc_table_create(several, 600, 700, &rows, &a, NULL), POSENC_OK);
    assert_int_equal(posenc_table_create(one, 600, 700, &rows, &b, NULL), POSENC_OK);
    assert_memory_equal(posenc_table_rows(a)->cos, posenc_table_rows(b)->cos,
                        700 * 12 * sizeof(float));
    posenc_table_destroy(a);
    posenc_table_destroy(b);
    posenc_frequencies_destroy(several);
    posenc_frequencies_destroy(one);
}

static void bad_tables_are_refused(void **state) {
    (void)state;
    posenc_frequencies *f = frequencies_of(NULL);
    posenc_rows rows = POSENC_ROWS_INIT, no_size = {0}, bad_layout = rows;
    posenc_table *table = (posenc_table *)&rows;
    posenc_error error;
    bad_layout.layout = (posenc_row_layout)9;
    assert_refused(posenc_table_create(NULL, 0, 1, &rows, &table, &error), &error,
                   POSENC_NULL_POINTER, "frequencies");
    assert_null(table);
    assert_refused(posenc_table_create(f, 0, 1, NULL, &table, &error), &error, POSENC_NULL_POINTER,
                   "rows");
    assert_refused(posenc_table_create(f, 0, 1, &rows, NULL, &error), &error, POSENC_NULL_POINTER,
                   "table");
    assert_refused(posenc_table_create(f, 0, 1, &no_size, &table, &error), &error,
                   POSENC_OUT_OF_RANGE, "rows");
    assert_refused(posenc_table_create(f, 0, 1, &bad_layout, &table, &error), &error,
                   POSENC_OUT_OF_RANGE, "rows.layout");
    assert_refused(posenc_table_create(f, (INT64_C(1) << 40) + 1, 1, &rows, &table, &error), &error,
                   POSENC_OUT_OF_RANGE, "first");
    assert_refused(posenc_table_create(f, INT64_C(1) << 40, 2, &rows, &table, &error), &error,
                   POSENC_OUT_OF_RANGE, "count");
    assert_refused(posenc_table_create(f, 0, SIZE_MAX, &rows, &table, &error), &error,
                   POSENC_OUT_OF_RANGE, "count");
    posenc_frequencies_destroy(f);
}

static void rotations_beyond_a_table_are_refused(void **state) {
    (void)state;
    posenc_frequencies *f = frequencies_of(NULL);
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_table *table;
    posenc_rotation rotation;
    posenc_error error;
    assert_int_equal(posenc_table_create(f, 10, 5, &rows, &table, NULL), POSENC_OK);
    assert_int_equal(posenc_table_rotation(table, 15, 0, &rotation, NULL), POSENC_OK);
    assert_refused(posenc_table_rotation(table, 9, 1, &rotation, &error), &error,
                   POSENC_OUT_OF_RANGE, "start");
    assert_refused(posenc_table_rotation(table, 16, 0, &rotation, &error), &error,
                   POSENC_OUT_OF_RANGE, "start");
    assert_refused(posenc_table_rotation(table, INT64_MIN, 1, &rotation, &error), &error,
                   POSENC_OUT_OF_RANGE, "start");
    assert_refused(posenc_table_rotation(table, 12, 4, &rotation, &error), &error,
                   POSENC_OUT_OF_RANGE, "tokens");
    assert_refused(posenc_table_rotation(NULL, 12, 1, &rotation, &error), &error,
                   POSENC_NULL_POINTER, "table");
    assert_refused(posenc_table_rotation(table, 12, 1, NULL, &error), &error, POSENC_NULL_POINTER,
                   "rotation");
    posenc_table_destroy(table);
    rows.dtype = POSENC_BF16;
    assert_int_equal(posenc_table_create(f, 10, 5, &rows, &table, NULL), POSENC_OK);
    assert_refused(posenc_table_rotation(table, 10, 1, &rotation, &error), &error,
                   POSENC_UNSUPPORTED, "table");
    posenc_table_destroy(table);
    posenc_table_destroy(NULL);
    posenc_frequencies_destroy(f);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_holds_the_bytes_of_angles),
        cmocka_unit_test(a_table_rotates_any_of_its_positions),
        cmocka_unit_test(every_axis_has_the_rows_position),
        cmocka_unit_test(bad_tables_are_refused),
        cmocka_unit_test(rotations_beyond_a_table_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
