/* cos and sin of a reduced angle. SPDX-License-Identifier: MIT */
#ifndef PENC_SINCOS_H
#define PENC_SINCOS_H

#include "angles/phase.h"
#include "posenc/dtype.h"

typedef struct penc_sincos {
    double cos, sin;
} penc_sincos;

/* By one fixed sequence of float64 operations: within 1 ulp plus 2^-75, the same bytes everywhere.
 * These are the float64 rows. */
penc_sincos penc_sincos_double(const penc_angle *angle);

/* With all the bits, then rounded to nearest to `dtype` (returned widened to float64). The slow
 * twin of penc_sincos_rounded, which falls back on it. */
penc_sincos penc_sincos_wide(const penc_angle *angle, posenc_dtype dtype);

/* The values that are stored in `dtype`: correctly rounded in float32 and narrower,
 * penc_sincos_double in float64. */
penc_sincos penc_sincos_rounded(const penc_angle *angle, posenc_dtype dtype);

#endif
