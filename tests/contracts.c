/* The contracts of angle functions: parser and book-keeping. SPDX-License-Identifier: MIT */
#include "contracts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The number behind `prefix` if the word begins with it. */
static int word_number(const char *word, const char *prefix, double *number) {
    size_t length = strlen(prefix);
    char *end;
    if (strncmp(word, prefix, length) != 0)
        return 0;
    *number = strtod(word + length, &end);
    return end > word + length && *end == '\0';
}

static int word_witness(const char *word, contract *c) {
    const char *prefix = "witness=", *at = word + strlen(prefix);
    if (strncmp(word, prefix, strlen(prefix)) != 0)
        return 0;
    for (c->inputs = 0; c->inputs < CONTRACT_INPUTS;) {
        char *end;
        c->witness[c->inputs++] = strtod(at, &end);
        if (end == at || (*end != ',' && *end != '\0'))
            return 0;
        if (*end == '\0')
            return 1;
        at = end + 1;
    }
    return 0;
}

static int word_interval(const char *word, contract *c) {
    int end = 0;
    return sscanf(word, "interval=%lf:%lf%n", &c->low, &c->high, &end) == 2 && word[end] == '\0';
}

static contract contract_parse(const char *name, char *words) {
    contract c = {name, 0.0, 0.0, 0.0, 0.0, 0.0, {0.0}, 0, -1.0};
    for (char *word = strtok(words, " \n"); word; word = strtok(NULL, " \n")) {
        if (strcmp(word, "*/") == 0)
            break;
        if (strcmp(word, "*") == 0) /* the next line of the comment */
            continue;
        if (!word_number(word, "ulp=", &c.ulp) && !word_number(word, "relative=", &c.relative) &&
            !word_number(word, "absolute=", &c.absolute) &&
            !word_number(word, "worst=", &c.worst) && !word_witness(word, &c) &&
            !word_interval(word, &c))
            fail_msg("contract of %s: what is '%s'?", name, word);
    }
    if (c.ulp + c.relative + c.absolute <= 0.0 || c.high <= c.low || !c.inputs || c.worst < 0.0)
        fail_msg("contract of %s: bound, interval, witness or worst is missing", name);
    return c;
}

/* The text of a header, to be freed. */
static char *header_text(const char *header) {
    enum { MOST = 100000 };
    char path[500], *text = malloc(MOST);
    snprintf(path, sizeof path, "%s/%s", TEST_SOURCE_DIR, header);
    FILE *file = fopen(path, "r");
    assert_non_null(text);
    assert_non_null(file);
    size_t length = fread(text, 1, MOST - 1, file);
    assert_true(feof(file));
    fclose(file);
    text[length] = '\0';
    return text;
}

contract contract_read(const char *header, const char *name) {
    char *text = header_text(header), wanted[100];
    snprintf(wanted, sizeof wanted, "contract: %s ", name);
    char *words = strstr(text, wanted);
    if (!words || strstr(words + 1, wanted))
        fail_msg("%s has no contract of %s, or more than one", header, name);
    words += strlen(wanted);
    char *next = strstr(words, "contract:");
    if (next)
        *next = '\0';
    contract c = contract_parse(name, words);
    free(text);
    return c;
}

search search_of(const char *header, const char *name, posenc_dtype dtype) {
    search s = {contract_read(header, name), dtype, 0.0, {0.0}, 0};
    return s;
}

static double share_of(double error, double bound) {
    if (bound > 0.0)
        return error / bound;
    return error == 0.0 ? 0.0 : (double)INFINITY;
}

double search_estimate(const search *s, posenc_dtype dtype, double got, long double real) {
    int exponent = 0;
    double bound = s->contract.absolute + s->contract.relative * fabs((double)real);
    (void)frexpl(real, &exponent);
    if (real != 0.0L)
        bound += s->contract.ulp * oracle_ulp(exponent, dtype);
    double share = share_of((double)fabsl((long double)got - real), bound);
    return isnan(got) ? (double)INFINITY : share;
}

int search_is_near_worst(const search *s, double estimate) {
    return !(estimate < s->worst - 0.004 && estimate < 0.99);
}

double search_share(const search *s, posenc_dtype dtype, double got, mpfr_srcptr real,
                    double size) {
    mpfr_t error;
    if (isnan(got))
        return (double)INFINITY;
    double bound = s->contract.absolute + s->contract.relative * fabs(size);
    if (!mpfr_zero_p(real))
        bound += s->contract.ulp * oracle_ulp(mpfr_get_exp(real), dtype);
    mpfr_init2(error, ORACLE_BITS);
    mpfr_sub_d(error, real, got, MPFR_RNDN);
    double share = share_of(fabs(mpfr_get_d(error, MPFR_RNDA)), bound);
    mpfr_clear(error);
    return share;
}

/* As the headers write it. */
static void witness_text(const search *s, const double *witness, char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < s->contract.inputs; i++) {
        double x = witness[i];
        const char *comma = i ? "," : "";
        int is_whole = x == trunc(x) && fabs(x) < 0x1p60;
        used += (size_t)(is_whole ? snprintf(text + used, size - used, "%s%.0f", comma, x)
                                  : snprintf(text + used, size - used, "%s%a", comma, x));
    }
}

void search_note(search *s, posenc_dtype dtype, double share, const double *witness) {
    if (!(share <= 1.0)) {
        char text[200];
        witness_text(s, witness, text, sizeof text);
        fail_msg("the contract of %s is broken by %s: %.9g times its bound (dtype %d)",
                 s->contract.name, text, share, (int)dtype);
    }
    if (share > s->worst && dtype == s->dtype) {
        s->worst = share;
        memcpy(s->witness, witness, sizeof s->witness);
    }
}

void search_report(const search *s) {
    char text[200];
    witness_text(s, s->witness, text, sizeof text);
    printf("# %s: %zu tried, witness=%s worst=%.6f (recorded: %.6f)\n", s->contract.name, s->tried,
           text, s->worst, s->contract.worst);
}

void search_assert_witness(const search *s) {
    if (s->tried == 0 || fabs(s->worst - s->contract.worst) > 2e-6)
        fail_msg("the witness of %s has %.6f of the bound, not %.6f as recorded", s->contract.name,
                 s->worst, s->contract.worst);
}
