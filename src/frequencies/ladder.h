/* The geometric ladder of frequencies scale * base^(-k/n), and its compact form in turns.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_LADDER_H
#define PENC_LADDER_H

#include "base/power.h"

/* A frequency in turns per position: (high:low) * 2^(exponent - 128), the top bit of high set. It
 * is a floating number, so that slow frequencies keep their relative precision of 2^-127. */
typedef struct penc_turns {
    uint64_t high, low;
    int exponent;
    int negative;
} penc_turns;

/* Bases outside this range occur nowhere and would leave float32. The test is false for NaN. */
#define PENC_BASE_RANGE "be from 1e-6 to 1e30"
static inline int penc_base_is_valid(double base) {
    return base >= 1e-6 && base <= 1e30;
}

/* base^(-numerator/denominator) in radians per position, relative error below 2^-230; log2_base is
 * penc_log2(base). numerator and denominator are below 2^32, denominator is not 0. */
penc_real penc_ladder_rung(const penc_exponent *log2_base, uint64_t numerator,
                           uint64_t denominator);

/* `radians` * scale, in turns; the significand of `radians` is below 2. scale is finite and not 0. Zero
 * radians give a frequency whose bits are all 0. */
penc_turns penc_turns_of(const penc_real *radians, double scale);

#endif
