/* The sincos kernels in NEON instructions. SPDX-License-Identifier: MIT */
#include "kernels/sincos_kernels.h"

#if PENC_NEON
#include <arm_neon.h>

#include "kernels/vector_neon.h"

#define NAME(what) penc_sincos_neon_##what
#include "kernels/sincos_vector.inc"
#include "kernels/vector_end.inc"

const penc_sincos_kernels penc_sincos_kernels_neon = {
    penc_sincos_neon_row, penc_sincos_neon_round_row, penc_sincos_neon_round_run};
#endif
