/* cos and sin to the dtype and layout of a row: plain loops without branches, which compilers turn into
 * vectors. SPDX-License-Identifier: MIT */
#include "angles/row_spread.h"

#include "base/number_access.h"
#include "frequencies/frequencies_object.h"
#include "kernels/sincos_kernels.h"

#include <string.h>

/* --- Layouts -------------------------------------------------------------------------------------- */

/* Puts `pairs` cos and sin, from pair `pair` of a row on, into rows at `cos_to` and `sin_to`. */
#define PENC_PLACE(name, weave, type)                                                              \
    static void weave(const type *first, const type *second, size_t pairs, type *to) {             \
        for (size_t j = 0; j < pairs; j++) {                                                       \
            to[2 * j] = first[j];                                                                  \
            to[2 * j + 1] = second[j];                                                             \
        }                                                                                          \
    }                                                                                              \
    static void name(posenc_row_layout layout, size_t all_pairs, size_t pair, size_t pairs,        \
                     const type *cos, const type *sin, type *cos_to, type *sin_to) {               \
        size_t bytes = pairs * sizeof(type);                                                       \
        switch (layout) {                                                                          \
        case POSENC_ROWS_PAIRS:                                                                    \
            weave(cos, sin, pairs, cos_to + 2 * pair);                                             \
            return;                                                                                \
        case POSENC_ROWS_FULL_INTERLEAVED:                                                         \
            weave(cos, cos, pairs, cos_to + 2 * pair);                                             \
            weave(sin, sin, pairs, sin_to + 2 * pair);                                             \
            return;                                                                                \
        case POSENC_ROWS_FULL_HALF:                                                                \
            memcpy(cos_to + all_pairs + pair, cos, bytes);                                         \
            memcpy(sin_to + all_pairs + pair, sin, bytes);                                         \
            break;                                                                                 \
        case POSENC_ROWS_COS_SIN:                                                                  \
            sin_to = cos_to + all_pairs;                                                           \
            break;                                                                                 \
        case POSENC_ROWS_HALF:                                                                     \
            break;                                                                                 \
        }                                                                                          \
        if (cos != cos_to + pair) { /* else the numbers were made where they belong */             \
            memcpy(cos_to + pair, cos, bytes);                                                     \
            memcpy(sin_to + pair, sin, bytes);                                                     \
        }                                                                                          \
    }
PENC_PLACE(penc_place_32, penc_weave_32, float)
PENC_PLACE(penc_place_16, penc_weave_16, uint16_t)
PENC_PLACE(penc_place_64, penc_weave_64, double)

void penc_spread_doubles(const penc_row_job *job, size_t token, size_t pair, size_t pairs,
                         const double *cos, const double *sin) {
    const posenc_rows *rows = job->rows;
    ptrdiff_t row = (ptrdiff_t)token * job->stride;
    penc_place_64(rows->layout, job->frequencies->pairs, pair, pairs, cos, sin,
                  (double *)rows->cos + row, rows->sin ? (double *)rows->sin + row : NULL);
}

/* --- 16 bits ---------------------------------------------------------------------------------------- */

typedef struct penc_narrow_pairs {
    uint16_t cos[PENC_SPREAD_PAIRS], sin[PENC_SPREAD_PAIRS];
} penc_narrow_pairs;

/* Rounding float32 numbers on goes wrong where they were rounded to a middle. */
static void penc_narrow_again(const penc_row_job *job, size_t token, size_t pair, size_t pairs,
                              const float *cos, const float *sin, penc_narrow_pairs *narrow) {
    posenc_dtype dtype = job->rows->dtype;
    uint32_t (*is_middle)(float) = dtype == POSENC_F16 ? penc_is_f16_middle : penc_is_bf16_middle;
    for (size_t j = 0; j < pairs; j++) {
        if (!is_middle(cos[j]) && !is_middle(sin[j]))
            continue;
        penc_sincos value = penc_angle_value(job, token, pair + j, dtype);
        penc_store_number(narrow->cos, dtype, (ptrdiff_t)j, value.cos);
        penc_store_number(narrow->sin, dtype, (ptrdiff_t)j, value.sin);
    }
}

void penc_spread_pairs(const penc_row_job *job, size_t token, size_t pair, size_t pairs,
                       const float *cos, const float *sin) {
    const posenc_rows *rows = job->rows;
    size_t all_pairs = job->frequencies->pairs;
    ptrdiff_t row = (ptrdiff_t)token * job->stride;
    if (rows->dtype == POSENC_F32) {
        float *sin_to = rows->sin ? (float *)rows->sin + row : NULL;
        penc_place_32(rows->layout, all_pairs, pair, pairs, cos, sin, (float *)rows->cos + row,
                      sin_to);
        return;
    }
    penc_narrow_pairs narrow;
    const penc_sincos_kernels *kernels = penc_sincos_kernels_now();
    penc_narrow_kernel *narrow_kernel =
        rows->dtype == POSENC_F16 ? kernels->narrow_f16 : kernels->narrow_bf16;
    int middle = narrow_kernel(cos, pairs, narrow.cos);
    middle |= narrow_kernel(sin, pairs, narrow.sin);
    if (middle && rows->mode == POSENC_MODE_EXACT)
        penc_narrow_again(job, token, pair, pairs, cos, sin, &narrow);
    uint16_t *sin_to = rows->sin ? (uint16_t *)rows->sin + row : NULL;
    penc_place_16(rows->layout, all_pairs, pair, pairs, narrow.cos, narrow.sin,
                  (uint16_t *)rows->cos + row, sin_to);
}
