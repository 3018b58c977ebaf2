/* Writing .npy files: into a nameless file beside the target, which takes its name only when whole.
 * SPDX-License-Identifier: MIT */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* O_TMPFILE: a killed program leaves nothing behind; O_PATH */
#endif
#include "posenc/npy.h"

#include "base/byte_order.h"
#include "base/fail.h"
#include "formats/input_file.h"
#include "formats/npy_header.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) >= 8, "build with -D_FILE_OFFSET_BITS=64");

#if defined(O_PATH)
#define PENC_NPY_FOLDER_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC) /* it need not be readable */
#else
#define PENC_NPY_FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#endif

struct posenc_npy_writer {
    posenc_npy_info info;
    int file;
    int folder;        /* of the target, which a relative path finds after a chdir too; or -1 */
    int in_place;      /* a device or a pipe: bytes go there at once and in order */
    uint64_t in_order; /* in_place: the element that must come next, UINT64_MAX after a failure */
    atomic_uint_fast64_t written;
    char target[PATH_MAX]; /* what `path` leads to, symbolic links followed */
    char temporary[160];   /* its name in the folder until then; empty while it has none */
};

/* Writes all bytes, at `offset` or (in_place) where the file stands. Returns 0 or the errno. */
static int penc_npy_put(const posenc_npy_writer *writer, const unsigned char *from, size_t bytes,
                        uint64_t offset) {
    while (bytes) {
        size_t step = bytes < PENC_FILE_STEP ? bytes : PENC_FILE_STEP;
        ssize_t moved = writer->in_place ? write(writer->file, from, step)
                                         : pwrite(writer->file, from, step, (off_t)offset);
        if (moved < 0 && errno != EINTR)
            return errno;
        if (moved > 0) {
            from += moved;
            offset += (uint64_t)moved;
            bytes -= (size_t)moved;
        }
    }
    return 0;
}

/* The folder of `path` into `folder`, of PATH_MAX bytes, as far as it goes: "." if it names none. */
static void penc_npy_folder(const char *path, char *folder) {
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    memcpy(folder, path, length);
    strcpy(folder + length, length ? "" : ".");
}

static const char *penc_npy_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The descriptor of this process that `path` names, or -1. */
static int penc_npy_descriptor(const char *path) {
    static const char *const folders[] = {"/proc/self/fd/", "/dev/fd/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length) != 0)
            continue;
        size_t digits = strspn(path + length, "0123456789");
        if (digits && digits < 9 && !path[length + digits])
            return atoi(path + length);
    }
    return strcmp(path, "/dev/stdout") == 0 ? STDOUT_FILENO : -1;
}

/* Follows symbolic links, those that lead nowhere yet too, but not those that stand for open
 * files: the names of such files may be gone or taken. Returns 0 or the errno. */
static int penc_npy_follow(const char *path, char *target) {
    if (strlen(path) >= PATH_MAX)
        return ENAMETOOLONG;
    strcpy(target, path);
    for (int links = 0; links < 40; links++) {
        char link[PATH_MAX], joined[2 * PATH_MAX];
        if (strncmp(target, "/proc/", 6) == 0 || penc_npy_descriptor(target) >= 0)
            return 0;
        ssize_t length = readlink(target, link, sizeof link - 1);
        if (length < 0)
            return 0; /* no link: this is it */
        link[length] = '\0';
        if (link[0] == '/')
            joined[0] = '\0';
        else
            penc_npy_folder(target, joined);
        if (link[0] != '/' && strcmp(joined, ".") == 0)
            strcpy(joined, "./");
        strcat(joined, link);
        if (strlen(joined) >= PATH_MAX)
            return ENAMETOOLONG;
        strcpy(target, joined);
    }
    return ELOOP;
}

/* Devices and pipes, and whatever stands under /dev and /proc: those may lead to a regular file that
 * another program holds open, and renaming would take it away from it. */
static int penc_npy_is_special(const char *path) {
    struct stat stat_of_path;
    if (strncmp(path, "/dev/shm/", 9) == 0) /* shared memory: a folder as any other */
        return stat(path, &stat_of_path) == 0 && !S_ISREG(stat_of_path.st_mode);
    if (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0)
        return 1;
    return stat(path, &stat_of_path) == 0 && !S_ISREG(stat_of_path.st_mode);
}

/* A descriptor is duplicated: opening it anew would start at the file's beginning. */
static int penc_npy_open_special(const char *path) {
    int descriptor = penc_npy_descriptor(path);
    if (descriptor >= 0)
        return fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    return open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

/* Returns 0 or the errno. */
static int penc_npy_open_folder(posenc_npy_writer *writer) {
    char folder[PATH_MAX];
    if (!*penc_npy_name(writer->target)) /* "", or "new/" */
        return *writer->target ? EISDIR : ENOENT;
    penc_npy_folder(writer->target, folder);
    writer->folder = open(folder, PENC_NPY_FOLDER_FLAGS);
    return writer->folder < 0 ? errno : 0;
}

/* A name beside the target that nobody has: the process, the time and a counter make it differ. */
static void penc_npy_make_name(posenc_npy_writer *writer, unsigned attempt) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(writer->temporary, sizeof writer->temporary, ".%.80s.posenc-%ld-%lx-%u",
             penc_npy_name(writer->target), (long)getpid(), (unsigned long)now.tv_nsec, attempt);
}

/* Calls `make` with new names until one is free. Returns what it returns, or -1 with errno. */
static int penc_npy_with_free_name(posenc_npy_writer *writer,
                                   int (*make)(const posenc_npy_writer *)) {
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        penc_npy_make_name(writer, attempt);
        int made = make(writer);
        if (made >= 0)
            return made;
        if (errno != EEXIST)
            break;
    }
    int kept = errno;
    writer->temporary[0] = '\0';
    errno = kept;
    return -1;
}

static int penc_npy_create_named(const posenc_npy_writer *writer) {
    return openat(writer->folder, writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* A nameless file in the target's folder where the system can make one, else a named one. */
static int penc_npy_open_temporary(posenc_npy_writer *writer) {
#if defined(O_TMPFILE)
    if (access("/proc/self/fd", F_OK) == 0) { /* needed to give it a name later */
        int file = openat(writer->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
        if (file >= 0)
            return file;
    }
#endif
    return penc_npy_with_free_name(writer, penc_npy_create_named);
}

static int penc_npy_give_name(const posenc_npy_writer *writer) {
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", writer->file);
    return linkat(AT_FDCWD, self, writer->folder, writer->temporary, AT_SYMLINK_FOLLOW);
}

/* An existing target keeps its mode, and its owner and group where that is permitted. */
static void penc_npy_keep_mode(const posenc_npy_writer *writer) {
    struct stat old;
    if (stat(writer->target, &old) != 0)
        return;
    /* Not being permitted to is no failure; the owner first, since that clears bits of the mode. */
    if (fchown(writer->file, old.st_uid, old.st_gid) != 0 &&
        fchown(writer->file, (uid_t)-1, old.st_gid) != 0)
        old.st_mode &= ~(mode_t)070; /* rights of its group are not for ours */
    if (fchmod(writer->file, old.st_mode & 07777) != 0)
        errno = 0;
}

static posenc_status penc_npy_open_target(posenc_npy_writer *writer, const char *path,
                                          posenc_error *error) {
    static const char must[] = "name a file that can be written";
    int os_error = penc_npy_follow(path, writer->target);
    if (os_error)
        return penc_fail_system(error, os_error, "path", must);
    writer->in_place = penc_npy_is_special(writer->target);
    if (!writer->in_place)
        os_error = penc_npy_open_folder(writer);
    if (os_error)
        return penc_fail_system(error, os_error, "path", must);
    writer->file =
        writer->in_place ? penc_npy_open_special(writer->target) : penc_npy_open_temporary(writer);
    if (writer->file < 0)
        return penc_fail_system(error, errno, "path", must);
    if (!writer->in_place)
        penc_npy_keep_mode(writer);
    return POSENC_OK;
}

static posenc_status penc_npy_fail_write(posenc_error *error, int os_error) {
    return penc_fail_system(error, os_error, "file", "be writable");
}

posenc_status posenc_npy_create(const char *path, const posenc_npy_info *info,
                                posenc_npy_writer **writer, posenc_error *error) {
    unsigned char header[PENC_NPY_MADE];
    size_t size;
    if (!writer)
        return penc_fail_null(error, "writer");
    *writer = NULL;
    if (!path)
        return penc_fail_null(error, "path");
    if (!info)
        return penc_fail_null(error, "info");
    posenc_status status = penc_npy_header_make(info, header, &size, error);
    if (status)
        return status;
    posenc_npy_writer *made = calloc(1, sizeof *made);
    if (!made)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "writer", "fit into memory");
    made->info = *info;
    made->info.data_offset = size;
    made->file = made->folder = -1;
    (void)penc_npy_measure(info, &made->info.count); /* header_make has checked it */
    status = penc_npy_open_target(made, path, error);
    if (!status) {
        int os_error = penc_npy_put(made, header, size, 0);
        if (os_error)
            status = penc_npy_fail_write(error, os_error);
    }
    if (status) {
        posenc_npy_discard(made);
        return status;
    }
    *writer = made;
    return POSENC_OK;
}

static posenc_status penc_npy_check_write(const posenc_npy_writer *writer, uint64_t first,
                                          size_t count, const void *from, posenc_error *error) {
    if (!writer)
        return penc_fail_null(error, "writer");
    if (!from && count)
        return penc_fail_null(error, "from");
    if (first > writer->info.count || count > writer->info.count - first) {
        penc_fail_size(error, "first", first, "with count be inside the array");
        penc_fail_limit(error, "elements of the array", writer->info.count);
        return POSENC_OUT_OF_RANGE;
    }
    if (writer->in_place && first != writer->in_order) {
        penc_fail_size(error, "first", first,
                       "follow the element written last, in a pipe or device");
        penc_fail_limit(error, "the next element", writer->in_order);
        return POSENC_OUT_OF_RANGE;
    }
    if (count > SIZE_MAX / posenc_dtype_bytes(writer->info.dtype)) /* where size_t has 32 bits */
        return penc_fail(error, POSENC_OVERFLOW, "count",
                         "give a number of bytes that fits size_t");
    return POSENC_OK;
}

/* Files are little-endian: a machine that is not turns the bytes in a small buffer. */
static int penc_npy_put_elements(const posenc_npy_writer *writer, const unsigned char *from,
                                 size_t element, size_t count, uint64_t offset) {
    unsigned char turned[4096];
    if (!penc_machine_is_big())
        return penc_npy_put(writer, from, count * element, offset);
    int os_error = 0;
    while (count && !os_error) {
        size_t take = count < sizeof turned / element ? count : sizeof turned / element;
        memcpy(turned, from, take * element);
        penc_swap_bytes(turned, element, take);
        os_error = penc_npy_put(writer, turned, take * element, offset);
        from += take * element;
        offset += take * element;
        count -= take;
    }
    return os_error;
}

posenc_status posenc_npy_write(posenc_npy_writer *writer, uint64_t first, size_t count,
                               const void *from, posenc_error *error) {
    posenc_status status = penc_npy_check_write(writer, first, count, from, error);
    if (status)
        return status;
    size_t element = posenc_dtype_bytes(writer->info.dtype);
    int os_error = penc_npy_put_elements(writer, from, element, count,
                                         writer->info.data_offset + first * element);
    if (writer->in_place) /* nobody knows what a pipe took before it failed: no element fits */
        writer->in_order = os_error ? UINT64_MAX : first + count;
    if (os_error)
        return penc_npy_fail_write(error, os_error);
    atomic_fetch_add(&writer->written, count);
    return POSENC_OK;
}

/* The rename is on disk once its folder is. */
static int penc_npy_sync_folder(int folder) {
    int file = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return 0; /* a folder that may be written but not read: nothing can be done */
    int os_error = fsync(file) != 0 && errno != EINVAL ? errno : 0;
    (void)close(file);
    return os_error;
}

/* Gives the finished file its name. Returns 0 or the errno. */
static int penc_npy_install(posenc_npy_writer *writer) {
    if (writer->in_place)
        return 0;
    if (fsync(writer->file) != 0)
        return errno;
    if (!writer->temporary[0] && penc_npy_with_free_name(writer, penc_npy_give_name) < 0)
        return errno;
    const char *name = penc_npy_name(writer->target);
    if (renameat(writer->folder, writer->temporary, writer->folder, name) != 0)
        return errno;
    writer->temporary[0] = '\0';
    return penc_npy_sync_folder(writer->folder);
}

posenc_status posenc_npy_commit(posenc_npy_writer *writer, posenc_error *error) {
    if (!writer)
        return penc_fail_null(error, "writer");
    uint64_t written = atomic_load(&writer->written);
    posenc_status status = POSENC_OK;
    if (written < writer->info.count) {
        status = penc_fail_size(error, "elements written", written, "be all that the shape says");
        penc_fail_limit(error, "elements of the array", writer->info.count);
    } else {
        int os_error = penc_npy_install(writer);
        if (close(writer->file) != 0 && !os_error)
            os_error = errno;
        writer->file = -1;
        if (os_error)
            status = penc_npy_fail_write(error, os_error);
    }
    posenc_npy_discard(writer);
    return status;
}

void posenc_npy_discard(posenc_npy_writer *writer) {
    if (!writer)
        return;
    if (writer->file >= 0)
        (void)close(writer->file);
    if (writer->temporary[0])
        (void)unlinkat(writer->folder, writer->temporary, 0);
    if (writer->folder >= 0)
        (void)close(writer->folder);
    free(writer);
}
