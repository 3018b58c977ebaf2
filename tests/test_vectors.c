/* The library reproduces data/vectors, which an independent program made: tools/make_vectors.py.
 * SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vector_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const modes[] = {"exact", "float32", NULL};

/* Runs `check` for every case of a kind; there must be some. */
static void for_each_case(const char *kind, void (*check)(json_object *test_case)) {
    json_object *index = vector_index(), *cases = case_member(index, "cases");
    size_t seen = 0;
    for (size_t i = 0; i < json_object_array_length(cases); i++) {
        json_object *test_case = json_object_array_get_idx(cases, i);
        if (strcmp(case_word(test_case, "kind"), kind) == 0) {
            check(test_case);
            seen++;
        }
    }
    print_message("# %zu cases of kind %s\n", seen, kind);
    assert_true(seen > 0);
    json_object_put(index);
}

static void *allocated(size_t count, size_t width) {
    void *memory = calloc(count ? count : 1, width);
    assert_non_null(memory);
    return memory;
}

/* --- Frequencies ---------------------------------------------------------------------------- */

static void check_frequencies(json_object *test_case) {
    posenc_frequencies *made = vector_frequencies(case_member(test_case, "encoding"));
    size_t pairs = posenc_frequencies_pairs(made);
    double *exact = allocated(pairs, sizeof *exact);
    float *single = allocated(pairs, sizeof *single);
    for (size_t j = 0; j < pairs; j++) {
        exact[j] = posenc_frequencies_inv_freq(made, j, POSENC_MODE_EXACT);
        single[j] = (float)posenc_frequencies_inv_freq(made, j, POSENC_MODE_FLOAT32);
    }
    vector_compare(test_case, "inv_freq", exact); /* no tolerance: the same float64 numbers */
    if (json_object_object_get_ex(case_member(test_case, "outputs"), "inv_freq_float32", NULL))
        vector_compare(test_case, "inv_freq_float32", single);
    if (posenc_frequencies_attention_factor(made, POSENC_MODE_EXACT) !=
            case_number(test_case, "attention_factor") ||
        fabs(posenc_frequencies_softmax_factor(made) / case_number(test_case, "softmax_factor") -
             1.0) > 0x1p-51)
        fail_msg("%s: the factors differ", case_word(test_case, "name"));
    free(exact);
    free(single);
    posenc_frequencies_destroy(made);
}

static void test_frequencies(void **state) {
    (void)state;
    for_each_case("frequencies", check_frequencies);
}

/* --- Rows ----------------------------------------------------------------------------------- */

/* Rows of a case's positions; *all gets cos, and sin behind it where the layout has two arrays. */
static char *compute_rows(json_object *test_case, const posenc_frequencies *made, posenc_rows *rows,
                          size_t tokens) {
    size_t given;
    double *real = case_positions(test_case, &given);
    int64_t *whole = whole_positions(real, given);
    int fractional = 0;
    for (size_t i = 0; i < given; i++)
        fractional |= real[i] != (double)whole[i];
    size_t width = posenc_row_width(rows->layout, posenc_frequencies_pairs(made));
    size_t bytes = tokens * width * posenc_dtype_bytes(rows->dtype);
    char *memory = allocated(2, bytes);
    rows->cos = memory;
    rows->sin = rows->layout == POSENC_ROWS_COS_SIN || rows->layout == POSENC_ROWS_PAIRS
                    ? NULL
                    : memory + bytes;
    posenc_error error;
    if (fractional ? posenc_angles_real(made, real, tokens, rows, &error)
                   : posenc_angles(made, whole, tokens, rows, &error))
        fail_msg("%s: refused: %s must %s", case_word(test_case, "name"), error.argument,
                 error.must);
    free(real);
    free(whole);
    return memory;
}

static size_t tokens_of(json_object *test_case, const posenc_frequencies *made) {
    size_t given;
    free(case_positions(test_case, &given));
    return given / posenc_frequencies_spec(made)->axes->count;
}

static void check_rows(json_object *test_case) {
    static const char *const layouts[] = {"half",    "full_half", "full_interleaved",
                                          "cos_sin", "pairs",     NULL};
    posenc_frequencies *made = vector_frequencies(case_member(test_case, "encoding"));
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.dtype = case_dtype(test_case);
    rows.layout = (posenc_row_layout)case_choice(test_case, "layout", layouts);
    rows.mode = (posenc_mode)case_choice(test_case, "mode", modes);
    char *memory = compute_rows(test_case, made, &rows, tokens_of(test_case, made));
    vector_compare(test_case, rows.sin ? "cos" : "rows", rows.cos);
    if (rows.sin)
        vector_compare(test_case, "sin", rows.sin);
    free(memory);
    posenc_frequencies_destroy(made);
}

static void test_rows(void **state) {
    (void)state;
    for_each_case("rows", check_rows);
}

static void check_change(json_object *test_case) {
    posenc_frequencies *from = vector_frequencies(case_member(test_case, "from"));
    posenc_frequencies *to = vector_frequencies(case_member(test_case, "to")), *change;
    assert_int_equal(posenc_frequencies_change(from, to, &change, NULL), POSENC_OK);
    posenc_rows rows = POSENC_ROWS_INIT;
    size_t tokens = tokens_of(test_case, change);
    char *memory = compute_rows(test_case, change, &rows, tokens);
    for (size_t i = 0; i < tokens * posenc_frequencies_pairs(change); i++)
        ((float *)rows.sin)[i] +=
            0.0f; /* a difference may be negative, and position 0 then gives -0 */
    vector_compare(test_case, "cos", rows.cos);
    vector_compare(test_case, "sin", rows.sin);
    free(memory);
    posenc_frequencies_destroy(from);
    posenc_frequencies_destroy(to);
    posenc_frequencies_destroy(change);
}

static void test_changes(void **state) {
    (void)state;
    for_each_case("change", check_change);
}

/* --- Rotations ------------------------------------------------------------------------------ */

static posenc_tensor tensor_of(json_object *test_case, const vector_array *input) {
    static const char *const names[] = {"batch", "tokens", "heads", "head_dim", NULL};
    posenc_tensor tensor = posenc_tensor_dense(input->info.dtype, 1, 1, 1, 1);
    json_object *axes = case_member(test_case, "axes");
    ptrdiff_t stride = 1;
    for (size_t i = input->info.rank; i-- > 0;) {
        const char *word = json_object_get_string(json_object_array_get_idx(axes, i));
        int axis = 0;
        while (names[axis] && strcmp(names[axis], word) != 0)
            axis++;
        assert_non_null(names[axis]);
        tensor.shape[axis] = input->info.shape[i];
        tensor.strides[axis] = stride;
        stride *= (ptrdiff_t)input->info.shape[i];
    }
    return tensor;
}

static void check_rotate(json_object *test_case) {
    static const char *const directions[] = {"forward", "inverse", "backward", NULL};
    static const char *const outputs[] = {"same", "half", "interleaved", NULL};
    posenc_frequencies *made = vector_frequencies(case_member(test_case, "encoding"));
    vector_array input = vector_read(case_member(test_case, "input"));
    posenc_tensor tensor = tensor_of(test_case, &input);
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.dtype = input.info.dtype == POSENC_F64 ? POSENC_F64 : POSENC_F32;
    rows.mode = (posenc_mode)case_choice(test_case, "mode", modes);
    rows.without_attention = case_number(test_case, "without_attention") != 0.0;
    size_t tokens = tensor.shape[POSENC_AXIS_TOKENS], given = tokens_of(test_case, made);
    char *memory = compute_rows(test_case, made, &rows, given);
    posenc_rotation rotation = POSENC_ROTATION_INIT;
    assert_int_equal(posenc_rotation_of(made, &rows, tokens, &rotation, NULL), POSENC_OK);
    if (given != tokens) { /* rows of every sequence, one after another */
        rotation.batch = given / tokens;
        rotation.batch_stride = (ptrdiff_t)(tokens * posenc_frequencies_pairs(made));
    }
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.direction = (posenc_direction)case_choice(test_case, "direction", directions);
    options.output_pairing =
        (posenc_output_pairing)case_choice(test_case, "output_pairing", outputs);
    void *output = allocated((size_t)input.info.count, posenc_dtype_bytes(input.info.dtype));
    posenc_error error;
    if (posenc_rotate(&rotation, &tensor, input.data, output, &options, &error))
        fail_msg("%s: refused: %s must %s", case_word(test_case, "name"), error.argument,
                 error.must);
    vector_compare(test_case, "output", output);
    free(output);
    free(input.data);
    free(memory);
    posenc_frequencies_destroy(made);
}

static void test_rotations(void **state) {
    (void)state;
    for_each_case("rotate", check_rotate);
}

/* --- Tables and biases ---------------------------------------------------------------------- */

static void check_sinusoidal(json_object *test_case) {
    static const char *const layouts[] = {"interleaved", "sin_cos", "cos_sin", NULL};
    static const char *const odd[] = {"refuse", "truncate", "zero", "ceil", NULL};
    json_object *table = case_member(test_case, "table");
    posenc_sinusoidal_spec spec = POSENC_SINUSOIDAL_INIT;
    spec.dim = (size_t)case_number(table, "dim");
    spec.layout = (posenc_sinusoidal_layout)case_choice(table, "layout", layouts);
    spec.shift = (int)case_number(table, "shift");
    spec.base = case_number(table, "base");
    spec.scale = case_number(table, "scale");
    spec.start = case_number(table, "start");
    spec.odd = (posenc_odd_rule)case_choice(table, "odd", odd);
    spec.has_padding = json_object_object_get_ex(table, "padding_position", NULL);
    spec.padding_position = case_number(table, "padding_position");
    size_t count;
    double *positions = case_positions(test_case, &count);
    posenc_dtype dtype = case_dtype(test_case);
    void *made = allocated(count * spec.dim, posenc_dtype_bytes(dtype));
    assert_int_equal(posenc_sinusoidal(&spec, positions, count, dtype, 0, made, NULL), POSENC_OK);
    vector_compare(test_case, "table", made);
    free(positions);
    free(made);
}

static void test_sinusoidal_tables(void **state) {
    (void)state;
    for_each_case("sinusoidal", check_sinusoidal);
}

static posenc_alibi_spec alibi_of(json_object *test_case) {
    static const char *const rules[] = {"paper", "plain", NULL};
    posenc_alibi_spec spec = POSENC_ALIBI_INIT;
    spec.heads = (size_t)case_number(test_case, "heads");
    spec.slopes = (posenc_slopes)case_choice(test_case, "rule", rules);
    spec.max_bias = case_number(test_case, "max_bias");
    return spec;
}

static void check_slopes(json_object *test_case) {
    posenc_alibi_spec spec = alibi_of(test_case);
    double *slopes = allocated(spec.heads, sizeof *slopes);
    assert_int_equal(posenc_alibi_slopes(&spec, 0, spec.heads, slopes, NULL), POSENC_OK);
    vector_compare(test_case, "slopes", slopes);
    free(slopes);
}

static void check_bias(json_object *test_case) {
    static const char *const masks[] = {"causal", "symmetric", NULL};
    posenc_alibi_spec spec = alibi_of(test_case);
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    tile.dtype = case_dtype(test_case);
    tile.mask = (posenc_bias_mask)case_choice(test_case, "mask", masks);
    tile.first_head = (size_t)case_number(test_case, "first_head");
    tile.heads = (size_t)case_number(test_case, "count");
    tile.queries = (size_t)case_number(test_case, "queries");
    tile.keys = (size_t)case_number(test_case, "keys");
    tile.has_query_offset = 1;
    tile.query_offset = (int64_t)case_number(test_case, "query_offset");
    void *bias = allocated(tile.heads * tile.queries * tile.keys, posenc_dtype_bytes(tile.dtype));
    assert_int_equal(posenc_alibi_bias(&spec, &tile, bias, NULL), POSENC_OK);
    vector_compare(test_case, "bias", bias);
    free(bias);
}

static void test_alibi(void **state) {
    (void)state;
    for_each_case("alibi_slopes", check_slopes);
    for_each_case("alibi_bias", check_bias);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frequencies),       cmocka_unit_test(test_rows),
        cmocka_unit_test(test_changes),           cmocka_unit_test(test_rotations),
        cmocka_unit_test(test_sinusoidal_tables), cmocka_unit_test(test_alibi),
    };
    return cmocka_run_group_tests_name("vectors", tests, NULL, NULL);
}
