/* One number of a hypothesis, measured from the arrays. SPDX-License-Identifier: MIT */
#ifndef PENC_FIT_H
#define PENC_FIT_H

#include "diagnosis/evidence.h"

typedef enum penc_fitted {
    PENC_FIT_SHIFT, /* added to every position */
    PENC_FIT_SCALE, /* multiplies every angle, minus 1 */
    PENC_FIT_BASE   /* log of what multiplies the base */
} penc_fitted;

/* What brings the angles of `model` closest to those between `before` and `after`. Returns 0 if they cannot be measured
 * (cos and sin exchanged, pairs mixed up, no angle at all). */
int penc_fit(const penc_evidence *evidence, const penc_model *model, penc_fitted what,
             double *value);

#endif
