/* Frequencies of plain specs, and the float32 chain of frameworks, for several tests.
 * SPDX-License-Identifier: MIT */
#ifndef FREQUENCIES_OF_H
#define FREQUENCIES_OF_H

#include "guard_pages.h"
#include "oracle.h"
#include "posenc/posenc.h"

static const double bases[] = {10000.0, 500000.0, 1e6, 100.0, 1e8};

static inline posenc_frequencies *frequencies_of(const posenc_spec *spec) {
    posenc_frequencies *frequencies;
    posenc_error error;
    assert_done(posenc_frequencies_create(spec, 0, &frequencies, NULL, &error), &error);
    return frequencies;
}

static inline posenc_spec spec_of(size_t dim, double base) {
    posenc_spec spec = POSENC_SPEC_INIT;
    spec.head_dim = dim;
    spec.base = base;
    return spec;
}

/* transformers: 1.0 / (base ** (arange(0, dim, 2).float() / dim)), every step in float32; the power
 * is rounded once. */
static inline float transformers_factor(double base, size_t pair, size_t dim) {
    float exponent = (float)(2 * pair) / (float)dim;
    mpfr_t power, e;
    mpfr_inits2(ORACLE_BITS, power, e, (mpfr_ptr)NULL);
    mpfr_set_flt(power, (float)base, MPFR_RNDN);
    mpfr_set_flt(e, exponent, MPFR_RNDN);
    mpfr_pow(power, power, e, MPFR_RNDN);
    float factor = 1.0f / mpfr_get_flt(power, MPFR_RNDN);
    mpfr_clears(power, e, (mpfr_ptr)NULL);
    return factor;
}

#endif
