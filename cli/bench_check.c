/* Slow computations of what the kernels compute. SPDX-License-Identifier: MIT */
#include "bench_check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef struct float_format {
    int digits;         /* of the significand */
    int least_exponent; /* of the last digit of denormals */
} float_format;

static float_format format_of(posenc_dtype dtype) {
    switch (dtype) {
    case POSENC_F64:
        return (float_format){53, -1074};
    case POSENC_F16:
        return (float_format){11, -24};
    case POSENC_BF16:
        return (float_format){8, -133};
    case POSENC_F32:
        break;
    }
    return (float_format){24, -149};
}

/* The unit in the last place of numbers as large as `value`. */
static double unit_of(double value, posenc_dtype dtype) {
    float_format format = format_of(dtype);
    int exponent;
    frexp(value, &exponent);
    exponent -= format.digits;
    return ldexp(1.0, exponent > format.least_exponent ? exponent : format.least_exponent);
}

double bench_round(double value, posenc_dtype dtype) {
    double unit = unit_of(value, dtype);
    return rint(value / unit) * unit;
}

double bench_number(const void *array, posenc_dtype dtype, size_t index) {
    const char *at = (const char *)array + index * posenc_dtype_bytes(dtype);
    double value;
    if (posenc_convert(at, dtype, &value, POSENC_F64, 1, NULL))
        return NAN;
    return value;
}

int bench_is_rounded(double value, long double wanted, long double doubt, posenc_dtype dtype) {
    double units = dtype == POSENC_F64 ? 1.0 : 0.5;
    long double limit = units * (long double)unit_of((double)wanted, dtype) + doubt;
    return fabsl(value - wanted) <= limit; /* NaN fails */
}

size_t bench_random(uint64_t *state, size_t limit) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)((*state >> 33) % limit);
}
