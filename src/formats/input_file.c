/* Opening and reading regular files. SPDX-License-Identifier: MIT */
#include "formats/input_file.h"

#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) >= 8, "build with -D_FILE_OFFSET_BITS=64");

/* O_NONBLOCK: a pipe is to be refused, not waited for. */
static posenc_status penc_input_open_regular(const char *path, penc_input *input,
                                             posenc_error *error) {
    struct stat stat;
    do
        input->file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (input->file < 0 && errno == EINTR);
    if (input->file < 0)
        return penc_fail_system(error, errno, "path", "name a file that can be opened for reading");
    if (fstat(input->file, &stat) != 0)
        return penc_fail_system(error, errno, "path", "name a file whose size can be read");
    if (!S_ISREG(stat.st_mode))
        return penc_fail(error, POSENC_UNSUPPORTED, "path",
                         "name a regular file, not a folder, pipe or device");
    input->size = (uint64_t)stat.st_size;
    input->modified = stat.st_mtim;
    return POSENC_OK;
}

posenc_status penc_input_open(const char *path, penc_input *input, posenc_error *error) {
    size_t bytes = strlen(path) + 1;
    *input = (penc_input){-1, 0, {0, 0}, malloc(bytes)};
    if (!input->path)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "path", "fit into memory");
    memcpy(input->path, path, bytes);
    posenc_status status = penc_input_open_regular(path, input, error);
    if (status) {
        penc_fail_file(error, path);
        penc_input_close(input);
    }
    return status;
}

void penc_input_close(penc_input *input) {
    if (input->file >= 0)
        (void)close(input->file);
    free(input->path);
    *input = (penc_input){-1, 0, {0, 0}, NULL};
}

/* Reads up to `bytes` bytes, fewer only at the end of the file: `*got` says how many. Returns 0 or
 * the errno. */
static int penc_input_pread(int file, unsigned char *to, size_t bytes, uint64_t place,
                            size_t *got) {
    *got = 0;
    while (*got < bytes) {
        size_t left = bytes - *got;
        ssize_t moved = pread(file, to + *got, left < PENC_FILE_STEP ? left : PENC_FILE_STEP,
                              (off_t)(place + *got));
        if (moved < 0 && errno != EINTR)
            return errno;
        if (moved == 0)
            break;
        if (moved > 0)
            *got += (size_t)moved;
    }
    return 0;
}

/* Nothing stands at `place` or behind it: the file may end far before. */
static posenc_status penc_input_shrunk(const penc_input *input, uint64_t place, uint64_t needed,
                                       posenc_error *error) {
    struct stat stat;
    uint64_t size = fstat(input->file, &stat) == 0 ? (uint64_t)stat.st_size : place;
    return penc_input_short(input, size < place ? size : place, needed, error);
}

posenc_status penc_input_read(const penc_input *input, uint64_t place, void *to, size_t bytes,
                              posenc_error *error) {
    size_t got;
    if (place > INT64_MAX - (uint64_t)bytes)
        return penc_input_short(input, input->size, UINT64_MAX, error);
    int os_error = penc_input_pread(input->file, to, bytes, place, &got);
    if (os_error) {
        penc_fail_system(error, os_error, "file", "be readable");
        penc_fail_place(error, "byte", (int64_t)(place + got));
        penc_fail_file(error, input->path);
        return POSENC_IO;
    }
    return got < bytes ? penc_input_shrunk(input, place + got, place + bytes, error) : POSENC_OK;
}

posenc_status penc_input_short(const penc_input *input, uint64_t size, uint64_t needed,
                               posenc_error *error) {
    penc_input_fail_size(input, POSENC_FORMAT, "file size", size,
                         "be at least what the header says", size, error);
    penc_fail_limit(error, "bytes needed", needed);
    return POSENC_FORMAT;
}

posenc_status penc_input_check_same(const penc_input *input, posenc_error *error) {
    struct stat now;
    if (fstat(input->file, &now) == 0 && (uint64_t)now.st_size == input->size &&
        now.st_mtim.tv_sec == input->modified.tv_sec &&
        now.st_mtim.tv_nsec == input->modified.tv_nsec)
        return POSENC_OK;
    penc_fail(error, POSENC_IO, "file", "stay as it is while it is read");
    penc_fail_file(error, input->path);
    return POSENC_IO;
}

posenc_status penc_input_fail(const penc_input *input, posenc_status status, const char *argument,
                              const char *must, uint64_t place, posenc_error *error) {
    penc_fail(error, status, argument, must);
    penc_fail_place(error, "byte", (int64_t)place);
    penc_fail_file(error, input->path);
    return status;
}

posenc_status penc_input_fail_size(const penc_input *input, posenc_status status,
                                   const char *argument, uint64_t value, const char *must,
                                   uint64_t place, posenc_error *error) {
    penc_input_fail(input, status, argument, must, place, error);
    if (error) {
        error->value.kind = POSENC_NUMBER_SIZE;
        error->value.as.size = value;
    }
    return status;
}

penc_window penc_window_of(const penc_input *input, unsigned char *memory, size_t capacity) {
    return (penc_window){input, memory, capacity, memory, 0, 0};
}

posenc_status penc_window_at(penc_window *window, uint64_t place, size_t bytes,
                             const unsigned char **at, posenc_error *error) {
    if (place < window->place || place - window->place > window->count ||
        window->count - (place - window->place) < bytes) {
        uint64_t left = place < window->input->size ? window->input->size - place : 0;
        size_t take = left < window->capacity ? (size_t)left : window->capacity;
        window->count = 0;
        if (take < bytes)
            return penc_input_short(window->input, window->input->size, place + bytes, error);
        posenc_status status = penc_input_read(window->input, place, window->memory, take, error);
        if (status)
            return status;
        window->place = place;
        window->count = take;
    }
    *at = window->bytes + (place - window->place);
    return POSENC_OK;
}
