/* A GGUF file's metadata as a configuration: the same keys as config.json has, each with its origin.
 * SPDX-License-Identifier: MIT */
#include "model/gguf_config.h"

#include "base/fail.h"
#include "formats/json_file.h"

#include <stdio.h>
#include <string.h>

/* Where a key goes. */
typedef enum penc_gguf_place {
    PENC_GGUF_TOP,  /* the configuration itself */
    PENC_GGUF_BLOCK /* its rope_parameters */
} penc_gguf_place;

/* The key behind the architecture's name, where it goes, and what it is called there. Keys of one target come
 * in the order of precedence. */
static const struct penc_gguf_key {
    const char *key;
    penc_gguf_place place;
    const char *name;
} penc_gguf_keys[] = {
    {"block_count", PENC_GGUF_TOP, "num_hidden_layers"},
    {"embedding_length", PENC_GGUF_TOP, "hidden_size"},
    {"context_length", PENC_GGUF_TOP, "max_position_embeddings"},
    {"attention.head_count", PENC_GGUF_TOP, "num_attention_heads"},
    {"attention.head_count_kv", PENC_GGUF_TOP, "num_key_value_heads"},
    {"attention.key_length_mla", PENC_GGUF_TOP, "head_dim"},
    {"attention.key_length", PENC_GGUF_TOP, "head_dim"},
    {"attention.key_length_swa", PENC_GGUF_TOP, "swa_head_dim"},
    {"attention.sliding_window", PENC_GGUF_TOP, "sliding_window"},
    {"attention.sliding_window_pattern", PENC_GGUF_TOP, "sliding_window_pattern"},
    {"attention.rope_pattern", PENC_GGUF_TOP, "rope_pattern"},
    {"attention.max_alibi_bias", PENC_GGUF_TOP, "alibi_bias_max"},
    {"attention.relative_buckets_count", PENC_GGUF_TOP, "relative_attention_num_buckets"},
    {"attention.compress_rope_freq_base", PENC_GGUF_TOP, "compress_rope_theta"},
    {"rope.dimension_count", PENC_GGUF_TOP, "rotary_dim"},
    {"rope.dimension_count_swa", PENC_GGUF_TOP, "swa_rotary_dim"},
    {"rope.dimension_sections", PENC_GGUF_TOP, "mrope_section"},
    {"rope.freq_base", PENC_GGUF_TOP, "rope_theta"},
    {"rope.freq_base_swa", PENC_GGUF_TOP, "rope_local_base_freq"},
    {"rope.scaling.yarn_attn_factor", PENC_GGUF_TOP, "yarn_attn_factor"},
    {"rope.scaling.type", PENC_GGUF_BLOCK, "rope_type"},
    {"rope.scaling.factor", PENC_GGUF_BLOCK, "factor"},
    {"rope.scale_linear", PENC_GGUF_BLOCK, "factor"},
    {"rope.scaling.alpha", PENC_GGUF_BLOCK, "alpha"},
    {"rope.scaling.attn_factor", PENC_GGUF_BLOCK, "attention_factor"},
    {"rope.scaling.original_context_length", PENC_GGUF_BLOCK, "original_max_position_embeddings"},
    {"rope.scaling.yarn_log_multiplier", PENC_GGUF_BLOCK, "mscale_all_dim"},
    {"rope.scaling.yarn_beta_fast", PENC_GGUF_BLOCK, "beta_fast"},
    {"rope.scaling.yarn_beta_slow", PENC_GGUF_BLOCK, "beta_slow"},
};

typedef struct penc_gguf_reading {
    penc_config *config;
    const penc_gguf *gguf;
    const char *architecture;
    json_object *block;
} penc_gguf_reading;

enum { PENC_LONGEST_LIST = 1 << 14 }; /* more elements than layers or pairs that a model has */

/* An array of numbers or bools; NULL is left where it is of another kind or longer than any list of layers. */
static posenc_status penc_gguf_list(const penc_gguf_reading *reading, const penc_gguf_value *value,
                                    const char *key, json_object **list) {
    penc_config *config = reading->config;
    if (value->count > PENC_LONGEST_LIST || value->element == PENC_GGUF_STRING ||
        value->element == PENC_GGUF_ARRAY)
        return POSENC_OK;
    double *reals = penc_arena_take(config->arena, (size_t)value->count, sizeof *reals);
    *list = json_object_new_array();
    if (!reals || !*list)
        return penc_fail(config->error, POSENC_OUT_OF_MEMORY, key, "fit into memory");
    posenc_status status =
        penc_gguf_reals(reading->gguf, value, key, 0, (size_t)value->count, reals, config->error);
    for (size_t i = 0; !status && i < value->count; i++) {
        int whole = value->element != PENC_GGUF_F32 && value->element != PENC_GGUF_F64;
        json_object_array_add(*list, whole ? json_object_new_int64((int64_t)reals[i])
                                           : json_object_new_double(reals[i]));
    }
    return status;
}

static posenc_status penc_gguf_json(const penc_gguf_reading *reading, const penc_gguf_value *value,
                                    const char *key, json_object **json) {
    penc_config *config = reading->config;
    double real;
    int64_t integer;
    *json = NULL;
    if (value->type == PENC_GGUF_STRING) {
        char text[256];
        posenc_status status =
            penc_gguf_text(reading->gguf, value, key, text, sizeof text, config->error);
        if (!status)
            *json = json_object_new_string(text);
        return status;
    }
    if (value->type == PENC_GGUF_ARRAY)
        return penc_gguf_list(reading, value, key, json);
    if (value->type == PENC_GGUF_BOOL)
        *json = json_object_new_boolean(value->as.u != 0);
    else if (penc_gguf_integer(value, &integer))
        *json = json_object_new_int64(integer);
    else if (penc_gguf_real(value, &real))
        *json = json_object_new_double(real);
    return POSENC_OK;
}

static void penc_put(const penc_config *config, json_object *object, const char *name,
                     json_object *value, const char *origin) {
    json_object_object_add(object, name, value);
    json_object_object_add(config->origin, name, json_object_new_string(origin));
}

static posenc_status penc_take_key(const penc_gguf_reading *reading,
                                   const struct penc_gguf_key *entry) {
    penc_config *config = reading->config;
    char *key = penc_arena_print(config->arena, "%s.%s", reading->architecture, entry->key);
    if (!key)
        return penc_fail(config->error, POSENC_OUT_OF_MEMORY, "key", "fit into memory");
    penc_gguf_value value;
    json_object *json = NULL;
    posenc_status status = penc_gguf_find(reading->gguf, key, &value, config->error);
    if (status || value.type == PENC_GGUF_NONE)
        return status;
    status = penc_gguf_json(reading, &value, key, &json);
    json_object *object = entry->place == PENC_GGUF_TOP ? config->root : reading->block;
    if (json && !penc_json_has(object, entry->name))
        penc_put(config, object, entry->name, json, key);
    else
        json_object_put(json);
    return status;
}

/* Numbers per layer stand for the first layer that has any (OpenELM, Deci): heads of 0 have no attention. */
static void penc_first_of_list(const penc_config *config, const char *name) {
    json_object *list = penc_json_get(config->root, name);
    if (!penc_json_is(list, json_type_array))
        return;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *value = json_object_array_get_idx(list, i);
        if (json_object_get_int64(value)) {
            json_object_object_add(config->root, name, json_object_get(value));
            return;
        }
    }
}

/* A pattern that is a list says for every layer whether it slides. */
static void penc_layers_of_pattern(const penc_config *config) {
    json_object *list = penc_json_get(config->root, "sliding_window_pattern");
    if (!penc_json_is(list, json_type_array))
        return;
    json_object *names = json_object_new_array();
    for (size_t i = 0; i < json_object_array_length(list); i++)
        json_object_array_add(
            names, json_object_new_string(json_object_get_int64(json_object_array_get_idx(list, i))
                                              ? "sliding_attention"
                                              : "full_attention"));
    json_object_object_add(config->root, "layer_types", names);
    json_object_object_del(config->root, "sliding_window_pattern");
}

/* Four sections are written, unused ones as 0. */
static void penc_trim_sections(const penc_config *config) {
    json_object *list = penc_json_get(config->root, "mrope_section");
    while (penc_json_is(list, json_type_array) && json_object_array_length(list)) {
        size_t last = json_object_array_length(list) - 1;
        if (json_object_get_int64(json_object_array_get_idx(list, last)))
            return;
        json_object_array_del_idx(list, last, 1);
    }
    json_object_object_del(config->root, "mrope_section");
}

/* Latent attention: dimension_count is the part that rotates, key_length the whole (for compressed caches
 * key_length_mla). */
static void penc_latent_keys(const penc_config *config) {
    json_object *rotary = penc_json_get(config->root, "rotary_dim");
    json_object *whole = penc_json_get(config->root, "head_dim");
    if (strcmp(config->rule.rotary, "mla") != 0 || !rotary || !whole)
        return;
    int64_t still = json_object_get_int64(whole) - json_object_get_int64(rotary);
    penc_put(config, config->root, "qk_rope_head_dim", json_object_get(rotary),
             penc_arena_print(config->arena, "%s.rope.dimension_count", config->model_type));
    if (still >= 0)
        penc_put(config, config->root, "qk_nope_head_dim", json_object_new_int64(still),
                 penc_arena_print(config->arena, "%s.attention.key_length - rope.dimension_count",
                                  config->model_type));
}

/* The words of rope.scaling.type, and what they mean without a factor. YaRN's magnitude is the op's own in
 * llama.cpp, so that attn_factor multiplies it; a log multiplier cancels it. */
static void penc_scaling_words(const penc_gguf_reading *reading) {
    const penc_config *config = reading->config;
    json_object *block = reading->block, *word = penc_json_get(block, "rope_type");
    const char *text = penc_json_is(word, json_type_string) ? json_object_get_string(word) : NULL;
    double factor = 0.0;
    int in_string = 0;
    penc_json_number(penc_json_get(block, "factor"), &factor, &in_string);
    if (!text && factor > 0.0 && factor != 1.0) { /* a missing type is linear */
        json_object_object_add(block, "rope_type", json_object_new_string("linear"));
    } else if (text && strcmp(text, "none") == 0) {
        json_object_object_add(block, "rope_type", json_object_new_string("default"));
        json_object_object_del(block, "factor");
    }
    if (penc_json_get(block, "alpha"))
        json_object_object_add(block, "rope_type", json_object_new_string("dynamic"));
    json_object *multiplier = penc_json_get(block, "mscale_all_dim");
    if (!multiplier)
        return;
    double scale = json_object_get_double(multiplier);
    if (penc_word_in(config->rule.rules, "log-mul-tenth"))
        scale *= 10.0;
    json_object_object_add(block, "mscale_all_dim", json_object_new_double(scale));
    json_object_object_add(block, "mscale", json_object_new_double(scale));
}

/* ---- Tensors of frequency factors ---- */

/* A vector of float32 of the file; *list stays NULL where there is none. */
static posenc_status penc_gguf_vector(const penc_gguf_reading *reading, const char *name,
                                      json_object **list) {
    penc_config *config = reading->config;
    const penc_tensor_source *tensors = penc_gguf_tensors(reading->gguf);
    penc_tensor tensor;
    int found;
    *list = NULL;
    posenc_status status = penc_tensor_source_find(tensors, name, &tensor, &found, config->error);
    if (status || !found)
        return status;
    if (tensor.type != PENC_TENSOR_F32 || tensor.rank != 1 || tensor.shape[0] > PENC_LONGEST_LIST)
        return POSENC_OK;
    unsigned char *bytes = penc_arena_take(config->arena, (size_t)tensor.shape[0], 4);
    if (!bytes)
        return penc_fail(config->error, POSENC_OUT_OF_MEMORY, name, "fit into memory");
    status = penc_tensor_read_rows(tensors, &tensor, 0, 1, bytes, config->error);
    if (status)
        return status;
    *list = json_object_new_array();
    for (size_t i = 0; *list && i < tensor.shape[0]; i++) {
        const unsigned char *b = bytes + 4 * i;
        uint32_t bits =
            tensor.big_endian
                ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]
                : (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
        float number;
        memcpy(&number, &bits, sizeof number);
        json_object_array_add(*list, json_object_new_double((double)number));
    }
    return POSENC_OK;
}

static posenc_status penc_factor_tensors(const penc_gguf_reading *reading) {
    static const char *const tensors[][2] = {
        {"rope_factors_short.weight", "short_factor"},
        {"rope_factors_long.weight", "long_factor"},
        {"rope_freqs.weight", "rope_freqs"},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        json_object *list;
        posenc_status status = penc_gguf_vector(reading, tensors[i][0], &list);
        if (status) {
            json_object_put(list);
            return status;
        }
        if (list)
            penc_put(reading->config, i < 2 ? reading->block : reading->config->root, tensors[i][1],
                     list, tensors[i][0]);
    }
    if (penc_json_get(reading->block, "short_factor") &&
        !penc_json_get(reading->block, "rope_type"))
        json_object_object_add(reading->block, "rope_type", json_object_new_string("longrope"));
    return POSENC_OK;
}

/* ---- The whole ---- */

static posenc_status penc_gguf_architecture(penc_gguf_reading *reading) {
    penc_config *config = reading->config;
    penc_gguf_value value;
    char text[128] = "";
    posenc_status status =
        penc_gguf_find(reading->gguf, "general.architecture", &value, config->error);
    if (!status && value.type == PENC_GGUF_STRING)
        status = penc_gguf_text(reading->gguf, &value, "general.architecture", text, sizeof text,
                                config->error);
    if (status)
        return status;
    reading->architecture = config->model_type = penc_arena_copy(config->arena, text, strlen(text));
    config->known = penc_rule_find(config->arena, "gguf", text, &config->rule);
    return config->arena->failed
               ? penc_fail(config->error, POSENC_OUT_OF_MEMORY, "model", "fit into memory")
               : POSENC_OK;
}

posenc_status penc_gguf_config(penc_config *config, const penc_gguf *gguf) {
    penc_gguf_reading reading = {config, gguf, "", json_object_new_object()};
    config->root = config->part = json_object_new_object();
    config->origin = json_object_new_object();
    config->prefix = "";
    config->rule = penc_no_rule;
    posenc_status status =
        reading.block && config->root && config->origin
            ? penc_gguf_architecture(&reading)
            : penc_fail(config->error, POSENC_OUT_OF_MEMORY, "model", "fit into memory");
    size_t keys = sizeof penc_gguf_keys / sizeof *penc_gguf_keys;
    for (size_t i = 0; !status && i < keys; i++)
        status = penc_take_key(&reading, &penc_gguf_keys[i]);
    if (!status)
        status = penc_factor_tensors(&reading);
    if (status) {
        json_object_put(reading.block);
        return status;
    }
    penc_first_of_list(config, "num_attention_heads");
    penc_first_of_list(config, "num_key_value_heads");
    penc_layers_of_pattern(config);
    penc_trim_sections(config);
    penc_latent_keys(config);
    penc_scaling_words(&reading);
    json_object_object_add(config->root, "rope_parameters", reading.block);
    const char *text = config->rule.defaults;
    return strcmp(text, "-") == 0
               ? POSENC_OK
               : penc_json_parse(text, strlen(text), &config->implied, config->error);
}
