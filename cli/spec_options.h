/* The options that describe a rotary encoding, shared by every command that takes one.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_SPEC_OPTIONS_H
#define CLI_SPEC_OPTIONS_H

#include "command.h"
#include "posenc/frequencies.h"
#include "posenc/rows.h"

extern const cli_option spec_options[];

/* What the options say. */
typedef struct spec_choice {
    posenc_frequencies *frequencies;
    posenc_mode mode;
    posenc_note notes[8]; /* what was defaulted */
    size_t note_count;
} spec_choice;

/* Reads the options and resolves the frequencies. `head_dim` (of an array at hand) is what --head-dim
 * must equal and may leave out; 0: --head-dim is required. Free with spec_choice_free. */
int spec_choice_get(const cli_arguments *arguments, uint64_t head_dim, spec_choice *choice);
void spec_choice_free(spec_choice *choice);

/* "defaulted": [...] in JSON; a line for people otherwise (nothing if nothing was defaulted). */
void spec_choice_report(const spec_choice *choice, int json);

#endif
