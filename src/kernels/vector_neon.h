/* The vector vocabulary of NEON (64-bit ARM): 2 lanes. SPDX-License-Identifier: MIT */
#ifndef PENC_VECTOR_NEON_H
#define PENC_VECTOR_NEON_H

#define LANES 2
#define vd    float64x2_t
#define vu    uint64x2_t
#define vf    float32x2_t
#define vmask unsigned /* lanes */

#define V_SET(x)             vdupq_n_f64(x)
#define V_SET_U(x)           vdupq_n_u64(x)
#define V_LOAD(p)            vld1q_f64(p)
#define V_STORE(p, a)        vst1q_f64(p, a)
#define V_ADD(a, b)          vaddq_f64(a, b)
#define V_SUB(a, b)          vsubq_f64(a, b)
#define V_MUL(a, b)          vmulq_f64(a, b)
#define V_FMA(a, b, c)       vfmaq_f64(c, a, b)
#define V_FNMA(a, b, c)      vfmsq_f64(c, a, b)
#define V_FMS_EXACT(a, b, c) vfmaq_f64(vnegq_f64(c), a, b)
#define V_LESS(a, b)         penc_neon_mask(vcltq_f64(a, b))
/* a >= b, or c is 0 */
#define V_REACHES(a, b, c) (((1u << LANES) - 1) ^ (V_LESS(a, b) & V_LESS(V_SET(0.0), V_MUL(c, c))))
#define V_BITS(a)          vreinterpretq_u64_f64(a)
#define V_ADD_U(a, b)      vaddq_u64(a, b)
#define V_XOR_U(a, b)      veorq_u64(a, b)
#define V_SHL(a, n)        vshlq_n_u64(a, n)
#define V_BLEND(choice, a, b)                                                                      \
    vbslq_f64(vcltzq_s64(vreinterpretq_s64_u64(choice)), a, b) /* by the top bit */
#define V_FLIP(a, bits)                                                                            \
    vreinterpretq_f64_u64(                                                                         \
        veorq_u64(vreinterpretq_u64_f64(a), vandq_u64(bits, vdupq_n_u64(UINT64_C(1) << 63))))
#define V_BEFORE(a)                                                                                \
    vreinterpretq_f64_s64(vaddq_s64(vreinterpretq_s64_f64(a),                                      \
                                    vdupq_n_s64(-1))) /* the number before a, which is above 0 */
#define V_TO_FLOAT(a)      vcvt_f32_f64(a)
#define V_STORE_F(p, a, n) penc_neon_store(p, a, n)
#define V_DIFFER(a, b)     penc_neon_differ(vreinterpret_u32_f32(a), vreinterpret_u32_f32(b))

static inline unsigned penc_neon_mask(uint64x2_t all_or_nothing) {
    return (unsigned)(vgetq_lane_u64(all_or_nothing, 0) & 1) |
           (unsigned)(vgetq_lane_u64(all_or_nothing, 1) & 2);
}

static inline unsigned penc_neon_differ(uint32x2_t a, uint32x2_t b) {
    uint32x2_t same = vceq_u32(a, b);
    return 3u ^ ((vget_lane_u32(same, 0) & 1u) | (vget_lane_u32(same, 1) & 2u));
}

static inline void penc_neon_store(float *to, float32x2_t a, size_t lanes) {
    if (lanes == 2)
        vst1_f32(to, a);
    else
        vst1_lane_f32(to, a, 0);
}

#endif
