/* --config PATH and --layer-type T: a spec from a model's own files. SPDX-License-Identifier: MIT */
#ifndef CLI_MODEL_OPTIONS_H
#define CLI_MODEL_OPTIONS_H

#include "command.h"
#include "posenc/model.h"

/* Which part of a composite model, and which of its layers; NULL: the language model, the only ones that rotate. */
typedef struct model_choice {
    const char *part, *layer_type;
} model_choice;

/* Opens the model of --config (freed with posenc_model_free) and chooses the part of --part and the layer type: the one of
 * --layer-type, else the only one that rotates. The other options of a spec are refused beside it, but --pairing
 * for a model of unknown kind, where it is required. `head_dim` (0: none) is what the spec must have. */
int model_options_get(const cli_arguments *arguments, uint64_t head_dim, posenc_model **model,
                      const posenc_layer_type **type, posenc_spec *spec);

/* The layer type of that name (also the file's word for some of its layers), or, where none is given, the only one
 * that rotates; else says what there is and returns CLI_BAD_USAGE. */
int model_type_choose(const cli_arguments *arguments, const char *path, const posenc_model *model,
                      const model_choice *choice, const posenc_layer_type **type);

#endif
