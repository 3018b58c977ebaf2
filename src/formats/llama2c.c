/* The layout of llama2.c's model files. SPDX-License-Identifier: MIT */
#include "formats/llama2c.h"

#include "base/byte_order.h"
#include "base/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PENC_LLAMA2C_HEADER = 28,
    PENC_LLAMA2C_MAX_DIM = 1 << 22,
    PENC_LLAMA2C_MAX_LAYERS = 1 << 12
};

struct penc_llama2c {
    penc_tensor_source source;
    penc_llama2c_info info;
};

/* ---- The order of the arrays ---- */

/* Sizes that shapes are made of. */
enum { PENC_NO_AXIS, PENC_DIM, PENC_HIDDEN, PENC_KV_DIM, PENC_VOCAB, PENC_SEQ, PENC_HALF_HEAD };

/* One array, or one of each layer: all layers of it stand one after the other. */
typedef struct penc_llama2c_array {
    const char *name; /* after "layers.N." */
    int per_layer;
    int axes[2];
    int unshared_only;
} penc_llama2c_array;

static const penc_llama2c_array penc_llama2c_arrays[] = {
    {"tok_embeddings.weight", 0, {PENC_VOCAB, PENC_DIM}, 0},
    {"attention_norm.weight", 1, {PENC_DIM, PENC_NO_AXIS}, 0},
    {"attention.wq.weight", 1, {PENC_DIM, PENC_DIM}, 0},
    {"attention.wk.weight", 1, {PENC_KV_DIM, PENC_DIM}, 0},
    {"attention.wv.weight", 1, {PENC_KV_DIM, PENC_DIM}, 0},
    {"attention.wo.weight", 1, {PENC_DIM, PENC_DIM}, 0},
    {"ffn_norm.weight", 1, {PENC_DIM, PENC_NO_AXIS}, 0},
    {"feed_forward.w1.weight", 1, {PENC_HIDDEN, PENC_DIM}, 0},
    {"feed_forward.w2.weight", 1, {PENC_DIM, PENC_HIDDEN}, 0},
    {"feed_forward.w3.weight", 1, {PENC_HIDDEN, PENC_DIM}, 0},
    {"norm.weight", 0, {PENC_DIM, PENC_NO_AXIS}, 0},
    {"freq_cis_real", 0, {PENC_SEQ, PENC_HALF_HEAD}, 0},
    {"freq_cis_imag", 0, {PENC_SEQ, PENC_HALF_HEAD}, 0},
    {"output.weight", 0, {PENC_VOCAB, PENC_DIM}, 1},
};

enum { PENC_LLAMA2C_ARRAYS = sizeof penc_llama2c_arrays / sizeof *penc_llama2c_arrays };

static uint64_t penc_llama2c_axis(const penc_llama2c_info *info, int axis) {
    uint32_t head_dim = info->dim / info->heads;
    switch (axis) {
    case PENC_DIM:
        return info->dim;
    case PENC_HIDDEN:
        return info->hidden_dim;
    case PENC_KV_DIM:
        return (uint64_t)head_dim * info->kv_heads;
    case PENC_VOCAB:
        return info->vocab_size;
    case PENC_SEQ:
        return info->seq_len;
    case PENC_HALF_HEAD:
        return head_dim / 2;
    default:
        return 1;
    }
}

/* How many tensors an array is. */
static size_t penc_llama2c_copies(const penc_llama2c_info *info, const penc_llama2c_array *array) {
    return array->per_layer ? info->layers : !(array->unshared_only && info->shared_output);
}

/* The sizes are limited, so that no product overflows. */
static uint64_t penc_llama2c_bytes(const penc_llama2c_info *info, const penc_llama2c_array *array) {
    return 4 * penc_llama2c_axis(info, array->axes[0]) * penc_llama2c_axis(info, array->axes[1]);
}

static uint64_t penc_llama2c_file_size(const penc_llama2c_info *info) {
    uint64_t sum = PENC_LLAMA2C_HEADER;
    for (size_t i = 0; i < PENC_LLAMA2C_ARRAYS; i++) {
        const penc_llama2c_array *array = &penc_llama2c_arrays[i];
        sum += penc_llama2c_copies(info, array) * penc_llama2c_bytes(info, array);
    }
    return sum;
}

/* ---- The header ---- */

static int penc_llama2c_size_is_valid(uint32_t size) {
    return size >= 1 && size <= PENC_LLAMA2C_MAX_DIM;
}

/* A negative vocabulary says that the classifier has weights of its own. */
static int penc_llama2c_parse(const unsigned char *bytes, int big, penc_llama2c_info *info) {
    uint32_t numbers[7];
    for (size_t i = 0; i < 7; i++)
        numbers[i] = (uint32_t)penc_load_unsigned(bytes + 4 * i, 4, big);
    *info = (penc_llama2c_info){numbers[0], numbers[1], numbers[2], numbers[3], numbers[4],
                                numbers[5], numbers[6], 1,          big};
    if (info->vocab_size > INT32_MAX) {
        info->vocab_size = 0 - info->vocab_size;
        info->shared_output = 0;
    }
    return penc_llama2c_size_is_valid(info->dim) && penc_llama2c_size_is_valid(info->hidden_dim) &&
           penc_llama2c_size_is_valid(info->vocab_size) &&
           penc_llama2c_size_is_valid(info->seq_len) && info->layers >= 1 &&
           info->layers <= PENC_LLAMA2C_MAX_LAYERS && info->heads >= 1 && info->kv_heads >= 1 &&
           info->heads <= info->dim && info->kv_heads <= info->heads &&
           info->dim % (2 * info->heads) == 0 && info->heads % info->kv_heads == 0;
}

static int penc_llama2c_recognise(const unsigned char *bytes, uint64_t file_size,
                                  penc_llama2c_info *info) {
    for (int big = 0; big < 2; big++) {
        if (penc_llama2c_parse(bytes, big, info) && penc_llama2c_file_size(info) == file_size)
            return 1;
    }
    return 0;
}

int penc_llama2c_fits(const unsigned char bytes[28], uint64_t file_size) {
    penc_llama2c_info info;
    return penc_llama2c_recognise(bytes, file_size, &info);
}

/* Says in which way a file is not one. */
static posenc_status penc_llama2c_refuse(const penc_llama2c *made, const unsigned char *bytes,
                                         posenc_error *error) {
    const penc_input *input = &made->source.input;
    penc_llama2c_info info;
    if (penc_load_unsigned(bytes, 4, 0) == 0x616b3432)
        return penc_input_fail(input, POSENC_UNSUPPORTED, "version",
                               "be 0, without magic: export it with --version 0", 4, error);
    if (!penc_llama2c_parse(bytes, 0, &info))
        return penc_input_fail(input, POSENC_FORMAT, "file",
                               "begin with the 7 sizes of a llama2.c model", 0, error);
    if (penc_llama2c_file_size(&info) > input->size)
        return penc_input_short(input, input->size, penc_llama2c_file_size(&info), error);
    penc_input_fail(input, POSENC_FORMAT, "file", "be as long as its 7 sizes say", 0, error);
    penc_fail_limit(error, "bytes that they say", penc_llama2c_file_size(&info));
    return POSENC_FORMAT;
}

/* ---- Tensors: an entry's place is the number of its array, and its layer ---- */

static void penc_llama2c_name(const penc_entry *entry, char name[PENC_NAME_BYTES], size_t *length) {
    const penc_llama2c_array *array = &penc_llama2c_arrays[entry->place % PENC_LLAMA2C_ARRAYS];
    unsigned layer = entry->place / PENC_LLAMA2C_ARRAYS;
    int written = array->per_layer
                      ? snprintf(name, PENC_NAME_BYTES, "layers.%u.%s", layer, array->name)
                      : snprintf(name, PENC_NAME_BYTES, "%s", array->name);
    *length = (size_t)written;
}

static posenc_status penc_llama2c_entry_name(const void *source, const penc_entry *entry,
                                             char name[PENC_NAME_BYTES], size_t *length,
                                             posenc_error *error) {
    (void)source;
    (void)error;
    penc_llama2c_name(entry, name, length);
    return POSENC_OK;
}

static posenc_status penc_llama2c_read(const penc_tensor_source *source, const penc_entry *entry,
                                       penc_tensor *tensor, posenc_error *error) {
    const penc_llama2c_info *info = &((const penc_llama2c *)source)->info;
    const penc_llama2c_array *array = &penc_llama2c_arrays[entry->place % PENC_LLAMA2C_ARRAYS];
    (void)error;
    memset(tensor, 0, sizeof *tensor);
    penc_llama2c_name(entry, tensor->name, &tensor->name_length);
    tensor->type = PENC_TENSOR_F32;
    tensor->big_endian = info->big_endian;
    tensor->rank = array->axes[1] == PENC_NO_AXIS ? 1 : 2;
    for (size_t i = 0; i < tensor->rank; i++)
        tensor->shape[i] = penc_llama2c_axis(info, array->axes[i]);
    tensor->offset = entry->begin;
    tensor->bytes = entry->bytes;
    return POSENC_OK;
}

static posenc_status penc_llama2c_make_entries(penc_llama2c *made, posenc_error *error) {
    size_t most = PENC_LLAMA2C_ARRAYS * made->info.layers, name_length;
    uint64_t at = PENC_LLAMA2C_HEADER;
    char name[PENC_NAME_BYTES];
    penc_entry *entry = made->source.entries = malloc(most * sizeof *entry);
    if (!entry)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "index", "fit into memory");
    for (size_t i = 0; i < PENC_LLAMA2C_ARRAYS; i++) {
        size_t copies = penc_llama2c_copies(&made->info, &penc_llama2c_arrays[i]);
        for (size_t layer = 0; layer < copies; layer++, entry++, made->source.count++) {
            entry->begin = at;
            entry->bytes = penc_llama2c_bytes(&made->info, &penc_llama2c_arrays[i]);
            entry->place = (uint32_t)(layer * PENC_LLAMA2C_ARRAYS + i);
            penc_llama2c_name(entry, name, &name_length);
            entry->hash = penc_name_hash(name, name_length);
            at += entry->bytes;
        }
    }
    return POSENC_OK;
}

/* ---- The whole ---- */

static void penc_llama2c_free(penc_tensor_source *source) {
    penc_input_close(&source->input);
    free(source->entries);
    free(source);
}

static const penc_tensor_format penc_llama2c_format = {"llama2.c", penc_llama2c_read,
                                                       penc_llama2c_entry_name, penc_llama2c_free};

posenc_status penc_llama2c_open(const char *path, penc_llama2c **llama2c, posenc_error *error) {
    unsigned char bytes[PENC_LLAMA2C_HEADER];
    *llama2c = NULL;
    penc_llama2c *made = calloc(1, sizeof *made);
    if (!made)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "model", "fit into memory");
    made->source.format = &penc_llama2c_format;
    posenc_status status = penc_input_open(path, &made->source.input, error);
    if (!status)
        status = penc_input_read(&made->source.input, 0, bytes, sizeof bytes, error);
    if (!status && !penc_llama2c_recognise(bytes, made->source.input.size, &made->info))
        status = penc_llama2c_refuse(made, bytes, error);
    if (!status)
        status = penc_llama2c_make_entries(made, error);
    if (status)
        penc_llama2c_free(&made->source);
    else
        *llama2c = made;
    return status;
}

void penc_llama2c_close(penc_llama2c *llama2c) {
    if (llama2c)
        penc_llama2c_free(&llama2c->source);
}

const penc_llama2c_info *penc_llama2c_about(const penc_llama2c *llama2c) {
    return &llama2c->info;
}

const penc_tensor_source *penc_llama2c_tensors(const penc_llama2c *llama2c) {
    return &llama2c->source;
}
