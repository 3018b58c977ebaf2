/* Likelihood ratios between the two pairings. SPDX-License-Identifier: MIT */
#ifndef PENC_PAIR_RATIOS_H
#define PENC_PAIR_RATIOS_H

#include "checkpoint/pair_data.h"

/* With the profile of power over the frequencies, and with it taken out. */
enum { PENC_TOTAL = 0, PENC_RESIDUAL = 1, PENC_PARTS = 2 };

typedef struct penc_pair_ratios {
    double ratio[PENC_PARTS][PENC_SIDES]; /* of half to interleaved, in nats */
    double deviation[PENC_PARTS]
                    [PENC_SIDES]; /* from the mean of shuffled channels, in their spread */
    /* Log-likelihood with the profile, [pairing of q][pairing of k]. */
    double likelihood[PENC_PAIRINGS][PENC_PAIRINGS];
} penc_pair_ratios;

/* Computes the ratios of `data` and of shuffled copies of it; at least one head. */
posenc_status penc_pair_ratios_of(const penc_pair_data *data, penc_pair_ratios *ratios,
                                  posenc_error *error);

#endif
