/* Memory that is freed all at once: what belongs to one object with many small parts.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_ARENA_H
#define PENC_ARENA_H

#include <stddef.h>

typedef struct penc_arena_block penc_arena_block;

/* Starts as {0}. Once an allocation has failed, `failed` stays 1 and all further ones return NULL. */
typedef struct penc_arena {
    penc_arena_block *blocks;
    int failed;
} penc_arena;

/* Zeroed memory for `count` things of `size` bytes (0 bytes are given a pointer too); NULL: no memory. */
void *penc_arena_take(penc_arena *arena, size_t count, size_t size);

/* A copy of `length` bytes with a NUL behind it. */
char *penc_arena_copy(penc_arena *arena, const char *text, size_t length);

/* The text that printf would make. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
char *
penc_arena_print(penc_arena *arena, const char *format, ...);

void penc_arena_free(penc_arena *arena);

#endif
