/* params.json of Meta and Mistral. SPDX-License-Identifier: MIT */
#include "model/params_json.h"

#include <string.h>

const char *penc_params_rule(json_object *root) {
    json_object *type = penc_json_get(root, "model_type");
    int named = penc_json_is(type, json_type_string) &&
                strcmp(json_object_get_string(type), "transformer") != 0;
    if (named || penc_json_get(root, "architectures") || !penc_json_get(root, "dim") ||
        !penc_json_get(root, "n_heads"))
        return NULL;
    return penc_json_get(root, "qk_rope_head_dim") ? "params.json-mla" : "params.json";
}

/* A key of the block, with what it is called in the file. */
static void penc_put_key(penc_config *config, json_object *block, const char *name,
                         json_object *value, const char *origin) {
    json_object_object_add(block, name, value);
    json_object_object_add(config->origin, name, json_object_new_string(origin));
}

static int penc_truth(json_object *value) {
    return penc_json_is(value, json_type_boolean) && json_object_get_boolean(value);
}

/* {"factor": 36, "beta": 32, "alpha": 1, "original_max_position_embeddings": 8192, "apply_scale": false} */
static json_object *penc_yarn_block(penc_config *config, json_object *yarn) {
    static const char *const names[][3] = {
        {"factor", "factor", "yarn.factor"},
        {"beta", "beta_fast", "yarn.beta"},
        {"alpha", "beta_slow", "yarn.alpha"},
        {"original_max_position_embeddings", "original_max_position_embeddings",
         "yarn.original_max_position_embeddings"},
    };
    json_object *block = json_object_new_object();
    penc_put_key(config, block, "rope_type", json_object_new_string("yarn"), "yarn");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_object *value = penc_json_get(yarn, names[i][0]);
        if (value)
            penc_put_key(config, block, names[i][1], json_object_get(value), names[i][2]);
    }
    if (penc_json_has(yarn, "apply_scale") && !penc_truth(penc_json_get(yarn, "apply_scale")))
        penc_put_key(config, block, "attention_factor", json_object_new_double(1.0),
                     "yarn.apply_scale");
    return block;
}

/* Llama 3.1's constants; rope_scaling_factor is 32 in Llama 3.2. */
static json_object *penc_llama3_block(penc_config *config) {
    json_object *block = json_object_new_object();
    json_object *factor = penc_json_get(config->root, "rope_scaling_factor");
    json_object *high = penc_json_get(config->root, "high_freq_factor");
    penc_put_key(config, block, "rope_type", json_object_new_string("llama3"), "use_scaled_rope");
    penc_put_key(config, block, "factor",
                 factor ? json_object_get(factor) : json_object_new_double(8.0),
                 factor ? "rope_scaling_factor" : "use_scaled_rope");
    penc_put_key(config, block, "low_freq_factor", json_object_new_double(1.0), "use_scaled_rope");
    penc_put_key(config, block, "high_freq_factor",
                 high ? json_object_get(high) : json_object_new_double(4.0),
                 high ? "high_freq_factor" : "use_scaled_rope");
    penc_put_key(config, block, "original_max_position_embeddings", json_object_new_int(8192),
                 "use_scaled_rope");
    return block;
}

void penc_params_translate(penc_config *config) {
    json_object *yarn = penc_json_get(config->root, "yarn"), *block = NULL;
    config->origin = json_object_new_object();
    if (!config->origin)
        return;
    if (penc_json_is(yarn, json_type_object))
        block = penc_yarn_block(config, yarn);
    else if (penc_truth(penc_json_get(config->root, "use_scaled_rope")))
        block = penc_llama3_block(config);
    if (block)
        json_object_object_add(config->root, "rope_parameters", block);
}
