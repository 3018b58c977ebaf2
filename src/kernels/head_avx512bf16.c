/* The kernels of heads in AVX-512 instructions, bfloat16 rounded by its own. SPDX-License-Identifier: MIT */
#include "kernels/head_vocabulary.h"

#if PENC_X86
#include <immintrin.h>

/* For the functions of this file only: the library itself is compiled for any CPU. */
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx512bf16,avx2,fma,f16c"))),        \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx512bf16,avx2,fma,f16c")
#endif

#define NAME(what)            penc_head_avx512bf16_##what
#define PENC_BF16_INSTRUCTION 1
#include "kernels/rotate_avx512_vocabulary.inc"

#include "kernels/head_avx512_vocabulary.inc"

#include "kernels/head_vector.inc"

#include "kernels/head_turn_vector.inc"

#include "kernels/head_end.inc"

#include "kernels/rotate_end.inc"
#undef PENC_BF16_INSTRUCTION

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
