/* What people call a model. The first byte chooses: F, lines are names of files in a folder that is resolved; anything
 * else, the first line is a name in local stores, and what follows it the content of the store's files.
 * SPDX-License-Identifier: MIT */
#include "formats/model_path.h"

#include "fuzz_folder.h"

#define HUGGING_FACE "hub/models--o--m"
#define OLLAMA       "ollama/manifests"

static void make_stores(void) {
    static const char *const folders[] = {"hub",
                                          HUGGING_FACE,
                                          HUGGING_FACE "/refs",
                                          HUGGING_FACE "/snapshots",
                                          HUGGING_FACE "/snapshots/abc",
                                          "ollama",
                                          "ollama/blobs",
                                          OLLAMA,
                                          OLLAMA "/registry.ollama.ai",
                                          OLLAMA "/registry.ollama.ai/library",
                                          OLLAMA "/registry.ollama.ai/library/m"};
    if (!fuzz_make_folder())
        return;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        FUZZ_CHECK(mkdir(fuzz_path(folders[i]), 0700) == 0);
    fuzz_write(HUGGING_FACE "/snapshots/abc/config.json", "{}", 2);
    fuzz_write("ollama/blobs/sha256-00", "GGUF", 4);
    FUZZ_CHECK(setenv("HF_HUB_CACHE", fuzz_path("hub"), 1) == 0);
    FUZZ_CHECK(setenv("OLLAMA_MODELS", fuzz_path("ollama"), 1) == 0);
}

/* What a store's name leads to lies in the store. */
static void check_inside(const char *path) {
    FUZZ_CHECK(!path ||
               (strncmp(path, fuzz_folder, strlen(fuzz_folder)) == 0 && !strstr(path, "/../")));
}

static void resolve(const char *name) {
    penc_model_path path;
    posenc_error error;
    posenc_status status = penc_model_path_resolve(name, &path, &error);
    FUZZ_CHECK(memchr(path.looked_for, '\0', sizeof path.looked_for));
    if (status) {
        FUZZ_CHECK(!path.config && !path.weights);
        if (status != POSENC_IO) /* not there */
            fuzz_check_error(status, &error);
        return;
    }
    FUZZ_CHECK(path.config || path.weights || path.many_weights);
    if (path.origin == PENC_MODEL_HUGGING_FACE || path.origin == PENC_MODEL_OLLAMA) {
        check_inside(path.config);
        check_inside(path.weights);
    }
    penc_model_path_free(&path);
}

static void in_stores(const char *text, size_t length) {
    const char *end = memchr(text, '\n', length);
    size_t name = end ? (size_t)(end - text) : length;
    char copy[400];
    if (name >= sizeof copy || *text == '/' || *text == '.')
        return; /* places of the machine */
    memcpy(copy, text, name);
    copy[name] = '\0';
    const char *content = end ? end + 1 : text;
    size_t bytes = end ? length - name - 1 : 0;
    fuzz_write(HUGGING_FACE "/refs/main", content, bytes);
    fuzz_write(OLLAMA "/registry.ollama.ai/library/m/latest", content, bytes);
    resolve(copy);
}

static void in_folder(const char *text, size_t length) {
    char name[256] = "model/";
    FUZZ_CHECK(mkdir(fuzz_path("model"), 0700) == 0);
    for (int files = 0; length && files < 8; files++) {
        const char *end = memchr(text, '\n', length);
        size_t bytes = end ? (size_t)(end - text) : length;
        if (bytes && bytes < 200 && !memchr(text, '/', bytes) && !memchr(text, '\0', bytes) &&
            strncmp(text, ".", 1) != 0) {
            memcpy(name + 6, text, bytes);
            name[6 + bytes] = '\0';
            fuzz_write(name, "", 0);
        }
        length -= end ? bytes + 1 : bytes;
        text += end ? bytes + 1 : bytes;
    }
    resolve(fuzz_path("model"));
    fuzz_remove("model");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    make_stores();
    if (size < 2)
        return -1;
    if (data[0] == 'F')
        in_folder((const char *)data + 1, size - 1);
    else
        in_stores((const char *)data + 1, size - 1);
    return 0;
}
