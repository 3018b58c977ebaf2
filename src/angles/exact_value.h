/* One cos and sin in mode exact: the slow clear way that fast rows fall back on.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_EXACT_VALUE_H
#define PENC_EXACT_VALUE_H

#include "angles/sincos.h"
#include "frequencies/frequencies_object.h"

/* Position times frequency as a real number, times the attention factor (if `attention` is 1), rounded once
 * to `dtype`. */
static inline penc_sincos penc_exact_value(const posenc_frequencies *frequencies, size_t pair,
                                           double position, int attention, posenc_dtype dtype) {
    penc_magnitude magnitude = {frequencies->attention.exact, frequencies->attention_factor};
    penc_position place = penc_position_of_double(position);
    penc_angle angle = penc_angle_at(&place, &frequencies->frequency[pair].turns);
    return penc_sincos_rounded(&angle, attention && frequencies->has_attention ? &magnitude : NULL,
                               dtype);
}

#endif
