/* An array's axes as the four of a posenc_tensor. SPDX-License-Identifier: MIT */
#pragma once

#include "arrays.h"

#include <posenc/posenc.h>

#include <string>

/* The last two are tokens and head_dim. Of those before, the first is the batch if there are four or if
 * sequences have rows of their own; all others are heads, which share what turns them. */
std::string default_axes(int rank, bool own_rows);

/* `letters`: b, t, h, d for batch, tokens, heads, head_dim, one for each axis. Axes of one letter become one axis
 * where their strides allow; false if they do not. */
bool describe(const array &a, const char *letters, posenc_tensor *tensor);
