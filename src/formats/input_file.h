/* Regular files that are read in pieces by pread: no position, so that threads can share one, and nothing mapped,
 * so that a file that shrinks gives an error and no signal. Every error of these functions names the file.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_INPUT_FILE_H
#define PENC_INPUT_FILE_H

#include "posenc/status.h"

#include <time.h>

#define PENC_FILE_STEP 0x7ffff000u /* what one read or write moves on Linux at most */

typedef struct penc_input {
    int file; /* -1: none is open */
    uint64_t size;
    struct timespec modified; /* when it was opened */
    char *path;
} penc_input;

/* Opens a regular file. On failure *input holds nothing and may be closed all the same. */
posenc_status penc_input_open(const char *path, penc_input *input, posenc_error *error);
void penc_input_close(penc_input *input);

/* Reads exactly `bytes` bytes from `place` on; fails with FORMAT where the file ends before. */
posenc_status penc_input_read(const penc_input *input, uint64_t place, void *to, size_t bytes,
                              posenc_error *error);

/* Fails with IO if the file is no longer the one that was opened, going by its size and time of change. */
posenc_status penc_input_check_same(const penc_input *input, posenc_error *error);

/* The file ends before what it says: its size is `size`, `needed` would do. */
posenc_status penc_input_short(const penc_input *input, uint64_t size, uint64_t needed,
                               posenc_error *error);

/* Fails for what stands at byte `place`. */
posenc_status penc_input_fail(const penc_input *input, posenc_status status, const char *argument,
                              const char *must, uint64_t place, posenc_error *error);

/* The same for a number that stands there. */
posenc_status penc_input_fail_size(const penc_input *input, posenc_status status,
                                   const char *argument, uint64_t value, const char *must,
                                   uint64_t place, posenc_error *error);

/* ---- Reading forward in windows ---- */

/* The part of a file that is at hand, in the caller's memory. */
typedef struct penc_window {
    const penc_input *input;
    unsigned char *memory;
    size_t capacity;
    const unsigned char *bytes; /* what is held: `count` bytes from `place` of the file on */
    size_t count;
    uint64_t place;
} penc_window;

/* An empty window in `capacity` bytes of memory. */
penc_window penc_window_of(const penc_input *input, unsigned char *memory, size_t capacity);

/* Makes `*at` point to the `bytes` <= capacity bytes from `place` on, valid until the next call. */
posenc_status penc_window_at(penc_window *window, uint64_t place, size_t bytes,
                             const unsigned char **at, posenc_error *error);

#endif
