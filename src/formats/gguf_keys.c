/* Keys of an open GGUF file: looking them up and reading their values. SPDX-License-Identifier: MIT */
#include "formats/gguf_file.h"

#include "base/fail.h"
#include "base/utf8.h"

#include <string.h>

enum { PENC_GGUF_KEY_WINDOW = 1024 }; /* more than a name and the head of a value */

penc_gguf_cursor penc_gguf_cursor_at(const penc_gguf *gguf, uint64_t place, unsigned char *window,
                                     size_t capacity, posenc_error *error) {
    return (penc_gguf_cursor){
        .window = penc_window_of(&gguf->source.input, window, capacity),
        .at = place,
        .end = gguf->source.input.size,
        .big = gguf->info.big_endian,
        .length_size = gguf->info.version == 1 ? 4 : 8,
        .error = error,
    };
}

posenc_status penc_gguf_take_key(penc_gguf_cursor *cursor, char name[PENC_NAME_BYTES],
                                 size_t *length, penc_gguf_value *value) {
    posenc_status status = penc_gguf_take_name(cursor, "key", name, length);
    if (status)
        return status;
    penc_gguf_type type;
    status = penc_gguf_take_type(cursor, "value type", &type);
    if (!status)
        status = penc_gguf_take_value(cursor, type, value);
    if (status)
        penc_fail_name(cursor->error, name, *length);
    return status;
}

posenc_status penc_gguf_entry_name(const void *source, const penc_entry *entry,
                                   char name[PENC_NAME_BYTES], size_t *length,
                                   posenc_error *error) {
    unsigned char window[PENC_NAME_BYTES + 8];
    penc_gguf_cursor cursor =
        penc_gguf_cursor_at((const penc_gguf *)source, entry->place, window, sizeof window, error);
    return penc_gguf_take_name(&cursor, "name", name, length);
}

static posenc_status penc_gguf_read_key(const penc_gguf *gguf, const penc_entry *entry,
                                        char name[PENC_NAME_BYTES], penc_gguf_value *value,
                                        posenc_error *error) {
    unsigned char window[PENC_GGUF_KEY_WINDOW];
    char own_name[PENC_NAME_BYTES];
    size_t length;
    penc_gguf_cursor cursor = penc_gguf_cursor_at(gguf, entry->place, window, sizeof window, error);
    return penc_gguf_take_key(&cursor, name ? name : own_name, &length, value);
}

posenc_status penc_gguf_key(const penc_gguf *gguf, size_t index, char name[PENC_NAME_BYTES],
                            penc_gguf_value *value, posenc_error *error) {
    return penc_gguf_read_key(gguf, &gguf->keys[index], name, value, error);
}

posenc_status penc_gguf_find(const penc_gguf *gguf, const char *key, penc_gguf_value *value,
                             posenc_error *error) {
    const penc_entry *entry;
    posenc_status status =
        penc_entries_find(gguf->keys, gguf->info.key_count, key, penc_name_hash(key, strlen(key)),
                          penc_gguf_entry_name, &gguf->source, &entry, error);
    *value = (penc_gguf_value){.type = PENC_GGUF_NONE, .element = PENC_GGUF_NONE};
    return !status && entry ? penc_gguf_read_key(gguf, entry, NULL, value, error) : status;
}

static int penc_gguf_is_signed(penc_gguf_type type) {
    return type == PENC_GGUF_I8 || type == PENC_GGUF_I16 || type == PENC_GGUF_I32 ||
           type == PENC_GGUF_I64;
}

static int penc_gguf_is_unsigned(penc_gguf_type type) {
    return type == PENC_GGUF_U8 || type == PENC_GGUF_U16 || type == PENC_GGUF_U32 ||
           type == PENC_GGUF_U64;
}

int penc_gguf_real(const penc_gguf_value *value, double *real) {
    if (value->type == PENC_GGUF_F32 || value->type == PENC_GGUF_F64)
        *real = value->as.f;
    else if (penc_gguf_is_signed(value->type))
        *real = (double)value->as.i;
    else if (penc_gguf_is_unsigned(value->type))
        *real = (double)value->as.u;
    else
        return 0;
    return 1;
}

int penc_gguf_integer(const penc_gguf_value *value, int64_t *integer) {
    if (penc_gguf_is_signed(value->type))
        *integer = value->as.i;
    else if (penc_gguf_is_unsigned(value->type) && value->as.u <= INT64_MAX)
        *integer = (int64_t)value->as.u;
    else
        return 0;
    return 1;
}

/* Fails for a value of the wrong kind or size. */
static posenc_status penc_gguf_fail_value(const penc_gguf *gguf, posenc_status status,
                                          const char *argument, const char *must, uint64_t place,
                                          posenc_error *error) {
    status = penc_input_fail(&gguf->source.input, status, "value", must, place, error);
    penc_fail_name(error, argument, strlen(argument));
    return status;
}

posenc_status penc_gguf_text(const penc_gguf *gguf, const penc_gguf_value *value,
                             const char *argument, char *text, size_t capacity,
                             posenc_error *error) {
    if (value->type != PENC_GGUF_STRING)
        return penc_gguf_fail_value(gguf, POSENC_FORMAT, argument, "be a string", value->place,
                                    error);
    if (value->count >= capacity) {
        penc_gguf_fail_value(gguf, POSENC_OUT_OF_RANGE, argument, "be a shorter string",
                             value->place, error);
        penc_fail_limit(error, "most bytes", capacity - 1);
        return POSENC_OUT_OF_RANGE;
    }
    size_t length = (size_t)value->count;
    posenc_status status = penc_input_read(&gguf->source.input, value->place, text, length, error);
    if (status)
        return status;
    text[length] = '\0';
    size_t valid = penc_utf8_prefix((const unsigned char *)text, length);
    size_t until = strlen(text) < valid ? strlen(text) : valid;
    return until == length
               ? POSENC_OK
               : penc_gguf_fail_value(gguf, POSENC_FORMAT, argument, "be UTF-8 without NUL",
                                      value->place + until, error);
}

void penc_gguf_walk_begin(const penc_gguf *gguf, const penc_gguf_value *array,
                          penc_gguf_walk *walk) {
    walk->gguf = gguf;
    walk->type = array->element;
    walk->left = array->type == PENC_GGUF_ARRAY ? array->count : 0;
    walk->place = array->place;
    walk->window = (penc_window){.input = &gguf->source.input};
}

posenc_status penc_gguf_walk_next(penc_gguf_walk *walk, penc_gguf_value *element,
                                  posenc_error *error) {
    penc_gguf_cursor cursor =
        penc_gguf_cursor_at(walk->gguf, walk->place, walk->bytes, sizeof walk->bytes, error);
    cursor.window.place = walk->window.place;
    cursor.window.count = walk->window.count;
    posenc_status status = penc_gguf_take_value(&cursor, walk->type, element);
    if (!status)
        status = penc_gguf_skip_value(&cursor, element, 0);
    walk->window = cursor.window;
    walk->place = cursor.at;
    walk->left--;
    return status;
}

posenc_status penc_gguf_reals(const penc_gguf *gguf, const penc_gguf_value *array,
                              const char *argument, uint64_t first, size_t count, double *reals,
                              posenc_error *error) {
    size_t bytes = array->type == PENC_GGUF_ARRAY ? penc_gguf_type_bytes(array->element) : 0;
    if (!bytes)
        return penc_gguf_fail_value(gguf, POSENC_FORMAT, argument, "be an array of numbers",
                                    array->place, error);
    if (first > array->count || count > array->count - first) {
        penc_gguf_fail_value(gguf, POSENC_OUT_OF_RANGE, argument, "be a longer array", array->place,
                             error);
        penc_fail_limit(error, "elements", array->count);
        return POSENC_OUT_OF_RANGE;
    }
    penc_gguf_walk walk;
    penc_gguf_walk_begin(gguf, array, &walk);
    walk.place += first * bytes;
    for (size_t i = 0; i < count; i++) {
        penc_gguf_value element;
        posenc_status status = penc_gguf_walk_next(&walk, &element, error);
        if (status)
            return status;
        if (!penc_gguf_real(&element, &reals[i]))
            reals[i] = (double)element.as.u; /* a bool */
    }
    return POSENC_OK;
}
