/* What the tests of readers share: a folder of its own for each test, files built byte by byte, refusals.
 * SPDX-License-Identifier: MIT */
#ifndef FILE_CASES_H
#define FILE_CASES_H

#include "guard_pages.h"
#include "random_data.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TEST(name)   cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)

/* ---- The folder ---- */

static char folder[PATH_MAX];
static int next_descriptor_before;

/* A number that stays the same if all files that were opened are closed. */
static inline int next_descriptor(void) {
    int file = open("/", O_RDONLY);
    close(file);
    return file;
}

static inline int enter_folder(void **state) {
    (void)state;
    const char *parent = getenv("TMPDIR");
    next_descriptor_before = next_descriptor();
    snprintf(folder, sizeof folder, "%s/posenc-files-XXXXXX", parent && *parent ? parent : "/tmp");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static inline int remove_entry(const char *path, const struct stat *status, int kind,
                               struct FTW *walk) {
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static inline int leave_folder(void **state) {
    (void)state;
    int failed = chdir("/") || nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(next_descriptor(), next_descriptor_before);
    return failed;
}

/* ---- Files ---- */

typedef struct image {
    unsigned char *bytes;
    size_t size, capacity;
    int big; /* byte order of numbers */
} image;

static inline void add_bytes(image *f, const void *bytes, size_t count) {
    if (f->size + count > f->capacity) {
        f->capacity = 2 * (f->size + count);
        f->bytes = realloc(f->bytes, f->capacity);
        assert_non_null(f->bytes);
    }
    if (count)
        memcpy(f->bytes + f->size, bytes, count);
    f->size += count;
}

static inline void add_number(image *f, uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        size_t shift = 8 * (f->big ? bytes - 1 - i : i);
        unsigned char byte = (unsigned char)(number >> shift);
        add_bytes(f, &byte, 1);
    }
}

static inline void add_zeros(image *f, size_t count) {
    static const unsigned char zeros[256];
    for (; count > sizeof zeros; count -= sizeof zeros)
        add_bytes(f, zeros, sizeof zeros);
    add_bytes(f, zeros, count);
}

static inline void image_free(image *f) {
    free(f->bytes);
    *f = (image){NULL, 0, 0, 0};
}

/* Cuts an old file at its new end: ext4 flushes files that were emptied first, which takes long. */
static inline void write_file(const char *path, const void *bytes, size_t count) {
    int file = open(path, O_WRONLY | O_CREAT, 0644);
    assert_true(file >= 0);
    for (size_t done = 0; done < count;) {
        ssize_t moved = write(file, (const char *)bytes + done, count - done);
        assert_true(moved > 0);
        done += (size_t)moved;
    }
    assert_int_equal(ftruncate(file, (off_t)count), 0);
    assert_int_equal(close(file), 0);
}

static inline void write_text(const char *path, const char *text) {
    write_file(path, text, strlen(text));
}

/* ---- Refusals ---- */

/* How a call should be refused; what is NULL or negative is not looked at. */
typedef struct refusal {
    posenc_status status;
    const char *argument, *must; /* `must` is a part of the sentence */
    const char *name, *file;     /* `file` is the end of the path */
    int64_t place;
} refusal;

static inline int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* `what` says in a failure which case it was. */
static inline void assert_refusal(posenc_status got, const posenc_error *error,
                                  const refusal *wanted, const char *what) {
    char text[1000] = "";
    if (got)
        posenc_error_text(error, text, sizeof text);
    if (got != wanted->status || error->status != got || !error->argument || !error->must ||
        (wanted->argument && strcmp(error->argument, wanted->argument) != 0) ||
        (wanted->must && !strstr(error->must, wanted->must)) ||
        (wanted->name && strcmp(error->name, wanted->name) != 0) ||
        (wanted->file && !ends_with(error->file, wanted->file)) ||
        (wanted->place >= 0 && (!error->place_name || error->place != wanted->place)))
        fail_msg("%s: got %s \"%s\"; wanted %s \"%s must %s\" of %s at %lld", what,
                 posenc_status_name(got), text, posenc_status_name(wanted->status),
                 wanted->argument ? wanted->argument : "*", wanted->must ? wanted->must : "*",
                 wanted->name ? wanted->name : "*", (long long)wanted->place);
}

#endif
