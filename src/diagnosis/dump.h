/* Tables and frequencies that somebody's own implementation wrote to a file. SPDX-License-Identifier: MIT */
#ifndef PENC_DUMP_H
#define PENC_DUMP_H

#include "posenc/dtype.h"
#include "posenc/frequencies.h"

/* An array [rows][width]; numbers NULL: there is none. Axes before the last one are counted together. */
typedef struct penc_dump_array {
    double *numbers;
    size_t rows, width;
    posenc_dtype dtype;
    int is_split; /* 1: the last axis was [2], so that (cos, sin) pairs lie side by side */
} penc_dump_array;

typedef struct penc_dump {
    penc_dump_array cos, sin, both, inv_freq;
    posenc_dtype dtype; /* of the least precise one */
} penc_dump;

/* Reads what an .npy, .npz or .safetensors file holds, by the names of its arrays, or by its shape where there is no
 * name. Fails with IO, FORMAT, UNSUPPORTED (other dtypes, more than 2^27 numbers) or OUT_OF_MEMORY. */
posenc_status penc_dump_read(const char *path, penc_dump *dump, posenc_error *error);
void penc_dump_free(penc_dump *dump);

/* One number for each pair. */
typedef struct penc_table {
    size_t rows, pairs;
    double *cos, *sin; /* [rows][pairs] */
    int has_pairing;   /* a full-width table tells it */
    posenc_pairing pairing;
    size_t odd_count;         /* pairs of rows whose two numbers are not the same: no rotation */
    size_t odd_row, odd_pair; /* the first of them, and by how much */
    double odd_error;
} penc_table;

/* Folds a dump with rows (cos and sin, or both in one) to one number a pair. `pairs`: how many are expected, which
 * settles what a width means; 0: not known. */
posenc_status penc_dump_table(const penc_dump *dump, size_t pairs, penc_table *table,
                              posenc_error *error);
void penc_table_free(penc_table *table);

/* Whether rows of cos and sin hold nearly every number twice, so that there are `pairs` pairs. */
int penc_table_is_doubled(const penc_dump *dump, size_t pairs);

#endif
