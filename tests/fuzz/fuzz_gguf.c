/* Any bytes as a GGUF file. SPDX-License-Identifier: MIT */
#include "formats/gguf.h"

#include "fuzz_tensors.h"

static void use_key(const penc_gguf *gguf, size_t index) {
    char name[PENC_NAME_BYTES], text[64];
    double real;
    int64_t integer;
    posenc_error error;
    penc_gguf_value value, found, element;
    penc_gguf_walk walk;
    FUZZ_CHECK(!penc_gguf_key(gguf, index, name, &value, &error));
    FUZZ_CHECK(!penc_gguf_find(gguf, name, &found, &error) && found.place == value.place);
    (void)penc_gguf_real(&value, &real);
    (void)penc_gguf_integer(&value, &integer);
    posenc_status status = penc_gguf_text(gguf, &value, name, text, sizeof text, &error);
    if (status)
        fuzz_check_error(status, &error);
    status = penc_gguf_reals(gguf, &value, name, 0, 1, &real, &error);
    if (status)
        fuzz_check_error(status, &error);
    penc_gguf_walk_begin(gguf, &value, &walk);
    while (walk.left && !penc_gguf_walk_next(&walk, &element, &error))
        (void)penc_gguf_real(&element, &real);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    penc_gguf *gguf;
    posenc_error error;
    posenc_status status = penc_gguf_open(fuzz_file(data, size), &gguf, &error);
    if (status) {
        fuzz_check_error(status, &error);
        FUZZ_CHECK(!gguf);
        return 0;
    }
    for (size_t i = 0; i < penc_gguf_about(gguf)->key_count; i++)
        use_key(gguf, i);
    fuzz_use_tensors(penc_gguf_tensors(gguf));
    penc_gguf_close(gguf);
    return 0;
}
