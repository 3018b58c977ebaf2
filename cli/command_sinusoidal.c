/* posenc sinusoidal. SPDX-License-Identifier: MIT */
#include "commands.h"
#include "output.h"
#include "posenc/sinusoidal.h"
#include "position_list.h"
#include "table_output.h"

#include <stdlib.h>

static const cli_option options[] = {
    {"positions", "LIST", CLI_POSITIONS_HELP ";\nfractions are allowed"},
    {"dim", "D", "width of a row"},
    {"layout", "L",
     "interleaved: sin, cos, sin, cos ...; sin-cos,\n"
     "cos-sin: one half behind the other (interleaved)"},
    {"shift", "0|1",
     "exponents divide by D/2 - shift: 0 the paper,\n"
     "1 tensor2tensor, fairseq, Whisper (0)"},
    {"base", "B", "10000"},
    {"scale", "S", "multiplies every angle (1)"},
    {"start", "P", "added to every position (0)"},
    {"odd", "RULE",
     "what an odd width does: truncate (last cos dropped),\n"
     "zero (a zero column at the end), ceil (sine block one\n"
     "longer)"},
    {"padding", "P", "the row of position P is all zeros (fairseq: 1)"},
    {"dtype", "T", "f64, f32, f16 or bf16 (f64)"},
    {"o", "FILE.npy", "write the table to a file"},
    {NULL, NULL, NULL},
};

typedef struct sinusoidal_job {
    const cli_arguments *arguments;
    posenc_sinusoidal_spec spec;
    posenc_dtype dtype;
    position_list positions;
} sinusoidal_job;

static int compute(void *context, uint64_t first, size_t count, void *to) {
    const sinusoidal_job *job = context;
    double *positions = malloc((count ? count : 1) * sizeof *positions);
    if (!positions)
        return cli_fail(job->arguments, "no memory for %zu positions", count);
    position_list_reals(&job->positions, first, count, positions);
    posenc_error error;
    posenc_status status =
        posenc_sinusoidal(&job->spec, positions, count, job->dtype, 0, to, &error);
    free(positions);
    return status ? cli_fail_error(job->arguments, NULL, &error) : CLI_DONE;
}

static double position_of_row(const void *context, uint64_t row) {
    const sinusoidal_job *job = context;
    double position;
    position_list_reals(&job->positions, row, 1, &position);
    return position;
}

static int get_convention(const cli_arguments *arguments, posenc_sinusoidal_spec *spec) {
    static const char *const layouts[] = {"interleaved", "sin-cos", "cos-sin"};
    static const char *const rules[] = {"(none)", "truncate", "zero", "ceil"};
    int layout = 0, rule = 0;
    int status = cli_get_word(arguments, "layout", layouts, 3, &layout);
    if (!status)
        status = cli_get_word(arguments, "odd", rules, 4, &rule);
    uint64_t dim = 0, shift = 0;
    if (!status)
        status = cli_get_size(arguments, "dim", 1, &dim);
    if (!status && dim == 0)
        status = cli_fail(arguments, "--dim is missing: the width of a row, such as 512");
    if (!status)
        status = cli_get_size(arguments, "shift", 0, &shift);
    if (!status && shift > 1)
        status =
            cli_fail(arguments, "--shift is %s but must be 0 or 1", cli_value(arguments, "shift"));
    if (!status && dim % 2 && rule == 0)
        status = cli_fail(arguments,
                          "--dim is %s: an odd width needs a rule, --odd truncate, zero or ceil",
                          cli_value(arguments, "dim"));
    spec->layout = (posenc_sinusoidal_layout)layout;
    spec->odd = (posenc_odd_rule)rule;
    spec->dim = (size_t)dim;
    spec->shift = (int)shift;
    return status;
}

static int get_numbers(const cli_arguments *arguments, posenc_sinusoidal_spec *spec) {
    int status = cli_get_real(arguments, "base", &spec->base);
    if (!status && cli_value(arguments, "base") && spec->base <= 0)
        status =
            cli_fail(arguments, "--base is %s but must be above 0", cli_value(arguments, "base"));
    if (!status)
        status = cli_get_real(arguments, "scale", &spec->scale);
    if (!status && cli_value(arguments, "scale") && spec->scale == 0)
        status =
            cli_fail(arguments, "--scale is %s but must not be 0", cli_value(arguments, "scale"));
    if (!status)
        status = cli_get_real(arguments, "start", &spec->start);
    if (!status)
        status = cli_get_real(arguments, "padding", &spec->padding_position);
    spec->has_padding = cli_value(arguments, "padding") != NULL;
    return status;
}

static int write_table(sinusoidal_job *job) {
    const char *path = cli_value(job->arguments, "o");
    table_job table = {job->arguments,
                       job->positions.count,
                       job->spec.dim,
                       job->dtype,
                       compute,
                       job,
                       "position",
                       position_of_row,
                       0};
    if (path) {
        size_t shape[2] = {(size_t)job->positions.count, job->spec.dim};
        return table_to_npy(&table, path, 2, shape);
    }
    if (!cli_wants_json(job->arguments))
        return table_to_text(&table);
    json_open(NULL, '{');
    json_open("table", '[');
    int status = table_to_json(&table, 0, table.width);
    json_close();
    json_close();
    json_end();
    return status;
}

static int run(const cli_arguments *arguments) {
    sinusoidal_job job = {
        .arguments = arguments, .spec = POSENC_SINUSOIDAL_INIT, .dtype = POSENC_F64};
    int status = get_convention(arguments, &job.spec);
    if (!status)
        status = get_numbers(arguments, &job.spec);
    if (!status)
        status = cli_get_dtype(arguments, &job.dtype);
    if (!status && !cli_value(arguments, "positions"))
        status = cli_fail(arguments, "--positions is missing: a count such as 512, or a list");
    if (!status)
        status = position_list_get(arguments, 0, 0, &job.positions);
    if (!status && job.positions.next) {
        position_list_free(&job.positions);
        status = cli_fail(arguments,
                          "--positions has several lists, but a sinusoidal table has one axis");
    }
    if (status)
        return status;
    posenc_error error;
    if (posenc_sinusoidal(&job.spec, NULL, 0, job.dtype, 0, NULL,
                          &error)) /* before anything is printed */
        status = cli_fail_error(arguments, NULL, &error);
    else
        status = write_table(&job);
    position_list_free(&job.positions);
    return status;
}

const cli_command command_sinusoidal = {
    "sinusoidal",
    "",
    0,
    "sinusoidal position tables in every convention",
    "Sinusoidal position table: the row of position p holds sin and cos of\n"
    "p * base^(-k/(D/2 - shift)). Prints the head of the table, all of it with\n"
    "--json or -o.\n\n"
    "The paper's table, Whisper's, and diffusion timesteps:\n"
    "  posenc sinusoidal --positions 512 --dim 64 -o table.npy\n"
    "  posenc sinusoidal --positions 1500 --dim 384 --layout sin-cos --shift 1\n"
    "  posenc sinusoidal --positions 0.25,999.5 --dim 320 --layout cos-sin",
    options,
    NULL,
    run};
