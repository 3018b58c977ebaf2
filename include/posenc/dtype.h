/* posenc/dtype.h - the number types of tensors, tables and files.
 *
 * 16-bit types have no arithmetic here: they are widened to float32, computed there and rounded
 * once, to nearest, ties to even, denormals kept, NaN stays NaN (its payload is free). Default
 * rounding mode and no flush-to-zero are assumed of the floating-point environment.
 *
 * SPDX-License-Identifier: MIT */
#ifndef POSENC_DTYPE_H
#define POSENC_DTYPE_H

#include "posenc/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every dtype: name, number, bytes, the name in flags and JSON. */
#define POSENC_DTYPE_LIST(X)                                                                       \
    X(F32, 0, 4, "f32")                                                                            \
    X(F64, 1, 8, "f64")                                                                            \
    X(F16, 2, 2, "f16")                                                                            \
    X(BF16, 3, 2, "bf16")

typedef enum posenc_dtype {
#define POSENC_DTYPE_ENTRY(name, number, bytes, text) POSENC_##name = number,
    POSENC_DTYPE_LIST(POSENC_DTYPE_ENTRY)
#undef POSENC_DTYPE_ENTRY
} posenc_dtype;

/* Bytes of one element; 0 for a number that is no dtype. */
POSENC_API size_t posenc_dtype_bytes(posenc_dtype dtype);

/* "f64", "f32", "f16" or "bf16"; NULL for a number that is no dtype. */
POSENC_API const char *posenc_dtype_name(posenc_dtype dtype);

/* Reads "f64", "f32", "f16", "bf16" and the common long names ("float32", "float16", "half",
 * "bfloat16", "float64", "double", "float"). Fails with OUT_OF_RANGE on anything else. */
POSENC_API POSENC_CHECKED posenc_status posenc_dtype_parse(const char *text, posenc_dtype *dtype,
                                                           posenc_error *error);

/* Converts `count` contiguous elements between any two dtypes, rounding once from the source's
 * value (float64 to 16 bits does not pass through float32). Equal dtypes are copied bit for bit.
 * `from` and `to` must not overlap, except that they may be equal if the dtypes are. */
POSENC_API POSENC_CHECKED posenc_status posenc_convert(const void *from, posenc_dtype from_dtype,
                                                       void *to, posenc_dtype to_dtype,
                                                       size_t count, posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
