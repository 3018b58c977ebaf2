/* Numbers, strings, arrays and names of GGUF files. SPDX-License-Identifier: MIT */
#include "formats/gguf_cursor.h"

#include "base/byte_order.h"
#include "base/fail.h"
#include "base/utf8.h"

#include <string.h>

static const struct {
    const char *word;
    size_t bytes;
} penc_gguf_types[PENC_GGUF_TYPES] = {
#define PENC_ROW(name, number, bytes, word) [number] = {word, bytes},
    PENC_GGUF_TYPE_LIST(PENC_ROW)
#undef PENC_ROW
};

const char *penc_gguf_type_word(penc_gguf_type type) {
    return type == PENC_GGUF_NONE ? "none" : penc_gguf_types[type].word;
}

size_t penc_gguf_type_bytes(penc_gguf_type type) {
    return penc_gguf_types[type].bytes;
}

posenc_status penc_gguf_fail(const penc_gguf_cursor *cursor, posenc_status status,
                             const char *argument, const char *must, uint64_t place) {
    return penc_input_fail(cursor->window.input, status, argument, must, place, cursor->error);
}

/* Makes `*bytes` point to the next `count` bytes and moves behind them. */
static posenc_status penc_gguf_bytes(penc_gguf_cursor *cursor, size_t count,
                                     const unsigned char **bytes) {
    const penc_input *input = cursor->window.input;
    if (cursor->at > cursor->end || count > cursor->end - cursor->at) {
        if (cursor->end >= input->size)
            return penc_input_short(input, input->size, cursor->at + count, cursor->error);
        return penc_gguf_fail(cursor, POSENC_UNSUPPORTED, "metadata", "take at most 1 GiB",
                              cursor->at);
    }
    posenc_status status = penc_window_at(&cursor->window, cursor->at, count, bytes, cursor->error);
    cursor->at += count;
    return status;
}

posenc_status penc_gguf_take(penc_gguf_cursor *cursor, size_t bytes, uint64_t *number) {
    const unsigned char *from;
    posenc_status status = penc_gguf_bytes(cursor, bytes, &from);
    if (!status)
        *number = penc_load_unsigned(from, bytes, cursor->big);
    return status;
}

posenc_status penc_gguf_take_length(penc_gguf_cursor *cursor, uint64_t *length) {
    return penc_gguf_take(cursor, (size_t)cursor->length_size, length);
}

posenc_status penc_gguf_take_type(penc_gguf_cursor *cursor, const char *argument,
                                  penc_gguf_type *type) {
    uint64_t number, place = cursor->at;
    posenc_status status = penc_gguf_take(cursor, 4, &number);
    if (status)
        return status;
    if (number >= PENC_GGUF_TYPES)
        return penc_input_fail_size(cursor->window.input, POSENC_FORMAT, argument, number,
                                    "be from 0 (uint8) to 12 (float64)", place, cursor->error);
    *type = (penc_gguf_type)number;
    return POSENC_OK;
}

/* Bytes that an element takes at least. */
static uint64_t penc_gguf_least_bytes(const penc_gguf_cursor *cursor, penc_gguf_type type) {
    uint64_t length = (uint64_t)cursor->length_size;
    size_t bytes = penc_gguf_type_bytes(type);
    return bytes ? bytes : type == PENC_GGUF_STRING ? length : 4 + length;
}

/* The count of an array or a string whose elements take `least` bytes or more, which must fit the file. */
static posenc_status penc_gguf_take_count(penc_gguf_cursor *cursor, const char *argument,
                                          uint64_t least, uint64_t *count) {
    const penc_input *input = cursor->window.input;
    uint64_t place = cursor->at;
    posenc_status status = penc_gguf_take_length(cursor, count);
    if (status || *count <= (input->size - cursor->at) / least)
        return status;
    status = penc_input_fail_size(input, POSENC_FORMAT, argument, *count, "end inside the file",
                                  place, cursor->error);
    penc_fail_limit(cursor->error, "bytes left", input->size - cursor->at);
    return status;
}

/* The number of `bits` bits as a signed one. */
static int64_t penc_gguf_signed(uint64_t number, size_t bytes) {
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    return number & sign ? -(int64_t)(~number & (sign - 1)) - 1 : (int64_t)number;
}

static double penc_gguf_float(uint64_t number, size_t bytes) {
    float single;
    double value;
    uint32_t low = (uint32_t)number;
    memcpy(&single, &low, sizeof single);
    memcpy(&value, &number, sizeof value);
    return bytes == 4 ? (double)single : value;
}

static posenc_status penc_gguf_take_number(penc_gguf_cursor *cursor, penc_gguf_type type,
                                           penc_gguf_value *value) {
    uint64_t number = 0;
    size_t bytes = penc_gguf_type_bytes(type);
    posenc_status status = penc_gguf_take(cursor, bytes, &number);
    if (status)
        return status;
    if (type == PENC_GGUF_BOOL && number > 1)
        return penc_gguf_fail(cursor, POSENC_FORMAT, "bool", "be 0 or 1", value->place);
    if (type == PENC_GGUF_F32 || type == PENC_GGUF_F64)
        value->as.f = penc_gguf_float(number, bytes);
    else if (type == PENC_GGUF_I8 || type == PENC_GGUF_I16 || type == PENC_GGUF_I32 ||
             type == PENC_GGUF_I64)
        value->as.i = penc_gguf_signed(number, bytes);
    else
        value->as.u = number;
    return POSENC_OK;
}

posenc_status penc_gguf_take_value(penc_gguf_cursor *cursor, penc_gguf_type type,
                                   penc_gguf_value *value) {
    posenc_status status = POSENC_OK;
    *value = (penc_gguf_value){.type = type, .element = PENC_GGUF_NONE, .count = 1};
    value->place = cursor->at;
    if (type == PENC_GGUF_STRING) {
        status = penc_gguf_take_count(cursor, "string length", 1, &value->count);
    } else if (type == PENC_GGUF_ARRAY) {
        status = penc_gguf_take_type(cursor, "element type", &value->element);
        if (!status)
            status =
                penc_gguf_take_count(cursor, "array length",
                                     penc_gguf_least_bytes(cursor, value->element), &value->count);
    } else {
        return penc_gguf_take_number(cursor, type, value);
    }
    value->place = cursor->at;
    return status;
}

posenc_status penc_gguf_skip_value(penc_gguf_cursor *cursor, const penc_gguf_value *value,
                                   int nesting) {
    if (value->type == PENC_GGUF_STRING)
        cursor->at += value->count;
    if (value->type != PENC_GGUF_ARRAY)
        return POSENC_OK;
    if (nesting == PENC_GGUF_MAX_NESTING)
        return penc_gguf_fail(cursor, POSENC_UNSUPPORTED, "array", "be nested at most 8 deep",
                              value->place);
    size_t bytes = penc_gguf_type_bytes(value->element);
    if (bytes) {
        cursor->at += value->count * bytes;
        return POSENC_OK;
    }
    for (uint64_t i = 0; i < value->count; i++) {
        penc_gguf_value element;
        posenc_status status = penc_gguf_take_value(cursor, value->element, &element);
        if (!status)
            status = penc_gguf_skip_value(cursor, &element, nesting + 1);
        if (status)
            return status;
    }
    return POSENC_OK;
}

posenc_status penc_gguf_take_name(penc_gguf_cursor *cursor, const char *argument,
                                  char name[PENC_NAME_BYTES], size_t *length) {
    const unsigned char *bytes;
    uint64_t count, place = cursor->at;
    posenc_status status = penc_gguf_take_count(cursor, argument, 1, &count);
    if (status)
        return status;
    if (count >= PENC_NAME_BYTES)
        return penc_gguf_fail(cursor, POSENC_UNSUPPORTED, argument, "have at most 511 bytes",
                              place);
    place = cursor->at;
    status = penc_gguf_bytes(cursor, (size_t)count, &bytes);
    if (status)
        return status;
    memcpy(name, bytes, (size_t)count);
    name[count] = '\0';
    *length = (size_t)count;
    size_t valid = penc_utf8_prefix(bytes, *length);
    if (valid < *length || memchr(name, 0, *length)) {
        penc_gguf_fail(cursor, POSENC_FORMAT, argument, "be UTF-8 without NUL", place + valid);
        penc_fail_name(cursor->error, name, *length);
        return POSENC_FORMAT;
    }
    return POSENC_OK;
}
