/* The model that an adapter is for. SPDX-License-Identifier: MIT */
#ifndef PENC_ADAPTER_BASE_H
#define PENC_ADAPTER_BASE_H

#include "posenc/status.h"

/* The configuration (or GGUF) of the model that the adapter_config.json beside `weights` names, if there is such a file
 * and the model is at hand: a path, or a name in a local cache. Else *config is NULL. Freed with free(). Fails with
 * FORMAT where adapter_config.json cannot be read. */
posenc_status penc_adapter_base(const char *weights, char **config, posenc_error *error);

#endif
