/* posenc angles. SPDX-License-Identifier: MIT */
#include "commands.h"
#include "output.h"
#include "position_list.h"
#include "spec_options.h"
#include "table_output.h"

#include <stdio.h>
#include <stdlib.h>

static const cli_option options[] = {
    {"positions", "LIST", CLI_POSITIONS_HELP ";\nLIST;LIST;... one for each axis"},
    {"rows", "LAYOUT",
     "half, full-half, full-interleaved: cos and sin apart;\n"
     "cos-sin, pairs: in one row (half)"},
    {"dtype", "T", "f64, f32, f16 or bf16 (f32); f64 in mode exact only"},
    {NULL, NULL, NULL},
};

typedef struct angles_job {
    const cli_arguments *arguments;
    spec_choice choice;
    position_list positions;
    posenc_rows rows;
    size_t width; /* of a row in cos */
    int apart;    /* cos and sin are two arrays */
} angles_job;

/* One row of the table: cos, and behind it sin where they are apart. */
static int compute(void *context, uint64_t first, size_t count, void *to) {
    const angles_job *job = context;
    int64_t *positions =
        spec_choice_positions(job->arguments, &job->choice, &job->positions, first, count);
    if (!positions)
        return CLI_BAD_USAGE;
    posenc_rows rows = job->rows;
    rows.cos = to;
    if (job->apart) {
        rows.sin = (char *)to + job->width * posenc_dtype_bytes(rows.dtype);
        rows.row_stride = (ptrdiff_t)(2 * job->width);
    }
    posenc_error error;
    posenc_status status = posenc_angles(job->choice.frequencies, positions, count, &rows, &error);
    free(positions);
    return status ? cli_fail_error(job->arguments, NULL, &error) : CLI_DONE;
}

static double position_of_row(const void *context, uint64_t row) {
    const angles_job *job = context;
    int64_t position;
    position_list_integers(&job->positions, row, 1, &position);
    return (double)position;
}

static table_job table_of(angles_job *job) {
    size_t columns = job->apart ? 2 * job->width : job->width;
    return (table_job){job->arguments,
                       job->positions.count,
                       columns,
                       job->rows.dtype,
                       compute,
                       job,
                       "position",
                       position_of_row,
                       job->rows.layout == POSENC_ROWS_PAIRS};
}

static int print_json_array(angles_job *job, const char *key, size_t first_column) {
    table_job table = table_of(job);
    json_open(key, '[');
    int status = table_to_json(&table, first_column, job->width);
    json_close();
    return status;
}

static int print_json(angles_job *job) {
    json_open(NULL, '{');
    json_string("mode", posenc_mode_name(job->choice.mode));
    json_string("dtype", posenc_dtype_name(job->rows.dtype));
    json_open("positions", '[');
    for (const position_list *list = &job->positions; list; list = list->next) {
        if (job->positions.next) /* one array for each axis */
            json_open(NULL, '[');
        for (uint64_t i = 0; i < list->count; i++) {
            int64_t position;
            position_list_integers(list, i, 1, &position);
            json_integer(NULL, position);
        }
        if (job->positions.next)
            json_close();
    }
    json_close();
    int status = print_json_array(job, job->apart ? "cos" : "rows", 0);
    if (!status && job->apart)
        status = print_json_array(job, "sin", job->width);
    spec_choice_report(&job->choice, 1);
    json_close();
    json_end();
    return status;
}

static int print_text(angles_job *job) {
    table_job table = table_of(job);
    printf("mode %s, %s\n", posenc_mode_name(job->choice.mode), posenc_dtype_name(job->rows.dtype));
    spec_choice_report(&job->choice, 0);
    if (job->apart)
        printf("columns 0 ... %zu are cos, %zu ... %zu sin\n", job->width - 1, job->width,
               2 * job->width - 1);
    return table_to_text(&table);
}

static int get_rows(angles_job *job) {
    static const char *const words[] = {"half", "full-half", "full-interleaved", "cos-sin",
                                        "pairs"};
    int layout = POSENC_ROWS_HALF;
    if (!cli_wants_json(job->arguments))
        layout = POSENC_ROWS_PAIRS; /* people compare the cos and sin of a pair */
    int status = cli_get_word(job->arguments, "rows", words, 5, &layout);
    job->rows = (posenc_rows)POSENC_ROWS_INIT;
    job->rows.layout = (posenc_row_layout)layout;
    job->rows.mode = job->choice.mode;
    job->apart = job->rows.layout != POSENC_ROWS_COS_SIN && job->rows.layout != POSENC_ROWS_PAIRS;
    job->width =
        posenc_row_width(job->rows.layout, posenc_frequencies_pairs(job->choice.frequencies));
    if (!status)
        status = cli_get_dtype(job->arguments, &job->rows.dtype);
    if (!status && job->rows.dtype == POSENC_F64 && job->rows.mode == POSENC_MODE_FLOAT32)
        status =
            cli_fail(job->arguments, "--dtype f64 must go with --mode exact: the angles of mode "
                                     "float32 are no float64 numbers");
    return status;
}

static int run(const cli_arguments *arguments) {
    angles_job job = {.arguments = arguments};
    int status = CLI_DONE;
    if (!cli_value(arguments, "positions"))
        status = cli_fail(arguments, "--positions is missing: a count such as 16, or a list");
    if (!status)
        status = position_list_get(arguments, 0, 1, &job.positions);
    if (!status)
        status = spec_choice_get(arguments, 0, position_list_length(&job.positions), &job.choice);
    if (!status)
        status = spec_choice_check_positions(arguments, &job.choice, &job.positions);
    if (!status)
        status = get_rows(&job);
    if (!status)
        status = cli_wants_json(arguments) ? print_json(&job) : print_text(&job);
    position_list_free(&job.positions);
    spec_choice_free(&job.choice);
    return status;
}

const cli_command command_angles = {
    "angles",
    "",
    0,
    "cos and sin rows of a list of positions",
    "The cos and sin rows by which a model rotates at some positions. Prints the head\n"
    "of the table, all of it with --json.\n\n"
    "  posenc angles --head-dim 128 --positions 0:4,100000,1000000\n"
    "  posenc angles --head-dim 128 --positions 7:8 --mode float32 --json",
    options,
    spec_options,
    run};
