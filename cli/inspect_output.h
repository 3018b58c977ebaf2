/* What posenc inspect prints. SPDX-License-Identifier: MIT */
#ifndef CLI_INSPECT_OUTPUT_H
#define CLI_INSPECT_OUTPUT_H

#include "posenc/model.h"

void inspect_print_json(const char *path, const posenc_model *model);
void inspect_print_page(const char *path, const posenc_model *model);

#endif
