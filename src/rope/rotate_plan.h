/* What posenc_rotate does, checked: everything that can be refused is refused here.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_ROTATE_PLAN_H
#define PENC_ROTATE_PLAN_H

#include "rope/tensor_map.h"

/* Memory of a running call for rows that are prepared, and for slices that are rearranged in place. */
enum { PENC_SCRATCH_BYTES = 16384 };

/* Everything that a checked call needs. */
typedef struct penc_rotate_plan {
    posenc_rotation rotation;   /* strides filled in */
    const posenc_tensor *x, *y; /* input and output */
    const char *input;
    char *output;
    penc_memory_map x_map, y_map;
    posenc_pairing y_pairing;
    size_t first, count; /* the range of tokens */
    int transpose, in_place, streaming;
    double scale;
    int empty; /* no element: nothing to do */
} penc_rotate_plan;

/* Checks one item and fills *plan, all but what concerns other items. */
posenc_status penc_make_plan(penc_rotate_plan *plan, const posenc_rotation *rotation,
                             const posenc_rotate_item *item, const posenc_rotate_options *options,
                             posenc_error *error);

/* The same without a rotation: rotary_dim is 0. */
posenc_status penc_make_still_plan(penc_rotate_plan *plan, const posenc_rotate_item *item,
                                   const posenc_rotate_options *options, posenc_error *error);

/* Checks a rotation for a tensor that has been checked and fills in its strides, for other writers than posenc_rotate. */
posenc_status penc_plan_rotation(const posenc_rotation *rotation, const posenc_tensor *tensor,
                                 posenc_rotation *planned, posenc_error *error);

/* The tokens that options.first_token and options.token_count (0: all from the first one on) mean, of `tokens`. */
posenc_status penc_take_range(size_t tokens, size_t first, size_t wanted, size_t *begin,
                              size_t *count, posenc_error *error);

/* The memory of cos or sin, seen as an array of tables x rows x 2 x pairs. */
posenc_status penc_map_table(const posenc_rotation *rotation, penc_memory_map *map,
                             posenc_error *error);

/* Checks that one item's output shares no element with another item. */
posenc_status penc_check_items_apart(const penc_rotate_plan *plan, const penc_rotate_plan *other,
                                     posenc_error *error);

#endif
