/* Frequencies as the library and as MPFR have them. SPDX-License-Identifier: MIT */
#include "ladders.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void ladder_start(ladder *l, double base, size_t dim) {
    posenc_spec spec = spec_of(dim, base);
    mpfr_t turn;
    mpfr_init2(turn, ORACLE_BITS);
    mpfr_const_pi(turn, MPFR_RNDN);
    mpfr_mul_2ui(turn, turn, 1, MPFR_RNDN);
    l->base = base;
    l->dim = dim;
    l->pairs = dim / 2;
    l->made = frequencies_of(&spec);
    for (size_t j = 0; j < l->pairs; j++) {
        mpfr_inits2(ORACLE_BITS, l->radians[j], l->turns[j], (mpfr_ptr)NULL);
        mpfr_init2(l->turns_briefly[j], 160);
        oracle_frequency(l->radians[j], 1.0, base, 2 * j, dim);
        mpfr_div(l->turns[j], l->radians[j], turn, MPFR_RNDN);
        mpfr_set(l->turns_briefly[j], l->turns[j], MPFR_RNDN);
    }
    mpfr_clear(turn);
}

static void ladder_end(ladder *l) {
    for (size_t j = 0; j < l->pairs; j++)
        mpfr_clears(l->radians[j], l->turns[j], l->turns_briefly[j], (mpfr_ptr)NULL);
    posenc_frequencies_destroy(l->made);
}

static const size_t dims[] = {36, 128};

void ladders_start(ladder *all) {
    for (size_t i = 0; i < LADDERS; i++)
        ladder_start(&all[i], bases[i % COUNT(bases)], dims[i / COUNT(bases)]);
}

void ladders_end(ladder *all) {
    for (size_t i = 0; i < LADDERS; i++)
        ladder_end(&all[i]);
}

const ladder *witness_ladder(const ladder *all, const search *s) {
    for (size_t i = 0; i < LADDERS; i++) {
        if (all[i].base == s->contract.witness[0] && (double)all[i].dim == s->contract.witness[1])
            return &all[i];
    }
    fail_msg("the witness of %s has a base or dim of its own", s->contract.name);
    return NULL;
}

double random_place(random_stream *rng) {
    if (random_below(rng, 2))
        return (double)random_position(rng);
    double size = random_magnitude(rng, random_below(rng, 8) ? -3.0 : -90.0, 12.04);
    return random_below(rng, 2) ? size : -size;
}

/* The float64 numbers around the real position where the angle is `quarters` quarter turns. */
static void visit_around(search *s, const ladder *l, size_t pair, double quarters,
                         visit_position *visit) {
    mpfr_t place;
    mpfr_init2(place, ORACLE_BITS);
    mpfr_mul_2ui(place, l->turns[pair], 2, MPFR_RNDN);
    mpfr_d_div(place, quarters, place, MPFR_RNDN);
    double position = mpfr_get_d(place, MPFR_RNDN);
    mpfr_clear(place);
    for (int step = -4; step <= 4; step++) {
        double near = position * (1.0 + step * 0x1p-53 * (step % 2 ? 2.0 : 1.0));
        if (near <= s->contract.high)
            visit(s, l, pair, near);
    }
}

void visit_closest(search *s, const ladder *all, visit_position *visit) {
    int64_t found[64];
    for (size_t i = 0; i < LADDERS; i++) {
        for (size_t pair = 0; pair < all[i].pairs; pair++) {
            size_t count = oracle_closest_positions(all[i].radians[pair], found, COUNT(found));
            for (size_t k = 1; k < count; k++) {
                double one = (double)found[k], other = (double)found[k - 1];
                double places[] = {one,         -one,        2 * one,   3 * one,
                                   one + other, one - other, 0.5 * one, one + 1};
                for (size_t n = 0; n < COUNT(places); n++) {
                    if (fabs(places[n]) <= s->contract.high)
                        visit(s, &all[i], pair, places[n]);
                }
                visit_around(s, &all[i], pair, one, visit);
            }
        }
    }
}

void visit_extremes(search *s, const ladder *all, visit_position *visit) {
    static const double places[] = {0x1p40,   -0x1p40, 0x1p40 - 1, 0x1p40 - 0x1p-13,
                                    0x1p-30,  1e-30,   -1e-44,     1e-80,
                                    0x1p-300, 0.0,     0x1p-1074,  -0x1.fffffffffffffp-1};
    for (size_t i = 0; i < LADDERS; i++) {
        for (size_t pair = 0; pair < all[i].pairs; pair++) {
            for (size_t n = 0; n < COUNT(places); n++)
                visit(s, &all[i], pair, places[n]);
        }
    }
}

void visit_ties(search *s, const ladder *all, posenc_dtype dtype, random_stream *rng,
                visit_position *visit) {
    mpfr_t y, angle;
    mpfr_inits2(ORACLE_BITS, y, angle, (mpfr_ptr)NULL);
    for (size_t trial = 0; trial < random_trials(3000); trial++) {
        const ladder *l = &all[random_below(rng, LADDERS)];
        size_t pair = random_below(rng, l->pairs);
        int exponent;
        double near = ldexp(random_real(rng, 0.5, 1.0), -(int)random_below(rng, 30));
        (void)frexp(near, &exponent);
        double ulp = oracle_ulp(exponent, dtype);
        mpfr_set_d(y, (floor(near / ulp) + 0.5) * ulp, MPFR_RNDN);
        (trial % 2 ? mpfr_asin : mpfr_acos)(angle, y, MPFR_RNDN);
        mpfr_div(angle, angle, l->radians[pair], MPFR_RNDN);
        double position = mpfr_get_d(angle, MPFR_RNDN);
        for (int step = -2; step <= 2 && position < 0.99 * s->contract.high; step++)
            visit(s, l, pair, position * (1.0 + step * 0x1.8p-52));
    }
    mpfr_clears(y, angle, (mpfr_ptr)NULL);
}

/* cos and sin of turns * position, by the long double's functions on what MPFR leaves of whole quarters. */
static void estimate_sincos(long double *cosine, long double *sine, mpfr_srcptr turns,
                            double position) {
    mpfr_t rest, whole;
    mpfr_inits2(160, rest, whole, (mpfr_ptr)NULL);
    mpfr_mul_d(rest, turns, position, MPFR_RNDN);
    mpfr_mul_2ui(rest, rest, 2, MPFR_RNDN);
    mpfr_rint(whole, rest, MPFR_RNDN);
    mpfr_sub(rest, rest, whole, MPFR_RNDN);
    long double x = mpfr_get_ld(rest, MPFR_RNDN) * 1.57079632679489661923132169163975144L;
    long double c = cosl(x), s = sinl(x);
    switch (mpfr_get_si(whole, MPFR_RNDN) & 3) {
    case 0:
        *cosine = c, *sine = s;
        break;
    case 1:
        *cosine = -s, *sine = c;
        break;
    case 2:
        *cosine = -c, *sine = -s;
        break;
    default:
        *cosine = s, *sine = -c;
        break;
    }
    mpfr_clears(rest, whole, (mpfr_ptr)NULL);
}

void check_value(search *s, const ladder *l, size_t pair, double position, posenc_dtype dtype,
                 penc_sincos got) {
    double witness[CONTRACT_INPUTS] = {l->base, (double)l->dim, (double)pair, position};
    long double near_cos, near_sin;
    mpfr_t cosine, sine;
    estimate_sincos(&near_cos, &near_sin, l->turns_briefly[pair], position);
    double estimate = fmax(search_estimate(s, dtype, got.cos, near_cos),
                           search_estimate(s, dtype, got.sin, near_sin));
    s->tried++;
    if (!search_is_near_worst(s, estimate))
        return;
    mpfr_inits2(ORACLE_BITS, cosine, sine, (mpfr_ptr)NULL);
    oracle_sincos(cosine, sine, position, l->radians[pair]);
    double of_cos = search_share(s, dtype, got.cos, cosine, mpfr_get_d(cosine, MPFR_RNDA));
    double of_sin = search_share(s, dtype, got.sin, sine, mpfr_get_d(sine, MPFR_RNDA));
    search_note(s, dtype, fmax(of_cos, of_sin), witness);
    mpfr_clears(cosine, sine, (mpfr_ptr)NULL);
}
