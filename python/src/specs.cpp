/* A whole posenc_spec out of Python's arguments. SPDX-License-Identifier: MIT */
#include "specs.h"

#include "errors.h"

#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace {

nb::object value_of(const posenc_number &value) {
    switch (value.kind) {
    case POSENC_NUMBER_INTEGER:
        return nb::int_(value.as.integer);
    case POSENC_NUMBER_SIZE:
        return nb::int_(value.as.size);
    case POSENC_NUMBER_REAL:
        return nb::float_(value.as.real);
    case POSENC_NUMBER_NONE:
        break;
    }
    return nb::none();
}

} // namespace

posenc_notes *note_list::fresh() {
    taken_ = {memory_, sizeof memory_ / sizeof *memory_, 0};
    return &taken_;
}

void note_list::keep() {
    for (size_t i = 0; i < taken_.count && i < taken_.capacity; i++)
        all.emplace_back(memory_[i].kind, memory_[i].argument, value_of(memory_[i].value),
                         posenc_note_sentence(memory_[i].kind));
    taken_.count = 0;
}

held_spec::held_spec(const nb::tuple &plain, note_list &notes) {
    spec.head_dim = nb::cast<size_t>(plain[0]);
    spec.rotary_dim = nb::cast<size_t>(plain[1]);
    spec.rotary_start = nb::cast<size_t>(plain[2]);
    spec.base = nb::cast<double>(plain[3]);
    spec.pairing = static_cast<posenc_pairing>(nb::cast<int>(plain[4]));
    spec.max_positions = nb::cast<uint64_t>(plain[5]);
    int dynamic = nb::cast<int>(plain[7]);
    bool json = !plain[6].is_none(), shrinks = nb::cast<bool>(plain[8]);
    scaling_.size = sizeof scaling_;
    if (!plain[11].is_none())
        take_axes(plain[11]);
    if (json)
        take_json(nb::cast<std::string>(plain[6]), notes);
    if (json || dynamic || shrinks) {
        if (dynamic)
            scaling_.dynamic = static_cast<posenc_dynamic_form>(dynamic);
        scaling_.shrinks = shrinks;
        spec.scaling = &scaling_;
    }
    if (!plain[9].is_none()) {
        if (json)
            throw nb::value_error("inv_freq and scaling are both given but one of them decides");
        take_inv_freq(plain[9], nb::cast<bool>(plain[10]));
    }
}

/* count, order, exponents, sections, pair_axis */
void held_spec::take_axes(nb::handle given) {
    axes_.size = sizeof axes_;
    axes_.count = nb::cast<size_t>(given[0]);
    axes_.order = static_cast<posenc_axis_order>(nb::cast<int>(given[1]));
    axes_.exponents = static_cast<posenc_axis_exponents>(nb::cast<int>(given[2]));
    auto sections = nb::cast<std::vector<size_t>>(given[3]);
    if (sections.size() > POSENC_MAX_AXES)
        throw nb::value_error("sections has more than 8 numbers");
    for (size_t i = 0; i < sections.size(); i++)
        axes_.sections[i] = sections[i];
    pair_axis_ = nb::cast<std::vector<uint8_t>>(given[4]);
    axes_.pair_axis = pair_axis_.empty() ? nullptr : pair_axis_.data();
    spec.axes = &axes_;
}

void held_spec::take_json(const std::string &json, note_list &notes) {
    posenc_error error;
    posenc_rope_parameters *parsed = nullptr;
    posenc_status status =
        posenc_rope_parameters_parse(json.data(), json.size(), &parsed, notes.fresh(), &error);
    parameters_.reset(parsed);
    check(status, error);
    notes.keep();
    const posenc_axes *own = spec.axes;
    check(posenc_rope_parameters_apply(parsed, &spec, notes.fresh(), &error), error);
    notes.keep();
    if (own && spec.axes != own)
        throw nb::value_error(
            "axes is given twice: as an argument and as mrope_section of scaling");
    if (spec.scaling)
        scaling_ = *spec.scaling;
}

void held_spec::take_inv_freq(nb::handle given, bool is_period) {
    inv_freq_.emplace(given, "inv_freq", array::use::read);
    inv_freq_->expect(inv_freq_->type == number::f64 ? number::f64 : number::f32,
                      "float32 or float64");
    scaling_.type = POSENC_SCALING_CUSTOM;
    scaling_.inv_freq = inv_freq_->data;
    scaling_.inv_freq_dtype = inv_freq_->dtype();
    scaling_.inv_freq_count = inv_freq_->count();
    scaling_.inv_freq_is_period = is_period;
    spec.scaling = &scaling_;
}
