/* Fuzzed bytes as a file that the readers can open by a path. SPDX-License-Identifier: MIT */
#ifndef FUZZ_FILE_H
#define FUZZ_FILE_H

#include "posenc/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Gives up loudly: what the target checks does not hold. */
#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The path of a file in memory with these bytes; the same one at each call. */
static inline const char *fuzz_file(const uint8_t *data, size_t size) {
    static char path[40];
    static int file = -1;
    if (file < 0) {
        file = memfd_create("fuzz", MFD_CLOEXEC);
        FUZZ_CHECK(file >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    FUZZ_CHECK(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    return path;
}

/* A refusal says what is wrong, in a sentence that can be printed. */
static inline void fuzz_check_error(posenc_status status, const posenc_error *error) {
    char text[1000];
    FUZZ_CHECK(error->status == status && status != POSENC_OK && error->argument && error->must);
    FUZZ_CHECK(status == POSENC_FORMAT || status == POSENC_UNSUPPORTED ||
               status == POSENC_OVERFLOW || status == POSENC_OUT_OF_RANGE);
    FUZZ_CHECK(posenc_error_text(error, text, sizeof text) < sizeof text);
}

#endif
