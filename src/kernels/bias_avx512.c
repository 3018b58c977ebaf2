/* The bias kernels in avx512 instructions. SPDX-License-Identifier: MIT */
#include "kernels/bias_kernels.h"

#include "base/number_access.h"

#include <math.h>

#if PENC_X86
PENC_TARGET_AVX512
#define KERNEL(dtype, what) penc_bias_avx512_##dtype##_##what
#include "kernels/bias_dtypes.inc"
PENC_TARGET_END
#endif
