/* A whole posenc_spec out of Python's arguments. SPDX-License-Identifier: MIT */
#pragma once

#include "arrays.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <posenc/posenc.h>
#include <posenc/rope_parameters.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

/* kind, argument, value, sentence */
using note = std::tuple<int, std::string, nanobind::object, std::string>;

/* The library's notes, gathered over several calls. */
class note_list {
  public:
    posenc_notes *fresh();
    void keep();

    std::vector<note> all;

  private:
    posenc_note memory_[64];
    posenc_notes taken_{};
};

/* A spec and all that it points to. `plain` is RopeSpec._plain: head_dim, rotary_dim, rotary_start, base,
 * pairing, max_positions, scaling as JSON or None, dynamic form, shrinks, inv_freq or None, whether it is periods,
 * axes or None; 0 is what was not given. */
class held_spec {
  public:
    held_spec(const nanobind::tuple &plain, note_list &notes);
    held_spec(const held_spec &) = delete;
    held_spec &operator=(const held_spec &) = delete;

    posenc_spec spec = POSENC_SPEC_INIT;

  private:
    struct free_parameters {
        void operator()(posenc_rope_parameters *parameters) const {
            posenc_rope_parameters_free(parameters);
        }
    };

    void take_axes(nanobind::handle given);
    void take_json(const std::string &json, note_list &notes);
    void take_inv_freq(nanobind::handle given, bool is_period);

    std::vector<uint8_t> pair_axis_;
    posenc_axes axes_{};
    posenc_scaling scaling_{};
    std::unique_ptr<posenc_rope_parameters, free_parameters> parameters_;
    std::optional<array> inv_freq_;
};
