/* An array's axes as the four of a posenc_tensor. SPDX-License-Identifier: MIT */
#include "tensors.h"

namespace {

/* One letter for each axis of an array: b, t, h, d for batch, tokens, heads, head_dim. */
int axis_of_letter(char letter) {
    return letter == 'b'   ? POSENC_AXIS_BATCH
           : letter == 't' ? POSENC_AXIS_TOKENS
           : letter == 'h' ? POSENC_AXIS_HEADS
                           : POSENC_AXIS_HEAD_DIM;
}

} // namespace

std::string default_axes(int rank, bool own_rows) {
    std::string letters(static_cast<size_t>(rank), 'h');
    letters[static_cast<size_t>(rank) - 1] = 'd';
    if (rank > 1)
        letters[static_cast<size_t>(rank) - 2] = 't';
    if (rank > 3 || (rank == 3 && own_rows))
        letters[0] = 'b';
    return letters;
}

bool describe(const array &a, const char *letters, posenc_tensor *tensor) {
    *tensor = posenc_tensor_dense(a.dtype(), 1, 1, 1, 1);
    size_t inner[POSENC_AXES] = {1, 1, 1, 1}; /* without empty axes */
    for (int i = a.rank - 1; i >= 0; i--) {
        int axis = axis_of_letter(letters[i]);
        size_t size = static_cast<size_t>(a.shape[i]);
        tensor->shape[axis] *= size;
        if (size <= 1)
            continue;
        if (inner[axis] == 1)
            tensor->strides[axis] = a.strides[i];
        else if (a.strides[i] != tensor->strides[axis] * static_cast<ptrdiff_t>(inner[axis]))
            return false;
        inner[axis] *= size;
    }
    return true;
}
