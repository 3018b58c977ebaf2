/* One effective rope_parameters block. SPDX-License-Identifier: MIT
 *
 * The order of precedence is that of transformers 5: rope_scaling before rope_parameters where both are
 * there; inside of the block before beside it; the file before what the model type implies. */
#include "model/rope_block.h"

#include "base/fail.h"
#include "formats/json_file.h"

#include <math.h>
#include <string.h>

static int penc_is_word(json_object *value, const char *word) {
    return penc_json_is(value, json_type_string) &&
           strcmp(json_object_get_string(value), word) == 0;
}

static const char *const penc_block_keys[] = {"rope_scaling", "rope_parameters"};

void penc_rope_block_unwrap(penc_config *config) {
    for (size_t i = 0; i < sizeof penc_block_keys / sizeof *penc_block_keys; i++) {
        json_object *value = penc_json_get(config->part, penc_block_keys[i]), *object;
        if (!penc_json_is(value, json_type_string))
            continue;
        const char *text = json_object_get_string(value);
        if (penc_json_parse(text, strlen(text), &object, NULL))
            continue;
        json_object_object_add(config->part, penc_block_keys[i], object);
        config->block_in_string = penc_block_keys[i];
    }
}

json_object *penc_rope_block_given(const penc_config *config, const char **place) {
    for (size_t i = 0; i < sizeof penc_block_keys / sizeof *penc_block_keys; i++) {
        json_object *block = penc_json_get(config->part, penc_block_keys[i]);
        /* false, 0 and {} are written where there is no scaling */
        if (penc_json_is(block, json_type_object) && json_object_object_length(block)) {
            *place = penc_arena_print(config->arena, "%s%s", config->prefix, penc_block_keys[i]);
            return block;
        }
    }
    *place = NULL;
    return NULL;
}

int penc_rope_block_is_nested(json_object *block, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (penc_json_has(block, names[i]) &&
            (!penc_json_get(block, names[i]) ||
             penc_json_is(penc_json_get(block, names[i]), json_type_object)))
            return 1;
    }
    return 0;
}

json_object *penc_rope_block_of_type(json_object *block, const char *name, int nested, int *off) {
    *off = 0;
    if (!nested)
        return block;
    *off = penc_json_has(block, name) && !penc_json_get(block, name);
    return penc_json_get(block, name);
}

penc_type_rule penc_type_rule_of(const penc_config *config, const char *name) {
    penc_type_rule rule = {0, 0, 1, NULL};
    const char *list = config->rule.bases;
    size_t length, name_length = strlen(name);
    if (*list == '@')
        return rule;
    for (const char *word; (word = penc_next_word(&list, &length)) != NULL;) {
        rule.listed = 1;
        if (length < name_length || strncmp(word, name, name_length) != 0 ||
            (length > name_length && word[name_length] != '='))
            continue;
        rule.found = 1;
        if (length > name_length) {
            size_t key_length = length - name_length - 1;
            const char *key = word + name_length + 1;
            rule.scaled = key_length > 8 && strncmp(key + key_length - 8, "+scaling", 8) == 0;
            rule.key = penc_arena_copy(config->arena, key, key_length - (rule.scaled ? 8 : 0));
        }
        return rule;
    }
    return rule;
}

/* The rule's own block for this type. */
static json_object *penc_implied_block(const penc_config *config, const char *name) {
    json_object *block = penc_json_get(config->implied, "rope_parameters");
    json_object *own = penc_json_get(block, name);
    return penc_json_is(own, json_type_object) ? own : block;
}

/* Sets a key of the block being made and notes where it is from. */
static void penc_block_set(const penc_config *config, penc_layer_type *type, const char *key,
                           json_object *value, posenc_source source, const char *place) {
    double number;
    int in_string = 0;
    json_object_object_add(type->block, key, json_object_get(value));
    if (penc_json_number(value, &number, &in_string) && !in_string) {
        penc_add_number(config->arena, type, key, number, source, place);
        return;
    }
    const char *text = penc_json_is(value, json_type_string)
                           ? json_object_get_string(value)
                           : json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
    penc_add_text(type, key, text ? penc_arena_copy(config->arena, text, strlen(text)) : "null",
                  source, place);
}

static void penc_block_set_real(const penc_config *config, penc_layer_type *type, const char *key,
                                double number, posenc_source source, const char *place) {
    json_object *value = json_object_new_double(number);
    penc_block_set(config, type, key, value, source, place);
    json_object_put(value);
}

static void penc_block_set_word(const penc_config *config, penc_layer_type *type, const char *key,
                                const char *word, posenc_source source, const char *place) {
    json_object *value = json_object_new_string(word);
    penc_block_set(config, type, key, value, source, place);
    json_object_put(value);
}

/* Keys that are resolved one by one below, or that are no scaling. */
static int penc_is_resolved(const char *key) {
    static const char *const keys[] = {"rope_type",     "type",
                                       "rope_theta",    "partial_rotary_factor",
                                       "mrope_section", "mrope_interleaved",
                                       "interleaved",   "original_max_position_embeddings",
                                       "xdrope_section"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(key, keys[i]) == 0)
            return 1;
    }
    return 0;
}

/* The scaling's keys as they stand, objects aside: those are other layer types. */
static void penc_take_scaling(const penc_config *config, penc_layer_type *type, json_object *from,
                              posenc_source source, const char *place) {
    json_object_object_foreach(from, key, value) {
        if (!penc_is_resolved(key) && !penc_json_is(value, json_type_object) &&
            (value || strcmp(key, "factor") == 0))
            penc_block_set(config, type, key, value, source, penc_config_place(config, place, key));
    }
}

/* rope_type (or type) by the words that are used here. rope_type wins where both are given. */
static const char *penc_type_word(const penc_config *config, json_object *from) {
    json_object *word = penc_json_get(from, "rope_type");
    if (!word)
        word = penc_json_get(from, "type");
    if (penc_word_in(config->rule.rules, "su-yarn") && penc_is_word(word, "yarn"))
        return "longrope";
    if (penc_is_word(word, "xdrope"))
        return "dynamic";
    if (penc_is_word(word, "mrope") || penc_is_word(word, "axial") || penc_is_word(word, "none"))
        return "default";
    if (penc_is_word(word, "su"))
        return "longrope";
    return penc_json_is(word, json_type_string) ? json_object_get_string(word) : NULL;
}

static void penc_make_scaling(const penc_config *config, penc_layer_type *type, json_object *given,
                              const char *place) {
    json_object *implied = penc_implied_block(config, type->type.name);
    const char *from = penc_arena_print(config->arena, "rules of %s",
                                        config->known ? config->rule.name : "nobody");
    const char *word = penc_type_word(config, given);
    int is_gguf = strcmp(config->rule.format, "gguf") == 0;
    if (word && is_gguf && !penc_json_has(given, "factor") &&
        (strcmp(word, "linear") == 0 || strcmp(word, "yarn") == 0)) {
        penc_block_set_word(config, type, "rope_type", "default", POSENC_SOURCE_IMPLIED,
                            "llama.cpp scales by 1 where there is no factor");
    } else if (word) {
        const char *key = penc_json_get(given, "rope_type") ? "rope_type" : "type";
        penc_block_set_word(config, type, "rope_type", word, POSENC_SOURCE_FILE,
                            penc_config_place(config, place, key));
        penc_take_scaling(config, type, given, POSENC_SOURCE_FILE, place);
    } else if ((!given || penc_json_get(given, "rope_theta") == NULL) &&
               (word = penc_type_word(config, implied)) != NULL) {
        penc_block_set_word(config, type, "rope_type", word, POSENC_SOURCE_IMPLIED, from);
        penc_take_scaling(config, type, implied, POSENC_SOURCE_IMPLIED, from);
    } else {
        penc_block_set_word(config, type, "rope_type", "default", POSENC_SOURCE_DEFAULTED,
                            "no scaling is given");
        if (given)
            penc_take_scaling(config, type, given, POSENC_SOURCE_FILE, place);
    }
}

/* Step-3.7 writes one number per layer: that of the type's first layer. */
static json_object *penc_of_layer(const penc_layer_type *type, json_object *value) {
    if (!penc_json_is(value, json_type_array) || !type->type.layer_count)
        return value;
    return json_object_array_get_idx(value, type->type.layers[0]);
}

/* A key inside of the file's block, beside it (and there `implied_too`), or in the rule's block; NULL: nowhere. */
static json_object *penc_resolve(const penc_config *config, const penc_layer_type *type,
                                 json_object *given, const char *place, const char *key,
                                 const char *beside, int implied_too, posenc_source *source,
                                 const char **from) {
    json_object *value = penc_json_get(given, key);
    *source = POSENC_SOURCE_FILE;
    if (value) {
        *from = penc_config_place(config, place, key);
        return value;
    }
    penc_found found = {0};
    if (beside)
        found = implied_too ? penc_config_find(config, beside)
                            : penc_config_find_in_file(config, beside);
    if (found.value) {
        *source = found.source;
        *from = found.place;
        return found.value;
    }
    *source = POSENC_SOURCE_IMPLIED;
    *from = penc_arena_print(config->arena, "rules of %s", config->known ? config->rule.name : "");
    return penc_json_get(penc_implied_block(config, type->type.name), key);
}

static void penc_make_base(const penc_config *config, penc_layer_type *type, json_object *given,
                           const char *place, const penc_type_rule *rule) {
    posenc_source source;
    const char *from;
    const char *beside = rule->key ? rule->key : "rope_theta";
    if (penc_word_in(config->rule.rules, "fixed-base")) {
        beside = NULL;
        given = NULL;
    }
    json_object *base = penc_resolve(config, type, given, place, "rope_theta", beside,
                                     rule->key != NULL, &source, &from);
    if (base)
        penc_block_set(config, type, "rope_theta", penc_of_layer(type, base), source, from);
    else
        penc_block_set_real(config, type, "rope_theta", 10000.0, POSENC_SOURCE_DEFAULTED,
                            "no key gives it");
}

static void penc_make_partial(const penc_config *config, penc_layer_type *type, json_object *given,
                              const char *place) {
    posenc_source source;
    const char *from;
    json_object *partial = penc_resolve(config, type, given, place, "partial_rotary_factor",
                                        "partial_rotary_factor", 0, &source, &from);
    if (partial)
        penc_block_set(config, type, "partial_rotary_factor", penc_of_layer(type, partial), source,
                       from);
}

static void penc_make_sections(const penc_config *config, penc_layer_type *type, json_object *given,
                               const char *place) {
    posenc_source source;
    const char *from;
    if (strcmp(config->rule.axes, "-") == 0)
        return;
    const char *key = penc_json_get(given, "xdrope_section") ? "xdrope_section" : "mrope_section";
    json_object *sections =
        penc_resolve(config, type, given, place, key, "mrope_section", 0, &source, &from);
    if (sections)
        penc_block_set(config, type, "mrope_section", sections, source, from);
}

/* The length before the extension. Beside the block it wins over the one inside of a flat block (Phi-3 keeps it there). */
static void penc_make_original(const penc_config *config, penc_layer_type *type, json_object *given,
                               const char *place, int nested) {
    static const char key[] = "original_max_position_embeddings";
    json_object *word = penc_json_get(type->block, "rope_type");
    if (!penc_is_word(word, "yarn") && !penc_is_word(word, "longrope") &&
        !penc_is_word(word, "llama3"))
        return;
    penc_found beside = nested ? (penc_found){0} : penc_config_find(config, key);
    json_object *inside = penc_json_get(given, key);
    json_object *implied = penc_json_get(penc_implied_block(config, type->type.name), key);
    penc_found maximum = penc_config_find(config, "max_position_embeddings");
    if (beside.value && (beside.source == POSENC_SOURCE_FILE || !inside))
        penc_block_set(config, type, key, beside.value, beside.source, beside.place);
    else if (inside)
        penc_block_set(config, type, key, inside, POSENC_SOURCE_FILE,
                       penc_config_place(config, place, key));
    else if (implied && !given)
        penc_block_set(config, type, key, implied, POSENC_SOURCE_IMPLIED,
                       "the model type's scaling");
    else if (maximum.value)
        penc_block_set(config, type, key, maximum.value, POSENC_SOURCE_DEFAULTED, maximum.place);
}

/* Qwen 1: use_dynamic_ntk lets the base grow by powers of two beyond seq_length. */
static void penc_apply_qwen(const penc_config *config, penc_layer_type *type) {
    penc_found use = penc_config_find_in_file(config, "use_dynamic_ntk");
    penc_found length = penc_config_find_in_file(config, "seq_length");
    if (!penc_json_is(use.value, json_type_boolean) || !json_object_get_boolean(use.value) ||
        !length.value)
        return;
    penc_block_set_word(config, type, "rope_type", "dynamic", POSENC_SOURCE_FILE, use.place);
    penc_block_set(config, type, "original_max_position_embeddings", length.value,
                   POSENC_SOURCE_FILE, length.place);
}

/* ChatGLM: base = 10000 * rope_ratio. */
static void penc_apply_ratio(const penc_config *config, penc_layer_type *type) {
    double ratio;
    penc_found found;
    if (penc_config_real(config, "rope_ratio", &ratio, &found) || !found.value)
        return;
    penc_block_set_real(config, type, "rope_theta", 10000.0 * ratio, POSENC_SOURCE_FILE,
                        penc_arena_print(config->arena, "10000 * %s", found.place));
}

/* InternLM 1: {"rotary": {"base": 10000, "type": "dynamic", "scaling_factor": 1.0}}. */
static void penc_apply_rotary_block(const penc_config *config, penc_layer_type *type) {
    penc_found word = penc_config_find_in_file(config, "rotary.type");
    penc_found factor = penc_config_find_in_file(config, "rotary.scaling_factor");
    if (!penc_is_word(word.value, "dynamic"))
        return;
    penc_block_set_word(config, type, "rope_type", "dynamic", POSENC_SOURCE_FILE, word.place);
    if (factor.value)
        penc_block_set(config, type, "factor", factor.value, POSENC_SOURCE_FILE, factor.place);
    else
        penc_block_set_real(config, type, "factor", 1.0, POSENC_SOURCE_DEFAULTED,
                            "no key gives it");
}

/* Phi-3.5-MoE writes the attention factor of either list; those that were released are the same. */
static void penc_apply_phimoe(const penc_config *config, penc_layer_type *type) {
    json_object *factor = penc_json_get(type->block, "long_mscale");
    if (!penc_is_word(penc_json_get(type->block, "rope_type"), "longrope") || !factor)
        return;
    penc_block_set(config, type, "attention_factor", factor, POSENC_SOURCE_FILE, "long_mscale");
    json_object_object_del(type->block, "short_mscale");
    json_object_object_del(type->block, "long_mscale");
}

static void penc_apply_named_rules(const penc_config *config, penc_layer_type *type) {
    const char *rules = config->rule.rules;
    if (penc_word_in(rules, "qwen-ntk"))
        penc_apply_qwen(config, type);
    if (penc_word_in(rules, "rope-ratio"))
        penc_apply_ratio(config, type);
    if (penc_word_in(rules, "internlm"))
        penc_apply_rotary_block(config, type);
    if (penc_word_in(rules, "phimoe"))
        penc_apply_phimoe(config, type);
    if (penc_word_in(rules, "no-magnitude") &&
        penc_is_word(penc_json_get(type->block, "rope_type"), "yarn") &&
        !penc_json_get(type->block, "attention_factor"))
        penc_block_set_real(config, type, "attention_factor", 1.0, POSENC_SOURCE_IMPLIED,
                            penc_arena_print(config->arena, "rules of %s", config->rule.name));
}

posenc_status penc_rope_block_make(const penc_config *config, penc_layer_type *type,
                                   json_object *given, const char *place, int nested) {
    penc_type_rule rule = penc_type_rule_of(config, type->type.name);
    if (!place)
        place = "rope_parameters";
    if (given && !rule.scaled && !nested)
        given = NULL;
    type->given = given;
    type->block = json_object_new_object();
    if (!type->block)
        return penc_fail(config->error, POSENC_OUT_OF_MEMORY, "rope_parameters", "fit into memory");
    penc_make_scaling(config, type, given, place);
    penc_make_base(config, type, given, place, &rule);
    penc_make_partial(config, type, given, place);
    penc_make_sections(config, type, given, place);
    penc_make_original(config, type, given, place, nested);
    penc_apply_named_rules(config, type);
    return config->arena->failed
               ? penc_fail(config->error, POSENC_OUT_OF_MEMORY, "model", "fit into memory")
               : POSENC_OK;
}
