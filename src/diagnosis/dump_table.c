/* Dumped rows folded to one number a pair. SPDX-License-Identifier: MIT */
#include "diagnosis/dump.h"

#include "base/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void penc_table_free(penc_table *table) {
    free(table->cos);
    free(table->sin);
    table->cos = table->sin = NULL;
}

static posenc_status penc_table_allocate(penc_table *table, size_t rows, size_t pairs,
                                         posenc_error *error) {
    memset(table, 0, sizeof *table);
    table->rows = rows;
    table->pairs = pairs;
    table->cos = malloc(rows * pairs * sizeof *table->cos);
    table->sin = malloc(rows * pairs * sizeof *table->sin);
    if (table->cos && table->sin)
        return POSENC_OK;
    penc_table_free(table);
    return penc_fail(error, POSENC_OUT_OF_MEMORY, "dump", "fit into memory");
}

/* How an array holds pair j: at first + j * step, and again `again` further on. */
typedef struct penc_layout {
    size_t step, again;
} penc_layout;

/* By how much the two numbers of a pair differ. */
static double penc_odd_error(const penc_dump_array *array, size_t row, size_t pair,
                             penc_layout layout) {
    const double *at = array->numbers + row * array->width + pair * layout.step;
    double a = at[0], b = at[layout.again];
    if (a == b || (isnan(a) && isnan(b)))
        return 0.0;
    return isfinite(a) && isfinite(b) ? fabs(a - b) : HUGE_VAL;
}

/* Pairs of rows that a layout does not repeat in cos and sin, and the first of them. */
static void penc_find_odd(const penc_dump *dump, size_t pairs, penc_layout layout,
                          penc_table *odd) {
    odd->odd_count = 0;
    for (size_t i = 0; i < dump->cos.rows; i++) {
        for (size_t j = 0; j < pairs; j++) {
            double error = fmax(penc_odd_error(&dump->cos, i, j, layout),
                                penc_odd_error(&dump->sin, i, j, layout));
            if (error == 0.0 || odd->odd_count++)
                continue;
            odd->odd_row = i;
            odd->odd_pair = j;
            odd->odd_error = error;
        }
    }
}

static posenc_status penc_fold(const penc_dump *dump, size_t pairs, penc_layout layout,
                               penc_table *table, posenc_error *error) {
    posenc_status status = penc_table_allocate(table, dump->cos.rows, pairs, error);
    for (size_t i = 0; !status && i < dump->cos.rows; i++) {
        for (size_t j = 0; j < pairs; j++) {
            size_t at = i * dump->cos.width + j * layout.step;
            table->cos[i * pairs + j] = dump->cos.numbers[at];
            table->sin[i * pairs + j] = dump->sin.numbers[at];
        }
    }
    return status;
}

/* cos and sin apart: one number a pair, or two in one of the full layouts. */
static posenc_status penc_table_of_two(const penc_dump *dump, size_t pairs, penc_table *table,
                                       posenc_error *error) {
    size_t width = dump->cos.width, half = width / 2;
    const penc_layout single = {1, 0}, by_halves = {1, half}, by_twos = {2, 1};
    if (pairs == width || width % 2)
        return penc_fold(dump, width, single, table, error);
    penc_table halves, twos; /* what is odd in either layout */
    penc_find_odd(dump, half, by_halves, &halves);
    penc_find_odd(dump, half, by_twos, &twos);
    if (!pairs && !halves.odd_count == !twos.odd_count) /* neither, or too little to tell */
        return penc_fold(dump, width, single, table, error);
    if (pairs && pairs != half)
        return penc_fold(dump, width, single, table, error);
    int is_half = halves.odd_count <= twos.odd_count;
    const penc_table *odd = is_half ? &halves : &twos;
    posenc_status status = penc_fold(dump, half, is_half ? by_halves : by_twos, table, error);
    table->has_pairing = !halves.odd_count != !twos.odd_count;
    table->pairing = is_half ? POSENC_PAIRING_HALF : POSENC_PAIRING_INTERLEAVED;
    table->odd_count = odd->odd_count;
    table->odd_row = odd->odd_row;
    table->odd_pair = odd->odd_pair;
    table->odd_error = odd->odd_error;
    return status;
}

/* How far cos^2 + sin^2 is from being one number, over all rows. */
static double penc_norm_spread(const penc_dump_array *both, size_t step, size_t apart) {
    double least = HUGE_VAL, most = 0.0;
    for (size_t i = 0; i < both->rows; i++) {
        const double *row = both->numbers + i * both->width;
        for (size_t j = 0; j < both->width / 2; j++) {
            double norm = hypot(row[j * step], row[j * step + apart]);
            least = fmin(least, norm);
            most = fmax(most, norm);
        }
    }
    return most - least;
}

/* cos and sin in one row, the one behind the other or in turns: whichever keeps cos^2 + sin^2. */
static posenc_status penc_table_of_both(const penc_dump *dump, penc_table *table,
                                        posenc_error *error) {
    const penc_dump_array *both = &dump->both;
    size_t pairs = both->width / 2;
    int turns = both->is_split || penc_norm_spread(both, 2, 1) < penc_norm_spread(both, 1, pairs);
    posenc_status status = penc_table_allocate(table, both->rows, pairs, error);
    for (size_t i = 0; !status && i < both->rows; i++) {
        const double *row = both->numbers + i * both->width;
        for (size_t j = 0; j < pairs; j++) {
            table->cos[i * pairs + j] = row[turns ? 2 * j : j];
            table->sin[i * pairs + j] = row[turns ? 2 * j + 1 : pairs + j];
        }
    }
    return status;
}

int penc_table_is_doubled(const penc_dump *dump, size_t pairs) {
    static const size_t most =
        8; /* a share of rows and pairs; other tables differ nearly everywhere */
    penc_table halves, twos;
    if (!dump->cos.numbers || dump->cos.width != 2 * pairs)
        return 0;
    penc_find_odd(dump, pairs, (penc_layout){1, pairs}, &halves);
    penc_find_odd(dump, pairs, (penc_layout){2, 1}, &twos);
    size_t odd = halves.odd_count < twos.odd_count ? halves.odd_count : twos.odd_count;
    return odd < dump->cos.rows * pairs / most;
}

posenc_status penc_dump_table(const penc_dump *dump, size_t pairs, penc_table *table,
                              posenc_error *error) {
    return dump->cos.numbers ? penc_table_of_two(dump, pairs, table, error)
                             : penc_table_of_both(dump, table, error);
}
