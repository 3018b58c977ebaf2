/* Sums of squares of a tensor's rows, streamed. SPDX-License-Identifier: MIT */
#ifndef PENC_ROW_POWERS_H
#define PENC_ROW_POWERS_H

#include "formats/tensor_source.h"

enum { PENC_ROW_BUFFER = 4 << 20, PENC_ROW_PIECE = 4096 };

/* Memory of one reader. */
typedef struct penc_row_buffer {
    unsigned char bytes[PENC_ROW_BUFFER];
    float numbers[PENC_ROW_PIECE];
} penc_row_buffer;

/* Whether rows of the tensor can be read at all: two axes, a type that is known, rows that fit the buffer. */
posenc_status penc_rows_check(const penc_tensor_source *file, const penc_tensor *tensor,
                              posenc_error *error);

/* powers[i] = sum of squares of row first + i, i < rows. */
posenc_status penc_rows_powers(const penc_tensor_source *file, const penc_tensor *tensor,
                               uint64_t first, uint64_t rows, penc_row_buffer *buffer,
                               double *powers, posenc_error *error);

/* All elements of a short tensor of any rank as float32: `count` of them, else it fails. */
posenc_status penc_tensor_numbers(const penc_tensor_source *file, const penc_tensor *tensor,
                                  uint64_t count, float *numbers, posenc_error *error);

#endif
