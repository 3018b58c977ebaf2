/* A side of a comparison out of a model's own files. SPDX-License-Identifier: MIT */
#ifndef CLI_MODEL_SIDE_H
#define CLI_MODEL_SIDE_H

#include "model_options.h"
#include "posenc/compare.h"

/* Whether `path` names a model: a folder, a GGUF file, a .json file whose model type is known, or no file at all (a
 * name in a local store). Others are specs and dumps. */
int model_side_is(const char *path);

/* Opens the model and makes a side of the part and layer type of `choice`, its angles formed in `mode`. --seq-len is the length for scalings that need one, else the model's own maximum. *model must outlive the
 * side and is freed with posenc_model_free, also after a failure. Returns an exit status. */
int model_side_open(const cli_arguments *arguments, const char *path, const model_choice *choice,
                    posenc_mode mode, posenc_model **model, posenc_side **side);

#endif
