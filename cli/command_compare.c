/* posenc compare. SPDX-License-Identifier: MIT */
#include "commands.h"
#include "model_side.h"
#include "output.h"
#include "posenc/compare.h"
#include "position_list.h"
#include "report_causes.h"
#include "spec_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {"positions", "LIST",
     CLI_POSITIONS_HELP
     ";\nof a table's rows (0, 1, 2, ...); without tables\n0 ... 4095 and far ones up to 1048575;\n"
     "LIST;LIST;... one for each axis"},
    {"layer-type", "T", "of models: which layers (posenc inspect lists them)"},
    {"layer-type-b", "T", "the same of B, where it differs"},
    {"part", "NAME",
     "of composite models: which part, such as vision_config\n(the language model)"},
    {"part-b", "NAME", "the same of B, where it differs"},
    {"mode", "M", "of models: how angles are formed, exact or float32, as\nframeworks do (exact)"},
    {"mode-b", "M", "the same of B, where it differs"},
    {"seq-len", "N", "of models: context length, for dynamic and longrope\n(the model's maximum)"},
    {NULL, NULL, NULL},
};

typedef struct compare_job {
    const cli_arguments *arguments;
    posenc_side *side[2];
    posenc_model *model[2]; /* NULL: no model file */
    int64_t *positions;     /* one axis behind the other */
    size_t count;
    ptrdiff_t axis_stride; /* 0: every axis has the same */
    posenc_comparison result;
} compare_job;

/* An option of a side: B's own, where it has one. */
static const char *value_of(const compare_job *job, int index, const char *name,
                            const char *name_b) {
    const char *of_b = cli_value(job->arguments, name_b);
    return index && of_b ? of_b : cli_value(job->arguments, name);
}

static int open_model_side(compare_job *job, int index, const char *path) {
    model_choice choice = {value_of(job, index, "part", "part-b"),
                           value_of(job, index, "layer-type", "layer-type-b")};
    posenc_mode mode = POSENC_MODE_EXACT;
    int status = spec_mode_get(job->arguments, "mode", &mode);
    if (!status && index)
        status = spec_mode_get(job->arguments, "mode-b", &mode);
    return status ? status
                  : model_side_open(job->arguments, path, &choice, mode, &job->model[index],
                                    &job->side[index]);
}

/* A side is JSON, a model, or another file. */
static int open_side(compare_job *job, int index) {
    const char *text = cli_operand(job->arguments, index);
    posenc_error error;
    if (*text != '{' && model_side_is(text))
        return open_model_side(job, index, text);
    posenc_status status = *text == '{'
                               ? posenc_side_of_json(text, strlen(text), &job->side[index], &error)
                               : posenc_side_open(text, &job->side[index], &error);
    return status ? cli_fail_error(job->arguments, index ? "B" : "A", &error) : CLI_DONE;
}

/* Where faults show: every position of a short context, then around the lengths of models. */
static int default_positions(compare_job *job) {
    enum { DENSE = 4096 };
    static const int64_t far[] = {4096,   8191,   8192,   16384,  32767,   32768,   65535, 65537,
                                  131071, 131072, 262144, 524288, 1000000, 1048575, -1,    -1000};
    size_t more = sizeof far / sizeof *far;
    job->count = DENSE + more;
    job->positions = malloc(job->count * sizeof *job->positions);
    if (!job->positions)
        return cli_fail(job->arguments, "no memory for %zu positions", job->count);
    for (size_t i = 0; i < DENSE; i++)
        job->positions[i] = (int64_t)i;
    memcpy(job->positions + DENSE, far, sizeof far);
    return CLI_DONE;
}

/* As many lists as there are axes, or one for all. */
static int fill_positions(compare_job *job, const position_list *list) {
    size_t a = posenc_side_axes(job->side[0]), b = posenc_side_axes(job->side[1]), lists = 0;
    size_t axes = a > b ? a : b;
    for (const position_list *at = list; at; at = at->next)
        lists++;
    if (lists > 1 && lists != axes)
        return cli_fail(job->arguments, "--positions has %zu lists but A has %zu axes and B %zu",
                        lists, a, b);
    if (list->count > SIZE_MAX / sizeof *job->positions / 2 / lists)
        return cli_fail(job->arguments, "--positions has too many positions");
    job->count = (size_t)list->count;
    job->axis_stride = lists > 1 ? (ptrdiff_t)job->count : 0;
    job->positions = malloc(lists * job->count * sizeof *job->positions + 1);
    if (!job->positions)
        return cli_fail(job->arguments, "no memory for %zu positions", job->count);
    for (size_t i = 0; i < lists; i++, list = list->next)
        position_list_integers(list, 0, job->count, job->positions + i * job->count);
    return CLI_DONE;
}

static int get_positions(compare_job *job) {
    size_t a = posenc_side_rows(job->side[0]), b = posenc_side_rows(job->side[1]);
    size_t rows = a && b ? (a < b ? a : b) : a + b; /* 0: neither is a table */
    if (!rows && !cli_value(job->arguments, "positions"))
        return default_positions(job);
    position_list list;
    int status = position_list_get(job->arguments, rows, 1, &list);
    if (!status)
        status = fill_positions(job, &list);
    position_list_free(&list);
    return status;
}

static int compare(compare_job *job) {
    posenc_error error;
    if (posenc_compare(job->side[0], job->side[1], job->positions, job->axis_stride, job->count,
                       &job->result, &error))
        return cli_fail_error(job->arguments, NULL, &error);
    return job->result.agreement == POSENC_AGREEMENT_EQUAL ? CLI_DONE : CLI_NO;
}

/* --- Reports -------------------------------------------------------------------------------------- */

static void difference_json(const char *key, const posenc_difference *difference) {
    if (!difference->exists) {
        json_null(key);
        return;
    }
    json_open(key, '{');
    json_number("error", difference->error);
    json_integer("position", difference->position);
    json_integer("pair", (int64_t)difference->pair);
    json_close();
}

static void report_json(const compare_job *job) {
    const posenc_comparison *result = &job->result;
    json_open(NULL, '{');
    json_string("verdict", posenc_agreement_name(result->agreement));
    json_string("equivalence", posenc_equivalence_name(result->equivalence));
    json_integer("pairs_a", (int64_t)result->pairs_a);
    json_integer("pairs_b", (int64_t)result->pairs_b);
    json_integer("positions", (int64_t)result->positions);
    json_boolean("pairing_differs", result->pairing_differs);
    json_boolean("slices_differ", result->slices_differ);
    json_boolean("axes_differ", result->axes_differ);
    json_boolean("halves_differ", result->halves_differ);
    difference_json("halves", &result->halves);
    difference_json("largest", &result->largest);
    json_open("beyond", '{');
    difference_json("bf16", &result->beyond_bf16);
    difference_json("f16", &result->beyond_f16);
    difference_json("f32", &result->beyond_f32);
    json_close();
    json_open("decades", '[');
    for (size_t i = 0; i < POSENC_MAX_DECADES; i++)
        difference_json(NULL, &result->decades[i]);
    json_close();
    causes_to_json(result->explanations, result->explanation_count);
    json_close();
    json_end();
}

static void report_beyond(const char *dtype, const posenc_difference *first) {
    if (first->exists)
        printf("beyond %-9s from position %" PRId64 " on, pair %zu: %.3g\n", dtype, first->position,
               first->pair, first->error);
    else
        printf("beyond %-9s nowhere in these positions\n", dtype);
}

static void report_decades(const posenc_comparison *result) {
    printf("largest difference of cos and sin by position:\n");
    for (size_t i = 0, from = 0; i < POSENC_MAX_DECADES; i++, from = from ? from * 10 : 1) {
        const posenc_difference *one = &result->decades[i];
        if (one->exists && i == 0)
            printf("  %26s  %.3g\n", "0", one->error);
        else if (one->exists)
            printf("  %12zu ... %9zu  %.3g  (position %" PRId64 ", pair %zu)\n", from,
                   from * 10 - 1, one->error, one->position, one->pair);
    }
}

static void report_structure(const posenc_comparison *result) {
    if (result->pairs_a != result->pairs_b)
        printf("A has %zu pairs, B %zu: nothing else can be compared\n", result->pairs_a,
               result->pairs_b);
    if (result->slices_differ)
        printf("other channels of the head rotate\n");
    if (result->axes_differ)
        printf(
            "pairs follow other position axes: equal for text at most, not for images in general\n");
    if (result->pairing_differs)
        printf("channels are paired differently: half and interleaved\n");
    if (result->halves_differ)
        printf("a full-width table has two different numbers for a pair: no rotation\n");
    if (result->halves.exists)
        printf("the first ones at position %" PRId64 ", pair %zu: %.3g apart\n",
               result->halves.position, result->halves.pair, result->halves.error);
}

static void report_text(const compare_job *job) {
    static const char *const words[] = {
        "", "up to the pairing: the same after channels are reordered (half, interleaved)",
        "up to the direction: the same scores if q and k both are turned this way",
        "up to a shift: the same scores if q and k both are shifted"};
    const posenc_comparison *result = &job->result;
    printf("%s%s%s\n", posenc_agreement_name(result->agreement), result->equivalence ? " " : "",
           words[result->equivalence]);
    report_structure(result);
    if (result->largest.exists) {
        printf("%zu positions, %zu pairs\n", result->positions, result->pairs_a);
        report_beyond("bfloat16", &result->beyond_bf16);
        report_beyond("float16", &result->beyond_f16);
        report_beyond("float32", &result->beyond_f32);
        report_decades(result);
    }
    causes_to_text(result->explanations, result->explanation_count);
}

static int run(const cli_arguments *arguments) {
    compare_job job = {.arguments = arguments};
    int status = open_side(&job, 0);
    if (!status)
        status = open_side(&job, 1);
    if (!status)
        status = get_positions(&job);
    if (!status)
        status = compare(&job);
    if (status != CLI_BAD_USAGE && cli_wants_json(arguments))
        report_json(&job);
    else if (status != CLI_BAD_USAGE)
        report_text(&job);
    posenc_side_free(job.side[0]);
    posenc_side_free(job.side[1]);
    posenc_model_free(job.model[0]);
    posenc_model_free(job.model[1]);
    free(job.positions);
    return status;
}

const cli_command command_compare = {
    "compare",
    "A B",
    2,
    "do two encodings agree, from which position on not, and why",
    "A and B: a model (its config.json, GGUF file, folder, or name in a local store), a\n"
    "spec in JSON ('{\"head_dim\": 128, \"base\": 500000}', or a file of it), or\n"
    "what an implementation of your own has dumped: cos and sin tables (.npz or\n"
    ".safetensors with arrays cos and sin, full or half width; .npy with both in one\n"
    "row) or inverse frequencies (one axis). Tables are taken as the rows of positions\n"
    "0, 1, 2, ... or of --positions. Exit status 0: equal, 1: not (equivalent included).\n\n"
    "  posenc compare '{\"head_dim\": 64, \"base\": 1e6}' tables.npz\n"
    "  posenc compare models/Llama-3.1-8B tables.npz --mode float32\n"
    "  posenc compare models/Llama-3.1-8B models/Llama-3.1-8B.gguf\n"
    "  posenc compare old.json new.json --positions 0:100000\n"
    "  posenc compare vl-a.json vl-b.json --positions '7,7,7,8;7,7,8,8;7,8,7,8'",
    options,
    NULL,
    run};
