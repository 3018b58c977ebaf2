/* posenc_cache_append. SPDX-License-Identifier: MIT */
#include "cache/cache_slots.h"

#include "base/struct_size.h"
#include "rope/head_stages.h"
#include "rope/rotate_plan.h"
#include "rope/row_finder.h"
#include "rope/tensor_map.h"

/* Keys or values, checked. */
typedef struct penc_append_side {
    const posenc_append_item *item; /* NULL: none */
    penc_memory_map input;
    penc_cache_view view;
    posenc_rotation rotation; /* rotary_dim 0: none */
    penc_slot_plan slots;
    int stream;
} penc_append_side;

typedef struct penc_append_plan {
    penc_append_side sides[2];
    size_t first, count;
} penc_append_plan;

/* --- Checks --------------------------------------------------------------------------------------- */

static posenc_status penc_check_same(size_t got, size_t wanted, const char *argument,
                                     const char *limit_name, posenc_error *error) {
    if (got == wanted)
        return POSENC_OK;
    penc_fail_size(error, argument, got, "be that of the other");
    penc_fail_limit(error, limit_name, wanted);
    return POSENC_OUT_OF_RANGE;
}

/* The tensor, and that it fits its cache. */
static posenc_status penc_check_appended(penc_append_side *side, posenc_error *error) {
    const posenc_tensor *tensor = side->item->tensor;
    const posenc_cache *cache = &side->view.cache;
    posenc_status status = penc_map_tensor(tensor, "tensor", &side->input, error);
    if (!status && tensor->dtype == POSENC_F64)
        status = penc_fail(error, POSENC_UNSUPPORTED, "tensor",
                           "be float32, float16 or bfloat16 to be appended to a cache");
    if (!status)
        status = penc_check_same(tensor->shape[POSENC_AXIS_HEADS], cache->heads, "heads",
                                 "the cache's heads", error);
    if (!status)
        status = penc_check_same(tensor->shape[POSENC_AXIS_HEAD_DIM], cache->head_dim, "head_dim",
                                 "the cache's head_dim", error);
    if (!status)
        status = penc_check_stages(side->item->stages, tensor, error);
    if (!status && !side->item->input && side->input.high > side->input.low)
        status = penc_fail_null(error, "input");
    if (!status && !penc_map_fits_at(&side->input, side->item->input))
        status = penc_fail(error, POSENC_OVERFLOW, "input", "lie within the address space");
    return status;
}

/* What is read must not lie in this side's cache: `rotation` may be NULL. */
static posenc_status penc_check_read_apart(const penc_append_side *side,
                                           const penc_append_side *read, posenc_error *error) {
    const penc_cache_view *view = &side->view;
    const posenc_rotation *rotation = &read->rotation;
    penc_memory_map table;
    posenc_status status =
        penc_check_cache_apart(view, &read->input, read->item->input, "input", error);
    if (!status)
        status = penc_check_stages_apart(read->item->stages, read->item->tensor, &view->data,
                                         view->cache.data, error);
    if (!status && view->has_scales)
        status = penc_check_stages_apart(read->item->stages, read->item->tensor, &view->scales,
                                         view->cache.scales, error);
    if (status || !rotation->rotary_dim)
        return status;
    status = penc_map_table(rotation, &table, error);
    if (!status)
        status = penc_check_cache_apart(view, &table, rotation->cos, "rotation.cos", error);
    if (!status)
        status = penc_check_cache_apart(view, &table, rotation->sin, "rotation.sin", error);
    return status;
}

/* The two caches must not meet, nor the inputs of one the cache of the other. */
static posenc_status penc_check_sides_apart(const penc_append_plan *plan, posenc_error *error) {
    const penc_append_side *keys = &plan->sides[0], *values = &plan->sides[1];
    if (!keys->item || !values->item)
        return POSENC_OK;
    const penc_cache_view *view = &values->view;
    posenc_status status =
        penc_check_cache_apart(&keys->view, &view->data, view->cache.data, "values.cache", error);
    if (!status && view->has_scales)
        status = penc_check_cache_apart(&keys->view, &view->scales, view->cache.scales,
                                        "values.cache", error);
    if (!status)
        status = penc_check_read_apart(keys, values, error);
    if (!status)
        status = penc_check_read_apart(values, keys, error);
    return status;
}

static posenc_status penc_plan_side(penc_append_side *side, const posenc_append_item *item,
                                    const posenc_rotation *rotation, const posenc_slots *slots,
                                    posenc_error *error) {
    side->item = item;
    side->rotation = (posenc_rotation)POSENC_ROTATION_INIT;
    if (!item)
        return POSENC_OK;
    posenc_status status = penc_view_cache(item->cache, "cache", &side->view, error);
    if (!status)
        status = penc_check_appended(side, error);
    if (!status && rotation)
        status = penc_plan_rotation(rotation, item->tensor, &side->rotation, error);
    if (!status)
        status = penc_check_read_apart(side, side, error);
    return status ? status
                  : penc_plan_slots(slots, &side->view, item->tensor->shape[POSENC_AXIS_BATCH],
                                    item->tensor->shape[POSENC_AXIS_TOKENS], &side->slots, error);
}

static posenc_status penc_take_append_options(penc_append_plan *plan, size_t tokens,
                                              const posenc_append_options *options,
                                              posenc_error *error) {
    plan->first = 0;
    plan->count = tokens;
    if (!options)
        return POSENC_OK;
    posenc_status status = penc_check_struct(options, sizeof *options, "options", error);
    if (status)
        return status;
    if ((unsigned)options->stores > POSENC_STORES_STREAMING)
        return penc_fail_integer(error, "options.stores", options->stores, "be a posenc_stores");
    return penc_take_range(tokens, options->first_token, options->token_count, &plan->first,
                           &plan->count, error);
}

static posenc_status penc_plan_append(penc_append_plan *plan, const posenc_rotation *rotation,
                                      const posenc_append_item *keys,
                                      const posenc_append_item *values, const posenc_slots *slots,
                                      const posenc_append_options *options, posenc_error *error) {
    const posenc_append_item *items[2] = {keys, values}, *any = keys ? keys : values;
    if (!any)
        return penc_fail_null(error, "keys");
    for (int i = 0; i < 2; i++) {
        posenc_status status =
            penc_plan_side(&plan->sides[i], items[i], i ? NULL : rotation, slots, error);
        for (int axis = POSENC_AXIS_BATCH; !status && items[i] && axis <= POSENC_AXIS_TOKENS;
             axis++)
            status = penc_check_same(items[i]->tensor->shape[axis], any->tensor->shape[axis],
                                     axis == POSENC_AXIS_BATCH ? "batch" : "tokens", "keys", error);
        if (status) {
            if (error && !error->place_name)
                penc_fail_place(error, "item", i);
            return status;
        }
    }
    posenc_status status = penc_check_sides_apart(plan, error);
    return status ? status
                  : penc_take_append_options(plan, any->tensor->shape[POSENC_AXIS_TOKENS], options,
                                             error);
}

/* --- The run -------------------------------------------------------------------------------------- */

static size_t penc_appended_bytes(const penc_append_side *side) {
    if (!side->item)
        return 0;
    const size_t *shape = side->item->tensor->shape;
    return shape[0] * shape[1] * shape[2] * shape[3] * side->view.bytes;
}

/* Whether stores go past the caches of the CPU: aligned, and large, keys and values together, or wished for. */
static int penc_streams(const penc_append_plan *plan, const penc_append_side *side,
                        posenc_stores stores) {
    enum { FROM_BYTES = 16 << 20 };
    const posenc_cache *c = &side->view.cache;
    const posenc_rotation *rotation = &side->rotation;
    ptrdiff_t bytes = (ptrdiff_t)side->view.bytes;
    size_t all = penc_appended_bytes(&plan->sides[0]) + penc_appended_bytes(&plan->sides[1]);
    uintptr_t odd = (uintptr_t)c->data | (uintptr_t)(c->block_stride * bytes) |
                    (uintptr_t)(c->token_stride * bytes) | (uintptr_t)(c->head_stride * bytes) |
                    rotation->rotary_start * side->view.bytes;
    if (rotation->pairing == POSENC_PAIRING_HALF)
        odd |= rotation->rotary_dim / 2 * side->view.bytes;
    return odd % 64 == 0 &&
           (stores == POSENC_STORES_AUTO ? all >= FROM_BYTES : stores == POSENC_STORES_STREAMING);
}

/* Appends as many tokens from `token` on as lie like one another, `most` at most. Returns their number. */
static size_t penc_append_run(const penc_append_side *side, const penc_head_pass *pass,
                              penc_row_finder *finder, size_t batch, size_t token, size_t most) {
    const posenc_tensor *tensor = side->item->tensor;
    const posenc_head_stages *stages = side->item->stages;
    ptrdiff_t at = (ptrdiff_t)batch * tensor->strides[POSENC_AXIS_BATCH] +
                   (ptrdiff_t)token * tensor->strides[POSENC_AXIS_TOKENS];
    ptrdiff_t row = 0;
    int64_t slot;
    size_t run =
        penc_slot_run(&side->slots, batch, token, stages && stages->scales ? 1 : most, &slot);
    if (slot < 0)
        return 1;
    if (side->rotation.rotary_dim)
        run = penc_row_run(finder, batch, token, run, &row);
    penc_head_token first = {
        .x = (const char *)side->item->input + at * (ptrdiff_t)posenc_dtype_bytes(tensor->dtype),
        .y = penc_slot_data(&side->view, slot),
        .y_scales = penc_slot_scales(&side->view, slot),
        .factor = penc_token_factor(stages, 0, batch, token),
    };
    if (side->rotation.rotary_dim) {
        first.cos = (const float *)side->rotation.cos + row;
        first.sin = (const float *)side->rotation.sin + row;
    }
    penc_pass_run(pass, &first, run);
    return run;
}

static void penc_append_side_now(const penc_append_plan *plan, const penc_append_side *side,
                                 posenc_stores stores) {
    _Alignas(64) char weights[PENC_HEAD_BYTES];
    const posenc_tensor *tensor = side->item->tensor;
    penc_head_pass pass = {
        .heads = tensor->shape[POSENC_AXIS_HEADS],
        .head_dim = tensor->shape[POSENC_AXIS_HEAD_DIM],
        .x = penc_side_of_tensor(tensor),
        .y = penc_side_of_cache(&side->view),
        .large = side->input.high - side->input.low > 1 << 20,
        .stream = penc_streams(plan, side, stores),
        .norm = side->item->stages ? side->item->stages->norm : NULL,
        .rotation = &side->rotation,
        .y_pairing = side->rotation.pairing,
    };
    penc_ready_pass(&pass, weights);
    penc_row_finder finder = {&side->rotation, 0};
    for (size_t batch = 0; batch < tensor->shape[POSENC_AXIS_BATCH]; batch++) {
        for (size_t done = 0; done < plan->count;)
            done += penc_append_run(side, &pass, &finder, batch, plan->first + done,
                                    plan->count - done);
    }
    if (pass.stream)
        penc_finish_streaming();
}

posenc_status posenc_cache_append(const posenc_rotation *rotation, const posenc_append_item *keys,
                                  const posenc_append_item *values, const posenc_slots *slots,
                                  const posenc_append_options *options, posenc_error *error) {
    penc_append_plan plan;
    posenc_status status = penc_plan_append(&plan, rotation, keys, values, slots, options, error);
    for (int i = 0; i < 2 && !status; i++) {
        if (plan.sides[i].item)
            penc_append_side_now(&plan, &plan.sides[i],
                                 options ? options->stores : POSENC_STORES_AUTO);
    }
    return status;
}
