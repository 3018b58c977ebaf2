/* JSON files and texts, as configurations are, into json-c objects. The grammar is json_scan.h's; a key that stands
 * twice in an object is an error, numbers beyond float64 too; integers beyond 64 bits become reals. Errors
 * tell the byte and, for files, the path.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_JSON_FILE_H
#define PENC_JSON_FILE_H

#include "posenc/status.h"

#include <json-c/json.h>

/* Longer texts are refused, and those that would make objects of more memory. */
enum { PENC_JSON_MAX_BYTES = 4 << 20, PENC_JSON_MAX_MEMORY = 32 << 20 };

/* Reads the text of one object; freed with json_object_put. On failure *object is NULL. */
posenc_status penc_json_parse(const char *text, size_t length, json_object **object,
                              posenc_error *error);
posenc_status penc_json_read_file(const char *path, json_object **object, posenc_error *error);

#endif
