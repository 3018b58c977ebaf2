/* posenc convert. SPDX-License-Identifier: MIT */
#include "commands.h"
#include "convert_check.h"
#include "output.h"
#include "posenc/convert.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {"to", "PAIRING", "half or interleaved: the order that the rows get; required"},
    {"from", "PAIRING", "the order that they have (the record's, else the other one)"},
    {"head-dim", "D", "width of a head (the config beside the weights)"},
    {"heads", "H", "query heads (the config beside the weights)"},
    {"kv-heads", "K", "key heads (the config beside the weights, else H)"},
    {"rotary-dim", "R", "channels of a head that rotate (the config, else all)"},
    {"rotary-start", "S", "the first of them (the config, else 0)"},
    {"force", NULL, "convert in spite of what is refused unless forced"},
    {"part", "I/N", "only every N-th file of weights, from number I = 0 ... N-1 on"},
    {"dry-run", NULL, "list what would move; write nothing (OUT may be left out)"},
    {"check", NULL, "compare two checkpoints in place of converting one"},
    {NULL, NULL, NULL},
};

typedef struct convert_job {
    const cli_arguments *arguments;
    const char *in, *out;
    posenc_conversion_options options;
    posenc_conversion *conversion;
    posenc_conversion_outcome outcome;
    size_t part, parts;
    int dry;
} convert_job;

/* ---- Options ---- */

static int get_pairings(convert_job *job) {
    static const char *const words[] = {"half", "interleaved"};
    int to = -1, from = -1;
    int status = cli_get_word(job->arguments, "to", words, 2, &to);
    if (!status)
        status = cli_get_word(job->arguments, "from", words, 2, &from);
    if (!status && to < 0)
        status = cli_fail(job->arguments, "--to half or --to interleaved is missing");
    if (status)
        return status;
    job->options.to = to ? POSENC_PAIRING_INTERLEAVED : POSENC_PAIRING_HALF;
    job->options.from = from < 0 ? POSENC_DETECTED_UNDETERMINED
                        : from   ? POSENC_DETECTED_INTERLEAVED
                                 : POSENC_DETECTED_HALF;
    return CLI_DONE;
}

static int get_shape(convert_job *job) {
    posenc_attention_shape *shape = &job->options.shape;
    const struct {
        const char *name;
        uint64_t least;
        size_t *value;
    } sizes[] = {{"head-dim", 1, &shape->head_dim},
                 {"heads", 1, &shape->heads},
                 {"kv-heads", 1, &shape->kv_heads},
                 {"rotary-dim", 1, &shape->rotary_dim},
                 {"rotary-start", 0, &shape->rotary_start}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t value = 0;
        int status = cli_get_size(job->arguments, sizes[i].name, sizes[i].least, &value);
        if (status)
            return status;
        *sizes[i].value = (size_t)value;
    }
    return CLI_DONE;
}

/* "I/N": digits only, since a sign or a blank is a mistake of a script. */
static int get_part(convert_job *job) {
    const char *text = cli_value(job->arguments, "part");
    size_t numbers[2] = {0, 0};
    const char *at = text;
    if (!text)
        return CLI_DONE;
    for (int i = 0; i < 2; i++) {
        size_t digits = strspn(at, "0123456789");
        if (!digits || digits > 9 || at[digits] != (i ? '\0' : '/'))
            return cli_fail(job->arguments, "--part is \"%s\" but must be I/N, such as 0/4", text);
        numbers[i] = (size_t)strtoul(at, NULL, 10);
        at += digits + 1;
    }
    if (numbers[0] >= numbers[1])
        return cli_fail(job->arguments, "--part is %s but its first number must be from 0 to N - 1",
                        text);
    job->part = numbers[0];
    job->parts = numbers[1];
    return CLI_DONE;
}

static int get_options(convert_job *job) {
    job->options.force = cli_value(job->arguments, "force") != NULL;
    job->dry = cli_value(job->arguments, "dry-run") != NULL;
    int status = get_shape(job);
    if (!status)
        status = get_pairings(job);
    return status ? status : get_part(job);
}

/* Which of the words do not belong to --check. */
static int run_check(convert_job *job) {
    static const char *const others[] = {"to", "from", "force", "part", "dry-run"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (cli_value(job->arguments, others[i]))
            return cli_fail(job->arguments, "--%s does not go with --check", others[i]);
    }
    int status = get_shape(job);
    return status ? status : convert_check(job->arguments, &job->options.shape);
}

/* ---- Answers ---- */

static void print_json_word(const char *key, posenc_detected pairing) {
    if (pairing)
        json_string(key, posenc_detected_name(pairing));
    else
        json_null(key);
}

static void print_json_facts(const convert_job *job, const posenc_conversion_facts *facts) {
    json_string("from", posenc_pairing_name(facts->from));
    json_string("to", posenc_pairing_name(facts->to));
    json_string("format", facts->format);
    json_string("model_type", facts->model_type);
    print_json_word("implied", facts->implied);
    print_json_word("recorded", facts->recorded);
    print_json_word("judged", facts->judged);
    json_number("statistic", facts->statistic);
    json_boolean("records", facts->records);
    json_integer("heads", (int64_t)facts->shape.heads);
    json_integer("kv_heads", (int64_t)facts->shape.kv_heads);
    json_integer("head_dim", (int64_t)facts->shape.head_dim);
    json_integer("rotary_dim", (int64_t)facts->shape.rotary_dim);
    json_integer("rotary_start", (int64_t)facts->shape.rotary_start);
    json_integer("files", (int64_t)facts->files);
    json_integer("changed_files", (int64_t)facts->changed_files);
    json_integer("tensors", (int64_t)facts->tensors);
    json_integer("moved_tensors", (int64_t)facts->moved_tensors);
    json_integer("bytes", (int64_t)facts->bytes);
    json_integer("moved_bytes", (int64_t)facts->moved_bytes);
    json_boolean("written", !job->dry);
    json_integer("files_written", (int64_t)job->outcome.files_written);
    json_integer("files_missing", (int64_t)job->outcome.files_missing);
    json_integer("others_written", (int64_t)job->outcome.others_written);
    json_boolean("complete", job->outcome.complete);
}

static void print_json_move(const posenc_conversion_move *move) {
    json_open(NULL, '{');
    json_string("file", move->file);
    json_string("tensor", move->tensor);
    json_string("what", move->what);
    json_string("side", move->side);
    json_integer("rows", (int64_t)move->rows);
    json_integer("moving", (int64_t)move->moving);
    json_integer("heads", (int64_t)move->heads);
    json_integer("rotary_dim", (int64_t)move->rotary_dim);
    json_integer("bytes", (int64_t)move->bytes);
    json_close();
}

static void print_move(const posenc_conversion_move *move) {
    printf("%-56s %-12s %-7s %8" PRIu64 " of %8" PRIu64 " rows, %4zu heads, %14" PRIu64 " bytes\n",
           move->tensor, move->what, move->side, move->moving, move->rows, move->heads,
           move->bytes);
}

/* The list of what moves. */
static int print_moves(const convert_job *job, void (*print)(const posenc_conversion_move *)) {
    size_t count = posenc_conversion_about(job->conversion)->moved_tensors;
    for (size_t i = 0; i < count; i++) {
        posenc_conversion_move move;
        posenc_error error;
        if (posenc_conversion_move_at(job->conversion, i, &move, &error))
            return cli_fail_error(job->arguments, NULL, &error);
        print(&move);
    }
    return CLI_DONE;
}

static void print_json_remarks(const convert_job *job) {
    json_open("remarks", '[');
    for (size_t i = 0; i < posenc_conversion_remark_count(job->conversion); i++) {
        const posenc_conversion_remark *remark = posenc_conversion_remark_at(job->conversion, i);
        json_open(NULL, '{');
        json_string("code", remark->code);
        json_string("text", remark->text);
        json_boolean("warning", remark->warning);
        json_close();
    }
    json_close();
}

static int print_json(const convert_job *job) {
    json_open(NULL, '{');
    print_json_facts(job, posenc_conversion_about(job->conversion));
    json_open("moves", '[');
    int status = print_moves(job, print_json_move);
    json_close();
    print_json_remarks(job);
    json_close();
    json_end();
    return status;
}

static void print_part(const convert_job *job) {
    printf("part %zu of %zu: %zu files written; ", job->part, job->parts,
           job->outcome.files_written);
    if (job->outcome.complete)
        printf("all are there, and what stands beside them\n");
    else
        printf("%zu of other parts are not there yet\n", job->outcome.files_missing);
}

static int print_text(const convert_job *job) {
    const posenc_conversion_facts *facts = posenc_conversion_about(job->conversion);
    int status = job->dry ? print_moves(job, print_move) : CLI_DONE;
    printf("%s: %s to %s, %zu of %zu tensors in %zu of %zu files, %.1f of %.1f MB\n",
           job->dry ? "would move" : "moved", posenc_pairing_name(facts->from),
           posenc_pairing_name(facts->to), facts->moved_tensors, facts->tensors,
           facts->changed_files, facts->files, 1e-6 * (double)facts->moved_bytes,
           1e-6 * (double)facts->bytes);
    if (facts->judged)
        printf("the weights themselves look %s (statistic %.1f)\n",
               posenc_detected_name(facts->judged), facts->statistic);
    if (!job->dry && job->parts)
        print_part(job);
    for (size_t i = 0; i < posenc_conversion_remark_count(job->conversion); i++) {
        const posenc_conversion_remark *remark = posenc_conversion_remark_at(job->conversion, i);
        printf("%s: %s\n", remark->warning ? "WARNING" : "note", remark->text);
    }
    return status;
}

/* ---- The work ---- */

/* The library's words for what a caller may insist on name no option. */
static int tell_refusal(const convert_job *job, const posenc_error *error) {
    int status = cli_fail_error(job->arguments, NULL, error);
    if (error->must && strstr(error->must, "unless forced"))
        fprintf(stderr, "posenc convert: --force does it all the same; docs/conversion.md says "
                        "what that means\n");
    return status;
}

static void show(void *context, uint64_t done, uint64_t total) {
    progress *bar = context;
    bar->total = total;
    progress_show(bar, done);
}

static void tell_left_out(void *context, const char *name) {
    progress_end(context);
    fprintf(stderr, "posenc convert: %s is not copied: other weights, which are not converted\n",
            name);
}

static int write_out(convert_job *job) {
    posenc_conversion_write_options write = POSENC_CONVERSION_WRITE_OPTIONS_INIT;
    posenc_error error;
    if (job->dry)
        return CLI_DONE;
    progress bar = progress_start_bytes("converting", 0);
    write.part = job->part;
    write.parts = job->parts;
    write.progress = show;
    write.left_out = tell_left_out;
    write.context = &bar;
    write.outcome = &job->outcome;
    posenc_status failed = posenc_conversion_write(job->conversion, job->out, &write, &error);
    progress_end(&bar);
    return failed ? cli_fail_error(job->arguments, NULL, &error) : CLI_DONE;
}

static int run(const cli_arguments *arguments) {
    convert_job job = {
        .arguments = arguments, .in = cli_operand(arguments, 0), .out = cli_operand(arguments, 1)};
    posenc_error error;
    job.options = (posenc_conversion_options)POSENC_CONVERSION_OPTIONS_INIT;
    if (!job.out && !cli_value(arguments, "dry-run"))
        return cli_fail(arguments, "%s is missing; see posenc convert --help",
                        cli_value(arguments, "check") ? "B" : "OUT");
    if (cli_value(arguments, "check"))
        return run_check(&job);
    int status = get_options(&job);
    if (status)
        return status;
    if (posenc_conversion_create(job.in, &job.options, &job.conversion, &error))
        return tell_refusal(&job, &error);
    status = write_out(&job);
    if (!status)
        status = cli_wants_json(arguments) ? print_json(&job) : print_text(&job);
    posenc_conversion_free(job.conversion);
    return status;
}

const cli_command command_convert = {
    "convert",
    "IN [OUT], or --check A B",
    2,
    "the q and k rows of a checkpoint for the other pairing",
    "Brings the q and k rows of a checkpoint into the order of the other pairing, with\n"
    "all that has a row or a number for each of them: biases, norm gains, scales, LoRA's\n"
    "B. Nothing is computed; everything else stays byte for byte. A record in the files'\n"
    "metadata tells the pairing; the conversion back takes it out, and there and back\n"
    "gives the same bytes. IN is a safetensors file or index, a GGUF or llama2.c file, a\n"
    "model folder, or a name in a local cache. docs/conversion.md has the rules.\n"
    "OUT is a file where IN is one; it may be IN itself, which is replaced when the new\n"
    "one is whole. Else OUT is a folder, which gets what stands beside the weights too.\n"
    "With --part several programs share the files of weights; whoever finishes last\n"
    "writes the rest: mpirun -n 4 sh -c 'posenc convert A B --to half --part\n"
    "$OMPI_COMM_WORLD_RANK/4'.\n\n"
    "  posenc convert models/mine models/mine-interleaved --to interleaved\n"
    "  posenc convert model.safetensors --to half --dry-run\n\n"
    "With --check, which tensors of two checkpoints A and B are the same, which have the\n"
    "same rows in another order, and which order that is. Names of transformers, GGUF and\n"
    "llama2.c are matched. The exit status is 1 if any tensor differs or is missing.\n\n"
    "  posenc convert --check models/mine mine.gguf",
    options,
    NULL,
    run};
