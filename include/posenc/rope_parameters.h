/* posenc/rope_parameters.h - a model's rope_parameters (or rope_scaling) block, as transformers writes it.
 * (libposenc-model)
 *
 * The block is JSON text: {"rope_type": "yarn", "factor": 4.0, ...}. Numbers may be written as integers,
 * null is the same as a missing key (but "factor": null under yarn means max_positions /
 * original_max_position_embeddings), NaN and Infinity are read as Python writes them and refused where a
 * number is needed; a rope_theta or attention_factor of 0 is refused.
 *
 * Keys: rope_type (or type; "su" is longrope, "mrope" is default; both given and different is an error),
 * rope_theta, factor, original_max_position_embeddings, attention_factor, attention_coefficient, beta_fast,
 * beta_slow, truncate, mscale, mscale_all_dim, low_freq_factor, high_freq_factor, short_factor,
 * long_factor, partial_rotary_factor, alpha, mrope_section, mrope_interleaved. Any other key is noted as
 * unknown.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_ROPE_PARAMETERS_H
#define POSENC_ROPE_PARAMETERS_H

#include "posenc/frequencies.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Owns the lists that a spec's scaling points to; immutable once parsed. */
typedef struct posenc_rope_parameters posenc_rope_parameters;

/* Reads `length` bytes of JSON; freed with posenc_rope_parameters_free. `notes` (may be NULL) gets what is
 * odd about it; their `argument` may point into the result. Fails with FORMAT (no JSON object, a key of the
 * wrong type, contradictory keys, a key that stands twice, no UTF-8; `place` is the byte where the text is no JSON),
 * OUT_OF_RANGE (also above 4 MiB), UNSUPPORTED (nested above 64, values that take above 32 MiB) or OUT_OF_MEMORY. */
POSENC_API POSENC_CHECKED posenc_status
posenc_rope_parameters_parse(const char *json, size_t length, posenc_rope_parameters **parameters,
                             posenc_notes *notes, posenc_error *error);

/* NULL is allowed. */
POSENC_API void posenc_rope_parameters_free(posenc_rope_parameters *parameters);

/* Puts the block into a spec that holds the rest of what a model declares (head_dim; max_positions; base and
 * rotary_dim where they are known otherwise): sets spec->scaling and spec->axes to structs inside
 * `parameters`, which must outlive posenc_frequencies_create; spec->base from rope_theta, spec->rotary_dim
 * from partial_rotary_factor. Fails with OUT_OF_RANGE if base or rotary_dim are set already and differ.
 * `notes` are appended to: set count to 0 before the first use. */
POSENC_API POSENC_CHECKED posenc_status
posenc_rope_parameters_apply(posenc_rope_parameters *parameters, posenc_spec *spec,
                             posenc_notes *notes, posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
