/* Rows in another order: read as they lie, written by one call from where they are in memory.
 * SPDX-License-Identifier: MIT */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* struct iovec */
#endif
#include "formats/rewriter.h"

enum {
    PENC_REWRITE_LONG_RUN = 1 << 20
}; /* bytes that stay together and are worth a copy of their own */

/* Rows of the new piece, and the rows of the old one between which all of them lie. */
typedef struct penc_batch {
    uint64_t first, count;
    uint64_t low, high;
    size_t parts; /* runs of neighbours */
} penc_batch;

static uint64_t penc_batch_span(const penc_batch *batch) {
    return batch->high - batch->low + 1;
}

/* How many rows from `row` on are neighbours in the old piece too. */
static uint64_t penc_rows_run(const penc_piece *piece, uint64_t row, uint64_t rows) {
    uint64_t from = piece->source_row(piece->context, row), run = 1;
    while (row + run < rows && piece->source_row(piece->context, row + run) == from + run)
        run++;
    return run;
}

/* Rows from `first` on that lie within `window` rows of the old piece: such that no row of the old piece is read
 * twice, if there are enough of those, as where whole heads fit. */
static penc_batch penc_rows_batch(const penc_piece *piece, uint64_t first, uint64_t rows,
                                  uint64_t window) {
    penc_batch batch = {first, 0, UINT64_MAX, 0, 0}, whole = batch;
    uint64_t last = UINT64_MAX - 1;
    for (uint64_t row = first; row < rows; row++) {
        penc_batch longer = batch;
        uint64_t from = piece->source_row(piece->context, row);
        longer.low = from < batch.low ? from : batch.low;
        longer.high = from > batch.high ? from : batch.high;
        longer.parts += from != last + 1;
        longer.count++;
        if (penc_batch_span(&longer) > window || longer.parts > PENC_REWRITE_PARTS)
            break;
        batch = longer;
        last = from;
        if (penc_batch_span(&batch) == batch.count)
            whole = batch;
    }
    return 2 * whole.count > batch.count ? whole : batch;
}

/* Makes the parts of a batch whose old rows stand in the window. */
static void penc_rows_gather(const penc_rewriter *rewriter, const penc_piece *piece,
                             const penc_batch *batch) {
    struct iovec *part = rewriter->parts - 1;
    uint64_t last = UINT64_MAX - 1;
    for (uint64_t i = 0; i < batch->count; i++) {
        uint64_t from = piece->source_row(piece->context, batch->first + i);
        if (from != last + 1)
            *++part = (struct iovec){rewriter->window + (from - batch->low) * piece->row_bytes, 0};
        part->iov_len += (size_t)piece->row_bytes;
        last = from;
    }
}

static posenc_status penc_rows_move(penc_rewriter *rewriter, const penc_piece *piece,
                                    const penc_batch *batch) {
    uint64_t place = piece->place + batch->low * piece->row_bytes;
    uint64_t bytes = penc_batch_span(batch) * piece->row_bytes;
    if (penc_rewrite_hole(rewriter, place, bytes) == bytes)
        return penc_rewrite_advance(rewriter, batch->count * piece->row_bytes);
    posenc_status status =
        penc_input_read(rewriter->source, place, rewriter->window, (size_t)bytes, rewriter->error);
    if (status)
        return status;
    penc_rows_gather(rewriter, piece, batch);
    return penc_rewrite_parts(rewriter, batch->parts);
}

posenc_status penc_rewrite_rows(penc_rewriter *rewriter, const penc_piece *piece) {
    uint64_t rows = piece->bytes / piece->row_bytes;
    uint64_t window = PENC_REWRITE_WINDOW / piece->row_bytes;
    posenc_status status = POSENC_OK;
    for (uint64_t row = 0; row < rows && !status;) {
        uint64_t run = penc_rows_run(piece, row, rows);
        penc_batch batch = penc_rows_batch(piece, row, rows, window);
        /* Long runs; and rows that fill no window well are not worth reading what lies between them. */
        if (run * piece->row_bytes >= PENC_REWRITE_LONG_RUN ||
            batch.count < penc_batch_span(&batch) / 2 || !batch.count) {
            uint64_t from = piece->source_row(piece->context, row);
            status = penc_rewrite_copy(rewriter, piece->place + from * piece->row_bytes,
                                       run * piece->row_bytes);
            row += run;
        } else {
            status = penc_rows_move(rewriter, piece, &batch);
            row += batch.count;
        }
    }
    return status;
}
