/* Any bytes as JSON. What is read prints as JSON that reads as the same again, and the scanner sees the same through
 * a narrow window. SPDX-License-Identifier: MIT */
#include "formats/json_file.h"
#include "formats/json_scan.h"

#include "fuzz_file.h"

#include <string.h>

/* A number that depends on every token, its text and its place; the status of the whole. */
static posenc_status digest_of(penc_json *json, uint64_t *digest) {
    posenc_status status = POSENC_OK;
    penc_json_token token = PENC_JSON_NULL;
    *digest = 0;
    while (!status && token != PENC_JSON_END) {
        status = penc_json_next(json, &token);
        if (status)
            break;
        *digest = (*digest ^ (uint64_t)token ^ json->place << 8 ^ json->length << 20) *
                  0x9e3779b97f4a7c15u;
        size_t kept = json->length < json->capacity ? json->length : json->capacity - 1;
        for (size_t i = 0; i < kept; i++)
            *digest = (*digest ^ (unsigned char)json->text[i]) * 0x9e3779b97f4a7c15u;
    }
    return status;
}

static void compare_windows(const uint8_t *data, size_t size) {
    char text[64];
    unsigned char window[7];
    uint64_t in_memory, in_file;
    penc_input input;
    FUZZ_CHECK(!penc_input_open(fuzz_file(data, size), &input, NULL));
    penc_json json = penc_json_of_text((const char *)data, size, text, sizeof text, NULL);
    posenc_status status = digest_of(&json, &in_memory);
    json = penc_json_of_file(&input, 0, size, window, sizeof window, text, sizeof text, NULL);
    FUZZ_CHECK(digest_of(&json, &in_file) == status && in_memory == in_file);
    penc_input_close(&input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_object *object, *again;
    posenc_error error;
    compare_windows(data, size);
    posenc_status status = penc_json_parse((const char *)data, size, &object, &error);
    if (status) {
        fuzz_check_error(status, &error);
        return 0;
    }
    char *first = strdup(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
    status = penc_json_parse(first, strlen(first), &again, &error);
    if (status)
        fprintf(stderr, "%s\n%s must %s\n", first, error.argument, error.must);
    FUZZ_CHECK(!status);
    FUZZ_CHECK(strcmp(json_object_to_json_string_ext(again, JSON_C_TO_STRING_PLAIN), first) == 0);
    free(first);
    json_object_put(object);
    json_object_put(again);
    return 0;
}
