/* The public functions of a model, and its files. SPDX-License-Identifier: MIT */
#include "posenc/model.h"

#include "base/fail.h"
#include "model/language_part.h"
#include "model/model_build.h"
#include "model/model_files.h"
#include "model/model_warnings.h"

#include <stdlib.h>
#include <string.h>

enum { PENC_CONFIG_DEPTH = 64 };

const char *posenc_encoding_name(posenc_encoding_kind kind) {
    switch (kind) {
#define PENC_NAME(name, number, word)                                                              \
    case POSENC_ENCODING_##name:                                                                   \
        return word;
        POSENC_ENCODING_LIST(PENC_NAME)
#undef PENC_NAME
    }
    return NULL;
}

const char *posenc_source_name(posenc_source source) {
    switch (source) {
#define PENC_NAME(name, number, word)                                                              \
    case POSENC_SOURCE_##name:                                                                     \
        return word;
        POSENC_SOURCE_LIST(PENC_NAME)
#undef PENC_NAME
    }
    return NULL;
}

static posenc_status penc_read_config(posenc_model *model, const char *json, size_t length,
                                      const char *model_type) {
    penc_config *config = &model->config;
    model->format = "config";
    posenc_status status =
        penc_json_parse(json, length, PENC_CONFIG_DEPTH, &config->root, config->error);
    if (!status && model_type)
        model_type = penc_arena_copy(&model->arena, model_type, strlen(model_type));
    if (!status)
        status = penc_language_part(config, model_type);
    if (!status)
        status = penc_model_build(model);
    if (!status)
        status = penc_warn(model);
    return status;
}

static posenc_model *penc_model_new(posenc_error *error) {
    posenc_model *model = calloc(1, sizeof *model);
    if (model) {
        model->config.arena = &model->arena;
        model->config.error = error;
    } else {
        (void)penc_fail(error, POSENC_OUT_OF_MEMORY, "model", "fit into memory");
    }
    return model;
}

static posenc_status penc_model_give(posenc_model *made, posenc_status status, posenc_model **model) {
    made->config.error = NULL;
    if (status)
        posenc_model_free(made);
    else
        *model = made;
    return status;
}

posenc_status posenc_model_parse(const char *json, size_t length, const char *model_type,
                                 posenc_model **model, posenc_error *error) {
    if (!model)
        return penc_fail_null(error, "model");
    *model = NULL;
    if (!json)
        return penc_fail_null(error, "json");
    posenc_model *made = penc_model_new(error);
    if (!made)
        return POSENC_OUT_OF_MEMORY;
    return penc_model_give(made, penc_read_config(made, json, length, model_type), model);
}

posenc_status posenc_model_open(const char *path, posenc_model **model, posenc_error *error) {
    if (!model)
        return penc_fail_null(error, "model");
    *model = NULL;
    if (!path)
        return penc_fail_null(error, "path");
    posenc_model *made = penc_model_new(error);
    if (!made)
        return POSENC_OUT_OF_MEMORY;
    char *text = NULL;
    size_t length = 0;
    posenc_status status = penc_model_file_read(&made->arena, path, &text, &length, error);
    if (!status)
        status = penc_read_config(made, text, length, NULL);
    free(text);
    return penc_model_give(made, status, model);
}

void posenc_model_free(posenc_model *model) {
    if (!model)
        return;
    for (size_t i = 0; i < model->type_count; i++) {
        posenc_rope_parameters_free(model->types[i].parameters);
        json_object_put(model->types[i].block);
    }
    json_object_put(model->config.root);
    json_object_put(model->config.implied);
    penc_arena_free(&model->arena);
    free(model);
}

const char *posenc_model_type(const posenc_model *model) {
    return model->config.model_type;
}

const char *posenc_model_rule(const posenc_model *model) {
    return model->config.known ? model->config.rule.name : NULL;
}

const char *posenc_model_remark(const posenc_model *model) {
    return strcmp(model->config.rule.note, "-") == 0 ? NULL : model->config.rule.note;
}

const char *posenc_model_format(const posenc_model *model) {
    return model->format;
}

size_t posenc_model_layer_count(const posenc_model *model) {
    return model->layer_count;
}

size_t posenc_model_layer_type_count(const posenc_model *model) {
    return model->type_count;
}

const posenc_layer_type *posenc_model_layer_type(const posenc_model *model, size_t index) {
    return index < model->type_count ? &model->types[index].type : NULL;
}

const posenc_layer_type *posenc_model_layer_type_named(const posenc_model *model, const char *name) {
    for (size_t i = 0; i < model->type_count; i++) {
        if (strcmp(model->types[i].type.name, name) == 0)
            return &model->types[i].type;
    }
    for (size_t i = 0; i < model->type_count && model->layer_names; i++) {
        const posenc_layer_type *type = &model->types[i].type;
        for (size_t j = 0; j < type->layer_count; j++) {
            if (strcmp(model->layer_names[type->layers[j]], name) == 0)
                return type;
        }
    }
    return NULL;
}

size_t posenc_model_warning_count(const posenc_model *model) {
    return model->warning_count;
}

const posenc_model_warning *posenc_model_warning_at(const posenc_model *model, size_t index) {
    return index < model->warning_count ? &model->warning[index] : NULL;
}
