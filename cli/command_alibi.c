/* posenc alibi. SPDX-License-Identifier: MIT */
#include "commands.h"
#include "output.h"
#include "posenc/alibi.h"
#include "table_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const cli_option options[] = {
    {"heads", "H", "heads of the model"},
    {"queries", "Q", "rows of the bias"},
    {"keys", "K", "columns of the bias"},
    {"symmetric", NULL, "bias both ways; without it keys after the query get\n-infinity"},
    {"slopes", "RULE",
     "paper: as ALiBi's authors do, for any head count;\n"
     "plain: 2^(-M (h+1)/H) (paper)"},
    {"max-bias", "M", "exponent of the last slope (8)"},
    {"query-offset", "P",
     "key position of the first query (K - Q: the last\n"
     "query sees the last key)"},
    {"dtype", "T", "f64, f32, f16 or bf16 (f64)"},
    {"o", "FILE.npy", "write the bias to a file, shape (H, Q, K)"},
    {NULL, NULL, NULL},
};

typedef struct alibi_job {
    const cli_arguments *arguments;
    posenc_alibi_spec spec;
    posenc_bias_tile tile; /* of the whole bias */
    double *slopes;
    size_t head; /* the head that JSON and text are at; the file takes all heads in one */
} alibi_job;

/* Row `row` of the table is query row % Q of head job->head + row / Q; a block is a run of such rows, done
 * one query at a time. */
static int compute(void *context, uint64_t first, size_t count, void *to) {
    const alibi_job *job = context;
    size_t row_bytes = job->tile.keys * posenc_dtype_bytes(job->tile.dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t row = first + i, query = row % job->tile.queries;
        posenc_bias_tile tile = job->tile;
        tile.first_head = job->head + (size_t)(row / job->tile.queries);
        tile.heads = 1;
        tile.queries = 1;
        tile.query_offset += (int64_t)query;
        posenc_error error;
        if (posenc_alibi_bias(&job->spec, &tile, (char *)to + i * row_bytes, &error))
            return cli_fail_error(job->arguments, NULL, &error);
    }
    return CLI_DONE;
}

static double query_of_row(const void *context, uint64_t row) {
    const alibi_job *job = context;
    return (double)(row % job->tile.queries);
}

static table_job table_of(alibi_job *job, size_t heads) {
    return (table_job){job->arguments,
                       (uint64_t)heads * job->tile.queries,
                       job->tile.keys,
                       job->tile.dtype,
                       compute,
                       job,
                       "query",
                       query_of_row,
                       0};
}

static int print_json(alibi_job *job) {
    int status = CLI_DONE;
    json_open(NULL, '{');
    json_open("slopes", '[');
    for (size_t head = 0; head < job->spec.heads; head++)
        json_number(NULL, job->slopes[head]);
    json_close();
    json_open("bias", '[');
    for (job->head = 0; !status && job->head < job->spec.heads; job->head++) {
        table_job table = table_of(job, 1);
        json_open(NULL, '[');
        status = table_to_json(&table, 0, table.width);
        json_close();
    }
    json_close();
    json_close();
    json_end();
    return status;
}

static int is_power_of_two(size_t n) {
    return (n & (n - 1)) == 0;
}

static int print_text(alibi_job *job) {
    size_t heads = job->spec.heads;
    printf("slopes of %zu heads, rule %s:\n", heads,
           job->spec.slopes == POSENC_SLOPES_PAPER ? "paper" : "plain");
    for (size_t head = 0; head < heads; head++)
        printf("%s%10.6f", head % 7 ? " " : head ? "\n  " : "  ", job->slopes[head]);
    printf("\n");
    if (!is_power_of_two(heads)) {
        posenc_alibi_spec other = job->spec;
        other.slopes =
            job->spec.slopes == POSENC_SLOPES_PAPER ? POSENC_SLOPES_PLAIN : POSENC_SLOPES_PAPER;
        double slope;
        posenc_error error;
        if (posenc_alibi_slopes(&other, 0, 1, &slope, &error))
            return cli_fail_error(job->arguments, NULL, &error);
        printf("%zu is no power of two, so the two rules differ: the first slope is %.6f\nby the "
               "%s rule.\n",
               heads, slope, other.slopes == POSENC_SLOPES_PAPER ? "paper's" : "plain");
    }
    printf("bias of head 0, query 0 at key position %" PRId64 ":\n", job->tile.query_offset);
    table_job table = table_of(job, 1);
    return table_to_text(&table);
}

static int get_job(alibi_job *job) {
    static const char *const rules[] = {"paper", "plain"};
    static const char *const sizes[] = {"heads", "queries", "keys"};
    const cli_arguments *arguments = job->arguments;
    uint64_t size[3] = {0, 0, 0};
    int rule = 0, status = CLI_DONE;
    for (int i = 0; !status && i < 3; i++) {
        if (!cli_value(arguments, sizes[i]))
            return cli_fail(arguments, "--%s is missing; see posenc alibi --help", sizes[i]);
        status = cli_get_size(arguments, sizes[i], 1, &size[i]);
    }
    if (!status)
        status = cli_get_word(arguments, "slopes", rules, 2, &rule);
    if (!status)
        status = cli_get_real(arguments, "max-bias", &job->spec.max_bias);
    if (!status && cli_value(arguments, "max-bias") && job->spec.max_bias <= 0)
        status = cli_fail(arguments, "--max-bias is %s but must be above 0",
                          cli_value(arguments, "max-bias"));
    if (!status)
        status = cli_get_dtype(arguments, &job->tile.dtype);
    job->spec.heads = (size_t)size[0];
    job->spec.slopes = (posenc_slopes)rule;
    job->tile.queries = (size_t)size[1];
    job->tile.keys = (size_t)size[2];
    job->tile.mask = cli_value(arguments, "symmetric") ? POSENC_BIAS_SYMMETRIC : POSENC_BIAS_CAUSAL;
    job->tile.has_query_offset = 1;
    job->tile.query_offset = (int64_t)(size[2] - size[1]);
    return status ? status : cli_get_integer(arguments, "query-offset", &job->tile.query_offset);
}

/* Lets the library check the whole call before anything is printed. */
static int check_job(alibi_job *job) {
    posenc_bias_tile probe = job->tile;
    double number;
    posenc_error error;
    posenc_status status = posenc_alibi_slopes(&job->spec, 0, 1, &number, &error);
    if (!status) {
        probe.heads = probe.queries = probe.keys = 1;
        status = posenc_alibi_bias(&job->spec, &probe, &number, &error);
    }
    if (status)
        return cli_fail_error(job->arguments, NULL, &error);
    job->slopes = calloc(job->spec.heads, sizeof *job->slopes);
    if (!job->slopes)
        return cli_fail(job->arguments, "no memory for %zu slopes", job->spec.heads);
    if (posenc_alibi_slopes(&job->spec, 0, job->spec.heads, job->slopes, &error))
        return cli_fail_error(job->arguments, NULL, &error);
    return CLI_DONE;
}

static int run(const cli_arguments *arguments) {
    alibi_job job = {
        .arguments = arguments, .spec = POSENC_ALIBI_INIT, .tile = POSENC_BIAS_TILE_INIT};
    job.tile.dtype = POSENC_F64;
    int status = get_job(&job);
    if (!status)
        status = check_job(&job);
    const char *path = cli_value(arguments, "o");
    if (!status && path) {
        size_t shape[3] = {job.spec.heads, job.tile.queries, job.tile.keys};
        table_job table = table_of(&job, job.spec.heads);
        status = table_to_npy(&table, path, 3, shape);
    } else if (!status) {
        status = cli_wants_json(arguments) ? print_json(&job) : print_text(&job);
    }
    free(job.slopes);
    return status;
}

const cli_command command_alibi = {
    "alibi",
    "",
    0,
    "ALiBi slopes and bias",
    "ALiBi: head h adds -slope(h) * (query position - key position) to attention\n"
    "scores. Prints the slopes and the beginning of the first head's bias; all of it\n"
    "with --json or -o.\n\n"
    "  posenc alibi --heads 8 --queries 6 --keys 6\n"
    "  posenc alibi --heads 12 --queries 1 --keys 4096 -o bias.npy",
    options,
    NULL,
    run};
