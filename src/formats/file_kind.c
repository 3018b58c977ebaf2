/* First bytes and keys that tell. SPDX-License-Identifier: MIT */
#include "formats/file_kind.h"

#include "base/fail.h"
#include "formats/input_file.h"

#include <string.h>

enum { PENC_KIND_BYTES = 512 };

#define PENC_WANTED "be a config.json, params.json, GGUF or folder with one, "

/* A file's beginning, and what is said of it. */
static const struct {
    const char *begin;
    size_t length;
    const char *must;
} penc_beginnings[] = {
#define PENC_BEGIN(bytes, text)                                                                    \
    { bytes, sizeof(bytes) - 1, PENC_WANTED text }
    PENC_BEGIN("version https://git-lfs",
               "not a pointer of Git LFS: git lfs pull fetches the file itself"),
    PENC_BEGIN("<", "not a web page: the address or the permission to download was another"),
    PENC_BEGIN("PK\003\004",
               "not an archive (PyTorch, NumPy, Keras): name the config.json beside it"),
    PENC_BEGIN("\200", "not a pickle of PyTorch: name the config.json beside it"),
    PENC_BEGIN("\223NUMPY", "not an array: posenc compare and posenc diagnose read arrays"),
    PENC_BEGIN("lmgg", "not GGML, which came before GGUF: llama.cpp's scripts convert it"),
    PENC_BEGIN("tjgg", "not GGML, which came before GGUF: llama.cpp's scripts convert it"),
    PENC_BEGIN("fmgg", "not GGML, which came before GGUF: llama.cpp's scripts convert it"),
    PENC_BEGIN("\211HDF", "not HDF5: name the config.json beside it"),
    PENC_BEGIN("\377\376", "not text in UTF-16: JSON is UTF-8"),
    PENC_BEGIN("\376\377", "not text in UTF-16: JSON is UTF-8"),
    PENC_BEGIN("GGUF", "not a GGUF file whose name ends in .json"),
#undef PENC_BEGIN
};

/* "{" behind eight bytes, which are a length. */
static int penc_is_safetensors(const unsigned char *bytes, size_t count) {
    return count > 9 && bytes[8] == '{' && bytes[5] == 0 && bytes[6] == 0 && bytes[7] == 0;
}

static int penc_is_text(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] < ' ' && !(bytes[i] && strchr("\t\r\n\f", bytes[i])))
            return 0;
    }
    return 1;
}

static const char *penc_kind_of_bytes(const unsigned char *bytes, size_t count) {
    if (!count)
        return PENC_WANTED "not an empty file: a download may have ended early";
    for (size_t i = 0; i < sizeof penc_beginnings / sizeof *penc_beginnings; i++) {
        if (count >= penc_beginnings[i].length &&
            memcmp(bytes, penc_beginnings[i].begin, penc_beginnings[i].length) == 0)
            return penc_beginnings[i].must;
    }
    if (penc_is_safetensors(bytes, count))
        return PENC_WANTED "not safetensors under another name: name the config.json beside it";
    return penc_is_text(bytes, count) ? PENC_WANTED "not a text that is no JSON"
                                      : PENC_WANTED
               "not binary data of an unknown kind: name the config.json beside it";
}

/* The first bytes of a file, at most PENC_KIND_BYTES. */
static posenc_status penc_read_beginning(const char *path, unsigned char *bytes, size_t *count,
                                         posenc_error *error) {
    penc_input input;
    posenc_status status = penc_input_open(path, &input, error);
    *count = 0;
    if (status)
        return status;
    *count = input.size < PENC_KIND_BYTES ? (size_t)input.size : PENC_KIND_BYTES;
    status = penc_input_read(&input, 0, bytes, *count, error);
    penc_input_close(&input);
    return status;
}

static posenc_status penc_fail_kind(const char *path, const char *must, posenc_error *error) {
    penc_fail(error, POSENC_FORMAT, "file", must);
    penc_fail_file(error, path);
    return POSENC_FORMAT;
}

posenc_status penc_expect_gguf(const char *path, posenc_error *error) {
    unsigned char bytes[PENC_KIND_BYTES];
    size_t count;
    posenc_status status = penc_read_beginning(path, bytes, &count, error);
    if (status || (count >= 4 && memcmp(bytes, "GGUF", 4) == 0))
        return status;
    return penc_fail_kind(path, penc_kind_of_bytes(bytes, count), error);
}

posenc_status penc_expect_json(const char *path, posenc_error *error) {
    unsigned char bytes[PENC_KIND_BYTES];
    size_t count, first = 0;
    posenc_status status = penc_read_beginning(path, bytes, &count, error);
    while (first < count && bytes[first] && strchr(" \t\r\n", bytes[first]))
        first++;
    if (status || (first < count && strchr("{[", bytes[first]) && bytes[first]) ||
        (first == count && count == PENC_KIND_BYTES)) /* a long way of blanks */
        return status;
    return penc_fail_kind(path, penc_kind_of_bytes(bytes, first == count ? 0 : count), error);
}

posenc_status penc_expect_config(json_object *root, const char *path, posenc_error *error) {
    static const struct {
        const char *key, *must;
    } kinds[] = {
        {"added_tokens", PENC_WANTED "not a tokenizer.json: name the config.json beside it"},
        {"tokenizer_class",
         PENC_WANTED "not a tokenizer_config.json: name the config.json beside it"},
        {"peft_type", PENC_WANTED "not an adapter_config.json: name the model that its "
                                  "base_model_name_or_path tells"},
        {"_from_model_config",
         PENC_WANTED "not a generation_config.json: name the config.json beside it"},
        {"image_processor_type",
         PENC_WANTED "not a preprocessor_config.json: name the config.json beside it"},
        {"feature_extractor_type",
         PENC_WANTED "not a preprocessor_config.json: name the config.json beside it"},
        {"processor_class", PENC_WANTED "not a processor's file: name the config.json beside it"},
        {"_diffusers_version",
         PENC_WANTED "not a pipeline of diffusers: name the config.json of a part of it"},
        {"weight_map", PENC_WANTED "not an index of weights: name the config.json beside it"},
    };
    static const char *const own[] = {"model_type", "architectures", "hidden_size", "dim"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (json_object_object_get_ex(root, own[i], NULL))
            return POSENC_OK;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (json_object_object_get_ex(root, kinds[i].key, NULL))
            return penc_fail_kind(path, kinds[i].must, error);
    }
    return POSENC_OK;
}
