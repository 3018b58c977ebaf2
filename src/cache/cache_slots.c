/* Which slots tokens go to, and that none is named twice. SPDX-License-Identifier: MIT */
#include "cache/cache_slots.h"

#include "base/checked.h"
#include "base/struct_size.h"

#include <string.h>

int64_t penc_slot_of(const penc_slot_plan *plan, size_t batch, size_t token) {
    const posenc_slots *s = &plan->slots;
    if (s->slot_ids)
        return s->slot_ids[(ptrdiff_t)batch * s->slot_ids_stride + (ptrdiff_t)token];
    size_t place = (s->starts ? (size_t)s->starts[batch] : 0) + token;
    size_t block = place / plan->block_tokens;
    int64_t number = (int64_t)batch;
    if (s->block_table)
        number = s->block_table[(ptrdiff_t)batch * s->block_table_stride + (ptrdiff_t)block];
    return number * (int64_t)plan->block_tokens + (int64_t)(place % plan->block_tokens);
}

size_t penc_slot_run(const penc_slot_plan *plan, size_t batch, size_t token, size_t most,
                     int64_t *slot) {
    const posenc_slots *s = &plan->slots;
    *slot = penc_slot_of(plan, batch, token);
    if (*slot < 0)
        return 1;
    size_t left = plan->block_tokens - (size_t)*slot % plan->block_tokens, run = 1;
    left = left < most ? left : most;
    if (!s->slot_ids)
        return left;
    const int64_t *ids = s->slot_ids + (ptrdiff_t)batch * s->slot_ids_stride + (ptrdiff_t)token;
    while (run < left && ids[run] == *slot + (int64_t)run)
        run++;
    return run;
}

/* --- Named twice ---------------------------------------------------------------------------------- */

static int64_t penc_slot_at(const penc_slot_plan *plan, size_t index) {
    return penc_slot_of(plan, index / plan->tokens, index % plan->tokens);
}

/* The slot of an index, and how many from it on follow one another. */
static size_t penc_run_at(const penc_slot_plan *plan, size_t index, int64_t *slot) {
    size_t token = index % plan->tokens;
    return penc_slot_run(plan, index / plan->tokens, token, plan->tokens - token, slot);
}

static posenc_status penc_fail_twice(int64_t slot, size_t index, const char *argument,
                                     posenc_error *error) {
    penc_fail_integer(error, argument, slot, "name every slot once");
    penc_fail_place(error, "index", (int64_t)index);
    return POSENC_OUT_OF_RANGE;
}

/* Marks slots first ... first + 64 * words - 1 as they come up. Returns the index of one that comes again, else
 * `count`. */
static size_t penc_find_again(const penc_slot_plan *plan, size_t count, int64_t first,
                              uint64_t *marks, size_t words) {
    memset(marks, 0, words * sizeof *marks);
    for (size_t i = 0, run; i < count; i += run) {
        int64_t slot;
        run = penc_run_at(plan, i, &slot);
        for (size_t k = 0; slot >= 0 && k < run; k++) {
            uint64_t at = (uint64_t)slot + k - (uint64_t)first;
            if (at >= 64 * words)
                continue;
            uint64_t mark = UINT64_C(1) << at % 64;
            if (marks[at / 64] & mark)
                return i + k;
            marks[at / 64] |= mark;
        }
    }
    return count;
}

/* Lists that rise, as most do, need one look. The others are marked in a piece of memory of this call, as many slots at
 * a time as it has bits. */
static posenc_status penc_check_distinct(const penc_slot_plan *plan, size_t count,
                                         const char *argument, posenc_error *error) {
    enum { WORDS = 2048 };
    uint64_t marks[WORDS];
    int64_t least = INT64_MAX, most = -1, before = -1;
    int rises = 1;
    for (size_t i = 0, run; i < count; i += run) {
        int64_t slot;
        run = penc_run_at(plan, i, &slot);
        if (slot < 0)
            continue;
        rises = rises && slot > before;
        before = slot + (int64_t)run - 1;
        least = slot < least ? slot : least;
        most = before > most ? before : most;
    }
    if (rises)
        return POSENC_OK;
    for (int64_t first = least; first <= most; first += 64 * WORDS) {
        size_t left = (size_t)(most - first) / 64 + 1;
        size_t again = penc_find_again(plan, count, first, marks, left < WORDS ? left : WORDS);
        if (again < count)
            return penc_fail_twice(penc_slot_at(plan, again), again, argument, error);
    }
    return POSENC_OK;
}

/* --- Checks --------------------------------------------------------------------------------------- */

/* `padding`: -1 is allowed. */
static posenc_status penc_check_ids(const int64_t *ids, size_t count, size_t first,
                                    const penc_cache_view *view, int padding, const char *argument,
                                    posenc_error *error) {
    for (size_t i = 0; i < count; i++) {
        if ((padding && ids[i] == -1) || (ids[i] >= 0 && (uint64_t)ids[i] < view->slots))
            continue;
        return penc_fail_listed(error, argument, ids[i],
                                padding ? "be a slot of the cache, or -1"
                                        : "be a slot of the cache",
                                "slots", view->slots, first + i);
    }
    return POSENC_OK;
}

/* The blocks that sequence n's tokens go to. */
static posenc_status penc_check_blocks(const penc_slot_plan *plan, const penc_cache_view *view,
                                       size_t n, posenc_error *error) {
    const posenc_slots *s = &plan->slots;
    int64_t start = s->starts ? s->starts[n] : 0;
    uint64_t room = (uint64_t)(s->block_table ? s->table_blocks : 1) * plan->block_tokens;
    if (start < 0 || (uint64_t)start > room || plan->tokens > room - (uint64_t)start)
        return penc_fail_listed(error, "slots.starts", start,
                                "leave room for the tensor's tokens in the sequence's blocks",
                                "tokens that they hold", room, n);
    if (!s->block_table && n >= view->cache.blocks) {
        penc_fail_size(error, "cache.blocks", view->cache.blocks,
                       "be one for each sequence where there is no block table");
        penc_fail_limit(error, "sequences", plan->batch);
        return POSENC_OUT_OF_RANGE;
    }
    for (uint64_t b = (uint64_t)start / plan->block_tokens;
         s->block_table && b * plan->block_tokens < (uint64_t)start + plan->tokens; b++) {
        ptrdiff_t at = (ptrdiff_t)n * s->block_table_stride + (ptrdiff_t)b;
        int32_t block = s->block_table[at];
        if (block < 0 || (size_t)block >= view->cache.blocks)
            return penc_fail_listed(error, "slots.block_table", block, "be a block of the cache",
                                    "blocks", view->cache.blocks, (size_t)at);
    }
    return POSENC_OK;
}

posenc_status penc_plan_slots(const posenc_slots *slots, const penc_cache_view *view, size_t batch,
                              size_t tokens, penc_slot_plan *plan, posenc_error *error) {
    static const posenc_slots none = POSENC_SLOTS_INIT;
    posenc_status status =
        slots ? penc_check_struct(slots, sizeof *slots, "slots", error) : POSENC_OK;
    if (status)
        return status;
    *plan = (penc_slot_plan){slots ? *slots : none, batch, tokens, view->cache.block_tokens};
    posenc_slots *s = &plan->slots;
    if (s->slot_ids && (s->starts || s->block_table))
        return penc_fail(error, POSENC_UNSUPPORTED, "slots.slot_ids",
                         "not be given together with starts or a block table");
    if (s->block_table && !s->table_blocks)
        return penc_fail_size(error, "slots.table_blocks", 0, "be given with a block table");
    if (s->slot_ids_stride == 0)
        s->slot_ids_stride = (ptrdiff_t)tokens;
    if (s->block_table_stride == 0)
        s->block_table_stride = (ptrdiff_t)s->table_blocks;
    for (size_t n = 0; n < batch && tokens; n++) {
        status = s->slot_ids ? penc_check_ids(s->slot_ids + (ptrdiff_t)n * s->slot_ids_stride,
                                              tokens, n * tokens, view, 1, "slots.slot_ids", error)
                             : penc_check_blocks(plan, view, n, error);
        if (status)
            return status;
    }
    /* Sequences with a block each cannot meet. */
    if (!s->slot_ids && !s->block_table)
        return POSENC_OK;
    return penc_check_distinct(plan, batch * tokens,
                               s->slot_ids ? "slots.slot_ids" : "slots.block_table", error);
}

posenc_status penc_check_slot_list(const int64_t *list, size_t count, const penc_cache_view *view,
                                   int distinct, const char *argument, posenc_error *error) {
    if (count && !list)
        return penc_fail_null(error, argument);
    posenc_status status = penc_check_ids(list, count, 0, view, 0, argument, error);
    if (status || !distinct)
        return status;
    penc_slot_plan plan = {
        .slots = {.slot_ids = list}, .tokens = count, .block_tokens = view->cache.block_tokens};
    return penc_check_distinct(&plan, count, argument, error);
}
