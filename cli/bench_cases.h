/* What posenc bench measures: the one list of its cases. SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_CASES_H
#define CLI_BENCH_CASES_H

#include "posenc/cache.h"

typedef enum bench_work {
    BENCH_ROTATE,
    BENCH_NORM_ROTATE,
    BENCH_APPEND,
    BENCH_ANGLES,
    BENCH_BIAS,
    BENCH_WORKS
} bench_work;
typedef enum bench_order { BENCH_TOKENS_FIRST, BENCH_HEADS_FIRST } bench_order;

/* Members that a work has no use for are 0. */
typedef struct bench_case {
    bench_work work;
    posenc_dtype dtype;
    size_t tokens; /* rows of angles, queries (and keys) of a bias */
    size_t heads, head_dim;
    posenc_pairing pairing;    /* rotate, norm_rotate, append */
    bench_order order;         /* rotate */
    int in_place;              /* rotate, norm_rotate */
    posenc_cache_format cache; /* append: what keys and values of `dtype` become */
    posenc_mode mode;          /* angles */
    int64_t first_position;    /* angles */
    int scattered;             /* angles: the positions of a run, out of order */
} bench_case;

extern const char *const bench_work_names[BENCH_WORKS];
extern const char *const bench_order_names[2];

size_t bench_case_count(void);
/* Case `index` of the list, below bench_case_count(). */
bench_case bench_case_at(size_t index);

/* Whether a work rotates heads of tokens, in dtype and pairing. */
int bench_turns(const bench_case *c);

/* Bytes of the array that a rotation works on (append: keys and values), or of the rows. */
size_t bench_case_bytes(const bench_case *c);

#endif
