/* Reading .npy files by pread, so that a reader has no position and threads can share it.
 * SPDX-License-Identifier: MIT */
#include "posenc/npy.h"

#include "base/fail.h"
#include "formats/npy_header.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) >= 8, "build with -D_FILE_OFFSET_BITS=64");

struct posenc_npy_reader {
    int file;
    posenc_npy_info info;
};

/* Reads up to `bytes` bytes, fewer only at the end of the file: `*got` says how many. Returns 0 or
 * the errno. */
static int penc_npy_pread(int file, unsigned char *to, size_t bytes, uint64_t offset, size_t *got) {
    *got = 0;
    while (*got < bytes) {
        size_t left = bytes - *got;
        ssize_t moved = pread(file, to + *got, left < PENC_NPY_MAX_STEP ? left : PENC_NPY_MAX_STEP,
                              (off_t)(offset + *got));
        if (moved < 0 && errno != EINTR)
            return errno;
        if (moved == 0)
            break;
        if (moved > 0)
            *got += (size_t)moved;
    }
    return 0;
}

static posenc_status penc_npy_fail_read(posenc_error *error, int os_error, uint64_t offset) {
    penc_fail_system(error, os_error, "file", "be readable");
    penc_fail_place(error, "byte", (int64_t)offset);
    return POSENC_IO;
}

static posenc_status penc_npy_fail_short(posenc_error *error, uint64_t size, uint64_t needed) {
    penc_fail_size(error, "file size", size, "be at least what the header says");
    penc_fail_limit(error, "bytes needed", needed);
    penc_fail_place(error, "byte", (int64_t)size);
    if (error)
        error->status = POSENC_FORMAT;
    return POSENC_FORMAT;
}

/* Opens `path` and tells its size. O_NONBLOCK: a pipe is to be refused, not waited for. */
static posenc_status penc_npy_open_regular(const char *path, int *file, uint64_t *size,
                                           posenc_error *error) {
    struct stat stat;
    do
        *file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (*file < 0 && errno == EINTR);
    if (*file < 0)
        return penc_fail_system(error, errno, "path", "name a file that can be opened for reading");
    if (fstat(*file, &stat) != 0)
        return penc_fail_system(error, errno, "path", "name a file whose size can be read");
    if (!S_ISREG(stat.st_mode))
        return penc_fail(error, POSENC_UNSUPPORTED, "path",
                         "name a regular file, not a folder, pipe or device");
    *size = (uint64_t)stat.st_size;
    return POSENC_OK;
}

/* Reads and parses the header, `size` bytes long, of a file that is at least as long. */
static posenc_status penc_npy_read_text(int file, size_t size, posenc_npy_info *info,
                                        posenc_error *error) {
    size_t got;
    unsigned char *bytes = malloc(size);
    if (!bytes)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "header", "fit into memory");
    int os_error = penc_npy_pread(file, bytes, size, 0, &got);
    posenc_status status = os_error ? penc_npy_fail_read(error, os_error, got)
                                    : penc_npy_header_parse(bytes, got, info, error);
    free(bytes);
    return status;
}

static posenc_status penc_npy_read_header(int file, uint64_t file_size, posenc_npy_info *info,
                                          posenc_error *error) {
    unsigned char prefix[PENC_NPY_PREFIX];
    size_t got, size;
    int os_error = penc_npy_pread(file, prefix, sizeof prefix, 0, &got);
    if (os_error)
        return penc_npy_fail_read(error, os_error, got);
    posenc_status status = penc_npy_header_size(prefix, got, &size, error);
    if (status)
        return status;
    if (size > file_size)
        return penc_npy_fail_short(error, file_size, size);
    status = penc_npy_read_text(file, size, info, error);
    if (status)
        return status;
    uint64_t needed = info->data_offset + info->count * posenc_dtype_bytes(info->dtype);
    return needed > file_size ? penc_npy_fail_short(error, file_size, needed) : POSENC_OK;
}

posenc_status posenc_npy_open(const char *path, posenc_npy_reader **reader, posenc_npy_info *info,
                              posenc_error *error) {
    uint64_t size = 0;
    if (!reader)
        return penc_fail_null(error, "reader");
    *reader = NULL;
    if (!path)
        return penc_fail_null(error, "path");
    posenc_npy_reader *made = malloc(sizeof *made);
    if (!made)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "reader", "fit into memory");
    posenc_status status = penc_npy_open_regular(path, &made->file, &size, error);
    if (!status)
        status = penc_npy_read_header(made->file, size, &made->info, error);
    if (status) {
        posenc_npy_close(made);
        return status;
    }
    if (info)
        *info = made->info;
    *reader = made;
    return POSENC_OK;
}

static posenc_status penc_npy_check_read(const posenc_npy_reader *reader, uint64_t first,
                                         size_t count, const void *to, posenc_error *error) {
    if (!reader)
        return penc_fail_null(error, "reader");
    if (!to && count)
        return penc_fail_null(error, "to");
    if (first > reader->info.count || count > reader->info.count - first) {
        if (first > reader->info.count)
            penc_fail_size(error, "first", first, "be inside the array");
        else
            penc_fail_size(error, "count", count, "end inside the array");
        penc_fail_limit(error, "elements of the array", reader->info.count);
        return POSENC_OUT_OF_RANGE;
    }
    if (count > SIZE_MAX / posenc_dtype_bytes(reader->info.dtype)) /* where size_t has 32 bits */
        return penc_fail(error, POSENC_OVERFLOW, "count",
                         "give a number of bytes that fits size_t");
    return POSENC_OK;
}

posenc_status posenc_npy_read(const posenc_npy_reader *reader, uint64_t first, size_t count,
                              void *to, posenc_error *error) {
    size_t got;
    posenc_status status = penc_npy_check_read(reader, first, count, to, error);
    if (status)
        return status;
    size_t element_bytes = posenc_dtype_bytes(reader->info.dtype), bytes = count * element_bytes;
    uint64_t offset = reader->info.data_offset + first * element_bytes;
    int os_error = penc_npy_pread(reader->file, to, bytes, offset, &got);
    if (os_error)
        return penc_npy_fail_read(error, os_error, offset + got);
    if (got < bytes)
        return penc_npy_fail_short(error, offset + got, offset + bytes);
    if (reader->info.big_endian != penc_npy_machine_is_big())
        penc_npy_swap(to, element_bytes, count);
    return POSENC_OK;
}

void posenc_npy_close(posenc_npy_reader *reader) {
    if (!reader)
        return;
    if (reader->file >= 0)
        (void)close(reader->file);
    free(reader);
}
