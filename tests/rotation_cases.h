/* Strided tensors, cases of a rotation and their oracle, and whole encodings to rotate with, for the tests of
 * rotation. SPDX-License-Identifier: MIT */
#ifndef ROTATION_CASES_H
#define ROTATION_CASES_H

#include "guard_pages.h"
#include "oracle.h"
#include "posenc/posenc.h"
#include "random_data.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};
static const posenc_pairing pairings[] = {POSENC_PAIRING_HALF, POSENC_PAIRING_INTERLEAVED};

static inline posenc_dtype table_dtype_of(posenc_dtype dtype) {
    return dtype == POSENC_F64 ? POSENC_F64 : POSENC_F32;
}

/* --- Strided memory ----------------------------------------------------------------------------- */

/* A tensor's memory between guard pages: exactly the bytes that its strides reach. */
typedef struct strided {
    posenc_tensor tensor;
    guarded memory;
    void *data; /* element 0, 0, 0, 0 */
} strided;

static inline strided strided_new(const posenc_tensor *tensor, guard_side side) {
    ptrdiff_t low = 0, high = 1;
    size_t bytes = oracle_bytes(tensor->dtype);
    for (int axis = 0; axis < POSENC_AXES; axis++) {
        ptrdiff_t reach = ((ptrdiff_t)tensor->shape[axis] - 1) * tensor->strides[axis];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    strided s = {*tensor, guarded_new((size_t)(high - low) * bytes, side), NULL};
    s.data = (char *)s.memory.data - low * (ptrdiff_t)bytes;
    return s;
}

static inline ptrdiff_t element_at(const posenc_tensor *t, const size_t at[POSENC_AXES]) {
    ptrdiff_t element = 0;
    for (int axis = 0; axis < POSENC_AXES; axis++)
        element += (ptrdiff_t)at[axis] * t->strides[axis];
    return element;
}

/* Steps through all elements in the order of the axes, the last one fastest; 0 at the end. */
static inline int next_element(const posenc_tensor *t, size_t at[POSENC_AXES]) {
    for (int axis = POSENC_AXES - 1; axis >= 0; axis--) {
        if (++at[axis] < t->shape[axis])
            return 1;
        at[axis] = 0;
    }
    return 0;
}

/* Any pattern, every fourth one of the kinds that are rare: denormals, infinities and NaN, quiet and
 * signalling. */
static inline uint64_t random_pattern(posenc_dtype dtype, random_stream *rng) {
    uint64_t bits = random_bits(rng), infinity = oracle_bits_of_double((double)INFINITY, dtype);
    switch (random_below(rng, 12)) {
    case 0:
        return bits & ~infinity;
    case 1:
        return bits | infinity;
    case 2:
        return infinity;
    default:
        return bits;
    }
}

/* Normal numbers, or patterns of any kind. */
static inline void strided_fill(strided *s, int any_pattern, random_stream *rng) {
    size_t at[POSENC_AXES] = {0};
    do {
        uint64_t bits = any_pattern ? random_pattern(s->tensor.dtype, rng)
                                    : oracle_bits_of_double(random_normal(rng), s->tensor.dtype);
        oracle_store(s->data, s->tensor.dtype, element_at(&s->tensor, at), bits);
    } while (next_element(&s->tensor, at));
}

/* Strides of a tensor whose axes follow one another in `order`, slowest first; axis k is laid out
 * backwards if bit k of `backwards` is set, and up to `padding` elements are left out between. */
static inline void set_strides(posenc_tensor *tensor, const int order[POSENC_AXES],
                               unsigned backwards, size_t padding, random_stream *rng) {
    ptrdiff_t reach = 1;
    for (int i = POSENC_AXES - 1; i >= 0; i--) {
        int axis = order[i];
        tensor->strides[axis] = backwards >> axis & 1 ? -reach : reach;
        reach = reach * (ptrdiff_t)tensor->shape[axis] + (ptrdiff_t)random_below(rng, padding + 1);
    }
}

/* --- The oracle --------------------------------------------------------------------------------- */

/* A call: the tensors, the options, and the rotation without its tables, which are made for it. */
typedef struct rotate_case {
    posenc_tensor x, y;
    posenc_rotation rotation;
    posenc_direction direction;
    int in_place, any_pattern;
    posenc_output_pairing output_pairing;
    size_t first_token, token_count;
    posenc_stores stores;
} rotate_case;

static inline posenc_pairing output_pairing_of(const rotate_case *c) {
    if (c->output_pairing == POSENC_OUTPUT_SAME)
        return c->rotation.pairing;
    return c->output_pairing == POSENC_OUTPUT_HALF ? POSENC_PAIRING_HALF
                                                   : POSENC_PAIRING_INTERLEAVED;
}

/* Channel `channel` belongs to a pair, as its first or second number, or to none. */
typedef struct lane {
    int rotates, is_second;
    size_t pair;
} lane;

static inline lane lane_of(const posenc_rotation *r, posenc_pairing pairing, size_t channel) {
    lane l = {0, 0, 0};
    if (channel < r->rotary_start || channel >= r->rotary_start + r->rotary_dim)
        return l;
    size_t at = channel - r->rotary_start, pairs = r->rotary_dim / 2;
    int half = pairing == POSENC_PAIRING_HALF;
    l.rotates = 1;
    l.is_second = half ? at >= pairs : at % 2 == 1;
    l.pair = half ? at % pairs : at / 2;
    return l;
}

/* The other way round: where a number of a pair lies. */
static inline size_t channel_of(const posenc_rotation *r, posenc_pairing pairing, size_t pair,
                                int is_second) {
    size_t pairs = r->rotary_dim / 2;
    return r->rotary_start + (pairing == POSENC_PAIRING_HALF ? pair + (is_second ? pairs : 0)
                                                             : 2 * pair + (is_second ? 1 : 0));
}

/* The row of a token in its sequence's table, as the header tells. */
static inline ptrdiff_t row_of(const posenc_rotation *r, size_t batch, size_t token) {
    ptrdiff_t t = (ptrdiff_t)token;
    if (r->row_ids)
        return (ptrdiff_t)r->row_ids[(ptrdiff_t)batch * r->row_ids_stride + t];
    if (!r->cu_seqlens)
        return t + (r->row_starts ? (ptrdiff_t)r->row_starts[batch] : 0);
    for (size_t s = 0; s < r->sequences; s++) {
        if (t >= r->cu_seqlens[s] && t < r->cu_seqlens[s + 1])
            return t - r->cu_seqlens[s] + (r->row_starts ? (ptrdiff_t)r->row_starts[s] : 0);
    }
    fail_msg("no sequence has token %zu", token);
    return 0;
}

/* A pair and the four numbers that turn it; c2 and s2 are c and s but for tables that are no rotation. */
typedef struct turn {
    double a, b, c, s, c2, s2, scale;
    int transpose;
} turn;

/* One number of a rotated pair. Each product and the sum are rounded in the computing type, and so is the scaled
 * sum; the result once more where it is narrower. */
#define TURNED(name, real)                                                                         \
    static inline double name(const turn *t, int is_second) {                                      \
        real a = (real)t->a, b = (real)t->b, c = (real)t->c, s = (real)t->s;                       \
        real c2 = (real)t->c2, s2 = (real)t->s2, kept = is_second ? b * c2 : a * c;                \
        real crossed =                                                                             \
            is_second ? (t->transpose ? a * s : a * s2) : (t->transpose ? b * s2 : b * s);         \
        real sum = is_second == t->transpose ? kept - crossed : kept + crossed;                    \
        return (double)(t->scale == 1.0 ? sum : sum * (real)t->scale);                             \
    }
TURNED(turned_double, double)
TURNED(turned_float, float)
#undef TURNED

static inline double number_at(const void *data, posenc_dtype dtype, ptrdiff_t place) {
    return oracle_value(oracle_load(data, dtype, place), dtype);
}

/* What turns pair `pair` of a place; `r` is the case's rotation with its tables. */
static inline turn turn_of(const rotate_case *c, const posenc_rotation *r, const void *input,
                           const size_t at[POSENC_AXES], size_t pair) {
    size_t first[POSENC_AXES], second[POSENC_AXES];
    memcpy(first, at, sizeof first);
    memcpy(second, at, sizeof second);
    first[POSENC_AXIS_HEAD_DIM] = channel_of(r, r->pairing, pair, 0);
    second[POSENC_AXIS_HEAD_DIM] = channel_of(r, r->pairing, pair, 1);
    ptrdiff_t pair_stride = r->pair_stride ? r->pair_stride : 1;
    ptrdiff_t row_stride =
        r->row_stride ? r->row_stride : (ptrdiff_t)(r->rotary_dim / 2) * pair_stride;
    ptrdiff_t place = row_of(r, at[POSENC_AXIS_BATCH], at[POSENC_AXIS_TOKENS]) * row_stride +
                      (ptrdiff_t)pair * pair_stride;
    if (r->batch > 1)
        place += (ptrdiff_t)at[POSENC_AXIS_BATCH] * r->batch_stride;
    double factor = r->attention_factor;
    turn t = {.scale = 1.0, .transpose = c->direction != POSENC_FORWARD};
    t.a = number_at(input, c->x.dtype, element_at(&c->x, first));
    t.b = number_at(input, c->x.dtype, element_at(&c->x, second));
    t.c = number_at(r->cos, r->dtype, place);
    t.s = number_at(r->sin, r->dtype, place);
    t.c2 = number_at(r->cos, r->dtype, place + r->second_stride);
    t.s2 = number_at(r->sin, r->dtype, place + r->second_stride);
    if (c->direction == POSENC_INVERSE && factor != 0.0)
        t.scale = 1.0 / (factor * factor);
    return t;
}

/* What posenc_rotate should write at one place, from a copy of the input. */
static inline uint64_t expected(const rotate_case *c, const posenc_rotation *r, const void *input,
                                const size_t at[POSENC_AXES]) {
    lane l = lane_of(r, output_pairing_of(c), at[POSENC_AXIS_HEAD_DIM]);
    if (!l.rotates) {
        uint64_t own = oracle_load(input, c->x.dtype, element_at(&c->x, at));
        return c->x.dtype == c->y.dtype
                   ? own
                   : oracle_bits_of_double(oracle_value(own, c->x.dtype), c->y.dtype);
    }
    turn t = turn_of(c, r, input, at, l.pair);
    return oracle_bits_of_double(c->x.dtype == POSENC_F64 ? turned_double(&t, l.is_second)
                                                          : turned_float(&t, l.is_second),
                                 c->y.dtype);
}

/* cos or sin tables of a rotation, seen as a tensor of batch, tokens, 1 or 2 channels, pairs. */
static inline strided table_new(const posenc_rotation *r, guard_side side, random_stream *rng) {
    posenc_tensor shape = posenc_tensor_dense(r->dtype, r->batch > 1 ? r->batch : 1, r->tokens,
                                              r->second_stride ? 2 : 1, r->rotary_dim / 2);
    shape.strides[POSENC_AXIS_HEAD_DIM] = r->pair_stride ? r->pair_stride : 1;
    shape.strides[POSENC_AXIS_HEADS] = r->second_stride;
    shape.strides[POSENC_AXIS_TOKENS] =
        r->row_stride ? r->row_stride
                      : (ptrdiff_t)(r->rotary_dim / 2) * shape.strides[POSENC_AXIS_HEAD_DIM];
    shape.strides[POSENC_AXIS_BATCH] = r->batch > 1 ? r->batch_stride : 0;
    strided table = strided_new(&shape, side);
    strided_fill(&table, 0, rng);
    return table;
}

static inline void *copy_of(const guarded *memory) {
    void *copy = malloc(memory->bytes);
    assert_non_null(copy);
    memcpy(copy, memory->data, memory->bytes);
    return copy;
}

/* Every element of the range of tokens is what the oracle says, bit for bit where nothing is computed, and all
 * else is as it was: each element is set back once it was found right, so that in the end all must
 * equal `before`. */
static inline void assert_output(const rotate_case *c, const posenc_rotation *r, const void *input,
                                 const strided *y, const void *before) {
    size_t at[POSENC_AXES] = {0};
    size_t end = c->token_count ? c->first_token + c->token_count : c->x.shape[POSENC_AXIS_TOKENS];
    const char *old = (const char *)before + ((char *)y->data - (char *)y->memory.data);
    do {
        if (at[POSENC_AXIS_TOKENS] < c->first_token || at[POSENC_AXIS_TOKENS] >= end)
            continue;
        ptrdiff_t place = element_at(&c->y, at);
        uint64_t got = oracle_load(y->data, c->y.dtype, place);
        uint64_t wanted = expected(c, r, input, at);
        int copied =
            !lane_of(r, r->pairing, at[POSENC_AXIS_HEAD_DIM]).rotates && c->x.dtype == c->y.dtype;
        if (copied ? got != wanted : !oracle_same(got, wanted, c->y.dtype))
            fail_msg("batch %zu, token %zu, head %zu, channel %zu: got %#llx, wanted %#llx", at[0],
                     at[1], at[2], at[3], (unsigned long long)got, (unsigned long long)wanted);
        oracle_store(y->data, c->y.dtype, place, oracle_load(old, c->y.dtype, place));
    } while (next_element(&c->y, at));
    assert_memory_equal(y->memory.data, before, y->memory.bytes);
}

static inline posenc_rotate_options options_of(const rotate_case *c) {
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.direction = c->direction;
    options.output = c->in_place ? NULL : &c->y;
    options.output_pairing = c->output_pairing;
    options.first_token = c->first_token;
    options.token_count = c->token_count;
    options.stores = c->stores;
    return options;
}

/* Makes random input and tables, rotates, and compares all that is in memory afterwards. */
static inline void assert_rotated(const rotate_case *c, random_stream *rng) {
    guard_side side = (guard_side)random_below(rng, 2);
    strided cosine = table_new(&c->rotation, side, rng), sine = table_new(&c->rotation, side, rng);
    strided x = strided_new(&c->x, side), other = strided_new(&c->y, side);
    strided *y = c->in_place ? &x : &other;
    strided_fill(&x, c->any_pattern, rng);
    posenc_rotation r = c->rotation;
    r.cos = cosine.data;
    r.sin = sine.data;
    void *x_before = copy_of(&x.memory), *y_before = copy_of(&y->memory);
    posenc_rotate_options options = options_of(c);
    posenc_error error;
    assert_done(posenc_rotate(&r, &c->x, x.data, y->data, &options, &error), &error);
    const char *input = (const char *)x_before + ((char *)x.data - (char *)x.memory.data);
    assert_output(c, &r, input, y, y_before);
    assert_memory_equal(x.memory.data, x_before, x.memory.bytes); /* in place: set back by now */
    free(x_before);
    free(y_before);
    guarded_free(&cosine.memory);
    guarded_free(&sine.memory);
    guarded_free(&x.memory);
    guarded_free(&other.memory);
}

/* A dense case: all channels rotate, forward, out of place. */
static inline rotate_case case_of(posenc_dtype dtype, const size_t shape[POSENC_AXES],
                                  posenc_pairing pairing) {
    rotate_case c = {.rotation = POSENC_ROTATION_INIT};
    c.x = c.y = posenc_tensor_dense(dtype, shape[0], shape[1], shape[2], shape[3]);
    c.rotation.dtype = table_dtype_of(dtype);
    c.rotation.tokens = shape[POSENC_AXIS_TOKENS];
    c.rotation.rotary_dim = shape[POSENC_AXIS_HEAD_DIM];
    c.rotation.pairing = pairing;
    return c;
}

/* --- Whole encodings ------------------------------------------------------------------------------- */

/* The permutations of four axes, by number. */
static inline void order_of(size_t number, int order[POSENC_AXES]) {
    int left[POSENC_AXES] = {0, 1, 2, 3};
    for (size_t i = 0; i < POSENC_AXES; i++) {
        size_t choices = POSENC_AXES - i, chosen = number % choices;
        number /= choices;
        order[i] = left[chosen];
        left[chosen] = left[choices - 1];
    }
}
/* --- Known numbers ------------------------------------------------------------------------------ */

/* Frequencies, tables of some positions and their rotation. */
typedef struct rotor {
    posenc_frequencies *frequencies;
    posenc_rows rows;
    guarded cos, sin;
    posenc_rotation rotation;
} rotor;

static inline rotor rotor_new(const posenc_spec *spec, const int64_t *positions, size_t tokens,
                              posenc_dtype dtype, posenc_row_layout layout) {
    rotor r;
    posenc_error error;
    assert_done(posenc_frequencies_create(spec, 0, &r.frequencies, NULL, &error), &error);
    size_t width = posenc_row_width(layout, posenc_frequencies_pairs(r.frequencies));
    int beside = layout == POSENC_ROWS_COS_SIN || layout == POSENC_ROWS_PAIRS;
    r.cos = guarded_new(tokens * width * oracle_bytes(dtype), GUARD_AFTER);
    r.sin = guarded_new(beside ? 0 : r.cos.bytes, GUARD_AFTER);
    r.rows = (posenc_rows)POSENC_ROWS_INIT;
    r.rows.cos = r.cos.data;
    r.rows.sin = beside ? NULL : r.sin.data;
    r.rows.dtype = dtype;
    r.rows.layout = layout;
    assert_done(posenc_angles(r.frequencies, positions, tokens, &r.rows, &error), &error);
    assert_done(posenc_rotation_of(r.frequencies, &r.rows, tokens, &r.rotation, &error), &error);
    return r;
}

static inline void rotor_free(rotor *r) {
    posenc_frequencies_destroy(r->frequencies);
    guarded_free(&r->cos);
    guarded_free(&r->sin);
}

static inline posenc_spec spec_of(size_t dim, double base, posenc_pairing pairing) {
    posenc_spec spec = POSENC_SPEC_INIT;
    spec.head_dim = dim;
    spec.base = base;
    spec.pairing = pairing;
    return spec;
}

/* One float64 vector of `dim` channels at one position. */
static inline void rotate_vector(const double *x, size_t dim, double base, posenc_pairing pairing,
                                 int64_t position, posenc_direction direction, double *y) {
    posenc_spec spec = spec_of(dim, base, pairing);
    rotor r = rotor_new(&spec, &position, 1, POSENC_F64, POSENC_ROWS_HALF);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F64, 1, 1, 1, dim);
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.direction = direction;
    posenc_error error;
    assert_done(posenc_rotate(&r.rotation, &tensor, x, y, &options, &error), &error);
    rotor_free(&r);
}

static inline void assert_close(const double *got, const double *wanted, size_t count,
                                double tolerance) {
    for (size_t i = 0; i < count; i++) {
        if (!(fabs(got[i] - wanted[i]) <= tolerance))
            fail_msg("channel %zu: got %.17g, wanted %.17g", i, got[i], wanted[i]);
    }
}

static inline double norm(const double *x, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

#endif
