/* Two checkpoints, tensor by tensor. SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/struct_size.h"
#include "checkpoint/conversion.h"
#include "checkpoint/row_match.h"
#include "checkpoint/tensor_vocabulary.h"

#include <stdlib.h>
#include <string.h>

static const char *const penc_relation_words[] = {
#define PENC_ROW(name, number, word) [number] = word,
    POSENC_RELATION_LIST(PENC_ROW)
#undef PENC_ROW
};

enum { PENC_RELATIONS = sizeof penc_relation_words / sizeof *penc_relation_words };

const char *posenc_relation_name(posenc_relation relation) {
    return (unsigned)relation < PENC_RELATIONS ? penc_relation_words[relation] : NULL;
}

typedef struct penc_check_job {
    posenc_check_options options;
    penc_tensor_set *sets[2];
    posenc_conversion *plan; /* of A: what its q and k rows could have moved by; NULL: not known */
    penc_match_room room;
    posenc_check_summary summary;
    int orders_differ; /* of permuted tensors */
    uint64_t done, total;
} penc_check_job;

/* ---- Opening ---- */

static posenc_status penc_check_open(const char *path, penc_tensor_set **set, posenc_error *error) {
    penc_model_path found;
    posenc_status status = penc_model_path_resolve(path, &found, error);
    if (status)
        return status;
    if (found.weights) {
        status = penc_tensor_set_open(found.weights, set, error);
    } else {
        status = penc_fail(error, POSENC_UNSUPPORTED, "path",
                           "have weights: safetensors, GGUF or llama2.c");
        penc_fail_file(error, path);
    }
    penc_model_path_free(&found);
    return status;
}

/* A conversion of A either way, where one can be planned: it knows the rows. */
static posenc_status penc_check_plan(penc_check_job *job, const char *path, posenc_error *error) {
    posenc_conversion_options options = POSENC_CONVERSION_OPTIONS_INIT;
    posenc_status status = POSENC_OK;
    options.shape = job->options.shape;
    options.force = 1;
    options.judge_layers = POSENC_ALL_LAYERS;
    for (int to = POSENC_PAIRING_HALF; to <= POSENC_PAIRING_INTERLEAVED; to++) {
        options.to = (posenc_pairing)to;
        status = posenc_conversion_create(path, &options, &job->plan, error);
        if (!status || status == POSENC_OUT_OF_MEMORY)
            return status;
    }
    return POSENC_OK;
}

/* How the rows of A's tensor would move; NULL: not. */
static const penc_move *penc_check_move(const penc_check_job *job, size_t file, uint64_t offset) {
    const penc_moves *moves = job->plan ? &job->plan->moves : NULL;
    size_t low = 0, high = moves ? moves->count : 0;
    while (low < high) { /* they are in the order of files and places */
        size_t middle = low + (high - low) / 2;
        const penc_move *move = &moves->list[middle];
        if (move->file == file && move->offset == offset)
            return move;
        if (move->file < file || (move->file == file && move->offset < offset))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- Pairs of tensors ---- */

/* The tensor of that name, or of what it is called elsewhere. */
static posenc_status penc_check_find(const penc_tensor_set *set, const char *name,
                                     penc_tensor *tensor, const penc_tensor_source **file,
                                     posenc_error *error) {
    posenc_status status = penc_tensor_set_find(set, name, tensor, file, error);
    for (int to = 0; to < PENC_VOCABULARIES && !status && !*file; to++) {
        char other[PENC_NAME_BYTES];
        if (penc_tensor_name_in(name, to, other))
            status = penc_tensor_set_find(set, other, tensor, file, error);
    }
    return status;
}

/* What can be told without the data; NULL: nothing. */
static const char *penc_check_kind(const penc_tensor *a, const penc_tensor *b) {
    if (a->type != b->type || a->big_endian != b->big_endian || a->type == PENC_TENSOR_UNKNOWN)
        return "type";
    if (a->rank != b->rank || a->bytes != b->bytes ||
        memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0)
        return "shape";
    return NULL;
}

/* A matrix along its first axis, a vector number by number; as `move` cuts it where there is one. */
static penc_row_list penc_check_rows(const penc_tensor_source *file, const penc_tensor *tensor,
                                     const penc_move *move) {
    penc_row_list list = {file, tensor->offset, 1, tensor->bytes};
    uint64_t rows = tensor->rank ? tensor->shape[0] : 1;
    if (move)
        rows = move->bytes / move->row_bytes;
    if (rows && tensor->bytes % rows == 0) {
        list.rows = rows;
        list.row_bytes = tensor->bytes / rows;
    }
    return list;
}

static posenc_detected penc_check_word(posenc_pairing pairing) {
    return pairing == POSENC_PAIRING_HALF ? POSENC_DETECTED_HALF : POSENC_DETECTED_INTERLEAVED;
}

static void penc_check_take(const penc_row_match *found, posenc_tensor_match *match) {
    match->relation = POSENC_RELATION_PERMUTED;
    match->moved = found->moved;
    if (!found->named)
        return;
    match->to = penc_check_word(found->to);
    match->from =
        match->to == POSENC_DETECTED_HALF ? POSENC_DETECTED_INTERLEAVED : POSENC_DETECTED_HALF;
    match->heads = found->heads;
    match->rotary_dim = found->rotary_dim;
    match->first = found->first;
    match->stride = found->stride;
}

static posenc_status penc_check_data(penc_check_job *job, const penc_row_list *a,
                                     const penc_row_list *b, const penc_move *move,
                                     posenc_tensor_match *match, posenc_error *error) {
    int same;
    penc_row_match found;
    posenc_status status = penc_rows_compare(a, b, &job->room, &same, error);
    match->rows = a->rows;
    if (status || same)
        return status;
    match->relation = POSENC_RELATION_DIFFERENT;
    match->why = a->rows > PENC_MATCH_MAX_ROWS ? "rows" : "values";
    status = penc_rows_match(a, b, move ? &move->order : NULL, move ? move->period : 0, &job->room,
                             &found, error);
    if (!status && found.order) {
        penc_check_take(&found, match);
        match->why = NULL;
    }
    return status;
}

static void penc_check_count(penc_check_job *job, const posenc_tensor_match *match) {
    posenc_check_summary *summary = &job->summary;
    if (match->relation == POSENC_RELATION_PERMUTED) {
        job->orders_differ |= summary->counts[POSENC_RELATION_PERMUTED] &&
                              (summary->from != match->from || summary->to != match->to);
        summary->from = match->from;
        summary->to = match->to;
    }
    summary->counts[match->relation]++;
    if (job->options.report)
        job->options.report(job->options.context, match);
}

/* A tensor of A and its counterpart. */
static posenc_status penc_check_tensor(penc_check_job *job, size_t file, size_t entry,
                                       posenc_error *error) {
    const penc_tensor_source *source = penc_tensor_set_file(job->sets[0], file), *other;
    posenc_tensor_match match = {.tensor_b = "", .relation = POSENC_RELATION_IDENTICAL};
    penc_tensor a, b;
    posenc_status status = source->format->read(source, &source->entries[entry], &a, error);
    if (!status)
        status = penc_check_find(job->sets[1], a.name, &b, &other, error);
    if (status)
        return status;
    match.tensor = a.name;
    if (!other) {
        match.relation = POSENC_RELATION_ONLY_A;
    } else {
        const penc_move *move = penc_check_move(job, file, a.offset);
        penc_row_list rows = penc_check_rows(source, &a, move);
        penc_row_list rows_b = penc_check_rows(other, &b, move);
        match.tensor_b = b.name;
        match.why = penc_check_kind(&a, &b);
        if (match.why)
            match.relation = POSENC_RELATION_DIFFERENT;
        else
            status = penc_check_data(job, &rows, &rows_b, move, &match, error);
    }
    job->done += a.bytes;
    if (!status)
        penc_check_count(job, &match);
    if (!status && job->options.progress)
        job->options.progress(job->options.context, job->done, job->total);
    return status;
}

/* A tensor of B that A may not have. */
static posenc_status penc_check_only_b(penc_check_job *job, size_t file, size_t entry,
                                       posenc_error *error) {
    const penc_tensor_source *source = penc_tensor_set_file(job->sets[1], file), *other;
    char name[PENC_NAME_BYTES];
    size_t length;
    penc_tensor a;
    posenc_status status =
        source->format->name(source, &source->entries[entry], name, &length, error);
    if (!status)
        status = penc_check_find(job->sets[0], name, &a, &other, error);
    if (!status && !other) {
        posenc_tensor_match match = {
            .tensor = "", .tensor_b = name, .relation = POSENC_RELATION_ONLY_B};
        penc_check_count(job, &match);
    }
    return status;
}

typedef posenc_status (*penc_check_visit)(penc_check_job *, size_t, size_t, posenc_error *);

static posenc_status penc_check_walk(penc_check_job *job, const penc_tensor_set *set,
                                     penc_check_visit visit, posenc_error *error) {
    posenc_status status = POSENC_OK;
    for (size_t file = 0; file < penc_tensor_set_files(set); file++) {
        size_t count = penc_tensor_set_file(set, file)->count;
        for (size_t i = 0; i < count && !status; i++)
            status = visit(job, file, i, error);
    }
    return status;
}

/* ---- The whole ---- */

static posenc_status penc_check_run(penc_check_job *job, const char *a, const char *b,
                                    posenc_error *error) {
    posenc_status status = penc_check_open(a, &job->sets[0], error);
    if (!status)
        status = penc_check_open(b, &job->sets[1], error);
    if (!status)
        status = penc_match_room_make(&job->room, error);
    if (status)
        return status;
    for (size_t i = 0; i < penc_tensor_set_files(job->sets[0]); i++)
        job->total += penc_tensor_set_file(job->sets[0], i)->input.size;
    status = penc_check_plan(job, a, error);
    if (!status)
        status = penc_check_walk(job, job->sets[0], penc_check_tensor, error);
    return status ? status : penc_check_walk(job, job->sets[1], penc_check_only_b, error);
}

posenc_status posenc_checkpoints_compare(const char *a, const char *b,
                                         const posenc_check_options *options,
                                         posenc_check_summary *summary, posenc_error *error) {
    static const posenc_check_options defaults = POSENC_CHECK_OPTIONS_INIT;
    if (!a || !b || !summary)
        return penc_fail_null(error, !a ? "a" : !b ? "b" : "summary");
    options = options ? options : &defaults;
    posenc_status status = penc_check_struct(options, sizeof *options, "options", error);
    if (!status)
        status = penc_check_struct(&options->shape, sizeof options->shape, "shape", error);
    if (status)
        return status;
    penc_check_job job = {.options = *options};
    status = penc_check_run(&job, a, b, error);
    if (job.orders_differ)
        job.summary.from = job.summary.to = POSENC_DETECTED_UNDETERMINED;
    if (!status)
        *summary = job.summary;
    posenc_conversion_free(job.plan);
    penc_match_room_free(&job.room);
    penc_tensor_set_close(job.sets[0]);
    penc_tensor_set_close(job.sets[1]);
    return status;
}
