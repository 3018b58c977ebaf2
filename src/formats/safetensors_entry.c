/* One tensor or text in the header of a safetensors file. SPDX-License-Identifier: MIT */
#include "formats/safetensors_file.h"

#include "base/fail.h"

#include <string.h>

/* The members of a tensor's object. */
enum { PENC_ST_DTYPE, PENC_ST_SHAPE, PENC_ST_OFFSETS, PENC_ST_MEMBERS };

static const char *const penc_st_members[PENC_ST_MEMBERS] = {"dtype", "shape", "data_offsets"};

static posenc_status penc_st_bad(penc_json *json, const char *argument, const char *must) {
    return penc_json_fail(json, POSENC_FORMAT, argument, must, json->place);
}

/* Reads a token that must be the one that is `wanted`. */
static posenc_status penc_st_want(penc_json *json, penc_json_token wanted, const char *argument,
                                  const char *must) {
    penc_json_token token;
    posenc_status status = penc_json_next(json, &token);
    return status || token == wanted ? status : penc_st_bad(json, argument, must);
}

posenc_status penc_safetensors_take_name(penc_json *json, const char *argument,
                                         char name[PENC_NAME_BYTES], size_t *length) {
    *length = json->length;
    if (json->length >= PENC_NAME_BYTES)
        return penc_json_fail(json, POSENC_UNSUPPORTED, argument, "have at most 511 bytes",
                              json->place);
    memcpy(name, json->text, json->length + 1);
    return POSENC_OK;
}

/* The digits of an INTEGER token. */
static posenc_status penc_st_number(penc_json *json, const char *argument, uint64_t *number) {
    const char *digit = json->text;
    if (*digit == '-')
        return penc_st_bad(json, argument, "be integers that are not negative");
    for (*number = 0; *digit; digit++) {
        unsigned value = (unsigned)(*digit - '0');
        if (*number > ((uint64_t)INT64_MAX - value) / 10)
            return penc_json_fail(json, POSENC_OVERFLOW, argument, "be integers below 2^63",
                                  json->place);
        *number = *number * 10 + value;
    }
    return POSENC_OK;
}

/* A list of at most `most` integers. */
static posenc_status penc_st_list(penc_json *json, const char *argument, size_t most,
                                  uint64_t *numbers, size_t *count) {
    penc_json_token token;
    posenc_status status = penc_st_want(json, PENC_JSON_ARRAY, argument, "be a list of integers");
    for (*count = 0; !status; ++*count) {
        status = penc_json_next(json, &token);
        if (status || token == PENC_JSON_ARRAY_END)
            break;
        if (token != PENC_JSON_INTEGER)
            return penc_st_bad(json, argument, "be a list of integers");
        if (*count == most) {
            status = penc_json_fail(json, POSENC_UNSUPPORTED, argument, "have fewer numbers",
                                    json->place);
            penc_fail_limit(json->error, "most", most);
            return status;
        }
        status = penc_st_number(json, argument, &numbers[*count]);
    }
    return status;
}

static posenc_status penc_st_dtype(penc_json *json, penc_tensor *tensor) {
    posenc_status status = penc_st_want(json, PENC_JSON_STRING, "dtype", "be a string");
    if (status)
        return status;
    tensor->type = penc_tensor_type_of_word(json->text, json->length);
    if (tensor->type == PENC_TENSOR_UNKNOWN)
        return penc_json_fail(json, POSENC_UNSUPPORTED, "dtype",
                              "be F64, F32, F16, BF16, F8_E4M3, I64 or another one of safetensors",
                              json->place);
    return POSENC_OK;
}

/* Relative to the end of the header. */
static posenc_status penc_st_offsets(const penc_safetensors *safetensors, penc_json *json,
                                     penc_tensor *tensor) {
    uint64_t offsets[2], place;
    size_t count;
    posenc_status status = penc_st_list(json, "data_offsets", 2, offsets, &count);
    if (status)
        return status;
    place = json->place;
    if (count != 2 || offsets[0] > offsets[1])
        return penc_st_bad(json, "data_offsets", "be two integers, the second not below the first");
    if (offsets[1] > INT64_MAX - safetensors->header_end)
        return penc_json_fail(json, POSENC_OVERFLOW, "data_offsets", "be places in a file", place);
    tensor->offset = safetensors->header_end + offsets[0];
    tensor->bytes = offsets[1] - offsets[0];
    return POSENC_OK;
}

static posenc_status penc_st_member(const penc_safetensors *safetensors, penc_json *json,
                                    penc_tensor *tensor, unsigned *seen) {
    unsigned member = 0;
    while (member < PENC_ST_MEMBERS && strcmp(json->text, penc_st_members[member]) != 0)
        member++;
    if (member == PENC_ST_MEMBERS) { /* one that a later version may add */
        penc_json_token token;
        posenc_status status = penc_json_next(json, &token);
        return status ? status : penc_json_skip(json, token);
    }
    if (*seen & 1u << member)
        return penc_st_bad(json, penc_st_members[member], "stand in its object once");
    *seen |= 1u << member;
    if (member == PENC_ST_DTYPE)
        return penc_st_dtype(json, tensor);
    if (member == PENC_ST_SHAPE)
        return penc_st_list(json, "shape", PENC_TENSOR_MAX_RANK, tensor->shape, &tensor->rank);
    return penc_st_offsets(safetensors, json, tensor);
}

/* Whether the bytes are those of type and shape. */
static posenc_status penc_st_check_bytes(penc_json *json, penc_tensor *tensor, uint64_t place) {
    uint64_t bytes = tensor->bytes;
    const char *must = penc_tensor_measure(tensor, 0);
    if (must)
        return penc_json_fail(json, POSENC_OVERFLOW, "shape", must, place);
    if (bytes == tensor->bytes)
        return POSENC_OK;
    penc_json_fail(json, POSENC_FORMAT, "data_offsets", "span the bytes of dtype and shape", place);
    if (json->error) {
        json->error->value.kind = POSENC_NUMBER_SIZE;
        json->error->value.as.size = bytes;
    }
    penc_fail_limit(json->error, "bytes of dtype and shape", tensor->bytes);
    return POSENC_FORMAT;
}

posenc_status penc_safetensors_take_tensor(const penc_safetensors *safetensors, penc_json *json,
                                           penc_tensor *tensor) {
    static const char object[] = "be an object with dtype, shape and data_offsets";
    unsigned seen = 0;
    posenc_status status = penc_st_want(json, PENC_JSON_OBJECT, "tensor", object);
    uint64_t place = json->place;
    tensor->big_endian = 0;
    while (!status) {
        penc_json_token token;
        status = penc_json_next(json, &token);
        if (status || token == PENC_JSON_OBJECT_END)
            break;
        status = penc_st_member(safetensors, json, tensor, &seen);
    }
    for (unsigned i = 0; i < PENC_ST_MEMBERS && !status; i++) {
        if (!(seen & 1u << i))
            status = penc_json_fail(json, POSENC_FORMAT, penc_st_members[i],
                                    "stand in the tensor's object", place);
    }
    return status ? status : penc_st_check_bytes(json, tensor, place);
}

penc_json penc_safetensors_scan_at(const penc_safetensors *safetensors, const penc_entry *entry,
                                   unsigned char *window, size_t window_bytes, char *text,
                                   size_t capacity, posenc_error *error) {
    penc_json json =
        penc_json_of_file(&safetensors->source.input, PENC_SAFETENSORS_PREFIX + entry->place,
                          safetensors->header_end, window, window_bytes, text, capacity, error);
    penc_json_begin_at_key(&json);
    return json;
}

static posenc_status penc_st_scan_name(penc_json *json, char name[PENC_NAME_BYTES],
                                       size_t *length) {
    posenc_status status = penc_st_want(json, PENC_JSON_KEY, "tensor", "have a name");
    return status ? status : penc_safetensors_take_name(json, "tensor name", name, length);
}

posenc_status penc_safetensors_name(const void *source, const penc_entry *entry,
                                    char name[PENC_NAME_BYTES], size_t *length,
                                    posenc_error *error) {
    unsigned char window[PENC_NAME_BYTES];
    char text[PENC_NAME_BYTES];
    penc_json json =
        penc_safetensors_scan_at(source, entry, window, sizeof window, text, sizeof text, error);
    return penc_st_scan_name(&json, name, length);
}

posenc_status penc_safetensors_read(const penc_tensor_source *source, const penc_entry *entry,
                                    penc_tensor *tensor, posenc_error *error) {
    const penc_safetensors *safetensors = (const penc_safetensors *)source;
    unsigned char window[2 * PENC_NAME_BYTES];
    char text[PENC_NAME_BYTES];
    penc_json json = penc_safetensors_scan_at(safetensors, entry, window, sizeof window, text,
                                              sizeof text, error);
    memset(tensor, 0, sizeof *tensor);
    posenc_status status = penc_st_scan_name(&json, tensor->name, &tensor->name_length);
    if (status)
        return status;
    status = penc_safetensors_take_tensor(safetensors, &json, tensor);
    if (status)
        penc_fail_name(error, tensor->name, tensor->name_length);
    return status;
}
