/* What looks wrong in a model's files. SPDX-License-Identifier: MIT */
#ifndef PENC_MODEL_WARNINGS_H
#define PENC_MODEL_WARNINGS_H

#include "model/model_object.h"

/* Fills the model's list of warnings. Fails with OUT_OF_MEMORY only. */
posenc_status penc_warn(posenc_model *model);

#endif
