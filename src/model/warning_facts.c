/* What several warnings ask. SPDX-License-Identifier: MIT */
#include "model/warning_facts.h"

#include <string.h>

int penc_number_in(json_object *object, const char *key, double *number) {
    int in_string = 0;
    return penc_json_number(penc_json_get(object, key), number, &in_string);
}

int penc_scaled_by(const penc_layer_type *type, const char *word) {
    json_object *value = penc_json_get(type->block, "rope_type");
    return penc_json_is(value, json_type_string) &&
           strcmp(json_object_get_string(value), word) == 0;
}

int penc_file_number(const penc_layer_type *type, const char *name, double *number) {
    const posenc_model_value *value = penc_value_of(type, name);
    if (!value || value->source != POSENC_SOURCE_FILE || value->number.kind != POSENC_NUMBER_REAL)
        return 0;
    *number = value->number.as.real;
    return 1;
}

const char *penc_show(const posenc_model *model, double number) {
    return penc_say(model, "%.10g", number);
}

posenc_frequencies *penc_frequencies_of(const posenc_model *model, const penc_layer_type *type) {
    posenc_frequencies *frequencies = NULL;
    posenc_error error;
    uint64_t length = type->max_positions ? type->max_positions : 1;
    if (type->type.invalid)
        return NULL;
    if (posenc_frequencies_create(&type->type.spec, length, &frequencies, NULL, &error))
        model->config.arena->failed |= error.status == POSENC_OUT_OF_MEMORY;
    return frequencies;
}

double penc_attention_factor(const posenc_model *model, const penc_layer_type *type) {
    posenc_frequencies *frequencies = penc_frequencies_of(model, type);
    double factor =
        frequencies ? posenc_frequencies_attention_factor(frequencies, POSENC_MODE_EXACT) : 1.0;
    posenc_frequencies_destroy(frequencies);
    return factor;
}
