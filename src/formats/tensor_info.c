/* Element types and sizes of tensors. SPDX-License-Identifier: MIT */
#include "formats/tensor_info.h"

#include <string.h>

static const struct {
    const char *name;
    const char *word;
    int32_t number;
    uint32_t elements, bytes;
} penc_tensor_types[PENC_TENSOR_TYPES] = {{"unknown", "", -1, 0, 0},
#define PENC_ROW(name, number, word, elements, bytes) {#name, word, number, elements, bytes},
                                          PENC_TENSOR_TYPE_LIST(PENC_ROW)
#undef PENC_ROW
};

const char *penc_tensor_type_name(penc_tensor_type type) {
    return penc_tensor_types[type].name;
}

uint32_t penc_tensor_block_elements(penc_tensor_type type) {
    return penc_tensor_types[type].elements;
}

uint32_t penc_tensor_block_bytes(penc_tensor_type type) {
    return penc_tensor_types[type].bytes;
}

penc_tensor_type penc_tensor_type_of_gguf(uint32_t number) {
    for (int type = 1; type < PENC_TENSOR_TYPES; type++) {
        if (number <= INT32_MAX && penc_tensor_types[type].number == (int32_t)number)
            return (penc_tensor_type)type;
    }
    return PENC_TENSOR_UNKNOWN;
}

penc_tensor_type penc_tensor_type_of_word(const char *word, size_t length) {
    for (int type = 1; length && type < PENC_TENSOR_TYPES; type++) {
        if (strlen(penc_tensor_types[type].word) == length &&
            memcmp(penc_tensor_types[type].word, word, length) == 0)
            return (penc_tensor_type)type;
    }
    return PENC_TENSOR_UNKNOWN;
}

int penc_tensor_count(const penc_tensor *tensor, uint64_t *count) {
    uint64_t product = 1;
    int empty = 0;
    for (size_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] == 0)
            empty = 1;
        else if (product > INT64_MAX / tensor->shape[i])
            return 0;
        else
            product *= tensor->shape[i];
    }
    *count = empty ? 0 : product;
    return 1;
}

static uint64_t penc_tensor_row_elements(const penc_tensor *tensor) {
    return tensor->rank ? tensor->shape[tensor->rank - 1] : 1;
}

uint64_t penc_tensor_rows(const penc_tensor *tensor) {
    uint64_t rows = 1;
    for (size_t i = 0; i + 1 < tensor->rank; i++)
        rows *= tensor->shape[i]; /* no overflow where the elements are counted */
    return rows;
}

uint64_t penc_tensor_row_bytes(const penc_tensor *tensor) {
    uint64_t elements = penc_tensor_block_elements(tensor->type);
    uint64_t row = penc_tensor_row_elements(tensor);
    return elements && row % elements == 0 ? row / elements * penc_tensor_block_bytes(tensor->type)
                                           : 0;
}

const char *penc_tensor_measure(penc_tensor *tensor, int whole_rows) {
    uint64_t count, elements = penc_tensor_block_elements(tensor->type);
    uint64_t block = penc_tensor_block_bytes(tensor->type);
    tensor->bytes = 0;
    if (!penc_tensor_count(tensor, &count))
        return "have at most 2^63 - 1 elements";
    if (!elements)
        return NULL;
    uint64_t run = whole_rows && tensor->rank ? tensor->shape[tensor->rank - 1] : count;
    if (run % elements)
        return whole_rows ? "be whole blocks of the type along the contiguous axis"
                          : "fill whole bytes";
    if (count / elements > INT64_MAX / block)
        return "take at most 2^63 - 1 bytes";
    tensor->bytes = count / elements * block;
    return NULL;
}
