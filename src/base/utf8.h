/* Whether bytes are UTF-8. SPDX-License-Identifier: MIT */
#ifndef PENC_UTF8_H
#define PENC_UTF8_H

#include <stddef.h>

/* The length (1 to 4) of the character that begins the `count` > 0 bytes; 0 where there is none: stray or
 * missing continuation bytes, overlong forms, surrogates, beyond U+10FFFF. */
static inline size_t penc_utf8_step(const unsigned char *bytes, size_t count) {
    unsigned char first = bytes[0], low = 0x80, high = 0xbf; /* bounds of the second byte */
    if (first < 0x80)
        return 1;
    size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first < 0xc2 || first > 0xf4 || length > count)
        return 0;
    if (first == 0xe0)
        low = 0xa0;
    if (first == 0xed)
        high = 0x9f;
    if (first == 0xf0)
        low = 0x90;
    if (first == 0xf4)
        high = 0x8f;
    if (bytes[1] < low || bytes[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if (bytes[i] < 0x80 || bytes[i] > 0xbf)
            return 0;
    }
    return length;
}

/* How many of the bytes are UTF-8 from the start on; `count` if all are. */
static inline size_t penc_utf8_prefix(const unsigned char *bytes, size_t count) {
    size_t at = 0;
    while (at < count) {
        size_t step = penc_utf8_step(bytes + at, count - at);
        if (!step)
            break;
        at += step;
    }
    return at;
}

#endif
