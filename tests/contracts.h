/* The contracts of angle functions, read from the headers. A contract stands at the end of a declaration's
 * comment, on as many lines as it takes:
 *
 *   contract: NAME [ulp=U] [relative=R] [absolute=A] interval=LOW:HIGH
 *   witness=X,... worst=S
 *
 * |result - real| <= U * (unit in the last place of real) + R * (what the header says) + A while the
 * argument's magnitude is in LOW ... HIGH; the witness is the argument with the largest error that was
 * found, S that error as a share of the bound. SPDX-License-Identifier: MIT */
#ifndef TEST_CONTRACTS_H
#define TEST_CONTRACTS_H

#include "oracle.h"

enum { CONTRACT_INPUTS = 4 };

typedef struct contract {
    const char *name;
    double ulp, relative, absolute;
    double low, high;
    double witness[CONTRACT_INPUTS];
    size_t inputs;
    double worst;
} contract;

/* Reads the contract `name` from a header (its path from the project's root). Fails the test if there is not
 * exactly one, or if it has an unknown word or lacks one. */
contract contract_read(const char *header, const char *name);

/* An attempt to break a contract. */
typedef struct search {
    contract contract;
    posenc_dtype dtype; /* whose numbers may become the witness; all must keep the contract */
    double worst, witness[CONTRACT_INPUTS]; /* the largest share of the bound so far */
    size_t tried;
} search;

search search_of(const char *header, const char *name, posenc_dtype dtype);

/* The error |got - real| as a share of the bound, for real of the long double's precision: good to 0.002. */
double search_estimate(const search *s, posenc_dtype dtype, double got, long double real);

/* 1 if a share as estimated may be the largest so far, or beyond the bound: then the exact one is needed. */
int search_is_near_worst(const search *s, double estimate);

/* The share itself; `size` is what `relative` is a part of. */
double search_share(const search *s, posenc_dtype dtype, double got, mpfr_srcptr real, double size);

/* Notes the share of one argument, and fails the test if it exceeds 1. */
void search_note(search *s, posenc_dtype dtype, double share, const double *witness);

/* Prints what was found. */
void search_report(const search *s);

/* Fails the test unless the search, which has tried the recorded witness only, has found what is recorded. */
void search_assert_witness(const search *s);

#endif
