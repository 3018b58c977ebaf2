/* Any bytes as an .npy file. SPDX-License-Identifier: MIT */
#include "posenc/npy.h"

#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    posenc_npy_reader *reader;
    posenc_npy_info info;
    posenc_error error;
    posenc_status status = posenc_npy_open(fuzz_file(data, size), &reader, &info, &error);
    if (status) {
        fuzz_check_error(status, &error);
        FUZZ_CHECK(!reader);
        return 0;
    }
    size_t element = posenc_dtype_bytes(info.dtype),
           count = info.count < 64 ? (size_t)info.count : 64;
    FUZZ_CHECK(info.data_offset + info.count * element <= size);
    void *elements = malloc(count * element + 1);
    FUZZ_CHECK(!posenc_npy_read(reader, info.count - count, count, elements, &error));
    FUZZ_CHECK(posenc_npy_read(reader, info.count, 1, elements, &error) == POSENC_OUT_OF_RANGE);
    free(elements);
    posenc_npy_close(reader);
    return 0;
}
