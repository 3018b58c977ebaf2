/* Position times frequency, reduced to an eighth of a turn in integer arithmetic: an exact range
 * reduction, whatever the position. SPDX-License-Identifier: MIT */
#ifndef PENC_PHASE_H
#define PENC_PHASE_H

#include "frequencies/ladder.h"

/* A position's sign, significand and power of two. */
typedef struct penc_position {
    uint64_t significand;
    int exponent;
    int negative;
} penc_position;

/* angle = sign * (quarter * pi/2 + rest), |rest| = `radians` in [0, pi/4]. */
typedef struct penc_angle {
    int negative;      /* the whole angle's sign: flips sin only */
    unsigned quarter;  /* 0 ... 3 */
    int rest_negative; /* the sign of rest */
    penc_wide radians;
} penc_angle;

penc_position penc_position_of_double(double position);

/* The angle of `position` at `frequency`: off by less than 2^-126.9 of |position| * frequency (real, in
 * radians) plus 2^-252; so by 2^-120 of itself while it is from 2^-130 to an eighth of a turn.
 * contract: penc_angle_at relative=0x1.01p-127 absolute=0x1p-252 interval=0:0x1p40
 *   witness=1000000,128,17,2645 worst=0.949484 */
penc_angle penc_angle_at(const penc_position *position, const penc_turns *frequency);

/* The angle of a float32 number of radians (|radians| up to 2^64): error below 2^-120 of it. */
penc_angle penc_angle_of_radians(float radians);

#endif
