/* The scalar kernels of every pair of dtypes: the reference whose bytes every other kernel must give; and the
 * choice of a kernel. SPDX-License-Identifier: MIT */
#include "kernels/rotate_kernels.h"

#include "base/number_access.h"

static inline float penc_load_float(const void *array, posenc_dtype dtype, ptrdiff_t index) {
    return (float)penc_load_number(array, dtype, index);
}

/* One body for both computing types. Both channels of a pair are read before either is written, so that y may
 * be x. The dtypes are constants where it is inlined. */
#define PENC_ROTATE_SCALAR(name, real, load)                                                       \
    static inline void name(const penc_rotate_job *job, const void *x, const void *cos_rows,       \
                            const void *sin_rows, void *y, posenc_dtype from, posenc_dtype to) {   \
        for (size_t i = 0; i < job->tokens * job->heads; i++) {                                    \
            ptrdiff_t token = (ptrdiff_t)(i / job->heads), head = (ptrdiff_t)(i % job->heads);     \
            ptrdiff_t row = penc_table_row(job, (size_t)token);                                    \
            const real *cos = (const real *)cos_rows + row, *sin = (const real *)sin_rows + row;   \
            ptrdiff_t x_at = token * job->x.token + head * job->x.head;                            \
            ptrdiff_t y_at = token * job->y.token + head * job->y.head;                            \
            for (ptrdiff_t j = 0; j < (ptrdiff_t)job->pairs; j++) {                                \
                ptrdiff_t first = j * job->table.pair, second = first + job->table.second;         \
                real a = load(x, from, x_at + j * job->x.step);                                    \
                real b = load(x, from, x_at + j * job->x.step + job->x.gap);                       \
                real u = job->transpose ? a * cos[first] + b * sin[second]                         \
                                        : a * cos[first] - b * sin[first];                         \
                real v = job->transpose ? b * cos[second] - a * sin[first]                         \
                                        : b * cos[second] + a * sin[second];                       \
                if (job->scale != 1.0) {                                                           \
                    u *= (real)job->scale;                                                         \
                    v *= (real)job->scale;                                                         \
                }                                                                                  \
                penc_store_number(y, to, y_at + j * job->y.step, (double)u);                       \
                penc_store_number(y, to, y_at + j * job->y.step + job->y.gap, (double)v);          \
            }                                                                                      \
        }                                                                                          \
    }
PENC_ROTATE_SCALAR(penc_rotate_in_double, double, penc_load_number)
PENC_ROTATE_SCALAR(penc_rotate_in_float, float, penc_load_float)

/* Every pair of dtypes: from, to, and what is computed in. */
#define PENC_ROTATE_SCALAR_LIST(X)                                                                 \
    X(F32, F32, float)                                                                             \
    X(F32, F64, float)                                                                             \
    X(F32, F16, float)                                                                             \
    X(F32, BF16, float)                                                                            \
    X(F64, F32, double)                                                                            \
    X(F64, F64, double)                                                                            \
    X(F64, F16, double)                                                                            \
    X(F64, BF16, double)                                                                           \
    X(F16, F32, float)                                                                             \
    X(F16, F64, float)                                                                             \
    X(F16, F16, float)                                                                             \
    X(F16, BF16, float)                                                                            \
    X(BF16, F32, float)                                                                            \
    X(BF16, F64, float)                                                                            \
    X(BF16, F16, float)                                                                            \
    X(BF16, BF16, float)

#define PENC_DEFINE(from, to, real)                                                                \
    static void penc_rotate_scalar_##from##_##to(const penc_rotate_job *job, const void *x,        \
                                                 const void *cos, const void *sin, void *y) {      \
        penc_rotate_in_##real(job, x, cos, sin, y, POSENC_##from, POSENC_##to);                    \
    }
PENC_ROTATE_SCALAR_LIST(PENC_DEFINE)
#undef PENC_DEFINE

penc_rotate_kernel *penc_rotate_scalar_of(posenc_dtype from, posenc_dtype to) {
    static penc_rotate_kernel *const kernels[PENC_DTYPES][PENC_DTYPES] = {
#define PENC_ENTRY(from, to, real) [POSENC_##from][POSENC_##to] = penc_rotate_scalar_##from##_##to,
        PENC_ROTATE_SCALAR_LIST(PENC_ENTRY)
#undef PENC_ENTRY
    };
    return kernels[from][to];
}

/* The kernel of the best instance that the CPU has. */
#define PENC_CHOOSE_BEST(best, member)                                                             \
    penc_rotate_kernel *best = NULL;                                                               \
    const penc_cpu_level level = penc_cpu_level_now();                                             \
    (void)level;                                                                                   \
    PENC_ROTATE_INSTANCES(member)

penc_rotate_kernel *penc_rotate_vector_of(posenc_dtype from, penc_channel_order from_order,
                                          posenc_dtype to, penc_channel_order to_order) {
#define PENC_MEMBER(suffix, needed)                                                                \
    if (level >= (needed))                                                                         \
        best = penc_rotate_##suffix##_set[from][to][from_order][to_order];
    PENC_CHOOSE_BEST(best, PENC_MEMBER)
#undef PENC_MEMBER
    return best;
}

penc_rotate_kernel *penc_rotate_flat_of(posenc_dtype dtype) {
#define PENC_MEMBER(suffix, needed)                                                                \
    if (level >= (needed))                                                                         \
        best = penc_rotate_##suffix##_flat_set[dtype];
    PENC_CHOOSE_BEST(best, PENC_MEMBER)
#undef PENC_MEMBER
    return best;
}
#undef PENC_CHOOSE_BEST
