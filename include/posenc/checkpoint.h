/* posenc/checkpoint.h - which pairing trained weights use, from the numbers alone. (libposenc-model)
 *
 * "half" and "interleaved" checkpoints hold the same rows of W_q and W_k in different order, and nothing in the
 * file need say which. What tells them apart is training: the loss does not change if the two rows of a pair are
 * turned together in q and, the same way, in k. So the two members of a pair are exchangeable, and what training
 * does to one it may as well do to the other, while neighbours of the wrong pairing turn at different
 * frequencies. docs/detection.md derives the statistic, its thresholds and what was found on real models.
 *
 * Only row powers (sums of squares) enter, so that quantised, converted or permuted weights do as well. Names,
 * metadata and configurations do not enter.
 *
 * Thread-safety: one posenc_pair_powers may be judged by several threads at once, but not while another adds.
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_CHECKPOINT_H
#define POSENC_CHECKPOINT_H

#include "posenc/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The answer. UNDETERMINED is an honest one: untrained weights, models without rotary encoding (ALiBi, learned
 * positions) and too little data give it. */
typedef enum posenc_detected {
    POSENC_DETECTED_UNDETERMINED = 0,
    POSENC_DETECTED_HALF = 1,
    POSENC_DETECTED_INTERLEAVED = 2
} posenc_detected;

/* "undetermined", "half" or "interleaved"; NULL for other numbers. */
POSENC_API const char *posenc_detected_name(posenc_detected verdict);

/* What a verdict rests on. */
typedef struct posenc_pair_evidence {
    posenc_detected verdict;
    double
        statistic; /* of the two deviations below the one of larger magnitude: positive for half */
    /* Log-likelihood of half minus that of interleaved, in nats, and how many deviations it lies from what
     * the same channels give in random order (standard deviations; quarters of the largest where tails are heavy); once with the members' equality of power profile over the
     * frequencies, and once ([1]) with the profile taken out. */
    double ratio[2], deviation[2];
    /* Exact test, in nats: exp of minus this bounds the probability that the other pairing, were it the true
     * one, looks so much like this one. */
    double exact_half, exact_interleaved;
} posenc_pair_evidence;

/* The judgement of one layer or of several together. */
typedef struct posenc_judgement {
    posenc_pair_evidence both, q, k; /* q and k together; q alone, whatever k is; k alone */
    int q_k_differ; /* 1: q fits best with one pairing and k with the other; `both` is undetermined */
    size_t layers;      /* that were judged */
    size_t heads;       /* k heads among them; those without any power do not count */
    size_t exact_signs; /* independent signs of the exact test */
} posenc_judgement;

/* Row powers of the layers of a model, to be judged. */
typedef struct posenc_pair_powers posenc_pair_powers;

#define POSENC_ALL_LAYERS ((size_t)-1)

/* Starts a list of layers of `rotary_dim` rotary channels a head: a multiple of 4 from 4 to 65536 (with other
 * numbers the exact test has nothing to compare). On failure *powers is NULL. Free it with
 * posenc_pair_powers_free. Fails with NULL_POINTER, OUT_OF_RANGE or OUT_OF_MEMORY. */
POSENC_API POSENC_CHECKED posenc_status posenc_pair_powers_create(size_t rotary_dim,
                                                                  posenc_pair_powers **powers,
                                                                  posenc_error *error);

/* Adds a layer: q[heads][rotary_dim] and k[kv_heads][rotary_dim], each the sum of squares of a row's weights plus
 * the square of its bias, times the square of its norm gain where q and k are normalised. Only rotary rows, in
 * the order of the checkpoint. `heads` is a multiple of `kv_heads`, both at least 1. `tied_heads` is 1 where
 * norm gains are shared by the heads of the layer, else 0. Heads whose q or k rows are all 0 are left out.
 * Fails with OUT_OF_RANGE (also for a power that is negative, infinite or NaN: `place` is its index) or
 * OUT_OF_MEMORY; the list is then as it was. */
POSENC_API POSENC_CHECKED posenc_status posenc_pair_powers_add(posenc_pair_powers *powers,
                                                               size_t heads, size_t kv_heads,
                                                               const double *q, const double *k,
                                                               int tied_heads, posenc_error *error);

/* Judges layer number `layer` in the order of adding, or POSENC_ALL_LAYERS together. The same layers give the same
 * bits on every machine. Fails with NULL_POINTER, OUT_OF_RANGE or OUT_OF_MEMORY. */
POSENC_API POSENC_CHECKED posenc_status posenc_pair_powers_judge(const posenc_pair_powers *powers,
                                                                 size_t layer,
                                                                 posenc_judgement *judgement,
                                                                 posenc_error *error);

/* The number in its model of layer `index` in the order of adding: from a checkpoint the number in the tensors'
 * names, else the index itself. 0 beyond the list. */
POSENC_API size_t posenc_pair_powers_layer(const posenc_pair_powers *powers, size_t index);

/* How many layers there are; 0 for NULL. */
POSENC_API size_t posenc_pair_powers_count(const posenc_pair_powers *powers);

/* Frees the list; NULL is allowed. */
POSENC_API void posenc_pair_powers_free(posenc_pair_powers *powers);

/* ---- From a checkpoint ---- */

/* The attention of a model: what cannot be read off the tensors' shapes. */
typedef struct posenc_attention_shape {
    size_t size;
    size_t heads, kv_heads; /* kv_heads 0: as heads */
    size_t head_dim;
    size_t rotary_dim;   /* 0: all of head_dim after rotary_start */
    size_t rotary_start; /* first rotary channel of a head, in q; in k too, except with MLA */
    int gain_offset;     /* 1: norm gains are stored minus 1, as in Gemma's safetensors */
} posenc_attention_shape;

#define POSENC_ATTENTION_SHAPE_INIT                                                                \
    { sizeof(posenc_attention_shape), 0, 0, 0, 0, 0, 0 }

/* What a checkpoint says of itself; it does not enter any judgement. */
typedef struct posenc_checkpoint_facts {
    char format[16]; /* "GGUF", "safetensors", "llama2.c" */
    char model_type
        [64]; /* the configuration's model_type or the GGUF's architecture, cut; "" if it says none */
    posenc_detected
        implied; /* the pairing that programs assume by that name (posenc/model.h); UNDETERMINED: none */
} posenc_checkpoint_facts;

/* Reads the shape of a checkpoint's attention: from its GGUF keys or the config.json beside its weights, as
 * posenc_model_open understands them; from a llama2.c header; else from the keys heads, kv_heads, head_dim and
 * rotary_dim of a safetensors file's metadata. `path` is as in posenc_pair_powers_read. What nothing tells stays 0, so
 * that the caller can fill it in. Of several layer types with rotary encoding the first one counts. `facts` may be
 * NULL. Fails with IO, FORMAT, OUT_OF_RANGE or OUT_OF_MEMORY. */
POSENC_API POSENC_CHECKED posenc_status posenc_attention_shape_read(const char *path,
                                                                    posenc_attention_shape *shape,
                                                                    posenc_checkpoint_facts *facts,
                                                                    posenc_error *error);

/* How to read. */
typedef struct posenc_read_options {
    size_t size;
    size_t layers; /* at most so many, spread evenly over the model; 0: all */
    /* Called now and then with the bytes of weights that are read; NULL: not. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
} posenc_read_options;

#define POSENC_READ_OPTIONS_INIT                                                                   \
    { sizeof(posenc_read_options), 0, NULL, NULL }

/* Reads the row powers of q and k from the weights at `path`: a safetensors file, the index of a sharded one, a
 * GGUF file (any part of a split one), a llama2.c file, a folder that holds one of them, or a model's name in the
 * local caches of Hugging Face or Ollama. The tensors are found by their names: those of
 * transformers, Meta, llama2.c and GGUF; separate q and k, fused qkv (one after the other, or by head, or by k head
 * with its q heads) and MLA. Biases are added and q/k norm gains multiplied in where there are any. All types of
 * numbers are read, and the quantised types Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K. Rows are streamed: 5 MiB
 * of memory besides the list of tensors (24 bytes each).
 *
 * Fails with IO, FORMAT, UNSUPPORTED (no such tensors, a type that cannot be read, block scales beside the
 * weights) or OUT_OF_RANGE (a shape that contradicts the tensors: the error names file, tensor and numbers; a
 * weight that is not finite). On failure *powers is NULL. */
POSENC_API POSENC_CHECKED posenc_status posenc_pair_powers_read(const char *path,
                                                                const posenc_attention_shape *shape,
                                                                const posenc_read_options *options,
                                                                posenc_pair_powers **powers,
                                                                posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
