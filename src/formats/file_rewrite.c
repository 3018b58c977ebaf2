/* A new file made of pieces of an old one. SPDX-License-Identifier: MIT */
#include "formats/file_rewrite.h"

#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static posenc_status penc_put(int file, const char *target, const unsigned char *from,
                              uint64_t bytes, posenc_error *error) {
    while (bytes) {
        ssize_t moved = write(file, from, bytes < PENC_FILE_STEP ? bytes : PENC_FILE_STEP);
        if (moved < 0 && errno != EINTR) {
            penc_fail_system(error, errno, "file", "be writable");
            penc_fail_file(error, target);
            return POSENC_IO;
        }
        if (moved > 0) {
            from += moved;
            bytes -= (uint64_t)moved;
        }
    }
    return POSENC_OK;
}

static posenc_status penc_copy(const penc_input *source, int file, const char *target,
                               uint64_t place, uint64_t bytes, unsigned char *buffer,
                               posenc_error *error) {
    posenc_status status = POSENC_OK;
    while (bytes && !status) {
        size_t step = bytes < 65536 ? (size_t)bytes : 65536;
        status = penc_input_read(source, place, buffer, step, error);
        if (!status)
            status = penc_put(file, target, buffer, step, error);
        place += step;
        bytes -= step;
    }
    return status;
}

static posenc_status penc_piece_put(const penc_input *source, int file, const char *target,
                                    const penc_piece *piece, unsigned char *buffer,
                                    posenc_error *error) {
    if (piece->kind == PENC_PIECE_BYTES)
        return penc_put(file, target, piece->data, piece->bytes, error);
    if (piece->kind == PENC_PIECE_COPY)
        return penc_copy(source, file, target, piece->place, piece->bytes, buffer, error);
    posenc_status status = POSENC_OK;
    for (uint64_t row = 0; row < piece->bytes / piece->row_bytes && !status; row++)
        status = penc_copy(source, file, target,
                           piece->place + piece->source_row(piece->context, row) * piece->row_bytes,
                           piece->row_bytes, buffer, error);
    return status;
}

posenc_status penc_file_rewrite(const penc_input *source, const char *target,
                                const penc_piece *pieces, size_t count,
                                const penc_rewrite_progress *progress, posenc_error *error) {
    static unsigned char buffer[65536];
    char temporary[4096];
    (void)progress;
    snprintf(temporary, sizeof temporary, "%s.posenc-new", target);
    int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    posenc_status status = POSENC_OK;
    if (file < 0)
        return penc_fail_system(error, errno, "path", "name a file that can be written");
    for (size_t i = 0; i < count && !status; i++)
        status = penc_piece_put(source, file, target, &pieces[i], buffer, error);
    (void)close(file);
    if (!status && rename(temporary, target) != 0)
        status = penc_fail_system(error, errno, "path", "name a file that can be written");
    if (status)
        (void)unlink(temporary);
    return status;
}
