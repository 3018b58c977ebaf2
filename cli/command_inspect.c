/* posenc inspect. SPDX-License-Identifier: MIT */
#include "commands.h"
#include "inspect_output.h"
#include "posenc/model.h"

posenc_frequencies *inspect_frequencies(const posenc_layer_type *type, posenc_layer_facts *facts) {
    const posenc_layer_facts start = POSENC_LAYER_FACTS_INIT;
    posenc_frequencies *frequencies;
    posenc_error error;
    *facts = start;
    uint64_t length = type->spec.max_positions ? type->spec.max_positions : 1;
    if (type->kind != POSENC_ENCODING_ROPE || type->invalid ||
        posenc_frequencies_create(&type->spec, length, &frequencies, NULL, &error))
        return NULL;
    if (!posenc_layer_facts_of(type, frequencies, facts, &error))
        return frequencies;
    posenc_frequencies_destroy(frequencies);
    return NULL;
}

static int run(const cli_arguments *arguments) {
    const char *path = cli_operand(arguments, 0);
    posenc_model *model;
    posenc_error error;
    if (posenc_model_open(path, &model, &error))
        return cli_fail_error(arguments, path, &error);
    if (cli_wants_json(arguments))
        inspect_print_json(path, model);
    else
        inspect_print_page(path, model);
    posenc_model_free(model);
    return CLI_DONE;
}

const cli_command command_inspect = {
    "inspect",
    "PATH",
    1,
    "what positional encoding a model has, by its own files",
    "PATH is a config.json, a params.json, a GGUF file or the folder of a model. What the\n"
    "file leaves out comes from the rules of its model type; every value says where it is\n"
    "from. Warnings name what contradicts itself or is known to be read differently.\n\n"
    "  posenc inspect models/Llama-3.2-1B",
    NULL,
    NULL,
    run};
