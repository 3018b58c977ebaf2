/* The rotation kernels in NEON instructions. SPDX-License-Identifier: MIT */
#include "kernels/rotate_vocabulary.h"

#if PENC_NEON
#include <arm_neon.h>

#define NAME(what) penc_rotate_neon_##what
#include "kernels/rotate_neon_vocabulary.inc"

#include "kernels/rotate_vector.inc"

#include "kernels/rotate_end.inc"
#endif
