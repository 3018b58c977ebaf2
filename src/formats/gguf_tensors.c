/* The descriptions of tensors in a GGUF file. SPDX-License-Identifier: MIT */
#include "formats/gguf_file.h"

#include "base/fail.h"

#include <string.h>

enum { PENC_GGUF_ENTRY_WINDOW = 1024 }; /* more than a name, 16 sizes, type and offset */

/* GGUF lists the contiguous axis first. */
static posenc_status penc_gguf_take_shape(penc_gguf_cursor *cursor, penc_tensor *tensor) {
    uint64_t rank, place = cursor->at;
    posenc_status status = penc_gguf_take(cursor, 4, &rank);
    if (status)
        return status;
    if (rank > PENC_TENSOR_MAX_RANK)
        return penc_gguf_fail(cursor, POSENC_UNSUPPORTED, "number of axes", "be at most 16", place);
    tensor->rank = (size_t)rank;
    for (size_t i = tensor->rank; i > 0 && !status; i--)
        status = penc_gguf_take_length(cursor, &tensor->shape[i - 1]);
    return status;
}

static posenc_status penc_gguf_take_data(penc_gguf_cursor *cursor, uint64_t alignment,
                                         penc_tensor *tensor) {
    uint64_t number, place = cursor->at;
    posenc_status status = penc_gguf_take(cursor, 4, &number);
    if (status)
        return status;
    tensor->type_number = (uint32_t)number;
    tensor->type = penc_tensor_type_of_gguf(tensor->type_number);
    const char *must = penc_tensor_measure(tensor, 1);
    if (must)
        return penc_gguf_fail(cursor, POSENC_FORMAT, "shape", must, place);
    place = cursor->at;
    status = penc_gguf_take(cursor, 8, &tensor->offset);
    if (!status && tensor->offset & (alignment - 1)) {
        penc_gguf_fail(cursor, POSENC_FORMAT, "offset", "be a multiple of the alignment", place);
        penc_fail_limit(cursor->error, "alignment", alignment);
        return POSENC_FORMAT;
    }
    return status;
}

posenc_status penc_gguf_take_tensor(penc_gguf_cursor *cursor, uint64_t alignment,
                                    penc_tensor *tensor) {
    memset(tensor, 0, sizeof *tensor);
    tensor->big_endian = cursor->big;
    posenc_status status =
        penc_gguf_take_name(cursor, "tensor name", tensor->name, &tensor->name_length);
    if (status)
        return status;
    status = penc_gguf_take_shape(cursor, tensor);
    if (!status)
        status = penc_gguf_take_data(cursor, alignment, tensor);
    if (status)
        penc_fail_name(cursor->error, tensor->name, tensor->name_length);
    return status;
}

posenc_status penc_gguf_read_tensor(const penc_tensor_source *source, const penc_entry *entry,
                                    penc_tensor *tensor, posenc_error *error) {
    const penc_gguf *gguf = (const penc_gguf *)source;
    unsigned char window[PENC_GGUF_ENTRY_WINDOW];
    penc_gguf_cursor cursor = penc_gguf_cursor_at(gguf, entry->place, window, sizeof window, error);
    posenc_status status = penc_gguf_take_tensor(&cursor, gguf->info.alignment, tensor);
    if (status)
        return status;
    if (tensor->offset > INT64_MAX - gguf->info.data_offset) {
        status = penc_gguf_fail(&cursor, POSENC_OVERFLOW, "offset", "be a place in a file",
                                cursor.at - 8);
        penc_fail_name(error, tensor->name, tensor->name_length);
        return status;
    }
    tensor->offset += gguf->info.data_offset;
    return POSENC_OK;
}
