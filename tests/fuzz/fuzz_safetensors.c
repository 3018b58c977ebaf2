/* Any bytes as a safetensors file. SPDX-License-Identifier: MIT */
#include "formats/safetensors.h"

#include "fuzz_tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    penc_safetensors *file;
    posenc_error error;
    posenc_status status = penc_safetensors_open(fuzz_file(data, size), &file, &error);
    if (status) {
        fuzz_check_error(status, &error);
        FUZZ_CHECK(!file);
        return 0;
    }
    fuzz_use_tensors(penc_safetensors_tensors(file));
    for (size_t i = 0; i < penc_safetensors_metadata_count(file); i++) {
        char key[PENC_NAME_BYTES], text[40];
        size_t length, again;
        int found;
        FUZZ_CHECK(!penc_safetensors_metadata(file, i, key, text, sizeof text, &length, &error));
        FUZZ_CHECK(
            !penc_safetensors_find_metadata(file, key, text, sizeof text, &again, &found, &error));
        FUZZ_CHECK(found && again == length);
    }
    penc_safetensors_close(file);
    return 0;
}
