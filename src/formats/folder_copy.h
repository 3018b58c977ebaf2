/* A folder's files copied into another folder, each of them whole or not at all (file_rewrite.h). It knows no format.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_FOLDER_COPY_H
#define PENC_FOLDER_COPY_H

#include "posenc/status.h"

enum { PENC_FOLDER_MAX_DEPTH = 16 };

typedef struct penc_folder_copy {
    /* Whether a file of the folder itself (not of folders in it) is to be copied. NULL: all are. */
    int (*wants)(void *context, const char *name);
    void *context;
    size_t copied; /* counts files */
} penc_folder_copy;

/* Copies regular files and folders, and what symbolic links lead to; not hidden folders, temporary files of
 * output_file.h, pipes and devices. A link that leads nowhere is an error. Files that are there are replaced. */
posenc_status penc_folder_copy_files(const char *from, const char *to, penc_folder_copy *copy,
                                     posenc_error *error);

/* Makes a folder with the mode of the folder `like`; one that is there stays as it is. */
posenc_status penc_folder_make(const char *path, const char *like, posenc_error *error);

/* Copies one file. */
posenc_status penc_folder_copy_file(const char *from, const char *to, posenc_error *error);

/* Calls `see` with every name of a folder but "." and ".." until it returns a status that is not OK. */
posenc_status penc_folder_walk(const char *path,
                               posenc_status (*see)(void *context, const char *name,
                                                    posenc_error *error),
                               void *context, posenc_error *error);

#endif
