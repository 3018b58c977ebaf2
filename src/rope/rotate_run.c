/* Carrying out a checked rotation: blocks of tokens to kernels, prepared rows, and the channels that do not
 * turn. SPDX-License-Identifier: MIT */
#include "rope/rotate_run.h"

#include "base/number_access.h"
#include "kernels/rotate_kernels.h"
#include "rope/row_finder.h"

#include <string.h>

/* Tokens that go to a kernel at once: their rows stay in a near cache while head after head passes. Where heads
 * lie outside of tokens in memory, GROUP of them pass side by side, so that a row is read once for all of them. */
enum { BLOCK = 64, GROUP = 8 };

/* What all blocks of a call share. */
typedef struct penc_rotate_call {
    const penc_rotate_plan *plan;
    penc_rotate_kernel *kernel;
    penc_rotate_job job;
    int prepare; /* rows are copied for the kernel, side by side, sin negated for the transpose */
    int flat;    /* and each number twice */
    int heads_outside; /* heads lie outside of tokens in memory, and are many */
    int fetch;         /* and are fetched ahead of their turn */
    size_t pairs;      /* at most as many at once */
    penc_row_finder finder;
    ptrdiff_t from_bytes, to_bytes, table_bytes;
} penc_rotate_call;

/* Tokens from `token` on of one sequence of the batch. */
typedef struct penc_token_block {
    size_t batch, token, count;
    ptrdiff_t rows[BLOCK]; /* in elements from cos and sin */
} penc_token_block;

static penc_side penc_side_of(const posenc_tensor *tensor, posenc_pairing pairing, size_t pairs) {
    ptrdiff_t channel = tensor->strides[POSENC_AXIS_HEAD_DIM];
    penc_side side = {tensor->strides[POSENC_AXIS_TOKENS], tensor->strides[POSENC_AXIS_HEADS],
                      channel, channel * (ptrdiff_t)pairs};
    if (pairing == POSENC_PAIRING_INTERLEAVED) {
        side.step = 2 * channel;
        side.gap = channel;
    }
    return side;
}

/* Bytes from the data pointer to an element, of `bytes` bytes. */
static ptrdiff_t penc_element_at(const posenc_tensor *tensor, ptrdiff_t bytes, size_t batch,
                                 size_t token, size_t head, size_t channel) {
    return ((ptrdiff_t)batch * tensor->strides[POSENC_AXIS_BATCH] +
            (ptrdiff_t)token * tensor->strides[POSENC_AXIS_TOKENS] +
            (ptrdiff_t)head * tensor->strides[POSENC_AXIS_HEADS] +
            (ptrdiff_t)channel * tensor->strides[POSENC_AXIS_HEAD_DIM]) *
           bytes;
}

/* Streaming stores need an output whose every vector is aligned. */
static int penc_is_aligned(const penc_rotate_call *call) {
    const penc_rotate_plan *plan = call->plan;
    uintptr_t odd = (uintptr_t)(plan->output + penc_element_at(plan->y, call->to_bytes, 0, 0, 0,
                                                               plan->rotation.rotary_start));
    for (int axis = POSENC_AXIS_BATCH; axis <= POSENC_AXIS_HEADS; axis++) {
        if (plan->y->shape[axis] > 1)
            odd |= (uintptr_t)(plan->y->strides[axis] * call->to_bytes);
    }
    if (plan->y_pairing == POSENC_PAIRING_HALF)
        odd |= (uintptr_t)(call->job.y.gap * call->to_bytes);
    return odd % 64 == 0;
}

/* What the caches near a core do not hold should be passed through in the order of memory. */
static int penc_is_large(const penc_rotate_plan *plan) {
    return plan->x_map.high - plan->x_map.low > 1 << 20;
}

/* Whether heads that lie outside of tokens are fetched ahead of their turn. Those of 16 bits gain, and wide ones; others
 * gain nothing, and lose a tenth out of place (docs/performance.md). */
static int penc_is_fetched(const penc_rotate_call *call) {
    enum { LONG_HALF = 256 };
    return call->from_bytes == 2 || (ptrdiff_t)call->job.pairs * call->from_bytes > LONG_HALF;
}

/* The kernel for rows that hold each number twice, where it can and pays; NULL elsewhere. */
static penc_rotate_kernel *penc_flat_kernel(const penc_rotate_plan *plan) {
    enum { WORTH_PREPARING = 8 };
    const posenc_tensor *x = plan->x, *y = plan->y;
    size_t pairs = plan->rotation.rotary_dim / 2;
    if (plan->rotation.pairing != POSENC_PAIRING_INTERLEAVED ||
        plan->y_pairing != POSENC_PAIRING_INTERLEAVED || x->dtype != y->dtype ||
        pairs % PENC_FLAT_PAIRS || x->shape[POSENC_AXIS_HEADS] < WORTH_PREPARING)
        return NULL;
    return penc_rotate_flat_of(x->dtype);
}

static penc_rotate_call penc_start_call(const penc_rotate_plan *plan) {
    const posenc_rotation *rotation = &plan->rotation;
    const posenc_tensor *x = plan->x, *y = plan->y;
    size_t pairs = rotation->rotary_dim / 2;
    penc_rotate_call
        call; /* filled member by member: zeroing it whole costs as much as rotating a head */
    call.plan = plan;
    call.kernel = NULL;
    call.finder = (penc_row_finder){rotation, 0};
    call.pairs = pairs;
    call.prepare = call.flat = 0;
    call.from_bytes = (ptrdiff_t)posenc_dtype_bytes(x->dtype);
    call.to_bytes = (ptrdiff_t)posenc_dtype_bytes(y->dtype);
    call.table_bytes = (ptrdiff_t)posenc_dtype_bytes(rotation->dtype);
    call.job.heads = x->shape[POSENC_AXIS_HEADS];
    call.job.pairs = pairs;
    call.job.x = penc_side_of(x, rotation->pairing, pairs);
    call.job.y = penc_side_of(y, plan->y_pairing, pairs);
    call.job.table = (penc_table_side){0, rotation->pair_stride, rotation->second_stride, NULL};
    call.job.transpose = plan->transpose;
    call.job.scale = plan->scale;
    call.job.stream = 0;
    call.job.next = 0;
    int large = penc_is_large(plan);
    call.job.by_head = large;
    call.heads_outside = large && call.job.heads > 1 && call.job.x.token < call.job.x.head;
    call.fetch = call.heads_outside && penc_is_fetched(&call);
    int dense = x->strides[POSENC_AXIS_HEAD_DIM] == 1 && y->strides[POSENC_AXIS_HEAD_DIM] == 1 &&
                rotation->second_stride == 0;
    if (dense)
        call.kernel = penc_rotate_vector_of(x->dtype, (penc_channel_order)rotation->pairing,
                                            y->dtype, (penc_channel_order)plan->y_pairing);
    if (!call.kernel) {
        call.kernel = penc_rotate_scalar_of(x->dtype, y->dtype);
        return call;
    }
    penc_rotate_kernel *flat = call.heads_outside ? NULL : penc_flat_kernel(plan);
    call.flat = flat != NULL;
    if (flat)
        call.kernel = flat;
    call.prepare = call.flat || plan->transpose || rotation->pair_stride != 1;
    call.job.transpose = 0;
    call.job.table.pair = 1;
    if (call.prepare) {
        size_t room = PENC_SCRATCH_BYTES / (size_t)call.table_bytes / (call.flat ? 2 : 1);
        call.pairs = pairs < room ? pairs : room;
    }
    call.job.stream = plan->streaming && penc_is_aligned(&call);
    return call;
}

/* --- Rows ------------------------------------------------------------------------------------- */

static void penc_next_block(penc_rotate_call *call, size_t batch, size_t token,
                            penc_token_block *block) {
    const penc_rotate_plan *plan = call->plan;
    size_t left = plan->first + plan->count - token;
    size_t most = BLOCK;
    if (call->prepare) {
        size_t room =
            PENC_SCRATCH_BYTES / (size_t)call->table_bytes / (call->pairs * (call->flat ? 2 : 1));
        most = room < most ? room : most;
    }
    block->batch = batch;
    block->token = token;
    block->count = left < most ? left : most;
    for (size_t i = 0; i < block->count; i++)
        block->rows[i] = penc_row_place(&call->finder, batch, token + i);
}

/* Copies pairs first ... first + count - 1 of the block's rows side by side. */
#define PENC_PREPARE_ROWS(name, real)                                                              \
    static void name(const penc_rotate_call *call, const penc_token_block *block, size_t first,    \
                     size_t count, real *cos_rows, real *sin_rows) {                               \
        const posenc_rotation *rotation = &call->plan->rotation;                                   \
        real sign = call->plan->transpose ? -1 : 1;                                                \
        for (size_t i = 0; i < block->count; i++) {                                                \
            ptrdiff_t row = block->rows[i] + (ptrdiff_t)first * rotation->pair_stride;             \
            const real *cos = (const real *)rotation->cos + row;                                   \
            const real *sin = (const real *)rotation->sin + row;                                   \
            for (size_t j = 0; j < count; j++) {                                                   \
                cos_rows[i * count + j] = cos[(ptrdiff_t)j * rotation->pair_stride];               \
                sin_rows[i * count + j] = sign * sin[(ptrdiff_t)j * rotation->pair_stride];        \
            }                                                                                      \
        }                                                                                          \
    }
PENC_PREPARE_ROWS(penc_prepare_floats, float)
PENC_PREPARE_ROWS(penc_prepare_doubles, double)

/* The same, each number twice, sin negated at the pair's first channel. */
static void penc_prepare_flat(const penc_rotate_call *call, const penc_token_block *block,
                              size_t first, size_t count, float *restrict cos_rows,
                              float *restrict sin_rows) {
    const posenc_rotation *rotation = &call->plan->rotation;
    const ptrdiff_t step = rotation->pair_stride;
    const float sign = call->plan->transpose ? -1.0f : 1.0f;
    for (size_t i = 0; i < block->count; i++) {
        const float *cos = (const float *)rotation->cos + block->rows[i] + (ptrdiff_t)first * step;
        const float *sin = (const float *)rotation->sin + block->rows[i] + (ptrdiff_t)first * step;
        for (size_t j = 0; j < count; j++) {
            size_t at = 2 * (i * count + j);
            float s = sign * sin[(ptrdiff_t)j * step];
            cos_rows[at] = cos_rows[at + 1] = cos[(ptrdiff_t)j * step];
            sin_rows[at] = -s;
            sin_rows[at + 1] = s;
        }
    }
}

/* --- Blocks ------------------------------------------------------------------------------------ */

/* In place with another order of channels: head by head through a copy. */
static void penc_rearrange(const penc_rotate_call *call, const penc_rotate_job *job, char *data,
                           const char *cos, const char *sin) {
    double slice[PENC_SCRATCH_BYTES / sizeof(double)];
    penc_rotate_job one = *job;
    ptrdiff_t bytes = call->from_bytes;
    ptrdiff_t channel = call->plan->x->strides[POSENC_AXIS_HEAD_DIM];
    one.tokens = one.heads = 1;
    one.stream = 0;
    one.x.step = job->x.step / channel;
    one.x.gap = job->x.gap / channel;
    for (size_t i = 0; i < job->tokens * job->heads; i++) {
        ptrdiff_t token = (ptrdiff_t)(i / job->heads), head = (ptrdiff_t)(i % job->heads);
        char *at = data + (token * job->x.token + head * job->x.head) * bytes;
        ptrdiff_t row = penc_table_row(job, (size_t)token) * call->table_bytes;
        for (ptrdiff_t c = 0; c < 2 * (ptrdiff_t)job->pairs; c++)
            memcpy((char *)slice + c * bytes, at + c * channel * bytes, (size_t)bytes);
        one.table.rows = NULL;
        call->kernel(&one, slice, cos + row, sin + row, at);
    }
}

static void penc_run_kernel(const penc_rotate_call *call, const penc_rotate_job *job, const char *x,
                            const char *cos, const char *sin, char *y) {
    if (call->plan->in_place && call->plan->y_pairing != call->plan->rotation.pairing) {
        penc_rearrange(call, job, y, cos, sin);
        return;
    }
    if (!call->heads_outside) {
        call->kernel(job, x, cos, sin, y);
        return;
    }
    penc_rotate_job some = *job;
    for (size_t head = 0; head < job->heads; head += GROUP) {
        const size_t left = job->heads - head;
        const ptrdiff_t at = (ptrdiff_t)head * job->x.head;
        some.heads = left < GROUP ? left : GROUP;
        if (call->fetch)
            some.next =
                left > GROUP ? GROUP * job->x.head : (ptrdiff_t)job->tokens * job->x.token - at;
        call->kernel(&some, x + at * call->from_bytes, cos, sin,
                     y + (ptrdiff_t)head * job->y.head * call->to_bytes);
    }
}

/* A load waits for a store before it whose address has the same last twelve bits. So where the output lies a little
 * above a multiple of 4096 bytes from the input, heads go from the last one to the first. */
static void penc_choose_direction(penc_rotate_call *call, const char **x, char **y) {
    enum { PERIOD = 4096 };
    const penc_rotate_plan *plan = call->plan;
    penc_rotate_job *job = &call->job;
    job->x.head = plan->x->strides[POSENC_AXIS_HEADS];
    job->y.head = plan->y->strides[POSENC_AXIS_HEADS];
    uintptr_t above = ((uintptr_t)*y - (uintptr_t)*x) % PERIOD;
    if (above == 0 || above > PERIOD / 2 || plan->in_place || job->by_head || job->x.head < 0 ||
        job->x.head * call->from_bytes != job->y.head * call->to_bytes)
        return;
    ptrdiff_t last = (ptrdiff_t)job->heads - 1;
    *x += last * job->x.head * call->from_bytes;
    *y += last * job->y.head * call->to_bytes;
    job->x.head = -job->x.head;
    job->y.head = -job->y.head;
}

/* Pairs first ... first + count - 1 of a block. The call's job is used as it is: a copy of what has just been written
 * member by member would wait for the memory. */
static void penc_rotate_block(penc_rotate_call *call, const penc_token_block *block, size_t first,
                              size_t count) {
    const penc_rotate_plan *plan = call->plan;
    size_t start = plan->rotation.rotary_start;
    ptrdiff_t pair = (ptrdiff_t)first;
    penc_rotate_job *job = &call->job;
    job->tokens = block->count;
    job->pairs = count;
    const char *x =
        plan->input +
        penc_element_at(plan->x, call->from_bytes, block->batch, block->token, 0, start) +
        pair * job->x.step * call->from_bytes;
    char *y = plan->output +
              penc_element_at(plan->y, call->to_bytes, block->batch, block->token, 0, start) +
              pair * job->y.step * call->to_bytes;
    penc_choose_direction(call, &x, &y);
    if (!call->prepare) {
        job->table.rows = block->rows;
        penc_run_kernel(call, job, x, plan->rotation.cos, plan->rotation.sin, y);
        return;
    }
    _Alignas(64) double cos[PENC_SCRATCH_BYTES / sizeof(double)];
    _Alignas(64) double sin[PENC_SCRATCH_BYTES / sizeof(double)];
    if (call->flat)
        penc_prepare_flat(call, block, first, count, (float *)cos, (float *)sin);
    else if (plan->rotation.dtype == POSENC_F64)
        penc_prepare_doubles(call, block, first, count, cos, sin);
    else
        penc_prepare_floats(call, block, first, count, (float *)cos, (float *)sin);
    job->table.token = (ptrdiff_t)count * (call->flat ? 2 : 1);
    penc_run_kernel(call, job, x, (const char *)cos, (const char *)sin, y);
}

/* Copies channels first ... last - 1 of all heads of a block's tokens: as bytes, so that no float is loaded and
 * a signalling NaN stays what it is; converted where the dtypes differ. */
static void penc_copy_channels(const penc_rotate_call *call, const penc_token_block *block,
                               size_t first, size_t last) {
    const posenc_tensor *x = call->plan->x, *y = call->plan->y;
    int alike = x->dtype == y->dtype;
    int dense =
        alike && x->strides[POSENC_AXIS_HEAD_DIM] == 1 && y->strides[POSENC_AXIS_HEAD_DIM] == 1;
    size_t heads = x->shape[POSENC_AXIS_HEADS], run = dense ? last - first : 1;
    for (size_t i = 0; i < block->count * heads && first < last; i++) {
        size_t token = block->token + i / heads, head = i % heads;
        const char *from = call->plan->input +
                           penc_element_at(x, call->from_bytes, block->batch, token, head, first);
        char *to = call->plan->output +
                   penc_element_at(y, call->to_bytes, block->batch, token, head, first);
        for (size_t channel = first; channel < last; channel += run) {
            if (alike)
                memcpy(to, from, run * (size_t)call->from_bytes);
            else
                penc_store_number(to, y->dtype, 0, penc_load_number(from, x->dtype, 0));
            from += x->strides[POSENC_AXIS_HEAD_DIM] * call->from_bytes;
            to += y->strides[POSENC_AXIS_HEAD_DIM] * call->to_bytes;
        }
    }
}

void penc_run_plan(const penc_rotate_plan *plan) {
    if (plan->empty || plan->count == 0)
        return;
    penc_rotate_call call = penc_start_call(plan);
    size_t start = plan->rotation.rotary_start, end = start + plan->rotation.rotary_dim;
    size_t pairs = plan->rotation.rotary_dim / 2, width = plan->x->shape[POSENC_AXIS_HEAD_DIM];
    for (size_t batch = 0; batch < plan->x->shape[POSENC_AXIS_BATCH]; batch++) {
        for (size_t done = 0; done < plan->count;) {
            penc_token_block block;
            penc_next_block(&call, batch, plan->first + done, &block);
            for (size_t first = 0; first < pairs; first += call.pairs)
                penc_rotate_block(&call, &block, first,
                                  pairs - first < call.pairs ? pairs - first : call.pairs);
            if (!plan->in_place && start)
                penc_copy_channels(&call, &block, 0, start);
            if (!plan->in_place && end < width)
                penc_copy_channels(&call, &block, end, width);
            done += block.count;
        }
    }
    if (call.job.stream)
        penc_finish_streaming();
}
