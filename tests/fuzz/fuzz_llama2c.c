/* Any bytes as a llama2.c file, and as a file whose format has to be found out. SPDX-License-Identifier: MIT */
#include "formats/tensor_set.h"

#include "fuzz_tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    penc_llama2c *file;
    penc_tensor_set *set;
    posenc_error error;
    const char *path = fuzz_file(data, size);
    posenc_status status = penc_llama2c_open(path, &file, &error);
    if (status)
        fuzz_check_error(status, &error);
    else
        fuzz_use_tensors(penc_llama2c_tensors(file));
    penc_llama2c_close(file);
    status = penc_tensor_set_open(path, &set, &error);
    if (status)
        fuzz_check_error(status, &error);
    penc_tensor_set_close(set);
    return 0;
}
