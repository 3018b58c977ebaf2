/* Filling a caller's error object; each returns the status, so that a check ends in `return`.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_FAIL_H
#define PENC_FAIL_H

#include "posenc/status.h"

posenc_status penc_fail(posenc_error *error, posenc_status status, const char *argument,
                        const char *must);
posenc_status penc_fail_null(posenc_error *error, const char *argument);
posenc_status penc_fail_size(posenc_error *error, const char *argument, uint64_t value,
                             const char *must);
posenc_status penc_fail_integer(posenc_error *error, const char *argument, int64_t value,
                                const char *must);
posenc_status penc_fail_real(posenc_error *error, const char *argument, double value,
                             const char *must);

/* The last system call failed: takes its errno. */
posenc_status penc_fail_system(posenc_error *error, int os_error, const char *argument,
                               const char *must);

/* Additions to an error that one of the above has filled; they do nothing where it is NULL. */
void penc_fail_limit(posenc_error *error, const char *limit_name, uint64_t limit);
void penc_fail_place(posenc_error *error, const char *place_name, int64_t place);

/* A name found in a file, of any bytes. */
void penc_fail_name(posenc_error *error, const char *name, size_t length);
void penc_fail_file(posenc_error *error, const char *path);

/* An integer of a list that is out of range, its limit and where it stands. */
posenc_status penc_fail_listed(posenc_error *error, const char *list, int64_t value,
                               const char *must, const char *limit_name, uint64_t limit,
                               size_t index);

#endif
