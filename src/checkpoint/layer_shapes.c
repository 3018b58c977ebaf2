/* The shape of attention in every layer. SPDX-License-Identifier: MIT */
#include "checkpoint/layer_shapes.h"

#include "base/fail.h"
#include "checkpoint/attention_rows.h"

#include <stdlib.h>
#include <string.h>

const posenc_attention_shape *penc_layer_shape(const penc_layer_shapes *shapes, uint32_t layer) {
    unsigned number = layer < shapes->layers ? shapes->of_layer[layer] : 0;
    return number < shapes->count ? &shapes->shape[number] : NULL;
}

static posenc_attention_shape penc_shape_of_type(const posenc_layer_type *type) {
    posenc_attention_shape shape = POSENC_ATTENTION_SHAPE_INIT;
    if (!type)
        return shape;
    shape.heads = type->heads;
    shape.kv_heads = type->kv_heads;
    shape.head_dim = type->spec.head_dim;
    shape.rotary_dim = type->spec.rotary_dim;
    shape.rotary_start = type->spec.rotary_start;
    return shape;
}

/* Adds a shape, what is `given` before what the type says. Rotary channels must be pairs. */
static posenc_status penc_shapes_add(penc_layer_shapes *shapes, const posenc_layer_type *type,
                                     const posenc_attention_shape *given, posenc_error *error) {
    posenc_attention_shape shape = penc_shape_of_type(type);
    shape.heads = given->heads ? given->heads : shape.heads;
    shape.kv_heads = given->kv_heads ? given->kv_heads : shape.kv_heads;
    shape.head_dim = given->head_dim ? given->head_dim : shape.head_dim;
    shape.rotary_dim = given->rotary_dim ? given->rotary_dim : shape.rotary_dim;
    shape.rotary_start = given->rotary_start ? given->rotary_start : shape.rotary_start;
    posenc_attention_shape *full = &shapes->shape[shapes->count];
    posenc_status status = penc_attention_shape_check(&shape, full, error);
    if (!status && full->rotary_dim % 2)
        return penc_fail_size(error, "rotary_dim", full->rotary_dim, "be even");
    shapes->count += !status;
    return status;
}

static void penc_shapes_note(penc_layer_shapes *shapes, const posenc_layer_type *type,
                             unsigned char number) {
    for (size_t i = 0; i < type->layer_count; i++) {
        if (type->layers[i] < shapes->layers)
            shapes->of_layer[type->layers[i]] = number;
    }
}

static int penc_type_rotates(const posenc_layer_type *type) {
    return type->kind == POSENC_ENCODING_ROPE || type->kind == POSENC_ENCODING_UNKNOWN;
}

static posenc_status penc_shapes_of_model(const posenc_model *model,
                                          const posenc_attention_shape *given,
                                          penc_layer_shapes *shapes, posenc_error *error) {
    size_t types = posenc_model_layer_type_count(model);
    shapes->layers = posenc_model_layer_count(model);
    shapes->of_layer = calloc(shapes->layers + 1, 1);
    if (!shapes->of_layer)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "layers", "fit into memory");
    for (size_t i = 0; i < types; i++) {
        const posenc_layer_type *type = posenc_model_layer_type(model, i);
        if (penc_type_rotates(type) && shapes->count < PENC_MAX_SHAPES) {
            posenc_status status = penc_shapes_add(shapes, type, given, error);
            if (status)
                return status;
            penc_shapes_note(shapes, type, (unsigned char)(shapes->count - 1));
        } else {
            penc_shapes_note(shapes, type, PENC_MAX_SHAPES);
        }
    }
    return POSENC_OK;
}

posenc_status penc_layer_shapes_fill(const posenc_model *model, const posenc_attention_shape *given,
                                     penc_layer_shapes *shapes, posenc_error *error) {
    memset(shapes, 0, sizeof *shapes);
    posenc_status status = POSENC_OK;
    if (model)
        status = penc_shapes_of_model(model, given, shapes, error);
    if (!status && !shapes->count) { /* nothing rotates, but the caller insists */
        shapes->layers = 0;
        status = penc_shapes_add(shapes, NULL, given, error);
    }
    return status;
}

void penc_layer_shapes_free(penc_layer_shapes *shapes) {
    free(shapes->of_layer);
    memset(shapes, 0, sizeof *shapes);
}
