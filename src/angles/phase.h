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

/* The angle of `position` at `frequency`. Absolute error below |position| * frequency * 2^-124
 * radians, and below 2^-120 of the angle itself where that is less than an eighth of a turn. */
penc_angle penc_angle_at(const penc_position *position, const penc_turns *frequency);

/* The angle of a float32 number of radians (|radians| up to 2^64): error below 2^-120 of it. */
penc_angle penc_angle_of_radians(float radians);

#endif
