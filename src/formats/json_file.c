/* Tokens to json-c objects. SPDX-License-Identifier: MIT */
#include "formats/json_file.h"

#include "base/fail.h"
#include "formats/json_scan.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What json-c takes at most for a value of each kind, roughly: tables are doubled when they are full. */
enum { PENC_JSON_OBJECT_COST = 1024, PENC_JSON_KEY_COST = 256, PENC_JSON_VALUE_COST = 128 };

typedef struct penc_json_builder {
    penc_json scan;
    size_t cost;
    locale_t locale;                        /* "C": numbers have a point */
    json_object *open[PENC_JSON_MAX_DEPTH]; /* the outermost first */
    json_object *root;                      /* owns them all */
    char *key;                              /* of the value that comes next */
} penc_json_builder;

static posenc_status penc_json_no_memory(penc_json_builder *builder) {
    return penc_json_fail(&builder->scan, POSENC_OUT_OF_MEMORY, "JSON", "fit into memory",
                          builder->scan.place);
}

static posenc_status penc_json_spend(penc_json_builder *builder, size_t cost) {
    builder->cost += cost;
    if (builder->cost <= PENC_JSON_MAX_MEMORY)
        return POSENC_OK;
    return penc_json_fail(&builder->scan, POSENC_UNSUPPORTED, "JSON",
                          "have fewer values: they would take more than 32 MiB",
                          builder->scan.place);
}

/* ---- Values ---- */

/* Integers of 64 bits stay exact. */
static posenc_status penc_json_make_integer(penc_json_builder *builder, json_object **value) {
    const char *text = builder->scan.text;
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    if (!errno) {
        *value = json_object_new_int64(number);
        return POSENC_OK;
    }
    errno = 0;
    unsigned long long large = *text == '-' ? 0 : strtoull(text, NULL, 10);
    if (*text != '-' && !errno)
        *value = json_object_new_uint64(large);
    return POSENC_OK;
}

static posenc_status penc_json_make_real(penc_json_builder *builder, json_object **value) {
    const char *text = builder->scan.text;
    locale_t before = uselocale(builder->locale);
    double number = strtod(text, NULL);
    uselocale(before);
    if (isinf(number) && !strchr(text, 'I'))
        return penc_json_fail(&builder->scan, POSENC_FORMAT, "JSON",
                              "have numbers within the range of float64", builder->scan.place);
    *value = json_object_new_double(number);
    return POSENC_OK;
}

static posenc_status penc_json_make_number(penc_json_builder *builder, penc_json_token token,
                                           json_object **value) {
    if (token == PENC_JSON_INTEGER) {
        posenc_status status = penc_json_make_integer(builder, value);
        if (status || *value)
            return status;
    }
    return penc_json_make_real(builder, value);
}

/* A value that begins with `token`; null is NULL. */
static posenc_status penc_json_make(penc_json_builder *builder, penc_json_token token,
                                    json_object **value) {
    posenc_status status = POSENC_OK;
    *value = NULL;
    switch (token) {
    case PENC_JSON_OBJECT:
        status = penc_json_spend(builder, PENC_JSON_OBJECT_COST);
        *value = status ? NULL : json_object_new_object();
        break;
    case PENC_JSON_ARRAY:
        status = penc_json_spend(builder, PENC_JSON_OBJECT_COST);
        *value = status ? NULL : json_object_new_array();
        break;
    case PENC_JSON_STRING:
        status = penc_json_spend(builder, builder->scan.length);
        if (!status)
            *value = json_object_new_string_len(builder->scan.text, (int)builder->scan.length);
        break;
    case PENC_JSON_INTEGER:
    case PENC_JSON_REAL:
        status = penc_json_make_number(builder, token, value);
        break;
    case PENC_JSON_TRUE:
    case PENC_JSON_FALSE:
        *value = json_object_new_boolean(token == PENC_JSON_TRUE);
        break;
    case PENC_JSON_NULL:
    case PENC_JSON_KEY:
    case PENC_JSON_OBJECT_END:
    case PENC_JSON_ARRAY_END:
    case PENC_JSON_END:
        return POSENC_OK;
    }
    return status || *value ? status : penc_json_no_memory(builder);
}

/* ---- Structure ---- */

static posenc_status penc_json_take_key(penc_json_builder *builder) {
    const penc_json *scan = &builder->scan;
    posenc_status status = penc_json_spend(builder, PENC_JSON_KEY_COST + scan->length);
    if (status)
        return status;
    if (json_object_object_get_ex(builder->open[scan->depth - 1], scan->text, NULL)) {
        status = penc_json_fail(&builder->scan, POSENC_FORMAT, "key", "stand in its object once",
                                scan->place);
        penc_fail_name(scan->error, scan->text, scan->length);
        return status;
    }
    free(builder->key);
    builder->key = malloc(scan->length + 1);
    if (!builder->key)
        return penc_json_no_memory(builder);
    memcpy(builder->key, scan->text, scan->length + 1);
    return POSENC_OK;
}

/* Puts a value where it belongs; it is freed on failure. */
static posenc_status penc_json_attach(penc_json_builder *builder, int depth, json_object *value) {
    json_object *parent = depth ? builder->open[depth - 1] : NULL;
    int failed = 0;
    if (!parent)
        builder->root = value;
    else if (json_object_get_type(parent) == json_type_object)
        failed = json_object_object_add(parent, builder->key, value);
    else
        failed = json_object_array_add(parent, value);
    if (!failed)
        return POSENC_OK;
    json_object_put(value);
    return penc_json_no_memory(builder);
}

static posenc_status penc_json_take_value(penc_json_builder *builder, penc_json_token token) {
    json_object *value;
    int opens = token == PENC_JSON_OBJECT || token == PENC_JSON_ARRAY;
    int depth = builder->scan.depth - opens;
    if (depth == 0 && token != PENC_JSON_OBJECT)
        return penc_json_fail(&builder->scan, POSENC_FORMAT, "JSON", "be an object: {...}",
                              builder->scan.place);
    posenc_status status = penc_json_spend(builder, PENC_JSON_VALUE_COST);
    if (!status)
        status = penc_json_make(builder, token, &value);
    if (!status)
        status = penc_json_attach(builder, depth, value);
    if (!status && opens)
        builder->open[depth] = value;
    return status;
}

static posenc_status penc_json_build(penc_json_builder *builder) {
    for (;;) {
        penc_json_token token;
        posenc_status status = penc_json_next(&builder->scan, &token);
        if (!status && token == PENC_JSON_END)
            return POSENC_OK;
        if (!status && token == PENC_JSON_KEY)
            status = penc_json_take_key(builder);
        else if (!status && token != PENC_JSON_OBJECT_END && token != PENC_JSON_ARRAY_END)
            status = penc_json_take_value(builder, token);
        if (status)
            return status;
    }
}

posenc_status penc_json_parse(const char *text, size_t length, json_object **object,
                              posenc_error *error) {
    *object = NULL;
    if (length > PENC_JSON_MAX_BYTES) {
        penc_fail_size(error, "JSON length", length, "be at most 4 MiB");
        return POSENC_OUT_OF_RANGE;
    }
    size_t room = length + 32;
    char *decoded = malloc(room);
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    posenc_status status = POSENC_OUT_OF_MEMORY;
    if (decoded && locale) {
        penc_json_builder builder = {.locale = locale};
        builder.scan = penc_json_of_text(text, length, decoded, room, error);
        status = penc_json_build(&builder);
        free(builder.key);
        if (status)
            json_object_put(builder.root);
        else
            *object = builder.root;
    } else {
        penc_fail(error, status, "JSON", "fit into memory");
    }
    if (locale)
        freelocale(locale);
    free(decoded);
    return status;
}

/* The whole of a file that is open. */
static posenc_status penc_json_read_input(const penc_input *input, json_object **object,
                                          posenc_error *error) {
    if (input->size > PENC_JSON_MAX_BYTES) {
        penc_fail_size(error, "JSON length", input->size, "be at most 4 MiB");
        return POSENC_OUT_OF_RANGE;
    }
    size_t length = (size_t)input->size;
    char *text = malloc(length + 1);
    if (!text)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "JSON", "fit into memory");
    posenc_status status = penc_input_read(input, 0, text, length, error);
    if (!status)
        status = penc_json_parse(text, length, object, error);
    free(text);
    return status;
}

posenc_status penc_json_read_file(const char *path, json_object **object, posenc_error *error) {
    penc_input input;
    *object = NULL;
    posenc_status status = penc_input_open(path, &input, error);
    if (status)
        return status;
    status = penc_json_read_input(&input, object, error);
    if (status)
        penc_fail_file(error, path);
    penc_input_close(&input);
    return status;
}
