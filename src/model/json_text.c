/* JSON text to json-c objects. SPDX-License-Identifier: MIT */
#include "model/json_text.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

posenc_status penc_json_parse(const char *text, size_t length, int depth, json_object **object,
                              posenc_error *error) {
    *object = NULL;
    if (length > PENC_JSON_BYTES)
        return penc_fail_size(error, "length", length, "be at most 16 MiB");
    json_tokener *tokener = json_tokener_new_ex(depth);
    if (!tokener)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "json", "have memory to be read in");
    *object = json_tokener_parse_ex(tokener, text, (int)length);
    enum json_tokener_error fault = json_tokener_get_error(tokener);
    size_t end = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    while (end < length && text[end] && strchr(" \t\r\n", text[end]))
        end++;
    posenc_status status = POSENC_OK;
    if (fault != json_tokener_success || end < length)
        status = penc_fail(error, POSENC_FORMAT, "json", "be JSON");
    else if (!penc_json_is(*object, json_type_object))
        status = penc_fail(error, POSENC_FORMAT, "json", "be an object: {\"rope_type\": ...}");
    if (status) {
        penc_fail_place(error, "byte", (int64_t)end);
        json_object_put(*object);
        *object = NULL;
    }
    return status;
}

json_object *penc_json_get(json_object *object, const char *key) {
    json_object *value = NULL;
    if (penc_json_is(object, json_type_object))
        json_object_object_get_ex(object, key, &value);
    return value;
}

int penc_json_has(json_object *object, const char *key) {
    return penc_json_is(object, json_type_object) && json_object_object_get_ex(object, key, NULL);
}

int penc_json_is(json_object *value, json_type type) {
    return value && json_object_get_type(value) == type;
}

int penc_json_number(json_object *value, double *number, int *in_string) {
    if (penc_json_is(value, json_type_double) || penc_json_is(value, json_type_int)) {
        *number = json_object_get_double(value);
        return 1;
    }
    if (!penc_json_is(value, json_type_string))
        return 0;
    char *end;
    const char *text = json_object_get_string(value);
    double read = strtod(text, &end);
    if (end == text || *end)
        return 0;
    *number = read;
    *in_string = 1;
    return 1;
}
