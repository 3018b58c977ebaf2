/* What posenc bench measures: the one list of its cases. SPDX-License-Identifier: MIT */
#include "bench_cases.h"

const char *const bench_work_names[BENCH_WORKS] = {"rotate", "norm_rotate", "append", "angles",
                                                   "bias"};
const char *const bench_order_names[2] = {"tokens", "heads"};

enum { HEADS = 32, KV_HEADS = 8, HEAD_DIM = 128, LONG = 4096, SHORT = 32 };

/* A grid holds every combination of its axes' values, the last axis fastest. An axis without values has the
 * single value 0. */
enum grid_axis {
    DTYPE,
    CACHE,
    MODE,
    PAIRING,
    WIDTH,
    ORDER,
    FIRST,
    SCATTERED,
    TOKENS,
    PLACE,
    GRID_AXES
};
enum { MOST_VALUES = 4 };

typedef struct axis {
    size_t count;
    int64_t value[MOST_VALUES];
} axis;

typedef struct grid {
    bench_work work;
    size_t heads;
    axis axes[GRID_AXES];
} grid;

#define FLOATS                                                                                     \
    {                                                                                              \
        3, {                                                                                       \
            POSENC_F32, POSENC_F16, POSENC_BF16                                                    \
        }                                                                                          \
    }
#define PAIRINGS                                                                                   \
    {                                                                                              \
        2, {                                                                                       \
            POSENC_PAIRING_HALF, POSENC_PAIRING_INTERLEAVED                                        \
        }                                                                                          \
    }
#define PLACES                                                                                     \
    {                                                                                              \
        2, {                                                                                       \
            0, 1                                                                                   \
        }                                                                                          \
    }
#define ONE(value)                                                                                 \
    {                                                                                              \
        1, {                                                                                       \
            value                                                                                  \
        }                                                                                          \
    }

static const grid grids[] = {
    {BENCH_ROTATE,
     HEADS,
     {[DTYPE] = FLOATS,
      [PAIRING] = PAIRINGS,
      [WIDTH] = ONE(HEAD_DIM),
      [TOKENS] = {3, {1, SHORT, LONG}},
      [PLACE] = PLACES}},
    {BENCH_ROTATE, /* other widths */
     HEADS,
     {[DTYPE] = FLOATS,
      [PAIRING] = PAIRINGS,
      [WIDTH] = {4, {64, 80, 96, 256}},
      [TOKENS] = {2, {SHORT, LONG}},
      [PLACE] = PLACES}},
    {BENCH_ROTATE, /* (heads, tokens) in memory */
     HEADS,
     {[DTYPE] = FLOATS,
      [PAIRING] = PAIRINGS,
      [WIDTH] = ONE(HEAD_DIM),
      [ORDER] = ONE(BENCH_HEADS_FIRST),
      [TOKENS] = {2, {SHORT, LONG}},
      [PLACE] = PLACES}},
    {BENCH_NORM_ROTATE,
     HEADS,
     {[DTYPE] = FLOATS,
      [PAIRING] = PAIRINGS,
      [WIDTH] = ONE(HEAD_DIM),
      [TOKENS] = {3, {1, SHORT, LONG}},
      [PLACE] = PLACES}},
    {BENCH_APPEND, /* 16-bit keys and values as they are, and quantised */
     KV_HEADS,
     {[DTYPE] = ONE(POSENC_F16),
      [PAIRING] = PAIRINGS,
      [CACHE] = {2, {POSENC_CACHE_F16, POSENC_CACHE_INT8}},
      [WIDTH] = ONE(HEAD_DIM),
      [TOKENS] = {3, {1, SHORT, LONG}}}},
    {BENCH_APPEND, /* and what CPU engines compute in */
     KV_HEADS,
     {[DTYPE] = ONE(POSENC_F32),
      [PAIRING] = PAIRINGS,
      [CACHE] = {4,
                 {POSENC_CACHE_F16, POSENC_CACHE_BF16, POSENC_CACHE_INT8, POSENC_CACHE_FP8_E4M3}},
      [WIDTH] = ONE(HEAD_DIM),
      [TOKENS] = {3, {1, SHORT, LONG}}}},
    {BENCH_ANGLES, /* positions out of order */
     0,
     {[DTYPE] = ONE(POSENC_F32),
      [MODE] = ONE(POSENC_MODE_EXACT),
      [WIDTH] = ONE(HEAD_DIM),
      [SCATTERED] = ONE(1),
      [TOKENS] = ONE(2048)}},
    {BENCH_ANGLES, /* runs of positions, and rows one by one as decoding asks for them */
     0,
     {[DTYPE] = {4, {POSENC_F32, POSENC_F16, POSENC_BF16, POSENC_F64}},
      [MODE] = ONE(POSENC_MODE_EXACT),
      [WIDTH] = ONE(HEAD_DIM),
      [FIRST] = {2, {0, 1000000}},
      [TOKENS] = {2, {2048, 1}}}},
    {BENCH_ANGLES,
     0,
     {[DTYPE] = ONE(POSENC_F32),
      [MODE] = ONE(POSENC_MODE_FLOAT32),
      [WIDTH] = ONE(HEAD_DIM),
      [TOKENS] = {2, {2048, 1}}}},
    {BENCH_BIAS, HEADS, {[DTYPE] = ONE(POSENC_F32), [TOKENS] = ONE(LONG)}},
};
enum { GRIDS = sizeof grids / sizeof *grids };

static size_t values_of(const axis *a) {
    return a->count ? a->count : 1;
}

static size_t cases_of(const grid *g) {
    size_t count = 1;
    for (int i = 0; i < GRID_AXES; i++)
        count *= values_of(&g->axes[i]);
    return count;
}

size_t bench_case_count(void) {
    size_t count = 0;
    for (int i = 0; i < GRIDS; i++)
        count += cases_of(&grids[i]);
    return count;
}

bench_case bench_case_at(size_t index) {
    const grid *g = grids;
    while (index >= cases_of(g))
        index -= cases_of(g++);
    int64_t value[GRID_AXES];
    for (int i = GRID_AXES; i-- > 0;) {
        value[i] = g->axes[i].value[index % values_of(&g->axes[i])];
        index /= values_of(&g->axes[i]);
    }
    return (bench_case){.work = g->work,
                        .dtype = (posenc_dtype)value[DTYPE],
                        .tokens = (size_t)value[TOKENS],
                        .heads = g->heads,
                        .head_dim = (size_t)value[WIDTH],
                        .pairing = (posenc_pairing)value[PAIRING],
                        .order = (bench_order)value[ORDER],
                        .in_place = (int)value[PLACE],
                        .cache = (posenc_cache_format)value[CACHE],
                        .mode = (posenc_mode)value[MODE],
                        .first_position = value[FIRST],
                        .scattered = (int)value[SCATTERED]};
}

int bench_turns(const bench_case *c) {
    return c->work == BENCH_ROTATE || c->work == BENCH_NORM_ROTATE || c->work == BENCH_APPEND;
}

size_t bench_case_bytes(const bench_case *c) {
    size_t heads = c->heads ? c->heads : 1; /* rows: cos and sin have head_dim / 2 numbers each */
    size_t arrays = c->work == BENCH_APPEND ? 2 : 1;
    return arrays * c->tokens * heads * c->head_dim * posenc_dtype_bytes(c->dtype);
}
