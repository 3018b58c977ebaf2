/* Every cause that is tried: name, how many variants it has, for how many causes it counts, sentence. One that counts
 * for 2 says much, or is a real number that fits much: it is tried when single ones have failed, and never beside
 * another. What each does to a hypothesis is the function penc_cause_<name> in causes.c; docs/diagnosis.md says how
 * they are tried. SPDX-License-Identifier: MIT */
#ifndef PENC_CAUSE_LIST_H
#define PENC_CAUSE_LIST_H

#include "diagnosis/evidence.h"

#define PENC_CAUSE_LIST(X)                                                                          \
    X(other_mode, 1, 1,                                                                             \
      "angles were formed in the other mode: float32 in the place of exact, or exact in the place " \
      "of float32")                                                                                 \
    X(other_pairing, 1, 1, "channels are paired the other way (half, interleaved)")                 \
    X(pair_mix_up, 2, 1,                                                                            \
      "cos and sin are laid out for one pairing and channels are paired by the other: no rotation") \
    X(other_output_pairing, 1, 1, "pairs are written in the other order than they were read in")    \
    X(negated_angle, 1, 1, "angles have the opposite sign: rotated backwards, or sin transposed")   \
    X(cos_sin_swapped, 1, 1, "cos and sin are exchanged")                                           \
    X(not_rotated, 1, 1, "nothing was rotated: the array is as it was")                             \
    X(angle_doubled, 1, 1, "angles are doubled: rotated twice, or exponents halved")                \
    X(angle_halved, 1, 1, "angles are halved")                                                      \
    X(base, 24, 1, "another base (rope_theta)")                                                     \
    X(exponent_over_head_dim, 1, 1, "exponents divide by head_dim in the place of rotary_dim")      \
    X(whole_head_rotated, 1, 1, "the whole head is rotated: partial rotary dropped")                \
    X(other_slice, 2, 1, "another slice of the head is rotated: the first channels, or the last")   \
    X(scaling_not_applied, 2, 1,                                                                    \
      "the context extension (scaling) is not applied to the frequencies")                          \
    X(scaling_linear_instead, 1, 1,                                                                 \
      "linear scaling by the same factor in the place of the one meant")                            \
    X(yarn_truncate, 1, 1,                                                                          \
      "the ends of YaRN's ramp are rounded where they should not be, or not "                       \
      "where they should (truncate)")                                                               \
    X(longrope_other_list, 1, 1,                                                                    \
      "LongRoPE's other list: short in the place of long, or the reverse")                          \
    X(magnitude_missing, 1, 1, "the attention factor is missing on cos and sin")                    \
    X(magnitude_doubled, 1, 1, "the attention factor is applied twice")                             \
    X(other_magnitude, 1, 1, "cos and sin have another magnitude")                                  \
    X(constant_position, 2, 1, "every token has the same position")                                 \
    X(position_restarts, 1, 1, "positions count from 0: the cache's length is missing")             \
    X(position_from_index, 1, 1,                                                                    \
      "positions are the tokens' indices: restarts or padding are ignored")                         \
    X(position_of_head, 1, 1,                                                                       \
      "heads and tokens are exchanged: the head's index picks the position")                        \
    X(positions_of_first, 1, 1, "every sequence of the batch has the positions of the first one")   \
    X(position_shifted, 8, 1, "positions are shifted")                                              \
    X(axes_reversed, 1, 1, "position axes are in the opposite order")                               \
    X(positions_bf16, 1, 1, "positions were held in bfloat16")                                      \
    X(positions_f16, 1, 1, "positions were held in float16")                                        \
    X(frequencies_bf16, 1, 1, "inverse frequencies were held in bfloat16")                          \
    X(frequencies_f16, 1, 1, "inverse frequencies were held in float16")                            \
    X(angles_bf16, 1, 2, "angles were formed in bfloat16 (autocast)")                               \
    X(tables_bf16, 1, 1, "cos and sin were held in bfloat16")                                       \
    X(tables_f16, 1, 1, "cos and sin were held in float16")                                         \
    X(recurrence_drift, 3, 1,                                                                       \
      "angles come from a running product in float32 (ggml), which drifts")                         \
    X(batch_left_out, 2, 1, "only the first sequence of the batch is rotated")                      \
    X(heads_left_out, 1, 1, "only the first head is rotated")                                       \
    X(shift_measured, 1, 1, "positions are shifted by a number that was measured")                  \
    X(angles_scaled, 10, 2, "angles (or positions) are multiplied by a number that was measured")   \
    X(base_measured, 7, 2, "another base (rope_theta), which was measured")

/* What causes are tried upon. */
typedef struct penc_trial {
    const posenc_observation *observation;
    const penc_evidence *evidence; /* for causes whose number is measured, and what that needs */
    penc_frequency_cache *cache;
    penc_model *scratch;
    double measured_magnitude, meant_magnitude; /* of cos and sin */
} penc_trial;

/* Puts variant `variant` of the cause into a hypothesis that may hold another cause already; *value gets its
 * number, if it has one. Returns 0 if it does not apply: nothing would change, or the other has taken its place. */
typedef int penc_cause_alter(penc_hypothesis *h, const penc_trial *trial, size_t variant,
                             double *value);

typedef struct penc_cause {
    const char *name, *sentence;
    size_t variants, weight;
    penc_cause_alter *alter;
} penc_cause;

enum {
#define PENC_CAUSE_NUMBER(name, variants, weight, sentence) PENC_CAUSE_##name,
    PENC_CAUSE_LIST(PENC_CAUSE_NUMBER)
#undef PENC_CAUSE_NUMBER
        PENC_CAUSE_COUNT
};

extern const penc_cause penc_causes[PENC_CAUSE_COUNT];

#endif
