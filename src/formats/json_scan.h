/* JSON as a row of tokens, from a file in windows or from memory; nothing is allocated, so that headers of 100 MB
 * take no memory. The grammar is that of RFC 8259 plus what Python writes: NaN, Infinity, -Infinity. Texts must be
 * UTF-8 (escapes included: no lone surrogates), keys without NUL.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_JSON_SCAN_H
#define PENC_JSON_SCAN_H

#include "formats/input_file.h"

enum { PENC_JSON_MAX_DEPTH = 64 };

typedef enum penc_json_token {
    PENC_JSON_END, /* the text is over */
    PENC_JSON_OBJECT,
    PENC_JSON_OBJECT_END,
    PENC_JSON_ARRAY,
    PENC_JSON_ARRAY_END,
    PENC_JSON_KEY,
    PENC_JSON_STRING,
    PENC_JSON_INTEGER, /* a number without fraction and exponent */
    PENC_JSON_REAL,    /* any other number, NaN, Infinity, -Infinity */
    PENC_JSON_TRUE,
    PENC_JSON_FALSE,
    PENC_JSON_NULL
} penc_json_token;

typedef struct penc_json {
    penc_window window; /* its input is NULL for a text in memory */
    uint64_t at, end;   /* the next byte; where the text ends */
    uint64_t place;     /* where the last token begins */

    /* The last key or string without quotes and escapes, or the last number as it stands, with a terminating
     * NUL. `length` is that of the whole, even where `capacity` - 1 bytes of it are all that is kept. */
    char *text;
    size_t capacity, length;

    int depth;        /* objects and arrays that are open */
    uint64_t objects; /* bit i: the one at depth i is an object */
    int expects;
    posenc_status status; /* of the reading so far */
    posenc_error *error;
} penc_json;

/* A scanner of `length` bytes in memory. `text` has room for `capacity` >= 32 bytes. */
penc_json penc_json_of_text(const char *json, size_t length, char *text, size_t capacity,
                            posenc_error *error);

/* A scanner of bytes `begin` ... `end` - 1 of a file, through a window in the caller's memory. */
penc_json penc_json_of_file(const penc_input *input, uint64_t begin, uint64_t end,
                            unsigned char *window, size_t window_bytes, char *text, size_t capacity,
                            posenc_error *error);

/* Makes a new scanner begin inside an object, at the first byte of a key. */
void penc_json_begin_at_key(penc_json *json);

posenc_status penc_json_next(penc_json *json, penc_json_token *token);

/* Moves behind the rest of the value of which `token` is the first one. */
posenc_status penc_json_skip(penc_json *json, penc_json_token token);

/* Fails for what stands at `place` of the text. */
posenc_status penc_json_fail(penc_json *json, posenc_status status, const char *argument,
                             const char *must, uint64_t place);

#endif
