/* From a parsed configuration to the model. SPDX-License-Identifier: MIT */
#ifndef PENC_MODEL_BUILD_H
#define PENC_MODEL_BUILD_H

#include "model/model_object.h"

/* Fills the model whose config has root, part, rule and implied: layer types, specs and values. */
posenc_status penc_model_build(posenc_model *model);

#endif
