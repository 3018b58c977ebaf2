/* Instructions beyond the compiler's own for the functions between PENC_TARGET_... and PENC_TARGET_END (the library
 * itself is compiled for any CPU), and inlining. SPDX-License-Identifier: MIT */
#ifndef PENC_TARGET_H
#define PENC_TARGET_H

#include "cpu/cpu_level.h"

#if PENC_X86
#define PENC_PRAGMA(...) _Pragma(#__VA_ARGS__)
#if defined(__clang__)
#define PENC_TARGET(words)                                                                         \
    PENC_PRAGMA(clang attribute push(__attribute__((target(words))), apply_to = function))
#define PENC_TARGET_END PENC_PRAGMA(clang attribute pop)
#else
#define PENC_TARGET(words) PENC_PRAGMA(GCC push_options) PENC_PRAGMA(GCC target(words))
#define PENC_TARGET_END    PENC_PRAGMA(GCC pop_options)
#endif

#define PENC_TARGET_AVX2   PENC_TARGET("avx2,fma,f16c")
#define PENC_TARGET_AVX512 PENC_TARGET("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,f16c")
#define PENC_TARGET_AVX512BF16                                                                     \
    PENC_TARGET("avx512f,avx512dq,avx512vl,avx512bw,avx512bf16,avx2,fma,f16c")
#endif

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

#endif
