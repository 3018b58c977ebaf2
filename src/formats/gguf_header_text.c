/* A text of our own among the keys of a GGUF file. SPDX-License-Identifier: MIT */
#include "base/byte_order.h"
#include "base/fail.h"
#include "formats/gguf_file.h"
#include "formats/header_edits.h"

#include <stdlib.h>
#include <string.h>

enum { PENC_GGUF_MAX_FILL = 1 << 20 }; /* an alignment above that is not worth its fill */

static size_t penc_gguf_length_size(const penc_gguf *gguf) {
    return gguf->info.version == 1 ? 4 : 8;
}

/* Where the number of keys stands. */
static uint64_t penc_gguf_count_place(const penc_gguf *gguf) {
    return 4 + 4 + penc_gguf_length_size(gguf);
}

/* Where the descriptions of tensors begin, which is where the keys end. */
static uint64_t penc_gguf_keys_end(const penc_gguf *gguf) {
    uint64_t end = gguf->info.data_offset;
    for (size_t i = 0; i < gguf->source.count; i++) {
        if (gguf->source.entries[i].place < end)
            end = gguf->source.entries[i].place;
    }
    return end;
}

static void penc_gguf_store(const penc_gguf *gguf, uint64_t number, size_t bytes,
                            unsigned char *to) {
    for (size_t i = 0; i < bytes; i++)
        to[gguf->info.big_endian ? bytes - 1 - i : i] = (unsigned char)(number >> 8 * i);
}

static posenc_status penc_gguf_edit_count(const penc_gguf *gguf, size_t count,
                                          penc_header_edits *edits, posenc_error *error) {
    size_t size = penc_gguf_length_size(gguf);
    unsigned char *to =
        penc_header_edits_add(edits, penc_gguf_count_place(gguf), (uint64_t)size, size);
    if (!to)
        return penc_header_no_memory(error);
    penc_gguf_store(gguf, count, size, to);
    return POSENC_OK;
}

/* Key, type, text and spaces in `bytes` bytes. */
static void penc_gguf_write_text(const penc_gguf *gguf, const char *key, const char *text,
                                 size_t bytes, unsigned char *to) {
    size_t size = penc_gguf_length_size(gguf), key_length = strlen(key);
    size_t text_bytes = bytes - 2 * size - 4 - key_length;
    penc_gguf_store(gguf, key_length, size, to);
    memcpy(to + size, key, key_length);
    to += size + key_length;
    penc_gguf_store(gguf, PENC_GGUF_STRING, 4, to);
    penc_gguf_store(gguf, text_bytes, size, to + 4);
    memset(to + 4 + size, ' ', text_bytes);
    memcpy(to + 4 + size, text, strlen(text));
}

posenc_status penc_gguf_put_text(const penc_gguf *gguf, const char *key, const char *text,
                                 penc_header_edits *edits, posenc_error *error) {
    const penc_input *input = &gguf->source.input;
    size_t bytes = 2 * penc_gguf_length_size(gguf) + 4 + strlen(key) + strlen(text);
    uint64_t unit =
        gguf->info.alignment > PENC_HEADER_UNIT ? gguf->info.alignment : PENC_HEADER_UNIT;
    uint64_t mask = unit - 1; /* both are powers of 2 */
    if (mask >= PENC_GGUF_MAX_FILL)
        return penc_input_fail_size(input, POSENC_UNSUPPORTED, "general.alignment",
                                    gguf->info.alignment, "be at most 2^20", 0, error);
    bytes = (size_t)((bytes + mask) & ~mask);
    if (gguf->info.data_offset + bytes > PENC_GGUF_MAX_METADATA ||
        gguf->info.key_count >= PENC_GGUF_MAX_KEYS)
        return penc_input_fail(input, POSENC_UNSUPPORTED, "metadata", "have room for a key more", 0,
                               error);
    posenc_status status = penc_gguf_edit_count(gguf, gguf->info.key_count + 1, edits, error);
    unsigned char *to =
        status ? NULL : penc_header_edits_add(edits, penc_gguf_keys_end(gguf), 0, bytes);
    if (to)
        penc_gguf_write_text(gguf, key, text, bytes, to);
    return status || to ? status : penc_header_no_memory(error);
}

static posenc_status penc_gguf_bad_text(const penc_gguf *gguf, const char *key,
                                        const penc_gguf_value *value, const char *must,
                                        posenc_error *error) {
    penc_input_fail(&gguf->source.input, POSENC_FORMAT, "text", must, value->place, error);
    penc_fail_name(error, key, strlen(key));
    return POSENC_FORMAT;
}

posenc_status penc_gguf_read_text(const penc_gguf *gguf, const char *key,
                                  char text[PENC_MAX_HEADER_TEXT], int *found,
                                  posenc_error *error) {
    penc_gguf_value value;
    posenc_status status = penc_gguf_find(gguf, key, &value, error);
    *found = 0;
    if (status || value.type == PENC_GGUF_NONE)
        return status;
    if (value.type != PENC_GGUF_STRING || value.count > PENC_GGUF_MAX_FILL)
        return penc_gguf_bad_text(gguf, key, &value, "be one that posenc wrote", error);
    char *whole = malloc((size_t)value.count + 1);
    if (!whole)
        return penc_header_no_memory(error);
    status = penc_gguf_text(gguf, &value, key, whole, (size_t)value.count + 1, error);
    if (!status) {
        penc_header_trim(whole);
        if (strlen(whole) < PENC_MAX_HEADER_TEXT)
            strcpy(text, whole);
        else
            status = penc_gguf_bad_text(gguf, key, &value, "be one that posenc wrote", error);
    }
    free(whole);
    *found = !status;
    return status;
}

posenc_status penc_gguf_drop_text(const penc_gguf *gguf, const char *key, penc_header_edits *edits,
                                  posenc_error *error) {
    penc_gguf_value value;
    posenc_status status = penc_gguf_find(gguf, key, &value, error);
    if (status)
        return status;
    uint64_t head = 2 * penc_gguf_length_size(gguf) + 4 + strlen(key);
    uint64_t bytes = head + value.count;
    if (value.type != PENC_GGUF_STRING || bytes & (gguf->info.alignment - 1))
        return penc_gguf_bad_text(
            gguf, key, &value, "fill whole units of general.alignment, as it was written", error);
    status = penc_gguf_edit_count(gguf, gguf->info.key_count - 1, edits, error);
    if (!status && !penc_header_edits_add(edits, value.place - head, bytes, 0))
        status = penc_header_no_memory(error);
    return status;
}
