/* What follows from a layer type's spec. SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/struct_size.h"

#include "posenc/model.h"
#include "posenc/rows.h"

#include <math.h>
#include <stdlib.h>

static const double penc_turn = 6.283185307179586477;

static void penc_count_wavelengths(const posenc_frequencies *frequencies,
                                   posenc_layer_facts *facts) {
    for (size_t pair = 0; pair < facts->pairs; pair++) {
        double inv_freq = fabs(posenc_frequencies_inv_freq(frequencies, pair, POSENC_MODE_EXACT));
        if (inv_freq == 0.0) {
            facts->pairs_still++;
            continue;
        }
        double wavelength = penc_turn / inv_freq;
        if (facts->shortest_wavelength == 0.0 || wavelength < facts->shortest_wavelength)
            facts->shortest_wavelength = wavelength;
        if (wavelength > facts->longest_wavelength)
            facts->longest_wavelength = wavelength;
        if (facts->trained_positions && wavelength > (double)facts->trained_positions)
            facts->pairs_below_one_turn++;
    }
}

/* Rows of some positions in both modes, and how far apart they are. */
enum { PENC_FACTS_BLOCK = 256 };
typedef struct penc_facts_block {
    float *rows;
    int64_t *positions; /* the same on every axis */
    double worst[PENC_FACTS_BLOCK];
} penc_facts_block;

static posenc_status penc_make_rows(const posenc_frequencies *frequencies, penc_facts_block *block,
                                    posenc_mode mode, float *cos, posenc_error *error) {
    posenc_rows to = POSENC_ROWS_INIT;
    to.mode = mode;
    to.cos = cos;
    to.sin = cos + PENC_FACTS_BLOCK * posenc_frequencies_pairs(frequencies);
    return posenc_angles(frequencies, block->positions, PENC_FACTS_BLOCK, &to, error);
}

/* The largest difference of each position from `first` on. */
static posenc_status penc_compare_modes(const posenc_frequencies *frequencies, int64_t first,
                                        penc_facts_block *block, posenc_error *error) {
    size_t pairs = posenc_frequencies_pairs(frequencies), numbers = PENC_FACTS_BLOCK * pairs;
    size_t axes = posenc_frequencies_spec(frequencies)->axes->count;
    float *exact = block->rows, *rounded = block->rows + 2 * numbers;
    for (size_t i = 0; i < axes * PENC_FACTS_BLOCK; i++)
        block->positions[i] = first + (int64_t)(i % PENC_FACTS_BLOCK);
    posenc_status status = penc_make_rows(frequencies, block, POSENC_MODE_EXACT, exact, error);
    if (!status)
        status = penc_make_rows(frequencies, block, POSENC_MODE_FLOAT32, rounded, error);
    for (size_t i = 0; i < PENC_FACTS_BLOCK; i++)
        block->worst[i] = 0.0;
    for (size_t at = 0; !status && at < 2 * numbers; at++) {
        double *worst = &block->worst[at % numbers / pairs];
        *worst = fmax(*worst, fabs((double)exact[at] - (double)rounded[at]));
    }
    return status;
}

/* Half a unit in the last place of numbers from 1/2 to 1. The attention factor scales both sides. */
static posenc_status penc_find_float32_limits(const posenc_frequencies *frequencies,
                                              penc_facts_block *block, posenc_layer_facts *facts,
                                              posenc_error *error) {
    double scale = fabs(posenc_frequencies_attention_factor(frequencies, POSENC_MODE_EXACT));
    posenc_status status = POSENC_OK;
    for (int64_t first = 0;
         !status && facts->float32_visible_in_bf16 < 0 && first < POSENC_FACTS_LAST_POSITION;
         first += PENC_FACTS_BLOCK) {
        status = penc_compare_modes(frequencies, first, block, error);
        for (int64_t i = 0; !status && i < PENC_FACTS_BLOCK; i++) {
            if (facts->float32_visible_in_f16 < 0 && block->worst[i] > 0x1p-12 * scale)
                facts->float32_visible_in_f16 = first + i;
            if (facts->float32_visible_in_bf16 < 0 && block->worst[i] > 0x1p-9 * scale)
                facts->float32_visible_in_bf16 = first + i;
        }
    }
    return status;
}

posenc_status posenc_layer_facts_of(const posenc_layer_type *type,
                                    const posenc_frequencies *frequencies,
                                    posenc_layer_facts *facts, posenc_error *error) {
    if (!type)
        return penc_fail_null(error, "type");
    if (!frequencies)
        return penc_fail_null(error, "frequencies");
    posenc_status status = penc_check_struct(facts, sizeof *facts, "facts", error);
    if (status)
        return status;
    const posenc_scaling *scaling = type->spec.scaling;
    size_t pairs = posenc_frequencies_pairs(frequencies);
    size_t axes = posenc_frequencies_spec(frequencies)->axes->count;
    posenc_layer_facts made = POSENC_LAYER_FACTS_INIT;
    made.pairs = pairs;
    made.trained_positions = scaling && scaling->original_max_positions
                                 ? scaling->original_max_positions
                                 : type->spec.max_positions;
    made.float32_visible_in_f16 = made.float32_visible_in_bf16 = -1;
    penc_count_wavelengths(frequencies, &made);
    penc_facts_block block = {.rows = calloc(4 * PENC_FACTS_BLOCK, pairs * sizeof(float)),
                              .positions = calloc(PENC_FACTS_BLOCK, axes * sizeof(int64_t))};
    if (block.rows && block.positions)
        status = penc_find_float32_limits(frequencies, &block, &made, error);
    else
        status = penc_fail(error, POSENC_OUT_OF_MEMORY, "facts", "fit into memory");
    free(block.rows);
    free(block.positions);
    if (!status)
        *facts = made;
    return status;
}
