/* posenc demo. SPDX-License-Identifier: MIT */
#include "commands.h"
#include "demo.h"

static int run(const cli_arguments *arguments) {
    static void (*const parts[])(void) = {
        demo_sinusoidal,  demo_relative,     demo_bases,          demo_alibi,
        demo_wavelengths, demo_values,       demo_mixed_pairings, demo_extension,
        demo_bias,        demo_model_scores, demo_model_decoding,
    };
    demo_output_start(cli_wants_json(arguments));
    demo_say("posenc %s: how transformers know where a token stands\n", posenc_version());
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        parts[i]();
    demo_output_end();
    return CLI_DONE;
}

const cli_command command_demo = {
    "demo",
    "",
    0,
    "the encodings demonstrated, with the numbers explained",
    "Demonstrates sinusoids, RoPE and ALiBi, answers what an interviewer asks next by\n"
    "numbers, and rotates queries and keys of a trained model. --json prints the\n"
    "numbers alone.",
    NULL,
    NULL,
    run};
