/* Frequencies as the library and as MPFR have them, positions to try them at, and the check of one cos and
 * sin against a contract: what tests of contracts share. SPDX-License-Identifier: MIT */
#ifndef TEST_LADDERS_H
#define TEST_LADDERS_H

#include "contracts.h"

#include "angles/sincos.h"
#include "frequencies/frequencies_object.h"
#include "frequencies_of.h"
#include "random_data.h"

enum {
    SAMPLES = 500000, /* 20 times as many with POSENC_LONG */
    MOST_PAIRS = 64,
    LADDERS = 10
};

/* Frequencies and what they are as real numbers: radians and turns per position. */
typedef struct ladder {
    double base;
    size_t dim, pairs;
    posenc_frequencies *made;
    mpfr_t radians[MOST_PAIRS], turns[MOST_PAIRS];
    mpfr_t turns_briefly[MOST_PAIRS]; /* enough for an estimate */
} ladder;

void ladders_start(ladder *all);
void ladders_end(ladder *all);

/* The ladder that a witness (base, dim, pair, position) names; its bases and dims are among ours. */
const ladder *witness_ladder(const ladder *all, const search *s);

/* Any real position: whole or not, small or large. */
double random_place(random_stream *rng);

/* Call `visit` with positions whose angles come closest to multiples of pi/2 and with their surroundings, and
 * with the smallest and the largest positions. */
typedef void visit_position(search *s, const ladder *l, size_t pair, double position);
void visit_closest(search *s, const ladder *all, visit_position *visit);
void visit_extremes(search *s, const ladder *all, visit_position *visit);

/* The same with real positions whose sin or cos lies next to a midpoint of two numbers of `dtype`. */
void visit_ties(search *s, const ladder *all, posenc_dtype dtype, random_stream *rng,
                visit_position *visit);

/* One cos and sin against the contract. */
void check_value(search *s, const ladder *l, size_t pair, double position, posenc_dtype dtype,
                 penc_sincos got);

#endif
