/* What looks wrong in a model's files. SPDX-License-Identifier: MIT */
#include "model/model_warnings.h"

posenc_status penc_warn(posenc_model *model) {
    (void)model;
    return POSENC_OK;
}
