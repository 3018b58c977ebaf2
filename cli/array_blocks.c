/* An .npy array, walked in blocks. SPDX-License-Identifier: MIT */
#include "array_blocks.h"

#include <string.h>

static const char *const axis_words[] = {"batch", "tokens", "heads", "head_dim"};

/* Reads "tokens,heads,head_dim" into `meaning`, in array order; returns how many, or -1. */
static int parse_axes(const char *text, int meaning[POSENC_NPY_MAX_RANK]) {
    int count = 0;
    while (*text && count < POSENC_NPY_MAX_RANK) {
        size_t length = strcspn(text, ",");
        int axis = 0;
        while (axis < POSENC_AXES &&
               (strlen(axis_words[axis]) != length || memcmp(axis_words[axis], text, length) != 0))
            axis++;
        if (axis == POSENC_AXES)
            return -1;
        meaning[count++] = axis;
        text += length;
        if (*text == ',' && !*++text)
            return -1; /* nothing behind a comma */
    }
    return *text ? -1 : count;
}

static int count_meaning(const int *meaning, size_t rank, int wanted) {
    int count = 0;
    for (size_t i = 0; i < rank; i++)
        count += meaning[i] == wanted;
    return count;
}

static int get_meanings(const cli_arguments *arguments, const posenc_npy_info *info,
                        int meaning[POSENC_NPY_MAX_RANK]) {
    const char *text = cli_value(arguments, "axes");
    size_t rank = info->rank;
    if (!text) {
        if (rank == 0)
            return cli_fail(arguments, "the array is a single number: it has no head_dim axis");
        for (size_t i = 0; i < rank; i++)
            meaning[i] = POSENC_AXIS_BATCH;
        meaning[rank - 1] = POSENC_AXIS_HEAD_DIM;
        if (rank > 1)
            meaning[rank - 2] = POSENC_AXIS_TOKENS;
        return CLI_DONE;
    }
    int count = parse_axes(text, meaning);
    if (count < 0)
        return cli_fail(arguments,
                        "--axes is \"%s\" but must be made of batch, tokens, heads and head_dim, "
                        "such as tokens,heads,head_dim",
                        text);
    if ((size_t)count != rank)
        return cli_fail(arguments, "--axes names %d axes but the array has %zu", count, rank);
    if (count_meaning(meaning, rank, POSENC_AXIS_HEAD_DIM) != 1)
        return cli_fail(arguments, "--axes must name head_dim once");
    if (count_meaning(meaning, rank, POSENC_AXIS_TOKENS) > 1 ||
        count_meaning(meaning, rank, POSENC_AXIS_HEADS) > 1)
        return cli_fail(arguments, "--axes may name tokens and heads only once each");
    return CLI_DONE;
}

int array_axes_get(const cli_arguments *arguments, const posenc_npy_info *info, array_axes *axes) {
    int meaning[POSENC_NPY_MAX_RANK];
    int status = get_meanings(arguments, info, meaning);
    if (status)
        return status;
    axes->info = info;
    axes->rank = info->rank;
    for (size_t i = 0; i < info->rank; i++) { /* a Fortran-order file has its last axis slowest */
        size_t axis = info->fortran_order ? info->rank - 1 - i : i;
        axes->size[i] = info->shape[axis];
        axes->meaning[i] = meaning[axis];
    }
    uint64_t stride = 1;
    for (size_t i = info->rank; i-- > 0;) {
        axes->file_stride[i] = stride;
        stride *= axes->size[i];
    }
    return CLI_DONE;
}

size_t array_axes_size(const array_axes *axes, int meaning) {
    for (size_t i = 0; i < axes->rank; i++) {
        if (axes->meaning[i] == meaning)
            return axes->size[i];
    }
    return 1;
}

/* Cuts the block at the array's edges and lays it out densely. */
static void place_block(const array_axes *axes, array_block *block) {
    block->count = 1;
    for (size_t i = axes->rank; i-- > 0;) {
        size_t left = axes->size[i] - block->start[i];
        block->size[i] = block->extent[i] < left ? block->extent[i] : left;
        block->stride[i] = (ptrdiff_t)block->count;
        block->count *= block->size[i];
    }
}

int array_block_first(const array_axes *axes, size_t budget, array_block *block) {
    *block = (array_block){.count = 0};
    if (axes->info->count == 0)
        return 0;
    size_t count = array_axes_size(axes, POSENC_AXIS_HEAD_DIM);
    for (size_t i = axes->rank;
         i-- > 0;) { /* fastest axes first, so that runs in the file are long */
        size_t room = budget / count ? budget / count : 1;
        size_t extent = axes->size[i] < room ? axes->size[i] : room;
        block->extent[i] = extent;
        if (axes->meaning[i] == POSENC_AXIS_HEAD_DIM)
            block->extent[i] = axes->size[i]; /* counted already */
        else
            count *= extent;
    }
    place_block(axes, block);
    return 1;
}

int array_block_next(const array_axes *axes, array_block *block) {
    for (size_t i = axes->rank; i-- > 0;) {
        block->start[i] += block->extent[i];
        if (block->start[i] < axes->size[i]) {
            place_block(axes, block);
            return 1;
        }
        block->start[i] = 0;
    }
    return 0;
}

/* The block's elements that are contiguous in the file too: `run` of them, from axis `first` on. */
static size_t run_of_block(const array_axes *axes, const array_block *block, size_t *first) {
    size_t run = 1, i = axes->rank;
    while (i > 0) {
        i--;
        run *= block->size[i];
        if (block->size[i] != axes->size[i])
            break;
    }
    *first = i;
    return run;
}

/* Calls posenc_npy_read or _write (whichever of reader and writer is given) for each contiguous run. */
static posenc_status move_block(const array_axes *axes, const array_block *block,
                                const posenc_npy_reader *reader, posenc_npy_writer *writer,
                                char *to, const char *from, posenc_error *error) {
    size_t run_axis, bytes = posenc_dtype_bytes(axes->info->dtype);
    size_t run = run_of_block(axes, block, &run_axis);
    for (size_t done = 0; done < block->count; done += run) {
        uint64_t at = 0;
        size_t rest = done;
        for (size_t i = 0; i < axes->rank; i++) { /* the run's first element, axis by axis */
            size_t index = rest / (size_t)block->stride[i];
            rest %= (size_t)block->stride[i];
            at += (block->start[i] + index) * axes->file_stride[i];
        }
        posenc_status status = reader
                                   ? posenc_npy_read(reader, at, run, to + done * bytes, error)
                                   : posenc_npy_write(writer, at, run, from + done * bytes, error);
        if (status)
            return status;
    }
    return POSENC_OK;
}

posenc_status array_block_read(const array_axes *axes, const array_block *block,
                               const posenc_npy_reader *reader, void *memory, posenc_error *error) {
    return move_block(axes, block, reader, NULL, memory, NULL, error);
}

posenc_status array_block_write(const array_axes *axes, const array_block *block,
                                posenc_npy_writer *writer, const void *memory,
                                posenc_error *error) {
    return move_block(axes, block, NULL, writer, NULL, memory, error);
}
