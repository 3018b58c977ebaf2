/* Which object of a configuration describes the language model, and which row of rules fits it.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_LANGUAGE_PART_H
#define PENC_LANGUAGE_PART_H

#include "model/config_keys.h"

/* Fills part, prefix, rule, known, model_type and implied of a config whose root (and arena, error) are set.
 * `model_type` (may be NULL) replaces the file's own. */
posenc_status penc_language_part(penc_config *config, const char *model_type);

#endif
