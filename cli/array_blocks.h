/* An .npy array of up to 32 axes, walked in blocks that fit memory and hold whole heads.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_ARRAY_BLOCKS_H
#define CLI_ARRAY_BLOCKS_H

#include "command.h"
#include "posenc/npy.h"
#include "posenc/rotate.h"

/* The array's axes in the order of the file, slowest first. */
typedef struct array_axes {
    const posenc_npy_info *info;
    size_t rank;
    size_t size[POSENC_NPY_MAX_RANK];
    int meaning[POSENC_NPY_MAX_RANK];          /* POSENC_AXIS_...; several may be batch */
    uint64_t file_stride[POSENC_NPY_MAX_RANK]; /* elements in the file */
} array_axes;

/* A box of the array: start and size along each axis of array_axes; dense in memory, in file order. */
typedef struct array_block {
    size_t extent[POSENC_NPY_MAX_RANK]; /* size of a block that no edge cuts */
    size_t start[POSENC_NPY_MAX_RANK], size[POSENC_NPY_MAX_RANK];
    ptrdiff_t stride[POSENC_NPY_MAX_RANK]; /* elements in memory */
    size_t count;                          /* elements in all */
} array_block;

/* Reads the option --axes (or its default: the last two are tokens and head_dim, all before them batch).
 * Prints what is wrong. */
int array_axes_get(const cli_arguments *arguments, const posenc_npy_info *info, array_axes *axes);

/* The size along a meaning other than batch; 1 if the array has no such axis. */
size_t array_axes_size(const array_axes *axes, int meaning);

/* Sets *block to the first block of at most about `budget` elements. Returns 0 if the array is empty. */
int array_block_first(const array_axes *axes, size_t budget, array_block *block);
/* Moves on; returns 0 behind the last block. */
int array_block_next(const array_axes *axes, array_block *block);

/* Moves a block between file and memory. */
posenc_status array_block_read(const array_axes *axes, const array_block *block,
                               const posenc_npy_reader *reader, void *memory, posenc_error *error);
posenc_status array_block_write(const array_axes *axes, const array_block *block,
                                posenc_npy_writer *writer, const void *memory, posenc_error *error);

#endif
