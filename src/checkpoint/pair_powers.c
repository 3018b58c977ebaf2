/* The list of row powers: from powers to logarithms. SPDX-License-Identifier: MIT */
#include "base/checked.h"
#include "base/fail.h"
#include "base/plain_log.h"
#include "checkpoint/pair_data.h"

#include <stdlib.h>

#define PENC_POWER_FLOOR 1e-12 /* of the head's mean: rows of zeros have a logarithm too */

posenc_status posenc_pair_powers_create(size_t rotary_dim, posenc_pair_powers **powers,
                                        posenc_error *error) {
    if (!powers)
        return penc_fail_null(error, "powers");
    *powers = NULL;
    if (rotary_dim < 4 || rotary_dim > 65536 || rotary_dim % 4)
        return penc_fail_size(error, "rotary_dim", rotary_dim,
                              "be a multiple of 4 from 4 to 65536 to be judged");
    posenc_pair_powers *made = calloc(1, sizeof *made);
    if (!made)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "powers", "fit into memory");
    made->data.dim = rotary_dim;
    *powers = made;
    return POSENC_OK;
}

void posenc_pair_powers_free(posenc_pair_powers *powers) {
    if (!powers)
        return;
    free(powers->data.x);
    free(powers->data.y);
    free(powers->data.layer);
    free(powers->data.tied);
    free(powers->numbers);
    free(powers);
}

size_t posenc_pair_powers_count(const posenc_pair_powers *powers) {
    return powers ? powers->layers : 0;
}

size_t posenc_pair_powers_layer(const posenc_pair_powers *powers, size_t index) {
    if (index >= posenc_pair_powers_count(powers))
        return 0;
    return index < powers->numbered ? powers->numbers[index] : index;
}

/* Each array is kept where it cannot grow, and freed with the list. */
static int penc_pair_grow(penc_pair_data *data, size_t heads, size_t bytes) {
    double *x = realloc(data->x, bytes), *y = realloc(data->y, bytes);
    size_t *layer = realloc(data->layer, heads * sizeof *layer);
    unsigned char *tied = realloc(data->tied, heads);
    data->x = x ? x : data->x;
    data->y = y ? y : data->y;
    data->layer = layer ? layer : data->layer;
    data->tied = tied ? tied : data->tied;
    return x && y && layer && tied;
}

static posenc_status penc_pair_reserve(posenc_pair_powers *powers, size_t more,
                                       posenc_error *error) {
    penc_pair_data *data = &powers->data;
    size_t row = data->dim * sizeof(double), heads, bytes;
    if (more <= powers->capacity - data->heads)
        return POSENC_OK;
    if (more > SIZE_MAX / 2 - data->heads ||
        !penc_size_multiply(heads = 2 * (data->heads + more), row, &bytes))
        return penc_fail_size(error, "kv_heads", more, "fit into memory");
    if (!penc_pair_grow(data, heads, bytes))
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "powers", "fit into memory");
    powers->capacity = heads;
    return POSENC_OK;
}

static posenc_status penc_check_powers(const double *powers, size_t count, const char *argument,
                                       posenc_error *error) {
    for (size_t i = 0; i < count; i++) {
        if (powers[i] >= 0.0 && powers[i] <= 1e300)
            continue;
        penc_fail_real(error, argument, powers[i], "be from 0 to 1e300");
        penc_fail_place(error, "index", (int64_t)i);
        return POSENC_OUT_OF_RANGE;
    }
    return POSENC_OK;
}

/* Logarithms of the sums of `rows` rows, their mean taken out. Returns 0 if all are zero. */
static int penc_pair_logs(const double *powers, size_t rows, size_t dim, double *to) {
    double sum = 0.0;
    for (size_t j = 0; j < dim; j++) {
        to[j] = 0.0;
        for (size_t row = 0; row < rows; row++)
            to[j] += powers[row * dim + j];
        sum += to[j];
    }
    double floor = PENC_POWER_FLOOR * sum / (double)dim, mean = 0.0;
    if (!(floor >= 0x1p-1022))
        return 0;
    for (size_t j = 0; j < dim; j++) {
        to[j] = penc_log(to[j] > floor ? to[j] : floor);
        mean += to[j];
    }
    mean /= (double)dim;
    for (size_t j = 0; j < dim; j++)
        to[j] -= mean;
    return 1;
}

posenc_status posenc_pair_powers_add(posenc_pair_powers *powers, size_t heads, size_t kv_heads,
                                     const double *q, const double *k, int tied_heads,
                                     posenc_error *error) {
    if (!powers)
        return penc_fail_null(error, "powers");
    if (!q || !k)
        return penc_fail_null(error, q ? "k" : "q");
    if (kv_heads < 1)
        return penc_fail_size(error, "kv_heads", kv_heads, "be at least 1");
    if (heads < 1 || heads % kv_heads) {
        penc_fail_size(error, "heads", heads, "be a multiple of kv_heads");
        penc_fail_limit(error, "kv_heads", kv_heads);
        return POSENC_OUT_OF_RANGE;
    }
    size_t dim = powers->data.dim, group = heads / kv_heads;
    posenc_status status = penc_check_powers(q, heads * dim, "q", error);
    if (!status)
        status = penc_check_powers(k, kv_heads * dim, "k", error);
    if (!status)
        status = penc_pair_reserve(powers, kv_heads, error);
    if (status)
        return status;
    penc_pair_data *data = &powers->data;
    for (size_t head = 0; head < kv_heads; head++) {
        double *x = data->x + data->heads * dim, *y = data->y + data->heads * dim;
        if (!penc_pair_logs(q + head * group * dim, group, dim, x) ||
            !penc_pair_logs(k + head * dim, 1, dim, y))
            continue;
        data->layer[data->heads] = powers->layers;
        data->tied[data->heads] = tied_heads != 0;
        data->heads++;
    }
    powers->layers++;
    return POSENC_OK;
}
