/* posenc/model.h - what positional encoding a model has, from its own files. (libposenc-model)
 *
 * One call reads a config.json, a params.json, a GGUF file or a model's folder and gives the encodings of
 * the language model, one for each type of layers that has an encoding of its own, each with a spec that
 * posenc_frequencies_create takes as it is:
 *
 *   posenc_model *model;
 *   posenc_error error;
 *   if (posenc_model_open("models/Llama-3.2-1B", &model, &error)) ...
 *   for (size_t i = 0; i < posenc_model_layer_type_count(model); i++) {
 *       const posenc_layer_type *type = posenc_model_layer_type(model, i);
 *       if (type->kind == POSENC_ENCODING_ROPE) ... type->spec, type->layers ...
 *   }
 *   posenc_model_free(model);
 *
 * What the file leaves out comes from a table of rules, one row for each model_type and GGUF architecture
 * (data/models.tsv, documented in docs/models.md, compiled in). Every value says where it is from. A model
 * type that has no row is reported as unknown, with what the file says and what was assumed.
 *
 * A model is immutable once opened; any number of threads may read it. Everything that the functions here
 * return belongs to the model and lives until posenc_model_free.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_MODEL_H
#define POSENC_MODEL_H

#include "posenc/frequencies.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every kind of encoding: name, number, word. */
#define POSENC_ENCODING_LIST(X)                                                                    \
    X(UNKNOWN, 0, "unknown")       /* the model type is in no row of the table */                  \
    X(NONE, 1, "none")             /* these layers know no positions (NoPE, or no attention) */    \
    X(ROPE, 2, "rope")             /* q and k are rotated: spec */                                 \
    X(ALIBI, 3, "alibi")           /* a linear bias on scores: posenc/alibi.h */                   \
    X(SINUSOIDAL, 4, "sinusoidal") /* a fixed table is added: posenc/sinusoidal.h */               \
    X(LEARNED, 5, "learned")       /* a trained table is added */                                  \
    X(RELATIVE, 6, "relative")     /* relative positions (T5, DeBERTa, Shaw, Swin) */              \
    X(OTHER, 7, "other")

typedef enum posenc_encoding_kind {
#define POSENC_ENCODING_ENTRY(name, number, word) POSENC_ENCODING_##name = number,
    POSENC_ENCODING_LIST(POSENC_ENCODING_ENTRY)
#undef POSENC_ENCODING_ENTRY
} posenc_encoding_kind;

/* "rope"; NULL for other numbers. */
POSENC_API const char *posenc_encoding_name(posenc_encoding_kind kind);

/* Where a value is from: name, number, word. */
#define POSENC_SOURCE_LIST(X)                                                                      \
    X(FILE, 0, "file")           /* the file says it */                                            \
    X(IMPLIED, 1, "implied")     /* the model type implies it: the table of rules */               \
    X(DEFAULTED, 2, "defaulted") /* nobody says it: the default of the field */

typedef enum posenc_source {
#define POSENC_SOURCE_ENTRY(name, number, word) POSENC_SOURCE_##name = number,
    POSENC_SOURCE_LIST(POSENC_SOURCE_ENTRY)
#undef POSENC_SOURCE_ENTRY
} posenc_source;

/* "file", "implied", "defaulted"; NULL for other numbers. */
POSENC_API const char *posenc_source_name(posenc_source source);

/* One value and where it is from. */
typedef struct posenc_model_value {
    const char *name;     /* "head_dim", "base", "factor", "qk_norm" ... */
    posenc_number number; /* kind NONE where the value is a text */
    const char *text;     /* the value as the file writes it */
    posenc_source source;
    const char *place; /* the key ("text_config.rope_theta"), or what it was computed from */
} posenc_model_value;

/* What looks wrong or is known to be read differently by others. */
typedef struct posenc_model_warning {
    const char *code;       /* stable: docs/models.md lists them */
    const char *message;    /* a sentence with the values at hand */
    const char *fix;        /* what to do about it */
    const char *layer_type; /* the type that it is about; NULL: all */
} posenc_model_warning;

/* The layers that share one encoding. */
typedef struct posenc_layer_type {
    const char *name; /* "all", or the file's word such as "sliding_attention" */
    posenc_encoding_kind kind;
    posenc_spec
        spec; /* rope: ready for use, with scaling and axes; head_dim 0 where the file does not
                               say enough or contradicts the encoding (invalid tells how). unknown: what could
                               be derived */
    const char *invalid; /* why there is no spec; NULL: there is one, or none belongs to the kind */
    int softmax_factor;  /* 1: the model multiplies its softmax scale by
                               posenc_frequencies_softmax_factor */
    int output_half;     /* 1: pairs are read interleaved and written as halves (DeepSeek-V3) */
    int conjugate;       /* 1: turns by the negative angle (nanochat) */
    int norm_plus_one; /* 1: the weights of its q and k norms are stored minus 1 (Gemma 3): posenc_norm's
                               weight_plus_one. 0 for GGUF files, which have the 1 in them */
    size_t heads, kv_heads; /* 0: not known */
    double max_bias;        /* alibi: as in posenc/alibi.h */
    uint64_t window;        /* sliding window in positions; 0: none known */
    const uint32_t *layers; /* their numbers, from 0, ascending */
    size_t layer_count;
    const posenc_model_value *values;
    size_t value_count;
} posenc_layer_type;

/* What follows from the spec of a layer type that rotates. Start from POSENC_LAYER_FACTS_INIT. */
typedef struct posenc_layer_facts {
    size_t size;  /* sizeof(posenc_layer_facts) */
    size_t pairs; /* rotary_dim / 2 */
    uint64_t
        trained_positions; /* before an extension: the scaling's original length, else the spec's
                                   max_positions; 0: not known */
    /* Positions that a full turn takes, of the fastest and the slowest pair that turns; 0: none turns. */
    double shortest_wavelength, longest_wavelength;
    size_t pairs_still; /* whose frequency is 0 */
    size_t
        pairs_below_one_turn; /* that turn, but not once within trained_positions; 0 if that is not known */
    /* The first position whose cos or sin moves by more than half a unit of float16 (bfloat16) numbers just
     * below 1, times the attention factor, if the angle is formed in float32 (POSENC_MODE_FLOAT32) and not
     * exactly; every axis is at that position. -1: none below POSENC_FACTS_LAST_POSITION. */
    int64_t float32_visible_in_f16, float32_visible_in_bf16;
} posenc_layer_facts;

enum { POSENC_FACTS_LAST_POSITION = 1 << 18 };

#define POSENC_LAYER_FACTS_INIT                                                                    \
    { sizeof(posenc_layer_facts), 0, 0, 0.0, 0.0, 0, 0, -1, -1 }

/* The facts of a type, with frequencies that were made of its spec, for whatever length. Takes some
 * milliseconds to a second: rows are compared position by position. Fails with NULL_POINTER, OUT_OF_RANGE (a
 * struct without its size) or OUT_OF_MEMORY; *facts is then as it was. */
POSENC_API POSENC_CHECKED posenc_status posenc_layer_facts_of(const posenc_layer_type *type,
                                                              const posenc_frequencies *frequencies,
                                                              posenc_layer_facts *facts,
                                                              posenc_error *error);

typedef struct posenc_model posenc_model;

/* Reads the model at `path`: a config.json (or any JSON file of that kind), a params.json of Meta or Mistral,
 * a .gguf file, or a folder that holds one of them (in that order). Weights are not read. Fails with IO,
 * FORMAT (no model file, broken JSON or GGUF; `error` gives the byte where there is one), OUT_OF_RANGE or
 * OUT_OF_MEMORY; *model is then NULL. Freed with posenc_model_free. */
POSENC_API POSENC_CHECKED posenc_status posenc_model_open(const char *path, posenc_model **model,
                                                          posenc_error *error);

/* The same from the text of a config.json. `model_type` (may be NULL) replaces the one of the text. */
POSENC_API POSENC_CHECKED posenc_status posenc_model_parse(const char *json, size_t length,
                                                           const char *model_type,
                                                           posenc_model **model,
                                                           posenc_error *error);

/* NULL is allowed. */
POSENC_API void posenc_model_free(posenc_model *model);

/* The model_type of the language model or the GGUF's architecture; "" if the file gives none. */
POSENC_API const char *posenc_model_type(const posenc_model *model);

/* The name of the row of rules that was used; NULL: none fits, the model is unknown. */
POSENC_API const char *posenc_model_rule(const posenc_model *model);

/* A sentence about the model's positions beyond what the fields say; NULL: nothing to add. */
POSENC_API const char *posenc_model_remark(const posenc_model *model);

/* "config" or "gguf". */
POSENC_API const char *posenc_model_format(const posenc_model *model);

/* Number of layers; 0: not known. */
POSENC_API size_t posenc_model_layer_count(const posenc_model *model);

POSENC_API size_t posenc_model_layer_type_count(const posenc_model *model);

/* NULL if `index` is out of range. */
POSENC_API const posenc_layer_type *posenc_model_layer_type(const posenc_model *model,
                                                            size_t index);

/* The layer type of that name, or the one that holds the layers which the file calls so; NULL: none. */
POSENC_API const posenc_layer_type *posenc_model_layer_type_named(const posenc_model *model,
                                                                  const char *name);

POSENC_API size_t posenc_model_warning_count(const posenc_model *model);

/* NULL if `index` is out of range. */
POSENC_API const posenc_model_warning *posenc_model_warning_at(const posenc_model *model,
                                                               size_t index);

/* A part of a composite model beside the language model, such as the tower that sees images. */
typedef struct posenc_model_part {
    const char *name; /* the key that holds it, with its path: "vision_config" */
    const posenc_model
        *model;         /* its own encodings, without warnings and parts; NULL: it was not read */
    const char *unread; /* why not; NULL: it was */
} posenc_model_part;

/* Parts of a config.json, in its order, at most 16; GGUF files have none. */
POSENC_API size_t posenc_model_part_count(const posenc_model *model);

/* NULL if `index` is out of range. */
POSENC_API const posenc_model_part *posenc_model_part_at(const posenc_model *model, size_t index);

/* The part of that name, whole ("thinker_config.vision_config") or its last key ("vision_config") where only one ends
 * so; NULL: none. */
POSENC_API const posenc_model_part *posenc_model_part_named(const posenc_model *model,
                                                            const char *name);

#ifdef __cplusplus
}
#endif
#endif
