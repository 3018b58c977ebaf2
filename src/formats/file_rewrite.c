/* A new file made of pieces of an old one. SPDX-License-Identifier: MIT */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* posix_fadvise */
#endif
#include "formats/file_rewrite.h"

#include "base/fail.h"
#include "formats/rewriter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Adds up the pieces and checks that the old file has what they want. */
static posenc_status penc_pieces_measure(const penc_input *source, const penc_piece *pieces,
                                         size_t count, uint64_t *total, posenc_error *error) {
    *total = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = pieces[i].bytes, place = pieces[i].place;
        if (pieces[i].kind != PENC_PIECE_BYTES &&
            (place > source->size || bytes > source->size - place))
            return penc_input_short(source, source->size,
                                    bytes > UINT64_MAX - place ? UINT64_MAX : place + bytes, error);
        if (bytes > INT64_MAX - *total) {
            penc_fail(error, POSENC_OVERFLOW, "size of the new file", "fit into 63 bits");
            penc_fail_file(error, source->path);
            return POSENC_OVERFLOW;
        }
        *total += bytes;
    }
    return POSENC_OK;
}

static posenc_status penc_rewrite_bytes(penc_rewriter *rewriter, const penc_piece *piece) {
    const unsigned char *from = piece->data;
    posenc_status status = POSENC_OK;
    for (uint64_t done = 0; done < piece->bytes && !status;) {
        size_t step = piece->bytes - done < PENC_REWRITE_STEP ? (size_t)(piece->bytes - done)
                                                              : PENC_REWRITE_STEP;
        int os_error = penc_output_write(&rewriter->output, from + done, step, rewriter->place);
        status =
            os_error ? penc_rewrite_fail(rewriter, os_error) : penc_rewrite_advance(rewriter, step);
        done += step;
    }
    return status;
}

static posenc_status penc_rewrite_piece(penc_rewriter *rewriter, const penc_piece *piece) {
    if (piece->kind == PENC_PIECE_BYTES)
        return penc_rewrite_bytes(rewriter, piece);
    if (piece->kind == PENC_PIECE_COPY)
        return penc_rewrite_copy(rewriter, piece->place, piece->bytes);
    return penc_rewrite_rows(rewriter, piece);
}

/* A new file gets the source's mode: it may hold the same secrets. */
static posenc_status penc_rewrite_open(penc_rewriter *rewriter) {
    static const char must[] = "name a file that can be written";
    struct stat old = {0};
    int os_error = fstat(rewriter->source->file, &old) != 0 ? errno : 0;
    rewriter->is_sparse = !os_error && (uint64_t)old.st_blocks < (uint64_t)old.st_size / 512;
    if (!os_error)
        os_error = penc_output_find(rewriter->target, &rewriter->output);
    if (!os_error && rewriter->output.is_special) {
        penc_fail(rewriter->error, POSENC_UNSUPPORTED, "path",
                  "name a regular file or a new one, not a folder, pipe or device");
        penc_fail_file(rewriter->error, rewriter->target);
        return POSENC_UNSUPPORTED;
    }
    if (!os_error)
        os_error = penc_output_open(&rewriter->output, old.st_mode & 0777);
    if (!os_error)
        return POSENC_OK;
    penc_fail_system(rewriter->error, os_error, "path", must);
    penc_fail_file(rewriter->error, rewriter->target);
    return POSENC_IO;
}

/* A hole at the end is not written. */
static posenc_status penc_rewrite_finish(penc_rewriter *rewriter) {
    posenc_status status = penc_input_check_same(rewriter->source, rewriter->error);
    if (status)
        return status;
    if (rewriter->is_sparse && ftruncate(rewriter->output.file, (off_t)rewriter->total) != 0)
        return penc_rewrite_fail(rewriter, errno);
    int os_error = penc_output_commit(&rewriter->output);
    return os_error ? penc_rewrite_fail(rewriter, os_error) : POSENC_OK;
}

static posenc_status penc_rewrite_all(penc_rewriter *rewriter, const penc_piece *pieces,
                                      size_t count) {
    posenc_status status = penc_rewrite_open(rewriter);
#if defined(POSIX_FADV_SEQUENTIAL)
    (void)posix_fadvise(rewriter->source->file, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
    for (size_t i = 0; i < count && !status; i++)
        status = penc_rewrite_piece(rewriter, &pieces[i]);
    return status ? status : penc_rewrite_finish(rewriter);
}

posenc_status penc_file_rewrite(const penc_input *source, const char *target,
                                const penc_piece *pieces, size_t count,
                                const penc_rewrite_progress *progress, posenc_error *error) {
    penc_rewriter rewriter = {
        .source = source, .target = target, .progress = progress, .error = error};
    rewriter.output.file = rewriter.output.folder = -1;
    posenc_status status = penc_pieces_measure(source, pieces, count, &rewriter.total, error);
    if (status)
        return status;
    size_t places = PENC_REWRITE_PARTS * sizeof *rewriter.parts;
    unsigned char *memory = malloc(places + PENC_REWRITE_WINDOW);
    if (!memory)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "file",
                         "fit into memory in windows of 8 MiB");
    rewriter.parts = (void *)memory;
    rewriter.window = memory + places;
    status = penc_rewrite_all(&rewriter, pieces, count);
    penc_output_close(&rewriter.output);
    free(memory);
    return status;
}
