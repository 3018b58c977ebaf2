/* Models from texts, for tests. SPDX-License-Identifier: MIT */
#ifndef MODEL_CASES_H
#define MODEL_CASES_H

#include "posenc/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static inline posenc_model *model_of(const char *json) {
    posenc_model *model;
    posenc_error error;
    if (posenc_model_parse(json, strlen(json), NULL, &model, &error)) {
        char text[512];
        posenc_error_text(&error, text, sizeof text);
        fail_msg("%s: %s", json, text);
    }
    return model;
}

static inline const posenc_layer_type *type_of(const posenc_model *model, const char *name) {
    const posenc_layer_type *type = posenc_model_layer_type_named(model, name);
    if (!type)
        fail_msg("no layer type %s", name);
    return type;
}

/* "a b c" of all warnings, sorted, each once. */
static inline int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline void warnings_of(const posenc_model *model, char *text, size_t capacity) {
    const char *codes[64];
    size_t count = posenc_model_warning_count(model), used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        codes[i] = posenc_model_warning_at(model, i)->code;
    qsort(codes, count, sizeof *codes, by_text);
    for (size_t i = 0; i < count; i++) {
        if (i && strcmp(codes[i], codes[i - 1]) == 0)
            continue;
        used += (size_t)snprintf(text + used, capacity - used, "%s%s", used ? " " : "", codes[i]);
    }
}

static inline void assert_warnings(const posenc_model *model, const char *expected,
                                   const char *what) {
    char codes[1024];
    warnings_of(model, codes, sizeof codes);
    if (strcmp(codes, expected) != 0) {
        for (size_t i = 0; i < posenc_model_warning_count(model); i++)
            print_message("# %s\n", posenc_model_warning_at(model, i)->message);
        fail_msg("%s\nwarns \"%s\"\nnot   \"%s\"", what, codes, expected);
    }
}

#endif
