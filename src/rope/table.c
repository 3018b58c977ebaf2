/* A table of rows for a range of positions. SPDX-License-Identifier: MIT */
#include "posenc/table.h"

#include "base/checked.h"
#include "base/struct_size.h"

#include <stdlib.h>

struct posenc_table {
    posenc_rows rows;
    posenc_rotation rotation; /* of all rows */
    int64_t first;
    size_t count, row_bytes;
};

/* Fills the table in pieces, so that the list of positions stays small. */
static posenc_status penc_fill_table(posenc_table *table, const posenc_frequencies *frequencies,
                                     posenc_error *error) {
    enum { PIECE = 512 };
    int64_t positions[POSENC_MAX_AXES * PIECE];
    size_t axes = posenc_frequencies_spec(frequencies)->axes->count;
    for (size_t done = 0; done < table->count; done += PIECE) {
        size_t take = table->count - done < PIECE ? table->count - done : PIECE;
        for (size_t i = 0; i < axes * PIECE; i++)
            positions[i] = table->first + (int64_t)(done + i % PIECE);
        posenc_rows rows = table->rows;
        rows.cos = (char *)rows.cos + done * table->row_bytes;
        rows.sin = rows.sin ? (char *)rows.sin + done * table->row_bytes : NULL;
        rows.axis_stride = PIECE;
        posenc_status status = posenc_angles(frequencies, positions, take, &rows, error);
        if (status)
            return status;
    }
    return POSENC_OK;
}

static posenc_status penc_check_range(int64_t first, size_t count, posenc_error *error) {
    if (first < -POSENC_MAX_POSITION || first > POSENC_MAX_POSITION)
        return penc_fail_integer(error, "first", first, "be from -2^40 to 2^40");
    if (count > (uint64_t)(POSENC_MAX_POSITION - first) + 1)
        return penc_fail_size(error, "count", count, "keep positions up to 2^40");
    return POSENC_OK;
}

posenc_status posenc_table_create(const posenc_frequencies *frequencies, int64_t first,
                                  size_t count, const posenc_rows *rows, posenc_table **table,
                                  posenc_error *error) {
    if (!table)
        return penc_fail_null(error, "table");
    *table = NULL;
    if (!frequencies)
        return penc_fail_null(error, "frequencies");
    posenc_status status = penc_check_struct(rows, sizeof *rows, "rows", error);
    if (!status)
        status = penc_check_range(first, count, error);
    if (status)
        return status;
    size_t width = posenc_row_width(rows->layout, posenc_frequencies_pairs(frequencies));
    size_t row_bytes = width * posenc_dtype_bytes(rows->dtype), bytes;
    int beside = rows->layout == POSENC_ROWS_COS_SIN || rows->layout == POSENC_ROWS_PAIRS;
    if (!penc_size_multiply(row_bytes, count, &bytes) || bytes > PTRDIFF_MAX / 16)
        return penc_fail(error, POSENC_OVERFLOW, "count",
                         "keep the table within the address space");
    posenc_table *made = malloc(sizeof *made);
    char *memory = malloc((beside ? bytes : 2 * bytes) + 1);
    if (!made || !memory) {
        free(made);
        free(memory);
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "table", "fit into memory");
    }
    *made = (posenc_table){.rows = *rows, .first = first, .count = count, .row_bytes = row_bytes};
    made->rows.cos = memory;
    made->rows.sin = beside ? NULL : memory + bytes;
    made->rows.row_stride = 0;
    status = penc_fill_table(made, frequencies, error);
    if (!status && (rows->dtype == POSENC_F32 || rows->dtype == POSENC_F64))
        status = posenc_rotation_of(frequencies, &made->rows, count, &made->rotation, error);
    if (status) {
        posenc_table_destroy(made);
        return status;
    }
    *table = made;
    return POSENC_OK;
}

void posenc_table_destroy(posenc_table *table) {
    if (!table)
        return;
    free(table->rows.cos);
    free(table);
}

const posenc_rows *posenc_table_rows(const posenc_table *table) {
    return table ? &table->rows : NULL;
}

posenc_status posenc_table_rotation(const posenc_table *table, int64_t start, size_t tokens,
                                    posenc_rotation *rotation, posenc_error *error) {
    if (!table)
        return penc_fail_null(error, "table");
    if (!rotation)
        return penc_fail_null(error, "rotation");
    if (!table->rotation.size)
        return penc_fail(error, POSENC_UNSUPPORTED, "table",
                         "have float32 or float64 rows to rotate by");
    if (start < table->first || (uint64_t)(start - table->first) > table->count) {
        penc_fail_integer(error, "start", start, "be a position of the table");
        penc_fail_limit(error, "positions in the table", table->count);
        return POSENC_OUT_OF_RANGE;
    }
    size_t skipped = (size_t)(start - table->first);
    if (tokens > table->count - skipped) {
        penc_fail_size(error, "tokens", tokens, "end within the table");
        penc_fail_limit(error, "positions left", table->count - skipped);
        return POSENC_OUT_OF_RANGE;
    }
    *rotation = table->rotation;
    rotation->cos = (const char *)rotation->cos + skipped * table->row_bytes;
    rotation->sin = (const char *)rotation->sin + skipped * table->row_bytes;
    rotation->tokens = tokens;
    return POSENC_OK;
}
