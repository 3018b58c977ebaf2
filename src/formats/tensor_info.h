/* What a checkpoint says of one tensor, whatever its format. SPDX-License-Identifier: MIT */
#ifndef PENC_TENSOR_INFO_H
#define PENC_TENSOR_INFO_H

#include "formats/entry_list.h"

/* Every element type of GGUF and safetensors files that is known: name, number in GGUF files (-1: none), word in
 * safetensors headers ("": none), elements and bytes of a block. Types of other numbers or words are kept as
 * UNKNOWN: a newer file can still be inspected. */
#define PENC_TENSOR_TYPE_LIST(X)                                                                   \
    X(F32, 0, "F32", 1, 4)                                                                         \
    X(F16, 1, "F16", 1, 2)                                                                         \
    X(Q4_0, 2, "", 32, 18)                                                                         \
    X(Q4_1, 3, "", 32, 20)                                                                         \
    X(Q5_0, 6, "", 32, 22)                                                                         \
    X(Q5_1, 7, "", 32, 24)                                                                         \
    X(Q8_0, 8, "", 32, 34)                                                                         \
    X(Q2_K, 10, "", 256, 84)                                                                       \
    X(Q3_K, 11, "", 256, 110)                                                                      \
    X(Q4_K, 12, "", 256, 144)                                                                      \
    X(Q5_K, 13, "", 256, 176)                                                                      \
    X(Q6_K, 14, "", 256, 210)                                                                      \
    X(Q8_K, 15, "", 256, 292)                                                                      \
    X(IQ2_XXS, 16, "", 256, 66)                                                                    \
    X(IQ2_XS, 17, "", 256, 74)                                                                     \
    X(IQ3_XXS, 18, "", 256, 98)                                                                    \
    X(IQ1_S, 19, "", 256, 50)                                                                      \
    X(IQ4_NL, 20, "", 32, 18)                                                                      \
    X(IQ3_S, 21, "", 256, 110)                                                                     \
    X(IQ2_S, 22, "", 256, 82)                                                                      \
    X(IQ4_XS, 23, "", 256, 136)                                                                    \
    X(I8, 24, "I8", 1, 1)                                                                          \
    X(I16, 25, "I16", 1, 2)                                                                        \
    X(I32, 26, "I32", 1, 4)                                                                        \
    X(I64, 27, "I64", 1, 8)                                                                        \
    X(F64, 28, "F64", 1, 8)                                                                        \
    X(IQ1_M, 29, "", 256, 56)                                                                      \
    X(BF16, 30, "BF16", 1, 2)                                                                      \
    X(TQ1_0, 34, "", 256, 54)                                                                      \
    X(TQ2_0, 35, "", 256, 66)                                                                      \
    X(MXFP4, 39, "", 32, 17)                                                                       \
    X(NVFP4, 40, "", 64, 36)                                                                       \
    X(BOOL, -1, "BOOL", 1, 1)                                                                      \
    X(U8, -1, "U8", 1, 1)                                                                          \
    X(U16, -1, "U16", 1, 2)                                                                        \
    X(U32, -1, "U32", 1, 4)                                                                        \
    X(U64, -1, "U64", 1, 8)                                                                        \
    X(F8_E4M3, -1, "F8_E4M3", 1, 1)                                                                \
    X(F8_E5M2, -1, "F8_E5M2", 1, 1)                                                                \
    X(F8_E4M3FNUZ, -1, "F8_E4M3FNUZ", 1, 1)                                                        \
    X(F8_E5M2FNUZ, -1, "F8_E5M2FNUZ", 1, 1)                                                        \
    X(F8_E8M0, -1, "F8_E8M0", 1, 1)                                                                \
    X(F6_E2M3, -1, "F6_E2M3", 4, 3)                                                                \
    X(F6_E3M2, -1, "F6_E3M2", 4, 3)                                                                \
    X(F4, -1, "F4", 2, 1)                                                                          \
    X(C64, -1, "C64", 1, 8)

typedef enum penc_tensor_type {
    PENC_TENSOR_UNKNOWN = 0,
#define PENC_TENSOR_TYPE_ENTRY(name, number, word, elements, bytes) PENC_TENSOR_##name,
    PENC_TENSOR_TYPE_LIST(PENC_TENSOR_TYPE_ENTRY)
#undef PENC_TENSOR_TYPE_ENTRY
        PENC_TENSOR_TYPES
} penc_tensor_type;

enum { PENC_TENSOR_MAX_RANK = 16 };

typedef struct penc_tensor {
    char name[PENC_NAME_BYTES];
    size_t name_length;
    penc_tensor_type type;
    uint32_t type_number; /* in a GGUF file, for messages about types that are unknown */
    int big_endian;       /* byte order of the elements */
    size_t rank;
    uint64_t shape
        [PENC_TENSOR_MAX_RANK]; /* the last axis is contiguous, whatever the format's own order */
    uint64_t offset;            /* byte of the file where the data begin */
    uint64_t bytes;             /* 0 where the type is unknown */
} penc_tensor;

/* "F32", "Q4_K" ...; "unknown". */
const char *penc_tensor_type_name(penc_tensor_type type);

/* Elements and bytes of a block: both are 0 for UNKNOWN. */
uint32_t penc_tensor_block_elements(penc_tensor_type type);
uint32_t penc_tensor_block_bytes(penc_tensor_type type);

/* UNKNOWN where nothing fits. */
penc_tensor_type penc_tensor_type_of_gguf(uint32_t number);
penc_tensor_type penc_tensor_type_of_word(const char *word, size_t length);

/* Elements of a shape; returns 0 if they are more than INT64_MAX. */
int penc_tensor_count(const penc_tensor *tensor, uint64_t *count);

/* Rows (along the last axis) and the bytes of each; rows are 0 bytes where the type is unknown or blocks cross rows. */
uint64_t penc_tensor_rows(const penc_tensor *tensor);
uint64_t penc_tensor_row_bytes(const penc_tensor *tensor);

/* Sets `bytes` from type and shape. Returns NULL, or what the shape must be (in a constant sentence). Blocks run along
 * the last axis in GGUF files; `whole_rows` demands that they do not cross rows. */
const char *penc_tensor_measure(penc_tensor *tensor, int whole_rows);

#endif
