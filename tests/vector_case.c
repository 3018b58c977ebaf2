/* Reading the cases of data/vectors. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vector_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER TEST_SOURCE_DIR "/data/vectors/"

static void want(json_object *test_case, int holds, const char *what) {
    json_object *name = NULL;
    json_object_object_get_ex(test_case, "name", &name);
    if (!holds)
        fail_msg("%s: %s", name ? json_object_get_string(name) : "a case", what);
}

json_object *vector_index(void) {
    json_object *index = json_object_from_file(FOLDER "index.json");
    assert_non_null(index);
    assert_int_equal(json_object_get_int(case_member(index, "format")), 1);
    return index;
}

static json_object *member(json_object *object, const char *key) {
    json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return value;
}

json_object *case_member(json_object *test_case, const char *key) {
    json_object *value = member(test_case, key);
    want(test_case, value != NULL, key);
    return value;
}

const char *case_word(json_object *test_case, const char *key) {
    return json_object_get_string(case_member(test_case, key));
}

double case_number(json_object *test_case, const char *key) {
    json_object *value = member(test_case, key);
    return value ? json_object_get_double(value) : 0.0;
}

int case_choice(json_object *test_case, const char *key, const char *const *words) {
    json_object *value = member(test_case, key);
    if (!value)
        return 0;
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], json_object_get_string(value)) == 0)
            return i;
    }
    want(test_case, 0, key);
    return 0;
}

posenc_dtype case_dtype(json_object *test_case) {
    posenc_dtype dtype = POSENC_F32;
    assert_int_equal(posenc_dtype_parse(case_word(test_case, "dtype"), &dtype, NULL), POSENC_OK);
    return dtype;
}

vector_array vector_read(json_object *file) {
    vector_array array;
    char path[512];
    posenc_npy_reader *reader;
    snprintf(path, sizeof path, FOLDER "%s", json_object_get_string(file));
    posenc_error error;
    if (posenc_npy_open(path, &reader, &array.info, &error))
        fail_msg("%s cannot be read", path);
    size_t bytes = (size_t)array.info.count * posenc_dtype_bytes(array.info.dtype);
    array.data = malloc(bytes ? bytes : 1);
    assert_int_equal(posenc_npy_read(reader, 0, (size_t)array.info.count, array.data, NULL),
                     POSENC_OK);
    posenc_npy_close(reader);
    return array;
}

vector_array case_output(json_object *test_case, const char *key) {
    return vector_read(case_member(case_member(test_case, "outputs"), key));
}

static size_t count_numbers(json_object *list) {
    if (json_object_get_type(list) != json_type_array)
        return 1;
    size_t count = 0;
    for (size_t i = 0; i < json_object_array_length(list); i++)
        count += count_numbers(json_object_array_get_idx(list, i));
    return count;
}

static double *copy_numbers(json_object *list, double *to) {
    if (json_object_get_type(list) != json_type_array) {
        *to = json_object_get_double(list);
        return to + 1;
    }
    for (size_t i = 0; i < json_object_array_length(list); i++)
        to = copy_numbers(json_object_array_get_idx(list, i), to);
    return to;
}

static double *numbers_of(json_object *list, size_t *count) {
    *count = count_numbers(list);
    double *numbers = malloc((*count ? *count : 1) * sizeof *numbers);
    assert_non_null(numbers);
    copy_numbers(list, numbers);
    return numbers;
}

double *case_positions(json_object *test_case, size_t *count) {
    return numbers_of(case_member(test_case, "positions"), count);
}

int64_t *whole_positions(const double *positions, size_t count) {
    int64_t *whole = malloc((count ? count : 1) * sizeof *whole);
    assert_non_null(whole);
    for (size_t i = 0; i < count; i++)
        whole[i] = (int64_t)positions[i];
    return whole;
}

static void take_axes(json_object *encoding, posenc_axes *axes) {
    static const char *const orders[] = {"chunked", "interleaved", "alternating", "ernie", NULL};
    static const char *const exponents[] = {"whole", "own", "strided", NULL};
    json_object *given = case_member(encoding, "axes"), *sections = member(given, "sections");
    axes->count = (size_t)case_number(given, "count");
    axes->order = (posenc_axis_order)case_choice(given, "order", orders);
    axes->exponents = (posenc_axis_exponents)case_choice(given, "exponents", exponents);
    for (size_t i = 0; sections && i < json_object_array_length(sections); i++)
        axes->sections[i] = (size_t)json_object_get_int(json_object_array_get_idx(sections, i));
}

/* A list of one's own is no rope_parameters block. */
static double *take_custom(json_object *scaling, posenc_scaling *custom) {
    double *list = numbers_of(case_member(scaling, "inv_freq"), &custom->inv_freq_count);
    custom->type = POSENC_SCALING_CUSTOM;
    custom->inv_freq = list;
    custom->inv_freq_dtype = POSENC_F64;
    custom->inv_freq_is_period = member(scaling, "inv_freq_is_period") != NULL;
    return list;
}

posenc_frequencies *vector_frequencies(json_object *encoding) {
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_axes axes = POSENC_AXES_INIT;
    posenc_scaling custom = POSENC_SCALING_INIT;
    posenc_rope_parameters *parameters = NULL;
    posenc_frequencies *made = NULL;
    posenc_error error;
    double *list = NULL;
    spec.head_dim = (size_t)case_number(encoding, "head_dim");
    spec.rotary_dim = (size_t)case_number(encoding, "rotary_dim");
    spec.rotary_start = (size_t)case_number(encoding, "rotary_start");
    spec.base = case_number(encoding, "base");
    spec.max_positions = (uint64_t)case_number(encoding, "max_positions");
    assert_int_equal(posenc_pairing_parse(case_word(encoding, "pairing"), &spec.pairing, NULL), 0);
    json_object *scaling = member(encoding, "scaling");
    if (scaling && strcmp(case_word(scaling, "rope_type"), "custom") == 0) {
        list = take_custom(scaling, &custom);
        spec.scaling = &custom;
    } else if (scaling) {
        const char *text = json_object_to_json_string(scaling);
        assert_int_equal(
            posenc_rope_parameters_parse(text, strlen(text), &parameters, NULL, &error), 0);
        assert_int_equal(posenc_rope_parameters_apply(parameters, &spec, NULL, &error), 0);
    }
    if (member(encoding, "axes")) {
        take_axes(encoding, &axes);
        spec.axes = &axes;
    }
    if (posenc_frequencies_create(&spec, (uint64_t)case_number(encoding, "seq_len"), &made, NULL,
                                  &error)) {
        char text[256];
        posenc_error_text(&error, text, sizeof text);
        fail_msg("%s: %s", json_object_to_json_string(encoding), text);
    }
    posenc_rope_parameters_free(parameters);
    free(list);
    return made;
}

void vector_compare(json_object *test_case, const char *key, const void *got) {
    vector_array wanted = case_output(test_case, key);
    size_t count = (size_t)wanted.info.count, width = posenc_dtype_bytes(wanted.info.dtype);
    json_object *tolerance = member(test_case, "tolerance");
    double most = tolerance ? case_number(tolerance, "f64") : 0.0;
    for (size_t i = 0; i < count; i++) {
        int same = memcmp((const char *)got + i * width, wanted.data + i * width, width) == 0;
        if (!same && wanted.info.dtype == POSENC_F64) {
            double a, b;
            memcpy(&a, (const char *)got + i * width, sizeof a);
            memcpy(&b, wanted.data + i * width, sizeof b);
            same = fabs(a - b) <= most;
        }
        if (!same)
            fail_msg("%s: element %zu of %s differs", case_word(test_case, "name"), i, key);
    }
    free(wanted.data);
}
