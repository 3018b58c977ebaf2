/* The rotation kernels in avx2 instructions. SPDX-License-Identifier: MIT */
#include "kernels/rotate_vocabulary.h"

#if PENC_X86
#include <immintrin.h>

PENC_TARGET_AVX2

#define NAME(what) penc_rotate_avx2_##what
#include "kernels/rotate_avx2_vocabulary.inc"

#include "kernels/rotate_vector.inc"

#include "kernels/rotate_end.inc"

PENC_TARGET_END
#endif
