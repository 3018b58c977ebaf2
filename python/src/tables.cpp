/* What is added: sinusoidal tables and ALiBi; and conversion. SPDX-License-Identifier: MIT */
#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "threads.h"

#include <posenc/posenc.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <vector>

namespace nb = nanobind;

namespace {

char *at(void *memory, ptrdiff_t elements, posenc_dtype dtype) {
    return static_cast<char *>(memory) +
           elements * static_cast<ptrdiff_t>(posenc_dtype_bytes(dtype));
}

/* A stride of the library, to which 0 means "dense": what repeats memory is refused, what is not used is 0. */
ptrdiff_t stride_of(const array &a, int axis) {
    if (a.shape[axis] <= 1 || a.count() == 0)
        return 0;
    if (a.strides[axis] == 0)
        throw nb::value_error(
            "out has a stride of 0: its elements would be written more than once");
    return a.strides[axis];
}

/* positions: (count,) float64 without gaps. out: (count, dim), rows of any stride. */
void sinusoidal(nb::handle positions_given, nb::handle out_given, double base, int layout,
                int shift, double scale, double start, int odd, std::optional<double> padding,
                size_t threads) {
    array positions(positions_given, "positions", array::use::read);
    array out(out_given, "out", array::use::write);
    positions.expect(number::f64, "float64");
    if (out.rank != 2 || static_cast<size_t>(out.shape[0]) != positions.count())
        throw nb::value_error("out must have the shape (positions, dim)");
    if (out.shape[1] > 1 && out.strides[1] != 1)
        throw nb::value_error("out must have contiguous rows");
    posenc_sinusoidal_spec spec = {};
    spec.size = sizeof spec;
    spec.dim = static_cast<size_t>(out.shape[1]);
    spec.layout = static_cast<posenc_sinusoidal_layout>(layout);
    spec.shift = shift;
    spec.base = base;
    spec.scale = scale;
    spec.start = start;
    spec.odd = static_cast<posenc_odd_rule>(odd);
    spec.has_padding = padding.has_value();
    spec.padding_position = padding.value_or(0.0);
    posenc_dtype dtype = out.dtype();
    ptrdiff_t stride = stride_of(out, 0);
    run_ranges(positions.count(), threads, true,
               [&](size_t first, size_t count, posenc_error *error) {
                   return posenc_sinusoidal(
                       &spec, static_cast<const double *>(positions.data) + first, count, dtype,
                       stride, at(out.data, static_cast<ptrdiff_t>(first) * stride, dtype), error);
               });
}

posenc_alibi_spec alibi_spec(size_t heads, int slopes, double max_bias) {
    posenc_alibi_spec spec = {};
    spec.size = sizeof spec;
    spec.heads = heads;
    spec.slopes = static_cast<posenc_slopes>(slopes);
    spec.max_bias = max_bias;
    return spec;
}

std::vector<double> alibi_slopes(size_t heads, int slopes, double max_bias, size_t first,
                                 size_t count) {
    posenc_alibi_spec spec = alibi_spec(heads, slopes, max_bias);
    posenc_error error;
    std::vector<double> all(count <= POSENC_MAX_HEADS ? count : 0);
    check(posenc_alibi_slopes(&spec, first, count, all.empty() ? nullptr : all.data(), &error),
          error);
    return all;
}

/* out: (heads of the tile, queries, keys), keys contiguous. */
void alibi_bias(size_t heads, nb::handle out_given, int slopes, double max_bias, int mask,
                size_t first_head, std::optional<int64_t> query_offset, bool add,
                const std::vector<double> &own_slopes, size_t threads) {
    array out(out_given, "out", array::use::write);
    if (out.rank != 3)
        throw nb::value_error("out must have the shape (heads, queries, keys)");
    if (out.shape[2] > 1 && out.strides[2] != 1)
        throw nb::value_error("out must have contiguous keys");
    posenc_alibi_spec spec = alibi_spec(heads, slopes, max_bias);
    posenc_bias_tile tile = {};
    tile.size = sizeof tile;
    tile.dtype = out.dtype();
    tile.mask = static_cast<posenc_bias_mask>(mask);
    tile.queries = static_cast<size_t>(out.shape[1]);
    tile.keys = static_cast<size_t>(out.shape[2]);
    tile.has_query_offset = query_offset.has_value();
    tile.query_offset = query_offset.value_or(0);
    tile.head_stride = stride_of(out, 0);
    tile.query_stride = stride_of(out, 1);
    tile.add = add;
    if (!own_slopes.empty() && own_slopes.size() != static_cast<size_t>(out.shape[0]))
        throw nb::value_error("slopes must have one number for each head of the tile");
    run_ranges(static_cast<size_t>(out.shape[0]), threads, true,
               [&](size_t first, size_t count, posenc_error *error) {
                   if (!count)
                       return POSENC_OK;
                   posenc_bias_tile part = tile;
                   part.first_head = first_head + first;
                   part.heads = count;
                   part.slopes = own_slopes.empty() ? nullptr : own_slopes.data() + first;
                   return posenc_alibi_bias(
                       &spec, &part,
                       at(out.data, static_cast<ptrdiff_t>(first) * tile.head_stride, tile.dtype),
                       error);
               });
}

/* Two contiguous arrays of the same number of elements. */
void convert(nb::handle from_given, nb::handle to_given) {
    array from(from_given, "x", array::use::read);
    array to(to_given, "out", array::use::write);
    from.expect(static_cast<number>(from.dtype()), "another dtype");
    to.expect(static_cast<number>(to.dtype()), "another dtype");
    if (from.count() != to.count())
        throw nb::value_error("out must have the shape of x");
    const char *x = static_cast<const char *>(from.data), *y = static_cast<const char *>(to.data);
    size_t x_bytes = from.count() * posenc_dtype_bytes(from.dtype());
    size_t y_bytes = to.count() * posenc_dtype_bytes(to.dtype());
    bool same = x == y && from.type == to.type;
    if (!same && std::less<>()(x, y + y_bytes) && std::less<>()(y, x + x_bytes))
        throw nb::value_error("out must not overlap x");
    posenc_error error;
    posenc_status status;
    {
        nb::gil_scoped_release without;
        status = posenc_convert(from.data, from.dtype(), to.data, to.dtype(), from.count(), &error);
    }
    check(status, error);
}

} // namespace

void bind_tables(nb::module_ &m) {
    m.def("sinusoidal", &sinusoidal, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
    m.def("alibi_slopes", &alibi_slopes);
    m.def("alibi_bias", &alibi_bias, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
    m.def("convert", &convert);
}
