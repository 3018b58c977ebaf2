/* Memory that is freed all at once. SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every allocation is a block of its own: a model has hundreds of parts, not millions, and a sanitizer
 * sees where each of them ends. */
struct penc_arena_block {
    penc_arena_block *next;
    max_align_t bytes[];
};

void *penc_arena_take(penc_arena *arena, size_t count, size_t size) {
    penc_arena_block *block = NULL;
    if (!arena->failed && (!size || count <= (SIZE_MAX - sizeof *block) / size))
        block = calloc(1, sizeof *block + count * size);
    if (!block) {
        arena->failed = 1;
        return NULL;
    }
    block->next = arena->blocks;
    arena->blocks = block;
    return block->bytes;
}

char *penc_arena_copy(penc_arena *arena, const char *text, size_t length) {
    char *copy = length < SIZE_MAX ? penc_arena_take(arena, length + 1, 1) : NULL;
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

char *penc_arena_print(penc_arena *arena, const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = length < 0 ? NULL : penc_arena_take(arena, (size_t)length + 1, 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void penc_arena_free(penc_arena *arena) {
    while (arena->blocks) {
        penc_arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}
