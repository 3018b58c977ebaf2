/* Opening a GGUF file: one walk through its metadata. SPDX-License-Identifier: MIT */
#include "formats/gguf_file.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

enum { PENC_GGUF_WINDOW = 1 << 16 };

/* The fault lies in the key or tensor of this name. */
static posenc_status penc_gguf_named(posenc_status status, posenc_error *error, const char *name,
                                     size_t length) {
    if (status)
        penc_fail_name(error, name, length);
    return status;
}

/* Version and byte order: a version in the other order is a multiple of 2^16. */
static posenc_status penc_gguf_take_version(penc_gguf *gguf, penc_gguf_cursor *cursor) {
    uint64_t magic, version;
    posenc_status status = penc_gguf_take(cursor, 4, &magic);
    if (status)
        return status;
    if (magic != 0x46554747) /* "GGUF", lowest byte first, in either order */
        return penc_gguf_fail(cursor, POSENC_FORMAT, "file", "begin with the magic GGUF", 0);
    status = penc_gguf_take(cursor, 4, &version);
    if (status)
        return status;
    cursor->big = version && (version & 0xffff) == 0;
    if (cursor->big) {
        cursor->at -= 4;
        status = penc_gguf_take(cursor, 4, &version);
        if (status)
            return status;
    }
    if (version < 1 || version > 3)
        return penc_gguf_fail(cursor, POSENC_UNSUPPORTED, "version", "be 1, 2 or 3", 4);
    cursor->length_size = version == 1 ? 4 : 8;
    gguf->info.version = (uint32_t)version;
    gguf->info.big_endian = cursor->big;
    return POSENC_OK;
}

/* A count of keys or tensors that take `least` bytes or more each. */
static posenc_status penc_gguf_take_entries(penc_gguf_cursor *cursor, const char *argument,
                                            uint64_t least, uint64_t most, size_t *count) {
    const penc_input *input = cursor->window.input;
    uint64_t number = 0, place = cursor->at;
    posenc_status status = penc_gguf_take_length(cursor, &number);
    if (status)
        return status;
    *count = (size_t)number;
    if (number > input->size / least) {
        status = penc_input_fail_size(input, POSENC_FORMAT, argument, number, "fit into the file",
                                      place, cursor->error);
        penc_fail_limit(cursor->error, "file size", input->size);
    } else if (number > most) {
        status = penc_input_fail_size(input, POSENC_UNSUPPORTED, argument, number,
                                      "be one that is supported", place, cursor->error);
        penc_fail_limit(cursor->error, "most", most);
    }
    return status;
}

static posenc_status penc_gguf_take_header(penc_gguf *gguf, penc_gguf_cursor *cursor) {
    posenc_status status = penc_gguf_take_version(gguf, cursor);
    uint64_t length = (uint64_t)cursor->length_size;
    if (!status)
        status = penc_gguf_take_entries(cursor, "number of tensors", length + 4 + 4 + 8,
                                        PENC_GGUF_MAX_TENSORS, &gguf->info.tensor_count);
    if (!status)
        status = penc_gguf_take_entries(cursor, "number of keys", length + 4 + 1,
                                        PENC_GGUF_MAX_KEYS, &gguf->info.key_count);
    if (status)
        return status;
    gguf->keys = calloc(gguf->info.key_count + 1, sizeof *gguf->keys);
    gguf->source.entries = calloc(gguf->info.tensor_count + 1, sizeof *gguf->source.entries);
    if (!gguf->keys || !gguf->source.entries)
        return penc_fail(cursor->error, POSENC_OUT_OF_MEMORY, "index", "fit into memory");
    return POSENC_OK;
}

/* ---- Keys ---- */

static posenc_status penc_gguf_scan_key(penc_gguf_cursor *cursor, penc_entry *entry) {
    char name[PENC_NAME_BYTES];
    size_t length;
    penc_gguf_value value;
    entry->place = (uint32_t)cursor->at;
    posenc_status status = penc_gguf_take_key(cursor, name, &length, &value);
    if (status)
        return status;
    entry->begin = value.place;
    entry->hash = penc_name_hash(name, length);
    return penc_gguf_named(penc_gguf_skip_value(cursor, &value, 0), cursor->error, name, length);
}

static posenc_status penc_gguf_refuse_twin_keys(penc_gguf *gguf, penc_gguf_cursor *cursor) {
    char name[PENC_NAME_BYTES];
    size_t length;
    int found;
    penc_entry twin;
    posenc_status status =
        penc_entries_find_twin(gguf->keys, gguf->info.key_count, penc_gguf_entry_name,
                               &gguf->source, &found, &twin, cursor->error);
    if (status || !found)
        return status;
    status = penc_gguf_entry_name(&gguf->source, &twin, name, &length, cursor->error);
    if (status)
        return status;
    status = penc_gguf_fail(cursor, POSENC_FORMAT, "key", "stand in the file once", twin.place);
    return penc_gguf_named(status, cursor->error, name, length);
}

static posenc_status penc_gguf_scan_keys(penc_gguf *gguf, penc_gguf_cursor *cursor) {
    for (size_t i = 0; i < gguf->info.key_count; i++) {
        posenc_status status = penc_gguf_scan_key(cursor, &gguf->keys[i]);
        if (status)
            return status;
    }
    posenc_status status = penc_gguf_refuse_twin_keys(gguf, cursor);
    penc_entries_sort_by_place(gguf->keys, gguf->info.key_count);
    return status;
}

static posenc_status penc_gguf_read_alignment(penc_gguf *gguf, penc_gguf_cursor *cursor) {
    static const char key[] = "general.alignment";
    penc_gguf_value value;
    int64_t alignment;
    posenc_status status = penc_gguf_find(gguf, key, &value, cursor->error);
    gguf->info.alignment = 32;
    if (status || value.type == PENC_GGUF_NONE)
        return status;
    if (!penc_gguf_integer(&value, &alignment) || alignment < 1 || alignment > 1 << 30 ||
        (alignment & (alignment - 1)) != 0)
        return penc_gguf_fail(cursor, POSENC_FORMAT, key, "be an integer and a power of 2",
                              value.place);
    gguf->info.alignment = (uint64_t)alignment;
    return POSENC_OK;
}

/* ---- Tensors ---- */

/* The descriptions, one after the other; where the data begin is known only behind them. */
static posenc_status penc_gguf_scan_descriptions(penc_gguf *gguf, penc_gguf_cursor *cursor) {
    for (size_t i = 0; i < gguf->info.tensor_count; i++) {
        penc_entry *entry = &gguf->source.entries[i];
        penc_tensor tensor;
        entry->place = (uint32_t)cursor->at;
        posenc_status status = penc_gguf_take_tensor(cursor, gguf->info.alignment, &tensor);
        if (status)
            return status;
        entry->hash = penc_name_hash(tensor.name, tensor.name_length);
        gguf->source.count++;
    }
    uint64_t mask = gguf->info.alignment - 1;
    gguf->info.data_offset = (cursor->at + mask) & ~mask;
    return POSENC_OK;
}

static posenc_status penc_gguf_scan_tensors(penc_gguf *gguf, penc_gguf_cursor *cursor) {
    penc_tensor_source *source = &gguf->source;
    posenc_status status = penc_gguf_scan_descriptions(gguf, cursor);
    for (size_t i = 0; i < source->count && !status; i++) {
        penc_tensor tensor;
        status = penc_gguf_read_tensor(source, &source->entries[i], &tensor, cursor->error);
        source->entries[i].begin = tensor.offset;
        source->entries[i].bytes = tensor.bytes;
    }
    if (!status)
        status = penc_tensor_source_refuse_twins(source, 0, cursor->error);
    return status ? status
                  : penc_tensor_source_check_data(source, gguf->info.data_offset, 0, cursor->error);
}

/* ---- The whole ---- */

static posenc_status penc_gguf_scan(penc_gguf *gguf, unsigned char *window, posenc_error *error) {
    penc_gguf_cursor cursor = penc_gguf_cursor_at(gguf, 0, window, PENC_GGUF_WINDOW, error);
    if (cursor.end > PENC_GGUF_MAX_METADATA)
        cursor.end = PENC_GGUF_MAX_METADATA;
    posenc_status status = penc_gguf_take_header(gguf, &cursor);
    if (!status)
        status = penc_gguf_scan_keys(gguf, &cursor);
    if (!status)
        status = penc_gguf_read_alignment(gguf, &cursor);
    return status ? status : penc_gguf_scan_tensors(gguf, &cursor);
}

static void penc_gguf_free(penc_tensor_source *source) {
    penc_gguf *gguf = (penc_gguf *)source;
    penc_input_close(&source->input);
    free(source->entries);
    free(gguf->keys);
    free(gguf);
}

static const penc_tensor_format penc_gguf_format = {"GGUF", penc_gguf_read_tensor,
                                                    penc_gguf_entry_name, penc_gguf_free};

posenc_status penc_gguf_open(const char *path, penc_gguf **gguf, posenc_error *error) {
    *gguf = NULL;
    penc_gguf *made = calloc(1, sizeof *made);
    unsigned char *window = malloc(PENC_GGUF_WINDOW);
    if (!made || !window) {
        free(made);
        free(window);
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "gguf", "fit into memory");
    }
    made->source.format = &penc_gguf_format;
    posenc_status status = penc_input_open(path, &made->source.input, error);
    if (!status) {
        made->info.path = made->source.input.path;
        made->info.file_size = made->source.input.size;
        status = penc_gguf_scan(made, window, error);
    }
    free(window);
    if (status)
        penc_gguf_close(made);
    else
        *gguf = made;
    return status;
}

void penc_gguf_close(penc_gguf *gguf) {
    if (gguf)
        penc_gguf_free(&gguf->source);
}

const penc_gguf_info *penc_gguf_about(const penc_gguf *gguf) {
    return &gguf->info;
}

const penc_tensor_source *penc_gguf_tensors(const penc_gguf *gguf) {
    return &gguf->source;
}
