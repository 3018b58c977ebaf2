/* posenc/sinusoidal.h - sinusoidal position tables, in every convention that is in use.
 *
 * Row of position p, width d, K frequencies:
 *     w_k = scale * base^(-k / (d/2 - shift)),   angle = (start + p) * w_k
 * and the row holds sin and cos of the K angles in one of three layouts. It is added to embeddings
 * (or fed to a network), unlike RoPE.
 * Source: Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, section 3.5 (interleaved,
 * shift 0). The same numbers serve as diffusion timestep embeddings (Ho et al., arXiv:2006.11239):
 * positions are timesteps then, fractional ones included.
 *
 * Which model uses what:
 *   interleaved, shift 0   the paper, XLM, DistilBERT, Conformer (absolute)
 *   sin_cos, shift 1       tensor2tensor, fairseq (M2M-100, NLLB; padding row 1), Marian, Whisper
 *   sin_cos, shift 0       Hugging Face's Marian and Pegasus, Transformer-XL, CTRL
 *   cos_sin, shift 1       MusicGen
 *   cos_sin, shift 0       Stable Diffusion, SD3, DiT, Flux timesteps (Flux: scale 1000)
 *   sin_cos, shift 1       DDPM timesteps
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_SINUSOIDAL_H
#define POSENC_SINUSOIDAL_H

#include "posenc/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum posenc_sinusoidal_layout {
    POSENC_SINUSOIDAL_INTERLEAVED = 0, /* s0 c0 s1 c1 ... */
    POSENC_SINUSOIDAL_SIN_COS = 1,     /* s0 s1 ... c0 c1 ... */
    POSENC_SINUSOIDAL_COS_SIN = 2      /* c0 c1 ... s0 s1 ... */
} posenc_sinusoidal_layout;

/* What an odd width d does. There is no default: conventions differ, so one must be named.
 *   truncate: K = (d+1)/2 sines, the last one without its cos; d/2 stays fractional in the exponent
 *             (textbook code made to fit).
 *   zero:     K = (d-1)/2, and (d-1)/2 in the place of d/2; the last column is 0 (tensor2tensor,
 *             fairseq).
 *   ceil:     Hugging Face's Marian: the sine block is one longer than the cosine block. The same
 *             numbers as truncate: two names because people look for either. */
typedef enum posenc_odd_rule {
    POSENC_ODD_REFUSE = 0,
    POSENC_ODD_TRUNCATE = 1,
    POSENC_ODD_ZERO = 2,
    POSENC_ODD_CEIL = 3
} posenc_odd_rule;

/* A convention. Start from POSENC_SINUSOIDAL_INIT; a member that is 0 takes its default. */
typedef struct posenc_sinusoidal_spec {
    size_t size;                     /* sizeof(posenc_sinusoidal_spec) */
    size_t dim;                      /* width d of a row, 1 ... POSENC_MAX_DIM; required */
    posenc_sinusoidal_layout layout; /* 0: interleaved */
    int shift;               /* 0, or 1: exponents run to exactly -1 (d/2 - 1 in the denominator);
                                then d must be at least 4 */
    double base;             /* 1e-6 ... 1e30; 0: 10000 */
    double scale;            /* multiplies every frequency: 1e-30 ... 1e6 or negative alike; 0: 1 */
    double start;            /* -2^40 ... 2^40, added to every position in float64 */
    posenc_odd_rule odd;     /* needed if dim is odd */
    int has_padding;         /* 1: rows whose position equals padding_position are all 0 */
    double padding_position; /* compared with the position as given, before start is added */
} posenc_sinusoidal_spec;

#define POSENC_SINUSOIDAL_INIT                                                                     \
    {                                                                                              \
        sizeof(posenc_sinusoidal_spec), 0, POSENC_SINUSOIDAL_INTERLEAVED, 0, 0.0, 0.0, 0.0,        \
            POSENC_ODD_REFUSE, 0, 0.0                                                              \
    }

/* Writes the rows of `count` positions (any real numbers from -2^40 to 2^40, fractional and negative
 * ones included) to `table`, row i at element i * row_stride (0: dim). float32, float16 and bfloat16
 * values are correctly rounded, float64 ones within 1 ulp plus 2^-75, for angles from 2^-60 to 2^48
 * radians (and 0): beyond, at scales that no model uses, the last place may be off.
 * `positions` may be NULL: then 0, 1, 2, ... `table` must not overlap `positions`. All is checked
 * before anything is written. Fails with NULL_POINTER, OUT_OF_RANGE, OVERFLOW or OVERLAP. Computes the
 * frequencies anew in each call (about 10 microseconds per frequency): make the whole table in one
 * call, or one call per thread. Allocates nothing. */
POSENC_API POSENC_CHECKED posenc_status posenc_sinusoidal(const posenc_sinusoidal_spec *spec,
                                                          const double *positions, size_t count,
                                                          posenc_dtype dtype, ptrdiff_t row_stride,
                                                          void *table, posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
