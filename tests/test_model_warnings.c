/* Every warning of a model: a file without faults, broken in one way at a time. SPDX-License-Identifier: MIT */
#include "model/model_warning_list.h"

#include "model_cases.h"

/* Files that nothing is wrong with; the rest of a case stands behind them. */
#define DIMS "\"num_hidden_layers\":4,\"hidden_size\":512,\"num_attention_heads\":8"
#define LLAMA                                                                                      \
    "{\"model_type\":\"llama\"," DIMS ",\"max_position_embeddings\":4096,\"rope_theta\":10000"
#define LONG(type)                                                                                 \
    "{\"model_type\":\"" type "\"," DIMS ",\"max_position_embeddings\":16384,\"rope_theta\":10000"
#define YARN "\"rope_type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":4096"
#define MLA                                                                                        \
    "{\"model_type\":\"deepseek_v3\"," DIMS ",\"qk_nope_head_dim\":32,\"qk_rope_head_dim\":16,"    \
    "\"max_position_embeddings\":16384,\"rope_theta\":10000"
#define LIST16 "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"
#define VL                                                                                         \
    "{\"model_type\":\"qwen2_vl\"," DIMS ",\"max_position_embeddings\":4096,\"rope_theta\":1000000"

static const struct {
    const char *json, *codes;
} cases[] = {
    /* nothing wrong */
    {LLAMA "}", ""},
    {LLAMA ",\"rope_scaling\":null}", ""},
    {LLAMA ",\"rope_scaling\":{}}", ""},
    {LLAMA ",\"rope_scaling\":false}", ""},
    {LLAMA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}", ""},
    {LLAMA ",\"rope_scaling\":{\"type\":\"linear\",\"rope_type\":\"linear\",\"factor\":2.0}}", ""},
    {LLAMA ",\"head_dim\":64,\"n_layers\":4}", ""},
    {VL ",\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[8,12,12]}}", ""},
    {VL
     ",\"rope_scaling\":{\"type\":\"mrope\",\"rope_type\":\"default\",\"mrope_section\":[8,12,12]}}",
     ""},
    {"{\"model_type\":\"gpt2\",\"n_embd\":768,\"n_head\":12,\"n_layer\":12}", ""},
    {"{\"model_type\":\"t5\",\"d_model\":512,\"num_heads\":8,\"relative_attention_num_buckets\":32}",
     ""},

    /* the model type */
    {"{\"model_type\":\"zorblax\"," DIMS ",\"rope_theta\":10000}", "unknown-model-type"},
    {"{" DIMS ",\"rope_theta\":10000}", "unknown-model-type"},
    {"{\"architectures\":[\"LlamaForCausalLM\"]," DIMS ",\"rope_theta\":10000}",
     "model-type-missing"},
    {"{\"model_type\":\"new\"," DIMS ",\"rope_theta\":10000,\"position_embedding_type\":\"rope\","
     "\"rope_scaling\":{\"type\":\"ntk\",\"factor\":8}}",
     "no-valid-spec"},
    {LLAMA ",\"head_dim\":63}", "head-dim-differs no-valid-spec"},
    {"{\"model_type\":\"llama\",\"num_attention_heads\":0,\"rope_theta\":10000}", "no-valid-spec"},

    /* contradictions */
    {LLAMA ",\"rope_scaling\":{\"type\":\"dynamic\",\"rope_type\":\"linear\",\"factor\":2}}",
     "contradictory-type"},
    {LLAMA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},"
           "\"rope_parameters\":{\"type\":\"linear\",\"factor\":4}}",
     "contradictory-blocks"},
    {LLAMA ",\"n_layer\":5}", "contradictory-spellings"},
    {LLAMA ",\"rotary_emb_base\":500000}", "contradictory-spellings"},
    {LLAMA ",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":500000}}",
     "contradictory-theta"},
    {"{\"model_type\":\"phi\"," DIMS ",\"rope_theta\":10000,\"partial_rotary_factor\":0.5,"
     "\"rope_parameters\":{\"rope_type\":\"default\",\"partial_rotary_factor\":0.25}}",
     "contradictory-fraction"},
    {"{\"model_type\":\"minimax_m2\"," DIMS
     ",\"head_dim\":64,\"rope_theta\":5000000,\"rotary_dim\":32,"
     "\"partial_rotary_factor\":0.25}",
     "contradictory-fraction"},
    {LONG("llama") ",\"original_max_position_embeddings\":8192,\"rope_scaling\":{" YARN "}}",
     "contradictory-original-length factor-differs shift-magnitude"},
    {LLAMA ",\"head_dim\":128}", "head-dim-differs"},
    {"{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":516,\"num_attention_heads\":8,"
     "\"rope_theta\":10000}",
     "head-dim-differs"},

    /* what is missing */
    {"{\"model_type\":\"llama\"," DIMS ",\"max_position_embeddings\":131072}", "theta-missing"},
    {"{\"model_type\":\"mixtral\"," DIMS ",\"max_position_embeddings\":4096}", "theta-missing"},
    {"{\"model_type\":\"phi\"," DIMS ",\"rope_theta\":10000}", "fraction-missing"},
    {LLAMA ",\"rope_scaling\":{\"type\":\"linear\"}}", "factor-missing no-valid-spec"},
    {LONG("llama") ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}}",
     "original-length-missing shift-magnitude"},
    {VL "}", "sections-missing"},
    {"{\"model_type\":\"qwen3_vl_text\"," DIMS ",\"head_dim\":128,\"rope_theta\":10000}",
     "head-dim-differs sections-missing"},

    /* what is not used */
    {"{\"model_type\":\"gpt2\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}",
     "scaling-unread"},
    {LLAMA ",\"partial_rotary_factor\":0.5}", "partial-dropped"},
    {MLA ",\"partial_rotary_factor\":0.5}", "partial-dropped"},
    {LLAMA ",\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[8,12,12]}}",
     "sections-unread"},
    {LLAMA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2,\"fator\":4}}", "unread-key"},

    /* numbers */
    {LONG("llama") ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8,"
                   "\"original_max_position_embeddings\":4096}}",
     "factor-differs shift-magnitude"},
    {LLAMA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":0.5}}", "factor-below-1"},
    {LLAMA ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
           "\"high_freq_factor\":4,\"original_max_position_embeddings\":8192}}",
     "original-length-not-below"},
    {LONG(
         "llama") ",\"rope_scaling\":{\"rope_type\":\"longrope\",\"short_factor\":[1,1],\"long_factor\":[1,1],"
                  "\"original_max_position_embeddings\":4096}}",
     "factor-list-length no-valid-spec"},
    {VL ",\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[8,12,8]}}",
     "no-valid-spec section-sum"},
    {"{\"model_type\":\"qwen3_vl_text\"," DIMS ",\"head_dim\":64,\"rope_theta\":5000000,"
     "\"rope_scaling\":{\"mrope_section\":[24,20,20]}}",
     "section-sum"},
    {LLAMA ",\"layer_types\":[\"full_attention\",\"full_attention\"]}", "layer-list-length"},
    {"{\"model_type\":\"smollm3\"," DIMS ",\"rope_theta\":10000,\"no_rope_layers\":[1,1]}",
     "layer-list-length"},
    {LLAMA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":\"2\"}}", "number-in-string"},
    {LLAMA ",\"head_dim\":\"64\"}", "number-in-string"},
    {LLAMA ",\"n_layers\":\"4\",\"num_key_value_heads\":\"2\"}", "number-in-string"},
    {LLAMA ",\"rope_scaling\":[\"linear\",2]}", "wrong-kind"},
    {LLAMA ",\"rope_scaling\":\"linear\"}", "wrong-kind"},
    {LLAMA ",\"rope_scaling\":true}", "wrong-kind"},
    {LLAMA ",\"rope_parameters\":4}", "wrong-kind"},
    {LLAMA ",\"rope_scaling\":[],\"rope_parameters\":0,\"layer_types\":[]}", ""},
    {LLAMA ",\"layer_types\":\"full_attention\"}", "wrong-kind"},
    {LLAMA ",\"layer_types\":[1,1,0,1]}", "wrong-kind"},
    {LLAMA ",\"rope_scaling\":{\"factor\":2}}", "type-missing"},
    {LLAMA ",\"rope_scaling\":{\"type\":5,\"factor\":2}}", "type-missing"},
    {LLAMA ",\"rope_parameters\":{\"rope_theta\":10000,\"long_factor\":" LIST16
           ",\"short_factor\":" LIST16 "}}",
     "type-missing"},
    {"{\"model_type\":\"llama\"," DIMS ",\"rope_theta\":0}", "no-valid-spec"},
    {LONG("llama") ",\"rope_scaling\":{" YARN ",\"attention_factor\":0}}",
     "no-valid-spec own-attention-factor"},
    {LONG("llama") ",\"rope_scaling\":{" YARN ",\"beta_fast\":0,\"beta_slow\":0}}",
     "shift-magnitude"},
    {LLAMA ",\"rope_scaling\":\"{\\\"type\\\":\\\"linear\\\",\\\"factor\\\":2}\"}",
     "scaling-in-string"},
    {LONG("phi3") ",\"original_max_position_embeddings\":4096,\"rope_scaling\":{\"type\":\"su\","
                  "\"short_factor\":" LIST16 ",\"long_factor\":" LIST16 "}}",
     "legacy-type-name shift-magnitude two-frequency-lists"},
    {"{\"model_type\":\"hunyuan_v1_dense\"," DIMS ",\"head_dim\":64,\"rope_theta\":10000,"
     "\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":1.0,\"alpha\":1000}}",
     "alpha-beside-factor"},

    /* engines */
    {LONG("llama") ",\"rope_scaling\":{" YARN ",\"attention_factor\":1.2,\"mscale\":1.0}}",
     "magnitude-twice own-attention-factor shift-magnitude"},
    {MLA ",\"rope_scaling\":{" YARN ",\"mscale\":1.0,\"mscale_all_dim\":1.0}}", "softmax-factor"},
    {MLA ",\"rope_scaling\":{" YARN ",\"mscale_all_dim\":1.0}}",
     "magnitude-twice shift-magnitude softmax-factor"},
    {"{\"model_type\":\"llama\"," DIMS ",\"rope_parameters\":{\"rope_theta\":500000}}",
     "theta-inside-only"},
    {LONG("llama") ",\"rope_scaling\":{" YARN ",\"truncate\":false}}",
     "not-truncated shift-magnitude"},
    {LONG("llama") ",\"rope_scaling\":{" YARN ",\"attention_factor\":1.0}}",
     "own-attention-factor"},
    {LONG("llama") ",\"rope_scaling\":{" YARN ",\"beta_fast\":64}}", "own-betas shift-magnitude"},
    {LLAMA ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}}", "dynamic-base"},
    {LONG("llama") ",\"rope_scaling\":{" YARN "}}", "shift-magnitude"},
    {"{\"model_type\":\"nanochat\"," DIMS ",\"rope_theta\":10000}", "conjugate-turn"},
    {LLAMA ",\"partial_rotary_factor\":0.5,\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}",
     "llama-partial"},
    {"{\"model_type\":\"t5\",\"d_model\":512,\"num_heads\":8,\"relative_attention_max_distance\":256}",
     "bucket-distance"},
    {"{\"model_type\":\"xverse\"," DIMS ",\"num_key_value_heads\":2,\"rope_theta\":10000}",
     "grouped-permutation"},
};

static void one_fault_one_warning(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        posenc_model *model = model_of(cases[i].json);
        assert_warnings(model, cases[i].codes, cases[i].json);
        posenc_model_free(model);
    }
}

/* Every code of the list is provoked above or, where it needs a GGUF file, in test_model_gguf.c. */
static void every_code_is_provoked(void **state) {
    (void)state;
    static const char gguf_only[] = " freq-base-missing frequency-factors ";
#define CODE(name, fix) #name,
    static const char *const names[] = {PENC_WARNING_LIST(CODE, CODE, CODE)};
#undef CODE
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char code[64];
        int found = 0;
        snprintf(code, sizeof code, "%s", names[i]);
        for (char *at = code; *at; at++)
            *at = *at == '_' ? '-' : *at;
        for (size_t j = 0; j < COUNT_OF(cases) && !found; j++) {
            const char *at = strstr(cases[j].codes, code);
            found = at && (at[strlen(code)] == ' ' || !at[strlen(code)]);
        }
        if (!found && !strstr(gguf_only, code))
            fail_msg("%s is never provoked", code);
    }
}

static void a_warning_of_all_types_names_none(void **state) {
    (void)state;
    posenc_model *model = model_of(
        "{\"model_type\":\"gemma3_text\",\"num_hidden_layers\":12,\"hidden_size\":512,"
        "\"num_attention_heads\":8,\"head_dim\":128,\"rope_theta\":1000000,\"rope_local_base_freq\":10000}");
    assert_warnings(model, "head-dim-differs", "gemma 3");
    assert_int_equal(posenc_model_warning_count(model), 1);
    assert_null(posenc_model_warning_at(model, 0)->layer_type);
    assert_null(posenc_model_warning_at(model, 1));
    posenc_model_free(model);
    model = model_of("{\"model_type\":\"gemma3_text\",\"num_hidden_layers\":12,\"hidden_size\":512,"
                     "\"num_attention_heads\":8,\"head_dim\":64,\"rope_local_base_freq\":10000}");
    assert_warnings(model, "theta-missing", "gemma 3");
    assert_string_equal(posenc_model_warning_at(model, 0)->layer_type, "full_attention");
    posenc_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_fault_one_warning),
        cmocka_unit_test(every_code_is_provoked),
        cmocka_unit_test(a_warning_of_all_types_names_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
