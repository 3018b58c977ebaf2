/* Rotating all heads of some tokens, in pointers and counts: no specs, no checks.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_ROTATE_KERNELS_H
#define PENC_ROTATE_KERNELS_H

#include "kernels/target.h"
#include "posenc/dtype.h"

enum { PENC_DTYPES = 4 }; /* numbers of posenc_dtype run from 0 on */

/* Pair j of head h of token t is channels j * step and j * step + gap, in elements from
 * x + t * token + h * head. */
typedef struct penc_side {
    ptrdiff_t token, head, step, gap;
} penc_side;

/* cos and sin of pair j of token t are element t * token + j * pair; those of its second channel stand `second`
 * elements behind (0 where both channels turn by the same numbers, as in every rotation). If `rows` is not NULL
 * token t's row begins at rows[t] instead. */
typedef struct penc_table_side {
    ptrdiff_t token, pair, second;
    const ptrdiff_t *rows;
} penc_table_side;

/* x and y at the first rotating channel of the first token and head. */
typedef struct penc_rotate_job {
    size_t tokens, heads, pairs;
    penc_side x, y;
    penc_table_side table;
    int transpose; /* 1: by the transposed matrix, which turns back */
    int by_head; /* 1: head after head, for what no cache holds; else all heads by some columns, whose cos
                      and sin stay in registers */
    ptrdiff_t
        next; /* in elements from x: the head that is turned first after this job, so that what comes next is
                        fetched meanwhile; 0: nothing is fetched */
    ptrdiff_t ahead; /* the kernels' own: penc_look_ahead of the token at hand */
    int stream;      /* 1: stores bypass the caches; y and its strides are multiples of 64 bytes */
    double scale;    /* multiplies every result, rounded once more; not if it is 1 */
} penc_rotate_job;

typedef void penc_rotate_kernel(const penc_rotate_job *job, const void *x, const void *cos,
                                const void *sin, void *y);

static inline ptrdiff_t penc_table_row(const penc_rotate_job *job, size_t token) {
    return job->table.rows ? job->table.rows[token] : (ptrdiff_t)token * job->table.token;
}

static inline ptrdiff_t penc_offset_of(const penc_side *side, size_t token, size_t head) {
    return (ptrdiff_t)token * side->token + (ptrdiff_t)head * side->head;
}

/* How many groups of heads a job passes through one after the other; its heads become those of one group. Where one
 * pass turns whole heads, they go in the order of memory anyway, and cos and sin may stay in registers: `whole` is 1
 * then. No division: one costs as much as turning a head. */
static inline size_t penc_split_heads(penc_rotate_job *job, int whole) {
    const size_t heads = job->heads;
    if (!job->by_head || whole || heads == 0)
        return 1;
    job->heads = 1;
    return heads;
}

/* Has the line at `ahead` bytes from x brought into the second cache. There may be nothing: it is no access. */
PENC_ALWAYS_INLINE void penc_fetch(const char *x, ptrdiff_t ahead) {
    enum { SECOND_CACHE = 2 };
    __builtin_prefetch((const void *)((uintptr_t)x + (uintptr_t)ahead), 0, SECOND_CACHE);
}

/* Has every line of some bytes brought there. */
PENC_ALWAYS_INLINE void penc_fetch_lines(const char *x, ptrdiff_t ahead, size_t bytes) {
    enum { LINE = 64 };
    for (size_t at = 0; at < bytes; at += LINE)
        penc_fetch(x, ahead + (ptrdiff_t)at);
}

/* How far it is from a head of this token, at x, to the one to be fetched meanwhile, in elements; 0: none. The first
 * lines of all heads are fetched here at once: where they begin pages, the addresses are looked up side by side. */
PENC_ALWAYS_INLINE ptrdiff_t penc_look_ahead(const penc_rotate_job *job, size_t token,
                                             const char *x, ptrdiff_t bytes) {
    enum { TOKENS = 8 };
    if (job->next == 0)
        return 0;
    const ptrdiff_t ahead = token + TOKENS < job->tokens
                                ? TOKENS * job->x.token
                                : job->next + (TOKENS - (ptrdiff_t)job->tokens) * job->x.token;
    ptrdiff_t at = ((ptrdiff_t)token * job->x.token + ahead) * bytes;
    for (size_t head = 0; head < job->heads; head++, at += job->x.head * bytes)
        penc_fetch(x, at);
    return ahead;
}

/* Reads a byte of every cache line of a head's two halves, in the order of memory. Where the halves lie 512 bytes and
 * more apart, the hardware's prefetcher does not follow two of them side by side, and what comes from memory comes
 * at half the speed (docs/performance.md). `bytes`: of one element. */
static inline void penc_touch_halves(const penc_rotate_job *job, const char *x, ptrdiff_t bytes) {
    enum { LINE = 64, FAR = 512 };
    const ptrdiff_t gap = job->x.gap * bytes, half = (ptrdiff_t)job->pairs * bytes;
    if (!job->by_head || gap < FAR)
        return;
    for (ptrdiff_t at = 0; at < half; at += LINE)
        (void)*(const volatile char *)(x + at);
    for (ptrdiff_t at = 0; at < half; at += LINE)
        (void)*(const volatile char *)(x + gap + at);
}

/* The reference, for any job: from dtype `from` to dtype `to`. Computes in float64 if `from` is float64, else in
 * float32; cos and sin are of that type. Both are posenc_dtypes. */
penc_rotate_kernel *penc_rotate_scalar_of(posenc_dtype from, posenc_dtype to);

/* How the channels of a side lie: step 1 and any gap, or step 2 and gap 1. */
typedef enum penc_channel_order { PENC_HALVES = 0, PENC_PAIRS = 1 } penc_channel_order;

/* A vector kernel: for table.pair 1, table.second 0, transpose 0 and those channel orders. */
typedef penc_rotate_kernel *penc_rotate_set[PENC_DTYPES][PENC_DTYPES][2][2];

/* A kernel of pairs to pairs within a dtype, for rows that hold each number twice, sin negated at a pair's first
 * channel; pairs must be a multiple of PENC_FLAT_PAIRS. NULL for some dtypes. */
enum { PENC_FLAT_PAIRS = 8 };
typedef penc_rotate_kernel *penc_rotate_flat_set[PENC_DTYPES];

/* Every instance: suffix and level, from worst to best. */
#if PENC_X86
#define PENC_ROTATE_INSTANCES(X)                                                                   \
    X(avx2, PENC_CPU_AVX2)                                                                         \
    X(avx512, PENC_CPU_AVX512)                                                                     \
    X(avx512bf16, PENC_CPU_AVX512BF16)
#elif PENC_NEON
#define PENC_ROTATE_INSTANCES(X) X(neon, PENC_CPU_NEON)
#else
#define PENC_ROTATE_INSTANCES(X)
#endif

#define PENC_ROTATE_DECLARE(suffix, level)                                                         \
    extern const penc_rotate_set penc_rotate_##suffix##_set;                                       \
    extern const penc_rotate_flat_set penc_rotate_##suffix##_flat_set;
PENC_ROTATE_INSTANCES(PENC_ROTATE_DECLARE)
#undef PENC_ROTATE_DECLARE

/* Those of the CPU level in use; NULL if there is none. */
penc_rotate_kernel *penc_rotate_vector_of(posenc_dtype from, penc_channel_order from_order,
                                          posenc_dtype to, penc_channel_order to_order);

penc_rotate_kernel *penc_rotate_flat_of(posenc_dtype dtype);

/* After streaming stores, before another thread may read them. */
static inline void penc_finish_streaming(void) {
#if PENC_X86
    __builtin_ia32_sfence();
#endif
}

#endif
