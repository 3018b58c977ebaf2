/* posenc frequencies. SPDX-License-Identifier: MIT */
#include "commands.h"
#include "output.h"
#include "spec_options.h"

#include <stdio.h>

static const double turn = 6.283185307179586477;

static void print_json(const spec_choice *choice) {
    size_t pairs = posenc_frequencies_pairs(choice->frequencies);
    json_open(NULL, '{');
    json_string("mode", posenc_mode_name(choice->mode));
    json_string("scaling",
                posenc_scaling_name(posenc_frequencies_spec(choice->frequencies)->scaling->type));
    json_open("inv_freq", '[');
    for (size_t pair = 0; pair < pairs; pair++)
        json_number(NULL, posenc_frequencies_inv_freq(choice->frequencies, pair, choice->mode));
    json_close();
    json_open("wavelengths", '[');
    for (size_t pair = 0; pair < pairs; pair++)
        json_number(NULL,
                    turn / posenc_frequencies_inv_freq(choice->frequencies, pair, choice->mode));
    json_close();
    if (posenc_frequencies_spec(choice->frequencies)->axes->count > 1) {
        json_open("axis", '[');
        for (size_t pair = 0; pair < pairs; pair++)
            json_integer(NULL, (int64_t)posenc_frequencies_axis(choice->frequencies, pair));
        json_close();
    }
    json_number("attention_factor",
                posenc_frequencies_attention_factor(choice->frequencies, choice->mode));
    json_number("softmax_factor", posenc_frequencies_softmax_factor(choice->frequencies));
    spec_choice_report(choice, 1);
    json_close();
    json_end();
}

static void print_text(const spec_choice *choice) {
    const posenc_spec *spec = posenc_frequencies_spec(choice->frequencies);
    size_t pairs = posenc_frequencies_pairs(choice->frequencies), start = spec->rotary_start;
    char text[CLI_NUMBER_TEXT];
    number_text(spec->base, text);
    printf(
        "head_dim %zu, rotary_dim %zu from channel %zu, base %s, pairing %s,\nscaling %s, mode %s\n",
        spec->head_dim, spec->rotary_dim, start, text, posenc_pairing_name(spec->pairing),
        posenc_scaling_name(spec->scaling->type), posenc_mode_name(choice->mode));
    spec_choice_report(choice, 0);
    printf("attention factor %.17g\n\n%5s  %-14s %22s %22s%s\n",
           posenc_frequencies_attention_factor(choice->frequencies, choice->mode), "pair",
           "channels", "radians per position", "positions per turn",
           spec->axes->count > 1 ? "  axis" : "");
    for (size_t pair = 0; pair < pairs; pair++) {
        int half = spec->pairing == POSENC_PAIRING_HALF;
        size_t a = start + (half ? pair : 2 * pair), b = half ? a + pairs : a + 1;
        double inv_freq = posenc_frequencies_inv_freq(choice->frequencies, pair, choice->mode);
        char channels[64], wavelength[CLI_NUMBER_TEXT];
        snprintf(channels, sizeof channels, "(%zu, %zu)", a, b);
        number_text(inv_freq, text);
        snprintf(wavelength, sizeof wavelength, "%.6g", turn / inv_freq);
        printf("%5zu  %-14s %22s %22s", pair, channels, text, wavelength);
        if (spec->axes->count > 1)
            printf("  %4zu", posenc_frequencies_axis(choice->frequencies, pair));
        putchar('\n');
    }
}

static int run(const cli_arguments *arguments) {
    spec_choice choice;
    int status = spec_choice_get(arguments, 0, 0, &choice);
    if (!status && cli_wants_json(arguments))
        print_json(&choice);
    else if (!status)
        print_text(&choice);
    spec_choice_free(&choice);
    return status;
}

const cli_command command_frequencies = {
    "frequencies",
    "",
    0,
    "inverse frequency and wavelength of every pair",
    "The inverse frequency (radians per position) and the wavelength (positions per\n"
    "turn) of every pair of channels, and which channels pair.\n\n"
    "  posenc frequencies --head-dim 128 --base 500000",
    spec_options,
    NULL,
    run};
