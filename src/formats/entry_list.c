/* Sorting in place (qsort may take as much memory again) and looking up by name.
 * SPDX-License-Identifier: MIT */
#include "formats/entry_list.h"

#include <string.h>

uint32_t penc_name_hash(const char *name, size_t length) {
    uint64_t hash = (uintptr_t)penc_name_hash ^ UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0xd6e8feb86659fd93);
        hash ^= hash >> 32;
    }
    return (uint32_t)(hash ^ hash >> 32);
}

/* What a comparison may need, and what it met: a fault, or two of the same name. After that everything is
 * equal, so that the sort ends soon. */
typedef struct penc_order {
    int (*before)(struct penc_order *order, const penc_entry *a, const penc_entry *b);
    penc_entry_name name;
    const void *context;
    posenc_error *error;
    posenc_status status;
    int twins;
    penc_entry twin;
} penc_order;

static int penc_before_by_data(penc_order *order, const penc_entry *a, const penc_entry *b) {
    (void)order;
    return a->begin != b->begin ? a->begin < b->begin : a->bytes < b->bytes;
}

static int penc_before_by_place(penc_order *order, const penc_entry *a, const penc_entry *b) {
    (void)order;
    return a->place < b->place;
}

static int penc_before_by_name(penc_order *order, const penc_entry *a, const penc_entry *b) {
    char first[PENC_NAME_BYTES], second[PENC_NAME_BYTES];
    size_t length;
    if (a->hash != b->hash)
        return a->hash < b->hash;
    if (order->status || order->twins)
        return 0;
    order->status = order->name(order->context, a, first, &length, order->error);
    if (!order->status)
        order->status = order->name(order->context, b, second, &length, order->error);
    if (order->status)
        return 0;
    int compared = strcmp(first, second);
    if (compared == 0) {
        order->twins = 1;
        order->twin = a->place > b->place ? *a : *b;
    }
    return compared < 0;
}

static void penc_swap_entries(penc_entry *a, penc_entry *b) {
    penc_entry kept = *a;
    *a = *b;
    *b = kept;
}

/* Lets entries[at] of the heap sink to its place. */
static void penc_sink(penc_entry *entries, size_t count, size_t at, penc_order *order) {
    for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && order->before(order, &entries[child], &entries[child + 1]))
            child++;
        if (!order->before(order, &entries[at], &entries[child]))
            break;
        penc_swap_entries(&entries[at], &entries[child]);
        at = child;
    }
}

static int penc_is_sorted(const penc_entry *entries, size_t count, penc_order *order) {
    for (size_t i = 1; i < count; i++) {
        if (order->before(order, &entries[i], &entries[i - 1]))
            return 0;
    }
    return 1;
}

static void penc_sort(penc_entry *entries, size_t count, penc_order *order) {
    if (penc_is_sorted(entries, count, order)) /* as most files are */
        return;
    for (size_t i = count / 2; i > 0; i--)
        penc_sink(entries, count, i - 1, order);
    for (size_t end = count - 1; end > 0; end--) {
        penc_swap_entries(&entries[0], &entries[end]);
        penc_sink(entries, end, 0, order);
    }
}

void penc_entries_sort_by_data(penc_entry *entries, size_t count) {
    penc_order order = {.before = penc_before_by_data};
    penc_sort(entries, count, &order);
}

void penc_entries_sort_by_place(penc_entry *entries, size_t count) {
    penc_order order = {.before = penc_before_by_place};
    penc_sort(entries, count, &order);
}

posenc_status penc_entries_find_twin(penc_entry *entries, size_t count, penc_entry_name name,
                                     const void *context, int *found, penc_entry *twin,
                                     posenc_error *error) {
    penc_order order = {penc_before_by_name, name, context, error, POSENC_OK, 0, {0, 0, 0, 0}};
    penc_sort(entries, count, &order);
    *found = order.twins;
    *twin = order.twin;
    return order.status;
}

posenc_status penc_entries_find(const penc_entry *entries, size_t count, const char *wanted,
                                uint32_t hash, penc_entry_name name, const void *context,
                                const penc_entry **entry, posenc_error *error) {
    char found[PENC_NAME_BYTES];
    size_t length;
    *entry = NULL;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].hash != hash)
            continue;
        posenc_status status = name(context, &entries[i], found, &length, error);
        if (status)
            return status;
        if (strcmp(found, wanted) == 0) {
            *entry = &entries[i];
            return POSENC_OK;
        }
    }
    return POSENC_OK;
}
