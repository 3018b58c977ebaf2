/* What the tests of .npy files share: a folder for each, files by hand, arrays of a known pattern. One file of a
 * test includes it.
 * SPDX-License-Identifier: MIT */
#ifndef NPY_CASES_H
#define NPY_CASES_H

#include "failing_disk.h"
#include "guard_pages.h"
#include "posenc/npy.h"
#include "random_data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};

/* --- The folder --------------------------------------------------------------------------------- */

/* Every test runs in a new folder of its own, so that it can tell what was left there. */
static char folder[PATH_MAX];
static int next_descriptor_before;

/* Tests do not keep root's rights: as root, a writer with a fault could rename a file over /dev/null.
 * Where they cannot be given up, tests that name devices are skipped. */
enum { NOBODY = 65534 };

static inline int give_up_root(void) {
    if (geteuid() != 0)
        return 0;
    if (chown(".", NOBODY, NOBODY) != 0 || setegid(NOBODY) != 0 || seteuid(NOBODY) != 0)
        return -1;
    return prctl(PR_SET_DUMPABLE, 1); /* which the change has cleared, and leak checks need */
}

static inline int take_root_back(void) {
    return getuid() == 0 && (seteuid(0) != 0 || setegid(0) != 0) ? -1 : 0;
}

/* A folder in shared memory, if a test has made one. */
static char shared_folder[40];

/* A number that stays the same if all files that were opened are closed. */
static inline int next_descriptor(void) {
    int file = open("/", O_RDONLY);
    close(file);
    return file;
}

static inline int enter_folder(void **state) {
    (void)state;
    next_descriptor_before = next_descriptor();
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/posenc-npy-XXXXXX", parent && *parent ? parent : "/tmp");
    shared_folder[0] = '\0';
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return -1;
    (void)give_up_root();
    return 0;
}

static inline int remove_entry(const char *path, const struct stat *status, int kind,
                               struct FTW *walk) {
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static inline int remove_folder(const char *path) {
    return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int leave_folder(void **state) {
    (void)state;
    int failed = take_root_back() || chdir("/") || remove_folder(folder);
    if (shared_folder[0])
        failed |= remove_folder(shared_folder);
    assert_int_equal(next_descriptor(), next_descriptor_before);
    return failed;
}

static inline int is_no_dot(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Fails the test unless the folder holds these names, in order, each followed by a space. */
static inline void assert_names(const char *path, const char *wanted) {
    struct dirent **entries;
    char names[1000] = "";
    int count = scandir(path, &entries, is_no_dot, alphasort);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        assert_true(strlen(names) + strlen(entries[i]->d_name) + 2 < sizeof names);
        strcat(names, entries[i]->d_name);
        strcat(names, " ");
        free(entries[i]);
    }
    free(entries);
    assert_string_equal(names, wanted);
}

/* Cuts an old file at its new end: ext4 flushes files that were emptied first, which takes long. */
static inline void write_file(const char *path, const void *bytes, size_t count) {
    int file = open(path, O_WRONLY | O_CREAT, 0644);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, count), (ssize_t)count);
    assert_int_equal(ftruncate(file, (off_t)count), 0);
    assert_int_equal(close(file), 0);
}

/* The bytes of a file; to be freed. */
static inline unsigned char *read_file(const char *path, size_t *count) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    *count = (size_t)status.st_size;
    unsigned char *bytes = malloc(*count + 1);
    int file = open(path, O_RDONLY);
    assert_true(file >= 0 && bytes);
    assert_int_equal(read(file, bytes, *count), (ssize_t)*count);
    close(file);
    return bytes;
}

static inline void assert_file(const char *path, const void *wanted, size_t wanted_count) {
    size_t count;
    unsigned char *bytes = read_file(path, &count);
    assert_int_equal(count, wanted_count);
    assert_memory_equal(bytes, wanted, count);
    free(bytes);
}

/* --- Files by hand ------------------------------------------------------------------------------ */

/* A file's bytes; `place` is the byte where a fault of it is. */
typedef struct image {
    unsigned char bytes[4096];
    size_t size, place;
} image;

static inline void add_bytes(image *f, const void *bytes, size_t count) {
    assert_true(count <= sizeof f->bytes - f->size);
    memcpy(f->bytes + f->size, bytes, count);
    f->size += count;
}

static inline void add_zeros(image *f, size_t count) {
    assert_true(count <= sizeof f->bytes - f->size);
    memset(f->bytes + f->size, 0, count);
    f->size += count;
}

/* Magic, version, and the length of the header that follows: 2 bytes in version 1, 4 in later ones. */
static inline void add_prefix(image *f, unsigned char major, unsigned char minor, size_t length) {
    const unsigned char version[] = {major, minor};
    const unsigned char bytes[] = {
        (unsigned char)(length & 255), (unsigned char)(length >> 8 & 255),
        (unsigned char)(length >> 16 & 255), (unsigned char)(length >> 24 & 255)};
    add_bytes(f, "\x93NUMPY", 6);
    add_bytes(f, version, 2);
    add_bytes(f, bytes, major == 1 ? 2 : 4);
}

/* A file with the header `text`, in which ^ marks the place of a fault and is left out. */
static inline image image_of(unsigned char major, const char *text) {
    image f = {{0}, 0, 0};
    const char *mark = strchr(text, '^');
    add_prefix(&f, major, 0, strlen(text) - (mark != NULL));
    for (; *text; text++) {
        if (*text == '^')
            f.place = f.size;
        else
            add_bytes(&f, text, 1);
    }
    return f;
}

/* --- Arrays ------------------------------------------------------------------------------------- */

static inline int machine_is_big(void) {
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 0;
}

/* The bits of element `i` of test arrays: first 1.5, then patterns in which all bytes differ. */
static inline uint64_t pattern(posenc_dtype dtype, uint64_t i) {
    static const uint64_t one_and_a_half[] = {[POSENC_F32] = 0x3fc00000,
                                              [POSENC_F64] = UINT64_C(0x3ff8000000000000),
                                              [POSENC_F16] = 0x3e00,
                                              [POSENC_BF16] = 0x3fc0};
    unsigned unused = 64 - 8 * (unsigned)posenc_dtype_bytes(dtype);
    return i ? (i * UINT64_C(0x9e3779b97f4a7c15)) >> unused : one_and_a_half[dtype];
}

/* Elements first ... first + count - 1, in the machine's order or high byte first. */
static inline void fill_pattern(void *to, posenc_dtype dtype, uint64_t first, size_t count,
                                int big) {
    size_t size = posenc_dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = pattern(dtype, first + i);
        for (size_t k = 0; k < size; k++, bits >>= 8)
            ((unsigned char *)to)[i * size + (big ? size - 1 - k : k)] = (unsigned char)bits;
    }
}

static inline void assert_pattern(const void *got, posenc_dtype dtype, uint64_t first,
                                  size_t count) {
    size_t bytes = count * posenc_dtype_bytes(dtype);
    char *wanted = malloc(bytes + 1);
    assert_non_null(wanted);
    fill_pattern(wanted, dtype, first, count, machine_is_big());
    assert_memory_equal(got, wanted, bytes);
    free(wanted);
}

static inline posenc_npy_info info_of(posenc_dtype dtype, int fortran, size_t rank,
                                      const size_t *shape) {
    posenc_npy_info info = {.dtype = dtype, .fortran_order = fortran, .rank = rank, .count = 1};
    for (size_t i = 0; i < rank; i++) {
        info.shape[i] = shape[i];
        info.count *= shape[i];
    }
    return info;
}

static inline posenc_npy_info vector_of(posenc_dtype dtype, size_t count) {
    return info_of(dtype, 0, 1, &count);
}

static inline posenc_npy_writer *create(const char *path, const posenc_npy_info *info) {
    posenc_npy_writer *writer;
    posenc_error error;
    assert_done(posenc_npy_create(path, info, &writer, &error), &error);
    assert_non_null(writer);
    return writer;
}

/* Writes pattern elements from `first` on. */
static inline void put(posenc_npy_writer *writer, posenc_dtype dtype, uint64_t first,
                       size_t count) {
    posenc_error error;
    char *elements = malloc(count * posenc_dtype_bytes(dtype) + 1);
    assert_non_null(elements);
    fill_pattern(elements, dtype, first, count, machine_is_big());
    assert_done(posenc_npy_write(writer, first, count, elements, &error), &error);
    free(elements);
}

static inline void commit(posenc_npy_writer *writer) {
    posenc_error error;
    assert_done(posenc_npy_commit(writer, &error), &error);
}

/* Writes a whole array of the pattern. */
static inline void make_array(const char *path, const posenc_npy_info *info) {
    posenc_npy_writer *writer = create(path, info);
    put(writer, info->dtype, 0, (size_t)info->count);
    commit(writer);
}

static inline posenc_npy_reader *open_array(const char *path, posenc_npy_info *info) {
    posenc_npy_reader *reader;
    posenc_error error;
    assert_done(posenc_npy_open(path, &reader, info, &error), &error);
    assert_non_null(reader);
    return reader;
}

static inline void assert_same_array(const posenc_npy_info *got, const posenc_npy_info *wanted) {
    assert_int_equal(got->dtype, wanted->dtype);
    assert_int_equal(got->fortran_order, wanted->fortran_order);
    assert_int_equal(got->big_endian, wanted->big_endian);
    assert_int_equal(got->rank, wanted->rank);
    for (size_t i = 0; i < wanted->rank; i++)
        assert_int_equal(got->shape[i], wanted->shape[i]);
    assert_int_equal(got->count, wanted->count);
}

/* Reads a part into memory that faults at its end, and compares it with the pattern. */
static inline void assert_part(const posenc_npy_reader *reader, posenc_dtype dtype, uint64_t first,
                               size_t count) {
    guarded part = guarded_new(count * posenc_dtype_bytes(dtype), GUARD_AFTER);
    posenc_error error;
    assert_done(posenc_npy_read(reader, first, count, part.data, &error), &error);
    assert_pattern(part.data, dtype, first, count);
    guarded_free(&part);
}

/* The file holds this array of the pattern. */
static inline void assert_array(const char *path, const posenc_npy_info *wanted) {
    posenc_npy_info info;
    posenc_npy_reader *reader = open_array(path, &info);
    assert_same_array(&info, wanted);
    assert_part(reader, info.dtype, 0, (size_t)info.count);
    posenc_npy_close(reader);
}

/* --- What refused calls say --------------------------------------------------------------------- */

/* What a refused call should say; place -1: none. */
typedef struct refusal {
    posenc_status status;
    const char *argument, *must;
    int64_t place;
} refusal;

static inline int says(const posenc_error *error, const refusal *wanted) {
    int has_place = error->place_name && strcmp(error->place_name, "byte") == 0;
    return error->status == wanted->status && strcmp(error->argument, wanted->argument) == 0 &&
           strcmp(error->must, wanted->must) == 0 &&
           (wanted->place < 0 ? !error->place_name : has_place && error->place == wanted->place);
}

/* Runs in a folder of its own. */
#define TEST(function) cmocka_unit_test_setup_teardown(function, enter_folder, leave_folder)

#endif
