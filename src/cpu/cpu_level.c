/* Which vector instructions kernels may use. SPDX-License-Identifier: MIT */
#include "cpu/cpu_level.h"

#include "posenc/cpu.h"

#include "base/fail.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const penc_cpu_names[] = {"scalar", "neon", "avx2", "avx512"};
enum { PENC_CPU_LEVELS = sizeof penc_cpu_names / sizeof *penc_cpu_names };

static penc_cpu_level penc_cpu_detect(void) {
#if PENC_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        return PENC_CPU_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return PENC_CPU_AVX2;
#endif
    return PENC_NEON ? PENC_CPU_NEON : PENC_CPU_SCALAR;
}

/* Whether a level belongs to the machines that this was compiled for. */
static int penc_cpu_is_native(int level) {
    return level == PENC_CPU_SCALAR || (level == PENC_CPU_NEON ? PENC_NEON : PENC_X86);
}

/* The level that POSENC_CPU names; -1 if it names none. */
static int penc_cpu_wanted(const char *text) {
    for (int level = 0; level < PENC_CPU_LEVELS; level++) {
        if (strcmp(text, penc_cpu_names[level]) == 0)
            return level;
    }
    return -1;
}

penc_cpu_level penc_cpu_level_now(void) {
    static atomic_int
        cached; /* 0: not looked up; else the level + 1. Every thread finds the same. */
    int known = atomic_load_explicit(&cached, memory_order_relaxed);
    if (known)
        return (penc_cpu_level)(known - 1);
    int level = (int)penc_cpu_detect();
    const char *text = getenv("POSENC_CPU");
    int wanted = text ? penc_cpu_wanted(text) : level;
    if (wanted < level)
        level = wanted < 0 || !penc_cpu_is_native(wanted) ? PENC_CPU_SCALAR : wanted;
    atomic_store_explicit(&cached, level + 1, memory_order_relaxed);
    return (penc_cpu_level)level;
}

const char *posenc_cpu(void) {
    return penc_cpu_names[penc_cpu_level_now()];
}

posenc_status posenc_cpu_check(posenc_error *error) {
    const char *text = getenv("POSENC_CPU");
    if (text && penc_cpu_wanted(text) < 0)
        return penc_fail(error, POSENC_OUT_OF_RANGE, "the environment variable POSENC_CPU",
                         "be scalar, neon, avx2 or avx512");
    return POSENC_OK;
}
