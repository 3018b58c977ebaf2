/* The model as it is built. SPDX-License-Identifier: MIT */
#ifndef PENC_MODEL_OBJECT_H
#define PENC_MODEL_OBJECT_H

#include "model/config_keys.h"
#include "posenc/rope_parameters.h"

enum {
    PENC_MAX_LAYERS = 1 << 14, /* the deepest models have some hundreds */
    PENC_MAX_LAYER_TYPES = 64,
    PENC_MAX_VALUES = 48,
    PENC_MAX_WARNINGS = 64,
    PENC_MAX_PARTS = 16,
};

/* A layer type and what only the building needs. */
typedef struct penc_layer_type {
    posenc_layer_type type; /* first: what the public functions return */
    posenc_model_value value[PENC_MAX_VALUES];
    posenc_rope_parameters *parameters; /* owns what type.spec points to */
    json_object *block;                 /* the effective rope_parameters */
    json_object *given;                 /* the block of the file that it came from; not owned */
    uint64_t max_positions;
} penc_layer_type;

struct posenc_model {
    penc_arena arena;
    penc_config config;
    const char *format;
    size_t layer_count;
    const char **layer_names; /* the file's word for every layer; NULL: it has none */
    penc_layer_type *types;   /* in the arena */
    size_t type_count;
    posenc_model_warning warning[PENC_MAX_WARNINGS];
    size_t warning_count;
    posenc_model_part part[PENC_MAX_PARTS];
    size_t part_count;
};

/* Add a value to the type; what does not fit into the list is left out (it never happens to known keys). */
void penc_add_text(penc_layer_type *type, const char *name, const char *text, posenc_source source,
                   const char *place);
void penc_add_number(penc_arena *arena, penc_layer_type *type, const char *name, double number,
                     posenc_source source, const char *place);

/* The value of that name; NULL: there is none. */
const posenc_model_value *penc_value_of(const penc_layer_type *type, const char *name);

#endif
