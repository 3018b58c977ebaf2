/* GGUF metadata to specs: key by key, frequency tensors, what the architecture implies. SPDX-License-Identifier: MIT */
#include "gguf_cases.h"
#include "model_cases.h"

#include <math.h>

/* What a case leaves out is 0. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* A key for a file: text, else a float, else a whole number; keys without "general." get the architecture in front. */
typedef struct key {
    const char *name, *text;
    double real;
    uint32_t whole;
    size_t count; /* an array of int32 in `list`; 0: a single value */
    int32_t list[8];
} key;

enum { MAX_KEYS = 16 };

typedef struct vector {
    const char *name;
    size_t count;
    float numbers[8];
} vector;

typedef struct gguf_case {
    const char *architecture;
    key keys[MAX_KEYS];
    vector tensors[2];
    int big;
} gguf_case;

static void add_one_key(gguf_image *g, const char *architecture, const key *k) {
    char name[128];
    snprintf(name, sizeof name, "%s.%s", architecture, k->name);
    if (k->text)
        add_key_text(g, name, k->text);
    else if (k->count) {
        add_key(g, name, T_ARRAY);
        add_array(g, T_I32, k->count);
        for (size_t i = 0; i < k->count; i++)
            add_number(&g->f, (uint64_t)(uint32_t)k->list[i], 4);
    } else if (k->real != 0.0)
        add_key_number(g, name, T_F32, bits_of_float((float)k->real), 4);
    else
        add_key_number(g, name, T_U32, k->whole, 4);
}

static posenc_model *model_of_gguf(const gguf_case *c) {
    size_t keys = 0, tensors = 0;
    while (keys < MAX_KEYS && c->keys[keys].name)
        keys++;
    while (tensors < 2 && c->tensors[tensors].name)
        tensors++;
    gguf_image g = gguf_begin(3, c->big, tensors, keys + 1);
    add_key_text(&g, "general.architecture", c->architecture);
    for (size_t i = 0; i < keys; i++)
        add_one_key(&g, c->architecture, &c->keys[i]);
    for (size_t i = 0; i < tensors; i++) {
        uint64_t shape = c->tensors[i].count;
        add_tensor(&g, c->tensors[i].name, 1, &shape, 0, 32 * i);
    }
    pad_to(&g, 32);
    for (size_t i = 0; i < tensors; i++) {
        for (size_t j = 0; j < 8; j++)
            add_number(&g.f, j < c->tensors[i].count ? bits_of_float(c->tensors[i].numbers[j]) : 0,
                       4);
    }
    gguf_end(&g, "m.gguf");
    posenc_model *model;
    posenc_error error;
    if (posenc_model_open("m.gguf", &model, &error)) {
        char text[512];
        posenc_error_text(&error, text, sizeof text);
        fail_msg("%s", text);
    }
    return model;
}

#define HEADS                                                                                      \
    {"attention.head_count", .whole = 2}, {"embedding_length", .whole = 32}, {                     \
        "block_count", .whole = 4                                                                  \
    }
#define BASE                                                                                       \
    {"rope.freq_base", .real = 10000}, {                                                           \
        "context_length", .whole = 4096                                                            \
    }
#define YARN                                                                                       \
    {"rope.scaling.type", .text = "yarn"}, {"rope.scaling.factor", .real = 4}, {                   \
        "rope.scaling.original_context_length", .whole = 1024                                      \
    }

typedef struct expectation {
    gguf_case file;
    const char *type;
    posenc_encoding_kind kind;
    size_t head_dim, rotary_dim, rotary_start;
    posenc_pairing pairing;
    double base;
    const char *scaling, *warnings;
} expectation;

static const expectation expectations[] = {
    {{"llama", {HEADS, BASE}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "default",
     ""},
    {{"llama", {HEADS, BASE}, .big = 1},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "default",
     ""},
    {{"llama", {HEADS}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "default",
     "freq-base-missing"},
    {{"qwen2", {HEADS, {"rope.freq_base", .real = 1e6}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_HALF,
     1000000,
     "default",
     ""},
    {{"gptneox", {HEADS, BASE, {"rope.dimension_count", .whole = 4}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     4,
     0,
     POSENC_PAIRING_HALF,
     10000,
     "default",
     ""},
    {{"llama", {HEADS, BASE, {"rope.dimension_count", .whole = 8}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     8,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "default",
     "llama-partial"},
    {{"qwen3", {HEADS, BASE, {"attention.key_length", .whole = 64}}},
     "all",
     POSENC_ENCODING_ROPE,
     64,
     64,
     0,
     POSENC_PAIRING_HALF,
     10000,
     "default",
     "head-dim-differs"},
    {{"llama", {HEADS, BASE, {"rope.scaling.factor", .real = 4}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "linear",
     ""},
    {{"llama", {HEADS, BASE, {"rope.scale_linear", .real = 4}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "linear",
     ""},
    {{"llama",
      {HEADS, BASE, {"rope.scaling.type", .text = "none"}, {"rope.scaling.factor", .real = 4}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "default",
     ""},
    {{"llama", {HEADS, BASE, {"rope.scaling.type", .text = "linear"}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "default",
     "factor-missing"},
    {{"llama", {HEADS, BASE, YARN}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "yarn",
     "shift-magnitude"},
    {{"llama", {HEADS, BASE, YARN, {"rope.scaling.yarn_attn_factor", .real = 1.25}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "yarn",
     "own-attention-factor shift-magnitude"},
    {{"llama", {HEADS, BASE, YARN, {"rope.scaling.yarn_attn_factor", .real = 1}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "yarn",
     "shift-magnitude"},
    {{"llama", {HEADS, BASE, YARN, {"rope.scaling.attn_factor", .real = 1.25}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "yarn",
     "magnitude-twice shift-magnitude"},
    {{"deepseek2",
      {HEADS, BASE, {"attention.key_length", .whole = 24}, {"rope.dimension_count", .whole = 8}}},
     "all",
     POSENC_ENCODING_ROPE,
     24,
     8,
     16,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "default",
     ""},
    {{"deepseek2",
      {HEADS,
       BASE,
       {"attention.key_length", .whole = 576},
       {"attention.key_length_mla", .whole = 24},
       {"rope.dimension_count", .whole = 8}}},
     "all",
     POSENC_ENCODING_ROPE,
     24,
     8,
     16,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "default",
     ""},
    {{"gemma3",
      {{"attention.head_count", .whole = 2},
       {"embedding_length", .whole = 32},
       {"block_count", .whole = 6},
       {"rope.freq_base", .real = 1e6}}},
     "full_attention",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_HALF,
     1000000,
     "default",
     "freq-base-missing"},
    {{"cohere2", {HEADS, BASE}},
     "full_attention",
     POSENC_ENCODING_NONE,
     0,
     0,
     0,
     POSENC_PAIRING_HALF,
     0,
     NULL,
     ""},
    {{"llama4", {HEADS, BASE}},
     "attention",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "default",
     ""},
    {{"bert", {HEADS}}, "all", POSENC_ENCODING_LEARNED, 0, 0, 0, POSENC_PAIRING_HALF, 0, NULL, ""},
    {{"bloom", {HEADS}}, "all", POSENC_ENCODING_ALIBI, 0, 0, 0, POSENC_PAIRING_HALF, 0, NULL, ""},
    {{"baichuan", {{"block_count", .whole = 40}}},
     "all",
     POSENC_ENCODING_ALIBI,
     0,
     0,
     0,
     POSENC_PAIRING_HALF,
     0,
     NULL,
     ""},
    {{"gptj", {HEADS, BASE, {"rope.dimension_count", .whole = 8}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     8,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "default",
     ""},
    {{"glm4", {HEADS, BASE}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "default",
     ""},
    {{"glm4", {HEADS, BASE, {"rope.dimension_sections", .count = 4, .list = {2, 3, 3, 0}}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_HALF,
     10000,
     "default",
     ""},
    {{"zorblax", {HEADS, BASE}},
     "all",
     POSENC_ENCODING_UNKNOWN,
     16,
     16,
     0,
     POSENC_PAIRING_HALF,
     10000,
     "default",
     "unknown-model-type"},
    {{"llama", {HEADS, BASE}, {{"rope_freqs.weight", 8, {1, 1, 1, 1, 2, 4, 8, 8}}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "custom",
     "frequency-factors"},
    {{"llama", {HEADS, BASE}, {{"rope_freqs.weight", 4, {1, 1, 1, 1}}}},
     "all",
     POSENC_ENCODING_ROPE,
     0,
     16,
     0,
     POSENC_PAIRING_INTERLEAVED,
     10000,
     "custom",
     "factor-list-length no-valid-spec"},
    {{"phi3",
      {HEADS,
       BASE,
       {"rope.scaling.original_context_length", .whole = 2048},
       {"rope.scaling.attn_factor", .real = 1}},
      {{"rope_factors_long.weight", 8, {2, 2, 2, 2, 2, 2, 2, 2}},
       {"rope_factors_short.weight", 8, {1, 1, 1, 1, 1, 1, 1, 1}}}},
     "all",
     POSENC_ENCODING_ROPE,
     16,
     16,
     0,
     POSENC_PAIRING_HALF,
     10000,
     "longrope",
     "two-frequency-lists"},
};

static void specs_of_architectures(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(expectations); i++) {
        const expectation *e = &expectations[i];
        char what[64];
        snprintf(what, sizeof what, "case %zu, %s", i, e->file.architecture);
        posenc_model *model = model_of_gguf(&e->file);
        const posenc_layer_type *type = type_of(model, e->type);
        const posenc_spec *s = &type->spec;
        const char *scaling = s->scaling ? posenc_scaling_name(s->scaling->type) : "none";
        if (type->kind != e->kind || s->head_dim != e->head_dim || s->rotary_dim != e->rotary_dim ||
            s->rotary_start != e->rotary_start || s->base != e->base || s->pairing != e->pairing ||
            (e->scaling && strcmp(scaling, e->scaling) != 0))
            fail_msg("%s: %s %zu %zu %zu %d %g %s %s", what, posenc_encoding_name(type->kind),
                     s->head_dim, s->rotary_dim, s->rotary_start, (int)s->pairing, s->base, scaling,
                     type->invalid ? type->invalid : "");
        assert_warnings(model, e->warnings, what);
        posenc_model_free(model);
    }
}

static void frequency_tensors_divide(void **state) {
    (void)state;
    static const gguf_case file = {
        "gemma4",
        {{"attention.head_count", .whole = 2},
         {"attention.key_length", .whole = 16},
         {"attention.key_length_swa", .whole = 8},
         {"block_count", .whole = 6},
         {"rope.freq_base", .real = 1e6}},
        {{"rope_freqs.weight", 8, {1, 1, 1, 1, 4, 1e30f, 1e30f, 1e30f}}}};
    posenc_model *model = model_of_gguf(&file);
    posenc_frequencies *frequencies;
    posenc_error error;
    assert_int_equal(posenc_frequencies_create(&type_of(model, "full_attention")->spec, 1,
                                               &frequencies, NULL, &error),
                     0);
    assert_true(posenc_frequencies_inv_freq(frequencies, 0, POSENC_MODE_EXACT) == 1.0);
    double fifth = posenc_frequencies_inv_freq(frequencies, 4, POSENC_MODE_EXACT);
    assert_true(fabs(fifth / (1e-3 / 4) - 1.0) < 1e-15);
    assert_true(posenc_frequencies_inv_freq(frequencies, 7, POSENC_MODE_EXACT) == 0.0);
    posenc_frequencies_destroy(frequencies);
    const posenc_layer_type *sliding = type_of(model, "sliding_attention");
    assert_int_equal(sliding->spec.head_dim, 8);
    assert_int_equal(sliding->spec.scaling->type, POSENC_SCALING_DEFAULT);
    assert_true(sliding->spec.base == 10000.0);
    posenc_model_free(model);
}

/* YaRN under latent attention: deepseek2 writes a tenth of mscale_all_dim. */
static void log_multiplier(void **state) {
    (void)state;
    static const gguf_case file = {"deepseek2",
                                   {HEADS,
                                    BASE,
                                    {"attention.key_length", .whole = 24},
                                    {"rope.dimension_count", .whole = 8},
                                    {"rope.scaling.type", .text = "yarn"},
                                    {"rope.scaling.factor", .real = 40},
                                    {"rope.scaling.original_context_length", .whole = 4096},
                                    {"rope.scaling.yarn_log_multiplier", .real = 0.1}}};
    posenc_model *model = model_of_gguf(&file);
    posenc_frequencies *frequencies;
    posenc_error error;
    assert_int_equal(
        posenc_frequencies_create(&type_of(model, "all")->spec, 1, &frequencies, NULL, &error), 0);
    assert_true(posenc_frequencies_attention_factor(frequencies, POSENC_MODE_EXACT) == 1.0);
    assert_true(fabs(posenc_frequencies_softmax_factor(frequencies) - 1.8738542071) <
                1e-6); /* 0.1f */
    posenc_frequencies_destroy(frequencies);
    posenc_model_free(model);
}

static void a_folder_with_one_gguf(void **state) {
    (void)state;
    posenc_model *model = model_of_gguf(&expectations[0].file);
    posenc_model_free(model);
    posenc_error error;
    assert_int_equal(posenc_model_open(".", &model, &error), POSENC_OK);
    assert_string_equal(posenc_model_format(model), "gguf");
    posenc_model_free(model);
    write_text("config.json", "{\"model_type\":\"llama\"}");
    assert_int_equal(posenc_model_open(".", &model, &error), POSENC_OK);
    assert_string_equal(posenc_model_format(model), "config");
    posenc_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(specs_of_architectures),
        TEST(frequency_tensors_divide),
        TEST(log_multiplier),
        TEST(a_folder_with_one_gguf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
