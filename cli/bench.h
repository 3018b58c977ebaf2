/* posenc bench: each work makes its sides, lets them be measured and checks what was timed.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "bench_cases.h"
#include "bench_measure.h"
#include "bench_peers.h"
#include "command.h"

typedef struct bench_job {
    const cli_arguments *arguments;
    bench_effort effort;
    /* Arrays of `bytes` bytes each, all written before: random numbers of `dtype`, and two others. */
    char *input, *output, *other;
    size_t bytes;
    posenc_dtype dtype;
} bench_job;

/* What a case came to. */
typedef struct bench_result {
    bench_times times;
    size_t traffic; /* bytes that one call reads and writes */
    size_t pairs;   /* cos+sin pairs that one call computes; 0 where it computes none */
    unsigned threads;
    struct { /* angles: other libraries beside it, and their time as a multiple of ours */
        const char *name;
        bench_times times;
    } peers[BENCH_MOST_PEERS];
    size_t peer_count;
    int wrong; /* 1: a timed call gave a wrong result, which has been printed on stderr */
} bench_result;

/* They return CLI_DONE, or print what failed. */
int bench_rotate(const bench_job *job, const bench_case *c, bench_result *result);
int bench_norm_rotate(const bench_job *job, const bench_case *c, bench_result *result);
int bench_append(const bench_job *job, const bench_case *c, bench_result *result);
int bench_angles(const bench_job *job, const bench_case *c, bench_result *result);
int bench_bias(const bench_job *job, const bench_case *c, bench_result *result);

/* Bytes of the tiles of a bias. */
size_t bench_bias_bytes(const bench_case *c, unsigned threads);

/* Printing: before all cases, a case (`before` was printed before it; NULL: none), after all. */
void bench_print_begin(const bench_job *job);
void bench_print_case(const bench_job *job, const bench_case *c, const bench_result *result,
                      const bench_case *before);
void bench_print_end(const bench_job *job);

#endif
