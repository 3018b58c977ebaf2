/* A layer type's spec out of its effective block. SPDX-License-Identifier: MIT */
#ifndef PENC_ROPE_SPEC_H
#define PENC_ROPE_SPEC_H

#include "model/model_object.h"

/* Fills type->type.spec and what goes with it, with a value and its source for each member. What the file
 * contradicts or leaves out makes the type invalid, which is no error. Errors: OUT_OF_MEMORY and keys that
 * are no numbers. */
posenc_status penc_rope_spec_make(const posenc_model *model, penc_layer_type *type);

/* heads, kv_heads, window and max_positions, for every kind. */
posenc_status penc_attention_facts(const posenc_model *model, penc_layer_type *type);

#endif
