/* How far a long work is, on a terminal. SPDX-License-Identifier: MIT */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdint.h>
#include <time.h>

typedef struct progress {
    const char *name;
    uint64_t total;
    struct timespec start;
    int percent; /* shown last; -1: nothing shown */
    int shows;   /* standard error is a terminal */
} progress;

progress progress_start(const char *name, uint64_t total);
/* Shows the percentage once a second has passed since the start. */
void progress_show(progress *bar, uint64_t done);
/* The same where `done` and the total are bytes: with the rate and the time left. */
void progress_show_bytes(progress *bar, uint64_t done);
/* Wipes the line. */
void progress_end(progress *bar);

#endif
