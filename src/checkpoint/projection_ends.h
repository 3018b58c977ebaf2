/* What belongs to a projection, by the ends of tensors' names. SPDX-License-Identifier: MIT */
#ifndef PENC_PROJECTION_ENDS_H
#define PENC_PROJECTION_ENDS_H

/* What a change of the projection's row order does to it. */
typedef enum penc_end_kind {
    PENC_END_ROWS,    /* its rows are the projection's */
    PENC_END_NUMBERS, /* one number for each row */
    PENC_END_SCALES, /* one number, a row for each row, or one for each block of rows and columns */
    PENC_END_ROW_SCALES, /* a row for each row, nothing else */
    PENC_END_ONE,        /* one number: it stays; more are refused */
    PENC_END_STAYS,      /* it speaks of columns, or of nothing */
    PENC_END_COLUMNS,    /* its columns are the projection's rows */
    PENC_END_REFUSED
} penc_end_kind;

typedef struct penc_end {
    const char *text; /* ".weight"; with a dot at its end, or `open`, more may follow */
    int open;
    penc_end_kind kind;
    const char *what; /* "weights"; of REFUSED what the tensor must be */
} penc_end;

/* The row for the end of a name; of unknown ends one that refuses. */
const penc_end *penc_projection_end(const char *end);

/* The same for norm gains. */
const penc_end *penc_gain_end(const char *end);

#endif
