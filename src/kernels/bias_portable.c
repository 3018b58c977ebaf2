/* The bias kernels in the compiler's own instructions, and the choice of an instance. SPDX-License-Identifier: MIT */
#include "kernels/bias_kernels.h"

#include "base/number_access.h"

#include <math.h>

#define F32_BLOCKS(...)     0
#define KERNEL(dtype, what) penc_bias_portable_##dtype##_##what
#include "kernels/bias_dtypes.inc"

penc_bias_kernel *penc_bias_kernel_of(posenc_dtype dtype) {
    penc_bias_kernel *best = NULL;
    penc_cpu_level level = penc_cpu_level_now();
#define PENC_CHOOSE(suffix, needed)                                                                \
    if (level >= (needed))                                                                         \
        best = penc_bias_##suffix##_every_kernel[dtype];
    PENC_BIAS_INSTANCES(PENC_CHOOSE)
#undef PENC_CHOOSE
    return best;
}
