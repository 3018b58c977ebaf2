/* posenc convert --check A B. SPDX-License-Identifier: MIT */
#include "convert_check.h"

#include "output.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct check_job {
    progress bar;
    int json, begun;
} check_job;

static void json_pairing(const char *key, posenc_detected pairing) {
    if (pairing)
        json_string(key, posenc_detected_name(pairing));
    else
        json_null(key);
}

/* ---- A tensor ---- */

static void print_json_match(const posenc_tensor_match *match) {
    json_open(NULL, '{');
    json_string("tensor", match->tensor);
    json_string("tensor_b", match->tensor_b);
    json_string("relation", posenc_relation_name(match->relation));
    if (match->why)
        json_string("why", match->why);
    if (match->relation == POSENC_RELATION_PERMUTED) {
        json_pairing("from", match->from);
        json_pairing("to", match->to);
        json_integer("rows", (int64_t)match->rows);
        json_integer("moved", (int64_t)match->moved);
        json_integer("heads", (int64_t)match->heads);
        json_integer("rotary_dim", (int64_t)match->rotary_dim);
        json_integer("first", (int64_t)match->first);
        json_integer("stride", (int64_t)match->stride);
    }
    json_close();
}

static void print_order(const posenc_tensor_match *match) {
    if (!match->to) {
        printf("the same %" PRIu64 " rows in another order, %" PRIu64 " elsewhere\n", match->rows,
               match->moved);
        return;
    }
    printf("%s to %s, %zu heads of %zu rotary rows from row %" PRIu64 " on",
           posenc_detected_name(match->from), posenc_detected_name(match->to), match->heads,
           match->rotary_dim, match->first);
    if (match->stride)
        printf(", one every %" PRIu64, match->stride);
    printf("\n");
}

static void print_match(const posenc_tensor_match *match) {
    if (match->relation == POSENC_RELATION_IDENTICAL)
        return;
    printf("%-48s ", *match->tensor ? match->tensor : match->tensor_b);
    if (match->relation == POSENC_RELATION_PERMUTED)
        print_order(match);
    else if (match->why)
        printf("%s: %s\n", posenc_relation_name(match->relation), match->why);
    else
        printf("%s\n", posenc_relation_name(match->relation));
}

static void begin_json(check_job *job) {
    if (job->json && !job->begun) {
        json_open(NULL, '{');
        json_open("tensors", '[');
    }
    job->begun = 1;
}

static void report(void *context, const posenc_tensor_match *match) {
    check_job *job = context;
    progress_end(&job->bar);
    begin_json(job);
    if (job->json)
        print_json_match(match);
    else
        print_match(match);
}

static void show(void *context, uint64_t done, uint64_t total) {
    check_job *job = context;
    job->bar.total = total;
    progress_show(&job->bar, done);
}

/* ---- All ---- */

static int is_same(const posenc_check_summary *summary) {
    return !summary->counts[POSENC_RELATION_DIFFERENT] &&
           !summary->counts[POSENC_RELATION_ONLY_A] && !summary->counts[POSENC_RELATION_ONLY_B];
}

static void end_json(const posenc_check_summary *summary) {
    static const char *const keys[] = {"identical", "permuted", "different", "only_a", "only_b"};
    json_close();
    for (int i = 0; i < 5; i++)
        json_integer(keys[i], (int64_t)summary->counts[i]);
    json_boolean("same", is_same(summary));
    json_pairing("from", summary->from);
    json_pairing("to", summary->to);
    json_close();
    json_end();
}

static void end_text(const posenc_check_summary *summary) {
    const size_t *counts = summary->counts;
    printf("%zu identical, %zu permuted", counts[POSENC_RELATION_IDENTICAL],
           counts[POSENC_RELATION_PERMUTED]);
    if (summary->to)
        printf(" (%s to %s)", posenc_detected_name(summary->from),
               posenc_detected_name(summary->to));
    printf(", %zu different, %zu only in A, %zu only in B\n", counts[POSENC_RELATION_DIFFERENT],
           counts[POSENC_RELATION_ONLY_A], counts[POSENC_RELATION_ONLY_B]);
}

int convert_check(const cli_arguments *arguments, const posenc_attention_shape *shape) {
    check_job job = {.bar = progress_start_bytes("comparing", 0),
                     .json = cli_wants_json(arguments)};
    posenc_check_options options = POSENC_CHECK_OPTIONS_INIT;
    posenc_check_summary summary;
    posenc_error error;
    options.shape = *shape;
    options.report = report;
    options.progress = show;
    options.context = &job;
    posenc_status failed = posenc_checkpoints_compare(
        cli_operand(arguments, 0), cli_operand(arguments, 1), &options, &summary, &error);
    progress_end(&job.bar);
    if (failed)
        return cli_fail_error(arguments, NULL, &error);
    begin_json(&job);
    if (job.json)
        end_json(&summary);
    else
        end_text(&summary);
    return is_same(&summary) ? CLI_DONE : CLI_NO;
}
