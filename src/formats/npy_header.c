/* Parsing and making the header of .npy files: magic, version, length, and a dictionary written as
 * a Python literal, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }". The parser knows
 * just as much of Python as such dictionaries need.
 * SPDX-License-Identifier: MIT */
#include "formats/npy_header.h"

#include "base/byte_order.h"
#include "base/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PENC_NPY_SUPPORTED                                                                         \
    "be one of f2, f4, f8 or V2 (bfloat16), after <, >, =, | or nothing: integers, booleans, "     \
    "complex numbers, text and structures are not supported"

static const unsigned char penc_npy_magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

static const struct {
    char text[3];
    posenc_dtype dtype;
} penc_npy_dtypes[] = {
    {"f4", POSENC_F32},
    {"f8", POSENC_F64},
    {"f2", POSENC_F16},
    {"V2", POSENC_BF16}, /* 2 bytes of no type: what NumPy makes of ml_dtypes' bfloat16 */
};

/* The keys, in the order in which NumPy writes them. */
enum { PENC_NPY_DESCR, PENC_NPY_FORTRAN_ORDER, PENC_NPY_SHAPE, PENC_NPY_KEYS };
static const char *const penc_npy_keys[PENC_NPY_KEYS] = {"descr", "fortran_order", "shape"};

/* The dictionary being read; `at` is the byte of the file that comes next. */
typedef struct penc_npy_cursor {
    const unsigned char *bytes;
    size_t at, end;
    posenc_error *error;
} penc_npy_cursor;

static posenc_status penc_npy_fail_at(posenc_error *error, posenc_status status,
                                      const char *argument, const char *must, size_t place) {
    penc_fail(error, status, argument, must);
    penc_fail_place(error, "byte", (int64_t)place);
    return status;
}

static posenc_status penc_npy_bad(penc_npy_cursor *cursor, const char *argument, const char *must) {
    return penc_npy_fail_at(cursor->error, POSENC_FORMAT, argument, must, cursor->at);
}

/* The next byte, -1 at the end. */
static int penc_npy_peek(const penc_npy_cursor *cursor) {
    return cursor->at < cursor->end ? cursor->bytes[cursor->at] : -1;
}

/* The next byte that is no white space, -1 at the end. */
static int penc_npy_peek_word(penc_npy_cursor *cursor) {
    int next = penc_npy_peek(cursor);
    while (next == ' ' || next == '\t' || next == '\n' || next == '\r' || next == '\f') {
        cursor->at++;
        next = penc_npy_peek(cursor);
    }
    return next;
}

/* Skips white space and then `wanted`; returns whether it was there. */
static int penc_npy_take(penc_npy_cursor *cursor, int wanted) {
    if (penc_npy_peek_word(cursor) != wanted)
        return 0;
    cursor->at++;
    return 1;
}

static int penc_npy_equal(const unsigned char *bytes, size_t length, const char *text) {
    return length == strlen(text) && memcmp(bytes, text, length) == 0;
}

/* A string without escapes, in either quote; `*start` points into the header. */
static posenc_status penc_npy_string(penc_npy_cursor *cursor, const char *argument,
                                     const unsigned char **start, size_t *length) {
    int quote = penc_npy_peek_word(cursor);
    if (quote != '\'' && quote != '"')
        return penc_npy_bad(cursor, argument, "be a quoted string");
    cursor->at++;
    *start = cursor->bytes + cursor->at;
    for (*length = 0; penc_npy_peek(cursor) != quote; ++*length) {
        int next = penc_npy_peek(cursor);
        if (next < ' ' || next == '\\')
            return penc_npy_bad(cursor, argument,
                                "be a quoted string on one line, without escapes");
        cursor->at++;
    }
    cursor->at++;
    return POSENC_OK;
}

/* "=" and no mark mean the machine's order; "|" means none and is read as little-endian, for it
 * is there that such files are made. */
static int penc_npy_order_is_big(unsigned char mark) {
    return mark == '>' || (mark == '=' && penc_machine_is_big());
}

static posenc_status penc_npy_descr(penc_npy_cursor *cursor, posenc_npy_info *info) {
    const unsigned char *start;
    size_t length, place;
    int next = penc_npy_peek_word(cursor);
    place = cursor->at;
    if (next == '[' || next == '(') /* a structure, or an element with a shape of its own */
        return penc_npy_fail_at(cursor->error, POSENC_UNSUPPORTED, "descr", PENC_NPY_SUPPORTED,
                                place);
    posenc_status status = penc_npy_string(cursor, "descr", &start, &length);
    if (status)
        return status;
    unsigned char mark = '=';
    if (length && memchr("<>=|", start[0], 4)) {
        mark = *start++;
        length--;
    }
    for (size_t i = 0; i < sizeof penc_npy_dtypes / sizeof *penc_npy_dtypes; i++) {
        if (penc_npy_equal(start, length, penc_npy_dtypes[i].text)) {
            info->dtype = penc_npy_dtypes[i].dtype;
            info->big_endian = penc_npy_order_is_big(mark);
            return POSENC_OK;
        }
    }
    return penc_npy_fail_at(cursor->error, POSENC_UNSUPPORTED, "descr", PENC_NPY_SUPPORTED, place);
}

static posenc_status penc_npy_boolean(penc_npy_cursor *cursor, posenc_npy_info *info) {
    penc_npy_peek_word(cursor);
    const unsigned char *word = cursor->bytes + cursor->at;
    size_t left = cursor->end - cursor->at;
    if (left >= 4 && memcmp(word, "True", 4) == 0) {
        info->fortran_order = 1;
        cursor->at += 4;
    } else if (left >= 5 && memcmp(word, "False", 5) == 0) {
        info->fortran_order = 0;
        cursor->at += 5;
    } else {
        return penc_npy_bad(cursor, "fortran_order", "be True or False");
    }
    return POSENC_OK;
}

/* One size of the shape: digits, perhaps with the "L" that Python 2 wrote after long integers. */
static posenc_status penc_npy_integer(penc_npy_cursor *cursor, size_t *value) {
    size_t place = cursor->at, sum = 0;
    int next = penc_npy_peek(cursor);
    if (next < '0' || next > '9')
        return penc_npy_bad(cursor, "shape", "be a tuple of integers that are not negative");
    for (; next >= '0' && next <= '9'; next = penc_npy_peek(cursor)) {
        size_t digit = (size_t)(next - '0');
        if (sum == 0 && cursor->at > place) /* Python knows no 05, and Python 2 made it octal */
            return penc_npy_bad(cursor, "shape", "have no leading zeros");
        if (sum > (SIZE_MAX - digit) / 10)
            return penc_npy_fail_at(cursor->error, POSENC_OVERFLOW, "shape", "fit size_t", place);
        sum = sum * 10 + digit;
        cursor->at++;
    }
    if (next == 'L')
        cursor->at++;
    *value = sum;
    return POSENC_OK;
}

/* A tuple: "()", "(5,)", "(2, 3)"; "(5)" is none. */
static posenc_status penc_npy_shape(penc_npy_cursor *cursor, posenc_npy_info *info) {
    if (!penc_npy_take(cursor, '('))
        return penc_npy_bad(cursor, "shape", "be a tuple of integers");
    int comma = 1;
    for (info->rank = 0; penc_npy_peek_word(cursor) != ')'; info->rank++) {
        size_t value;
        if (!comma)
            return penc_npy_bad(cursor, "shape", "have a comma between two sizes");
        posenc_status status = penc_npy_integer(cursor, &value);
        if (status)
            return status;
        if (info->rank == POSENC_NPY_MAX_RANK) {
            penc_npy_fail_at(cursor->error, POSENC_UNSUPPORTED, "shape",
                             "have no more sizes than POSENC_NPY_MAX_RANK", cursor->at);
            penc_fail_limit(cursor->error, "POSENC_NPY_MAX_RANK", POSENC_NPY_MAX_RANK);
            return POSENC_UNSUPPORTED;
        }
        info->shape[info->rank] = value;
        comma = penc_npy_take(cursor, ',');
    }
    if (info->rank == 1 && !comma)
        return penc_npy_bad(cursor, "shape", "have a comma after a single size");
    cursor->at++;
    return POSENC_OK;
}

/* One key with its colon; `*key` is its index. `seen` has a bit for each key that came before. */
static posenc_status penc_npy_key(penc_npy_cursor *cursor, unsigned seen, unsigned *key) {
    const unsigned char *start;
    size_t length;
    penc_npy_peek_word(cursor);
    size_t place = cursor->at;
    posenc_status status = penc_npy_string(cursor, "key", &start, &length);
    if (status)
        return status;
    for (*key = 0; *key < PENC_NPY_KEYS; ++*key) {
        if (penc_npy_equal(start, length, penc_npy_keys[*key]))
            break;
    }
    if (*key == PENC_NPY_KEYS)
        return penc_npy_fail_at(cursor->error, POSENC_FORMAT, "key",
                                "be one of descr, fortran_order, shape", place);
    if (seen & 1u << *key)
        return penc_npy_fail_at(cursor->error, POSENC_FORMAT, penc_npy_keys[*key],
                                "stand in the header once", place);
    if (!penc_npy_take(cursor, ':'))
        return penc_npy_bad(cursor, penc_npy_keys[*key], "be followed by a colon");
    return POSENC_OK;
}

static posenc_status penc_npy_value(penc_npy_cursor *cursor, unsigned key, posenc_npy_info *info) {
    if (key == PENC_NPY_DESCR)
        return penc_npy_descr(cursor, info);
    return key == PENC_NPY_SHAPE ? penc_npy_shape(cursor, info) : penc_npy_boolean(cursor, info);
}

/* The dictionary and the white space after it; `*shape` becomes the byte where the shape stands. */
static posenc_status penc_npy_dictionary(penc_npy_cursor *cursor, posenc_npy_info *info,
                                         size_t *shape) {
    unsigned seen = 0, key;
    int comma = 1;
    if (!penc_npy_take(cursor, '{'))
        return penc_npy_bad(cursor, "header", "be a dictionary in braces");
    while (penc_npy_peek_word(cursor) != '}') {
        if (!comma)
            return penc_npy_bad(cursor, "header", "have a comma or a brace after a value");
        posenc_status status = penc_npy_key(cursor, seen, &key);
        if (status)
            return status;
        seen |= 1u << key;
        penc_npy_peek_word(cursor);
        if (key == PENC_NPY_SHAPE)
            *shape = cursor->at;
        status = penc_npy_value(cursor, key, info);
        if (status)
            return status;
        comma = penc_npy_take(cursor, ',');
    }
    for (key = 0; key < PENC_NPY_KEYS; key++) {
        if (!(seen & 1u << key))
            return penc_npy_bad(cursor, penc_npy_keys[key], "stand in the header");
    }
    cursor->at++;
    if (penc_npy_peek_word(cursor) != -1)
        return penc_npy_bad(cursor, "header", "end after the dictionary");
    return POSENC_OK;
}

/* Bytes before the dictionary: the length field has 2 bytes in version 1, 4 in later ones. */
static size_t penc_npy_prefix_size(const unsigned char *bytes) {
    return bytes[6] == 1 ? 10 : 12;
}

posenc_status penc_npy_header_size(const unsigned char *bytes, size_t count, size_t *size,
                                   posenc_error *error) {
    for (size_t i = 0; i < sizeof penc_npy_magic; i++) {
        if (i == count || bytes[i] != penc_npy_magic[i])
            return penc_npy_fail_at(error, POSENC_FORMAT, "file", "begin with the magic of .npy",
                                    i);
    }
    if (count > 7 && (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0))
        return penc_npy_fail_at(error, POSENC_UNSUPPORTED, "version", "be 1.0, 2.0 or 3.0", 6);
    if (count < 8 || count < penc_npy_prefix_size(bytes))
        return penc_npy_fail_at(error, POSENC_FORMAT, "file", "hold the whole header", count);
    uint64_t length = 0;
    for (size_t i = penc_npy_prefix_size(bytes); i > 8; i--)
        length = length << 8 | bytes[i - 1];
    length += penc_npy_prefix_size(bytes);
    if (length > PENC_NPY_MAX_HEADER) {
        penc_npy_fail_at(error, POSENC_UNSUPPORTED, "header length", "be at most 1 MiB", 8);
        penc_fail_limit(error, "longest header", PENC_NPY_MAX_HEADER);
        return POSENC_UNSUPPORTED;
    }
    *size = (size_t)length;
    return POSENC_OK;
}

posenc_status penc_npy_header_parse(const unsigned char *bytes, size_t count, posenc_npy_info *info,
                                    posenc_error *error) {
    posenc_npy_info read = {0};
    size_t size, shape = 0;
    posenc_status status = penc_npy_header_size(bytes, count, &size, error);
    if (status)
        return status;
    if (size > count)
        return penc_npy_fail_at(error, POSENC_FORMAT, "file", "hold the whole header", count);
    penc_npy_cursor cursor = {bytes, penc_npy_prefix_size(bytes), size, error};
    status = penc_npy_dictionary(&cursor, &read, &shape);
    if (status)
        return status;
    if (!penc_npy_measure(&read, &read.count))
        return penc_npy_fail_at(error, POSENC_OVERFLOW, "shape",
                                "give an array of less than 2^63 bytes", shape);
    read.data_offset = size;
    *info = read;
    return POSENC_OK;
}

int penc_npy_measure(const posenc_npy_info *info, uint64_t *count) {
    /* A file's offsets end at 2^63 - 1, and the header comes first. */
    uint64_t limit = (INT64_MAX - PENC_NPY_MAX_HEADER) / posenc_dtype_bytes(info->dtype);
    uint64_t product = 1;
    int empty = 0;
    for (size_t i = 0; i < info->rank; i++) {
        if (info->shape[i] == 0)
            empty = 1;
        else if (product > limit / info->shape[i])
            return 0;
        else
            product *= info->shape[i];
    }
    *count = empty ? 0 : product;
    return 1;
}

static const char *penc_npy_dtype_text(posenc_dtype dtype) {
    size_t i = 0;
    while (penc_npy_dtypes[i].dtype != dtype)
        i++;
    return penc_npy_dtypes[i].text;
}

/* Writes the dictionary, with the spaces that NumPy adds so that the axis along which a file may
 * grow (the slowest) can grow to 21 digits in place. Returns the length. */
static size_t penc_npy_write_dictionary(const posenc_npy_info *info, char *to, size_t capacity) {
    int length = snprintf(to, capacity, "{'descr': '<%s', 'fortran_order': %s, 'shape': (",
                          penc_npy_dtype_text(info->dtype), info->fortran_order ? "True" : "False");
    int spare = 0;
    for (size_t i = 0; i < info->rank; i++) {
        int digits = snprintf(to + length, capacity - (size_t)length, "%zu", info->shape[i]);
        if (i == (info->fortran_order ? info->rank - 1 : 0))
            spare = 21 - digits;
        length += digits;
        const char *separator = info->rank == 1 ? "," : i + 1 < info->rank ? ", " : "";
        length += snprintf(to + length, capacity - (size_t)length, "%s", separator);
    }
    length += snprintf(to + length, capacity - (size_t)length, "), }%*s", spare, "");
    return (size_t)length;
}

posenc_status penc_npy_header_make(const posenc_npy_info *info, unsigned char *to, size_t *size,
                                   posenc_error *error) {
    /* 32 sizes of 20 digits, two bytes between them, 60 around: everything fits. */
    char text[PENC_NPY_MADE - 64];
    uint64_t count;
    if (!posenc_dtype_bytes(info->dtype))
        return penc_fail_integer(error, "dtype", info->dtype, "be a posenc_dtype");
    if (info->rank > POSENC_NPY_MAX_RANK) {
        penc_fail_size(error, "rank", info->rank, "be at most POSENC_NPY_MAX_RANK");
        penc_fail_limit(error, "POSENC_NPY_MAX_RANK", POSENC_NPY_MAX_RANK);
        return POSENC_OUT_OF_RANGE;
    }
    if (!penc_npy_measure(info, &count))
        return penc_fail(error, POSENC_OVERFLOW, "shape", "give an array of less than 2^63 bytes");
    size_t used = 10 + penc_npy_write_dictionary(info, text, sizeof text);
    *size = (used + 1 + 64) / 64 * 64; /* at least one space and the newline, as NumPy does it */
    memset(to, ' ', *size);
    memcpy(to, penc_npy_magic, sizeof penc_npy_magic);
    to[6] = 1;
    to[7] = 0;
    to[8] = (unsigned char)((*size - 10) & 255);
    to[9] = (unsigned char)((*size - 10) >> 8);
    memcpy(to + 10, text, used - 10);
    to[*size - 1] = '\n';
    return POSENC_OK;
}
