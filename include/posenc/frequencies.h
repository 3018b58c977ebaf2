/* posenc/frequencies.h - from what a model declares to the frequency of every pair.
 *
 * A posenc_spec is plain data: what a model's configuration says. posenc_frequencies_create checks
 * it, fills in what was left out (and says what), and resolves one frequency for each pair of
 * channels. The result is immutable: any number of threads may use it, it is made once and serves
 * every layer.
 *
 * Pair j of rotary_dim/2 turns by base^(-2j/rotary_dim) radians per position (its inverse
 * frequency): from 1 for the first pair down to base^(-(rotary_dim-2)/rotary_dim). Source: Su et
 * al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", arXiv:2104.09864,
 * section 3.2.2.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_FREQUENCIES_H
#define POSENC_FREQUENCIES_H

#include "posenc/axes.h"
#include "posenc/scaling.h"
#include "posenc/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which two channels rotate together. Both are valid, models need the one that they were trained
 * with.
 *   half:        (j, j + rotary_dim/2): GPT-NeoX and Hugging Face's Llama ("rotate_half").
 *   interleaved: (2j, 2j + 1): the RoPE paper, GPT-J, Meta's Llama. */
typedef enum posenc_pairing {
    POSENC_PAIRING_HALF = 0,
    POSENC_PAIRING_INTERLEAVED = 1
} posenc_pairing;

/* "half" or "interleaved"; NULL for other numbers. */
POSENC_API const char *posenc_pairing_name(posenc_pairing pairing);

/* Reads "half" ("neox", "rotate_half", "half_split", "split_half") and "interleaved" ("gptj",
 * "meta", "adjacent", "pairs"). Words that mean opposite things in different libraries
 * ("alternate", "consecutive", "neox_style") are refused like any unknown word; the message then
 * gives the index pairs. */
POSENC_API POSENC_CHECKED posenc_status posenc_pairing_parse(const char *text,
                                                             posenc_pairing *pairing,
                                                             posenc_error *error);

/* How angles are formed.
 *   exact:   the angle is the real number position * inverse frequency; what is stored is its cos
 *            and sin, correctly rounded (float64: within 1 ulp plus 2^-75).
 *   float32: as frameworks form it: the inverse frequency rounded to float32, times the position
 *            rounded to float32, rounded to float32; then cos and sin of that number, correctly
 *            rounded. Models were trained with this; it differs from exact by up to 0.007
 *            within the first 100,000 positions (base 10000, head_dim 128). */
typedef enum posenc_mode { POSENC_MODE_EXACT = 0, POSENC_MODE_FLOAT32 = 1 } posenc_mode;

/* "exact" or "float32"; NULL for other numbers. */
POSENC_API const char *posenc_mode_name(posenc_mode mode);

/* Widths above this are refused: nothing comes near, and it keeps all arithmetic far from overflow.
 */
#define POSENC_MAX_DIM ((size_t)1 << 24)

/* What a model declares. Start from POSENC_SPEC_INIT; a member that is 0 takes its default. */
typedef struct posenc_spec {
    size_t size;       /* sizeof(posenc_spec), set by POSENC_SPEC_INIT */
    size_t head_dim;   /* channels of a head: 2 ... POSENC_MAX_DIM; required */
    size_t rotary_dim; /* channels that rotate: even, 2 ... head_dim; 0: head_dim - rotary_start */
    size_t rotary_start;    /* the first of them: rotary_start + rotary_dim <= head_dim */
    double base;            /* rope_theta: 1e-6 ... 1e30; 0: 10000 */
    posenc_pairing pairing; /* 0: half */
    uint64_t
        max_positions; /* the model's maximum, for scalings that ask for it; bounds no position */
    const posenc_scaling *scaling; /* NULL: none; read during posenc_frequencies_create only */
    const posenc_axes *axes;       /* NULL: one axis; read during posenc_frequencies_create only */
} posenc_spec;

#define POSENC_SPEC_INIT                                                                           \
    { sizeof(posenc_spec), 0, 0, 0, 0.0, POSENC_PAIRING_HALF, 0, NULL, NULL }

/* Resolved frequencies (opaque, immutable). */
typedef struct posenc_frequencies posenc_frequencies;

/* Resolves `spec`. `seq_len` is the context length for scalings that depend on one (dynamic, longrope),
 * which require it; others ignore it. It chooses frequencies only and bounds no position; the
 * frequencies of each length are a value of their own, so every sequence of a batch may have its own.
 * `notes` may be NULL. The result in *frequencies is freed with
 * posenc_frequencies_destroy. Fails with NULL_POINTER, OUT_OF_RANGE (naming the member) or
 * OUT_OF_MEMORY; *frequencies is then NULL. */
POSENC_API POSENC_CHECKED posenc_status posenc_frequencies_create(const posenc_spec *spec,
                                                                  uint64_t seq_len,
                                                                  posenc_frequencies **frequencies,
                                                                  posenc_notes *notes,
                                                                  posenc_error *error);

/* The difference of two: rows of it turn a key that was rotated by `from` into one rotated by `to`, at the
 * same position, attention factors included (longrope and dynamic frequencies where the length crosses a
 * limit). Exact mode only; both must have the same pairs and axes. Freed like any other.
 *
 * One rotation by the difference is as exact as the key itself; rotating back and forth would round
 * twice. Fails with NULL_POINTER, OUT_OF_RANGE (different pairs or axes) or OUT_OF_MEMORY. */
POSENC_API POSENC_CHECKED posenc_status posenc_frequencies_change(const posenc_frequencies *from,
                                                                  const posenc_frequencies *to,
                                                                  posenc_frequencies **change,
                                                                  posenc_error *error);

/* NULL is allowed. */
POSENC_API void posenc_frequencies_destroy(posenc_frequencies *frequencies);

/* rotary_dim / 2. */
POSENC_API size_t posenc_frequencies_pairs(const posenc_frequencies *frequencies);

/* Radians per position of `pair` (< pairs): the correctly rounded float64 in mode exact, the
 * float32 factor in mode float32. NaN if `pair` is out of range. */
POSENC_API double posenc_frequencies_inv_freq(const posenc_frequencies *frequencies, size_t pair,
                                              posenc_mode mode);

/* The number that multiplies cos and sin: the correctly rounded float64 in mode exact, the float32 factor
 * in mode float32. 1 except for yarn and longrope. */
POSENC_API double posenc_frequencies_attention_factor(const posenc_frequencies *frequencies,
                                                      posenc_mode mode);

/* What multi-head latent attention models of the DeepSeek family multiply their softmax scale by beside
 * it: g(s, mscale_all_dim)^2 under yarn, 1 otherwise. For the caller's attention; no row contains it. */
POSENC_API double posenc_frequencies_softmax_factor(const posenc_frequencies *frequencies);

/* The axis whose position a pair follows; 0 if `pair` is out of range. */
POSENC_API size_t posenc_frequencies_axis(const posenc_frequencies *frequencies, size_t pair);

/* The spec with every default filled in; lives as long as `frequencies`. Its `scaling` and `axes` are copies whose
 * lists are NULL (they were the caller's). */
POSENC_API const posenc_spec *posenc_frequencies_spec(const posenc_frequencies *frequencies);

#ifdef __cplusplus
}
#endif
#endif
