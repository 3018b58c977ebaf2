/* posenc/scaling.h - how a model's context is extended: changes of RoPE's frequencies.
 *
 * A posenc_scaling hangs on a posenc_spec. Its members carry the names of transformers'
 * rope_parameters where those exist. With f_j = base^(-2j/rotary_dim) the unscaled inverse frequency
 * of pair j, s = factor, L = max_positions of the spec, L0 = original_max_positions, n = seq_len:
 *
 *   default       f_j
 *   linear        f_j / s                                              (position interpolation)
 *   ntk           base * s^(d/(d-2)) in place of base, fixed           (NTK-aware)
 *   dynamic       base * ratio^(d/(d-2)); the ratio by `dynamic` below (dynamic NTK)
 *   yarn          f_j / s * r_j + f_j * (1 - r_j): r_j runs from 0 at the pair that turns beta_fast times
 *                 within L0 to 1 at the pair that turns beta_slow times
 *   longrope      f_j / e_j, with e = long_factors if n > L0, else short_factors
 *   llama3        f_j / s for pairs that turn less than low_freq_factor times within L0, f_j above
 *                 high_freq_factor, a blend between
 *   proportional  base^(-2j/head_dim) / s for the first int(partial * head_dim / 2) pairs and 0 for
 *                 the rest of the head, which pairs over its whole width (Gemma 4)
 *   custom        the caller's own inverse frequencies
 *
 * yarn and longrope multiply cos and sin by an attention factor (so q . k by its square): rows contain
 * it. Multi-head latent attention models of the DeepSeek family multiply the softmax scale by a second,
 * separate factor; it is reported (posenc_frequencies_softmax_factor), never folded in.
 *
 * Sources: linear arXiv:2306.15595; yarn arXiv:2309.00071 (ntk, dynamic too); longrope
 * arXiv:2402.13753; llama3: Meta's Llama 3.1 release; proportional: Gemma 4. The keys, defaults and
 * orders of float32 operations are those of Hugging Face transformers 5.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_SCALING_H
#define POSENC_SCALING_H

#include "posenc/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every scaling: name, number, the word of rope_type. */
#define POSENC_SCALING_LIST(X)                                                                     \
    X(DEFAULT, 0, "default")                                                                       \
    X(LINEAR, 1, "linear")                                                                         \
    X(NTK, 2, "ntk")                                                                               \
    X(DYNAMIC, 3, "dynamic")                                                                       \
    X(YARN, 4, "yarn")                                                                             \
    X(LONGROPE, 5, "longrope")                                                                     \
    X(LLAMA3, 6, "llama3")                                                                         \
    X(PROPORTIONAL, 7, "proportional")                                                             \
    X(CUSTOM, 8, "custom")

typedef enum posenc_scaling_type {
#define POSENC_SCALING_ENTRY(name, number, word) POSENC_SCALING_##name = number,
    POSENC_SCALING_LIST(POSENC_SCALING_ENTRY)
#undef POSENC_SCALING_ENTRY
} posenc_scaling_type;

/* The word of rope_type; NULL for other numbers. */
POSENC_API const char *posenc_scaling_name(posenc_scaling_type type);

/* What grows the base of dynamic NTK.
 *   factor: (s * max(n, L) / L) - (s - 1)                               transformers
 *   alpha:  alpha, whatever n is                                        HunYuan
 *   qwen:   max(1, 2^(ceil(log2(n / L0) + 1)) - 1), n = seq_len         Qwen 1 */
typedef enum posenc_dynamic_form {
    POSENC_DYNAMIC_FACTOR = 0,
    POSENC_DYNAMIC_ALPHA = 1,
    POSENC_DYNAMIC_QWEN = 2
} posenc_dynamic_form;

/* A scaling's parameters. Start from POSENC_SCALING_INIT and set what the type needs; a member that is
 * 0 is not given: required ones are refused then, others take the default named here. */
typedef struct posenc_scaling {
    size_t size; /* sizeof(posenc_scaling) */
    posenc_scaling_type type;
    double factor;                   /* >= 1. Required: linear, ntk, dynamic (factor), yarn, llama3;
                                        proportional: 1; longrope: L / L0 */
    int shrinks;                     /* 1: a factor below 1 (from 1e-6 on) is accepted */
    uint64_t original_max_positions; /* L0. Required: yarn, longrope, llama3, dynamic (qwen) */
    posenc_dynamic_form dynamic;
    double alpha;                  /* dynamic (alpha): above 0; required there */
    double beta_fast, beta_slow;   /* yarn: 32 and 1; beta_fast >= beta_slow */
    int no_truncate;               /* yarn: 1 keeps the ends of the ramp fractional (gpt-oss) */
    double attention_factor;       /* yarn, longrope: taken as it is; 0: computed */
    double attention_coefficient;  /* yarn: the 0.1 of 0.1 ln s + 1; 0: exactly 1/10 */
    double mscale, mscale_all_dim; /* yarn: if both are given the attention factor is
                                      g(s, mscale) / g(s, mscale_all_dim), g(s, m) = 0.1 m ln s + 1 */
    double low_freq_factor, high_freq_factor;   /* llama3: required, low < high */
    const double *short_factors, *long_factors; /* longrope: rotary_dim / 2 each; required */
    size_t factor_count;                        /* how many each of them has */
    double partial; /* proportional: part of the head that rotates, above 0, up to 1; 0: 1 */
    const void
        *inv_freq; /* custom: radians per position, finite; required. May be freed afterwards */
    posenc_dtype inv_freq_dtype; /* custom: float32 (0) or float64 */
    size_t inv_freq_count;       /* custom: must be rotary_dim / 2 */
    int inv_freq_is_period; /* custom: 1 if the numbers are positions per radian (MLX's "freqs") */
} posenc_scaling;

#define POSENC_SCALING_INIT                                                                        \
    { .size = sizeof(posenc_scaling) }

#ifdef __cplusplus
}
#endif
#endif
