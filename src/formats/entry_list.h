/* Lists of named entries in a file (keys, tensors) that are kept small: 24 bytes each, the names stay in the file.
 * A header of 100 MB may list two million tensors.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_ENTRY_LIST_H
#define PENC_ENTRY_LIST_H

#include "posenc/status.h"

typedef struct penc_entry {
    uint64_t begin, bytes; /* where its data lie in the file */
    uint32_t place; /* where the file describes it, counted from a place that the format chooses */
    uint32_t hash;  /* of its name */
} penc_entry;

enum {
    PENC_NAME_BYTES = 512
}; /* room for a name, terminating NUL included; longer names are refused */

/* Reads an entry's name again; the context knows the file. */
typedef posenc_status (*penc_entry_name)(const void *context, const penc_entry *entry,
                                         char name[PENC_NAME_BYTES], size_t *length,
                                         posenc_error *error);

/* The hash of a name. It differs from run to run where code is loaded at random addresses, so that no file can be
 * made whose names collide. */
uint32_t penc_name_hash(const char *name, size_t length);

/* Sorts by `begin`, then by `bytes`: the order of the data. */
void penc_entries_sort_by_data(penc_entry *entries, size_t count);

/* Sorts by `place`: the order of the descriptions. */
void penc_entries_sort_by_place(penc_entry *entries, size_t count);

/* Reorders the entries and looks for two of the same name: *found says whether there are such, *twin becomes the
 * one that is described later. */
posenc_status penc_entries_find_twin(penc_entry *entries, size_t count, penc_entry_name name,
                                     const void *context, int *found, penc_entry *twin,
                                     posenc_error *error);

/* The entry of this name and hash; *entry is NULL if there is none. */
posenc_status penc_entries_find(const penc_entry *entries, size_t count, const char *wanted,
                                uint32_t hash, penc_entry_name name, const void *context,
                                const penc_entry **entry, posenc_error *error);

#endif
