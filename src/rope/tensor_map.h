/* The memory of a tensor. SPDX-License-Identifier: MIT */
#ifndef PENC_TENSOR_MAP_H
#define PENC_TENSOR_MAP_H

#include "base/memory_map.h"
#include "posenc/rotate.h"

/* Checks a tensor and maps its memory; `argument` names it in errors. */
posenc_status penc_map_tensor(const posenc_tensor *tensor, const char *argument,
                              penc_memory_map *map, posenc_error *error);

#endif
