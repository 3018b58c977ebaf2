/* Names and ranges of the tensors of a file. SPDX-License-Identifier: MIT */
#include "formats/tensor_source.h"

#include "base/fail.h"

#include <string.h>

void penc_tensor_source_close(penc_tensor_source *source) {
    if (source)
        source->format->close(source);
}

posenc_status penc_tensor_source_find(const penc_tensor_source *source, const char *name,
                                      penc_tensor *tensor, int *found, posenc_error *error) {
    const penc_entry *entry;
    posenc_status status =
        penc_entries_find(source->entries, source->count, name, penc_name_hash(name, strlen(name)),
                          source->format->name, source, &entry, error);
    *found = !status && entry;
    return *found ? source->format->read(source, entry, tensor, error) : status;
}

posenc_status penc_tensor_read_rows(const penc_tensor_source *source, const penc_tensor *tensor,
                                    uint64_t first, uint64_t rows, void *to, posenc_error *error) {
    uint64_t row_bytes = penc_tensor_row_bytes(tensor), all = penc_tensor_rows(tensor);
    posenc_status status = POSENC_OK;
    if (!row_bytes && tensor->bytes) {
        status =
            penc_fail(error, POSENC_UNSUPPORTED, "type", "be one whose rows can be told apart");
    } else if (first > all || rows > all - first) {
        status = penc_fail_size(error, "row", first + rows, "be in the tensor");
        penc_fail_limit(error, "rows", all);
    } else if (row_bytes && rows > SIZE_MAX / row_bytes) {
        status = penc_fail_size(error, "rows", rows, "fit into memory");
    }
    if (!status)
        return penc_input_read(&source->input, tensor->offset + first * row_bytes, to,
                               (size_t)(rows * row_bytes), error);
    penc_fail_file(error, source->input.path);
    penc_fail_name(error, tensor->name, tensor->name_length);
    return status;
}

/* The fault lies in the tensor of this entry. */
static posenc_status penc_tensor_source_named(const penc_tensor_source *source,
                                              const penc_entry *entry, posenc_status status,
                                              posenc_error *error) {
    char name[PENC_NAME_BYTES];
    size_t length;
    if (error && !source->format->name(source, entry, name, &length, NULL))
        penc_fail_name(error, name, length);
    return status;
}

posenc_status penc_tensor_source_refuse_twins(penc_tensor_source *source, uint64_t base,
                                              posenc_error *error) {
    int found;
    penc_entry twin;
    posenc_status status = penc_entries_find_twin(
        source->entries, source->count, source->format->name, source, &found, &twin, error);
    if (status || !found)
        return status;
    status = penc_input_fail(&source->input, POSENC_FORMAT, "name", "belong to one tensor only",
                             base + twin.place, error);
    return penc_tensor_source_named(source, &twin, status, error);
}

/* The data of `entry` begin elsewhere than `end`, where those before it end. */
static posenc_status penc_tensor_source_misplaced(const penc_tensor_source *source,
                                                  const penc_entry *entry, uint64_t end,
                                                  posenc_error *error) {
    int overlap = entry->begin < end;
    posenc_status status =
        penc_input_fail(&source->input, POSENC_FORMAT, "data",
                        overlap ? "not overlap those of another tensor"
                                : "begin where those of the tensor before it end, without a gap",
                        entry->begin, error);
    penc_fail_limit(error, "end of the other", end);
    return penc_tensor_source_named(source, entry, status, error);
}

posenc_status penc_tensor_source_check_data(penc_tensor_source *source, uint64_t begin, int closed,
                                            posenc_error *error) {
    uint64_t end = begin, size = source->input.size;
    penc_entries_sort_by_data(source->entries, source->count);
    for (size_t i = 0; i < source->count; i++) {
        const penc_entry *entry = &source->entries[i];
        if (entry->begin > size || entry->bytes > size - entry->begin)
            return penc_tensor_source_named(
                source, entry,
                penc_input_short(&source->input, size, entry->begin + entry->bytes, error), error);
        if (entry->begin < end || (closed && entry->begin > end))
            return penc_tensor_source_misplaced(source, entry, end, error);
        end = entry->begin + entry->bytes;
    }
    if (!closed || end == size)
        return POSENC_OK;
    penc_input_fail(&source->input, POSENC_FORMAT, "file", "end after the last tensor", end, error);
    penc_fail_limit(error, "file size", size);
    return POSENC_FORMAT;
}
