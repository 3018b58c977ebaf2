/* Whether two tensors have the same rows, in which order. SPDX-License-Identifier: MIT */
#ifndef PENC_ROW_MATCH_H
#define PENC_ROW_MATCH_H

#include "checkpoint/head_rows.h"
#include "formats/tensor_source.h"

/* More rows than that are not looked through: 24 bytes of memory each. */
enum { PENC_MATCH_MAX_ROWS = 1 << 20, PENC_MATCH_WINDOW = 1 << 20 };

/* A tensor cut into rows. */
typedef struct penc_row_list {
    const penc_tensor_source *file;
    uint64_t offset, rows, row_bytes;
} penc_row_list;

/* Memory for one match after the other. Starts as {0}. */
typedef struct penc_match_room {
    unsigned char *windows[2];
    uint64_t *hashes[2]; /* of A's rows, of B's */
    uint32_t *order[2];  /* rows by hash; order[0] becomes the row of A that each of B is */
    uint64_t rows;
} penc_match_room;

posenc_status penc_match_room_make(penc_match_room *room, posenc_error *error);
void penc_match_room_free(penc_match_room *room);

/* What was found. */
typedef struct penc_row_match {
    int same;  /* byte for byte */
    int order; /* the same rows in the order of room->order[0], verified */
    uint64_t moved;
    /* An order of pairings: */
    int named;
    posenc_pairing to;
    size_t heads, rotary_dim;
    uint64_t first, stride;
} penc_row_match;

/* Compares bytes only: sets match->same. */
posenc_status penc_rows_compare(const penc_row_list *a, const penc_row_list *b,
                                penc_match_room *room, int *same, posenc_error *error);

/* Looks for the order of B's rows; a and b have the same rows and row_bytes. `known` is an order that rows may have
 * moved by, one way or the other, `period` rows at a time; NULL: none is known. */
posenc_status penc_rows_match(const penc_row_list *a, const penc_row_list *b,
                              const penc_row_order *known, uint64_t period, penc_match_room *room,
                              penc_row_match *match, posenc_error *error);

#endif
