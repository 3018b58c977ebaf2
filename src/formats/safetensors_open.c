/* Opening a safetensors file: one scan of its header. SPDX-License-Identifier: MIT */
#include "formats/safetensors_file.h"

#include "base/byte_order.h"
#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

enum {
    PENC_ST_WINDOW = 1 << 16,
    /* What a tensor takes in a header at least. */
    PENC_ST_LEAST_ENTRY = sizeof "\"\":{\"dtype\":\"F4\",\"shape\":[],\"data_offsets\":[0,0]}," - 1
};

static const char penc_st_metadata_key[] = "__metadata__";

static posenc_status penc_st_read_length(penc_safetensors *made, posenc_error *error) {
    unsigned char prefix[PENC_SAFETENSORS_PREFIX];
    const penc_input *input = &made->source.input;
    posenc_status status = penc_input_read(input, 0, prefix, sizeof prefix, error);
    if (status)
        return status;
    uint64_t length = penc_load_unsigned(prefix, sizeof prefix, 0);
    if (length > PENC_SAFETENSORS_MAX_HEADER)
        return penc_input_fail_size(input, POSENC_FORMAT, "header length", length,
                                    "be at most 100 MB", 0, error);
    made->header_end = PENC_SAFETENSORS_PREFIX + length;
    if (made->header_end > input->size)
        return penc_input_short(input, input->size, made->header_end, error);
    made->source.entries = malloc((length / PENC_ST_LEAST_ENTRY + 1) * sizeof(penc_entry));
    return made->source.entries
               ? POSENC_OK
               : penc_fail(error, POSENC_OUT_OF_MEMORY, "index", "fit into memory");
}

/* ---- __metadata__ ---- */

static posenc_status penc_st_add_text(penc_safetensors *made, penc_json *json, const char *key,
                                      size_t length, uint64_t place) {
    size_t count = made->metadata_count;
    if (count == PENC_SAFETENSORS_MAX_METADATA)
        return penc_json_fail(json, POSENC_UNSUPPORTED, penc_st_metadata_key,
                              "have at most 65536 keys", place);
    if ((count & (count - 1)) == 0) { /* full: 0, 1, 2, 4 ... */
        penc_entry *grown = realloc(made->metadata, (count ? 2 * count : 1) * sizeof *grown);
        if (!grown)
            return penc_json_fail(json, POSENC_OUT_OF_MEMORY, penc_st_metadata_key,
                                  "fit into memory", place);
        made->metadata = grown;
    }
    made->metadata[count] = (penc_entry){.place = (uint32_t)(place - PENC_SAFETENSORS_PREFIX),
                                         .hash = penc_name_hash(key, length)};
    made->metadata_count++;
    return POSENC_OK;
}

static posenc_status penc_st_scan_text(penc_safetensors *made, penc_json *json) {
    char key[PENC_NAME_BYTES];
    size_t length;
    uint64_t place = json->place;
    penc_json_token token;
    posenc_status status = penc_safetensors_take_name(json, "metadata key", key, &length);
    if (!status)
        status = penc_st_add_text(made, json, key, length, place);
    if (!status)
        status = penc_json_next(json, &token);
    if (!status && token != PENC_JSON_STRING) {
        status = penc_json_fail(json, POSENC_FORMAT, "metadata", "be strings", json->place);
        penc_fail_name(json->error, key, length);
    }
    return status;
}

static posenc_status penc_st_refuse_twin_keys(penc_safetensors *made, penc_json *json) {
    int found;
    penc_entry twin;
    posenc_status status =
        penc_entries_find_twin(made->metadata, made->metadata_count, penc_safetensors_name,
                               &made->source, &found, &twin, json->error);
    penc_entries_sort_by_place(made->metadata, made->metadata_count);
    if (status || !found)
        return status;
    return penc_json_fail(json, POSENC_FORMAT, "metadata key", "stand in __metadata__ once",
                          PENC_SAFETENSORS_PREFIX + twin.place);
}

static posenc_status penc_st_scan_metadata(penc_safetensors *made, penc_json *json) {
    penc_json_token token;
    if (made->has_metadata)
        return penc_json_fail(json, POSENC_FORMAT, penc_st_metadata_key, "stand in the header once",
                              json->place);
    made->has_metadata = 1;
    posenc_status status = penc_json_next(json, &token);
    if (!status && token == PENC_JSON_NULL) /* as the Rust library reads it */
        return status;
    if (!status && token != PENC_JSON_OBJECT)
        status = penc_json_fail(json, POSENC_FORMAT, penc_st_metadata_key,
                                "be null or an object of strings", json->place);
    while (!status) {
        status = penc_json_next(json, &token);
        if (status || token == PENC_JSON_OBJECT_END)
            break;
        status = penc_st_scan_text(made, json);
    }
    return status ? status : penc_st_refuse_twin_keys(made, json);
}

/* ---- Tensors ---- */

static posenc_status penc_st_scan_tensor(penc_safetensors *made, penc_json *json) {
    penc_tensor tensor;
    uint64_t place = json->place;
    memset(&tensor, 0, sizeof tensor);
    posenc_status status =
        penc_safetensors_take_name(json, "tensor name", tensor.name, &tensor.name_length);
    if (status)
        return status;
    status = penc_safetensors_take_tensor(made, json, &tensor);
    if (status) {
        penc_fail_name(json->error, tensor.name, tensor.name_length);
        return status;
    }
    made->source.entries[made->source.count++] =
        (penc_entry){tensor.offset, tensor.bytes, (uint32_t)(place - PENC_SAFETENSORS_PREFIX),
                     penc_name_hash(tensor.name, tensor.name_length)};
    return POSENC_OK;
}

static posenc_status penc_st_scan_header(penc_safetensors *made, penc_json *json) {
    penc_json_token token;
    posenc_status status = penc_json_next(json, &token);
    if (!status && (token != PENC_JSON_OBJECT || json->place != PENC_SAFETENSORS_PREFIX))
        status =
            penc_json_fail(json, POSENC_FORMAT, "header", "begin with {", PENC_SAFETENSORS_PREFIX);
    while (!status) {
        status = penc_json_next(json, &token);
        if (status || token == PENC_JSON_OBJECT_END)
            break;
        status = strcmp(json->text, penc_st_metadata_key) == 0 ? penc_st_scan_metadata(made, json)
                                                               : penc_st_scan_tensor(made, json);
    }
    return status ? status : penc_json_next(json, &token); /* the end, after spaces */
}

static posenc_status penc_st_scan(penc_safetensors *made, unsigned char *window,
                                  posenc_error *error) {
    char text[PENC_NAME_BYTES];
    posenc_status status = penc_st_read_length(made, error);
    if (status)
        return status;
    penc_json json =
        penc_json_of_file(&made->source.input, PENC_SAFETENSORS_PREFIX, made->header_end, window,
                          PENC_ST_WINDOW, text, sizeof text, error);
    status = penc_st_scan_header(made, &json);
    if (status)
        return status;
    penc_entry *fitting = realloc(made->source.entries, (made->source.count + 1) * sizeof *fitting);
    if (!fitting)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "index", "fit into memory");
    made->source.entries = fitting;
    status = penc_tensor_source_refuse_twins(&made->source, PENC_SAFETENSORS_PREFIX, error);
    return status ? status
                  : penc_tensor_source_check_data(&made->source, made->header_end, 1, error);
}

/* ---- The whole ---- */

static void penc_st_free(penc_tensor_source *source) {
    penc_safetensors *safetensors = (penc_safetensors *)source;
    penc_input_close(&source->input);
    free(source->entries);
    free(safetensors->metadata);
    free(safetensors);
}

static const penc_tensor_format penc_st_format = {"safetensors", penc_safetensors_read,
                                                  penc_safetensors_name, penc_st_free};

posenc_status penc_safetensors_open(const char *path, penc_safetensors **safetensors,
                                    posenc_error *error) {
    *safetensors = NULL;
    penc_safetensors *made = calloc(1, sizeof *made);
    unsigned char *window = malloc(PENC_ST_WINDOW);
    if (!made || !window) {
        free(made);
        free(window);
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "safetensors", "fit into memory");
    }
    made->source.format = &penc_st_format;
    posenc_status status = penc_input_open(path, &made->source.input, error);
    if (!status)
        status = penc_st_scan(made, window, error);
    free(window);
    if (status)
        penc_st_free(&made->source);
    else
        *safetensors = made;
    return status;
}

void penc_safetensors_close(penc_safetensors *safetensors) {
    if (safetensors)
        penc_st_free(&safetensors->source);
}

const penc_tensor_source *penc_safetensors_tensors(const penc_safetensors *safetensors) {
    return &safetensors->source;
}

uint64_t penc_safetensors_header_bytes(const penc_safetensors *safetensors) {
    return safetensors->header_end - PENC_SAFETENSORS_PREFIX;
}

/* ---- Reading __metadata__ ---- */

size_t penc_safetensors_metadata_count(const penc_safetensors *safetensors) {
    return safetensors->metadata_count;
}

static posenc_status penc_st_read_text(const penc_safetensors *safetensors, const penc_entry *entry,
                                       char key[PENC_NAME_BYTES], char *text, size_t capacity,
                                       size_t *length, posenc_error *error) {
    unsigned char window[PENC_NAME_BYTES];
    penc_json json = penc_safetensors_scan_at(safetensors, entry, window, sizeof window, key,
                                              PENC_NAME_BYTES, error);
    penc_json_token token;
    posenc_status status = penc_json_next(&json, &token);
    if (status)
        return status;
    json.text = text;
    json.capacity = capacity;
    status = penc_json_next(&json, &token);
    if (!status && token != PENC_JSON_STRING)
        status = penc_json_fail(&json, POSENC_FORMAT, "metadata", "be strings", json.place);
    *length = json.length;
    return status;
}

posenc_status penc_safetensors_metadata(const penc_safetensors *safetensors, size_t index,
                                        char key[PENC_NAME_BYTES], char *text, size_t capacity,
                                        size_t *length, posenc_error *error) {
    return penc_st_read_text(safetensors, &safetensors->metadata[index], key, text, capacity,
                             length, error);
}

posenc_status penc_safetensors_find_metadata(const penc_safetensors *safetensors, const char *key,
                                             char *text, size_t capacity, size_t *length,
                                             int *found, posenc_error *error) {
    char own_key[PENC_NAME_BYTES];
    const penc_entry *entry;
    posenc_status status = penc_entries_find(
        safetensors->metadata, safetensors->metadata_count, key, penc_name_hash(key, strlen(key)),
        penc_safetensors_name, &safetensors->source, &entry, error);
    *found = !status && entry;
    return *found ? penc_st_read_text(safetensors, entry, own_key, text, capacity, length, error)
                  : status;
}
