/* What the vocabularies of rotation share. SPDX-License-Identifier: MIT */
#ifndef PENC_ROTATE_VOCABULARY_H
#define PENC_ROTATE_VOCABULARY_H

#include "kernels/rotate_kernels.h"

#if defined(__GNUC__)
/* Dtypes, orders and sizes must become constants, whatever the level of optimisation. */
#define PENC_ALWAYS_INLINE static inline __attribute__((always_inline))
#endif

/* Bytes of a number of a dtype. */
#define PENC_BYTES(dtype) ((dtype) == POSENC_F64 ? 8 : (dtype) == POSENC_F32 ? 4 : 2)

#endif
