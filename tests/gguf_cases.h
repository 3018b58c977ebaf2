/* GGUF files built by hand, after the format's description and not after the reader.
 * SPDX-License-Identifier: MIT */
#ifndef GGUF_CASES_H
#define GGUF_CASES_H

#include "file_cases.h"
#include "formats/gguf.h"

/* Numbers of the types as they stand in files. */
enum {
    T_U8,
    T_I8,
    T_U16,
    T_I16,
    T_U32,
    T_I32,
    T_F32,
    T_BOOL,
    T_STRING,
    T_ARRAY,
    T_U64,
    T_I64,
    T_F64
};

typedef struct gguf_image {
    image f;
    int length_bytes; /* 4 in version 1 */
} gguf_image;

static inline gguf_image gguf_begin(uint32_t version, int big, uint64_t tensors, uint64_t keys) {
    gguf_image g = {{NULL, 0, 0, big}, version == 1 ? 4 : 8};
    add_bytes(&g.f, "GGUF", 4);
    add_number(&g.f, version, 4);
    add_number(&g.f, tensors, (size_t)g.length_bytes);
    add_number(&g.f, keys, (size_t)g.length_bytes);
    return g;
}

static inline void add_length(gguf_image *g, uint64_t length) {
    add_number(&g->f, length, (size_t)g->length_bytes);
}

static inline void add_text(gguf_image *g, const char *text) {
    add_length(g, strlen(text));
    add_bytes(&g->f, text, strlen(text));
}

static inline void add_key(gguf_image *g, const char *key, uint32_t type) {
    add_text(g, key);
    add_number(&g->f, type, 4);
}

static inline void add_key_number(gguf_image *g, const char *key, uint32_t type, uint64_t number,
                                  size_t bytes) {
    add_key(g, key, type);
    add_number(&g->f, number, bytes);
}

static inline void add_key_text(gguf_image *g, const char *key, const char *text) {
    add_key(g, key, T_STRING);
    add_text(g, text);
}

static inline void add_array(gguf_image *g, uint32_t element, uint64_t count) {
    add_number(&g->f, element, 4);
    add_length(g, count);
}

/* `shape` in the file's order, the contiguous axis first. */
static inline void add_tensor(gguf_image *g, const char *name, uint32_t rank, const uint64_t *shape,
                              uint32_t type, uint64_t offset) {
    add_text(g, name);
    add_number(&g->f, rank, 4);
    for (uint32_t i = 0; i < rank; i++)
        add_length(g, shape[i]);
    add_number(&g->f, type, 4);
    add_number(&g->f, offset, 8);
}

static inline void pad_to(gguf_image *g, size_t alignment) {
    add_zeros(&g->f, (alignment - g->f.size % alignment) % alignment);
}

static inline void gguf_end(gguf_image *g, const char *path) {
    write_file(path, g->f.bytes, g->f.size);
    image_free(&g->f);
}

static inline uint64_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint64_t bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- The reader ---- */

static inline penc_gguf *open_gguf(const char *path) {
    penc_gguf *gguf;
    posenc_error error;
    assert_done(penc_gguf_open(path, &gguf, &error), &error);
    assert_non_null(gguf);
    return gguf;
}

static inline penc_gguf_value value_of(const penc_gguf *gguf, const char *key) {
    penc_gguf_value value;
    posenc_error error;
    assert_done(penc_gguf_find(gguf, key, &value, &error), &error);
    return value;
}

/* Every version in either byte order. */
typedef struct gguf_variant {
    uint32_t version;
    int big;
} gguf_variant;

static const gguf_variant variants[] = {{1, 0}, {2, 0}, {3, 0}, {1, 1}, {2, 1}, {3, 1}};

#endif
