/* posenc_rotate: a plan that checks, then a run that cannot fail. SPDX-License-Identifier: MIT */
#include "posenc/rotate.h"

#include "base/fail.h"
#include "kernels/rotate_kernels.h"
#include "rope/rotate_run.h"

posenc_status posenc_rotate(const posenc_rotation *rotation, const posenc_tensor *tensor,
                            const void *input, void *output, const posenc_rotate_options *options,
                            posenc_error *error) {
    posenc_rotate_item item = {tensor, input, output, NULL};
    penc_rotate_plan plan;
    posenc_status status = penc_make_plan(&plan, rotation, &item, options, error);
    if (!status)
        penc_run_plan(&plan);
    return status;
}

posenc_status posenc_rotate_all(const posenc_rotation *rotation, const posenc_rotate_item *items,
                                size_t count, const posenc_rotate_options *options,
                                posenc_error *error) {
    enum { MOST = 8 };
    penc_rotate_plan plans[MOST];
    if (count && !items)
        return penc_fail_null(error, "items");
    if (count > MOST)
        return penc_fail_size(error, "count", count, "be at most 8");
    for (size_t i = 0; i < count; i++) {
        posenc_status status = penc_make_plan(&plans[i], rotation, &items[i], options, error);
        for (size_t other = 0; other < i && !status; other++) {
            status = penc_check_items_apart(&plans[i], &plans[other], error);
            if (!status)
                status = penc_check_items_apart(&plans[other], &plans[i], error);
        }
        if (status) {
            penc_fail_place(error, "item", (int64_t)i);
            return status;
        }
    }
    for (size_t i = 0; i < count; i++)
        penc_run_plan(&plans[i]);
    return POSENC_OK;
}

/* The row primitives are the kernels on one contiguous head. */
static void penc_rotate_row(posenc_dtype dtype, int interleaved, size_t rotary_dim, const void *x,
                            const void *cos, const void *sin, void *y) {
    ptrdiff_t pairs = (ptrdiff_t)(rotary_dim / 2);
    penc_side side = {0, 0, interleaved ? 2 : 1, interleaved ? 1 : pairs};
    penc_channel_order order = interleaved ? PENC_PAIRS : PENC_HALVES;
    penc_rotate_job job = {1,           1,           rotary_dim / 2, side, side, {0, 1, 0, NULL},
                           .stream = 0, .scale = 1.0};
    penc_rotate_kernel *kernel = penc_rotate_vector_of(dtype, order, dtype, order);
    if (!kernel)
        kernel = penc_rotate_scalar_of(dtype, dtype);
    kernel(&job, x, cos, sin, y);
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
