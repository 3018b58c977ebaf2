/* What kernels are measured against: memcpy, memset and a bare copy loop. SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_COPY_H
#define CLI_BENCH_COPY_H

#include "parallel.h"

typedef struct bench_copy {
    const char *from;
    char *to;
} bench_copy;

/* Sides of a bench_contest; the context is a bench_copy, the items are bytes. */
int bench_memcpy(void *context, size_t first, size_t count);
int bench_memset(void *context, size_t first, size_t count);

/* A loop that loads and stores vectors, four in a turn, and nothing else. */
typedef struct bench_copy_loop {
    parallel_work *work;
    size_t vector; /* bytes */
} bench_copy_loop;

/* That with the vectors of the CPU level in use. */
bench_copy_loop bench_copy_loop_now(void);

#endif
