/* The scalar kernels of heads: the reference whose bytes the vector kernels must give; and the choice of a kernel.
 * SPDX-License-Identifier: MIT */
#include "kernels/head_kernels.h"

#include "base/fp8.h"
#include "base/number_access.h"

#include <math.h>

/* --- Widening and norm ---------------------------------------------------------------------------- */

static float penc_head_float(const void *array, penc_format format, ptrdiff_t index) {
    if (format == PENC_FORMAT_INT8)
        return (float)((const int8_t *)array)[index];
    if (format == PENC_FORMAT_FP8)
        return penc_float_of_fp8(((const uint8_t *)array)[index]);
    return (float)penc_load_number(array, (posenc_dtype)format, index);
}

static double penc_head_double(const void *array, penc_format format, ptrdiff_t index) {
    return penc_load_number(array, (posenc_dtype)format, index);
}

static float penc_head_scale(const penc_head_job *job, size_t head) {
    return job->scales ? job->scales[(ptrdiff_t)head * job->scale_head] : job->tensor_scale;
}

static void penc_widen_scalar(const penc_head_job *job, penc_format format) {
    for (size_t head = 0; head < job->heads; head++) {
        ptrdiff_t x_at = (ptrdiff_t)head * job->x_head, y_at = (ptrdiff_t)head * job->y_head;
        for (ptrdiff_t i = 0; i < (ptrdiff_t)job->channels; i++) {
            if (format == PENC_FORMAT_F64) {
                ((double *)job->y)[y_at + i] = ((const double *)job->x)[x_at + i];
                continue;
            }
            float value = penc_head_float(job->x, format, x_at + i);
            if (format >= PENC_FORMAT_INT8)
                value *= penc_head_scale(job, head);
            ((float *)job->y)[y_at + i] = value;
        }
    }
}

#define PENC_NORM_SCALAR(name, real, load, root)                                                   \
    static void name(const penc_head_job *job, penc_format format) {                               \
        const real *weight = job->weight;                                                          \
        for (size_t head = 0; head < job->heads; head++) {                                         \
            ptrdiff_t x_at = (ptrdiff_t)head * job->x_head;                                        \
            real *y = (real *)job->y + (ptrdiff_t)head * job->y_head, lane[16] = {0};              \
            for (size_t i = 0; i < job->channels; i++) {                                           \
                real value = load(job->x, format, x_at + (ptrdiff_t)i);                            \
                real square = value * value;                                                       \
                lane[i % 16] += square;                                                            \
            }                                                                                      \
            for (int half = 8; half; half /= 2) {                                                  \
                for (int i = 0; i < half; i++)                                                     \
                    lane[i] += lane[i + half];                                                     \
            }                                                                                      \
            real r = 1 / root(lane[0] / (real)job->channels + (real)job->epsilon);                 \
            for (size_t i = 0; i < job->channels; i++) {                                           \
                real value = load(job->x, format, x_at + (ptrdiff_t)i) * r;                        \
                y[i] = weight ? value * weight[i] : value;                                         \
            }                                                                                      \
        }                                                                                          \
    }
PENC_NORM_SCALAR(penc_norm_float, float, penc_head_float, sqrtf)
PENC_NORM_SCALAR(penc_norm_double, double, penc_head_double, sqrt)

/* --- Narrowing ------------------------------------------------------------------------------------ */

static float penc_head_number(const penc_head_job *job, size_t head, size_t i) {
    float value = ((const float *)job->x)[(ptrdiff_t)head * job->x_head + (ptrdiff_t)i];
    return job->factor == 1.0 ? value : value * (float)job->factor;
}

/* To a dtype, rounded once more. */
#define PENC_NARROW_SCALAR(name, real)                                                             \
    static void name(const penc_head_job *job, penc_format format) {                               \
        for (size_t head = 0; head < job->heads; head++) {                                         \
            const real *x = (const real *)job->x + (ptrdiff_t)head * job->x_head;                  \
            ptrdiff_t y_at = (ptrdiff_t)head * job->y_head;                                        \
            for (size_t i = 0; i < job->channels; i++) {                                           \
                real value = job->factor == 1.0 ? x[i] : x[i] * (real)job->factor;                 \
                penc_store_number(job->y, (posenc_dtype)format, y_at + (ptrdiff_t)i,               \
                                  (double)value);                                                  \
            }                                                                                      \
        }                                                                                          \
    }
PENC_NARROW_SCALAR(penc_narrow_float, float)
PENC_NARROW_SCALAR(penc_narrow_double, double)

/* What numbers are multiplied by, and the head's scale; 0 for a head that becomes zeros. */
static float penc_head_inverse(const penc_head_job *job, size_t head, float most, float *scale) {
    uint32_t largest = 0;
    if (!job->scales)
        return 1.0f / (*scale = job->tensor_scale);
    for (size_t i = 0; i < job->channels; i++) {
        uint32_t magnitude = penc_bits_of_float(penc_head_number(job, head, i)) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    float amax = penc_float_of_bits(largest);
    *scale = largest >= 0x7f800000u ? penc_float_of_bits(0x7fc00000u)
             : amax < PENC_ZERO_ROW ? 0.0f
                                    : amax / most;
    return *scale > 0.0f ? most / amax : 0.0f;
}

static void penc_quantise_scalar(const penc_head_job *job, penc_format format) {
    float most = format == PENC_FORMAT_INT8 ? 127.0f : PENC_FP8_MOST;
    for (size_t head = 0; head < job->heads; head++) {
        uint8_t *y = (uint8_t *)job->y + (ptrdiff_t)head * job->y_head;
        float scale, inverse = penc_head_inverse(job, head, most, &scale);
        for (size_t i = 0; i < job->channels; i++) {
            float value = penc_head_number(job, head, i) * inverse;
            if (inverse == 0.0f)
                y[i] = 0;
            else if (format == PENC_FORMAT_INT8)
                y[i] = (uint8_t)penc_nearest_integer(value);
            else
                y[i] = penc_fp8_of_float(value);
        }
        if (job->scales)
            job->scales[(ptrdiff_t)head * job->scale_head] = scale;
    }
}

/* --- Sets ----------------------------------------------------------------------------------------- */

/* Every format: what normalises and what narrows it. */
#define PENC_HEAD_SCALAR_LIST(X)                                                                   \
    X(F32, penc_norm_float, penc_narrow_float)                                                     \
    X(F64, penc_norm_double, penc_narrow_float)                                                    \
    X(F16, penc_norm_float, penc_narrow_float)                                                     \
    X(BF16, penc_norm_float, penc_narrow_float)                                                    \
    X(INT8, penc_norm_float, penc_quantise_scalar)                                                 \
    X(FP8, penc_norm_float, penc_quantise_scalar)

#define PENC_DEFINE(name, norm_of, narrow_to)                                                      \
    static void penc_head_widen_##name(const penc_head_job *job) {                                 \
        penc_widen_scalar(job, PENC_FORMAT_##name);                                                \
    }                                                                                              \
    static void penc_head_norm_##name(const penc_head_job *job) {                                  \
        norm_of(job, PENC_FORMAT_##name);                                                          \
    }                                                                                              \
    static void penc_head_narrow_##name(const penc_head_job *job) {                                \
        narrow_to(job, PENC_FORMAT_##name);                                                        \
    }
PENC_HEAD_SCALAR_LIST(PENC_DEFINE)
#undef PENC_DEFINE

#define PENC_WIDEN(name, norm_of, narrow_to)  [PENC_FORMAT_##name] = penc_head_widen_##name,
#define PENC_NORM(name, norm_of, narrow_to)   [PENC_FORMAT_##name] = penc_head_norm_##name,
#define PENC_NARROW(name, norm_of, narrow_to) [PENC_FORMAT_##name] = penc_head_narrow_##name,
const penc_head_kernels penc_head_scalar_set = {{PENC_HEAD_SCALAR_LIST(PENC_WIDEN)},
                                                {PENC_HEAD_SCALAR_LIST(PENC_NORM)},
                                                {PENC_HEAD_SCALAR_LIST(PENC_NARROW)},
                                                NULL};
#undef PENC_WIDEN
#undef PENC_NORM
#undef PENC_NARROW
#undef PENC_HEAD_SCALAR_LIST

#define PENC_DEFINE(name)                                                                          \
    static void penc_head_narrow_double_##name(const penc_head_job *job) {                         \
        penc_narrow_double(job, PENC_FORMAT_##name);                                               \
    }
PENC_DEFINE(F32)
PENC_DEFINE(F64)
PENC_DEFINE(F16)
PENC_DEFINE(BF16)
#undef PENC_DEFINE
penc_head_kernel *const penc_head_narrow_double[PENC_FORMATS] = {
    [PENC_FORMAT_F32] = penc_head_narrow_double_F32,
    [PENC_FORMAT_F64] = penc_head_narrow_double_F64,
    [PENC_FORMAT_F16] = penc_head_narrow_double_F16,
    [PENC_FORMAT_BF16] = penc_head_narrow_double_BF16};

/* The kernel of the best instance that the CPU has and that has one. */
#define PENC_BETTER(suffix, needed, kernel)                                                        \
    if (level >= (needed) && penc_head_##suffix##_set.kernel[format])                              \
        best = penc_head_##suffix##_set.kernel[format];
#define PENC_BETTER_widen(suffix, needed)  PENC_BETTER(suffix, needed, widen)
#define PENC_BETTER_norm(suffix, needed)   PENC_BETTER(suffix, needed, norm)
#define PENC_BETTER_narrow(suffix, needed) PENC_BETTER(suffix, needed, narrow)
#define PENC_CHOOSE_BEST(kernel)                                                                   \
    penc_head_kernel *best = penc_head_scalar_set.kernel[format];                                  \
    const penc_cpu_level level = penc_cpu_level_now();                                             \
    (void)level;                                                                                   \
    PENC_HEAD_INSTANCES(PENC_BETTER_##kernel)

penc_head_kernel *penc_head_widen_of(penc_format format) {
    PENC_CHOOSE_BEST(widen)
    return best;
}

penc_head_kernel *penc_head_norm_of(penc_format format) {
    PENC_CHOOSE_BEST(norm)
    return best;
}

penc_head_kernel *penc_head_narrow_of(penc_format format, int is_double) {
    if (is_double)
        return penc_head_narrow_double[format];
    penc_head_kernel *quantise =
        format < PENC_FORMAT_INT8 ? NULL : penc_head_quantise_of(POSENC_F32, format, 1);
    if (quantise)
        return quantise;
    PENC_CHOOSE_BEST(narrow)
    return best;
}

penc_head_kernel *penc_head_stream_copy_of(void) {
    penc_head_kernel *best = NULL;
    const penc_cpu_level level = penc_cpu_level_now();
    (void)level;
#define PENC_MEMBER(suffix, needed)                                                                \
    if (level >= (needed))                                                                         \
        best = penc_head_##suffix##_set.stream_copy;
    PENC_HEAD_INSTANCES(PENC_MEMBER)
#undef PENC_MEMBER
    return best;
}

/* The best instance whose vectors the pairs fill: narrower ones may where the best cannot. */
penc_head_kernel *penc_head_turn_of(posenc_dtype dtype, penc_channel_order order, size_t channels) {
    penc_head_kernel *best = NULL;
    const penc_cpu_level level = penc_cpu_level_now();
    const size_t unit = dtype == POSENC_BF16 && order == PENC_HALVES ? 4 : 2;
    (void)level;
    if (channels > PENC_MOST_TURNED)
        return NULL;
#define PENC_MEMBER(suffix, needed)                                                                \
    if (level >= (needed) && channels % (unit * penc_head_##suffix##_turn_set.lanes) == 0)         \
        best = penc_head_##suffix##_turn_set.turn[dtype][order];
    PENC_HEAD_INSTANCES(PENC_MEMBER)
#undef PENC_MEMBER
    (void)unit;
    return best;
}

penc_head_kernel *penc_head_quantise_of(posenc_dtype from, penc_format to, size_t channels) {
    penc_head_kernel *best = NULL;
    const penc_cpu_level level = penc_cpu_level_now();
    (void)level;
    if (channels > PENC_MOST_TURNED && from != POSENC_F32)
        return NULL;
#define PENC_MEMBER(suffix, needed)                                                                \
    if (level >= (needed))                                                                         \
        best = penc_head_##suffix##_quantise_set.plain[from][to - PENC_FORMAT_INT8];
    PENC_HEAD_INSTANCES(PENC_MEMBER)
#undef PENC_MEMBER
    return best;
}

penc_head_kernel *penc_head_turned_quantise_of(posenc_dtype from, penc_format to,
                                               penc_channel_order order, size_t channels) {
    penc_head_kernel *best = NULL;
    const penc_cpu_level level = penc_cpu_level_now();
    (void)level;
    if (channels > PENC_MOST_TURNED)
        return NULL;
#define PENC_MEMBER(suffix, needed)                                                                \
    if (level >= (needed) && channels % (2 * penc_head_##suffix##_quantise_set.lanes) == 0)        \
        best = penc_head_##suffix##_quantise_set.turned[from][to - PENC_FORMAT_INT8][order];
    PENC_HEAD_INSTANCES(PENC_MEMBER)
#undef PENC_MEMBER
    return best;
}
#undef PENC_BETTER
#undef PENC_BETTER_widen
#undef PENC_BETTER_norm
#undef PENC_BETTER_narrow
#undef PENC_CHOOSE_BEST
