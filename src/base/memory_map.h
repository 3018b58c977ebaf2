/* Which bytes a strided array touches, and proofs from strides alone that bytes are not shared.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_MEMORY_MAP_H
#define PENC_MEMORY_MAP_H

#include <stddef.h>

#define PENC_MAP_AXES 4

/* The axes of more than one element, strides in bytes, largest magnitude first; the bytes touched
 * lie in [low, high) relative to the data pointer. */
typedef struct penc_memory_map {
    int axes;
    size_t element; /* bytes of an element */
    size_t count[PENC_MAP_AXES];
    ptrdiff_t stride[PENC_MAP_AXES];
    ptrdiff_t low, high;
} penc_memory_map;

/* Maps an array of `axes` (at most PENC_MAP_AXES) axes, strides in elements. An array without
 * elements has low = high. Returns 0 if a size or an offset does not fit the address space. */
int penc_map_array(penc_memory_map *map, size_t element, int axes, const size_t *count,
                   const ptrdiff_t *stride);

/* 1 if the array's bytes, at this address, do not run over either end of the address space. */
int penc_map_fits_at(const penc_memory_map *map, const void *data);

/* 1 if the strides prove that no two elements share a byte. */
int penc_map_writes_once(const penc_memory_map *map);

/* 1 if the strides prove that the two arrays at these addresses share no byte. */
int penc_maps_disjoint(const penc_memory_map *a, const void *a_data, const penc_memory_map *b,
                       const void *b_data);

#endif
