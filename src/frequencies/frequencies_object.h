/* What is inside posenc_frequencies. SPDX-License-Identifier: MIT */
#ifndef PENC_FREQUENCIES_OBJECT_H
#define PENC_FREQUENCIES_OBJECT_H

#include "frequencies/scaling_rule.h"
typedef struct penc_frequency {
    penc_turns turns; /* exact mode: turns per position */
    double inv_freq;  /* radians per position, rounded once */
    float factor;     /* float32 mode: radians per position as frameworks form them */
    unsigned axis;    /* whose position it follows */
} penc_frequency;

struct posenc_frequencies {
    posenc_spec spec; /* every default filled in */
    size_t pairs;
    penc_attention attention; /* framework: rounded to float32 */
    int has_attention;        /* it is not 1 */
    double attention_factor, softmax_factor;
    posenc_scaling scaling; /* what spec.scaling points to */
    posenc_axes axes;       /* what spec.axes points to */
    /* For vector kernels: quarter turns per position as the sum of three float64 numbers (53 bits cut off, the next 53,
     * and the last 22), padded with zeros to a multiple of 16; and the magnitude of the fastest. */
    double *quarter_high, *quarter_low, *quarter_rest, fastest;
    int exact_only;             /* a difference of frequencies: mode float32 has no such thing */
    penc_frequency frequency[]; /* pairs of them; the quarters stand behind */
};

#endif
