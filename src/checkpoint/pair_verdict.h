/* From evidence to a verdict. SPDX-License-Identifier: MIT */
#ifndef PENC_PAIR_VERDICT_H
#define PENC_PAIR_VERDICT_H

#include "checkpoint/pair_ratios.h"
#include "checkpoint/pair_signs.h"

/* Fills the evidence and verdicts of a judgement. */
void penc_pair_conclude(const penc_pair_ratios *ratios, const penc_pair_signs *signs,
                        posenc_judgement *judgement);

#endif
