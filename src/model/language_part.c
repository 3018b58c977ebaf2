/* Which object of a configuration describes the language model. SPDX-License-Identifier: MIT */
#include "model/language_part.h"

#include "base/fail.h"
#include "formats/json_file.h"
#include "model/params_json.h"

#include <string.h>

/* Where multimodal and composite configurations keep it, first match first. */
static const char *const penc_part_keys[] = {
    "text_config", "thinker_config", "llm_config",     "language_config", "llm_cfg",
    "lang_config", "language_model", "decoder_config", "vlm_config",      "decoder",
    "generator",   "text_encoder",   "encoder",        "encoder_config",
};

enum { PENC_PART_DEPTH = 4 };

static const char *penc_text(json_object *object, const char *key) {
    json_object *value = penc_json_get(object, key);
    return penc_json_is(value, json_type_string) ? json_object_get_string(value) : NULL;
}

/* The row of the object's model_type, else of its first class, else *rule is left alone. */
static int penc_find_rule(penc_config *config, json_object *object) {
    const char *type = penc_text(object, "model_type");
    penc_rule rule;
    if (type && penc_rule_find(config->arena, "config", type, &rule)) {
        config->rule = rule;
        return 1;
    }
    json_object *classes = penc_json_get(object, "architectures");
    if (!penc_json_is(classes, json_type_array) || !json_object_array_length(classes))
        return 0;
    json_object *name = json_object_array_get_idx(classes, 0);
    if (!penc_json_is(name, json_type_string) ||
        !penc_rule_find_class(config->arena, json_object_get_string(name), &rule))
        return 0;
    config->rule = rule;
    return 1;
}

/* One step down. Returns 0 at the bottom. Composite rows say which row the inner part has by default; where
 * the inner object is missing the keys stand at the top. */
static int penc_step_down(penc_config *config) {
    int composite = !config->known || strcmp(config->rule.kind, "parts") == 0;
    if (!composite && !penc_json_get(config->part, "text_config"))
        return 0;
    for (size_t i = 0; i < sizeof penc_part_keys / sizeof *penc_part_keys; i++) {
        json_object *inner = penc_json_get(config->part, penc_part_keys[i]);
        if (!penc_json_is(inner, json_type_object))
            continue;
        const char *fallback = config->rule.part;
        config->part = inner;
        config->prefix =
            penc_arena_print(config->arena, "%s%s.", config->prefix, penc_part_keys[i]);
        config->known = penc_find_rule(config, inner);
        if (penc_text(inner, "model_type"))
            config->model_type = penc_text(inner, "model_type");
        if (!config->known && !penc_text(inner, "model_type") && strcmp(fallback, "-") != 0)
            config->known = penc_rule_find(config->arena, "config", fallback, &config->rule);
        if (!config->known)
            config->rule = penc_no_rule;
        return 1;
    }
    return 0;
}

/* A composite row whose parts are not in the file: the keys of the inner model stand at the top. */
static void penc_flatten(penc_config *config) {
    for (int depth = 0;
         depth < PENC_PART_DEPTH && config->known && strcmp(config->rule.kind, "parts") == 0 &&
         strcmp(config->rule.part, "-") != 0;
         depth++)
        config->known = penc_rule_find(config->arena, "config", config->rule.part, &config->rule);
}

posenc_status penc_language_part(penc_config *config, const char *model_type) {
    const char *params = model_type ? NULL : penc_params_rule(config->root);
    config->part = config->root;
    config->prefix = "";
    config->rule = penc_no_rule;
    config->model_type = model_type ? model_type : penc_text(config->root, "model_type");
    if (params) {
        config->model_type = params;
        config->known = penc_rule_find(config->arena, "config", params, &config->rule);
        penc_params_translate(config);
    } else if (model_type)
        config->known = penc_rule_find(config->arena, "config", model_type, &config->rule);
    else
        config->known = penc_find_rule(config, config->root);
    for (int depth = 0; depth < PENC_PART_DEPTH && penc_step_down(config); depth++)
        continue;
    penc_flatten(config);
    if (!config->known)
        config->rule = penc_no_rule;
    if (!config->model_type)
        config->model_type = "";
    const char *text = config->rule.defaults;
    if (config->arena->failed)
        return penc_fail(config->error, POSENC_OUT_OF_MEMORY, "model", "fit into memory");
    return strcmp(text, "-") == 0
               ? POSENC_OK
               : penc_json_parse(text, strlen(text), &config->implied, config->error);
}
