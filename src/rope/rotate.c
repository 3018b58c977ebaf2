/* posenc_rotate: checks, then one kernel call a token. SPDX-License-Identifier: MIT */
#include "posenc/rotate.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "kernels/rotate_kernels.h"
#include "rope/tensor_map.h"

#include <string.h>

posenc_status posenc_rotation_of(const posenc_frequencies *frequencies, const posenc_rows *rows,
                                 size_t tokens, posenc_rotation *rotation, posenc_error *error) {
    if (!frequencies)
        return penc_fail_null(error, "frequencies");
    if (!rotation)
        return penc_fail_null(error, "rotation");
    posenc_status status = penc_check_struct(rows, sizeof *rows, "rows", error);
    if (status)
        return status;
    if (!posenc_dtype_bytes(rows->dtype))
        return penc_fail_integer(error, "rows.dtype", rows->dtype, "be a posenc_dtype");
    if (rows->dtype != POSENC_F32 && rows->dtype != POSENC_F64)
        return penc_fail(error, POSENC_UNSUPPORTED, "rows.dtype",
                         "be float32 or float64 for rows that rotate");
    const posenc_spec *spec = posenc_frequencies_spec(frequencies);
    size_t pairs = posenc_frequencies_pairs(frequencies);
    size_t width = posenc_row_width(rows->layout, pairs);
    size_t bytes = posenc_dtype_bytes(rows->dtype);
    if (!width)
        return penc_fail_integer(error, "rows.layout", rows->layout, "be a posenc_row_layout");

    posenc_rotation made = POSENC_ROTATION_INIT;
    made.cos = rows->cos;
    made.sin = rows->sin;
    if (rows->layout == POSENC_ROWS_COS_SIN && rows->cos)
        made.sin = (const char *)rows->cos + pairs * bytes;
    if (rows->layout == POSENC_ROWS_PAIRS && rows->cos)
        made.sin = (const char *)rows->cos + bytes;
    int spread = rows->layout == POSENC_ROWS_PAIRS || rows->layout == POSENC_ROWS_FULL_INTERLEAVED;
    made.dtype = rows->dtype;
    made.tokens = tokens;
    made.row_stride = rows->row_stride ? rows->row_stride : (ptrdiff_t)width;
    made.pair_stride = spread ? 2 : 1;
    made.rotary_dim = spec->rotary_dim;
    made.rotary_start = spec->rotary_start;
    made.pairing = spec->pairing;
    if (!rows->without_attention)
        made.attention_factor = posenc_frequencies_attention_factor(frequencies, rows->mode);
    *rotation = made;
    return POSENC_OK;
}

/* Everything that a checked call needs. */
typedef struct penc_rotate_plan {
    posenc_rotation rotation;   /* strides filled in */
    const posenc_tensor *x, *y; /* input and output */
    penc_memory_map x_map, y_map;
    int transpose;
    double scale;
} penc_rotate_plan;

static posenc_status penc_check_rotation(posenc_rotation *rotation, const posenc_tensor *tensor,
                                         posenc_error *error) {
    size_t head_dim = tensor->shape[POSENC_AXIS_HEAD_DIM];
    posenc_dtype needed = tensor->dtype == POSENC_F64 ? POSENC_F64 : POSENC_F32;
    posenc_status status = POSENC_OK;
    if (!posenc_pairing_name(rotation->pairing))
        return penc_fail_integer(error, "rotation.pairing", rotation->pairing,
                                 "be POSENC_PAIRING_HALF or POSENC_PAIRING_INTERLEAVED");
    if (rotation->rotary_dim == 0 || rotation->rotary_dim % 2 || rotation->rotary_dim > head_dim)
        status = penc_fail_size(error, "rotation.rotary_dim", rotation->rotary_dim,
                                "be even and from 2 to the tensor's head_dim");
    else if (rotation->rotary_start > head_dim - rotation->rotary_dim)
        status = penc_fail_size(error, "rotation.rotary_start", rotation->rotary_start,
                                "leave room for rotary_dim channels below the tensor's head_dim");
    if (status) {
        penc_fail_limit(error, "head_dim", head_dim);
        return status;
    }
    if (rotation->tokens != tensor->shape[POSENC_AXIS_TOKENS]) {
        status =
            penc_fail_size(error, "rotation.tokens", rotation->tokens, "equal the tensor's tokens");
        penc_fail_limit(error, "tokens", tensor->shape[POSENC_AXIS_TOKENS]);
        return status;
    }
    if (rotation->batch > 1 && rotation->batch != tensor->shape[POSENC_AXIS_BATCH]) {
        status = penc_fail_size(error, "rotation.batch", rotation->batch,
                                "be 0, 1 or the tensor's batch");
        penc_fail_limit(error, "batch", tensor->shape[POSENC_AXIS_BATCH]);
        return status;
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

/* cos and sin must not lie in the memory that is written. Their tables are seen as tensors of
 * batch x tokens x 1 x pairs. */
static posenc_status penc_check_tables(const penc_rotate_plan *plan, const void *output,
                                       posenc_error *error) {
    const posenc_rotation *rotation = &plan->rotation;
    size_t batch = rotation->batch > 1 ? rotation->batch : 1;
    posenc_tensor table =
        posenc_tensor_dense(rotation->dtype, batch, rotation->tokens, 1, rotation->rotary_dim / 2);
    table.strides[POSENC_AXIS_BATCH] = rotation->batch_stride;
    table.strides[POSENC_AXIS_TOKENS] = rotation->row_stride;
    table.strides[POSENC_AXIS_HEAD_DIM] = rotation->pair_stride;
    penc_memory_map map;
    posenc_status status = penc_map_tensor(&table, "rotation", &map, error);
    if (status)
        return status;
    if (!penc_map_fits_at(&map, rotation->cos) || !penc_map_fits_at(&map, rotation->sin))
        return penc_fail(error, POSENC_OVERFLOW, "rotation",
                         "keep its rows within the address space");
    if (!penc_maps_disjoint(&plan->y_map, output, &map, rotation->cos))
        return penc_fail(error, POSENC_OVERLAP, "rotation.cos", "not overlap the output");
    if (!penc_maps_disjoint(&plan->y_map, output, &map, rotation->sin))
        return penc_fail(error, POSENC_OVERLAP, "rotation.sin", "not overlap the output");
    return POSENC_OK;
}

static int penc_same_strides(const posenc_tensor *a, const posenc_tensor *b) {
    for (int axis = 0; axis < POSENC_AXES; axis++) {
        if (a->shape[axis] > 1 && a->strides[axis] != b->strides[axis])
            return 0;
    }
    return 1;
}

static posenc_status penc_check_output(const penc_rotate_plan *plan, const void *input,
                                       const void *output, posenc_error *error) {
    for (int axis = 0; axis < POSENC_AXES; axis++) {
        if (plan->x->shape[axis] != plan->y->shape[axis]) {
            penc_fail_size(error, "options.output", plan->y->shape[axis],
                           "have the tensor's shape in every axis");
            penc_fail_limit(error, "the tensor's", plan->x->shape[axis]);
            penc_fail_place(error, "axis", axis);
            return POSENC_OUT_OF_RANGE;
        }
    }
    if (plan->x->dtype != plan->y->dtype)
        return penc_fail(error, POSENC_UNSUPPORTED, "options.output", "have the tensor's dtype");
    if (!penc_map_fits_at(&plan->x_map, input))
        return penc_fail(error, POSENC_OVERFLOW, "tensor", "lie within the address space");
    if (!penc_map_fits_at(&plan->y_map, output))
        return penc_fail(error, POSENC_OVERFLOW, "options.output", "lie within the address space");
    if (!penc_map_writes_once(&plan->y_map))
        return penc_fail(
            error, POSENC_OVERLAP, "options.output",
            "have strides that write every element once: each at least as large as all smaller ones reach");
    if (input == output && penc_same_strides(plan->x, plan->y))
        return POSENC_OK;
    if (!penc_maps_disjoint(&plan->x_map, input, &plan->y_map, output))
        return penc_fail(error, POSENC_OVERLAP, "output",
                         "be the input with the same strides, or share no element with it");
    return POSENC_OK;
}

static posenc_status penc_make_plan(penc_rotate_plan *plan, const posenc_rotation *rotation,
                                    const posenc_tensor *tensor,
                                    const posenc_rotate_options *options, posenc_error *error) {
    posenc_status status = penc_check_struct(rotation, sizeof *rotation, "rotation", error);
    if (!status)
        status = penc_map_tensor(tensor, "tensor", &plan->x_map, error);
    if (!status && options)
        status = penc_check_struct(options, sizeof *options, "options", error);
    if (status)
        return status;
    plan->rotation = *rotation;
    plan->x = plan->y = tensor;
    plan->y_map = plan->x_map;
    plan->transpose = 0;
    plan->scale = 1.0;
    if (options) {
        if ((unsigned)options->direction > POSENC_BACKWARD)
            return penc_fail_integer(error, "options.direction", options->direction,
                                     "be a posenc_direction");
        plan->transpose = options->direction != POSENC_FORWARD;
        if (options->direction == POSENC_INVERSE && rotation->attention_factor != 0.0)
            plan->scale = 1.0 / (rotation->attention_factor * rotation->attention_factor);
        if (options->output) {
            plan->y = options->output;
            status = penc_map_tensor(plan->y, "options.output", &plan->y_map, error);
        }
    }
    return status ? status : penc_check_rotation(&plan->rotation, tensor, error);
}

static penc_side penc_side_of(const posenc_tensor *tensor, const posenc_rotation *rotation) {
    ptrdiff_t channel = tensor->strides[POSENC_AXIS_HEAD_DIM];
    ptrdiff_t pairs = (ptrdiff_t)(rotation->rotary_dim / 2);
    penc_side side = {tensor->strides[POSENC_AXIS_HEADS], channel, channel * pairs};
    if (rotation->pairing == POSENC_PAIRING_INTERLEAVED) {
        side.step = 2 * channel;
        side.gap = channel;
    }
    return side;
}

/* Bytes from the data pointer to an element. */
static ptrdiff_t penc_element_at(const posenc_tensor *tensor, size_t batch, size_t token,
                                 size_t head, size_t channel) {
    return ((ptrdiff_t)batch * tensor->strides[POSENC_AXIS_BATCH] +
            (ptrdiff_t)token * tensor->strides[POSENC_AXIS_TOKENS] +
            (ptrdiff_t)head * tensor->strides[POSENC_AXIS_HEADS] +
            (ptrdiff_t)channel * tensor->strides[POSENC_AXIS_HEAD_DIM]) *
           (ptrdiff_t)posenc_dtype_bytes(tensor->dtype);
}

/* Copies channels first ... last - 1 of all heads of one token, as bytes: no float is loaded, so
 * that a signalling NaN stays what it is. */
static void penc_copy_channels(const penc_rotate_plan *plan, const char *input, char *output,
                               size_t batch, size_t token, size_t first, size_t last) {
    size_t bytes = posenc_dtype_bytes(plan->x->dtype);
    int dense =
        plan->x->strides[POSENC_AXIS_HEAD_DIM] == 1 && plan->y->strides[POSENC_AXIS_HEAD_DIM] == 1;
    size_t run = dense ? last - first : 1;
    for (size_t head = 0; head < plan->x->shape[POSENC_AXIS_HEADS]; head++) {
        for (size_t channel = first; channel < last; channel += run)
            memcpy(output + penc_element_at(plan->y, batch, token, head, channel),
                   input + penc_element_at(plan->x, batch, token, head, channel), run * bytes);
    }
}

static void penc_run_plan(const penc_rotate_plan *plan, const char *input, char *output) {
    const posenc_rotation *rotation = &plan->rotation;
    const posenc_tensor *x = plan->x, *y = plan->y;
    penc_rotate_kernel *kernel = penc_rotate_kernel_of(x->dtype);
    penc_rotate_job job = {x->shape[POSENC_AXIS_HEADS],
                           rotation->rotary_dim / 2,
                           penc_side_of(x, rotation),
                           penc_side_of(y, rotation),
                           rotation->pair_stride,
                           plan->transpose,
                           plan->scale};
    size_t start = rotation->rotary_start, end = start + rotation->rotary_dim;
    size_t head_dim = x->shape[POSENC_AXIS_HEAD_DIM];
    ptrdiff_t table_bytes = (ptrdiff_t)posenc_dtype_bytes(rotation->dtype);
    for (size_t batch = 0; batch < x->shape[POSENC_AXIS_BATCH]; batch++) {
        ptrdiff_t sequence = rotation->batch > 1 ? (ptrdiff_t)batch * rotation->batch_stride : 0;
        for (size_t token = 0; token < x->shape[POSENC_AXIS_TOKENS]; token++) {
            ptrdiff_t row = (sequence + (ptrdiff_t)token * rotation->row_stride) * table_bytes;
            kernel(&job, input + penc_element_at(x, batch, token, 0, start),
                   (const char *)rotation->cos + row, (const char *)rotation->sin + row,
                   output + penc_element_at(y, batch, token, 0, start));
            if (input != output) {
                penc_copy_channels(plan, input, output, batch, token, 0, start);
                penc_copy_channels(plan, input, output, batch, token, end, head_dim);
            }
        }
    }
}

posenc_status posenc_rotate(const posenc_rotation *rotation, const posenc_tensor *tensor,
                            const void *input, void *output, const posenc_rotate_options *options,
                            posenc_error *error) {
    penc_rotate_plan plan;
    posenc_status status = penc_make_plan(&plan, rotation, tensor, options, error);
    if (status)
        return status;
    if (plan.x_map.high == plan.x_map.low && plan.y_map.high == plan.y_map.low)
        return POSENC_OK; /* no element */
    if (!input)
        return penc_fail_null(error, "input");
    if (!output)
        return penc_fail_null(error, "output");
    if (!rotation->cos)
        return penc_fail_null(error, "rotation.cos");
    if (!rotation->sin)
        return penc_fail_null(error, "rotation.sin");
    status = penc_check_output(&plan, input, output, error);
    if (!status)
        status = penc_check_tables(&plan, output, error);
    if (status)
        return status;
    penc_run_plan(&plan, input, output);
    return POSENC_OK;
}

/* The row primitives are the kernels on one contiguous head. */
static void penc_rotate_row(posenc_dtype dtype, int interleaved, size_t rotary_dim, const void *x,
                            const void *cos, const void *sin, void *y) {
    ptrdiff_t pairs = (ptrdiff_t)(rotary_dim / 2);
    penc_side side = {0, interleaved ? 2 : 1, interleaved ? 1 : pairs};
    penc_rotate_job job = {1, rotary_dim / 2, side, side, 1, 0, 1.0};
    penc_rotate_kernel_of(dtype)(&job, x, cos, sin, y);
}

void posenc_rotate_row_half_f32(const float *x, const float *cos, const float *sin,
                                size_t rotary_dim, float *y) {
    penc_rotate_row(POSENC_F32, 0, rotary_dim, x, cos, sin, y);
}

void posenc_rotate_row_half_f64(const double *x, const double *cos, const double *sin,
                                size_t rotary_dim, double *y) {
    penc_rotate_row(POSENC_F64, 0, rotary_dim, x, cos, sin, y);
}

void posenc_rotate_row_interleaved_f32(const float *x, const float *cos, const float *sin,
                                       size_t rotary_dim, float *y) {
    penc_rotate_row(POSENC_F32, 1, rotary_dim, x, cos, sin, y);
}

void posenc_rotate_row_interleaved_f64(const double *x, const double *cos, const double *sin,
                                       size_t rotary_dim, double *y) {
    penc_rotate_row(POSENC_F64, 1, rotary_dim, x, cos, sin, y);
}
