/* The rotation kernels in avx512 instructions. SPDX-License-Identifier: MIT */
#include "kernels/rotate_vocabulary.h"

#if PENC_X86
#include <immintrin.h>

PENC_TARGET_AVX512

#define NAME(what)            penc_rotate_avx512_##what
#define PENC_BF16_INSTRUCTION 0
#include "kernels/rotate_avx512_vocabulary.inc"

#include "kernels/rotate_vector.inc"

#include "kernels/rotate_end.inc"
#undef PENC_BF16_INSTRUCTION

PENC_TARGET_END
#endif
