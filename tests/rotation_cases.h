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

/* Channel `channel` belongs to a pair, as its first or second number, or to none. */
typedef struct lane {
    int rotates, is_second;
    size_t pair, other; /* other: the channel of its partner */
} lane;

static inline lane lane_of(const posenc_rotation *r, size_t channel) {
    lane l = {0, 0, 0, 0};
    if (channel < r->rotary_start || channel >= r->rotary_start + r->rotary_dim)
        return l;
    size_t at = channel - r->rotary_start, pairs = r->rotary_dim / 2;
    l.rotates = 1;
    if (r->pairing == POSENC_PAIRING_HALF) {
        l.is_second = at >= pairs;
        l.pair = at % pairs;
        l.other = l.is_second ? channel - pairs : channel + pairs;
    } else {
        l.is_second = at % 2 == 1;
        l.pair = at / 2;
        l.other = l.is_second ? channel - 1 : channel + 1;
    }
    return l;
}

/* One number of a rotated pair: `own` is the channel's number and `other` its partner's. Each product
 * and the sum are rounded in the computing type; 16-bit results once more. */
static inline uint64_t turned(posenc_dtype dtype, int is_second, int inverse, double own,
                              double other, double c, double s) {
    int minus = is_second == inverse; /* a*c - b*s, or b*c - a*s in the inverse */
    if (dtype == POSENC_F64) {
        double kept = own * c, crossed = other * s;
        return oracle_bits_of_double(minus ? kept - crossed : kept + crossed, dtype);
    }
    float kept = (float)own * (float)c, crossed = (float)other * (float)s;
    float sum = minus ? kept - crossed : kept + crossed;
    return oracle_bits_of_double((double)sum, dtype);
}

/* What posenc_rotate should write at one place, from a copy of the input. */
static inline uint64_t expected(const posenc_rotation *r, const posenc_tensor *x, const void *input,
                                const size_t at[POSENC_AXES], int inverse) {
    size_t partner[POSENC_AXES];
    lane l = lane_of(r, at[POSENC_AXIS_HEAD_DIM]);
    uint64_t own = oracle_load(input, x->dtype, element_at(x, at));
    if (!l.rotates)
        return own;
    memcpy(partner, at, sizeof partner);
    partner[POSENC_AXIS_HEAD_DIM] = l.other;
    uint64_t other = oracle_load(input, x->dtype, element_at(x, partner));
    ptrdiff_t pair_stride = r->pair_stride ? r->pair_stride : 1;
    ptrdiff_t row_stride =
        r->row_stride ? r->row_stride : (ptrdiff_t)(r->rotary_dim / 2) * pair_stride;
    ptrdiff_t place =
        (ptrdiff_t)at[POSENC_AXIS_TOKENS] * row_stride + (ptrdiff_t)l.pair * pair_stride;
    if (r->batch > 1)
        place += (ptrdiff_t)at[POSENC_AXIS_BATCH] * r->batch_stride;
    double c = oracle_value(oracle_load(r->cos, r->dtype, place), r->dtype);
    double s = oracle_value(oracle_load(r->sin, r->dtype, place), r->dtype);
    return turned(x->dtype, l.is_second, inverse, oracle_value(own, x->dtype),
                  oracle_value(other, x->dtype), c, s);
}

/* A call: the tensors and the rotation without its tables, which are made for it. */
typedef struct rotate_case {
    posenc_tensor x, y;
    posenc_rotation rotation;
    posenc_direction direction;
    int in_place, any_pattern;
} rotate_case;

/* cos or sin tables of a rotation, seen as a tensor of batch, tokens, 1, pairs. */
static inline strided table_new(const posenc_rotation *r, guard_side side, random_stream *rng) {
    posenc_tensor shape =
        posenc_tensor_dense(r->dtype, r->batch > 1 ? r->batch : 1, r->tokens, 1, r->rotary_dim / 2);
    shape.strides[POSENC_AXIS_HEAD_DIM] = r->pair_stride ? r->pair_stride : 1;
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

/* Every element is what the oracle says, bit for bit where nothing is computed, and what lies between
 * them is as it was: each element is set back once it was found right, so that in the end all must
 * equal `before`. */
static inline void assert_output(const rotate_case *c, const posenc_rotation *r, const void *input,
                                 const strided *y, const void *before) {
    size_t at[POSENC_AXES] = {0};
    const char *old = (const char *)before + ((char *)y->data - (char *)y->memory.data);
    do {
        ptrdiff_t place = element_at(&c->y, at);
        uint64_t got = oracle_load(y->data, c->y.dtype, place);
        uint64_t wanted = expected(r, &c->x, input, at, c->direction != POSENC_FORWARD);
        int rotates = lane_of(r, at[POSENC_AXIS_HEAD_DIM]).rotates;
        if (rotates ? !oracle_same(got, wanted, c->y.dtype) : got != wanted)
            fail_msg("batch %zu, token %zu, head %zu, channel %zu: got %#llx, wanted %#llx", at[0],
                     at[1], at[2], at[3], (unsigned long long)got, (unsigned long long)wanted);
        oracle_store(y->data, c->y.dtype, place, oracle_load(old, c->y.dtype, place));
    } while (next_element(&c->y, at));
    assert_memory_equal(y->memory.data, before, y->memory.bytes);
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
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.direction = c->direction;
    options.output = c->in_place ? NULL : &c->y;
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
    rotate_case c = {{0}, {0}, POSENC_ROTATION_INIT, POSENC_FORWARD, 0, 0};
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
