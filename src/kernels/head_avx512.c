/* The kernels of heads in AVX-512 instructions. SPDX-License-Identifier: MIT */
#include "kernels/head_vocabulary.h"

#if PENC_X86
#include <immintrin.h>

PENC_TARGET_AVX512

#define NAME(what)            penc_head_avx512_##what
#define PENC_BF16_INSTRUCTION 0
#include "kernels/rotate_avx512_vocabulary.inc"

#include "kernels/head_avx512_vocabulary.inc"

#include "kernels/head_vector.inc"

#include "kernels/head_turn_vector.inc"

#include "kernels/head_quantise_vector.inc"

#include "kernels/head_end.inc"

#include "kernels/rotate_end.inc"
#undef PENC_BF16_INSTRUCTION

PENC_TARGET_END
#endif
