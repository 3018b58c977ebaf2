/* Dtype names, sizes and conversion of arrays. SPDX-License-Identifier: MIT */
#include "posenc/dtype.h"

#include "base/fail.h"
#include "base/number_access.h"

#include <string.h>

size_t posenc_dtype_bytes(posenc_dtype dtype) {
    switch (dtype) {
#define PENC_BYTES(name, number, bytes, text)                                                      \
    case POSENC_##name:                                                                            \
        return bytes;
        POSENC_DTYPE_LIST(PENC_BYTES)
#undef PENC_BYTES
    }
    return 0;
}

const char *posenc_dtype_name(posenc_dtype dtype) {
    switch (dtype) {
#define PENC_NAME(name, number, bytes, text)                                                       \
    case POSENC_##name:                                                                            \
        return text;
        POSENC_DTYPE_LIST(PENC_NAME)
#undef PENC_NAME
    }
    return NULL;
}

posenc_status posenc_dtype_parse(const char *text, posenc_dtype *dtype, posenc_error *error) {
    static const struct {
        const char *text;
        posenc_dtype dtype;
    } names[] = {
#define PENC_SHORT_NAME(name, number, bytes, text) {text, POSENC_##name},
        POSENC_DTYPE_LIST(PENC_SHORT_NAME)
#undef PENC_SHORT_NAME
            {"float64", POSENC_F64},
        {"double", POSENC_F64},
        {"float32", POSENC_F32},
        {"float", POSENC_F32},
        {"float16", POSENC_F16},
        {"half", POSENC_F16},
        {"bfloat16", POSENC_BF16},
    };
    if (!text)
        return penc_fail_null(error, "text");
    if (!dtype)
        return penc_fail_null(error, "dtype");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i].text) == 0) {
            *dtype = names[i].dtype;
            return POSENC_OK;
        }
    }
    return penc_fail(error, POSENC_OUT_OF_RANGE, "dtype", "be one of f64, f32, f16, bf16");
}

posenc_status posenc_convert(const void *from, posenc_dtype from_dtype, void *to,
                             posenc_dtype to_dtype, size_t count, posenc_error *error) {
    if (!posenc_dtype_bytes(from_dtype))
        return penc_fail_integer(error, "from_dtype", from_dtype, "be a posenc_dtype");
    if (!posenc_dtype_bytes(to_dtype))
        return penc_fail_integer(error, "to_dtype", to_dtype, "be a posenc_dtype");
    if (count && !from)
        return penc_fail_null(error, "from");
    if (count && !to)
        return penc_fail_null(error, "to");
    if (count > SIZE_MAX / 8)
        return penc_fail_size(error, "count", count, "be at most SIZE_MAX / 8");
    if (from_dtype == to_dtype) {
        if (from != to)
            memcpy(to, from, count * posenc_dtype_bytes(to_dtype));
        return POSENC_OK;
    }
    for (size_t i = 0; i < count; i++)
        penc_store_number(to, to_dtype, (ptrdiff_t)i,
                          penc_load_number(from, from_dtype, (ptrdiff_t)i));
    return POSENC_OK;
}
