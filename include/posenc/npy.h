/* posenc/npy.h - NumPy's .npy files: read in pieces, written beside their target and renamed.
 * (libposenc-model)
 *
 * A file holds one array. Element indices here count in the order of the file: for a C-order array
 * the last axis is fastest, for a Fortran-order array the first one is. Nothing is mapped and
 * nothing but what is asked for is read, so that files larger than memory work.
 *
 * Read: versions 1.0 to 3.0, either byte order, dtypes f2, f4, f8 and bfloat16 (which NumPy stores
 * as the 2-byte void type: "<V2" or "|V2"). Written: version 1.0, little-endian.
 *
 * Thread-safety: one reader may be read by several threads at once; a writer may be written by
 * several threads at once at disjoint elements. Ownership: what _open and _create give is freed by
 * _close, _commit or _discard.
 *
 * Source: NumPy, numpy/lib/format.py ("The .npy format").
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_NPY_H
#define POSENC_NPY_H

#include "posenc/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define POSENC_NPY_MAX_RANK 32

/* What the header of a file says. */
typedef struct posenc_npy_info {
    posenc_dtype dtype;
    int fortran_order;                 /* 1: the first axis is the fastest in the file */
    int big_endian;                    /* 1: elements are stored big-endian (read converts them) */
    size_t rank;                       /* 0 for a scalar */
    size_t shape[POSENC_NPY_MAX_RANK]; /* axes in array order, whatever the file's order */
    uint64_t count;                    /* elements in all: the product of the shape, 1 for rank 0 */
    uint64_t data_offset;              /* byte offset of the first element in the file */
} posenc_npy_info;

typedef struct posenc_npy_reader posenc_npy_reader;
typedef struct posenc_npy_writer posenc_npy_writer;

/* Opens `path` (a regular file) and reads its header into `*info`; `info` may be NULL. On failure *reader
 * is NULL. Fails with IO (os_error says why), FORMAT (not an .npy file, a header that contradicts itself, a
 * file shorter than its header says; `place` is the byte), OVERFLOW (a shape that no file could hold) or
 * UNSUPPORTED (another dtype or version, more than POSENC_NPY_MAX_RANK axes, a header above 1 MiB, no
 * regular file). */
POSENC_API POSENC_CHECKED posenc_status posenc_npy_open(const char *path,
                                                        posenc_npy_reader **reader,
                                                        posenc_npy_info *info, posenc_error *error);

/* Reads `count` elements from element `first` on into `to`, in the file's dtype and the machine's
 * byte order. Fails with OUT_OF_RANGE beyond the array, with FORMAT if the file has become shorter.
 */
POSENC_API POSENC_CHECKED posenc_status posenc_npy_read(const posenc_npy_reader *reader,
                                                        uint64_t first, size_t count, void *to,
                                                        posenc_error *error);

/* Frees the reader; NULL is allowed. */
POSENC_API void posenc_npy_close(posenc_npy_reader *reader);

/* Starts an array of `info->dtype`, `info->shape` and `info->fortran_order` (the other members are
 * not read) that will become `path`. A regular or new `path` is written as a temporary file beside
 * it and replaced only by posenc_npy_commit, keeping an existing file's mode; anything else
 * (/dev/null, a pipe) is written in place. A symbolic link is followed: the file that it names is
 * replaced, not the link. On failure *writer is NULL. */
POSENC_API POSENC_CHECKED posenc_status posenc_npy_create(const char *path,
                                                          const posenc_npy_info *info,
                                                          posenc_npy_writer **writer,
                                                          posenc_error *error);

/* Writes `count` elements, in the array's dtype and the machine's byte order, from element `first`
 * on. Any order of writes is allowed where the target is a regular file; a pipe takes them in order
 * only, and raises SIGPIPE if nobody reads it. Write every element exactly once: commit compares their
 * number alone, so one that was written twice hides one that never was. */
POSENC_API POSENC_CHECKED posenc_status posenc_npy_write(posenc_npy_writer *writer, uint64_t first,
                                                         size_t count, const void *from,
                                                         posenc_error *error);

/* Flushes, renames to `path` and frees the writer, on failure too. Fails with OUT_OF_RANGE if the number
 * of elements written is not that of the shape, else with IO; `path` is then as it was and no temporary
 * file is left, except where only the flush of the folder failed after renaming: then `path` is new. */
POSENC_API POSENC_CHECKED posenc_status posenc_npy_commit(posenc_npy_writer *writer,
                                                          posenc_error *error);

/* Removes what was written and frees the writer; NULL is allowed. What a pipe or device has got stays
 * there. */
POSENC_API void posenc_npy_discard(posenc_npy_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
