/* Towers that see images, hear or speak: objects whose key ends in "config", beside the language model.
 * SPDX-License-Identifier: MIT */
#include "model/other_parts.h"

#include "base/fail.h"
#include "formats/json_file.h"
#include "model/model_build.h"

#include <stdlib.h>
#include <string.h>

static const char *penc_part_text(json_object *object, const char *key) {
    json_object *value = penc_json_get(object, key);
    return penc_json_is(value, json_type_string) ? json_object_get_string(value) : NULL;
}

static int penc_ends_with(const char *text, const char *end) {
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static int penc_is_sight(const char *key) {
    return strstr(key, "vision") || strstr(key, "visual") || strstr(key, "image");
}

static int penc_is_sound(const char *key) {
    return strstr(key, "audio") || strstr(key, "speech");
}

/* Rows that are for a tower, by the name of a row that is not: qwen3_vl has qwen3_vl_vision. */
static int penc_tower_rule(penc_arena *arena, const char *key, const char *type, penc_rule *rule) {
    static const char *const endings[][4] = {{"", "_vision", "_vision_model", "_vision_encoder"},
                                             {"", "_audio", "_audio_encoder", "_encoder"}};
    if (!type || !*type)
        return 0;
    for (size_t i = 0; i < 4; i++) {
        const char *name = penc_arena_print(arena, "%s%s", type, endings[penc_is_sound(key)][i]);
        if (name && penc_rule_find(arena, "config", name, rule) && strcmp(rule->kind, "parts") != 0)
            return 1;
        if (!penc_is_sight(key) && !penc_is_sound(key))
            return 0;
    }
    return 0;
}

/* By its own model_type, else by that of the whole. Other keys than those of towers need a type of their own. */
static int penc_part_rule(posenc_model *part, const posenc_model *whole, const char *key) {
    penc_config *config = &part->config;
    const char *type = penc_part_text(config->root, "model_type");
    const char *outer = penc_part_text(whole->config.root, "model_type");
    int is_tower = penc_is_sight(key) || penc_is_sound(key);
    if (!is_tower && type && outer && strcmp(type, outer) == 0)
        return 0;
    return penc_tower_rule(config->arena, key, type, &config->rule) ||
           (is_tower && penc_tower_rule(config->arena, key, outer, &config->rule));
}

static posenc_status penc_fill_part(posenc_model *part, const char *prefix, posenc_error *error) {
    penc_config *config = &part->config;
    const char *text = config->rule.defaults;
    config->error = error;
    config->part = config->root;
    config->prefix = penc_arena_print(config->arena, "%s.", prefix);
    config->known = 1;
    config->model_type = config->rule.name;
    posenc_status status = POSENC_OK;
    if (strcmp(text, "-") != 0)
        status = penc_json_parse(text, strlen(text), &config->implied, error);
    if (!status)
        status = penc_model_build(part);
    config->error = NULL;
    return status;
}

static posenc_status penc_no_part_memory(const posenc_model *model) {
    return penc_fail(model->config.error, POSENC_OUT_OF_MEMORY, "model", "fit into memory");
}

/* Adds a part that could not be read; `why` lives as long as the model. */
static void penc_add_unread(posenc_model *model, const char *name, const char *why) {
    if (model->part_count < PENC_MAX_PARTS)
        model->part[model->part_count++] = (posenc_model_part){name, NULL, why};
}

/* A part that breaks a rule of its keys is no reason to refuse the whole. */
static posenc_status penc_add_part(posenc_model *model, const char *name, const char *key,
                                   json_object *object) {
    posenc_error error;
    posenc_model *part = calloc(1, sizeof *part);
    if (!part)
        return penc_no_part_memory(model);
    part->format = model->format;
    part->config.arena = &part->arena;
    part->config.root = json_object_get(object);
    int known = penc_part_rule(part, model, key);
    posenc_status status = known ? penc_fill_part(part, name, &error) : POSENC_OK;
    if (known && !status && !part->arena.failed) {
        model->part[model->part_count++] = (posenc_model_part){name, part, NULL};
        return POSENC_OK;
    }
    int no_memory = status == POSENC_OUT_OF_MEMORY || part->arena.failed;
    posenc_model_free(part);
    if (no_memory)
        return penc_no_part_memory(model);
    const char *type = penc_part_text(object, "model_type");
    if (status)
        penc_add_unread(model, name,
                        penc_arena_print(&model->arena, "%s must %s", error.argument, error.must));
    else if (penc_is_sight(key) || penc_is_sound(key))
        penc_add_unread(model, name,
                        penc_arena_print(&model->arena, "no rule knows %s%s",
                                         type ? "its model type " : "it: it has no model_type",
                                         type ? type : ""));
    return POSENC_OK;
}

/* Keys that tell how a part is made, by other names. */
static int penc_is_other_config(const char *key) {
    return strstr(key, "quantization") || strstr(key, "generation") || strstr(key, "compression");
}

/* The members of one object. `inner`: the one on the way to the language model. */
static posenc_status penc_look_for_parts(posenc_model *model, json_object *object,
                                         const char *prefix, const char *inner,
                                         size_t inner_length) {
    posenc_status status = POSENC_OK;
    json_object_object_foreach(object, key, value) {
        int is_config = penc_ends_with(key, "_config") || penc_ends_with(key, "_cfg");
        if (status || model->part_count == PENC_MAX_PARTS ||
            (strlen(key) == inner_length && strncmp(key, inner, inner_length) == 0))
            continue;
        const char *name = penc_arena_print(&model->arena, "%s%s", prefix, key);
        if (!name)
            return penc_no_part_memory(model);
        if (is_config && penc_json_is(value, json_type_object) && !penc_is_other_config(key))
            status = penc_add_part(model, name, key, value);
        else if (penc_ends_with(key, "vision_tower") && penc_json_is(value, json_type_string))
            penc_add_unread(model, name,
                            penc_arena_print(&model->arena, "it is a model of its own: %s",
                                             json_object_get_string(value)));
    }
    return status;
}

/* Every object on the way to the language model, its own too. */
posenc_status penc_other_parts_make(posenc_model *model) {
    const penc_config *config = &model->config;
    const char *at = config->prefix, *prefix = "";
    json_object *object = config->root;
    posenc_status status = POSENC_OK;
    while (!status && penc_json_is(object, json_type_object)) {
        size_t length = strcspn(at, ".");
        const char *inner = penc_arena_copy(&model->arena, at, length);
        if (!inner)
            return penc_no_part_memory(model);
        status = penc_look_for_parts(model, object, prefix, inner, length);
        if (!length)
            break;
        object = penc_json_get(object, inner);
        prefix = penc_arena_print(&model->arena, "%s%s.", prefix, inner);
        if (!prefix)
            return penc_no_part_memory(model);
        at += length + 1;
    }
    return status ? status : model->arena.failed ? penc_no_part_memory(model) : POSENC_OK;
}

void penc_other_parts_free(posenc_model *model) {
    for (size_t i = 0; i < model->part_count; i++)
        posenc_model_free((posenc_model *)(uintptr_t)model->part[i].model);
}
