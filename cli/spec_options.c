/* The options that describe a rotary encoding. SPDX-License-Identifier: MIT */
#include "spec_options.h"

#include "model_options.h"
#include "output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const cli_option spec_options[] = {
    {"config", "PATH",
     "the spec of a model: its config.json, GGUF file or\nfolder, in place of the options that describe one"},
    {"layer-type", "T",
     "which of the model's layers (posenc inspect lists\nthem); needed where several rotate differently"},
    {"part", "NAME",
     "which part of a composite model (posenc inspect lists\nthem, such as vision_config); the language model"},
    {"head-dim", "D", "channels of a head"},
    {"rotary-dim", "R", "channels of it that rotate, even (all from S on)"},
    {"rotary-start", "S", "the first channel that rotates (0)"},
    {"base", "B", "rope_theta (10000)"},
    {"pairing", "P",
     "half: channels (j, j + R/2) turn together (Hugging\n"
     "Face, NeoX); interleaved: (2j, 2j + 1) (GPT-J, Meta,\n"
     "the paper) (half)"},
    {"mode", "M",
     "exact: the real-number angle; float32: as frameworks\n"
     "form it, in float32 (exact)"},
    {"scaling", "JSON",
     "how the context is extended, as transformers'\nrope_parameters: '{\"rope_type\":\"linear\",\"factor\":4}'"},
    {"max-positions", "L", "max_position_embeddings, for scalings that ask for it"},
    {"seq-len", "N", "context length, for dynamic and longrope (the largest\nposition + 1)"},
    {NULL, NULL, NULL},
};

static int get_pairing(const cli_arguments *arguments, posenc_spec *spec) {
    const char *text = cli_value(arguments, "pairing");
    posenc_error error;
    if (text && posenc_pairing_parse(text, &spec->pairing, &error)) {
        char sentence[512];
        posenc_error_text(&error, sentence, sizeof sentence);
        return cli_fail(arguments, "--pairing %s: %s", text, sentence);
    }
    return CLI_DONE;
}

int spec_mode_get(const cli_arguments *arguments, const char *name, posenc_mode *mode) {
    static const char *const words[] = {"exact", "float32"};
    int word = (int)*mode;
    int status = cli_get_word(arguments, name, words, 2, &word);
    *mode = (posenc_mode)word;
    return status;
}

/* 0 means "default" to the library, but not to a person who writes it. */
static int get_spec(const cli_arguments *arguments, uint64_t head_dim, posenc_spec *spec) {
    uint64_t given = head_dim, rotary_dim = 0, rotary_start = 0;
    int status = cli_get_size(arguments, "head-dim", 2, &given);
    if (!status && given == 0)
        status = cli_fail(
            arguments, "--head-dim is missing: channels of a head, such as 128 (or --config PATH)");
    if (!status && head_dim && given != head_dim)
        status = cli_fail(arguments,
                          "--head-dim is %" PRIu64 " but the array's head_dim axis has %" PRIu64,
                          given, head_dim);
    if (!status)
        status = cli_get_size(arguments, "rotary-dim", 2, &rotary_dim);
    if (!status)
        status = cli_get_size(arguments, "rotary-start", 0, &rotary_start);
    if (!status)
        status = cli_get_size(arguments, "max-positions", 1, &spec->max_positions);
    if (!status)
        status = cli_get_real(arguments, "base", &spec->base);
    if (!status && cli_value(arguments, "base") && spec->base <= 0)
        status = cli_fail(arguments, "--base is %s but must be above 0 (1e-6 to 1e30)",
                          cli_value(arguments, "base"));
    spec->head_dim = (size_t)given;
    spec->rotary_dim = (size_t)rotary_dim;
    spec->rotary_start = (size_t)rotary_start;
    return status ? status : get_pairing(arguments, spec);
}

/* What the rules of the model type or nobody said, for "defaulted". */
static void note_values(spec_choice *choice, const posenc_layer_type *type) {
    for (size_t i = 0; i < type->value_count && choice->note_count < SPEC_MAX_NOTES; i++) {
        const posenc_model_value *value = &type->values[i];
        if (value->source == POSENC_SOURCE_FILE ||
            (value->number.kind == POSENC_NUMBER_NONE && strcmp(value->name, "pairing") != 0))
            continue;
        posenc_note note = {POSENC_NOTE_DEFAULTED,
                            strcmp(value->name, "rope_theta") == 0 ? "base" : value->name,
                            value->number};
        choice->notes[choice->note_count++] = note;
    }
}

static int get_model_spec(const cli_arguments *arguments, uint64_t head_dim, posenc_spec *spec,
                          spec_choice *choice) {
    int status = model_options_get(arguments, head_dim, &choice->model, &choice->layer_type, spec);
    choice->warning_model = cli_value(arguments, "part") ? NULL : choice->model;
    if (!status)
        status = get_pairing(arguments, spec);
    if (!status)
        note_values(choice, choice->layer_type);
    return status;
}

static posenc_notes open_notes(spec_choice *choice) {
    posenc_notes notes = {choice->notes + choice->note_count, SPEC_MAX_NOTES - choice->note_count,
                          0};
    return notes;
}

static void close_notes(spec_choice *choice, const posenc_notes *notes) {
    choice->note_count += notes->count < notes->capacity ? notes->count : notes->capacity;
}

static int get_scaling(const cli_arguments *arguments, posenc_spec *spec, spec_choice *choice) {
    const char *text = cli_value(arguments, "scaling");
    if (!text)
        return CLI_DONE;
    posenc_error error;
    posenc_notes notes = open_notes(choice);
    posenc_status status =
        posenc_rope_parameters_parse(text, strlen(text), &choice->parameters, &notes, &error);
    close_notes(choice, &notes);
    if (!status) {
        notes = open_notes(choice);
        status = posenc_rope_parameters_apply(choice->parameters, spec, &notes, &error);
        close_notes(choice, &notes);
    }
    return status ? cli_fail_error(arguments, "--scaling", &error) : CLI_DONE;
}

/* Only these depend on a length; without one the library's own message would not name the flag. */
static int get_length(const cli_arguments *arguments, const posenc_spec *spec, uint64_t length,
                      uint64_t *seq_len) {
    const posenc_scaling *scaling = spec->scaling;
    int needs =
        scaling &&
        (scaling->type == POSENC_SCALING_LONGROPE ||
         (scaling->type == POSENC_SCALING_DYNAMIC && scaling->dynamic != POSENC_DYNAMIC_ALPHA));
    int status = cli_get_size(arguments, "seq-len", 1, seq_len);
    if (status || *seq_len || !needs)
        return status;
    if (!length)
        return cli_fail(arguments, "--seq-len is missing: the frequencies of %s depend on it",
                        posenc_scaling_name(scaling->type));
    *seq_len = length;
    return CLI_DONE;
}

static void note_defaulted(spec_choice *choice, const char *argument, posenc_number value) {
    if (choice->note_count < SPEC_MAX_NOTES) {
        posenc_note note = {POSENC_NOTE_DEFAULTED, argument, value};
        choice->notes[choice->note_count++] = note;
    }
}

int spec_choice_get(const cli_arguments *arguments, uint64_t head_dim, uint64_t length,
                    spec_choice *choice) {
    posenc_spec spec = POSENC_SPEC_INIT;
    uint64_t seq_len = 0;
    *choice = (spec_choice){0};
    int given = cli_value(arguments, "config") != NULL;
    if (!given && cli_value(arguments, "layer-type"))
        return cli_fail(arguments, "--layer-type is given without --config");
    if (!given && cli_value(arguments, "part"))
        return cli_fail(arguments, "--part is given without --config");
    int status = given ? get_model_spec(arguments, head_dim, &spec, choice)
                       : get_spec(arguments, head_dim, &spec);
    if (!status)
        status = spec_mode_get(arguments, "mode", &choice->mode);
    if (!status && !given)
        status = get_scaling(arguments, &spec, choice);
    if (!status)
        status = get_length(arguments, &spec, length, &seq_len);
    if (status)
        return status;
    posenc_notes notes = open_notes(choice);
    posenc_error error;
    if (posenc_frequencies_create(&spec, seq_len, &choice->frequencies, &notes, &error))
        return cli_fail_error(arguments, NULL, &error);
    close_notes(choice, &notes);
    choice->spec = spec;
    choice->seq_len = seq_len;
    if (seq_len && !cli_value(arguments, "seq-len")) {
        posenc_number value = {POSENC_NUMBER_SIZE, {.size = seq_len}};
        note_defaulted(choice, "seq_len", value);
    }
    if (!given && !cli_value(arguments,
                             "pairing")) { /* an enumeration has no unset value that C could note */
        posenc_number none = {POSENC_NUMBER_NONE, {0}};
        note_defaulted(choice, "pairing", none);
    }
    return CLI_DONE;
}

void spec_choice_free(spec_choice *choice) {
    posenc_frequencies_destroy(choice->frequencies);
    posenc_rope_parameters_free(choice->parameters);
    posenc_model_free(choice->model);
    choice->frequencies = NULL;
    choice->parameters = NULL;
    choice->model = NULL;
}

int spec_choice_check_positions(const cli_arguments *arguments, const spec_choice *choice,
                                const position_list *list) {
    size_t axes = posenc_frequencies_spec(choice->frequencies)->axes->count, lists = 0;
    for (; list; list = list->next)
        lists++;
    if (lists != 1 && lists != axes)
        return cli_fail(arguments, "--positions has lists for %zu axes but the encoding has %zu",
                        lists, axes);
    return CLI_DONE;
}

int64_t *spec_choice_positions(const cli_arguments *arguments, const spec_choice *choice,
                               const position_list *list, uint64_t first, size_t count) {
    size_t axes = posenc_frequencies_spec(choice->frequencies)->axes->count;
    int64_t *positions = calloc(count ? count : 1, axes * sizeof *positions);
    if (!positions)
        cli_fail(arguments, "no memory for %zu positions", count);
    for (size_t axis = 0; positions && axis < axes; axis++) {
        position_list_integers(list, first, count, positions + axis * count);
        list = list->next ? list->next : list;
    }
    return positions;
}

static void note_text(const spec_choice *choice, const posenc_note *note,
                      char text[CLI_NUMBER_TEXT]) {
    if (note->value.kind == POSENC_NUMBER_REAL)
        number_text(note->value.as.real, text);
    else if (note->value.kind == POSENC_NUMBER_SIZE)
        snprintf(text, CLI_NUMBER_TEXT, "%" PRIu64, note->value.as.size);
    else
        snprintf(text, CLI_NUMBER_TEXT, "%s",
                 posenc_pairing_name(posenc_frequencies_spec(choice->frequencies)->pairing));
}

static void report_defaults(const spec_choice *choice, int json) {
    char text[CLI_NUMBER_TEXT];
    int count = 0;
    if (json)
        json_open("defaulted", '[');
    for (size_t i = 0; i < choice->note_count; i++) {
        const posenc_note *note = &choice->notes[i];
        if (note->kind != POSENC_NOTE_DEFAULTED)
            continue;
        note_text(choice, note, text);
        if (json)
            json_string(NULL, note->argument);
        else
            printf("%s %s %s", count ? "," : "not given, so assumed:", note->argument, text);
        count++;
    }
    if (json)
        json_close();
    else if (count)
        putchar('\n');
}

/* Those of the chosen layer type and of the whole model. */
static void report_model_warnings(const spec_choice *choice, int json) {
    for (size_t i = 0; i < posenc_model_warning_count(choice->warning_model); i++) {
        const posenc_model_warning *warning = posenc_model_warning_at(choice->warning_model, i);
        if (warning->layer_type && strcmp(warning->layer_type, choice->layer_type->name) != 0)
            continue;
        if (json)
            json_string(NULL, warning->message);
        else
            printf("warning: %s\n", warning->message);
    }
}

void spec_choice_report(const spec_choice *choice, int json) {
    report_defaults(choice, json);
    if (json)
        json_open("warnings", '[');
    for (size_t i = 0; i < choice->note_count; i++) {
        const posenc_note *note = &choice->notes[i];
        if (note->kind == POSENC_NOTE_DEFAULTED)
            continue;
        char sentence[256];
        snprintf(sentence, sizeof sentence, "%s %s", note->argument,
                 posenc_note_sentence(note->kind));
        if (json)
            json_string(NULL, sentence);
        else
            printf("warning: %s\n", sentence);
    }
    if (choice->warning_model)
        report_model_warnings(choice, json);
    if (json)
        json_close();
}
