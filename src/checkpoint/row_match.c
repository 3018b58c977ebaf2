/* Two tensors' rows, matched by hashes and verified by bytes. SPDX-License-Identifier: MIT */
#include "checkpoint/row_match.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

posenc_status penc_match_room_make(penc_match_room *room, posenc_error *error) {
    for (int i = 0; i < 2; i++)
        room->windows[i] = malloc(PENC_MATCH_WINDOW);
    return room->windows[0] && room->windows[1]
               ? POSENC_OK
               : penc_fail(error, POSENC_OUT_OF_MEMORY, "windows", "fit into memory");
}

static void penc_match_lists_free(penc_match_room *room) {
    for (int i = 0; i < 2; i++) {
        free(room->hashes[i]);
        free(room->order[i]);
        room->hashes[i] = NULL;
        room->order[i] = NULL;
    }
    room->rows = 0;
}

void penc_match_room_free(penc_match_room *room) {
    penc_match_lists_free(room);
    free(room->windows[0]);
    free(room->windows[1]);
    memset(room, 0, sizeof *room);
}

static posenc_status penc_match_lists_make(penc_match_room *room, uint64_t rows,
                                           posenc_error *error) {
    int made = 1;
    if (room->rows >= rows)
        return POSENC_OK;
    penc_match_lists_free(room);
    for (int i = 0; i < 2; i++) {
        room->hashes[i] = malloc((size_t)rows * sizeof *room->hashes[i]);
        room->order[i] = malloc((size_t)rows * sizeof *room->order[i]);
        made = made && room->hashes[i] && room->order[i];
    }
    if (!made) {
        penc_match_lists_free(room);
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "rows", "fit into memory");
    }
    room->rows = rows;
    return POSENC_OK;
}

posenc_status penc_rows_compare(const penc_row_list *a, const penc_row_list *b,
                                penc_match_room *room, int *same, posenc_error *error) {
    uint64_t bytes = a->rows * a->row_bytes;
    *same = 1;
    for (uint64_t done = 0; done < bytes && *same; done += PENC_MATCH_WINDOW) {
        size_t step = bytes - done < PENC_MATCH_WINDOW ? (size_t)(bytes - done) : PENC_MATCH_WINDOW;
        posenc_status status =
            penc_input_read(&a->file->input, a->offset + done, room->windows[0], step, error);
        if (!status)
            status =
                penc_input_read(&b->file->input, b->offset + done, room->windows[1], step, error);
        if (status)
            return status;
        *same = memcmp(room->windows[0], room->windows[1], step) == 0;
    }
    return POSENC_OK;
}

/* ---- Hashes ---- */

static uint64_t penc_hash_bytes(uint64_t hash, const unsigned char *bytes, size_t count) {
    for (; count >= 8; count -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    for (; count; count--, bytes++)
        hash = (hash ^ *bytes) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* The hashes of all rows; a row that is longer than the window is taken in parts. */
static posenc_status penc_rows_hash(const penc_row_list *list, unsigned char *window,
                                    uint64_t *hashes, posenc_error *error) {
    uint64_t bytes = list->rows * list->row_bytes, row = 0, within = 0;
    uint64_t hash = 0;
    for (uint64_t done = 0; done < bytes; done += PENC_MATCH_WINDOW) {
        size_t step = bytes - done < PENC_MATCH_WINDOW ? (size_t)(bytes - done) : PENC_MATCH_WINDOW;
        posenc_status status =
            penc_input_read(&list->file->input, list->offset + done, window, step, error);
        if (status)
            return status;
        for (size_t at = 0; at < step;) {
            uint64_t left = list->row_bytes - within;
            size_t take = step - at < left ? step - at : (size_t)left;
            hash = penc_hash_bytes(hash, window + at, take);
            at += take;
            within += take;
            if (within == list->row_bytes) {
                hashes[row++] = hash;
                hash = within = 0;
            }
        }
    }
    return POSENC_OK;
}

/* ---- The order ---- */

/* Sorts rows by hash, equal ones by number: a heap sort, since qsort takes no context and may take memory. */
static int penc_row_before(const uint64_t *hashes, uint32_t a, uint32_t b) {
    return hashes[a] != hashes[b] ? hashes[a] < hashes[b] : a < b;
}

static void penc_sift_down(const uint64_t *hashes, uint32_t *rows, size_t at, size_t count) {
    uint32_t moving = rows[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && penc_row_before(hashes, rows[child], rows[child + 1]))
            child++;
        if (!penc_row_before(hashes, moving, rows[child]))
            break;
        rows[at] = rows[child];
    }
    rows[at] = moving;
}

static void penc_sort_rows(const uint64_t *hashes, uint32_t *rows, size_t count) {
    for (size_t i = 0; i < count; i++)
        rows[i] = (uint32_t)i;
    for (size_t i = count / 2; i > 0; i--)
        penc_sift_down(hashes, rows, i - 1, count);
    for (size_t end = count; end > 1; end--) {
        uint32_t last = rows[end - 1];
        rows[end - 1] = rows[0];
        rows[0] = last;
        penc_sift_down(hashes, rows, 0, end - 1);
    }
}

/* Makes room->order[0][i] a row of A that is row room->order[1][i] of B; 0 if the rows are not the same. */
static int penc_rows_pair_up(penc_match_room *room, size_t rows) {
    uint32_t *a = room->order[0], *b = room->order[1];
    const uint64_t *of_a = room->hashes[0], *of_b = room->hashes[1];
    penc_sort_rows(of_a, a, rows);
    penc_sort_rows(of_b, b, rows);
    for (size_t i = 0; i < rows; i++) {
        if (of_a[a[i]] != of_b[b[i]])
            return 0;
    }
    return 1;
}

/* From pairs (a[i], b[i]) to the list by b: order[0][b[i]] = a[i]. Rows that are alike at the same place stay there:
 * of equal rows any is as good as the other. */
static void penc_rows_by_target(penc_match_room *room, size_t rows) {
    uint32_t *a = room->order[0], *b = room->order[1];
    for (size_t i = 0; i < rows; i++) {
        while (b[i] != i) { /* follow the cycle: brings every pair to the place of its b */
            size_t to = b[i];
            uint32_t kept_a = a[to], kept_b = b[to];
            a[to] = a[i];
            b[to] = b[i];
            a[i] = kept_a;
            b[i] = kept_b;
        }
    }
    for (size_t i = 0; i < rows; i++) {
        if (room->hashes[0][i] == room->hashes[1][i])
            a[i] = (uint32_t)i;
    }
}

/* ---- Its name ---- */

static int penc_rows_are(const penc_match_room *room, const penc_row_order *order, uint64_t period,
                         uint64_t rows) {
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t base = row / period * period;
        if (room->hashes[1][row] != room->hashes[0][base + penc_row_source(order, row - base)])
            return 0;
    }
    return 1;
}

/* The distance from head to head over all sides; 0 where it varies. */
static uint64_t penc_order_stride(const penc_row_order *order) {
    uint64_t stride = 0, last = 0;
    size_t seen = 0;
    for (size_t i = 0; i < order->side_count; i++) {
        for (size_t head = 0; head < order->sides[i].heads; head++, seen++) {
            uint64_t first = penc_head_rows_of(&order->sides[i], head);
            if (seen && stride && first - last != stride)
                return 0;
            if (seen)
                stride = first - last;
            last = first;
        }
    }
    return stride;
}

/* Tries the known order in both directions. */
static int penc_name_known(const penc_match_room *room, const penc_row_order *known,
                           uint64_t period, uint64_t rows, penc_row_match *match) {
    penc_row_order order = *known;
    for (int to = POSENC_PAIRING_INTERLEAVED; to >= POSENC_PAIRING_HALF; to--) {
        order.to = (posenc_pairing)to;
        if (!penc_rows_are(room, &order, period, rows))
            continue;
        match->named = 1;
        match->to = order.to;
        match->rotary_dim = order.sides[0].rotary_dim;
        match->first = order.sides[0].first;
        match->stride = penc_order_stride(&order);
        for (size_t i = 0; i < order.side_count; i++)
            match->heads += order.sides[i].heads;
        for (uint64_t row = 0; row < rows; row++) {
            uint64_t base = row / period * period;
            room->order[0][row] = (uint32_t)(base + penc_row_source(&order, row - base));
        }
        return 1;
    }
    return 0;
}

/* Half of the rotary rows of a head that begins at `start`, if its second row is the first one that moved. */
static uint64_t penc_guess_half(const uint32_t *source, uint64_t rows, uint64_t start,
                                posenc_pairing to) {
    uint64_t moved = start + 1;
    if (to == POSENC_PAIRING_INTERLEAVED)
        return source[moved] > moved ? source[moved] - start : 0;
    for (uint64_t row = moved + 1; row < rows; row++) {
        if (source[row] == moved)
            return row - start;
    }
    return 0;
}

/* Whether the rows from `start` on are one head's. */
static int penc_block_is(const uint32_t *source, uint64_t rows, uint64_t start, uint64_t half,
                         posenc_pairing to) {
    penc_row_order order = {.sides = {{.first = start,
                                       .group_rows = 2 * half,
                                       .head_rows = 2 * half,
                                       .heads = 1,
                                       .group = 1,
                                       .rotary_dim = (size_t)(2 * half)}},
                            .side_count = 1,
                            .to = to};
    if (half < 2 || half > (rows - start) / 2)
        return 0;
    for (uint64_t row = start; row < start + 2 * half; row++) {
        if (source[row] != penc_row_source(&order, row))
            return 0;
    }
    return 1;
}

/* Reads the order as heads that lie one after the other, all turned the same way. */
static int penc_name_blocks(const uint32_t *source, uint64_t rows, posenc_pairing to,
                            penc_row_match *match) {
    uint64_t half = 0, last = 0;
    penc_row_match found = {.named = 1, .to = to};
    for (uint64_t row = 0; row < rows;) {
        if (source[row] == row) {
            row++;
            continue;
        }
        if (!row)
            return 0;
        uint64_t start = row - 1;
        if (!half)
            half = penc_guess_half(source, rows, start, to);
        if (!penc_block_is(source, rows, start, half, to))
            return 0;
        if (!found.heads)
            found.first = start;
        else if (found.heads == 1)
            found.stride = start - last;
        else if (start - last != found.stride)
            found.stride = 0;
        found.heads++;
        last = start;
        row = start + 2 * half;
    }
    found.rotary_dim = (size_t)(2 * half);
    found.order = match->order;
    found.moved = match->moved;
    *match = found;
    return 1;
}

/* ---- Bytes ---- */

/* Whether row `a` of A is row `b` of B. */
static posenc_status penc_row_verify(const penc_row_list *list_a, uint64_t a,
                                     const penc_row_list *list_b, uint64_t b, penc_match_room *room,
                                     int *same, posenc_error *error) {
    penc_row_list one = *list_a, other = *list_b;
    one.offset += a * one.row_bytes;
    other.offset += b * other.row_bytes;
    one.rows = other.rows = 1;
    return penc_rows_compare(&one, &other, room, same, error);
}

static posenc_status penc_rows_verify(const penc_row_list *a, const penc_row_list *b,
                                      penc_match_room *room, int *same, posenc_error *error) {
    uint64_t bytes = a->rows * a->row_bytes;
    posenc_status status = POSENC_OK;
    *same = 1;
    if (bytes > PENC_MATCH_WINDOW) {
        for (uint64_t row = 0; row < a->rows && *same && !status; row++)
            status = penc_row_verify(a, room->order[0][row], b, row, room, same, error);
        return status;
    }
    status = penc_input_read(&a->file->input, a->offset, room->windows[0], (size_t)bytes, error);
    if (!status)
        status =
            penc_input_read(&b->file->input, b->offset, room->windows[1], (size_t)bytes, error);
    for (uint64_t row = 0; row < a->rows && *same && !status; row++)
        *same = memcmp(room->windows[0] + room->order[0][row] * a->row_bytes,
                       room->windows[1] + row * b->row_bytes, (size_t)a->row_bytes) == 0;
    return status;
}

/* ---- The whole ---- */

static uint64_t penc_rows_moved(const uint32_t *source, uint64_t rows) {
    uint64_t moved = 0;
    for (uint64_t row = 0; row < rows; row++)
        moved += source[row] != row;
    return moved;
}

posenc_status penc_rows_match(const penc_row_list *a, const penc_row_list *b,
                              const penc_row_order *known, uint64_t period, penc_match_room *room,
                              penc_row_match *match, posenc_error *error) {
    memset(match, 0, sizeof *match);
    if (!a->rows || a->rows > PENC_MATCH_MAX_ROWS)
        return POSENC_OK;
    posenc_status status = penc_match_lists_make(room, a->rows, error);
    if (!status)
        status = penc_rows_hash(a, room->windows[0], room->hashes[0], error);
    if (!status)
        status = penc_rows_hash(b, room->windows[1], room->hashes[1], error);
    if (status || !penc_rows_pair_up(room, (size_t)a->rows))
        return status;
    penc_rows_by_target(room, (size_t)a->rows);
    int is_known = known && penc_name_known(room, known, period, a->rows, match);
    match->moved = penc_rows_moved(room->order[0], a->rows);
    if (!is_known && !penc_name_blocks(room->order[0], a->rows, POSENC_PAIRING_INTERLEAVED, match))
        (void)penc_name_blocks(room->order[0], a->rows, POSENC_PAIRING_HALF, match);
    return penc_rows_verify(a, b, room, &match->order, error);
}
