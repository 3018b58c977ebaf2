/* Carrying out a checked rotation. SPDX-License-Identifier: MIT */
#ifndef PENC_ROTATE_RUN_H
#define PENC_ROTATE_RUN_H

#include "rope/rotate_plan.h"

void penc_run_plan(const penc_rotate_plan *plan);

#endif
