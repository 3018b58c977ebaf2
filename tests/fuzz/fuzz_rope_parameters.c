/* Any bytes as a rope_parameters block, on to the frequencies of a head. SPDX-License-Identifier: MIT */
#include "posenc/rope_parameters.h"

#include "fuzz_file.h"

static void use(posenc_rope_parameters *parameters, posenc_notes *notes) {
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_frequencies *frequencies = NULL;
    posenc_error error;
    spec.head_dim = 16;
    spec.max_positions = 4096;
    notes->count = 0;
    posenc_status status = posenc_rope_parameters_apply(parameters, &spec, notes, &error);
    if (!status)
        status = posenc_frequencies_create(&spec, 8192, &frequencies, notes, &error);
    if (status)
        fuzz_check_error(status, &error);
    posenc_frequencies_destroy(frequencies);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    posenc_note list[8];
    posenc_notes notes = {list, 8, 0};
    posenc_rope_parameters *parameters;
    posenc_error error;
    posenc_status status =
        posenc_rope_parameters_parse((const char *)data, size, &parameters, &notes, &error);
    if (status)
        fuzz_check_error(status, &error);
    else
        use(parameters, &notes);
    posenc_rope_parameters_free(parameters);
    return 0;
}
