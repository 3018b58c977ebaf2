/* Any bytes as a model's configuration, on to the frequencies of its layer types. SPDX-License-Identifier: MIT */
#include "posenc/model.h"

#include "fuzz_file.h"

/* What the model promises of every type: texts, layers in order, a spec that is valid unless it says why not. */
static void use(const posenc_layer_type *type, size_t layers) {
    for (size_t i = 0; i < type->value_count; i++) {
        if (!type->values[i].name || !type->values[i].text || !type->values[i].place)
            abort();
    }
    for (size_t i = 0; i < type->layer_count; i++) {
        if (type->layers[i] >= layers || (i && type->layers[i] <= type->layers[i - 1]))
            abort();
    }
    posenc_frequencies *frequencies = NULL;
    posenc_error error;
    uint64_t length = type->spec.max_positions ? type->spec.max_positions : 1;
    if (type->kind != POSENC_ENCODING_ROPE || type->invalid)
        return;
    if (posenc_frequencies_create(&type->spec, length, &frequencies, NULL, &error))
        abort();
    posenc_frequencies_destroy(frequencies);
}

static void use_types(const posenc_model *model) {
    for (size_t i = 0; i < posenc_model_layer_type_count(model); i++)
        use(posenc_model_layer_type(model, i), posenc_model_layer_count(model));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    posenc_model *model;
    posenc_error error;
    posenc_status status = posenc_model_parse((const char *)data, size, NULL, &model, &error);
    if (status) {
        fuzz_check_error(status, &error);
        return 0;
    }
    use_types(model);
    for (size_t i = 0; i < posenc_model_part_count(model); i++) {
        const posenc_model_part *part = posenc_model_part_at(model, i);
        if (!part->name || !part->model == !part->unread)
            abort();
        if (part->model)
            use_types(part->model);
    }
    posenc_model_free(model);
    return 0;
}
