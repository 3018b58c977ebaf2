/* Bytes that stay: copied by the kernel, or through a buffer; holes stay holes. SPDX-License-Identifier: MIT */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* copy_file_range, SEEK_DATA, sync_file_range, pwritev */
#endif
#include "base/fail.h"
#include "formats/rewriter.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

posenc_status penc_rewrite_fail(const penc_rewriter *rewriter, int os_error) {
    penc_fail_system(rewriter->error, os_error, "file", "be writable");
    penc_fail_file(rewriter->error, rewriter->target);
    return POSENC_IO;
}

/* Has the system begin to write, so that the disk works while the rest is copied and little is left to flush in the
 * end. Failures come up again then, but a full disk is better told early. */
static int penc_rewrite_write_back(penc_rewriter *rewriter) {
    int os_error = 0;
#if defined(SYNC_FILE_RANGE_WRITE)
    if (sync_file_range(rewriter->output.file, (off_t)rewriter->written_back,
                        (off_t)(rewriter->place - rewriter->written_back),
                        SYNC_FILE_RANGE_WRITE) != 0 &&
        (errno == EIO || errno == ENOSPC || errno == EDQUOT))
        os_error = errno;
#endif
    rewriter->written_back = rewriter->place;
    return os_error;
}

posenc_status penc_rewrite_advance(penc_rewriter *rewriter, uint64_t bytes) {
    const penc_rewrite_progress *progress = rewriter->progress;
    rewriter->place += bytes;
    if (rewriter->place - rewriter->written_back >= PENC_REWRITE_WRITE_BACK) {
        int os_error = penc_rewrite_write_back(rewriter);
        if (os_error)
            return penc_rewrite_fail(rewriter, os_error);
    }
    if (progress && bytes)
        progress->report(progress->context, rewriter->place, rewriter->total);
    return POSENC_OK;
}

/* Takes what was written off the front of the parts; returns the first that is left. */
static size_t penc_rewrite_take(struct iovec *parts, size_t first, size_t count, size_t moved) {
    while (first < count && moved >= parts[first].iov_len)
        moved -= parts[first++].iov_len;
    if (first < count) {
        parts[first].iov_base = (unsigned char *)parts[first].iov_base + moved;
        parts[first].iov_len -= moved;
    }
    return first;
}

posenc_status penc_rewrite_parts(penc_rewriter *rewriter, size_t count) {
    struct iovec *parts = rewriter->parts;
    for (size_t first = penc_rewrite_take(parts, 0, count, 0); first < count;) {
        ssize_t moved = pwritev(rewriter->output.file, parts + first, (int)(count - first),
                                (off_t)rewriter->place);
        if (moved < 0 && errno != EINTR)
            return penc_rewrite_fail(rewriter, errno);
        if (moved < 0)
            continue;
        first = penc_rewrite_take(parts, first, count, (size_t)moved);
        posenc_status status = penc_rewrite_advance(rewriter, (uint64_t)moved);
        if (status)
            return status;
    }
    return POSENC_OK;
}

/* How many bytes the kernel copied of those from `place` on: 0 if it cannot, for whatever reason. A way through memory
 * finds out which one, and of which file. */
static uint64_t penc_rewrite_by_kernel(penc_rewriter *rewriter, uint64_t place, uint64_t bytes) {
#if defined(__linux__)
    while (!rewriter->no_kernel_copy) {
        off_t from = (off_t)place, to = (off_t)rewriter->place;
        ssize_t moved = copy_file_range(rewriter->source->file, &from, rewriter->output.file, &to,
                                        (size_t)bytes, 0);
        if (moved > 0)
            return (uint64_t)moved;
        rewriter->no_kernel_copy = moved == 0 || errno != EINTR;
    }
#else
    (void)rewriter, (void)place, (void)bytes;
#endif
    return 0;
}

static posenc_status penc_rewrite_by_memory(penc_rewriter *rewriter, uint64_t place, size_t bytes) {
    posenc_status status =
        penc_input_read(rewriter->source, place, rewriter->window, bytes, rewriter->error);
    rewriter->parts[0] = (struct iovec){rewriter->window, bytes};
    return status ? status : penc_rewrite_parts(rewriter, 1);
}

/* How much to copy at once: up to the next multiple of PENC_REWRITE_STEP in the new file, but first to the next page,
 * since file systems share whole pages only. */
static uint64_t penc_rewrite_step(const penc_rewriter *rewriter, uint64_t bytes) {
    uint64_t unit = rewriter->place % PENC_REWRITE_PAGE ? PENC_REWRITE_PAGE : PENC_REWRITE_STEP;
    uint64_t step = unit - rewriter->place % unit;
    return step < bytes ? step : bytes;
}

/* Bytes that are no hole. */
static posenc_status penc_rewrite_data(penc_rewriter *rewriter, uint64_t place, uint64_t bytes) {
    posenc_status status = POSENC_OK;
    while (bytes && !status) {
        uint64_t step = penc_rewrite_step(rewriter, bytes);
        uint64_t moved = penc_rewrite_by_kernel(rewriter, place, step);
        if (moved)
            status = penc_rewrite_advance(rewriter, moved);
        else {
            moved = step < PENC_REWRITE_BUFFER ? step : PENC_REWRITE_BUFFER;
            status = penc_rewrite_by_memory(rewriter, place, (size_t)moved);
        }
        place += moved;
        bytes -= moved;
    }
    return status;
}

/* Bytes from `place` on until the next hole (if `whence` is SEEK_HOLE) or data, `bytes` at most. */
static uint64_t penc_rewrite_until(const penc_rewriter *rewriter, uint64_t place, uint64_t bytes,
                                   int whence) {
    off_t next = lseek(rewriter->source->file, (off_t)place, whence);
    if (next < 0) /* ENXIO: the rest is a hole; else there is no telling holes */
        return whence == SEEK_HOLE || errno == ENXIO ? bytes : 0;
    uint64_t until = (uint64_t)next - place;
    return until < bytes ? until : bytes;
}

uint64_t penc_rewrite_hole(const penc_rewriter *rewriter, uint64_t place, uint64_t bytes) {
    return rewriter->is_sparse ? penc_rewrite_until(rewriter, place, bytes, SEEK_DATA) : 0;
}

posenc_status penc_rewrite_copy(penc_rewriter *rewriter, uint64_t place, uint64_t bytes) {
    if (!rewriter->is_sparse)
        return penc_rewrite_data(rewriter, place, bytes);
    posenc_status status = POSENC_OK;
    while (bytes && !status) {
        uint64_t hole = penc_rewrite_hole(rewriter, place, bytes);
        uint64_t data = penc_rewrite_until(rewriter, place + hole, bytes - hole, SEEK_HOLE);
        status = penc_rewrite_advance(rewriter, hole);
        if (!status)
            status = penc_rewrite_data(rewriter, place + hole, data);
        place += hole + data;
        bytes -= hole + data;
    }
    return status;
}
