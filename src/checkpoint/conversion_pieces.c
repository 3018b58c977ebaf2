/* The pieces of a converted file. SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "checkpoint/conversion.h"

#include <stdlib.h>
#include <string.h>

size_t penc_conversion_files(const posenc_conversion *conversion) {
    return penc_tensor_set_files(conversion->set);
}

const char *penc_conversion_path(const posenc_conversion *conversion, size_t file) {
    return penc_tensor_set_file(conversion->set, file)->input.path;
}

/* The first move of a file or of one behind it. */
static size_t penc_first_move(const posenc_conversion *conversion, size_t file) {
    size_t low = 0, high = conversion->moves.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (conversion->moves.list[middle].file < file)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t penc_conversion_moves_of(const posenc_conversion *conversion, size_t file) {
    return penc_first_move(conversion, file + 1) - penc_first_move(conversion, file);
}

static uint64_t penc_move_source(const void *context, uint64_t row) {
    const penc_move *move = context;
    uint64_t base = row / move->period * move->period;
    return base + penc_row_source(&move->order, row - base);
}

/* ---- The header ---- */

static posenc_status penc_header_edits_of(const posenc_conversion *conversion, size_t file,
                                          penc_header_edits *edits, posenc_error *error) {
    const penc_gguf *gguf = penc_tensor_set_gguf(conversion->set, file);
    const penc_safetensors *safetensors = penc_tensor_set_safetensors(conversion->set, file);
    char record[PENC_MAX_HEADER_TEXT];
    int puts = conversion->facts.records;
    if (!penc_conversion_moves_of(conversion, file))
        return POSENC_OK;
    penc_conversion_record(conversion, file, conversion->facts.to, record);
    if (gguf)
        return puts ? penc_gguf_put_text(gguf, PENC_RECORD_KEY, record, edits, error)
                    : penc_gguf_drop_text(gguf, PENC_RECORD_KEY, edits, error);
    if (safetensors)
        return puts ? penc_safetensors_put_text(safetensors, PENC_RECORD_KEY, record, edits, error)
                    : penc_safetensors_drop_text(safetensors, PENC_RECORD_KEY, edits, error);
    return POSENC_OK;
}

/* ---- The pieces ---- */

/* What is being built, and how far the old file is used up. */
typedef struct penc_builder {
    penc_conversion_pieces *pieces;
    uint64_t at;
} penc_builder;

static void penc_build_add(penc_builder *builder, const penc_piece *piece) {
    if (!piece->bytes)
        return;
    builder->pieces->list[builder->pieces->count++] = *piece;
    builder->pieces->bytes += piece->bytes;
}

static void penc_build_copy(penc_builder *builder, uint64_t until) {
    penc_piece copy = {.kind = PENC_PIECE_COPY, .place = builder->at, .bytes = until - builder->at};
    penc_build_add(builder, &copy);
    builder->at = until;
}

static void penc_build_edit(penc_builder *builder, const penc_header_edit *edit) {
    penc_build_copy(builder, edit->place);
    penc_piece piece = {.kind = PENC_PIECE_BYTES, .bytes = edit->count, .data = edit->bytes};
    penc_build_add(builder, &piece);
    builder->at = edit->place + edit->removed;
}

static void penc_build_move(penc_builder *builder, const penc_move *move) {
    penc_build_copy(builder, move->offset);
    penc_piece piece = {.kind = PENC_PIECE_ROWS,
                        .place = move->offset,
                        .bytes = move->bytes,
                        .row_bytes = move->row_bytes,
                        .source_row = penc_move_source,
                        .context = move};
    penc_build_add(builder, &piece);
    builder->at = move->offset + move->bytes;
}

posenc_status penc_conversion_pieces_make(const posenc_conversion *conversion, size_t file,
                                          penc_conversion_pieces *pieces, posenc_error *error) {
    const penc_tensor_source *source = penc_tensor_set_file(conversion->set, file);
    size_t first = penc_first_move(conversion, file), end = penc_first_move(conversion, file + 1);
    memset(pieces, 0, sizeof *pieces);
    posenc_status status = penc_header_edits_of(conversion, file, &pieces->edits, error);
    pieces->list =
        status ? NULL
               : malloc((2 * (end - first) + 2 * PENC_MAX_HEADER_EDITS + 2) * sizeof *pieces->list);
    if (!status && !pieces->list)
        status = penc_fail(error, POSENC_OUT_OF_MEMORY, "pieces", "fit into memory");
    if (status) {
        penc_conversion_pieces_free(pieces);
        return status;
    }
    penc_builder builder = {pieces, 0};
    for (size_t i = 0; i < pieces->edits.count; i++)
        penc_build_edit(&builder, &pieces->edits.list[i]);
    for (size_t i = first; i < end; i++)
        penc_build_move(&builder, &conversion->moves.list[i]);
    penc_build_copy(&builder, source->input.size);
    return POSENC_OK;
}

void penc_conversion_pieces_free(penc_conversion_pieces *pieces) {
    free(pieces->list);
    penc_header_edits_free(&pieces->edits);
    memset(pieces, 0, sizeof *pieces);
}

posenc_status penc_conversion_file(const posenc_conversion *conversion, size_t file,
                                   const char *target, const penc_rewrite_progress *progress,
                                   posenc_error *error) {
    penc_conversion_pieces pieces;
    posenc_status status = penc_conversion_pieces_make(conversion, file, &pieces, error);
    if (status)
        return status;
    status = penc_file_rewrite(&penc_tensor_set_file(conversion->set, file)->input, target,
                               pieces.list, pieces.count, progress, error);
    penc_conversion_pieces_free(&pieces);
    return status;
}
