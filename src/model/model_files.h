/* Which file of a model to read. SPDX-License-Identifier: MIT */
#ifndef PENC_MODEL_FILES_H
#define PENC_MODEL_FILES_H

#include "base/arena.h"
#include "posenc/status.h"

/* The bytes of the configuration at `path` (a file, or a folder with config.json or params.json); freed with
 * free(). Files above 16 MiB are refused. */
posenc_status penc_model_file_read(penc_arena *arena, const char *path, char **text, size_t *length,
                                   posenc_error *error);

#endif
