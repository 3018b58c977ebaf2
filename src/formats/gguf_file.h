/* The inside of an open GGUF file. SPDX-License-Identifier: MIT */
#ifndef PENC_GGUF_FILE_H
#define PENC_GGUF_FILE_H

#include "formats/gguf_cursor.h"

struct penc_gguf {
    penc_tensor_source source;
    penc_gguf_info info;
    penc_entry *keys; /* in the order of the file; `begin` is where the value stands */
};

/* A cursor at `place` whose window is the caller's memory. */
penc_gguf_cursor penc_gguf_cursor_at(const penc_gguf *gguf, uint64_t place, unsigned char *window,
                                     size_t capacity, posenc_error *error);

/* A key's name, type and value; of a long value only the head. */
posenc_status penc_gguf_take_key(penc_gguf_cursor *cursor, char name[PENC_NAME_BYTES],
                                 size_t *length, penc_gguf_value *value);

/* A tensor's description; `offset` counts from the beginning of the data. */
posenc_status penc_gguf_take_tensor(penc_gguf_cursor *cursor, uint64_t alignment,
                                    penc_tensor *tensor);

/* The same of an entry, with the offset in the file. `source` is a GGUF's. */
posenc_status penc_gguf_read_tensor(const penc_tensor_source *source, const penc_entry *entry,
                                    penc_tensor *tensor, posenc_error *error);

/* The name of a key's or tensor's entry. `source` is a GGUF's. */
posenc_status penc_gguf_entry_name(const void *source, const penc_entry *entry,
                                   char name[PENC_NAME_BYTES], size_t *length, posenc_error *error);

#endif
