/* Key-value caches in memory of Python's arrays. SPDX-License-Identifier: MIT */
#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "frequencies.h"
#include "rotations.h"
#include "tensors.h"
#include "threads.h"

#include <posenc/posenc.h>

#include <nanobind/stl/string.h>

#include <cstring>
#include <optional>
#include <string>

namespace nb = nanobind;

namespace {

/* Strides of axes of size 1 are nobody's; others must not be 0, the library's word for "dense". */
ptrdiff_t stride_of(const array &a, int axis) {
    if (a.shape[axis] <= 1)
        return 0;
    if (a.strides[axis] == 0)
        throw nb::value_error((std::string(a.name) + " has a stride of 0").c_str());
    return a.strides[axis];
}

/* A cache, with the arrays that hold it. */
struct held_cache {
    /* data: (blocks, block_tokens, heads, head_dim); 8-bit formats as int8 or uint8. tensor_scale 0: none. scales:
     * (blocks, block_tokens, heads) float32, or None. */
    held_cache(nb::handle data_given, int format, nb::handle scales_given, float tensor_scale)
        : data(data_given, "data", array::use::write) {
        bool narrow = posenc_cache_format_bytes(static_cast<posenc_cache_format>(format)) == 1;
        if (data.rank != 4)
            throw nb::value_error(
                "data must have the shape (blocks, block_tokens, heads, head_dim)");
        if (narrow ? data.type != number::i8 : static_cast<int>(data.type) != format)
            throw nb::type_error("data must have the dtype of its format; int8 and fp8_e4m3 lie in "
                                 "bytes");
        plain.size = sizeof plain;
        plain.format = static_cast<posenc_cache_format>(format);
        plain.data = data.data;
        plain.blocks = static_cast<size_t>(data.shape[0]);
        plain.block_tokens = static_cast<size_t>(data.shape[1]);
        plain.heads = static_cast<size_t>(data.shape[2]);
        plain.head_dim = static_cast<size_t>(data.shape[3]);
        plain.block_stride = stride_of(data, 0);
        plain.token_stride = stride_of(data, 1);
        plain.head_stride = stride_of(data, 2);
        plain.channel_stride = stride_of(data, 3);
        plain.tensor_scale = tensor_scale;
        plain.scaling =
            tensor_scale != 0.0F ? POSENC_SCALE_PER_TENSOR : POSENC_SCALE_PER_TOKEN_AND_HEAD;
        if (!scales_given.is_none())
            take_scales(scales_given);
    }

    array data;
    std::optional<array> scales;
    posenc_cache plain{};

  private:
    void take_scales(nb::handle given) {
        scales.emplace(given, "scales", array::use::write);
        size_t last = 0;
        if (scales->type != number::f32)
            throw nb::type_error("scales must have dtype float32");
        bool same = scales->rank == 3;
        for (int i = 0; same && i < 3; i++)
            same = scales->shape[i] == data.shape[i];
        if (!same)
            throw nb::value_error("scales must have the shape (blocks, block_tokens, heads)");
        for (int i = 0; i < 3; i++) {
            if (stride_of(*scales, i) < 0)
                throw nb::value_error("scales must have positive strides");
            if (scales->shape[i] > 1)
                last += static_cast<size_t>(scales->shape[i] - 1) *
                        static_cast<size_t>(scales->strides[i]);
        }
        plain.scales = static_cast<float *>(scales->data);
        plain.scale_count = scales->count() ? last + 1 : 0;
        plain.scale_block_stride = stride_of(*scales, 0);
        plain.scale_token_stride = stride_of(*scales, 1);
        plain.scale_head_stride = stride_of(*scales, 2);
    }
};

/* Where tokens go: each list is None or a contiguous array. */
class chosen_slots {
  public:
    explicit chosen_slots(const nb::tuple &lists) {
        slots_.size = sizeof slots_;
        take(ids_, lists[0], "slot_ids", number::i64, "int64");
        take(starts_, lists[1], "starts", number::i64, "int64");
        take(table_, lists[2], "block_table", number::i32, "int32");
    }

    bool for_each_sequence() const {
        return (ids_ && ids_->rank == 2) || (starts_ && starts_->count() > 1) ||
               (table_ && table_->shape[0] > 1);
    }

    const posenc_slots *of(const posenc_tensor &tensor) {
        size_t batch = tensor.shape[POSENC_AXIS_BATCH], tokens = tensor.shape[POSENC_AXIS_TOKENS];
        if (ids_) {
            if (ids_->count() != batch * tokens || (ids_->rank == 1 && batch > 1) || ids_->rank > 2)
                throw nb::value_error(
                    "slot_ids must have one number for each token of x: the shape "
                    "(tokens,) or (batch, tokens)");
            slots_.slot_ids = static_cast<const int64_t *>(ids_->data);
        }
        if (starts_) {
            if (starts_->rank != 1 || starts_->count() != batch)
                throw nb::value_error(("starts must have one number for each of the " +
                                       std::to_string(batch) + " sequences")
                                          .c_str());
            slots_.starts = static_cast<const int64_t *>(starts_->data);
        }
        if (table_) {
            if (table_->rank != 2 || static_cast<size_t>(table_->shape[0]) != batch)
                throw nb::value_error(("block_table must have a row for each of the " +
                                       std::to_string(batch) + " sequences")
                                          .c_str());
            slots_.block_table = static_cast<const int32_t *>(table_->data);
            slots_.table_blocks = static_cast<size_t>(table_->shape[1]);
        }
        return &slots_;
    }

  private:
    static void take(std::optional<array> &to, nb::handle from, const char *name, number wanted,
                     const char *called) {
        if (from.is_none())
            return;
        to.emplace(from, name, array::use::read);
        to->expect(wanted, called);
        if (to->rank == 0)
            throw nb::value_error((std::string(name) + " must be a list").c_str());
    }

    std::optional<array> ids_, starts_, table_;
    posenc_slots slots_{};
};

/* tables, norm, axes, pairing, row lists: as for norm_rotate. slot_lists: slot_ids, starts, block_table. */
int append(const held_cache &cache, nb::tuple tables, nb::handle x_given, const nb::tuple &norm,
           const char *axes, int pairing, nb::tuple lists, nb::tuple slot_lists, size_t threads) {
    bool turns = nb::len(tables) != 0;
    array x(x_given, "x", array::use::read);
    if (x.rank == 0)
        throw nb::value_error("x must have at least one axis, head_dim");
    if (*axes && std::strlen(axes) != static_cast<size_t>(x.rank))
        throw nb::value_error(("axes names " + std::to_string(std::strlen(axes)) +
                               " axes but x has " + std::to_string(x.rank))
                                  .c_str());
    chosen_rows chosen(lists);
    chosen_slots slots(slot_lists);
    given_stages given(norm, nb::none(), static_cast<size_t>(x.shape[x.rank - 1]));
    posenc_rotation rotation{};
    if (turns)
        rotation = nb::cast<const rotation_rows &>(tables[0]).plain;
    bool own = rotation.batch > 1 || chosen.for_each_sequence() || slots.for_each_sequence();
    std::string letters = *axes ? axes : default_axes(x.rank, own);
    posenc_tensor tensor;
    if (!describe(x, letters.c_str(), &tensor))
        return NEEDS_COPY;
    if (turns) {
        check_head_dim(nb::cast<const rotation_rows &>(tables[0]), tensor);
        if (pairing >= 0)
            rotation.pairing = static_cast<posenc_pairing>(pairing);
        chosen.put_into(&rotation, tensor);
    }
    posenc_append_item item = {&tensor, x.data, &cache.plain, &given.stages};
    const posenc_slots *places = slots.of(tensor);
    run_ranges(tensor.shape[POSENC_AXIS_TOKENS], threads, x.count() > few_numbers,
               [&](size_t first, size_t part, posenc_error *error) {
                   posenc_append_options range = {};
                   range.size = sizeof range;
                   range.first_token = first;
                   range.token_count = part;
                   return posenc_cache_append(turns ? &rotation : nullptr, &item, nullptr, places,
                                              &range, error);
               });
    return DONE;
}

/* slots: int64, dense; out: (slots, heads, head_dim). */
void read_slots(const held_cache &cache, nb::handle slots_given, nb::handle out_given) {
    array slots(slots_given, "slots", array::use::read);
    array out(out_given, "out", array::use::write);
    slots.expect(number::i64, "int64");
    posenc_tensor tensor;
    if (out.rank != 3 || static_cast<size_t>(out.shape[0]) != slots.count() ||
        static_cast<size_t>(out.shape[1]) != cache.plain.heads ||
        static_cast<size_t>(out.shape[2]) != cache.plain.head_dim)
        throw nb::value_error("out must have the shape (slots, heads, head_dim)");
    if (!describe(out, "thd", &tensor))
        throw nb::value_error("out must have strides of whole rows");
    posenc_error error;
    posenc_status status;
    {
        nb::gil_scoped_release without;
        status = posenc_cache_read(&cache.plain, static_cast<const int64_t *>(slots.data),
                                   slots.count(), &tensor, out.data, &error);
    }
    check(status, error);
}

/* slots, positions and original_slots: int64, dense; positions (slots,) or (axes, slots). to, originals and
 * original_slots may be None. */
void shift(const held_cache &cache, const frequencies &from, nb::handle to, int mode,
           nb::handle slots_given, nb::handle from_given, nb::handle to_given, nb::handle originals,
           nb::handle original_slots) {
    array slots(slots_given, "slots", array::use::read);
    array starts(from_given, "from_positions", array::use::read);
    array goals(to_given, "to_positions", array::use::read);
    std::optional<array> others;
    size_t axes = from.spec().axes ? from.spec().axes->count : 1;
    slots.expect(number::i64, "int64");
    for (const array *list : {&starts, &goals}) {
        list->expect(number::i64, "int64");
        if (list->count() != axes * slots.count())
            throw nb::value_error((std::string(list->name) + " must have one number for each slot" +
                                   (axes > 1 ? " on each axis" : ""))
                                      .c_str());
    }
    posenc_shift wanted{};
    wanted.size = sizeof wanted;
    wanted.from = from.made.get();
    wanted.to = to.is_none() ? nullptr : nb::cast<const frequencies &>(to).made.get();
    wanted.mode = static_cast<posenc_mode>(mode);
    wanted.slots = static_cast<const int64_t *>(slots.data);
    wanted.count = slots.count();
    wanted.from_positions = static_cast<const int64_t *>(starts.data);
    wanted.to_positions = static_cast<const int64_t *>(goals.data);
    if (!originals.is_none())
        wanted.originals = &nb::cast<const held_cache &>(originals).plain;
    if (!original_slots.is_none()) {
        others.emplace(original_slots, "original_slots", array::use::read);
        others->expect(number::i64, "int64");
        if (others->count() != slots.count())
            throw nb::value_error("original_slots must have one number for each slot");
        wanted.original_slots = static_cast<const int64_t *>(others->data);
    }
    posenc_error error;
    posenc_status status;
    {
        nb::gil_scoped_release without;
        status = posenc_cache_shift(&cache.plain, &wanted, &error);
    }
    check(status, error);
}

} // namespace

void bind_caches(nb::module_ &m) {
    nb::class_<held_cache>(m, "Cache")
        .def(nb::init<nb::handle, int, nb::handle, float>(), nb::arg(), nb::arg(), nb::arg().none(),
             nb::arg())
        .def("append", &append)
        .def("read", &read_slots)
        .def("shift", &shift, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg().none(), nb::arg().none());
}
