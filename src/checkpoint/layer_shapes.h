/* The shape of attention in every layer. SPDX-License-Identifier: MIT */
#ifndef PENC_LAYER_SHAPES_H
#define PENC_LAYER_SHAPES_H

#include "posenc/checkpoint.h"
#include "posenc/model.h"

enum { PENC_MAX_SHAPES = 64 };

typedef struct penc_layer_shapes {
    posenc_attention_shape
        shape[PENC_MAX_SHAPES]; /* full; one of each type of layers that rotates */
    size_t count;
    unsigned char *
        of_layer; /* number of its shape, PENC_MAX_SHAPES where the layer does not rotate; NULL: all 0 */
    size_t layers; /* behind them the first shape holds */
    int trusted; /* heads and head_dim are what a configuration or a record says, not the caller alone */
} penc_layer_shapes;

/* The shape of a layer; NULL: it does not rotate. */
const posenc_attention_shape *penc_layer_shape(const penc_layer_shapes *shapes, uint32_t layer);

/* Takes the shapes of a model's types, `given` before those. `model` may be NULL: then `given` says all. Fails with
 * OUT_OF_RANGE for a shape that is not valid. */
posenc_status penc_layer_shapes_fill(const posenc_model *model, const posenc_attention_shape *given,
                                     penc_layer_shapes *shapes, posenc_error *error);
void penc_layer_shapes_free(penc_layer_shapes *shapes);

#endif
