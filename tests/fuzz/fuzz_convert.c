/* Any bytes as a checkpoint that is converted, and back again. SPDX-License-Identifier: MIT */
#include "checkpoint/conversion.h"

#include "fuzz_file.h"

#include <string.h>

/* A plan for heads of 4 channels, forced; NULL where it is refused. */
static posenc_conversion *fuzz_plan(const char *path, posenc_pairing to) {
    posenc_conversion_options options = POSENC_CONVERSION_OPTIONS_INIT;
    posenc_conversion *conversion;
    posenc_error error;
    options.to = to;
    options.shape.heads = 2;
    options.shape.kv_heads = 1;
    options.shape.head_dim = 4;
    options.force = 1;
    posenc_status status = posenc_conversion_create(path, &options, &conversion, &error);
    if (!status)
        return conversion;
    fuzz_check_error(status, &error);
    FUZZ_CHECK(!conversion);
    return NULL;
}

/* The new file, as its pieces say; freed by the caller. */
static uint8_t *fuzz_apply(const posenc_conversion *conversion, const uint8_t *data, size_t size,
                           size_t *new_size) {
    penc_conversion_pieces pieces;
    posenc_error error;
    posenc_status status = penc_conversion_pieces_make(conversion, 0, &pieces, &error);
    if (status) {
        fuzz_check_error(status, &error);
        return NULL;
    }
    uint8_t *made = malloc((size_t)pieces.bytes + 1), *to = made;
    FUZZ_CHECK(made);
    for (size_t i = 0; i < pieces.count; i++) {
        const penc_piece *piece = &pieces.list[i];
        size_t bytes = (size_t)piece->bytes, row_bytes = (size_t)piece->row_bytes;
        if (piece->kind == PENC_PIECE_BYTES) {
            memcpy(to, piece->data, bytes);
        } else {
            FUZZ_CHECK(piece->place <= size && bytes <= size - piece->place);
            memcpy(to, data + piece->place, bytes);
        }
        for (size_t row = 0; piece->kind == PENC_PIECE_ROWS && row < bytes / row_bytes; row++) {
            size_t source = (size_t)piece->source_row(piece->context, row);
            FUZZ_CHECK(source < bytes / row_bytes);
            memcpy(to + row * row_bytes, data + piece->place + source * row_bytes, row_bytes);
        }
        to += bytes;
    }
    *new_size = (size_t)(to - made);
    FUZZ_CHECK(*new_size == pieces.bytes);
    penc_conversion_pieces_free(&pieces);
    return made;
}

static void fuzz_back(const uint8_t *turned, size_t turned_size, posenc_pairing to,
                      const uint8_t *data, size_t size) {
    size_t back_size;
    posenc_conversion *conversion = fuzz_plan(fuzz_file(turned, turned_size), to);
    FUZZ_CHECK(conversion);
    uint8_t *back = fuzz_apply(conversion, turned, turned_size, &back_size);
    FUZZ_CHECK(back && back_size == size && memcmp(back, data, size) == 0);
    free(back);
    posenc_conversion_free(conversion);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int to = 0; to < 2; to++) {
        size_t turned_size;
        posenc_conversion *conversion = fuzz_plan(fuzz_file(data, size), (posenc_pairing)to);
        if (!conversion)
            continue;
        int recorded = posenc_conversion_about(conversion)->recorded != 0;
        uint8_t *turned = fuzz_apply(conversion, data, size, &turned_size);
        posenc_conversion_free(conversion);
        if (turned && !recorded)
            fuzz_back(turned, turned_size, to ? POSENC_PAIRING_HALF : POSENC_PAIRING_INTERLEAVED,
                      data, size);
        free(turned);
    }
    return 0;
}
