/* Sizes and offsets whose arithmetic says when it does not fit. SPDX-License-Identifier: MIT */
#ifndef PENC_CHECKED_H
#define PENC_CHECKED_H

#include <stddef.h>
#include <stdint.h>

/* Each returns 1 and sets *result, or returns 0. */
static inline int penc_size_multiply(size_t a, size_t b, size_t *result) {
#if defined(__GNUC__) /* a division costs as much as rotating a head */
    return !__builtin_mul_overflow(a, b, result);
#else
    if (b && a > SIZE_MAX / b)
        return 0;
    *result = a * b;
    return 1;
#endif
}

/* count * stride * bytes as an offset in bytes; it fits if it is at most PTRDIFF_MAX / 8, so that a
 * few of them can be added without another check. */
static inline int penc_offset(size_t count, ptrdiff_t stride, size_t bytes, ptrdiff_t *result) {
    size_t magnitude = stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
    if (!penc_size_multiply(magnitude, count, &magnitude) ||
        !penc_size_multiply(magnitude, bytes, &magnitude) || magnitude > PTRDIFF_MAX / 8)
        return 0;
    *result = stride < 0 ? -(ptrdiff_t)magnitude : (ptrdiff_t)magnitude;
    return 1;
}

/* Whether [a, a + a_bytes) and [b, b + b_bytes) share a byte; neither runs over the end of memory. */
static inline int penc_ranges_meet(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes) {
    return a_bytes && b_bytes && a < b + b_bytes && b < a + a_bytes;
}

#endif
