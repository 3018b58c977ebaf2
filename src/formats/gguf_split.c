/* Split GGUF files: NAME-00001-of-00003.gguf and its siblings, which say split.no and split.count.
 * SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "formats/tensor_set_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the paths of parts end with. */
enum { PENC_SPLIT_END = sizeof "-00001-of-00002.gguf" - 1 };

/* The bytes before the number, if a path ends as that of a part of `count`. */
static int penc_split_prefix(const char *path, uint64_t count, size_t *prefix) {
    unsigned number, of;
    size_t length = strlen(path), end = PENC_SPLIT_END;
    int read = 0;
    if (length < end)
        return 0;
    *prefix = length - end;
    return sscanf(path + *prefix, "-%5u-of-%5u.gguf%n", &number, &of, &read) == 2 &&
           (size_t)read == end && of == count && number >= 1 && number <= of;
}

/* An integer key; `missing` if it is not there. */
static posenc_status penc_split_key(const penc_gguf *gguf, const char *key, int64_t missing,
                                    int64_t *number, posenc_error *error) {
    penc_gguf_value value;
    posenc_status status = penc_gguf_find(gguf, key, &value, error);
    *number = missing;
    if (status || value.type == PENC_GGUF_NONE || penc_gguf_integer(&value, number))
        return status;
    return penc_input_fail(&penc_gguf_tensors(gguf)->input, POSENC_FORMAT, key, "be an integer",
                           value.place, error);
}

/* A key of a part is not what the whole says. */
static posenc_status penc_split_check(const penc_gguf *gguf, const char *key, int64_t wanted,
                                      posenc_error *error) {
    int64_t number;
    posenc_status status = penc_split_key(gguf, key, -1, &number, error);
    if (status || number == wanted)
        return status;
    penc_fail_integer(error, key, number, "fit the name of the part and the other parts");
    penc_fail_limit(error, "expected", (uint64_t)wanted);
    penc_fail_file(error, penc_gguf_about(gguf)->path);
    if (error)
        error->status = POSENC_FORMAT;
    return POSENC_FORMAT;
}

/* The part number `part` from 1 on. */
static posenc_status penc_split_add(penc_tensor_set *set, const char *path, size_t prefix,
                                    unsigned part, unsigned count, posenc_error *error) {
    size_t room = prefix + PENC_SPLIT_END + 16;
    char *name = malloc(room);
    if (!name)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "path", "fit into memory");
    memcpy(name, path, prefix);
    snprintf(name + prefix, room - prefix, "-%05u-of-%05u.gguf", part, count);
    posenc_status status = penc_tensor_set_add(set, name, error);
    free(name);
    const penc_gguf *gguf = status ? NULL : penc_tensor_set_gguf(set, part - 1);
    if (!status && !gguf) {
        status = penc_fail(error, POSENC_FORMAT, "part", "be GGUF as the other parts are");
        penc_fail_file(error, set->files[part - 1]->input.path);
    }
    if (!status)
        status = penc_split_check(gguf, "split.no", part - 1, error);
    return status ? status : penc_split_check(gguf, "split.count", count, error);
}

static posenc_status penc_split_add_parts(penc_tensor_set *set, const char *path, int64_t count,
                                          posenc_error *error) {
    size_t prefix;
    int64_t tensors;
    if (count > PENC_TENSOR_SET_MAX_FILES || !penc_split_prefix(path, (uint64_t)count, &prefix)) {
        penc_fail_integer(error, "split.count", count,
                          "be that of the file's name, which ends as -00001-of-00002.gguf");
        penc_fail_file(error, path);
        return POSENC_OUT_OF_RANGE;
    }
    for (unsigned part = 1; part <= (unsigned)count; part++) {
        posenc_status status = penc_split_add(set, path, prefix, part, (unsigned)count, error);
        if (status)
            return status;
    }
    posenc_status status = penc_split_key(penc_tensor_set_gguf(set, 0), "split.tensors.count",
                                          (int64_t)set->tensor_count, &tensors, error);
    if (status || tensors == (int64_t)set->tensor_count)
        return status;
    penc_fail_size(error, "tensors of all parts", set->tensor_count,
                   "be as many as split.tensors.count says");
    penc_fail_limit(error, "split.tensors.count", (uint64_t)tensors);
    penc_fail_file(error, set->files[0]->input.path);
    if (error)
        error->status = POSENC_FORMAT;
    return POSENC_FORMAT;
}

posenc_status penc_tensor_set_add_gguf(penc_tensor_set *set, const char *path,
                                       posenc_error *error) {
    int64_t count = 1;
    posenc_status status = penc_tensor_set_add(set, path, error);
    if (status || !penc_tensor_set_gguf(set, 0))
        return status;
    status = penc_split_key(penc_tensor_set_gguf(set, 0), "split.count", 1, &count, error);
    if (status || count <= 1)
        return status;
    penc_tensor_source_close(set->files[0]);
    set->file_count = 0;
    set->tensor_count = 0;
    return penc_split_add_parts(set, path, count, error);
}
