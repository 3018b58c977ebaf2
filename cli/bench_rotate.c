/* posenc bench: rotations against memcpy. SPDX-License-Identifier: MIT */
#include "bench.h"

#include "bench_check.h"
#include "bench_copy.h"
#include "bench_rows.h"

#include <stdio.h>
#include <string.h>

typedef struct rotate_task {
    const bench_job *job;
    const bench_case *c;
    bench_turner turner;
    posenc_tensor tensor;
    const char *from;
    char *to;
    size_t bytes;
} rotate_task;

static int rotate_all(const rotate_task *task, const posenc_rotation *rotation,
                      const posenc_tensor *tensor, size_t offset) {
    posenc_error error;
    if (posenc_rotate(rotation, tensor, task->from + offset, task->to + offset, NULL, &error))
        return cli_fail_error(task->job->arguments, NULL, &error);
    return CLI_DONE;
}

/* A range of tokens; all of them take what is ready. */
static int rotate_tokens(void *context, size_t first, size_t count) {
    const rotate_task *task = context;
    if (count == task->c->tokens)
        return rotate_all(task, &task->turner.rotation, &task->tensor, 0);
    posenc_rotation rotation = task->turner.rotation;
    posenc_tensor tensor = task->tensor;
    size_t row_bytes = task->c->head_dim / 2 * posenc_dtype_bytes(rotation.dtype);
    rotation.cos = (const char *)rotation.cos + first * row_bytes;
    rotation.sin = (const char *)rotation.sin + first * row_bytes;
    rotation.tokens = tensor.shape[POSENC_AXIS_TOKENS] = count;
    size_t step = (size_t)tensor.strides[POSENC_AXIS_TOKENS] * posenc_dtype_bytes(tensor.dtype);
    return rotate_all(task, &rotation, &tensor, first * step);
}

/* In place every timing begins with the same numbers. */
static void restore(void *context) {
    const rotate_task *task = context;
    if (task->c->in_place)
        memcpy(task->to, task->job->input, task->bytes);
}

static posenc_tensor tensor_of(const bench_case *c) {
    posenc_tensor tensor = posenc_tensor_dense(c->dtype, 1, c->tokens, c->heads, c->head_dim);
    if (c->order == BENCH_HEADS_FIRST) {
        tensor.strides[POSENC_AXIS_TOKENS] = (ptrdiff_t)c->head_dim;
        tensor.strides[POSENC_AXIS_HEADS] = (ptrdiff_t)(c->tokens * c->head_dim);
    }
    return tensor;
}

static int make_task(const bench_job *job, const bench_case *c, rotate_task *task) {
    *task = (rotate_task){.job = job, .c = c, .tensor = tensor_of(c)};
    task->bytes = bench_case_bytes(c);
    task->to = job->output;
    task->from = c->in_place ? job->output : job->input;
    posenc_error error;
    if (bench_turner_make(&task->turner, c->tokens, c->head_dim, c->pairing, &error))
        return cli_fail_error(job->arguments, NULL, &error);
    return CLI_DONE;
}

/* Where a pair stands in the array: elements a and b. */
typedef struct pair_place {
    size_t token, head, pair, a, b;
} pair_place;

static pair_place place_of(const rotate_task *task, size_t index) {
    const bench_case *c = task->c;
    size_t pairs = c->head_dim / 2;
    pair_place p = {.pair = index % pairs, .head = index / pairs % c->heads};
    p.token = index / pairs / c->heads;
    size_t head = c->order == BENCH_HEADS_FIRST ? (p.head * c->tokens + p.token) * c->head_dim
                                                : (p.token * c->heads + p.head) * c->head_dim;
    int half = c->pairing == POSENC_PAIRING_HALF;
    p.a = head + (half ? p.pair : 2 * p.pair);
    p.b = half ? p.a + pairs : p.a + 1;
    return p;
}

/* Turns one pair `calls` times; 16 bits are rounded once in each. */
static void turn(const rotate_task *task, const pair_place *p, size_t calls, double pair[2]) {
    posenc_dtype dtype = task->c->dtype;
    for (size_t i = 0; i < calls; i++) {
        float a = (float)pair[0], b = (float)pair[1];
        bench_turn(&task->turner, p->token, p->pair, &a, &b);
        pair[0] = dtype == POSENC_F32 ? a : bench_round(a, dtype);
        pair[1] = dtype == POSENC_F32 ? b : bench_round(b, dtype);
    }
}

static int pair_is_right(const rotate_task *task, size_t index, size_t calls) {
    posenc_dtype dtype = task->c->dtype;
    pair_place p = place_of(task, index);
    double wanted[2] = {bench_number(task->job->input, dtype, p.a),
                        bench_number(task->job->input, dtype, p.b)};
    double got[2] = {bench_number(task->to, dtype, p.a), bench_number(task->to, dtype, p.b)};
    turn(task, &p, task->c->in_place ? calls : 1, wanted);
    if (got[0] == wanted[0] && got[1] == wanted[1])
        return 1;
    fprintf(stderr,
            "posenc bench: wrong: %s, %s, token %zu, head %zu, pair %zu is (%.9g, %.9g), "
            "not (%.9g, %.9g)\n",
            posenc_dtype_name(dtype), posenc_pairing_name(task->c->pairing), p.token, p.head,
            p.pair, got[0], got[1], wanted[0], wanted[1]);
    return 0;
}

/* The rows against libm, then samples of what the last timed calls have left, bit for bit. In place that is
 * the result of `calls` rotations, one upon the other. */
static int output_is_right(const rotate_task *task, size_t calls) {
    enum { MOST_SAMPLES = 8192, LEAST_SAMPLES = 64, MOST_TURNS = 1 << 20 };
    if (!bench_rows_are_right(&task->turner.rows, task->turner.frequencies, BENCH_FIRST_POSITION, 1,
                              task->c->tokens))
        return 0;
    size_t total = task->c->tokens * task->c->heads * task->c->head_dim / 2;
    size_t samples = task->c->in_place ? MOST_TURNS / calls : MOST_SAMPLES;
    samples = samples > MOST_SAMPLES ? MOST_SAMPLES : samples;
    samples = samples < LEAST_SAMPLES ? LEAST_SAMPLES : samples;
    uint64_t random = 1;
    int right = pair_is_right(task, 0, calls) && pair_is_right(task, total - 1, calls);
    for (size_t i = 0; right && i < samples; i++)
        right = pair_is_right(task, bench_random(&random, total), calls);
    return right;
}

int bench_rotate(const bench_job *job, const bench_case *c, bench_result *result) {
    rotate_task task;
    int status = make_task(job, c, &task);
    if (!status) {
        /* Out of place the copies go where the rotation goes; in place that array is the rotation's own. */
        bench_copy copy = {job->input, c->in_place ? job->other : job->output};
        bench_contest contest = {.ours = {rotate_tokens, &task, c->tokens, 0},
                                 .reference = {bench_memcpy, &copy, task.bytes, 0},
                                 .loop = {bench_copy_loop_now().work, &copy, task.bytes, 0},
                                 .reset = restore};
        status = bench_measure(&contest, &job->effort, &result->times);
        result->traffic = 2 * task.bytes;
        if (!status)
            result->wrong = !output_is_right(&task, contest.ours.calls);
    }
    bench_turner_free(&task.turner);
    return status;
}
