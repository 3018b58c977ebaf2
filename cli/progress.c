/* How far a long work is, on a terminal. SPDX-License-Identifier: MIT */
#include "progress.h"

#include <stdio.h>
#include <unistd.h>

progress progress_start(const char *name, uint64_t total) {
    progress bar = {name, total, {0, 0}, -1, isatty(STDERR_FILENO)};
    clock_gettime(CLOCK_MONOTONIC, &bar.start);
    return bar;
}

void progress_show(progress *bar, uint64_t done) {
    if (!bar->shows || !bar->total)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int percent = (int)(100.0 * (double)done / (double)bar->total);
    if (now.tv_sec - bar->start.tv_sec < 1 || percent == bar->percent)
        return;
    fprintf(stderr, "\r%s: %3d %%", bar->name, percent);
    fflush(stderr);
    bar->percent = percent;
}

void progress_end(progress *bar) {
    if (bar->percent >= 0)
        fputs("\r                    \r", stderr);
    bar->percent = -1;
}
