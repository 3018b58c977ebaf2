/* posenc bench: rotated keys and plain values into a paged cache, against memcpy of the bytes read and written, and
 * against a rotation and an append of what it has left. SPDX-License-Identifier: MIT */
#include "bench.h"

#include "bench_check.h"
#include "bench_copy.h"
#include "bench_rows.h"
#include "posenc/cache.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK_TOKENS = 16 };

typedef struct append_task {
    const bench_job *job;
    const bench_case *c;
    bench_turner turner;
    posenc_tensor tensor;
    const char *inputs[2]; /* keys, values */
    posenc_cache caches[2];
    size_t blocks;
    posenc_slots slots;
    int32_t *table;
    float *scales;
    char *memory; /* of the caches */
} append_task;

static int append(const append_task *task, const posenc_rotation *rotation, const char *keys,
                  size_t first, size_t count) {
    posenc_append_item k = {&task->tensor, keys, &task->caches[0], NULL};
    posenc_append_item v = {&task->tensor, task->inputs[1], &task->caches[1], NULL};
    posenc_append_options options = POSENC_APPEND_OPTIONS_INIT;
    posenc_error error;
    options.first_token = first;
    options.token_count = count;
    if (posenc_cache_append(rotation, &k, &v, &task->slots, &options, &error))
        return cli_fail_error(task->job->arguments, NULL, &error);
    return CLI_DONE;
}

static int at_once(void *context, size_t first, size_t count) {
    const append_task *task = context;
    return append(task, &task->turner.rotation, task->inputs[0], first, count);
}

static int in_parts(void *context, size_t first, size_t count) {
    const append_task *task = context;
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    posenc_error error;
    options.first_token = first;
    options.token_count = count;
    if (posenc_rotate(&task->turner.rotation, &task->tensor, task->inputs[0], task->job->other,
                      &options, &error))
        return cli_fail_error(task->job->arguments, NULL, &error);
    return append(task, NULL, task->job->other, first, count);
}

/* --- Check ---------------------------------------------------------------------------------------- */

static double fp8_number(unsigned code) {
    unsigned exponent = code >> 3 & 15, fraction = code & 7;
    double magnitude = exponent ? ldexp(8.0 + fraction, (int)exponent - 10) : ldexp(fraction, -9);
    return code & 0x80 ? -magnitude : magnitude;
}

/* A number of a cache, and how far it may be from what was appended, of magnitude `size`. */
static double cached_number(const append_task *task, const posenc_cache *cache, size_t token,
                            size_t head, size_t channel, double size, double *limit) {
    size_t slot = (size_t)task->table[token / BLOCK_TOKENS] * BLOCK_TOKENS + token % BLOCK_TOKENS;
    size_t row = slot * task->c->heads + head, at = row * task->c->head_dim + channel;
    if (cache->format < POSENC_CACHE_INT8) {
        *limit = size * (cache->format == POSENC_CACHE_BF16 ? 0x1p-7 : 0x1p-10);
        return bench_number(cache->data, (posenc_dtype)cache->format, at);
    }
    double scale = (double)cache->scales[row];
    unsigned code = ((const unsigned char *)cache->data)[at];
    *limit = cache->format == POSENC_CACHE_INT8 ? 0.51 * scale : 0x1p-3 * size + 0x1p-9 * scale;
    return cache->format == POSENC_CACHE_INT8 ? scale * (double)(signed char)code
                                              : scale * fp8_number(code);
}

static int pair_is_right(const append_task *task, size_t token, size_t head, size_t pair) {
    const bench_case *c = task->c;
    size_t at = (token * c->heads + head) * c->head_dim, pairs = c->head_dim / 2;
    int half = c->pairing == POSENC_PAIRING_HALF;
    size_t places[2] = {half ? pair : 2 * pair, half ? pair + pairs : 2 * pair + 1};
    for (int side = 0; side < 2; side++) {
        float wanted[2];
        for (int i = 0; i < 2; i++)
            wanted[i] = (float)bench_number(task->inputs[side], c->dtype, at + places[i]);
        double size = fabs((double)wanted[0]) + fabs((double)wanted[1]), limit;
        if (!side)
            bench_turn(&task->turner, token, pair, &wanted[0], &wanted[1]);
        for (int i = 0; i < 2; i++) {
            double got =
                cached_number(task, &task->caches[side], token, head, places[i], size, &limit);
            if (fabs(got - (double)wanted[i]) <= limit)
                continue;
            fprintf(stderr,
                    "posenc bench: wrong: append, %s, token %zu, head %zu, pair %zu is %.9g, not "
                    "%.9g\n",
                    side ? "values" : "keys", token, head, pair, got, (double)wanted[i]);
            return 0;
        }
    }
    return 1;
}

static int output_is_right(const append_task *task) {
    enum { SAMPLES = 4096 };
    uint64_t random = 1;
    for (size_t i = 0; i < SAMPLES; i++) {
        if (!pair_is_right(task, bench_random(&random, task->c->tokens),
                           bench_random(&random, task->c->heads),
                           bench_random(&random, task->c->head_dim / 2)))
            return 0;
    }
    return 1;
}

/* --- The work ------------------------------------------------------------------------------------- */

/* Dense caches of whole blocks that a table hands out in an order of its own. */
static int make_caches(append_task *task) {
    const bench_case *c = task->c;
    enum { LINE = 64 };
    task->blocks = (c->tokens + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    size_t rows = task->blocks * BLOCK_TOKENS * c->heads;
    size_t bytes = rows * c->head_dim * posenc_cache_format_bytes(c->cache); /* of whole lines */
    task->memory = aligned_alloc(LINE, 2 * bytes);
    task->table = malloc(task->blocks * sizeof *task->table);
    task->scales = malloc(2 * rows * sizeof *task->scales);
    if (!task->memory || !task->table || !task->scales)
        return cli_fail(task->job->arguments, "no memory for caches of %zu bytes", 2 * bytes);
    for (size_t i = 0; i < task->blocks; i++) /* 7919 is a prime number */
        task->table[i] = (int32_t)(i * 7919 % task->blocks);
    for (int side = 0; side < 2; side++) {
        posenc_cache *cache = &task->caches[side];
        *cache = posenc_cache_dense(c->cache, task->memory + (size_t)side * bytes, task->blocks,
                                    BLOCK_TOKENS, c->heads, c->head_dim);
        if (c->cache >= POSENC_CACHE_INT8) {
            cache->scales = task->scales + (size_t)side * rows;
            cache->scale_count = rows;
        }
    }
    task->slots = (posenc_slots)POSENC_SLOTS_INIT;
    task->slots.block_table = task->table;
    task->slots.table_blocks = task->blocks;
    return CLI_DONE;
}

/* Bytes that one call reads and writes. */
static size_t traffic_of(const append_task *task) {
    const bench_case *c = task->c;
    size_t heads = 2 * c->tokens * c->heads;
    size_t scales = c->cache >= POSENC_CACHE_INT8 ? heads * sizeof(float) : 0;
    return bench_case_bytes(c) + heads * c->head_dim * posenc_cache_format_bytes(c->cache) + scales;
}

static int measure(append_task *task, bench_result *result) {
    const bench_job *job = task->job;
    size_t tokens = task->c->tokens;
    bench_copy copy = {job->input, job->output};
    result->traffic = traffic_of(task);
    bench_contest contest = {.ours = {at_once, task, tokens, 0},
                             .reference = {bench_memcpy, &copy, result->traffic / 2, 0},
                             .parts = {in_parts, task, tokens, 0}};
    int status = bench_measure(&contest, &job->effort, &result->times);
    if (!status) /* what was written last may be the parts' */
        status = at_once(task, 0, tokens);
    if (!status)
        result->wrong = !output_is_right(task);
    return status;
}

int bench_append(const bench_job *job, const bench_case *c, bench_result *result) {
    append_task task = {.job = job, .c = c};
    posenc_error error;
    int status = CLI_DONE;
    task.tensor = posenc_tensor_dense(c->dtype, 1, c->tokens, c->heads, c->head_dim);
    task.inputs[0] = job->input;
    task.inputs[1] = job->input + bench_case_bytes(c) / 2;
    if (bench_turner_make(&task.turner, c->tokens, c->head_dim, c->pairing, &error))
        status = cli_fail_error(job->arguments, NULL, &error);
    if (!status)
        status = make_caches(&task);
    if (!status)
        status = measure(&task, result);
    bench_turner_free(&task.turner);
    free(task.memory);
    free(task.table);
    free(task.scales);
    return status;
}
