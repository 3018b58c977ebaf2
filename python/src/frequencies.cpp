/* What a model declares, and the frequencies that come of it. SPDX-License-Identifier: MIT */
#include "frequencies.h"

#include "arrays.h"
#include "bindings.h"
#include "errors.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <posenc/rope_parameters.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace nb = nanobind;

namespace {

struct free_parameters {
    void operator()(posenc_rope_parameters *parameters) const {
        posenc_rope_parameters_free(parameters);
    }
};

/* kind, argument, value, sentence */
using note = std::tuple<int, std::string, nb::object, std::string>;

/* The library's notes, gathered over several calls. */
class note_list {
  public:
    posenc_notes *fresh() {
        taken_ = {memory_, sizeof memory_ / sizeof *memory_, 0};
        return &taken_;
    }

    void keep() {
        for (size_t i = 0; i < taken_.count && i < taken_.capacity; i++)
            all.emplace_back(memory_[i].kind, memory_[i].argument, value_of(memory_[i].value),
                             posenc_note_sentence(memory_[i].kind));
        taken_.count = 0;
    }

    std::vector<note> all;

  private:
    static nb::object value_of(const posenc_number &value) {
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

    posenc_note memory_[64];
    posenc_notes taken_{};
};

struct axes_argument {
    size_t count;
    int order, exponents;
    std::vector<size_t> sections;
    std::vector<uint8_t> pair_axis;
};

posenc_axes to_axes(const axes_argument &given) {
    posenc_axes axes = {};
    axes.size = sizeof axes;
    axes.count = given.count;
    axes.order = static_cast<posenc_axis_order>(given.order);
    axes.exponents = static_cast<posenc_axis_exponents>(given.exponents);
    if (given.sections.size() > POSENC_MAX_AXES)
        throw nb::value_error("sections has more than 8 numbers");
    for (size_t i = 0; i < given.sections.size(); i++)
        axes.sections[i] = given.sections[i];
    axes.pair_axis = given.pair_axis.empty() ? nullptr : given.pair_axis.data();
    return axes;
}

using axes_tuple = std::tuple<size_t, int, int, std::vector<size_t>, std::vector<uint8_t>>;

/* All that a spec can hold; 0 is what was not given. Returns the frequencies and the notes. */
std::tuple<std::unique_ptr<frequencies>, std::vector<note>> create(
    size_t head_dim, size_t rotary_dim, size_t rotary_start, double base, int pairing,
    uint64_t max_positions, const std::optional<std::string> &json, int dynamic, bool shrinks,
    nb::handle inv_freq, bool is_period, const std::optional<axes_tuple> &axes_given,
    uint64_t seq_len) {
    posenc_error error;
    note_list notes;
    posenc_spec spec = POSENC_SPEC_INIT;
    spec.head_dim = head_dim;
    spec.rotary_dim = rotary_dim;
    spec.rotary_start = rotary_start;
    spec.base = base;
    spec.pairing = static_cast<posenc_pairing>(pairing);
    spec.max_positions = max_positions;

    std::optional<axes_argument> axes_argument_;
    posenc_axes axes = {};
    if (axes_given) {
        axes_argument_ =
            std::apply([](auto... part) { return axes_argument{part...}; }, *axes_given);
        axes = to_axes(*axes_argument_);
        spec.axes = &axes;
    }

    std::unique_ptr<posenc_rope_parameters, free_parameters> parameters;
    posenc_scaling scaling = {};
    scaling.size = sizeof scaling;
    if (json) {
        posenc_rope_parameters *parsed = nullptr;
        posenc_status status = posenc_rope_parameters_parse(json->data(), json->size(), &parsed,
                                                            notes.fresh(), &error);
        parameters.reset(parsed);
        check(status, error);
        notes.keep();
        const posenc_axes *own = spec.axes;
        check(posenc_rope_parameters_apply(parsed, &spec, notes.fresh(), &error), error);
        notes.keep();
        if (own && spec.axes != own)
            throw nb::value_error(
                "axes is given twice: as an argument and as mrope_section of scaling");
        if (spec.scaling)
            scaling = *spec.scaling;
    }
    if (json || dynamic || shrinks) {
        if (dynamic)
            scaling.dynamic = static_cast<posenc_dynamic_form>(dynamic);
        scaling.shrinks = shrinks;
        spec.scaling = &scaling;
    }

    std::optional<array> own_inv_freq;
    if (!inv_freq.is_none()) {
        own_inv_freq.emplace(inv_freq, "inv_freq", array::use::read);
        if (json)
            throw nb::value_error("inv_freq and scaling are both given but one of them decides");
        own_inv_freq->expect(own_inv_freq->type == number::f64 ? number::f64 : number::f32,
                             "float32 or float64");
        scaling.type = POSENC_SCALING_CUSTOM;
        scaling.inv_freq = own_inv_freq->data;
        scaling.inv_freq_dtype = own_inv_freq->dtype();
        scaling.inv_freq_count = own_inv_freq->count();
        scaling.inv_freq_is_period = is_period;
        spec.scaling = &scaling;
    }

    auto result = std::make_unique<frequencies>();
    posenc_frequencies *made = nullptr;
    posenc_status status = posenc_frequencies_create(&spec, seq_len, &made, notes.fresh(), &error);
    result->made.reset(made);
    check(status, error);
    notes.keep();
    return {std::move(result), std::move(notes.all)};
}

std::unique_ptr<frequencies> change(const frequencies &from, const frequencies &to) {
    posenc_error error;
    posenc_frequencies *made = nullptr;
    auto result = std::make_unique<frequencies>();
    posenc_status status = posenc_frequencies_change(from.made.get(), to.made.get(), &made, &error);
    result->made.reset(made);
    check(status, error);
    return result;
}

} // namespace

void bind_frequencies(nb::module_ &m) {
    nb::class_<frequencies>(m, "Frequencies")
        .def_prop_ro("pairs", &frequencies::pairs)
        .def("inv_freq",
             [](const frequencies &f, int mode) {
                 std::vector<double> all(f.pairs());
                 for (size_t i = 0; i < all.size(); i++)
                     all[i] = posenc_frequencies_inv_freq(f.made.get(), i,
                                                          static_cast<posenc_mode>(mode));
                 return all;
             })
        .def("axes",
             [](const frequencies &f) {
                 std::vector<size_t> all(f.pairs());
                 for (size_t i = 0; i < all.size(); i++)
                     all[i] = posenc_frequencies_axis(f.made.get(), i);
                 return all;
             })
        .def("attention_factor",
             [](const frequencies &f, int mode) {
                 return posenc_frequencies_attention_factor(f.made.get(),
                                                            static_cast<posenc_mode>(mode));
             })
        .def("softmax_factor",
             [](const frequencies &f) { return posenc_frequencies_softmax_factor(f.made.get()); })
        /* head_dim, rotary_dim, rotary_start, base, pairing, max_positions, scaling, number of axes */
        .def("spec", [](const frequencies &f) {
            const posenc_spec &s = f.spec();
            return nb::make_tuple(s.head_dim, s.rotary_dim, s.rotary_start, s.base,
                                  posenc_pairing_name(s.pairing), s.max_positions,
                                  s.scaling ? posenc_scaling_name(s.scaling->type) : "default",
                                  s.axes ? s.axes->count : 1);
        });
    m.def("frequencies", &create, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg().none(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none(),
          nb::arg());
    m.def("change", &change);
}
