/* Which vector instructions kernels may use. SPDX-License-Identifier: MIT */
#ifndef PENC_CPU_LEVEL_H
#define PENC_CPU_LEVEL_H

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__) && !defined(POSENC_NO_VECTORS)
#define PENC_X86 1
#else
#define PENC_X86 0
#endif

#if defined(__aarch64__) && defined(__GNUC__) && !defined(POSENC_NO_VECTORS)
#define PENC_NEON 1
#else
#define PENC_NEON 0
#endif

/* From worst to best; a machine knows some of them. */
typedef enum penc_cpu_level {
    PENC_CPU_SCALAR = 0,
    PENC_CPU_NEON = 1,
    PENC_CPU_AVX2 = 2,
    PENC_CPU_AVX512 = 3
} penc_cpu_level;

/* The best level of this machine, or the one that the environment variable POSENC_CPU names (scalar, neon,
 * avx2, avx512) where that is lower; scalar where it names none or another machine's. Looked up once. */
penc_cpu_level penc_cpu_level_now(void);

#endif
