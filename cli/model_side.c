/* A side of a comparison out of a model's own files. SPDX-License-Identifier: MIT */
#include "model_side.h"

#include <string.h>
#include <sys/stat.h>

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* A spec in a .json file has no model_type. */
static int is_known_config(const char *path) {
    posenc_model *model;
    posenc_error error;
    if (posenc_model_open(path, &model, &error))
        return 0;
    int known = posenc_model_rule(model) != NULL || *posenc_model_type(model);
    posenc_model_free(model);
    return known;
}

int model_side_is(const char *path) {
    struct stat state;
    if (stat(path, &state))
        return !ends_with(path, ".json") && !ends_with(path, ".npy") && !ends_with(path, ".npz") &&
               !ends_with(path, ".safetensors");
    if (S_ISDIR(state.st_mode) || ends_with(path, ".gguf"))
        return 1;
    return ends_with(path, ".json") && is_known_config(path);
}

int model_side_open(const cli_arguments *arguments, const char *path, const model_choice *choice,
                    posenc_mode mode, posenc_model **model, posenc_side **side) {
    const posenc_layer_type *type;
    posenc_error error;
    uint64_t seq_len = 0;
    int status = cli_get_size(arguments, "seq-len", 1, &seq_len);
    if (status)
        return status;
    if (posenc_model_open(path, model, &error))
        return cli_fail_error(arguments, path, &error);
    status = model_type_choose(arguments, path, *model, choice, &type);
    if (status)
        return status;
    if (type->kind != POSENC_ENCODING_ROPE || type->invalid)
        return cli_fail(arguments, "the layers %s of %s have no rotary spec: %s", type->name, path,
                        type->invalid ? type->invalid : posenc_encoding_name(type->kind));
    if (!seq_len)
        seq_len = type->spec.max_positions ? type->spec.max_positions : 1;
    return posenc_side_of_spec(&type->spec, seq_len, mode, side, &error)
               ? cli_fail_error(arguments, path, &error)
               : CLI_DONE;
}
