/* The inside of a rewriting at work: file_rewrite.h. SPDX-License-Identifier: MIT */
#ifndef PENC_REWRITER_H
#define PENC_REWRITER_H

#include "formats/file_rewrite.h"
#include "formats/output_file.h"

#include <sys/uio.h>

enum {
    PENC_REWRITE_STEP = 8 << 20, /* what the kernel is asked to copy at once */
    /* When the disk is told to begin. Each time may wait for the file system's journal, so not too often. */
    PENC_REWRITE_WRITE_BACK = 32 << 20,
    PENC_REWRITE_PAGE = 4096,
    PENC_REWRITE_WINDOW = 8 << 20, /* memory for rows: whole heads of most models */
    PENC_REWRITE_BUFFER =
        1 << 20, /* the part of it for bytes that the kernel cannot copy: stays in cache */
    PENC_REWRITE_PARTS = 1024 /* places that one call gathers: Linux' limit */
};

typedef struct penc_rewriter {
    const penc_input *source;
    const char *target; /* as the caller named it, for errors */
    const penc_rewrite_progress *progress;
    posenc_error *error;
    penc_output output;
    uint64_t place;        /* of the new file: where the next byte goes */
    uint64_t written_back; /* up to here the system was told to write to the disk */
    uint64_t total;
    int is_sparse;      /* the old file has holes: they are looked for */
    int no_kernel_copy; /* copy_file_range has failed once */
    unsigned char *window;
    struct iovec *parts;
} penc_rewriter;

/* Each writes where the new file stands and moves on. */
posenc_status penc_rewrite_parts(penc_rewriter *rewriter, size_t count); /* changes `parts` */
posenc_status penc_rewrite_copy(penc_rewriter *rewriter, uint64_t place, uint64_t bytes);
posenc_status penc_rewrite_rows(penc_rewriter *rewriter, const penc_piece *piece);

/* Moves on over bytes that are written, or need not be, as those of holes. */
posenc_status penc_rewrite_advance(penc_rewriter *rewriter, uint64_t bytes);

/* How many of the bytes from `place` of the old file on are a hole, before the first that is none. */
uint64_t penc_rewrite_hole(const penc_rewriter *rewriter, uint64_t place, uint64_t bytes);

/* The target cannot be written. */
posenc_status penc_rewrite_fail(const penc_rewriter *rewriter, int os_error);

#endif
