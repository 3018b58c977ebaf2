/* What the vocabularies of rotation share. SPDX-License-Identifier: MIT */
#ifndef PENC_ROTATE_VOCABULARY_H
#define PENC_ROTATE_VOCABULARY_H

#include "kernels/rotate_kernels.h"
#include "kernels/target.h"

/* Bytes of a number of a dtype. */
#define PENC_BYTES(dtype) ((dtype) == POSENC_F64 ? 8 : (dtype) == POSENC_F32 ? 4 : 2)

#endif
