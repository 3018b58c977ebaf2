/* Warnings about files that engines are known to read differently. SPDX-License-Identifier: MIT */
#include "model/model_warning_list.h"
#include "model/warning_facts.h"

#include <string.h>

/* Three ways: the file has both a factor and the numbers that make one; cos and sin and the softmax scale both
 * carry it; GGUF's attn_factor multiplies what llama.cpp's operation applies by itself. */
const char *penc_warn_magnitude_twice(const posenc_model *model, const penc_layer_type *type) {
    double factor, scale, all;
    if (!penc_scaled_by(type, "yarn"))
        return NULL;
    int given = penc_file_number(type, "attention_factor", &factor) && factor != 1.0;
    int scales = penc_number_in(type->block, "mscale", &scale) ||
                 penc_number_in(type->block, "mscale_all_dim", &all);
    if (given && strcmp(model->format, "gguf") == 0)
        return penc_say(
            model,
            "rope.scaling.attn_factor is %s, and llama.cpp's operation multiplies by YaRN's magnitude itself",
            penc_show(model, factor));
    if (given && scales)
        return penc_say(
            model,
            "attention_factor %s stands beside mscale: those who compute the magnitude apply it again",
            penc_show(model, factor));
    double own = penc_attention_factor(model, type);
    if (type->type.softmax_factor && own != 1.0 &&
        penc_number_in(type->block, "mscale_all_dim", &all) && all != 0.0)
        return penc_say(
            model,
            "cos and sin are multiplied by %s, and the softmax scale carries a magnitude too",
            penc_show(model, own));
    return NULL;
}

const char *penc_warn_softmax_factor(const posenc_model *model, const penc_layer_type *type) {
    posenc_frequencies *frequencies =
        type->type.softmax_factor ? penc_frequencies_of(model, type) : NULL;
    if (!frequencies)
        return NULL;
    double factor = posenc_frequencies_softmax_factor(frequencies);
    posenc_frequencies_destroy(frequencies);
    return factor == 1.0
               ? NULL
               : penc_say(model, "this model multiplies its softmax scale by %s beside cos and sin",
                          penc_show(model, factor));
}

/* transformers 5 writes it into the block; readers of the time before look beside it and fall to 10000. */
const char *penc_warn_theta_inside_only(const posenc_model *model, const penc_layer_type *type) {
    double base;
    const posenc_model_value *value = penc_value_of(type, "rope_theta");
    if (!value || value->source != POSENC_SOURCE_FILE || strcmp(model->format, "gguf") == 0 ||
        !penc_number_in(type->given, "rope_theta", &base) || base == 10000.0 ||
        strcmp(model->config.rule.bases, "-") != 0 ||
        penc_config_find_in_file(&model->config, "rope_theta").value)
        return NULL;
    return penc_say(model, "rope_theta %s stands inside of the block only", penc_show(model, base));
}

const char *penc_warn_not_truncated(const posenc_model *model, const penc_layer_type *type) {
    json_object *truncate = penc_json_get(type->block, "truncate");
    if (!penc_scaled_by(type, "yarn") || !penc_json_is(truncate, json_type_boolean) ||
        json_object_get_boolean(truncate))
        return NULL;
    return penc_say(model, "truncate is false: the ends of YaRN's ramp are no whole pairs");
}

const char *penc_warn_own_attention_factor(const posenc_model *model, const penc_layer_type *type) {
    double factor;
    if (!penc_scaled_by(type, "yarn"))
        return NULL;
    if (strcmp(model->format, "gguf") == 0)
        return penc_number_in(model->config.part, "yarn_attn_factor", &factor) && factor != 1.0
                   ? penc_say(
                         model,
                         "rope.scaling.yarn_attn_factor is %s; llama.cpp writes YaRN's own over it, "
                         "which is taken here too",
                         penc_show(model, factor))
                   : NULL;
    if (!penc_file_number(type, "attention_factor", &factor))
        return NULL;
    return penc_say(model, "attention_factor %s replaces YaRN's own", penc_show(model, factor));
}

const char *penc_warn_own_betas(const posenc_model *model, const penc_layer_type *type) {
    double fast = 32.0, slow = 1.0;
    if (!penc_scaled_by(type, "yarn"))
        return NULL;
    penc_number_in(type->block, "beta_fast", &fast);
    penc_number_in(type->block, "beta_slow", &slow);
    fast = fast == 0.0 ? 32.0 : fast; /* 0 stands for the default, as transformers has it */
    slow = slow == 0.0 ? 1.0 : slow;
    return fast == 32.0 && slow == 1.0 ? NULL
                                       : penc_say(model, "YaRN's betas are %s and %s, not 32 and 1",
                                                  penc_show(model, fast), penc_show(model, slow));
}

const char *penc_warn_dynamic_base(const posenc_model *model, const penc_layer_type *type) {
    const posenc_scaling *scaling = type->type.spec.scaling;
    if (type->type.invalid || !scaling || scaling->type != POSENC_SCALING_DYNAMIC ||
        scaling->dynamic == POSENC_DYNAMIC_ALPHA)
        return NULL;
    return penc_say(model,
                    "the base grows with the length, so that cached keys carry an older one; "
                    "llama.cpp has no dynamic scaling");
}

const char *penc_warn_two_frequency_lists(const posenc_model *model, const penc_layer_type *type) {
    double original;
    if (!penc_scaled_by(type, "longrope") || type->type.invalid ||
        !penc_number_in(type->block, "original_max_position_embeddings", &original))
        return NULL;
    return penc_say(model,
                    "sequences above %s positions use other frequencies; llama.cpp chooses by "
                    "the context's capacity instead",
                    penc_show(model, original));
}

const char *penc_warn_shift_magnitude(const posenc_model *model, const penc_layer_type *type) {
    double factor = penc_attention_factor(model, type);
    if (factor == 1.0)
        return NULL;
    return penc_say(
        model,
        "cos and sin carry the factor %s; llama.cpp applies it again at every shift of its cache",
        penc_show(model, factor));
}

const char *penc_warn_frequency_factors(const posenc_model *model, const penc_layer_type *type) {
    const posenc_scaling *scaling = type->type.spec.scaling;
    if (type->type.invalid || !scaling || scaling->type != POSENC_SCALING_CUSTOM)
        return NULL;
    return penc_say(model, "rope_freqs.weight divides the frequencies; no key of the file says so");
}

const char *penc_warn_conjugate_turn(const posenc_model *model, const penc_layer_type *type) {
    return type->type.conjugate
               ? penc_say(model,
                          "this model turns by the negative angle: same scores, other vectors")
               : NULL;
}

/* LlamaModel.permute moves whole heads, and llama, deci, falcon and llama-embed refuse a part. */
const char *penc_warn_llama_partial(const posenc_model *model, const penc_layer_type *type) {
    const posenc_spec *spec = &type->type.spec;
    const char *gguf =
        strcmp(model->format, "gguf") == 0 ? model->config.rule.name : model->config.rule.gguf;
    static const char *const names[] = {"llama", "deci", "falcon", "llama-embed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!type->type.invalid && strcmp(gguf, names[i]) == 0 && spec->rotary_dim &&
            spec->rotary_dim != spec->head_dim)
            return penc_say(model, "%zu of %zu channels rotate, and as %s every channel has to",
                            spec->rotary_dim, spec->head_dim, gguf);
    }
    return NULL;
}

const char *penc_warn_bucket_distance(const posenc_model *model, const penc_layer_type *type) {
    double distance;
    if (type->type.kind != POSENC_ENCODING_RELATIVE ||
        !penc_file_number(type, "relative_attention_max_distance", &distance) || distance == 128.0)
        return NULL;
    return penc_say(model, "relative_attention_max_distance is %s; llama.cpp has 128 fixed",
                    penc_show(model, distance));
}

/* convert_hf_to_gguf of these takes n_head / n_kv for the number of k heads: right only if heads = kv^2. */
const char *penc_warn_grouped_permutation(const posenc_model *model, const penc_layer_type *type) {
    const char *name = model->config.rule.name;
    size_t heads = type->type.heads, kv_heads = type->type.kv_heads;
    if ((strcmp(name, "baichuan") != 0 && strcmp(name, "xverse") != 0) || heads == kv_heads ||
        heads == kv_heads * kv_heads || type->type.kind != POSENC_ENCODING_ROPE)
        return NULL;
    return penc_say(
        model, "%zu heads share %zu k heads; llama.cpp's converter of this model permutes k by %zu",
        heads, kv_heads, kv_heads ? heads / kv_heads : 0);
}
