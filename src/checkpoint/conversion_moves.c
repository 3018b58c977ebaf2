/* Which tensors of a checkpoint move, and how. SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "checkpoint/conversion.h"
#include "checkpoint/projection_ends.h"

#include <stdlib.h>
#include <string.h>

/* A tensor that belongs to q or k of a layer. */
typedef struct penc_part {
    const penc_tensor_source *file;
    size_t file_number, entry;
    const penc_attention_names *names;
    uint32_t layer;
    const char *part; /* "self_attn.q_proj" */
    int side;         /* PENC_SIDE_Q where it holds both */
    int is_gain;
    const penc_end *end;
    penc_tensor tensor;
    const posenc_attention_shape *shape;
} penc_part;

/* What a name is a part of, if `part` stands in it behind the stack's prefix. */
static int penc_part_matches(const char *name, const penc_attention_names *names, const char *text,
                             penc_part *part, const char **end) {
    size_t prefix = text ? penc_attention_name_split(name, text, &part->layer, end) : 0;
    if (!prefix || strlen(names->prefix) != prefix || memcmp(name, names->prefix, prefix) != 0)
        return 0;
    part->names = names;
    part->part = text;
    return 1;
}

static int penc_part_of_stack(const char *name, const penc_attention_names *names,
                              penc_part *part) {
    const char *projections[2] = {names->scheme->q, names->scheme->k}, *end;
    for (int side = 0; side < 2; side++) {
        part->side = side;
        part->is_gain = 0;
        if (penc_part_matches(name, names, projections[side], part, &end)) {
            part->end = penc_projection_end(end);
            return 1;
        }
        part->is_gain = 1;
        for (size_t i = 0; i < PENC_GAIN_PARTS; i++) {
            if (penc_part_matches(name, names, penc_gain_parts[i][side], part, &end)) {
                part->end = penc_gain_end(end);
                return 1;
            }
        }
    }
    return 0;
}

static int penc_part_find(const posenc_conversion *conversion, const char *name, penc_part *part) {
    for (size_t i = 0; i < conversion->stack_count; i++) {
        if (penc_part_of_stack(name, &conversion->stacks[i], part))
            return 1;
    }
    return 0;
}

/* ---- Errors ---- */

static posenc_status penc_part_named(const penc_part *part, posenc_status status,
                                     posenc_error *error) {
    penc_fail_name(error, part->tensor.name, part->tensor.name_length);
    penc_fail_file(error, part->file->input.path);
    return status;
}

static posenc_status penc_part_fail(const penc_part *part, const char *argument, uint64_t value,
                                    const char *must, const char *limit_name, uint64_t limit,
                                    posenc_error *error) {
    posenc_status status = penc_fail_size(error, argument, value, must);
    penc_fail_limit(error, limit_name, limit);
    return penc_part_named(part, status, error);
}

static posenc_status penc_part_unsupported(const penc_part *part, const char *argument,
                                           const char *must, posenc_error *error) {
    return penc_part_named(part, penc_fail(error, POSENC_UNSUPPORTED, argument, must), error);
}

/* ---- The rows of the projection ---- */

/* The weights of another projection of the part's layer; *file is NULL where there are none, as beside LoRA. */
static posenc_status penc_part_weight(const posenc_conversion *conversion, const penc_part *part,
                                      const char *projection, penc_tensor *weight,
                                      const penc_tensor_source **file, posenc_error *error) {
    static const char *const ends[] = {".weight", ".weight_packed", ".base_layer.weight"};
    *file = NULL;
    for (size_t i = 0; i < sizeof ends / sizeof *ends && !*file; i++) {
        char name[PENC_NAME_BYTES];
        if (!penc_attention_name(part->names, part->layer, projection, ends[i], name))
            continue;
        posenc_status status = penc_tensor_set_find(conversion->set, name, weight, file, error);
        if (status)
            return status;
    }
    return POSENC_OK;
}

/* Rows of the weights that the part belongs to; 0 where there are none. */
static posenc_status penc_part_weight_rows(const posenc_conversion *conversion,
                                           const penc_part *part, uint64_t *rows,
                                           posenc_error *error) {
    penc_tensor weight;
    const penc_tensor_source *file;
    posenc_status status = penc_part_weight(conversion, part, part->part, &weight, &file, error);
    *rows = !status && file ? (weight.rank ? weight.shape[0] : 1) : 0;
    return status;
}

/* Twice the rows of q are a gate beside every head, if somebody else says so too: a configuration with this number
 * of heads, or the output projection, which takes what the heads give. */
static posenc_status penc_part_check_gate(const posenc_conversion *conversion,
                                          const penc_part *part, uint64_t rows,
                                          posenc_error *error) {
    uint64_t width = (uint64_t)part->shape->heads * part->shape->head_dim;
    const penc_attention_scheme *scheme = part->names->scheme;
    penc_tensor output;
    const penc_tensor_source *file;
    if (scheme->layout != PENC_SEPARATE || part->side != PENC_SIDE_Q || rows == width ||
        conversion->shapes.trusted)
        return POSENC_OK;
    posenc_status status =
        penc_part_weight(conversion, part, scheme->output, &output, &file, error);
    if (status || (file && output.rank == 2 && output.shape[1] == width))
        return status;
    return penc_part_fail(part, "rows", rows,
                          "be heads * head_dim; twice that is a gate only where the output "
                          "projection has heads * head_dim columns",
                          "heads * head_dim", width, error);
}

/* Fills the order of a projection of `rows` rows. */
static posenc_status penc_part_order(const posenc_conversion *conversion, const penc_part *part,
                                     uint64_t rows, penc_row_order *order, posenc_error *error) {
    const penc_attention_scheme *scheme = part->names->scheme;
    int both = !scheme->k;
    order->to = conversion->facts.to;
    order->side_count = both ? 2 : 1;
    for (int i = 0; i < 1 + both; i++) {
        uint64_t wanted;
        if (!penc_head_rows_fill(scheme->layout, part->shape, both ? i : part->side, rows,
                                 &order->sides[i], &wanted))
            return penc_part_fail(part, "rows", rows, "be what heads and head_dim give",
                                  "rows wanted", wanted, error);
    }
    return penc_part_check_gate(conversion, part, rows, error);
}

/* ---- Single tensors ---- */

static posenc_status penc_moves_add(posenc_conversion *conversion, const penc_part *part,
                                    const penc_row_order *order, uint64_t rows, uint64_t period,
                                    posenc_error *error) {
    penc_moves *moves = &conversion->moves;
    const penc_tensor *tensor = &part->tensor;
    if (!tensor->bytes || !rows || tensor->bytes % rows)
        return penc_part_unsupported(part, "type", "be one whose rows can be told apart", error);
    if (order->sides[0].rotary_dim <= 2)
        return POSENC_OK; /* the pairings are the same */
    if (moves->count == moves->room) {
        size_t room = moves->room ? 2 * moves->room : 64;
        penc_move *grown = realloc(moves->list, room * sizeof *grown);
        if (!grown)
            return penc_fail(error, POSENC_OUT_OF_MEMORY, "plan", "fit into memory");
        moves->list = grown;
        moves->room = room;
    }
    moves->list[moves->count++] = (penc_move){.file = part->file_number,
                                              .entry = part->entry,
                                              .offset = tensor->offset,
                                              .bytes = tensor->bytes,
                                              .row_bytes = tensor->bytes / rows,
                                              .period = period,
                                              .order = *order,
                                              .what = part->end->what,
                                              .side = order->side_count == 2      ? "q and k"
                                                      : part->side == PENC_SIDE_K ? "k"
                                                                                  : "q"};
    return POSENC_OK;
}

/* Rows of a matrix that the type lets be told apart. */
static posenc_status penc_part_move_rows(posenc_conversion *conversion, const penc_part *part,
                                         const penc_row_order *order, uint64_t rows,
                                         posenc_error *error) {
    if (penc_tensor_row_bytes(&part->tensor) == 0)
        return penc_part_unsupported(part, "type", "be one whose rows can be told apart", error);
    return penc_moves_add(conversion, part, order, rows, rows, error);
}

/* The blocks' rows: the power of 2 that makes `scales` blocks of `rows` rows; 0: there is none. */
static uint64_t penc_block_rows(uint64_t rows, uint64_t scales) {
    uint64_t block = 1;
    while (block < rows && (rows + block - 1) / block > scales)
        block *= 2;
    return (rows + block - 1) / block == scales ? block : 0;
}

/* Scales of blocks stay if no row leaves its block. */
static posenc_status penc_part_check_blocks(const penc_part *part, const penc_row_order *order,
                                            uint64_t rows, posenc_error *error) {
    uint64_t block = penc_block_rows(rows, part->tensor.shape[0]);
    if (!block || part->tensor.rank != 2)
        return penc_part_fail(part, "scales", part->tensor.shape[0],
                              "be one, or one row for each row of the weights or each block of a "
                              "power of 2 of them",
                              "rows", rows, error);
    for (size_t i = 0; i < order->side_count; i++) {
        const penc_head_rows *side = &order->sides[i];
        for (size_t head = 0; head < side->heads; head++) {
            uint64_t first = penc_head_rows_of(side, head);
            if (first / block != (first + side->rotary_dim - 1) / block)
                return penc_part_fail(part, "row", first,
                                      "begin a head whose rotary rows lie in one block of scales: "
                                      "they cannot move across; dequantise first",
                                      "rows of a block", block, error);
        }
    }
    return POSENC_OK;
}

static posenc_status penc_part_scales(posenc_conversion *conversion, const penc_part *part,
                                      const penc_row_order *order, uint64_t rows,
                                      posenc_error *error) {
    const penc_tensor *tensor = &part->tensor;
    uint64_t count;
    if (!penc_tensor_count(tensor, &count) || !tensor->rank || count == 1)
        return POSENC_OK;
    if (tensor->shape[0] == rows)
        return penc_part_move_rows(conversion, part, order, rows, error);
    if (part->end->kind == PENC_END_ROW_SCALES)
        return penc_part_fail(part, "rows", tensor->shape[0], "be as many as the weights have",
                              "rows", rows, error);
    return penc_part_check_blocks(part, order, rows, error);
}

static posenc_status penc_part_numbers(posenc_conversion *conversion, const penc_part *part,
                                       const penc_row_order *order, uint64_t rows,
                                       posenc_error *error) {
    uint64_t count;
    if (!penc_tensor_count(&part->tensor, &count) || count != rows)
        return penc_part_fail(part, "elements", count, "be as many as the weights have rows",
                              "rows", rows, error);
    return penc_moves_add(conversion, part, order, rows, rows, error);
}

static posenc_status penc_part_one(const penc_part *part, posenc_error *error) {
    uint64_t count;
    if (penc_tensor_count(&part->tensor, &count) && count == 1)
        return POSENC_OK;
    return penc_part_fail(part, "elements", count, "be one; others might have to move along",
                          "elements", 1, error);
}

static posenc_status penc_part_gain(posenc_conversion *conversion, const penc_part *part,
                                    posenc_error *error) {
    uint64_t count;
    penc_row_order order = {.side_count = 1, .to = conversion->facts.to};
    if (!penc_tensor_count(&part->tensor, &count) ||
        !penc_head_rows_fill_gains(part->names->scheme->layout, part->shape, part->side, count,
                                   &order.sides[0]))
        return penc_part_fail(part, "elements", count, "be head_dim or heads * head_dim",
                              "head_dim", part->shape->head_dim, error);
    return penc_moves_add(conversion, part, &order, count, count, error);
}

/* What belongs to a projection. */
static posenc_status penc_part_projection(posenc_conversion *conversion, const penc_part *part,
                                          posenc_error *error) {
    const penc_tensor *tensor = &part->tensor;
    penc_end_kind kind = part->end->kind;
    uint64_t rows;
    penc_row_order order = {.side_count = 0};
    posenc_status status = penc_part_weight_rows(conversion, part, &rows, error);
    if (status || kind == PENC_END_STAYS)
        return status;
    if (kind == PENC_END_ONE)
        return penc_part_one(part, error);
    int columns = kind == PENC_END_COLUMNS;
    if (columns && tensor->rank != 2)
        return penc_part_fail(part, "axes", tensor->rank, "be 2", "axes", 2, error);
    uint64_t own = !tensor->rank ? 1 : tensor->shape[columns];
    if (!rows)
        rows = own;
    status = penc_part_order(conversion, part, rows, &order, error);
    if (status)
        return status;
    if (kind == PENC_END_SCALES || kind == PENC_END_ROW_SCALES)
        return penc_part_scales(conversion, part, &order, rows, error);
    if (kind == PENC_END_NUMBERS || (kind == PENC_END_ROWS && tensor->rank == 1))
        return penc_part_numbers(conversion, part, &order, rows, error);
    if (own != rows || tensor->rank != 2)
        return penc_part_fail(part, "rows", own, "be as many as the weights have, on two axes",
                              "rows", rows, error);
    if (columns)
        return penc_moves_add(conversion, part, &order, tensor->shape[0] * rows, rows, error);
    return penc_part_move_rows(conversion, part, &order, rows, error);
}

/* ---- All tensors ---- */

/* The first walk: packed formats, whose reason comes before anything that follows from it. */
static posenc_status penc_part_refuse(posenc_conversion *conversion, penc_part *part,
                                      posenc_error *error) {
    (void)conversion;
    return part->end->kind == PENC_END_REFUSED
               ? penc_part_unsupported(part, "tensor", part->end->what, error)
               : POSENC_OK;
}

static posenc_status penc_part_plan(posenc_conversion *conversion, penc_part *part,
                                    posenc_error *error) {
    part->shape = penc_layer_shape(&conversion->shapes, part->layer);
    if (!part->shape)
        return POSENC_OK; /* a layer that does not rotate */
    posenc_status status = part->file->format->read(part->file, &part->file->entries[part->entry],
                                                    &part->tensor, error);
    if (status)
        return status;
    return part->is_gain ? penc_part_gain(conversion, part, error)
                         : penc_part_projection(conversion, part, error);
}

/* What else a layer may have that turns: the indexer of sparse attention, with pairs of its own. */
static posenc_status penc_name_refuse(posenc_conversion *conversion, const char *name,
                                      posenc_error *error) {
    if (conversion->has_indexer || !strstr(name, ".indexer."))
        return POSENC_OK;
    conversion->has_indexer = 1;
    return penc_conversion_refuse(conversion, "tensor",
                                  "not belong to an indexer: it turns too, with pairs of its own, "
                                  "and stays as it is (unless forced)",
                                  name, error);
}

typedef posenc_status (*penc_part_visit)(posenc_conversion *, penc_part *, posenc_error *);

static posenc_status penc_parts_walk(posenc_conversion *conversion, penc_part_visit visit,
                                     posenc_error *error) {
    for (size_t number = 0; number < penc_tensor_set_files(conversion->set); number++) {
        const penc_tensor_source *file = penc_tensor_set_file(conversion->set, number);
        for (size_t i = 0; i < file->count; i++) {
            penc_part part = {.file = file, .file_number = number, .entry = i};
            posenc_status status = file->format->name(file, &file->entries[i], part.tensor.name,
                                                      &part.tensor.name_length, error);
            if (!status)
                status = penc_part_find(conversion, part.tensor.name, &part)
                             ? visit(conversion, &part, error)
                             : penc_name_refuse(conversion, part.tensor.name, error);
            if (status)
                return status;
        }
    }
    return POSENC_OK;
}

/* A tensor that should be there. */
static posenc_status penc_layer_lacks(const posenc_conversion *conversion, const penc_part *part,
                                      const char *projection, const char *must,
                                      posenc_error *error) {
    char name[PENC_NAME_BYTES] = "";
    penc_attention_name(part->names, part->layer, projection, ".weight", name);
    posenc_status status = penc_fail(error, POSENC_FORMAT, "tensor", must);
    penc_fail_name(error, name, strlen(name));
    penc_fail_file(error, penc_tensor_set_file(conversion->set, 0)->input.path);
    return status;
}

/* Whether the layer has q, k and v. */
static posenc_status penc_layer_look(const posenc_conversion *conversion, penc_part *part,
                                     int has[3], posenc_error *error) {
    const penc_attention_scheme *scheme = part->names->scheme;
    const char *parts[3] = {scheme->q, scheme->k, scheme->v};
    for (int i = 0; i < 3; i++) {
        penc_tensor weight;
        const penc_tensor_source *file = NULL;
        posenc_status status =
            parts[i] ? penc_part_weight(conversion, part, parts[i], &weight, &file, error)
                     : POSENC_OK;
        if (status)
            return status;
        has[i] = file != NULL;
    }
    return POSENC_OK;
}

/* Every layer that has q has k, and the other way round; and v, if any layer has it: where it is missing, k's rows
 * are values too and must stay. */
static posenc_status penc_conversion_check_layers(const posenc_conversion *conversion,
                                                  const penc_attention_names *names,
                                                  posenc_error *error) {
    size_t with_v = 0, first_without = names->count;
    penc_part part = {.names = names};
    for (size_t i = 0; i < names->count; i++) {
        int has[3];
        part.layer = names->layers[i];
        posenc_status status = penc_layer_look(conversion, &part, has, error);
        if (status)
            return status;
        if (names->scheme->k && has[0] != has[1])
            return penc_layer_lacks(conversion, &part, has[0] ? names->scheme->k : names->scheme->q,
                                    "be in the checkpoint, as its counterpart is", error);
        with_v += (size_t)has[2];
        if (has[1] && !has[2] && first_without == names->count)
            first_without = i;
    }
    if (!with_v || first_without == names->count)
        return POSENC_OK;
    part.layer = names->layers[first_without];
    return penc_layer_lacks(conversion, &part, names->scheme->v,
                            "be in the checkpoint, as in other layers: where keys are values too, "
                            "their rows cannot move",
                            error);
}

/* Whether a layer that the configuration has is missing. */
static posenc_status penc_conversion_check_count(posenc_conversion *conversion,
                                                 posenc_error *error) {
    const penc_attention_names *names = &conversion->stacks[0];
    penc_part part = {.names = names, .layer = names->count ? names->layers[0] : 0};
    int has[3];
    size_t at = 0;
    posenc_status status = penc_layer_look(conversion, &part, has, error);
    if (status || !has[0]) /* adapters need not have every layer */
        return status;
    for (uint32_t layer = 0; layer < conversion->shapes.layers; layer++) {
        char name[PENC_NAME_BYTES] = "";
        while (at < names->count && names->layers[at] < layer)
            at++;
        if ((at < names->count && names->layers[at] == layer) ||
            !penc_layer_shape(&conversion->shapes, layer))
            continue;
        penc_attention_name(names, layer, names->scheme->q, ".weight", name);
        return penc_conversion_refuse(
            conversion, "tensor",
            "be in the checkpoint, since the configuration has that layer (unless forced)", name,
            error);
    }
    return POSENC_OK;
}

static int penc_move_compare(const void *a, const void *b) {
    const penc_move *x = a, *y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void penc_moves_count(posenc_conversion *conversion) {
    posenc_conversion_facts *facts = &conversion->facts;
    facts->moved_tensors = conversion->moves.count;
    for (size_t i = 0; i < conversion->moves.count; i++) {
        const penc_move *move = &conversion->moves.list[i];
        facts->moved_bytes += move->bytes;
        facts->changed_files += !i || move[-1].file != move->file;
    }
}

posenc_status penc_conversion_find_moves(posenc_conversion *conversion, posenc_error *error) {
    posenc_status status = penc_parts_walk(conversion, penc_part_refuse, error);
    for (size_t i = 0; i < conversion->stack_count && !status; i++)
        status = penc_conversion_check_layers(conversion, &conversion->stacks[i], error);
    if (!status)
        status = penc_conversion_check_count(conversion, error);
    if (!status)
        status = penc_parts_walk(conversion, penc_part_plan, error);
    if (status)
        return status;
    if (!conversion->moves.count) {
        status = penc_fail(error, POSENC_UNSUPPORTED, "tensors",
                           "have rows that change their place between the pairings");
        penc_fail_file(error, penc_tensor_set_file(conversion->set, 0)->input.path);
        return status;
    }
    qsort(conversion->moves.list, conversion->moves.count, sizeof *conversion->moves.list,
          penc_move_compare);
    penc_moves_count(conversion);
    return POSENC_OK;
}
