/* Prints all that the readers find in files, for readers_python.py to compare: dump_readers FILE...
 * Texts are in hexadecimal, floats as their bits. SPDX-License-Identifier: MIT */
#include "formats/json_file.h"
#include "formats/tensor_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const posenc_error *error) {
    char text[1000];
    posenc_error_text(error, text, sizeof text);
    printf("error\t%s\t%s\n", posenc_status_name(error->status), text);
}

static void check(posenc_status status, const posenc_error *error) {
    if (status) {
        fail(error);
        exit(1);
    }
}

static void print_hex(const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        printf("%02x", ((const unsigned char *)bytes)[i]);
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- GGUF ---- */

static void print_text(const penc_gguf *gguf, const penc_gguf_value *value) {
    posenc_error error;
    unsigned char *bytes = malloc(value->count + 1);
    check(penc_input_read(&penc_gguf_tensors(gguf)->input, value->place, bytes,
                          (size_t)value->count, &error),
          &error);
    print_hex(bytes, (size_t)value->count);
    free(bytes);
}

static void print_value(const penc_gguf *gguf, const penc_gguf_value *value) {
    double real;
    int64_t integer;
    if (value->type == PENC_GGUF_STRING) {
        print_text(gguf, value);
    } else if (value->type == PENC_GGUF_ARRAY) {
        penc_gguf_walk *walk = malloc(sizeof *walk);
        posenc_error error;
        printf("[%s", penc_gguf_type_word(value->element));
        for (penc_gguf_walk_begin(gguf, value, walk); walk->left;) {
            penc_gguf_value element;
            check(penc_gguf_walk_next(walk, &element, &error), &error);
            printf(",");
            print_value(gguf, &element);
        }
        printf("]");
        free(walk);
    } else if (value->type == PENC_GGUF_F32 || value->type == PENC_GGUF_F64) {
        printf("%016" PRIx64, penc_gguf_real(value, &real) ? bits_of(real) : 0);
    } else if (penc_gguf_integer(value, &integer)) {
        printf("%" PRId64, integer);
    } else {
        printf("%" PRIu64, value->as.u);
    }
}

static void print_gguf(const penc_gguf *gguf) {
    const penc_gguf_info *info = penc_gguf_about(gguf);
    posenc_error error;
    printf("gguf\t%" PRIu32 "\t%d\n", info->version, info->big_endian);
    for (size_t i = 0; i < info->key_count; i++) {
        char name[PENC_NAME_BYTES];
        penc_gguf_value value;
        check(penc_gguf_key(gguf, i, name, &value, &error), &error);
        printf("key\t%s\t%s\t", name, penc_gguf_type_word(value.type));
        print_value(gguf, &value);
        printf("\n");
    }
}

/* ---- Tensors ---- */

static void print_metadata(const penc_safetensors *file) {
    static char text[1 << 20];
    for (size_t i = 0; i < penc_safetensors_metadata_count(file); i++) {
        char key[PENC_NAME_BYTES];
        size_t length;
        posenc_error error;
        check(penc_safetensors_metadata(file, i, key, text, sizeof text, &length, &error), &error);
        printf("metadata\t");
        print_hex(key, strlen(key));
        printf("\t");
        print_hex(text, length);
        printf("\n");
    }
}

/* The checksum of zip files, bit by bit. */
static uint32_t add_to_checksum(uint32_t sum, const unsigned char *bytes, size_t count) {
    sum = ~sum;
    for (size_t i = 0; i < count; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? sum >> 1 ^ 0xedb88320u : sum >> 1;
    }
    return ~sum;
}

static uint32_t checksum_of_rows(const penc_tensor_source *file, const penc_tensor *tensor) {
    size_t row_bytes = (size_t)penc_tensor_row_bytes(tensor);
    unsigned char *row = malloc(row_bytes + 1);
    uint32_t sum = 0;
    for (uint64_t i = 0; row_bytes && i < penc_tensor_rows(tensor); i++) {
        posenc_error error;
        check(penc_tensor_read_rows(file, tensor, i, 1, row, &error), &error);
        sum = add_to_checksum(sum, row, row_bytes);
    }
    free(row);
    return sum;
}

static void print_tensors(const penc_tensor_set *set, const penc_tensor_source *file) {
    for (size_t i = 0; i < file->count; i++) {
        penc_tensor tensor, found;
        const penc_tensor_source *there;
        posenc_error error;
        check(file->format->read(file, &file->entries[i], &tensor, &error), &error);
        check(penc_tensor_set_find(set, tensor.name, &found, &there, &error), &error);
        printf("tensor\t");
        print_hex(tensor.name, tensor.name_length);
        printf("\t%s\t", penc_tensor_type_name(tensor.type));
        for (size_t axis = 0; axis < tensor.rank; axis++)
            printf("%s%" PRIu64, axis ? "," : "", tensor.shape[axis]);
        printf("\t%" PRIu64 "\t%" PRIu64 "\t%08" PRIx32 "%s\n", tensor.offset, tensor.bytes,
               checksum_of_rows(file, &tensor),
               there == file && found.offset == tensor.offset ? "" : "\tnot found");
    }
}

static void print_set(const char *path) {
    penc_tensor_set *set;
    posenc_error error;
    if (penc_tensor_set_open(path, &set, &error)) {
        fail(&error);
        return;
    }
    for (size_t i = 0; i < penc_tensor_set_files(set); i++) {
        if (penc_tensor_set_gguf(set, i))
            print_gguf(penc_tensor_set_gguf(set, i));
        if (penc_tensor_set_safetensors(set, i))
            print_metadata(penc_tensor_set_safetensors(set, i));
        print_tensors(set, penc_tensor_set_file(set, i));
    }
    penc_tensor_set_close(set);
}

static void print_json(const char *path) {
    json_object *object;
    posenc_error error;
    if (penc_json_read_file(path, &object, &error)) {
        fail(&error);
        return;
    }
    printf("json\t%s\n", json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
    json_object_put(object);
}

int main(int count, char **paths) {
    for (int i = 1; i < count; i++) {
        size_t length = strlen(paths[i]);
        printf("file\t%s\n", paths[i]);
        if (length > 5 && strcmp(paths[i] + length - 5, ".json") == 0)
            print_json(paths[i]);
        else
            print_set(paths[i]);
    }
    return 0;
}
