/* cos and sin of position * frequency in float64 vectors, rounded to float32 where that is settled: in
 * pointers and counts. The values that are stored are correctly rounded, so that every instance gives the
 * same bytes; which ones are left unsettled may differ. SPDX-License-Identifier: MIT */
#ifndef PENC_SINCOS_KERNELS_H
#define PENC_SINCOS_KERNELS_H

#include "cpu/cpu_level.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PENC_SINCOS_CHUNK = 64, /* pairs that one call handles at most */
    PENC_SINCOS_LANES = 8,  /* tables are padded to a multiple of this */
    PENC_SINCOS_ROWS = 16   /* rows that one call of a run handles */
};

/* Frequencies as fractions of a turn per position: the upper 64 bits, and the next 32. */
typedef struct penc_phase_table {
    const uint64_t *high, *low;
} penc_phase_table;

/* Which values a call has left for the slow way: row in the upper bits, pair in the lower 8. */
typedef struct penc_unsettled {
    size_t count;
    uint16_t place[PENC_SINCOS_ROWS * PENC_SINCOS_CHUNK];
} penc_unsettled;

/* float64 cos and sin of `count` pairs (at most CHUNK; both arrays have room for a multiple of LANES) at a
 * position below 2^32, times `scale`: within 2^-50.3 of themselves plus 2^-60.3 (times scale). */
typedef void penc_sincos_row_kernel(penc_phase_table table, size_t count, uint32_t position,
                                    double scale, double *cos, double *sin);

/* The same for a position of either sign, rounded to float32. */
typedef void penc_round_row_kernel(penc_phase_table table, size_t count, uint32_t position,
                                   int negative, double scale, float *cos_row, float *sin_row,
                                   penc_unsettled *unsettled);

/* Rows of anchor + 0, anchor + 1 ... by angle addition: anchor holds cos and sin (times scale) of the first
 * position, step those of 0, 1 ... (CHUNK apart). Within 2^-49.4 * scale. */
typedef void penc_round_run_kernel(size_t count, size_t rows, double scale,
                                   const double *anchor_cos, const double *anchor_sin,
                                   const double *step_cos, const double *step_sin, float *cos_rows,
                                   float *sin_rows, ptrdiff_t row_stride,
                                   penc_unsettled *unsettled);

typedef struct penc_sincos_kernels {
    penc_sincos_row_kernel *row;
    penc_round_row_kernel *round_row;
    penc_round_run_kernel *round_run;
} penc_sincos_kernels;

/* Every instance: suffix and level. */
#define PENC_SINCOS_INSTANCES_SCALAR(X) X(scalar, PENC_CPU_SCALAR)
#if PENC_X86
#define PENC_SINCOS_INSTANCES(X)                                                                   \
    PENC_SINCOS_INSTANCES_SCALAR(X)                                                                \
    X(avx2, PENC_CPU_AVX2)                                                                         \
    X(avx512, PENC_CPU_AVX512)
#else
#define PENC_SINCOS_INSTANCES(X) PENC_SINCOS_INSTANCES_SCALAR(X)
#endif

#define PENC_SINCOS_DECLARE(suffix, level)                                                         \
    extern const penc_sincos_kernels penc_sincos_kernels_##suffix;
PENC_SINCOS_INSTANCES(PENC_SINCOS_DECLARE)
#undef PENC_SINCOS_DECLARE

/* Those of the CPU level in use. */
const penc_sincos_kernels *penc_sincos_kernels_now(void);

#endif
