/* Rotating all heads of one token, in pointers and counts: no specs, no checks.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_ROTATE_KERNELS_H
#define PENC_ROTATE_KERNELS_H

#include "posenc/dtype.h"

/* Pair j of head h is channels j * step and j * step + gap, in elements from x + h * head. */
typedef struct penc_side {
    ptrdiff_t head, step, gap;
} penc_side;

/* One token: x and y at its first rotating channel, cos and sin at its row. */
typedef struct penc_rotate_job {
    size_t heads, pairs;
    penc_side x_side, y_side;
    ptrdiff_t pair_stride; /* of cos and sin */
    int transpose;         /* 1: rotate by the negated angle */
    double scale;          /* multiplies every result, rounded once more; not if it is 1 */
} penc_rotate_job;

typedef void penc_rotate_kernel(const penc_rotate_job *job, const void *x, const void *cos,
                                const void *sin, void *y);

/* Every kernel: suffix and dtype. */
#define PENC_ROTATE_KERNELS(X)                                                                     \
    X(f32, POSENC_F32)                                                                             \
    X(f64, POSENC_F64)                                                                             \
    X(f16, POSENC_F16)                                                                             \
    X(bf16, POSENC_BF16)

/* NULL for a number that is no dtype. */
penc_rotate_kernel *penc_rotate_kernel_of(posenc_dtype dtype);

#endif
