/* The sincos kernels in avx512 instructions. SPDX-License-Identifier: MIT */
#include "kernels/sincos_kernels.h"
#include "kernels/target.h"

#if PENC_X86
#include <immintrin.h>
#include <string.h>

PENC_TARGET_AVX512

#include "kernels/vector_avx512.h"

#define NAME(what) penc_sincos_avx512_##what
#include "kernels/sincos_double.inc"
#include "kernels/sincos_round.inc"
#include "kernels/sincos_vector.inc"
#include "kernels/vector_end.inc"

PENC_TARGET_END
#endif
