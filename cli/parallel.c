/* Splitting a range of items among threads. SPDX-License-Identifier: MIT */
#include "parallel.h"

#include <pthread.h>

typedef struct range {
    parallel_work *work;
    void *context;
    size_t first, count;
    int result, started;
    pthread_t thread;
} range;

static void *run_range(void *argument) {
    range *r = argument;
    r->result = r->work(r->context, r->first, r->count);
    return NULL;
}

int parallel_ranges(unsigned threads, size_t count, parallel_work *work, void *context) {
    enum { MAX_THREADS = 1024 };
    range ranges[MAX_THREADS];
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    if (threads > count)
        threads = (unsigned)count;
    size_t first = 0;
    for (unsigned i = 0; i < threads; i++) {
        size_t share = (count - first) / (threads - i);
        ranges[i] = (range){.work = work, .context = context, .first = first, .count = share};
        first += share;
        if (i + 1 < threads) /* the last range is the caller's own */
            ranges[i].started = pthread_create(&ranges[i].thread, NULL, run_range, &ranges[i]) == 0;
        if (!ranges[i].started)
            run_range(&ranges[i]);
    }
    int result = 0;
    for (unsigned i = 0; i < threads; i++) {
        if (ranges[i].started)
            pthread_join(ranges[i].thread, NULL);
        if (!result)
            result = ranges[i].result;
    }
    return result;
}
