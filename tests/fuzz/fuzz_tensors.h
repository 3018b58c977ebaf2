/* Using every tensor of an open file. SPDX-License-Identifier: MIT */
#ifndef FUZZ_TENSORS_H
#define FUZZ_TENSORS_H

#include "formats/tensor_source.h"
#include "fuzz_file.h"

/* What opening has accepted is inside the file, can be read, and is found by its name. */
static inline void fuzz_use_tensors(const penc_tensor_source *source) {
    for (size_t i = 0; i < source->count; i++) {
        penc_tensor tensor, found;
        int there;
        posenc_error error;
        FUZZ_CHECK(!source->format->read(source, &source->entries[i], &tensor, &error));
        FUZZ_CHECK(tensor.offset <= source->input.size &&
                   tensor.bytes <= source->input.size - tensor.offset);
        FUZZ_CHECK(!penc_tensor_source_find(source, tensor.name, &found, &there, &error));
        FUZZ_CHECK(there && found.offset == tensor.offset);
        uint64_t rows = penc_tensor_rows(&tensor), row_bytes = penc_tensor_row_bytes(&tensor);
        if (!rows || !row_bytes || row_bytes > 1 << 16 || !tensor.bytes)
            continue;
        FUZZ_CHECK(rows * row_bytes == tensor.bytes);
        unsigned char *row = malloc(row_bytes);
        FUZZ_CHECK(!penc_tensor_read_rows(source, &tensor, rows - 1, 1, row, &error));
        FUZZ_CHECK(penc_tensor_read_rows(source, &tensor, rows, 1, row, &error));
        free(row);
    }
}

#endif
