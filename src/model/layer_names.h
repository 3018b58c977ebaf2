/* The name of every layer. SPDX-License-Identifier: MIT */
#ifndef PENC_LAYER_NAMES_H
#define PENC_LAYER_NAMES_H

#include "model/model_object.h"

/* Fills model->layer_names (model->layer_count of them) from the file's lists, else from the rule's pattern.
 * Returns 0, with layer_names NULL, where neither says anything. */
int penc_layer_names_make(posenc_model *model);

/* Whether layers of that name have no attention (Mamba, convolutions ...). */
int penc_layer_has_no_attention(const char *name);

#endif
