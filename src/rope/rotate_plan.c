/* The checks of posenc_rotate. SPDX-License-Identifier: MIT */
#include "rope/rotate_plan.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"

/* --- The rotation ------------------------------------------------------------------------------- */

static posenc_status penc_check_row_ids(const posenc_rotation *rotation,
                                        const posenc_tensor *tensor, posenc_error *error) {
    size_t tokens = tensor->shape[POSENC_AXIS_TOKENS];
    size_t lists = rotation->row_ids_stride ? tensor->shape[POSENC_AXIS_BATCH] : 1;
    for (size_t list = 0; list < lists; list++) {
        for (size_t token = 0; token < tokens; token++) {
            ptrdiff_t index = (ptrdiff_t)list * rotation->row_ids_stride + (ptrdiff_t)token;
            int64_t id = rotation->row_ids[index];
            if (id < 0 || (uint64_t)id >= rotation->tokens)
                return penc_fail_listed(error, "rotation.row_ids", id, "be a row of the table",
                                        "rows", rotation->tokens, (size_t)index);
        }
    }
    return POSENC_OK;
}

/* `length` rows from row_starts[sequence] on. */
static posenc_status penc_check_row_start(const posenc_rotation *rotation, size_t sequence,
                                          size_t length, posenc_error *error) {
    int64_t start = rotation->row_starts ? rotation->row_starts[sequence] : 0;
    if (start < 0 || (uint64_t)start > rotation->tokens ||
        length > rotation->tokens - (size_t)start)
        return penc_fail_listed(error, "rotation.row_starts", start,
                                "leave room for the sequence's tokens in the table", "rows",
                                rotation->tokens, sequence);
    return POSENC_OK;
}

static posenc_status penc_check_ragged(const posenc_rotation *rotation, const posenc_tensor *tensor,
                                       posenc_error *error) {
    static const char list[] = "rotation.cu_seqlens";
    const int32_t *ends = rotation->cu_seqlens;
    size_t tokens = tensor->shape[POSENC_AXIS_TOKENS], last = rotation->sequences;
    if (tensor->shape[POSENC_AXIS_BATCH] != 1)
        return penc_fail_size(error, list, tensor->shape[POSENC_AXIS_BATCH],
                              "go with a tensor whose batch is 1");
    if (rotation->batch > 1)
        return penc_fail_size(error, "rotation.batch", rotation->batch,
                              "be 0 or 1 with cu_seqlens: all sequences share one table");
    if (ends[0] != 0)
        return penc_fail_listed(error, list, ends[0], "begin with 0", "tokens", tokens, 0);
    for (size_t s = 0; s < last; s++) {
        if (ends[s + 1] < ends[s])
            return penc_fail_listed(error, list, ends[s + 1], "not fall", "tokens", tokens, s + 1);
        size_t length = (size_t)(ends[s + 1] - ends[s]);
        if (!rotation->row_starts && length > rotation->tokens)
            return penc_fail_listed(error, list, ends[s + 1],
                                    "end a sequence that is no longer than the table", "rows",
                                    rotation->tokens, s + 1);
        posenc_status status = penc_check_row_start(rotation, s, length, error);
        if (status)
            return status;
    }
    if ((size_t)ends[last] != tokens)
        return penc_fail_listed(error, list, ends[last], "end with the tensor's tokens", "tokens",
                                tokens, last);
    return POSENC_OK;
}

static posenc_status penc_check_chosen_rows(const posenc_rotation *rotation,
                                            const posenc_tensor *tensor, posenc_error *error) {
    size_t tokens = tensor->shape[POSENC_AXIS_TOKENS];
    if (rotation->row_ids && (rotation->row_starts || rotation->cu_seqlens))
        return penc_fail(error, POSENC_UNSUPPORTED, "rotation.row_ids",
                         "not be given together with row_starts or cu_seqlens");
    if (rotation->row_ids)
        return penc_check_row_ids(rotation, tensor, error);
    if (rotation->cu_seqlens)
        return penc_check_ragged(rotation, tensor, error);
    if (rotation->row_starts) {
        for (size_t n = 0; n < tensor->shape[POSENC_AXIS_BATCH]; n++) {
            posenc_status status = penc_check_row_start(rotation, n, tokens, error);
            if (status)
                return status;
        }
        return POSENC_OK;
    }
    if (rotation->tokens != tokens) {
        penc_fail_size(error, "rotation.tokens", rotation->tokens, "equal the tensor's tokens");
        penc_fail_limit(error, "tokens", tokens);
        return POSENC_OUT_OF_RANGE;
    }
    return POSENC_OK;
}

static posenc_status penc_check_slice(const posenc_rotation *rotation, size_t head_dim,
                                      posenc_error *error) {
    posenc_status status = POSENC_OK;
    if (rotation->rotary_dim == 0 || rotation->rotary_dim % 2 || rotation->rotary_dim > head_dim)
        status = penc_fail_size(error, "rotation.rotary_dim", rotation->rotary_dim,
                                "be even and from 2 to the tensor's head_dim");
    else if (rotation->rotary_start > head_dim - rotation->rotary_dim)
        status = penc_fail_size(error, "rotation.rotary_start", rotation->rotary_start,
                                "leave room for rotary_dim channels below the tensor's head_dim");
    if (status)
        penc_fail_limit(error, "head_dim", head_dim);
    return status;
}

static posenc_status penc_check_rotation(posenc_rotation *rotation, const posenc_tensor *tensor,
                                         posenc_error *error) {
    posenc_dtype needed = tensor->dtype == POSENC_F64 ? POSENC_F64 : POSENC_F32;
    size_t batch = tensor->shape[POSENC_AXIS_BATCH];
    if (!posenc_pairing_name(rotation->pairing))
        return penc_fail_integer(error, "rotation.pairing", rotation->pairing,
                                 "be POSENC_PAIRING_HALF or POSENC_PAIRING_INTERLEAVED");
    posenc_status status = penc_check_slice(rotation, tensor->shape[POSENC_AXIS_HEAD_DIM], error);
    if (!status)
        status = penc_check_chosen_rows(rotation, tensor, error);
    if (status)
        return status;
    if (rotation->batch > 1 && rotation->batch != batch) {
        penc_fail_size(error, "rotation.batch", rotation->batch, "be 0, 1 or the tensor's batch");
        penc_fail_limit(error, "batch", batch);
        return POSENC_OUT_OF_RANGE;
    }
    if (!(rotation->attention_factor == 0.0 ||
          (rotation->attention_factor >= 1e-6 && rotation->attention_factor <= 1e6)))
        return penc_fail_real(error, "rotation.attention_factor", rotation->attention_factor,
                              "be 0 or from 1e-6 to 1e6");
    if (rotation->dtype != needed)
        return penc_fail_integer(error, "rotation.dtype", rotation->dtype,
                                 "be float64 for a float64 tensor and float32 for any other");
    if (rotation->pair_stride == 0)
        rotation->pair_stride = 1;
    if (rotation->row_stride == 0 &&
        !penc_offset(rotation->rotary_dim / 2, rotation->pair_stride, 1, &rotation->row_stride))
        return penc_fail(error, POSENC_OVERFLOW, "rotation.pair_stride",
                         "keep the rows within the address space");
    return POSENC_OK;
}

posenc_status penc_map_table(const posenc_rotation *rotation, penc_memory_map *map,
                             posenc_error *error) {
    size_t shape[4] = {rotation->batch > 1 ? rotation->batch : 1, rotation->tokens,
                       rotation->second_stride ? 2 : 1, rotation->rotary_dim / 2};
    ptrdiff_t strides[4] = {rotation->batch_stride, rotation->row_stride, rotation->second_stride,
                            rotation->pair_stride};
    if (!penc_map_array(map, posenc_dtype_bytes(rotation->dtype), 4, shape, strides) ||
        !penc_map_fits_at(map, rotation->cos) || !penc_map_fits_at(map, rotation->sin))
        return penc_fail(error, POSENC_OVERFLOW, "rotation",
                         "keep its rows within the address space");
    return POSENC_OK;
}

/* cos and sin must not lie in the memory that is written. */
static posenc_status penc_check_tables(const penc_rotate_plan *plan, posenc_error *error) {
    const posenc_rotation *rotation = &plan->rotation;
    penc_memory_map map;
    posenc_status status = penc_map_table(rotation, &map, error);
    if (status)
        return status;
    if (!penc_maps_disjoint(&plan->y_map, plan->output, &map, rotation->cos))
        return penc_fail(error, POSENC_OVERLAP, "rotation.cos", "not overlap the output");
    if (!penc_maps_disjoint(&plan->y_map, plan->output, &map, rotation->sin))
        return penc_fail(error, POSENC_OVERLAP, "rotation.sin", "not overlap the output");
    return POSENC_OK;
}

/* --- The tensors ---------------------------------------------------------------------------------- */

static int penc_same_strides(const posenc_tensor *a, const posenc_tensor *b) {
    for (int axis = 0; axis < POSENC_AXES; axis++) {
        if (a->shape[axis] > 1 && a->strides[axis] != b->strides[axis])
            return 0;
    }
    return 1;
}

static posenc_status penc_check_shapes(const penc_rotate_plan *plan, posenc_error *error) {
    for (int axis = 0; axis < POSENC_AXES; axis++) {
        if (plan->x->shape[axis] == plan->y->shape[axis])
            continue;
        penc_fail_size(error, "options.output", plan->y->shape[axis],
                       "have the tensor's shape in every axis");
        penc_fail_limit(error, "the tensor's", plan->x->shape[axis]);
        penc_fail_place(error, "axis", axis);
        return POSENC_OUT_OF_RANGE;
    }
    return POSENC_OK;
}

/* Rearranging in place goes through a piece of memory of this call. */
static posenc_status penc_check_rearranged(const penc_rotate_plan *plan, posenc_error *error) {
    size_t room = PENC_SCRATCH_BYTES / posenc_dtype_bytes(plan->x->dtype);
    if (!plan->in_place || plan->y_pairing == plan->rotation.pairing ||
        plan->rotation.rotary_dim <= room)
        return POSENC_OK;
    penc_fail_size(error, "rotation.rotary_dim", plan->rotation.rotary_dim,
                   "be smaller where output_pairing differs in place");
    penc_fail_limit(error, "the most", room);
    return POSENC_OUT_OF_RANGE;
}

static posenc_status penc_check_output(penc_rotate_plan *plan, posenc_error *error) {
    if (!penc_map_fits_at(&plan->x_map, plan->input))
        return penc_fail(error, POSENC_OVERFLOW, "tensor", "lie within the address space");
    if (!penc_map_fits_at(&plan->y_map, plan->output))
        return penc_fail(error, POSENC_OVERFLOW, "options.output", "lie within the address space");
    if (!penc_map_writes_once(&plan->y_map))
        return penc_fail(
            error, POSENC_OVERLAP, "options.output",
            "have strides that write every element once: each at least as large as all smaller ones reach");
    plan->in_place = plan->input == plan->output && plan->x->dtype == plan->y->dtype &&
                     penc_same_strides(plan->x, plan->y);
    if (!plan->in_place &&
        !penc_maps_disjoint(&plan->x_map, plan->input, &plan->y_map, plan->output))
        return penc_fail(error, POSENC_OVERLAP, "output",
                         "be the input with the same strides, or share no element with it");
    return penc_check_rearranged(plan, error);
}

static posenc_status penc_check_pointers(const penc_rotate_plan *plan, posenc_error *error) {
    if (!plan->input)
        return penc_fail_null(error, "input");
    if (!plan->output)
        return penc_fail_null(error, "output");
    if (!plan->rotation.cos && plan->rotation.rotary_dim)
        return penc_fail_null(error, "rotation.cos");
    if (!plan->rotation.sin && plan->rotation.rotary_dim)
        return penc_fail_null(error, "rotation.sin");
    return POSENC_OK;
}

/* --- The options ---------------------------------------------------------------------------------- */

posenc_status penc_take_range(size_t tokens, size_t first, size_t wanted, size_t *begin,
                              size_t *count, posenc_error *error) {
    if (first > tokens || wanted > tokens - first) {
        penc_fail_size(error, "options.first_token", first,
                       "begin a range within the tensor's tokens");
        penc_fail_limit(error, "tokens", tokens);
        return POSENC_OUT_OF_RANGE;
    }
    *begin = first;
    *count = wanted ? wanted : tokens - first;
    return POSENC_OK;
}

static posenc_status penc_take_options(penc_rotate_plan *plan, const posenc_rotate_options *options,
                                       posenc_error *error) {
    if ((unsigned)options->direction > POSENC_BACKWARD)
        return penc_fail_integer(error, "options.direction", options->direction,
                                 "be a posenc_direction");
    if ((unsigned)options->output_pairing > POSENC_OUTPUT_INTERLEAVED)
        return penc_fail_integer(error, "options.output_pairing", options->output_pairing,
                                 "be a posenc_output_pairing");
    if ((unsigned)options->stores > POSENC_STORES_STREAMING)
        return penc_fail_integer(error, "options.stores", options->stores, "be a posenc_stores");
    plan->transpose = options->direction != POSENC_FORWARD;
    if (options->direction == POSENC_INVERSE) {
        double factor = plan->rotation.attention_factor;
        if (plan->rotation.second_stride)
            return penc_fail(error, POSENC_UNSUPPORTED, "options.direction",
                             "not be inverse for tables that are no rotation (second_stride)");
        if (factor != 0.0)
            plan->scale = 1.0 / (factor * factor);
    }
    if (options->output_pairing != POSENC_OUTPUT_SAME)
        plan->y_pairing = options->output_pairing == POSENC_OUTPUT_HALF
                              ? POSENC_PAIRING_HALF
                              : POSENC_PAIRING_INTERLEAVED;
    return penc_take_range(plan->x->shape[POSENC_AXIS_TOKENS], options->first_token,
                           options->token_count, &plan->first, &plan->count, error);
}

/* Where the caller leaves it open, an output that no cache holds is streamed. */
static int penc_wants_streaming(const penc_rotate_plan *plan,
                                const posenc_rotate_options *options) {
    enum { FROM_BYTES = 16 << 20 };
    posenc_stores stores = options ? options->stores : POSENC_STORES_AUTO;
    if (stores == POSENC_STORES_AUTO)
        return !plan->in_place && plan->y_map.high - plan->y_map.low >= FROM_BYTES;
    return stores == POSENC_STORES_STREAMING;
}

/* The tensors and the options; plan->rotation is set already. */
static posenc_status penc_start_plan(penc_rotate_plan *plan, const posenc_rotate_item *item,
                                     const posenc_rotate_options *options, posenc_error *error) {
    posenc_status status = penc_map_tensor(item->tensor, "tensor", &plan->x_map, error);
    if (!status && options)
        status = penc_check_struct(options, sizeof *options, "options", error);
    if (status)
        return status;
    plan->x = plan->y = item->tensor;
    plan->y_map = plan->x_map;
    plan->input = item->input;
    plan->output = item->output;
    plan->y_pairing = plan->rotation.pairing;
    plan->first = 0;
    plan->count = plan->x->shape[POSENC_AXIS_TOKENS];
    plan->transpose = plan->in_place = plan->streaming = 0;
    plan->scale = 1.0;
    plan->empty = plan->x_map.high == plan->x_map.low;
    const posenc_tensor *output = item->output_tensor ? item->output_tensor
                                  : options           ? options->output
                                                      : NULL;
    if (output) {
        plan->y = output;
        status = penc_map_tensor(output, "options.output", &plan->y_map, error);
        if (!status)
            status = penc_check_shapes(plan, error);
    }
    if (!status && options)
        status = penc_take_options(plan, options, error);
    return status;
}

/* The memory. */
static posenc_status penc_finish_plan(penc_rotate_plan *plan, const posenc_rotate_options *options,
                                      posenc_error *error) {
    if (plan->empty)
        return POSENC_OK;
    posenc_status status = penc_check_pointers(plan, error);
    if (!status)
        status = penc_check_output(plan, error);
    if (!status)
        status = penc_check_tables(plan, error);
    if (!status)
        plan->streaming = penc_wants_streaming(plan, options);
    return status;
}

posenc_status penc_make_plan(penc_rotate_plan *plan, const posenc_rotation *rotation,
                             const posenc_rotate_item *item, const posenc_rotate_options *options,
                             posenc_error *error) {
    posenc_status status = penc_check_struct(rotation, sizeof *rotation, "rotation", error);
    if (status)
        return status;
    plan->rotation = *rotation;
    status = penc_start_plan(plan, item, options, error);
    if (!status)
        status = penc_check_rotation(&plan->rotation, plan->x, error);
    return status ? status : penc_finish_plan(plan, options, error);
}

posenc_status penc_make_still_plan(penc_rotate_plan *plan, const posenc_rotate_item *item,
                                   const posenc_rotate_options *options, posenc_error *error) {
    plan->rotation = (posenc_rotation)POSENC_ROTATION_INIT;
    posenc_status status = penc_start_plan(plan, item, options, error);
    return status ? status : penc_finish_plan(plan, options, error);
}

posenc_status penc_plan_rotation(const posenc_rotation *rotation, const posenc_tensor *tensor,
                                 posenc_rotation *planned, posenc_error *error) {
    posenc_status status = penc_check_struct(rotation, sizeof *rotation, "rotation", error);
    if (status)
        return status;
    *planned = *rotation;
    status = penc_check_rotation(planned, tensor, error);
    if (!status && !planned->cos)
        status = penc_fail_null(error, "rotation.cos");
    if (!status && !planned->sin)
        status = penc_fail_null(error, "rotation.sin");
    return status;
}

posenc_status penc_check_items_apart(const penc_rotate_plan *plan, const penc_rotate_plan *other,
                                     posenc_error *error) {
    if (plan->empty || other->empty)
        return POSENC_OK;
    if (!penc_maps_disjoint(&plan->y_map, plan->output, &other->x_map, other->input) ||
        !penc_maps_disjoint(&plan->y_map, plan->output, &other->y_map, other->output))
        return penc_fail(error, POSENC_OVERLAP, "output",
                         "share no element with another item's input or output");
    return POSENC_OK;
}
