/* What the vocabularies of rotation share. SPDX-License-Identifier: MIT */
#ifndef PENC_ROTATE_VOCABULARY_H
#define PENC_ROTATE_VOCABULARY_H

#include "kernels/rotate_kernels.h"

/* Dtypes, orders and sizes become constants where the compiler optimises. Where it does not, or a sanitizer checks
 * every access, inlining would only multiply the code that it has to chew. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PENC_SANITIZED 1
#endif
#endif
#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(PENC_SANITIZED) &&                      \
    !defined(__SANITIZE_ADDRESS__)
#define PENC_ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define PENC_ALWAYS_INLINE static inline
#endif

/* Bytes of a number of a dtype. */
#define PENC_BYTES(dtype) ((dtype) == POSENC_F64 ? 8 : (dtype) == POSENC_F32 ? 4 : 2)

#endif
