/* GGUF files: keys with typed values, and the index of tensors. Versions 1 to 3, either byte order.
 *
 * Opening walks once through the metadata in windows and keeps 24 bytes per key and tensor; texts and arrays stay
 * in the file, however long they are, and are read when asked for. One open file may be used by several threads.
 * Every error names the file and the byte, and the key or tensor where there is one.
 *
 * Source: ggml, docs/gguf.md. SPDX-License-Identifier: MIT */
#ifndef PENC_GGUF_H
#define PENC_GGUF_H

#include "formats/tensor_source.h"

/* Limits; files beyond them are refused. No model comes near. */
#define PENC_GGUF_MAX_METADATA (UINT64_C(1) << 30) /* bytes before the data */
#define PENC_GGUF_MAX_KEYS     (UINT64_C(1) << 19)
#define PENC_GGUF_MAX_TENSORS  (UINT64_C(1) << 20)
#define PENC_GGUF_MAX_NESTING  8 /* arrays within arrays */

/* Name, number in the file, bytes of a value (0: it varies), word for messages. */
#define PENC_GGUF_TYPE_LIST(X)                                                                     \
    X(U8, 0, 1, "uint8")                                                                           \
    X(I8, 1, 1, "int8")                                                                            \
    X(U16, 2, 2, "uint16")                                                                         \
    X(I16, 3, 2, "int16")                                                                          \
    X(U32, 4, 4, "uint32")                                                                         \
    X(I32, 5, 4, "int32")                                                                          \
    X(F32, 6, 4, "float32")                                                                        \
    X(BOOL, 7, 1, "bool")                                                                          \
    X(STRING, 8, 0, "string")                                                                      \
    X(ARRAY, 9, 0, "array")                                                                        \
    X(U64, 10, 8, "uint64")                                                                        \
    X(I64, 11, 8, "int64")                                                                         \
    X(F64, 12, 8, "float64")

typedef enum penc_gguf_type {
#define PENC_GGUF_TYPE_ENTRY(name, number, bytes, word) PENC_GGUF_##name = number,
    PENC_GGUF_TYPE_LIST(PENC_GGUF_TYPE_ENTRY)
#undef PENC_GGUF_TYPE_ENTRY
        PENC_GGUF_TYPES,
    PENC_GGUF_NONE = -1 /* a key that is not there */
} penc_gguf_type;

/* "uint8" ... "float64", "none". */
const char *penc_gguf_type_word(penc_gguf_type type);

typedef struct penc_gguf_value {
    penc_gguf_type type;
    penc_gguf_type element; /* of an array */
    uint64_t count;         /* elements of an array, bytes of a string, else 1 */
    uint64_t place; /* byte of the file where the number, the text or the first element stands */
    union {
        uint64_t u; /* U8 ... U64, BOOL (0 or 1) */
        int64_t i;  /* I8 ... I64 */
        double f;   /* F32, F64 */
    } as;
} penc_gguf_value;

typedef struct penc_gguf_info {
    const char *path;
    uint32_t version;
    int big_endian;
    size_t key_count, tensor_count;
    uint64_t alignment;   /* of the data: general.alignment, else 32 */
    uint64_t data_offset; /* byte of the file where the data begin */
    uint64_t file_size;
} penc_gguf_info;

typedef struct penc_gguf penc_gguf;

/* Opens and checks the whole metadata; on failure *gguf is NULL. */
posenc_status penc_gguf_open(const char *path, penc_gguf **gguf, posenc_error *error);
void penc_gguf_close(penc_gguf *gguf);
const penc_gguf_info *penc_gguf_about(const penc_gguf *gguf);

/* The tensors: what tensor_source.h does with them. */
const penc_tensor_source *penc_gguf_tensors(const penc_gguf *gguf);

/* ---- Keys ---- */

/* Key number `index` < key_count in the order of the file; `name` may be NULL. */
posenc_status penc_gguf_key(const penc_gguf *gguf, size_t index, char name[PENC_NAME_BYTES],
                            penc_gguf_value *value, posenc_error *error);

/* The value of a key; its type is NONE if the key is not there, which is no error. */
posenc_status penc_gguf_find(const penc_gguf *gguf, const char *key, penc_gguf_value *value,
                             posenc_error *error);

/* A number of any integer or float type as a real; 0 for other types. Integers beyond 2^53 are rounded. */
int penc_gguf_real(const penc_gguf_value *value, double *real);

/* An integer type's number; 0 for other types, and beyond int64. */
int penc_gguf_integer(const penc_gguf_value *value, int64_t *integer);

/* The text of a STRING with a terminating NUL. Fails with FORMAT if it is no UTF-8 or has a NUL inside, with
 * OUT_OF_RANGE if it does not fit `capacity`. `argument` stands in such an error: the key. */
posenc_status penc_gguf_text(const penc_gguf *gguf, const penc_gguf_value *value,
                             const char *argument, char *text, size_t capacity,
                             posenc_error *error);

/* A walk along an array of any type, nested ones too; reads ahead in a window of its own. */
typedef struct penc_gguf_walk {
    const penc_gguf *gguf;
    penc_gguf_type type; /* of the elements */
    uint64_t left;       /* elements still to come */
    uint64_t place;      /* of the next one */
    penc_window window;
    unsigned char bytes[4096];
} penc_gguf_walk;

void penc_gguf_walk_begin(const penc_gguf *gguf, const penc_gguf_value *array,
                          penc_gguf_walk *walk);

/* The next element; call it `array.count` times at most. */
posenc_status penc_gguf_walk_next(penc_gguf_walk *walk, penc_gguf_value *element,
                                  posenc_error *error);

/* Elements `first` ... of an array of numbers or bools, as reals. Fails with OUT_OF_RANGE beyond the array, with
 * FORMAT if the array is of another type; `argument` stands in such an error: the key. */
posenc_status penc_gguf_reals(const penc_gguf *gguf, const penc_gguf_value *array,
                              const char *argument, uint64_t first, size_t count, double *reals,
                              posenc_error *error);

#endif
