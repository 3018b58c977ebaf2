/* Log powers of heads: what the statistics of pairing are computed from. SPDX-License-Identifier: MIT */
#ifndef PENC_PAIR_DATA_H
#define PENC_PAIR_DATA_H

#include "posenc/checkpoint.h"

/* Members of a pair: a channel of each half, or neighbours. */
enum { PENC_HALF = 0, PENC_INTERLEAVED = 1, PENC_PAIRINGS = 2 };

/* Both together, q alone, k alone. */
enum { PENC_BOTH = 0, PENC_Q = 1, PENC_K = 2, PENC_SIDES = 3 };

/* A list of heads, or a part of one. */
typedef struct penc_pair_data {
    size_t dim;          /* rotary channels of a head */
    size_t heads;        /* k heads, each with its group of q heads */
    double *x, *y;       /* [heads][dim]: log power of q and of k, the head's mean taken out */
    size_t *layer;       /* [heads]: which layer a head belongs to, ascending */
    unsigned char *tied; /* [heads]: the heads of its layer share norm gains */
} penc_pair_data;

struct posenc_pair_powers {
    penc_pair_data data;
    size_t capacity; /* heads that there is room for */
    size_t layers;
    uint32_t
        *numbers; /* of the first `numbered` layers in their model; the others have their index */
    size_t numbered;
};

/* 1 if a head shares the norm gains of the one before it: they are shuffled, and their signs flip, together. */
static inline int penc_pair_tied(const penc_pair_data *data, size_t head) {
    return head && data->tied[head] && data->layer[head] == data->layer[head - 1];
}

#endif
