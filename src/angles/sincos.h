/* cos and sin of a reduced angle. SPDX-License-Identifier: MIT */
#ifndef PENC_SINCOS_H
#define PENC_SINCOS_H

#include "angles/phase.h"
#include "posenc/dtype.h"

typedef struct penc_sincos {
    double cos, sin;
} penc_sincos;

/* A factor on cos and sin: as a real number (significand below 2^63) and as a float64. */
typedef struct penc_magnitude {
    penc_real exact;
    double rounded;
} penc_magnitude;

/* By one fixed sequence of float64 operations: within 1 ulp plus 2^-75, the same bytes everywhere.
 * These are the float64 rows. */
penc_sincos penc_sincos_double(const penc_angle *angle);

/* With all the bits, times `magnitude` (NULL: 1), then rounded to nearest to `dtype` (returned widened
 * to float64). The slow twin of penc_sincos_rounded, which falls back on it. */
penc_sincos penc_sincos_wide(const penc_angle *angle, const penc_magnitude *magnitude,
                             posenc_dtype dtype);

/* The values that are stored in `dtype`, times `magnitude` (NULL: 1): correctly rounded, except that
 * float64 without a magnitude is penc_sincos_double. */
penc_sincos penc_sincos_rounded(const penc_angle *angle, const penc_magnitude *magnitude,
                                posenc_dtype dtype);

#endif
