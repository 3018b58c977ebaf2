/* Rotations and what they turn. SPDX-License-Identifier: MIT */
#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "rotations.h"
#include "tensors.h"
#include "threads.h"

#include <posenc/posenc.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <optional>
#include <string>

namespace nb = nanobind;

namespace {

size_t element_bytes(const array &a) {
    return posenc_dtype_bytes(a.dtype());
}

void check_tables(const array &cos, const array &sin) {
    if (cos.type != number::f32 && cos.type != number::f64)
        throw nb::type_error("cos must be float32 or float64");
    bool same = cos.type == sin.type && cos.rank == sin.rank;
    for (int i = 0; same && i < cos.rank; i++)
        same =
            cos.shape[i] == sin.shape[i] && (cos.shape[i] <= 1 || cos.strides[i] == sin.strides[i]);
    if (!same)
        throw nb::value_error("cos and sin must have the same dtype, shape and strides");
    if (cos.rank != 2 && cos.rank != 3)
        throw nb::value_error("cos must have the shape (tokens, width) or (batch, tokens, width)");
}

/* Tables (tokens, width) or (batch, tokens, width) in one of the library's layouts. `differ`: the two numbers
 * of a pair are not the same ones. */
rotation_rows make_rows(nb::object cos_given, nb::object sin_given, int layout, bool differ,
                        int pairing, size_t rotary_start, double attention_factor,
                        size_t head_dim) {
    array cos(cos_given, "cos", array::use::read);
    bool beside = layout == POSENC_ROWS_COS_SIN || layout == POSENC_ROWS_PAIRS;
    array sin(beside ? cos_given : sin_given, "sin", array::use::read);
    check_tables(cos, sin);
    int last = cos.rank - 1;
    size_t width = static_cast<size_t>(cos.shape[last]);
    for (int i = last - 1; i <= last; i++) /* 0 would be the library's word for "dense" */
        if (cos.shape[i] > 1 && cos.strides[i] == 0)
            throw nb::value_error("cos has a stride of 0");
    ptrdiff_t step = width > 1 ? cos.strides[last] : 1;
    size_t pairs = layout == POSENC_ROWS_HALF ? width : width / 2;
    if (layout != POSENC_ROWS_HALF && width % 2)
        throw nb::value_error("cos has an odd number of columns but its layout needs an even one");

    posenc_rotation plain = {};
    plain.size = sizeof plain;
    plain.cos = cos.data;
    plain.sin = sin.data;
    plain.dtype = cos.dtype();
    plain.batch = cos.rank == 3 ? static_cast<size_t>(cos.shape[0]) : 0;
    plain.batch_stride = cos.rank == 3 ? cos.strides[0] : 0;
    plain.tokens = static_cast<size_t>(cos.shape[last - 1]);
    plain.row_stride = cos.strides[last - 1];
    plain.pair_stride = step;
    plain.rotary_dim = 2 * pairs;
    plain.rotary_start = rotary_start;
    plain.pairing = static_cast<posenc_pairing>(pairing);
    plain.attention_factor = attention_factor;
    ptrdiff_t half = static_cast<ptrdiff_t>(pairs) * step;
    ptrdiff_t bytes = static_cast<ptrdiff_t>(element_bytes(cos));
    switch (static_cast<posenc_row_layout>(layout)) {
    case POSENC_ROWS_HALF:
        break;
    case POSENC_ROWS_FULL_HALF:
        plain.second_stride = differ ? half : 0;
        break;
    case POSENC_ROWS_FULL_INTERLEAVED:
        plain.second_stride = differ ? step : 0;
        plain.pair_stride = 2 * step;
        break;
    case POSENC_ROWS_COS_SIN:
        plain.sin = static_cast<char *>(cos.data) + half * bytes;
        break;
    case POSENC_ROWS_PAIRS:
        plain.sin = static_cast<char *>(cos.data) + step * bytes;
        plain.pair_stride = 2 * step;
        break;
    }
    return {std::move(cos_given), std::move(sin_given), plain, head_dim};
}

/* --- The call ------------------------------------------------------------------------------------- */

void check_same_shape(const array &x, const array &out) {
    bool same = x.rank == out.rank;
    for (int i = 0; same && i < x.rank; i++)
        same = x.shape[i] == out.shape[i];
    if (!same)
        throw nb::value_error("out must have the shape of x");
}

/* An array and its output, of one shape. */
struct rotate_item {
    rotate_item(nb::handle x_given, nb::handle out_given)
        : x(x_given, "x", array::use::read), out(out_given, "out", array::use::write) {
        check_same_shape(x, out);
        if (x.rank == 0)
            throw nb::value_error("x must have at least one axis, head_dim");
    }

    /* axes: a letter for each axis, or none. False if some axes are not one in memory. */
    bool describe_axes(const char *axes, bool own_rows) {
        if (*axes && std::strlen(axes) != static_cast<size_t>(x.rank))
            throw nb::value_error(("axes names " + std::to_string(std::strlen(axes)) +
                                   " axes but x has " + std::to_string(x.rank))
                                      .c_str());
        std::string letters = *axes ? axes : default_axes(x.rank, own_rows);
        return describe(x, letters.c_str(), &from) && describe(out, letters.c_str(), &to);
    }

    array x, out;
    posenc_tensor from, to;
};

constexpr size_t most_items = 8;

/* tables: the rows for float32 and narrower tensors, and those for float64 ones or None. xs, outs: arrays.
 * axes: a letter for each axis, or none. pairing: -1 as in the rows. lists: none, or row_ids, row_starts and
 * cu_seqlens, each an array or None. Nothing is done unless the result is DONE.
 * Tuples because nanobind takes longer for arguments that may be None. */
int rotate(nb::tuple tables, nb::tuple xs, nb::tuple outs, const char *axes, int direction,
           int output_pairing, int pairing, nb::tuple lists, size_t threads, int stores) {
    const rotation_rows &narrow = nb::cast<const rotation_rows &>(tables[0]);
    const rotation_rows *rows = &narrow;
    size_t count = nb::len(xs);
    if (count == 0 || count > most_items)
        throw nb::value_error("x must be 1 to 8 arrays");
    chosen_rows chosen(lists);
    std::optional<rotate_item> items[most_items];
    posenc_rotate_item calls[most_items];
    size_t numbers = 0;
    for (size_t i = 0; i < count; i++) {
        rotate_item &item = items[i].emplace(xs[i], outs[i]);
        if (!item.describe_axes(axes, narrow.plain.batch > 1 || chosen.for_each_sequence()))
            return NEEDS_COPY;
        check_head_dim(narrow, item.from);
        if ((item.x.type == number::f64) != (items[0]->x.type == number::f64))
            throw nb::type_error(
                "x has float64 and other arrays but all must be of the one or the other kind");
        calls[i] = {&item.from, item.x.data, item.out.data, &item.to};
        numbers += item.x.count();
    }
    if (items[0]->x.type == number::f64) {
        if (tables[1].is_none())
            return NEEDS_FLOAT64_ROWS;
        rows = &nb::cast<const rotation_rows &>(tables[1]);
    }
    posenc_rotation rotation = rows->plain;
    if (pairing >= 0)
        rotation.pairing = static_cast<posenc_pairing>(pairing);
    chosen.put_into(&rotation, items[0]->from);
    posenc_rotate_options options = {};
    options.size = sizeof options;
    options.direction = static_cast<posenc_direction>(direction);
    options.output_pairing = static_cast<posenc_output_pairing>(output_pairing);
    options.stores = static_cast<posenc_stores>(stores);
    size_t tokens = items[0]->from.shape[POSENC_AXIS_TOKENS];
    run_ranges(tokens, threads, numbers > few_numbers,
               [&](size_t first, size_t part, posenc_error *error) {
                   posenc_rotate_options range = options;
                   range.first_token = first;
                   range.token_count = part;
                   if (count > 1)
                       return posenc_rotate_all(&rotation, calls, count, &range, error);
                   range.output = calls[0].output_tensor;
                   return posenc_rotate(&rotation, calls[0].tensor, calls[0].input, calls[0].output,
                                        &range, error);
               });
    return DONE;
}

/* --- With a norm and scales ----------------------------------------------------------------------- */

/* tables: none, or as for rotate. axes, output_pairing, pairing, lists: alike. */
int norm_rotate(nb::tuple tables, nb::handle x, nb::handle out, const nb::tuple &norm,
                nb::handle scales, const char *axes, int output_pairing, int pairing,
                nb::tuple lists, size_t threads, int stores) {
    bool turns = nb::len(tables) != 0;
    const rotation_rows *rows = turns ? &nb::cast<const rotation_rows &>(tables[0]) : nullptr;
    chosen_rows chosen(lists);
    rotate_item item(x, out);
    given_stages given(norm, scales, static_cast<size_t>(item.x.shape[item.x.rank - 1]));
    bool own =
        (rows && rows->plain.batch > 1) || chosen.for_each_sequence() || given.for_each_sequence();
    if (!item.describe_axes(axes, own))
        return NEEDS_COPY;
    given.take_scales(item.from);
    posenc_rotation rotation{};
    if (rows) {
        check_head_dim(*rows, item.from);
        if (item.x.type == number::f64) {
            if (tables[1].is_none())
                return NEEDS_FLOAT64_ROWS;
            rows = &nb::cast<const rotation_rows &>(tables[1]);
        }
        rotation = rows->plain;
        if (pairing >= 0)
            rotation.pairing = static_cast<posenc_pairing>(pairing);
        chosen.put_into(&rotation, item.from);
    }
    posenc_rotate_options options = {};
    options.size = sizeof options;
    options.output = &item.to;
    options.output_pairing = static_cast<posenc_output_pairing>(output_pairing);
    options.stores = static_cast<posenc_stores>(stores);
    run_ranges(item.from.shape[POSENC_AXIS_TOKENS], threads, item.x.count() > few_numbers,
               [&](size_t first, size_t part, posenc_error *error) {
                   posenc_rotate_options range = options;
                   range.first_token = first;
                   range.token_count = part;
                   return posenc_norm_rotate(rows ? &rotation : nullptr, &given.stages, &item.from,
                                             item.x.data, item.out.data, &range, error);
               });
    return DONE;
}

/* positions: int64, dense; out: float32 or float64, as many, dense. */
void query_scales(nb::handle positions_given, nb::handle out_given, int kind, double coefficient,
                  uint64_t length, int64_t offset, int mode) {
    array positions(positions_given, "positions", array::use::read);
    array out(out_given, "out", array::use::write);
    positions.expect(number::i64, "int64");
    posenc_query_scale scale{};
    scale.size = sizeof scale;
    scale.kind = static_cast<posenc_query_scale_kind>(kind);
    scale.coefficient = coefficient;
    scale.length = length;
    scale.offset = offset;
    posenc_error error;
    check(posenc_query_scales(&scale, static_cast<const int64_t *>(positions.data),
                              positions.count(), static_cast<posenc_mode>(mode), out.dtype(),
                              out.data, &error),
          error);
}

} // namespace

void bind_rotate(nb::module_ &m) {
    nb::class_<rotation_rows>(m, "Rows")
        .def_prop_ro("tokens", [](const rotation_rows &r) { return r.plain.tokens; })
        .def_prop_ro("batch", [](const rotation_rows &r) { return r.plain.batch; })
        .def_prop_ro("rotary_dim", [](const rotation_rows &r) { return r.plain.rotary_dim; });
    m.def("rows", &make_rows, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg());
    m.def("rotate", &rotate);
    m.def("norm_rotate", &norm_rotate, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
    m.def("query_scales", &query_scales);
    m.def("describe", [](nb::handle object, const char *name) {
        array a(object, name, array::use::read);
        nb::list shape;
        for (int i = 0; i < a.rank; i++)
            shape.append(a.shape[i]);
        return nb::make_tuple(posenc_dtype_name(a.dtype()), nb::tuple(shape));
    });
    m.def("default_axes", [](int rank, bool own_rows) {
        return rank > 0 ? default_axes(rank, own_rows) : std::string();
    });
    m.attr("NEEDS_COPY") = static_cast<int>(NEEDS_COPY);
    m.attr("NEEDS_FLOAT64_ROWS") = static_cast<int>(NEEDS_FLOAT64_ROWS);
}
