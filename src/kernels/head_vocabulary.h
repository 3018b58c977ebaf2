/* What the vector kernels of heads include. SPDX-License-Identifier: MIT */
#ifndef PENC_HEAD_VOCABULARY_H
#define PENC_HEAD_VOCABULARY_H

#include "base/fp8.h"
#include "kernels/head_kernels.h"
#include "kernels/rotate_vocabulary.h"

#include <math.h>

#endif
