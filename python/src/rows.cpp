/* Rows of cos and sin. SPDX-License-Identifier: MIT */
#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "frequencies.h"
#include "threads.h"

#include <posenc/posenc.h>

namespace nb = nanobind;

namespace {

posenc_status write_rows(const posenc_frequencies *made, const array &positions, size_t first,
                         size_t count, const posenc_rows *rows, posenc_error *error) {
    switch (positions.type) {
    case number::i64:
        return posenc_angles(made, static_cast<const int64_t *>(positions.data) + first, count,
                             rows, error);
    case number::i32:
        return posenc_angles_int32(made, static_cast<const int32_t *>(positions.data) + first,
                                   count, rows, error);
    default:
        return posenc_angles_real(made, static_cast<const double *>(positions.data) + first, count,
                                  rows, error);
    }
}

/* positions: (tokens,) with one axis, else (axes, tokens), contiguous. cos and sin: (tokens, width), rows of
 * any stride; sin None where the layout keeps it in cos. */
void angles(const frequencies &f, nb::handle positions_given, nb::handle cos_given,
            nb::handle sin_given, int layout, int mode, bool attention, size_t threads) {
    array positions(positions_given, "positions", array::use::read);
    array cos(cos_given, "out", array::use::write);
    if (positions.type != number::i32 && positions.type != number::i64)
        positions.expect(number::f64, "int64, int32 or float64");
    else
        positions.expect(positions.type, "integers");
    size_t axes = f.spec().axes ? f.spec().axes->count : 1;
    size_t tokens = positions.count() / axes;
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.layout = static_cast<posenc_row_layout>(layout);
    size_t width = posenc_row_width(rows.layout, f.pairs());

    auto fits = [&](const array &a) {
        if (a.rank != 2 || a.shape[0] != static_cast<ptrdiff_t>(tokens) ||
            a.shape[1] != static_cast<ptrdiff_t>(width))
            throw nb::value_error("out must have the shape (tokens, numbers of a row)");
        if (a.strides[1] != 1 && width > 1)
            throw nb::value_error("out must have contiguous rows");
        if (a.strides[0] == 0 && tokens > 1) /* 0 would be the library's word for "dense" */
            throw nb::value_error(
                "out has a stride of 0: its elements would be written more than once");
    };
    fits(cos);
    rows.cos = cos.data;
    rows.dtype = cos.dtype();
    rows.row_stride = cos.strides[0];
    rows.mode = static_cast<posenc_mode>(mode);
    rows.axis_stride = static_cast<ptrdiff_t>(tokens);
    rows.without_attention = !attention;
    if (sin_given.is_none())
        return run_ranges(
            tokens, threads, tokens > 32, [&](size_t first, size_t count, posenc_error *error) {
                posenc_rows part = rows;
                part.cos = static_cast<char *>(rows.cos) +
                           static_cast<ptrdiff_t>(first) * rows.row_stride *
                               static_cast<ptrdiff_t>(posenc_dtype_bytes(rows.dtype));
                return write_rows(f.made.get(), positions, first, count, &part, error);
            });
    array sin(sin_given, "out", array::use::write);
    fits(sin);
    if (sin.type != cos.type || (tokens > 1 && sin.strides[0] != cos.strides[0]))
        throw nb::value_error("out must be two arrays of one dtype and the same strides");
    rows.sin = sin.data;
    run_ranges(tokens, threads, tokens > 32, [&](size_t first, size_t count, posenc_error *error) {
        ptrdiff_t skip = static_cast<ptrdiff_t>(first) * rows.row_stride *
                         static_cast<ptrdiff_t>(posenc_dtype_bytes(rows.dtype));
        posenc_rows part = rows;
        part.cos = static_cast<char *>(rows.cos) + skip;
        part.sin = static_cast<char *>(rows.sin) + skip;
        return write_rows(f.made.get(), positions, first, count, &part, error);
    });
}

} // namespace

void bind_rows(nb::module_ &m) {
    m.def("angles", &angles, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg());
    m.def("row_width", [](int layout, size_t pairs) {
        return posenc_row_width(static_cast<posenc_row_layout>(layout), pairs);
    });
}
