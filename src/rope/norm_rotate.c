/* posenc_norm_rotate. SPDX-License-Identifier: MIT */
#include "posenc/norm_rotate.h"

#include "base/checked.h"
#include "base/struct_size.h"
#include "rope/head_pass.h"
#include "rope/head_stages.h"
#include "rope/rotate_run.h"
#include "rope/row_finder.h"

/* --- Checks --------------------------------------------------------------------------------------- */

static posenc_status penc_check_norm(const posenc_norm *norm, posenc_error *error) {
    posenc_status status = penc_check_struct(norm, sizeof *norm, "norm", error);
    if (status)
        return status;
    if (!(norm->epsilon >= 0.0 && norm->epsilon <= 3e38))
        return penc_fail_real(error, "norm.epsilon", norm->epsilon, "be finite and not negative");
    if ((unsigned)norm->order > POSENC_NORM_AFTER)
        return penc_fail_integer(error, "norm.order", norm->order, "be a posenc_norm_order");
    if (!posenc_dtype_bytes(norm->weight_dtype))
        return penc_fail_integer(error, "norm.weight_dtype", norm->weight_dtype,
                                 "be a posenc_dtype");
    if (norm->weight_plus_one != 0 && norm->weight_plus_one != 1)
        return penc_fail_integer(error, "norm.weight_plus_one", norm->weight_plus_one, "be 0 or 1");
    if (norm->weight_plus_one && !norm->weight)
        return penc_fail_null(error, "norm.weight");
    return POSENC_OK;
}

posenc_status penc_check_stages(const posenc_head_stages *stages, const posenc_tensor *tensor,
                                posenc_error *error) {
    posenc_status status = POSENC_OK;
    size_t most = penc_most_channels(tensor->dtype);
    if (stages)
        status = penc_check_struct(stages, sizeof *stages, "stages", error);
    if (!status && stages && stages->norm)
        status = penc_check_norm(stages->norm, error);
    if (!status && tensor->shape[POSENC_AXIS_HEAD_DIM] > most) {
        penc_fail_size(error, "head_dim", tensor->shape[POSENC_AXIS_HEAD_DIM],
                       "be smaller, to pass through memory of the call");
        penc_fail_limit(error, "the most", most);
        return POSENC_OUT_OF_RANGE;
    }
    return status;
}

posenc_status penc_check_stages_apart(const posenc_head_stages *stages, const posenc_tensor *tensor,
                                      const penc_memory_map *written, const void *output,
                                      posenc_error *error) {
    const posenc_norm *norm = stages ? stages->norm : NULL;
    penc_memory_map map;
    if (norm && norm->weight) {
        ptrdiff_t stride = 1;
        penc_map_array(&map, posenc_dtype_bytes(norm->weight_dtype), 1,
                       &tensor->shape[POSENC_AXIS_HEAD_DIM], &stride);
        if (!penc_maps_disjoint(written, output, &map, norm->weight))
            return penc_fail(error, POSENC_OVERLAP, "norm.weight", "not overlap the output");
    }
    if (stages && stages->scales) {
        ptrdiff_t strides[2] = {stages->scales_stride, 1};
        if (!penc_map_array(&map, tensor->dtype == POSENC_F64 ? sizeof(double) : sizeof(float), 2,
                            tensor->shape, strides))
            return penc_fail(error, POSENC_OVERFLOW, "stages.scales_stride",
                             "keep the scales within the address space");
        if (!penc_maps_disjoint(written, output, &map, stages->scales))
            return penc_fail(error, POSENC_OVERLAP, "stages.scales", "not overlap the output");
    }
    return POSENC_OK;
}

double penc_token_factor(const posenc_head_stages *stages, int is_double, size_t batch,
                         size_t token) {
    if (!stages || !stages->scales)
        return 1.0;
    ptrdiff_t at = (ptrdiff_t)batch * stages->scales_stride + (ptrdiff_t)token;
    return is_double ? ((const double *)stages->scales)[at]
                     : (double)((const float *)stages->scales)[at];
}

/* What goes with stages only as it is. */
static posenc_status penc_check_plain(const posenc_rotation *rotation,
                                      const posenc_rotate_options *options, posenc_error *error) {
    if (options && options->direction != POSENC_FORWARD)
        return penc_fail_integer(error, "options.direction", options->direction,
                                 "be forward with a norm or scales: they have no inverse here");
    if (!rotation && options && options->output_pairing != POSENC_OUTPUT_SAME)
        return penc_fail_integer(error, "options.output_pairing", options->output_pairing,
                                 "be the input's without a rotation");
    return POSENC_OK;
}

static posenc_status penc_plan_stages(penc_rotate_plan *plan, const posenc_rotation *rotation,
                                      const posenc_head_stages *stages,
                                      const posenc_rotate_item *item,
                                      const posenc_rotate_options *options, posenc_error *error) {
    posenc_status status = rotation ? penc_make_plan(plan, rotation, item, options, error)
                                    : penc_make_still_plan(plan, item, options, error);
    if (!status && (!rotation || stages))
        status = penc_check_stages(stages, plan->x, error);
    if (!status && (!rotation || stages))
        status = penc_check_plain(rotation, options, error);
    if (!status && !plan->empty)
        status = penc_check_stages_apart(stages, plan->x, &plan->y_map, plan->output, error);
    return status;
}

/* --- The run -------------------------------------------------------------------------------------- */

/* Whether every vector of the output is aligned. */
static int penc_may_stream(const penc_rotate_plan *plan) {
    const posenc_tensor *y = plan->y;
    size_t bytes = posenc_dtype_bytes(y->dtype);
    uintptr_t odd = (uintptr_t)plan->output | plan->rotation.rotary_start * bytes;
    for (int axis = POSENC_AXIS_BATCH; axis <= POSENC_AXIS_HEADS; axis++)
        odd |= y->shape[axis] > 1 ? (uintptr_t)(y->strides[axis] * (ptrdiff_t)bytes) : 0;
    if (plan->y_pairing == POSENC_PAIRING_HALF)
        odd |= plan->rotation.rotary_dim / 2 * bytes;
    return plan->streaming && odd % 64 == 0;
}

static ptrdiff_t penc_token_at(const posenc_tensor *tensor, size_t batch, size_t token) {
    return ((ptrdiff_t)batch * tensor->strides[POSENC_AXIS_BATCH] +
            (ptrdiff_t)token * tensor->strides[POSENC_AXIS_TOKENS]) *
           (ptrdiff_t)posenc_dtype_bytes(tensor->dtype);
}

/* As many tokens from `token` on as turn by rows that follow one another and share a factor, `most` at most. Returns
 * their number. */
static size_t penc_stages_run(const penc_rotate_plan *plan, const posenc_head_stages *stages,
                              const penc_head_pass *pass, penc_row_finder *finder, size_t batch,
                              size_t token, size_t most) {
    const ptrdiff_t table_bytes = (ptrdiff_t)posenc_dtype_bytes(plan->rotation.dtype);
    size_t run = stages && stages->scales ? 1 : most;
    ptrdiff_t row = 0;
    penc_head_token first = {
        .x = plan->input + penc_token_at(plan->x, batch, token),
        .y = plan->output + penc_token_at(plan->y, batch, token),
        .factor = penc_token_factor(stages, pass->is_double, batch, token),
    };
    if (plan->rotation.rotary_dim) {
        run = penc_row_run(finder, batch, token, run, &row);
        first.cos = (const char *)plan->rotation.cos + row * table_bytes;
        first.sin = (const char *)plan->rotation.sin + row * table_bytes;
    }
    penc_pass_run(pass, &first, run);
    return run;
}

static void penc_run_stages(const penc_rotate_plan *plan, const posenc_head_stages *stages) {
    _Alignas(64) char weights[PENC_HEAD_BYTES];
    penc_head_pass pass = {.heads = plan->x->shape[POSENC_AXIS_HEADS],
                           .head_dim = plan->x->shape[POSENC_AXIS_HEAD_DIM],
                           .x = penc_side_of_tensor(plan->x),
                           .y = penc_side_of_tensor(plan->y),
                           .in_place = plan->in_place,
                           .large = plan->x_map.high - plan->x_map.low > 1 << 20,
                           .stream = penc_may_stream(plan),
                           .norm = stages ? stages->norm : NULL,
                           .rotation = &plan->rotation,
                           .y_pairing = plan->y_pairing};
    penc_ready_pass(&pass, weights);
    penc_row_finder finder = {&plan->rotation, 0};
    for (size_t batch = 0; batch < plan->x->shape[POSENC_AXIS_BATCH]; batch++) {
        for (size_t done = 0; done < plan->count;)
            done += penc_stages_run(plan, stages, &pass, &finder, batch, plan->first + done,
                                    plan->count - done);
    }
    if (pass.stream)
        penc_finish_streaming();
}

posenc_status posenc_norm_rotate(const posenc_rotation *rotation, const posenc_head_stages *stages,
                                 const posenc_tensor *tensor, const void *input, void *output,
                                 const posenc_rotate_options *options, posenc_error *error) {
    posenc_rotate_item item = {tensor, input, output, NULL};
    penc_rotate_plan plan;
    posenc_status status = penc_plan_stages(&plan, rotation, stages, &item, options, error);
    if (status || plan.empty || plan.count == 0)
        return status;
    if (rotation && (!stages || (!stages->norm && !stages->scales)))
        penc_run_plan(&plan);
    else
        penc_run_stages(&plan, stages);
    return POSENC_OK;
}
