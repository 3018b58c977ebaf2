/* Planning a conversion: everything that can be wrong is found out before anything is written.
 * SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/struct_size.h"
#include "checkpoint/adapter_base.h"
#include "checkpoint/conversion.h"

#include <stdlib.h>
#include <string.h>

/* ---- Remarks and refusals ---- */

void penc_conversion_remark(posenc_conversion *conversion, const char *code, int warning,
                            const char *text) {
    char *copy = text ? penc_arena_copy(&conversion->arena, text, strlen(text)) : NULL;
    if (copy && conversion->remark_count < PENC_MAX_REMARKS)
        conversion->remarks[conversion->remark_count++] =
            (posenc_conversion_remark){code, copy, warning};
}

posenc_status penc_conversion_refuse(posenc_conversion *conversion, const char *argument,
                                     const char *must, const char *name, posenc_error *error) {
    if (conversion->options.force) {
        const char *end = strstr(must, " (unless forced)");
        int length = (int)(end ? (size_t)(end - must) : strlen(must));
        const char *text = penc_arena_print(&conversion->arena, "forced: %s of %s must %.*s",
                                            argument, name, length, must);
        penc_conversion_remark(conversion, "forced", 1, text);
        return POSENC_OK;
    }
    penc_fail(error, POSENC_UNSUPPORTED, argument, must);
    penc_fail_name(error, name, strlen(name));
    penc_fail_file(error, penc_conversion_path(conversion, 0));
    return POSENC_UNSUPPORTED;
}

/* ---- Opening ---- */

static posenc_status penc_plan_open(posenc_conversion *made, const char *path,
                                    posenc_error *error) {
    posenc_status status = penc_model_path_resolve(path, &made->path, error);
    if (status) {
        memset(&made->path, 0, sizeof made->path);
        return status;
    }
    if (!made->path.weights) {
        status = penc_fail(error, POSENC_UNSUPPORTED, "path",
                           made->path.many_weights
                               ? "name one of the files of weights there"
                               : "have weights: safetensors, GGUF or llama2.c; PyTorch's .bin and "
                                 ".pt are to be written with safetensors.torch.save_file first");
        penc_fail_file(error, path);
        return status;
    }
    status = penc_tensor_set_open(made->path.weights, &made->set, error);
    if (!status)
        status = penc_attention_stacks_find(made->set, made->stacks, &made->stack_count, error);
    for (size_t i = 0; !status && i < penc_conversion_files(made); i++)
        made->facts.bytes += penc_tensor_set_file(made->set, i)->input.size;
    return status;
}

/* What describes the weights; NULL: nothing. */
static const char *penc_plan_config(const posenc_conversion *made) {
    if (strcmp(made->facts.format, "GGUF") == 0)
        return made->path.weights;
    if (strcmp(made->facts.format, "llama2.c") == 0)
        return NULL;
    return made->path.config ? made->path.config : made->base;
}

/* Reads the shape; that of an adapter from its model, where it is at hand. */
static posenc_status penc_plan_read(posenc_conversion *made, const char *path,
                                    posenc_attention_shape *read, posenc_error *error) {
    posenc_checkpoint_facts facts, of_base;
    posenc_attention_shape base = POSENC_ATTENTION_SHAPE_INIT;
    posenc_status status = posenc_attention_shape_read(path, read, &facts, error);
    if (!status && !made->path.config && strcmp(facts.format, "safetensors") == 0)
        status = penc_adapter_base(made->path.weights, &made->base, error);
    if (!status && made->base) {
        status = posenc_attention_shape_read(made->base, &base, &of_base, error);
        if (!status) {
            *read = base;
            memcpy(facts.model_type, of_base.model_type, sizeof facts.model_type);
            facts.implied = of_base.implied;
        }
    }
    memcpy(made->facts.format, facts.format, sizeof facts.format);
    memcpy(made->facts.model_type, facts.model_type, sizeof facts.model_type);
    made->facts.implied = facts.implied;
    return status;
}

/* ---- Stacks ---- */

static int penc_stack_is_draft(const char *prefix) {
    static const char *const words[] = {"mtp", "nextn", "draft"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(prefix, words[i]))
            return 1;
    }
    return 0;
}

/* Keeps the best stack and those that draft tokens for it; others stay as they are, if the caller wants it so. */
static posenc_status penc_plan_stacks(posenc_conversion *made, posenc_error *error) {
    size_t kept = 1;
    if (made->stacks[0].tower) {
        posenc_status status = penc_conversion_refuse(
            made, "layers",
            "be those of a language model, not of pictures or sounds (unless forced)",
            made->stacks[0].prefix, error);
        if (status)
            return status;
    }
    for (size_t i = 1; i < made->stack_count; i++) {
        penc_attention_names *stack = &made->stacks[i];
        posenc_status status = POSENC_OK;
        if (stack->tower) {
            penc_conversion_remark(
                made, "tower-stays", 0,
                penc_arena_print(&made->arena, "layers of %s see or hear: they stay as they are",
                                 stack->prefix));
        } else if (penc_stack_is_draft(stack->prefix)) {
            penc_attention_names moved = *stack;
            *stack = made->stacks[kept];
            made->stacks[kept++] = moved;
        } else {
            status =
                penc_conversion_refuse(made, "layers",
                                       "be of one stack: whether these rotate is not known, and "
                                       "they stay as they are (unless forced)",
                                       stack->prefix, error);
        }
        if (status)
            return status;
    }
    while (made->stack_count > kept)
        penc_attention_names_free(&made->stacks[--made->stack_count]);
    return POSENC_OK;
}

/* ---- Pairings ---- */

static posenc_detected penc_detected_of(posenc_pairing pairing) {
    return pairing == POSENC_PAIRING_HALF ? POSENC_DETECTED_HALF : POSENC_DETECTED_INTERLEAVED;
}

static posenc_pairing penc_other(posenc_pairing pairing) {
    return pairing == POSENC_PAIRING_HALF ? POSENC_PAIRING_INTERLEAVED : POSENC_PAIRING_HALF;
}

static posenc_status penc_plan_fail(const posenc_conversion *made, const char *argument,
                                    posenc_pairing pairing, const char *must, posenc_error *error) {
    const char *word = posenc_pairing_name(pairing);
    penc_fail(error, POSENC_OUT_OF_RANGE, argument, must);
    penc_fail_name(error, word, strlen(word));
    penc_fail_file(error, penc_conversion_path(made, 0));
    return POSENC_OUT_OF_RANGE;
}

/* What the rows are in now. */
static posenc_status penc_plan_from(posenc_conversion *made, posenc_error *error) {
    posenc_conversion_facts *facts = &made->facts;
    posenc_detected to = penc_detected_of(facts->to), from = made->options.from;
    facts->from = penc_other(facts->to);
    if (facts->recorded == to)
        return penc_plan_fail(made, "to", facts->to,
                              "be the other pairing: the record says that the rows are in this one",
                              error);
    if (from == to)
        return penc_plan_fail(made, "from", facts->to, "be another pairing than to", error);
    if (!from && !facts->recorded && facts->implied == to)
        return penc_conversion_refuse(
            made, "to",
            "be another pairing than the model's name implies, since the rows have that one already; "
            "if they have the other one, say so with from",
            posenc_pairing_name(facts->to), error);
    return POSENC_OK;
}

/* Formats that have nothing but their name to go by. */
static posenc_status penc_plan_name(posenc_conversion *made, posenc_error *error) {
    const posenc_conversion_facts *facts = &made->facts;
    int named = strcmp(facts->format, "safetensors") != 0;
    if (!named || facts->implied == penc_detected_of(facts->to))
        return POSENC_OK;
    return penc_conversion_refuse(
        made, "architecture",
        "imply the new pairing, since programs go by that name and would read the result wrongly "
        "(unless forced)",
        *facts->model_type ? facts->model_type : facts->format, error);
}

/* ---- Shapes ---- */

/* A member that the caller gives and the checkpoint contradicts. */
static posenc_status penc_plan_contradiction(posenc_conversion *made, const char *member,
                                             size_t given, size_t read, posenc_error *error) {
    static const char must[] =
        "be what the checkpoint says of itself: record, configuration or file (unless forced)";
    if (!given || !read || given == read)
        return POSENC_OK;
    if (made->options.force)
        return penc_conversion_refuse(made, member, must, made->path.weights, error);
    penc_fail_size(error, member, given, must);
    penc_fail_limit(error, "there", read);
    penc_fail_file(error, penc_conversion_path(made, 0));
    return POSENC_OUT_OF_RANGE;
}

static posenc_status penc_plan_contradictions(posenc_conversion *made,
                                              const posenc_attention_shape *read,
                                              posenc_error *error) {
    const posenc_attention_shape *given = &made->options.shape;
    const struct {
        const char *member;
        size_t given, read;
    } members[] = {{"heads", given->heads, read->heads},
                   {"kv_heads", given->kv_heads, read->kv_heads},
                   {"head_dim", given->head_dim, read->head_dim},
                   {"rotary_dim", given->rotary_dim, read->rotary_dim},
                   {"rotary_start", given->rotary_start, read->rotary_start}};
    posenc_status status = POSENC_OK;
    for (size_t i = 0; i < sizeof members / sizeof *members && !status; i++)
        status = penc_plan_contradiction(made, members[i].member, members[i].given, members[i].read,
                                         error);
    return status;
}

/* `first` before `second`, member by member. */
static posenc_attention_shape penc_shape_or(const posenc_attention_shape *first,
                                            const posenc_attention_shape *second) {
    posenc_attention_shape both = *first;
    both.size = sizeof both;
    both.heads = first->heads ? first->heads : second->heads;
    both.kv_heads = first->kv_heads ? first->kv_heads : second->kv_heads;
    both.head_dim = first->head_dim ? first->head_dim : second->head_dim;
    both.rotary_dim = first->rotary_dim ? first->rotary_dim : second->rotary_dim;
    both.rotary_start = first->rotary_start ? first->rotary_start : second->rotary_start;
    return both;
}

static int penc_model_is_unknown(const posenc_model *model) {
    for (size_t i = 0; i < posenc_model_layer_type_count(model); i++) {
        if (posenc_model_layer_type(model, i)->kind == POSENC_ENCODING_UNKNOWN)
            return 1;
    }
    return 0;
}

/* The shape of every layer: what the caller gives, else the record, else what `read` says. */
static posenc_status penc_plan_shapes(posenc_conversion *made, const posenc_model *model,
                                      const posenc_attention_shape *read, posenc_error *error) {
    posenc_attention_shape given = made->options.shape;
    int one = made->facts.recorded && made->recorded_shapes == 1;
    posenc_attention_shape known = *read;
    if (model && penc_model_is_unknown(model)) /* what rotates is assumed only */
        known.rotary_dim = known.rotary_start = 0;
    posenc_status status = penc_plan_contradictions(made, &known, error);
    if (one && !status)
        status = penc_plan_contradictions(made, &made->recorded_shape, error);
    if (status)
        return status;
    if (one)
        given = penc_shape_or(&given, &made->recorded_shape);
    if (!model)
        given = penc_shape_or(&given, read);
    if (!model && (!given.heads || !given.head_dim)) {
        status = penc_fail(error, POSENC_OUT_OF_RANGE, given.heads ? "head_dim" : "heads",
                           "be given: nothing beside the weights says how wide heads are");
        penc_fail_file(error, penc_conversion_path(made, 0));
        return status;
    }
    status = penc_layer_shapes_fill(model, &given, &made->shapes, error);
    if (status)
        penc_fail_file(error, penc_conversion_path(made, 0));
    made->shapes.trusted = one || model;
    made->facts.shape = made->shapes.shape[0];
    return status;
}

/* ---- The weights' own voice ---- */

/* Judges some layers; what cannot be judged says nothing. */
static posenc_status penc_plan_judge(posenc_conversion *made, posenc_error *error) {
    posenc_read_options read = POSENC_READ_OPTIONS_INIT;
    posenc_pair_powers *powers;
    posenc_judgement judgement;
    read.layers = made->options.judge_layers ? made->options.judge_layers : 4;
    if (made->options.judge_layers == POSENC_ALL_LAYERS)
        return POSENC_OK;
    posenc_status status =
        posenc_pair_powers_read(made->path.weights, &made->facts.shape, &read, &powers, error);
    if (!status)
        status = posenc_pair_powers_judge(powers, POSENC_ALL_LAYERS, &judgement, error);
    posenc_pair_powers_free(powers);
    if (status)
        return status == POSENC_OUT_OF_MEMORY ? status : POSENC_OK;
    made->facts.judged = judgement.both.verdict;
    made->facts.statistic = judgement.both.statistic;
    if (made->facts.judged == penc_detected_of(made->facts.to))
        penc_conversion_remark(made, "weights-contradict", 1,
                               "the weights look as if the rows were in the new order already: "
                               "posenc detect tells more");
    return POSENC_OK;
}

/* ---- The whole ---- */

/* Adapters have nothing but LoRA's parts. */
static void penc_plan_speak_of_base(posenc_conversion *made) {
    for (size_t i = 0; i < made->moves.count; i++) {
        if (strncmp(made->moves.list[i].what, "LoRA", 4) != 0)
            return;
    }
    penc_conversion_remark(made, "adapter", 0,
                           "an adapter fits a model whose rows are in the same order: it is to be "
                           "converted too");
}

static posenc_status penc_plan_with_model(posenc_conversion *made, const posenc_model *model,
                                          const posenc_attention_shape *read, posenc_error *error) {
    posenc_status status = penc_conversion_read_records(made, error);
    if (!status)
        status = penc_conversion_check_model(made, model, error);
    if (!status)
        status = penc_plan_from(made, error);
    if (!status)
        status = penc_plan_name(made, error);
    if (!status)
        status = penc_plan_stacks(made, error);
    if (!status)
        status = penc_plan_shapes(made, model, read, error);
    if (!status)
        status = penc_conversion_find_moves(made, error);
    if (!status)
        status = penc_conversion_check_records(made, error);
    if (!status)
        status = penc_plan_judge(made, error);
    if (status)
        return status;
    penc_conversion_name_readers(made, model);
    penc_plan_speak_of_base(made);
    if (!made->facts.records && !made->facts.recorded)
        penc_conversion_remark(made, "no-record", 1,
                               "llama2.c files have no room for a record: nothing will tell that "
                               "the rows were moved");
    return made->arena.failed ? penc_fail(error, POSENC_OUT_OF_MEMORY, "plan", "fit into memory")
                              : POSENC_OK;
}

static posenc_status penc_plan(posenc_conversion *made, const char *path, posenc_error *error) {
    posenc_attention_shape read = POSENC_ATTENTION_SHAPE_INIT;
    posenc_model *model = NULL;
    posenc_status status = penc_plan_open(made, path, error);
    if (!status)
        status = penc_plan_read(made, path, &read, error);
    if (status)
        return status;
    made->facts.to = made->options.to;
    made->facts.files = penc_conversion_files(made);
    made->facts.tensors = penc_tensor_set_count(made->set);
    if (penc_plan_config(made))
        status = posenc_model_open(penc_plan_config(made), &model, error);
    if (!status)
        status = penc_plan_with_model(made, model, &read, error);
    posenc_model_free(model);
    return status;
}

static posenc_status penc_check_options(const posenc_conversion_options *options,
                                        posenc_error *error) {
    posenc_status status = penc_check_struct(options, sizeof *options, "options", error);
    if (!status)
        status = penc_check_struct(&options->shape, sizeof options->shape, "shape", error);
    if (status)
        return status;
    if (!posenc_pairing_name(options->to))
        return penc_fail_integer(error, "to", options->to, "be half or interleaved");
    if (!posenc_detected_name(options->from))
        return penc_fail_integer(error, "from", options->from, "be half, interleaved or 0");
    return POSENC_OK;
}

posenc_status posenc_conversion_create(const char *path, const posenc_conversion_options *options,
                                       posenc_conversion **conversion, posenc_error *error) {
    if (!conversion)
        return penc_fail_null(error, "conversion");
    *conversion = NULL;
    if (!path)
        return penc_fail_null(error, "path");
    posenc_status status = penc_check_options(options, error);
    if (status)
        return status;
    posenc_conversion *made = calloc(1, sizeof *made);
    if (!made)
        return penc_fail(error, POSENC_OUT_OF_MEMORY, "conversion", "fit into memory");
    made->options = *options;
    status = penc_plan(made, path, error);
    if (status)
        posenc_conversion_free(made);
    else
        *conversion = made;
    return status;
}

void posenc_conversion_free(posenc_conversion *conversion) {
    if (!conversion)
        return;
    for (size_t i = 0; i < conversion->stack_count; i++)
        penc_attention_names_free(&conversion->stacks[i]);
    penc_layer_shapes_free(&conversion->shapes);
    penc_tensor_set_close(conversion->set);
    penc_model_path_free(&conversion->path);
    free(conversion->base);
    penc_arena_free(&conversion->arena);
    free(conversion->moves.list);
    free(conversion);
}

/* ---- What it is ---- */

const posenc_conversion_facts *posenc_conversion_about(const posenc_conversion *conversion) {
    return &conversion->facts;
}

size_t posenc_conversion_remark_count(const posenc_conversion *conversion) {
    return conversion->remark_count;
}

const posenc_conversion_remark *posenc_conversion_remark_at(const posenc_conversion *conversion,
                                                            size_t index) {
    return index < conversion->remark_count ? &conversion->remarks[index] : NULL;
}

/* Rows that get another place. */
static uint64_t penc_move_moving(const penc_move *move) {
    uint64_t moving = 0;
    for (size_t i = 0; i < move->order.side_count; i++) {
        const penc_head_rows *side = &move->order.sides[i];
        uint64_t of_head = 0;
        penc_row_order one = {.sides = {*side}, .side_count = 1, .to = move->order.to};
        for (size_t j = 0; j < side->rotary_dim; j++)
            of_head += penc_row_source(&one, side->first + j) != side->first + j;
        moving += side->heads * of_head;
    }
    return moving * (move->bytes / move->row_bytes / move->period);
}

posenc_status posenc_conversion_move_at(const posenc_conversion *conversion, size_t index,
                                        posenc_conversion_move *result, posenc_error *error) {
    size_t length;
    if (!result)
        return penc_fail_null(error, "move");
    if (index >= conversion->moves.count) {
        penc_fail_size(error, "index", index, "be below the number of moved tensors");
        penc_fail_limit(error, "moved tensors", conversion->moves.count);
        return POSENC_OUT_OF_RANGE;
    }
    const penc_move *move = &conversion->moves.list[index];
    const penc_tensor_source *file = penc_tensor_set_file(conversion->set, move->file);
    memset(result, 0, sizeof *result);
    result->file = file->input.path;
    result->what = move->what;
    result->side = move->side;
    result->rows = move->bytes / move->row_bytes;
    result->moving = penc_move_moving(move);
    for (size_t i = 0; i < move->order.side_count; i++)
        result->heads += move->order.sides[i].heads;
    result->rotary_dim = move->order.sides[0].rotary_dim;
    result->bytes = move->bytes;
    return file->format->name(file, &file->entries[move->entry], result->tensor, &length, error);
}
