/* The checks of norm and scales. SPDX-License-Identifier: MIT */
#ifndef PENC_HEAD_STAGES_H
#define PENC_HEAD_STAGES_H

#include "base/memory_map.h"
#include "posenc/norm_rotate.h"

/* `tensor` has been checked; `stages` may be NULL. Its head_dim must fit the memory of a pass. */
posenc_status penc_check_stages(const posenc_head_stages *stages, const posenc_tensor *tensor,
                                posenc_error *error);

/* Checks that weight and scales do not lie in what is written. */
posenc_status penc_check_stages_apart(const posenc_head_stages *stages, const posenc_tensor *tensor,
                                      const penc_memory_map *written, const void *output,
                                      posenc_error *error);

/* The number that multiplies a token; 1 if there is none. */
double penc_token_factor(const posenc_head_stages *stages, int is_double, size_t batch,
                         size_t token);

#endif
