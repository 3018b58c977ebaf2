/* The bias kernels in avx2 instructions. SPDX-License-Identifier: MIT */
#include "kernels/bias_kernels.h"

#include "base/number_access.h"

#include <math.h>

#if PENC_X86
PENC_TARGET_AVX2
#define KERNEL(dtype, what) penc_bias_avx2_##dtype##_##what
#include "kernels/bias_dtypes.inc"
PENC_TARGET_END
#endif
