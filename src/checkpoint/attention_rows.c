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

/* Fails if the tensor has not the rows that the shape gives. */
static posenc_status penc_side_fill(penc_attention_layout layout,
                                    const posenc_attention_shape *shape, int which,
                                    penc_side_rows *side, posenc_error *error) {
    uint64_t rows = side->tensor.rank ? side->tensor.shape[0] : 1, wanted;
    int fits = penc_head_rows_fill(layout, shape, which, rows, &side->heads, &wanted);
    if (fits && side->tensor.rank == 2)
        return POSENC_OK;
    posenc_status status = penc_fail_size(error, "rows", rows, "be what heads and head_dim give");
    penc_fail_limit(error, "rows wanted", wanted);
    penc_fail_name(error, side->tensor.name, side->tensor.name_length);
    penc_fail_file(error, side->file->input.path);
    return status;
}

posenc_status penc_attention_rows_of(const penc_tensor_set *set, const penc_attention_names *names,
                                     uint32_t layer, const posenc_attention_shape *shape,
                                     penc_side_rows sides[2], posenc_error *error) {
    const penc_attention_scheme *scheme = names->scheme;
    posenc_status status = penc_side_find(set, names, layer, scheme->q, &sides[PENC_SIDE_Q], error);
    sides[PENC_SIDE_K] = sides[PENC_SIDE_Q];
    if (!status && scheme->k)
        status = penc_side_find(set, names, layer, scheme->k, &sides[PENC_SIDE_K], error);
    for (int which = 0; which < 2 && !status; which++)
        status = penc_side_fill(scheme->layout, shape, which, &sides[which], error);
    return status;
}
