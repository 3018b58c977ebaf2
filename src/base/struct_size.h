/* The check of size-first parameter structs. SPDX-License-Identifier: MIT */
#ifndef PENC_STRUCT_SIZE_H
#define PENC_STRUCT_SIZE_H

#include "base/fail.h"

/* `object` begins with its size. A size below `known` was never set; a larger one comes from newer
 * headers and is accepted as long as the members that this library does not know are 0. */
static inline posenc_status penc_check_struct(const void *object, size_t known,
                                              const char *argument, posenc_error *error) {
    if (!object)
        return penc_fail_null(error, argument);
    size_t size = *(const size_t *)object;
    if (size < known || size > 4096) {
        penc_fail_size(error, argument, size, "begin with its size: start from its _INIT macro");
        penc_fail_limit(error, "the size", known);
        return POSENC_OUT_OF_RANGE;
    }
    for (size_t i = known; i < size; i++) {
        if (((const unsigned char *)object)[i])
            return penc_fail(error, POSENC_UNSUPPORTED, argument,
                             "leave members at 0 that this version of the library does not know");
    }
    return POSENC_OK;
}

#endif
