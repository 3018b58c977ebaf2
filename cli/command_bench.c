/* posenc bench. SPDX-License-Identifier: MIT */
#include "bench.h"

#include "bench_check.h"
#include "commands.h"
#include "progress.h"

#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {"quick", NULL, "few and short rounds: a test, no measurement"},
    {"work", "W", "only rotate, norm_rotate, append, angles or bias"},
    {"dtype", "T", "only this dtype: f64, f32, f16 or bf16"},
    {"pairing", "P", "only rotations of this pairing: half or interleaved"},
    {"tokens", "N", "only cases of N tokens (1, 32, 4096; angles 1, 2048)"},
    {"head-dim", "D", "only cases of this width (64, 80, 96, 128, 256)"},
    {"order", "O", "only rotations in this order in memory: tokens, heads"},
    {"place", "P", "only in place (in) or out of place (out)"},
    {NULL, NULL, NULL},
};

static const bench_effort thorough = {11, 5e-3, 1}, quick = {3, 5e-4, 1};

/* Which cases are wanted; -1 (or 0) is any. */
typedef struct bench_filter {
    int work, dtype, pairing, order, in_place;
    uint64_t tokens, head_dim;
} bench_filter;

static int get_filter(const cli_arguments *arguments, bench_filter *filter) {
    static const char *const places[] = {"out", "in"};
    *filter = (bench_filter){-1, -1, -1, -1, -1, 0, 0};
    posenc_dtype dtype = POSENC_F32;
    posenc_pairing pairing = POSENC_PAIRING_HALF;
    posenc_error error;
    int status = cli_get_word(arguments, "work", bench_work_names, BENCH_WORKS, &filter->work);
    if (!status)
        status = cli_get_word(arguments, "order", bench_order_names, 2, &filter->order);
    if (!status)
        status = cli_get_word(arguments, "place", places, 2, &filter->in_place);
    if (!status)
        status = cli_get_size(arguments, "tokens", 1, &filter->tokens);
    if (!status)
        status = cli_get_size(arguments, "head-dim", 1, &filter->head_dim);
    if (!status)
        status = cli_get_dtype(arguments, &dtype);
    if (!status && cli_value(arguments, "dtype"))
        filter->dtype = (int)dtype;
    const char *word = cli_value(arguments, "pairing");
    if (!status && word) {
        if (posenc_pairing_parse(word, &pairing, &error))
            return cli_fail_error(arguments, NULL, &error);
        filter->pairing = (int)pairing;
    }
    return status;
}

static int is_wanted(const bench_filter *filter, const bench_case *c) {
    int rotates = c->work == BENCH_ROTATE, turns = bench_turns(c);
    int placed = rotates || c->work == BENCH_NORM_ROTATE;
    return (filter->work < 0 || filter->work == (int)c->work) &&
           (filter->dtype < 0 || filter->dtype == (int)c->dtype) &&
           (filter->pairing < 0 || (turns && filter->pairing == (int)c->pairing)) &&
           (filter->order < 0 || (rotates && filter->order == (int)c->order)) &&
           (filter->in_place < 0 || (placed && filter->in_place == c->in_place)) &&
           (!filter->tokens || filter->tokens == c->tokens) &&
           (!filter->head_dim || filter->head_dim == c->head_dim);
}

/* Work cannot be split among more threads than it has tokens. */
static unsigned threads_of(const bench_job *job, const bench_case *c) {
    unsigned wanted = cli_threads(job->arguments);
    return wanted < c->tokens ? wanted : (unsigned)c->tokens;
}

/* Fills the input with random numbers from -1 to 1. Their period is a prime number of elements, so that
 * no two heads or tokens are alike. */
static int fill_input(bench_job *job, posenc_dtype dtype) {
    enum { PERIOD = 65537 };
    static double numbers[PERIOD];
    uint64_t random = 1;
    for (size_t i = 0; i < PERIOD; i++)
        numbers[i] = (double)bench_random(&random, 1 << 24) * 0x1p-23 - 1.0;
    size_t size = posenc_dtype_bytes(dtype), count = job->bytes / size, done = 0;
    while (done < count) {
        size_t part = count - done < PERIOD ? count - done : PERIOD;
        posenc_error error;
        if (posenc_convert(numbers, POSENC_F64, job->input + done * size, dtype, part, &error))
            return cli_fail_error(job->arguments, NULL, &error);
        done += part;
    }
    job->dtype = dtype;
    return CLI_DONE;
}

/* Arrays for the largest case. Writing to them brings every page. */
static int allocate(bench_job *job, const bench_filter *filter, size_t *cases) {
    for (size_t i = 0; i < bench_case_count(); i++) {
        bench_case c = bench_case_at(i);
        if (!is_wanted(filter, &c))
            continue;
        size_t bytes =
            c.work == BENCH_BIAS ? bench_bias_bytes(&c, threads_of(job, &c)) : bench_case_bytes(&c);
        job->bytes = bytes > job->bytes ? bytes : job->bytes;
        ++*cases;
    }
    if (!*cases)
        return cli_fail(job->arguments, "no case is like that; see posenc bench --help");
    enum { LINE = 64 }; /* of a cache; aligned_alloc wants a multiple */
    job->bytes = (job->bytes + LINE - 1) / LINE * LINE;
    char **arrays[] = {&job->input, &job->output, &job->other};
    for (int i = 0; i < 3; i++) {
        *arrays[i] = aligned_alloc(LINE, job->bytes);
        if (!*arrays[i])
            return cli_fail(job->arguments, "no memory for three arrays of %zu bytes", job->bytes);
        memset(*arrays[i], 1, job->bytes);
    }
    return fill_input(job, POSENC_F32);
}

static int run_case(bench_job *job, const bench_case *c, bench_result *result) {
    static int (*const works[BENCH_WORKS])(const bench_job *, const bench_case *,
                                           bench_result *) = {
        bench_rotate, bench_norm_rotate, bench_append, bench_angles, bench_bias};
    *result = (bench_result){.threads = threads_of(job, c)};
    job->effort.threads = result->threads;
    if (job->dtype != c->dtype) {
        int status = fill_input(job, c->dtype);
        if (status)
            return status;
    }
    return works[c->work](job, c, result);
}

/* A wrong result takes nothing from the other cases: they go on, and the answer is no. */
static int run_cases(bench_job *job, const bench_filter *filter, size_t cases) {
    progress bar = progress_start("bench", cases);
    bench_case before;
    size_t done = 0, printed = 0;
    int answer = CLI_DONE;
    bench_print_begin(job);
    for (size_t i = 0; i < bench_case_count(); i++) {
        bench_case c = bench_case_at(i);
        if (!is_wanted(filter, &c))
            continue;
        progress_show(&bar, done++);
        bench_result result;
        int status = run_case(job, &c, &result);
        progress_end(&bar);
        if (status)
            return status;
        if (result.wrong) {
            answer = CLI_NO;
            continue;
        }
        bench_print_case(job, &c, &result, printed++ ? &before : NULL);
        before = c;
    }
    bench_print_end(job);
    return answer;
}

static int run(const cli_arguments *arguments) {
    bench_job job = {.arguments = arguments};
    job.effort = cli_value(arguments, "quick") ? quick : thorough;
    bench_filter filter;
    size_t cases = 0;
    int status = get_filter(arguments, &filter);
    if (!status)
        status = allocate(&job, &filter, &cases);
    if (!status)
        status = run_cases(&job, &filter, cases);
    free(job.input);
    free(job.output);
    free(job.other);
    return status;
}

const cli_command command_bench = {
    "bench",
    "",
    0,
    "speed as a ratio to memcpy in the same run",
    "Measures rotations, rotations with the norm of each head (norm_rotate) and\n"
    "appends to a paged cache (append) against memcpy of the same bytes, and rows of\n"
    "cos and sin and ALiBi biases against memset, on the same warm memory, in turn.\n"
    "parts and alone are the times of the same work in several calls and of the\n"
    "rotation without the norm, as multiples of ours. GB/s are 10^9\n"
    "bytes read and written (rows and biases: written) in a second. A ratio above 1\n"
    "is faster than memcpy. One thread is timed by the CPU time it had, several by\n"
    "the clock; they are started anew in each call, and memcpy is split among as\n"
    "many. Beside rows of float32 stand other libraries\n"
    "where they are installed: libmvec, SLEEF, sincos; their ratio is their time by\n"
    "ours. What the timed calls of posenc have written is compared with a slow\n"
    "computation; if that finds a fault the exit status is 1.\n\n"
    "  posenc bench\n"
    "  posenc bench --work rotate --dtype bf16 --tokens 4096 --json",
    options,
    NULL,
    run};
