/* What several warnings ask. SPDX-License-Identifier: MIT */
#ifndef PENC_WARNING_FACTS_H
#define PENC_WARNING_FACTS_H

#include "model/model_object.h"

/* A number of an object; 0 if it is no number or not there. */
int penc_number_in(json_object *object, const char *key, double *number);

/* Whether the type's rope_type is the word. */
int penc_scaled_by(const penc_layer_type *type, const char *word);

/* A value's number if the file gives it; 0 otherwise. */
int penc_file_number(const penc_layer_type *type, const char *name, double *number);

/* The text of a number, in the arena. */
const char *penc_show(const posenc_model *model, double number);

/* A sentence in the model's memory. */
#define penc_say(model, ...) penc_arena_print((model)->config.arena, __VA_ARGS__)

/* The frequencies at the model's own length; NULL without a valid spec or memory (penc_warn tells). */
posenc_frequencies *penc_frequencies_of(const posenc_model *model, const penc_layer_type *type);

/* Their attention factor; 1 without them. */
double penc_attention_factor(const posenc_model *model, const penc_layer_type *type);

#endif
