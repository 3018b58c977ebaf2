/* What turns heads: rows, the choice among them, norm and scales. SPDX-License-Identifier: MIT */
#pragma once

#include "arrays.h"

#include <nanobind/nanobind.h>

#include <posenc/posenc.h>

#include <optional>
#include <string>

/* cos and sin of one computing type, with the arrays that hold them. */
struct rotation_rows {
    nanobind::object cos, sin;
    posenc_rotation plain;
    size_t head_dim; /* that the rows were made for; 0: any */
};

/* Rows that a call chooses; each list is None or a contiguous array. */
class chosen_rows {
  public:
    explicit chosen_rows(const nanobind::tuple &lists) {
        if (nanobind::len(lists) == 0)
            return;
        take(ids_, lists[0], "row_ids", number::i64, "int64");
        take(starts_, lists[1], "row_starts", number::i64, "int64");
        take(ends_, lists[2], "cu_seqlens", number::i32, "int32");
    }

    bool for_each_sequence() const { return (ids_ && ids_->rank == 2) || (starts_ && !ends_); }

    /* The library reads as many numbers as the tensor has sequences and tokens. */
    void put_into(posenc_rotation *rotation, const posenc_tensor &tensor) const {
        size_t batch = tensor.shape[POSENC_AXIS_BATCH], tokens = tensor.shape[POSENC_AXIS_TOKENS];
        if (ids_) {
            bool each = ids_->rank == 2;
            if (!each && ids_->rank != 1)
                throw nanobind::value_error(
                    "row_ids must have the shape (tokens,) or (batch, tokens)");
            if (static_cast<size_t>(ids_->shape[each ? 1 : 0]) != tokens ||
                (each && static_cast<size_t>(ids_->shape[0]) != batch))
                throw nanobind::value_error("row_ids must have one number for each token of x");
            rotation->row_ids = static_cast<const int64_t *>(ids_->data);
            rotation->row_ids_stride = each ? static_cast<ptrdiff_t>(tokens) : 0;
        }
        if (ends_) {
            if (ends_->rank != 1 || ends_->shape[0] < 1)
                throw nanobind::value_error("cu_seqlens must have the shape (sequences + 1,)");
            rotation->cu_seqlens = static_cast<const int32_t *>(ends_->data);
            rotation->sequences = static_cast<size_t>(ends_->shape[0]) - 1;
        }
        if (starts_) {
            size_t needed = ends_ ? rotation->sequences : batch;
            if (starts_->rank != 1 || static_cast<size_t>(starts_->shape[0]) != needed)
                throw nanobind::value_error(("row_starts must have one number for each of the " +
                                             std::to_string(needed) + " sequences")
                                                .c_str());
            rotation->row_starts = static_cast<const int64_t *>(starts_->data);
        }
    }

  private:
    static void take(std::optional<array> &to, nanobind::handle from, const char *name,
                     number wanted, const char *called) {
        if (from.is_none())
            return;
        to.emplace(from, name, array::use::read);
        to->expect(wanted, called);
    }

    std::optional<array> ids_, starts_, ends_;
};

/* The norm of each head and the scale of each token. */
class given_stages {
  public:
    /* norm: epsilon (None: no norm), order, weight or None, whether 1 is added to it. */
    given_stages(const nanobind::tuple &norm, nanobind::handle scales, size_t head_dim) {
        stages.size = sizeof stages;
        if (!norm[0].is_none()) {
            norm_.size = sizeof norm_;
            norm_.epsilon = nanobind::cast<double>(norm[0]);
            norm_.order = static_cast<posenc_norm_order>(nanobind::cast<int>(norm[1]));
            norm_.weight_plus_one = nanobind::cast<bool>(norm[3]);
            if (!norm[2].is_none())
                take_weight(norm[2], head_dim);
            stages.norm = &norm_;
        }
        if (!scales.is_none())
            scales_.emplace(scales, "scales", array::use::read);
    }

    bool for_each_sequence() const { return scales_ && scales_->rank == 2; }

    void take_scales(const posenc_tensor &tensor) {
        if (!scales_)
            return;
        bool wide = tensor.dtype == POSENC_F64, each = scales_->rank == 2;
        size_t tokens = tensor.shape[POSENC_AXIS_TOKENS];
        scales_->expect(wide ? number::f64 : number::f32, wide ? "float64" : "float32");
        if ((scales_->rank != 1 && !each) ||
            static_cast<size_t>(scales_->shape[each ? 1 : 0]) != tokens ||
            (each && static_cast<size_t>(scales_->shape[0]) != tensor.shape[POSENC_AXIS_BATCH]))
            throw nanobind::value_error(
                "scales must have one number for each token of x: the shape "
                "(tokens,) or (batch, tokens)");
        stages.scales = scales_->data;
        stages.scales_stride = each ? static_cast<ptrdiff_t>(tokens) : 0;
    }

    posenc_head_stages stages{};

  private:
    void take_weight(nanobind::handle given, size_t head_dim) {
        weight_.emplace(given, "weight", array::use::read);
        norm_.weight_dtype = weight_->dtype();
        weight_->expect(weight_->type, "numbers");
        if (weight_->rank != 1 || weight_->count() != head_dim)
            throw nanobind::value_error(("weight must have the shape (" + std::to_string(head_dim) +
                                         ",), one number for each channel of a head")
                                            .c_str());
        norm_.weight = weight_->data;
    }

    posenc_norm norm_{};
    std::optional<array> weight_, scales_;
};

/* Of a call; nothing is done unless it is DONE. */
enum result { DONE, NEEDS_COPY, NEEDS_FLOAT64_ROWS };

/* Below this many numbers the work takes less than what giving up the GIL may cost. */
constexpr size_t few_numbers = 32768;

inline void check_head_dim(const rotation_rows &rows, const posenc_tensor &tensor) {
    size_t channels = tensor.shape[POSENC_AXIS_HEAD_DIM];
    if (rows.head_dim && rows.head_dim != channels)
        throw nanobind::value_error(("x has " + std::to_string(channels) +
                                     " channels in its axis head_dim but the "
                                     "rotation was made for head_dim " +
                                     std::to_string(rows.head_dim))
                                        .c_str());
}
