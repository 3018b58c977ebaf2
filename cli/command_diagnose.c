/* posenc diagnose. SPDX-License-Identifier: MIT */
#include "array_blocks.h"
#include "commands.h"
#include "output.h"
#include "posenc/diagnosis.h"
#include "position_list.h"
#include "report_causes.h"
#include "spec_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {"before", "Q.npy", "the array before the rotation; required"},
    {"after", "Q_ROT.npy", "the array after it, of the same shape; required"},
    {"positions", "LIST",
     CLI_POSITIONS_HELP
     ";\none for each token (0 ... tokens-1); LIST;LIST;... one\nfor each axis; LIST/LIST/... one for each sequence"},
    {"axes", "A,B,...",
     "the arrays' axes in order, of batch, tokens, heads,\n"
     "head_dim (the last two are tokens, head_dim, all\n"
     "before them batch)"},
    {"inverse", NULL, "what was meant undoes a rotation"},
    {"causes", NULL, "list the causes that are tried, and end"},
    {NULL, NULL, NULL},
};

typedef struct diagnose_array {
    const char *path;
    posenc_npy_info info;
    array_axes axes;
    posenc_tensor tensor;
    void *data;
} diagnose_array;

typedef struct diagnose_job {
    const cli_arguments *arguments;
    diagnose_array before, after;
    position_list *lists;
    size_t sequences; /* that have positions of their own; 1: all have the same */
    spec_choice choice;
    int64_t *positions; /* of sequence s: from s * stride on, one axis behind the other */
    size_t stride;
    posenc_diagnosis diagnosis;
} diagnose_job;

/* Axes of the file as the four of a tensor. Batch axes that lie side by side count as one. */
static int make_tensor(const cli_arguments *arguments, diagnose_array *array) {
    const array_axes *axes = &array->axes;
    array->tensor = posenc_tensor_dense(array->info.dtype, 1, 1, 1, 1);
    size_t last_batch = SIZE_MAX;
    for (size_t i = axes->rank; i-- > 0;) {
        int meaning = axes->meaning[i];
        if (meaning == POSENC_AXIS_BATCH && last_batch != SIZE_MAX) {
            if (last_batch != i + 1)
                return cli_fail(arguments, "%s: batch axes must lie side by side; see --axes",
                                array->path);
            array->tensor.shape[meaning] *= axes->size[i];
        } else {
            array->tensor.shape[meaning] = axes->size[i];
            array->tensor.strides[meaning] = (ptrdiff_t)axes->file_stride[i];
        }
        if (meaning == POSENC_AXIS_BATCH)
            last_batch = i;
    }
    return CLI_DONE;
}

static int read_array(const cli_arguments *arguments, const char *option, diagnose_array *array) {
    posenc_npy_reader *reader;
    posenc_error error;
    array->path = cli_value(arguments, option);
    if (!array->path)
        return cli_fail(arguments, "--%s is missing; see posenc diagnose --help", option);
    if (posenc_npy_open(array->path, &reader, &array->info, &error))
        return cli_fail_error(arguments, array->path, &error);
    int status = array_axes_get(arguments, &array->info, &array->axes);
    size_t width = posenc_dtype_bytes(array->info.dtype);
    if (!status && array->info.count > SIZE_MAX / 2 / width)
        status = cli_fail(arguments, "%s is too large for this machine's memory", array->path);
    if (!status) {
        array->data = malloc((size_t)array->info.count * width + 1);
        if (!array->data)
            status = cli_fail(arguments, "no memory for %s; cut out some tokens", array->path);
    }
    if (!status && posenc_npy_read(reader, 0, (size_t)array->info.count, array->data, &error))
        status = cli_fail_error(arguments, array->path, &error);
    posenc_npy_close(reader);
    return status ? status : make_tensor(arguments, array);
}

/* The longest of the lists: the sequence length that they stand for. */
static uint64_t length_of(const diagnose_job *job) {
    uint64_t longest = 1;
    for (size_t i = 0; i < job->sequences; i++) {
        uint64_t length = position_list_length(&job->lists[i]);
        longest = length > longest ? length : longest;
    }
    return longest;
}

static int fill_positions(diagnose_job *job, size_t tokens) {
    size_t axes = posenc_frequencies_spec(job->choice.frequencies)->axes->count;
    job->stride = axes * tokens;
    job->positions = calloc(job->sequences * job->stride, sizeof *job->positions);
    if (!job->positions)
        return cli_fail(job->arguments, "no memory for %zu positions", tokens);
    for (size_t i = 0; i < job->sequences; i++) {
        int64_t *part =
            spec_choice_positions(job->arguments, &job->choice, &job->lists[i], 0, tokens);
        if (!part)
            return CLI_BAD_USAGE;
        memcpy(job->positions + i * job->stride, part, job->stride * sizeof *part);
        free(part);
    }
    return CLI_DONE;
}

/* The spec, and a position for each token. */
static int get_positions(diagnose_job *job) {
    const cli_arguments *arguments = job->arguments;
    const size_t *shape = job->before.tensor.shape;
    size_t tokens = shape[POSENC_AXIS_TOKENS];
    job->sequences = shape[POSENC_AXIS_BATCH];
    job->lists = position_lists_get(arguments, tokens, &job->sequences);
    if (!job->lists)
        return CLI_BAD_USAGE;
    if (job->lists[0].count != tokens)
        return cli_fail(arguments,
                        "--positions has %" PRIu64 " positions but the array has %zu tokens",
                        job->lists[0].count, tokens);
    int status =
        spec_choice_get(arguments, shape[POSENC_AXIS_HEAD_DIM], length_of(job), &job->choice);
    for (size_t i = 0; !status && i < job->sequences; i++)
        status = spec_choice_check_positions(arguments, &job->choice, &job->lists[i]);
    return status ? status : fill_positions(job, tokens);
}

static int get_job(diagnose_job *job) {
    int status = read_array(job->arguments, "before", &job->before);
    if (!status)
        status = read_array(job->arguments, "after", &job->after);
    return status ? status : get_positions(job);
}

static int diagnose(diagnose_job *job) {
    posenc_observation seen = POSENC_OBSERVATION_INIT;
    posenc_error error;
    seen.spec = &job->choice.spec;
    seen.seq_len = job->choice.seq_len;
    seen.mode = job->choice.mode;
    seen.direction = cli_value(job->arguments, "inverse") ? POSENC_INVERSE : POSENC_FORWARD;
    seen.positions = job->positions;
    seen.axis_stride = (ptrdiff_t)job->before.tensor.shape[POSENC_AXIS_TOKENS];
    seen.batch_stride = job->sequences > 1 ? (ptrdiff_t)job->stride : 0;
    seen.before_tensor = &job->before.tensor;
    seen.after_tensor = &job->after.tensor;
    seen.before = job->before.data;
    seen.after = job->after.data;
    if (posenc_diagnose(&seen, &job->diagnosis, &error))
        return cli_fail_error(job->arguments, NULL, &error);
    return job->diagnosis.verdict == POSENC_VERDICT_AGREES ? CLI_DONE : CLI_NO;
}

/* On the first axis, where it is furthest off. */
static int64_t position_at(const diagnose_job *job) {
    const size_t *place = job->diagnosis.place;
    size_t sequence = job->sequences > 1 ? place[POSENC_AXIS_BATCH] : 0;
    return job->positions[sequence * job->stride + place[POSENC_AXIS_TOKENS]];
}

static void report_json(const diagnose_job *job) {
    static const char *const places[] = {"batch", "token", "head", "channel"};
    const posenc_diagnosis *found = &job->diagnosis;
    json_open(NULL, '{');
    json_string("verdict", posenc_verdict_name(found->verdict));
    json_string("mode", posenc_mode_name(job->choice.mode));
    causes_to_json(found->explanations, found->explanation_count);
    json_boolean("is_rotation_half", found->is_rotation_half);
    json_boolean("is_rotation_interleaved", found->is_rotation_interleaved);
    json_number("magnitude", found->magnitude);
    json_integer("compared", (int64_t)found->compared);
    json_integer("differing", (int64_t)found->differing);
    json_open("worst", '{');
    for (size_t i = 0; i < POSENC_AXES; i++)
        json_integer(places[i], (int64_t)found->place[i]);
    json_integer("position", position_at(job));
    json_number("error", found->worst_error);
    json_number("allowed", found->allowed);
    json_close();
    spec_choice_report(&job->choice, 1);
    json_close();
    json_end();
}

static void report_measured(const posenc_diagnosis *found) {
    int half = found->is_rotation_half, interleaved = found->is_rotation_interleaved;
    const char *by = half && interleaved ? "by either pairing"
                     : half              ? "by the pairing half"
                     : interleaved       ? "by the pairing interleaved"
                                         : NULL;
    if (by)
        printf("measured: a rotation %s, magnitude %.6g\n", by, found->magnitude);
    else
        printf(
            "measured: no rotation by either pairing: pairs of channels do not keep their norm\n");
}

static void report_text(const diagnose_job *job) {
    const posenc_diagnosis *found = &job->diagnosis;
    const char *dtype = posenc_dtype_name(job->after.info.dtype);
    if (found->verdict == POSENC_VERDICT_AGREES) {
        printf("agrees: all %zu numbers are what was meant, within the rounding of %s\n",
               found->compared, dtype);
    } else {
        printf("differs: %zu of %zu numbers are beyond the rounding of %s\n"
               "furthest at batch %zu, token %zu (position %" PRId64
               "), head %zu, channel %zu: off by "
               "%.3g, where %.3g is allowed\n",
               found->differing, found->compared, dtype, found->place[0], found->place[1],
               position_at(job), found->place[2], found->place[3], found->worst_error,
               found->allowed);
        report_measured(found);
        causes_to_text(found->explanations, found->explanation_count);
        if (!found->explanation_count)
            printf("unexplained: none of %zu causes, nor two at once, gives this array\n",
                   posenc_cause_count());
    }
    spec_choice_report(&job->choice, 0);
}

static int list_causes(int json) {
    if (json)
        json_open(NULL, '[');
    for (size_t i = 0; i < posenc_cause_count(); i++) {
        if (json) {
            json_open(NULL, '{');
            json_string("name", posenc_cause_name(i));
            json_string("sentence", posenc_cause_sentence(i));
            json_close();
        } else {
            printf("%-22s %s\n", posenc_cause_name(i), posenc_cause_sentence(i));
        }
    }
    if (json) {
        json_close();
        json_end();
    }
    return CLI_DONE;
}

static int run(const cli_arguments *arguments) {
    if (cli_value(arguments, "causes"))
        return list_causes(cli_wants_json(arguments));
    diagnose_job job = {.arguments = arguments};
    int status = get_job(&job);
    if (!status)
        status = diagnose(&job);
    if (status != CLI_BAD_USAGE && cli_wants_json(arguments))
        report_json(&job);
    else if (status != CLI_BAD_USAGE)
        report_text(&job);
    free(job.before.data);
    free(job.after.data);
    free(job.positions);
    position_lists_free(job.lists, job.sequences);
    spec_choice_free(&job.choice);
    return status;
}

const cli_command command_diagnose = {
    "diagnose",
    "",
    0,
    "what somebody's rotation did to an array, by name",
    "Compares an array before and after a rotation with what the encoding below\n"
    "means. Where they differ, faults are tried, one and two at a time, until one\n"
    "gives the array within the rounding noise of its dtype: another pairing, base or\n"
    "position, a scaling that is left out, angles in 16 bits, ... Exit status 0: it\n"
    "agrees, 1: it does not.\n\n"
    "  posenc diagnose --before q.npy --after q_rot.npy --base 500000\n"
    "  posenc diagnose --before q.npy --after q_rot.npy --positions 4096:4100 \\\n"
    "      --axes batch,heads,tokens,head_dim --mode float32",
    options,
    spec_options,
    run};
