/* What a rotation did to an array, and whether two encodings agree. SPDX-License-Identifier: MIT */
#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "specs.h"
#include "tensors.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <posenc/compare.h>
#include <posenc/diagnosis.h>

#include <cmath>
#include <memory>
#include <string>

namespace nb = nanobind;

namespace {

nb::list explanations_of(const posenc_explanation *explanations, size_t count) {
    nb::list all;
    for (size_t i = 0; i < count; i++) {
        nb::list causes;
        for (size_t k = 0; k < explanations[i].count; k++) {
            nb::dict cause;
            cause["name"] = posenc_cause_name(explanations[i].cause[k]);
            cause["sentence"] = posenc_cause_sentence(explanations[i].cause[k]);
            double value = explanations[i].value[k];
            cause["value"] = std::isnan(value) ? nb::object(nb::none()) : nb::float_(value);
            causes.append(cause);
        }
        nb::dict one;
        one["causes"] = causes;
        one["mode"] = posenc_mode_name(explanations[i].mode);
        all.append(one);
    }
    return all;
}

nb::dict diagnosis_dict(const posenc_diagnosis &found, const posenc_observation &seen) {
    static const char *const places[] = {"batch", "token", "head", "channel"};
    nb::dict all, worst;
    for (size_t i = 0; i < POSENC_AXES; i++)
        worst[places[i]] = found.place[i];
    worst["position"] =
        seen.positions[static_cast<ptrdiff_t>(found.place[POSENC_AXIS_BATCH]) * seen.batch_stride +
                       static_cast<ptrdiff_t>(found.place[POSENC_AXIS_TOKENS])];
    worst["error"] = found.worst_error;
    worst["allowed"] = found.allowed;
    all["verdict"] = posenc_verdict_name(found.verdict);
    all["mode"] = posenc_mode_name(seen.mode);
    all["explanations"] = explanations_of(found.explanations, found.explanation_count);
    all["is_rotation_half"] = found.is_rotation_half != 0;
    all["is_rotation_interleaved"] = found.is_rotation_interleaved != 0;
    all["magnitude"] = found.magnitude;
    all["compared"] = found.compared;
    all["differing"] = found.differing;
    all["worst"] = worst;
    return all;
}

/* Dense positions of shape (tokens,), (batch, tokens), (axes, tokens) or (axes, batch, tokens). */
void take_positions(const array &positions, const posenc_tensor &tensor, size_t axes,
                    posenc_observation &seen) {
    size_t batch = tensor.shape[POSENC_AXIS_BATCH], tokens = tensor.shape[POSENC_AXIS_TOKENS];
    size_t lead = 1, own = 1; /* the axes in front, sequences that have their own */
    int rank = positions.rank;
    if (axes > 1 && rank > 1)
        lead = static_cast<size_t>(positions.shape[0]);
    if (rank == (axes > 1 ? 3 : 2))
        own = static_cast<size_t>(positions.shape[rank - 2]);
    bool fits = rank >= (axes > 1 ? 2 : 1) && rank <= (axes > 1 ? 3 : 2) && lead == axes &&
                (own == 1 || own == batch) &&
                static_cast<size_t>(positions.shape[rank - 1]) == tokens;
    if (!fits)
        throw nb::value_error(("positions must have one number for each of the " +
                               std::to_string(tokens) + " tokens" +
                               (axes > 1 ? " on each of " + std::to_string(axes) + " axes" : "") +
                               ", for all sequences or each of the " + std::to_string(batch))
                                  .c_str());
    seen.positions = static_cast<const int64_t *>(positions.data);
    seen.batch_stride = own > 1 ? static_cast<ptrdiff_t>(tokens) : 0;
    seen.axis_stride = static_cast<ptrdiff_t>(own * tokens);
}

/* positions: int64. axes: a letter for each axis, or none. None if axes of the arrays do not merge: copies are
 * needed. */
nb::object diagnose(nb::handle before_given, nb::handle after_given, const nb::tuple &plain,
                    nb::handle positions_given, const char *axes, int mode, int direction,
                    uint64_t seq_len) {
    array before(before_given, "before", array::use::read);
    array after(after_given, "after", array::use::read);
    array positions(positions_given, "positions", array::use::read);
    positions.expect(number::i64, "int64");
    if (before.rank == 0 || before.rank != after.rank)
        throw nb::value_error("after must have the shape of before, at least (head_dim,)");
    std::string letters = *axes ? axes : default_axes(before.rank, false);
    if (letters.size() != static_cast<size_t>(before.rank))
        throw nb::value_error(("axes names " + std::to_string(letters.size()) +
                               " axes but before has " + std::to_string(before.rank))
                                  .c_str());
    for (int i = 0; i < before.rank; i++)
        if (before.shape[i] != after.shape[i])
            throw nb::value_error("after must have the shape of before");
    posenc_tensor before_tensor, after_tensor;
    if (!describe(before, letters.c_str(), &before_tensor) ||
        !describe(after, letters.c_str(), &after_tensor))
        return nb::none();
    note_list notes;
    held_spec spec(plain, notes);
    size_t count = spec.spec.axes ? spec.spec.axes->count : 1;
    posenc_observation seen = {};
    seen.size = sizeof seen;
    seen.spec = &spec.spec;
    seen.seq_len = seq_len;
    seen.mode = static_cast<posenc_mode>(mode);
    seen.direction = static_cast<posenc_direction>(direction);
    take_positions(positions, before_tensor, count, seen);
    seen.before_tensor = &before_tensor;
    seen.after_tensor = &after_tensor;
    seen.before = before.data;
    seen.after = after.data;
    posenc_diagnosis found;
    posenc_error error;
    posenc_status status;
    {
        nb::gil_scoped_release without;
        status = posenc_diagnose(&seen, &found, &error);
    }
    check(status, error);
    return diagnosis_dict(found, seen);
}

/* --- Comparing ------------------------------------------------------------------------------------ */

struct free_side {
    void operator()(posenc_side *made) const { posenc_side_free(made); }
};

/* A side, and the spec that it points into. */
struct side {
    std::unique_ptr<held_spec> spec;
    std::unique_ptr<posenc_side, free_side> made;
};

std::unique_ptr<side> side_of_spec(const nb::tuple &plain, uint64_t seq_len, int mode) {
    note_list notes;
    posenc_error error;
    posenc_side *made = nullptr;
    auto result = std::make_unique<side>();
    result->spec = std::make_unique<held_spec>(plain, notes);
    posenc_status status = posenc_side_of_spec(&result->spec->spec, seq_len,
                                               static_cast<posenc_mode>(mode), &made, &error);
    result->made.reset(made);
    check(status, error);
    return result;
}

std::unique_ptr<side> side_of_json(const std::string &json) {
    posenc_error error;
    posenc_side *made = nullptr;
    auto result = std::make_unique<side>();
    posenc_status status = posenc_side_of_json(json.data(), json.size(), &made, &error);
    result->made.reset(made);
    check(status, error);
    return result;
}

std::unique_ptr<side> open_side(nb::bytes path) {
    posenc_error error;
    posenc_side *made = nullptr;
    posenc_status status;
    {
        const char *name = path.c_str();
        nb::gil_scoped_release without;
        status = posenc_side_open(name, &made, &error);
    }
    auto result = std::make_unique<side>();
    result->made.reset(made);
    check(status, error);
    return result;
}

nb::object difference_of(const posenc_difference &difference) {
    if (!difference.exists)
        return nb::none();
    nb::dict one;
    one["error"] = difference.error;
    one["position"] = difference.position;
    one["pair"] = difference.pair;
    return one;
}

nb::dict comparison_dict(const posenc_comparison &result) {
    nb::dict all, beyond;
    nb::list decades;
    beyond["bf16"] = difference_of(result.beyond_bf16);
    beyond["f16"] = difference_of(result.beyond_f16);
    beyond["f32"] = difference_of(result.beyond_f32);
    for (const posenc_difference &decade : result.decades)
        decades.append(difference_of(decade));
    all["verdict"] = posenc_agreement_name(result.agreement);
    all["equivalence"] = posenc_equivalence_name(result.equivalence);
    all["pairs_a"] = result.pairs_a;
    all["pairs_b"] = result.pairs_b;
    all["positions"] = result.positions;
    all["pairing_differs"] = result.pairing_differs != 0;
    all["slices_differ"] = result.slices_differ != 0;
    all["axes_differ"] = result.axes_differ != 0;
    all["halves_differ"] = result.halves_differ != 0;
    all["halves"] = difference_of(result.halves);
    all["largest"] = difference_of(result.largest);
    all["beyond"] = beyond;
    all["decades"] = decades;
    all["explanations"] = explanations_of(result.explanations, result.explanation_count);
    return all;
}

nb::dict compare(const side &a, const side &b, nb::handle positions_given) {
    array positions(positions_given, "positions", array::use::read);
    positions.expect(number::i64, "int64");
    posenc_comparison result;
    posenc_error error;
    posenc_status status;
    size_t of_a = posenc_side_axes(a.made.get()), of_b = posenc_side_axes(b.made.get());
    size_t axes = of_a > of_b ? of_a : of_b;
    if (positions.rank == 2 && static_cast<size_t>(positions.shape[0]) != axes)
        throw nb::value_error(("positions has " + std::to_string(positions.shape[0]) +
                               " lists but a has " + std::to_string(of_a) + " axes and b " +
                               std::to_string(of_b))
                                  .c_str());
    size_t count = static_cast<size_t>(positions.shape[positions.rank - 1]);
    ptrdiff_t axis_stride = positions.rank == 2 ? static_cast<ptrdiff_t>(count) : 0;
    {
        nb::gil_scoped_release without;
        status =
            posenc_compare(a.made.get(), b.made.get(), static_cast<const int64_t *>(positions.data),
                           axis_stride, count, &result, &error);
    }
    check(status, error);
    return comparison_dict(result);
}

} // namespace

void bind_diagnoses(nb::module_ &m) {
    nb::class_<side>(m, "Side").def_prop_ro(
        "rows", [](const side &self) { return posenc_side_rows(self.made.get()); });
    m.def("diagnose", &diagnose);
    m.def("side_of_spec", &side_of_spec);
    m.def("side_of_json", &side_of_json);
    m.def("open_side", &open_side);
    m.def("compare", &compare);
}
