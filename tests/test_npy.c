/* .npy files: headers by hand, whole and malformed; what a writer leaves behind, whatever happens to it.
 * `--make FOLDER` writes files for NumPy to read, `--check FOLDER` reads what NumPy wrote; both are
 * driven by npy_numpy.py. SPDX-License-Identifier: MIT */
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};

/* --- The folder --------------------------------------------------------------------------------- */

/* Every test runs in a new folder of its own, so that it can tell what was left there. */
static char folder[PATH_MAX];

static int enter_folder(void **state) {
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/posenc-npy-XXXXXX", parent && *parent ? parent : "/tmp");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int leave_folder(void **state) {
    (void)state;
    return chdir("/") || nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int is_no_dot(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Fails the test unless the folder holds these names, in order, each followed by a space. */
static void assert_names(const char *path, const char *wanted) {
    struct dirent **entries;
    char names[1000] = "";
    int count = scandir(path, &entries, is_no_dot, alphasort);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        strncat(names, entries[i]->d_name, 100);
        strcat(names, " ");
        free(entries[i]);
    }
    free(entries);
    assert_string_equal(names, wanted);
}

static void write_file(const char *path, const void *bytes, size_t count) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, count), (ssize_t)count);
    assert_int_equal(close(file), 0);
}

/* The bytes of a file; to be freed. */
static unsigned char *read_file(const char *path, size_t *count) {
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

static void assert_file(const char *path, const void *wanted, size_t wanted_count) {
    size_t count;
    unsigned char *bytes = read_file(path, &count);
    assert_int_equal(count, wanted_count);
    assert_memory_equal(bytes, wanted, count);
    free(bytes);
}

static void assert_files_equal(const char *path, const char *wanted_path) {
    size_t count;
    unsigned char *wanted = read_file(wanted_path, &count);
    assert_file(path, wanted, count);
    free(wanted);
}

/* --- Files by hand ------------------------------------------------------------------------------ */

/* A file's bytes; `place` is the byte where a fault of it is. */
typedef struct image {
    unsigned char bytes[4096];
    size_t size, place;
} image;

static void add_bytes(image *f, const void *bytes, size_t count) {
    assert_true(count <= sizeof f->bytes - f->size);
    memcpy(f->bytes + f->size, bytes, count);
    f->size += count;
}

static void add_zeros(image *f, size_t count) {
    assert_true(count <= sizeof f->bytes - f->size);
    memset(f->bytes + f->size, 0, count);
    f->size += count;
}

/* Magic, version, and the length of the header that follows: 2 bytes in version 1, 4 in later ones. */
static void add_prefix(image *f, unsigned char major, unsigned char minor, size_t length) {
    const unsigned char version[] = {major, minor};
    const unsigned char bytes[] = {
        (unsigned char)(length & 255), (unsigned char)(length >> 8 & 255),
        (unsigned char)(length >> 16 & 255), (unsigned char)(length >> 24 & 255)};
    add_bytes(f, "\x93NUMPY", 6);
    add_bytes(f, version, 2);
    add_bytes(f, bytes, major == 1 ? 2 : 4);
}

/* A file with the header `text`, in which ^ marks the place of a fault and is left out. */
static image image_of(unsigned char major, const char *text) {
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

static int machine_is_big(void) {
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 0;
}

/* The bits of element `i` of test arrays: first 1.5, then patterns in which all bytes differ. */
static uint64_t pattern(posenc_dtype dtype, uint64_t i) {
    static const uint64_t one_and_a_half[] = {[POSENC_F32] = 0x3fc00000,
                                              [POSENC_F64] = UINT64_C(0x3ff8000000000000),
                                              [POSENC_F16] = 0x3e00,
                                              [POSENC_BF16] = 0x3fc0};
    unsigned unused = 64 - 8 * (unsigned)posenc_dtype_bytes(dtype);
    return i ? (i * UINT64_C(0x9e3779b97f4a7c15)) >> unused : one_and_a_half[dtype];
}

/* Elements first ... first + count - 1, in the machine's order or high byte first. */
static void fill_pattern(void *to, posenc_dtype dtype, uint64_t first, size_t count, int big) {
    size_t size = posenc_dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = pattern(dtype, first + i);
        for (size_t k = 0; k < size; k++, bits >>= 8)
            ((unsigned char *)to)[i * size + (big ? size - 1 - k : k)] = (unsigned char)bits;
    }
}

static void assert_pattern(const void *got, posenc_dtype dtype, uint64_t first, size_t count) {
    size_t bytes = count * posenc_dtype_bytes(dtype);
    char *wanted = malloc(bytes + 1);
    assert_non_null(wanted);
    fill_pattern(wanted, dtype, first, count, machine_is_big());
    assert_memory_equal(got, wanted, bytes);
    free(wanted);
}

static posenc_npy_info info_of(posenc_dtype dtype, int fortran, size_t rank, const size_t *shape) {
    posenc_npy_info info = {.dtype = dtype, .fortran_order = fortran, .rank = rank, .count = 1};
    for (size_t i = 0; i < rank; i++) {
        info.shape[i] = shape[i];
        info.count *= shape[i];
    }
    return info;
}

static posenc_npy_info vector_of(posenc_dtype dtype, size_t count) {
    return info_of(dtype, 0, 1, &count);
}

static posenc_npy_writer *create(const char *path, const posenc_npy_info *info) {
    posenc_npy_writer *writer;
    posenc_error error;
    assert_done(posenc_npy_create(path, info, &writer, &error), &error);
    assert_non_null(writer);
    return writer;
}

/* Writes pattern elements from `first` on. */
static void put(posenc_npy_writer *writer, posenc_dtype dtype, uint64_t first, size_t count) {
    posenc_error error;
    char *elements = malloc(count * posenc_dtype_bytes(dtype) + 1);
    assert_non_null(elements);
    fill_pattern(elements, dtype, first, count, machine_is_big());
    assert_done(posenc_npy_write(writer, first, count, elements, &error), &error);
    free(elements);
}

static void commit(posenc_npy_writer *writer) {
    posenc_error error;
    assert_done(posenc_npy_commit(writer, &error), &error);
}

/* Writes a whole array of the pattern. */
static void make_array(const char *path, const posenc_npy_info *info) {
    posenc_npy_writer *writer = create(path, info);
    put(writer, info->dtype, 0, (size_t)info->count);
    commit(writer);
}

static posenc_npy_reader *open_array(const char *path, posenc_npy_info *info) {
    posenc_npy_reader *reader;
    posenc_error error;
    assert_done(posenc_npy_open(path, &reader, info, &error), &error);
    assert_non_null(reader);
    return reader;
}

static void assert_same_array(const posenc_npy_info *got, const posenc_npy_info *wanted) {
    assert_int_equal(got->dtype, wanted->dtype);
    assert_int_equal(got->fortran_order, wanted->fortran_order);
    assert_int_equal(got->big_endian, wanted->big_endian);
    assert_int_equal(got->rank, wanted->rank);
    for (size_t i = 0; i < wanted->rank; i++)
        assert_int_equal(got->shape[i], wanted->shape[i]);
    assert_int_equal(got->count, wanted->count);
}

/* Reads a part into memory that faults at its end, and compares it with the pattern. */
static void assert_part(const posenc_npy_reader *reader, posenc_dtype dtype, uint64_t first,
                        size_t count) {
    guarded part = guarded_new(count * posenc_dtype_bytes(dtype), GUARD_AFTER);
    posenc_error error;
    assert_done(posenc_npy_read(reader, first, count, part.data, &error), &error);
    assert_pattern(part.data, dtype, first, count);
    guarded_free(&part);
}

/* The file holds this array of the pattern. */
static void assert_array(const char *path, const posenc_npy_info *wanted) {
    posenc_npy_info info;
    posenc_npy_reader *reader = open_array(path, &info);
    assert_same_array(&info, wanted);
    assert_part(reader, info.dtype, 0, (size_t)info.count);
    posenc_npy_close(reader);
}

/* --- Headers that are read ---------------------------------------------------------------------- */

static void assert_header_read(unsigned char major, const char *text,
                               const posenc_npy_info *wanted) {
    image f = image_of(major, text);
    size_t header = f.size, bytes = (size_t)wanted->count * posenc_dtype_bytes(wanted->dtype);
    assert_true(bytes <= sizeof f.bytes - f.size);
    fill_pattern(f.bytes + f.size, wanted->dtype, 0, (size_t)wanted->count, wanted->big_endian);
    f.size += bytes;
    write_file("a.npy", f.bytes, f.size);
    posenc_npy_info info;
    posenc_error error;
    posenc_npy_reader *reader;
    posenc_status status = posenc_npy_open("a.npy", &reader, &info, &error);
    if (status)
        print_error("version %d: %s\n", major, text);
    assert_done(status, &error);
    posenc_npy_close(reader);
    assert_int_equal(info.data_offset, header);
    assert_array("a.npy", wanted);
}

#define HEAD(descr) "{'descr': '" descr "', 'fortran_order': False, 'shape': (2, 3), }"

static void every_dtype_is_read_in_either_byte_order(void **state) {
    (void)state;
    static const struct {
        const char *text;
        posenc_dtype dtype;
        int big; /* -1: as the machine */
    } known[] = {
        {HEAD("<f4"), POSENC_F32, 0},  {HEAD(">f4"), POSENC_F32, 1},
        {HEAD("=f4"), POSENC_F32, -1}, {HEAD("f4"), POSENC_F32, -1},
        {HEAD("<f8"), POSENC_F64, 0},  {HEAD(">f8"), POSENC_F64, 1},
        {HEAD("=f8"), POSENC_F64, -1}, {HEAD("<f2"), POSENC_F16, 0},
        {HEAD(">f2"), POSENC_F16, 1},  {HEAD("=f2"), POSENC_F16, -1},
        {HEAD("<V2"), POSENC_BF16, 0}, {HEAD("|V2"), POSENC_BF16, 0},
        {HEAD(">V2"), POSENC_BF16, 1}, {HEAD("=V2"), POSENC_BF16, -1},
    };
    static const size_t shape[] = {2, 3};
    for (size_t i = 0; i < COUNT(known); i++) {
        posenc_npy_info wanted = info_of(known[i].dtype, 0, 2, shape);
        wanted.big_endian = known[i].big < 0 ? machine_is_big() : known[i].big;
        assert_header_read(1, known[i].text, &wanted);
    }
}

/* As NumPy of all times writes them, under old and new Pythons, and as its readers take them. */
static void headers_in_every_spelling_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int fortran;
        size_t rank, shape[4];
    } known[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n", 0, 2, {2, 3}},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", 1, 2, {2, 3}},
        {"{'shape': (2, 3), 'fortran_order': True, 'descr': '<f4'}", 1, 2, {2, 3}},
        {"{'fortran_order': False, 'shape': (4, 1, 2), 'descr': '<f4', }", 0, 3, {4, 1, 2}},
        {"{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (2, 3)}", 0, 2, {2, 3}},
        {"{'descr': \"<f4\", \"fortran_order\": False, 'shape': (2, 3)}", 0, 2, {2, 3}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5L,), }", 0, 1, {5}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }", 0, 2, {2, 3}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 0, 0, {0}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ( ), }", 0, 0, {0}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", 0, 1, {5}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }", 0, 2, {2, 3}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }", 0, 1, {0}},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0, 2), }", 1, 3, {3, 0, 2}},
        {"{'descr':'<f4','fortran_order':False,'shape':(2,3)}", 0, 2, {2, 3}},
        {" { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2 , 3 ) , } ", 0, 2, {2, 3}},
        {"{'descr': '<f4',\n 'fortran_order': False,\r\n\t'shape': (2,\f3)}\n\n", 0, 2, {2, 3}},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        posenc_npy_info wanted =
            info_of(POSENC_F32, known[i].fortran, known[i].rank, known[i].shape);
        for (unsigned char major = 1; major <= 3; major++)
            assert_header_read(major, known[i].text, &wanted);
    }
}

/* Elements by hand: 1, -2 and the smallest denormal, high byte first. */
static void big_endian_numbers_are_turned(void **state) {
    (void)state;
    image f = image_of(1, "{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }");
    add_bytes(&f, "\x3f\xf0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 24);
    write_file("a.npy", f.bytes, f.size);
    double numbers[3];
    posenc_npy_reader *reader = open_array("a.npy", NULL);
    assert_int_equal(posenc_npy_read(reader, 0, 3, numbers, NULL), POSENC_OK);
    assert_true(numbers[0] == 1.0 && numbers[1] == -2.0 && numbers[2] == 0x1p-1074);
    posenc_npy_close(reader);
}

/* Version 2 is there for headers of more than 64 KiB; one of just below 1 MiB is the longest. */
static void a_header_may_be_as_long_as_1_mib(void **state) {
    (void)state;
    static const char text[] = "{'descr': '<f2', 'fortran_order': False, 'shape': (), }";
    size_t size = (size_t)1 << 20;
    image prefix = {{0}, 0, 0};
    add_prefix(&prefix, 2, 0, size - 12);
    unsigned char *bytes = malloc(size + 2);
    assert_non_null(bytes);
    memset(bytes, ' ', size);
    memcpy(bytes, prefix.bytes, prefix.size);
    memcpy(bytes + prefix.size, text, strlen(text));
    fill_pattern(bytes + size, POSENC_F16, 0, 1, 0);
    write_file("a.npy", bytes, size + 2);
    free(bytes);
    posenc_npy_info wanted = info_of(POSENC_F16, 0, 0, NULL);
    assert_array("a.npy", &wanted);
}

static void a_shape_may_have_32_sizes(void **state) {
    (void)state;
    posenc_npy_info wanted = {.dtype = POSENC_F32, .rank = POSENC_NPY_MAX_RANK, .count = 6};
    char text[300] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    for (size_t i = 0; i < POSENC_NPY_MAX_RANK; i++) {
        wanted.shape[i] = i == 7 ? 2 : i == 31 ? 3 : 1;
        strcat(text, i == 7 ? "2, " : i == 31 ? "3, " : "1, ");
    }
    strcat(text, ")}");
    assert_header_read(1, text, &wanted);
}

static void bytes_after_the_array_are_not_read(void **state) {
    (void)state;
    image f = image_of(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }");
    fill_pattern(f.bytes + f.size, POSENC_F32, 0, 2, 0);
    f.size += 8;
    add_zeros(&f, 5);
    write_file("a.npy", f.bytes, f.size);
    posenc_npy_info wanted = vector_of(POSENC_F32, 2);
    assert_array("a.npy", &wanted);
}

int main(int argc, char **argv) {
    (void)argc;
    (void)argv;
    random_announce();
#define TEST(function) cmocka_unit_test_setup_teardown(function, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        TEST(every_dtype_is_read_in_either_byte_order),
        TEST(headers_in_every_spelling_are_read),
        TEST(big_endian_numbers_are_turned),
        TEST(a_header_may_be_as_long_as_1_mib),
        TEST(a_shape_may_have_32_sizes),
        TEST(bytes_after_the_array_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
