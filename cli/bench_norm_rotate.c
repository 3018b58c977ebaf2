/* posenc bench: norm and rotation in one call, against memcpy, the two one after the other, and the rotation alone.
 * SPDX-License-Identifier: MIT */
#include "bench.h"

#include "bench_check.h"
#include "bench_copy.h"
#include "bench_rows.h"
#include "posenc/norm_rotate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DIM = 256 };

typedef struct norm_task {
    const bench_job *job;
    const bench_case *c;
    bench_turner turner;
    posenc_tensor tensor;
    const char *from; /* the input, or in place the output */
    size_t bytes;
    float weight[MOST_DIM];
    posenc_norm norm;
    posenc_head_stages stages;
} norm_task;

static int call(const norm_task *task, const posenc_rotation *rotation,
                const posenc_head_stages *stages, const char *from, size_t first, size_t count) {
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    posenc_error error;
    options.first_token = first;
    options.token_count = count;
    if (posenc_norm_rotate(rotation, stages, &task->tensor, from, task->job->output, &options,
                           &error))
        return cli_fail_error(task->job->arguments, NULL, &error);
    return CLI_DONE;
}

static int both(void *context, size_t first, size_t count) {
    const norm_task *task = context;
    return call(task, &task->turner.rotation, &task->stages, task->from, first, count);
}

static int alone(void *context, size_t first, size_t count) {
    const norm_task *task = context;
    return call(task, &task->turner.rotation, NULL, task->from, first, count);
}

/* The norm, then the rotation in place. */
static int in_parts(void *context, size_t first, size_t count) {
    const norm_task *task = context;
    int status = call(task, NULL, &task->stages, task->from, first, count);
    return status ? status
                  : call(task, &task->turner.rotation, NULL, task->job->output, first, count);
}

/* In place every timing begins with the same numbers. */
static void restore(void *context) {
    const norm_task *task = context;
    if (task->c->in_place)
        memcpy(task->job->output, task->job->input, task->bytes);
}

/* A head in float64, within a few roundings of float32 and half a unit of the dtype. */
static int head_is_right(const norm_task *task, size_t token, size_t head) {
    const bench_case *c = task->c;
    size_t dim = c->head_dim, pairs = dim / 2, at = (token * c->heads + head) * dim;
    int half = c->pairing == POSENC_PAIRING_HALF;
    double limit = c->dtype == POSENC_F32 ? 0x1p-20 : c->dtype == POSENC_F16 ? 0x1p-10 : 0x1p-7;
    double sum = 0.0;
    for (size_t i = 0; i < dim; i++)
        sum += pow(bench_number(task->job->input, c->dtype, at + i), 2);
    double root = 1.0 / sqrt(sum / (double)dim + task->norm.epsilon);
    for (size_t pair = 0; pair < pairs; pair++) {
        size_t places[2] = {half ? pair : 2 * pair, half ? pair + pairs : 2 * pair + 1};
        float turned[2];
        for (int i = 0; i < 2; i++)
            turned[i] = (float)(bench_number(task->job->input, c->dtype, at + places[i]) * root *
                                (double)task->weight[places[i]]);
        double size = fabs((double)turned[0]) + fabs((double)turned[1]);
        bench_turn(&task->turner, token, pair, &turned[0], &turned[1]);
        for (int i = 0; i < 2; i++) {
            double got = bench_number(task->job->output, c->dtype, at + places[i]);
            if (fabs(got - (double)turned[i]) <= limit * size)
                continue;
            fprintf(
                stderr,
                "posenc bench: wrong: norm_rotate, %s, token %zu, head %zu, channel %zu is %.9g, "
                "not %.9g\n",
                posenc_dtype_name(c->dtype), token, head, places[i], got, (double)turned[i]);
            return 0;
        }
    }
    return 1;
}

static int output_is_right(const norm_task *task) {
    enum { SAMPLES = 200 };
    uint64_t random = 1;
    for (size_t i = 0; i < SAMPLES; i++) {
        if (!head_is_right(task, bench_random(&random, task->c->tokens),
                           bench_random(&random, task->c->heads)))
            return 0;
    }
    return 1;
}

/* Weights whose size is 1: in place a timing normalises what it has normalised, and others would grow without end. */
static int make_task(const bench_job *job, const bench_case *c, norm_task *task) {
    posenc_error error;
    *task = (norm_task){.job = job, .c = c, .norm = POSENC_NORM_INIT};
    task->tensor = posenc_tensor_dense(c->dtype, 1, c->tokens, c->heads, c->head_dim);
    task->bytes = bench_case_bytes(c);
    task->from = c->in_place ? job->output : job->input;
    task->stages = (posenc_head_stages)POSENC_HEAD_STAGES_INIT;
    task->stages.norm = &task->norm;
    task->norm.epsilon = 1e-6;
    task->norm.weight = task->weight;
    for (size_t i = 0; i < MOST_DIM; i++)
        task->weight[i] = i % 3 ? 1.0f : -1.0f;
    if (bench_turner_make(&task->turner, c->tokens, c->head_dim, c->pairing, &error))
        return cli_fail_error(job->arguments, NULL, &error);
    return CLI_DONE;
}

int bench_norm_rotate(const bench_job *job, const bench_case *c, bench_result *result) {
    norm_task task;
    int status = make_task(job, c, &task);
    if (!status) {
        bench_copy copy = {job->input, c->in_place ? job->other : job->output};
        bench_contest contest = {.ours = {both, &task, c->tokens, 0},
                                 .reference = {bench_memcpy, &copy, task.bytes, 0},
                                 .parts = {in_parts, &task, c->tokens, 0},
                                 .alone = {alone, &task, c->tokens, 0},
                                 .reset = restore};
        restore(&task);
        status = bench_measure(&contest, &job->effort, &result->times);
        result->traffic = 2 * task.bytes;
        restore(&task);
        if (!status) /* what was written last may be another side's */
            status = both(&task, 0, c->tokens);
        if (!status)
            result->wrong = !output_is_right(&task);
    }
    bench_turner_free(&task.turner);
    return status;
}
