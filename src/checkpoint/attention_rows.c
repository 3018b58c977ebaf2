/* Which rows of which tensors are q and k. SPDX-License-Identifier: MIT */
#include "checkpoint/attention_rows.h"

#include "base/fail.h"
#include "base/struct_size.h"

#include <string.h>

enum { PENC_MAX_HEADS = 1 << 16, PENC_MAX_HEAD_DIM = 1 << 16 };

posenc_status penc_attention_shape_check(const posenc_attention_shape *shape,
                                         posenc_attention_shape *full, posenc_error *error) {
    posenc_status status = penc_check_struct(shape, sizeof *shape, "shape", error);
    if (status)
        return status;
    *full = *shape;
    full->size = sizeof *full;
    if (full->heads < 1 || full->heads > PENC_MAX_HEADS)
        return penc_fail_size(error, "heads", full->heads, "be from 1 to 65536");
    if (!full->kv_heads)
        full->kv_heads = full->heads;
    if (full->kv_heads > full->heads || full->heads % full->kv_heads) {
        penc_fail_size(error, "kv_heads", full->kv_heads, "divide heads");
        penc_fail_limit(error, "heads", full->heads);
        return POSENC_OUT_OF_RANGE;
    }
    if (full->head_dim < 4 || full->head_dim > PENC_MAX_HEAD_DIM)
        return penc_fail_size(error, "head_dim", full->head_dim, "be from 4 to 65536");
    if (full->rotary_start > full->head_dim - 4) {
        penc_fail_size(error, "rotary_start", full->rotary_start, "leave 4 channels of head_dim");
        penc_fail_limit(error, "head_dim", full->head_dim);
        return POSENC_OUT_OF_RANGE;
    }
    size_t most = full->head_dim - full->rotary_start;
    if (!full->rotary_dim)
        full->rotary_dim = most;
    if (full->rotary_dim > most) {
        penc_fail_size(error, "rotary_dim", full->rotary_dim, "be at most head_dim - rotary_start");
        penc_fail_limit(error, "head_dim - rotary_start", most);
        return POSENC_OUT_OF_RANGE;
    }
    if (full->gain_offset != 0 && full->gain_offset != 1)
        return penc_fail_integer(error, "gain_offset", full->gain_offset, "be 0 or 1");
    return POSENC_OK;
}

static posenc_status penc_side_find(const penc_tensor_set *set, const penc_attention_names *names,
                                    uint32_t layer, const char *part, penc_side_rows *side,
                                    posenc_error *error) {
    char name[PENC_NAME_BYTES];
    side->part = part;
    if (!penc_attention_name(names, layer, part, ".weight", name))
        return penc_fail(error, POSENC_FORMAT, "tensor", "have a name below 512 bytes");
    posenc_status status = penc_tensor_set_find(set, name, &side->tensor, &side->file, error);
    if (status || side->file)
        return status;
    status = penc_fail(error, POSENC_FORMAT, "tensor", "be in the checkpoint");
    penc_fail_name(error, name, strlen(name));
    penc_fail_file(error, penc_tensor_set_file(set, 0)->input.path);
    return status;
}

/* The tensor has to have `rows` rows. */
static posenc_status penc_side_check(const penc_side_rows *side, uint64_t rows,
                                     posenc_error *error) {
    if (side->tensor.rank == 2 && side->tensor.shape[0] == rows)
        return POSENC_OK;
    uint64_t there = side->tensor.rank ? side->tensor.shape[0] : 1;
    posenc_status status = penc_fail_size(error, "rows", there, "be what heads and head_dim give");
    penc_fail_limit(error, "rows wanted", rows);
    penc_fail_name(error, side->tensor.name, side->tensor.name_length);
    penc_fail_file(error, side->file->input.path);
    return status;
}

/* One tensor each. q may have a gate beside every head (Qwen3-Next): twice the rows, of which the first are q's. */
static posenc_status penc_rows_separate(const posenc_attention_shape *shape,
                                        penc_side_rows sides[2], posenc_error *error) {
    uint64_t q_rows = (uint64_t)shape->heads * shape->head_dim;
    if (sides[0].tensor.rank == 2 && sides[0].tensor.shape[0] == 2 * q_rows) {
        sides[0].head_rows *= 2;
        q_rows *= 2;
    }
    posenc_status status = penc_side_check(&sides[0], q_rows, error);
    return status ? status
                  : penc_side_check(&sides[1], (uint64_t)shape->kv_heads * shape->head_dim, error);
}

/* k: one head, the last rows of its tensor. */
static posenc_status penc_rows_latent(const posenc_attention_shape *shape, penc_side_rows sides[2],
                                      posenc_error *error) {
    posenc_status status =
        penc_side_check(&sides[0], (uint64_t)shape->heads * shape->head_dim, error);
    if (status)
        return status;
    penc_side_rows *k = &sides[1];
    if (k->tensor.rank != 2 || k->tensor.shape[0] <= shape->rotary_dim)
        return penc_side_check(k, shape->rotary_dim + 1, error);
    k->heads = k->group = 1;
    k->head_dim = shape->rotary_dim;
    k->rotary_start = 0;
    k->first = k->tensor.shape[0] - shape->rotary_dim;
    return POSENC_OK;
}

/* Fused. */
static posenc_status penc_rows_fused(const posenc_attention_shape *shape, int grouped,
                                     penc_side_rows sides[2], posenc_error *error) {
    size_t group = shape->heads / shape->kv_heads;
    sides[1].file = sides[0].file;
    sides[1].tensor = sides[0].tensor;
    sides[1].part = sides[0].part;
    if (grouped) {
        sides[0].group = group;
        sides[1].group = 1;
        sides[0].group_rows = sides[1].group_rows = (uint64_t)(group + 2) * shape->head_dim;
        sides[1].first = (uint64_t)group * shape->head_dim;
    } else {
        sides[1].first = (uint64_t)shape->heads * shape->head_dim;
    }
    return penc_side_check(&sides[0],
                           (uint64_t)(shape->heads + 2 * shape->kv_heads) * shape->head_dim, error);
}

posenc_status penc_attention_rows_of(const penc_tensor_set *set, const penc_attention_names *names,
                                     uint32_t layer, const posenc_attention_shape *shape,
                                     penc_side_rows sides[2], posenc_error *error) {
    const penc_attention_scheme *scheme = names->scheme;
    for (int i = 0; i < 2; i++) {
        size_t heads = i ? shape->kv_heads : shape->heads;
        memset(&sides[i], 0, sizeof sides[i]);
        sides[i].heads = sides[i].group = heads;
        sides[i].head_rows = sides[i].head_dim = shape->head_dim;
        sides[i].rotary_start = shape->rotary_start;
        sides[i].rotary_dim = shape->rotary_dim;
    }
    posenc_status status = penc_side_find(set, names, layer, scheme->q, &sides[0], error);
    if (!status && scheme->k)
        status = penc_side_find(set, names, layer, scheme->k, &sides[1], error);
    if (status)
        return status;
    switch (scheme->layout) {
    case PENC_SEPARATE:
        return penc_rows_separate(shape, sides, error);
    case PENC_LATENT:
        return penc_rows_latent(shape, sides, error);
    case PENC_JOINED:
    case PENC_GROUPED:
    default:
        return penc_rows_fused(shape, scheme->layout == PENC_GROUPED, sides, error);
    }
}
