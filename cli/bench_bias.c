/* posenc bench: a whole ALiBi bias, tile by tile, against memset of the same tiles.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include "bench_check.h"
#include "bench_copy.h"
#include "posenc/alibi.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A tile is some queries of one head with all keys, in a memory that the next tile uses again, as an
 * attention kernel has it: 256 KiB of 4096 float32 keys. */
enum { TILE_QUERIES = 16 };

typedef struct bias_task {
    const bench_job *job;
    const bench_case *c;
    posenc_alibi_spec spec;
    double *slopes; /* of every head */
    size_t shares;  /* threads; each has a tile's memory of its own */
} bias_task;

size_t bench_bias_bytes(const bench_case *c, unsigned threads) {
    return threads * TILE_QUERIES * c->tokens * posenc_dtype_bytes(c->dtype);
}

static size_t tile_bytes(const bias_task *task) {
    return bench_bias_bytes(task->c, 1);
}

static size_t tile_count(const bias_task *task) {
    return task->c->heads * task->c->tokens / TILE_QUERIES;
}

static char *tile_memory(const bias_task *task, size_t share) {
    return task->job->output + share * tile_bytes(task);
}

/* Head of a tile, and its first query. */
static size_t tile_head(const bias_task *task, size_t index) {
    return index / (task->c->tokens / TILE_QUERIES);
}

static size_t tile_query(const bias_task *task, size_t index) {
    return index % (task->c->tokens / TILE_QUERIES) * TILE_QUERIES;
}

static int write_tile(const bias_task *task, size_t index, char *to) {
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    tile.dtype = task->c->dtype;
    tile.first_head = tile_head(task, index);
    tile.heads = 1;
    tile.slopes = task->slopes + tile.first_head;
    tile.queries = TILE_QUERIES;
    tile.keys = task->c->tokens;
    tile.has_query_offset = 1;
    tile.query_offset = (int64_t)tile_query(task, index);
    posenc_error error;
    if (posenc_alibi_bias(&task->spec, &tile, to, &error))
        return cli_fail_error(task->job->arguments, NULL, &error);
    return CLI_DONE;
}

/* The items are shares of the tiles. */
static size_t share_end(const bias_task *task, size_t share) {
    return tile_count(task) * (share + 1) / task->shares;
}

static int write_shares(void *context, size_t first, size_t count) {
    const bias_task *task = context;
    for (size_t share = first; share < first + count; share++) {
        size_t begin = share ? share_end(task, share - 1) : 0;
        for (size_t tile = begin; tile < share_end(task, share); tile++) {
            int status = write_tile(task, tile, tile_memory(task, share));
            if (status)
                return status;
        }
    }
    return CLI_DONE;
}

static int set_shares(void *context, size_t first, size_t count) {
    const bias_task *task = context;
    for (size_t share = first; share < first + count; share++) {
        bench_copy set = {NULL, tile_memory(task, share)};
        size_t begin = share ? share_end(task, share - 1) : 0;
        for (size_t tile = begin; tile < share_end(task, share); tile++)
            bench_memset(&set, 0, tile_bytes(task));
    }
    return CLI_DONE;
}

/* One number by libm: the paper's slopes of a power of two of heads. */
static double bias_of(const bias_task *task, size_t head, size_t query, size_t key) {
    if (key > query)
        return -INFINITY;
    double slope = exp2(-8.0 * (double)(head + 1) / (double)task->c->heads);
    return -slope * (double)(query - key);
}

/* Slope, distance and product are rounded to float32 each. */
static int tile_is_right(const bias_task *task, size_t index, const char *tile, size_t step) {
    size_t head = tile_head(task, index), keys = task->c->tokens;
    for (size_t i = 0; i < TILE_QUERIES * keys; i += step) {
        size_t query = tile_query(task, index) + i / keys, key = i % keys;
        double wanted = bias_of(task, head, query, key);
        double got = bench_number(tile, task->c->dtype, i);
        double limit = isfinite(wanted) ? 0x1p-23 * fabs(wanted) : 0.0;
        if (got == wanted || fabs(got - wanted) <= limit)
            continue;
        fprintf(stderr,
                "posenc bench: wrong: bias of head %zu, query %zu, key %zu is %.9g, not %.9g\n",
                head, query, key, got, wanted);
        return 0;
    }
    return 1;
}

/* All of the tiles that the timed calls have left, then samples of every tile, computed once more. */
static int output_is_right(const bias_task *task) {
    enum { EVERY = 97 }; /* prime: all columns come up */
    for (size_t share = 0; share < task->shares; share++) {
        if (!tile_is_right(task, share_end(task, share) - 1, tile_memory(task, share), 1))
            return 0;
    }
    for (size_t tile = 0; tile < tile_count(task); tile++) {
        if (write_tile(task, tile, tile_memory(task, 0)) ||
            !tile_is_right(task, tile, tile_memory(task, 0), EVERY))
            return 0;
    }
    return 1;
}

int bench_bias(const bench_job *job, const bench_case *c, bench_result *result) {
    bias_task task = {job, c, POSENC_ALIBI_INIT, NULL, result->threads};
    posenc_error error;
    task.spec.heads = c->heads;
    task.slopes = malloc(c->heads * sizeof *task.slopes);
    if (!task.slopes)
        return cli_fail(job->arguments, "no memory for the slopes of %zu heads", c->heads);
    if (posenc_alibi_slopes(&task.spec, 0, c->heads, task.slopes, &error)) {
        free(task.slopes);
        return cli_fail_error(job->arguments, NULL, &error);
    }
    bench_contest contest = {.ours = {write_shares, &task, task.shares, 0},
                             .reference = {set_shares, &task, task.shares, 0}};
    int status = bench_measure(&contest, &job->effort, &result->times);
    result->traffic = tile_count(&task) * tile_bytes(&task);
    if (!status)
        result->wrong = !output_is_right(&task);
    free(task.slopes);
    return status;
}
