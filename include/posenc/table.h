/* posenc/table.h - a table of rows for a range of positions, for those who want one.
 *
 * Rows of a decode step cost about as much as looking them up, so no engine needs a table of its maximum
 * context. Where one is wanted all the same (to hand it to a framework, or for many short calls), this
 * makes it for any range of positions, immutable and shared by threads.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_TABLE_H
#define POSENC_TABLE_H

#include "posenc/rotate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct posenc_table posenc_table;

/* Computes the rows of positions first ... first + count - 1. Of `rows` only dtype, layout, mode and
 * without_attention are read. With several axes every axis has the row's position (text). `frequencies`
 * may be destroyed afterwards. Fails as posenc_angles does, with OVERFLOW if the table's bytes do not
 * fit, or OUT_OF_MEMORY; *table is then NULL. */
POSENC_API POSENC_CHECKED posenc_status posenc_table_create(const posenc_frequencies *frequencies,
                                                            int64_t first, size_t count,
                                                            const posenc_rows *rows,
                                                            posenc_table **table,
                                                            posenc_error *error);

/* NULL is allowed. */
POSENC_API void posenc_table_destroy(posenc_table *table);

/* The table's rows as posenc_angles would have been told to write them: pointers, strides, layout. The
 * memory is the table's and must not be written. */
POSENC_API const posenc_rows *posenc_table_rows(const posenc_table *table);

/* The rotation of `tokens` tokens from position `start` on. Fails with OUT_OF_RANGE if the table does not
 * hold them all, and as posenc_rotation_of does. */
POSENC_API POSENC_CHECKED posenc_status posenc_table_rotation(const posenc_table *table,
                                                              int64_t start, size_t tokens,
                                                              posenc_rotation *rotation,
                                                              posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
