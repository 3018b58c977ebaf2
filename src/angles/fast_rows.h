/* Rows by vector kernels. SPDX-License-Identifier: MIT */
#ifndef PENC_FAST_ROWS_H
#define PENC_FAST_ROWS_H

#include "angles/row_job.h"
#include "kernels/sincos_kernels.h"

/* What the rows of one call share. */
typedef struct penc_fast_job {
    const penc_row_job *job;
    const penc_sincos_kernels *kernels;
    double scale;    /* on cos and sin, before rounding */
    float factor;    /* and after */
    double farthest; /* the largest position served */
    int exact, one_axis;
    int doubles; /* the rows are float64, which mode exact alone has */
    int direct;  /* the kernels write into the caller's rows */
    double radian_high[PENC_SINCOS_ROW],
        radian_low[PENC_SINCOS_ROW]; /* quarter turns of a radian, in mode float32 */
} penc_fast_job;

/* Returns 0 if vector kernels do not serve the job. */
int penc_fast_start(const penc_row_job *job, penc_fast_job *fast);

/* Writes token's row or, where positions run, several; returns how many, 0 if the position is not served. */
size_t penc_fast_rows(const penc_fast_job *fast, size_t token);

#endif
