/* The shape of a checkpoint's attention, from its keys. SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "formats/json_file.h"
#include "formats/model_path.h"
#include "formats/tensor_set.h"
#include "model/gain_offset.h"
#include "posenc/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PENC_MOST 65536.0 /* heads, or channels of one */

/* ---- GGUF ---- */

/* A number under "ARCHITECTURE.KEY"; *value is left alone where there is none. */
static posenc_status penc_gguf_shape_number(const penc_gguf *gguf, const char *architecture,
                                            const char *key, double *value, posenc_error *error) {
    char name[PENC_NAME_BYTES];
    penc_gguf_value found;
    double real;
    snprintf(name, sizeof name, "%s.%s", architecture, key);
    posenc_status status = penc_gguf_find(gguf, name, &found, error);
    if (status || found.type == PENC_GGUF_NONE)
        return status;
    if (penc_gguf_real(&found, &real) && real >= 0.0 && real <= PENC_MOST && real == floor(real)) {
        *value = real;
        return POSENC_OK;
    }
    status = penc_fail(error, POSENC_UNSUPPORTED, "key", "be one number from 0 to 65536 here");
    penc_fail_name(error, name, strlen(name));
    penc_fail_file(error, penc_gguf_about(gguf)->path);
    return status;
}

static posenc_status penc_gguf_shape(const penc_gguf *gguf, posenc_attention_shape *shape,
                                     posenc_checkpoint_facts *facts, posenc_error *error) {
    penc_gguf_value value;
    double width = 0, heads = 0, kv_heads = 0, head_dim = 0, rotary = 0, value_dim = 0;
    posenc_status status = penc_gguf_find(gguf, "general.architecture", &value, error);
    if (!status && value.type != PENC_GGUF_NONE)
        status = penc_gguf_text(gguf, &value, "general.architecture", facts->model_type,
                                sizeof facts->model_type, error);
    const struct {
        const char *key;
        double *value;
    } keys[] = {{"embedding_length", &width},           {"attention.head_count", &heads},
                {"attention.head_count_kv", &kv_heads}, {"attention.key_length", &head_dim},
                {"rope.dimension_count", &rotary},      {"attention.key_length_mla", &value_dim}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !status; i++)
        status = penc_gguf_shape_number(gguf, facts->model_type, keys[i].key, keys[i].value, error);
    if (value_dim > 0) /* MLA: key_length is that of the compressed cache */
        head_dim = value_dim;
    shape->heads = (size_t)heads;
    shape->kv_heads = (size_t)kv_heads;
    shape->head_dim = head_dim > 0 ? (size_t)head_dim : heads > 0 ? (size_t)(width / heads) : 0;
    shape->rotary_dim = (size_t)rotary;
    if (value_dim > 0 && rotary > 0 && rotary < head_dim)
        shape->rotary_start = (size_t)(head_dim - rotary);
    return status;
}

/* ---- config.json ---- */

/* The first of these keys that is a number; *value is left alone where there is none. Ends with NULL. */
static posenc_status penc_json_shape_number(json_object *part, const char *const *keys,
                                            double *value, const char *path, posenc_error *error) {
    for (; *keys; keys++) {
        json_object *found;
        if (!json_object_object_get_ex(part, *keys, &found) || !found)
            continue;
        double real = json_object_get_double(found);
        if ((json_object_is_type(found, json_type_int) ||
             json_object_is_type(found, json_type_double)) &&
            real >= 0.0 && real <= 1e9) {
            *value = real;
            return POSENC_OK;
        }
        posenc_status status =
            penc_fail(error, POSENC_OUT_OF_RANGE, "key", "be a number from 0 to 10^9 here");
        penc_fail_name(error, *keys, strlen(*keys));
        penc_fail_file(error, path);
        return status;
    }
    return POSENC_OK;
}

/* The object that describes the language model. */
static json_object *penc_json_language_part(json_object *root) {
    static const char *const parts[] = {"text_config", "language_config", "llm_config", NULL};
    for (const char *const *part = parts; *part; part++) {
        json_object *found;
        if (json_object_object_get_ex(root, *part, &found) &&
            json_object_is_type(found, json_type_object))
            return found;
    }
    return root;
}

/* The share of head_dim that rotates, wherever it stands. */
static posenc_status penc_json_rotary_share(json_object *part, double *share, const char *path,
                                            posenc_error *error) {
    static const char *const keys[] = {"partial_rotary_factor", "rotary_pct", "rope_percent", NULL};
    static const char *const blocks[] = {"rope_parameters", "rope_scaling", NULL};
    posenc_status status = penc_json_shape_number(part, keys, share, path, error);
    for (const char *const *block = blocks; *block && !status; block++) {
        json_object *found;
        if (json_object_object_get_ex(part, *block, &found) &&
            json_object_is_type(found, json_type_object))
            status = penc_json_shape_number(found, keys, share, path, error);
    }
    return status;
}

static posenc_status penc_json_shape(json_object *part, const char *path,
                                     posenc_attention_shape *shape, posenc_error *error) {
    enum { WIDTH, HEADS, KV_HEADS, HEAD_DIM, ROTARY, MLA_NOPE, MLA_ROPE, NUMBERS };
    static const char *const keys[NUMBERS][6] = {
        {"hidden_size", "n_embd", "d_model", "dim", NULL},
        {"num_attention_heads", "n_head", "num_heads", "n_heads", NULL},
        {"num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv", "multi_query_group_num",
         NULL},
        {"head_dim", "kv_channels", NULL},
        {"rotary_dim", NULL},
        {"qk_nope_head_dim", NULL},
        {"qk_rope_head_dim", NULL}};
    double number[NUMBERS] = {0.0}, share = 1.0;
    posenc_status status = POSENC_OK;
    for (int i = 0; i < NUMBERS && !status; i++)
        status = penc_json_shape_number(part, keys[i], &number[i], path, error);
    if (!status)
        status = penc_json_rotary_share(part, &share, path, error);
    if (status)
        return status;
    shape->heads = (size_t)number[HEADS];
    shape->kv_heads = (size_t)number[KV_HEADS];
    double head_dim = number[HEAD_DIM] > 0.0 ? number[HEAD_DIM]
                      : number[HEADS] > 0.0  ? number[WIDTH] / number[HEADS]
                                             : 0.0;
    if (number[MLA_ROPE] > 0.0) {
        head_dim = number[MLA_NOPE] + number[MLA_ROPE];
        shape->rotary_start = (size_t)number[MLA_NOPE];
        number[ROTARY] = number[MLA_ROPE];
    }
    shape->head_dim = (size_t)head_dim;
    shape->rotary_dim =
        number[ROTARY] > 0.0 ? (size_t)number[ROTARY] : (size_t)(share * (double)shape->head_dim);
    return POSENC_OK;
}

static posenc_status penc_config_shape(const char *path, posenc_attention_shape *shape,
                                       posenc_checkpoint_facts *facts, posenc_error *error) {
    json_object *root, *type;
    posenc_status status = penc_json_read_file(path, &root, error);
    if (status)
        return status;
    json_object *part = penc_json_language_part(root);
    status = penc_json_shape(part, path, shape, error);
    if (json_object_object_get_ex(part, "model_type", &type) &&
        json_object_is_type(type, json_type_string))
        snprintf(facts->model_type, sizeof facts->model_type, "%s", json_object_get_string(type));
    shape->gain_offset = penc_gain_offset(facts->model_type);
    json_object_put(root);
    return status;
}

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

/* ---- Any of them ---- */

static posenc_status penc_weights_shape(const char *path, posenc_attention_shape *shape,
                                        posenc_checkpoint_facts *facts, posenc_error *error) {
    penc_tensor_set *set;
    posenc_status status = penc_tensor_set_open(path, &set, error);
    if (status)
        return status;
    const penc_gguf *gguf = penc_tensor_set_gguf(set, 0);
    const penc_llama2c *llama2c = penc_tensor_set_llama2c(set, 0);
    const penc_safetensors *safetensors = penc_tensor_set_safetensors(set, 0);
    snprintf(facts->format, sizeof facts->format, "%s", penc_tensor_set_file(set, 0)->format->word);
    if (gguf)
        status = penc_gguf_shape(gguf, shape, facts, error);
    if (llama2c) {
        const penc_llama2c_info *info = penc_llama2c_about(llama2c);
        shape->heads = info->heads;
        shape->kv_heads = info->kv_heads;
        shape->head_dim = info->dim / info->heads;
    }
    if (safetensors)
        status = penc_metadata_shape(safetensors, shape, error);
    penc_tensor_set_close(set);
    return status;
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
    int tells_itself = strcmp(facts->format, "GGUF") == 0 || strcmp(facts->format, "llama2.c") == 0;
    if (!status && found.config && !tells_itself) {
        posenc_attention_shape config = POSENC_ATTENTION_SHAPE_INIT;
        status = penc_config_shape(found.config, &config, facts, error);
        if (config.heads)
            read = config;
    }
    penc_model_path_free(&found);
    if (!status)
        *shape = read;
    return status;
}
