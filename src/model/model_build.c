/* From a parsed configuration to the model. SPDX-License-Identifier: MIT */
#include "model/model_build.h"

#include "base/fail.h"
#include "model/kind_switch.h"
#include "model/layer_types.h"
#include "model/rope_block.h"
#include "model/rope_spec.h"

#include <string.h>

/* Takes the place of a value of the same name. */
static posenc_model_value *penc_new_value(penc_layer_type *type, const char *name) {
    size_t i = 0;
    while (i < type->type.value_count && strcmp(type->value[i].name, name) != 0)
        i++;
    if (i == PENC_MAX_VALUES)
        return NULL;
    if (i == type->type.value_count)
        type->type.value_count++;
    type->type.values = type->value;
    return &type->value[i];
}

void penc_add_text(penc_layer_type *type, const char *name, const char *text, posenc_source source,
                   const char *place) {
    posenc_model_value *value = penc_new_value(type, name);
    if (value)
        *value = (posenc_model_value){name, {POSENC_NUMBER_NONE, {0}}, text, source, place};
}

void penc_add_number(penc_arena *arena, penc_layer_type *type, const char *name, double number,
                     posenc_source source, const char *place) {
    posenc_model_value *value = penc_new_value(type, name);
    if (value)
        *value = (posenc_model_value){name,
                                      {POSENC_NUMBER_REAL, {.real = number}},
                                      penc_arena_print(arena, "%.15g", number),
                                      source,
                                      place};
}

const posenc_model_value *penc_value_of(const penc_layer_type *type, const char *name) {
    for (size_t i = 0; i < type->type.value_count; i++) {
        if (strcmp(type->value[i].name, name) == 0)
            return &type->value[i];
    }
    return NULL;
}

/* The block of this type and its place; kind NONE where the file turns the rotation off. */
static posenc_status penc_build_rope(posenc_model *model, penc_layer_type *type, json_object *block,
                                     const char *place) {
    const penc_config *config = &model->config;
    int nested = model->layer_names &&
                 penc_rope_block_is_nested(block, model->layer_names, model->layer_count);
    int off;
    json_object *own = penc_rope_block_of_type(block, type->type.name, nested, &off);
    if (off) {
        type->type.kind = POSENC_ENCODING_NONE;
        penc_add_text(type, "rope_parameters", "null", POSENC_SOURCE_FILE,
                      penc_arena_print(config->arena, "%s.%s", place, type->type.name));
        return POSENC_OK;
    }
    if (nested)
        place = penc_arena_print(config->arena, "%s.%s", place, type->type.name);
    const posenc_model_value *by_layer = penc_value_of(type, "rope_theta");
    posenc_model_value base = by_layer ? *by_layer : (posenc_model_value){0};
    posenc_status status = penc_rope_block_make(config, type, own, place, nested);
    if (!status && by_layer) { /* a base of every layer wins over the block's */
        json_object_object_add(type->block, "rope_theta",
                               json_object_new_double(base.number.as.real));
        penc_add_number(config->arena, type, "rope_theta", base.number.as.real, base.source,
                        base.place);
    }
    return status ? status : penc_rope_spec_make(model, type);
}

static posenc_status penc_build_alibi(const posenc_model *model, penc_layer_type *type) {
    const penc_config *config = &model->config;
    static const char *const keys[] = {"alibi_bias_max", "attn_config.alibi_bias_max"};
    penc_found found = {0};
    double bias = 0.0;
    posenc_status status = POSENC_OK;
    for (size_t i = 0; i < 2 && !status && !found.value; i++)
        status = penc_config_real(config, keys[i], &bias, &found);
    type->type.max_bias = found.value ? bias : 8.0;
    penc_add_number(config->arena, type, "max_bias", type->type.max_bias,
                    found.value ? found.source : POSENC_SOURCE_DEFAULTED,
                    found.value ? found.place : "no key gives it");
    return status;
}

/* Relative buckets and clips, where the file has them. */
static posenc_status penc_build_relative(const posenc_model *model, penc_layer_type *type) {
    static const char *const keys[] = {
        "relative_attention_num_buckets", "relative_attention_max_distance",
        "max_relative_positions",         "position_buckets",
        "left_max_position_embeddings",   "right_max_position_embeddings",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        double number;
        penc_found found;
        posenc_status status = penc_config_real(&model->config, keys[i], &number, &found);
        if (status)
            return status;
        if (found.value)
            penc_add_number(model->config.arena, type, keys[i], number, found.source, found.place);
    }
    return POSENC_OK;
}

static posenc_status penc_build_type(posenc_model *model, penc_layer_type *type, json_object *block,
                                     const char *place) {
    posenc_status status = penc_attention_facts(model, type);
    if (status)
        return status;
    switch (type->type.kind) {
    case POSENC_ENCODING_ROPE:
    case POSENC_ENCODING_UNKNOWN:
        return penc_build_rope(model, type, block, place);
    case POSENC_ENCODING_ALIBI:
        return penc_build_alibi(model, type);
    case POSENC_ENCODING_RELATIVE:
        return penc_build_relative(model, type);
    case POSENC_ENCODING_NONE:
    case POSENC_ENCODING_SINUSOIDAL:
    case POSENC_ENCODING_LEARNED:
    case POSENC_ENCODING_OTHER:
        break;
    }
    return POSENC_OK;
}

posenc_status penc_model_build(posenc_model *model) {
    const char *place;
    penc_rope_block_unwrap(&model->config);
    posenc_status status = penc_layer_types_make(model, penc_kind_of(&model->config));
    json_object *block = penc_rope_block_given(&model->config, &place);
    for (size_t i = 0; !status && i < model->type_count; i++)
        status = penc_build_type(model, &model->types[i], block, place);
    if (!status && model->arena.failed)
        status = penc_fail(model->config.error, POSENC_OUT_OF_MEMORY, "model", "fit into memory");
    return status;
}
