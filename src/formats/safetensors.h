/* safetensors files: a JSON header of up to 100 MB, then the data. The header is scanned in windows; 24 bytes are
 * kept per tensor, and what the header says of a tensor is read again when asked for. One open file may be used by
 * several threads. Every error names the file and the byte, and the tensor where there is one.
 *
 * Source: huggingface/safetensors, "Format". SPDX-License-Identifier: MIT */
#ifndef PENC_SAFETENSORS_H
#define PENC_SAFETENSORS_H

#include "formats/tensor_source.h"

#define PENC_SAFETENSORS_MAX_HEADER   UINT64_C(100000000) /* bytes, the format's own limit */
#define PENC_SAFETENSORS_MAX_METADATA 65536               /* keys of __metadata__ */

typedef struct penc_safetensors penc_safetensors;

/* Opens a file and checks its whole header; on failure *safetensors is NULL. */
posenc_status penc_safetensors_open(const char *path, penc_safetensors **safetensors,
                                    posenc_error *error);
void penc_safetensors_close(penc_safetensors *safetensors);

/* The tensors: what tensor_source.h does with them. */
const penc_tensor_source *penc_safetensors_tensors(const penc_safetensors *safetensors);

/* Bytes of the header without the 8 of its length, so that the data begin at 8 + this. */
uint64_t penc_safetensors_header_bytes(const penc_safetensors *safetensors);

/* ---- __metadata__: keys and texts ---- */

size_t penc_safetensors_metadata_count(const penc_safetensors *safetensors);

/* Entry number `index`, in the order of the file. The text is cut to `capacity` - 1 bytes and gets a NUL; *length
 * becomes that of the whole. */
posenc_status penc_safetensors_metadata(const penc_safetensors *safetensors, size_t index,
                                        char key[PENC_NAME_BYTES], char *text, size_t capacity,
                                        size_t *length, posenc_error *error);

/* The text of a key; *found tells whether there is one. */
posenc_status penc_safetensors_find_metadata(const penc_safetensors *safetensors, const char *key,
                                             char *text, size_t capacity, size_t *length,
                                             int *found, posenc_error *error);

#endif
