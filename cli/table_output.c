/* A table of numbers, computed in blocks and written where it is wanted. SPDX-License-Identifier: MIT */
#include "table_output.h"

#include "output.h"
#include "parallel.h"
#include "posenc/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Blocks of about this many numbers keep memory small and threads busy. */
enum { BLOCK_NUMBERS = 1 << 20 };

typedef struct table_block {
    const table_job *job;
    uint64_t first;
    char *numbers;
} table_block;

static int compute_range(void *context, size_t first, size_t count) {
    const table_block *block = context;
    size_t row_bytes = block->job->width * posenc_dtype_bytes(block->job->dtype);
    return block->job->compute(block->job->context, block->first + first, count,
                               block->numbers + first * row_bytes);
}

static int compute_block(const table_job *job, uint64_t first, size_t count, void *numbers) {
    table_block block = {job, first, numbers};
    return parallel_ranges(cli_threads(job->arguments), count, compute_range, &block);
}

/* What is done with a computed block. */
typedef int block_sink(const table_job *job, void *target, uint64_t first, size_t count,
                       const void *numbers);

/* Computes the first `count` rows in blocks and gives each block to `sink`. */
static int for_each_block(const table_job *job, uint64_t count, block_sink *sink, void *target) {
    size_t rows = BLOCK_NUMBERS / (job->width ? job->width : 1);
    rows = rows ? rows : 1;
    if (rows > count)
        rows = (size_t)count;
    void *numbers =
        calloc(rows ? rows : 1, (job->width ? job->width : 1) * posenc_dtype_bytes(job->dtype));
    if (!numbers)
        return cli_fail(job->arguments, "no memory for %zu rows of %zu numbers", rows, job->width);
    int status = CLI_DONE;
    for (uint64_t at = 0; !status && at < count; at += rows) {
        uint64_t left = count - at;
        size_t take = left < rows ? (size_t)left : rows;
        status = compute_block(job, at, take, numbers);
        if (!status)
            status = sink(job, target, at, take, numbers);
    }
    free(numbers);
    return status;
}

typedef struct npy_target {
    posenc_npy_writer *writer;
    const char *path;
} npy_target;

static int write_block(const table_job *job, void *target, uint64_t first, size_t count,
                       const void *numbers) {
    const npy_target *npy = target;
    posenc_error error;
    if (posenc_npy_write(npy->writer, first * job->width, count * job->width, numbers, &error))
        return cli_fail_error(job->arguments, npy->path, &error);
    return CLI_DONE;
}

int table_to_npy(const table_job *job, const char *path, size_t rank, const size_t *shape) {
    posenc_npy_info info = {.dtype = job->dtype, .rank = rank};
    for (size_t axis = 0; axis < rank; axis++)
        info.shape[axis] = shape[axis];
    npy_target target = {NULL, path};
    posenc_error error;
    if (posenc_npy_create(path, &info, &target.writer, &error))
        return cli_fail_error(job->arguments, path, &error);
    int status = for_each_block(job, job->rows, write_block, &target);
    if (status) {
        posenc_npy_discard(target.writer);
        return status;
    }
    if (posenc_npy_commit(target.writer, &error))
        return cli_fail_error(job->arguments, path, &error);
    return CLI_DONE;
}

/* Number `index` of a block, widened. */
static double number_at(const table_job *job, const void *numbers, size_t index) {
    double value = 0.0;
    const char *at = (const char *)numbers + index * posenc_dtype_bytes(job->dtype);
    posenc_error error;
    if (posenc_convert(at, job->dtype, &value, POSENC_F64, 1, &error))
        cli_fail_error(job->arguments, NULL, &error);
    return value;
}

typedef struct json_columns {
    size_t first, count;
} json_columns;

static int print_json_block(const table_job *job, void *target, uint64_t first, size_t count,
                            const void *numbers) {
    const json_columns *columns = target;
    (void)first;
    for (size_t row = 0; row < count; row++) {
        json_open(NULL, '[');
        for (size_t i = columns->first; i < columns->first + columns->count; i++)
            json_number(NULL, number_at(job, numbers, row * job->width + i));
        json_close();
    }
    return CLI_DONE;
}

int table_to_json(const table_job *job, size_t first_column, size_t columns) {
    json_columns target = {first_column, columns};
    return for_each_block(job, job->rows, print_json_block, &target);
}

/* A terminal shows this much of a table. */
enum { TEXT_ROWS = 16, TEXT_COLUMNS = 6 };

/* The header comes with the first row, so that nothing is printed if that fails. */
static void print_text_header(const table_job *job, size_t columns) {
    printf("%13s", job->label);
    for (size_t i = 0; i < columns; i++) {
        if (job->names_pairs)
            printf("      %s %zu", i % 2 ? "sin" : "cos", i / 2);
        else
            printf(" %10zu", i);
    }
    putchar('\n');
}

static int print_text_block(const table_job *job, void *target, uint64_t first, size_t count,
                            const void *numbers) {
    (void)target;
    size_t columns = job->width < TEXT_COLUMNS ? job->width : TEXT_COLUMNS;
    if (first == 0)
        print_text_header(job, columns);
    for (size_t row = 0; row < count; row++) {
        char label[CLI_NUMBER_TEXT];
        number_text(job->label_of(job->context, first + row), label);
        printf("%13s", label);
        for (size_t i = 0; i < columns; i++)
            printf(" %10.6f", number_at(job, numbers, row * job->width + i));
        putchar('\n');
    }
    return CLI_DONE;
}

int table_to_text(const table_job *job) {
    uint64_t rows = job->rows < TEXT_ROWS ? job->rows : TEXT_ROWS;
    int status = for_each_block(job, rows, print_text_block, NULL);
    if (!status && (rows < job->rows || job->width > TEXT_COLUMNS))
        printf("(the table has %" PRIu64 " rows of %zu; all of it: --json or -o FILE.npy)\n",
               job->rows, job->width);
    return status;
}
