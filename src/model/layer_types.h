/* Which layers share an encoding. SPDX-License-Identifier: MIT */
#ifndef PENC_LAYER_TYPES_H
#define PENC_LAYER_TYPES_H

#include "model/model_object.h"

/* Fills model->layer_count, layer_names and types: names, layers, and for each the kind: NONE for layers
 * that do not rotate or have no attention, else `kind`. */
posenc_status penc_layer_types_make(posenc_model *model, posenc_encoding_kind kind);

#endif
