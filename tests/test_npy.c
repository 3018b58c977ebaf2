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

static int give_up_root(void) {
    if (geteuid() != 0)
        return 0;
    if (chown(".", NOBODY, NOBODY) != 0 || setegid(NOBODY) != 0 || seteuid(NOBODY) != 0)
        return -1;
    return prctl(PR_SET_DUMPABLE, 1); /* which the change has cleared, and leak checks need */
}

static int take_root_back(void) {
    return getuid() == 0 && (seteuid(0) != 0 || setegid(0) != 0) ? -1 : 0;
}

/* A folder in shared memory, if a test has made one. */
static char shared_folder[40];

/* A number that stays the same if all files that were opened are closed. */
static int next_descriptor(void) {
    int file = open("/", O_RDONLY);
    close(file);
    return file;
}

static int enter_folder(void **state) {
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

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int remove_folder(const char *path) {
    return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int leave_folder(void **state) {
    (void)state;
    int failed = take_root_back() || chdir("/") || remove_folder(folder);
    if (shared_folder[0])
        failed |= remove_folder(shared_folder);
    assert_int_equal(next_descriptor(), next_descriptor_before);
    return failed;
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
        assert_true(strlen(names) + strlen(entries[i]->d_name) + 2 < sizeof names);
        strcat(names, entries[i]->d_name);
        strcat(names, " ");
        free(entries[i]);
    }
    free(entries);
    assert_string_equal(names, wanted);
}

/* Cuts an old file at its new end: ext4 flushes files that were emptied first, which takes long. */
static void write_file(const char *path, const void *bytes, size_t count) {
    int file = open(path, O_WRONLY | O_CREAT, 0644);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, count), (ssize_t)count);
    assert_int_equal(ftruncate(file, (off_t)count), 0);
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

/* --- The disk ----------------------------------------------------------------------------------- */

/* Functions that take the place of libc's, in a shared library too. */
#define IN_PLACE_OF_LIBC __attribute__((visibility("default")))

/* What the library asked to flush. Files of tests need not survive a power cut: where libc takes a
 * tenth of a second on some disks, this fsync notes what it was called with. */
static struct {
    int error, folder_error; /* what it should fail with */
    off_t file_size;         /* of the regular file flushed last */
    int files, folders;
} flushed;

IN_PLACE_OF_LIBC int fsync(int file) {
    struct stat status;
    errno =
        fstat(file, &status) != 0 || S_ISDIR(status.st_mode) ? flushed.folder_error : flushed.error;
    if (errno)
        return -1;
    if (S_ISREG(status.st_mode)) {
        flushed.files++;
        flushed.file_size = status.st_size;
    }
    flushed.folders += S_ISDIR(status.st_mode) != 0;
    return 0;
}

/* Set to have every second system call of reading and writing interrupted, and the others move at most
 * this many bytes. */
static size_t most_moved;

/* Set to have all of them fail. */
static int error_of_moves;

/* How many bytes to move; 0: the call is interrupted. */
static size_t moved_at_once(size_t count) {
    static unsigned calls;
    if (!most_moved || !count)
        return count;
    return calls++ % 2 ? 0 : count < most_moved ? count : most_moved;
}

static ssize_t move_bytes(long call, int file, uintptr_t bytes, size_t count, off_t offset) {
    size_t now = moved_at_once(count);
    errno = error_of_moves ? error_of_moves : count && !now ? EINTR : 0;
    if (errno)
        return -1;
    return syscall(call, file, bytes, now, offset);
}

IN_PLACE_OF_LIBC ssize_t pread64(int file, void *to, size_t count, off64_t offset) {
    return move_bytes(SYS_pread64, file, (uintptr_t)to, count, offset);
}

IN_PLACE_OF_LIBC ssize_t pwrite64(int file, const void *from, size_t count, off64_t offset) {
    return move_bytes(SYS_pwrite64, file, (uintptr_t)from, count, offset);
}

IN_PLACE_OF_LIBC ssize_t write(int file, const void *from, size_t count) {
    return move_bytes(SYS_write, file, (uintptr_t)from, count, 0);
}

/* Set to have the library believe that there is no /proc, through which files without a name get one:
 * it then makes a file with a temporary name beside the target. */
static int proc_is_hidden;

IN_PLACE_OF_LIBC int access(const char *path, int mode) {
    if (proc_is_hidden && strncmp(path, "/proc/", 6) == 0) {
        errno = ENOENT;
        return -1;
    }
    return faccessat(AT_FDCWD, path, mode, 0);
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

/* --- Files that are refused --------------------------------------------------------------------- */

/* What a refused call should say; place -1: none. */
typedef struct refusal {
    posenc_status status;
    const char *argument, *must;
    int64_t place;
} refusal;

static int says(const posenc_error *error, const refusal *wanted) {
    int has_place = error->place_name && strcmp(error->place_name, "byte") == 0;
    return error->status == wanted->status && strcmp(error->argument, wanted->argument) == 0 &&
           strcmp(error->must, wanted->must) == 0 &&
           (wanted->place < 0 ? !error->place_name : has_place && error->place == wanted->place);
}

/* `what` says in a failure which file it was. */
static void assert_open_refused(const char *path, refusal wanted, const char *what) {
    posenc_npy_info info;
    memset(&info, GUARD_FILL, sizeof info);
    posenc_npy_reader *reader = (posenc_npy_reader *)&info;
    posenc_error error;
    posenc_status status = posenc_npy_open(path, &reader, &info, &error);
    if (status == POSENC_OK)
        fail_msg("%s: was read", what);
    if (status != wanted.status || !says(&error, &wanted))
        fail_msg("%s: got %s \"%s must %s\" at %lld; wanted %s \"%s must %s\" at %lld", what,
                 posenc_status_name(status), error.argument, error.must, (long long)error.place,
                 posenc_status_name(wanted.status), wanted.argument, wanted.must,
                 (long long)wanted.place);
    assert_null(reader);
    assert_true(guard_is_filled(&info, sizeof info));
    assert_int_equal(posenc_npy_open(path, &reader, NULL, NULL), wanted.status);
}

/* A header with a fault where the ^ is, in the short and the long form of its length. */
static void assert_header_refused(const char *text, posenc_status status, const char *argument,
                                  const char *must) {
    for (unsigned char major = 1; major <= 3; major = (unsigned char)(major + 2)) {
        image f = image_of(major, text);
        refusal wanted = {status, argument, must, (int64_t)f.place};
        add_zeros(&f, 100); /* so that elements are not what is missing */
        write_file("a.npy", f.bytes, f.size);
        assert_open_refused("a.npy", wanted, text);
    }
}

static void other_dtypes_are_not_supported(void **state) {
    (void)state;
    static const char supported[] =
        "be one of f2, f4, f8 or V2 (bfloat16), after <, >, =, | or nothing: integers, booleans, "
        "complex numbers, text and structures are not supported";
    static const char *const values[] = {
        "'<i4'",     "'|b1'",     "'<c8'",          "'|S4'",         "'<U4'", "'|O'",
        "'<f16'",    "'<f1'",     "'|V3'",          "'<V4'",         "'V'",   "''",
        "'<'",       "'f4 '",     "'<F4'",          "'<<f4'",        "'!f4'", "'<f44'",
        "'<M8[ns]'", "'float32'", "[('a', '<f4')]", "('<f4', (2,))",
    };
    for (size_t i = 0; i < COUNT(values); i++) {
        char text[200];
        snprintf(text, sizeof text, "{'descr': ^%s, 'fortran_order': False, 'shape': (2,)}",
                 values[i]);
        assert_header_refused(text, POSENC_UNSUPPORTED, "descr", supported);
    }
}

static void faults_in_the_dictionary_are_told_with_their_place(void **state) {
    (void)state;
    static const char line[] = "be a quoted string on one line, without escapes";
    static const char comma[] = "have a comma or a brace after a value";
    static const char boolean[] = "be True or False", missing[] = "stand in the header";
    static const char keys[] = "be one of descr, fortran_order, shape";
    static const char quoted[] = "be a quoted string", once[] = "stand in the header once";
    static const struct {
        const char *text, *argument, *must;
    } bad[] = {
        {"^", "header", "be a dictionary in braces"},
        {"^['descr', '<f4']", "header", "be a dictionary in braces"},
        {"   \n^'descr'", "header", "be a dictionary in braces"},
        {"{^descr: '<f4'}", "key", quoted},
        {"{^u'descr': '<f4'}", "key", quoted},
        {"{^, }", "key", quoted},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), ^", "key", quoted},
        {"{'desc^\nr': '<f4'}", "key", line},
        {"{'descr^", "key", line},
        {"{^'extra': 1, 'descr': '<f4'}", "key", keys},
        {"{^'descr ': '<f4'}", "key", keys},
        {"{^'': '<f4'}", "key", keys},
        {"{'descr': '<f4', ^'descr': '<f4'}", "descr", once},
        {"{'fortran_order': True, ^'fortran_order': True}", "fortran_order", once},
        {"{'shape': (2,), ^\"shape\": (2,)}", "shape", once},
        {"{'shape'^, 'descr': '<f4'}", "shape", "be followed by a colon"},
        {"{'descr' ^'<f4'}", "descr", "be followed by a colon"},
        {"{'descr'^", "descr", "be followed by a colon"},
        {"{'descr': ^4}", "descr", quoted},
        {"{'descr': ^}", "descr", quoted},
        {"{'descr': '^\\x3cf4'}", "descr", line},
        {"{'descr': '<f4^", "descr", line},
        {"{'descr': '<f4' ^'fortran_order': False}", "header", comma},
        {"{'descr': '<f4'^; 'fortran_order': False}", "header", comma},
        {"{'descr': '<f4' ^", "header", comma},
        {"{'fortran_order': ^0}", "fortran_order", boolean},
        {"{'fortran_order': ^false}", "fortran_order", boolean},
        {"{'fortran_order': ^'True'}", "fortran_order", boolean},
        {"{'fortran_order': ^Tru", "fortran_order", boolean},
        {"{'fortran_order': ^Fals", "fortran_order", boolean},
        {"{'fortran_order': True^r}", "header", comma},
        {"{'fortran_order': True^", "header", comma},
        {"{'fortran_order': False^", "header", comma},
        {"{^}", "descr", missing},
        {"{'fortran_order': False, 'shape': (2,), ^}", "descr", missing},
        {"{'descr': '<f4', 'shape': (2,)^}", "fortran_order", missing},
        {"{'descr': '<f4', 'fortran_order': False ^}", "shape", missing},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}  ^{", "header",
         "end after the dictionary"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}^\x01", "header",
         "end after the dictionary"},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_header_refused(bad[i].text, POSENC_FORMAT, bad[i].argument, bad[i].must);
}

static void shapes_that_are_no_tuple_of_sizes_are_refused(void **state) {
    (void)state;
    static const char comma[] = "have a comma between two sizes";
    static const char natural[] = "be a tuple of integers that are not negative";
    static const struct {
        const char *must, *shapes[10];
    } bad[] = {
        {"be a tuple of integers", {"^[2, 3]", "^2", "^"}},
        {"have a comma after a single size", {"(2^)", "(2L ^)"}},
        {"have no leading zeros", {"(0^5, 2)", "(2, 0^0)"}},
        {natural, {"(^-1,)", "(2, ^-3)", "(^+2,)", "(^,)", "(2,^, 3)", "(2, ^x)", "(^'2',)"}},
        {natural, {"(^True,)", "(2, ^(3,))", "(^.5, 2)"}},
        {comma, {"(2^.0,)", "(2 ^3)", "(2^x, 3)", "(0^x2,)", "(2L^L,)", "(2^l,)", "(2 ^L,)"}},
        {comma, {"(2^; 3)", "(2^_0,)", "(2^e3,)", "(2^-1, 3)"}},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        for (const char *const *shape = bad[i].shapes; *shape; shape++) {
            char text[200];
            snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': %s}",
                     *shape);
            assert_header_refused(text, POSENC_FORMAT, "shape", bad[i].must);
        }
    }
    assert_header_refused("{'shape': (2^", POSENC_FORMAT, "shape", comma);
    assert_header_refused("{'shape': (2, ^", POSENC_FORMAT, "shape", natural);
    assert_header_refused("{'shape': (^", POSENC_FORMAT, "shape", natural);
}

/* 2^63 bytes and more fit no file; 2^64 elements no size_t. */
static void shapes_too_large_for_a_file_are_refused(void **state) {
    (void)state;
    static const char array[] = "give an array of less than 2^63 bytes", number[] = "fit size_t";
    static const struct {
        const char *descr, *shape, *must;
    } bad[] = {
        {"<f4", " (^18446744073709551616,)", number},
        {"<f4", " (0, ^99999999999999999999999999)", number},
        {"<f4", " ^(18446744073709551615,)", array},
        {"<f4", " ^(4294967296, 4294967296)", array},
        {"<f4", " ^(3037000500, 3037000500)", array},
        {"<f2", " ^(4611686018427387904,)", array},
        {"<f8", " ^(1152921504606846976,)", array},
        {"<f8", " ^(2, 2, 2, 144115188075855872)", array},
        {"<f8", " ^(1152921504606846976, 0)", array}, /* as in NumPy */
        {"<f8", " ^(0, 1152921504606846976)", array},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        char text[200];
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape':%s}",
                 bad[i].descr, bad[i].shape);
        assert_header_refused(text, POSENC_OVERFLOW, "shape", bad[i].must);
    }
}

static void a_shape_of_33_sizes_is_refused(void **state) {
    (void)state;
    char text[300] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    for (size_t i = 0; i < POSENC_NPY_MAX_RANK; i++)
        strcat(text, "1,");
    strcat(text, "1^)}");
    assert_header_refused(text, POSENC_UNSUPPORTED, "shape",
                          "have no more sizes than POSENC_NPY_MAX_RANK");
}

static void other_versions_are_refused(void **state) {
    (void)state;
    static const unsigned char versions[][2] = {{0, 0}, {1, 1}, {2, 1}, {3, 255}, {4, 0}, {255, 0}};
    for (size_t i = 0; i < COUNT(versions); i++) {
        image f = {{0}, 0, 0};
        add_prefix(&f, versions[i][0], versions[i][1], 4);
        add_zeros(&f, 100);
        write_file("a.npy", f.bytes, f.size);
        refusal wanted = {POSENC_UNSUPPORTED, "version", "be 1.0, 2.0 or 3.0", 6};
        assert_open_refused("a.npy", wanted, "version");
    }
}

static void headers_above_1_mib_are_refused(void **state) {
    (void)state;
    static const size_t lengths[] = {((size_t)1 << 20) - 11, 0xffffffff};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        image f = {{0}, 0, 0};
        add_prefix(&f, 2, 0, lengths[i]);
        write_file("a.npy", f.bytes, f.size);
        refusal wanted = {POSENC_UNSUPPORTED, "header length", "be at most 1 MiB", 8};
        assert_open_refused("a.npy", wanted, "long header");
    }
}

static void files_of_other_formats_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        int64_t place;
    } bad[] = {
        {"PK\x03\x04 an .npz file", 0},
        {"NUMPY\x01 and more bytes", 0},
        {"\x93numpy\x01 and more", 1},
        {"\x93NUMPZ\x01 and more", 5},
        {"\x93NUM", 4},
        {"", 0},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        write_file("a.npy", bad[i].bytes, strlen(bad[i].bytes));
        refusal wanted = {POSENC_FORMAT, "file", "begin with the magic of .npy", bad[i].place};
        assert_open_refused("a.npy", wanted, bad[i].bytes);
    }
}

/* What is missing is told by what ends too early: magic, prefix, header or elements; the place is
 * always the file's end. */
static void every_prefix_of_a_file_is_refused_at_its_end(void **state) {
    (void)state;
    for (unsigned char major = 1; major <= 2; major++) {
        image f = image_of(major, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }\n");
        size_t prefix = major == 1 ? 10 : 12;
        add_zeros(&f, 6 * sizeof(double));
        for (size_t size = 0; size < f.size; size++) {
            refusal wanted = {POSENC_FORMAT, "file size", "be at least what the header says",
                              (int64_t)size};
            if (size < prefix) {
                wanted.argument = "file";
                wanted.must = size < 6 ? "begin with the magic of .npy" : "hold the whole header";
            }
            write_file("a.npy", f.bytes, size);
            assert_open_refused("a.npy", wanted, "prefix");
        }
        write_file("a.npy", f.bytes, f.size);
        posenc_npy_close(open_array("a.npy", NULL));
    }
}

/* A file cut below its array says how large it is and how large it should be. */
static void a_short_file_tells_both_sizes(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F32, 1000), got;
    make_array("a.npy", &info);
    posenc_npy_close(open_array("a.npy", &got));
    assert_int_equal(truncate("a.npy", 2000), 0);
    posenc_npy_reader *reader;
    posenc_error error;
    assert_int_equal(posenc_npy_open("a.npy", &reader, NULL, &error), POSENC_FORMAT);
    assert_int_equal(error.value.kind, POSENC_NUMBER_SIZE);
    assert_int_equal(error.value.as.size, 2000);
    assert_int_equal(error.limit.kind, POSENC_NUMBER_SIZE);
    assert_int_equal(error.limit.as.size, got.data_offset + 4000);
}

static void what_is_no_regular_file_is_refused_without_waiting(void **state) {
    (void)state;
    static const char regular[] = "name a regular file, not a folder, pipe or device";
    refusal wanted = {POSENC_UNSUPPORTED, "path", regular, -1};
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_open_refused("pipe", wanted, "pipe");
    assert_open_refused(".", wanted, "folder");
    assert_open_refused("/dev/null", wanted, "device");
}

static void files_that_cannot_be_opened_tell_why(void **state) {
    (void)state;
    static char long_path[PATH_MAX + 10];
    memset(long_path, 'x', sizeof long_path - 1);
    write_file("file", "", 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    const struct {
        const char *path;
        int os_error;
    } bad[] = {{"missing.npy", ENOENT}, {"missing/a.npy", ENOENT},
               {"file/a.npy", ENOTDIR}, {"", ENOENT},
               {"loop", ELOOP},         {long_path, ENAMETOOLONG}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        posenc_npy_reader *reader;
        posenc_error error;
        assert_refused(posenc_npy_open(bad[i].path, &reader, NULL, &error), &error, POSENC_IO,
                       "path");
        assert_int_equal(error.os_error, bad[i].os_error);
    }
}

/* --- Mutations ---------------------------------------------------------------------------------- */

/* What headers are made of: mutations with these come further than random bytes. */
static unsigned char header_byte(random_stream *rng) {
    static const char known[] =
        "{}()[]'\",: \n\t0123456789L-.TrueFalsedescrfortran_ordershape<>=|fV\\";
    size_t at = random_below(rng, sizeof known + 40);
    return at < sizeof known ? (unsigned char)known[at] : (unsigned char)random_bits(rng);
}

/* Changes, inserts, removes or doubles something at a random byte, or cuts the file there. */
static void mutate(image *f, random_stream *rng) {
    size_t at = random_below(rng, f->size), count = 1 + random_below(rng, 8);
    if (count > f->size - at)
        count = f->size - at;
    unsigned char *place = f->bytes + at;
    switch (random_below(rng, 12)) {
    case 0:
        f->size = at;
        break;
    case 1: /* remove */
        memmove(place, place + count, f->size - at - count);
        f->size -= count;
        break;
    case 2: /* double */
        memmove(place + count, place, f->size - at);
        f->size += count;
        break;
    case 3:
        memmove(place + 1, place, f->size - at);
        f->size++;
        *place = header_byte(rng);
        break;
    case 4:
        *place ^= (unsigned char)(1u << random_below(rng, 8));
        break;
    default:
        *place = header_byte(rng);
    }
}

/* An array that was accepted lies inside the file, and all of it can be read. */
static void assert_consistent(const posenc_npy_reader *reader, const posenc_npy_info *info,
                              size_t file_size) {
    uint64_t count = 1;
    size_t bytes = posenc_dtype_bytes(info->dtype);
    assert_true(bytes && info->rank <= POSENC_NPY_MAX_RANK);
    for (size_t i = 0; i < info->rank; i++)
        count *= info->shape[i];
    assert_int_equal(info->count, count);
    assert_true(info->data_offset <= file_size);
    assert_true(count <= (file_size - info->data_offset) / bytes);
    guarded all = guarded_new((size_t)count * bytes, GUARD_AFTER);
    assert_int_equal(posenc_npy_read(reader, 0, (size_t)count, all.data, NULL), POSENC_OK);
    guarded_free(&all);
}

static void random_mutations_are_read_or_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }          \n",
        "{'descr': '>f8', 'fortran_order': True, 'shape': (12L,), }\n",
        "{\"shape\": (), \"descr\": \"|V2\", \"fortran_order\": False}",
    };
    random_stream rng = random_of(__func__);
    size_t trials = random_trials(20000), accepted = 0;
    for (size_t trial = 0; trial < trials; trial++) {
        image f = image_of((unsigned char)(1 + trial % 3), texts[trial / 3 % COUNT(texts)]);
        add_zeros(&f, 96);
        for (size_t i = 1 + random_below(&rng, 4); i > 0 && f.size; i--)
            mutate(&f, &rng);
        write_file("a.npy", f.bytes, f.size);
        posenc_npy_reader *reader;
        posenc_npy_info info;
        posenc_error error = {POSENC_OK, 0, NULL, {0}, NULL, NULL, {0}, NULL, 0, {0}};
        posenc_status status = posenc_npy_open("a.npy", &reader, &info, &error);
        if (status == POSENC_OK) {
            accepted++;
            assert_consistent(reader, &info, f.size);
            posenc_npy_close(reader);
        } else {
            assert_true(status == POSENC_FORMAT || status == POSENC_UNSUPPORTED ||
                        status == POSENC_OVERFLOW);
            assert_true(error.status == status && error.argument && error.must && !reader);
            assert_true(error.place >= 0 && (size_t)error.place <= f.size);
        }
    }
    /* Mutations that all do nothing, or all break the magic, would test little. */
    assert_true(accepted > trials / 50 && accepted < trials / 2);
}

/* --- Round trips -------------------------------------------------------------------------------- */

static void set_random_array(posenc_npy_info *info, random_stream *rng) {
    static const size_t ranks[] = {0, 1, 1, 2, 2, 3, 4, 5, POSENC_NPY_MAX_RANK};
    size_t shape[POSENC_NPY_MAX_RANK], rank = ranks[random_below(rng, COUNT(ranks))], count = 1;
    for (size_t i = 0; i < rank; i++) {
        size_t room = 3000 / count;
        shape[i] = room > 1 ? 1 + random_below(rng, room < 40 ? room : 40) : 1;
        count *= shape[i];
    }
    if (rank && random_below(rng, 10) == 0)
        shape[random_below(rng, rank)] = 0;
    *info = info_of(dtypes[random_below(rng, 4)], (int)random_below(rng, 2), rank, shape);
}

/* 0 ... count - 1 in random order (Fisher and Yates). */
static void shuffle(size_t *order, size_t count, random_stream *rng) {
    for (size_t i = 0; i < count; i++) {
        size_t other = random_below(rng, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
}

/* Writes the array in pieces of one size, in random order. */
static void put_in_pieces(posenc_npy_writer *writer, const posenc_npy_info *info,
                          random_stream *rng) {
    size_t count = (size_t)info->count, piece = 1 + count / (1 + random_below(rng, 9));
    size_t order[3001], pieces = (count + piece - 1) / piece;
    shuffle(order, pieces, rng);
    for (size_t i = 0; i < pieces; i++) {
        size_t first = order[i] * piece;
        put(writer, info->dtype, first, count - first < piece ? count - first : piece);
    }
}

static void arrays_are_read_as_they_were_written_in_any_pieces(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(400); trial++) {
        posenc_npy_info info, got;
        set_random_array(&info, &rng);
        posenc_npy_writer *writer = create("a.npy", &info);
        put_in_pieces(writer, &info, &rng);
        commit(writer);
        assert_array("a.npy", &info);
        posenc_npy_reader *reader = open_array("a.npy", &got);
        for (int i = 0; i < 5; i++) {
            size_t first = random_below(&rng, (size_t)info.count + 1);
            size_t count = random_below(&rng, (size_t)info.count - first + 1);
            assert_part(reader, info.dtype, first, count);
        }
        posenc_npy_close(reader);
        assert_names(".", "a.npy ");
    }
}

static void big_endian_files_are_read_in_pieces(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    static const char *const texts[] = {
        [POSENC_F32] = ">f4", [POSENC_F64] = ">f8", [POSENC_F16] = ">f2", [POSENC_BF16] = ">V2"};
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        char text[100];
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (400,)}",
                 texts[dtypes[i]]);
        image f = image_of(1, text);
        fill_pattern(f.bytes + f.size, dtypes[i], 0, 400, 1);
        f.size += 400 * posenc_dtype_bytes(dtypes[i]);
        write_file("a.npy", f.bytes, f.size);
        posenc_npy_reader *reader = open_array("a.npy", NULL);
        for (int trial = 0; trial < 50; trial++) {
            size_t first = random_below(&rng, 401);
            assert_part(reader, dtypes[i], first, random_below(&rng, 401 - first));
        }
        posenc_npy_close(reader);
    }
}

#define ONES "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "

/* The bytes that NumPy 2 writes, by hand: elements at a multiple of 64, little-endian, and room for the
 * axis along which the file may grow to become 21 digits long. */
static void written_files_have_the_bytes_of_numpy(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t header;
        posenc_dtype dtype;
        int fortran;
        size_t rank, shape[15];
    } known[] = {
        {"'<f4', 'fortran_order': False, 'shape': (2, 3), }", 128, POSENC_F32, 0, 2, {2, 3}},
        {"'<f8', 'fortran_order': True, 'shape': (2, 3), }", 128, POSENC_F64, 1, 2, {2, 3}},
        {"'<f2', 'fortran_order': False, 'shape': (5,), }", 128, POSENC_F16, 0, 1, {5}},
        {"'<V2', 'fortran_order': True, 'shape': (1, 2, 3), }", 128, POSENC_BF16, 1, 3, {1, 2, 3}},
        {"'<f4', 'fortran_order': False, 'shape': (0, 7), }", 128, POSENC_F32, 0, 2, {0, 7}},
        {"'<f4', 'fortran_order': False, 'shape': (), }", 128, POSENC_F32, 0, 0, {0}},
        /* long enough for the room to matter, and to be that of the right axis */
        {"'<f4', 'fortran_order': False, 'shape': (0, " ONES "1000), }",
         192,
         POSENC_F32,
         0,
         14,
         {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1000}},
        {"'<f4', 'fortran_order': True, 'shape': (0, " ONES "1000), }",
         128,
         POSENC_F32,
         1,
         14,
         {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1000}},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        image f = {{0}, 0, 0};
        posenc_npy_info info =
            info_of(known[i].dtype, known[i].fortran, known[i].rank, known[i].shape);
        add_prefix(&f, 1, 0, known[i].header - 10);
        add_bytes(&f, "{'descr': ", 10);
        add_bytes(&f, known[i].text, strlen(known[i].text));
        while (f.size < known[i].header - 1)
            add_bytes(&f, " ", 1);
        add_bytes(&f, "\n", 1);
        fill_pattern(f.bytes + f.size, info.dtype, 0, (size_t)info.count, 0);
        f.size += (size_t)info.count * posenc_dtype_bytes(info.dtype);
        make_array("a.npy", &info);
        assert_file("a.npy", f.bytes, f.size);
    }
}

/* Members of info that only say what was read do not matter to a writer. */
static void a_writer_reads_dtype_shape_and_order_only(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F32, 3), odd = info;
    odd.big_endian = 1;
    odd.count = 99;
    odd.data_offset = 7;
    posenc_npy_writer *writer = create("a.npy", &odd);
    put(writer, POSENC_F32, 0, 3);
    commit(writer);
    assert_array("a.npy", &info);
}

static void system_calls_may_be_interrupted_and_move_less(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 300);
    for (most_moved = 7; most_moved < 1000; most_moved *= 3)
        make_array("a.npy", &info);
    most_moved = 0;
    assert_array("a.npy", &info);
    for (most_moved = 7; most_moved < 1000; most_moved *= 3)
        assert_array("a.npy", &info);
    most_moved = 0;
}

/* --- Threads ------------------------------------------------------------------------------------ */

enum { THREADS = 4, SHARE = 5000 };

/* One thread's part of an array; assertions are for the main thread, so that it only counts. */
typedef struct thread_part {
    pthread_t thread;
    posenc_npy_writer *writer;
    const posenc_npy_reader *reader;
    uint64_t first;
    int failures;
    uint32_t elements[SHARE];
} thread_part;

/* Steps of 50 elements, so that the threads are at work at the same time. */
static void *write_part(void *argument) {
    thread_part *part = argument;
    fill_pattern(part->elements, POSENC_F32, part->first, SHARE, machine_is_big());
    for (size_t i = 0; i < SHARE; i += 50)
        part->failures += posenc_npy_write(part->writer, part->first + i, 50, part->elements + i,
                                           NULL) != POSENC_OK;
    return NULL;
}

static void *read_part(void *argument) {
    thread_part *part = argument;
    for (size_t i = 0; i < SHARE; i += 50)
        part->failures += posenc_npy_read(part->reader, part->first + i, 50, part->elements + i,
                                          NULL) != POSENC_OK;
    return NULL;
}

static void run_threads(thread_part *parts, void *(*work)(void *)) {
    for (size_t i = 0; i < THREADS; i++) {
        parts[i].first = i * SHARE;
        assert_int_equal(pthread_create(&parts[i].thread, NULL, work, &parts[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(parts[i].thread, NULL), 0);
        assert_int_equal(parts[i].failures, 0);
    }
}

static void threads_share_a_writer_and_a_reader(void **state) {
    (void)state;
    static thread_part parts[THREADS];
    posenc_npy_info info = vector_of(POSENC_F32, (size_t)THREADS * SHARE);
    posenc_npy_writer *writer = create("a.npy", &info);
    for (size_t i = 0; i < THREADS; i++)
        parts[i].writer = writer;
    run_threads(parts, write_part);
    commit(writer);
    assert_array("a.npy", &info);
    posenc_npy_reader *reader = open_array("a.npy", NULL);
    for (size_t i = 0; i < THREADS; i++) {
        memset(parts[i].elements, 0, sizeof parts[i].elements);
        parts[i].reader = reader;
    }
    run_threads(parts, read_part);
    posenc_npy_close(reader);
    for (size_t i = 0; i < THREADS; i++)
        assert_pattern(parts[i].elements, POSENC_F32, parts[i].first, SHARE);
}

/* --- What happens to the target ----------------------------------------------------------------- */

static const char original[] = "the file that was there before";

static void write_original(const char *path) {
    write_file(path, original, sizeof original);
}

static void assert_original(const char *path) {
    assert_file(path, original, sizeof original);
}

static void a_target_is_untouched_until_commit(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    write_original("a.npy");
    posenc_npy_writer *writer = create("a.npy", &info);
    assert_original("a.npy");
    put(writer, POSENC_F64, 0, 10);
    assert_original("a.npy");
    commit(writer);
    assert_array("a.npy", &info);
    assert_names(".", "a.npy ");
}

static void a_discarded_array_leaves_no_file(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    write_original("a.npy");
    for (size_t written = 0; written <= 10; written += 5) {
        posenc_npy_writer *writer = create("a.npy", &info);
        put(writer, POSENC_F64, 0, written);
        posenc_npy_discard(writer);
        writer = create("new.npy", &info);
        put(writer, POSENC_F64, 0, written);
        posenc_npy_discard(writer);
        assert_original("a.npy");
        assert_names(".", "a.npy ");
    }
}

static void an_unfinished_array_is_not_committed_and_leaves_no_file(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    static const char *const targets[] = {"a.npy", "new.npy"};
    write_original("a.npy");
    for (size_t i = 0; i < 2 * COUNT(targets); i++) {
        size_t written = i < 2 ? 0 : 9;
        posenc_npy_writer *writer = create(targets[i % 2], &info);
        posenc_error error;
        put(writer, POSENC_F64, 0, written);
        assert_refused(posenc_npy_commit(writer, &error), &error, POSENC_OUT_OF_RANGE,
                       "elements written");
        assert_string_equal(error.must, "be all that the shape says");
        assert_int_equal(error.value.as.size, written);
        assert_int_equal(error.limit.as.size, 10);
        assert_original("a.npy");
        assert_names(".", "a.npy ");
    }
}

static mode_t mode_of(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

/* 0444 too: what may be written is the folder. */
static void an_existing_file_keeps_its_mode(void **state) {
    (void)state;
    static const mode_t modes[] = {0600, 0640, 0664, 0755, 0444};
    posenc_npy_info info = vector_of(POSENC_F32, 3);
    for (size_t i = 0; i < COUNT(modes); i++) {
        unlink("a.npy");
        write_original("a.npy");
        assert_int_equal(chmod("a.npy", modes[i]), 0);
        make_array("a.npy", &info);
        assert_int_equal(mode_of("a.npy"), modes[i]);
    }
}

static void an_existing_file_keeps_its_owner_where_that_is_permitted(void **state) {
    (void)state;
    struct stat status;
    posenc_npy_info info = vector_of(POSENC_F32, 3);
    if (getuid() != 0)
        skip();
    write_original("a.npy");
    assert_int_equal(take_root_back(), 0);
    assert_int_equal(chown("a.npy", 12, 34), 0);
    assert_int_equal(chmod("a.npy", 06755), 0); /* bits that a change of the owner clears */
    make_array("a.npy", &info);
    (void)give_up_root();
    assert_int_equal(stat("a.npy", &status), 0);
    assert_true(status.st_uid == 12 && status.st_gid == 34);
    assert_int_equal(status.st_mode & 07777, 06755);
}

static void a_new_file_gets_the_mode_that_the_umask_leaves(void **state) {
    (void)state;
    static const mode_t masks[] = {022, 027, 077, 0};
    posenc_npy_info info = vector_of(POSENC_F32, 3);
    for (size_t i = 0; i < COUNT(masks); i++) {
        unlink("a.npy");
        mode_t before = umask(masks[i]);
        make_array("a.npy", &info);
        umask(before);
        assert_int_equal(mode_of("a.npy"), 0666 & ~masks[i]);
    }
}

/* Another name of the old file and a reader that has it open keep the old one. */
static void a_file_is_replaced_and_not_overwritten(void **state) {
    (void)state;
    posenc_npy_info old = vector_of(POSENC_F64, 10), new = vector_of(POSENC_F32, 3);
    make_array("a.npy", &old);
    assert_int_equal(link("a.npy", "old.npy"), 0);
    posenc_npy_reader *reader = open_array("a.npy", NULL);
    make_array("a.npy", &new);
    assert_part(reader, POSENC_F64, 0, 10);
    posenc_npy_close(reader);
    assert_array("a.npy", &new);
    assert_array("old.npy", &old);
}

static void the_writer_that_commits_last_wins(void **state) {
    (void)state;
    posenc_npy_info first = vector_of(POSENC_F64, 10), last = vector_of(POSENC_F32, 3);
    posenc_npy_writer *late = create("a.npy", &last), *early = create("a.npy", &first);
    put(early, POSENC_F64, 0, 10);
    put(late, POSENC_F32, 0, 3);
    commit(early);
    assert_array("a.npy", &first);
    commit(late);
    assert_array("a.npy", &last);
    assert_names(".", "a.npy ");
}

/* Links, relative to where they stand: `link` leads to `text`, which is the file `target`. */
static void symbolic_links_are_followed_and_kept(void **state) {
    (void)state;
    static const struct {
        const char *path, *link, *text, *target;
    } known[] = {
        {"link", "link", "real", "real"},
        {"sub/link", "sub/link", "../other/real", "other/real"},
        {"sub/link", "sub/link", "real", "sub/real"},
        {"./sub/../link", "link", "sub/real", "sub/real"},
        {"first", "link", "other/real", "other/real"},    /* through a link to the link */
        {"shortcut/link", "sub/link", "../real", "real"}, /* in a folder that is a link itself */
        {"shortcut/real", "unused", "real", "sub/real"},
    };
    posenc_npy_info info = vector_of(POSENC_F32, 5);
    for (size_t i = 0; i < 2 * COUNT(known); i++) {
        const char *path = known[i / 2].path, *link = known[i / 2].link;
        const char *target = known[i / 2].target;
        struct stat status;
        assert_true(leave_folder(NULL) == 0 && enter_folder(NULL) == 0); /* to an empty one */
        assert_true(mkdir("sub", 0755) == 0 && mkdir("other", 0755) == 0);
        assert_true(symlink("sub", "shortcut") == 0 && symlink("link", "first") == 0);
        assert_int_equal(symlink(known[i / 2].text, link), 0);
        if (i % 2) /* else the link leads nowhere yet */
            write_original(target);
        posenc_npy_writer *writer = create(path, &info);
        put(writer, POSENC_F32, 0, 5);
        if (i % 2)
            assert_original(target);
        else
            assert_int_equal(lstat(target, &status), -1);
        commit(writer);
        assert_true(lstat(link, &status) == 0 && S_ISLNK(status.st_mode));
        assert_true(lstat(target, &status) == 0 && S_ISREG(status.st_mode));
        assert_array(target, &info);
        assert_array(path, &info);
    }
}
static void commit_flushes_the_whole_file_and_its_folder(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 1000);
    posenc_npy_writer *writer = create("a.npy", &info);
    put(writer, POSENC_F64, 0, 1000);
    memset(&flushed, 0, sizeof flushed);
    commit(writer);
    assert_int_equal(flushed.files, 1);
    assert_int_equal(flushed.file_size, 128 + 8000);
    assert_int_equal(flushed.folders, 1);
}

/* --- Where the target is ------------------------------------------------------------------------ */

/* On systems that cannot make files without a name. */
static void a_temporary_file_is_gone_in_the_end(void **state) {
    (void)state;
    enum { DISCARD, COMMIT_TOO_EARLY, COMMIT, ENDS };
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    for (int end = 0; end < ENDS; end++) {
        write_original("a.npy");
        assert_int_equal(chmod("a.npy", 0640), 0);
        proc_is_hidden = 1;
        posenc_npy_writer *writer = create("a.npy", &info);
        proc_is_hidden = 0;
        struct dirent **entries;
        int count = scandir(".", &entries, is_no_dot, alphasort);
        assert_int_equal(count, 2);
        assert_true(entries[0]->d_name[0] == '.'); /* hidden, and not taken for an array */
        for (int i = 0; i < count; i++)
            free(entries[i]);
        free(entries);
        put(writer, POSENC_F64, 0, end == COMMIT_TOO_EARLY ? 9 : 10);
        assert_original("a.npy");
        if (end == DISCARD)
            posenc_npy_discard(writer);
        else
            assert_int_equal(posenc_npy_commit(writer, NULL),
                             end == COMMIT ? POSENC_OK : POSENC_OUT_OF_RANGE);
        assert_names(".", "a.npy ");
        assert_int_equal(mode_of("a.npy"), 0640);
        if (end == COMMIT)
            assert_array("a.npy", &info);
        else
            assert_original("a.npy");
    }
}

/* A relative path means what it meant when the array was begun. */
static void a_change_of_folder_does_not_move_the_target(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    assert_true(mkdir("other", 0755) == 0 && mkdir("sub", 0755) == 0);
    posenc_npy_writer *here = create("a.npy", &info), *below = create("sub/b.npy", &info);
    put(here, POSENC_F64, 0, 10);
    put(below, POSENC_F64, 0, 10);
    assert_int_equal(chdir("other"), 0);
    commit(here);
    commit(below);
    assert_int_equal(chdir(".."), 0);
    assert_array("a.npy", &info);
    assert_array("sub/b.npy", &info);
    assert_names("other", "");
}

/* /dev has devices, but this is a folder as any other. */
static void arrays_may_lie_in_shared_memory(void **state) {
    (void)state;
    char path[sizeof shared_folder + 6];
    posenc_npy_info info = vector_of(POSENC_F64, 10), longer = vector_of(POSENC_F64, 20);
    strcpy(shared_folder, "/dev/shm/posenc-npy-XXXXXX");
    if (!mkdtemp(shared_folder)) {
        shared_folder[0] = '\0';
        skip();
    }
    snprintf(path, sizeof path, "%s/a.npy", shared_folder);
    make_array(path, &longer);
    posenc_npy_writer *writer = create(path, &info);
    assert_array(path, &longer);
    put(writer, POSENC_F64, 0, 10);
    commit(writer);
    assert_array(path, &info);
    assert_names(shared_folder, "a.npy ");
}

/* --- What is no regular file -------------------------------------------------------------------- */

static void assert_write_refused(posenc_npy_writer *writer, uint64_t first, size_t count,
                                 const void *from, posenc_status status, const char *argument) {
    posenc_error error;
    assert_refused(posenc_npy_write(writer, first, count, from, &error), &error, status, argument);
    assert_int_equal(posenc_npy_write(writer, first, count, from, NULL), status);
}

static void a_device_is_written_in_order_and_stays(void **state) {
    (void)state;
    static const float numbers[10] = {0};
    struct stat status;
    posenc_npy_info info = vector_of(POSENC_F32, 10);
    if (geteuid() == 0)
        skip();
    assert_int_equal(symlink("/dev/null", "link"), 0);
    static const char *const paths[] = {"/dev/null", "link"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        posenc_npy_writer *writer = create(paths[i], &info);
        put(writer, POSENC_F32, 0, 4);
        assert_write_refused(writer, 5, 5, numbers, POSENC_OUT_OF_RANGE, "first");
        assert_write_refused(writer, 0, 4, numbers, POSENC_OUT_OF_RANGE, "first");
        put(writer, POSENC_F32, 4, 6);
        commit(writer);
        assert_true(stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode));
        assert_names(".", "link ");
    }
}

/* What a thread read from a pipe until its end. */
typedef struct pipe_content {
    unsigned char bytes[1 << 20];
    size_t size;
} pipe_content;

static void *read_pipe(void *argument) {
    pipe_content *content = argument;
    int file = open("pipe", O_RDONLY);
    for (ssize_t got = 1; got > 0 && content->size < sizeof content->bytes;) {
        got = read(file, content->bytes + content->size, sizeof content->bytes - content->size);
        content->size += got > 0 ? (size_t)got : 0;
    }
    close(file);
    return NULL;
}

/* More than a pipe holds, so that writes happen in parts. */
static void a_pipe_gets_the_bytes_of_a_file(void **state) {
    (void)state;
    static pipe_content content;
    enum { ELEMENTS = 100000 };
    pthread_t thread;
    posenc_npy_info info = vector_of(POSENC_F64, ELEMENTS);
    content.size = 0;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_pipe, &content), 0);
    posenc_npy_writer *writer = create("pipe", &info);
    put(writer, POSENC_F64, 0, 1);
    put(writer, POSENC_F64, 1, ELEMENTS - 1);
    commit(writer);
    assert_int_equal(pthread_join(thread, NULL), 0);
    make_array("a.npy", &info);
    assert_file("a.npy", content.bytes, content.size);
    assert_names(".", "a.npy pipe ");
}

static void a_pipe_without_reader_is_an_error(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F32, 10);
    uint32_t elements[10] = {0};
    posenc_error error;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    int reading = open("pipe", O_RDONLY | O_NONBLOCK);
    posenc_npy_writer *writer = create("pipe", &info);
    close(reading);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    posenc_status status = posenc_npy_write(writer, 0, 10, elements, &error);
    signal(SIGPIPE, before);
    assert_refused(status, &error, POSENC_IO, "file");
    assert_int_equal(error.os_error, EPIPE);
    /* Nobody knows what the pipe took: there is no place to go on from. */
    assert_write_refused(writer, 0, 10, elements, POSENC_OUT_OF_RANGE, "first");
    posenc_npy_discard(writer);
    assert_names(".", "pipe ");
}

/* --- Other processes ---------------------------------------------------------------------------- */

/* Runs `work` in a child, which must not return from it; returns how the child ended. */
static int run_child(void (*work)(void)) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        work();
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static const char before_array[] = "bytes before";

static const char *name_of_stdout;

/* Ends with 0 if all went well. Assertions are for the parent. */
static void write_to_stdout(void) {
    posenc_npy_info info = vector_of(POSENC_F32, 3);
    posenc_npy_writer *writer;
    uint32_t elements[3];
    int out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (dup2(out, STDOUT_FILENO) < 0 || write(out, before_array, sizeof before_array) < 0)
        _exit(2);
    fill_pattern(elements, POSENC_F32, 0, 3, machine_is_big());
    if (posenc_npy_create(name_of_stdout, &info, &writer, NULL) ||
        posenc_npy_write(writer, 0, 3, elements, NULL) || posenc_npy_commit(writer, NULL))
        _exit(3);
    _exit(0);
}

/* Where standard output is a file, its other bytes stay and the array follows them. */
static void standard_output_is_written_where_it_stands(void **state) {
    (void)state;
    static const char *const names[] = {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"};
    posenc_npy_info info = vector_of(POSENC_F32, 3);
    if (geteuid() == 0)
        skip();
    assert_int_equal(symlink("/dev/stdout", "link"), 0);
    for (size_t i = 0; i < COUNT(names); i++) {
        name_of_stdout = names[i];
        assert_int_equal(run_child(write_to_stdout), 0);
        size_t count, head = sizeof before_array;
        unsigned char *bytes = read_file("out", &count);
        assert_true(count > head);
        assert_memory_equal(bytes, before_array, head);
        write_file("a.npy", bytes + head, count - head);
        free(bytes);
        assert_array("a.npy", &info);
        assert_names(".", "a.npy link out ");
    }
}

/* A writer's state when its process ends, and how it ends. */
static struct {
    size_t written;
    int is_killed;
} end_of_child;

static void end_while_writing(void) {
    posenc_npy_info info = vector_of(POSENC_F64, 1000);
    posenc_npy_writer *writer;
    double elements[1000] = {0};
    if (posenc_npy_create("a.npy", &info, &writer, NULL) ||
        posenc_npy_write(writer, 0, end_of_child.written, elements, NULL))
        _exit(2);
    if (end_of_child.is_killed)
        kill(getpid(), SIGKILL);
    _exit(0);
}

/* 1 where files without a name can be made; elsewhere a killed process cannot clean up. */
static int has_nameless_files(void) {
    int file = open(".", O_TMPFILE | O_WRONLY, 0600);
    if (file < 0)
        return 0;
    close(file);
    return access("/proc/self/fd", F_OK) == 0;
}

static void a_process_that_ends_while_writing_leaves_the_old_file_and_nothing_else(void **state) {
    (void)state;
    if (!has_nameless_files())
        skip();
    write_original("a.npy");
    for (int i = 0; i < 6; i++) {
        end_of_child.written = (size_t)(i / 2) * 500;
        end_of_child.is_killed = i % 2;
        int status = run_child(end_while_writing);
        assert_true(i % 2 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0);
        assert_original("a.npy");
        assert_names(".", "a.npy ");
    }
}

/* --- Failures of the system --------------------------------------------------------------------- */

static void assert_create_refused(const char *path, int os_error) {
    posenc_npy_info info = vector_of(POSENC_F32, 3);
    posenc_npy_writer *writer = (posenc_npy_writer *)&info;
    posenc_error error;
    assert_refused(posenc_npy_create(path, &info, &writer, &error), &error, POSENC_IO, "path");
    assert_int_equal(error.os_error, os_error);
    assert_null(writer);
}

static void targets_that_cannot_be_written_tell_why(void **state) {
    (void)state;
    static char long_path[PATH_MAX + 10];
    memset(long_path, 'x', sizeof long_path - 1);
    write_original("file");
    assert_int_equal(mkdir("sub", 0755), 0);
    assert_true(symlink("loop", "loop") == 0 && symlink("missing/a.npy", "link") == 0);
    assert_create_refused("", ENOENT);
    assert_create_refused("new/", EISDIR);
    assert_create_refused("missing/a.npy", ENOENT);
    assert_create_refused("link", ENOENT);
    assert_create_refused("file/a.npy", ENOTDIR);
    assert_create_refused("sub", EISDIR);
    assert_create_refused("sub/", EISDIR);
    assert_create_refused("loop", ELOOP);
    assert_create_refused(long_path, ENAMETOOLONG);
    assert_original("file");
    assert_names("sub", "");
    assert_names(".", "file link loop sub ");
}

static void a_folder_that_may_not_be_written_is_told(void **state) {
    (void)state;
    posenc_npy_reader *reader;
    posenc_error error;
    if (geteuid() == 0) /* who may do everything */
        skip();
    assert_int_equal(mkdir("locked", 0755), 0);
    write_original("locked/a.npy");
    assert_int_equal(chmod("locked", 0555), 0);
    assert_create_refused("locked/a.npy", EACCES);
    assert_create_refused("locked/new.npy", EACCES);
    assert_original("locked/a.npy");
    assert_names("locked", "a.npy ");
    assert_int_equal(chmod("locked/a.npy", 0), 0);
    assert_refused(posenc_npy_open("locked/a.npy", &reader, NULL, &error), &error, POSENC_IO,
                   "path");
    assert_int_equal(error.os_error, EACCES);
    assert_int_equal(chmod("locked", 0755), 0);
}

/* Lets the process write files of `bytes` bytes at most, as if the disk were full. */
static struct rlimit limit_files(rlim_t bytes) {
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = bytes;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    return before;
}

static void unlimit_files(struct rlimit before) {
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
}

static void a_disk_that_becomes_full_leaves_the_old_file_and_nothing_else(void **state) {
    (void)state;
    static const double elements[1000] = {0};
    posenc_npy_info info = vector_of(POSENC_F64, 1000);
    posenc_error error;
    write_original("a.npy");
    posenc_npy_writer *writer = create("a.npy", &info);
    struct rlimit before = limit_files(1000); /* the header fits, and a part of the elements */
    posenc_status status = posenc_npy_write(writer, 0, 1000, elements, &error);
    unlimit_files(before);
    assert_refused(status, &error, POSENC_IO, "file");
    assert_int_equal(error.os_error, EFBIG);
    assert_refused(posenc_npy_commit(writer, &error), &error, POSENC_OUT_OF_RANGE,
                   "elements written");
    before = limit_files(100); /* not even the header fits */
    status = posenc_npy_create("a.npy", &info, &writer, &error);
    unlimit_files(before);
    assert_refused(status, &error, POSENC_IO, "file");
    assert_null(writer);
    assert_original("a.npy");
    assert_names(".", "a.npy ");
}

static void a_failed_flush_leaves_the_old_file_and_nothing_else(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    posenc_error error;
    write_original("a.npy");
    posenc_npy_writer *writer = create("a.npy", &info);
    put(writer, POSENC_F64, 0, 10);
    flushed.error = EIO;
    posenc_status status = posenc_npy_commit(writer, &error);
    flushed.error = 0;
    assert_refused(status, &error, POSENC_IO, "file");
    assert_int_equal(error.os_error, EIO);
    assert_original("a.npy");
    assert_names(".", "a.npy ");
}

/* The array is there, but may not survive a power cut. */
static void a_failed_flush_of_the_folder_is_told(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    posenc_error error;
    posenc_npy_writer *writer = create("a.npy", &info);
    put(writer, POSENC_F64, 0, 10);
    flushed.folder_error = EIO;
    posenc_status status = posenc_npy_commit(writer, &error);
    flushed.folder_error = 0;
    assert_refused(status, &error, POSENC_IO, "file");
    assert_int_equal(error.os_error, EIO);
    assert_array("a.npy", &info);
}

/* The target has become a folder meanwhile, or its folder is gone. */
static void a_failed_rename_leaves_nothing(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    posenc_error error;
    posenc_npy_writer *writer = create("a.npy", &info);
    put(writer, POSENC_F64, 0, 10);
    assert_int_equal(mkdir("a.npy", 0755), 0);
    assert_refused(posenc_npy_commit(writer, &error), &error, POSENC_IO, "file");
    assert_int_equal(error.os_error, EISDIR);
    assert_names("a.npy", "");
    writer = create("a.npy/b.npy", &info);
    put(writer, POSENC_F64, 0, 10);
    assert_int_equal(rmdir("a.npy"), 0);
    assert_refused(posenc_npy_commit(writer, &error), &error, POSENC_IO, "file");
    assert_int_equal(error.os_error, ENOENT);
    assert_names(".", "");
}

static void a_file_that_becomes_shorter_while_it_is_read_is_told(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10), got;
    double elements[10];
    make_array("a.npy", &info);
    posenc_npy_reader *reader = open_array("a.npy", &got);
    off_t size = (off_t)got.data_offset + 5 * (off_t)sizeof(double) + 3;
    assert_int_equal(truncate("a.npy", size), 0);
    assert_part(reader, POSENC_F64, 0, 5);
    posenc_error error;
    assert_refused(posenc_npy_read(reader, 0, 10, elements, &error), &error, POSENC_FORMAT,
                   "file size");
    assert_string_equal(error.must, "be at least what the header says");
    assert_string_equal(error.place_name, "byte");
    assert_int_equal(error.place, size);
    assert_int_equal(error.value.as.size, size);
    assert_int_equal(error.limit.as.size, got.data_offset + 10 * sizeof(double));
    posenc_npy_close(reader);
}

static void assert_read_error(posenc_status status, const posenc_error *error, uint64_t place) {
    assert_refused(status, error, POSENC_IO, "file");
    assert_int_equal(error->os_error, EIO);
    assert_string_equal(error->place_name, "byte");
    assert_int_equal(error->place, place);
}

static void an_error_of_the_disk_is_told_with_its_place(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10), got;
    posenc_npy_reader *reader, *none;
    posenc_error error;
    double elements[5];
    make_array("a.npy", &info);
    reader = open_array("a.npy", &got);
    error_of_moves = EIO;
    posenc_status of_open = posenc_npy_open("a.npy", &none, NULL, &error);
    error_of_moves = 0;
    assert_read_error(of_open, &error, 0);
    assert_null(none);
    error_of_moves = EIO;
    posenc_status of_read = posenc_npy_read(reader, 5, 5, elements, &error);
    error_of_moves = 0;
    assert_read_error(of_read, &error, got.data_offset + 5 * sizeof(double));
    assert_part(reader, POSENC_F64, 5, 5);
    posenc_npy_close(reader);
}

/* --- Bad arguments ------------------------------------------------------------------------------ */

static void bad_arguments_of_open_and_read_are_refused(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    posenc_npy_reader *reader = (posenc_npy_reader *)&info;
    posenc_error error;
    make_array("a.npy", &info);
    assert_refused(posenc_npy_open("a.npy", NULL, NULL, &error), &error, POSENC_NULL_POINTER,
                   "reader");
    assert_refused(posenc_npy_open(NULL, &reader, NULL, &error), &error, POSENC_NULL_POINTER,
                   "path");
    assert_null(reader);
    reader = open_array("a.npy", NULL);
    guarded part = guarded_new(10 * sizeof(double), GUARD_AFTER);
    const struct {
        const posenc_npy_reader *reader;
        uint64_t first;
        size_t count;
        void *to;
        posenc_status status;
        const char *argument;
    } bad[] = {
        {NULL, 0, 1, part.data, POSENC_NULL_POINTER, "reader"},
        {reader, 0, 1, NULL, POSENC_NULL_POINTER, "to"},
        {reader, 0, 11, part.data, POSENC_OUT_OF_RANGE, "count"},
        {reader, 5, 6, part.data, POSENC_OUT_OF_RANGE, "count"},
        {reader, 1, SIZE_MAX, part.data, POSENC_OUT_OF_RANGE, "count"},
        {reader, 11, 0, part.data, POSENC_OUT_OF_RANGE, "first"},
        {reader, UINT64_MAX, 2, part.data, POSENC_OUT_OF_RANGE, "first"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_refused(
            posenc_npy_read(bad[i].reader, bad[i].first, bad[i].count, bad[i].to, &error), &error,
            bad[i].status, bad[i].argument);
        assert_int_equal(
            posenc_npy_read(bad[i].reader, bad[i].first, bad[i].count, bad[i].to, NULL),
            bad[i].status);
        assert_true(guarded_is_untouched(&part));
    }
    assert_int_equal(posenc_npy_read(reader, 10, 0, NULL, NULL), POSENC_OK);
    guarded_free(&part);
    posenc_npy_close(reader);
    posenc_npy_close(NULL);
}

static void bad_arguments_of_create_are_refused(void **state) {
    (void)state;
    static const size_t huge[] = {(size_t)1 << 62, 2}, empty[] = {0, SIZE_MAX};
    posenc_npy_info good = vector_of(POSENC_F32, 3), bad_dtype = good, bad_rank = good;
    posenc_npy_info too_large = info_of(POSENC_F64, 0, 2, huge);
    posenc_npy_info empty_too_large = info_of(POSENC_F16, 0, 2, empty);
    posenc_npy_writer *writer;
    bad_dtype.dtype = (posenc_dtype)4;
    bad_rank.rank = POSENC_NPY_MAX_RANK + 1;
    write_original("a.npy");
    const struct {
        const char *path;
        const posenc_npy_info *info;
        posenc_npy_writer **writer;
        posenc_status status;
        const char *argument;
    } bad[] = {
        {NULL, &good, &writer, POSENC_NULL_POINTER, "path"},
        {"a.npy", NULL, &writer, POSENC_NULL_POINTER, "info"},
        {"a.npy", &good, NULL, POSENC_NULL_POINTER, "writer"},
        {"a.npy", &bad_dtype, &writer, POSENC_OUT_OF_RANGE, "dtype"},
        {"a.npy", &bad_rank, &writer, POSENC_OUT_OF_RANGE, "rank"},
        {"a.npy", &too_large, &writer, POSENC_OVERFLOW, "shape"},
        {"a.npy", &empty_too_large, &writer, POSENC_OVERFLOW, "shape"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        posenc_error error;
        writer = (posenc_npy_writer *)&good;
        assert_refused(posenc_npy_create(bad[i].path, bad[i].info, bad[i].writer, &error), &error,
                       bad[i].status, bad[i].argument);
        assert_true(!bad[i].writer || !writer);
        assert_int_equal(posenc_npy_create(bad[i].path, bad[i].info, bad[i].writer, NULL),
                         bad[i].status);
    }
    assert_original("a.npy");
    assert_names(".", "a.npy ");
}

static void bad_arguments_of_write_and_commit_are_refused(void **state) {
    (void)state;
    static const double elements[10] = {0};
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    posenc_npy_writer *writer = create("a.npy", &info);
    posenc_error error;
    put(writer, POSENC_F64, 0, 10);
    assert_write_refused(NULL, 0, 1, elements, POSENC_NULL_POINTER, "writer");
    assert_write_refused(writer, 0, 1, NULL, POSENC_NULL_POINTER, "from");
    assert_write_refused(writer, 0, 11, elements, POSENC_OUT_OF_RANGE, "first");
    assert_write_refused(writer, 5, 6, elements, POSENC_OUT_OF_RANGE, "first");
    assert_write_refused(writer, 11, 0, elements, POSENC_OUT_OF_RANGE, "first");
    assert_write_refused(writer, 1, SIZE_MAX, elements, POSENC_OUT_OF_RANGE, "first");
    assert_write_refused(writer, UINT64_MAX, 2, elements, POSENC_OUT_OF_RANGE, "first");
    assert_int_equal(posenc_npy_write(writer, 10, 0, NULL, NULL), POSENC_OK);
    commit(writer);
    assert_array("a.npy", &info); /* refused writes have left no trace */
    assert_refused(posenc_npy_commit(NULL, &error), &error, POSENC_NULL_POINTER, "writer");
    posenc_npy_discard(NULL);
}
/* --- The other side is NumPy -------------------------------------------------------------------- */

/* The arrays of both directions, as in npy_numpy.py: dtype, order and the number of the shape. Elements
 * are the pattern in the order of the file. */
static const struct {
    size_t rank, shape[15];
} numpy_shapes[] = {{0, {0}},       {1, {5}},
                    {2, {0, 3}},    {2, {4, 3}},
                    {3, {2, 3, 5}}, {15, {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 12}}};

enum { NUMPY_ARRAYS = COUNT(dtypes) * 2 * COUNT(numpy_shapes) };

/* Array `i` of them, with its file's name before what tells NumPy's variants apart. */
static posenc_npy_info numpy_array(size_t i, char *name, size_t capacity) {
    posenc_dtype dtype = dtypes[i % 4];
    int fortran = i / 4 % 2 != 0;
    size_t shape = i / 8;
    snprintf(name, capacity, "%s_%c_%zu", posenc_dtype_name(dtype), fortran ? 'f' : 'c', shape);
    return info_of(dtype, fortran, numpy_shapes[shape].rank, numpy_shapes[shape].shape);
}

static void arrays_are_written_for_numpy(void **state) {
    (void)state;
    for (size_t i = 0; i < NUMPY_ARRAYS; i++) {
        char name[40], path[60];
        posenc_npy_info info = numpy_array(i, name, sizeof name);
        snprintf(path, sizeof path, "%s.npy", name);
        make_array(path, &info);
    }
}

/* NumPy says "Fortran order" only where it makes a difference, and knows no byte order of V2. */
static void arrays_of_numpy_are_read(void **state) {
    (void)state;
    static const char *const variants[] = {"", "_v2", "_v3", "_big"};
    for (size_t i = 0; i < NUMPY_ARRAYS * COUNT(variants); i++) {
        char name[40], path[60];
        posenc_npy_info info = numpy_array(i / COUNT(variants), name, sizeof name);
        const char *variant = variants[i % COUNT(variants)];
        info.fortran_order = info.fortran_order && info.rank > 1 && info.count > 0;
        info.big_endian = strcmp(variant, "_big") == 0;
        if (info.big_endian && info.dtype == POSENC_BF16)
            continue;
        snprintf(path, sizeof path, "%s%s.npy", name, variant);
        assert_array(path, &info);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest make[] = {cmocka_unit_test(arrays_are_written_for_numpy)};
    const struct CMUnitTest check[] = {cmocka_unit_test(arrays_of_numpy_are_read)};
    if (argc == 3 && strcmp(argv[1], "--make") == 0 && chdir(argv[2]) == 0)
        return cmocka_run_group_tests(make, NULL, NULL);
    if (argc == 3 && strcmp(argv[1], "--check") == 0 && chdir(argv[2]) == 0)
        return cmocka_run_group_tests(check, NULL, NULL);
    if (argc != 1) {
        fprintf(stderr, "usage: %s [--make FOLDER | --check FOLDER]\n", argv[0]);
        return 2;
    }
    random_announce();
#define TEST(function) cmocka_unit_test_setup_teardown(function, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        TEST(every_dtype_is_read_in_either_byte_order),
        TEST(headers_in_every_spelling_are_read),
        TEST(big_endian_numbers_are_turned),
        TEST(a_header_may_be_as_long_as_1_mib),
        TEST(a_shape_may_have_32_sizes),
        TEST(bytes_after_the_array_are_not_read),
        TEST(other_dtypes_are_not_supported),
        TEST(faults_in_the_dictionary_are_told_with_their_place),
        TEST(shapes_that_are_no_tuple_of_sizes_are_refused),
        TEST(shapes_too_large_for_a_file_are_refused),
        TEST(a_shape_of_33_sizes_is_refused),
        TEST(other_versions_are_refused),
        TEST(headers_above_1_mib_are_refused),
        TEST(files_of_other_formats_are_refused),
        TEST(every_prefix_of_a_file_is_refused_at_its_end),
        TEST(a_short_file_tells_both_sizes),
        TEST(what_is_no_regular_file_is_refused_without_waiting),
        TEST(files_that_cannot_be_opened_tell_why),
        TEST(random_mutations_are_read_or_refused),
        TEST(arrays_are_read_as_they_were_written_in_any_pieces),
        TEST(big_endian_files_are_read_in_pieces),
        TEST(written_files_have_the_bytes_of_numpy),
        TEST(a_writer_reads_dtype_shape_and_order_only),
        TEST(system_calls_may_be_interrupted_and_move_less),
        TEST(threads_share_a_writer_and_a_reader),
        TEST(a_target_is_untouched_until_commit),
        TEST(a_discarded_array_leaves_no_file),
        TEST(an_unfinished_array_is_not_committed_and_leaves_no_file),
        TEST(an_existing_file_keeps_its_mode),
        TEST(an_existing_file_keeps_its_owner_where_that_is_permitted),
        TEST(a_new_file_gets_the_mode_that_the_umask_leaves),
        TEST(a_file_is_replaced_and_not_overwritten),
        TEST(the_writer_that_commits_last_wins),
        TEST(symbolic_links_are_followed_and_kept),
        TEST(commit_flushes_the_whole_file_and_its_folder),
        TEST(a_temporary_file_is_gone_in_the_end),
        TEST(a_change_of_folder_does_not_move_the_target),
        TEST(arrays_may_lie_in_shared_memory),
        TEST(a_device_is_written_in_order_and_stays),
        TEST(a_pipe_gets_the_bytes_of_a_file),
        TEST(a_pipe_without_reader_is_an_error),
        TEST(standard_output_is_written_where_it_stands),
        TEST(a_process_that_ends_while_writing_leaves_the_old_file_and_nothing_else),
        TEST(targets_that_cannot_be_written_tell_why),
        TEST(a_folder_that_may_not_be_written_is_told),
        TEST(a_disk_that_becomes_full_leaves_the_old_file_and_nothing_else),
        TEST(a_failed_flush_leaves_the_old_file_and_nothing_else),
        TEST(a_failed_flush_of_the_folder_is_told),
        TEST(a_failed_rename_leaves_nothing),
        TEST(a_file_that_becomes_shorter_while_it_is_read_is_told),
        TEST(an_error_of_the_disk_is_told_with_its_place),
        TEST(bad_arguments_of_open_and_read_are_refused),
        TEST(bad_arguments_of_create_are_refused),
        TEST(bad_arguments_of_write_and_commit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
