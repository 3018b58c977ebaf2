/* posenc rotate. SPDX-License-Identifier: MIT */
#include "array_blocks.h"
#include "commands.h"
#include "output.h"
#include "parallel.h"
#include "position_list.h"
#include "progress.h"
#include "spec_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {"o", "OUT.npy", "where the rotated array goes; required"},
    {"positions", "LIST",
     CLI_POSITIONS_HELP ";\none for each token (0 ... tokens-1); LIST;LIST;... one\nfor each axis"},
    {"axes", "A,B,...",
     "the array's axes in order, of batch, tokens, heads,\n"
     "head_dim (the last two are tokens, head_dim, all\n"
     "before them batch)"},
    {"output-pairing", "P",
     "how the pairs of the output lie (as in the input):\nhalf or interleaved"},
    {"inverse", NULL, "undo a rotation"},
    {"backward", NULL, "the transpose: the gradient with respect to the input"},
    {NULL, NULL, NULL},
};

static const char *output_pairing_name(const posenc_rotate_options *rotate, const char *input) {
    if (rotate->output_pairing == POSENC_OUTPUT_SAME)
        return input;
    return posenc_pairing_name(rotate->output_pairing == POSENC_OUTPUT_HALF
                                   ? POSENC_PAIRING_HALF
                                   : POSENC_PAIRING_INTERLEAVED);
}

/* Elements of a block in memory; blocks are read, rotated in place and written. */
enum { BLOCK_ELEMENTS = 1 << 22 };

typedef struct rotate_job {
    const cli_arguments *arguments;
    const char *in_path, *out_path;
    posenc_npy_reader *reader;
    posenc_npy_writer *writer;
    posenc_npy_info info;
    array_axes axes;
    spec_choice choice;
    position_list positions;
    posenc_rotate_options options;
    void *block_memory;
    char *cos, *sin; /* rows of the tokens of one block, in the computing type */
    posenc_dtype row_dtype;
    size_t rows_first, rows_count; /* which tokens' rows stand there */
} rotate_job;

/* Rows of tokens first ... first + count - 1 into place `first - rows_first` of cos and sin. */
static int compute_rows(void *context, size_t first, size_t count) {
    rotate_job *job = context;
    size_t pairs = posenc_frequencies_pairs(job->choice.frequencies);
    size_t row_bytes = pairs * posenc_dtype_bytes(job->row_dtype);
    int64_t *positions = spec_choice_positions(job->arguments, &job->choice, &job->positions,
                                               job->rows_first + first, count);
    if (!positions)
        return CLI_BAD_USAGE;
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.cos = job->cos + first * row_bytes;
    rows.sin = job->sin + first * row_bytes;
    rows.mode = job->choice.mode;
    rows.dtype = job->row_dtype;
    posenc_error error;
    posenc_status status = posenc_angles(job->choice.frequencies, positions, count, &rows, &error);
    free(positions);
    return status ? cli_fail_error(job->arguments, NULL, &error) : CLI_DONE;
}

/* float32 angles have float32 rows; a float64 array is rotated by the same numbers, widened in place from
 * the last row to the first. */
static void widen(char *rows, size_t count) {
    for (size_t i = count; i-- > 0;) {
        float value;
        memcpy(&value, rows + i * sizeof value, sizeof value);
        double wide = (double)value;
        memcpy(rows + i * sizeof wide, &wide, sizeof wide);
    }
}

static int prepare_rows(rotate_job *job, size_t first, size_t count) {
    if (job->rows_count == count && job->rows_first == first)
        return CLI_DONE; /* the block before had the same tokens */
    job->rows_first = first;
    job->rows_count = count;
    int status = parallel_ranges(cli_threads(job->arguments), count, compute_rows, job);
    size_t numbers = count * posenc_frequencies_pairs(job->choice.frequencies);
    if (!status && job->info.dtype == POSENC_F64 && job->row_dtype == POSENC_F32) {
        widen(job->cos, numbers);
        widen(job->sin, numbers);
    }
    return status;
}

/* A block of memory while it is rotated. */
typedef struct rotate_block {
    rotate_job *job;
    const array_block *block;
    posenc_tensor tensor; /* one index of every batch axis */
    size_t batches;
} rotate_block;

static rotate_block view_of_block(rotate_job *job, const array_block *block) {
    rotate_block view = {job, block, posenc_tensor_dense(job->info.dtype, 1, 1, 1, 1), 1};
    for (size_t i = 0; i < job->axes.rank; i++) {
        int meaning = job->axes.meaning[i];
        if (meaning == POSENC_AXIS_BATCH) {
            view.batches *= block->size[i];
        } else {
            view.tensor.shape[meaning] = block->size[i];
            view.tensor.strides[meaning] = block->stride[i];
        }
    }
    return view;
}

/* Elements to the start of batch index `batch` of the block, its batch axes counted together. */
static size_t batch_offset(const rotate_block *view, size_t batch) {
    size_t offset = 0;
    for (size_t i = view->job->axes.rank; i-- > 0;) {
        if (view->job->axes.meaning[i] == POSENC_AXIS_BATCH) {
            offset += batch % view->block->size[i] * (size_t)view->block->stride[i];
            batch /= view->block->size[i];
        }
    }
    return offset;
}

static int rotate_tokens(void *context, size_t first, size_t count) {
    const rotate_block *view = context;
    const rotate_job *job = view->job;
    const posenc_spec *spec = posenc_frequencies_spec(job->choice.frequencies);
    posenc_rotation rotation = POSENC_ROTATION_INIT;
    rotation.dtype = job->info.dtype == POSENC_F64 ? POSENC_F64 : POSENC_F32;
    size_t row_bytes = spec->rotary_dim / 2 * posenc_dtype_bytes(rotation.dtype);
    rotation.cos = job->cos + first * row_bytes;
    rotation.sin = job->sin + first * row_bytes;
    rotation.tokens = count;
    rotation.rotary_dim = spec->rotary_dim;
    rotation.rotary_start = spec->rotary_start;
    rotation.pairing = spec->pairing;
    rotation.attention_factor =
        posenc_frequencies_attention_factor(job->choice.frequencies, job->choice.mode);
    posenc_tensor tensor = view->tensor;
    tensor.shape[POSENC_AXIS_TOKENS] = count;
    for (size_t batch = 0; batch < view->batches; batch++) {
        size_t at = batch_offset(view, batch) + first * (size_t)tensor.strides[POSENC_AXIS_TOKENS];
        char *data = (char *)job->block_memory + at * posenc_dtype_bytes(job->info.dtype);
        posenc_error error;
        if (posenc_rotate(&rotation, &tensor, data, data, &job->options, &error))
            return cli_fail_error(job->arguments, job->in_path, &error);
    }
    return CLI_DONE;
}

static size_t first_token(const rotate_job *job, const array_block *block) {
    for (size_t i = 0; i < job->axes.rank; i++) {
        if (job->axes.meaning[i] == POSENC_AXIS_TOKENS)
            return block->start[i];
    }
    return 0;
}

static int process_block(rotate_job *job, const array_block *block) {
    posenc_error error;
    if (array_block_read(&job->axes, block, job->reader, job->block_memory, &error))
        return cli_fail_error(job->arguments, job->in_path, &error);
    rotate_block view = view_of_block(job, block);
    size_t tokens = view.tensor.shape[POSENC_AXIS_TOKENS];
    int status = prepare_rows(job, first_token(job, block), tokens);
    if (!status)
        status = parallel_ranges(cli_threads(job->arguments), tokens, rotate_tokens, &view);
    if (!status && array_block_write(&job->axes, block, job->writer, job->block_memory, &error))
        status = cli_fail_error(job->arguments, job->out_path, &error);
    return status;
}

static int process_blocks(rotate_job *job) {
    array_block block;
    if (!array_block_first(&job->axes, BLOCK_ELEMENTS, &block))
        return CLI_DONE;
    size_t tokens = 1; /* of the largest block, which is the first one */
    for (size_t i = 0; i < job->axes.rank; i++) {
        if (job->axes.meaning[i] == POSENC_AXIS_TOKENS)
            tokens = block.size[i];
    }
    size_t pairs = posenc_frequencies_pairs(job->choice.frequencies);
    job->block_memory = malloc(block.count * posenc_dtype_bytes(job->info.dtype));
    job->cos = malloc(tokens * pairs * sizeof(double));
    job->sin = malloc(tokens * pairs * sizeof(double));
    if (!job->block_memory || !job->cos || !job->sin)
        return cli_fail(job->arguments, "no memory for a block of %zu numbers", block.count);
    uint64_t done = 0;
    progress bar = progress_start("rotate", job->info.count);
    int status;
    do {
        status = process_block(job, &block);
        done += block.count;
        progress_show(&bar, done);
    } while (!status && array_block_next(&job->axes, &block));
    progress_end(&bar);
    return status;
}

static int open_input(rotate_job *job) {
    posenc_error error;
    if (posenc_npy_open(job->in_path, &job->reader, &job->info, &error))
        return cli_fail_error(job->arguments, job->in_path, &error);
    int status = array_axes_get(job->arguments, &job->info, &job->axes);
    uint64_t tokens = status ? 0 : array_axes_size(&job->axes, POSENC_AXIS_TOKENS);
    if (!status)
        status = position_list_get(job->arguments, tokens, 1, &job->positions);
    if (!status && job->positions.count != tokens)
        status =
            cli_fail(job->arguments,
                     "--positions has %" PRIu64 " positions but the array has %" PRIu64 " tokens",
                     job->positions.count, tokens);
    if (!status)
        status = spec_choice_get(job->arguments, array_axes_size(&job->axes, POSENC_AXIS_HEAD_DIM),
                                 position_list_length(&job->positions), &job->choice);
    if (!status)
        status = spec_choice_check_positions(job->arguments, &job->choice, &job->positions);
    int exact = job->choice.mode == POSENC_MODE_EXACT;
    job->row_dtype = job->info.dtype == POSENC_F64 && exact ? POSENC_F64 : POSENC_F32;
    return status;
}

static int rotate_file(rotate_job *job) {
    posenc_error error;
    int status = open_input(job);
    if (status)
        return status;
    if (posenc_npy_create(job->out_path, &job->info, &job->writer, &error))
        return cli_fail_error(job->arguments, job->out_path, &error);
    status = process_blocks(job);
    if (status) {
        posenc_npy_discard(job->writer);
        return status;
    }
    if (posenc_npy_commit(job->writer, &error))
        return cli_fail_error(job->arguments, job->out_path, &error);
    return CLI_DONE;
}

static void report(const rotate_job *job) {
    const posenc_spec *spec = posenc_frequencies_spec(job->choice.frequencies);
    const char *mode = posenc_mode_name(job->choice.mode),
               *pairing = posenc_pairing_name(spec->pairing),
               *output = output_pairing_name(&job->options, pairing);
    size_t tokens = array_axes_size(&job->axes, POSENC_AXIS_TOKENS);
    if (cli_wants_json(job->arguments)) {
        json_open(NULL, '{');
        json_string("output", job->out_path);
        json_string("mode", mode);
        json_string("pairing", pairing);
        json_string("output_pairing", output);
        json_integer("tokens", (int64_t)tokens);
        json_integer("elements", (int64_t)job->info.count);
        spec_choice_report(&job->choice, 1);
        json_close();
        json_end();
        return;
    }
    printf("%s: %zu tokens rotated, channels %zu ... %zu of %zu, pairing %s%s%s, mode %s\n",
           job->out_path, tokens, spec->rotary_start, spec->rotary_start + spec->rotary_dim - 1,
           spec->head_dim, pairing, output == pairing ? "" : ", written as ",
           output == pairing ? "" : output, mode);
    spec_choice_report(&job->choice, 0);
}

static int take_output_pairing(rotate_job *job) {
    const char *text = cli_value(job->arguments, "output-pairing");
    posenc_pairing pairing;
    posenc_error error;
    if (!text)
        return CLI_DONE;
    if (posenc_pairing_parse(text, &pairing, &error))
        return cli_fail_error(job->arguments, "--output-pairing", &error);
    job->options.output_pairing =
        pairing == POSENC_PAIRING_HALF ? POSENC_OUTPUT_HALF : POSENC_OUTPUT_INTERLEAVED;
    return CLI_DONE;
}

static int run(const cli_arguments *arguments) {
    rotate_job job = {.arguments = arguments, .options = POSENC_ROTATE_OPTIONS_INIT};
    job.in_path = cli_operand(arguments, 0);
    job.out_path = cli_value(arguments, "o");
    if (!job.out_path)
        return cli_fail(arguments, "-o OUT.npy is missing");
    if (cli_value(arguments, "inverse") && cli_value(arguments, "backward"))
        return cli_fail(arguments, "--inverse and --backward exclude one another");
    if (cli_value(arguments, "inverse"))
        job.options.direction = POSENC_INVERSE;
    if (cli_value(arguments, "backward"))
        job.options.direction = POSENC_BACKWARD;
    int status = take_output_pairing(&job);
    if (!status)
        status = rotate_file(&job);
    if (!status)
        report(&job);
    posenc_npy_close(job.reader);
    position_list_free(&job.positions);
    spec_choice_free(&job.choice);
    free(job.block_memory);
    free(job.cos);
    free(job.sin);
    return status;
}

const cli_command command_rotate = {
    "rotate",
    "IN.npy",
    1,
    "rotate the queries or keys in an .npy file (RoPE)",
    "Rotates an array of queries or keys (float16, float32, float64, bfloat16; of any\n"
    "size: it is read in blocks) and writes one of the same dtype, shape and order.\n\n"
    "  posenc rotate q.npy -o turned.npy --axes tokens,heads,head_dim\n"
    "  posenc rotate k.npy -o turned.npy --positions 1000:1096 --base 500000\n"
    "  posenc rotate turned.npy -o q.npy --axes tokens,heads,head_dim --inverse",
    options,
    spec_options,
    run};
