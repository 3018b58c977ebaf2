/* A cache that has been checked, strides filled in. SPDX-License-Identifier: MIT */
#ifndef PENC_CACHE_VIEW_H
#define PENC_CACHE_VIEW_H

#include "base/memory_map.h"
#include "posenc/cache.h"
#include "rope/head_pass.h"

typedef struct penc_cache_view {
    posenc_cache cache; /* no stride is 0 but those of single elements */
    penc_memory_map data, scales;
    size_t bytes;   /* of a number */
    int has_scales; /* one for each token and head */
    uint64_t slots;
} penc_cache_view;

/* Checks a cache. `argument` names it where it is NULL. */
posenc_status penc_view_cache(const posenc_cache *cache, const char *argument,
                              penc_cache_view *view, posenc_error *error);

/* Checks that an array shares no element with what is written to the cache; `argument` names the array. */
posenc_status penc_check_cache_apart(const penc_cache_view *view, const penc_memory_map *map,
                                     const void *data, const char *argument, posenc_error *error);

/* A slot's first channel, and its first scale (NULL where it has none). */
void *penc_slot_data(const penc_cache_view *view, int64_t slot);
float *penc_slot_scales(const penc_cache_view *view, int64_t slot);

penc_head_side penc_side_of_cache(const penc_cache_view *view);

#endif
