/* From names of models to their files. SPDX-License-Identifier: MIT */
#include "formats/model_path.h"

#include "file_cases.h"

/* Makes every folder of a path, then the file with this text. */
static void make(const char *path, const char *text) {
    char part[300];
    for (size_t i = 1; path[i]; i++) {
        if (path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        mkdir(part, 0755);
    }
    write_text(path, text);
}

/* Nothing of the machine's own stores is seen. */
static void clear_environment(void) {
    static const char *const names[] = {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME",
                                        "OLLAMA_MODELS"};
    for (size_t i = 0; i < COUNT(names); i++)
        unsetenv(names[i]);
    setenv("HOME", folder, 1);
}

static void assert_path(const char *got, const char *wanted) {
    if (!wanted) {
        assert_null(got);
        return;
    }
    assert_non_null(got);
    if (!ends_with(got, wanted))
        fail_msg("got %s, wanted %s", got, wanted);
}

static void assert_resolved(const char *name, penc_model_origin origin, const char *config,
                            const char *weights) {
    penc_model_path path;
    posenc_error error;
    assert_done(penc_model_path_resolve(name, &path, &error), &error);
    assert_int_equal(path.origin, origin);
    assert_path(path.config, config);
    assert_path(path.weights, weights);
    penc_model_path_free(&path);
}

static void assert_not_resolved(const char *name, posenc_status status, const char *must,
                                const char *file, const char *looked_for) {
    penc_model_path path;
    posenc_error error;
    refusal wanted = {status, NULL, must, name, file, -1};
    assert_refusal(penc_model_path_resolve(name, &path, &error), &error, &wanted, name);
    assert_null(path.config);
    assert_null(path.weights);
    if (!strstr(path.looked_for, looked_for))
        fail_msg("%s: looked for %s, not for %s", name, path.looked_for, looked_for);
}

static void files_are_themselves(void **state) {
    (void)state;
    clear_environment();
    make("m/config.json", "{}");
    make("m/model.safetensors", "");
    make("m/model.safetensors.index.json", "{}");
    make("m/x.gguf", "");
    make("m/stories.bin", "");
    make("alone/model.safetensors", "");
    assert_resolved("m/config.json", PENC_MODEL_FILE, "m/config.json", NULL);
    assert_resolved("m/model.safetensors", PENC_MODEL_FILE, "m/config.json", "m/model.safetensors");
    assert_resolved("m/model.safetensors.index.json", PENC_MODEL_FILE, "m/config.json",
                    "m/model.safetensors.index.json");
    assert_resolved("m/x.gguf", PENC_MODEL_FILE, NULL, "m/x.gguf");
    assert_resolved("m/stories.bin", PENC_MODEL_FILE, NULL, "m/stories.bin");
    assert_resolved("alone/model.safetensors", PENC_MODEL_FILE, NULL, "alone/model.safetensors");
    assert_int_equal(chdir("m"), 0);
    assert_resolved("model.safetensors", PENC_MODEL_FILE, "./config.json", "model.safetensors");
}

static void folders_are_searched_in_a_fixed_order(void **state) {
    (void)state;
    clear_environment();
    make("m/README.md", "");
    assert_not_resolved("m", POSENC_FORMAT, "hold config.json", "m",
                        "m/config.json\nm/params.json");
    make("m/a-00002-of-00002.gguf", "");
    assert_not_resolved("m", POSENC_FORMAT, "hold config.json", "m", "m/config.json");
    assert_resolved("m/a-00002-of-00002.gguf", PENC_MODEL_FILE, NULL, "m/a-00002-of-00002.gguf");
    make("m/a-00001-of-00002.gguf", "");
    assert_resolved("m/a-00002-of-00002.gguf", PENC_MODEL_FILE, NULL, "m/a-00001-of-00002.gguf");
    assert_resolved("m", PENC_MODEL_FOLDER, NULL, "m/a-00001-of-00002.gguf");
    make("m/mmproj-a.gguf", "");
    assert_resolved("m", PENC_MODEL_FOLDER, NULL, "m/a-00001-of-00002.gguf");
    make("m/b.gguf", "");
    assert_not_resolved("m", POSENC_FORMAT, "one GGUF", "m", "m");
    make("m/consolidated.safetensors", "");
    make("m/params.json", "{}");
    assert_resolved("m/", PENC_MODEL_FOLDER, "params.json", "consolidated.safetensors");
    make("m/other.safetensors", "");
    make("m/config.json", "{}");
    assert_resolved("m", PENC_MODEL_FOLDER, "m/config.json", NULL); /* two files: which is meant? */
    make("m/model.safetensors", "");
    assert_resolved("m", PENC_MODEL_FOLDER, "m/config.json", "m/model.safetensors");
    make("m/model.safetensors.index.json", "{}");
    assert_resolved("m", PENC_MODEL_FOLDER, "m/config.json", "m/model.safetensors.index.json");
    make("m/.hidden.safetensors.index.json", "{}");
    assert_resolved("m", PENC_MODEL_FOLDER, "m/config.json", "m/model.safetensors.index.json");
}

#define SNAPSHOT "models--org--tiny/snapshots/0123abcd/"

/* A cache as huggingface_hub makes it: the snapshot's files are links to blobs. */
static void make_cache(const char *root) {
    char path[300];
    snprintf(path, sizeof path, "%s/models--org--tiny/refs/main", root);
    make(path, "0123abcd");
    snprintf(path, sizeof path, "%s/models--org--tiny/blobs/b10b", root);
    make(path, "{}");
    snprintf(path, sizeof path, "%s/" SNAPSHOT "model.safetensors", root);
    make(path, "");
    snprintf(path, sizeof path, "%s/" SNAPSHOT "config.json", root);
    assert_int_equal(symlink("../../blobs/b10b", path), 0);
}

static void names_of_hugging_face_are_found_in_its_cache(void **state) {
    (void)state;
    static const struct {
        const char *variable, *value, *root;
    } places[] = {
        {NULL, NULL, ".cache/huggingface/hub"},
        {"XDG_CACHE_HOME", "xdg", "xdg/huggingface/hub"},
        {"HF_HOME", "hf", "hf/hub"},
        {"HF_HUB_CACHE", "cache", "cache"}, /* each goes before those above */
    };
    clear_environment();
    for (size_t i = 0; i < COUNT(places); i++) {
        char value[PATH_MAX + 40], config[300];
        if (places[i].variable) {
            snprintf(value, sizeof value, "%s/%s", folder, places[i].value);
            setenv(places[i].variable, value, 1);
        }
        assert_not_resolved("org/tiny", POSENC_IO, "Hugging Face", NULL, places[i].root);
        make_cache(places[i].root);
        snprintf(config, sizeof config, "%s/" SNAPSHOT "config.json", places[i].root);
        assert_resolved("org/tiny", PENC_MODEL_HUGGING_FACE, config, SNAPSHOT "model.safetensors");
    }
}

static void revisions_of_hugging_face_can_be_named(void **state) {
    (void)state;
    clear_environment();
    setenv("HF_HUB_CACHE", folder, 1);
    make_cache(".");
    make("models--org--tiny/refs/v2", "feed\n");
    make("models--org--tiny/snapshots/feed/config.json", "{}");
    make("models--gpt2/refs/main", "1");
    make("models--gpt2/snapshots/1/config.json", "{}");
    assert_resolved("org/tiny@v2", PENC_MODEL_HUGGING_FACE, "snapshots/feed/config.json", NULL);
    assert_resolved("org/tiny@feed", PENC_MODEL_HUGGING_FACE, "snapshots/feed/config.json", NULL);
    assert_resolved("gpt2", PENC_MODEL_HUGGING_FACE, "models--gpt2/snapshots/1/config.json", NULL);
    assert_not_resolved("org/tiny@v3", POSENC_IO, "be a file", NULL, "snapshots/v3");
    make("models--org--tiny/refs/evil", "../../../etc");
    assert_not_resolved("org/tiny@evil", POSENC_FORMAT, "name a commit", "refs/evil", "refs/evil");
    make("models--org--tiny/refs/gone", "0000");
    assert_not_resolved("org/tiny@gone", POSENC_IO, "be a file", NULL, "snapshots/0000");
}

#define MANIFESTS "manifests/registry.ollama.ai/"
#define MODEL(digest)                                                                                      \
    "{\"schemaVersion\":2,\"layers\":[{\"mediaType\":\"application/vnd.ollama.image.license\","            \
    "\"digest\":\"sha256:aa\"},{\"mediaType\":\"application/vnd.ollama.image.model\",\"digest\":\"" digest \
    "\"}]}"

static void names_of_ollama_are_found_in_its_store(void **state) {
    (void)state;
    clear_environment();
    assert_not_resolved("llama3.2:1b", POSENC_IO, "Ollama", NULL,
                        ".ollama/models/" MANIFESTS "library/llama3.2/1b");
    make(".ollama/models/" MANIFESTS "library/llama3.2/1b", MODEL("sha256:bb"));
    assert_resolved("llama3.2:1b", PENC_MODEL_OLLAMA, NULL, ".ollama/models/blobs/sha256-bb");
    assert_not_resolved("llama3.2:7b", POSENC_IO, "be a file", NULL,
                        "\n/usr/share/ollama/.ollama/models/" MANIFESTS "library/llama3.2/7b\n");
    setenv("OLLAMA_MODELS", folder, 1);
    make(MANIFESTS "library/llama3.2/latest", MODEL("sha256:cc"));
    make(MANIFESTS "someone/fine-tune/q4", MODEL("sha256:dd"));
    assert_resolved("llama3.2", PENC_MODEL_OLLAMA, NULL, "/blobs/sha256-cc");
    assert_resolved("someone/fine-tune:q4", PENC_MODEL_OLLAMA, NULL, "/blobs/sha256-dd");
    make("manifests/hf.co/someone/tiny-GGUF/Q4_K_M", MODEL("sha256:ee"));
    assert_resolved("hf.co/someone/tiny-GGUF:Q4_K_M", PENC_MODEL_OLLAMA, NULL, "/blobs/sha256-ee");
    assert_not_resolved("hf.co/someone/tiny-GGUF", POSENC_IO, "nothing is downloaded", NULL,
                        "manifests/hf.co/someone/tiny-GGUF/latest");
    assert_not_resolved("hf.co/a/b/c", POSENC_IO, "nothing is downloaded", NULL, "hf.co/a/b/c\n");
    assert_not_resolved("llama3.2:7b", POSENC_IO, "be a file", NULL, "library/llama3.2/7b");
}

static void manifests_that_are_wrong_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *must;
    } cases[] = {
        {"{}", "sha256"},
        {"{\"layers\":[]}", "sha256"},
        {"{\"layers\":[3,null,{\"mediaType\":7}]}", "sha256"},
        {MODEL("md5:bb"), "sha256"},
        {MODEL("sha256:../../x"), "sha256"},
        {MODEL("sha256:"), "sha256"},
        {"{\"layers\":", "a value here"},
        {"[]", "be an object"},
    };
    clear_environment();
    setenv("OLLAMA_MODELS", folder, 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        make(MANIFESTS "library/bad/latest", cases[i].text);
        assert_not_resolved("bad", POSENC_FORMAT, cases[i].must, "library/bad/latest",
                            "library/bad");
    }
}

/* None of these may leave the stores or be looked up. */
static void names_that_are_none_are_only_paths(void **state) {
    (void)state;
    static const char *const names[] = {
        "",      "/",     "a/b/c", "../no-such-name", "x/..", "a b", "x:y:z",
        "a@b/c", "a:b/c", "org/",  "/model",          "x:",   "x@",  "..",
        "~x"};
    clear_environment();
    make(".cache/huggingface/hub/x", "");
    make(".ollama/models/" MANIFESTS "library/x/latest", MODEL("sha256:bb"));
    for (size_t i = 0; i < COUNT(names); i++) {
        penc_model_path path;
        posenc_error error;
        posenc_status status = penc_model_path_resolve(names[i], &path, &error);
        if (strcmp(names[i], "/") == 0 ||
            strcmp(names[i], "..") == 0) { /* folders that are there */
            penc_model_path_free(&path);
            continue;
        }
        if (status != POSENC_IO)
            fail_msg("'%s' gave %s", names[i], posenc_status_name(status));
        char only[40];
        snprintf(only, sizeof only, "%s\n", names[i]);
        assert_string_equal(path.looked_for, only);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(files_are_themselves),
        TEST(folders_are_searched_in_a_fixed_order),
        TEST(names_of_hugging_face_are_found_in_its_cache),
        TEST(revisions_of_hugging_face_can_be_named),
        TEST(names_of_ollama_are_found_in_its_store),
        TEST(manifests_that_are_wrong_are_refused),
        TEST(names_that_are_none_are_only_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
