/* The towers of a composite model beside the language model. SPDX-License-Identifier: MIT */
#ifndef PENC_OTHER_PARTS_H
#define PENC_OTHER_PARTS_H

#include "model/model_object.h"

/* Finds them in the configuration whose language part is known, and makes a model of each that can be read. */
posenc_status penc_other_parts_make(posenc_model *model);

void penc_other_parts_free(posenc_model *model);

#endif
