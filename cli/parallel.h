/* Splitting a range of items among threads. SPDX-License-Identifier: MIT */
#ifndef CLI_PARALLEL_H
#define CLI_PARALLEL_H

#include <stddef.h>

/* Works on items first ... first + count - 1; returns 0, or another number that stops nothing but is
 * returned by parallel_ranges. */
typedef int parallel_work(void *context, size_t first, size_t count);

/* Calls `work` on disjoint ranges that cover 0 ... count - 1, in up to `threads` threads, and waits.
 * Returns the first range's result that is not 0, else 0. A thread that cannot be started has its range
 * done by the caller. */
int parallel_ranges(unsigned threads, size_t count, parallel_work *work, void *context);

#endif
