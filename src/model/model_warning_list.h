/* Every warning: code, function, what to do about it. SPDX-License-Identifier: MIT */
#ifndef PENC_MODEL_WARNING_LIST_H
#define PENC_MODEL_WARNING_LIST_H

#include "model/model_object.h"

/* The code is "-" for "_" of the name. Codes never change their meaning; docs/models.md explains each. MODEL ones
 * are asked once, TYPE ones for each layer type that rotates (unknown ones included), ANY ones for each
 * type. */
#define PENC_WARNING_LIST(MODEL, TYPE, ANY)                                                        \
    /* the model type */                                                                           \
    MODEL(unknown_model_type,                                                                      \
          "Say the pairing yourself (--pairing), or add a row to data/models.tsv.")                \
    MODEL(model_type_missing, "Write model_type into the file.")                                   \
    TYPE(no_valid_spec, "Mend the keys that the message names.")                                   \
    /* keys that contradict one another */                                                         \
    MODEL(contradictory_type, "Keep one of the two; transformers takes rope_type.")                \
    MODEL(contradictory_blocks, "Keep one of the two; transformers takes rope_scaling.")           \
    MODEL(contradictory_spellings, "Keep one of the two; the first one named is used here.")       \
    TYPE(contradictory_theta, "Make the two equal; the one inside of the block is used.")          \
    TYPE(contradictory_fraction, "Make the two equal; engines differ in which one they take.")     \
    TYPE(contradictory_original_length, "Make the two equal; the one beside the block is used.")   \
    TYPE(head_dim_differs, "Read head_dim; do not divide hidden_size by the heads.")               \
    /* what is missing */                                                                          \
    TYPE(theta_missing, "Write rope_theta into the file.")                                         \
    TYPE(freq_base_missing, "Write rope.freq_base into the file.")                                 \
    TYPE(fraction_missing, "Write partial_rotary_factor into the file.")                           \
    TYPE(type_missing, "Write rope_type into the block; without it nothing is scaled.")            \
    TYPE(factor_missing, "Write the factor; without it nothing is scaled.")                        \
    TYPE(original_length_missing, "Write original_max_position_embeddings into the block.")        \
    TYPE(sections_missing, "Write mrope_section into the block.")                                  \
    /* what is written and not used */                                                             \
    MODEL(scaling_unread, "Remove the block, or use a model type that reads it.")                  \
    TYPE(partial_dropped, "Remove the fraction, or use a model type that reads it.")               \
    TYPE(sections_unread, "Remove mrope_section, or use a model type that has axes.")              \
    TYPE(unread_key, "Check the spelling: nobody reads this key.")                                 \
    /* numbers that look wrong */                                                                  \
    TYPE(factor_differs, "Keep the factor if it is meant: it is used as it stands.")               \
    TYPE(factor_below_1, "Use a factor of at least 1.")                                            \
    TYPE(original_length_not_below, "Check the two lengths: the second one is to be the longer.")  \
    TYPE(factor_list_length, "Give rotary_dim / 2 numbers in each list.")                          \
    TYPE(section_sum, "Make the sections add up to rotary_dim / 2.")                               \
    MODEL(layer_list_length, "Give one entry for each layer.")                                     \
    TYPE(number_in_string, "Write the number without quotes.")                                     \
    MODEL(wrong_kind, "Write an object, or a list of words, as transformers does.")                \
    MODEL(scaling_in_string, "Write the object without quotes.")                                   \
    TYPE(legacy_type_name, "Write the type by its present name.")                                  \
    TYPE(alpha_beside_factor, "Know that alpha counts and factor does not.")                       \
    /* known to be read differently */                                                             \
    TYPE(magnitude_twice, "Apply the magnitude in one place only.")                                \
    TYPE(softmax_factor, "Multiply the softmax scale by the softmax factor beside cos and sin.")   \
    TYPE(theta_inside_only,                                                                        \
         "Read rope_theta inside of rope_parameters; older readers look beside it.")               \
    TYPE(not_truncated, "Use an engine that reads truncate; llama.cpp rounds the ramp's ends.")    \
    TYPE(own_attention_factor, "Check the engine's attention factor; llama.cpp computes its own.") \
    TYPE(own_betas, "Check the engine's betas; llama.cpp takes 32 and 1 for most architectures.")  \
    TYPE(dynamic_base, "Cache keys before they are rotated, or fix the length.")                   \
    TYPE(two_frequency_lists, "Rotate the cached keys again when the length crosses the limit.")   \
    TYPE(shift_magnitude, "Shift cached keys without the attention factor.")                       \
    TYPE(frequency_factors,                                                                        \
         "Divide the frequencies by the tensor; check that the engine reads it.")                  \
    TYPE(conjugate_turn, "Turn by the negative angle, q and k alike.")                             \
    TYPE(llama_partial, "Do not convert it to GGUF as llama: llama.cpp refuses it.")               \
    ANY(bucket_distance, "Use an engine that reads relative_attention_max_distance.")              \
    ANY(grouped_permutation, "Check the k weights after conversion with posenc convert --check.")

#define PENC_WARNING_DECLARE(name, fix)                                                            \
    const char *penc_warn_##name(const posenc_model *model, const penc_layer_type *type);
PENC_WARNING_LIST(PENC_WARNING_DECLARE, PENC_WARNING_DECLARE, PENC_WARNING_DECLARE)
#undef PENC_WARNING_DECLARE

/* The message of each, or NULL where there is nothing to say; `type` is NULL for MODEL ones. */

#endif
