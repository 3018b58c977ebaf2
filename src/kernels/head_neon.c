/* The kernels of heads in NEON instructions. SPDX-License-Identifier: MIT */
#include "kernels/head_vocabulary.h"

#if PENC_NEON
#include <arm_neon.h>

#define NAME(what) penc_head_neon_##what
#include "kernels/rotate_neon_vocabulary.inc"

PENC_ALWAYS_INLINE float32x4_t NAME(widen_fp8)(uint32x4_t codes) {
    uint32x4_t magnitude = vandq_u32(codes, vdupq_n_u32(0x7f));
    uint32x4_t sign = vshlq_n_u32(veorq_u32(codes, magnitude), 24);
    uint32x4_t normal = vaddq_u32(vshlq_n_u32(magnitude, 20), vdupq_n_u32(120u << 23));
    float32x4_t units = vmulq_f32(vcvtq_f32_u32(magnitude), vdupq_n_f32(0x1p-9f));
    uint32x4_t bits =
        vbslq_u32(vcltq_u32(magnitude, vdupq_n_u32(8)), vreinterpretq_u32_f32(units), normal);
    bits =
        vbslq_u32(vceqq_u32(magnitude, vdupq_n_u32(PENC_FP8_NAN)), vdupq_n_u32(0x7fc00000u), bits);
    return vreinterpretq_f32_u32(vorrq_u32(bits, sign));
}

PENC_ALWAYS_INLINE uint32x4_t NAME(magnitude)(float32x4_t value) {
    return vandq_u32(vreinterpretq_u32_f32(value), vdupq_n_u32(0x7fffffffu));
}

/* As penc_fp8_of_float. */
PENC_ALWAYS_INLINE uint32x4_t NAME(round_fp8)(float32x4_t value) {
    uint32x4_t all = NAME(magnitude)(value);
    uint32x4_t sign = vandq_u32(vshrq_n_u32(vreinterpretq_u32_f32(value), 24), vdupq_n_u32(0x80));
    uint32x4_t least = vminq_u32(all, vdupq_n_u32(PENC_FP8_MOST_BITS));
    uint32x4_t even = vandq_u32(vshrq_n_u32(least, 20), vdupq_n_u32(1));
    uint32x4_t sum = vaddq_u32(vaddq_u32(least, vdupq_n_u32(0x7ffff)), even);
    uint32x4_t code = vsubq_u32(vshrq_n_u32(sum, 20), vdupq_n_u32(120u << 3));
    float32x4_t units = vaddq_f32(vreinterpretq_f32_u32(least), vdupq_n_f32(PENC_FP8_INTEGER));
    uint32x4_t small = vsubq_u32(vreinterpretq_u32_f32(units), vdupq_n_u32(PENC_FP8_INTEGER_BITS));
    code = vbslq_u32(vcltq_u32(least, vdupq_n_u32(PENC_FP8_NORMAL_BITS)), small, code);
    code = vbslq_u32(vcgtq_u32(all, vdupq_n_u32(0x7f800000u)), vdupq_n_u32(PENC_FP8_NAN), code);
    return vorrq_u32(code, sign);
}

/* Four bytes, widened to 16 bits in the lower half. */
PENC_ALWAYS_INLINE uint8x8_t NAME(load_bytes)(const void *p) {
    uint32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return vreinterpret_u8_u32(vdup_n_u32(bytes));
}

PENC_ALWAYS_INLINE void NAME(store_bytes)(void *p, uint8x8_t v) {
    uint32_t bytes = vget_lane_u32(vreinterpret_u32_u8(v), 0);
    memcpy(p, &bytes, sizeof bytes);
}

PENC_ALWAYS_INLINE float32x4_t NAME(load_head)(penc_format format, const void *p) {
    if (format == PENC_FORMAT_F32)
        return vld1q_f32((const float *)p);
    if (format < PENC_FORMAT_INT8)
        return NAME(widen_16)((posenc_dtype)format, vld1_u16((const uint16_t *)p));
    uint8x8_t bytes = NAME(load_bytes)(p);
    if (format == PENC_FORMAT_INT8)
        return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(bytes)))));
    return NAME(widen_fp8)(vmovl_u16(vget_low_u16(vmovl_u8(bytes))));
}

PENC_ALWAYS_INLINE void NAME(store_head)(penc_format format, void *p, float32x4_t v) {
    if (format == PENC_FORMAT_F32) {
        vst1q_f32((float *)p, v);
    } else if (format < PENC_FORMAT_INT8) {
        vst1_u16((uint16_t *)p, NAME(round_16)((posenc_dtype)format, v));
    } else {
        uint32x4_t codes = format == PENC_FORMAT_INT8 ? vreinterpretq_u32_s32(vcvtnq_s32_f32(v))
                                                      : NAME(round_fp8)(v);
        uint16x4_t words = vmovn_u32(codes);
        NAME(store_bytes)(p, vmovn_u16(vcombine_u16(words, words)));
    }
}

/* Four vectors of numbers within +-127, 16 codes. */
PENC_ALWAYS_INLINE void NAME(store_int8)(char *y, const float32x4_t *v) {
    int16x8_t low = vmovn_high_s32(vmovn_s32(vcvtnq_s32_f32(v[0])), vcvtnq_s32_f32(v[1]));
    int16x8_t high = vmovn_high_s32(vmovn_s32(vcvtnq_s32_f32(v[2])), vcvtnq_s32_f32(v[3]));
    vst1q_s8((int8_t *)y, vmovn_high_s16(vmovn_s16(low), high));
}

typedef struct NAME(sums) {
    float32x4_t part[4];
} NAME(sums);

PENC_ALWAYS_INLINE NAME(sums) NAME(no_sums)(void) {
    float32x4_t zero = vdupq_n_f32(0.0f);
    return (NAME(sums)){{zero, zero, zero, zero}};
}

PENC_ALWAYS_INLINE void NAME(add_squares)(penc_format format, NAME(sums) * sums, const void *x) {
    for (size_t k = 0; k < 4; k++) {
        const char *at = (const char *)x + k * (format == PENC_FORMAT_F32 ? 16 : 8);
        float32x4_t v = NAME(load_head)(format, at);
        sums->part[k] = vaddq_f32(sums->part[k], vmulq_f32(v, v));
    }
}

PENC_ALWAYS_INLINE float32x4_t NAME(sum_row)(penc_format format, const NAME(sums) * sums) {
    (void)format;
    return vaddq_f32(vaddq_f32(sums->part[0], sums->part[2]),
                     vaddq_f32(sums->part[1], sums->part[3]));
}

/* Rows of four lanes each, summed on. */
PENC_ALWAYS_INLINE float32x4_t NAME(four_sums)(float32x4_t a, float32x4_t b, float32x4_t c,
                                               float32x4_t d) {
    float32x4_t ab = vaddq_f32(vcombine_f32(vget_low_f32(a), vget_low_f32(b)),
                               vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
    float32x4_t cd = vaddq_f32(vcombine_f32(vget_low_f32(c), vget_low_f32(d)),
                               vcombine_f32(vget_high_f32(c), vget_high_f32(d)));
    return vaddq_f32(vuzp1q_f32(ab, cd), vuzp2q_f32(ab, cd));
}

PENC_ALWAYS_INLINE void NAME(four_inverses)(const uint32_t *rows, float most, float *scales,
                                            float *inverses) {
    uint32x4_t ab = vpmaxq_u32(vld1q_u32(rows), vld1q_u32(rows + 4));
    uint32x4_t cd = vpmaxq_u32(vld1q_u32(rows + 8), vld1q_u32(rows + 12));
    uint32x4_t largest = vpmaxq_u32(ab, cd);
    float32x4_t amax = vreinterpretq_f32_u32(largest);
    uint32x4_t finite = vcltq_u32(largest, vdupq_n_u32(0x7f800000u));
    uint32x4_t counts = vcgeq_f32(amax, vdupq_n_f32(PENC_ZERO_ROW));
    uint32x4_t scale = vreinterpretq_u32_f32(vdivq_f32(amax, vdupq_n_f32(most)));
    uint32x4_t inverse = vreinterpretq_u32_f32(vdivq_f32(vdupq_n_f32(most), amax));
    scale = vbslq_u32(finite, vandq_u32(scale, counts), vdupq_n_u32(0x7fc00000u));
    inverse = vandq_u32(vandq_u32(inverse, counts), finite);
    vst1q_f32(scales, vreinterpretq_f32_u32(scale));
    vst1q_f32(inverses, vreinterpretq_f32_u32(inverse));
}

#define H_LOAD                                     NAME(load_head)
#define H_STORE                                    NAME(store_head)
#define H_STORE_INT8                               NAME(store_int8)
#define H_FOUR                                     float32x4_t
#define H_FOUR_SUMS                                NAME(four_sums)
#define H_FOUR_SET                                 vdupq_n_f32
#define H_FOUR_ADD                                 vaddq_f32
#define H_FOUR_DIV                                 vdivq_f32
#define H_FOUR_SQRT                                vsqrtq_f32
#define H_FOUR_STORE                               vst1q_f32
#define H_FOUR_INVERSES                            NAME(four_inverses)
#define H_HAS_16_BIT_ROW                           0
#define H_LARGEST_16_ROW(format, x, channels, row) ((void)0)
#define H_INTEGERS                                 uint32x4_t
#define H_NOTHING                                  vdupq_n_u32(0)
#define H_LARGER(a, v)                             vmaxq_u32(a, NAME(magnitude)(v))
#define H_LARGEST_ROW                              vst1q_u32

#include "kernels/head_vector.inc"

#include "kernels/head_turn_vector.inc"

#include "kernels/head_quantise_vector.inc"

#include "kernels/head_end.inc"

#include "kernels/rotate_end.inc"
#endif
