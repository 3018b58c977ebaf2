/* The public functions of a model, and its files. SPDX-License-Identifier: MIT */
#include "posenc/model.h"

#include "base/fail.h"
#include "formats/file_kind.h"
#include "formats/model_path.h"
#include "model/gguf_config.h"
#include "model/language_part.h"
#include "model/model_build.h"
#include "model/model_warnings.h"
#include "model/other_parts.h"

#include <stdlib.h>
#include <string.h>

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

/* The model of a config whose root and rule are there. */
static posenc_status penc_finish(posenc_model *model) {
    posenc_status status = penc_model_build(model);
    return status ? status : penc_warn(model);
}

/* The model of a config whose root is there. */
static posenc_status penc_read_config(posenc_model *model, const char *model_type) {
    model->format = "config";
    if (model_type)
        model_type = penc_arena_copy(&model->arena, model_type, strlen(model_type));
    posenc_status status = penc_language_part(&model->config, model_type);
    if (!status)
        status = penc_other_parts_make(model);
    return status ? status : penc_finish(model);
}

static posenc_status penc_read_gguf(posenc_model *model, const char *path) {
    penc_gguf *gguf;
    model->format = "gguf";
    posenc_status status = penc_gguf_open(path, &gguf, model->config.error);
    if (status)
        return status;
    status = penc_gguf_config(&model->config, gguf);
    penc_gguf_close(gguf);
    return status ? status : penc_finish(model);
}

/* Where there is no configuration, only a GGUF file tells by itself. */
static posenc_status penc_read_weights(posenc_model *model, const char *path) {
    posenc_error *error = model->config.error;
    if (strstr(path, ".safetensors")) {
        penc_fail(error, POSENC_FORMAT, "file",
                  "have a config.json beside it: weights do not say what they need");
        penc_fail_file(error, path);
        return POSENC_FORMAT;
    }
    posenc_status status = penc_expect_gguf(path, error);
    return status ? status : penc_read_gguf(model, path);
}

static posenc_status penc_read_json(posenc_model *model, const char *path) {
    posenc_error *error = model->config.error;
    posenc_status status = penc_expect_json(path, error);
    if (!status)
        status = penc_json_read_file(path, &model->config.root, error);
    if (!status)
        status = penc_expect_config(model->config.root, path, error);
    return status ? status : penc_read_config(model, NULL);
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

static posenc_status penc_model_give(posenc_model *made, posenc_status status,
                                     posenc_model **model) {
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
    posenc_status status = penc_json_parse(json, length, &made->config.root, error);
    if (!status)
        status = penc_read_config(made, model_type);
    return penc_model_give(made, status, model);
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
    penc_model_path found;
    posenc_status status = penc_model_path_resolve(path, &found, error);
    if (status)
        return penc_model_give(made, status, model);
    status =
        found.config ? penc_read_json(made, found.config) : penc_read_weights(made, found.weights);
    penc_model_path_free(&found);
    return penc_model_give(made, status, model);
}

void posenc_model_free(posenc_model *model) {
    if (!model)
        return;
    penc_other_parts_free(model);
    for (size_t i = 0; i < model->type_count; i++) {
        posenc_rope_parameters_free(model->types[i].parameters);
        json_object_put(model->types[i].block);
    }
    json_object_put(model->config.root);
    json_object_put(model->config.origin);
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

const posenc_layer_type *posenc_model_layer_type_named(const posenc_model *model,
                                                       const char *name) {
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

size_t posenc_model_part_count(const posenc_model *model) {
    return model->part_count;
}

const posenc_model_part *posenc_model_part_at(const posenc_model *model, size_t index) {
    return index < model->part_count ? &model->part[index] : NULL;
}

/* The last key of a part's name. */
static const char *penc_last_key(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

const posenc_model_part *posenc_model_part_named(const posenc_model *model, const char *name) {
    const posenc_model_part *ending = NULL;
    size_t endings = 0;
    for (size_t i = 0; name && i < model->part_count; i++) {
        const posenc_model_part *part = &model->part[i];
        if (strcmp(part->name, name) == 0)
            return part;
        if (strcmp(penc_last_key(part->name), name) == 0) {
            ending = part;
            endings++;
        }
    }
    return endings == 1 ? ending : NULL;
}
