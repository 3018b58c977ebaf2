/* Elements of tensors as float32.
 *
 * Source of the block layouts: ggml, ggml-common.h. Numbers in blocks are little-endian, or big-endian in files for
 * big-endian machines; nibbles and bit fields are bytes and have no order.
 *
 * SPDX-License-Identifier: MIT */
#include "formats/dequantize.h"

#include "base/half.h"

/* Integers of 2, 4 and 8 bytes in the file's byte order. */
static inline uint64_t penc_take_integer(const unsigned char *bytes, size_t count, int big_endian) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << 8 * (big_endian ? count - 1 - i : i);
    return value;
}

static inline float penc_take_f16(const unsigned char *bytes, int big_endian) {
    return penc_float_of_f16((uint16_t)penc_take_integer(bytes, 2, big_endian));
}

/* ---- Plain numbers ---- */

static inline void penc_read_f64(const unsigned char *from, int big_endian, float *to) {
    *to = (float)penc_double_of_bits(penc_take_integer(from, 8, big_endian));
}

static inline void penc_read_f32(const unsigned char *from, int big_endian, float *to) {
    *to = penc_float_of_bits((uint32_t)penc_take_integer(from, 4, big_endian));
}

static inline void penc_read_f16(const unsigned char *from, int big_endian, float *to) {
    *to = penc_take_f16(from, big_endian);
}

static inline void penc_read_bf16(const unsigned char *from, int big_endian, float *to) {
    *to = penc_float_of_bf16((uint16_t)penc_take_integer(from, 2, big_endian));
}

/* A byte of sign, exponent and `fraction_bits` of fraction. */
static float penc_float_of_f8(unsigned byte, unsigned fraction_bits, int bias) {
    unsigned magnitude = byte & 0x7fu, exponent = magnitude >> fraction_bits;
    unsigned fraction = magnitude & ((1u << fraction_bits) - 1);
    int power = (exponent ? (int)exponent : 1) - bias - (int)fraction_bits;
    float value = (float)(fraction | (exponent ? 1u << fraction_bits : 0));
    value *= penc_float_of_bits((uint32_t)(power + 127) << 23);
    return byte & 0x80u ? -value : value;
}

static float penc_f8_nan(void) {
    return penc_float_of_bits(0x7fc00000u);
}

static inline void penc_read_f8_e4m3(const unsigned char *from, int big_endian, float *to) {
    (void)big_endian;
    *to = (*from & 0x7f) == 0x7f ? penc_f8_nan() : penc_float_of_f8(*from, 3, 7);
}

static inline void penc_read_f8_e5m2(const unsigned char *from, int big_endian, float *to) {
    (void)big_endian; /* the upper byte of a float16 */
    *to = penc_float_of_f16((uint16_t)(*from << 8));
}

/* The types without infinities and negative zero: 0x80 is their only NaN. */
static inline void penc_read_f8_e4m3fnuz(const unsigned char *from, int big_endian, float *to) {
    (void)big_endian;
    *to = *from == 0x80 ? penc_f8_nan() : penc_float_of_f8(*from, 3, 8);
}

static inline void penc_read_f8_e5m2fnuz(const unsigned char *from, int big_endian, float *to) {
    (void)big_endian;
    *to = *from == 0x80 ? penc_f8_nan() : penc_float_of_f8(*from, 2, 16);
}

/* ---- Blocks of 32 ---- */

/* Nibbles of 16 bytes: the lower ones are elements 0 ... 15, the upper ones 16 ... 31. A fifth bit comes from `high`. */
static int penc_nibble(const unsigned char *bytes, uint32_t high, int i) {
    int nibble = i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4;
    return nibble | (int)(high >> i & 1u) << 4;
}

static inline void penc_read_q4_0(const unsigned char *from, int big_endian, float *to) {
    float scale = penc_take_f16(from, big_endian);
    for (int i = 0; i < 32; i++)
        to[i] = scale * (float)(penc_nibble(from + 2, 0, i) - 8);
}

static inline void penc_read_q4_1(const unsigned char *from, int big_endian, float *to) {
    float scale = penc_take_f16(from, big_endian), least = penc_take_f16(from + 2, big_endian);
    for (int i = 0; i < 32; i++)
        to[i] = scale * (float)penc_nibble(from + 4, 0, i) + least;
}

static inline void penc_read_q5_0(const unsigned char *from, int big_endian, float *to) {
    float scale = penc_take_f16(from, big_endian);
    uint32_t high = (uint32_t)penc_take_integer(from + 2, 4, big_endian);
    for (int i = 0; i < 32; i++)
        to[i] = scale * (float)(penc_nibble(from + 6, high, i) - 16);
}

static inline void penc_read_q5_1(const unsigned char *from, int big_endian, float *to) {
    float scale = penc_take_f16(from, big_endian), least = penc_take_f16(from + 2, big_endian);
    uint32_t high = (uint32_t)penc_take_integer(from + 4, 4, big_endian);
    for (int i = 0; i < 32; i++)
        to[i] = scale * (float)penc_nibble(from + 8, high, i) + least;
}

/* A byte as a two's complement number. */
static int penc_signed(unsigned char byte) {
    return byte < 128 ? byte : byte - 256;
}

static inline void penc_read_q8_0(const unsigned char *from, int big_endian, float *to) {
    float scale = penc_take_f16(from, big_endian);
    for (int i = 0; i < 32; i++)
        to[i] = scale * (float)penc_signed(from[2 + i]);
}

/* ---- Blocks of 256 ---- */

/* The 6-bit scale and minimum of part `part` of 8, packed in 12 bytes. */
static void penc_k_scales(const unsigned char *packed, int part, float *scale, float *least) {
    int s, m;
    if (part < 4) {
        s = packed[part] & 63;
        m = packed[part + 4] & 63;
    } else {
        s = (packed[part + 4] & 15) | (packed[part - 4] >> 6) << 4;
        m = packed[part + 4] >> 4 | (packed[part] >> 6) << 4;
    }
    *scale *= (float)s;
    *least *= (float)m;
}

/* Parts of 32: two of them share 32 bytes, as lower and upper nibbles. `high` holds a fifth bit per element and
 * part, or is NULL. */
static void penc_read_k(const unsigned char *from, const unsigned char *high,
                        const unsigned char *nibbles, int big_endian, float *to) {
    for (int part = 0; part < 8; part++) {
        float scale = penc_take_f16(from, big_endian), least = penc_take_f16(from + 2, big_endian);
        penc_k_scales(from + 4, part, &scale, &least);
        for (int i = 0; i < 32; i++) {
            int value = nibbles[part / 2 * 32 + i] >> part % 2 * 4 & 15;
            if (high)
                value |= (high[i] >> part & 1) << 4;
            float product = scale * (float)value;
            to[part * 32 + i] = product - least;
        }
    }
}

static inline void penc_read_q4_k(const unsigned char *from, int big_endian, float *to) {
    penc_read_k(from, NULL, from + 16, big_endian, to);
}

static inline void penc_read_q5_k(const unsigned char *from, int big_endian, float *to) {
    penc_read_k(from, from + 16, from + 48, big_endian, to);
}

/* Two halves of 128, each of four parts of 32: lower nibbles of 64 bytes, then the upper ones; two more bits of
 * each element lie in 32 bytes. A scale for every 16 elements. */
static inline void penc_read_q6_k(const unsigned char *from, int big_endian, float *to) {
    float unit = penc_take_f16(from + 208, big_endian);
    for (int i = 0; i < 256; i++) {
        int half = i / 128, part = i % 128 / 32, at = i % 32;
        int low = from[half * 64 + part % 2 * 32 + at] >> part / 2 * 4 & 15;
        int high = from[128 + half * 32 + at] >> part * 2 & 3;
        float scale = unit * (float)penc_signed(from[192 + i / 16]);
        to[i] = scale * (float)((low | high << 4) - 32);
    }
}

/* ---- All of them ---- */

#define PENC_READABLE_LIST(X)                                                                      \
    X(F64, penc_read_f64)                                                                          \
    X(F32, penc_read_f32)                                                                          \
    X(F16, penc_read_f16)                                                                          \
    X(BF16, penc_read_bf16)                                                                        \
    X(F8_E4M3, penc_read_f8_e4m3)                                                                  \
    X(F8_E5M2, penc_read_f8_e5m2)                                                                  \
    X(F8_E4M3FNUZ, penc_read_f8_e4m3fnuz)                                                          \
    X(F8_E5M2FNUZ, penc_read_f8_e5m2fnuz)                                                          \
    X(Q4_0, penc_read_q4_0)                                                                        \
    X(Q4_1, penc_read_q4_1)                                                                        \
    X(Q5_0, penc_read_q5_0)                                                                        \
    X(Q5_1, penc_read_q5_1)                                                                        \
    X(Q8_0, penc_read_q8_0)                                                                        \
    X(Q4_K, penc_read_q4_k)                                                                        \
    X(Q5_K, penc_read_q5_k)                                                                        \
    X(Q6_K, penc_read_q6_k)

/* Sizes of blocks as constants. */
enum {
#define PENC_BLOCK_ENTRY(name, number, word, elements, bytes)                                      \
    PENC_ELEMENTS_##name = elements, PENC_BYTES_##name = bytes,
    PENC_TENSOR_TYPE_LIST(PENC_BLOCK_ENTRY)
#undef PENC_BLOCK_ENTRY
};

/* Reads `count` elements. */
typedef void (*penc_run_reader)(const unsigned char *from, int big_endian, size_t count, float *to);

/* One loop for each type, with the byte order and sizes as constants. */
#define PENC_RUN(name, reader)                                                                     \
    static void penc_run_##name(const unsigned char *from, int big_endian, size_t count,           \
                                float *to) {                                                       \
        for (size_t i = 0; !big_endian && i < count / PENC_ELEMENTS_##name; i++)                   \
            reader(from + i * PENC_BYTES_##name, 0, to + i * PENC_ELEMENTS_##name);                \
        for (size_t i = 0; big_endian && i < count / PENC_ELEMENTS_##name; i++)                    \
            reader(from + i * PENC_BYTES_##name, 1, to + i * PENC_ELEMENTS_##name);                \
    }
PENC_READABLE_LIST(PENC_RUN)
#undef PENC_RUN

static penc_run_reader penc_reader_of(penc_tensor_type type) {
    static const penc_run_reader readers[PENC_TENSOR_TYPES] = {
#define PENC_READABLE_ENTRY(name, reader) [PENC_TENSOR_##name] = penc_run_##name,
        PENC_READABLE_LIST(PENC_READABLE_ENTRY)
#undef PENC_READABLE_ENTRY
    };
    return type < PENC_TENSOR_TYPES ? readers[type] : NULL;
}

int penc_can_dequantize(penc_tensor_type type) {
    return penc_reader_of(type) != NULL;
}

void penc_dequantize(penc_tensor_type type, int big_endian, const unsigned char *from, size_t count,
                     float *to) {
    penc_reader_of(type)(from, big_endian, count, to);
}
