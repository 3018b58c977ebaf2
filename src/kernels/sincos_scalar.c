/* The sincos kernels in plain C, and the choice of an instance. SPDX-License-Identifier: MIT */
#include "kernels/sincos_kernels.h"
#include "kernels/target.h"

#include "kernels/vector_scalar.h"

#define NAME(what) penc_sincos_scalar_##what
#include "kernels/sincos_double.inc"
#include "kernels/sincos_round.inc"
#include "kernels/sincos_vector.inc"
#include "kernels/vector_end.inc"

const penc_sincos_kernels *penc_sincos_kernels_now(void) {
    const penc_sincos_kernels *best = NULL;
    penc_cpu_level level = penc_cpu_level_now();
#define PENC_CHOOSE(suffix, needed)                                                                \
    if (level >= (needed))                                                                         \
        best = &penc_sincos_##suffix##_kernels;
    PENC_SINCOS_INSTANCES(PENC_CHOOSE)
#undef PENC_CHOOSE
    return best;
}
