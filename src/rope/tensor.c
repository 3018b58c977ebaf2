/* Tensors: making them and mapping their memory. SPDX-License-Identifier: MIT */
#include "rope/tensor_map.h"

#include "base/struct_size.h"

posenc_tensor posenc_tensor_dense(posenc_dtype dtype, size_t batch, size_t tokens, size_t heads,
                                  size_t head_dim) {
    posenc_tensor tensor = {sizeof tensor, dtype, {batch, tokens, heads, head_dim}, {0, 0, 0, 1}};
    tensor.strides[POSENC_AXIS_HEADS] = (ptrdiff_t)head_dim;
    tensor.strides[POSENC_AXIS_TOKENS] = (ptrdiff_t)(heads * head_dim);
    tensor.strides[POSENC_AXIS_BATCH] = (ptrdiff_t)(tokens * heads * head_dim);
    return tensor;
}

posenc_status penc_map_tensor(const posenc_tensor *tensor, const char *argument,
                              penc_memory_map *map, posenc_error *error) {
    posenc_status status = penc_check_struct(tensor, sizeof *tensor, argument, error);
    if (status)
        return status;
    size_t bytes = posenc_dtype_bytes(tensor->dtype);
    if (!bytes)
        return penc_fail_integer(error, "dtype", tensor->dtype, "be a posenc_dtype");
    if (!penc_map_array(map, bytes, POSENC_AXES, tensor->shape, tensor->strides))
        return penc_fail(error, POSENC_OVERFLOW, argument,
                         "have sizes and strides whose products fit the address space");
    return POSENC_OK;
}
