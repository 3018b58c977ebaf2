/* What a model declares, and the frequencies that come of it. SPDX-License-Identifier: MIT */
#include "frequencies.h"

#include "bindings.h"
#include "errors.h"
#include "specs.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

namespace nb = nanobind;

namespace {

/* Returns the frequencies and the notes. */
std::tuple<std::unique_ptr<frequencies>, std::vector<note>> create(const nb::tuple &plain,
                                                                   uint64_t seq_len) {
    note_list notes;
    held_spec spec(plain, notes);
    posenc_error error;
    auto result = std::make_unique<frequencies>();
    posenc_frequencies *made = nullptr;
    posenc_status status =
        posenc_frequencies_create(&spec.spec, seq_len, &made, notes.fresh(), &error);
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
    m.def("frequencies", &create);
    m.def("change", &change);
}
