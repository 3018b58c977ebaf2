/* No scaling: f_j = base^(-2j/d). SPDX-License-Identifier: MIT */
#include "frequencies/scaling_rule.h"

static posenc_status penc_default_prepare(penc_scaling_case *c, posenc_notes *notes,
                                          posenc_error *error) {
    (void)c;
    (void)notes;
    (void)error;
    return POSENC_OK;
}

const penc_scaling_rule penc_scaling_default = {penc_default_prepare, NULL, NULL, NULL, NULL, 1};
