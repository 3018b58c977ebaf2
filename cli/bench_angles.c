/* posenc bench: cos and sin rows against memset of the same bytes. SPDX-License-Identifier: MIT */
#include "bench.h"

#include "bench_copy.h"
#include "bench_rows.h"

#include <stdlib.h>

typedef struct angles_task {
    const bench_job *job;
    const bench_case *c;
    posenc_frequencies *frequencies;
    posenc_rows rows;
    int64_t *positions;
    int64_t
        step; /* added to every position after each call: decoding asks for one row after the other */
} angles_task;

static int compute_rows(void *context, size_t first, size_t count) {
    angles_task *task = context;
    posenc_rows rows = task->rows;
    size_t row_bytes = task->c->head_dim / 2 * posenc_dtype_bytes(rows.dtype);
    rows.cos = (char *)rows.cos + first * row_bytes;
    rows.sin = (char *)rows.sin + first * row_bytes;
    posenc_error error;
    if (posenc_angles(task->frequencies, task->positions + first, count, &rows, &error))
        return cli_fail_error(task->job->arguments, NULL, &error);
    if (task->step)
        task->positions[0] += task->step;
    return CLI_DONE;
}

static void rewind_positions(void *context) {
    angles_task *task = context;
    for (size_t i = 0; i < task->c->tokens; i++)
        task->positions[i] = task->c->first_position + (int64_t)i;
}

static int make_task(const bench_job *job, const bench_case *c, angles_task *task) {
    *task =
        (angles_task){.job = job, .c = c, .rows = POSENC_ROWS_INIT, .step = c->tokens == 1 ? 1 : 0};
    task->rows.dtype = c->dtype;
    task->rows.mode = c->mode;
    task->rows.cos = job->output;
    task->rows.sin = job->output + bench_case_bytes(c) / 2;
    task->positions = malloc(c->tokens * sizeof *task->positions);
    if (!task->positions)
        return cli_fail(job->arguments, "no memory for %zu positions", c->tokens);
    rewind_positions(task);
    posenc_error error;
    if (bench_frequencies(c->head_dim, POSENC_PAIRING_HALF, &task->frequencies, &error))
        return cli_fail_error(job->arguments, NULL, &error);
    return CLI_DONE;
}

int bench_angles(const bench_job *job, const bench_case *c, bench_result *result) {
    angles_task task;
    int status = make_task(job, c, &task);
    if (!status) {
        bench_copy set = {NULL, job->output};
        bench_contest contest = {.ours = {compute_rows, &task, c->tokens, 0},
                                 .reference = {bench_memset, &set, bench_case_bytes(c), 0},
                                 .reset = rewind_positions};
        status = bench_measure(&contest, &job->effort, &result->times);
        result->traffic = bench_case_bytes(c);
        result->pairs = c->tokens * c->head_dim / 2;
        if (!status) /* the positions of the last call */
            result->wrong = !bench_rows_are_right(&task.rows, task.frequencies,
                                                  task.positions[0] - task.step, c->tokens);
    }
    posenc_frequencies_destroy(task.frequencies);
    free(task.positions);
    return status;
}
