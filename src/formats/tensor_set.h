/* All tensors of a checkpoint, over one file or many: a single GGUF, safetensors or llama2.c file, a split GGUF, or
 * safetensors shards with their index. Users need not know the format.
 *
 * Opening checks every file and that no tensor stands in two; each file stays open. An open set may be used by
 * several threads. Errors name the file, the byte and the tensor.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_TENSOR_SET_H
#define PENC_TENSOR_SET_H

#include "formats/gguf.h"
#include "formats/llama2c.h"
#include "formats/safetensors.h"

#define PENC_TENSOR_SET_MAX_FILES 4096
#define PENC_TENSOR_SET_MAX_TENSORS                                                                \
    (UINT64_C(1) << 20) /* of several files; one file has its format's limit */

typedef struct penc_tensor_set penc_tensor_set;

/* Opens the checkpoint that a file belongs to: any part of a split GGUF, a model.safetensors.index.json, or a file on
 * its own. On failure *set is NULL. Fails with IO and the path of a part or shard that is not there. */
posenc_status penc_tensor_set_open(const char *path, penc_tensor_set **set, posenc_error *error);
void penc_tensor_set_close(penc_tensor_set *set);

/* The files, in the order of their numbers or names; tensors are counted within each. */
size_t penc_tensor_set_files(const penc_tensor_set *set);
const penc_tensor_source *penc_tensor_set_file(const penc_tensor_set *set, size_t file);
size_t penc_tensor_set_count(const penc_tensor_set *set); /* tensors of all files */

/* The tensor of this name and its file; *file is NULL if there is none. */
posenc_status penc_tensor_set_find(const penc_tensor_set *set, const char *name,
                                   penc_tensor *tensor, const penc_tensor_source **file,
                                   posenc_error *error);

/* A file as its format's own object; NULL where it has another one. */
const penc_gguf *penc_tensor_set_gguf(const penc_tensor_set *set, size_t file);
const penc_safetensors *penc_tensor_set_safetensors(const penc_tensor_set *set, size_t file);
const penc_llama2c *penc_tensor_set_llama2c(const penc_tensor_set *set, size_t file);

#endif
