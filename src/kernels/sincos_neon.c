/* The sincos kernels in NEON instructions. SPDX-License-Identifier: MIT */
#include "kernels/sincos_kernels.h"
#include "kernels/target.h"

#if PENC_NEON
#include <arm_neon.h>

#include "kernels/vector_neon.h"

#define NAME(what) penc_sincos_neon_##what
#include "kernels/sincos_double.inc"
#include "kernels/sincos_round.inc"
#include "kernels/sincos_vector.inc"
#include "kernels/vector_end.inc"
#endif
