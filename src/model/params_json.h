/* params.json, as Meta and Mistral ship it beside their own checkpoints. SPDX-License-Identifier: MIT */
#ifndef PENC_PARAMS_JSON_H
#define PENC_PARAMS_JSON_H

#include "model/config_keys.h"

/* The row of rules for it; NULL if the object is none (it has a model_type of its own, or no dim and n_heads). */
const char *penc_params_rule(json_object *root);

/* Writes what such files say of scalings as a rope_parameters block: "yarn" (Mistral), use_scaled_rope (Meta). */
void penc_params_translate(penc_config *config);

#endif
