/* Sides: from a spec, from JSON, from a file. SPDX-License-Identifier: MIT */
#include "diagnosis/side.h"

#include "base/fail.h"
#include "formats/json_file.h"

#include <stdlib.h>
#include <string.h>

/* Resolves the spec that a side holds; on failure the side is freed. */
static posenc_status penc_side_finish(posenc_side *made, posenc_side **side, posenc_error *error) {
    posenc_status status =
        posenc_frequencies_create(&made->spec, made->seq_len, &made->frequencies, NULL, error);
    if (status) {
        posenc_side_free(made);
        return status;
    }
    *side = made;
    return POSENC_OK;
}

static posenc_status penc_side_start(posenc_side **made, posenc_side **side, posenc_error *error) {
    if (!side)
        return penc_fail_null(error, "side");
    *side = NULL;
    *made = calloc(1, sizeof **made);
    return *made ? POSENC_OK : penc_fail(error, POSENC_OUT_OF_MEMORY, "side", "fit into memory");
}

posenc_status posenc_side_of_spec(const posenc_spec *spec, uint64_t seq_len, posenc_mode mode,
                                  posenc_side **side, posenc_error *error) {
    posenc_side *made;
    if (!spec)
        return penc_fail_null(error, "spec");
    if ((unsigned)mode > POSENC_MODE_FLOAT32)
        return penc_fail_integer(error, "mode", mode, "be a posenc_mode");
    posenc_status status = penc_side_start(&made, side, error);
    if (status)
        return status;
    made->spec = *spec;
    made->seq_len = seq_len;
    made->mode = mode;
    return penc_side_finish(made, side, error);
}

void posenc_side_free(posenc_side *side) {
    if (!side)
        return;
    posenc_frequencies_destroy(side->frequencies);
    posenc_rope_parameters_free(side->parameters);
    penc_dump_free(&side->dump);
    free(side);
}

size_t posenc_side_rows(const posenc_side *side) {
    if (!side || !penc_side_is_table(side))
        return 0;
    return side->dump.cos.numbers ? side->dump.cos.rows : side->dump.both.rows;
}

size_t posenc_side_axes(const posenc_side *side) {
    if (!side)
        return 0;
    return side->frequencies ? posenc_frequencies_spec(side->frequencies)->axes->count : 1;
}

/* --- JSON --------------------------------------------------------------------------------------- */

/* What reads a member; `wanted` is where it goes. */
typedef struct penc_spec_key {
    const char *key;
    posenc_status (*read)(posenc_side *made, json_object *value, const char *key, void *wanted,
                          posenc_error *error);
    size_t offset;
} penc_spec_key;

static posenc_status penc_read_whole(json_object *value, const char *key, uint64_t *whole,
                                     posenc_error *error) {
    double number = json_object_get_double(value);
    int is_number =
        json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
    if (!is_number || !(number >= 0.0 && number <= 0x1p40) || number != (double)(uint64_t)number)
        return penc_fail(error, POSENC_FORMAT, key, "be a whole number from 0 to 2^40");
    *whole = (uint64_t)number;
    return POSENC_OK;
}

static posenc_status penc_read_size(posenc_side *made, json_object *value, const char *key,
                                    void *wanted, posenc_error *error) {
    uint64_t whole = 0;
    (void)made;
    posenc_status status = penc_read_whole(value, key, &whole, error);
    *(size_t *)wanted = (size_t)whole;
    return status;
}

static posenc_status penc_read_length(posenc_side *made, json_object *value, const char *key,
                                      void *wanted, posenc_error *error) {
    (void)made;
    return penc_read_whole(value, key, wanted, error);
}

static posenc_status penc_read_real(posenc_side *made, json_object *value, const char *key,
                                    void *wanted, posenc_error *error) {
    (void)made;
    if (!json_object_is_type(value, json_type_int) && !json_object_is_type(value, json_type_double))
        return penc_fail(error, POSENC_FORMAT, key, "be a number");
    *(double *)wanted = json_object_get_double(value);
    if (*(double *)wanted == 0.0)
        return penc_fail_real(error, key, 0.0, "be from 1e-6 to 1e30");
    return POSENC_OK;
}

/* One of some words, by its number. */
static posenc_status penc_read_choice(json_object *value, const char *key, const char *const *words,
                                      const char *must, int *choice, posenc_error *error) {
    const char *text =
        json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
    for (int i = 0; words[i]; i++) {
        *choice = i;
        if (strcmp(text, words[i]) == 0)
            return POSENC_OK;
    }
    return penc_fail(error, POSENC_FORMAT, key, must);
}

static posenc_status penc_read_pairing(posenc_side *made, json_object *value, const char *key,
                                       void *wanted, posenc_error *error) {
    const char *text =
        json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
    (void)made;
    (void)key;
    return posenc_pairing_parse(text, wanted, error);
}

static posenc_status penc_read_mode(posenc_side *made, json_object *value, const char *key,
                                    void *wanted, posenc_error *error) {
    static const char *const words[] = {"exact", "float32", NULL};
    int choice = 0;
    (void)made;
    posenc_status status =
        penc_read_choice(value, key, words, "be exact or float32", &choice, error);
    *(posenc_mode *)wanted = (posenc_mode)choice;
    return status;
}

static posenc_status penc_read_scaling(posenc_side *made, json_object *value, const char *key,
                                       void *wanted, posenc_error *error) {
    (void)wanted;
    if (json_object_is_type(value, json_type_null))
        return POSENC_OK;
    if (!json_object_is_type(value, json_type_object))
        return penc_fail(error, POSENC_FORMAT, key, "be an object: {\"rope_type\": ...}");
    const char *text = json_object_to_json_string(value);
    return posenc_rope_parameters_parse(text, strlen(text), &made->parameters, NULL, error);
}

static posenc_status penc_read_sections(posenc_axes *axes, json_object *list, posenc_error *error) {
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    if (count < 1 || count > POSENC_MAX_AXES)
        return penc_fail(error, POSENC_FORMAT, "sections", "be a list of 1 to 8 whole numbers");
    posenc_status status = POSENC_OK;
    for (size_t i = 0; !status && i < count; i++) {
        uint64_t pairs = 0;
        status = penc_read_whole(json_object_array_get_idx(list, i), "sections", &pairs, error);
        axes->sections[i] = (size_t)pairs;
    }
    axes->count = count;
    return status;
}

static posenc_status penc_read_axes(posenc_side *made, json_object *value, const char *key,
                                    void *wanted, posenc_error *error) {
    static const char *const orders[] = {"chunked", "interleaved", "alternating", "ernie", NULL};
    static const char *const exponents[] = {"whole", "own", "strided", NULL};
    posenc_axes *axes = wanted;
    json_object *member;
    posenc_status status = POSENC_OK;
    uint64_t count = 0;
    int choice = 0;
    if (!json_object_is_type(value, json_type_object))
        return penc_fail(error, POSENC_FORMAT, key, "be an object: {\"sections\": [...], ...}");
    axes->size = sizeof *axes;
    if (json_object_object_get_ex(value, "sections", &member))
        status = penc_read_sections(axes, member, error);
    if (!status && json_object_object_get_ex(value, "count", &member)) {
        status = penc_read_whole(member, "count", &count, error);
        axes->count = (size_t)count;
    }
    if (!status && json_object_object_get_ex(value, "order", &member)) {
        status = penc_read_choice(member, "order", orders,
                                  "be chunked, interleaved, alternating or ernie", &choice, error);
        axes->order = (posenc_axis_order)choice;
    }
    if (!status && json_object_object_get_ex(value, "exponents", &member)) {
        status = penc_read_choice(member, "exponents", exponents, "be whole, own or strided",
                                  &choice, error);
        axes->exponents = (posenc_axis_exponents)choice;
    }
    made->spec.axes = axes;
    return status;
}

#define PENC_SIDE_OFFSET(member) offsetof(struct posenc_side, member)

static const penc_spec_key penc_spec_keys[] = {
    {"head_dim", penc_read_size, PENC_SIDE_OFFSET(spec.head_dim)},
    {"rotary_dim", penc_read_size, PENC_SIDE_OFFSET(spec.rotary_dim)},
    {"rotary_start", penc_read_size, PENC_SIDE_OFFSET(spec.rotary_start)},
    {"base", penc_read_real, PENC_SIDE_OFFSET(spec.base)},
    {"pairing", penc_read_pairing, PENC_SIDE_OFFSET(spec.pairing)},
    {"max_positions", penc_read_length, PENC_SIDE_OFFSET(spec.max_positions)},
    {"seq_len", penc_read_length, PENC_SIDE_OFFSET(seq_len)},
    {"mode", penc_read_mode, PENC_SIDE_OFFSET(mode)},
    {"scaling", penc_read_scaling, 0},
    {"axes", penc_read_axes, PENC_SIDE_OFFSET(axes)},
};

static posenc_status penc_read_spec_key(posenc_side *made, const char *key, json_object *value,
                                        posenc_error *error) {
    for (size_t i = 0; i < sizeof penc_spec_keys / sizeof *penc_spec_keys; i++) {
        const penc_spec_key *known = &penc_spec_keys[i];
        if (strcmp(key, known->key) == 0)
            return known->read(made, value, known->key, (char *)made + known->offset, error);
    }
    posenc_status status = penc_fail(error, POSENC_FORMAT, "key",
                                     "be one of head_dim, rotary_dim, rotary_start, base, pairing, "
                                     "max_positions, seq_len, mode, scaling, axes");
    penc_fail_name(error, key, strlen(key));
    return status;
}

posenc_status posenc_side_of_json(const char *json, size_t length, posenc_side **side,
                                  posenc_error *error) {
    posenc_side *made;
    json_object *object = NULL;
    if (!json)
        return penc_fail_null(error, "json");
    posenc_status status = penc_side_start(&made, side, error);
    if (status)
        return status;
    made->spec.size = sizeof made->spec;
    status = penc_json_parse(json, length, &object, error);
    if (!status) {
        json_object_object_foreach(object, key, value) {
            if (!status)
                status = penc_read_spec_key(made, key, value, error);
        }
    }
    if (!status && made->spec.head_dim == 0)
        status = penc_fail(error, POSENC_FORMAT, "head_dim",
                           "be given: channels of a head, such as 128");
    if (!status && made->parameters)
        status = posenc_rope_parameters_apply(made->parameters, &made->spec, NULL, error);
    json_object_put(object);
    if (status) {
        posenc_side_free(made);
        return status;
    }
    return penc_side_finish(made, side, error);
}

/* --- Files -------------------------------------------------------------------------------------- */

static posenc_status penc_side_of_json_file(const char *path, posenc_side **side,
                                            posenc_error *error) {
    json_object *object;
    posenc_status status = penc_json_read_file(path, &object, error);
    if (status)
        return status;
    const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
    status = posenc_side_of_json(text, strlen(text), side, error);
    if (status)
        penc_fail_file(error, path);
    json_object_put(object);
    return status;
}

/* A list of frequencies is a spec; its numbers stand for what frameworks multiply positions with. */
static posenc_status penc_side_of_list(posenc_side *made, posenc_side **side, posenc_error *error) {
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_scaling custom = POSENC_SCALING_INIT;
    custom.type = POSENC_SCALING_CUSTOM;
    custom.inv_freq = made->dump.inv_freq.numbers;
    custom.inv_freq_dtype = POSENC_F64;
    custom.inv_freq_count = made->dump.inv_freq.width;
    made->custom = custom;
    spec.head_dim = 2 * custom.inv_freq_count;
    spec.scaling = &made->custom;
    made->spec = spec;
    made->mode = made->dump.dtype == POSENC_F64 ? POSENC_MODE_EXACT : POSENC_MODE_FLOAT32;
    return penc_side_finish(made, side, error);
}

posenc_status posenc_side_open(const char *path, posenc_side **side, posenc_error *error) {
    posenc_side *made;
    if (!path)
        return penc_fail_null(error, "path");
    size_t length = strlen(path);
    if (length > 5 && strcmp(path + length - 5, ".json") == 0) {
        if (!side)
            return penc_fail_null(error, "side");
        *side = NULL;
        return penc_side_of_json_file(path, side, error);
    }
    posenc_status status = penc_side_start(&made, side, error);
    if (status)
        return status;
    made->is_dump = 1;
    status = penc_dump_read(path, &made->dump, error);
    if (status) {
        posenc_side_free(made);
        return status;
    }
    if (!made->dump.cos.numbers && !made->dump.both.numbers)
        return penc_side_of_list(made, side, error);
    *side = made;
    return POSENC_OK;
}

/* --- Rows --------------------------------------------------------------------------------------- */

static void penc_widen_rows(double *numbers, size_t count) {
    const float *narrow = (const float *)(const void *)numbers;
    for (size_t i = count; i-- > 0;) { /* from the end, so that nothing is overwritten unread */
        float value;
        memcpy(&value, &narrow[i], sizeof value);
        numbers[i] = (double)value;
    }
}

static posenc_status penc_compute_table(const posenc_side *side, const penc_compared *compared,
                                        penc_table *table, posenc_error *error) {
    size_t axes = posenc_side_axes(side), count = compared->count;
    int64_t *all = malloc(axes * count * sizeof *all);
    if (!all)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "positions", "fit into memory");
    for (size_t a = 0; a < axes; a++)
        memcpy(all + a * count, compared->positions + (ptrdiff_t)a * compared->axis_stride,
               count * sizeof *all);
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.cos = table->cos;
    rows.sin = table->sin;
    rows.mode = side->mode;
    rows.dtype = side->mode == POSENC_MODE_EXACT ? POSENC_F64 : POSENC_F32;
    posenc_status status = posenc_angles(side->frequencies, all, count, &rows, error);
    free(all);
    if (!status && rows.dtype == POSENC_F32) {
        penc_widen_rows(table->cos, count * table->pairs);
        penc_widen_rows(table->sin, count * table->pairs);
    }
    return status;
}

posenc_status penc_side_table(const posenc_side *side, const penc_compared *compared, size_t pairs,
                              penc_table *table, posenc_error *error) {
    size_t count = compared->count;
    if (penc_side_is_table(side))
        return penc_dump_table(&side->dump, pairs, table, error);
    memset(table, 0, sizeof *table);
    table->rows = count;
    table->pairs = posenc_frequencies_pairs(side->frequencies);
    table->has_pairing = !side->is_dump;
    table->pairing = side->spec.pairing;
    table->cos = malloc(count * table->pairs * sizeof *table->cos);
    table->sin = malloc(count * table->pairs * sizeof *table->sin);
    posenc_status status =
        table->cos && table->sin
            ? penc_compute_table(side, compared, table, error)
            : penc_fail(error, POSENC_OUT_OF_MEMORY, "positions", "fit into memory");
    if (status)
        penc_table_free(table);
    return status;
}
