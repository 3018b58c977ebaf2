/* Files that take their name only when whole. SPDX-License-Identifier: MIT */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* O_TMPFILE: a killed program leaves nothing behind; O_PATH, flock */
#endif
#include "formats/output_file.h"

#include "formats/input_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) >= 8, "build with -D_FILE_OFFSET_BITS=64");

#if defined(O_PATH)
#define PENC_OUTPUT_FOLDER_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC) /* it need not be readable */
#else
#define PENC_OUTPUT_FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#endif

int penc_output_write(const penc_output *output, const void *data, size_t bytes, uint64_t offset) {
    const unsigned char *from = data;
    while (bytes) {
        size_t step = bytes < PENC_FILE_STEP ? bytes : PENC_FILE_STEP;
        ssize_t moved = output->is_special ? write(output->file, from, step)
                                           : pwrite(output->file, from, step, (off_t)offset);
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
static void penc_output_folder(const char *path, char *folder) {
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    memcpy(folder, path, length);
    strcpy(folder + length, length ? "" : ".");
}

static const char *penc_output_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The descriptor of this process that `path` names, or -1. */
static int penc_output_descriptor(const char *path) {
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
static int penc_output_follow(const char *path, char *target) {
    if (strlen(path) >= PATH_MAX)
        return ENAMETOOLONG;
    strcpy(target, path);
    for (int links = 0; links < 40; links++) {
        char link[PATH_MAX], joined[2 * PATH_MAX];
        if (strncmp(target, "/proc/", 6) == 0 || penc_output_descriptor(target) >= 0)
            return 0;
        ssize_t length = readlink(target, link, sizeof link - 1);
        if (length < 0)
            return 0; /* no link: this is it */
        link[length] = '\0';
        if (link[0] == '/')
            joined[0] = '\0';
        else
            penc_output_folder(target, joined);
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
static int penc_output_is_special(const char *path) {
    struct stat stat_of_path;
    if (strncmp(path, "/dev/shm/", 9) == 0) /* shared memory: a folder as any other */
        return stat(path, &stat_of_path) == 0 && !S_ISREG(stat_of_path.st_mode);
    if (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0)
        return 1;
    return stat(path, &stat_of_path) == 0 && !S_ISREG(stat_of_path.st_mode);
}

/* A descriptor is duplicated: opening it anew would start at the file's beginning. */
static int penc_output_open_special(const char *path) {
    int descriptor = penc_output_descriptor(path);
    if (descriptor >= 0)
        return fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    return open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

int penc_output_find(const char *path, penc_output *output) {
    output->file = output->folder = -1;
    output->is_special = 0;
    output->target[0] = output->temporary[0] = '\0';
    int os_error = penc_output_follow(path, output->target);
    if (!os_error)
        output->is_special = penc_output_is_special(output->target);
    return os_error;
}

static int penc_output_open_folder(penc_output *output) {
    char folder[PATH_MAX];
    if (!*penc_output_name(output->target)) /* "", or "new/" */
        return *output->target ? EISDIR : ENOENT;
    penc_output_folder(output->target, folder);
    output->folder = open(folder, PENC_OUTPUT_FOLDER_FLAGS);
    return output->folder < 0 ? errno : 0;
}

/* ---- Temporary names ---- */

/* What temporary names of this target begin with. Returns the length. */
static int penc_output_begin_name(const penc_output *output, char *name, size_t capacity) {
    return snprintf(name, capacity, ".%.80s.posenc-", penc_output_name(output->target));
}

/* A name beside the target that nobody has: the process, the time and a counter make it differ. */
static void penc_output_make_name(penc_output *output, unsigned attempt) {
    struct timespec now;
    char begin[sizeof output->temporary / 2 + 20];
    clock_gettime(CLOCK_REALTIME, &now);
    penc_output_begin_name(output, begin, sizeof begin);
    snprintf(output->temporary, sizeof output->temporary, "%s%ld-%lx-%u", begin, (long)getpid(),
             (unsigned long)now.tv_nsec, attempt);
}

/* Whether `rest` is what penc_output_make_name puts behind the beginning. */
static int penc_output_is_made(const char *rest) {
    static const char *const digits[] = {"0123456789", "0123456789abcdef", "0123456789"};
    for (size_t i = 0; i < 3; i++) {
        size_t count = strspn(rest, digits[i]);
        if (!count || rest[count] != (i < 2 ? '-' : '\0'))
            return 0;
        rest += count + 1;
    }
    return 1;
}

/* Removes a temporary file unless somebody is at work on it. */
static void penc_output_remove_left(int folder, const char *name) {
    struct stat status;
    int file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && flock(file, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(folder, name, 0);
    (void)close(file);
}

/* Removes what killed programs have left for this target. */
static void penc_output_sweep(const penc_output *output) {
    char begin[sizeof output->temporary];
    size_t length = (size_t)penc_output_begin_name(output, begin, sizeof begin);
    int folder = openat(output->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = folder < 0 ? NULL : fdopendir(folder);
    if (!entries) { /* a folder that may be written but not read */
        if (folder >= 0)
            (void)close(folder);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(entries));)
        if (strncmp(entry->d_name, begin, length) == 0 &&
            penc_output_is_made(entry->d_name + length))
            penc_output_remove_left(folder, entry->d_name);
    (void)closedir(entries);
}

/* Calls `make` with new names until one is free. Returns what it returns, or -1 with errno. */
static int penc_output_with_free_name(penc_output *output, mode_t mode,
                                      int (*make)(const penc_output *, mode_t)) {
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        penc_output_make_name(output, attempt);
        int made = make(output, mode);
        if (made >= 0)
            return made;
        if (errno != EEXIST)
            break;
    }
    int kept = errno;
    output->temporary[0] = '\0';
    errno = kept;
    return -1;
}

/* Locks it, so that nobody takes it for one that was left. Where there are no locks nobody removes any. */
static int penc_output_create_named(const penc_output *output, mode_t mode) {
    struct stat status;
    int file =
        openat(output->folder, output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file < 0)
        return -1;
    (void)flock(file, LOCK_EX);
    if (fstat(file, &status) == 0 && status.st_nlink == 0) { /* removed before it was locked */
        (void)close(file);
        errno = EEXIST;
        return -1;
    }
    return file;
}

static int penc_output_give_name(const penc_output *output, mode_t mode) {
    char self[64];
    (void)mode;
    (void)flock(output->file, LOCK_EX);
    snprintf(self, sizeof self, "/proc/self/fd/%d", output->file);
    return linkat(AT_FDCWD, self, output->folder, output->temporary, AT_SYMLINK_FOLLOW);
}

/* ---- Opening ---- */

/* A nameless file in the target's folder where the system can make one, else a named one. */
static int penc_output_open_temporary(penc_output *output, mode_t mode) {
#if defined(O_TMPFILE)
    if (access("/proc/self/fd", F_OK) == 0) { /* needed to give it a name later */
        int file = openat(output->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
        if (file >= 0)
            return file;
    }
#endif
    return penc_output_with_free_name(output, mode, penc_output_create_named);
}

/* An existing target keeps its mode, and its owner and group where that is permitted. */
static void penc_output_keep_mode(const penc_output *output) {
    struct stat old;
    if (stat(output->target, &old) != 0)
        return;
    /* Not being permitted to is no failure; the owner first, since that clears bits of the mode. */
    if (fchown(output->file, old.st_uid, old.st_gid) != 0 &&
        fchown(output->file, (uid_t)-1, old.st_gid) != 0)
        old.st_mode &= ~(mode_t)070; /* rights of its group are not for ours */
    if (fchmod(output->file, old.st_mode & 07777) != 0)
        errno = 0;
}

int penc_output_open(penc_output *output, mode_t mode) {
    if (output->is_special) {
        output->file = penc_output_open_special(output->target);
        return output->file < 0 ? errno : 0;
    }
    int os_error = penc_output_open_folder(output);
    if (os_error)
        return os_error;
    penc_output_sweep(output);
    output->file = penc_output_open_temporary(output, mode);
    if (output->file < 0)
        return errno;
    penc_output_keep_mode(output);
    return 0;
}

/* ---- Committing ---- */

/* The rename is on disk once its folder is. */
static int penc_output_sync_folder(int folder) {
    int file = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return 0; /* a folder that may be written but not read: nothing can be done */
    int os_error = fsync(file) != 0 && errno != EINVAL ? errno : 0;
    (void)close(file);
    return os_error;
}

static int penc_output_install(penc_output *output) {
    if (output->is_special)
        return 0;
    if (fsync(output->file) != 0)
        return errno;
    if (!output->temporary[0] && penc_output_with_free_name(output, 0, penc_output_give_name) < 0)
        return errno;
    const char *name = penc_output_name(output->target);
    if (renameat(output->folder, output->temporary, output->folder, name) != 0)
        return errno;
    output->temporary[0] = '\0';
    return penc_output_sync_folder(output->folder);
}

int penc_output_commit(penc_output *output) {
    int os_error = penc_output_install(output);
    if (close(output->file) != 0 && !os_error)
        os_error = errno;
    output->file = -1;
    penc_output_close(output);
    return os_error;
}

void penc_output_close(penc_output *output) {
    if (output->file >= 0)
        (void)close(output->file);
    if (output->temporary[0])
        (void)unlinkat(output->folder, output->temporary, 0);
    if (output->folder >= 0)
        (void)close(output->folder);
    output->file = output->folder = -1;
    output->temporary[0] = '\0';
}
