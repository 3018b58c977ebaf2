/* Whether a file is what a rewriting would make. SPDX-License-Identifier: MIT */
#include "formats/rewrite_check.h"

#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    PENC_CHECK_SAMPLE = 64 << 10,
    PENC_CHECK_STEP = 16 << 20,
    PENC_CHECK_RUNS = 64 /* rows of a sample at most */
};

typedef struct penc_check {
    const penc_input *source, *target;
    uint64_t place; /* of the new file: where the piece begins */
    unsigned char *old, *now;
    posenc_error *error;
    int differs;
} penc_check;

/* Where byte `at` of the new piece stands in the old file, and how many after it follow there too, `bytes` at most. */
static uint64_t penc_check_source(const penc_piece *piece, uint64_t at, size_t *bytes) {
    if (piece->kind == PENC_PIECE_COPY)
        return piece->place + at;
    uint64_t row = at / piece->row_bytes, inside = at % piece->row_bytes;
    if (piece->row_bytes - inside < *bytes)
        *bytes = (size_t)(piece->row_bytes - inside);
    return piece->place + piece->source_row(piece->context, row) * piece->row_bytes + inside;
}

/* Compares up to a sample's bytes at byte `at` of a piece. */
static posenc_status penc_check_run(penc_check *check, const penc_piece *piece, uint64_t at,
                                    size_t *bytes) {
    const unsigned char *wanted = check->old;
    posenc_status status = POSENC_OK;
    if (piece->kind == PENC_PIECE_BYTES)
        wanted = (const unsigned char *)piece->data + at;
    else {
        uint64_t place = penc_check_source(piece, at, bytes);
        status = penc_input_read(check->source, place, check->old, *bytes, check->error);
    }
    if (!status)
        status =
            penc_input_read(check->target, check->place + at, check->now, *bytes, check->error);
    if (!status && memcmp(wanted, check->now, *bytes) != 0)
        check->differs = 1;
    return status;
}

static posenc_status penc_check_sample(penc_check *check, const penc_piece *piece, uint64_t at) {
    uint64_t end = piece->bytes - at < PENC_CHECK_SAMPLE ? piece->bytes : at + PENC_CHECK_SAMPLE;
    posenc_status status = POSENC_OK;
    for (int run = 0; run < PENC_CHECK_RUNS && at < end && !status && !check->differs; run++) {
        size_t bytes = (size_t)(end - at);
        status = penc_check_run(check, piece, at, &bytes);
        at += bytes;
    }
    return status;
}

static posenc_status penc_check_pieces(penc_check *check, const penc_piece *pieces, size_t count) {
    posenc_status status = POSENC_OK;
    for (size_t i = 0; i < count; i++) {
        uint64_t step = pieces[i].kind == PENC_PIECE_BYTES ? PENC_CHECK_SAMPLE : PENC_CHECK_STEP;
        for (uint64_t at = 0; at < pieces[i].bytes && !status && !check->differs; at += step)
            status = penc_check_sample(check, &pieces[i], at);
        check->place += pieces[i].bytes;
    }
    return status;
}

static posenc_status penc_check_target(const penc_input *source, const penc_input *target,
                                       const penc_piece *pieces, size_t count, int *is,
                                       posenc_error *error) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += pieces[i].bytes;
    if (total != target->size)
        return POSENC_OK;
    unsigned char *memory = malloc(2 * PENC_CHECK_SAMPLE);
    if (!memory)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "file", "be compared in 128 KiB of memory");
    penc_check check = {source, target, 0, memory, memory + PENC_CHECK_SAMPLE, error, 0};
    posenc_status status = penc_check_pieces(&check, pieces, count);
    free(memory);
    *is = !status && !check.differs;
    return status;
}

posenc_status penc_file_is_rewritten(const penc_input *source, const char *target,
                                     const penc_piece *pieces, size_t count, int *is,
                                     posenc_error *error) {
    penc_input input;
    posenc_error own;
    *is = 0;
    posenc_status status = penc_input_open(target, &input, &own);
    if (status && own.os_error == ENOENT)
        return POSENC_OK;
    if (status) {
        if (error)
            *error = own;
        return status;
    }
    status = penc_check_target(source, &input, pieces, count, is, error);
    penc_input_close(&input);
    return status;
}
