/* Members of json-c objects, and what models write in place of numbers. SPDX-License-Identifier: MIT */
#ifndef PENC_JSON_VALUE_H
#define PENC_JSON_VALUE_H

#include <json-c/json.h>

/* The member; NULL if it is missing, null or `object` is no object. */
json_object *penc_json_get(json_object *object, const char *key);

/* Whether the key is there, null or not. */
int penc_json_has(json_object *object, const char *key);

int penc_json_is(json_object *value, json_type type);

/* A number, or a string that is one (*in_string is set to 1 then). Returns 0 for anything else. */
int penc_json_number(json_object *value, double *number, int *in_string);

#endif
