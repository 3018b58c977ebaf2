/* Where a checkpoint keeps the q and k projections of its layers, by the names of its tensors.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_ATTENTION_NAMES_H
#define PENC_ATTENTION_NAMES_H

#include "checkpoint/head_rows.h"
#include "formats/tensor_set.h"

/* One way of naming them: texts between "LAYER." and ".weight". */
typedef struct penc_attention_scheme {
    const char *q, *k; /* k is NULL where q holds all */
    penc_attention_layout layout;
    const char *v, *output; /* the projections beside separate q and k; else NULL */
} penc_attention_scheme;

enum { PENC_MAX_LAYERS_FOUND = 1 << 14, PENC_PREFIX_BYTES = 128, PENC_MAX_STACKS = 32 };

/* Names of q's and k's norm gains. */
enum { PENC_GAIN_PARTS = 6 };
extern const char *const penc_gain_parts[PENC_GAIN_PARTS][2];

typedef struct penc_attention_names {
    char prefix[PENC_PREFIX_BYTES]; /* before the layer's number: "model.layers.", "blk." */
    const penc_attention_scheme *scheme;
    uint32_t *layers; /* the numbers of layers that have attention, ascending */
    size_t count;
    int tower; /* it sees pictures or hears sound */
} penc_attention_names;

/* Finds them; of several stacks of layers the one with most, towers for pictures and sound last. On failure
 * *names holds nothing. Fails with UNSUPPORTED where there are none. */
posenc_status penc_attention_names_find(const penc_tensor_set *set, penc_attention_names *names,
                                        posenc_error *error);
void penc_attention_names_free(penc_attention_names *names);

/* All stacks of layers that have q or k projections, or what belongs to one (a bias, LoRA's matrices, packed weights),
 * in order of that choice. Each of the *count names is freed on its own. */
posenc_status penc_attention_stacks_find(const penc_tensor_set *set,
                                         penc_attention_names names[PENC_MAX_STACKS], size_t *count,
                                         posenc_error *error);

/* Splits PREFIX "7" ".PART" END, as of "model.layers.7.self_attn.q_proj.weight": returns the length of the prefix and
 * sets *layer and *end (".weight"). 0 if the name has not that part. */
size_t penc_attention_name_split(const char *name, const char *part, uint32_t *layer,
                                 const char **end);

/* The name of a layer's tensor, such as layer 3, "self_attn.q_proj", ".bias". Returns 0 if it is too long. */
int penc_attention_name(const penc_attention_names *names, uint32_t layer, const char *part,
                        const char *end, char name[PENC_NAME_BYTES]);

#endif
