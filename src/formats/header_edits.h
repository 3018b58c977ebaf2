/* Building edits of a header. SPDX-License-Identifier: MIT */
#ifndef PENC_HEADER_EDITS_H
#define PENC_HEADER_EDITS_H

#include "formats/header_text.h"

/* Adds an edit and returns its `count` bytes, to be filled in; NULL: no memory. */
unsigned char *penc_header_edits_add(penc_header_edits *edits, uint64_t place, uint64_t removed,
                                     size_t count);

posenc_status penc_header_no_memory(posenc_error *error);

/* Takes the spaces off a text's end. */
void penc_header_trim(char *text);

#endif
