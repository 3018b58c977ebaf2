/* Warnings about what a scaling lacks and numbers that do not fit. SPDX-License-Identifier: MIT */
#include "model/model_warning_list.h"
#include "model/rope_block.h"
#include "model/warning_facts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int penc_is_gguf(const posenc_model *model) {
    return strcmp(model->format, "gguf") == 0;
}

/* The base where the file gives none. */
static int penc_base_not_given(const penc_layer_type *type, double *base) {
    const posenc_model_value *value = penc_value_of(type, "rope_theta");
    if (!value || value->source == POSENC_SOURCE_FILE)
        return 0;
    *base = value->number.as.real;
    return 1;
}

/* A base of 10000 that goes without saying is right for short contexts: Llama 2 and before. */
const char *penc_warn_theta_missing(const posenc_model *model, const penc_layer_type *type) {
    double base;
    if (penc_is_gguf(model) || !penc_base_not_given(type, &base) ||
        penc_word_in(model->config.rule.rules, "fixed-base"))
        return NULL;
    if (base != 10000.0)
        return penc_say(
            model,
            "the file gives no rope_theta; the model type implies %s, but many readers fall to 10000",
            penc_show(model, base));
    if (type->max_positions > 8192 && penc_scaled_by(type, "default") &&
        !penc_type_rule_of(&model->config, type->type.name).listed)
        return penc_say(
            model,
            "the file gives no rope_theta and falls to 10000, which is short for %" PRIu64
            " positions",
            type->max_positions);
    return NULL;
}

const char *penc_warn_freq_base_missing(const posenc_model *model, const penc_layer_type *type) {
    double base;
    if (!penc_is_gguf(model) || !penc_base_not_given(type, &base))
        return NULL;
    return penc_say(model, "the file gives no %s for these layers; %s is taken",
                    strstr(type->type.name, "sliding") ? "rope.freq_base_swa" : "rope.freq_base",
                    penc_show(model, base));
}

const char *penc_warn_fraction_missing(const posenc_model *model, const penc_layer_type *type) {
    const posenc_model_value *value = penc_value_of(type, "partial_rotary_factor");
    if (!value || value->source == POSENC_SOURCE_FILE || value->number.as.real == 1.0 ||
        penc_scaled_by(type, "proportional") || strcmp(model->config.rule.rotary, "part") != 0)
        return NULL;
    return penc_say(
        model, "the file does not say that only %s of the head rotates; the model type implies it",
        value->text);
}

const char *penc_warn_factor_missing(const posenc_model *model, const penc_layer_type *type) {
    json_object *word = penc_json_get(type->given, "rope_type");
    word = word ? word : penc_json_get(type->given, "type");
    static const char *const types[] = {"linear", "dynamic", "yarn", "llama3", "ntk"};
    double number;
    if (!penc_json_is(word, json_type_string) || penc_number_in(type->given, "factor", &number) ||
        penc_number_in(type->given, "alpha", &number) || penc_json_has(type->given, "factor"))
        return NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(json_object_get_string(word), types[i]) == 0)
            return penc_say(model, "the scaling %s has no factor", types[i]);
    }
    return NULL;
}

const char *penc_warn_original_length_missing(const posenc_model *model,
                                              const penc_layer_type *type) {
    const posenc_model_value *value = penc_value_of(type, "original_max_position_embeddings");
    if (!value || value->source != POSENC_SOURCE_DEFAULTED)
        return NULL;
    return penc_say(model, "the scaling has no original_max_position_embeddings; %s of %s is taken",
                    value->text, value->place);
}

const char *penc_warn_sections_missing(const posenc_model *model, const penc_layer_type *type) {
    const char *axes = model->config.rule.axes;
    int has_axes = strcmp(axes, "chunked") == 0 || strcmp(axes, "interleaved") == 0 ||
                   strcmp(axes, "ernie") == 0;
    if (!has_axes)
        return NULL;
    const posenc_model_value *value = penc_value_of(type, "mrope_section");
    if (!value)
        return penc_say(model, "the file gives no mrope_section: one axis is assumed");
    return value->source == POSENC_SOURCE_FILE
               ? NULL
               : penc_say(model, "the file gives no mrope_section; the model type implies %s",
                          value->text);
}

const char *penc_warn_partial_dropped(const posenc_model *model, const penc_layer_type *type) {
    double fraction;
    const char *rotary = model->config.rule.rotary;
    if (!penc_file_number(type, "partial_rotary_factor", &fraction) || fraction == 1.0)
        return NULL;
    if (strcmp(rotary, "mla") == 0)
        return penc_say(
            model,
            "partial_rotary_factor %s is not for the rotary part of latent attention: qk_rope_head_dim is its width",
            penc_show(model, fraction));
    if (strcmp(rotary, "whole") != 0 || !penc_scaled_by(type, "default"))
        return NULL;
    return penc_say(model,
                    "partial_rotary_factor is %s, but this model type rotates the whole head",
                    penc_show(model, fraction));
}

const char *penc_warn_sections_unread(const posenc_model *model, const penc_layer_type *type) {
    if (strcmp(model->config.rule.axes, "-") != 0 || !penc_json_get(type->given, "mrope_section"))
        return NULL;
    return penc_say(model,
                    "mrope_section is given, but this model type has one position for each token");
}

/* ---- Lengths ---- */

/* YaRN's factor is the ratio of the lengths. The other scalings have other relations. */
const char *penc_warn_factor_differs(const posenc_model *model, const penc_layer_type *type) {
    double factor, original, maximum = (double)type->max_positions;
    if (!penc_scaled_by(type, "yarn") || !penc_number_in(type->block, "factor", &factor) ||
        !penc_number_in(type->block, "original_max_position_embeddings", &original) ||
        original <= 0.0 || maximum <= 0.0 || fabs(factor - maximum / original) <= 1e-6 * factor)
        return NULL;
    const posenc_model_value *from = penc_value_of(type, "original_max_position_embeddings");
    if (from && from->source == POSENC_SOURCE_DEFAULTED)
        return NULL; /* that it is missing is said already */
    return penc_say(model, "the factor is %s, but the lengths %.10g and %.10g make %s",
                    penc_show(model, factor), maximum, original,
                    penc_show(model, maximum / original));
}

const char *penc_warn_factor_below_1(const posenc_model *model, const penc_layer_type *type) {
    double factor;
    if (!penc_number_in(type->block, "factor", &factor) || factor <= 0.0 || factor >= 1.0)
        return NULL;
    return penc_say(model, "the factor is %s, which shortens the context",
                    penc_show(model, factor));
}

const char *penc_warn_original_length_not_below(const posenc_model *model,
                                                const penc_layer_type *type) {
    double original;
    if (!penc_file_number(type, "original_max_position_embeddings", &original) ||
        !type->max_positions || original < (double)type->max_positions)
        return NULL;
    return penc_say(model, "original_max_position_embeddings is %s, and the maximum is %" PRIu64,
                    penc_show(model, original), type->max_positions);
}

/* ---- Lists ---- */

static size_t penc_length_of(json_object *list) {
    return penc_json_is(list, json_type_array) ? json_object_array_length(list) : 0;
}

/* rotary_dim as it was found, valid or not. */
static size_t penc_pairs_of(const penc_layer_type *type) {
    const posenc_model_value *value = penc_value_of(type, "rotary_dim");
    return value ? (size_t)value->number.as.real / 2 : 0;
}

const char *penc_warn_factor_list_length(const posenc_model *model, const penc_layer_type *type) {
    static const char *const keys[] = {"short_factor", "long_factor"};
    size_t pairs = penc_pairs_of(type);
    for (size_t i = 0; i < 2 && penc_scaled_by(type, "longrope"); i++) {
        json_object *list = penc_json_get(type->block, keys[i]);
        if (list && pairs && penc_length_of(list) != pairs)
            return penc_say(model, "%s has %zu numbers, but %zu pairs rotate", keys[i],
                            penc_length_of(list), pairs);
    }
    size_t divisors = penc_length_of(penc_json_get(model->config.root, "rope_freqs"));
    if (divisors && pairs && divisors != pairs && penc_is_gguf(model))
        return penc_say(model, "rope_freqs.weight has %zu numbers, but %zu pairs rotate", divisors,
                        pairs);
    return NULL;
}

const char *penc_warn_section_sum(const posenc_model *model, const penc_layer_type *type) {
    json_object *list = penc_json_get(type->block, "mrope_section");
    int64_t sum = 0;
    for (size_t i = 0; i < penc_length_of(list); i++)
        sum += json_object_get_int64(json_object_array_get_idx(list, i));
    size_t pairs = penc_pairs_of(type);
    if (!list || !pairs || sum == (int64_t)pairs)
        return NULL;
    return penc_say(model, "mrope_section adds up to %" PRId64 ", but %zu pairs rotate", sum,
                    pairs);
}

const char *penc_warn_layer_list_length(const posenc_model *model, const penc_layer_type *type) {
    (void)type;
    static const char *const keys[] = {"layer_types", "no_rope_layers", "layer_rope_theta",
                                       "rope_pattern"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_object *list = penc_config_find_in_file(&model->config, keys[i]).value;
        size_t length = penc_length_of(list);
        if (length && model->layer_count && length != model->layer_count)
            return penc_say(model, "%s has %zu entries, but there are %zu layers", keys[i], length,
                            model->layer_count);
    }
    return NULL;
}

const char *penc_warn_alpha_beside_factor(const posenc_model *model, const penc_layer_type *type) {
    double alpha, factor;
    if (!penc_scaled_by(type, "dynamic") || !penc_number_in(type->block, "alpha", &alpha) ||
        !penc_number_in(type->block, "factor", &factor))
        return NULL;
    return penc_say(model, "alpha %s fixes the base; factor %s is not used",
                    penc_show(model, alpha), penc_show(model, factor));
}
