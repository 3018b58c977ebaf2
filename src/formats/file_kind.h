/* What a file is that is no model, so that an error can say it. SPDX-License-Identifier: MIT */
#ifndef PENC_FILE_KIND_H
#define PENC_FILE_KIND_H

#include "formats/json_file.h"

/* Fails with FORMAT where the first bytes of a file are not those of a GGUF file; `must` names what it looks like. A file
 * that cannot be opened fails as penc_input_open does. */
posenc_status penc_expect_gguf(const char *path, posenc_error *error);

/* The same for a file that should hold JSON and does not begin like an object or a list. */
posenc_status penc_expect_json(const char *path, posenc_error *error);

/* The same for an object of JSON that is a file of another purpose: a tokenizer's, an adapter's ... by keys that only
 * such files have. */
posenc_status penc_expect_config(json_object *root, const char *path, posenc_error *error);

#endif
