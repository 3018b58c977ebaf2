/* All heads of one token on their way. SPDX-License-Identifier: MIT */
#include "rope/head_pass.h"

#include "base/number_access.h"

#include <string.h>

/* Heads whose channels lie side by side, in memory of this call or the caller's. */
typedef struct penc_heads {
    char *data;
    penc_format format;
    ptrdiff_t head; /* elements */
} penc_heads;

/* Memory of one call of penc_pass_heads. */
typedef struct penc_pass_memory {
    _Alignas(64) char first[PENC_HEAD_BYTES];
    _Alignas(64) char second[PENC_HEAD_BYTES];   /* where a rotation cannot write what it reads */
    _Alignas(64) char gathered[PENC_HEAD_BYTES]; /* of channels that do not lie side by side */
    _Alignas(64) char scattered[2 * PENC_HEAD_BYTES]; /* float64 from float32 */
} penc_pass_memory;

size_t penc_most_channels(posenc_dtype dtype) {
    return PENC_HEAD_BYTES / (dtype == POSENC_F64 ? sizeof(double) : sizeof(float));
}

penc_head_side penc_side_of_tensor(const posenc_tensor *tensor) {
    const ptrdiff_t *strides = tensor->strides;
    return (penc_head_side){
        .format = (penc_format)tensor->dtype,
        .head = strides[POSENC_AXIS_HEADS],
        .channel = tensor->shape[POSENC_AXIS_HEAD_DIM] > 1 ? strides[POSENC_AXIS_HEAD_DIM] : 1,
        .token = strides[POSENC_AXIS_TOKENS]};
}

/* --- Choosing ------------------------------------------------------------------------------------- */

static int penc_is_float(penc_format format) {
    return format < PENC_FORMAT_INT8;
}

static penc_side penc_turn_side(posenc_pairing pairing, ptrdiff_t head, size_t pairs) {
    penc_side side = {0, head, 1, (ptrdiff_t)pairs};
    if (pairing == POSENC_PAIRING_INTERLEAVED) {
        side.step = 2;
        side.gap = 1;
    }
    return side;
}

static void penc_ready_turn(penc_head_pass *pass) {
    const posenc_rotation *rotation = pass->rotation;
    posenc_dtype real = pass->is_double ? POSENC_F64 : POSENC_F32;
    posenc_dtype from = pass->from_x ? (posenc_dtype)pass->x.format : real;
    posenc_dtype to = pass->to_y ? (posenc_dtype)pass->y.format : real;
    pass->turn = NULL;
    pass->prepare = rotation->second_stride == 0 && rotation->pair_stride != 1;
    if (rotation->second_stride == 0)
        pass->turn = penc_rotate_vector_of(from, (penc_channel_order)rotation->pairing, to,
                                           (penc_channel_order)pass->y_pairing);
    pass->job.stream = pass->stream && pass->to_y && pass->turn;
    if (!pass->turn)
        pass->turn = penc_rotate_scalar_of(from, to);
    pass->job.tokens = 1;
    pass->job.pairs = rotation->rotary_dim / 2;
    pass->job.x = penc_turn_side(rotation->pairing, 0, pass->job.pairs);
    pass->job.y = penc_turn_side(pass->y_pairing, 0, pass->job.pairs);
    pass->job.table = (penc_table_side){0, pass->prepare ? 1 : rotation->pair_stride,
                                        rotation->second_stride, NULL};
    pass->job.transpose = 0;
    pass->job.by_head = pass->large && pass->from_x;
    pass->job.next = 0;
}

/* Heads that turn whole, within a format. */
static penc_head_kernel *penc_one_kernel(const penc_head_pass *pass) {
    const posenc_rotation *rotation = pass->rotation;
    if (pass->x.format != pass->y.format || pass->x.format >= PENC_FORMAT_INT8 ||
        rotation->rotary_dim != pass->head_dim || rotation->second_stride != 0 ||
        rotation->pairing != pass->y_pairing)
        return NULL;
    return penc_head_turn_of((posenc_dtype)pass->x.format, (penc_channel_order)rotation->pairing,
                             pass->head_dim);
}

/* Heads that turn whole, from floats to 8 bits with a scale each. */
static penc_head_kernel *penc_turned_quantise_kernel(const penc_head_pass *pass) {
    const posenc_rotation *rotation = pass->rotation;
    posenc_dtype from = pass->from_x ? (posenc_dtype)pass->x.format : POSENC_F32;
    if (penc_is_float(pass->y.format) || pass->normalise_again || pass->is_double ||
        pass->y.tensor_scale > 0.0f || rotation->rotary_dim != pass->head_dim ||
        rotation->second_stride != 0 || rotation->pairing != pass->y_pairing)
        return NULL;
    return penc_head_turned_quantise_of(from, pass->y.format, (penc_channel_order)rotation->pairing,
                                        pass->head_dim);
}

/* Heads from floats to 8 bits with a scale each. */
static penc_head_kernel *penc_quantise_kernel(const penc_head_pass *pass) {
    if (pass->norm || penc_is_float(pass->y.format) || !penc_is_float(pass->x.format) ||
        pass->is_double || pass->y.tensor_scale > 0.0f)
        return NULL;
    return penc_head_quantise_of((posenc_dtype)pass->x.format, pass->y.format, pass->head_dim);
}

/* Where the weight of channel i goes: all-in-one kernels of bfloat16 want those of even channels first. */
static size_t penc_weight_place(const penc_head_pass *pass, size_t i) {
    if (!pass->all_in_one || pass->x.format != PENC_FORMAT_BF16)
        return i;
    return i % 2 * (pass->head_dim / 2) + i / 2;
}

static void penc_ready_weight(penc_head_pass *pass, void *weights) {
    const posenc_norm *norm = pass->norm;
    pass->weight = norm && norm->weight ? weights : NULL;
    for (size_t i = 0; pass->weight && i < pass->head_dim; i++) {
        double weight = penc_load_number(norm->weight, norm->weight_dtype, (ptrdiff_t)i);
        size_t at = penc_weight_place(pass, i);
        if (pass->is_double)
            ((double *)weights)[at] = norm->weight_plus_one ? 1.0 + weight : weight;
        else
            ((float *)weights)[at] = norm->weight_plus_one ? 1.0f + (float)weight : (float)weight;
    }
}

void penc_ready_pass(penc_head_pass *pass, void *weights) {
    enum { MOST_HEADS = 8 }; /* half of a nearest cache, with what the kernels read beside */
    int turns = pass->rotation && pass->rotation->rotary_dim;
    int rearranged = turns && pass->in_place && pass->y_pairing != pass->rotation->pairing;
    int before = pass->norm && pass->norm->order == POSENC_NORM_BEFORE;
    int after = pass->norm && pass->norm->order == POSENC_NORM_AFTER;
    pass->is_double = pass->x.format == PENC_FORMAT_F64;
    pass->real_bytes = pass->is_double ? sizeof(double) : sizeof(float);
    penc_format real = pass->is_double ? PENC_FORMAT_F64 : PENC_FORMAT_F32;
    size_t room = PENC_HEAD_BYTES / (pass->head_dim * pass->real_bytes);
    pass->group = room < MOST_HEADS ? room : MOST_HEADS;
    pass->from_x = turns && !before && penc_is_float(pass->x.format);
    pass->to_y = turns && !after && penc_is_float(pass->y.format) && !rearranged;
    pass->widen = penc_head_widen_of(pass->x.format);
    pass->normalise = before ? penc_head_norm_of(pass->x.format) : NULL;
    pass->normalise_again = after ? penc_head_norm_of(real) : NULL;
    pass->narrow = penc_head_narrow_of(pass->y.format, pass->is_double);
    pass->copy = pass->stream && pass->head_dim * penc_format_bytes(pass->x.format) % 64 == 0
                     ? penc_head_stream_copy_of()
                     : NULL;
    pass->all_in_one = before && turns ? penc_one_kernel(pass) : NULL;
    pass->quantise = turns ? penc_turned_quantise_kernel(pass) : penc_quantise_kernel(pass);
    int at_once = pass->all_in_one || (pass->quantise && (pass->from_x || !turns));
    if (at_once && pass->x.channel == 1 && pass->y.channel == 1)
        pass->group = pass->heads; /* none of them goes through memory of the call */
    penc_ready_weight(pass, weights);
    if (turns)
        penc_ready_turn(pass);
}

/* --- Channels that do not lie side by side ---------------------------------------------------------- */

/* Copies channels of `bytes` bytes; strides in elements. */
static void penc_copy_spread(size_t bytes, size_t heads, size_t channels, const char *from,
                             ptrdiff_t from_head, ptrdiff_t from_channel, char *to,
                             ptrdiff_t to_head, ptrdiff_t to_channel) {
    for (size_t head = 0; head < heads; head++) {
        const char *x = from + (ptrdiff_t)head * from_head * (ptrdiff_t)bytes;
        char *y = to + (ptrdiff_t)head * to_head * (ptrdiff_t)bytes;
        if (from_channel == 1 && to_channel == 1) {
            memcpy(y, x, channels * bytes);
            continue;
        }
        for (size_t i = 0; i < channels; i++)
            memcpy(y + (ptrdiff_t)i * to_channel * (ptrdiff_t)bytes,
                   x + (ptrdiff_t)i * from_channel * (ptrdiff_t)bytes, bytes);
    }
}

/* --- Stages --------------------------------------------------------------------------------------- */

/* Some heads of a token, or all of some tokens. */
typedef struct penc_pass_group {
    const penc_head_pass *pass;
    penc_pass_memory *memory;
    size_t heads, tokens;
    penc_heads x, y; /* x is only read */
    float *x_scales, *y_scales;
    const void *cos, *sin;
    double factor;
} penc_pass_group;

static penc_heads penc_in_memory(const penc_head_pass *pass, char *data) {
    return (penc_heads){data, pass->is_double ? PENC_FORMAT_F64 : PENC_FORMAT_F32,
                        (ptrdiff_t)pass->head_dim};
}

/* A kernel on channels first ... first + count - 1 of a group. */
static void penc_run_stage(const penc_pass_group *g, penc_head_kernel *kernel, penc_heads from,
                           penc_heads to, size_t first, size_t count) {
    const penc_head_pass *pass = g->pass;
    int inwards = from.format >= PENC_FORMAT_INT8;
    const penc_head_side *scaled = inwards ? &pass->x : &pass->y;
    penc_head_job job = {
        .heads = g->heads,
        .channels = count,
        .x = from.data + first * penc_format_bytes(from.format),
        .y = to.data + first * penc_format_bytes(to.format),
        .x_head = from.head,
        .y_head = to.head,
        .epsilon = pass->norm ? pass->norm->epsilon : 0.0,
        .weight = pass->weight,
        .factor = g->factor,
        .scales = inwards ? g->x_scales : g->y_scales,
        .scale_head = scaled->scale_head,
        .tensor_scale = scaled->tensor_scale,
        .cos = g->cos,
        .sin = g->sin,
        .tokens = g->tokens,
        .x_token = pass->x.token,
        .y_token = pass->y.token,
        .row_token = pass->rotation ? pass->rotation->row_stride : 0,
        .scale_token = scaled->scale_token,
    };
    if (count)
        kernel(&job);
}

/* Into memory of the call, in the computing type. */
static penc_heads penc_bring_in(const penc_pass_group *g) {
    const penc_head_pass *pass = g->pass;
    penc_head_kernel *kernel = pass->normalise ? pass->normalise : pass->widen;
    penc_heads in = penc_in_memory(pass, g->memory->first);
    penc_run_stage(g, kernel, g->x, in, 0, pass->head_dim);
    return in;
}

/* Channels that do not turn, from what the rotation reads to what it writes. */
static void penc_pass_still(const penc_pass_group *g, penc_heads from, penc_heads to, size_t first,
                            size_t count) {
    const penc_head_pass *pass = g->pass;
    size_t bytes = penc_format_bytes(from.format);
    int plain = from.format == to.format && (g->factor == 1.0 || !pass->to_y);
    if (plain && from.data != to.data) {
        penc_copy_spread(bytes, g->heads, count, from.data + first * bytes, from.head, 1,
                         to.data + first * bytes, to.head, 1);
    } else if (!plain && !pass->to_y) {
        penc_run_stage(g, pass->widen, from, to, first, count);
    } else if (!plain) {
        penc_heads wide = pass->from_x ? penc_in_memory(pass, g->memory->first) : from;
        if (pass->from_x)
            penc_run_stage(g, pass->widen, from, wide, first, count);
        penc_run_stage(g, pass->narrow, wide, to, first, count);
    }
}

static penc_heads penc_turn_heads(const penc_pass_group *g, penc_heads from) {
    const penc_head_pass *pass = g->pass;
    const posenc_rotation *rotation = pass->rotation;
    size_t start = rotation->rotary_start, end = start + rotation->rotary_dim;
    int shuffles = !pass->from_x && rotation->pairing != pass->y_pairing;
    penc_heads to =
        pass->to_y ? g->y : penc_in_memory(pass, shuffles ? g->memory->second : g->memory->first);
    penc_rotate_job job = pass->job;
    job.heads = g->heads;
    job.x.head = from.head;
    job.y.head = to.head;
    job.scale = pass->to_y ? g->factor : 1.0;
    pass->turn(&job, from.data + start * penc_format_bytes(from.format), g->cos, g->sin,
               to.data + start * penc_format_bytes(to.format));
    penc_pass_still(g, from, to, 0, start);
    penc_pass_still(g, from, to, end, pass->head_dim - end);
    return to;
}

/* Heads that stay as they are; those that follow one another on both sides are one. */
static void penc_pass_copies(const penc_pass_group *g) {
    const penc_head_pass *pass = g->pass;
    ptrdiff_t dim = (ptrdiff_t)pass->head_dim;
    size_t bytes = penc_format_bytes(g->x.format);
    size_t joined = g->x.head == dim && g->y.head == dim ? g->heads : 1;
    size_t heads = g->heads / joined, channels = joined * pass->head_dim;
    if (pass->copy && pass->y.channel == 1) {
        penc_head_job job = {.heads = heads,
                             .channels = bytes * channels,
                             .x = g->x.data,
                             .y = g->y.data,
                             .x_head = g->x.head * (ptrdiff_t)bytes,
                             .y_head = g->y.head * (ptrdiff_t)bytes};
        pass->copy(&job);
    } else if (g->x.data != g->y.data) {
        penc_copy_spread(bytes, heads, channels, g->x.data, g->x.head, 1, g->y.data, g->y.head, 1);
    }
}

/* Neither norm nor rotation. */
static void penc_pass_plainly(const penc_pass_group *g) {
    const penc_head_pass *pass = g->pass;
    penc_heads real = penc_in_memory(pass, g->memory->first);
    if (g->x.format == g->y.format && g->factor == 1.0 && penc_is_float(g->x.format))
        penc_pass_copies(g);
    else if (pass->quantise)
        penc_run_stage(g, pass->quantise, g->x, g->y, 0, pass->head_dim);
    else
        penc_run_stage(g, pass->narrow, g->x.format == real.format ? g->x : penc_bring_in(g), g->y,
                       0, pass->head_dim);
}

static void penc_pass_at_once(const penc_pass_group *g) {
    const penc_head_pass *pass = g->pass;
    penc_head_job job = {
        .heads = g->heads,
        .channels = pass->head_dim,
        .x = g->x.data,
        .y = g->y.data,
        .x_head = g->x.head,
        .y_head = g->y.head,
        .epsilon = pass->norm->epsilon,
        .weight = pass->weight,
        .factor = g->factor,
        .cos = g->cos,
        .sin = g->sin,
        .stream = pass->stream,
        .tokens = g->tokens,
        .x_token = pass->x.token,
        .y_token = pass->y.token,
        .row_token = pass->rotation->row_stride,
    };
    pass->all_in_one(&job);
}

static void penc_pass_group_of_heads(const penc_pass_group *g) {
    const penc_head_pass *pass = g->pass;
    int turns = pass->rotation && pass->rotation->rotary_dim;
    if (pass->all_in_one) {
        penc_pass_at_once(g);
        return;
    }
    if (!turns && !pass->norm) {
        penc_pass_plainly(g);
        return;
    }
    penc_heads at = pass->from_x ? g->x : penc_bring_in(g);
    if (pass->quantise) {
        penc_run_stage(g, pass->quantise, at, g->y, 0, pass->head_dim);
        return;
    }
    if (turns)
        at = penc_turn_heads(g, at);
    if (turns && pass->to_y)
        return;
    if (pass->normalise_again)
        penc_run_stage(g, pass->normalise_again, at, at, 0, pass->head_dim);
    penc_run_stage(g, pass->narrow, at, g->y, 0, pass->head_dim);
}

/* --- One token ------------------------------------------------------------------------------------ */

/* Rows side by side, for kernels that want them so. */
static void penc_copy_row(const penc_head_pass *pass, const void *row, void *to) {
    ptrdiff_t stride = pass->rotation->pair_stride;
    for (size_t j = 0; j < pass->job.pairs; j++) {
        if (pass->is_double)
            ((double *)to)[j] = ((const double *)row)[(ptrdiff_t)j * stride];
        else
            ((float *)to)[j] = ((const float *)row)[(ptrdiff_t)j * stride];
    }
}

/* Heads first ... first + count - 1 of a token, gathered and scattered where their channels lie apart. */
static void penc_pass_some(const penc_head_pass *pass, const penc_head_token *token,
                           penc_pass_group *g, size_t first) {
    const penc_head_side *x = &pass->x, *y = &pass->y;
    size_t x_bytes = penc_format_bytes(x->format), y_bytes = penc_format_bytes(y->format);
    ptrdiff_t at = (ptrdiff_t)first, dim = (ptrdiff_t)pass->head_dim;
    char *from = (char *)(uintptr_t)token->x + at * x->head * (ptrdiff_t)x_bytes;
    char *to = (char *)token->y + at * y->head * (ptrdiff_t)y_bytes;
    int gathers = x->channel != 1, scatters = y->channel != 1;
    g->x = gathers ? (penc_heads){g->memory->gathered, x->format, dim}
                   : (penc_heads){from, x->format, x->head};
    g->y = scatters ? (penc_heads){g->memory->scattered, y->format, dim}
                    : (penc_heads){to, y->format, y->head};
    g->x_scales = token->x_scales ? (float *)(uintptr_t)token->x_scales + at * x->scale_head : NULL;
    g->y_scales = token->y_scales ? token->y_scales + at * y->scale_head : NULL;
    if (gathers)
        penc_copy_spread(x_bytes, g->heads, pass->head_dim, from, x->head, x->channel, g->x.data,
                         dim, 1);
    penc_pass_group_of_heads(g);
    if (scatters)
        penc_copy_spread(y_bytes, g->heads, pass->head_dim, g->y.data, dim, 1, to, y->head,
                         y->channel);
}

void penc_pass_heads(const penc_head_pass *pass, const penc_head_token *token) {
    penc_pass_memory memory;
    _Alignas(64) char rows[2][PENC_HEAD_BYTES / 2];
    penc_pass_group g;
    g.pass = pass;
    g.memory = &memory;
    g.tokens = 1;
    g.cos = token->cos;
    g.sin = token->sin;
    g.factor = token->factor;
    if (pass->rotation && pass->rotation->rotary_dim && pass->prepare) {
        penc_copy_row(pass, token->cos, rows[0]);
        penc_copy_row(pass, token->sin, rows[1]);
        g.cos = rows[0];
        g.sin = rows[1];
    }
    for (size_t head = 0; head < pass->heads; head += g.heads) {
        g.heads = pass->heads - head < pass->group ? pass->heads - head : pass->group;
        penc_pass_some(pass, token, &g, head);
    }
}

/* --- Runs of tokens --------------------------------------------------------------------------------- */

/* Whether heads turn whole, from memory to memory, by rows as they lie. */
static int penc_turns_directly(const penc_head_pass *pass) {
    return pass->rotation && pass->rotation->rotary_dim == pass->head_dim && !pass->prepare &&
           pass->x.channel == 1 && pass->y.channel == 1;
}

/* All heads of a run, for a kernel that goes from token to token itself. */
static penc_pass_group penc_group_of_run(const penc_head_pass *pass, const penc_head_token *token,
                                         size_t count) {
    return (penc_pass_group){.pass = pass,
                             .heads = pass->heads,
                             .tokens = count,
                             .x = {(char *)(uintptr_t)token->x, pass->x.format, pass->x.head},
                             .y = {token->y, pass->y.format, pass->y.head},
                             .y_scales = token->y_scales,
                             .cos = token->cos,
                             .sin = token->sin,
                             .factor = token->factor};
}

static void penc_turn_run(const penc_head_pass *pass, const penc_head_token *token, size_t count) {
    penc_rotate_job job = pass->job;
    job.tokens = count;
    job.heads = pass->heads;
    job.x.head = pass->x.head;
    job.y.head = pass->y.head;
    job.x.token = pass->x.token;
    job.y.token = pass->y.token;
    job.table.token = pass->rotation->row_stride;
    job.scale = token->factor;
    pass->turn(&job, token->x, token->cos, token->sin, token->y);
}

/* Whether a run of heads that turn goes to 8 bits by one call. Float32 is read faster from memory in bursts at the start of
 * tokens, of which each has a call of its own. */
static int penc_quantises_run(const penc_head_pass *pass) {
    return pass->quantise && pass->from_x && pass->x.format != PENC_FORMAT_F32;
}

/* Whether heads neither turn nor wait for memory of the call, and those of a run lie like those of one token. */
static int penc_runs_as_heads(const penc_head_pass *pass, double factor) {
    const penc_head_side *x = &pass->x, *y = &pass->y;
    ptrdiff_t heads = (ptrdiff_t)pass->heads;
    int turns = pass->rotation && pass->rotation->rotary_dim;
    int direct =
        x->format == PENC_FORMAT_F32 || pass->quantise || (x->format == y->format && factor == 1.0);
    return !turns && !pass->norm && direct && x->channel == 1 && y->channel == 1 &&
           x->token == heads * x->head && y->token == heads * y->head &&
           y->scale_token == heads * y->scale_head && penc_is_float(x->format);
}

static void penc_pass_as_heads(const penc_head_pass *pass, const penc_head_token *token,
                               size_t count) {
    penc_pass_group g = penc_group_of_run(pass, token, 1);
    g.heads *= count;
    if (pass->x.format == pass->y.format && token->factor == 1.0)
        penc_pass_copies(&g);
    else
        penc_run_stage(&g, pass->quantise ? pass->quantise : pass->narrow, g.x, g.y, 0,
                       pass->head_dim);
}

void penc_pass_run(const penc_head_pass *pass, const penc_head_token *token, size_t count) {
    const ptrdiff_t x_step = pass->x.token * (ptrdiff_t)penc_format_bytes(pass->x.format);
    const ptrdiff_t y_step = pass->y.token * (ptrdiff_t)penc_format_bytes(pass->y.format);
    penc_head_token at = *token;
    if (penc_turns_directly(pass) && pass->from_x && pass->to_y) {
        penc_turn_run(pass, token, count);
        return;
    }
    if (penc_turns_directly(pass) && (pass->all_in_one || penc_quantises_run(pass))) {
        const penc_pass_group g = penc_group_of_run(pass, token, count);
        if (pass->all_in_one)
            penc_pass_at_once(&g);
        else
            penc_run_stage(&g, pass->quantise, g.x, g.y, 0, pass->head_dim);
        return;
    }
    if (penc_runs_as_heads(pass, token->factor)) {
        penc_pass_as_heads(pass, token, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        penc_pass_heads(pass, &at);
        at.x = (const char *)at.x + x_step;
        at.y = (char *)at.y + y_step;
        at.x_scales = at.x_scales ? at.x_scales + pass->x.scale_token : NULL;
        at.y_scales = at.y_scales ? at.y_scales + pass->y.scale_token : NULL;
        if (at.cos) {
            ptrdiff_t row = pass->rotation->row_stride * (pass->is_double ? 8 : 4);
            at.cos = (const char *)at.cos + row;
            at.sin = (const char *)at.sin + row;
        }
    }
}
