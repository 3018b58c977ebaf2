/* posenc_cache_read. SPDX-License-Identifier: MIT */
#include "cache/cache_slots.h"

#include "base/fail.h"
#include "rope/tensor_map.h"

static posenc_status penc_check_shape(const posenc_tensor *tensor, const posenc_cache *cache,
                                      size_t count, posenc_error *error) {
    const size_t wanted[POSENC_AXES] = {1, count, cache->heads, cache->head_dim};
    for (int axis = 0; axis < POSENC_AXES; axis++) {
        if (tensor->shape[axis] == wanted[axis])
            continue;
        penc_fail_size(error, "tensor", tensor->shape[axis],
                       "have batch 1, the slots' count and the cache's heads and head_dim");
        penc_fail_limit(error, "wanted", wanted[axis]);
        penc_fail_place(error, "axis", axis);
        return POSENC_OUT_OF_RANGE;
    }
    return POSENC_OK;
}

static posenc_status penc_check_read(const penc_cache_view *view, const int64_t *slots,
                                     size_t count, const posenc_tensor *tensor, const void *output,
                                     posenc_error *error) {
    penc_memory_map map;
    posenc_status status = penc_map_tensor(tensor, "tensor", &map, error);
    if (!status)
        status = penc_check_shape(tensor, &view->cache, count, error);
    if (!status)
        status = penc_check_slot_list(slots, count, view, 0, "slots", error);
    if (status || count == 0)
        return status;
    if (!output)
        return penc_fail_null(error, "output");
    if (!penc_map_fits_at(&map, output))
        return penc_fail(error, POSENC_OVERFLOW, "tensor", "lie within the address space");
    if (!penc_map_writes_once(&map))
        return penc_fail(error, POSENC_OVERLAP, "tensor",
                         "have strides that write every element once");
    return penc_check_cache_apart(view, &map, output, "output", error);
}

posenc_status posenc_cache_read(const posenc_cache *cache, const int64_t *slots, size_t count,
                                const posenc_tensor *tensor, void *output, posenc_error *error) {
    penc_cache_view view;
    posenc_status status = penc_view_cache(cache, "cache", &view, error);
    if (!status)
        status = penc_check_read(&view, slots, count, tensor, output, error);
    if (status)
        return status;
    penc_head_pass pass = {
        .heads = cache->heads,
        .head_dim = cache->head_dim,
        .x = penc_side_of_cache(&view),
        .y = penc_side_of_tensor(tensor),
    };
    penc_ready_pass(&pass, NULL);
    for (size_t i = 0; i < count; i++) {
        ptrdiff_t at = (ptrdiff_t)i * tensor->strides[POSENC_AXIS_TOKENS];
        penc_head_token token = {
            .x = penc_slot_data(&view, slots[i]),
            .x_scales = penc_slot_scales(&view, slots[i]),
            .y = (char *)output + at * (ptrdiff_t)posenc_dtype_bytes(tensor->dtype),
            .factor = 1.0,
        };
        penc_pass_heads(&pass, &token);
    }
    return POSENC_OK;
}
