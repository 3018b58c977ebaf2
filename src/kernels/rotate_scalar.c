/* The scalar kernels of every dtype. SPDX-License-Identifier: MIT */
#include "kernels/rotate_kernels.h"

#include "base/number_access.h"

#define NAME   penc_rotate_scalar_f32
#define MEMORY float
#define REAL   float
#define LOAD   PENC_SAME
#define STORE  PENC_SAME
#include "kernels/rotate_scalar.inc"

#define NAME   penc_rotate_scalar_f64
#define MEMORY double
#define REAL   double
#define LOAD   PENC_SAME
#define STORE  PENC_SAME
#include "kernels/rotate_scalar.inc"

#define NAME   penc_rotate_scalar_f16
#define MEMORY uint16_t
#define REAL   float
#define LOAD   penc_float_of_f16
#define STORE  penc_f16_of_float
#include "kernels/rotate_scalar.inc"

#define NAME   penc_rotate_scalar_bf16
#define MEMORY uint16_t
#define REAL   float
#define LOAD   penc_float_of_bf16
#define STORE  penc_bf16_of_float
#include "kernels/rotate_scalar.inc"

penc_rotate_kernel *penc_rotate_kernel_of(posenc_dtype dtype) {
    switch (dtype) {
#define PENC_CASE(suffix, dtype_value)                                                             \
    case dtype_value:                                                                              \
        return penc_rotate_scalar_##suffix;
        PENC_ROTATE_KERNELS(PENC_CASE)
#undef PENC_CASE
    }
    return NULL;
}
