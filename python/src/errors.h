/* What the C library refuses, as Python exceptions. SPDX-License-Identifier: MIT */
#pragma once

#include <posenc/posenc.h>

/* Throws what `status` means, with the library's sentence: ValueError, MemoryError or OSError. Names
 * of C members become those of the Python arguments. */
void check(posenc_status status, const posenc_error &error);
