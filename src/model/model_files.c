/* Which file of a model to read. SPDX-License-Identifier: MIT */
#include "model/model_files.h"

#include "base/fail.h"
#include "model/json_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file in the folder, or the path itself; NULL (no memory) or a descriptor in *file. */
static posenc_status penc_open_file(penc_arena *arena, const char *path, int *file,
                                    posenc_error *error) {
    static const char *const names[] = {"config.json", "params.json"};
    struct stat state;
    if (stat(path, &state))
        return penc_fail_system(error, errno, "path", "be a file or a folder that can be read");
    if (!S_ISDIR(state.st_mode)) {
        *file = open(path, O_RDONLY | O_CLOEXEC);
        return *file >= 0 ? POSENC_OK
                          : penc_fail_system(error, errno, "path", "be a file that can be read");
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *inner = penc_arena_print(arena, "%s/%s", path, names[i]);
        if (!inner)
            return penc_fail(error, POSENC_OUT_OF_MEMORY, "path", "fit into memory");
        *file = open(inner, O_RDONLY | O_CLOEXEC);
        if (*file >= 0)
            return POSENC_OK;
        if (errno != ENOENT)
            return penc_fail_system(error, errno, names[i], "be a file that can be read");
    }
    return penc_fail(error, POSENC_FORMAT, "path",
                     "be a file, or a folder with config.json or params.json");
}

static posenc_status penc_read_all(int file, char *text, size_t capacity, size_t *length,
                                   posenc_error *error) {
    *length = 0;
    while (*length < capacity) {
        ssize_t got = read(file, text + *length, capacity - *length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return penc_fail_system(error, errno, "path", "be a file that can be read");
        if (got == 0)
            return POSENC_OK;
        *length += (size_t)got;
    }
    return penc_fail_size(error, "file size", capacity, "be at most 16 MiB");
}

posenc_status penc_model_file_read(penc_arena *arena, const char *path, char **text, size_t *length,
                                   posenc_error *error) {
    int file = -1;
    posenc_status status = penc_open_file(arena, path, &file, error);
    if (status)
        return status;
    struct stat state;
    size_t capacity = (size_t)PENC_JSON_BYTES + 1; /* a pipe has no size */
    if (!fstat(file, &state) && S_ISREG(state.st_mode) && state.st_size < PENC_JSON_BYTES)
        capacity = (size_t)state.st_size + 1;
    *text = malloc(capacity);
    status = *text ? penc_read_all(file, *text, capacity, length, error)
                   : penc_fail(error, POSENC_OUT_OF_MEMORY, "file", "fit into memory");
    close(file);
    if (status) {
        free(*text);
        *text = NULL;
    }
    return status;
}
