/* Files that are no models are called by what they are. SPDX-License-Identifier: MIT */
#include "posenc/model.h"

#include "file_cases.h"

#define BYTES(text) text, sizeof(text) - 1

static void files_are_called_by_what_they_are(void **state) {
    (void)state;
    static const struct {
        const char *path, *bytes;
        size_t length;
        const char *told;
    } cases[] = {
        {"a.bin", BYTES(""), "an empty file"},
        {"a.json", BYTES(""), "an empty file"},
        {"a.json", BYTES(" \n\t\r"), "an empty file"},
        {"a.gguf", BYTES("version https://git-lfs.github.com/spec/v1\n"), "git lfs pull"},
        {"a.json", BYTES("version https://git-lfs.github.com/spec/v1\n"), "git lfs pull"},
        {"a.gguf", BYTES("<html>"), "a web page"},
        {"a.pt", BYTES("PK\003\004...."), "an archive"},
        {"a.bin", BYTES("\200\004\225"), "a pickle of PyTorch"},
        {"a.npy", BYTES("\223NUMPY\001\000"), "an array"},
        {"a.bin", BYTES("lmgg\001"), "GGML"},
        {"a.bin", BYTES("tjgg\001"), "GGML"},
        {"a.bin", BYTES("fmgg\001"), "GGML"},
        {"a.h5", BYTES("\211HDF\r\n"), "HDF5"},
        {"a.json", BYTES("\377\376{\000}\000"), "UTF-16"},
        {"a.json", BYTES("\376\377\000{\000}"), "UTF-16"},
        {"a.json", BYTES("GGUF\003"), "a GGUF file whose name ends in .json"},
        {"a.bin", BYTES("\020\000\000\000\000\000\000\000{\"a\"}"),
         "safetensors under another name"},
        {"a.bin", BYTES("\020\000\000\000\000\001\000\000{\"a\"}"), "binary data"},
        {"README", BYTES("# Model\nText.\tMore\r\n"), "a text that is no JSON"},
        {"a.json", BYTES("this"), "a text that is no JSON"},
        {"a.bin", BYTES("\001\002"), "binary data of an unknown kind"},
        {"a.bin", BYTES("text\000"), "binary data of an unknown kind"},
        {"a.json", BYTES("{\"added_tokens\":[]}"), "not a tokenizer.json"},
        {"a.json", BYTES("{\"tokenizer_class\":\"\"}"), "not a tokenizer_config.json"},
        {"a.json", BYTES("{\"peft_type\":\"LORA\"}"), "not an adapter_config.json"},
        {"a.json", BYTES("{\"_from_model_config\":true}"), "not a generation_config.json"},
        {"a.json", BYTES("{\"image_processor_type\":\"\"}"), "not a preprocessor_config.json"},
        {"a.json", BYTES("{\"feature_extractor_type\":\"\"}"), "not a preprocessor_config.json"},
        {"a.json", BYTES("{\"processor_class\":\"\"}"), "not a processor's file"},
        {"a.json", BYTES("{\"_diffusers_version\":\"\"}"), "not a pipeline of diffusers"},
        {"a.json", BYTES("{\"weight_map\":{}}"), "not an index of weights"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        posenc_model *model;
        posenc_error error;
        refusal wanted = {POSENC_FORMAT, "file", cases[i].told, "", cases[i].path, -1};
        write_file(cases[i].path, cases[i].bytes, cases[i].length);
        assert_refusal(posenc_model_open(cases[i].path, &model, &error), &error, &wanted,
                       cases[i].told);
        assert_null(model);
    }
}

/* Keys of other files beside those of a model do no harm; a small safetensors file is told by its name. */
static void what_may_be_a_model_is_read(void **state) {
    (void)state;
    static const char *const texts[] = {" \n{\"model_type\":\"llama\",\"tokenizer_class\":\"\"}",
                                        "{\"architectures\":[],\"weight_map\":{}}",
                                        "{\"hidden_size\":64,\"peft_type\":null}",
                                        "{\"dim\":64,\"processor_class\":\"\"}", "{}"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        posenc_model *model;
        posenc_error error;
        write_text("config.json", texts[i]);
        assert_done(posenc_model_open("config.json", &model, &error), &error);
        posenc_model_free(model);
    }
}

static void assert_not_found(const char *name, posenc_status status, const char *told) {
    posenc_model *model;
    posenc_error error;
    refusal wanted = {status, NULL, told, NULL, NULL, -1};
    assert_refusal(posenc_model_open(name, &model, &error), &error, &wanted, name);
    assert_null(model);
}

static void folders_and_names(void **state) {
    (void)state;
    setenv("HF_HUB_CACHE", folder, 1);
    setenv("OLLAMA_MODELS", folder, 1);
    assert_int_equal(mkdir("lora", 0700), 0);
    write_text("lora/adapter_config.json", "{}");
    assert_not_found("lora", POSENC_FORMAT, "adapter_config.json calls base_model_name_or_path");
    assert_int_equal(mkdir("sd", 0700), 0);
    assert_not_found("sd", POSENC_FORMAT, "hold config.json, params.json, a GGUF or safetensors");
    write_text("sd/model_index.json", "{}");
    assert_not_found("sd", POSENC_FORMAT, "name the folder of a part of it");
    write_text("m.safetensors", "");
    assert_not_found("m.safetensors", POSENC_FORMAT, "have a config.json beside it");
    assert_not_found("https://huggingface.co/a/b", POSENC_IO, "nothing is downloaded");
    assert_not_found("hf.co/a/b", POSENC_IO, "nothing is downloaded");
    assert_not_found("a/b", POSENC_IO, "org/model in the Hugging Face cache");
    assert_not_found("a:7b", POSENC_IO, "name[:tag] in Ollama's store");
    assert_not_found("a.gguf", POSENC_IO, "be a file that is there");
    assert_not_found("~/a", POSENC_IO, "be a file or a folder that is there");
    assert_not_found("a/b/c", POSENC_IO, "be a file or a folder that is there");
    assert_not_found("", POSENC_IO, "be a file or a folder that is there");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(files_are_called_by_what_they_are),
        TEST(what_may_be_a_model_is_read),
        TEST(folders_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
