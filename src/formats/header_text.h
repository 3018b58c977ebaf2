/* A text of our own in the metadata of a file of tensors: put in and taken out, so that the file is byte for byte the
 * old one afterwards, whatever its header looks like. The data move by a multiple of 4096 bytes and of their alignment,
 * so that file systems can copy or share them as they lie.
 *
 * safetensors: the text goes into __metadata__, behind the brace, with spaces up to such a multiple; where there is no
 * such object it is made, and two spaces behind its brace say so (one: it was null). GGUF: a string key behind all
 * others, its text filled with spaces.
 * A file that another program has written anew since, texts and all, loses its text all the same, but need not become
 * what it was.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_HEADER_TEXT_H
#define PENC_HEADER_TEXT_H

#include "formats/gguf.h"
#include "formats/safetensors.h"

/* `removed` bytes from `place` on, of the old file, give way to `count` bytes. */
typedef struct penc_header_edit {
    uint64_t place, removed;
    unsigned char *bytes; /* malloced */
    size_t count;
} penc_header_edit;

enum { PENC_MAX_HEADER_EDITS = 2, PENC_MAX_HEADER_TEXT = 256, PENC_HEADER_UNIT = 4096 };

/* In the order of their places. Starts as {0}. */
typedef struct penc_header_edits {
    penc_header_edit list[PENC_MAX_HEADER_EDITS];
    size_t count;
} penc_header_edits;

void penc_header_edits_free(penc_header_edits *edits);

/* The text under `key`, without spaces at its end; *found is 0 if there is none. Fails with FORMAT where it is no text
 * of less than PENC_MAX_HEADER_TEXT bytes. */
posenc_status penc_gguf_read_text(const penc_gguf *gguf, const char *key,
                                  char text[PENC_MAX_HEADER_TEXT], int *found, posenc_error *error);
posenc_status penc_safetensors_read_text(const penc_safetensors *safetensors, const char *key,
                                         char text[PENC_MAX_HEADER_TEXT], int *found,
                                         posenc_error *error);

/* Edits that put a text in; the file has none under that key. Key and text are printable ASCII without quotes and
 * backslashes. Fail with UNSUPPORTED where the header would get too long. */
posenc_status penc_gguf_put_text(const penc_gguf *gguf, const char *key, const char *text,
                                 penc_header_edits *edits, posenc_error *error);
posenc_status penc_safetensors_put_text(const penc_safetensors *safetensors, const char *key,
                                        const char *text, penc_header_edits *edits,
                                        posenc_error *error);

/* Edits that take it out again; the file has it. */
posenc_status penc_gguf_drop_text(const penc_gguf *gguf, const char *key, penc_header_edits *edits,
                                  posenc_error *error);
posenc_status penc_safetensors_drop_text(const penc_safetensors *safetensors, const char *key,
                                         penc_header_edits *edits, posenc_error *error);

#endif
