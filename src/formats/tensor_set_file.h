/* Putting a set of tensors together. SPDX-License-Identifier: MIT */
#ifndef PENC_TENSOR_SET_FILE_H
#define PENC_TENSOR_SET_FILE_H

#include "formats/tensor_set.h"

struct penc_tensor_set {
    penc_tensor_source **files;
    size_t file_count, tensor_count;
    penc_entry
        *names; /* of several files, by hash: `begin` is the file, `bytes` the tensor in it */
};

/* Opens one file of any format and adds it. */
posenc_status penc_tensor_set_add(penc_tensor_set *set, const char *path, posenc_error *error);

/* Adds the parts of a split GGUF of which `path` is one, or the file alone. */
posenc_status penc_tensor_set_add_gguf(penc_tensor_set *set, const char *path, posenc_error *error);

/* Adds the shards that an index names. Their tensors are looked up with ..._check_index, once the set's names are
 * there. */
posenc_status penc_tensor_set_add_index(penc_tensor_set *set, const char *path,
                                        posenc_error *error);
posenc_status penc_tensor_set_check_index(const penc_tensor_set *set, const char *path,
                                          posenc_error *error);

#endif
