/* posenc bench: cos and sin rows against memset of the same bytes. SPDX-License-Identifier: MIT */
#include "bench.h"

#include "bench_copy.h"
#include "bench_peers.h"
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

/* Scattered ones go around the run in steps of 1021. */
static size_t step_of(const bench_case *c) {
    return c->scattered ? 1021 : 1;
}

static int64_t position_of(const bench_case *c, size_t row) {
    return bench_position(c->first_position, step_of(c), row, c->tokens);
}

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
        task->positions[i] = position_of(task->c, i);
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

/* --- Others beside it -------------------------------------------------------------------------- */

typedef struct peer_task {
    bench_peer peer;
    void *angles, *cos, *sin;
    size_t count;
} peer_task;

static int compute_peer(void *context, size_t first, size_t count) {
    const peer_task *task = context;
    (void)first;
    (void)count;
    task->peer.loop(&task->peer, task->angles, task->cos, task->sin, task->count);
    return CLI_DONE;
}

/* The angles of the case, as the peer takes them. */
static void fill_angles(const angles_task *task, peer_task *peer) {
    size_t pairs = task->c->head_dim / 2;
    for (size_t i = 0; i < peer->count; i++) {
        double inv_freq =
            posenc_frequencies_inv_freq(task->frequencies, i % pairs, POSENC_MODE_EXACT);
        double position = (double)position_of(task->c, i / pairs);
        if (peer->peer.single)
            ((float *)peer->angles)[i] = (float)position * (float)inv_freq;
        else
            ((double *)peer->angles)[i] = position * inv_freq;
    }
}

static int measure_peers(angles_task *task, bench_result *result) {
    /* Whole cache lines, and arrays apart by more than multiples of 4096 bytes: loads would wait for stores. */
    const size_t count = result->pairs, bytes = count * sizeof(double) + 1344;
    char *memory = aligned_alloc(64, 3 * bytes);
    bench_peer peers[BENCH_MOST_PEERS];
    size_t found = bench_peers_find(peers);
    int status = CLI_DONE;
    if (!memory)
        return cli_fail(task->job->arguments, "no memory for %zu angles", count);
    for (size_t i = 0; i < found && !status; i++) {
        peer_task peer = {peers[i], memory, memory + bytes, memory + 2 * bytes, count};
        fill_angles(task, &peer);
        bench_contest contest = {.ours = {compute_rows, task, task->c->tokens, 0},
                                 .reference = {compute_peer, &peer, 1, 0},
                                 .reset = rewind_positions};
        status = bench_measure(&contest, &task->job->effort, &result->peers[i].times);
        result->peers[i].name = peers[i].name;
        result->peer_count = i + 1;
    }
    free(memory);
    return status;
}

/* Many rows of the usual kind, by one thread. */
static int has_peers(const bench_job *job, const bench_case *c) {
    return c->dtype == POSENC_F32 && c->mode == POSENC_MODE_EXACT && c->tokens > 1 &&
           job->effort.threads == 1;
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
        if (!status && has_peers(job, c))
            status = measure_peers(&task, result);
        if (!status) /* the positions of the last call */
            result->wrong = !bench_rows_are_right(
                &task.rows, task.frequencies, task.positions[0] - task.step, step_of(c), c->tokens);
    }
    posenc_frequencies_destroy(task.frequencies);
    free(task.positions);
    return status;
}
