/* model.safetensors.index.json: which shard holds which tensor. It may be large, so it is scanned, twice.
 * SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "formats/json_scan.h"
#include "formats/tensor_set_file.h"

#include <stdlib.h>
#include <string.h>

enum { PENC_INDEX_WINDOW = 1 << 16 };

/* What the scan meets: a tensor's name and its shard, with its place in the index. */
typedef struct penc_index_visitor {
    posenc_status (*visit)(void *context, penc_json *json, const char *tensor, size_t length,
                           const char *shard);
    void *context;
} penc_index_visitor;

static posenc_status penc_index_pair(penc_json *json, const penc_index_visitor *visitor) {
    char tensor[PENC_NAME_BYTES];
    size_t length = json->length;
    penc_json_token token;
    if (length >= sizeof tensor)
        return penc_json_fail(json, POSENC_UNSUPPORTED, "tensor name", "have at most 511 bytes",
                              json->place);
    memcpy(tensor, json->text, length + 1);
    posenc_status status = penc_json_next(json, &token);
    if (!status &&
        (token != PENC_JSON_STRING || json->length >= json->capacity ||
         strlen(json->text) != json->length || !json->length || strchr(json->text, '/'))) {
        status = penc_json_fail(json, POSENC_FORMAT, "shard",
                                "be the name of a file in the folder of the index", json->place);
        penc_fail_name(json->error, tensor, length);
    }
    return status ? status : visitor->visit(visitor->context, json, tensor, length, json->text);
}

static posenc_status penc_index_weight_map(penc_json *json, const penc_index_visitor *visitor) {
    penc_json_token token;
    posenc_status status = penc_json_next(json, &token);
    if (!status && token != PENC_JSON_OBJECT)
        status = penc_json_fail(json, POSENC_FORMAT, "weight_map", "be an object", json->place);
    while (!status) {
        status = penc_json_next(json, &token);
        if (status || token == PENC_JSON_OBJECT_END)
            break;
        status = penc_index_pair(json, visitor);
    }
    return status;
}

static posenc_status penc_index_scan(penc_json *json, const penc_index_visitor *visitor) {
    int seen = 0;
    penc_json_token token;
    posenc_status status = penc_json_next(json, &token);
    if (!status && token != PENC_JSON_OBJECT)
        status = penc_json_fail(json, POSENC_FORMAT, "index", "be an object", json->place);
    while (!status) {
        status = penc_json_next(json, &token);
        if (status || token == PENC_JSON_OBJECT_END)
            break;
        if (strcmp(json->text, "weight_map") == 0) {
            status = seen++ ? penc_json_fail(json, POSENC_FORMAT, "weight_map",
                                             "stand in the index once", json->place)
                            : penc_index_weight_map(json, visitor);
        } else {
            status = penc_json_next(json, &token);
            if (!status)
                status = penc_json_skip(json, token);
        }
    }
    if (!status && !seen)
        status =
            penc_json_fail(json, POSENC_FORMAT, "weight_map", "stand in the index", json->place);
    return status ? status : penc_json_next(json, &token);
}

/* Calls the visitor for every pair of the index at `path`. */
static posenc_status penc_index_walk(const char *path, const penc_index_visitor *visitor,
                                     posenc_error *error) {
    penc_input input;
    char text[PENC_NAME_BYTES];
    posenc_status status = penc_input_open(path, &input, error);
    if (status)
        return status;
    unsigned char *window = malloc(PENC_INDEX_WINDOW);
    if (!window) {
        status = penc_fail(error, POSENC_OUT_OF_MEMORY, "index", "fit into memory");
    } else if (input.size > PENC_SAFETENSORS_MAX_HEADER) {
        status =
            penc_input_fail(&input, POSENC_UNSUPPORTED, "index", "be at most 100 MB", 0, error);
    } else {
        penc_json json = penc_json_of_file(&input, 0, input.size, window, PENC_INDEX_WINDOW, text,
                                           sizeof text, error);
        status = penc_index_scan(&json, visitor);
    }
    free(window);
    penc_input_close(&input);
    return status;
}

/* ---- The shards ---- */

typedef struct penc_shard_list {
    char **names;
    size_t count;
} penc_shard_list;

static posenc_status penc_shard_visit(void *context, penc_json *json, const char *tensor,
                                      size_t length, const char *shard) {
    penc_shard_list *list = context;
    (void)tensor;
    (void)length;
    for (size_t i = list->count; i > 0; i--) { /* the last one is the likeliest */
        if (strcmp(list->names[i - 1], shard) == 0)
            return POSENC_OK;
    }
    if (list->count == PENC_TENSOR_SET_MAX_FILES)
        return penc_json_fail(json, POSENC_UNSUPPORTED, "index", "name at most 4096 files",
                              json->place);
    char *name = malloc(strlen(shard) + 1);
    char **names = name ? realloc(list->names, (list->count + 1) * sizeof *names) : NULL;
    if (!names) {
        free(name);
        return penc_json_fail(json, POSENC_OUT_OF_MEMORY, "index", "fit into memory", json->place);
    }
    strcpy(name, shard);
    list->names = names;
    list->names[list->count++] = name;
    return POSENC_OK;
}

static int penc_compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static posenc_status penc_shard_add(penc_tensor_set *set, const char *index, const char *shard,
                                    posenc_error *error) {
    const char *slash = strrchr(index, '/');
    size_t folder = slash ? (size_t)(slash - index) + 1 : 0;
    char *path = malloc(folder + strlen(shard) + 1);
    if (!path)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "path", "fit into memory");
    memcpy(path, index, folder);
    strcpy(path + folder, shard);
    posenc_status status = penc_tensor_set_add(set, path, error);
    if (!status && !penc_tensor_set_safetensors(set, set->file_count - 1)) {
        status = penc_fail(error, POSENC_FORMAT, "shard", "be safetensors");
        penc_fail_file(error, path);
    }
    free(path);
    return status;
}

posenc_status penc_tensor_set_add_index(penc_tensor_set *set, const char *path,
                                        posenc_error *error) {
    penc_shard_list list = {NULL, 0};
    penc_index_visitor visitor = {penc_shard_visit, &list};
    posenc_status status = penc_index_walk(path, &visitor, error);
    if (!status && list.count == 0) {
        status = penc_fail(error, POSENC_FORMAT, "weight_map", "name a tensor");
        penc_fail_file(error, path);
    }
    if (!status) /* the same order whatever the order of the index */
        qsort(list.names, list.count, sizeof *list.names, penc_compare_texts);
    for (size_t i = 0; i < list.count; i++) {
        if (!status)
            status = penc_shard_add(set, path, list.names[i], error);
        free(list.names[i]);
    }
    free(list.names);
    return status;
}

/* ---- The tensors ---- */

static const char *penc_file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static posenc_status penc_tensor_visit(void *context, penc_json *json, const char *tensor,
                                       size_t length, const char *shard) {
    const penc_tensor_set *set = context;
    const penc_tensor_source *file;
    penc_tensor found;
    posenc_status status = penc_tensor_set_find(set, tensor, &found, &file, json->error);
    if (status || (file && strcmp(penc_file_name(file->input.path), shard) == 0))
        return status;
    status = penc_json_fail(json, POSENC_FORMAT, "tensor",
                            file ? "stand in the file that the index names, not in another one"
                                 : "stand in the file that the index names",
                            json->place);
    penc_fail_name(json->error, tensor, length);
    return status;
}

posenc_status penc_tensor_set_check_index(const penc_tensor_set *set, const char *path,
                                          posenc_error *error) {
    union {
        const penc_tensor_set *set;
        void *context;
    } shared = {set}; /* the visitor only reads it */
    penc_index_visitor visitor = {penc_tensor_visit, shared.context};
    return penc_index_walk(path, &visitor, error);
}
