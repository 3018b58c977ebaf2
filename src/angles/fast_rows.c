/* Exact float32 rows by vector kernels: float64 values whose rounding is settled, and the slow way for
 * those where it is not (about one in a million). SPDX-License-Identifier: MIT */
#include "angles/fast_rows.h"

#include "angles/exact_value.h"
#include "kernels/sincos_kernels.h"

int penc_fast_serves(int64_t position) {
    int64_t most = UINT32_MAX;
    return position <= most && position >= -most && position != 0;
}

static double penc_scale_of(const posenc_frequencies *frequencies, penc_fast_target target) {
    return target.attention ? frequencies->attention_factor : 1.0;
}

static penc_phase_table penc_phases_from(const posenc_frequencies *frequencies, size_t pair) {
    penc_phase_table table = {frequencies->phase_high + pair, frequencies->phase_low + pair};
    return table;
}

static size_t penc_chunk_size(const posenc_frequencies *frequencies, size_t pair) {
    size_t left = frequencies->pairs - pair;
    return left < PENC_SINCOS_CHUNK ? left : PENC_SINCOS_CHUNK;
}

/* The values that rounding left open, computed the slow way. */
static void penc_settle(const posenc_frequencies *frequencies, const penc_unsettled *unsettled,
                        int64_t first, size_t chunk, penc_fast_target target) {
    for (size_t i = 0; i < unsettled->count; i++) {
        size_t row = unsettled->place[i] >> 8, pair = chunk + (unsettled->place[i] & 0xffu);
        penc_sincos value = penc_exact_value(frequencies, pair, (double)(first + (int64_t)row),
                                             target.attention, POSENC_F32);
        ptrdiff_t at = (ptrdiff_t)row * target.stride + (ptrdiff_t)pair;
        target.cos[at] = (float)value.cos;
        target.sin[at] = (float)value.sin;
    }
}

void penc_fast_row(const posenc_frequencies *frequencies, int64_t position,
                   penc_fast_target target) {
    const penc_sincos_kernels *kernels = penc_sincos_kernels_now();
    double scale = penc_scale_of(frequencies, target);
    uint32_t magnitude = (uint32_t)(position < 0 ? -position : position);
    penc_unsettled unsettled;
    for (size_t chunk = 0; chunk < frequencies->pairs; chunk += PENC_SINCOS_CHUNK) {
        unsettled.count = 0;
        kernels->round_row(penc_phases_from(frequencies, chunk),
                           penc_chunk_size(frequencies, chunk), magnitude, position < 0, scale,
                           target.cos + chunk, target.sin + chunk, &unsettled);
        penc_settle(frequencies, &unsettled, position, chunk, target);
    }
}

/* The steps of a run: cos and sin of 0, 1, ... ROWS - 1, for one chunk of pairs. */
typedef struct penc_run_steps {
    double cos[PENC_SINCOS_ROWS * PENC_SINCOS_CHUNK], sin[PENC_SINCOS_ROWS * PENC_SINCOS_CHUNK];
} penc_run_steps;

static void penc_run_chunk(const posenc_frequencies *frequencies, size_t chunk, int64_t first,
                           size_t rows, penc_fast_target target) {
    const penc_sincos_kernels *kernels = penc_sincos_kernels_now();
    penc_phase_table table = penc_phases_from(frequencies, chunk);
    size_t count = penc_chunk_size(frequencies, chunk);
    double anchor_cos[PENC_SINCOS_CHUNK], anchor_sin[PENC_SINCOS_CHUNK];
    double scale = penc_scale_of(frequencies, target);
    penc_run_steps steps;
    penc_unsettled unsettled;
    for (uint32_t row = 0; row < PENC_SINCOS_ROWS; row++)
        kernels->row(table, count, row, 1.0, steps.cos + row * PENC_SINCOS_CHUNK,
                     steps.sin + row * PENC_SINCOS_CHUNK);
    for (size_t done = 0; done < rows; done += PENC_SINCOS_ROWS) {
        size_t take = rows - done < PENC_SINCOS_ROWS ? rows - done : PENC_SINCOS_ROWS;
        int64_t anchor = first + (int64_t)done;
        penc_fast_target at = {target.cos + (ptrdiff_t)done * target.stride,
                               target.sin + (ptrdiff_t)done * target.stride, target.stride,
                               target.attention};
        kernels->row(table, count, (uint32_t)anchor, scale, anchor_cos, anchor_sin);
        unsettled.count = 0;
        kernels->round_run(count, take, scale, anchor_cos, anchor_sin, steps.cos, steps.sin,
                           at.cos + chunk, at.sin + chunk, at.stride, &unsettled);
        penc_settle(frequencies, &unsettled, anchor, chunk, at);
    }
}

void penc_fast_run(const posenc_frequencies *frequencies, int64_t first, size_t count,
                   penc_fast_target target) {
    for (size_t chunk = 0; chunk < frequencies->pairs; chunk += PENC_SINCOS_CHUNK)
        penc_run_chunk(frequencies, chunk, first, count, target);
}
