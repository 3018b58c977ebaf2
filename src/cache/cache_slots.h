/* Which slots tokens go to. SPDX-License-Identifier: MIT */
#ifndef PENC_CACHE_SLOTS_H
#define PENC_CACHE_SLOTS_H

#include "cache/cache_view.h"

/* Slots that have been checked, for some sequences of the same number of tokens each. */
typedef struct penc_slot_plan {
    posenc_slots slots; /* strides filled in */
    size_t batch, tokens, block_tokens;
} penc_slot_plan;

/* Checks that every slot is in the cache and that none comes up twice. `slots` may be NULL. */
posenc_status penc_plan_slots(const posenc_slots *slots, const penc_cache_view *view, size_t batch,
                              size_t tokens, penc_slot_plan *plan, posenc_error *error);

/* The slot of a token; -1: none. */
int64_t penc_slot_of(const penc_slot_plan *plan, size_t batch, size_t token);

/* The same, and how many tokens from it on, `most` at most, go to slots that follow one another in one block (1, if the
 * token has none). */
size_t penc_slot_run(const penc_slot_plan *plan, size_t batch, size_t token, size_t most,
                     int64_t *slot);

/* Checks a plain list of slots, which must be `distinct` or not; `argument` names it. */
posenc_status penc_check_slot_list(const int64_t *list, size_t count, const penc_cache_view *view,
                                   int distinct, const char *argument, posenc_error *error);

#endif
