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

/* By one fixed sequence of float64 operations, so the same bytes everywhere: within 0.91 ulp of cos and sin
 * of the angle it is given. These are the float64 rows.
 * contract: penc_sincos_double ulp=0.91 interval=0:0x1.921fb54442d17p-1
 *   witness=0x1.8d422ccdb088p-1,0x1.b9f047162ae31p-54 worst=0.893121 */
penc_sincos penc_sincos_double(const penc_angle *angle);

/* With all the bits, times `magnitude` (NULL: 1), then rounded to nearest to `dtype` (returned widened
 * to float64). The slow twin of penc_sincos_rounded, which falls back on it. */
penc_sincos penc_sincos_wide(const penc_angle *angle, const penc_magnitude *magnitude,
                             posenc_dtype dtype);

/* The values that are stored in `dtype`, times `magnitude` (NULL: 1): correctly rounded, a value
 * within 2^-128 of itself of a tie counting as a tie; except that float64 without a magnitude is
 * penc_sincos_double.
 * contract: penc_sincos_rounded ulp=0.5 relative=0x1p-127 interval=0:0x1.921fb54442d17p-1
 *   witness=0x1.32dfcd8764cc8p-1,0x1.1b2229eeec15fp-54 worst=1.000000 */
penc_sincos penc_sincos_rounded(const penc_angle *angle, const penc_magnitude *magnitude,
                                posenc_dtype dtype);

#endif
