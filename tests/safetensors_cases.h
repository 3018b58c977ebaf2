/* safetensors files built by hand. SPDX-License-Identifier: MIT */
#ifndef SAFETENSORS_CASES_H
#define SAFETENSORS_CASES_H

#include "file_cases.h"

/* A file of this header and `data` bytes 0, 1, 2 ... after it; where ^ stands in the header is *place, and it is left
 * out. */
static inline void write_safetensors(const char *path, const char *header, size_t data,
                                     int64_t *place) {
    const char *mark = strchr(header, '^');
    image f = {NULL, 0, 0, 0};
    add_number(&f, strlen(header) - (mark != NULL), 8);
    if (place)
        *place = mark ? 8 + (mark - header) : -1;
    if (mark) {
        add_bytes(&f, header, (size_t)(mark - header));
        header = mark + 1;
    }
    add_bytes(&f, header, strlen(header));
    for (size_t i = 0; i < data; i++)
        add_number(&f, i, 1);
    write_file(path, f.bytes, f.size);
    image_free(&f);
}

#endif
