/* The header of .npy files as bytes, and what reader and writer share. No files here.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_NPY_HEADER_H
#define PENC_NPY_HEADER_H

#include "posenc/npy.h"

#define PENC_NPY_PREFIX     12                  /* magic, version and the longer length field */
#define PENC_NPY_MAX_HEADER (UINT64_C(1) << 20) /* longest header that is read, in bytes */
#define PENC_NPY_MADE       1024                /* room for every header that is made */

/* Tells from the first `count` bytes of a file (PENC_NPY_PREFIX are enough) how long its header is,
 * prefix included. Fails as if the file ended after `count` bytes. */
posenc_status penc_npy_header_size(const unsigned char *bytes, size_t count, size_t *size,
                                   posenc_error *error);

/* Reads a whole header into `*info`, which is written on success only. Bytes after it are ignored.
 */
posenc_status penc_npy_header_parse(const unsigned char *bytes, size_t count, posenc_npy_info *info,
                                    posenc_error *error);

/* Makes the version 1.0 header of `info`'s dtype, order and shape in `to`, of PENC_NPY_MADE bytes,
 * and sets `*size`. The bytes are those of NumPy, except that it writes bfloat16 as "|V2". */
posenc_status penc_npy_header_make(const posenc_npy_info *info, unsigned char *to, size_t *size,
                                   posenc_error *error);

/* Counts the elements of dtype and shape. Returns 0 where a file could not hold them: that is so
 * for an array without elements too if its other sizes are too large, as in NumPy. */
int penc_npy_measure(const posenc_npy_info *info, uint64_t *count);

#endif
