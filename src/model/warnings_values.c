/* Warnings about values of another kind than their key wants. SPDX-License-Identifier: MIT */
#include "model/model_warning_list.h"
#include "model/warning_facts.h"

#include <string.h>

/* The value as the file has it, in short. */
static const char *penc_show_value(const posenc_model *model, json_object *value) {
    const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
    if (!text) {
        model->config.arena->failed = 1;
        return "";
    }
    return penc_say(model, "%.40s%s", text, strlen(text) > 40 ? "..." : "");
}

/* What is written where there is no block: null, false, 0, {} and "". */
static int penc_says_nothing(json_object *value) {
    double number;
    int in_string = 0;
    return !value || (penc_json_is(value, json_type_boolean) && !json_object_get_boolean(value)) ||
           (penc_json_number(value, &number, &in_string) && !in_string && number == 0.0) ||
           (penc_json_is(value, json_type_string) && !*json_object_get_string(value)) ||
           (penc_json_is(value, json_type_array) && !json_object_array_length(value));
}

static int penc_is_list_of_words(json_object *value) {
    if (!penc_json_is(value, json_type_array))
        return 0;
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        if (!penc_json_is(json_object_array_get_idx(value, i), json_type_string))
            return 0;
    }
    return 1;
}

const char *penc_warn_wrong_kind(const posenc_model *model, const penc_layer_type *type) {
    static const char *const blocks[] = {"rope_scaling", "rope_parameters"};
    (void)type;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        json_object *value = penc_json_get(model->config.part, blocks[i]);
        if (!penc_says_nothing(value) && !penc_json_is(value, json_type_object))
            return penc_say(model, "%s is %s, which is no object: it is not read", blocks[i],
                            penc_show_value(model, value));
    }
    penc_found names = penc_config_find_in_file(&model->config, "layer_types");
    if (!penc_says_nothing(names.value) && !penc_is_list_of_words(names.value))
        return penc_say(model, "%s is %s, which is no list of words: it is not read", names.key,
                        penc_show_value(model, names.value));
    return NULL;
}

const char *penc_warn_type_missing(const posenc_model *model, const penc_layer_type *type) {
    static const char *const keys[] = {"factor",          "short_factor",     "long_factor",
                                       "low_freq_factor", "high_freq_factor", "beta_fast",
                                       "beta_slow",       "mscale",           "attention_factor"};
    json_object *word = penc_json_get(type->given, "rope_type");
    word = word ? word : penc_json_get(type->given, "type");
    if (!type->given || penc_json_is(word, json_type_string) || !penc_scaled_by(type, "default") ||
        strcmp(model->format, "gguf") == 0)
        return NULL;
    if (word)
        return penc_say(model, "the scaling's type is %s, which is no word: nothing is scaled",
                        penc_show_value(model, word));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (penc_json_get(type->given, keys[i]))
            return penc_say(model, "the block has %s but no rope_type: nothing is scaled", keys[i]);
    }
    return NULL;
}

const char *penc_warn_number_in_string(const posenc_model *model, const penc_layer_type *type) {
    static const char *const keys[] = {
        "hidden_size",      "num_attention_heads",     "num_key_value_heads", "num_hidden_layers",
        "head_dim",         "max_position_embeddings", "sliding_window",      "rotary_dim",
        "qk_nope_head_dim", "qk_rope_head_dim"};
    static const char sentence[] = "%s is \"%s\", a number written as a text";
    double number;
    int in_string = 0;
    json_object_object_foreach(type->block, key, value) {
        if (penc_json_number(value, &number, &in_string) && in_string)
            return penc_say(model, sentence, key, json_object_get_string(value));
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        penc_found found = penc_config_find_in_file(&model->config, keys[i]);
        if (penc_json_number(found.value, &number, &in_string) && in_string)
            return penc_say(model, sentence, found.key, json_object_get_string(found.value));
    }
    return NULL;
}
