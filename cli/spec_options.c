/* The options that describe a rotary encoding. SPDX-License-Identifier: MIT */
#include "spec_options.h"

#include "output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const cli_option spec_options[] = {
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
    {"seq-len", "N", "context length; plain RoPE does not depend on it"},
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

static int get_mode(const cli_arguments *arguments, posenc_mode *mode) {
    static const char *const words[] = {"exact", "float32"};
    int word = POSENC_MODE_EXACT;
    int status = cli_get_word(arguments, "mode", words, 2, &word);
    *mode = (posenc_mode)word;
    return status;
}

/* 0 means "default" to the library, but not to a person who writes it. */
static int get_spec(const cli_arguments *arguments, uint64_t head_dim, posenc_spec *spec,
                    uint64_t *seq_len) {
    uint64_t given = head_dim, rotary_dim = 0, rotary_start = 0;
    int status = cli_get_size(arguments, "head-dim", 2, &given);
    if (!status && given == 0)
        status = cli_fail(arguments, "--head-dim is missing: channels of a head, such as 128");
    if (!status && head_dim && given != head_dim)
        status = cli_fail(arguments,
                          "--head-dim is %" PRIu64 " but the array's head_dim axis has %" PRIu64,
                          given, head_dim);
    if (!status)
        status = cli_get_size(arguments, "rotary-dim", 2, &rotary_dim);
    if (!status)
        status = cli_get_size(arguments, "rotary-start", 0, &rotary_start);
    if (!status)
        status = cli_get_size(arguments, "seq-len", 1, seq_len);
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

int spec_choice_get(const cli_arguments *arguments, uint64_t head_dim, spec_choice *choice) {
    posenc_spec spec = POSENC_SPEC_INIT;
    uint64_t seq_len = 0;
    *choice = (spec_choice){0};
    int status = get_spec(arguments, head_dim, &spec, &seq_len);
    if (!status)
        status = get_mode(arguments, &choice->mode);
    if (status)
        return status;
    posenc_notes notes = {choice->notes, sizeof choice->notes / sizeof *choice->notes, 0};
    posenc_error error;
    if (posenc_frequencies_create(&spec, seq_len, &choice->frequencies, &notes, &error))
        return cli_fail_error(arguments, NULL, &error);
    choice->note_count = notes.count;
    if (!cli_value(arguments,
                   "pairing")) { /* an enumeration has no unset value that C could note */
        posenc_note note = {POSENC_NOTE_DEFAULTED, "pairing", {POSENC_NUMBER_NONE, {0}}};
        choice->notes[choice->note_count++] = note;
    }
    return CLI_DONE;
}

void spec_choice_free(spec_choice *choice) {
    posenc_frequencies_destroy(choice->frequencies);
    choice->frequencies = NULL;
}

static void note_text(const posenc_note *note, char text[CLI_NUMBER_TEXT]) {
    if (note->value.kind == POSENC_NUMBER_REAL)
        number_text(note->value.as.real, text);
    else if (note->value.kind == POSENC_NUMBER_SIZE)
        snprintf(text, CLI_NUMBER_TEXT, "%" PRIu64, note->value.as.size);
    else
        snprintf(text, CLI_NUMBER_TEXT, "%s", posenc_pairing_name(POSENC_PAIRING_HALF));
}

void spec_choice_report(const spec_choice *choice, int json) {
    char text[CLI_NUMBER_TEXT];
    if (json)
        json_open("defaulted", '[');
    else if (choice->note_count)
        printf("not given, so assumed:");
    for (size_t i = 0; i < choice->note_count; i++) {
        const posenc_note *note = &choice->notes[i];
        note_text(note, text);
        if (json)
            json_string(NULL, note->argument);
        else
            printf("%s %s %s", i ? "," : "", note->argument, text);
    }
    if (json)
        json_close();
    else if (choice->note_count)
        putchar('\n');
}
