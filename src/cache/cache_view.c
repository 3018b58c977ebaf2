/* The checks of a cache, and where its slots lie. SPDX-License-Identifier: MIT */
#include "cache/cache_view.h"

#include "base/checked.h"
#include "base/struct_size.h"

size_t posenc_cache_format_bytes(posenc_cache_format format) {
    switch (format) {
#define PENC_CASE(name, number, bytes, text)                                                       \
    case POSENC_CACHE_##name:                                                                      \
        return bytes;
        POSENC_CACHE_FORMAT_LIST(PENC_CASE)
#undef PENC_CASE
    }
    return 0;
}

const char *posenc_cache_format_name(posenc_cache_format format) {
    switch (format) {
#define PENC_CASE(name, number, bytes, text)                                                       \
    case POSENC_CACHE_##name:                                                                      \
        return text;
        POSENC_CACHE_FORMAT_LIST(PENC_CASE)
#undef PENC_CASE
    }
    return NULL;
}

posenc_cache posenc_cache_dense(posenc_cache_format format, void *data, size_t blocks,
                                size_t block_tokens, size_t heads, size_t head_dim) {
    posenc_cache cache = {.size = sizeof cache,
                          .format = format,
                          .data = data,
                          .blocks = blocks,
                          .block_tokens = block_tokens,
                          .heads = heads,
                          .head_dim = head_dim};
    return cache;
}

/* --- Checks --------------------------------------------------------------------------------------- */

/* Fills in strides that are 0, from the last axis to the first: as far as those after it reach. Returns 0 if one does
 * not fit. */
static int penc_fill_strides(const size_t *shape, ptrdiff_t **strides, int axes) {
    ptrdiff_t reach = 1;
    for (int axis = axes - 1; axis >= 0; axis--) {
        ptrdiff_t own;
        if (*strides[axis] == 0)
            *strides[axis] = reach;
        if (!penc_offset(shape[axis], *strides[axis], 1, &own))
            return 0;
        own = own < 0 ? -own : own;
        reach = own > reach ? own : reach;
    }
    return 1;
}

static posenc_status penc_view_data(penc_cache_view *view, posenc_error *error) {
    posenc_cache *c = &view->cache;
    const size_t shape[4] = {c->blocks, c->block_tokens, c->heads, c->head_dim};
    ptrdiff_t *all[4] = {&c->block_stride, &c->token_stride, &c->head_stride, &c->channel_stride};
    int fits = penc_fill_strides(shape, all, 4);
    ptrdiff_t strides[4] = {c->block_stride, c->token_stride, c->head_stride, c->channel_stride};
    if (!fits || !penc_map_array(&view->data, view->bytes, 4, shape, strides) ||
        !penc_map_fits_at(&view->data, c->data))
        return penc_fail(error, POSENC_OVERFLOW, "cache",
                         "have sizes and strides whose products fit the address space");
    if (!penc_map_writes_once(&view->data))
        return penc_fail(
            error, POSENC_OVERLAP, "cache",
            "have strides that write every element once: each at least as large as all smaller ones reach");
    return POSENC_OK;
}

static posenc_status penc_view_scales(penc_cache_view *view, posenc_error *error) {
    posenc_cache *c = &view->cache;
    const size_t shape[3] = {c->blocks, c->block_tokens, c->heads};
    ptrdiff_t *all[3] = {&c->scale_block_stride, &c->scale_token_stride, &c->scale_head_stride};
    if (!c->scales)
        return penc_fail_null(error, "cache.scales");
    int fits = penc_fill_strides(shape, all, 3);
    ptrdiff_t strides[3] = {c->scale_block_stride, c->scale_token_stride, c->scale_head_stride};
    if (!fits || !penc_map_array(&view->scales, sizeof(float), 3, shape, strides) ||
        !penc_map_fits_at(&view->scales, c->scales))
        return penc_fail(error, POSENC_OVERFLOW, "cache.scales",
                         "have strides that keep them within the address space");
    if (view->scales.low < 0 || (size_t)view->scales.high / sizeof(float) > c->scale_count) {
        penc_fail_size(error, "cache.scale_count", c->scale_count,
                       "be as many as the strides of the scales reach");
        penc_fail_limit(error, "they reach", (uint64_t)view->scales.high / sizeof(float));
        return POSENC_OUT_OF_RANGE;
    }
    if (!penc_map_writes_once(&view->scales))
        return penc_fail(error, POSENC_OVERLAP, "cache.scales",
                         "have strides that write every scale once");
    if (!penc_maps_disjoint(&view->data, c->data, &view->scales, c->scales))
        return penc_fail(error, POSENC_OVERLAP, "cache.scales", "not overlap the cache's data");
    return POSENC_OK;
}

/* Which scales the format needs, and that there are no others. */
static posenc_status penc_check_scaling(penc_cache_view *view, posenc_error *error) {
    const posenc_cache *c = &view->cache;
    int is_8_bit = view->bytes == 1, per_tensor = c->scaling == POSENC_SCALE_PER_TENSOR;
    if ((unsigned)c->scaling > POSENC_SCALE_PER_TENSOR)
        return penc_fail_integer(error, "cache.scaling", c->scaling, "be a posenc_cache_scaling");
    if (per_tensor && c->format != POSENC_CACHE_FP8_E4M3)
        return penc_fail(error, POSENC_UNSUPPORTED, "cache.scaling",
                         "be per token and head: only fp8 has one scale for all");
    if (per_tensor && !(c->tensor_scale >= 0x1p-126f && c->tensor_scale <= 0x1p126f))
        return penc_fail_real(error, "cache.tensor_scale", (double)c->tensor_scale,
                              "be given, from 2^-126 to 2^126");
    if (!per_tensor && c->tensor_scale != 0.0f)
        return penc_fail_real(error, "cache.tensor_scale", (double)c->tensor_scale,
                              "be 0 where it is not used");
    view->has_scales = is_8_bit && !per_tensor;
    if (view->has_scales)
        return penc_view_scales(view, error);
    if (c->scales)
        return penc_fail(error, POSENC_UNSUPPORTED, "cache.scales",
                         "be NULL: this format has no scale for each token and head");
    return POSENC_OK;
}

posenc_status penc_view_cache(const posenc_cache *cache, const char *argument,
                              penc_cache_view *view, posenc_error *error) {
    posenc_status status = penc_check_struct(cache, sizeof *cache, argument, error);
    if (status)
        return status;
    view->cache = *cache;
    view->bytes = posenc_cache_format_bytes(cache->format);
    view->scales = (penc_memory_map){0};
    if (!view->bytes)
        return penc_fail_integer(error, "cache.format", cache->format, "be a posenc_cache_format");
    if (!cache->data)
        return penc_fail_null(error, "cache.data");
    const size_t shape[4] = {cache->blocks, cache->block_tokens, cache->heads, cache->head_dim};
    static const char *const names[4] = {"cache.blocks", "cache.block_tokens", "cache.heads",
                                         "cache.head_dim"};
    for (int axis = 0; axis < 4; axis++) {
        if (!shape[axis])
            return penc_fail_size(error, names[axis], 0, "be at least 1");
    }
    if (cache->head_dim > penc_most_channels(POSENC_F32)) {
        penc_fail_size(error, "cache.head_dim", cache->head_dim, "be smaller");
        penc_fail_limit(error, "the most", penc_most_channels(POSENC_F32));
        return POSENC_OUT_OF_RANGE;
    }
    status = penc_view_data(view, error);
    view->slots = (uint64_t)cache->blocks * cache->block_tokens;
    return status ? status : penc_check_scaling(view, error);
}

posenc_status penc_check_cache_apart(const penc_cache_view *view, const penc_memory_map *map,
                                     const void *data, const char *argument, posenc_error *error) {
    if (!penc_maps_disjoint(&view->data, view->cache.data, map, data))
        return penc_fail(error, POSENC_OVERLAP, argument, "not overlap the cache's data");
    if (view->has_scales && !penc_maps_disjoint(&view->scales, view->cache.scales, map, data))
        return penc_fail(error, POSENC_OVERLAP, argument, "not overlap the cache's scales");
    return POSENC_OK;
}

/* --- Slots ---------------------------------------------------------------------------------------- */

void *penc_slot_data(const penc_cache_view *view, int64_t slot) {
    const posenc_cache *c = &view->cache;
    ptrdiff_t block = (ptrdiff_t)((size_t)slot / c->block_tokens);
    ptrdiff_t place = (ptrdiff_t)((size_t)slot % c->block_tokens);
    return (char *)c->data +
           (block * c->block_stride + place * c->token_stride) * (ptrdiff_t)view->bytes;
}

float *penc_slot_scales(const penc_cache_view *view, int64_t slot) {
    const posenc_cache *c = &view->cache;
    if (!view->has_scales)
        return NULL;
    ptrdiff_t block = (ptrdiff_t)((size_t)slot / c->block_tokens);
    ptrdiff_t place = (ptrdiff_t)((size_t)slot % c->block_tokens);
    return c->scales + block * c->scale_block_stride + place * c->scale_token_stride;
}

penc_head_side penc_side_of_cache(const penc_cache_view *view) {
    const posenc_cache *c = &view->cache;
    return (penc_head_side){.format = (penc_format)c->format,
                            .head = c->head_stride,
                            .channel = c->head_dim > 1 ? c->channel_stride : 1,
                            .scale_head = c->scale_head_stride,
                            .tensor_scale = c->tensor_scale,
                            .token = c->token_stride,
                            .scale_token = c->scale_token_stride};
}
