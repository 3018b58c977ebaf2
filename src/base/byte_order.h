/* Numbers whose bytes stand in a file in either order. SPDX-License-Identifier: MIT */
#ifndef PENC_BYTE_ORDER_H
#define PENC_BYTE_ORDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* 1 if this machine stores the highest byte first. */
static inline int penc_machine_is_big(void) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* Reverses the bytes of each of `count` elements. */
static inline void penc_swap_bytes(void *elements, size_t element_bytes, size_t count) {
    unsigned char *bytes = elements;
    for (size_t i = 0; i < count; i++, bytes += element_bytes) {
        for (size_t low = 0, high = element_bytes - 1; low < high; low++, high--) {
            unsigned char kept = bytes[low];
            bytes[low] = bytes[high];
            bytes[high] = kept;
        }
    }
}

/* An unsigned number of 1 to 8 bytes. */
static inline uint64_t penc_load_unsigned(const unsigned char *bytes, size_t count, int big) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value = value << 8 | bytes[big ? i : count - 1 - i];
    return value;
}

#endif
