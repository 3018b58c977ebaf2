/* A table of numbers that comes in blocks of rows: to a .npy file, to JSON or to a terminal.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_TABLE_OUTPUT_H
#define CLI_TABLE_OUTPUT_H

#include "command.h"
#include "posenc/dtype.h"

/* Computes rows first ... first + count - 1, `width` numbers each, into `to`; any number of threads may
 * call it at once. Returns CLI_DONE, or prints what is wrong. */
typedef int table_rows(void *context, uint64_t first, size_t count, void *to);

typedef struct table_job {
    const cli_arguments *arguments;
    uint64_t rows;
    size_t width;
    posenc_dtype dtype;
    table_rows *compute;
    void *context;
    /* What the row label of the text output says, such as "position"; label_of gives its number. */
    const char *label;
    double (*label_of)(const void *context, uint64_t row);
    int names_pairs; /* 1: columns are called cos 0, sin 0, cos 1 ...; 0: 0, 1, 2 ... */
} table_job;

/* Writes the table as an .npy array of `rank` axes (whose product is rows * width). */
int table_to_npy(const table_job *job, const char *path, size_t rank, const size_t *shape);

/* Writes columns first_column ... first_column + columns - 1 of every row as JSON arrays of numbers into
 * the open array. */
int table_to_json(const table_job *job, size_t first_column, size_t columns);

/* Prints the head of the table for people, at most 80 columns wide, and says what was left out. */
int table_to_text(const table_job *job);

#endif
