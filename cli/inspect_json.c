/* posenc inspect --json. SPDX-License-Identifier: MIT */
#include "inspect_output.h"
#include "output.h"

#include <stddef.h>
#include <string.h>

/* The numbers of a scaling under the names of rope_parameters; 0 is not given. */
static const struct {
    const char *key;
    size_t offset;
} scaling_numbers[] = {
    {"factor", offsetof(posenc_scaling, factor)},
    {"attention_factor", offsetof(posenc_scaling, attention_factor)},
    {"attention_coefficient", offsetof(posenc_scaling, attention_coefficient)},
    {"beta_fast", offsetof(posenc_scaling, beta_fast)},
    {"beta_slow", offsetof(posenc_scaling, beta_slow)},
    {"mscale", offsetof(posenc_scaling, mscale)},
    {"mscale_all_dim", offsetof(posenc_scaling, mscale_all_dim)},
    {"low_freq_factor", offsetof(posenc_scaling, low_freq_factor)},
    {"high_freq_factor", offsetof(posenc_scaling, high_freq_factor)},
    {"alpha", offsetof(posenc_scaling, alpha)},
    {"partial_rotary_factor", offsetof(posenc_scaling, partial)},
};

static void put_list(const char *key, const double *list, size_t count) {
    if (!list)
        return;
    json_open(key, '[');
    for (size_t i = 0; i < count; i++)
        json_number(NULL, list[i]);
    json_close();
}

static void put_scaling(const posenc_scaling *scaling) {
    json_open("scaling", '{');
    json_string("rope_type", posenc_scaling_name(scaling->type));
    for (size_t i = 0; i < sizeof scaling_numbers / sizeof *scaling_numbers; i++) {
        double number;
        memcpy(&number, (const char *)scaling + scaling_numbers[i].offset, sizeof number);
        if (number != 0.0)
            json_number(scaling_numbers[i].key, number);
    }
    if (scaling->original_max_positions)
        json_integer("original_max_position_embeddings", (int64_t)scaling->original_max_positions);
    if (scaling->no_truncate)
        json_boolean("truncate", 0);
    if (scaling->dynamic == POSENC_DYNAMIC_QWEN)
        json_string("growth", "qwen");
    put_list("short_factor", scaling->short_factors, scaling->factor_count);
    put_list("long_factor", scaling->long_factors, scaling->factor_count);
    json_close();
}

static void put_axes(const posenc_axes *axes) {
    static const char *const orders[] = {"chunked", "interleaved", "alternating", "ernie",
                                         "listed"};
    if (!axes || axes->count < 2) {
        json_null("axes");
        return;
    }
    json_open("axes", '{');
    json_integer("count", (int64_t)axes->count);
    json_string("order", orders[axes->order]);
    json_open("sections", '[');
    for (size_t i = 0; i < axes->count; i++)
        json_integer(NULL, (int64_t)axes->sections[i]);
    json_close();
    json_close();
}

static void put_position(const char *key, int64_t position) {
    if (position < 0)
        json_null(key);
    else
        json_integer(key, position);
}

static void put_facts(const posenc_layer_facts *facts) {
    json_number("shortest_wavelength", facts->shortest_wavelength);
    json_number("longest_wavelength", facts->longest_wavelength);
    json_integer("pairs", (int64_t)facts->pairs);
    json_integer("pairs_still", (int64_t)facts->pairs_still);
    json_integer("pairs_below_one_turn", (int64_t)facts->pairs_below_one_turn);
    json_integer("trained_positions", (int64_t)facts->trained_positions);
    put_position("float32_visible_in_f16_from", facts->float32_visible_in_f16);
    put_position("float32_visible_in_bf16_from", facts->float32_visible_in_bf16);
}

/* The members that the other kinds do not have are null there. */
static void put_spec(const posenc_layer_type *type) {
    static const char *const keys[] = {"head_dim", "rotary_dim", "rotary_start",     "pairing",
                                       "base",     "scaling",    "attention_factor", "axes"};
    posenc_layer_facts facts;
    posenc_frequencies *frequencies = inspect_frequencies(type, &facts);
    if (frequencies) {
        const posenc_spec *spec = posenc_frequencies_spec(frequencies);
        json_integer("head_dim", (int64_t)spec->head_dim);
        json_integer("rotary_dim", (int64_t)spec->rotary_dim);
        json_integer("rotary_start", (int64_t)spec->rotary_start);
        json_string("pairing", posenc_pairing_name(spec->pairing));
        json_number("base", spec->base);
        put_scaling(type->spec.scaling);
        json_number("attention_factor",
                    posenc_frequencies_attention_factor(frequencies, POSENC_MODE_EXACT));
        json_integer("max_positions", (int64_t)type->spec.max_positions);
        put_facts(&facts);
        put_axes(type->spec.axes);
        json_number("softmax_factor",
                    type->softmax_factor ? posenc_frequencies_softmax_factor(frequencies) : 1.0);
        json_boolean("output_half", type->output_half);
        json_boolean("norm_plus_one", type->norm_plus_one);
        json_boolean("conjugate", type->conjugate);
    } else {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            json_null(keys[i]);
        if (type->invalid)
            json_string("invalid", type->invalid);
    }
    if (type->kind == POSENC_ENCODING_ALIBI)
        json_number("max_bias", type->max_bias);
    posenc_frequencies_destroy(frequencies);
}

static void put_values(const posenc_layer_type *type) {
    json_open("values", '[');
    for (size_t i = 0; i < type->value_count; i++) {
        const posenc_model_value *value = &type->values[i];
        json_open(NULL, '{');
        json_string("name", value->name);
        if (value->number.kind == POSENC_NUMBER_REAL)
            json_number("value", value->number.as.real);
        else
            json_string("value", value->text);
        json_string("source", posenc_source_name(value->source));
        json_string("place", value->place);
        json_close();
    }
    json_close();
}

static void put_type(const posenc_layer_type *type) {
    json_open(NULL, '{');
    json_string("name", type->name);
    json_string("kind", posenc_encoding_name(type->kind));
    put_spec(type);
    json_integer("heads", (int64_t)type->heads);
    json_integer("kv_heads", (int64_t)type->kv_heads);
    if (type->window)
        json_integer("window", (int64_t)type->window);
    json_open("layers", '[');
    for (size_t i = 0; i < type->layer_count; i++)
        json_integer(NULL, (int64_t)type->layers[i]);
    json_close();
    put_values(type);
    json_close();
}

static void put_warning(const posenc_model_warning *warning) {
    json_open(NULL, '{');
    json_string("code", warning->code);
    json_string("message", warning->message);
    json_string("fix", warning->fix);
    if (warning->layer_type)
        json_string("layer_type", warning->layer_type);
    else
        json_null("layer_type");
    json_close();
}

static void put_text(const char *key, const char *text) {
    if (text)
        json_string(key, text);
    else
        json_null(key);
}

static void put_model(const posenc_model *model) {
    json_string("model_type", posenc_model_type(model));
    put_text("rule", posenc_model_rule(model));
    put_text("remark", posenc_model_remark(model));
    json_integer("layer_count", (int64_t)posenc_model_layer_count(model));
    json_open("layer_types", '[');
    for (size_t i = 0; i < posenc_model_layer_type_count(model); i++)
        put_type(posenc_model_layer_type(model, i));
    json_close();
}

static void put_part(const posenc_model_part *part) {
    json_open(NULL, '{');
    json_string("name", part->name);
    put_text("unread", part->unread);
    if (part->model)
        put_model(part->model);
    json_close();
}

void inspect_print_json(const char *path, const posenc_model *model) {
    json_open(NULL, '{');
    json_string("path", path);
    json_string("format", posenc_model_format(model));
    put_model(model);
    json_open("parts", '[');
    for (size_t i = 0; i < posenc_model_part_count(model); i++)
        put_part(posenc_model_part_at(model, i));
    json_close();
    json_open("warnings", '[');
    for (size_t i = 0; i < posenc_model_warning_count(model); i++)
        put_warning(posenc_model_warning_at(model, i));
    json_close();
    json_close();
    json_end();
}
