/* Which rows of which tensors are the rotary rows of q and k of a layer. SPDX-License-Identifier: MIT */
#ifndef PENC_ATTENTION_ROWS_H
#define PENC_ATTENTION_ROWS_H

#include "checkpoint/attention_names.h"

/* One side of a layer. */
typedef struct penc_side_rows {
    const penc_tensor_source *file;
    penc_tensor tensor;
    const char *part; /* its name's part, for bias, gains and scales */
    penc_head_rows heads;
} penc_side_rows;

/* Checks a shape and fills its defaults into *full. */
posenc_status penc_attention_shape_check(const posenc_attention_shape *shape,
                                         posenc_attention_shape *full, posenc_error *error);

/* Finds q (sides[0]) and k (sides[1]) of a layer and checks their rows against a full shape. */
posenc_status penc_attention_rows_of(const penc_tensor_set *set, const penc_attention_names *names,
                                     uint32_t layer, const posenc_attention_shape *shape,
                                     penc_side_rows sides[2], posenc_error *error);

#endif
