/* A layer type's spec out of its effective block. SPDX-License-Identifier: MIT */
#include "model/rope_spec.h"

#include "base/fail.h"
#include "model/rope_block.h"

#include <string.h>

static posenc_status penc_no_memory(const penc_config *config) {
    return penc_fail(config->error, POSENC_OUT_OF_MEMORY, "model", "fit into memory");
}

/* The error's sentence is why the type has no spec. */
static posenc_status penc_make_invalid(const penc_config *config, penc_layer_type *type,
                                       const posenc_error *error) {
    size_t length = posenc_error_text(error, NULL, 0);
    char *sentence = penc_arena_take(config->arena, length + 1, 1);
    if (!sentence)
        return penc_no_memory(config);
    posenc_error_text(error, sentence, length + 1);
    type->type.invalid = sentence;
    return POSENC_OK;
}

/* The key and its value into the list. */
static void penc_note_size(const penc_config *config, penc_layer_type *type, const char *name,
                           uint64_t size, const penc_found *found) {
    if (found->value)
        penc_add_number(config->arena, type, name, (double)size, found->source, found->place);
}

/* A number that sliding layers may have under a key of their own, "swa_" and KEY (MiMo, dots3). */
static posenc_status penc_type_size(const penc_config *config, const penc_layer_type *type,
                                    const char *key, uint64_t *size, penc_found *found) {
    *size = 0;
    if (strstr(type->type.name, "sliding")) {
        const char *own = penc_arena_print(config->arena, "swa_%s", key);
        posenc_status status = own ? penc_config_size(config, own, size, found) : POSENC_OK;
        if (status || *size)
            return status;
    }
    return penc_config_size(config, key, size, found);
}

posenc_status penc_attention_facts(const posenc_model *model, penc_layer_type *type) {
    const penc_config *config = &model->config;
    uint64_t heads = 0, kv_heads = 0, window = 0;
    penc_found found;
    posenc_status status = penc_type_size(config, type, "num_attention_heads", &heads, &found);
    if (status)
        return status;
    type->type.heads = (size_t)heads;
    penc_note_size(config, type, "heads", heads, &found);
    status = penc_type_size(config, type, "num_key_value_heads", &kv_heads, &found);
    if (status)
        return status;
    type->type.kv_heads = found.value ? (size_t)kv_heads : (size_t)heads;
    penc_note_size(config, type, "kv_heads", kv_heads, &found);
    status = penc_config_size(config, "max_position_embeddings", &type->max_positions, &found);
    penc_note_size(config, type, "max_positions", type->max_positions, &found);
    if (status || strstr(type->type.name, "sliding") == NULL)
        return status;
    status = penc_config_size(config, "sliding_window", &window, &found);
    type->type.window = window;
    penc_note_size(config, type, "window", window, &found);
    return status;
}

/* A key that gives some layer types a width of their own (Gemma 4, MiMo). */
static const char *penc_own_width_key(const char *name) {
    static const char *const keys[][2] = {{"full_attention", "global_head_dim"},
                                          {"sliding_attention", "swa_head_dim"},
                                          {"hybrid_sliding", "swa_head_dim"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(keys[i][0], name) == 0)
            return keys[i][1];
    }
    return NULL;
}

/* head_dim as a key, or hidden_size / heads; *head_dim stays 0 where neither is there. */
static posenc_status penc_head_dim(const penc_config *config, penc_layer_type *type,
                                   uint64_t *head_dim) {
    const char *own = penc_own_width_key(type->type.name);
    penc_found found = {0};
    posenc_status status = own ? penc_config_size(config, own, head_dim, &found) : POSENC_OK;
    if (!status && !*head_dim)
        status = penc_config_size(config, "head_dim", head_dim, &found);
    uint64_t hidden;
    penc_found hidden_found;
    if (!status)
        status = penc_config_size(config, "hidden_size", &hidden, &hidden_found);
    if (status)
        return status;
    if (*head_dim) {
        penc_note_size(config, type, "head_dim", *head_dim, &found);
    } else if (hidden && type->type.heads) {
        *head_dim = hidden / type->type.heads;
        penc_add_number(config->arena, type, "head_dim", (double)*head_dim, hidden_found.source,
                        penc_arena_print(config->arena, "%s / heads", hidden_found.place));
    }
    return POSENC_OK;
}

/* Multi-head latent attention: the first part of a head does not rotate. */
static posenc_status penc_latent_dims(const penc_config *config, penc_layer_type *type) {
    uint64_t still = 0, rotary = 0;
    penc_found found_still, found_rotary;
    posenc_status status = penc_type_size(config, type, "qk_nope_head_dim", &still, &found_still);
    if (!status)
        status = penc_type_size(config, type, "qk_rope_head_dim", &rotary, &found_rotary);
    if (status || !rotary)
        return status;
    posenc_spec *spec = &type->type.spec;
    spec->head_dim = (size_t)(still + rotary);
    spec->rotary_dim = (size_t)rotary;
    spec->rotary_start = (size_t)still;
    penc_add_number(config->arena, type, "head_dim", (double)(still + rotary), found_rotary.source,
                    "qk_nope_head_dim + qk_rope_head_dim");
    penc_note_size(config, type, "rotary_dim", rotary, &found_rotary);
    penc_note_size(config, type, "rotary_start", still, &found_still);
    return POSENC_OK;
}

static double penc_block_number(const penc_layer_type *type, const char *key) {
    double number = 0.0;
    int in_string = 0;
    json_object *value = penc_json_get(type->block, key);
    return value && penc_json_number(value, &number, &in_string) ? number : 0.0;
}

static int penc_block_type_is(const penc_layer_type *type, const char *word) {
    json_object *value = penc_json_get(type->block, "rope_type");
    return penc_json_is(value, json_type_string) &&
           strcmp(json_object_get_string(value), word) == 0;
}

/* CLVP: max(projection_dim / (2 * heads), 32). */
static uint64_t penc_clvp_width(const penc_config *config, const penc_layer_type *type) {
    uint64_t width = 0;
    if (penc_config_size(config, "projection_dim", &width, NULL) || !type->type.heads)
        return 32;
    width /= 2 * type->type.heads;
    return width > 32 ? width : 32;
}

/* The key that the rule names for the width; sliding layers may have one of their own (GGUF). */
static posenc_status penc_width_of_key(const penc_config *config, const penc_layer_type *type,
                                       uint64_t *size, penc_found *found) {
    const char *rotary = config->rule.rotary;
    if (strcmp(rotary, "trailing") == 0)
        return penc_config_size(config, "qk_rope_head_dim", size, found);
    if (strncmp(rotary, "key:", 4) != 0)
        return POSENC_OK;
    return penc_type_size(config, type, rotary + 4, size, found);
}

/* A rotary width that a key or a fraction gives. Without a scaling, models whose rule is "whole" rotate the
 * whole head whatever the fraction says; scalings honour it for every model. */
static posenc_status penc_rotary_dim(const penc_config *config, penc_layer_type *type) {
    posenc_spec *spec = &type->type.spec;
    const char *rotary = config->rule.rotary;
    double partial = penc_block_number(type, "partial_rotary_factor");
    uint64_t size = 0;
    penc_found found = {0};
    int trailing = strcmp(rotary, "trailing") == 0;
    posenc_status status = penc_width_of_key(config, type, &size, &found);
    if (status)
        return status;
    int honoured = strcmp(rotary, "whole") != 0 || !penc_block_type_is(type, "default");
    if (honoured && !size && penc_json_get(type->block, "partial_rotary_factor") &&
        !(partial > 0.0 && partial <= 1.0)) {
        type->type.invalid = "partial_rotary_factor must be above 0 and at most 1";
        return POSENC_OK;
    }
    if (size > spec->head_dim) {
        penc_note_size(config, type, "rotary_dim", size, &found);
        type->type.invalid = "rotary_dim is larger than head_dim";
        return POSENC_OK;
    }
    if (strcmp(rotary, "clvp") == 0)
        size = penc_clvp_width(config, type);
    if (penc_block_type_is(type, "proportional")) {
        spec->rotary_dim = spec->head_dim; /* the fraction is a member of the scaling */
        penc_add_number(config->arena, type, "rotary_dim", (double)spec->head_dim,
                        POSENC_SOURCE_IMPLIED, "proportional pairs the whole head");
    } else if (size) {
        spec->rotary_dim = (size_t)size;
        penc_note_size(config, type, "rotary_dim", size, &found);
    } else if (partial > 0.0 && partial <= 1.0 && honoured) {
        const posenc_model_value *fraction = penc_value_of(type, "partial_rotary_factor");
        spec->rotary_dim = (size_t)((double)spec->head_dim * partial);
        penc_add_number(config->arena, type, "rotary_dim", (double)spec->rotary_dim,
                        fraction->source,
                        penc_arena_print(config->arena, "head_dim * %s", fraction->place));
    } else {
        spec->rotary_dim = spec->head_dim;
        penc_add_number(config->arena, type, "rotary_dim", (double)spec->head_dim,
                        POSENC_SOURCE_DEFAULTED, "the whole head rotates");
    }
    spec->rotary_start = trailing ? spec->head_dim - spec->rotary_dim : 0;
    if (trailing)
        penc_add_number(config->arena, type, "rotary_start", (double)spec->rotary_start,
                        POSENC_SOURCE_IMPLIED, "the last channels of the head rotate");
    return POSENC_OK;
}

static posenc_status penc_dims(const penc_config *config, penc_layer_type *type) {
    if (strcmp(config->rule.rotary, "mla") == 0) {
        posenc_status status = penc_latent_dims(config, type);
        if (status || type->type.spec.head_dim)
            return status;
    }
    uint64_t head_dim = 0;
    posenc_status status = penc_head_dim(config, type, &head_dim);
    if (status)
        return status;
    if (head_dim > POSENC_MAX_DIM)
        return penc_fail_size(config->error, "head_dim", head_dim, "be at most 2^24");
    type->type.spec.head_dim = (size_t)head_dim;
    if (!head_dim) {
        type->type.invalid = "the file gives neither head_dim nor hidden_size and heads";
        return POSENC_OK;
    }
    return penc_rotary_dim(config, type);
}

/* The pairing of the rule; "rope_interleave": false (DeepSeek-V3's family) makes it half. */
static void penc_pairing(const penc_config *config, penc_layer_type *type) {
    penc_found found = penc_config_find_in_file(config, "rope_interleave");
    const char *pairing = config->rule.pairing;
    posenc_layer_type *t = &type->type;
    t->output_half = penc_word_in(config->rule.rules, "output-half");
    t->conjugate = penc_word_in(config->rule.rules, "conjugate");
    if (t->output_half && penc_json_is(found.value, json_type_boolean) &&
        !json_object_get_boolean(found.value)) {
        t->spec.pairing = POSENC_PAIRING_HALF;
        t->output_half = 0;
        penc_add_text(type, "pairing", "half", POSENC_SOURCE_FILE, found.place);
        return;
    }
    t->spec.pairing =
        strcmp(pairing, "interleaved") == 0 ? POSENC_PAIRING_INTERLEAVED : POSENC_PAIRING_HALF;
    if (config->known)
        penc_add_text(type, "pairing", posenc_pairing_name(t->spec.pairing), POSENC_SOURCE_IMPLIED,
                      penc_arena_print(config->arena, "rules of %s", config->rule.name));
}

/* The rule's order of axes; sections stand in the block. */
static void penc_axis_order(const penc_config *config, posenc_axes *axes) {
    const char *word = config->rule.axes;
    if (strcmp(word, "interleaved") == 0)
        axes->order = POSENC_AXES_INTERLEAVED;
    else if (strcmp(word, "ernie") == 0)
        axes->order = POSENC_AXES_ERNIE;
    else
        axes->order = POSENC_AXES_CHUNKED;
}

/* Interleaved sections say how far the other axes' turns go; axis 0 has what they leave, whatever its own section
 * says. So lists of another sum, such as the usual one beside a narrower head, have a meaning too. */
static void penc_fit_interleaved(const posenc_spec *spec, posenc_axes *axes) {
    size_t pairs = spec->rotary_dim / 2, left = pairs;
    if (axes->order != POSENC_AXES_INTERLEAVED)
        return;
    for (size_t axis = 1; axis < axes->count; axis++) {
        size_t turns = pairs > axis ? (pairs - axis - 1) / axes->count + 1 : 0;
        if (axes->sections[axis] > turns)
            axes->sections[axis] = turns;
        left -= axes->sections[axis];
    }
    axes->sections[0] = left;
}

/* Rows and columns of an image, half of the pairs each. */
static void penc_grid_axes(const posenc_spec *spec, const char *word, posenc_axes *axes) {
    posenc_axes start = POSENC_AXES_INIT;
    *axes = start;
    axes->count = 2;
    if (strcmp(word, "alternating") == 0)
        axes->order = POSENC_AXES_ALTERNATING;
    else
        axes->exponents =
            strcmp(word, "grid") == 0 ? POSENC_EXPONENTS_OWN : POSENC_EXPONENTS_STRIDED;
    axes->sections[0] = spec->rotary_dim / 4;
    axes->sections[1] = spec->rotary_dim / 2 - axes->sections[0];
}

/* The block's sections, or what the rule says of images, into the type's own struct. */
static void penc_take_axes(const penc_config *config, penc_layer_type *type, posenc_axes *axes) {
    const char *order = config->rule.axes;
    posenc_spec *spec = &type->type.spec;
    if (strcmp(order, "special") == 0) {
        type->type.invalid = "its positions are no whole numbers on axes that a spec expresses";
        return;
    }
    if (penc_word_in("grid strided alternating", order)) {
        penc_grid_axes(spec, order, axes);
    } else if (spec->axes) {
        *axes = *spec->axes;
        penc_axis_order(config, axes);
        penc_fit_interleaved(spec, axes);
    } else {
        return;
    }
    spec->axes = axes;
}

/* GGUF: rope_freqs.weight divides the frequencies (Llama 3, Gemma 4). They become the spec's own, each the
 * float64 quotient; 1e30, which stands for "does not turn", makes 0. */
static posenc_status penc_apply_divisors(const penc_config *config, penc_layer_type *type,
                                         posenc_scaling *scaling) {
    penc_found found = penc_config_find_in_file(config, "rope_freqs");
    posenc_spec plain = type->type.spec;
    posenc_frequencies *frequencies = NULL;
    posenc_error error;
    if (!found.value || scaling->type != POSENC_SCALING_DEFAULT ||
        !penc_type_rule_of(config, type->type.name).scaled)
        return POSENC_OK;
    plain.scaling = NULL;
    posenc_status status = posenc_frequencies_create(&plain, 1, &frequencies, NULL, &error);
    if (status) /* penc_check tells what is wrong with it */
        return status == POSENC_OUT_OF_MEMORY ? penc_no_memory(config) : POSENC_OK;
    size_t pairs = posenc_frequencies_pairs(frequencies);
    double *inv_freq = penc_arena_take(config->arena, pairs, sizeof *inv_freq);
    if (pairs != json_object_array_length(found.value))
        type->type.invalid = "rope_freqs.weight must have rotary_dim / 2 numbers";
    for (size_t i = 0; inv_freq && !type->type.invalid && i < pairs; i++) {
        double divisor = json_object_get_double(json_object_array_get_idx(found.value, i));
        double quotient = posenc_frequencies_inv_freq(frequencies, i, POSENC_MODE_EXACT) / divisor;
        inv_freq[i] = divisor < 1e30 ? quotient : 0.0;
    }
    posenc_frequencies_destroy(frequencies);
    if (!inv_freq)
        return penc_no_memory(config);
    scaling->type = POSENC_SCALING_CUSTOM;
    scaling->inv_freq = inv_freq;
    scaling->inv_freq_dtype = POSENC_F64;
    scaling->inv_freq_count = pairs;
    penc_add_text(type, "rope_type", "custom", POSENC_SOURCE_FILE,
                  "base^(-2j/rotary_dim) / rope_freqs.weight");
    return POSENC_OK;
}

/* Reads the block with the public reader; the spec then points into the type's copies. */
static posenc_status penc_take_block(const posenc_model *model, penc_layer_type *type) {
    const penc_config *config = &model->config;
    posenc_spec *spec = &type->type.spec;
    posenc_error error;
    json_object *block = type->block;
    if (!penc_block_type_is(type, "proportional"))
        json_object_object_del(block, "partial_rotary_factor");
    const char *text = json_object_to_json_string_ext(block, JSON_C_TO_STRING_PLAIN);
    spec->max_positions = type->max_positions;
    posenc_status status =
        text ? posenc_rope_parameters_parse(text, strlen(text), &type->parameters, NULL, &error)
             : penc_no_memory(config);
    if (!status)
        status = posenc_rope_parameters_apply(type->parameters, spec, NULL, &error);
    if (status == POSENC_OUT_OF_MEMORY)
        return penc_no_memory(config);
    if (status)
        return penc_make_invalid(config, type, &error);
    posenc_scaling *scaling = penc_arena_take(config->arena, 1, sizeof *scaling);
    posenc_axes *axes = penc_arena_take(config->arena, 1, sizeof *axes);
    if (!scaling || !axes)
        return penc_no_memory(config);
    *scaling = *spec->scaling;
    if (penc_word_in(config->rule.rules, "qwen-ntk") && scaling->type == POSENC_SCALING_DYNAMIC)
        scaling->dynamic = POSENC_DYNAMIC_QWEN;
    spec->scaling = scaling;
    status = penc_apply_divisors(config, type, scaling);
    if (status)
        return status;
    if (penc_word_in(config->rule.rules, "gte-ntk") && scaling->type == POSENC_SCALING_NTK)
        type->type.invalid =
            "GTE's ntk is no ntk of others: base * factor, and one more division by "
            "factor^(2/rotary_dim)";
    penc_take_axes(config, type, axes);
    return POSENC_OK;
}

/* What the library itself says of the finished spec. */
static posenc_status penc_check(const penc_config *config, penc_layer_type *type) {
    posenc_frequencies *frequencies = NULL;
    posenc_error error;
    uint64_t length = type->max_positions ? type->max_positions : 1;
    posenc_status status =
        posenc_frequencies_create(&type->type.spec, length, &frequencies, NULL, &error);
    posenc_frequencies_destroy(frequencies);
    if (status == POSENC_OUT_OF_MEMORY)
        return penc_no_memory(config);
    return status ? penc_make_invalid(config, type, &error) : POSENC_OK;
}

static void penc_note_rule(const penc_config *config, penc_layer_type *type, const char *name,
                           const char *text) {
    if (strcmp(text, "-") != 0)
        penc_add_text(type, name, text, POSENC_SOURCE_IMPLIED,
                      penc_arena_print(config->arena, "rules of %s", config->rule.name));
}

/* "yes", "no", or the key that says it. */
static void penc_note_bias(const penc_config *config, penc_layer_type *type) {
    const char *bias = config->rule.bias;
    if (strcmp(bias, "yes") == 0 || strcmp(bias, "no") == 0) {
        penc_note_rule(config, type, "qk_bias", bias);
        return;
    }
    penc_found found = penc_config_find(config, bias);
    if (penc_json_is(found.value, json_type_boolean))
        penc_add_text(type, "qk_bias", json_object_get_boolean(found.value) ? "yes" : "no",
                      found.source, found.place);
}

posenc_status penc_rope_spec_make(const posenc_model *model, penc_layer_type *type) {
    const penc_config *config = &model->config;
    posenc_spec start = POSENC_SPEC_INIT;
    type->type.spec = start;
    posenc_status status = penc_dims(config, type);
    if (status)
        return status;
    penc_pairing(config, type);
    status = penc_take_block(model, type);
    if (status)
        return status;
    if (!type->type.invalid)
        status = penc_check(config, type);
    if (status)
        return status;
    if (type->type.invalid)
        type->type.spec.head_dim = 0;
    type->type.softmax_factor = penc_word_in(config->rule.rules, "mla-softmax");
    type->type.norm_plus_one = penc_word_in(config->rule.rules, "norm-plus-one");
    penc_note_rule(config, type, "qk_norm", config->rule.norm);
    penc_note_bias(config, type);
    penc_note_rule(config, type, "checkpoint", config->rule.stored);
    penc_note_rule(config, type, "gguf", config->rule.gguf);
    return config->arena->failed ? penc_no_memory(config) : POSENC_OK;
}
