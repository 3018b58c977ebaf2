/* The inside of an open safetensors file. SPDX-License-Identifier: MIT */
#ifndef PENC_SAFETENSORS_FILE_H
#define PENC_SAFETENSORS_FILE_H

#include "formats/json_scan.h"
#include "formats/safetensors.h"

enum {
    PENC_SAFETENSORS_PREFIX = 8
}; /* the length of the header comes first; places count from behind it */

struct penc_safetensors {
    penc_tensor_source source;
    uint64_t header_end;  /* byte of the file where the data begin */
    penc_entry *metadata; /* in the order of the file */
    size_t metadata_count;
    int has_metadata; /* even if it is empty */
};

/* The key that the scanner has just read, as a name; `argument` says whose. */
posenc_status penc_safetensors_take_name(penc_json *json, const char *argument,
                                         char name[PENC_NAME_BYTES], size_t *length);

/* What follows a tensor's name: type, shape and data. */
posenc_status penc_safetensors_take_tensor(const penc_safetensors *safetensors, penc_json *json,
                                           penc_tensor *tensor);

/* A scanner that begins at the key of an entry. */
penc_json penc_safetensors_scan_at(const penc_safetensors *safetensors, const penc_entry *entry,
                                   unsigned char *window, size_t window_bytes, char *text,
                                   size_t capacity, posenc_error *error);

/* What penc_tensor_format wants; the source is a safetensors file's. */
posenc_status penc_safetensors_read(const penc_tensor_source *source, const penc_entry *entry,
                                    penc_tensor *tensor, posenc_error *error);
posenc_status penc_safetensors_name(const void *source, const penc_entry *entry,
                                    char name[PENC_NAME_BYTES], size_t *length,
                                    posenc_error *error);

#endif
