/* Any bytes as an .npz archive. SPDX-License-Identifier: MIT */
#include "formats/npz_read.h"

#include "fuzz_file.h"

#include <string.h>

/* Every member lies in the file and has a name; its ends can be read. */
static posenc_status take(void *context, const penc_npz_member *member, posenc_error *error) {
    const penc_input *input = context;
    char byte;
    FUZZ_CHECK(member->place <= input->size && member->bytes <= input->size - member->place);
    FUZZ_CHECK(memchr(member->name, '\0', sizeof member->name));
    if (member->bytes) {
        FUZZ_CHECK(!penc_input_read(input, member->place, &byte, 1, error));
        FUZZ_CHECK(!penc_input_read(input, member->place + member->bytes - 1, &byte, 1, error));
    }
    return POSENC_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    penc_input input;
    posenc_error error;
    FUZZ_CHECK(!penc_input_open(fuzz_file(data, size), &input, &error));
    posenc_status status = penc_npz_members(&input, take, &input, &error);
    if (status)
        fuzz_check_error(status, &error);
    penc_input_close(&input);
    return 0;
}
