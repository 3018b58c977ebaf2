/* The scanner of JSON. SPDX-License-Identifier: MIT */
#include "formats/json_scan.h"

#include "base/fail.h"
#include "base/utf8.h"

#include <string.h>

/* What may come next. */
enum {
    PENC_EXPECT_VALUE,
    PENC_EXPECT_VALUE_OR_CLOSE, /* after [ */
    PENC_EXPECT_KEY,            /* after a comma in an object */
    PENC_EXPECT_KEY_OR_CLOSE,   /* after { */
    PENC_EXPECT_COLON,
    PENC_EXPECT_COMMA_OR_CLOSE,
    PENC_EXPECT_END
};

penc_json penc_json_of_text(const char *json, size_t length, char *text, size_t capacity,
                            posenc_error *error) {
    penc_json made = {.text = text, .capacity = capacity, .end = length, .error = error};
    made.window.bytes = (const unsigned char *)json;
    made.window.count = length;
    return made;
}

penc_json penc_json_of_file(const penc_input *input, uint64_t begin, uint64_t end,
                            unsigned char *window, size_t window_bytes, char *text, size_t capacity,
                            posenc_error *error) {
    penc_json made = {.text = text, .capacity = capacity, .at = begin, .end = end, .error = error};
    made.window = penc_window_of(input, window, window_bytes);
    return made;
}

void penc_json_begin_at_key(penc_json *json) {
    json->depth = 1;
    json->objects = 1;
    json->expects = PENC_EXPECT_KEY;
}

posenc_status penc_json_fail(penc_json *json, posenc_status status, const char *argument,
                             const char *must, uint64_t place) {
    if (json->status)
        return json->status;
    json->status = penc_fail(json->error, status, argument, must);
    penc_fail_place(json->error, "byte", (int64_t)place);
    if (json->window.input)
        penc_fail_file(json->error, json->window.input->path);
    return json->status;
}

static posenc_status penc_json_bad(penc_json *json, const char *must) {
    return penc_json_fail(json, POSENC_FORMAT, "JSON", must, json->at);
}

/* The next byte, -1 at the end of the text and where reading failed. */
static inline int penc_json_peek(penc_json *json) {
    const unsigned char *byte;
    if (json->at >= json->end || json->status)
        return -1;
    if (json->at - json->window.place < json->window.count)
        return json->window.bytes[json->at - json->window.place];
    json->status = penc_window_at(&json->window, json->at, 1, &byte, json->error);
    return json->status ? -1 : *byte;
}

/* The next byte that is no white space. */
static int penc_json_peek_word(penc_json *json) {
    int next = penc_json_peek(json);
    while (next == ' ' || next == '\t' || next == '\n' || next == '\r') {
        json->at++;
        next = penc_json_peek(json);
    }
    return next;
}

/* ---- Texts ---- */

static void penc_json_keep(penc_json *json, int byte) {
    if (json->length + 1 < json->capacity)
        json->text[json->length] = (char)byte;
    json->length++;
}

/* Keeps the byte that `peek` has told and moves on. */
static void penc_json_take(penc_json *json, int byte) {
    penc_json_keep(json, byte);
    json->at++;
}

static void penc_json_end_text(penc_json *json) {
    size_t last = json->capacity - 1;
    json->text[json->length < last ? json->length : last] = '\0';
}

static void penc_json_keep_character(penc_json *json, uint32_t code) {
    if (code < 0x80) {
        penc_json_keep(json, (int)code);
    } else if (code < 0x800) {
        penc_json_keep(json, (int)(0xc0 | code >> 6));
        penc_json_keep(json, (int)(0x80 | (code & 0x3f)));
    } else if (code < 0x10000) {
        penc_json_keep(json, (int)(0xe0 | code >> 12));
        penc_json_keep(json, (int)(0x80 | (code >> 6 & 0x3f)));
        penc_json_keep(json, (int)(0x80 | (code & 0x3f)));
    } else {
        penc_json_keep(json, (int)(0xf0 | code >> 18));
        penc_json_keep(json, (int)(0x80 | (code >> 12 & 0x3f)));
        penc_json_keep(json, (int)(0x80 | (code >> 6 & 0x3f)));
        penc_json_keep(json, (int)(0x80 | (code & 0x3f)));
    }
}

static int penc_json_hex_digit(int byte) {
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    int letter = byte | 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* The four digits after \u. */
static posenc_status penc_json_hex(penc_json *json, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = penc_json_hex_digit(penc_json_peek(json));
        if (digit < 0)
            return penc_json_bad(json, "have four hexadecimal digits after \\u");
        *code = *code << 4 | (uint32_t)digit;
        json->at++;
    }
    return POSENC_OK;
}

/* What follows \u: a character, or the two halves of one beyond U+FFFF. */
static posenc_status penc_json_unicode(penc_json *json, int is_key) {
    static const char pair[] = "have surrogates in pairs only";
    uint32_t code, low;
    posenc_status status = penc_json_hex(json, &code);
    if (status)
        return status;
    if (code == 0 && is_key)
        return penc_json_bad(json, "have no NUL in a key");
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || penc_json_peek(json) != '\\')
            return penc_json_bad(json, pair);
        json->at++;
        if (penc_json_peek(json) != 'u')
            return penc_json_bad(json, pair);
        json->at++;
        status = penc_json_hex(json, &low);
        if (status)
            return status;
        if (low < 0xdc00 || low >= 0xe000)
            return penc_json_bad(json, pair);
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    penc_json_keep_character(json, code);
    return POSENC_OK;
}

static posenc_status penc_json_escape(penc_json *json, int is_key) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    json->at++;
    int next = penc_json_peek(json);
    const char *letter = next > 0 ? strchr(letters, next) : NULL;
    if (next != 'u' && !letter)
        return penc_json_bad(json, "have one of \"\\/bfnrtu after \\");
    json->at++;
    if (next == 'u')
        return penc_json_unicode(json, is_key);
    penc_json_keep(json, meanings[letter - letters]);
    return POSENC_OK;
}

/* A character beyond ASCII. */
static posenc_status penc_json_utf8(penc_json *json) {
    const unsigned char *bytes;
    uint64_t left = json->end - json->at;
    size_t count = left < 4 ? (size_t)left : 4;
    if (json->window.input) {
        json->status = penc_window_at(&json->window, json->at, count, &bytes, json->error);
        if (json->status)
            return json->status;
    } else {
        bytes = json->window.bytes + json->at;
    }
    size_t step = penc_utf8_step(bytes, count);
    if (!step)
        return penc_json_bad(json, "be UTF-8");
    for (size_t i = 0; i < step; i++)
        penc_json_keep(json, bytes[i]);
    json->at += step;
    return POSENC_OK;
}

/* The rest of a key or string after its first quote. */
static posenc_status penc_json_string(penc_json *json, int is_key) {
    posenc_status status = POSENC_OK;
    json->length = 0;
    json->at++;
    while (!status) {
        int next = penc_json_peek(json);
        if (next == '"')
            break;
        if (next < ' ')
            status = penc_json_bad(json, next < 0 ? "go on: a string has no end"
                                                  : "have no control characters in strings");
        else if (next == '\\')
            status = penc_json_escape(json, is_key);
        else if (next >= 0x80)
            status = penc_json_utf8(json);
        else
            penc_json_take(json, next);
    }
    json->at += !status;
    penc_json_end_text(json);
    return status;
}

/* ---- Words and numbers ---- */

static posenc_status penc_json_no_value(penc_json *json) {
    return penc_json_fail(
        json, POSENC_FORMAT, "JSON",
        "have a value here: {, [, a string, a number, true, false, null, NaN or Infinity",
        json->place);
}

static posenc_status penc_json_word(penc_json *json, const char *word) {
    for (; *word; word++, json->at++) {
        if (penc_json_peek(json) != *word)
            return penc_json_no_value(json);
        penc_json_keep(json, *word);
    }
    penc_json_end_text(json);
    return POSENC_OK;
}

static int penc_json_is_digit(int byte) {
    return byte >= '0' && byte <= '9';
}

/* One digit or more. */
static posenc_status penc_json_digits(penc_json *json) {
    int next = penc_json_peek(json);
    if (!penc_json_is_digit(next))
        return penc_json_bad(json, "have a digit here");
    for (; penc_json_is_digit(next); next = penc_json_peek(json))
        penc_json_take(json, next);
    return json->status;
}

static posenc_status penc_json_exponent(penc_json *json) {
    penc_json_take(json, 'e');
    int sign = penc_json_peek(json);
    if (sign == '+' || sign == '-')
        penc_json_take(json, sign);
    return penc_json_digits(json);
}

static posenc_status penc_json_number(penc_json *json, penc_json_token *token) {
    *token = PENC_JSON_INTEGER;
    json->length = 0;
    if (penc_json_peek(json) == '-')
        penc_json_take(json, '-');
    if (penc_json_peek(json) == 'I') {
        *token = PENC_JSON_REAL;
        return penc_json_word(json, "Infinity");
    }
    int first = penc_json_peek(json);
    posenc_status status = penc_json_digits(json);
    if (!status && first == '0' && json->length > (json->text[0] == '-' ? 2u : 1u))
        status = penc_json_fail(json, POSENC_FORMAT, "JSON", "have no leading zeros", json->place);
    if (!status && penc_json_peek(json) == '.') {
        *token = PENC_JSON_REAL;
        penc_json_take(json, '.');
        status = penc_json_digits(json);
    }
    if (!status && (penc_json_peek(json) | 0x20) == 'e') {
        *token = PENC_JSON_REAL;
        status = penc_json_exponent(json);
    }
    penc_json_end_text(json);
    if (!status && json->length >= json->capacity)
        status =
            penc_json_fail(json, POSENC_UNSUPPORTED, "JSON", "have shorter numbers", json->place);
    return status;
}

/* ---- Structure ---- */

static int penc_json_in_object(const penc_json *json) {
    return (int)(json->objects >> (json->depth - 1) & 1);
}

static void penc_json_after_value(penc_json *json) {
    json->expects = json->depth ? PENC_EXPECT_COMMA_OR_CLOSE : PENC_EXPECT_END;
}

static posenc_status penc_json_open(penc_json *json, int is_object) {
    if (json->depth == PENC_JSON_MAX_DEPTH)
        return penc_json_fail(json, POSENC_UNSUPPORTED, "JSON", "be nested at most 64 deep",
                              json->at);
    uint64_t bit = UINT64_C(1) << json->depth;
    json->objects = is_object ? json->objects | bit : json->objects & ~bit;
    json->depth++;
    json->at++;
    json->expects = is_object ? PENC_EXPECT_KEY_OR_CLOSE : PENC_EXPECT_VALUE_OR_CLOSE;
    return POSENC_OK;
}

static posenc_status penc_json_close(penc_json *json, penc_json_token *token) {
    *token = penc_json_in_object(json) ? PENC_JSON_OBJECT_END : PENC_JSON_ARRAY_END;
    json->at++;
    json->depth--;
    penc_json_after_value(json);
    return POSENC_OK;
}

static posenc_status penc_json_value(penc_json *json, int next, penc_json_token *token) {
    json->length = 0;
    if (next == '{' || next == '[') {
        *token = next == '{' ? PENC_JSON_OBJECT : PENC_JSON_ARRAY;
        return penc_json_open(json, next == '{');
    }
    penc_json_after_value(json);
    switch (next) {
    case '"':
        *token = PENC_JSON_STRING;
        return penc_json_string(json, 0);
    case 't':
        *token = PENC_JSON_TRUE;
        return penc_json_word(json, "true");
    case 'f':
        *token = PENC_JSON_FALSE;
        return penc_json_word(json, "false");
    case 'n':
        *token = PENC_JSON_NULL;
        return penc_json_word(json, "null");
    case 'N':
        *token = PENC_JSON_REAL;
        return penc_json_word(json, "NaN");
    case 'I':
        *token = PENC_JSON_REAL;
        return penc_json_word(json, "Infinity");
    default:
        if (next == '-' || penc_json_is_digit(next))
            return penc_json_number(json, token);
        return penc_json_no_value(json);
    }
}

static posenc_status penc_json_key(penc_json *json, int next, penc_json_token *token) {
    if (next != '"')
        return penc_json_bad(json, "have a key in double quotes here");
    *token = PENC_JSON_KEY;
    json->expects = PENC_EXPECT_COLON;
    return penc_json_string(json, 1);
}

posenc_status penc_json_next(penc_json *json, penc_json_token *token) {
    int next = penc_json_peek_word(json);
    if (json->expects == PENC_EXPECT_COLON) {
        if (next != ':')
            return penc_json_bad(json, "have a colon after a key");
        json->at++;
        json->expects = PENC_EXPECT_VALUE;
        next = penc_json_peek_word(json);
    }
    int closing = json->depth && next == (penc_json_in_object(json) ? '}' : ']');
    if (json->expects == PENC_EXPECT_COMMA_OR_CLOSE && next == ',') {
        json->at++;
        json->expects = penc_json_in_object(json) ? PENC_EXPECT_KEY : PENC_EXPECT_VALUE;
        next = penc_json_peek_word(json);
        closing = 0;
    }
    json->place = json->at;
    switch (json->expects) {
    case PENC_EXPECT_KEY_OR_CLOSE:
        return closing ? penc_json_close(json, token) : penc_json_key(json, next, token);
    case PENC_EXPECT_KEY:
        return penc_json_key(json, next, token);
    case PENC_EXPECT_COMMA_OR_CLOSE:
        return closing ? penc_json_close(json, token)
                       : penc_json_bad(json, "have a comma or a closing bracket after a value");
    case PENC_EXPECT_END:
        *token = PENC_JSON_END;
        return next == -1 && !json->status ? POSENC_OK : penc_json_bad(json, "end after its value");
    case PENC_EXPECT_VALUE_OR_CLOSE:
        if (closing)
            return penc_json_close(json, token);
        break;
    default:
        break;
    }
    return penc_json_value(json, next, token);
}

posenc_status penc_json_skip(penc_json *json, penc_json_token token) {
    posenc_status status = POSENC_OK;
    if (token != PENC_JSON_OBJECT && token != PENC_JSON_ARRAY)
        return status;
    for (int depth = json->depth; json->depth >= depth && !status;)
        status = penc_json_next(json, &token);
    return status;
}
