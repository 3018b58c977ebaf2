/* The rotation kernels in avx512bf16 instructions. SPDX-License-Identifier: MIT */
#include "kernels/rotate_vocabulary.h"

#if PENC_X86
#include <immintrin.h>

PENC_TARGET_AVX512BF16

#define NAME(what)            penc_rotate_avx512bf16_##what
#define PENC_BF16_INSTRUCTION 1
#include "kernels/rotate_avx512_vocabulary.inc"

#include "kernels/rotate_vector.inc"

#include "kernels/rotate_end.inc"
#undef PENC_BF16_INSTRUCTION

PENC_TARGET_END
#endif
