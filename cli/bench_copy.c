/* What kernels are measured against: memcpy, memset and a bare copy loop. SPDX-License-Identifier: MIT */
#include "bench_copy.h"
#include "posenc/cpu.h"

#include <string.h>

/* Through volatile pointers, so that no call is optimised away. */
static void *(*volatile copy_bytes)(void *, const void *, size_t) = memcpy;
static void *(*volatile set_bytes)(void *, int, size_t) = memset;

int bench_memcpy(void *context, size_t first, size_t count) {
    const bench_copy *c = context;
    copy_bytes(c->to + first, c->from + first, count);
    return 0;
}

int bench_memset(void *context, size_t first, size_t count) {
    const bench_copy *c = context;
    set_bytes(c->to + first, 0, count);
    return 0;
}

/* One loop for each width. The empty assembly keeps the compiler from finding out that it is memcpy. */
#define COPY_LOOP(bytes, target)                                                                   \
    typedef char vector_##bytes __attribute__((vector_size(bytes), aligned(1), may_alias));        \
    target static int copy_by_##bytes(void *context, size_t first, size_t count) {                 \
        const bench_copy *copy = context;                                                          \
        const char *from = copy->from + first, *end = from + count / (4 * bytes) * (4 * bytes);    \
        char *to = copy->to + first;                                                               \
        for (; from < end; from += 4 * bytes, to += 4 * bytes) {                                   \
            const vector_##bytes *x = (const void *)from;                                          \
            vector_##bytes *y = (void *)to, a = x[0], b = x[1], c = x[2], d = x[3];                \
            y[0] = a, y[1] = b, y[2] = c, y[3] = d;                                                \
            __asm__ volatile("" ::: "memory");                                                     \
        }                                                                                          \
        copy_bytes(to, from, count % (4 * bytes)); /* less than one turn */                        \
        return 0;                                                                                  \
    }

COPY_LOOP(16, )
#if defined(__x86_64__)
COPY_LOOP(32, __attribute__((target("avx"))))
COPY_LOOP(64, __attribute__((target("avx512f"))))
#endif

bench_copy_loop bench_copy_loop_now(void) {
#if defined(__x86_64__)
    if (strncmp(posenc_cpu(), "avx512", strlen("avx512")) == 0)
        return (bench_copy_loop){copy_by_64, 64};
    if (strcmp(posenc_cpu(), "avx2") == 0)
        return (bench_copy_loop){copy_by_32, 32};
#endif
    return (bench_copy_loop){copy_by_16, 16};
}
