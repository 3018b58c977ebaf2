/* A disk that fails on demand: takes the place of libc's calls, in a shared library too. One file of a test includes
 * it. SPDX-License-Identifier: MIT */
#ifndef FAILING_DISK_H
#define FAILING_DISK_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Functions that take the place of libc's, in a shared library too. */
#define IN_PLACE_OF_LIBC __attribute__((visibility("default")))

/* One call that fails, of all those below. */
static struct {
    size_t calls;     /* made since it was set to 0 */
    size_t fail_at;   /* the number of the one that fails, from 1; 0: none */
    int error;        /* with what */
    const char *only; /* calls of this name alone count; NULL: all */
    char failed[24];  /* its name; "" if none has failed */
} disk;

static inline int disk_fails(const char *call) {
    if ((disk.only && strcmp(call, disk.only) != 0) || ++disk.calls != disk.fail_at)
        return 0;
    snprintf(disk.failed, sizeof disk.failed, "%s", call);
    errno = disk.error;
    return 1;
}

/* What the library asked to flush. Files of tests need not survive a power cut: where libc takes a
 * tenth of a second on some disks, this fsync notes what it was called with. */
static struct {
    int error, folder_error; /* what it should fail with */
    off_t file_size;         /* of the regular file flushed last */
    int files, folders;
} flushed;

IN_PLACE_OF_LIBC int fsync(int file) {
    struct stat status;
    int is_folder = fstat(file, &status) != 0 || S_ISDIR(status.st_mode);
    errno = is_folder ? flushed.folder_error : flushed.error;
    if (errno || disk_fails(is_folder ? "fsync of folder" : "fsync"))
        return -1;
    if (!is_folder) {
        flushed.files++;
        flushed.file_size = status.st_size;
    }
    flushed.folders += is_folder;
    return 0;
}

/* Set to have every second system call of reading and writing interrupted, and the others move at most
 * this many bytes. */
static size_t most_moved;

/* Set to have all of them fail. */
static int error_of_moves;

/* How many bytes to move; 0: the call is interrupted. */
static inline size_t moved_at_once(size_t count) {
    static unsigned calls;
    if (!most_moved || !count)
        return count;
    return calls++ % 2 ? 0 : count < most_moved ? count : most_moved;
}

static inline ssize_t move_bytes(const char *name, long call, int file, uintptr_t bytes,
                                 size_t count, off_t offset) {
    size_t now = moved_at_once(count);
    errno = error_of_moves ? error_of_moves : count && !now ? EINTR : 0;
    if (errno || disk_fails(name))
        return -1;
    return syscall(call, file, bytes, now, offset);
}

IN_PLACE_OF_LIBC ssize_t pread64(int file, void *to, size_t count, off64_t offset) {
    return move_bytes("pread64", SYS_pread64, file, (uintptr_t)to, count, offset);
}

IN_PLACE_OF_LIBC ssize_t pwrite64(int file, const void *from, size_t count, off64_t offset) {
    return move_bytes("pwrite64", SYS_pwrite64, file, (uintptr_t)from, count, offset);
}

IN_PLACE_OF_LIBC ssize_t write(int file, const void *from, size_t count) {
    return move_bytes("write", SYS_write, file, (uintptr_t)from, count, 0);
}

/* Moves one part where the number of bytes is limited. */
IN_PLACE_OF_LIBC ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) {
    if (most_moved && count)
        return move_bytes("pwritev64", SYS_pwrite64, file, (uintptr_t)parts->iov_base,
                          parts->iov_len, offset);
    if (disk_fails("pwritev64"))
        return -1;
    return syscall(SYS_pwritev, file, parts, count, offset, (off64_t)0);
}

/* What copy_file_range should fail with once it has moved kernel_copies.before bytes; error -1: it returns 0, as old
 * kernels do for some files. */
static struct {
    int error;
    size_t before;
    size_t failed; /* how often it did */
} kernel_copies;

IN_PLACE_OF_LIBC ssize_t copy_file_range(int from, off64_t *place, int to, off64_t *offset,
                                         size_t count, unsigned flags) {
    if (kernel_copies.error && !kernel_copies.before) {
        kernel_copies.failed++;
        errno = kernel_copies.error;
        return kernel_copies.error < 0 ? 0 : -1;
    }
    if (disk_fails("copy_file_range"))
        return -1;
    if (kernel_copies.error && count > kernel_copies.before)
        count = kernel_copies.before;
    size_t now = moved_at_once(count);
    if (count && !now) {
        errno = EINTR;
        return -1;
    }
    ssize_t moved = syscall(SYS_copy_file_range, from, place, to, offset, now, flags);
    if (moved > 0 && kernel_copies.before)
        kernel_copies.before -= (size_t)moved;
    return moved;
}

IN_PLACE_OF_LIBC int sync_file_range(int file, off64_t offset, off64_t bytes, unsigned flags) {
    (void)file, (void)offset, (void)bytes,
        (void)flags; /* the tests' files are gone before they are on the disk */
    return disk_fails("sync_file_range") ? -1 : 0;
}

IN_PLACE_OF_LIBC int ftruncate64(int file, off64_t bytes) {
    return disk_fails("ftruncate64") ? -1 : (int)syscall(SYS_ftruncate, file, bytes);
}

IN_PLACE_OF_LIBC int renameat(int folder, const char *name, int new_folder, const char *new_name) {
    return disk_fails("renameat")
               ? -1
               : (int)syscall(SYS_renameat2, folder, name, new_folder, new_name, 0);
}

IN_PLACE_OF_LIBC int linkat(int folder, const char *name, int new_folder, const char *new_name,
                            int flags) {
    return disk_fails("linkat")
               ? -1
               : (int)syscall(SYS_linkat, folder, name, new_folder, new_name, flags);
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

#endif
