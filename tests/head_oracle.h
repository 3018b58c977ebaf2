/* What a head should become: norm, rotation, norm, scale, written from posenc/norm_rotate.h alone, in plain loops.
 * SPDX-License-Identifier: MIT */
#ifndef TEST_HEAD_ORACLE_H
#define TEST_HEAD_ORACLE_H

#include "rotation_cases.h"

enum { MOST_DIM = 320 };

/* The stages of a case; the weight's memory is the test's. */
typedef struct stage_case {
    int rotates;
    posenc_norm norm;
    int has_norm;
    double factor; /* of the token at hand */
} stage_case;

/* One body for both computing types; x and y are numbers of that type, all exact in a double. */
#define HEAD_ORACLE(suffix, real, root)                                                            \
    static inline void oracle_norm_##suffix(const posenc_norm *norm, size_t n, double *x) {        \
        real sums[16], mean, r;                                                                    \
        for (size_t k = 0; k < 16; k++) {                                                          \
            sums[k] = 0;                                                                           \
            for (size_t i = k; i < n; i += 16) {                                                   \
                real square = (real)x[i] * (real)x[i];                                             \
                sums[k] = sums[k] + square;                                                        \
            }                                                                                      \
        }                                                                                          \
        real eights[8], fours[4];                                                                  \
        for (int i = 0; i < 8; i++)                                                                \
            eights[i] = sums[i] + sums[i + 8];                                                     \
        for (int i = 0; i < 4; i++)                                                                \
            fours[i] = eights[i] + eights[i + 4];                                                  \
        real low = fours[0] + fours[2], high = fours[1] + fours[3];                                \
        mean = (low + high) / (real)n;                                                             \
        mean = mean + (real)norm->epsilon;                                                         \
        r = root(mean);                                                                            \
        r = (real)1 / r;                                                                           \
        for (size_t i = 0; i < n; i++) {                                                           \
            real value = (real)x[i] * r;                                                           \
            if (norm->weight) {                                                                    \
                real w = (real)number_at(norm->weight, norm->weight_dtype, (ptrdiff_t)i);          \
                if (norm->weight_plus_one)                                                         \
                    w = (real)1 + w;                                                               \
                value = value * w;                                                                 \
            }                                                                                      \
            x[i] = (double)value;                                                                  \
        }                                                                                          \
    }                                                                                              \
    /* The head x by the row at `place` of r's tables; pairs lie as y_pairing says afterwards. */  \
    static inline void oracle_turn_##suffix(const posenc_rotation *r, ptrdiff_t place,             \
                                            posenc_pairing y_pairing, size_t n, double *x) {       \
        double y[MOST_DIM];                                                                        \
        memcpy(y, x, n * sizeof *y);                                                               \
        for (size_t pair = 0; pair < r->rotary_dim / 2; pair++) {                                  \
            ptrdiff_t at = place + (ptrdiff_t)pair * (r->pair_stride ? r->pair_stride : 1);        \
            turn t = {.scale = 1.0};                                                               \
            t.a = x[channel_of(r, r->pairing, pair, 0)];                                           \
            t.b = x[channel_of(r, r->pairing, pair, 1)];                                           \
            t.c = number_at(r->cos, r->dtype, at);                                                 \
            t.s = number_at(r->sin, r->dtype, at);                                                 \
            t.c2 = number_at(r->cos, r->dtype, at + r->second_stride);                             \
            t.s2 = number_at(r->sin, r->dtype, at + r->second_stride);                             \
            y[channel_of(r, y_pairing, pair, 0)] = turned_##suffix(&t, 0);                         \
            y[channel_of(r, y_pairing, pair, 1)] = turned_##suffix(&t, 1);                         \
        }                                                                                          \
        memcpy(x, y, n * sizeof *y);                                                               \
    }                                                                                              \
    static inline void oracle_head_##suffix(const stage_case *c, const posenc_rotation *r,         \
                                            ptrdiff_t place, posenc_pairing y_pairing, size_t n,   \
                                            double *x) {                                           \
        if (c->has_norm && c->norm.order == POSENC_NORM_BEFORE)                                    \
            oracle_norm_##suffix(&c->norm, n, x);                                                  \
        if (c->rotates)                                                                            \
            oracle_turn_##suffix(r, place, y_pairing, n, x);                                       \
        if (c->has_norm && c->norm.order == POSENC_NORM_AFTER)                                     \
            oracle_norm_##suffix(&c->norm, n, x);                                                  \
        for (size_t i = 0; i < n && c->factor != 1.0; i++)                                         \
            x[i] = (double)((real)x[i] * (real)c->factor);                                         \
    }
HEAD_ORACLE(float, float, sqrtf)
HEAD_ORACLE(double, double, sqrt)
#undef HEAD_ORACLE

/* Where a token's row begins in the tables, in elements. */
static inline ptrdiff_t row_place_of(const posenc_rotation *r, size_t batch, size_t token) {
    ptrdiff_t pair_stride = r->pair_stride ? r->pair_stride : 1;
    ptrdiff_t row_stride =
        r->row_stride ? r->row_stride : (ptrdiff_t)(r->rotary_dim / 2) * pair_stride;
    ptrdiff_t place = row_of(r, batch, token) * row_stride;
    return r->batch > 1 ? place + (ptrdiff_t)batch * r->batch_stride : place;
}

/* Reads a head's numbers. */
static inline void read_head(const posenc_tensor *t, const void *data, const size_t place[3],
                             double *x) {
    for (size_t i = 0; i < t->shape[POSENC_AXIS_HEAD_DIM]; i++) {
        size_t at[POSENC_AXES] = {place[0], place[1], place[2], i};
        x[i] = number_at(data, t->dtype, element_at(t, at));
    }
}

#endif
