/* One effective rope_parameters block out of all the places where models write it. SPDX-License-Identifier: MIT */
#ifndef PENC_ROPE_BLOCK_H
#define PENC_ROPE_BLOCK_H

#include "model/model_object.h"

/* Puts the object in place of a text that holds JSON (rope_scaling as a string). */
void penc_rope_block_unwrap(penc_config *config);

/* The block of the file: rope_scaling where it says something, else rope_parameters. NULL: neither. */
json_object *penc_rope_block_given(const penc_config *config, const char **place);

/* Whether the block has one entry for each layer type: an object or null under one of `names`. */
int penc_rope_block_is_nested(json_object *block, const char *const *names, size_t count);

/* The block of a layer type in the file and in the rule's defaults. `off` is set to 1 where the file turns
 * the rotation of that type off (null). */
json_object *penc_rope_block_of_type(json_object *block, const char *name, int nested, int *off);

/* What the rule's column `bases` says of a layer type. */
typedef struct penc_type_rule {
    int listed;      /* 0: the column names no types, all share one block */
    int found;       /* this type is in it */
    int scaled;      /* a flat block's scaling applies to it */
    const char *key; /* where the file has its base; NULL: rope_theta */
} penc_type_rule;
penc_type_rule penc_type_rule_of(const penc_config *config, const char *name);

/* Makes type->block: rope_type, rope_theta, the scaling's keys, lengths and sections, each with its source
 * noted. `given` is the file's block for this type (NULL: none), found at `place`; nested: it is under the
 * type's name. */
posenc_status penc_rope_block_make(const penc_config *config, penc_layer_type *type,
                                   json_object *given, const char *place, int nested);

#endif
