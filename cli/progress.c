/* How far a long work is, on a terminal. SPDX-License-Identifier: MIT */
#include "progress.h"

#include <stdio.h>
#include <unistd.h>

progress progress_start(const char *name, uint64_t total) {
    progress bar = {name, total, {0, 0}, -1, isatty(STDERR_FILENO)};
    clock_gettime(CLOCK_MONOTONIC, &bar.start);
    return bar;
}

/* The percentage to be shown now, with the seconds since the start; -1: none. */
static int progress_due(const progress *bar, uint64_t done, double *seconds) {
    struct timespec now;
    if (!bar->shows || !bar->total)
        return -1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *seconds = (double)(now.tv_sec - bar->start.tv_sec) +
               1e-9 * (double)(now.tv_nsec - bar->start.tv_nsec);
    int percent = (int)(100.0 * (double)done / (double)bar->total);
    return *seconds < 1.0 || percent == bar->percent ? -1 : percent;
}

void progress_show(progress *bar, uint64_t done) {
    double seconds;
    int percent = progress_due(bar, done, &seconds);
    if (percent < 0)
        return;
    fprintf(stderr, "\r%s: %3d %%", bar->name, percent);
    fflush(stderr);
    bar->percent = percent;
}

void progress_show_bytes(progress *bar, uint64_t done) {
    double seconds;
    int percent = progress_due(bar, done, &seconds);
    if (percent < 0 || !done)
        return;
    double left = seconds * (double)(bar->total - done) / (double)done;
    fprintf(stderr, "\r%s: %3d %% %8.0f MB/s, %4.0f s left ", bar->name, percent,
            (double)done / seconds / 1e6, left);
    fflush(stderr);
    bar->percent = percent;
}

void progress_end(progress *bar) {
    if (bar->percent >= 0)
        fprintf(stderr, "\r%60s\r", "");
    bar->percent = -1;
}
