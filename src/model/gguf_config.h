/* A GGUF file's metadata as a configuration. SPDX-License-Identifier: MIT */
#ifndef PENC_GGUF_CONFIG_H
#define PENC_GGUF_CONFIG_H

#include "formats/gguf.h"
#include "model/config_keys.h"

/* Fills root, origin, part, prefix, rule, known, model_type and implied of a config (whose arena and error are
 * set) from the keys and the frequency tensors of an open file. */
posenc_status penc_gguf_config(penc_config *config, const penc_gguf *gguf);

#endif
