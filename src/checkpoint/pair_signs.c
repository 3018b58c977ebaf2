/* The exact test of a pairing by the symmetry of its members.
 *
 * If the other pairing were true, the members of each of its pairs could be swapped without changing how probable
 * the weights are, whatever training did: the differences t of its pairs have independent random signs. Four
 * channels hold two pairs of either pairing, so that of the differences of two pairs of the other pairing, one (u)
 * may predict the other (t): within the head, and by its mean over the heads. Sums of predictions times t are then
 * sub-Gaussian with the variance that their squares add up to, and the tail bound of Hsu, Kakade and Zhang (2012)
 * holds for any number of signs.
 *
 * SPDX-License-Identifier: MIT */
#include "checkpoint/pair_signs.h"

#include "base/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 5, T_X = 0, U_X, T_Y, U_Y, DIFFERENCES };

/* The differences of all quads, [heads][dim / 4] each, and the means of the predictors. */
typedef struct penc_quads {
    size_t heads, quads;
    double *difference[DIFFERENCES];
    double *mean_x, *mean_y; /* [quads] */
    double *scratch;         /* [heads * quads] */
} penc_quads;

/* Second moments of parts that share signs, and their sum. */
typedef struct penc_sign_sums {
    double second[PARTS][PARTS], total[PARTS];
    size_t signs;
} penc_sign_sums;

static int penc_compare_reals(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Limits heavy tails by an odd function, whose scale does not depend on signs: t / (|t| + 2 median |t|). */
static void penc_squash(double *t, size_t count, double *scratch) {
    for (size_t i = 0; i < count; i++)
        scratch[i] = fabs(t[i]);
    qsort(scratch, count, sizeof *scratch, penc_compare_reals);
    double scale = scratch[count / 2] + scratch[(count - 1) / 2];
    for (size_t i = 0; i < count; i++)
        t[i] = scale > 0.0 ? t[i] / (fabs(t[i]) + scale) : 0.0;
}

/* The differences that speak for `pairing`: those of pairs of the other one. Channels a, b | c, d of a quad are
 * 2j, 2j + 1 | 2j + dim/2, 2j + 1 + dim/2; half pairs a with c, interleaved a with b. */
static void penc_quads_fill(const penc_pair_data *data, int pairing, penc_quads *quads) {
    size_t half = data->dim / 2, count = quads->heads * quads->quads;
    size_t beside = pairing == PENC_HALF ? 1 : half, across = pairing == PENC_HALF ? half : 1;
    for (size_t i = 0; i < count; i++) {
        size_t at = i / quads->quads * data->dim + 2 * (i % quads->quads), last = at + half + 1;
        quads->difference[T_X][i] = data->x[at] - data->x[at + beside];
        quads->difference[U_X][i] = data->x[at + across] - data->x[last];
        quads->difference[T_Y][i] = data->y[at] - data->y[at + beside];
        quads->difference[U_Y][i] = data->y[at + across] - data->y[last];
    }
    for (int which = 0; which < DIFFERENCES; which++)
        penc_squash(quads->difference[which], count, quads->scratch);
    for (size_t j = 0; j < quads->quads; j++) {
        double x = 0.0, y = 0.0;
        for (size_t i = j; i < count; i += quads->quads) {
            x += quads->difference[U_X][i];
            y += quads->difference[U_Y][i];
        }
        quads->mean_x[j] = quads->heads > 1 ? x / (double)quads->heads : 0.0;
        quads->mean_y[j] = quads->heads > 1 ? y / (double)quads->heads : 0.0;
    }
}

/* Adds what one head says about quad `j` to `parts`. */
static void penc_quads_predict(const penc_quads *quads, size_t head, size_t j,
                               double parts[PARTS]) {
    size_t i = head * quads->quads + j;
    double tx = quads->difference[T_X][i], ty = quads->difference[T_Y][i];
    double rx = quads->difference[U_X][i] - quads->mean_x[j];
    double ry = quads->difference[U_Y][i] - quads->mean_y[j];
    parts[0] += rx * tx;
    parts[1] += rx * ty + ry * tx;
    parts[2] += ry * ty;
    parts[3] += quads->mean_x[j] * tx;
    parts[4] += quads->mean_y[j] * ty;
}

static void penc_signs_add(penc_sign_sums *sums, const double parts[PARTS]) {
    for (int a = 0; a < PARTS; a++) {
        sums->total[a] += parts[a];
        for (int b = 0; b < PARTS; b++)
            sums->second[a][b] += parts[a] * parts[b];
    }
    sums->signs++;
}

/* Heads that share norm gains flip their signs together. */
static void penc_signs_sum(const penc_pair_data *data, const penc_quads *quads,
                           penc_sign_sums *sums) {
    memset(sums, 0, sizeof *sums);
    for (size_t first = 0, end; first < data->heads; first = end) {
        for (end = first + 1; end < data->heads && penc_pair_tied(data, end);)
            end++;
        for (size_t j = 0; j < quads->quads; j++) {
            double parts[PARTS] = {0.0};
            for (size_t head = first; head < end; head++)
                penc_quads_predict(quads, head, j, parts);
            penc_signs_add(sums, parts);
        }
    }
}

/* v' S^-1 v of `count` chosen parts, and the rank of S: elimination with the largest pivot first. */
static double penc_signs_quadratic(const penc_sign_sums *sums, const int *chosen, int count,
                                   int *rank) {
    double matrix[PARTS][PARTS + 1], value = 0.0;
    int used[PARTS] = {0};
    *rank = 0;
    for (int a = 0; a < count; a++) {
        double scale = sqrt(sums->second[chosen[a]][chosen[a]]);
        used[a] = !(scale > 0.0);
        for (int b = 0; b < count && !used[a]; b++) {
            double other = sqrt(sums->second[chosen[b]][chosen[b]]);
            matrix[a][b] = other > 0.0 ? sums->second[chosen[a]][chosen[b]] / (scale * other) : 0.0;
        }
        matrix[a][count] = used[a] ? 0.0 : sums->total[chosen[a]] / scale;
    }
    for (;;) {
        int pivot = -1;
        for (int a = 0; a < count; a++) {
            if (!used[a] && (pivot < 0 || matrix[a][a] > matrix[pivot][pivot]))
                pivot = a;
        }
        if (pivot < 0 || matrix[pivot][pivot] < 1e-9)
            return value;
        used[pivot] = 1;
        ++*rank;
        value += matrix[pivot][count] * matrix[pivot][count] / matrix[pivot][pivot];
        for (int a = 0; a < count; a++) {
            double factor = used[a] ? 0.0 : matrix[a][pivot] / matrix[pivot][pivot];
            for (int b = 0; b <= count && factor != 0.0; b++)
                matrix[a][b] -= factor * matrix[pivot][b];
        }
    }
}

/* -log of a bound on P(|v|^2 > value) for `rank` sub-Gaussian numbers: the t with
 * value = rank + 2 sqrt(rank t) + 2 t. */
static double penc_signs_bound(double value, int rank) {
    if (!(value > rank))
        return 0.0;
    double root = 0.5 * (sqrt(2.0 * value - rank) - sqrt((double)rank));
    return root * root;
}

static void penc_pair_signs_run(const penc_pair_data *data, penc_quads *quads,
                                penc_pair_signs *signs) {
    static const int chosen[PENC_SIDES][PARTS] = {{0, 1, 2, 3, 4}, {0, 3}, {2, 4}};
    static const int counts[PENC_SIDES] = {5, 2, 2};
    for (int pairing = 0; pairing < PENC_PAIRINGS; pairing++) {
        penc_sign_sums sums;
        penc_quads_fill(data, pairing, quads);
        penc_signs_sum(data, quads, &sums);
        for (int side = 0; side < PENC_SIDES; side++) {
            int rank;
            double value = penc_signs_quadratic(&sums, chosen[side], counts[side], &rank);
            signs->nats[pairing][side] = penc_signs_bound(value, rank);
        }
        signs->signs = sums.signs;
    }
}

posenc_status penc_pair_signs_of(const penc_pair_data *data, penc_pair_signs *signs,
                                 posenc_error *error) {
    penc_quads quads = {.heads = data->heads, .quads = data->dim / 4};
    size_t count = quads.heads * quads.quads;
    double *memory = malloc(((DIFFERENCES + 1) * count + 2 * quads.quads) * sizeof *memory);
    if (!memory)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "signs", "fit into memory");
    for (int which = 0; which < DIFFERENCES; which++)
        quads.difference[which] = memory + (size_t)which * count;
    quads.scratch = memory + DIFFERENCES * count;
    quads.mean_x = quads.scratch + count;
    quads.mean_y = quads.mean_x + quads.quads;
    penc_pair_signs_run(data, &quads, signs);
    free(memory);
    return POSENC_OK;
}
