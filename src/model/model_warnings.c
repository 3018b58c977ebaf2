/* What looks wrong in a model's files: the run through the list. SPDX-License-Identifier: MIT */
#include "model/model_warnings.h"

#include "base/fail.h"
#include "model/model_warning_list.h"

#include <string.h>

typedef enum penc_warning_scope {
    PENC_SCOPE_MODEL,
    PENC_SCOPE_TYPE,
    PENC_SCOPE_ANY
} penc_warning_scope;

static const struct penc_warning {
    const char *name; /* the code with _ */
    const char *fix;
    penc_warning_scope scope;
    const char *(*message)(const posenc_model *model, const penc_layer_type *type);
} penc_warnings[] = {
#define PENC_MODEL_WARNING(name, fix) {#name, fix, PENC_SCOPE_MODEL, penc_warn_##name},
#define PENC_TYPE_WARNING(name, fix)  {#name, fix, PENC_SCOPE_TYPE, penc_warn_##name},
#define PENC_ANY_WARNING(name, fix)   {#name, fix, PENC_SCOPE_ANY, penc_warn_##name},
    PENC_WARNING_LIST(PENC_MODEL_WARNING, PENC_TYPE_WARNING, PENC_ANY_WARNING)
#undef PENC_MODEL_WARNING
#undef PENC_TYPE_WARNING
#undef PENC_ANY_WARNING
};

static const char *penc_code_of(penc_arena *arena, const char *name) {
    char *code = penc_arena_copy(arena, name, strlen(name));
    for (char *at = code; at && *at; at++) {
        if (*at == '_')
            *at = '-';
    }
    return code;
}

/* The same message for another layer type speaks of all of them. */
static void penc_add_warning(posenc_model *model, const struct penc_warning *warning,
                             const char *message, const char *layer_type) {
    const char *code = penc_code_of(&model->arena, warning->name);
    for (size_t i = 0; code && i < model->warning_count; i++) {
        posenc_model_warning *old = &model->warning[i];
        if (strcmp(old->code, code) == 0 && strcmp(old->message, message) == 0) {
            old->layer_type = NULL;
            return;
        }
    }
    if (code && model->warning_count < PENC_MAX_WARNINGS)
        model->warning[model->warning_count++] =
            (posenc_model_warning){code, message, warning->fix, layer_type};
}

static int penc_asks(const struct penc_warning *warning, const penc_layer_type *type) {
    posenc_encoding_kind kind = type->type.kind;
    return warning->scope == PENC_SCOPE_ANY || kind == POSENC_ENCODING_ROPE ||
           (kind == POSENC_ENCODING_UNKNOWN && type->block);
}

posenc_status penc_warn(posenc_model *model) {
    size_t count = sizeof penc_warnings / sizeof *penc_warnings;
    for (size_t w = 0; w < count; w++) {
        const struct penc_warning *warning = &penc_warnings[w];
        if (warning->scope == PENC_SCOPE_MODEL) {
            const char *message = warning->message(model, NULL);
            if (message)
                penc_add_warning(model, warning, message, NULL);
            continue;
        }
        for (size_t i = 0; i < model->type_count; i++) {
            const penc_layer_type *type = &model->types[i];
            const char *message = penc_asks(warning, type) ? warning->message(model, type) : NULL;
            if (message)
                penc_add_warning(model, warning, message, type->type.name);
        }
    }
    return model->arena.failed
               ? penc_fail(model->config.error, POSENC_OUT_OF_MEMORY, "model", "fit into memory")
               : POSENC_OK;
}
