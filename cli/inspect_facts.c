/* What follows from a layer type's spec. SPDX-License-Identifier: MIT */
#include "inspect_facts.h"

#include "posenc/rows.h"

#include <math.h>
#include <stdlib.h>

static const double turn = 6.283185307179586477;

static void count_wavelengths(inspect_facts *facts) {
    size_t pairs = posenc_frequencies_pairs(facts->frequencies);
    for (size_t pair = 0; pair < pairs; pair++) {
        double inv_freq =
            fabs(posenc_frequencies_inv_freq(facts->frequencies, pair, POSENC_MODE_EXACT));
        if (inv_freq == 0.0) {
            facts->still++;
            continue;
        }
        double wavelength = turn / inv_freq;
        if (facts->shortest == 0.0 || wavelength < facts->shortest)
            facts->shortest = wavelength;
        if (wavelength > facts->longest)
            facts->longest = wavelength;
        if (facts->trained && wavelength > (double)facts->trained)
            facts->unfinished++;
    }
}

enum { BLOCK = 256 };

/* Rows of both modes for the same positions; every axis has the same ones. Returns the largest difference
 * of each position in `worst`, or 0 if there is no memory. */
static int compare_block(const inspect_facts *facts, int64_t first, float *rows, int64_t *positions,
                         double *worst) {
    size_t pairs = posenc_frequencies_pairs(facts->frequencies);
    size_t axes = posenc_frequencies_spec(facts->frequencies)->axes->count;
    for (size_t i = 0; i < axes * BLOCK; i++)
        positions[i] = first + (int64_t)(i % BLOCK);
    float *cosines[2] = {rows, rows + 2 * BLOCK * pairs};
    for (int mode = 0; mode < 2; mode++) {
        posenc_rows to = POSENC_ROWS_INIT;
        to.mode = mode ? POSENC_MODE_FLOAT32 : POSENC_MODE_EXACT;
        to.cos = cosines[mode];
        to.sin = cosines[mode] + BLOCK * pairs;
        if (posenc_angles(facts->frequencies, positions, BLOCK, &to, NULL))
            return 0;
    }
    for (size_t i = 0; i < BLOCK; i++) {
        worst[i] = 0.0;
        for (size_t pair = 0; pair < pairs; pair++) {
            for (size_t part = 0; part < 2; part++) {
                size_t at = part * BLOCK * pairs + i * pairs + pair;
                worst[i] = fmax(worst[i], fabs((double)cosines[0][at] - (double)cosines[1][at]));
            }
        }
    }
    return 1;
}

/* Half a unit in the last place of numbers from 1/2 to 1. The attention factor scales both sides. */
static void find_float32_limits(inspect_facts *facts) {
    size_t pairs = posenc_frequencies_pairs(facts->frequencies);
    size_t axes = posenc_frequencies_spec(facts->frequencies)->axes->count;
    double scale = fabs(posenc_frequencies_attention_factor(facts->frequencies, POSENC_MODE_EXACT));
    float *rows = calloc(4 * BLOCK, pairs * sizeof *rows);
    int64_t *positions = calloc(BLOCK, axes * sizeof *positions);
    double worst[BLOCK];
    facts->first_f16 = facts->first_bf16 = -1;
    for (int64_t first = 0; rows && positions && first < INSPECT_LAST_POSITION; first += BLOCK) {
        if (!compare_block(facts, first, rows, positions, worst))
            break;
        for (int64_t i = 0; i < BLOCK; i++) {
            if (facts->first_f16 < 0 && worst[i] > 0x1p-12 * scale)
                facts->first_f16 = first + i;
            if (facts->first_bf16 < 0 && worst[i] > 0x1p-9 * scale)
                facts->first_bf16 = first + i;
        }
        if (facts->first_bf16 >= 0)
            break;
    }
    free(rows);
    free(positions);
}

inspect_facts inspect_facts_of(const posenc_layer_type *type) {
    inspect_facts facts = {0};
    if (type->kind != POSENC_ENCODING_ROPE || type->invalid)
        return facts;
    facts.length = facts.trained = type->spec.max_positions;
    if (type->spec.scaling && type->spec.scaling->original_max_positions)
        facts.trained = type->spec.scaling->original_max_positions;
    posenc_error error;
    if (posenc_frequencies_create(&type->spec, facts.length ? facts.length : 1, &facts.frequencies,
                                  NULL, &error))
        return facts;
    count_wavelengths(&facts);
    find_float32_limits(&facts);
    return facts;
}

void inspect_facts_free(inspect_facts *facts) {
    posenc_frequencies_destroy(facts->frequencies);
}
