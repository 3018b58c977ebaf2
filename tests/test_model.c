/* Configurations to specs per layer type: released models' own facts. SPDX-License-Identifier: MIT */
#include "model_cases.h"

#include <math.h>

/* ---- Layers ---- */

/* "0-3 5" of the layers of a type. */
static void layers_text(const posenc_layer_type *type, char *text, size_t capacity) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < type->layer_count;) {
        size_t end = i;
        while (end + 1 < type->layer_count && type->layers[end + 1] == type->layers[end] + 1)
            end++;
        used += (size_t)snprintf(text + used, capacity - used, end > i ? "%s%u-%u" : "%s%u",
                                 used ? " " : "", type->layers[i], type->layers[end]);
        i = end + 1;
    }
}

#define DIMS(layers)                                                                               \
    "\"num_hidden_layers\":" layers ",\"hidden_size\":1024,\"num_attention_heads\":8"

static void layers_by_pattern_and_by_list(void **state) {
    (void)state;
    static const struct {
        const char *json;
        const char *types; /* NAME KIND layers; ... */
    } cases[] = {
        {"{\"model_type\":\"llama\"," DIMS("4") "}", "all rope 0-3; "},
        {"{\"model_type\":\"gemma3_text\"," DIMS("8") "}",
         "sliding_attention rope 0-4 6-7; full_attention rope 5; "},
        {"{\"model_type\":\"gemma3_text\"," DIMS("8") ",\"sliding_window_pattern\":3}",
         "sliding_attention rope 0-1 3-4 6-7; full_attention rope 2 5; "},
        {"{\"model_type\":\"modernbert\"," DIMS("7") "}",
         "full_attention rope 0 3 6; sliding_attention rope 1-2 4-5; "},
        {"{\"model_type\":\"modernbert\"," DIMS("7") ",\"global_attn_every_n_layers\":4}",
         "full_attention rope 0 4; sliding_attention rope 1-3 5-6; "},
        {"{\"model_type\":\"gemma4_text\"," DIMS("8") "}",
         "sliding_attention rope 0-4 6; full_attention rope 5 7; "},
        {"{\"model_type\":\"cohere2\"," DIMS("8") "}",
         "sliding_attention rope 0-2 4-6; full_attention none 3 7; "},
        {"{\"model_type\":\"exaone4\"," DIMS("8") "}",
         "sliding_attention rope 0-2 4-6; full_attention none 3 7; "},
        {"{\"model_type\":\"exaone4\"," DIMS(
             "8") ",\"sliding_window\":null,\"sliding_window_pattern\":1}",
         "all rope 0-7; "},
        {"{\"model_type\":\"exaone4\"," DIMS("8") ",\"sliding_window_pattern\":\"LLG\"}",
         "sliding_attention rope 0-1 3-4 6-7; full_attention none 2 5; "},
        {"{\"model_type\":\"smollm3\"," DIMS("9") "}", "attention rope 0-2 4-6 8; nope none 3 7; "},
        {"{\"model_type\":\"smollm3\"," DIMS("4") ",\"no_rope_layers\":[0,1,1,0]}",
         "nope none 0 3; attention rope 1-2; "},
        {"{\"model_type\":\"llama4_text\"," DIMS("8") ",\"no_rope_layer_interval\":2}",
         "attention rope 0 2 4 6; nope none 1 3 5 7; "},
        {"{\"model_type\":\"qwen3_next\"," DIMS("8") "}",
         "linear_attention none 0-2 4-6; full_attention rope 3 7; "},
        {"{\"model_type\":\"mimo_v2_flash\"," DIMS("12") "}",
         "full_attention rope 0 5 11; sliding_attention rope 1-4 6-10; "},
        {"{\"model_type\":\"muse_glimmer_text\"," DIMS("6") "}",
         "sliding_attention rope 0 2-4; full_attention none 1 5; "},
        {"{\"model_type\":\"granite_swa\"," DIMS(
             "4") ",\"layer_rope_theta\":[10000,0,10000,500000]}",
         "theta_10000 rope 0 2; sliding_attention none 1; theta_500000 rope 3; "},
        {"{\"model_type\":\"muse_spark_text\"," DIMS("6") ",\"layer_rope_theta\":[0,7,7,0,7,7]}",
         "sliding_attention none 0 3; theta_7 rope 1-2 4-5; "},
        {"{\"model_type\":\"flint\"," DIMS("8") "}",
         "full_attention none 0-1 5 7; sliding_attention rope 2-4 6; "},
        {"{\"model_type\":\"lfm3\"," DIMS("5") "}",
         "conv none 0-1 3; full_attention rope 2; sliding_attention rope 4; "},
        {"{\"model_type\":\"qwen4_exp_text\"," DIMS("4") "}",
         "linear_attention none 0-2; indexed_attention rope 3; "},
        {"{\"model_type\":\"beam\"," DIMS("3") "}",
         "sliding_attention rope 0-1; full_attention none 2; "},
        {"{\"model_type\":\"mllama_text_model\"," DIMS("6") "}",
         "self_attention rope 0-2 4-5; cross_attention none 3; "},
        {"{\"model_type\":\"mllama_text_model\"," DIMS("4") ",\"cross_attention_layers\":[0,2]}",
         "cross_attention none 0 2; self_attention rope 1 3; "},
        {"{\"model_type\":\"molmo2_text\"," DIMS("4") ",\"rope_scaling_layers\":[1]}",
         "unscaled rope 0 2-3; scaled rope 1; "},
        {"{\"model_type\":\"gemma2\"," DIMS("4") "}", "all rope 0-3; "},
        {"{\"model_type\":\"lfm2\"," DIMS("4") ",\"full_attn_idxs\":[1,3]}",
         "conv none 0 2; full_attention rope 1 3; "},
        {"{\"model_type\":\"jamba\"," DIMS("4") "}", "all none 0-3; "},
        {"{\"model_type\":\"zamba2\"," DIMS(
             "3") ",\"use_mem_rope\":true,"
                  "\"layers_block_type\":[\"mamba\",\"hybrid\",\"mamba\"]}",
         "mamba none 0 2; hybrid rope 1; "},
        {"{\"model_type\":\"olmo3\"," DIMS(
             "8") ",\"rope_parameters\":{\"sliding_attention\":null,"
                  "\"full_attention\":{\"rope_type\":\"default\",\"rope_theta\":500000}}}",
         "sliding_attention none 0-2 4-6; full_attention rope 3 7; "},
        {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_attention_heads\":2,\"num_hidden_layers\":0}",
         "all rope ; "},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        posenc_model *model = model_of(cases[i].json);
        char text[1024] = "", layers[256];
        size_t used = 0;
        for (size_t j = 0; j < posenc_model_layer_type_count(model); j++) {
            const posenc_layer_type *type = posenc_model_layer_type(model, j);
            layers_text(type, layers, sizeof layers);
            used += (size_t)snprintf(text + used, sizeof text - used, "%s %s %s; ", type->name,
                                     posenc_encoding_name(type->kind), layers);
        }
        if (strcmp(text, cases[i].types) != 0)
            fail_msg("%s\ngives %s\nnot   %s", cases[i].json, text, cases[i].types);
        posenc_model_free(model);
    }
}

/* ---- Specs ---- */

typedef struct spec_case {
    const char *json, *type;
    size_t head_dim, rotary_dim, rotary_start;
    const char *pairing;
    double base;
    const char *scaling;
} spec_case;

static const spec_case specs[] = {
    {"{\"model_type\":\"gpt_neox\",\"hidden_size\":6144,\"num_attention_heads\":64}", "all", 96, 24,
     0, "half", 10000, "default"},
    {"{\"model_type\":\"gpt_neox\",\"hidden_size\":2560,\"num_attention_heads\":32,\"rotary_pct\":1.0,\"rotary_emb_base\":20000}",
     "all", 80, 80, 0, "half", 20000, "default"},
    {"{\"model_type\":\"phi\",\"hidden_size\":2560,\"num_attention_heads\":32,\"partial_rotary_factor\":0.4}",
     "all", 80, 32, 0, "half", 10000, "default"},
    {"{\"model_type\":\"gptj\",\"n_embd\":4096,\"n_head\":16,\"rotary_dim\":64,\"rope_theta\":5}",
     "all", 256, 64, 0, "interleaved", 10000, "default"},
    {"{\"model_type\":\"codegen\",\"n_embd\":1024,\"n_head\":16,\"rotary_dim\":32}", "all", 64, 32,
     0, "interleaved", 10000, "default"},
    {"{\"model_type\":\"cohere\",\"hidden_size\":8192,\"num_attention_heads\":64}", "all", 128, 128,
     0, "interleaved", 500000, "default"},
    {"{\"model_type\":\"chatglm\",\"hidden_size\":4096,\"num_attention_heads\":32,\"kv_channels\":128,\"rope_ratio\":500}",
     "all", 128, 64, 0, "interleaved", 5000000, "default"},
    {"{\"model_type\":\"deepseek_v3\",\"num_attention_heads\":128,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64}",
     "all", 192, 64, 128, "interleaved", 10000, "default"},
    {"{\"model_type\":\"deepseek_v3\",\"num_attention_heads\":128,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"rope_interleave\":false}",
     "all", 192, 64, 128, "half", 10000, "default"},
    {"{\"model_type\":\"kimi_k2\",\"num_attention_heads\":64,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"rope_theta\":50000}",
     "all", 192, 64, 128, "interleaved", 50000, "default"},
    {"{\"model_type\":\"minicpm3\",\"num_attention_heads\":40,\"qk_nope_head_dim\":64,\"qk_rope_head_dim\":32}",
     "all", 96, 32, 64, "half", 10000, "default"},
    {"{\"model_type\":\"glm4_moe\",\"hidden_size\":5120,\"num_attention_heads\":96,\"head_dim\":128,\"rope_theta\":1000000}",
     "all", 128, 64, 0, "half", 1000000, "default"},
    {"{\"model_type\":\"minimax_m2\",\"head_dim\":128,\"num_attention_heads\":48,\"rotary_dim\":64,\"rope_theta\":5000000}",
     "all", 128, 64, 0, "half", 5000000, "default"},
    {"{\"model_type\":\"qwen3_next\",\"num_hidden_layers\":4,\"hidden_size\":2048,\"num_attention_heads\":16,\"head_dim\":256,\"rope_theta\":10000000}",
     "full_attention", 256, 64, 0, "half", 10000000, "default"},
    {"{\"model_type\":\"gemma3_text\",\"num_hidden_layers\":6,\"hidden_size\":1152,\"num_attention_heads\":4}",
     "full_attention", 256, 256, 0, "half", 1000000, "default"},
    {"{\"model_type\":\"gemma3_text\",\"num_hidden_layers\":6,\"hidden_size\":1152,\"num_attention_heads\":4,"
     "\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8}}",
     "sliding_attention", 256, 256, 0, "half", 10000, "default"},
    {"{\"model_type\":\"gemma3_text\",\"num_hidden_layers\":6,\"hidden_size\":1152,\"num_attention_heads\":4,"
     "\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8}}",
     "full_attention", 256, 256, 0, "half", 1000000, "linear"},
    {"{\"model_type\":\"laguna\",\"num_hidden_layers\":4}", "full_attention", 128, 64, 0, "half",
     500000, "default"},
    {"{\"model_type\":\"laguna\",\"num_hidden_layers\":2,\"layer_types\":[\"sliding_attention\",\"sliding_attention\"],"
     "\"rope_parameters\":{\"full_attention\":{\"rope_theta\":7},\"sliding_attention\":{\"rope_theta\":77}}}",
     "sliding_attention", 128, 128, 0, "half", 77, "default"},
    {"{\"model_type\":\"zaya\",\"num_hidden_layers\":4}", "hybrid", 128, 64, 0, "half", 5000000,
     "default"},
    {"{\"model_type\":\"gemma4_text\",\"num_hidden_layers\":6,\"hidden_size\":1536,\"num_attention_heads\":8}",
     "full_attention", 512, 512, 0, "half", 1000000, "proportional"},
    {"{\"model_type\":\"mimo_v2_flash\",\"num_hidden_layers\":6,\"num_attention_heads\":64,\"head_dim\":192,\"swa_rope_theta\":10000,\"rope_theta\":5000000}",
     "sliding_attention", 192, 64, 0, "half", 10000, "default"},
    {"{\"model_type\":\"dots3_note_text\",\"num_hidden_layers\":4,\"rope_theta\":90000}",
     "sliding_attention", 256, 64, 192, "interleaved", 50000, "default"},
    {"{\"model_type\":\"dots3_note_text\",\"num_hidden_layers\":4,\"rope_theta\":90000}",
     "indexed_attention", 192, 64, 128, "interleaved", 90000, "default"},
    {"{\"model_type\":\"molmo2_text\",\"num_hidden_layers\":3,\"rope_scaling_layers\":[1],"
     "\"rope_parameters\":{\"rope_type\":\"linear\",\"rope_theta\":7,\"factor\":8}}",
     "unscaled", 128, 128, 0, "half", 7, "default"},
    {"{\"model_type\":\"molmo2_text\",\"num_hidden_layers\":3,\"rope_scaling_layers\":[1],"
     "\"rope_parameters\":{\"rope_type\":\"linear\",\"rope_theta\":7,\"factor\":8}}",
     "scaled", 128, 128, 0, "half", 7, "linear"},
    {"{\"model_type\":\"deepseek_v4\",\"num_hidden_layers\":4}", "heavily_compressed_attention",
     512, 64, 448, "interleaved", 160000, "default"},
    {"{\"model_type\":\"deepseek_v4\",\"num_hidden_layers\":4,\"num_attention_heads\":64,\"head_dim\":512,\"qk_rope_head_dim\":64,"
     "\"max_position_embeddings\":1048576,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":16,\"original_max_position_embeddings\":65536}}",
     "compressed_sparse_attention", 512, 64, 448, "interleaved", 160000, "yarn"},
    {"{\"model_type\":\"apertus\",\"hidden_size\":4096,\"num_attention_heads\":32}", "all", 128,
     128, 0, "half", 12000000, "llama3"},
    {"{\"model_type\":\"qwen2_vl\",\"hidden_size\":1536,\"num_attention_heads\":12,\"vision_config\":{\"depth\":32}}",
     "all", 128, 128, 0, "half", 1000000, "default"},
    {"{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"mistral\",\"hidden_size\":4096,\"num_attention_heads\":32,\"rope_theta\":7}}",
     "all", 128, 128, 0, "half", 7, "default"},
    {"{\"model_type\":\"qwen2_5_omni\",\"thinker_config\":{\"text_config\":{\"model_type\":\"qwen2_5_omni_text\",\"hidden_size\":3584,\"num_attention_heads\":28}}}",
     "all", 128, 128, 0, "half", 1000000, "default"},
    {"{\"dim\":4096,\"n_layers\":32,\"n_heads\":32,\"n_kv_heads\":8,\"rope_theta\":500000.0,\"use_scaled_rope\":true}",
     "all", 128, 128, 0, "interleaved", 500000, "llama3"},
    {"{\"dim\":5120,\"n_layers\":40,\"head_dim\":128,\"n_heads\":32,\"rope_theta\":1000000000.0,\"yarn\":{\"factor\":36,\"beta\":32,"
     "\"alpha\":1,\"original_max_position_embeddings\":8192,\"apply_scale\":false}}",
     "all", 128, 128, 0, "interleaved", 1e9, "yarn"},
    {"{\"dim\":7168,\"n_layers\":61,\"n_heads\":128,\"qk_rope_head_dim\":64,\"qk_nope_head_dim\":128,\"rope_theta\":10000}",
     "all", 192, 64, 128, "interleaved", 10000, "default"},
    {"{\"dim\":4096,\"n_layers\":32,\"n_heads\":32,\"n_kv_heads\":8,\"rope_theta\":500000.0,\"model_type\":\"llama\"}",
     "all", 128, 128, 0, "half", 500000, "default"},
};

static void specs_of_released_models(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        const spec_case *c = &specs[i];
        posenc_model *model = model_of(c->json);
        const posenc_layer_type *type = type_of(model, c->type);
        const posenc_spec *s = &type->spec;
        if (type->invalid)
            fail_msg("%s: %s", c->json, type->invalid);
        if (s->head_dim != c->head_dim || s->rotary_dim != c->rotary_dim ||
            s->rotary_start != c->rotary_start || s->base != c->base ||
            strcmp(posenc_pairing_name(s->pairing), c->pairing) != 0 ||
            strcmp(posenc_scaling_name(s->scaling->type), c->scaling) != 0)
            fail_msg("%s: %zu %zu %zu %s %g %s", c->json, s->head_dim, s->rotary_dim,
                     s->rotary_start, posenc_pairing_name(s->pairing), s->base,
                     posenc_scaling_name(s->scaling->type));
        posenc_model_free(model);
    }
}

/* Numbers that public reports of faults give (gpt-oss, DeepSeek-V3, HunYuan). */
static double inv_freq_of(const posenc_layer_type *type, size_t pair, double *factor,
                          double *softmax) {
    posenc_frequencies *frequencies;
    posenc_error error;
    assert_int_equal(posenc_frequencies_create(&type->spec, 8192, &frequencies, NULL, &error), 0);
    double inv_freq = posenc_frequencies_inv_freq(frequencies, pair, POSENC_MODE_EXACT);
    *factor = posenc_frequencies_attention_factor(frequencies, POSENC_MODE_EXACT);
    *softmax = posenc_frequencies_softmax_factor(frequencies);
    posenc_frequencies_destroy(frequencies);
    return inv_freq;
}

static void frequencies_that_reports_give(void **state) {
    (void)state;
    double factor, softmax;
    posenc_model *model = model_of("{\"model_type\":\"gpt_oss\",\"num_hidden_layers\":2}");
    assert_true(fabs(inv_freq_of(type_of(model, "all"), 9, &factor, &softmax) - 0.0317056962) <
                1e-9);
    assert_true(fabs(factor - 1.346574) < 1e-6);
    posenc_model_free(model);
    model = model_of(
        "{\"model_type\":\"deepseek_v3\",\"max_position_embeddings\":163840,\"rope_scaling\":"
        "{\"type\":\"yarn\",\"factor\":40,\"mscale\":1.0,\"mscale_all_dim\":1.0,"
        "\"original_max_position_embeddings\":4096}}");
    inv_freq_of(type_of(model, "all"), 0, &factor, &softmax);
    assert_true(factor == 1.0 && fabs(softmax - 1.8738542071) < 1e-9);
    assert_true(type_of(model, "all")->softmax_factor && type_of(model, "all")->output_half);
    posenc_model_free(model);
    model =
        model_of("{\"model_type\":\"hunyuan_v1_dense\",\"head_dim\":128,\"num_attention_heads\":32,"
                 "\"rope_scaling\":{\"type\":\"dynamic\",\"alpha\":1000,\"factor\":1.0}}");
    double inv_freq = inv_freq_of(type_of(model, "all"), 1, &factor, &softmax);
    assert_true(fabs(pow(inv_freq, -64.0) / 11158839.92507748 - 1.0) < 1e-12);
    posenc_model_free(model);
}

/* ---- Kinds and where values are from ---- */

static void kinds(void **state) {
    (void)state;
    static const struct {
        const char *json;
        posenc_encoding_kind kind;
    } cases[] = {
        {"{\"model_type\":\"bloom\"}", POSENC_ENCODING_ALIBI},
        {"{\"model_type\":\"falcon\"}", POSENC_ENCODING_ROPE},
        {"{\"model_type\":\"falcon\",\"alibi\":true}", POSENC_ENCODING_ALIBI},
        {"{\"model_type\":\"mpt\"}", POSENC_ENCODING_ALIBI},
        {"{\"model_type\":\"mpt\",\"attn_config\":{\"alibi\":false}}", POSENC_ENCODING_LEARNED},
        {"{\"model_type\":\"baichuan\",\"num_attention_heads\":40}", POSENC_ENCODING_ALIBI},
        {"{\"model_type\":\"baichuan\",\"num_attention_heads\":32}", POSENC_ENCODING_ROPE},
        {"{\"model_type\":\"esm\",\"position_embedding_type\":\"rotary\"}", POSENC_ENCODING_ROPE},
        {"{\"model_type\":\"esm\",\"position_embedding_type\":\"absolute\"}",
         POSENC_ENCODING_LEARNED},
        {"{\"model_type\":\"bert\"}", POSENC_ENCODING_LEARNED},
        {"{\"model_type\":\"bert\",\"position_embedding_type\":\"relative_key\"}",
         POSENC_ENCODING_RELATIVE},
        {"{\"model_type\":\"bert\",\"position_embedding_type\":\"alibi\"}", POSENC_ENCODING_ALIBI},
        {"{\"model_type\":\"granitemoehybrid\",\"position_embedding_type\":\"rope\"}",
         POSENC_ENCODING_ROPE},
        {"{\"model_type\":\"granitemoehybrid\",\"position_embedding_type\":null}",
         POSENC_ENCODING_NONE},
        {"{\"model_type\":\"t5\"}", POSENC_ENCODING_RELATIVE},
        {"{\"model_type\":\"deberta-v2\"}", POSENC_ENCODING_RELATIVE},
        {"{\"model_type\":\"swin\"}", POSENC_ENCODING_RELATIVE},
        {"{\"model_type\":\"marian\"}", POSENC_ENCODING_SINUSOIDAL},
        {"{\"model_type\":\"wav2vec2\"}", POSENC_ENCODING_OTHER},
        {"{\"model_type\":\"mamba2\"}", POSENC_ENCODING_NONE},
        {"{\"model_type\":\"nobody knows\"}", POSENC_ENCODING_UNKNOWN},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        posenc_model *model = model_of(cases[i].json);
        const posenc_layer_type *type = posenc_model_layer_type(model, 0);
        if (type->kind != cases[i].kind)
            fail_msg("%s is %s, not %s", cases[i].json, posenc_encoding_name(type->kind),
                     posenc_encoding_name(cases[i].kind));
        posenc_model_free(model);
    }
}

static const posenc_model_value *value_of(const posenc_layer_type *type, const char *name) {
    for (size_t i = 0; i < type->value_count; i++) {
        if (strcmp(type->values[i].name, name) == 0)
            return &type->values[i];
    }
    fail_msg("no value %s", name);
    return NULL;
}

static void every_value_says_where_it_is_from(void **state) {
    (void)state;
    posenc_model *model = model_of(
        "{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"gemma\",\"hidden_size\":64,"
        "\"num_attention_heads\":2,\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}}");
    const posenc_layer_type *type = type_of(model, "all");
    assert_string_equal(posenc_model_type(model), "gemma");
    assert_string_equal(value_of(type, "factor")->place, "text_config.rope_scaling.factor");
    assert_int_equal(value_of(type, "factor")->source, POSENC_SOURCE_FILE);
    assert_int_equal(value_of(type, "rope_theta")->source, POSENC_SOURCE_IMPLIED);
    assert_int_equal(value_of(type, "head_dim")->source, POSENC_SOURCE_IMPLIED);
    assert_true(value_of(type, "head_dim")->number.as.real == 256.0);
    assert_int_equal(value_of(type, "pairing")->source, POSENC_SOURCE_IMPLIED);
    posenc_model_free(model);
    model = model_of("{\"model_type\":\"what\",\"hidden_size\":64,\"num_attention_heads\":2}");
    type = type_of(model, "all");
    assert_null(posenc_model_rule(model));
    assert_int_equal(value_of(type, "rope_theta")->source, POSENC_SOURCE_DEFAULTED);
    assert_int_equal(type->spec.head_dim, 32);
    posenc_model_free(model);
}

/* ---- What is refused ---- */

static void bad_texts_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *json, *argument;
        posenc_status status;
    } cases[] = {
        {"{", "json", POSENC_FORMAT},
        {"[]", "json", POSENC_FORMAT},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":-1}", "num_hidden_layers",
         POSENC_OUT_OF_RANGE},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":1e9}", "num_hidden_layers",
         POSENC_OUT_OF_RANGE},
        {"{\"model_type\":\"llama\",\"num_hidden_layers\":[]}", "num_hidden_layers", POSENC_FORMAT},
        {"{\"model_type\":\"llama\",\"n_head\":2.5}", "n_head", POSENC_OUT_OF_RANGE},
        {"{\"model_type\":\"llama\",\"head_dim\":1e12}", "head_dim", POSENC_OUT_OF_RANGE},
        {"{\"model_type\":\"llama\",\"head_dim\":NaN}", "head_dim", POSENC_OUT_OF_RANGE},
    };
    posenc_model *model;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        posenc_error error;
        posenc_status status =
            posenc_model_parse(cases[i].json, strlen(cases[i].json), NULL, &model, &error);
        if (status != cases[i].status)
            fail_msg("%s: %s", cases[i].json, posenc_status_name(status));
        assert_null(model);
        if (strcmp(cases[i].argument, "json") != 0)
            assert_string_equal(error.argument, cases[i].argument);
    }
    assert_int_equal(posenc_model_parse(NULL, 0, NULL, &model, NULL), POSENC_NULL_POINTER);
    assert_int_equal(posenc_model_parse("{}", 2, NULL, NULL, NULL), POSENC_NULL_POINTER);
    assert_int_equal(posenc_model_open(NULL, &model, NULL), POSENC_NULL_POINTER);
    assert_int_equal(posenc_model_open("/nowhere/at/all", &model, NULL), POSENC_IO);
}

/* What the file does wrong in its encoding is no error of reading: the type says it. */
static void a_wrong_encoding_is_told_by_its_type(void **state) {
    (void)state;
    static const char *const cases[] = {
        "{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"zigzag\"}}",
        "{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"yarn\"}}",
        "{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":\"x\"}}",
        "{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":[2]}}",
        "{\"model_type\":\"llama\",\"rope_theta\":-1}",
        "{\"model_type\":\"llama\",\"rope_theta\":\"x\"}",
        "{\"model_type\":\"llama\",\"head_dim\":7}",
        "{\"model_type\":\"gptj\",\"n_embd\":64,\"n_head\":4,\"rotary_dim\":64}",
        "{\"model_type\":\"phi\",\"partial_rotary_factor\":-0.5}",
        "{\"model_type\":\"phi\",\"partial_rotary_factor\":1.5}",
        "{\"model_type\":\"zorblax\"}",
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        posenc_model *model = model_of(cases[i]);
        const posenc_layer_type *type = posenc_model_layer_type(model, 0);
        if (!type->invalid || type->spec.head_dim)
            fail_msg("%s has a spec", cases[i]);
        posenc_model_free(model);
    }
}

/* Objects and lists in place of anything: nothing is read beyond its type. */
static void wrong_types_anywhere(void **state) {
    (void)state;
    static const char *const keys[] = {
        "model_type",
        "architectures",
        "text_config",
        "rope_scaling",
        "rope_parameters",
        "rope_theta",
        "layer_types",
        "no_rope_layers",
        "layer_rope_theta",
        "rope_interleave",
        "head_dim",
        "num_hidden_layers",
        "sliding_window_pattern",
        "attn_config",
        "rotary",
        "original_max_position_embeddings",
        "mrope_section",
        "partial_rotary_factor",
        "compress_ratios",
        "attn_layer_indices",
    };
    static const char *const values[] = {"null",
                                         "true",
                                         "0",
                                         "-1",
                                         "1e300",
                                         "NaN",
                                         "\"x\"",
                                         "\"\"",
                                         "[]",
                                         "{}",
                                         "[[]]",
                                         "[null]",
                                         "[\"a\",1]",
                                         "{\"type\":{}}",
                                         "{\"rope_type\":[]}",
                                         "{\"full_attention\":null}",
                                         "{\"full_attention\":{\"rope_theta\":[]}}"};
    static const char *const types[] = {"llama",       "gemma3_text", "qwen2_vl", "smollm3",
                                        "deepseek_v4", "granite_swa", "bamba",    "chatglm",
                                        "internlm",    "nowhere"};
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        for (size_t k = 0; k < COUNT_OF(keys); k++) {
            for (size_t v = 0; v < COUNT_OF(values); v++) {
                char json[512];
                snprintf(json, sizeof json,
                         "{\"model_type\":\"%s\",\"hidden_size\":64,\"num_hidden_layers\":3,"
                         "\"num_attention_heads\":2,\"%s\":%s}",
                         types[t], keys[k], values[v]);
                if (strcmp(keys[k], "model_type") == 0 || strcmp(keys[k], "num_hidden_layers") == 0)
                    snprintf(json, sizeof json, "{\"hidden_size\":64,\"%s\":%s}", keys[k],
                             values[v]);
                posenc_model *model;
                if (!posenc_model_parse(json, strlen(json), NULL, &model, NULL))
                    posenc_model_free(model);
            }
        }
    }
}

/* transformers' RMSNorm of these models multiplies by 1 + weight; GGUF files have the 1 in them. */
static void norms_with_a_weight_less_one_are_told(void **state) {
    (void)state;
    static const struct {
        const char *json;
        int plus_one;
    } known[] = {{"{\"model_type\":\"gemma3_text\",\"num_hidden_layers\":2}", 1},
                 {"{\"model_type\":\"qwen3_next\",\"num_hidden_layers\":4}", 1},
                 {"{\"model_type\":\"qwen3\",\"num_hidden_layers\":2}", 0},
                 {"{\"model_type\":\"gemma3n_text\",\"num_hidden_layers\":2}", 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        posenc_model *model = model_of(known[i].json);
        for (size_t t = 0; t < posenc_model_layer_type_count(model); t++) {
            const posenc_layer_type *type = posenc_model_layer_type(model, t);
            assert_int_equal(type->norm_plus_one,
                             type->kind == POSENC_ENCODING_ROPE && known[i].plus_one);
        }
        posenc_model_free(model);
    }
}

/* MiMo-V2-Flash: sliding layers have twice the heads of k. */
static void sliding_layers_have_heads_of_their_own(void **state) {
    (void)state;
    posenc_model *model = model_of(
        "{\"model_type\":\"mimo_v2_flash\",\"num_hidden_layers\":6,\"num_attention_heads\":64,"
        "\"num_key_value_heads\":4,\"swa_num_attention_heads\":32,\"swa_num_key_value_heads\":8}");
    const posenc_layer_type *full = type_of(model, "full_attention");
    const posenc_layer_type *sliding = type_of(model, "sliding_attention");
    assert_int_equal(full->heads, 64);
    assert_int_equal(full->kv_heads, 4);
    assert_int_equal(sliding->heads, 32);
    assert_int_equal(sliding->kv_heads, 8);
    posenc_model_free(model);
}

/* Qwen3-VL's usual sections beside a head of 17 pairs: as transformers' slices h = 1, 4, ... and w = 2, 5, ... take them. */
static void interleaved_sections_fit_a_narrow_head(void **state) {
    (void)state;
    posenc_model *model = model_of("{\"model_type\":\"qwen3_vl_text\",\"head_dim\":34}");
    const posenc_axes *axes = type_of(model, "all")->spec.axes;
    assert_non_null(axes);
    assert_int_equal(axes->sections[0], 6);
    assert_int_equal(axes->sections[1], 6);
    assert_int_equal(axes->sections[2], 5);
    posenc_model_free(model);
}

static void pairs_alternate_between_rows_and_columns(void **state) {
    (void)state;
    posenc_model *model = model_of("{\"model_type\":\"neomme\",\"num_hidden_layers\":2}");
    const posenc_axes *axes = type_of(model, "sliding_attention")->spec.axes;
    assert_non_null(axes);
    assert_int_equal(axes->count, 2);
    assert_int_equal(axes->order, POSENC_AXES_ALTERNATING);
    assert_int_equal(axes->exponents, POSENC_EXPONENTS_WHOLE);
    posenc_model_free(model);
}

/* "NAME RULE KIND" or "NAME: why it is unread" of every part. */
static void parts_text(const posenc_model *model, char *text, size_t capacity) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < posenc_model_part_count(model); i++) {
        const posenc_model_part *part = posenc_model_part_at(model, i);
        assert_true(!part->model == (part->unread != NULL));
        if (part->model)
            used += (size_t)snprintf(
                text + used, capacity - used, "%s %s %s; ", part->name,
                posenc_model_rule(part->model),
                posenc_encoding_name(posenc_model_layer_type(part->model, 0)->kind));
        else
            used += (size_t)snprintf(text + used, capacity - used, "%s: %s; ", part->name,
                                     part->unread);
    }
    assert_null(posenc_model_part_at(model, posenc_model_part_count(model)));
}

static void other_parts_are_told(void **state) {
    (void)state;
#define TEXT                                                                                       \
    "\"text_config\":{\"model_type\":\"qwen2\",\"hidden_size\":64,\"num_attention_heads\":2}"
    static const struct {
        const char *json, *parts;
    } cases[] = {
        {"{\"model_type\":\"llama\",\"quantization_config\":{\"model_type\":\"clip_vision_model\"}}",
         ""},
        {"{\"model_type\":\"qwen2_vl\",\"hidden_size\":64,\"vision_config\":{\"depth\":3,\"embed_dim\":1280}}",
         "vision_config qwen2_vl_vision rope; "},
        {"{\"model_type\":\"qwen3_vl\"," TEXT ",\"vision_config\":{\"model_type\":\"qwen3_vl\"}}",
         "vision_config qwen3_vl_vision rope; "},
        {"{\"model_type\":\"gemma4\",\"audio_config\":{\"model_type\":\"qwen2_audio_encoder\"}," TEXT
         ",\"vision_config\":{\"model_type\":\"siglip\"}}",
         "audio_config qwen2_audio_encoder learned; vision_config siglip_vision_model learned; "},
        {"{\"model_type\":\"internvl_chat\"," TEXT
         ",\"vision_config\":{\"model_type\":\"intern_vit_6b\"}}",
         "vision_config: no rule knows its model type intern_vit_6b; "},
        {"{\"model_type\":\"zorblax\"," TEXT ",\"vision_config\":{}}",
         "vision_config: no rule knows it: it has no model_type; "},
        {"{\"model_type\":\"llava\"," TEXT ",\"mm_vision_tower\":\"openai/clip\"}",
         "mm_vision_tower: it is a model of its own: openai/clip; "},
        {"{\"model_type\":\"qwen2_5_omni\",\"thinker_config\":{" TEXT
         ",\"audio_config\":{\"model_type\":\"qwen2_audio_encoder\"}},"
         "\"other_config\":{\"model_type\":\"qwen2\"},\"slice_config\":{\"model_type\":\"qwen2_5_omni\"}}",
         "other_config qwen2 rope; thinker_config.audio_config qwen2_audio_encoder learned; "},
        {"{\"model_type\":\"qwen2_vl\",\"hidden_size\":64,\"vision_config\":{\"num_heads\":-1}}",
         "vision_config: num_heads must be a whole number from 0 to 2^40; "},
    };
#undef TEXT
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[500];
        posenc_model *model = model_of(cases[i].json);
        parts_text(model, text, sizeof text);
        if (strcmp(text, cases[i].parts) != 0)
            fail_msg("%s\ngives %s\nnot   %s", cases[i].json, text, cases[i].parts);
        posenc_model_free(model);
    }
}

static void parts_are_found_by_name(void **state) {
    (void)state;
    posenc_model *model = model_of(
        "{\"model_type\":\"qwen2_5_omni\",\"thinker_config\":{\"text_config\":{\"model_type\":"
        "\"qwen2_5_omni_text\"},\"audio_config\":{},\"vision_config\":{}},\"vision_config\":{},"
        "\"talker_config\":{\"vision_config\":{}}}");
    size_t count = posenc_model_part_count(model);
    assert_true(count >= 3);
    for (size_t i = 0; i < count; i++) {
        const posenc_model_part *part = posenc_model_part_at(model, i);
        assert_ptr_equal(posenc_model_part_named(model, part->name), part);
    }
    const posenc_model_part *audio = posenc_model_part_named(model, "audio_config");
    assert_non_null(audio);
    assert_string_equal(audio->name, "thinker_config.audio_config");
    /* whole names come first */
    assert_string_equal(posenc_model_part_named(model, "vision_config")->name, "vision_config");
    assert_null(posenc_model_part_named(model, "config"));
    assert_null(posenc_model_part_named(model, ""));
    assert_null(posenc_model_part_named(model, NULL));
    posenc_model_free(model);
    /* two end so, and none is called so */
    model =
        model_of("{\"model_type\":\"qwen2_5_omni\",\"thinker_config\":{\"vision_config\":{},"
                 "\"text_config\":{\"model_type\":\"qwen2_5_omni_text\",\"vision_config\":{}}}}");
    assert_int_equal(posenc_model_part_count(model), 2);
    assert_null(posenc_model_part_named(model, "vision_config"));
    assert_non_null(posenc_model_part_named(model, "thinker_config.vision_config"));
    posenc_model_free(model);
}

/* Qwen2-VL's tower: heads of 1280 / 16 channels, half of the pairs for rows and half for columns. */
static void a_part_has_a_spec(void **state) {
    (void)state;
    posenc_model *model = model_of(
        "{\"model_type\":\"qwen2_vl\",\"hidden_size\":64,\"num_attention_heads\":2,"
        "\"vision_config\":{\"depth\":3,\"embed_dim\":1280,\"num_heads\":16,\"hidden_size\":1536}}");
    const posenc_model *tower = posenc_model_part_at(model, 0)->model;
    const posenc_layer_type *type = posenc_model_layer_type(tower, 0);
    assert_int_equal(posenc_model_layer_count(tower), 3);
    assert_int_equal(type->spec.head_dim, 80);
    assert_int_equal(type->spec.axes->count, 2);
    assert_int_equal(type->spec.axes->sections[0], 20);
    assert_int_equal(posenc_model_part_count(tower), 0);
    assert_int_equal(posenc_model_warning_count(tower), 0);
    for (size_t i = 0; i < type->value_count; i++) {
        if (strcmp(type->values[i].name, "heads") == 0)
            assert_string_equal(type->values[i].place, "vision_config.num_heads");
    }
    posenc_model_free(model);
}

static const double two_pi = 6.283185307179586477;

/* Two pairs of base 10000 and a trained length between their turns; frequencies are 1 and 1/100. */
static void facts_of_two_pairs(void **state) {
    (void)state;
    posenc_model *model = model_of(
        "{\"model_type\":\"llama\",\"head_dim\":4,\"num_attention_heads\":1,\"rope_theta\":10000,"
        "\"max_position_embeddings\":800,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,"
        "\"original_max_position_embeddings\":400}}");
    posenc_layer_type type = *type_of(model, "all");
    posenc_frequencies *frequencies;
    posenc_layer_facts facts = POSENC_LAYER_FACTS_INIT;
    posenc_error error;
    posenc_scaling none = *type.spec.scaling;
    none.type = POSENC_SCALING_DEFAULT;
    posenc_spec plain = {.size = sizeof plain, .head_dim = 4, .pairing = POSENC_PAIRING_HALF};
    assert_int_equal(posenc_frequencies_create(&plain, 1, &frequencies, NULL, &error), POSENC_OK);
    type.spec.scaling = &none;
    assert_int_equal(posenc_layer_facts_of(&type, frequencies, &facts, &error), POSENC_OK);
    assert_int_equal(facts.pairs, 2);
    assert_int_equal(facts.trained_positions, 400);
    assert_true(facts.shortest_wavelength == two_pi);
    assert_true(fabs(facts.longest_wavelength - 100 * two_pi) < 1e-9);
    assert_int_equal(facts.pairs_still, 0);
    assert_int_equal(facts.pairs_below_one_turn, 1); /* 628 positions */
    posenc_layer_facts before = facts;
    assert_int_equal(posenc_layer_facts_of(NULL, frequencies, &facts, &error), POSENC_NULL_POINTER);
    assert_int_equal(posenc_layer_facts_of(&type, NULL, &facts, &error), POSENC_NULL_POINTER);
    assert_int_equal(posenc_layer_facts_of(&type, frequencies, NULL, &error), POSENC_NULL_POINTER);
    facts.size = 0;
    assert_int_equal(posenc_layer_facts_of(&type, frequencies, &facts, &error),
                     POSENC_OUT_OF_RANGE);
    before.size = 0;
    assert_memory_equal(&before, &facts, sizeof facts);
    posenc_frequencies_destroy(frequencies);
    posenc_model_free(model);
}

/* A pair that stands still counts apart; nothing is said of turns where no length is known. */
static void facts_of_a_still_pair(void **state) {
    (void)state;
    static const double inv_freq[] = {0.5, 0.0};
    posenc_scaling custom = {.size = sizeof custom,
                             .type = POSENC_SCALING_CUSTOM,
                             .inv_freq = inv_freq,
                             .inv_freq_dtype = POSENC_F64,
                             .inv_freq_count = 2};
    posenc_layer_type type = {.kind = POSENC_ENCODING_ROPE};
    posenc_frequencies *frequencies;
    posenc_layer_facts facts = POSENC_LAYER_FACTS_INIT;
    posenc_error error;
    type.spec = (posenc_spec){.size = sizeof type.spec,
                              .head_dim = 4,
                              .pairing = POSENC_PAIRING_HALF,
                              .scaling = &custom};
    assert_int_equal(posenc_frequencies_create(&type.spec, 1, &frequencies, NULL, &error),
                     POSENC_OK);
    assert_int_equal(posenc_layer_facts_of(&type, frequencies, &facts, &error), POSENC_OK);
    assert_int_equal(facts.pairs_still, 1);
    assert_int_equal(facts.pairs_below_one_turn, 0);
    assert_int_equal(facts.trained_positions, 0);
    assert_true(facts.shortest_wavelength == 2 * two_pi);
    assert_true(facts.longest_wavelength == 2 * two_pi);
    assert_int_equal(facts.float32_visible_in_f16,
                     -1); /* halves of positions below 2^18 are exact */
    assert_int_equal(facts.float32_visible_in_bf16, -1);
    posenc_frequencies_destroy(frequencies);
}

/* The first position below `most` where an angle formed in float32 moves cos or sin by more than `limit`; -1. */
static int64_t first_visible(double inv_freq, double limit, int64_t most) {
    for (int64_t position = 0; position < most; position++) {
        double exact = (double)position * inv_freq;
        double rounded = (double)((float)position * (float)inv_freq);
        if (fabs(cos(exact) - cos(rounded)) > limit || fabs(sin(exact) - sin(rounded)) > limit)
            return position;
    }
    return -1;
}

static void float32_angles_show_where_they_do(void **state) {
    (void)state;
    static const double inv_freq[] = {0.1, 0.75, 1.0 / 3.0};
    for (size_t i = 0; i < COUNT_OF(inv_freq); i++) {
        posenc_scaling custom = {.size = sizeof custom,
                                 .type = POSENC_SCALING_CUSTOM,
                                 .inv_freq = &inv_freq[i],
                                 .inv_freq_dtype = POSENC_F64,
                                 .inv_freq_count = 1};
        posenc_layer_type type = {.kind = POSENC_ENCODING_ROPE};
        posenc_frequencies *frequencies;
        posenc_layer_facts facts = POSENC_LAYER_FACTS_INIT;
        posenc_error error;
        type.spec = (posenc_spec){.size = sizeof type.spec, .head_dim = 2, .scaling = &custom};
        assert_int_equal(posenc_frequencies_create(&type.spec, 1, &frequencies, NULL, &error),
                         POSENC_OK);
        assert_int_equal(posenc_layer_facts_of(&type, frequencies, &facts, &error), POSENC_OK);
        assert_int_equal(facts.float32_visible_in_f16,
                         first_visible(inv_freq[i], 0x1p-12, POSENC_FACTS_LAST_POSITION));
        assert_int_equal(facts.float32_visible_in_bf16,
                         first_visible(inv_freq[i], 0x1p-9, POSENC_FACTS_LAST_POSITION));
        posenc_frequencies_destroy(frequencies);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_by_pattern_and_by_list),
        cmocka_unit_test(specs_of_released_models),
        cmocka_unit_test(frequencies_that_reports_give),
        cmocka_unit_test(kinds),
        cmocka_unit_test(every_value_says_where_it_is_from),
        cmocka_unit_test(bad_texts_are_refused),
        cmocka_unit_test(a_wrong_encoding_is_told_by_its_type),
        cmocka_unit_test(wrong_types_anywhere),
        cmocka_unit_test(norms_with_a_weight_less_one_are_told),
        cmocka_unit_test(sliding_layers_have_heads_of_their_own),
        cmocka_unit_test(interleaved_sections_fit_a_narrow_head),
        cmocka_unit_test(pairs_alternate_between_rows_and_columns),
        cmocka_unit_test(other_parts_are_told),
        cmocka_unit_test(parts_are_found_by_name),
        cmocka_unit_test(a_part_has_a_spec),
        cmocka_unit_test(facts_of_two_pairs),
        cmocka_unit_test(facts_of_a_still_pair),
        cmocka_unit_test(float32_angles_show_where_they_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
