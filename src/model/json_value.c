/* Members of json-c objects. SPDX-License-Identifier: MIT */
#include "model/json_value.h"

#include <stdlib.h>

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
