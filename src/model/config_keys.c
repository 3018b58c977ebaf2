/* Reading a configuration's keys under all their names. SPDX-License-Identifier: MIT */
#include "model/config_keys.h"

#include "base/fail.h"

#include <math.h>
#include <string.h>

enum { PENC_SPELLINGS = 12 };

/* The name that is used here, then what others write. Where a file has several, the first in this list
 * counts. Meta's and Mistral's params.json have dim, n_heads, n_kv_heads, n_layers and rope_theta. */
static const char *const penc_spellings[][PENC_SPELLINGS] = {
    {"hidden_size", "d_model", "n_embd", "dim", "emb_dim", "hidden_dim", "embed_dim", "model_dim"},
    {"num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads",
     "encoder_attention_heads", "attention_heads"},
    {"num_key_value_heads", "n_kv_heads", "num_kv_heads", "n_head_kv", "attn_config.kv_n_heads",
     "num_attention_groups", "multi_query_group_num"},
    {"num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "depth"},
    {"head_dim", "attention_head_dim", "kv_channels", "d_kv", "n_embd_head", "head_size"},
    {"max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "model_max_length",
     "max_sequence_length", "seq_length", "max_target_positions"},
    {"rope_theta", "rotary_emb_base", "rotary_embedding_base", "rope_base", "rotary_base",
     "rotary.base", "attn_config.rope_theta"},
    {"partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_emb_fraction", "rotary_percent",
     "partial_rotary_factors"},
    {"sliding_window", "sliding_window_size", "local_attention", "attention_window_size"},
    {"layer_types", "layers_block_type"},
    {"sliding_window_pattern", "_sliding_window_pattern"},
    {"rope_local_base_freq", "swa_rope_theta", "local_rope_theta"},
    {"rope_parameters.rope_theta",
     "rope_theta"}, /* types that share a block's base, not its scaling */
};

const char *const *penc_key_spellings(const char *key) {
    for (size_t i = 0; i < sizeof penc_spellings / sizeof *penc_spellings; i++) {
        if (strcmp(penc_spellings[i][0], key) == 0)
            return penc_spellings[i];
    }
    return NULL;
}

/* Follows the dots. NULL if it is missing, null or leads through something else than objects. */
static json_object *penc_follow(json_object *object, const char *key) {
    char name[64];
    for (const char *dot; (dot = strchr(key, '.')) != NULL; key = dot + 1) {
        size_t length = (size_t)(dot - key);
        if (length >= sizeof name)
            return NULL;
        memcpy(name, key, length);
        name[length] = '\0';
        object = penc_json_get(object, name);
    }
    return penc_json_get(object, key);
}

static int penc_find_in(json_object *object, const char *key, penc_found *found) {
    const char *const *spelling = penc_key_spellings(key);
    const char *const alone[] = {key, NULL};
    for (spelling = spelling ? spelling : alone; *spelling; spelling++) {
        found->value = penc_follow(object, *spelling);
        found->key = *spelling;
        if (found->value)
            return 1;
    }
    found->key = key;
    return 0;
}

const char *penc_config_place(const penc_config *config, const char *path, const char *key) {
    json_object *origin = penc_json_get(config->origin, key);
    if (origin)
        return json_object_get_string(origin);
    if (!*path)
        return penc_arena_print(config->arena, "%s%s", config->prefix, key);
    return penc_arena_print(config->arena, "%s.%s", path, key);
}

penc_found penc_config_find_in_file(const penc_config *config, const char *key) {
    penc_found found = {NULL, key, POSENC_SOURCE_FILE, NULL};
    if (penc_find_in(config->part, key, &found))
        found.place = penc_config_place(config, "", found.key);
    return found;
}

penc_found penc_config_find(const penc_config *config, const char *key) {
    penc_found found = penc_config_find_in_file(config, key);
    if (!found.value && penc_find_in(config->implied, key, &found)) {
        found.source = POSENC_SOURCE_IMPLIED;
        found.place = penc_arena_print(config->arena, "rules of %s", config->rule.name);
    }
    return found;
}

posenc_status penc_config_real(const penc_config *config, const char *key, double *real,
                               penc_found *found) {
    penc_found here = penc_config_find(config, key);
    int in_string = 0;
    *real = 0.0;
    if (found)
        *found = here;
    if (!here.value)
        return POSENC_OK;
    if (!penc_json_number(here.value, real, &in_string))
        return penc_fail(config->error, POSENC_FORMAT, here.key, "be a number");
    if (!isfinite(*real))
        return penc_fail_real(config->error, here.key, *real, "be a finite number");
    return POSENC_OK;
}

posenc_status penc_config_size(const penc_config *config, const char *key, uint64_t *size,
                               penc_found *found) {
    penc_found here;
    double real;
    *size = 0;
    posenc_status status = penc_config_real(config, key, &real, &here);
    if (found)
        *found = here;
    if (status || !here.value)
        return status;
    if (!(real >= 0.0 && real <= 0x1p40) || real != floor(real))
        return penc_fail_real(config->error, here.key, real, "be a whole number from 0 to 2^40");
    *size = (uint64_t)real;
    return POSENC_OK;
}
