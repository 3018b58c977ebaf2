/* Caches in memory of their own between guard pages, and what their numbers should be, written from
 * posenc/cache.h alone. SPDX-License-Identifier: MIT */
#ifndef TEST_CACHE_CASES_H
#define TEST_CACHE_CASES_H

#include "head_oracle.h"

static const posenc_cache_format formats[] = {POSENC_CACHE_F32, POSENC_CACHE_F16, POSENC_CACHE_BF16,
                                              POSENC_CACHE_INT8, POSENC_CACHE_FP8_E4M3};

/* --- Memory --------------------------------------------------------------------------------------- */

typedef struct cache_memory {
    posenc_cache cache; /* strides set */
    guarded data, scales;
    void *data_before, *scales_before; /* copies */
} cache_memory;

/* The bytes that `count` axes reach, before and behind the first element. */
static inline void reach_of(const size_t *shape, const ptrdiff_t *strides, int count,
                            ptrdiff_t *low, ptrdiff_t *high) {
    *low = 0;
    *high = 1;
    for (int i = 0; i < count; i++) {
        ptrdiff_t last = ((ptrdiff_t)shape[i] - 1) * strides[i];
        *low += last < 0 ? last : 0;
        *high += last > 0 ? last : 0;
    }
}

/* Any order of axes, some backwards, with gaps between; or dense. */
static inline void random_strides(const size_t *shape, int count, int plain, int backwards,
                                  ptrdiff_t *strides, random_stream *rng) {
    int left[4] = {0, 1, 2, 3};
    ptrdiff_t reach = 1;
    for (int i = count - 1; i >= 0; i--) {
        int at = plain ? i : (int)random_below(rng, (size_t)i + 1), axis = left[at];
        left[at] = left[i];
        strides[axis] = backwards && random_below(rng, 3) == 0 ? -reach : reach;
        reach = reach * (ptrdiff_t)shape[axis] + (plain ? 0 : (ptrdiff_t)random_below(rng, 4));
    }
}

static inline cache_memory cache_new(posenc_cache_format format, size_t blocks, size_t block_tokens,
                                     size_t heads, size_t head_dim, random_stream *rng) {
    const size_t shape[4] = {blocks, block_tokens, heads, head_dim};
    int plain = (int)random_below(rng, 2),
        per_tensor = format == POSENC_CACHE_FP8_E4M3 && random_below(rng, 2);
    ptrdiff_t strides[4], low, high;
    cache_memory m = {.cache =
                          posenc_cache_dense(format, NULL, blocks, block_tokens, heads, head_dim)};
    posenc_cache *c = &m.cache;
    random_strides(shape, 4, plain, !plain, strides, rng);
    reach_of(shape, strides, 4, &low, &high);
    size_t bytes = posenc_cache_format_bytes(format);
    m.data = guarded_new((size_t)(high - low) * bytes, (guard_side)random_below(rng, 2));
    c->data = (char *)m.data.data - low * (ptrdiff_t)bytes;
    if (!plain || random_below(rng, 2)) {
        c->block_stride = strides[0];
        c->token_stride = strides[1];
        c->head_stride = strides[2];
        c->channel_stride = strides[3];
    }
    m.scales = guarded_new(0, GUARD_AFTER);
    if (per_tensor) {
        c->scaling = POSENC_SCALE_PER_TENSOR;
        c->tensor_scale = (float)random_magnitude(rng, -3.0, 0.0);
    } else if (bytes == 1) {
        guarded_free(&m.scales);
        plain = (int)random_below(rng, 2);
        random_strides(shape, 3, plain, 0, strides, rng);
        reach_of(shape, strides, 3, &low, &high);
        m.scales = guarded_new((size_t)high * sizeof(float), GUARD_AFTER);
        c->scales = m.scales.data;
        c->scale_count = (size_t)high;
        if (!plain) {
            c->scale_block_stride = strides[0];
            c->scale_token_stride = strides[1];
            c->scale_head_stride = strides[2];
        }
    }
    return m;
}

/* To be called once the cache is as it should be before the tested call. */
static inline void cache_keep(cache_memory *m) {
    m->data_before = copy_of(&m->data);
    m->scales_before = malloc(m->scales.bytes + 1);
    assert_non_null(m->scales_before);
    memcpy(m->scales_before, m->scales.data, m->scales.bytes);
}

static inline void cache_free(cache_memory *m) {
    free(m->data_before);
    free(m->scales_before);
    guarded_free(&m->data);
    guarded_free(&m->scales);
}

static inline ptrdiff_t stride_or(ptrdiff_t stride, ptrdiff_t dense) {
    return stride ? stride : dense;
}

/* In elements from data; all strides given, or none. */
static inline ptrdiff_t cache_place(const posenc_cache *c, int64_t slot, size_t head,
                                    size_t channel) {
    ptrdiff_t block = (ptrdiff_t)slot / (ptrdiff_t)c->block_tokens;
    ptrdiff_t token = (ptrdiff_t)slot % (ptrdiff_t)c->block_tokens;
    ptrdiff_t dim = (ptrdiff_t)c->head_dim, heads = (ptrdiff_t)c->heads;
    return block * stride_or(c->block_stride, dim * heads * (ptrdiff_t)c->block_tokens) +
           token * stride_or(c->token_stride, dim * heads) +
           (ptrdiff_t)head * stride_or(c->head_stride, dim) +
           (ptrdiff_t)channel * stride_or(c->channel_stride, 1);
}

static inline ptrdiff_t scale_place(const posenc_cache *c, int64_t slot, size_t head) {
    ptrdiff_t block = (ptrdiff_t)slot / (ptrdiff_t)c->block_tokens;
    ptrdiff_t token = (ptrdiff_t)slot % (ptrdiff_t)c->block_tokens;
    ptrdiff_t heads = (ptrdiff_t)c->heads;
    return block * stride_or(c->scale_block_stride, heads * (ptrdiff_t)c->block_tokens) +
           token * stride_or(c->scale_token_stride, heads) +
           (ptrdiff_t)head * stride_or(c->scale_head_stride, 1);
}

/* --- Numbers of 8 bits ---------------------------------------------------------------------------- */

/* The number of an fp8 e4m3fn code below 0x80: 2^(e - 7) * 1.m, or 2^-6 * 0.m. */
static inline double fp8_number(unsigned code) {
    unsigned exponent = code >> 3, fraction = code & 7;
    if (code == 0x7f)
        return (double)NAN;
    return exponent ? ldexp(8.0 + fraction, (int)exponent - 10) : ldexp(fraction, -9);
}

/* The nearest code, by looking at all of them; of two the even one. */
static inline unsigned fp8_nearest(double value) {
    unsigned best = 0, sign = signbit(value) ? 0x80u : 0;
    double magnitude = fabs(value);
    if (isnan(value))
        return sign | 0x7f;
    if (magnitude > 448.0)
        return sign | 0x7e;
    for (unsigned code = 1; code < 0x7f; code++) {
        double distance = fabs(fp8_number(code) - magnitude);
        double before = fabs(fp8_number(best) - magnitude);
        if (distance < before || (distance == before && code % 2 == 0))
            best = code;
    }
    return sign | best;
}

/* The codes of a head of float32 numbers, and its scale. */
static inline void quantise_head(const posenc_cache *c, const double *x, uint8_t *codes,
                                 float *scale) {
    float largest = 0.0f, most = c->format == POSENC_CACHE_INT8 ? 127.0f : 448.0f, inverse;
    int finite = 1;
    for (size_t i = 0; i < c->head_dim; i++) {
        finite &= isfinite(x[i]) != 0;
        largest = fmaxf(largest, fabsf((float)x[i]));
    }
    memset(codes, 0, c->head_dim);
    if (c->scaling == POSENC_SCALE_PER_TENSOR) {
        *scale = c->tensor_scale;
        inverse = 1.0f / c->tensor_scale;
    } else {
        *scale = !finite ? (float)NAN : largest < 0x1p-120f ? 0.0f : largest / most;
        if (!finite || largest < 0x1p-120f)
            return;
        inverse = most / largest;
    }
    for (size_t i = 0; i < c->head_dim; i++) {
        float value = (float)x[i] * inverse;
        codes[i] = c->format == POSENC_CACHE_INT8 ? (uint8_t)(int8_t)lrintf(value)
                                                  : (uint8_t)fp8_nearest((double)value);
    }
}

/* --- Comparing ------------------------------------------------------------------------------------ */

static inline uint64_t cache_bits(const cache_memory *m, int64_t slot, size_t head,
                                  size_t channel) {
    const posenc_cache *c = &m->cache;
    ptrdiff_t at = cache_place(c, slot, head, channel);
    if (posenc_cache_format_bytes(c->format) == 1)
        return ((const uint8_t *)c->data)[at];
    return oracle_load(c->data, (posenc_dtype)c->format, at);
}

/* The number that an element stands for. */
static inline double cache_number(const cache_memory *m, int64_t slot, size_t head,
                                  size_t channel) {
    const posenc_cache *c = &m->cache;
    uint64_t bits = cache_bits(m, slot, head, channel);
    if (posenc_cache_format_bytes(c->format) > 1)
        return oracle_value(bits, (posenc_dtype)c->format);
    float scale = c->scales ? c->scales[scale_place(c, slot, head)] : c->tensor_scale;
    double code = c->format == POSENC_CACHE_INT8
                      ? (double)(int8_t)bits
                      : copysign(fp8_number(bits & 0x7f), bits & 0x80 ? -1.0 : 1.0);
    return (double)((float)code * scale);
}

/* Copies an element of `before` back. */
static inline void set_back(void *array, const void *base, const void *before, ptrdiff_t bytes,
                            ptrdiff_t at) {
    memcpy((char *)array + at * bytes,
           (const char *)before + ((char *)array - (const char *)base) + at * bytes, (size_t)bytes);
}

/* A head is what the float32 numbers x become; it is set back to what was there before. */
static inline void assert_cached(cache_memory *m, int64_t slot, size_t head, const double *x) {
    const posenc_cache *c = &m->cache;
    ptrdiff_t bytes = (ptrdiff_t)posenc_cache_format_bytes(c->format);
    uint8_t codes[MOST_DIM];
    float scale = 0.0f;
    if (bytes == 1)
        quantise_head(c, x, codes, &scale);
    for (size_t i = 0; i < c->head_dim; i++) {
        uint64_t got = cache_bits(m, slot, head, i);
        int alike = bytes == 1
                        ? got == codes[i]
                        : oracle_same(got, oracle_bits_of_double(x[i], (posenc_dtype)c->format),
                                      (posenc_dtype)c->format);
        if (!alike && !(c->format == POSENC_CACHE_FP8_E4M3 && isnan(x[i]) && (got & 0x7f) == 0x7f))
            fail_msg("%s, slot %lld, head %zu, channel %zu of %zu: got %#llx for %.9g (code %d)",
                     posenc_cache_format_name(c->format), (long long)slot, head, i, c->head_dim,
                     (unsigned long long)got, x[i], bytes == 1 ? codes[i] : 0);
        set_back(c->data, m->data.data, m->data_before, bytes, cache_place(c, slot, head, i));
    }
    if (!c->scales)
        return;
    ptrdiff_t at = scale_place(c, slot, head);
    if (!(c->scales[at] == scale || (isnan(c->scales[at]) && isnan(scale))))
        fail_msg("%s, slot %lld, head %zu: scale %.9g, wanted %.9g",
                 posenc_cache_format_name(c->format), (long long)slot, head, (double)c->scales[at],
                 (double)scale);
    set_back(c->scales, m->scales.data, m->scales_before, sizeof(float), at);
}

/* All that the call wrote was looked at and set back: nothing else differs. */
static inline void assert_rest_untouched(const cache_memory *m) {
    assert_memory_equal(m->data.data, m->data_before, m->data.bytes);
    if (m->scales.bytes)
        assert_memory_equal(m->scales.data, m->scales_before, m->scales.bytes);
}

/* Numbers in every slot, as posenc writes them. */
static inline void cache_fill(cache_memory *m, random_stream *rng) {
    posenc_cache *c = &m->cache;
    size_t slots = c->blocks * c->block_tokens;
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, slots, c->heads, c->head_dim);
    float *numbers = malloc(slots * c->heads * c->head_dim * sizeof *numbers);
    int64_t *ids = malloc(slots * sizeof *ids);
    assert_true(numbers && ids);
    for (size_t i = 0; i < slots * c->heads * c->head_dim; i++)
        numbers[i] = (float)random_normal(rng);
    for (size_t i = 0; i < slots; i++)
        ids[i] = (int64_t)i;
    posenc_append_item item = {&tensor, numbers, c, NULL};
    posenc_slots where = POSENC_SLOTS_INIT;
    where.slot_ids = ids;
    posenc_error error;
    assert_done(posenc_cache_append(NULL, NULL, &item, &where, NULL, &error), &error);
    free(numbers);
    free(ids);
}

#endif
