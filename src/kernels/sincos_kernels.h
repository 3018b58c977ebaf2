/* cos and sin of position * frequency in float64 vectors, rounded to float32 where that is settled: in
 * pointers and counts. The values that are stored are correctly rounded, so that every instance gives the
 * same bytes; which ones are left unsettled may differ. SPDX-License-Identifier: MIT */
#ifndef PENC_SINCOS_KERNELS_H
#define PENC_SINCOS_KERNELS_H

#include "base/half.h"
#include "cpu/cpu_level.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PENC_SINCOS_ROW = 64,  /* pairs that one call for a row handles at most */
    PENC_SINCOS_RUN = 32,  /* pairs that one call for a run handles at most */
    PENC_SINCOS_ROWS = 64, /* rows that one call for a run handles at most, an even number */
    PENC_SINCOS_PAD = 16,  /* tables and positions can be read up to a multiple of this */
    PENC_SINCOS_ULPS =
        16 /* of float64, a power of 2: cos and sin of a row, times the scale, are nearer to the real ones */
};

/* Frequencies in quarter turns per position, high + low: within 2^-105 of themselves, low of high's sign. Two pointers,
 * which pass in registers. */
typedef struct penc_quarter_table {
    const double *high, *low;
} penc_quarter_table;

/* |position| * frequency may be this many quarter turns: what is left of them beside the nearest whole number, as
 * the kernels find it, is then at most 0.5004. */
#define PENC_SINCOS_MOST_QUARTERS 0x1p40

/* Rows of float32 are scaled by this and more. */
#define PENC_SINCOS_LEAST_SCALE 0x1p-20

/* Where the pairs of a row are: each at a position of its own (room up to a multiple of PAD), or, if that is NULL,
 * all at one. `least` is for rows that are rounded: pairs whose angle is nearer to a multiple of a quarter turn than
 * its square root are left unsettled, but for those whose angle is 0. */
typedef struct penc_place {
    const double *each;
    double all, least;
} penc_place;

/* The least for angles of at most this many quarter turns: 2^-52 of that, below which they are not known to 53 bits,
 * and 2^-100, so that no number which is settled is below 2^-126 in float32. */
static inline double penc_place_least(double quarters) {
    return quarters * quarters * 0x1p-104 + 0x1p-200;
}

/* cos and sin of PENC_SINCOS_RUN pairs at one position. */
typedef struct penc_sincos_block {
    double cos[PENC_SINCOS_RUN], sin[PENC_SINCOS_RUN];
} penc_sincos_block;

/* float64 cos and sin of `count` pairs (at most RUN) at `blocks` positions from `first` on, `spacing` apart, times `scale`:
 * within 2^-49 * scale.
 * contract: penc_sincos_blocks_kernel relative=0 absolute=0x1p-49 interval=0:0x1p40
 *   witness=10000,128,16,-1331973 worst=0.202477 */
typedef void penc_sincos_blocks_kernel(penc_quarter_table table, size_t count, double first,
                                       double spacing, size_t blocks, double scale,
                                       penc_sincos_block *to);

/* cos and sin of `count` pairs (at most ROW), times `scale` (at least LEAST_SCALE), rounded to float32; returns
 * a bit for every pair whose rounding is not settled. The others are correctly rounded.
 * contract: penc_round_row_kernel ulp=0.5 interval=0:0x1p40
 *   witness=100,36,6,0x1.1c36e88bc9569p+31 worst=1.000000 */
typedef uint64_t penc_round_row_kernel(penc_quarter_table table, size_t count,
                                       const penc_place *place, double scale, float *cos_row,
                                       float *sin_row);

/* `rows` rows (at most ROWS, an even number) of `count` pairs (at most RUN) by angle addition: `anchor` holds cos and sin
 * (times scale) of the position in the middle between the first row's and the last one's, `steps` those of 1/2, 3/2, ...
 * (ROWS / 2 of them). Within
 * 1.5 * 2^-48 * scale before rounding. Returns a bit for every row in which something is not settled; the others
 * are correctly rounded.
 * contract: penc_round_run_kernel ulp=0.5 interval=0:0x1p40
 *   witness=1000000,128,35,3204549 worst=1.000000 */
typedef uint64_t penc_round_run_kernel(size_t count, size_t rows, double scale,
                                       const penc_sincos_block *anchor,
                                       const penc_sincos_block *steps, float *cos_rows,
                                       float *sin_rows, ptrdiff_t row_stride);

/* float64 cos and sin of `count` pairs (at most ROW): the bytes of penc_sincos_double of penc_angle_at, but for the
 * pairs whose bits are returned. high + low + rest are the frequencies, exactly. All arrays have room up to a multiple
 * of PAD.
 * contract: penc_double_row_kernel ulp=0.91 absolute=0x1p-80 interval=0:0x1p40
 *   witness=1000000,36,10,7385957 worst=0.902334 */
typedef uint64_t penc_double_row_kernel(penc_quarter_table table, const double *rest, size_t count,
                                        const penc_place *place, double *cos_row, double *sin_row);

/* Rounds float32 numbers to 16 bits; returns 1 if some number lies in the middle between two of those. */
typedef int penc_narrow_kernel(const float *from, size_t count, uint16_t *to);

typedef struct penc_sincos_kernels {
    penc_sincos_blocks_kernel *blocks;
    penc_round_row_kernel *round_row;
    penc_round_run_kernel *round_run;
    penc_double_row_kernel *double_row;
    penc_narrow_kernel *narrow_f16, *narrow_bf16;
} penc_sincos_kernels;

/* Every instance: suffix and level, from worst to best. */
#if PENC_X86
#define PENC_SINCOS_INSTANCES(X)                                                                   \
    X(scalar, PENC_CPU_SCALAR)                                                                     \
    X(avx2, PENC_CPU_AVX2)                                                                         \
    X(avx512, PENC_CPU_AVX512)
#elif PENC_NEON
#define PENC_SINCOS_INSTANCES(X)                                                                   \
    X(scalar, PENC_CPU_SCALAR)                                                                     \
    X(neon, PENC_CPU_NEON)
#else
#define PENC_SINCOS_INSTANCES(X) X(scalar, PENC_CPU_SCALAR)
#endif

#define PENC_SINCOS_DECLARE(suffix, level)                                                         \
    extern const penc_sincos_kernels penc_sincos_##suffix##_kernels;
PENC_SINCOS_INSTANCES(PENC_SINCOS_DECLARE)
#undef PENC_SINCOS_DECLARE

/* Those of the CPU level in use. */
const penc_sincos_kernels *penc_sincos_kernels_now(void);

#endif
