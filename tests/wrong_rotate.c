/* Preloaded before libposenc: rotates rightly but for one bit of the last number, to see whether posenc bench
 * finds it. SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "posenc/rotate.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef posenc_status rotate_function(const posenc_rotation *, const posenc_tensor *, const void *,
                                      void *, const posenc_rotate_options *, posenc_error *);

posenc_status posenc_rotate(const posenc_rotation *rotation, const posenc_tensor *tensor,
                            const void *input, void *output, const posenc_rotate_options *options,
                            posenc_error *error) {
    void *found = dlsym(RTLD_NEXT, "posenc_rotate");
    rotate_function *rotate;
    if (!found)
        abort();
    memcpy(&rotate, &found, sizeof rotate); /* ISO C has no cast to a function */
    posenc_status status = rotate(rotation, tensor, input, output, options, error);
    size_t last = posenc_dtype_bytes(tensor->dtype);
    for (int axis = 0; axis < POSENC_AXES; axis++)
        last *= tensor->shape[axis];
    last -= posenc_dtype_bytes(tensor->dtype); /* dense and little-endian */
    ((unsigned char *)output)[last] ^= 1;
    return status;
}
