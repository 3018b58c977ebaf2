/* A conversion of a checkpoint's pairing: what moves, for those who plan it and for those who write it.
 * SPDX-License-Identifier: MIT */
#ifndef PENC_CONVERSION_H
#define PENC_CONVERSION_H

#include "base/arena.h"
#include "checkpoint/attention_names.h"
#include "checkpoint/layer_shapes.h"
#include "formats/file_rewrite.h"
#include "formats/header_text.h"
#include "formats/model_path.h"
#include "posenc/convert.h"

#define PENC_RECORD_KEY "posenc.pairing"

/* A tensor whose rows move. */
typedef struct penc_move {
    size_t file, entry; /* of the set, of the file */
    uint64_t offset, bytes;
    uint64_t row_bytes; /* of what moves: a row, or one number */
    uint64_t period; /* so many rows have the order; a transposed tensor has it in every row anew */
    penc_row_order order;
    const char *what, *side;
} penc_move;

typedef struct penc_moves {
    penc_move *list;
    size_t count, room;
} penc_moves;

enum { PENC_MAX_REMARKS = 24 };

struct posenc_conversion {
    penc_arena arena;
    posenc_conversion_options options;
    posenc_conversion_facts facts;
    penc_model_path path;
    char *base; /* what describes the model that an adapter is for; NULL: nothing, or no adapter */
    penc_tensor_set *set;
    penc_attention_names stacks[PENC_MAX_STACKS];
    size_t stack_count;
    penc_layer_shapes shapes;
    int has_indexer;  /* it was spoken of */
    penc_moves moves; /* by file and place once planned */
    posenc_attention_shape
        recorded_shape; /* what the record says, and how many shapes there were */
    size_t recorded_shapes;
    posenc_conversion_remark remarks[PENC_MAX_REMARKS];
    size_t remark_count;
};

/* ---- Planning: conversion_plan.c calls these ---- */

/* Adds a remark; those beyond the list are left out. The text is copied. */
void penc_conversion_remark(posenc_conversion *conversion, const char *code, int warning,
                            const char *text);

/* Fails with UNSUPPORTED, or adds a warning where the caller forces it. `name` is what is at fault. */
posenc_status penc_conversion_refuse(posenc_conversion *conversion, const char *argument,
                                     const char *must, const char *name, posenc_error *error);

/* Reads the record of all files. */
posenc_status penc_conversion_read_records(posenc_conversion *conversion, posenc_error *error);

/* Refuses models that must not be touched. `model` is NULL where nothing describes the weights. */
posenc_status penc_conversion_check_model(posenc_conversion *conversion, const posenc_model *model,
                                          posenc_error *error);

/* Finds every tensor that moves. */
posenc_status penc_conversion_find_moves(posenc_conversion *conversion, posenc_error *error);

/* Compares the records with shape and moves. */
posenc_status penc_conversion_check_records(posenc_conversion *conversion, posenc_error *error);

/* Says which programs will read the result rightly. */
void penc_conversion_name_readers(posenc_conversion *conversion, const posenc_model *model);

/* ---- Writing ---- */

/* The record of a file whose rows are in that order. */
void penc_conversion_record(const posenc_conversion *conversion, size_t file,
                            posenc_pairing pairing, char text[PENC_MAX_HEADER_TEXT]);

size_t penc_conversion_files(const posenc_conversion *conversion);

/* The path of an input file; it may be a symbolic link. */
const char *penc_conversion_path(const posenc_conversion *conversion, size_t file);

/* How many of its tensors move; 0: the new file is the old one. */
size_t penc_conversion_moves_of(const posenc_conversion *conversion, size_t file);

/* The pieces of a file's new one, to be freed with penc_conversion_pieces_free. */
typedef struct penc_conversion_pieces {
    penc_piece *list;
    size_t count;
    penc_header_edits edits; /* what BYTES pieces point to */
    uint64_t bytes;          /* of the new file */
} penc_conversion_pieces;

posenc_status penc_conversion_pieces_make(const posenc_conversion *conversion, size_t file,
                                          penc_conversion_pieces *pieces, posenc_error *error);
void penc_conversion_pieces_free(penc_conversion_pieces *pieces);

/* Writes one file's new one to `target`. */
posenc_status penc_conversion_file(const posenc_conversion *conversion, size_t file,
                                   const char *target, const penc_rewrite_progress *progress,
                                   posenc_error *error);

#endif
