/* One open file of tensors, whatever its format: what the readers of formats share, and what users of tensors see of
 * them. A format's own struct begins with this one.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_TENSOR_SOURCE_H
#define PENC_TENSOR_SOURCE_H

#include "formats/input_file.h"
#include "formats/tensor_info.h"

typedef struct penc_tensor_source penc_tensor_source;

/* What a format does. */
typedef struct penc_tensor_format {
    const char *word; /* "GGUF", "safetensors", "llama2.c" */
    /* What the file says of an entry. */
    posenc_status (*read)(const penc_tensor_source *source, const penc_entry *entry,
                          penc_tensor *tensor, posenc_error *error);
    penc_entry_name name; /* the context is the source */
    void (*close)(penc_tensor_source *source);
} penc_tensor_format;

struct penc_tensor_source {
    const penc_tensor_format *format;
    penc_input input;
    penc_entry *entries; /* in the order of the data once the file is open */
    size_t count;
};

/* Frees a source of any format; NULL is allowed. */
void penc_tensor_source_close(penc_tensor_source *source);

/* The tensor of this name; *found tells whether there is one. */
posenc_status penc_tensor_source_find(const penc_tensor_source *source, const char *name,
                                      penc_tensor *tensor, int *found, posenc_error *error);

/* Reads `rows` whole rows (along the last axis; a tensor of rank 0 is one row) from row `first` on, as they stand in
 * the file. Fails with OUT_OF_RANGE beyond the tensor, with UNSUPPORTED where the type is unknown or rows do not
 * end with blocks. */
posenc_status penc_tensor_read_rows(const penc_tensor_source *source, const penc_tensor *tensor,
                                    uint64_t first, uint64_t rows, void *to, posenc_error *error);

/* Refuses two tensors of the same name. `base` is the byte from which the entries' places count. Reorders. */
posenc_status penc_tensor_source_refuse_twins(penc_tensor_source *source, uint64_t base,
                                              posenc_error *error);

/* Puts the entries into the order of the data, which begin at byte `begin`, and refuses data that overlap or end
 * after the file; if `closed` also gaps, and bytes after the last tensor. */
posenc_status penc_tensor_source_check_data(penc_tensor_source *source, uint64_t begin, int closed,
                                            posenc_error *error);

#endif
