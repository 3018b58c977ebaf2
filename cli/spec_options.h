/* The options that describe a rotary encoding, shared by every command that takes one.
 * SPDX-License-Identifier: MIT */
#ifndef CLI_SPEC_OPTIONS_H
#define CLI_SPEC_OPTIONS_H

#include "command.h"
#include "posenc/frequencies.h"
#include "posenc/model.h"
#include "posenc/rope_parameters.h"
#include "posenc/rows.h"
#include "position_list.h"

extern const cli_option spec_options[];

enum { SPEC_MAX_NOTES = 32 };

/* What the options say. */
typedef struct spec_choice {
    posenc_rope_parameters *parameters; /* of --scaling */
    posenc_model *model;                /* of --config */
    const posenc_model
        *warning_model; /* whose warnings are said: not those of the whole for a part */
    const posenc_layer_type *layer_type;
    posenc_frequencies *frequencies;
    posenc_spec spec; /* what they were made of, and the length */
    uint64_t seq_len;
    posenc_mode mode;
    posenc_note notes[SPEC_MAX_NOTES]; /* what was defaulted or looks odd */
    size_t note_count;
} spec_choice;

/* Reads the options and resolves the frequencies. `head_dim` (of an array at hand) is what --head-dim
 * must equal and may leave out; 0: --head-dim or --config is required. `length` (largest position + 1; 0: unknown) is
 * the sequence length where a scaling needs one and --seq-len was not given. Free with
 * spec_choice_free. */
int spec_choice_get(const cli_arguments *arguments, uint64_t head_dim, uint64_t length,
                    spec_choice *choice);
void spec_choice_free(spec_choice *choice);

/* The word of --NAME, exact or float32, into *mode; it stays where the option is not given. */
int spec_mode_get(const cli_arguments *arguments, const char *name, posenc_mode *mode);

/* Checks that there is one list of positions, or one for each axis of the encoding. */
int spec_choice_check_positions(const cli_arguments *arguments, const spec_choice *choice,
                                const position_list *list);

/* Positions first ... first + count - 1 of every axis of the encoding, in the layout that posenc_angles
 * takes: of the list and those behind it, or the same list for every axis (text). Free with free(). NULL:
 * no memory (said already). */
int64_t *spec_choice_positions(const cli_arguments *arguments, const spec_choice *choice,
                               const position_list *list, uint64_t first, size_t count);

/* "defaulted": [...] and "warnings": [...] in JSON; lines for people otherwise (none if there is nothing
 * to say). */
void spec_choice_report(const spec_choice *choice, int json);

#endif
