/* The exact test of a pairing by the symmetry of its members. SPDX-License-Identifier: MIT */
#ifndef PENC_PAIR_SIGNS_H
#define PENC_PAIR_SIGNS_H

#include "checkpoint/pair_data.h"

typedef struct penc_pair_signs {
    double nats[PENC_PAIRINGS][PENC_SIDES]; /* evidence for a pairing: against the other one */
    size_t signs;                           /* independent signs */
} penc_pair_signs;

/* At least one head. */
posenc_status penc_pair_signs_of(const penc_pair_data *data, penc_pair_signs *signs,
                                 posenc_error *error);

#endif
