/* Memory that runs out while model files are read: whichever allocation fails, the call says OUT_OF_MEMORY, gives
 * nothing and loses neither memory nor an open file. SPDX-License-Identifier: MIT */
#include "formats/json_file.h"
#include "formats/model_path.h"
#include "formats/tensor_set.h"

#include "gguf_cases.h"
#include "safetensors_cases.h"
#include "short_memory.h"

#define TENSOR(name) "\"" name "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}"

static posenc_status open_set(const char *path, posenc_error *error) {
    penc_tensor_set *set = (penc_tensor_set *)(void *)&path; /* not NULL: a failure must set it */
    posenc_status status = penc_tensor_set_open(path, &set, error);
    if (status)
        assert_null(set);
    penc_tensor_set_close(set);
    return status;
}

static void write_part(const char *path, uint64_t number, const char *tensor) {
    static const uint64_t shape[] = {4};
    gguf_image g = gguf_begin(3, 0, 1, 2);
    add_key_number(&g, "split.no", T_U16, number, 2);
    add_key_number(&g, "split.count", T_U16, 2, 2);
    add_tensor(&g, tensor, 1, shape, 24, 0);
    pad_to(&g, 32);
    add_zeros(&g.f, 4);
    gguf_end(&g, path);
}

static posenc_status read_split_gguf(posenc_error *error) {
    return open_set("m-00001-of-00002.gguf", error);
}

static void a_split_gguf_survives_every_shortage(void **state) {
    (void)state;
    write_part("m-00001-of-00002.gguf", 0, "a");
    write_part("m-00002-of-00002.gguf", 1, "b");
    assert_survives(read_split_gguf, 12, nothing_to_look_at);
}

static posenc_status read_shards(posenc_error *error) {
    return open_set("model.safetensors.index.json", error);
}

static void shards_survive_every_shortage(void **state) {
    (void)state;
    write_safetensors("a.safetensors",
                      "{\"__metadata__\":{\"k\":\"v\",\"l\":\"\"}," TENSOR("a") "}", 4, NULL);
    write_safetensors("b.safetensors", "{" TENSOR("b") "}", 4, NULL);
    write_text("model.safetensors.index.json",
               "{\"weight_map\":{\"a\":\"a.safetensors\",\"b\":\"b.safetensors\"}}");
    assert_survives(read_shards, 15, nothing_to_look_at);
}

static posenc_status read_llama2c(posenc_error *error) {
    return open_set("m.bin", error);
}

static void a_llama2c_file_survives_every_shortage(void **state) {
    (void)state;
    static const uint32_t sizes[] = {2, 1, 1, 1, 1, 1, 1};
    image f = {NULL, 0, 0, 0};
    for (size_t i = 0; i < COUNT(sizes); i++)
        add_number(&f, sizes[i], 4);
    add_zeros(&f, 4 * (2 + 2 + 4 * 4 + 2 + 3 * 2 + 2 + 2 * 1));
    write_file("m.bin", f.bytes, f.size);
    image_free(&f);
    assert_survives(read_llama2c, 4, nothing_to_look_at);
}

static posenc_status read_json(posenc_error *error) {
    json_object *object = (json_object *)(void *)&error;
    posenc_status status = penc_json_read_file("config.json", &object, error);
    if (status)
        assert_null(object);
    json_object_put(object);
    return status;
}

static void json_survives_every_shortage(void **state) {
    (void)state;
    write_text("config.json", "{\"a\": {\"b\": [1, 2.5, \"x\"]}, \"c\": null}");
    assert_survives(read_json, 6, nothing_to_look_at);
}

/* The name that is resolved next. */
static const char *wanted_name;

static posenc_status resolve(posenc_error *error) {
    penc_model_path path;
    posenc_status status = penc_model_path_resolve(wanted_name, &path, error);
    if (status)
        assert_true(!path.config && !path.weights);
    penc_model_path_free(&path);
    return status;
}

static void names_survive_every_shortage(void **state) {
    (void)state;
    static const char *const folders[] = {"hub",
                                          "hub/models--o--m",
                                          "hub/models--o--m/refs",
                                          "hub/models--o--m/snapshots",
                                          "hub/models--o--m/snapshots/1",
                                          "manifests",
                                          "manifests/registry.ollama.ai",
                                          "manifests/registry.ollama.ai/library",
                                          "manifests/registry.ollama.ai/library/n"};
    static const char *const names[] = {"hub/models--o--m/snapshots/1", "o/m", "n",
                                        "hub/models--o--m/snapshots/1/b.safetensors"};
    for (size_t i = 0; i < COUNT(folders); i++)
        assert_int_equal(mkdir(folders[i], 0755), 0);
    write_text("hub/models--o--m/refs/main", "1");
    write_text("hub/models--o--m/snapshots/1/config.json", "{}");
    write_text("hub/models--o--m/snapshots/1/b.safetensors", "");
    write_text("manifests/registry.ollama.ai/library/n/latest",
               "{\"layers\":[{\"mediaType\":\"application/vnd.ollama.image.model\","
               "\"digest\":\"sha256:aa\"}]}");
    setenv("HF_HUB_CACHE", "hub", 1);
    setenv("OLLAMA_MODELS", ".", 1);
    for (size_t i = 0; i < COUNT(names); i++) {
        wanted_name = names[i];
        assert_survives(resolve, 3, nothing_to_look_at);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_split_gguf_survives_every_shortage),   TEST(shards_survive_every_shortage),
        TEST(a_llama2c_file_survives_every_shortage), TEST(json_survives_every_shortage),
        TEST(names_survive_every_shortage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
