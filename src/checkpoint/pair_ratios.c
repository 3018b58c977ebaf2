/* Likelihood ratios between the two pairings.
 *
 * A pairing makes of a head's channels sums s = (a + b) / sqrt 2 and differences t = (a - b) / sqrt 2 of its pairs,
 * for q (x) and k (y). Their likelihood is that of one Gaussian for the (s_x, s_y) and one for the (t_x, t_y): two
 * 2 x 2 determinants. Members of a true pair are alike, so that s and t differ most in spread there.
 *
 * SPDX-License-Identifier: MIT */
#include "checkpoint/pair_ratios.h"

#include "base/fail.h"
#include "base/plain_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PENC_DEPENDENT 1e-9 /* of the product of variances: a determinant below is rounding */

enum { SUM, DIFFERENCE, FORMS, CENTRED_FROM = 4 };

/* Memory of one evaluation, and its sums. */
typedef struct penc_pair_work {
    size_t dim;
    double *rows;    /* [x, y][pairing][form][dim / 2] of one head */
    double *columns; /* the same, summed over the heads */
    double *x, *y;   /* [dim]: a shuffled head */
    size_t *order;   /* [dim] */
    double square[2][PENC_PAIRINGS][FORMS];
    double cross[PENC_PAIRINGS][PENC_PAIRINGS][FORMS];
} penc_pair_work;

static double *penc_pair_row(double *rows, size_t half, int k, int pairing, int form) {
    return rows + (size_t)((k * PENC_PAIRINGS + pairing) * FORMS + form) * half;
}

/* Sums and differences of one head's channels `z` in both pairings. */
static void penc_pair_split(const double *z, size_t half, int k, double *rows) {
    const double root = 0.70710678118654757;
    for (int pairing = 0; pairing < PENC_PAIRINGS; pairing++) {
        double *sum = penc_pair_row(rows, half, k, pairing, SUM);
        double *difference = penc_pair_row(rows, half, k, pairing, DIFFERENCE);
        for (size_t j = 0; j < half; j++) {
            double a = pairing == PENC_HALF ? z[j] : z[2 * j];
            double b = pairing == PENC_HALF ? z[j + half] : z[2 * j + 1];
            sum[j] = (a + b) * root;
            difference[j] = (a - b) * root;
        }
    }
}

static double penc_dot(const double *a, const double *b, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Adds one head to all moments. */
static void penc_pair_gather(penc_pair_work *work, const double *x, const double *y) {
    size_t half = work->dim / 2, all = 2 * PENC_PAIRINGS * FORMS * half;
    penc_pair_split(x, half, 0, work->rows);
    penc_pair_split(y, half, 1, work->rows);
    for (size_t i = 0; i < all; i++)
        work->columns[i] += work->rows[i];
    for (int form = 0; form < FORMS; form++) {
        for (int p = 0; p < PENC_PAIRINGS; p++) {
            const double *row = penc_pair_row(work->rows, half, 0, p, form);
            const double *other = penc_pair_row(work->rows, half, 1, p, form);
            work->square[0][p][form] += penc_dot(row, row, half);
            work->square[1][p][form] += penc_dot(other, other, half);
            for (int r = 0; r < PENC_PAIRINGS; r++)
                work->cross[p][r][form] +=
                    penc_dot(row, penc_pair_row(work->rows, half, 1, r, form), half);
        }
    }
}

/* log of the determinant of the mean second moments of (x in pairing p, y in pairing r); `centred`: the mean over
 * the heads is taken out of every column. */
static double penc_pair_log_det(const penc_pair_work *work, double heads, int p, int r, int form,
                                int centred) {
    size_t half = work->dim / 2;
    double xx = work->square[0][p][form], yy = work->square[1][r][form];
    double xy = work->cross[p][r][form];
    if (centred) {
        const double *x = penc_pair_row(work->columns, half, 0, p, form);
        const double *y = penc_pair_row(work->columns, half, 1, r, form);
        xx -= penc_dot(x, x, half) / heads;
        yy -= penc_dot(y, y, half) / heads;
        xy -= penc_dot(x, y, half) / heads;
    }
    double count = heads * (double)half;
    double det = fmax(xx * yy - xy * xy, PENC_DEPENDENT * (xx * yy)) / (count * count);
    return penc_log(fmax(det, 1e-300));
}

static double penc_pair_likelihood(const penc_pair_work *work, size_t heads, int p, int r,
                                   int part) {
    double n = (double)heads;
    int residual = part == PENC_RESIDUAL, centred = residual || heads >= CENTRED_FROM;
    return -0.25 * n * (double)work->dim *
           (penc_pair_log_det(work, n, p, r, SUM, centred) +
            penc_pair_log_det(work, n, p, r, DIFFERENCE, residual));
}

/* The ratios from the moments of `heads` heads. One head leaves no residual: 0. */
static void penc_pair_compare(const penc_pair_work *work, size_t heads,
                              double ratio[PENC_PARTS][PENC_SIDES],
                              double likelihood[PENC_PAIRINGS][PENC_PAIRINGS]) {
    for (int part = 0; part < PENC_PARTS; part++) {
        double fit[PENC_PAIRINGS][PENC_PAIRINGS] = {{0.0}};
        for (int p = 0; p < PENC_PAIRINGS && (part == PENC_TOTAL || heads > 1); p++) {
            for (int r = 0; r < PENC_PAIRINGS; r++)
                fit[p][r] = penc_pair_likelihood(work, heads, p, r, part);
        }
        ratio[part][PENC_BOTH] = fit[0][0] - fit[1][1];
        ratio[part][PENC_Q] = fmax(fit[0][0], fit[0][1]) - fmax(fit[1][0], fit[1][1]);
        ratio[part][PENC_K] = fmax(fit[0][0], fit[1][0]) - fmax(fit[0][1], fit[1][1]);
        if (part == PENC_TOTAL && likelihood)
            memcpy(likelihood, fit, sizeof fit);
    }
}

static void penc_pair_reset(penc_pair_work *work) {
    memset(work->square, 0, sizeof work->square);
    memset(work->cross, 0, sizeof work->cross);
    memset(work->columns, 0, PENC_PAIRINGS * FORMS * work->dim * sizeof(double));
}

/* ---- Shuffled channels ---- */

/* Two outliers of a head pair by chance once in as many shuffles as it has channels: there must be more. */
enum { PENC_SHUFFLES = 1024 };

typedef struct penc_pair_noise {
    double ratio[PENC_SHUFFLES][PENC_PARTS][PENC_SIDES];
} penc_pair_noise;

/* SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine. */
static uint32_t penc_random_below(uint64_t *state, uint32_t bound) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(((z ^ z >> 31) >> 32) * bound >> 32);
}

static void penc_random_order(uint64_t *state, size_t *order, size_t count) {
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t left = count; left > 1; left--) {
        size_t pick = penc_random_below(state, (uint32_t)left), kept = order[left - 1];
        order[left - 1] = order[pick];
        order[pick] = kept;
    }
}

/* All heads with their channels in random order, q and k alike. */
static void penc_pair_gather_shuffled(penc_pair_work *work, const penc_pair_data *data,
                                      uint64_t *state) {
    for (size_t head = 0; head < data->heads; head++) {
        if (!penc_pair_tied(data, head))
            penc_random_order(state, work->order, data->dim);
        for (size_t j = 0; j < data->dim; j++) {
            work->x[j] = data->x[head * data->dim + work->order[j]];
            work->y[j] = data->y[head * data->dim + work->order[j]];
        }
        penc_pair_gather(work, work->x, work->y);
    }
}

/* How far `own` lies from the mean of the noise, in standard deviations of the noise; where its tails are heavy, in
 * quarters of the largest deviation that it has. */
static double penc_pair_deviation(double own, const penc_pair_noise *noise, int part, int side) {
    double mean = 0.0, variance = 0.0, largest = 0.0;
    for (int i = 0; i < PENC_SHUFFLES; i++)
        mean += noise->ratio[i][part][side] / (double)PENC_SHUFFLES;
    for (int i = 0; i < PENC_SHUFFLES; i++) {
        double away = noise->ratio[i][part][side] - mean;
        variance += away * away / (double)PENC_SHUFFLES;
        largest = fmax(largest, fabs(away));
    }
    double spread = fmax(sqrt(variance), largest / 4.0);
    return spread > 0.0 ? (own - mean) / spread : 0.0;
}

static void penc_pair_ratios_run(const penc_pair_data *data, penc_pair_work *work,
                                 penc_pair_noise *noise, penc_pair_ratios *ratios) {
    uint64_t state = 1;
    penc_pair_reset(work);
    for (size_t head = 0; head < data->heads; head++)
        penc_pair_gather(work, data->x + head * data->dim, data->y + head * data->dim);
    penc_pair_compare(work, data->heads, ratios->ratio, ratios->likelihood);
    for (int i = 0; i < PENC_SHUFFLES; i++) {
        penc_pair_reset(work);
        penc_pair_gather_shuffled(work, data, &state);
        penc_pair_compare(work, data->heads, noise->ratio[i], NULL);
    }
    for (int part = 0; part < PENC_PARTS; part++) {
        for (int side = 0; side < PENC_SIDES; side++)
            ratios->deviation[part][side] =
                penc_pair_deviation(ratios->ratio[part][side], noise, part, side);
    }
}

posenc_status penc_pair_ratios_of(const penc_pair_data *data, penc_pair_ratios *ratios,
                                  posenc_error *error) {
    size_t dim = data->dim, rows = PENC_PAIRINGS * FORMS * dim; /* of x and y: dim / 2 each */
    double *memory = malloc((2 * rows + 2 * dim) * sizeof *memory);
    size_t *order = malloc(dim * sizeof *order);
    penc_pair_noise *noise = malloc(sizeof *noise);
    int have = memory && order && noise;
    if (have) {
        penc_pair_work work = {
            dim,   memory,  memory + rows, memory + 2 * rows, memory + 2 * rows + dim,
            order, {{{0}}}, {{{0}}}};
        penc_pair_ratios_run(data, &work, noise, ratios);
    }
    free(noise);
    free(order);
    free(memory);
    return have ? POSENC_OK : penc_fail(error, POSENC_OUT_OF_MEMORY, "shuffles", "fit into memory");
}
