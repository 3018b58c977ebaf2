/* What a scaling is made of: one file per scaling defines a rule, scaling_list.h lists them.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_SCALING_RULE_H
#define PENC_SCALING_RULE_H

#include "base/fail.h"
#include "base/notes.h"
#include "frequencies/axis_map.h"
#include "frequencies/ladder.h"
#include "posenc/frequencies.h"

/* A spec under resolution, and what a rule computes once for all pairs. */
typedef struct penc_scaling_case {
    posenc_spec spec;       /* defaults filled in */
    posenc_scaling scaling; /* a copy, for defaults to be filled in */
    uint64_t seq_len;
    size_t pairs;
    size_t pair;              /* the pair at hand, 0 ... pairs - 1 */
    penc_axis_place place;    /* its place */
    penc_exponent log2_base;  /* of the exact mode: of the base as a real number */
    double float_base;        /* of the float32 mode: the float64 that frameworks raise to powers */
    penc_exponent log2_float; /* log2 of float_base rounded to float32 */
    penc_wide ramp_low, ramp_slope; /* yarn: the ramp's start and 1 / its length, */
    int ramp_high_below_low;        /* which runs backwards if its end lies below its start */
    float float_low, float_length;  /* yarn: the same as frameworks subtract and divide by */
} penc_scaling_case;

/* The number that multiplies cos and sin. */
typedef struct penc_attention {
    penc_real exact;  /* as a real number, significand below 2^63 */
    double framework; /* by transformers' float64 operations */
} penc_attention;

typedef struct penc_scaling_rule {
    /* Checks the parameters, fills in defaults (noting them) and the shared numbers. */
    posenc_status (*prepare)(penc_scaling_case *c, posenc_notes *notes, posenc_error *error);
    /* The magnitude of radians per position of a pair as a real number, its significand below 2^63; 0 if
     * the pair does not turn. The sign is that of `framework`. NULL: the ladder of log2_base. */
    penc_real (*exact)(const penc_scaling_case *c);
    /* The same by transformers' order of float32 operations. NULL: the ladder of log2_float. */
    float (*framework)(const penc_scaling_case *c);
    /* NULL: 1. */
    penc_attention (*attention)(const penc_scaling_case *c);
    /* The separate factor of a DeepSeek model's softmax scale. NULL: 1. */
    double (*softmax)(const penc_scaling_case *c);
    /* 1: it does not ask for a pair's place in one ladder, so that axes may have ladders of their own. */
    int any_ladder;
} penc_scaling_rule;

/* The rule of every posenc_scaling_type; NULL for a number that is none. */
const penc_scaling_rule *penc_scaling_rule_of(posenc_scaling_type type);

/* base^(rung / ladder) of the pair at hand, as PyTorch forms it: exponent and power rounded to float32. */
float penc_framework_power(const penc_scaling_case *c);

/* The checks that several rules share: `factor` given and at least 1; original_max_positions given. */
posenc_status penc_check_factor(const penc_scaling_case *c, posenc_error *error);
posenc_status penc_check_original(const penc_scaling_case *c, posenc_notes *notes,
                                  posenc_error *error);

/* radians / divisor with the exponent of radians; divisor is from 1e-6 to 1e12. */
penc_real penc_real_divide(const penc_real *radians, double divisor);

#endif
