/* How far a long work is, on a terminal. SPDX-License-Identifier: MIT */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdint.h>
#include <time.h>

typedef struct progress {
    const char *name;
    uint64_t total;
    struct timespec start;
    double shown; /* seconds from the start to when it was shown last; 0: it was not */
    int in_bytes; /* the work is counted in bytes: their rate is shown too */
    int shows;    /* standard error is a terminal */
} progress;

progress progress_start(const char *name, uint64_t total);
progress progress_start_bytes(const char *name, uint64_t total);
/* Shows, once a second, the percentage, the rate and the time left as if the rate stayed. */
void progress_show(progress *bar, uint64_t done);
/* Wipes the line. */
void progress_end(progress *bar);

#endif
