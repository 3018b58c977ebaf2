/* Measuring two or three ways of doing something against one another. SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_MEASURE_H
#define CLI_BENCH_MEASURE_H

#include "parallel.h"

/* One way: work(context, first, count) over all its items is one call. */
typedef struct bench_side {
    parallel_work *work; /* NULL: there is no such side */
    void *context;
    size_t items;
    size_t calls; /* in a row, so that they fill the time of a round; set by bench_measure */
} bench_side;

typedef struct bench_effort {
    int rounds;     /* odd */
    double seconds; /* a side of a round runs at least this long */
    unsigned threads;
} bench_effort;

/* Ours is measured against the reference (memcpy, memset); the loop is shown beside them. `reset` is called
 * with ours.context before every timing of ours, untimed. */
typedef struct bench_contest {
    bench_side ours, reference, loop;
    bench_side parts, alone; /* of fused works: the same in several calls; the rotation alone */
    void (*reset)(void *context);
} bench_contest;

/* Seconds of one call, medians over the rounds, and the ratio reference / ours of each round. */
typedef struct bench_times {
    double ours, reference, loop; /* loop: 0 where there is none */
    double parts, alone;          /* 0 where there are none */
    double ratio, ratio_least, ratio_most;
    double parts_ratio, alone_ratio; /* parts / ours and alone / ours, medians over the rounds */
} bench_times;

enum { BENCH_MOST_ROUNDS = 15 };

/* Returns 0, or the first result of a side that is not 0. What ours has written last are ours.calls calls
 * since the last reset, unless the other sides write to the same memory: they never come after it. */
int bench_measure(bench_contest *contest, const bench_effort *effort, bench_times *times);

#endif
