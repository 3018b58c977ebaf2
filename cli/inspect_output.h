/* What posenc inspect prints. SPDX-License-Identifier: MIT */
#ifndef CLI_INSPECT_OUTPUT_H
#define CLI_INSPECT_OUTPUT_H

#include "posenc/model.h"

/* The frequencies of a type that rotates, at the model's own length, and what follows from them; NULL for other types
 * and where there is no valid spec or no memory. Destroyed by the caller. */
posenc_frequencies *inspect_frequencies(const posenc_layer_type *type, posenc_layer_facts *facts);

void inspect_print_json(const char *path, const posenc_model *model);
void inspect_print_page(const char *path, const posenc_model *model);

#endif
