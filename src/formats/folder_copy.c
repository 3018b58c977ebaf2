/* Copying the files of a folder. SPDX-License-Identifier: MIT */
#include "formats/folder_copy.h"

#include "base/fail.h"
#include "formats/file_rewrite.h"
#include "formats/model_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static posenc_status penc_folder_fail(const char *path, const char *must, posenc_error *error) {
    penc_fail_system(error, errno, "path", must);
    penc_fail_file(error, path);
    return POSENC_IO;
}

posenc_status penc_folder_walk(const char *path,
                               posenc_status (*see)(void *context, const char *name,
                                                    posenc_error *error),
                               void *context, posenc_error *error) {
    posenc_status status = POSENC_OK;
    DIR *list = opendir(path);
    if (!list)
        return penc_folder_fail(path, "name a folder that can be listed", error);
    while (!status) {
        errno = 0;
        const struct dirent *entry = readdir(list);
        if (!entry) {
            if (errno)
                status = penc_folder_fail(path, "name a folder that can be listed", error);
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = see(context, entry->d_name, error);
    }
    (void)closedir(list);
    return status;
}

/* A new name is on the disk once the folder that holds it is. */
static void penc_folder_flush_parent(const char *path) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int parent = folder < 0 ? -1 : openat(folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent >= 0) {
        (void)fsync(parent);
        (void)close(parent);
    }
    if (folder >= 0)
        (void)close(folder);
}

posenc_status penc_folder_make(const char *path, const char *like, posenc_error *error) {
    static const char must[] = "name a folder that can be made or is there";
    struct stat old;
    if (stat(like, &old) != 0)
        return penc_folder_fail(like, must, error);
    if (mkdir(path, (old.st_mode & 0777) | S_IWUSR | S_IXUSR) == 0) {
        penc_folder_flush_parent(path);
        return POSENC_OK;
    }
    if (errno != EEXIST)
        return penc_folder_fail(path, must, error);
    if (stat(path, &old) == 0 && S_ISDIR(old.st_mode))
        return POSENC_OK;
    errno = ENOTDIR;
    return penc_folder_fail(path, must, error);
}

posenc_status penc_folder_copy_file(const char *from, const char *to, posenc_error *error) {
    penc_input input;
    posenc_status status = penc_input_open(from, &input, error);
    if (status)
        return status;
    penc_piece all = {.kind = PENC_PIECE_COPY, .bytes = input.size};
    status = penc_file_rewrite(&input, to, &all, 1, NULL, error);
    penc_input_close(&input);
    return status;
}

/* ---- Folders in folders ---- */

typedef struct penc_folder_level {
    const char *from, *to;
    penc_folder_copy *copy;
    int depth;
} penc_folder_level;

static posenc_status penc_folder_copy_level(const penc_folder_level *level, posenc_error *error);

static posenc_status penc_folder_copy_folder(const penc_folder_level *level, const char *name,
                                             posenc_error *error) {
    if (level->depth + 1 < PENC_FOLDER_MAX_DEPTH) {
        posenc_status status = penc_folder_make(level->to, level->from, error);
        return status ? status : penc_folder_copy_level(level, error);
    }
    penc_fail(error, POSENC_UNSUPPORTED, "path", "hold folders in folders 16 deep at most");
    penc_fail_file(error, level->from);
    penc_fail_name(error, name, strlen(name));
    return POSENC_UNSUPPORTED;
}

static int penc_folder_wants(const penc_folder_level *level, const char *name) {
    const penc_folder_copy *copy = level->copy;
    if (name[0] == '.' && strstr(name, ".posenc-"))
        return 0;
    return level->depth || !copy->wants || copy->wants(copy->context, name);
}

static posenc_status penc_folder_copy_entry(const penc_folder_level *level, const char *name,
                                            const char *from, const char *to, posenc_error *error) {
    struct stat found;
    if (stat(from, &found) != 0)
        return penc_folder_fail(from, "name a file that can be read", error);
    if (S_ISDIR(found.st_mode) && name[0] != '.') {
        penc_folder_level inner = {from, to, level->copy, level->depth + 1};
        return penc_folder_copy_folder(&inner, name, error);
    }
    if (!S_ISREG(found.st_mode) || !penc_folder_wants(level, name))
        return POSENC_OK;
    posenc_status status = penc_folder_copy_file(from, to, error);
    level->copy->copied += !status;
    return status;
}

static posenc_status penc_folder_see(void *context, const char *name, posenc_error *error) {
    const penc_folder_level *level = context;
    char *from = penc_path_join(level->from, "/", name, NULL);
    char *to = penc_path_join(level->to, "/", name, NULL);
    posenc_status status = from && to
                               ? penc_folder_copy_entry(level, name, from, to, error)
                               : penc_fail(error, POSENC_OUT_OF_MEMORY, "path", "fit into memory");
    free(from);
    free(to);
    return status;
}

static posenc_status penc_folder_copy_level(const penc_folder_level *level, posenc_error *error) {
    penc_folder_level seen = *level;
    return penc_folder_walk(level->from, penc_folder_see, &seen, error);
}

posenc_status penc_folder_copy_files(const char *from, const char *to, penc_folder_copy *copy,
                                     posenc_error *error) {
    penc_folder_level top = {from, to, copy, 0};
    return penc_folder_copy_level(&top, error);
}
