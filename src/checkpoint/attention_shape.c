/* The shape of a checkpoint's attention, from what stands beside its weights. SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "formats/model_path.h"
#include "formats/tensor_set.h"
#include "posenc/checkpoint.h"
#include "posenc/model.h"

#include <stdio.h>
#include <string.h>

/* ---- safetensors: __metadata__, where a file that stands alone may say it ---- */

static posenc_status penc_metadata_shape(const penc_safetensors *file,
                                         posenc_attention_shape *shape, posenc_error *error) {
    const struct {
        const char *key;
        size_t *value;
    } keys[] = {{"heads", &shape->heads},
                {"kv_heads", &shape->kv_heads},
                {"head_dim", &shape->head_dim},
                {"rotary_dim", &shape->rotary_dim}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char text[16];
        size_t length, value = 0;
        int found;
        posenc_status status = penc_safetensors_find_metadata(file, keys[i].key, text, sizeof text,
                                                              &length, &found, error);
        if (status)
            return status;
        for (size_t k = 0; found && k < length && k < 6 && text[k] >= '0' && text[k] <= '9'; k++)
            value = 10 * value + (size_t)(text[k] - '0');
        *keys[i].value = value;
    }
    return POSENC_OK;
}

/* ---- Weights that tell by themselves ---- */

static posenc_status penc_weights_shape(const char *path, posenc_attention_shape *shape,
                                        posenc_checkpoint_facts *facts, posenc_error *error) {
    penc_tensor_set *set;
    posenc_status status = penc_tensor_set_open(path, &set, error);
    if (status)
        return status;
    const penc_llama2c *llama2c = penc_tensor_set_llama2c(set, 0);
    const penc_safetensors *safetensors = penc_tensor_set_safetensors(set, 0);
    snprintf(facts->format, sizeof facts->format, "%s", penc_tensor_set_file(set, 0)->format->word);
    if (llama2c) {
        const penc_llama2c_info *info = penc_llama2c_about(llama2c);
        shape->heads = info->heads;
        shape->kv_heads = info->kv_heads;
        shape->head_dim = info->dim / info->heads;
        facts->implied = POSENC_DETECTED_INTERLEAVED; /* what run.c of llama2.c rotates */
    }
    if (safetensors)
        status = penc_metadata_shape(safetensors, shape, error);
    penc_tensor_set_close(set);
    return status;
}

/* ---- Configurations and GGUF keys ---- */

/* The first layer type that rotates; of an unknown model type what could be derived. */
static const posenc_layer_type *penc_rotating_type(const posenc_model *model) {
    for (size_t i = 0; i < posenc_model_layer_type_count(model); i++) {
        const posenc_layer_type *type = posenc_model_layer_type(model, i);
        if ((type->kind == POSENC_ENCODING_ROPE || type->kind == POSENC_ENCODING_UNKNOWN) &&
            type->spec.head_dim)
            return type;
    }
    return NULL;
}

static posenc_status penc_model_shape(const char *path, posenc_attention_shape *shape,
                                      posenc_checkpoint_facts *facts, posenc_error *error) {
    posenc_model *model;
    posenc_status status = posenc_model_open(path, &model, error);
    if (status)
        return status;
    const char *name = posenc_model_type(model);
    const posenc_layer_type *type = penc_rotating_type(model);
    snprintf(facts->model_type, sizeof facts->model_type, "%s", name);
    if (type) {
        shape->heads = type->heads;
        shape->kv_heads = type->kv_heads;
        shape->head_dim = type->spec.head_dim;
        shape->rotary_dim = type->spec.rotary_dim;
        shape->rotary_start = type->spec.rotary_start;
        shape->gain_offset = type->norm_plus_one;
        if (type->kind == POSENC_ENCODING_ROPE)
            facts->implied = type->spec.pairing == POSENC_PAIRING_HALF
                                 ? POSENC_DETECTED_HALF
                                 : POSENC_DETECTED_INTERLEAVED;
    }
    posenc_model_free(model);
    return POSENC_OK;
}

posenc_status posenc_attention_shape_read(const char *path, posenc_attention_shape *shape,
                                          posenc_checkpoint_facts *facts, posenc_error *error) {
    posenc_checkpoint_facts own;
    posenc_attention_shape read = POSENC_ATTENTION_SHAPE_INIT;
    penc_model_path found;
    if (!path || !shape)
        return penc_fail_null(error, path ? "shape" : "path");
    facts = facts ? facts : &own;
    memset(facts, 0, sizeof *facts);
    posenc_status status = penc_model_path_resolve(path, &found, error);
    if (status)
        return status;
    if (found.weights)
        status = penc_weights_shape(found.weights, &read, facts, error);
    int gguf = strcmp(facts->format, "GGUF") == 0;
    const char *model = gguf ? found.weights : found.config;
    if (!status && model && strcmp(facts->format, "llama2.c") != 0)
        status = penc_model_shape(model, &read, facts, error);
    penc_model_path_free(&found);
    if (!status)
        *shape = read;
    return status;
}
