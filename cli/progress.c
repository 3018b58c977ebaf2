/* How far a long work is, on a terminal. SPDX-License-Identifier: MIT */
#include "progress.h"

#include <stdio.h>
#include <unistd.h>

progress progress_start(const char *name, uint64_t total) {
    progress bar = {name, total, {0, 0}, 0, 0, isatty(STDERR_FILENO)};
    clock_gettime(CLOCK_MONOTONIC, &bar.start);
    return bar;
}

progress progress_start_bytes(const char *name, uint64_t total) {
    progress bar = progress_start(name, total);
    bar.in_bytes = 1;
    return bar;
}

static double seconds_since(const struct timespec *start) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) * 1e-9;
}

static void print_time(double seconds) {
    unsigned long long whole = (unsigned long long)(seconds + 0.5);
    if (whole < 60)
        fprintf(stderr, ", %llu s left", whole);
    else if (whole < 3600)
        fprintf(stderr, ", %llu min %02llu s left", whole / 60, whole % 60);
    else
        fprintf(stderr, ", %llu h %02llu min left", whole / 3600, whole % 3600 / 60);
}

void progress_show(progress *bar, uint64_t done) {
    if (!bar->shows || !bar->total)
        return;
    double seconds = seconds_since(&bar->start);
    if (seconds < bar->shown + 1)
        return;
    double rate = (double)done / seconds;
    fprintf(stderr, "\r%s: %3d %%", bar->name, (int)(100.0 * (double)done / (double)bar->total));
    if (bar->in_bytes)
        fprintf(stderr, ", %.0f MB/s", rate / 1e6);
    if (rate > 0)
        print_time((double)(bar->total - done) / rate);
    fputs("\033[K", stderr);
    fflush(stderr);
    bar->shown = seconds;
}

void progress_end(progress *bar) {
    if (bar->shown > 0)
        fputs("\r\033[K", stderr);
    bar->shown = 0;
}
