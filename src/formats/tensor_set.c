/* Files of tensors as one set. SPDX-License-Identifier: MIT */
#include "formats/tensor_set_file.h"

#include "base/byte_order.h"
#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

/* ---- Which format a file has ---- */

typedef enum penc_file_kind {
    PENC_FILE_UNKNOWN,
    PENC_FILE_GGUF,
    PENC_FILE_SAFETENSORS,
    PENC_FILE_LLAMA2C,
    PENC_FILE_PICKLE
} penc_file_kind;

static int penc_path_ends_with(const char *path, const char *end) {
    size_t length = strlen(path), end_length = strlen(end);
    return length >= end_length && strcmp(path + length - end_length, end) == 0;
}

static penc_file_kind penc_kind_of_bytes(const unsigned char bytes[28], size_t count,
                                         uint64_t file_size) {
    if (count >= 4 && memcmp(bytes, "GGUF", 4) == 0)
        return PENC_FILE_GGUF;
    if (count >= 9 && bytes[8] == '{' &&
        penc_load_unsigned(bytes, 8, 0) <= PENC_SAFETENSORS_MAX_HEADER)
        return PENC_FILE_SAFETENSORS;
    /* PyTorch: a zip archive, or a pickle of protocol 2 and above. */
    if (count >= 4 && (memcmp(bytes, "PK\3\4", 4) == 0 || (bytes[0] == 0x80 && bytes[1] <= 5)))
        return PENC_FILE_PICKLE;
    /* "24ka" begins later versions of llama2.c's files: its reader says that they are not read. */
    if (count == 28 && (memcmp(bytes, "24ka", 4) == 0 || penc_llama2c_fits(bytes, file_size)))
        return PENC_FILE_LLAMA2C;
    return PENC_FILE_UNKNOWN;
}

/* By the first bytes; by the name where these say nothing, so that a damaged file is told as what it should be. */
static posenc_status penc_kind_of_file(const char *path, penc_file_kind *kind,
                                       posenc_error *error) {
    unsigned char bytes[28] = {0};
    penc_input input;
    posenc_status status = penc_input_open(path, &input, error);
    if (status)
        return status;
    size_t count = input.size < sizeof bytes ? (size_t)input.size : sizeof bytes;
    status = penc_input_read(&input, 0, bytes, count, error);
    *kind = penc_kind_of_bytes(bytes, count, input.size);
    if (*kind == PENC_FILE_UNKNOWN && penc_path_ends_with(path, ".gguf"))
        *kind = PENC_FILE_GGUF;
    if (*kind == PENC_FILE_UNKNOWN && penc_path_ends_with(path, ".safetensors"))
        *kind = PENC_FILE_SAFETENSORS;
    penc_input_close(&input);
    return status;
}

static posenc_status penc_open_kind(const char *path, penc_file_kind kind,
                                    penc_tensor_source **source, posenc_error *error) {
    posenc_status status;
    union {
        penc_gguf *gguf;
        penc_safetensors *safetensors;
        penc_llama2c *llama2c;
    } made;
    switch (kind) {
    case PENC_FILE_GGUF:
        status = penc_gguf_open(path, &made.gguf, error);
        *source = (penc_tensor_source *)made.gguf;
        return status;
    case PENC_FILE_SAFETENSORS:
        status = penc_safetensors_open(path, &made.safetensors, error);
        *source = (penc_tensor_source *)made.safetensors;
        return status;
    case PENC_FILE_LLAMA2C:
        status = penc_llama2c_open(path, &made.llama2c, error);
        *source = (penc_tensor_source *)made.llama2c;
        return status;
    case PENC_FILE_PICKLE:
        status = penc_fail(error, POSENC_UNSUPPORTED, "file",
                           "be safetensors, not a PyTorch pickle: load it and write it with "
                           "safetensors.torch.save_file");
        break;
    case PENC_FILE_UNKNOWN:
    default:
        status =
            penc_fail(error, POSENC_FORMAT, "file", "be GGUF, safetensors or a llama2.c model");
        break;
    }
    penc_fail_file(error, path);
    return status;
}

/* ---- Files ---- */

posenc_status penc_tensor_set_add(penc_tensor_set *set, const char *path, posenc_error *error) {
    penc_tensor_source *source = NULL;
    penc_file_kind kind;
    if (set->file_count == PENC_TENSOR_SET_MAX_FILES) {
        penc_fail_size(error, "number of files", set->file_count, "be at most 4096");
        return POSENC_OUT_OF_RANGE;
    }
    if ((set->file_count & (set->file_count - 1)) == 0) { /* full: 0, 1, 2, 4 ... */
        size_t room = set->file_count ? 2 * set->file_count : 1;
        penc_tensor_source **grown = realloc(set->files, room * sizeof *grown);
        if (!grown)
            return penc_fail(error, POSENC_OUT_OF_MEMORY, "files", "fit into memory");
        set->files = grown;
    }
    posenc_status status = penc_kind_of_file(path, &kind, error);
    if (!status)
        status = penc_open_kind(path, kind, &source, error);
    if (status)
        return status;
    set->files[set->file_count++] = source;
    set->tensor_count += source->count;
    return POSENC_OK;
}

/* ---- Names over several files ---- */

static posenc_status penc_set_name(const void *context, const penc_entry *entry,
                                   char name[PENC_NAME_BYTES], size_t *length,
                                   posenc_error *error) {
    const penc_tensor_set *set = context;
    const penc_tensor_source *source = set->files[entry->begin];
    return source->format->name(source, &source->entries[entry->bytes], name, length, error);
}

static void penc_set_fill_names(penc_tensor_set *set) {
    penc_entry *entry = set->names;
    for (size_t file = 0; file < set->file_count; file++) {
        const penc_tensor_source *source = set->files[file];
        for (size_t i = 0; i < source->count; i++, entry++)
            *entry = (penc_entry){file, i, (uint32_t)(entry - set->names), source->entries[i].hash};
    }
}

/* The names in the order of their hashes; two of the same name are refused. */
static posenc_status penc_set_make_names(penc_tensor_set *set, posenc_error *error) {
    char name[PENC_NAME_BYTES];
    size_t length;
    int found;
    penc_entry twin;
    if (set->tensor_count > PENC_TENSOR_SET_MAX_TENSORS) {
        penc_fail_size(error, "number of tensors", set->tensor_count, "be at most 2^20");
        return POSENC_OUT_OF_RANGE;
    }
    set->names = malloc((set->tensor_count + 1) * sizeof *set->names);
    if (!set->names)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "index", "fit into memory");
    penc_set_fill_names(set);
    posenc_status status = penc_entries_find_twin(set->names, set->tensor_count, penc_set_name, set,
                                                  &found, &twin, error);
    if (status || !found)
        return status;
    status = penc_fail(error, POSENC_FORMAT, "tensor", "stand in one file only");
    penc_fail_file(error, set->files[twin.begin]->input.path);
    if (!penc_set_name(set, &twin, name, &length, NULL))
        penc_fail_name(error, name, length);
    return status;
}

/* The first name whose hash is not below. */
static size_t penc_set_lower_bound(const penc_tensor_set *set, uint32_t hash) {
    size_t low = 0, high = set->tensor_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->names[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static posenc_status penc_set_find_name(const penc_tensor_set *set, const char *name,
                                        penc_tensor *tensor, const penc_tensor_source **file,
                                        posenc_error *error) {
    uint32_t hash = penc_name_hash(name, strlen(name));
    size_t first = penc_set_lower_bound(set, hash), end = first;
    const penc_entry *entry;
    while (end < set->tensor_count && set->names[end].hash == hash)
        end++;
    posenc_status status = penc_entries_find(set->names + first, end - first, name, hash,
                                             penc_set_name, set, &entry, error);
    if (status || !entry)
        return status;
    *file = set->files[entry->begin];
    return (*file)->format->read(*file, &(*file)->entries[entry->bytes], tensor, error);
}

posenc_status penc_tensor_set_find(const penc_tensor_set *set, const char *name,
                                   penc_tensor *tensor, const penc_tensor_source **file,
                                   posenc_error *error) {
    int found;
    *file = NULL;
    if (set->names)
        return penc_set_find_name(set, name, tensor, file, error);
    posenc_status status = penc_tensor_source_find(set->files[0], name, tensor, &found, error);
    if (found)
        *file = set->files[0];
    return status;
}

/* ---- The whole ---- */

static posenc_status penc_set_fill(penc_tensor_set *set, const char *path, posenc_error *error) {
    int index = penc_path_ends_with(path, ".json");
    posenc_status status = index ? penc_tensor_set_add_index(set, path, error)
                                 : penc_tensor_set_add_gguf(set, path, error);
    if (!status && (index || set->file_count > 1))
        status = penc_set_make_names(set, error);
    return status || !index ? status : penc_tensor_set_check_index(set, path, error);
}

posenc_status penc_tensor_set_open(const char *path, penc_tensor_set **set, posenc_error *error) {
    *set = NULL;
    penc_tensor_set *made = calloc(1, sizeof *made);
    if (!made)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "set", "fit into memory");
    posenc_status status = penc_set_fill(made, path, error);
    if (status)
        penc_tensor_set_close(made);
    else
        *set = made;
    return status;
}

void penc_tensor_set_close(penc_tensor_set *set) {
    if (!set)
        return;
    for (size_t i = 0; i < set->file_count; i++)
        penc_tensor_source_close(set->files[i]);
    free(set->files);
    free(set->names);
    free(set);
}

size_t penc_tensor_set_files(const penc_tensor_set *set) {
    return set->file_count;
}

const penc_tensor_source *penc_tensor_set_file(const penc_tensor_set *set, size_t file) {
    return set->files[file];
}

size_t penc_tensor_set_count(const penc_tensor_set *set) {
    return set->tensor_count;
}

/* The source of a file, if the format has this word. */
static const void *penc_set_file_of(const penc_tensor_set *set, size_t file, const char *word) {
    return strcmp(set->files[file]->format->word, word) == 0 ? set->files[file] : NULL;
}

const penc_gguf *penc_tensor_set_gguf(const penc_tensor_set *set, size_t file) {
    return penc_set_file_of(set, file, "GGUF");
}

const penc_safetensors *penc_tensor_set_safetensors(const penc_tensor_set *set, size_t file) {
    return penc_set_file_of(set, file, "safetensors");
}

const penc_llama2c *penc_tensor_set_llama2c(const penc_tensor_set *set, size_t file) {
    return penc_set_file_of(set, file, "llama2.c");
}
