/* What both formats share. SPDX-License-Identifier: MIT */
#include "formats/header_edits.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

void penc_header_edits_free(penc_header_edits *edits) {
    for (size_t i = 0; i < edits->count; i++)
        free(edits->list[i].bytes);
    memset(edits, 0, sizeof *edits);
}

unsigned char *penc_header_edits_add(penc_header_edits *edits, uint64_t place, uint64_t removed,
                                     size_t count) {
    penc_header_edit *edit = &edits->list[edits->count];
    *edit = (penc_header_edit){place, removed, malloc(count + 1), count};
    edits->count += edit->bytes != NULL;
    return edit->bytes;
}

void penc_header_trim(char *text) {
    size_t length = strlen(text);
    while (length && text[length - 1] == ' ')
        text[--length] = '\0';
}

posenc_status penc_header_no_memory(posenc_error *error) {
    return penc_fail(error, POSENC_OUT_OF_MEMORY, "header", "fit into memory");
}
