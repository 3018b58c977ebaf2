/* posenc detect. SPDX-License-Identifier: MIT */
#include "commands.h"
#include "output.h"
#include "posenc/checkpoint.h"
#include "progress.h"

#include <stdio.h>

static const cli_option options[] = {
    {"head-dim", "D", "width of a head (the config beside the weights)"},
    {"heads", "H", "query heads (the config beside the weights)"},
    {"kv-heads", "K", "key heads (the config beside the weights, else H)"},
    {"rotary-dim", "R", "channels of a head that rotate (the config, else all)"},
    {"rotary-start", "S", "the first of them (the config, else 0)"},
    {"gain-offset", "0|1", "1: q and k norm gains are stored minus 1 (by model_type)"},
    {"layers", "N", "judge N layers only, spread over the model"},
    {NULL, NULL, NULL},
};

typedef struct detect_job {
    const cli_arguments *arguments;
    const char *path;
    posenc_attention_shape shape;
    posenc_checkpoint_facts facts;
    posenc_pair_powers *powers;
    posenc_judgement judgement; /* of all layers */
} detect_job;

/* The checkpoint's own shape, then what the options say. */
static int get_shape(detect_job *job) {
    const struct {
        const char *name;
        uint64_t least;
        size_t *value;
    } sizes[] = {{"head-dim", 1, &job->shape.head_dim},
                 {"heads", 1, &job->shape.heads},
                 {"kv-heads", 1, &job->shape.kv_heads},
                 {"rotary-dim", 1, &job->shape.rotary_dim},
                 {"rotary-start", 0, &job->shape.rotary_start}};
    static const char *const offsets[] = {"0", "1"};
    posenc_error error;
    if (posenc_attention_shape_read(job->path, &job->shape, &job->facts, &error))
        return cli_fail_error(job->arguments, NULL, &error);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t value = *sizes[i].value;
        int status = cli_get_size(job->arguments, sizes[i].name, sizes[i].least, &value);
        if (status)
            return status;
        *sizes[i].value = (size_t)value;
    }
    if (!job->shape.heads || !job->shape.head_dim)
        return cli_fail(job->arguments,
                        "%s does not say how wide its heads are: give --head-dim and --heads",
                        job->path);
    return cli_get_word(job->arguments, "gain-offset", offsets, 2, &job->shape.gain_offset);
}

static void show(void *context, uint64_t done, uint64_t total) {
    progress *bar = context;
    bar->total = total;
    progress_show(bar, done);
}

static int read_powers(detect_job *job) {
    posenc_read_options read = POSENC_READ_OPTIONS_INIT;
    uint64_t layers = 0;
    posenc_error error;
    int status = cli_get_size(job->arguments, "layers", 1, &layers);
    if (status)
        return status;
    progress bar = progress_start_bytes("reading", 0);
    read.layers = (size_t)layers;
    read.progress = show;
    read.context = &bar;
    posenc_status failed =
        posenc_pair_powers_read(job->path, &job->shape, &read, &job->powers, &error);
    progress_end(&bar);
    if (failed || posenc_pair_powers_judge(job->powers, POSENC_ALL_LAYERS, &job->judgement, &error))
        return cli_fail_error(job->arguments, NULL, &error);
    return CLI_DONE;
}

/* Whether the weights use another pairing than programs assume by the model's name. */
static int contradicts(const detect_job *job) {
    posenc_detected found = job->judgement.both.verdict;
    return found && job->facts.implied && found != job->facts.implied;
}

static void print_json_evidence(const char *key, const posenc_pair_evidence *evidence) {
    json_open(key, '{');
    json_string("pairing", posenc_detected_name(evidence->verdict));
    json_number("statistic", evidence->statistic);
    json_number("log_likelihood_ratio", evidence->ratio[0]);
    json_number("log_likelihood_ratio_residual", evidence->ratio[1]);
    json_number("exact_half", evidence->exact_half);
    json_number("exact_interleaved", evidence->exact_interleaved);
    json_close();
}

static int print_json_layers(const detect_job *job) {
    posenc_error error;
    json_open("layers", '[');
    for (size_t i = 0; i < posenc_pair_powers_count(job->powers); i++) {
        posenc_judgement layer;
        if (posenc_pair_powers_judge(job->powers, i, &layer, &error))
            return cli_fail_error(job->arguments, NULL, &error);
        json_open(NULL, '{');
        json_integer("layer", (int64_t)posenc_pair_powers_layer(job->powers, i));
        json_string("pairing", posenc_detected_name(layer.both.verdict));
        json_number("statistic", layer.both.statistic);
        json_string("q", posenc_detected_name(layer.q.verdict));
        json_string("k", posenc_detected_name(layer.k.verdict));
        json_close();
    }
    json_close();
    return CLI_DONE;
}

static int print_json(const detect_job *job) {
    const posenc_judgement *j = &job->judgement;
    json_open(NULL, '{');
    json_string("pairing", posenc_detected_name(j->both.verdict));
    json_number("statistic", j->both.statistic);
    print_json_evidence("both", &j->both);
    print_json_evidence("q", &j->q);
    print_json_evidence("k", &j->k);
    json_boolean("q_k_differ", j->q_k_differ);
    json_integer("exact_signs", (int64_t)j->exact_signs);
    json_string("format", job->facts.format);
    json_string("model_type", job->facts.model_type);
    if (job->facts.implied)
        json_string("implied", posenc_detected_name(job->facts.implied));
    else
        json_null("implied");
    json_boolean("contradicts", contradicts(job));
    int status = print_json_layers(job);
    json_close();
    json_end();
    return status;
}

static void print_evidence(const char *side, const posenc_pair_evidence *evidence) {
    printf("%-10s %-13s %10.1f %12.1f %12.1f %8.1f %12.1f\n", side,
           posenc_detected_name(evidence->verdict), evidence->statistic, evidence->ratio[0],
           evidence->ratio[1], evidence->exact_half, evidence->exact_interleaved);
}

static void print_answer(const detect_job *job) {
    const posenc_judgement *j = &job->judgement;
    size_t start = job->shape.rotary_start, rotary = job->shape.rotary_dim;
    if (!rotary)
        rotary = job->shape.head_dim - start;
    if (j->both.verdict == POSENC_DETECTED_HALF)
        printf("half: channels (%zu, %zu), (%zu, %zu) ... of a head rotate together\n", start,
               start + rotary / 2, start + 1, start + rotary / 2 + 1);
    else if (j->both.verdict == POSENC_DETECTED_INTERLEAVED)
        printf("interleaved: channels (%zu, %zu), (%zu, %zu) ... of a head rotate together\n",
               start, start + 1, start + 2, start + 3);
    else if (j->q_k_differ && j->q.verdict && j->k.verdict)
        printf("q is %s but k is %s: one of them was permuted, the other was not\n",
               posenc_detected_name(j->q.verdict), posenc_detected_name(j->k.verdict));
    else
        printf("undetermined: the weights do not show which channels rotate together\n");
}

/* What programs make of the model's name, which did not enter. */
static void print_implied(const detect_job *job) {
    const char *implied = posenc_detected_name(job->facts.implied);
    const char *name = *job->facts.model_type ? job->facts.model_type : job->facts.format;
    if (contradicts(job))
        printf(
            "CONTRADICTION: programs that go by the name %s rotate %s pairs; these weights are not\n"
            "for them (posenc convert IN OUT --to %s --from %s makes such ones of them)\n",
            name, implied, implied, posenc_detected_name(job->judgement.both.verdict));
    else if (job->facts.implied && job->judgement.both.verdict)
        printf("which is what programs that go by the name %s do\n", name);
    else if (job->facts.implied)
        printf("programs that go by the name %s rotate %s pairs\n", name, implied);
}

static int print_text(const detect_job *job) {
    posenc_error error;
    size_t layers = posenc_pair_powers_count(job->powers);
    print_answer(job);
    print_implied(job);
    printf("\n%s%s%s, %zu layers, %zu heads (%zu of k), head_dim %zu\n\n", job->facts.format,
           *job->facts.model_type ? ", " : "", job->facts.model_type, layers, job->shape.heads,
           job->shape.kv_heads ? job->shape.kv_heads : job->shape.heads, job->shape.head_dim);
    printf("%-10s %-13s %10s %12s %12s %8s %12s\n", "", "pairing", "statistic", "log ratio",
           "residual", "half", "interleaved");
    print_evidence("q and k", &job->judgement.both);
    print_evidence("q", &job->judgement.q);
    print_evidence("k", &job->judgement.k);
    for (size_t i = 0; i < layers; i++) {
        posenc_judgement layer;
        char name[32];
        if (posenc_pair_powers_judge(job->powers, i, &layer, &error))
            return cli_fail_error(job->arguments, NULL, &error);
        snprintf(name, sizeof name, "layer %zu", posenc_pair_powers_layer(job->powers, i));
        print_evidence(name, &layer.both);
    }
    printf(
        "\nstatistic: deviations from the same channels in random order, positive for half.\n"
        "log ratio: log-likelihood of half over interleaved; residual: without the profile over\n"
        "frequencies. half, interleaved: exact evidence for each, in nats. docs/detection.md\n");
    return CLI_DONE;
}

static int run(const cli_arguments *arguments) {
    detect_job job = {.arguments = arguments,
                      .path = cli_operand(arguments, 0),
                      .shape = POSENC_ATTENTION_SHAPE_INIT};
    int status = get_shape(&job);
    if (!status)
        status = read_powers(&job);
    if (!status)
        status = cli_wants_json(arguments) ? print_json(&job) : print_text(&job);
    if (!status && job.judgement.both.verdict == POSENC_DETECTED_UNDETERMINED)
        status = CLI_NO;
    posenc_pair_powers_free(job.powers);
    return status;
}

const cli_command command_detect = {
    "detect",
    "PATH",
    1,
    "which pairing trained q/k weights use",
    "Tells from the numbers of the q and k projections alone which channels of a head\n"
    "rotate together. Names and metadata do not enter; what they imply is shown beside\n"
    "the answer, and a contradiction is named. PATH is a safetensors file or index, a\n"
    "GGUF or llama2.c file, a model folder, or a name in a local cache. The exit status\n"
    "is 1 if the answer is undetermined.\n\n"
    "  posenc detect models/Llama-3.2-1B\n"
    "  posenc detect weights.safetensors --heads 32 --kv-heads 8 --head-dim 128",
    options,
    NULL,
    run};
