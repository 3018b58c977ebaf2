/* Which axis each pair follows, and which rung of which ladder its frequency is.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_AXIS_MAP_H
#define PENC_AXIS_MAP_H

#include "posenc/axes.h"

/* Walks the pairs in order; start from penc_axis_map_start. */
typedef struct penc_axis_map {
    posenc_axes axes; /* one axis where the spec has none */
    size_t pairs;
    size_t of_axis[POSENC_MAX_AXES]; /* pairs of each axis in all */
    size_t seen[POSENC_MAX_AXES];    /* of those, how many the walk has passed */
} penc_axis_map;

/* A pair's axis, and its frequency base^(-rung / ladder). */
typedef struct penc_axis_place {
    unsigned axis;
    uint64_t rung, ladder;
} penc_axis_place;

/* Checks `axes` (NULL: one) for `pairs` pairs. */
posenc_status penc_axis_map_start(const posenc_axes *axes, size_t pairs, penc_axis_map *map,
                                  posenc_error *error);

/* The place of the next pair, which must be `pair`. */
penc_axis_place penc_axis_map_next(penc_axis_map *map, size_t pair);

#endif
