/* A new file made of pieces of an old one: bytes copied, bytes given, rows in another order. It knows no format.
 *
 * The new file is written beside its target without a name, flushed to the disk, and takes the target's name only
 * when whole (output_file.h); so the target may be the old file itself, under any of its names, which keeps its
 * bytes for whoever has it open. Whatever fails leaves both files as they were and nothing beside them.
 * Memory: less than 16 MiB whatever the sizes. Bytes that stay are copied by the kernel where it can
 * (copy_file_range), moved rows are read in windows and written in their new order without being copied in memory.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_FILE_REWRITE_H
#define PENC_FILE_REWRITE_H

#include "formats/input_file.h"

typedef enum penc_piece_kind {
    PENC_PIECE_COPY,  /* `bytes` bytes of the old file from `place` on */
    PENC_PIECE_BYTES, /* `bytes` bytes at `data` */
    PENC_PIECE_ROWS   /* the same bytes of the old file, their rows in another order */
} penc_piece_kind;

typedef struct penc_piece {
    penc_piece_kind kind;
    uint64_t place, bytes; /* place: not of BYTES. A piece of 0 bytes is allowed */
    const void *data;      /* BYTES: the caller's, until the rewriting is over */

    /* ROWS: `bytes` is a multiple of row_bytes > 0. Row r of the new piece is row source_row(context, r) < rows of
     * the old one. It need be no permutation and is asked more than once for a row; rows that come from nearby are
     * fast, as those within a head. */
    uint64_t row_bytes;
    uint64_t (*source_row)(const void *context, uint64_t row);
    const void *context;
} penc_piece;

/* Called now and then, from the thread that rewrites, with bytes written so far and of the whole new file. */
typedef struct penc_rewrite_progress {
    void (*report)(void *context, uint64_t done, uint64_t total);
    void *context;
} penc_rewrite_progress;

/* Writes the pieces one after the other into the file `target`, which gets the mode of the old target or, where there
 * is none, of `source`. `progress` may be NULL. Errors name the file: the source where reading fails or where it is
 * shorter than the pieces say (FORMAT), else the target. */
posenc_status penc_file_rewrite(const penc_input *source, const char *target,
                                const penc_piece *pieces, size_t count,
                                const penc_rewrite_progress *progress, posenc_error *error);

#endif
