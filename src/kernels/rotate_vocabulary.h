/* What the vocabularies of rotation share. SPDX-License-Identifier: MIT */
#ifndef PENC_ROTATE_VOCABULARY_H
#define PENC_ROTATE_VOCABULARY_H

#include "kernels/rotate_kernels.h"

/* Dtypes, orders and sizes become constants where the compiler optimises; where it does not, inlining would only
 * multiply the code that it has to chew. */
#if defined(__GNUC__) && defined(__OPTIMIZE__)
#define PENC_ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define PENC_ALWAYS_INLINE static inline
#endif

/* Bytes of a number of a dtype. */
#define PENC_BYTES(dtype) ((dtype) == POSENC_F64 ? 8 : (dtype) == POSENC_F32 ? 4 : 2)

#endif
