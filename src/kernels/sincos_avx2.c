/* The sincos kernels in avx2 instructions. SPDX-License-Identifier: MIT */
#include "kernels/sincos_kernels.h"

#if PENC_X86
#include <immintrin.h>
#include <string.h>

/* For the functions of this file only: the library itself is compiled for any CPU. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#include "kernels/vector_avx2.h"

#define NAME(what) penc_sincos_avx2_##what
#include "kernels/sincos_vector.inc"
#include "kernels/vector_end.inc"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
