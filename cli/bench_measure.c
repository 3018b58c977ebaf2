/* Measuring two or three ways of doing something against one another. SPDX-License-Identifier: MIT */
#include "bench_measure.h"

#include <stdlib.h>
#include <time.h>

/* One thread is measured in the CPU time that it had, so that other programs disturb less; several can
 * only be measured by the clock on the wall. */
static double now(unsigned threads) {
    struct timespec time;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int call(const bench_side *side, unsigned threads) {
    if (threads == 1)
        return side->work(side->context, 0, side->items);
    return parallel_ranges(threads, side->items, side->work, side->context);
}

/* Seconds of all `side->calls` calls. */
static int time_calls(const bench_side *side, unsigned threads, double *seconds) {
    double start = now(threads);
    for (size_t i = 0; i < side->calls; i++) {
        int result = call(side, threads);
        if (result)
            return result;
    }
    *seconds = now(threads) - start;
    return 0;
}

/* Warms up, and finds the number of calls. A single call that is far too long need not be repeated. */
static int prepare(bench_side *side, const bench_effort *effort) {
    double seconds = 0.0;
    side->calls = 1;
    if (!side->work)
        return 0;
    int result = time_calls(side, effort->threads, &seconds);
    if (result || seconds > 4 * effort->seconds)
        return result;
    while (!(result = time_calls(side, effort->threads, &seconds)) && seconds < effort->seconds)
        side->calls *= 2;
    return result;
}

static int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts. */
static double median(double *numbers, int count) {
    qsort(numbers, (size_t)count, sizeof *numbers, compare_numbers);
    return numbers[count / 2];
}

enum { OURS, REFERENCE, LOOP, PARTS, ALONE, SIDES };

/* Every second round goes the other way; the first and the last one end with ours. */
static int run_round(const bench_contest *contest, const bench_effort *effort, int round,
                     double seconds[SIDES][BENCH_MOST_ROUNDS]) {
    const bench_side *sides[SIDES] = {&contest->ours, &contest->reference, &contest->loop,
                                      &contest->parts, &contest->alone};
    for (int i = 0; i < SIDES; i++) {
        int which = round % 2 ? i : SIDES - 1 - i;
        const bench_side *side = sides[which];
        double total = 0.0;
        if (!side->work)
            continue;
        if (which == OURS && contest->reset)
            contest->reset(contest->ours.context);
        int result = time_calls(side, effort->threads, &total);
        if (result)
            return result;
        seconds[which][round] = total / (double)side->calls;
    }
    return 0;
}

/* The median over the rounds of a side's time divided by that of ours. */
static double median_ratio(const double *side, const double *ours, int rounds) {
    double ratios[BENCH_MOST_ROUNDS];
    for (int round = 0; round < rounds; round++)
        ratios[round] = side[round] / ours[round];
    return median(ratios, rounds);
}

int bench_measure(bench_contest *contest, const bench_effort *effort, bench_times *times) {
    double seconds[SIDES][BENCH_MOST_ROUNDS] = {{0}}, ratios[BENCH_MOST_ROUNDS];
    bench_side *sides[SIDES] = {&contest->ours, &contest->reference, &contest->loop,
                                &contest->parts, &contest->alone};
    int result = 0;
    for (int i = 0; i < SIDES && !result; i++)
        result = prepare(sides[i], effort);
    for (int round = 0; !result && round < effort->rounds; round++) {
        result = run_round(contest, effort, round, seconds);
        ratios[round] = seconds[REFERENCE][round] / seconds[OURS][round];
    }
    if (result)
        return result;
    times->parts_ratio = median_ratio(seconds[PARTS], seconds[OURS], effort->rounds);
    times->alone_ratio = median_ratio(seconds[ALONE], seconds[OURS], effort->rounds);
    times->ours = median(seconds[OURS], effort->rounds);
    times->reference = median(seconds[REFERENCE], effort->rounds);
    times->loop = median(seconds[LOOP], effort->rounds);
    times->parts = median(seconds[PARTS], effort->rounds);
    times->alone = median(seconds[ALONE], effort->rounds);
    times->ratio = median(ratios, effort->rounds); /* sorted now */
    times->ratio_least = ratios[0];
    times->ratio_most = ratios[effort->rounds - 1];
    return 0;
}
