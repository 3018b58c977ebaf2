/* What happens to heads before and after they are rotated: widened, normalised, narrowed. Heads are rows of
 * contiguous channels. SPDX-License-Identifier: MIT */
#ifndef PENC_HEAD_KERNELS_H
#define PENC_HEAD_KERNELS_H

#include "kernels/rotate_kernels.h"
#include "posenc/dtype.h"

#include <stdint.h>

/* How the channels of a head are stored: a posenc_dtype, or 8 bits, which a scale belongs to. */
typedef enum penc_format {
    PENC_FORMAT_F32 = POSENC_F32,
    PENC_FORMAT_F64 = POSENC_F64,
    PENC_FORMAT_F16 = POSENC_F16,
    PENC_FORMAT_BF16 = POSENC_BF16,
    PENC_FORMAT_INT8 = 4,
    PENC_FORMAT_FP8 = 5,
    PENC_FORMATS = 6
} penc_format;

static inline size_t penc_format_bytes(penc_format format) {
    return format == PENC_FORMAT_F64   ? 8
           : format == PENC_FORMAT_F32 ? 4
           : format < PENC_FORMAT_INT8 ? 2
                                       : 1;
}

/* A row whose largest magnitude is below this counts as zeros, and its scale is 0. */
#define PENC_ZERO_ROW 0x1p-120f

/* Head h is x + h * x_head, in elements, and becomes y + h * y_head. A member is used where the kernel says. */
typedef struct penc_head_job {
    size_t heads, channels;
    const void *x;
    void *y;
    ptrdiff_t x_head, y_head;
    double epsilon;     /* norm */
    const void *weight; /* norm: `channels` numbers of the computing type for every head, or NULL */
    double factor;      /* narrow: multiplies every number first, rounded; not if it is 1 */
    /* int8 and fp8: the scale of head h is scales[h * scale_head]; NULL (fp8 only): all have tensor_scale */
    float *scales;
    ptrdiff_t scale_head;
    float tensor_scale;
    const float *cos, *sin; /* turn, and quantise after a turn: the first token's row */
    int stream; /* turn: stores bypass the caches; y and its strides are multiples of 64 bytes */
    /* turn, and quantise after a turn: so many tokens of `heads` heads, 1 or more, and how far apart they, their rows and
     * scales are */
    size_t tokens;
    ptrdiff_t x_token, y_token, row_token, scale_token;
} penc_head_job;

typedef void penc_head_kernel(const penc_head_job *job);

/* By the format of memory; the other side is the computing type: float64 for PENC_FORMAT_F64 in widen and norm,
 * else float32. y may be x where both are of one type.
 *   widen:  memory to computing type; 8 bits times their scale
 *   norm:   the same, then every head divided by its root mean square: in lanes i = 0 ... 15, squares of channels
 *           i, i + 16, i + 32 ... are added in that order, then lane i + 8 to lane i (i < 8), then i + 4, i + 2, i + 1;
 *           r = 1 / sqrt(sum / channels + epsilon), each operation rounded; x * r, then times weight. Not of 8 bits
 *   narrow: computing type to memory. int8 and fp8 with `scales` set the scale of each head: amax / 127 (448), and
 *           round x * (127 / amax); 0 and zeros below PENC_ZERO_ROW; NaN and zeros if a number is not finite.
 *           fp8 without: rounds x * (1 / tensor_scale). Vectors: in the set below
 *   stream_copy: channels and strides are bytes, multiples of 64, as is y: copied past the caches. Vectors only; NULL
 *           in the reference */
typedef struct penc_head_kernels {
    penc_head_kernel *widen[PENC_FORMATS], *norm[PENC_FORMATS], *narrow[PENC_FORMATS];
    penc_head_kernel *stream_copy;
} penc_head_kernels;

/* The way from head to head, those of one token after those of the one before. */
typedef struct penc_head_walk {
    size_t heads, head;
    ptrdiff_t step, over; /* to the next head, and to the first one of the next token */
} penc_head_walk;

static inline penc_head_walk penc_head_walk_of(size_t heads, ptrdiff_t head, ptrdiff_t token) {
    return (penc_head_walk){heads, 0, head, token - (ptrdiff_t)(heads - 1) * head};
}

/* How far on the next head is. */
static inline ptrdiff_t penc_walk_on(penc_head_walk *walk) {
    walk->head = walk->head + 1 < walk->heads ? walk->head + 1 : 0;
    return walk->head ? walk->step : walk->over;
}

/* The most channels of heads of which a vector kernel keeps numbers or tables; how many heads ahead of the one that it
 * finishes it finds out about a whole head; how many heads' numbers it keeps for that, and factors, of which four are
 * made at once. */
enum { PENC_MOST_TURNED = 512, PENC_HEADS_AHEAD = 6, PENC_RING_HEADS = 8, PENC_RING_FACTORS = 16 };

/* Floats: room for two tables of PENC_MOST_TURNED, anywhere in a page of memory. */
enum { PENC_PAGE = 4096, PENC_TABLE_ROOM = PENC_PAGE / (int)sizeof(float) + 2 * PENC_MOST_TURNED };

/* Two tables that are read while heads are written, one PENC_MOST_TURNED behind the other, in `room`, which is aligned to
 * 64 bytes. A read waits for an earlier write whose address has the same last twelve bits: interleaved float32 was measured
 * a fifth slower where the tables begin as y does in a page, and not slower where they begin a line further on. */
static inline float *penc_place_tables(float *room, const char *y) {
    enum { LINE = 64 };
    uintptr_t wanted = ((uintptr_t)y / LINE + 1) * LINE;
    return room + (wanted - (uintptr_t)room) % PENC_PAGE / sizeof(float);
}

/* What has been found out about the next heads: rows of four lanes, from which four heads' factors are made. */
typedef struct penc_head_ring {
    _Alignas(16) uint32_t largest[16];
    _Alignas(16) float factors[PENC_RING_FACTORS], scales[PENC_RING_FACTORS];
} penc_head_ring;

/* Norm and rotation of whole heads within a dtype, times factor: what norm and a rotation kernel do one after the
 * other. Vectors only; NULL for float64. `lanes` divides the pairs (twice for halves of bfloat16), and there are at
 * most PENC_MOST_TURNED channels. y may be x. The weights of bfloat16 are those of channels 0, 2, 4 ..., then those of
 * 1, 3, 5 ...; others lie as the channels do. */
typedef struct penc_head_turn_set {
    size_t lanes;
    penc_head_kernel *turn[PENC_DTYPES][2];
} penc_head_turn_set;

/* From a dtype to int8 (0) and fp8 (1), as `narrow` from float32: plain, and turned before. fp8 by a scale of the
 * tensor: plain float32 only. At most PENC_MOST_TURNED channels, but for plain float32; `lanes` divides the pairs of
 * those that turn. Vectors only; NULL for float64. */
typedef struct penc_head_quantise_set {
    size_t lanes;
    penc_head_kernel *plain[PENC_DTYPES][2], *turned[PENC_DTYPES][2][2];
} penc_head_quantise_set;

/* The reference: float32, and `narrow` from float64 (to dtypes only; the other kernels are in the first set). */
extern const penc_head_kernels penc_head_scalar_set;
extern penc_head_kernel *const penc_head_narrow_double[PENC_FORMATS];

#if PENC_X86
#define PENC_HEAD_INSTANCES(X)                                                                     \
    X(avx2, PENC_CPU_AVX2)                                                                         \
    X(avx512, PENC_CPU_AVX512)                                                                     \
    X(avx512bf16, PENC_CPU_AVX512BF16)
#elif PENC_NEON
#define PENC_HEAD_INSTANCES(X) X(neon, PENC_CPU_NEON)
#else
#define PENC_HEAD_INSTANCES(X)
#endif

#define PENC_HEAD_DECLARE(suffix, level)                                                           \
    extern const penc_head_kernels penc_head_##suffix##_set;                                       \
    extern const penc_head_turn_set penc_head_##suffix##_turn_set;                                 \
    extern const penc_head_quantise_set penc_head_##suffix##_quantise_set;
PENC_HEAD_INSTANCES(PENC_HEAD_DECLARE)
#undef PENC_HEAD_DECLARE

/* The best of the CPU level in use: vector kernels where there are some, else the reference. */
penc_head_kernel *penc_head_widen_of(penc_format format);
penc_head_kernel *penc_head_norm_of(penc_format format);
/* `is_double`: from float64. */
penc_head_kernel *penc_head_narrow_of(penc_format format, int is_double);
penc_head_kernel *penc_head_stream_copy_of(void);
/* NULL where there is none for heads of so many channels. */
penc_head_kernel *penc_head_turn_of(posenc_dtype dtype, penc_channel_order order, size_t channels);
/* From a dtype to an 8-bit format; the second with the rotation before. */
penc_head_kernel *penc_head_quantise_of(posenc_dtype from, penc_format to, size_t channels);
penc_head_kernel *penc_head_turned_quantise_of(posenc_dtype from, penc_format to,
                                               penc_channel_order order, size_t channels);

#endif
