/* posenc_rotation_of: from rows to a rotation. SPDX-License-Identifier: MIT */
#include "posenc/rotate.h"

#include "base/fail.h"
#include "base/struct_size.h"

posenc_status posenc_rotation_of(const posenc_frequencies *frequencies, const posenc_rows *rows,
                                 size_t tokens, posenc_rotation *rotation, posenc_error *error) {
    if (!frequencies)
        return penc_fail_null(error, "frequencies");
    if (!rotation)
        return penc_fail_null(error, "rotation");
    posenc_status status = penc_check_struct(rows, sizeof *rows, "rows", error);
    if (status)
        return status;
    if (!posenc_dtype_bytes(rows->dtype))
        return penc_fail_integer(error, "rows.dtype", rows->dtype, "be a posenc_dtype");
    if (rows->dtype != POSENC_F32 && rows->dtype != POSENC_F64)
        return penc_fail(error, POSENC_UNSUPPORTED, "rows.dtype",
                         "be float32 or float64 for rows that rotate");
    const posenc_spec *spec = posenc_frequencies_spec(frequencies);
    size_t pairs = posenc_frequencies_pairs(frequencies);
    size_t width = posenc_row_width(rows->layout, pairs);
    size_t bytes = posenc_dtype_bytes(rows->dtype);
    if (!width)
        return penc_fail_integer(error, "rows.layout", rows->layout, "be a posenc_row_layout");

    posenc_rotation made = POSENC_ROTATION_INIT;
    made.cos = rows->cos;
    made.sin = rows->sin;
    if (rows->layout == POSENC_ROWS_COS_SIN && rows->cos)
        made.sin = (const char *)rows->cos + pairs * bytes;
    if (rows->layout == POSENC_ROWS_PAIRS && rows->cos)
        made.sin = (const char *)rows->cos + bytes;
    int spread = rows->layout == POSENC_ROWS_PAIRS || rows->layout == POSENC_ROWS_FULL_INTERLEAVED;
    made.dtype = rows->dtype;
    made.tokens = tokens;
    made.row_stride = rows->row_stride ? rows->row_stride : (ptrdiff_t)width;
    made.pair_stride = spread ? 2 : 1;
    made.rotary_dim = spec->rotary_dim;
    made.rotary_start = spec->rotary_start;
    made.pairing = spec->pairing;
    if (!rows->without_attention)
        made.attention_factor = posenc_frequencies_attention_factor(frequencies, rows->mode);
    *rotation = made;
    return POSENC_OK;
}
