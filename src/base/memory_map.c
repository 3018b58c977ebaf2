/* Which bytes a strided array touches. SPDX-License-Identifier: MIT */
#include "base/memory_map.h"

#include "base/checked.h"

static size_t penc_stride_size(ptrdiff_t stride) {
    return stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
}

/* Inserts an axis so that strides fall in magnitude. */
static void penc_map_insert(penc_memory_map *map, size_t count, ptrdiff_t stride) {
    int at = map->axes++;
    while (at > 0 && penc_stride_size(map->stride[at - 1]) < penc_stride_size(stride)) {
        map->count[at] = map->count[at - 1];
        map->stride[at] = map->stride[at - 1];
        at--;
    }
    map->count[at] = count;
    map->stride[at] = stride;
}

int penc_map_array(penc_memory_map *map, size_t element, int axes, const size_t *count,
                   const ptrdiff_t *stride) {
    map->axes = 0; /* counts and strides are set as axes come */
    map->element = element;
    map->low = map->high = 0;
    for (int axis = 0; axis < axes; axis++) {
        if (count[axis] == 0)
            return 1;
    }
    size_t total = element;
    ptrdiff_t low = 0, high = (ptrdiff_t)element;
    for (int axis = 0; axis < axes; axis++) {
        ptrdiff_t step, reach;
        if (count[axis] == 1)
            continue; /* the stride of a single element is not used */
        if (!penc_size_multiply(total, count[axis], &total) || total > PTRDIFF_MAX / 4 ||
            !penc_offset(1, stride[axis], element, &step) ||
            !penc_offset(count[axis] - 1, step, 1, &reach))
            return 0;
        low += reach < 0 ? reach : 0; /* four offsets of at most PTRDIFF_MAX / 8 cannot overflow */
        high += reach > 0 ? reach : 0;
        penc_map_insert(map, count[axis], step);
    }
    map->low = low;
    map->high = high;
    return 1;
}

int penc_map_fits_at(const penc_memory_map *map, const void *data) {
    uintptr_t at = (uintptr_t)data;
    return at >= (uintptr_t)-map->low && at <= UINTPTR_MAX - (uintptr_t)map->high;
}

int penc_map_writes_once(const penc_memory_map *map) {
    /* Each stride must step over all that the smaller ones reach. */
    size_t reach = map->element;
    for (int axis = map->axes - 1; axis >= 0; axis--) {
        size_t stride = penc_stride_size(map->stride[axis]);
        if (stride < reach)
            return 0;
        reach += (map->count[axis] - 1) * stride;
    }
    return 1;
}

/* Modulo `period`, the map's bytes lie in one interval of this length: axes that step by whole
 * periods do not move it. *low gets its start relative to the data pointer. Returns 0 if it is
 * longer. */
static int penc_map_interval(const penc_memory_map *map, size_t period, ptrdiff_t *low,
                             size_t *length) {
    *low = 0;
    *length = map->element;
    for (int axis = 0; axis < map->axes; axis++) {
        size_t stride = penc_stride_size(map->stride[axis]);
        if (stride % period == 0)
            continue;
        size_t reach = (map->count[axis] - 1) * stride;
        *length += reach;
        if (map->stride[axis] < 0)
            *low -= (ptrdiff_t)reach;
    }
    return *length <= period;
}

/* Views of one packed array: disjoint if modulo a common stride their intervals do not meet. */
static int penc_maps_disjoint_modulo(const penc_memory_map *a, const void *a_data,
                                     const penc_memory_map *b, const void *b_data, size_t period) {
    ptrdiff_t a_low, b_low;
    size_t a_length, b_length;
    if (period == 0 || !penc_map_interval(a, period, &a_low, &a_length) ||
        !penc_map_interval(b, period, &b_low, &b_length))
        return 0;
    /* Unsigned differences wrap consistently: the distance from a's start to b's, up or down. */
    uintptr_t a_start = (uintptr_t)a_data + (uintptr_t)a_low;
    uintptr_t b_start = (uintptr_t)b_data + (uintptr_t)b_low;
    size_t gap = b_start >= a_start ? (size_t)(b_start - a_start) % period
                                    : (period - (size_t)(a_start - b_start) % period) % period;
    return gap >= a_length && gap + b_length <= period;
}

int penc_maps_disjoint(const penc_memory_map *a, const void *a_data, const penc_memory_map *b,
                       const void *b_data) {
    /* Addresses as integers: the arrays may not exist where a caller has erred. */
    uintptr_t a_low = (uintptr_t)a_data + (uintptr_t)a->low,
              b_low = (uintptr_t)b_data + (uintptr_t)b->low;
    size_t a_bytes = (size_t)(a->high - a->low), b_bytes = (size_t)(b->high - b->low);
    if (!penc_ranges_meet(a_low, a_bytes, b_low, b_bytes))
        return 1;
    for (int axis = 0; axis < a->axes; axis++) {
        if (penc_maps_disjoint_modulo(a, a_data, b, b_data, penc_stride_size(a->stride[axis])))
            return 1;
    }
    return 0;
}
