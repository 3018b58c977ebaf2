/* Warnings about keys that contradict one another, are spelt oddly, or belong to nobody.
 * SPDX-License-Identifier: MIT */
#include "model/model_warning_list.h"
#include "model/rope_block.h"
#include "model/warning_facts.h"

#include <stddef.h>
#include <string.h>

const char *penc_warn_unknown_model_type(const posenc_model *model, const penc_layer_type *type) {
    (void)type;
    if (model->config.known)
        return NULL;
    return penc_say(model,
                    "no rule knows the model type \"%s\": the numbers come from the file, that it "
                    "rotates at all and the pairing half are assumptions",
                    model->config.model_type);
}

const char *penc_warn_model_type_missing(const posenc_model *model, const penc_layer_type *type) {
    (void)type;
    const penc_config *config = &model->config;
    if (!config->known || *config->model_type)
        return NULL;
    return penc_say(model, "the file gives no model_type; by its class it is taken for %s",
                    config->rule.name);
}

const char *penc_warn_no_valid_spec(const posenc_model *model, const penc_layer_type *type) {
    return type->type.invalid ? penc_say(model, "%s", type->type.invalid) : NULL;
}

/* ---- The blocks ---- */

static json_object *penc_block_raw(const posenc_model *model, const char *key) {
    json_object *block = penc_json_get(model->config.part, key);
    return penc_json_is(block, json_type_object) && json_object_object_length(block) ? block : NULL;
}

/* rope_type and type, of the block or of one of those inside of it. */
static int penc_types_differ(json_object *block, const char **word, const char **old) {
    json_object *a = penc_json_get(block, "rope_type"), *b = penc_json_get(block, "type");
    if (!penc_json_is(a, json_type_string) || !penc_json_is(b, json_type_string))
        return 0;
    *word = json_object_get_string(a);
    *old = json_object_get_string(b);
    /* "mrope" beside "default" is what Qwen2-VL's files have after a conversion by transformers. */
    return strcmp(*word, *old) != 0 &&
           !(strcmp(*old, "mrope") == 0 && strcmp(*word, "default") == 0);
}

const char *penc_warn_contradictory_type(const posenc_model *model, const penc_layer_type *type) {
    (void)type;
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    const char *word, *old;
    for (size_t i = 0; i < 2; i++) {
        json_object *block = penc_block_raw(model, keys[i]);
        if (!block)
            continue;
        if (penc_types_differ(block, &word, &old))
            return penc_say(model, "rope_type is %s but type is %s in %s", word, old, keys[i]);
        json_object_object_foreach(block, name, inner) {
            if (penc_types_differ(inner, &word, &old))
                return penc_say(model, "rope_type is %s but type is %s in %s.%s", word, old,
                                keys[i], name);
        }
    }
    return NULL;
}

/* A number or word that both have and that differs; NULL: none. */
static const char *penc_first_difference(json_object *a, json_object *b) {
    json_object_object_foreach(a, key, value) {
        json_object *other = penc_json_get(b, key);
        double x, y;
        int in_string = 0;
        if (!value || !other)
            continue;
        int numbers =
            penc_json_number(value, &x, &in_string) && penc_json_number(other, &y, &in_string);
        if (numbers ? x != y : !json_object_equal(value, other))
            return key;
    }
    return NULL;
}

const char *penc_warn_contradictory_blocks(const posenc_model *model, const penc_layer_type *type) {
    (void)type;
    json_object *old = penc_block_raw(model, "rope_scaling");
    json_object *new = penc_block_raw(model, "rope_parameters");
    const char *key = old && new ? penc_first_difference(old, new) : NULL;
    return key ? penc_say(model, "rope_scaling and rope_parameters differ in %s", key) : NULL;
}

/* ---- Two spellings of one key ---- */

const char *penc_warn_contradictory_spellings(const posenc_model *model,
                                              const penc_layer_type *type) {
    (void)type;
    /* Only those that mean the same wherever they stand: lengths and hidden_dim do not. */
    static const char *const keys[] = {"num_attention_heads", "num_key_value_heads",
                                       "num_hidden_layers", "rope_theta", "partial_rotary_factor"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *const *spelling = penc_key_spellings(keys[i]);
        const char *first = NULL;
        double value = 0.0, other;
        for (; spelling && *spelling; spelling++) {
            if (!penc_number_in(model->config.part, *spelling, &other))
                continue;
            if (first && other != value)
                return penc_say(model, "%s is %s but %s is %s", first, penc_show(model, value),
                                *spelling, penc_show(model, other));
            if (!first) {
                first = *spelling;
                value = other;
            }
        }
    }
    return NULL;
}

/* A key inside of the type's block and beside it. */
static const char *penc_inside_and_beside(const posenc_model *model, const penc_layer_type *type,
                                          const char *key) {
    penc_found beside = penc_config_find_in_file(&model->config, key);
    double inside, outside;
    int in_string = 0;
    if (!penc_number_in(type->given, key, &inside) || !beside.value ||
        !penc_json_number(beside.value, &outside, &in_string) || inside == outside)
        return NULL;
    return penc_say(model, "%s is %s inside of the block but %s beside it (%s)", key,
                    penc_show(model, inside), penc_show(model, outside), beside.key);
}

const char *penc_warn_contradictory_theta(const posenc_model *model, const penc_layer_type *type) {
    if (strcmp(model->config.rule.bases, "-") != 0)
        return NULL; /* the one beside belongs to one of the types */
    return penc_inside_and_beside(model, type, "rope_theta");
}

/* Also a rotary_dim that does not follow from the fraction. */
const char *penc_warn_contradictory_fraction(const posenc_model *model,
                                             const penc_layer_type *type) {
    const char *message = penc_inside_and_beside(model, type, "partial_rotary_factor");
    double rotary, fraction, head_dim;
    if (message || strncmp(model->config.rule.rotary, "key:", 4) != 0 ||
        !penc_number_in(model->config.part, "rotary_dim", &rotary) ||
        !penc_file_number(type, "partial_rotary_factor", &fraction) ||
        !penc_file_number(type, "head_dim", &head_dim))
        return message;
    if ((double)(uint64_t)(head_dim * fraction) == rotary)
        return NULL;
    return penc_say(model, "rotary_dim is %s but partial_rotary_factor %s of head_dim %s makes %s",
                    penc_show(model, rotary), penc_show(model, fraction),
                    penc_show(model, head_dim),
                    penc_show(model, (double)(uint64_t)(head_dim * fraction)));
}

const char *penc_warn_contradictory_original_length(const posenc_model *model,
                                                    const penc_layer_type *type) {
    return penc_inside_and_beside(model, type, "original_max_position_embeddings");
}

const char *penc_warn_head_dim_differs(const posenc_model *model, const penc_layer_type *type) {
    double head_dim;
    penc_found hidden = penc_config_find_in_file(&model->config, "hidden_size");
    const posenc_model_value *value = penc_value_of(type, "head_dim");
    double size;
    int in_string = 0;
    if (!value || !type->type.heads || !hidden.value ||
        !penc_json_number(hidden.value, &size, &in_string) ||
        !penc_file_number(type, "head_dim", &head_dim) ||
        strcmp(model->config.rule.rotary, "mla") == 0)
        return NULL;
    double quotient = size / (double)type->type.heads;
    if (quotient == head_dim)
        return NULL;
    if (strstr(value->place, " / heads"))
        return penc_say(model, "%s %s is no multiple of the %zu heads, and no head_dim is given",
                        hidden.key, penc_show(model, size), type->type.heads);
    return penc_say(model, "head_dim is %s but %s / heads is %s", penc_show(model, head_dim),
                    hidden.key, penc_show(model, quotient));
}

/* ---- Keys that nobody reads ---- */

const char *penc_warn_scaling_unread(const posenc_model *model, const penc_layer_type *type) {
    (void)type;
    const char *place, *message = NULL;
    json_object *block = penc_rope_block_given(&model->config, &place);
    int rotates = 0;
    for (size_t i = 0; i < model->type_count; i++)
        rotates |= model->types[i].block != NULL;
    json_object *word = penc_json_get(block, "rope_type");
    word = word ? word : penc_json_get(block, "type");
    int scales = penc_json_is(word, json_type_string) &&
                 strcmp(json_object_get_string(word), "default") != 0;
    if (block && scales && !rotates)
        message = penc_say(model, "%s says %s, but no layer of this model rotates", place,
                           json_object_get_string(word));
    return message;
}

const char *penc_warn_unread_key(const posenc_model *model, const penc_layer_type *type) {
    posenc_note notes[8];
    posenc_notes list = {notes, 8, 0};
    posenc_rope_parameters *parameters = NULL;
    const char *message = NULL;
    const char *text = json_object_to_json_string_ext(type->block, JSON_C_TO_STRING_PLAIN);
    posenc_status status =
        type->type.invalid
            ? POSENC_FORMAT
            : posenc_rope_parameters_parse(text, strlen(text), &parameters, &list, NULL);
    model->config.arena->failed |= status == POSENC_OUT_OF_MEMORY;
    if (status)
        return NULL;
    for (size_t i = 0; i < list.count && i < 8; i++) {
        if (notes[i].kind == POSENC_NOTE_UNKNOWN_KEY)
            message = message ? penc_say(model, "%s, %s", message, notes[i].argument)
                              : penc_say(model, "the scaling's block has %s", notes[i].argument);
    }
    posenc_rope_parameters_free(parameters);
    return message;
}

/* ---- Spelling ---- */

const char *penc_warn_scaling_in_string(const posenc_model *model, const penc_layer_type *type) {
    (void)type;
    const char *key = model->config.block_in_string;
    return key ? penc_say(model, "%s is a text that holds JSON: most readers drop it", key) : NULL;
}

const char *penc_warn_legacy_type_name(const posenc_model *model, const penc_layer_type *type) {
    json_object *word = penc_json_get(type->given, "rope_type");
    word = word ? word : penc_json_get(type->given, "type");
    if (!penc_json_is(word, json_type_string))
        return NULL;
    const char *text = json_object_get_string(word);
    if (strcmp(text, "su") == 0 ||
        (strcmp(text, "yarn") == 0 && penc_word_in(model->config.rule.rules, "su-yarn")))
        return penc_say(model, "the type \"%s\" is called longrope now", text);
    return NULL;
}
