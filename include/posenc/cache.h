/* posenc/cache.h - rotated keys and plain values into a key-value cache, read back, and turned again.
 *
 * A cache is memory of the caller in rows: one row is a slot, the heads of one token. It may be one piece for each
 * sequence or cut into blocks that a table hands out ("paged"), and may hold float32, float16, bfloat16, int8 or
 * fp8 numbers. The functions here rotate, normalise and convert each head while it is in the nearest cache of the
 * CPU, so that keys and values are read once and written once:
 *     posenc_cache_append    new keys (rotated) and values, to the slots of their tokens
 *     posenc_cache_read      slots, as numbers of any dtype
 *     posenc_cache_shift     cached keys, to other positions or other frequencies
 * Slots that are not named stay as they are, to the byte. Everything is checked before anything is written. Nothing
 * is allocated; threads may work on disjoint slots of one cache.
 *
 * Numbers of 8 bits have a scale s, and stand for q * s (one float32 product):
 *     int8       per token and head: amax is the head's largest magnitude, s = amax / 127, q = rint(x * (127 / amax)),
 *                ties to even; every operation float32
 *     fp8        e4m3fn (largest number 448, no infinity, one NaN). Per token and head: the same with 448, rounded to
 *                fp8. Per tensor: s is the caller's, q = x * (1 / s) rounded to fp8, what is too large becomes +-448,
 *                a NaN stays one
 * With a scale per token and head, a head whose amax is below 2^-120 becomes zeros with scale 0, and a head that holds
 * a NaN or an infinity becomes zeros with scale NaN: it reads back as NaN, as it would from a cache of floats.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_CACHE_H
#define POSENC_CACHE_H

#include "posenc/norm_rotate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every format: name, number, bytes, text. Those of a dtype have its number. */
#define POSENC_CACHE_FORMAT_LIST(X)                                                                \
    X(F32, 0, 4, "f32")                                                                            \
    X(F16, 2, 2, "f16")                                                                            \
    X(BF16, 3, 2, "bf16")                                                                          \
    X(INT8, 4, 1, "int8")                                                                          \
    X(FP8_E4M3, 5, 1, "fp8_e4m3")

typedef enum posenc_cache_format {
#define POSENC_CACHE_ENTRY(name, number, bytes, text) POSENC_CACHE_##name = number,
    POSENC_CACHE_FORMAT_LIST(POSENC_CACHE_ENTRY)
#undef POSENC_CACHE_ENTRY
} posenc_cache_format;

/* Bytes of one number; 0 for a number that is no format. */
POSENC_API size_t posenc_cache_format_bytes(posenc_cache_format format);

/* "f32", "f16", "bf16", "int8" or "fp8_e4m3"; NULL for a number that is no format. */
POSENC_API const char *posenc_cache_format_name(posenc_cache_format format);

typedef enum posenc_cache_scaling {
    POSENC_SCALE_PER_TOKEN_AND_HEAD = 0, /* int8, fp8 */
    POSENC_SCALE_PER_TENSOR = 1          /* fp8 */
} posenc_cache_scaling;

/* The keys, or the values, of one layer. Channel c of head h of slot b * block_tokens + t is element
 * b * block_stride + t * token_stride + h * head_stride + c * channel_stride of `data`; its scale is element
 * b * scale_block_stride + t * scale_token_stride + h * scale_head_stride of `scales`. Strides may be negative, but
 * must not let two elements meet; a stride of 0 is as far as the axes after it reach. Layouts:
 *     one sequence              blocks 1, block_tokens the capacity; so a slot is a token's place
 *     a batch of sequences      blocks the batch, block_tokens the capacity of each
 *     paged                     blocks of, say, 16 tokens; block_stride wider where keys and values share blocks
 *     heads outside of tokens   head_stride = block_tokens * head_dim, token_stride = head_dim
 *     values transposed         channel_stride = block_tokens, token_stride = 1
 * Caches that cut a head into pieces with tokens between them (vLLM's first layout) are not strided and have no
 * description here. Start from posenc_cache_dense. */
typedef struct posenc_cache {
    size_t size; /* sizeof(posenc_cache) */
    posenc_cache_format format;
    void *data;
    size_t blocks, block_tokens, heads, head_dim;                      /* head_dim at most 2048 */
    ptrdiff_t block_stride, token_stride, head_stride, channel_stride; /* in elements */
    posenc_cache_scaling scaling;                                      /* of int8 and fp8 */
    float tensor_scale; /* per tensor: above 0, finite, as is 1 / tensor_scale; else 0 */
    float *scales;      /* per token and head; else NULL */
    size_t scale_count; /* floats that `scales` has */
    ptrdiff_t scale_block_stride, scale_token_stride, scale_head_stride; /* in elements */
} posenc_cache;

/* A dense cache. 8-bit formats still need their scales. Checks nothing: functions that take a cache do. */
POSENC_API posenc_cache posenc_cache_dense(posenc_cache_format format, void *data, size_t blocks,
                                           size_t block_tokens, size_t heads, size_t head_dim);

/* Which slots the tokens of a tensor go to. Either by a list:
 *     token t of sequence n goes to slot slot_ids[n * slot_ids_stride + t]; -1 leaves it out (padding)
 * or by place: token t of sequence n is that sequence's token p = starts[n] + t in the cache, and goes to place
 * p % block_tokens of block block_table[n * block_table_stride + p / block_tokens]. Start from POSENC_SLOTS_INIT;
 * with nothing else set the first tokens of sequence n go to the start of block n. */
typedef struct posenc_slots {
    size_t size;                  /* sizeof(posenc_slots) */
    const int64_t *slot_ids;      /* NULL: by place. Ragged sequences in one batch need a list */
    ptrdiff_t slot_ids_stride;    /* in elements; 0: the tensor's tokens */
    const int64_t *starts;        /* one for each sequence, 0 or more; NULL: all 0 */
    const int32_t *block_table;   /* NULL: sequence n has block n and no other */
    size_t table_blocks;          /* entries of each sequence's row of the table */
    ptrdiff_t block_table_stride; /* in elements; 0: table_blocks */
} posenc_slots;

#define POSENC_SLOTS_INIT                                                                          \
    { .size = sizeof(posenc_slots) }

/* What is appended to a cache: keys or values. */
typedef struct posenc_append_item {
    const posenc_tensor
        *tensor; /* float32, float16 or bfloat16; heads and head_dim are the cache's */
    const void *input;
    const posenc_cache *cache;
    const posenc_head_stages *stages; /* norm (and scales) of these heads; NULL: none */
} posenc_append_item;

typedef struct posenc_append_options {
    size_t size; /* sizeof(posenc_append_options) */
    size_t
        first_token; /* the tokens to append, of every sequence, so that a pool of threads can split */
    size_t token_count;   /* one call into ranges; 0: all from first_token on */
    posenc_stores stores; /* of rotated keys in float formats, as for posenc_rotate */
} posenc_append_options;

#define POSENC_APPEND_OPTIONS_INIT                                                                 \
    { .size = sizeof(posenc_append_options) }

/* Appends `keys`, turned by `rotation`, and `values`, which are not, to the same slots of their caches. Either may
 * be NULL, and so may `rotation`: keys are not turned then. `slots` and `options` may be NULL: the defaults. A head
 * is normalised and turned in float32, then rounded once to the cache's format: what posenc_norm_rotate writes in
 * that dtype, and what quantising its float32 output writes. What nothing is done to is copied bit for bit.
 *
 * Refused, before anything is written, with the place in the list or the item (0: keys, 1: values): a slot outside of
 * the cache, a block of the table outside of it, a sequence longer than its row of the table, a slot named twice (in
 * one list or through shared blocks), another head_dim or number of heads than the cache's, scales that reach beyond
 * scale_count, an 8-bit format without scales or a float one with some, float64 tensors, caches that overlap each
 * other, the inputs, the tables, a weight or scales. Fails with NULL_POINTER, OUT_OF_RANGE, OVERFLOW, OVERLAP or
 * UNSUPPORTED. */
POSENC_API POSENC_CHECKED posenc_status posenc_cache_append(const posenc_rotation *rotation,
                                                            const posenc_append_item *keys,
                                                            const posenc_append_item *values,
                                                            const posenc_slots *slots,
                                                            const posenc_append_options *options,
                                                            posenc_error *error);

/* Reads slots[i] into token i of `output`, described by `tensor`: any dtype, batch 1, `count` tokens, the cache's heads
 * and head_dim. Float formats are rounded once; numbers of 8 bits are multiplied by their scale in float32 first. A
 * slot may come up several times. Fails as posenc_cache_append does. */
POSENC_API POSENC_CHECKED posenc_status posenc_cache_read(const posenc_cache *cache,
                                                          const int64_t *slots, size_t count,
                                                          const posenc_tensor *tensor, void *output,
                                                          posenc_error *error);

/* Cached keys, turned from the positions that they have to others, or from one set of frequencies to another.
 *
 * Attention sees differences of positions only, and posenc's angles are exact at any position: a sliding window needs
 * no shift at all, keys stay as they are while positions grow. What needs one: a few keys kept from the start of the
 * text (attention sinks), which move up with the window; frequencies that change with the length (longrope,
 * dynamic); and engines that count positions from 0 again.
 *
 * Each shift rounds a key once more, so many of them cost accuracy, steps that are smaller than a rounding are
 * even lost, and int8 and fp8 lose much sooner (docs/methods/cache.md has figures). So hand in the total of what a
 * key has moved, rarely, or keep the originals: with `originals` every shift starts from the keys as they
 * were first written, however often they move. */
typedef struct posenc_shift {
    size_t size;                    /* sizeof(posenc_shift) */
    const posenc_frequencies *from; /* by which the keys are rotated now; required */
    const posenc_frequencies *to; /* wanted; NULL: from. The same pairs, pairing and rotary_start */
    posenc_mode mode;             /* by which the keys were rotated; 0: exact */
    const int64_t *slots;         /* `count` slots to turn, each named once */
    size_t count;
    const int64_t
        *from_positions; /* at which the key of each is rotated now (the original's, where given) */
    const int64_t
        *to_positions; /* wanted. With several axes, element axis * axis_stride + i of both lists */
    ptrdiff_t axis_stride; /* in elements; 0: count */
    const posenc_cache
        *originals; /* keys to start from; NULL: those of the cache itself. Of any format, with the
                                      same heads and head_dim; only read */
    const int64_t *original_slots; /* their slots in `originals`; NULL: the same slots */
} posenc_shift;

#define POSENC_SHIFT_INIT                                                                          \
    { .size = sizeof(posenc_shift) }

/* Turns the keys of `shift->slots`. The angle is that of the whole way, from one position and frequency to the other,
 * computed exactly and rounded once (in mode float32: the difference of the two float32 angles), and the
 * attention factor is changed from that of `from` to that of `to`: it is never applied again. 8-bit keys are
 * widened, turned in float32 and quantised with a new scale. A key whose position and frequencies stay is left as it
 * is, to the byte, unless it comes from `originals`.
 *
 * Refused before anything is written: what posenc_cache_append refuses, positions or differences beyond
 * +-POSENC_MAX_POSITION, and frequencies that do not fit each other or the cache. */
POSENC_API POSENC_CHECKED posenc_status posenc_cache_shift(const posenc_cache *cache,
                                                           const posenc_shift *shift,
                                                           posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
