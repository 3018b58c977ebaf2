/* posenc/compare.h - do two encodings agree, from which position on do they not, and why. (libposenc-model)
 *
 * A side is a spec, or what somebody's own implementation dumped into a file: cos and sin tables, or inverse
 * frequencies. Sides of model files come with the model layer: it gives specs for posenc_side_of_spec.
 *
 * Thread-safety: a side is immutable; any number of threads may compare with it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_COMPARE_H
#define POSENC_COMPARE_H

#include "posenc/diagnosis.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct posenc_side posenc_side;

/* A spec, as for posenc_frequencies_create. What spec->scaling and spec->axes point to must outlive the side.
 * Fails as posenc_frequencies_create does; *side is then NULL. */
POSENC_API POSENC_CHECKED posenc_status posenc_side_of_spec(const posenc_spec *spec,
                                                            uint64_t seq_len, posenc_mode mode,
                                                            posenc_side **side,
                                                            posenc_error *error);

/* A spec as JSON: {"head_dim": 128, "base": 500000, "pairing": "half", "scaling": {...}}. Keys: head_dim (required),
 * rotary_dim, rotary_start, base, pairing, max_positions, seq_len, mode ("exact", "float32"), scaling
 * (transformers' rope_parameters, posenc/rope_parameters.h), axes ({"count", "order", "exponents", "sections"} in the
 * words of posenc/axes.h). Any other key is refused. */
POSENC_API POSENC_CHECKED posenc_status posenc_side_of_json(const char *json, size_t length,
                                                            posenc_side **side,
                                                            posenc_error *error);

/* A file: .json (as above); .npy, .npz (numpy.savez) or .safetensors with
 *   cos and sin     arrays [positions][width] whose names contain "cos" and "sin": one number a pair, or two in the
 *                   layouts full_half and full_interleaved of posenc/rows.h, which is found out
 *   both in one     [positions][width], half of each row cos and half sin, or (cos, sin) pairs; also
 *                   [positions][pairs][2]
 *   inv_freq        [pairs], radians per position
 * Axes of size 1 are ignored. float64, float32, float16, bfloat16. */
POSENC_API POSENC_CHECKED posenc_status posenc_side_open(const char *path, posenc_side **side,
                                                         posenc_error *error);

/* NULL is allowed. */
POSENC_API void posenc_side_free(posenc_side *side);

/* Rows of a dumped table; 0 for sides that have any position. */
POSENC_API size_t posenc_side_rows(const posenc_side *side);

/* Position axes: of a spec its own, 1 without; of dumps, which say nothing of axes, 1. 0 for NULL. */
POSENC_API size_t posenc_side_axes(const posenc_side *side);

typedef enum posenc_agreement {
    POSENC_AGREEMENT_EQUAL = 0,
    POSENC_AGREEMENT_EQUIVALENT =
        1, /* the same attention scores, if q and k both are treated alike: see `equivalence` */
    POSENC_AGREEMENT_DIFFERENT = 2
} posenc_agreement;

/* "equal", "equivalent" or "different"; NULL for other numbers. */
POSENC_API const char *posenc_agreement_name(posenc_agreement agreement);

/* What an equivalence is up to. */
typedef enum posenc_equivalence {
    POSENC_EQUIVALENCE_NONE = 0,
    POSENC_EQUIVALENCE_PAIRING = 1, /* channels are in another order: half against interleaved */
    POSENC_EQUIVALENCE_CONJUGATE =
        2, /* every angle has the opposite sign (or is taken from a quarter turn) */
    POSENC_EQUIVALENCE_SHIFT = 3 /* every position is shifted by the same number */
} posenc_equivalence;

/* "none", "pairing", "conjugate" or "shift"; NULL for other numbers. */
POSENC_API const char *posenc_equivalence_name(posenc_equivalence equivalence);

enum { POSENC_MAX_DECADES = 14 };

/* A place where cos or sin differ. */
typedef struct posenc_difference {
    int exists;
    double error;     /* of cos or sin, whichever is larger */
    int64_t position; /* on the first axis */
    size_t pair;
} posenc_difference;

typedef struct posenc_comparison {
    posenc_agreement agreement;
    posenc_equivalence equivalence;
    size_t pairs_a, pairs_b; /* if they differ, nothing else was compared */
    int pairing_differs;     /* of specs, or of a full-width table that tells it */
    int slices_differ;       /* head_dim or rotary_start */
    int axes_differ; /* pairs follow other axes: with one list of positions, as text has, different */
    int halves_differ; /* a full-width table whose two numbers of a pair differ: no rotation */
    posenc_difference halves; /* the first place where they do, of the rows that were compared */
    size_t positions;         /* compared */
    posenc_difference largest;
    /* The first of the positions at hand at which cos or sin differ by more than a rounding of numbers near 1: 2^-8,
     * 2^-11 and 2^-23. */
    posenc_difference beyond_bf16, beyond_f16, beyond_f32;
    /* The largest difference at position 0, then at |position| 1 ... 9, 10 ... 99, ... */
    posenc_difference decades[POSENC_MAX_DECADES];
    /* Why, if a side has a spec and one was found. */
    size_t explanation_count;
    posenc_explanation explanations[POSENC_MAX_EXPLANATIONS];
} posenc_comparison;

/* Compares `count` tokens. Token i has position positions[i] on every axis if axis_stride is 0, as text has; else, as
 * images have, positions[a * axis_stride + i] on axis a, for as many axes as the side with the most of them. Of a
 * dumped table row i is taken as that of token i, so that `count` must not exceed its rows. Fails with NULL_POINTER,
 * OUT_OF_RANGE or OUT_OF_MEMORY. */
POSENC_API POSENC_CHECKED posenc_status posenc_compare(const posenc_side *a, const posenc_side *b,
                                                       const int64_t *positions,
                                                       ptrdiff_t axis_stride, size_t count,
                                                       posenc_comparison *comparison,
                                                       posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
