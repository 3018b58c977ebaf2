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

PENC_ALWAYS_INLINE float NAME(sum)(float32x4_t v) {
    float32x2_t two = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

#define H_LOAD               NAME(load_head)
#define H_STORE              NAME(store_head)
#define H_SUM                NAME(sum)
#define H_RECIPROCAL_ROOT(v) vdivq_f32(vdupq_n_f32(1.0f), vsqrtq_f32(v))
#define H_INTEGERS           uint32x4_t
#define H_NOTHING            vdupq_n_u32(0)
#define H_LARGER(a, v)       vmaxq_u32(a, NAME(magnitude)(v))
#define H_LARGEST            vmaxvq_u32

#include "kernels/head_vector.inc"

#include "kernels/head_turn_vector.inc"

#include "kernels/head_end.inc"

#include "kernels/rotate_end.inc"
#endif
