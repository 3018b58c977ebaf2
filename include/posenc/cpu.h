/* posenc/cpu.h - which vector instructions are in use.
 *
 * Kernels are chosen once, at the first call that needs one, by what the CPU can do. The environment
 * variable POSENC_CPU (scalar, neon, avx2 or avx512) lowers that: to find out whether a difference comes from a
 * kernel. It should find none: all of them give the same bytes.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_CPU_H
#define POSENC_CPU_H

#include "posenc/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "scalar", "neon" (64-bit ARM), "avx2" or "avx512" (x86-64). */
POSENC_API const char *posenc_cpu(void);

/* Fails with OUT_OF_RANGE if POSENC_CPU is set to another word; scalar kernels are used then. */
POSENC_API POSENC_CHECKED posenc_status posenc_cpu_check(posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
