/* A folder of the target's own, for readers that look at names of files. SPDX-License-Identifier: MIT */
#ifndef FUZZ_FOLDER_H
#define FUZZ_FOLDER_H

#include "fuzz_file.h"

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

/* libFuzzer's own paths are relative, so the working folder stays. */
static char fuzz_folder[] = "/dev/shm/posenc-fuzz-XXXXXX";

/* A path in the folder; valid until the fourth call after it. */
static inline const char *fuzz_path(const char *name) {
    static char paths[4][600];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", fuzz_folder, name);
    return path;
}

static inline void fuzz_write(const char *name, const void *bytes, size_t count) {
    FILE *file = fopen(fuzz_path(name), "wb");
    FUZZ_CHECK(file && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
}

static inline int fuzz_remove_entry(const char *path, const struct stat *status, int flag,
                                    struct FTW *state) {
    (void)status, (void)flag, (void)state;
    return remove(path);
}

static inline void fuzz_remove(const char *name) {
    nftw(fuzz_path(name), fuzz_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void fuzz_remove_folder(void) {
    fuzz_remove("");
}

/* Returns 1 the first time, when the folder has been made and is empty; it goes when the program ends. */
static inline int fuzz_make_folder(void) {
    static int made;
    if (made++)
        return 0;
    FUZZ_CHECK(mkdtemp(fuzz_folder));
    atexit(fuzz_remove_folder);
    return 1;
}

#endif
