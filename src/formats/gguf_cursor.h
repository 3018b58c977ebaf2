/* Walking along the bytes of a GGUF file. SPDX-License-Identifier: MIT */
#ifndef PENC_GGUF_CURSOR_H
#define PENC_GGUF_CURSOR_H

#include "formats/gguf.h"

typedef struct penc_gguf_cursor {
    penc_window window;
    uint64_t at;     /* the byte that comes next */
    uint64_t end;    /* nothing is read from here on: the file's end or the limit of the metadata */
    int big;         /* byte order */
    int length_size; /* bytes of a length or count: 4 in version 1 */
    posenc_error *error;
} penc_gguf_cursor;

/* Fails for what stands at `place`. */
posenc_status penc_gguf_fail(const penc_gguf_cursor *cursor, posenc_status status,
                             const char *argument, const char *must, uint64_t place);

/* An unsigned number of 1, 2, 4 or 8 bytes. */
posenc_status penc_gguf_take(penc_gguf_cursor *cursor, size_t bytes, uint64_t *number);

/* A length or count, of as many bytes as the version has. */
posenc_status penc_gguf_take_length(penc_gguf_cursor *cursor, uint64_t *length);

/* The number of a value's type; `argument` says whose. */
posenc_status penc_gguf_take_type(penc_gguf_cursor *cursor, const char *argument,
                                  penc_gguf_type *type);

/* A value of this type. Of a string or an array only the head is read: the cursor then stands at its
 * first character or element. */
posenc_status penc_gguf_take_value(penc_gguf_cursor *cursor, penc_gguf_type type,
                                   penc_gguf_value *value);

/* Moves on behind a value that was taken, checking what an array holds. */
posenc_status penc_gguf_skip_value(penc_gguf_cursor *cursor, const penc_gguf_value *value,
                                   int nesting);

/* A name: UTF-8 without NUL, shorter than PENC_NAME_BYTES. `argument` says whose. */
posenc_status penc_gguf_take_name(penc_gguf_cursor *cursor, const char *argument,
                                  char name[PENC_NAME_BYTES], size_t *length);

/* Bytes of a value of this type; 0 where it varies. */
size_t penc_gguf_type_bytes(penc_gguf_type type);

#endif
