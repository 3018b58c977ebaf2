/* What positional encoding a model has. SPDX-License-Identifier: MIT */
#include "bindings.h"
#include "errors.h"
#include "frequencies.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <posenc/model.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

namespace nb = nanobind;

namespace {

struct free_model {
    void operator()(posenc_model *made) const { posenc_model_free(made); }
};

struct model {
    std::shared_ptr<const posenc_model> made; /* of a part: shared with the whole, which owns it */
};

nb::object real(double number) {
    if (std::isfinite(number))
        return nb::float_(number);
    return nb::none();
}

nb::list reals(const double *numbers, size_t count) {
    nb::list all;
    for (size_t i = 0; i < count; i++)
        all.append(numbers[i]);
    return all;
}

/* As rope_parameters has it; what is 0 was not given. */
nb::dict scaling_dict(const posenc_scaling &scaling) {
    static constexpr struct {
        const char *key;
        double posenc_scaling::*member;
    } numbers[] = {
        {"factor", &posenc_scaling::factor},
        {"attention_factor", &posenc_scaling::attention_factor},
        {"attention_coefficient", &posenc_scaling::attention_coefficient},
        {"beta_fast", &posenc_scaling::beta_fast},
        {"beta_slow", &posenc_scaling::beta_slow},
        {"mscale", &posenc_scaling::mscale},
        {"mscale_all_dim", &posenc_scaling::mscale_all_dim},
        {"low_freq_factor", &posenc_scaling::low_freq_factor},
        {"high_freq_factor", &posenc_scaling::high_freq_factor},
        {"alpha", &posenc_scaling::alpha},
        {"partial_rotary_factor", &posenc_scaling::partial},
    };
    nb::dict all;
    all["rope_type"] = posenc_scaling_name(scaling.type);
    for (const auto &number : numbers)
        if (scaling.*number.member != 0.0)
            all[number.key] = real(scaling.*number.member);
    if (scaling.original_max_positions)
        all["original_max_position_embeddings"] = scaling.original_max_positions;
    if (scaling.no_truncate)
        all["truncate"] = false;
    if (scaling.dynamic == POSENC_DYNAMIC_QWEN)
        all["growth"] = "qwen";
    if (scaling.short_factors)
        all["short_factor"] = reals(scaling.short_factors, scaling.factor_count);
    if (scaling.long_factors)
        all["long_factor"] = reals(scaling.long_factors, scaling.factor_count);
    return all;
}

nb::list sections_of(const posenc_axes &axes) {
    nb::list all;
    for (size_t i = 0; i < axes.count; i++)
        all.append(axes.sections[i]);
    return all;
}

nb::object axes_dict(const posenc_axes *axes) {
    static const char *const orders[] = {"chunked", "interleaved", "alternating", "ernie",
                                         "listed"};
    if (!axes || axes->count < 2)
        return nb::none();
    nb::dict all;
    all["count"] = axes->count;
    all["order"] = orders[axes->order];
    all["sections"] = sections_of(*axes);
    return all;
}

/* The frequencies of a rotary layer type at the model's own length; NULL: there is no valid spec. */
std::unique_ptr<frequencies> frequencies_of(const posenc_layer_type &type) {
    posenc_error error;
    posenc_frequencies *made = nullptr;
    if (type.kind != POSENC_ENCODING_ROPE || type.invalid)
        return nullptr;
    uint64_t length = type.spec.max_positions ? type.spec.max_positions : 1;
    auto result = std::make_unique<frequencies>();
    posenc_status status = posenc_frequencies_create(&type.spec, length, &made, nullptr, &error);
    result->made.reset(made);
    check(status, error);
    return result;
}

nb::object position(int64_t number) {
    return number < 0 ? nb::none() : nb::object(nb::int_(number));
}

void put_facts(nb::dict &all, const posenc_layer_type &type, const posenc_frequencies *made) {
    posenc_layer_facts facts = POSENC_LAYER_FACTS_INIT;
    posenc_error error;
    posenc_status status;
    {
        nb::gil_scoped_release without;
        status = posenc_layer_facts_of(&type, made, &facts, &error);
    }
    check(status, error);
    all["shortest_wavelength"] = facts.shortest_wavelength;
    all["longest_wavelength"] = facts.longest_wavelength;
    all["pairs"] = facts.pairs;
    all["pairs_still"] = facts.pairs_still;
    all["pairs_below_one_turn"] = facts.pairs_below_one_turn;
    all["trained_positions"] = facts.trained_positions;
    all["float32_visible_in_f16_from"] = position(facts.float32_visible_in_f16);
    all["float32_visible_in_bf16_from"] = position(facts.float32_visible_in_bf16);
}

/* The members that the other kinds do not have are None there. */
void put_spec(nb::dict &all, const posenc_layer_type &type) {
    std::unique_ptr<frequencies> f = frequencies_of(type);
    if (!f) {
        for (const char *key : {"head_dim", "rotary_dim", "rotary_start", "pairing", "base",
                                "scaling", "attention_factor", "axes"})
            all[key] = nb::none();
        if (type.invalid)
            all["invalid"] = text(type.invalid);
        return;
    }
    const posenc_spec &spec = f->spec();
    all["head_dim"] = spec.head_dim;
    all["rotary_dim"] = spec.rotary_dim;
    all["rotary_start"] = spec.rotary_start;
    all["pairing"] = posenc_pairing_name(spec.pairing);
    all["base"] = real(spec.base);
    all["scaling"] = scaling_dict(*type.spec.scaling);
    all["max_positions"] = type.spec.max_positions;
    all["axes"] = axes_dict(type.spec.axes);
    all["softmax_factor"] =
        real(type.softmax_factor ? posenc_frequencies_softmax_factor(f->made.get()) : 1.0);
    all["output_half"] = type.output_half != 0;
    all["norm_plus_one"] = type.norm_plus_one != 0;
    all["conjugate"] = type.conjugate != 0;
    all["attention_factor"] =
        real(posenc_frequencies_attention_factor(f->made.get(), POSENC_MODE_EXACT));
    put_facts(all, type, f->made.get());
}

nb::list values_of(const posenc_layer_type &type) {
    nb::list all;
    for (size_t i = 0; i < type.value_count; i++) {
        const posenc_model_value &value = type.values[i];
        nb::dict one;
        one["name"] = text(value.name);
        one["value"] =
            value.number.kind == POSENC_NUMBER_REAL ? real(value.number.as.real) : text(value.text);
        one["source"] = posenc_source_name(value.source);
        one["place"] = text(value.place);
        all.append(one);
    }
    return all;
}

nb::dict type_dict(const posenc_layer_type &type) {
    nb::dict all;
    all["name"] = text(type.name);
    all["kind"] = posenc_encoding_name(type.kind);
    put_spec(all, type);
    if (type.kind == POSENC_ENCODING_ALIBI)
        all["max_bias"] = real(type.max_bias);
    all["heads"] = type.heads;
    all["kv_heads"] = type.kv_heads;
    if (type.window)
        all["window"] = type.window;
    nb::list layers;
    for (size_t i = 0; i < type.layer_count; i++)
        layers.append(type.layers[i]);
    all["layers"] = layers;
    all["values"] = values_of(type);
    return all;
}

nb::list warnings_of(const model &m) {
    nb::list all;
    for (size_t i = 0; i < posenc_model_warning_count(m.made.get()); i++) {
        const posenc_model_warning &warning = *posenc_model_warning_at(m.made.get(), i);
        nb::dict one;
        one["code"] = text(warning.code);
        one["message"] = text(warning.message);
        one["fix"] = text(warning.fix);
        one["layer_type"] = text(warning.layer_type);
        all.append(one);
    }
    return all;
}

void put_model(nb::dict &all, const posenc_model *made) {
    all["model_type"] = text(posenc_model_type(made));
    all["rule"] = text(posenc_model_rule(made));
    all["remark"] = text(posenc_model_remark(made));
    all["layer_count"] = posenc_model_layer_count(made);
    nb::list types;
    for (size_t i = 0; i < posenc_model_layer_type_count(made); i++)
        types.append(type_dict(*posenc_model_layer_type(made, i)));
    all["layer_types"] = types;
}

nb::list parts_of(const posenc_model *made) {
    nb::list all;
    for (size_t i = 0; i < posenc_model_part_count(made); i++) {
        const posenc_model_part &part = *posenc_model_part_at(made, i);
        nb::dict one;
        one["name"] = text(part.name);
        one["unread"] = text(part.unread);
        if (part.model)
            put_model(one, part.model);
        all.append(one);
    }
    return all;
}

/* What `posenc inspect --json` prints, without the path. */
nb::dict describe(const model &m) {
    nb::dict all;
    all["format"] = posenc_model_format(m.made.get());
    put_model(all, m.made.get());
    all["parts"] = parts_of(m.made.get());
    all["warnings"] = warnings_of(m);
    return all;
}

nb::list layer_types(const model &m) {
    nb::list all;
    for (size_t i = 0; i < posenc_model_layer_type_count(m.made.get()); i++) {
        const posenc_layer_type &type = *posenc_model_layer_type(m.made.get(), i);
        all.append(
            nb::make_tuple(text(type.name), posenc_encoding_name(type.kind), text(type.invalid)));
    }
    return all;
}

/* The arguments of RopeSpec for layer type number `index`, with the model's words beside them. */
nb::dict spec_of(const model &m, size_t index) {
    const posenc_layer_type &type = *posenc_model_layer_type(m.made.get(), index);
    const posenc_spec &spec = type.spec;
    nb::dict all;
    all["head_dim"] = spec.head_dim;
    all["rotary_dim"] = spec.rotary_dim;
    all["rotary_start"] = spec.rotary_start;
    all["base"] = spec.base;
    all["pairing"] = posenc_pairing_name(spec.pairing);
    all["max_positions"] = spec.max_positions;
    const posenc_scaling *scaling = spec.scaling;
    all["scaling"] = scaling ? nb::object(scaling_dict(*scaling)) : nb::none();
    all["shrinks"] = scaling && scaling->shrinks;
    bool custom = scaling && scaling->type == POSENC_SCALING_CUSTOM;
    all["inv_freq"] = custom ? nb::object(reals(static_cast<const double *>(scaling->inv_freq),
                                                scaling->inv_freq_count))
                             : nb::none();
    all["axes"] = spec.axes && spec.axes->count > 1
                      ? nb::object(nb::make_tuple(spec.axes->count, sections_of(*spec.axes),
                                                  static_cast<int>(spec.axes->order),
                                                  static_cast<int>(spec.axes->exponents)))
                      : nb::none();
    all["output_half"] = type.output_half != 0;
    all["norm_plus_one"] = type.norm_plus_one != 0;
    all["conjugate"] = type.conjugate != 0;
    all["values"] = values_of(type);
    return all;
}

std::unique_ptr<model> open(const char *path) {
    posenc_error error;
    posenc_model *made = nullptr;
    posenc_status status;
    {
        nb::gil_scoped_release without;
        status = posenc_model_open(path, &made, &error);
    }
    auto result = std::make_unique<model>();
    result->made = std::shared_ptr<const posenc_model>(made, free_model());
    check(status, error);
    return result;
}

std::unique_ptr<model> parse(const std::string &json) {
    posenc_error error;
    posenc_model *made = nullptr;
    posenc_status status = posenc_model_parse(json.data(), json.size(), nullptr, &made, &error);
    auto result = std::make_unique<model>();
    result->made = std::shared_ptr<const posenc_model>(made, free_model());
    check(status, error);
    return result;
}

/* The number of the layer type that the file calls so. */
std::optional<size_t> named(const model &m, const char *name) {
    const posenc_layer_type *found = posenc_model_layer_type_named(m.made.get(), name);
    for (size_t i = 0; found && i < posenc_model_layer_type_count(m.made.get()); i++)
        if (posenc_model_layer_type(m.made.get(), i) == found)
            return i;
    return std::nullopt;
}

/* The part of that name as a model of its own; without `unread` it was not found. */
nb::tuple part_of(const model &m, const char *name) {
    const posenc_model_part *part = posenc_model_part_named(m.made.get(), name);
    if (!part || !part->model)
        return nb::make_tuple(nb::none(), part ? text(part->unread) : nb::none());
    model one = {std::shared_ptr<const posenc_model>(m.made, part->model)};
    return nb::make_tuple(nb::cast(std::move(one)), nb::none());
}

} // namespace

void bind_models(nb::module_ &m) {
    nb::class_<model>(m, "Model")
        .def_prop_ro("format",
                     [](const model &self) { return posenc_model_format(self.made.get()); })
        .def_prop_ro("model_type",
                     [](const model &self) { return text(posenc_model_type(self.made.get())); })
        .def_prop_ro("rule",
                     [](const model &self) { return text(posenc_model_rule(self.made.get())); })
        .def("layer_types", &layer_types)
        .def("named", &named)
        .def("spec", &spec_of)
        .def("warnings", &warnings_of)
        .def("part", &part_of)
        .def("describe", &describe);
    m.def("open_model", [](nb::bytes path) { return open(path.c_str()); });
    m.def("parse_model", &parse);
}
