/* Rotation: hand-computed vectors, an oracle for every dtype, order and stride, the laws of rotations,
 * and refused calls. SPDX-License-Identifier: MIT */
#include "guard_pages.h"
#include "oracle.h"
#include "posenc/posenc.h"
#include "random_data.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};
static const posenc_pairing pairings[] = {POSENC_PAIRING_HALF, POSENC_PAIRING_INTERLEAVED};

static posenc_dtype table_dtype_of(posenc_dtype dtype) {
    return dtype == POSENC_F64 ? POSENC_F64 : POSENC_F32;
}

/* --- Strided memory ----------------------------------------------------------------------------- */

/* A tensor's memory between guard pages: exactly the bytes that its strides reach. */
typedef struct strided {
    posenc_tensor tensor;
    guarded memory;
    void *data; /* element 0, 0, 0, 0 */
} strided;

static strided strided_new(const posenc_tensor *tensor, guard_side side) {
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

static ptrdiff_t element_at(const posenc_tensor *t, const size_t at[POSENC_AXES]) {
    ptrdiff_t element = 0;
    for (int axis = 0; axis < POSENC_AXES; axis++)
        element += (ptrdiff_t)at[axis] * t->strides[axis];
    return element;
}

/* Steps through all elements in the order of the axes, the last one fastest; 0 at the end. */
static int next_element(const posenc_tensor *t, size_t at[POSENC_AXES]) {
    for (int axis = POSENC_AXES - 1; axis >= 0; axis--) {
        if (++at[axis] < t->shape[axis])
            return 1;
        at[axis] = 0;
    }
    return 0;
}

/* Any pattern, every fourth one of the kinds that are rare: denormals, infinities and NaN, quiet and
 * signalling. */
static uint64_t random_pattern(posenc_dtype dtype, random_stream *rng) {
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
static void strided_fill(strided *s, int any_pattern, random_stream *rng) {
    size_t at[POSENC_AXES] = {0};
    do {
        uint64_t bits = any_pattern ? random_pattern(s->tensor.dtype, rng)
                                    : oracle_bits_of_double(random_normal(rng), s->tensor.dtype);
        oracle_store(s->data, s->tensor.dtype, element_at(&s->tensor, at), bits);
    } while (next_element(&s->tensor, at));
}

/* Strides of a tensor whose axes follow one another in `order`, slowest first; axis k is laid out
 * backwards if bit k of `backwards` is set, and up to `padding` elements are left out between. */
static void set_strides(posenc_tensor *tensor, const int order[POSENC_AXES], unsigned backwards,
                        size_t padding, random_stream *rng) {
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

static lane lane_of(const posenc_rotation *r, size_t channel) {
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
static uint64_t turned(posenc_dtype dtype, int is_second, int inverse, double own, double other,
                       double c, double s) {
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
static uint64_t expected(const posenc_rotation *r, const posenc_tensor *x, const void *input,
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
static strided table_new(const posenc_rotation *r, guard_side side, random_stream *rng) {
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

static void *copy_of(const guarded *memory) {
    void *copy = malloc(memory->bytes);
    assert_non_null(copy);
    memcpy(copy, memory->data, memory->bytes);
    return copy;
}

/* Every element is what the oracle says, bit for bit where nothing is computed, and what lies between
 * them is as it was: each element is set back once it was found right, so that in the end all must
 * equal `before`. */
static void assert_output(const rotate_case *c, const posenc_rotation *r, const void *input,
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
static void assert_rotated(const rotate_case *c, random_stream *rng) {
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
static rotate_case case_of(posenc_dtype dtype, const size_t shape[POSENC_AXES],
                           posenc_pairing pairing) {
    rotate_case c = {{0}, {0}, POSENC_ROTATION_INIT, POSENC_FORWARD, 0, 0};
    c.x = c.y = posenc_tensor_dense(dtype, shape[0], shape[1], shape[2], shape[3]);
    c.rotation.dtype = table_dtype_of(dtype);
    c.rotation.tokens = shape[POSENC_AXIS_TOKENS];
    c.rotation.rotary_dim = shape[POSENC_AXIS_HEAD_DIM];
    c.rotation.pairing = pairing;
    return c;
}

/* --- Against the oracle ------------------------------------------------------------------------- */

static void dense_tensors_are_described_in_the_order_bshd(void **state) {
    (void)state;
    posenc_tensor t = posenc_tensor_dense(POSENC_BF16, 2, 3, 5, 8);
    const size_t shape[] = {2, 3, 5, 8};
    const ptrdiff_t strides[] = {120, 40, 8, 1};
    assert_int_equal(t.size, sizeof t);
    assert_int_equal(t.dtype, POSENC_BF16);
    assert_memory_equal(t.shape, shape, sizeof shape);
    assert_memory_equal(t.strides, strides, sizeof strides);
}

/* The permutations of four axes, by number. */
static void order_of(size_t number, int order[POSENC_AXES]) {
    int left[POSENC_AXES] = {0, 1, 2, 3};
    for (size_t i = 0; i < POSENC_AXES; i++) {
        size_t choices = POSENC_AXES - i, chosen = number % choices;
        number /= choices;
        order[i] = left[chosen];
        left[chosen] = left[choices - 1];
    }
}

/* Batch, tokens and heads 1 to 3 each; all 24 orders of axes; some axes backwards, some padded. */
static void every_shape_order_dtype_and_pairing_is_rotated(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < 27 * 24 * 8; i++) {
        const size_t shape[] = {1 + i % 3, 1 + i / 3 % 3, 1 + i / 9 % 3, 6};
        rotate_case c = case_of(dtypes[i / 648 % 4], shape, pairings[i / 2592]);
        int order[POSENC_AXES];
        order_of(i / 27 % 24, order);
        set_strides(&c.x, order, (unsigned)random_below(&rng, 16), 3, &rng);
        c.y = c.x;
        c.in_place = (int)random_below(&rng, 2);
        if (random_below(&rng, 2)) {
            order_of(random_below(&rng, 24), order);
            set_strides(&c.y, order, (unsigned)random_below(&rng, 16), 3, &rng);
            c.in_place = 0;
        }
        c.direction = (posenc_direction)random_below(&rng, 3);
        c.any_pattern = (int)random_below(&rng, 2);
        assert_rotated(&c, &rng);
    }
}

/* Widths and parts of heads, with rows of their own for each sequence of a batch, tables with strides
 * of any sign, and inputs that repeat with stride 0. */
static void partial_heads_and_strided_tables_are_rotated(void **state) {
    (void)state;
    static const size_t widths[] = {2, 6, 36, 80, 96, 7, 128};
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(600); trial++) {
        const size_t shape[] = {1 + random_below(&rng, 3), 1 + random_below(&rng, 4),
                                1 + random_below(&rng, 4), widths[trial % COUNT(widths)]};
        rotate_case c = case_of(dtypes[random_below(&rng, 4)], shape, pairings[trial % 2]);
        posenc_rotation *r = &c.rotation;
        r->rotary_dim = 2 + 2 * random_below(&rng, shape[3] / 2);
        r->rotary_start = random_below(&rng, shape[3] - r->rotary_dim + 1);
        ptrdiff_t pairs = (ptrdiff_t)r->rotary_dim / 2;
        r->pair_stride = random_between(&rng, -2, 2);
        r->row_stride = random_below(&rng, 2) ? random_between(&rng, -3 * pairs, 3 * pairs) : 0;
        r->batch = random_below(&rng, 2) ? shape[0] : random_below(&rng, 2);
        r->batch_stride = random_between(&rng, -5 * pairs, 5 * pairs);
        if (random_below(&rng, 3) == 0)
            c.x.strides[random_below(&rng, POSENC_AXES)] = 0; /* repeats its data */
        c.direction = (posenc_direction)random_below(&rng, 3);
        c.any_pattern = (int)random_below(&rng, 2);
        assert_rotated(&c, &rng);
    }
}

static void strides_of_axes_of_size_1_are_not_used(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    const size_t shape[] = {1, 1, 1, 8};
    rotate_case c = case_of(POSENC_F32, shape, POSENC_PAIRING_HALF);
    strided x = strided_new(&c.x, GUARD_AFTER), table = table_new(&c.rotation, GUARD_AFTER, &rng);
    posenc_rotation r = c.rotation;
    r.cos = r.sin = table.data;
    r.row_stride = r.batch_stride = PTRDIFF_MAX;
    float plain[8], odd[8];
    strided_fill(&x, 0, &rng);
    assert_int_equal(posenc_rotate(&r, &c.x, x.data, plain, NULL, NULL), POSENC_OK);
    c.x.strides[0] = PTRDIFF_MIN;
    c.x.strides[1] = PTRDIFF_MAX;
    c.x.strides[2] = 0;
    assert_int_equal(posenc_rotate(&r, &c.x, x.data, odd, NULL, NULL), POSENC_OK);
    assert_memory_equal(plain, odd, sizeof plain);
    /* In place by two descriptions that differ in such strides only. */
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    posenc_tensor dense = case_of(POSENC_F32, shape, POSENC_PAIRING_HALF).x;
    options.output = &dense;
    assert_int_equal(posenc_rotate(&r, &c.x, x.data, x.data, &options, NULL), POSENC_OK);
    assert_memory_equal(plain, x.data, sizeof plain);
    guarded_free(&x.memory);
    guarded_free(&table.memory);
}

static void sizes_of_0_do_nothing(void **state) {
    (void)state;
    for (int axis = 0; axis < POSENC_AXIS_HEAD_DIM; axis++) {
        size_t shape[] = {2, 3, 4, 8};
        shape[axis] = 0;
        rotate_case c = case_of(POSENC_F16, shape, POSENC_PAIRING_HALF);
        assert_int_equal(posenc_rotate(&c.rotation, &c.x, NULL, NULL, NULL, NULL), POSENC_OK);
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

static rotor rotor_new(const posenc_spec *spec, const int64_t *positions, size_t tokens,
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

static void rotor_free(rotor *r) {
    posenc_frequencies_destroy(r->frequencies);
    guarded_free(&r->cos);
    guarded_free(&r->sin);
}

static posenc_spec spec_of(size_t dim, double base, posenc_pairing pairing) {
    posenc_spec spec = POSENC_SPEC_INIT;
    spec.head_dim = dim;
    spec.base = base;
    spec.pairing = pairing;
    return spec;
}

/* One float64 vector of `dim` channels at one position. */
static void rotate_vector(const double *x, size_t dim, double base, posenc_pairing pairing,
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

static void assert_close(const double *got, const double *wanted, size_t count, double tolerance) {
    for (size_t i = 0; i < count; i++) {
        if (!(fabs(got[i] - wanted[i]) <= tolerance))
            fail_msg("channel %zu: got %.17g, wanted %.17g", i, got[i], wanted[i]);
    }
}

static const double one_to_four[4] = {1.0, 2.0, 3.0, 4.0};

static void hand_computed_vectors_of_both_pairings(void **state) {
    (void)state;
    static const struct {
        posenc_pairing pairing;
        posenc_direction direction;
        double y[4];
    } known[] = {
        {POSENC_PAIRING_INTERLEAVED, POSENC_FORWARD, {-1.142640, 1.922076, 2.959851, 4.029800}},
        {POSENC_PAIRING_HALF, POSENC_FORWARD, {-1.984111, 1.959901, 2.462378, 4.019800}},
        /* The other sign, which some implementations train with, is the inverse. */
        {POSENC_PAIRING_HALF, POSENC_INVERSE, {3.064715, 2.039899, 0.779436, 3.979800}},
        {POSENC_PAIRING_HALF, POSENC_BACKWARD, {3.064715, 2.039899, 0.779436, 3.979800}},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        double y[4];
        rotate_vector(one_to_four, 4, 10000.0, known[i].pairing, 1, known[i].direction, y);
        assert_close(y, known[i].y, 4, 6e-7);
    }
}

/* x * cos + rotate_half(x) * sin over full tables, as frameworks write it. */
static void framework_half(const posenc_row_layout layout, double y[4]) {
    posenc_spec spec = spec_of(4, 10000.0, POSENC_PAIRING_HALF);
    const int64_t position = 1;
    rotor r = rotor_new(&spec, &position, 1, POSENC_F64, layout);
    const double *c = r.cos.data, *s = r.sin.data;
    for (size_t i = 0; i < 4; i++) {
        double crossed = i < 2 ? -one_to_four[i + 2] : one_to_four[i - 2];
        y[i] = one_to_four[i] * c[i] + crossed * s[i];
    }
    rotor_free(&r);
}

/* The same with neighbours: (-x1, x0, -x3, x2). */
static void framework_interleaved(posenc_row_layout layout, double y[4]) {
    posenc_spec spec = spec_of(4, 10000.0, POSENC_PAIRING_INTERLEAVED);
    const int64_t position = 1;
    rotor r = rotor_new(&spec, &position, 1, POSENC_F64, layout);
    const double *c = r.cos.data, *s = r.sin.data;
    for (size_t i = 0; i < 4; i++) {
        double crossed = i % 2 ? one_to_four[i - 1] : -one_to_four[i + 1];
        y[i] = one_to_four[i] * c[i] + crossed * s[i];
    }
    rotor_free(&r);
}

static double norm(const double *x, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* Full tables of one pairing in the other one's formula: no rotation any more, as the norm shows. */
static void full_tables_fit_their_own_pairing_only(void **state) {
    (void)state;
    static const double half[4] = {-1.984111, 1.959901, 2.462378, 4.019800};
    static const double interleaved[4] = {-1.142640, 1.922076, 2.959851, 4.029800};
    static const double broken[4] = {-1.984111, -2.285279, 3.009850, 4.019800};
    double y[4];
    framework_half(POSENC_ROWS_FULL_HALF, y);
    assert_close(y, half, 4, 6e-7);
    framework_interleaved(POSENC_ROWS_FULL_INTERLEAVED, y);
    assert_close(y, interleaved, 4, 6e-7);
    framework_half(POSENC_ROWS_FULL_INTERLEAVED, y);
    assert_close(y, broken, 4, 6e-7);
    assert_true(fabs(norm(y, 4) - 5.863206) < 6e-7);
    assert_true(fabs(norm(half, 4) - 5.477226) < 2e-6 &&
                fabs(norm(interleaved, 4) - 5.477226) < 2e-6);
    framework_interleaved(POSENC_ROWS_FULL_HALF, y);
    assert_true(fabs(norm(y, 4) - 5.477226) > 0.1);
}

/* Decoding one token of two sequences: 16 heads of 256 ones at position 6, dense and transposed. */
static void every_sequence_of_a_batch_is_rotated_in_decoding(void **state) {
    (void)state;
    enum { B = 2, H = 16, D = 256 };
    static const float lanes[] = {1.239586f, 1.409030f, 1.350211f, 1.114843f};
    static const float second[] = {0.680755f, 0.120972f, -0.420632f, -0.870129f};
    posenc_spec spec = spec_of(D, 10000.0, POSENC_PAIRING_HALF);
    const int64_t position = 6;
    rotor r = rotor_new(&spec, &position, 1, POSENC_F32, POSENC_ROWS_HALF);
    static float x[B * H * D];
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, B, 1, H, D);
    for (int transposed = 0; transposed < 2; transposed++) {
        for (size_t i = 0; i < B * H * D; i++)
            x[i] = 1.0f;
        if (transposed) { /* heads slowest */
            tensor.strides[POSENC_AXIS_BATCH] = D;
            tensor.strides[POSENC_AXIS_HEADS] = B * D;
        }
        assert_int_equal(posenc_rotate(&r.rotation, &tensor, x, x, NULL, NULL), POSENC_OK);
        for (size_t row = 0; row < B * H; row++) {
            assert_memory_equal(x + row * D, x, D * sizeof *x);
            for (size_t i = 0; i < 4; i++) {
                assert_true(fabsf(x[row * D + i] - lanes[i]) < 1e-6f);
                assert_true(fabsf(x[row * D + 128 + i] - second[i]) < 1e-6f);
            }
        }
    }
    rotor_free(&r);
}

/* A head of 256 of which 64 rotate, base 1e7, at positions where a wrong exponent shows. */
static void partial_rotation_pairs_within_rotary_dim_and_keeps_the_rest(void **state) {
    (void)state;
    enum { D = 256, R = 64, T = 4 };
    static const int64_t positions[T] = {700, 1033, 2047, 2355};
    posenc_spec spec = spec_of(D, 1e7, POSENC_PAIRING_HALF);
    spec.rotary_dim = R;
    rotor r = rotor_new(&spec, positions, T, POSENC_F64, POSENC_ROWS_HALF);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F64, 1, T, 1, D);
    random_stream rng = random_of(__func__);
    static double x[T][D], y[T][D];
    for (size_t i = 0; i < T * D; i++)
        x[i / D][i % D] = random_normal(&rng);
    assert_int_equal(posenc_rotate(&r.rotation, &tensor, x, y, NULL, NULL), POSENC_OK);
    for (size_t t = 0; t < T; t++) {
        double angle = (double)positions[t] * 0.604296390238132; /* 1e7^(-2/64) */
        double a = x[t][1], b = x[t][33];
        assert_true(fabs(y[t][1] - (a * cos(angle) - b * sin(angle))) < 1e-11);
        assert_true(fabs(y[t][33] - (a * sin(angle) + b * cos(angle))) < 1e-11);
        assert_memory_equal(y[t] + R, x[t] + R, (D - R) * sizeof(double));
    }
    rotor_free(&r);
}

/* Against real arithmetic: within 4 roundings of the pair's magnitude. */
static void rotations_are_those_of_real_numbers(void **state) {
    (void)state;
    enum { D = 36 };
    static const int64_t positions[] = {0,    1,      7,       40,       700,     2047,
                                        8192, 131071, 1048576, -1048576, 1000003, INT64_C(1) << 40};
    random_stream rng = random_of(__func__);
    mpfr_t w, c, s, y;
    mpfr_inits2(ORACLE_BITS, w, c, s, y, (mpfr_ptr)NULL);
    for (size_t i = 0; i < COUNT(positions) * 2; i++) {
        double x[D], got[D];
        for (size_t k = 0; k < D; k++)
            x[k] = random_normal(&rng);
        rotate_vector(x, D, 500000.0, pairings[i % 2], positions[i / 2], POSENC_FORWARD, got);
        for (size_t j = 0; j < D / 2; j++) {
            size_t first = i % 2 ? 2 * j : j, second = i % 2 ? 2 * j + 1 : j + D / 2;
            oracle_frequency(w, 1.0, 500000.0, 2 * j, D);
            oracle_sincos(c, s, (double)positions[i / 2], w);
            mpfr_mul_d(y, c, x[first], MPFR_RNDN);
            mpfr_mul_d(w, s, x[second], MPFR_RNDN);
            mpfr_sub(y, y, w, MPFR_RNDN);
            mpfr_sub_d(y, y, got[first], MPFR_RNDN);
            assert_true(fabs(mpfr_get_d(y, MPFR_RNDN)) < 0x1p-51 * hypot(x[first], x[second]));
        }
    }
    mpfr_clears(w, c, s, y, (mpfr_ptr)NULL);
}

/* --- Tables of every layout, packed arrays, grouped heads --------------------------------------- */

static void every_row_layout_rotates_alike(void **state) {
    (void)state;
    enum { T = 3, H = 2, D = 12, R = 6 };
    static const int64_t positions[T] = {5, 77777, -3};
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < 4; i++) {
        posenc_dtype dtype = i / 2 ? POSENC_F64 : POSENC_F32;
        posenc_spec spec = spec_of(D, 10000.0, pairings[i % 2]);
        spec.rotary_dim = R;
        spec.rotary_start = 4;
        posenc_tensor tensor = posenc_tensor_dense(dtype, 1, T, H, D);
        strided x = strided_new(&tensor, GUARD_AFTER), y[5];
        strided_fill(&x, 0, &rng);
        for (int layout = 0; layout < 5; layout++) {
            rotor r = rotor_new(&spec, positions, T, dtype, (posenc_row_layout)layout);
            assert_int_equal(r.rotation.rotary_dim, R);
            assert_int_equal(r.rotation.rotary_start, 4);
            assert_int_equal(r.rotation.tokens, T);
            assert_int_equal(r.rotation.pairing, pairings[i % 2]);
            y[layout] = strided_new(&tensor, GUARD_AFTER);
            assert_int_equal(
                posenc_rotate(&r.rotation, &tensor, x.data, y[layout].data, NULL, NULL), POSENC_OK);
            assert_memory_equal(y[layout].data, y[0].data, x.memory.bytes);
            rotor_free(&r);
        }
        assert_memory_not_equal(x.data, y[0].data, x.memory.bytes);
        for (int layout = 0; layout < 5; layout++)
            guarded_free(&y[layout].memory);
        guarded_free(&x.memory);
    }
}

enum { TOKENS = 5, Q_HEADS = 8, K_HEADS = 2, HEAD = 6, PACKED = (Q_HEADS + 2 * K_HEADS) * HEAD };

/* A part of the packed array [tokens][q heads, k heads, v heads][head_dim]. */
static posenc_tensor packed_part(size_t heads) {
    posenc_tensor part = posenc_tensor_dense(POSENC_F32, 1, TOKENS, heads, HEAD);
    part.strides[POSENC_AXIS_TOKENS] = PACKED;
    return part;
}

typedef struct packed_qkv {
    float x[TOKENS][PACKED], q[TOKENS][Q_HEADS * HEAD], k[TOKENS][K_HEADS * HEAD];
} packed_qkv;

/* Random numbers, and q and k rotated from copies of their own. */
static void make_packed(packed_qkv *p, const posenc_rotation *rotation, random_stream *rng) {
    posenc_tensor q = posenc_tensor_dense(POSENC_F32, 1, TOKENS, Q_HEADS, HEAD);
    posenc_tensor k = posenc_tensor_dense(POSENC_F32, 1, TOKENS, K_HEADS, HEAD);
    for (size_t t = 0; t < TOKENS; t++) {
        for (size_t i = 0; i < PACKED; i++)
            p->x[t][i] = (float)random_normal(rng);
        memcpy(p->q[t], p->x[t], sizeof p->q[t]);
        memcpy(p->k[t], p->x[t] + Q_HEADS * HEAD, sizeof p->k[t]);
    }
    assert_int_equal(posenc_rotate(rotation, &q, p->q, p->q, NULL, NULL), POSENC_OK);
    assert_int_equal(posenc_rotate(rotation, &k, p->k, p->k, NULL, NULL), POSENC_OK);
}

static rotor packed_rotor(void) {
    static const int64_t positions[TOKENS] = {0, 1, 4096, 1048575, -7};
    posenc_spec spec = spec_of(HEAD, 10000.0, POSENC_PAIRING_HALF);
    return rotor_new(&spec, positions, TOKENS, POSENC_F32, POSENC_ROWS_HALF);
}

static void packed_qkv_is_rotated_in_place_and_v_is_kept(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    rotor r = packed_rotor();
    packed_qkv p;
    make_packed(&p, &r.rotation, &rng);
    posenc_tensor q = packed_part(Q_HEADS), k = packed_part(K_HEADS);
    float *x = p.x[0], kept[TOKENS][PACKED];
    memcpy(kept, p.x, sizeof kept);
    assert_int_equal(posenc_rotate(&r.rotation, &q, x, x, NULL, NULL), POSENC_OK);
    x += Q_HEADS * HEAD;
    assert_int_equal(posenc_rotate(&r.rotation, &k, x, x, NULL, NULL), POSENC_OK);
    for (size_t t = 0; t < TOKENS; t++) {
        size_t v = (Q_HEADS + K_HEADS) * HEAD;
        assert_memory_equal(p.x[t], p.q[t], sizeof p.q[t]);
        assert_memory_equal(p.x[t] + Q_HEADS * HEAD, p.k[t], sizeof p.k[t]);
        assert_memory_equal(p.x[t] + v, kept[t] + v, K_HEADS * HEAD * sizeof(float));
    }
    rotor_free(&r);
}

static void packed_qkv_is_rotated_out_of_place_and_within_the_array(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    rotor r = packed_rotor();
    packed_qkv p;
    make_packed(&p, &r.rotation, &rng);
    posenc_tensor q = packed_part(Q_HEADS), k = packed_part(K_HEADS);
    posenc_tensor dense = posenc_tensor_dense(POSENC_F32, 1, TOKENS, Q_HEADS, HEAD);
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.output = &dense;
    float out[TOKENS][Q_HEADS * HEAD];
    assert_int_equal(posenc_rotate(&r.rotation, &q, p.x, out, &options, NULL), POSENC_OK);
    assert_memory_equal(out, p.q, sizeof out);
    /* The rotated keys take the place of the values. */
    float *keys = p.x[0] + Q_HEADS * HEAD, *values = keys + K_HEADS * HEAD;
    assert_int_equal(posenc_rotate(&r.rotation, &k, keys, values, NULL, NULL), POSENC_OK);
    for (size_t t = 0; t < TOKENS; t++)
        assert_memory_equal(p.x[t] + (Q_HEADS + K_HEADS) * HEAD, p.k[t], sizeof p.k[t]);
    rotor_free(&r);
}

/* --- Laws --------------------------------------------------------------------------------------- */

static void in_place_gives_the_bytes_of_out_of_place(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(64); trial++) {
        const size_t shape[] = {2, 3, 2, 10};
        rotate_case c = case_of(dtypes[trial % 4], shape, pairings[trial / 4 % 2]);
        c.rotation.rotary_dim = 6;
        c.rotation.rotary_start = trial % 5;
        strided x = strided_new(&c.x, GUARD_AFTER), y = strided_new(&c.x, GUARD_AFTER);
        strided table = table_new(&c.rotation, GUARD_AFTER, &rng);
        posenc_rotation r = c.rotation;
        r.cos = r.sin = table.data;
        strided_fill(&x, 1, &rng);
        assert_int_equal(posenc_rotate(&r, &c.x, x.data, y.data, NULL, NULL), POSENC_OK);
        assert_int_equal(posenc_rotate(&r, &c.x, x.data, x.data, NULL, NULL), POSENC_OK);
        assert_memory_equal(x.data, y.data, x.memory.bytes);
        guarded_free(&x.memory);
        guarded_free(&y.memory);
        guarded_free(&table.memory);
    }
}

/* Random float64 vectors of one width and a random position, for the laws below. */
typedef struct law {
    double x[96], y[96], rx[96], ry[96], back[96];
    size_t dim;
    double base;
    posenc_pairing pairing;
    int64_t position;
} law;

static law law_of(random_stream *rng) {
    static const size_t dims[] = {2, 6, 36, 64, 80, 96};
    static const double bases[] = {10000.0, 500000.0, 1e6, 100.0};
    law l;
    memset(&l, 0, sizeof l);
    l.dim = dims[random_below(rng, COUNT(dims))];
    l.base = bases[random_below(rng, COUNT(bases))];
    l.pairing = pairings[random_below(rng, 2)];
    l.position = random_position(rng);
    for (size_t i = 0; i < l.dim; i++) {
        l.x[i] = random_normal(rng);
        l.y[i] = random_normal(rng);
    }
    rotate_vector(l.x, l.dim, l.base, l.pairing, l.position, POSENC_FORWARD, l.rx);
    rotate_vector(l.y, l.dim, l.base, l.pairing, l.position, POSENC_FORWARD, l.ry);
    return l;
}

static double dot(const double *a, const double *b, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static void the_inverse_undoes_and_norms_are_kept(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(200); trial++) {
        law l = law_of(&rng);
        rotate_vector(l.rx, l.dim, l.base, l.pairing, l.position, POSENC_INVERSE, l.back);
        assert_close(l.back, l.x, l.dim, 2e-14);
        assert_true(fabs(norm(l.rx, l.dim) - norm(l.x, l.dim)) < 1e-14 * norm(l.x, l.dim) * 4);
    }
}

/* <R x, y> = <x, R^T y>: what a gradient needs. */
static void backward_is_the_transpose(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(200); trial++) {
        law l = law_of(&rng);
        rotate_vector(l.y, l.dim, l.base, l.pairing, l.position, POSENC_BACKWARD, l.back);
        assert_true(fabs(dot(l.rx, l.y, l.dim) - dot(l.x, l.back, l.dim)) < 1e-12);
        rotate_vector(l.y, l.dim, l.base, l.pairing, -l.position, POSENC_FORWARD, l.ry);
        assert_close(l.back, l.ry, l.dim, 0.0); /* and the rotation by the negated position */
    }
}

static void rotation_is_linear(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(200); trial++) {
        law l = law_of(&rng);
        double sum[96], rotated[96];
        for (size_t i = 0; i < l.dim; i++)
            sum[i] = l.x[i] - 2.0 * l.y[i];
        rotate_vector(sum, l.dim, l.base, l.pairing, l.position, POSENC_FORWARD, rotated);
        for (size_t i = 0; i < l.dim; i++)
            sum[i] = l.rx[i] - 2.0 * l.ry[i];
        assert_close(rotated, sum, l.dim, 5e-14);
    }
}

static double score(const law *l, int64_t m, int64_t n) {
    double q[96], k[96];
    rotate_vector(l->x, l->dim, l->base, l->pairing, m, POSENC_FORWARD, q);
    rotate_vector(l->y, l->dim, l->base, l->pairing, n, POSENC_FORWARD, k);
    return dot(q, k, l->dim);
}

static void scores_depend_on_the_distance_of_positions_only(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(200); trial++) {
        law l = law_of(&rng);
        int64_t distance = random_between(&rng, -5000, 5000), m = random_position(&rng) / 2;
        double at_zero = score(&l, distance, 0);
        assert_true(fabs(score(&l, m + distance, m) - at_zero) < 1e-12);
        assert_true(fabs(score(&l, 1048576, 1048576 - distance) - at_zero) < 1e-12);
        assert_true(fabs(score(&l, distance + 1, 0) - at_zero) > 1e-9); /* and do depend on it */
    }
}

static void position_0_changes_nothing(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    law l = law_of(&rng);
    for (size_t i = 0; i < COUNT(pairings); i++) {
        rotate_vector(l.x, l.dim, l.base, pairings[i], 0, POSENC_FORWARD, l.back);
        assert_close(l.back, l.x, l.dim, 0.0);
    }
}

/* Channel j of the half pairing is channel 2j of the interleaved one, j + d/2 is 2j + 1. */
static void the_pairings_are_one_permutation_apart(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(100); trial++) {
        law l = law_of(&rng);
        double mixed[96], half[96], interleaved[96];
        for (size_t j = 0; j < l.dim / 2; j++) {
            mixed[2 * j] = l.x[j];
            mixed[2 * j + 1] = l.x[j + l.dim / 2];
        }
        rotate_vector(l.x, l.dim, l.base, POSENC_PAIRING_HALF, l.position, POSENC_FORWARD, half);
        rotate_vector(mixed, l.dim, l.base, POSENC_PAIRING_INTERLEAVED, l.position, POSENC_FORWARD,
                      interleaved);
        for (size_t j = 0; j < l.dim / 2; j++) {
            assert_memory_equal(&half[j], &interleaved[2 * j], sizeof half[j]);
            assert_memory_equal(&half[j + l.dim / 2], &interleaved[2 * j + 1], sizeof half[j]);
        }
    }
}

/* A whole sequence equals its tokens one by one, as a cache decodes them, at explicit positions. */
static void prefill_equals_single_tokens(void **state) {
    (void)state;
    enum { B = 2, T = 9, H = 3, D = 36 };
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(24); trial++) {
        posenc_dtype dtype = dtypes[trial % 4];
        posenc_spec spec = spec_of(D, 10000.0, pairings[trial / 4 % 2]);
        int64_t positions[T], first = random_position(&rng) / 2; /* negative ones: left padding */
        for (int64_t t = 0; t < T; t++)
            positions[t] = first + t;
        rotor all = rotor_new(&spec, positions, T, table_dtype_of(dtype), POSENC_ROWS_COS_SIN);
        posenc_tensor whole = posenc_tensor_dense(dtype, B, T, H, D), one = whole;
        strided x = strided_new(&whole, GUARD_AFTER), y = strided_new(&whole, GUARD_AFTER);
        strided_fill(&x, 0, &rng);
        assert_int_equal(posenc_rotate(&all.rotation, &whole, x.data, y.data, NULL, NULL),
                         POSENC_OK);
        one.shape[POSENC_AXIS_TOKENS] = 1;
        for (size_t t = 0; t < T; t++) {
            rotor single =
                rotor_new(&spec, &positions[t], 1, table_dtype_of(dtype), POSENC_ROWS_HALF);
            void *token = (char *)x.data + t * H * D * oracle_bytes(dtype);
            assert_int_equal(posenc_rotate(&single.rotation, &one, token, token, NULL, NULL),
                             POSENC_OK);
            rotor_free(&single);
        }
        assert_memory_equal(x.data, y.data, x.memory.bytes);
        rotor_free(&all);
        guarded_free(&x.memory);
        guarded_free(&y.memory);
    }
}

/* Rows of its own for each sequence equal a call for each sequence. */
static void sequences_may_have_positions_of_their_own(void **state) {
    (void)state;
    enum { B = 3, T = 4, H = 2, D = 6 };
    random_stream rng = random_of(__func__);
    int64_t positions[B * T];
    for (size_t i = 0; i < B * T; i++)
        positions[i] = random_position(&rng);
    posenc_spec spec = spec_of(D, 10000.0, POSENC_PAIRING_INTERLEAVED);
    rotor r = rotor_new(&spec, positions, B * T, POSENC_F32, POSENC_ROWS_HALF);
    r.rotation.tokens = T;
    r.rotation.batch = B;
    r.rotation.batch_stride = T * D / 2;
    float x[B][T * H * D], y[B][T * H * D];
    for (size_t i = 0; i < B * T * H * D; i++)
        x[i / (T * H * D)][i % (T * H * D)] = (float)random_normal(&rng);
    posenc_tensor all = posenc_tensor_dense(POSENC_F32, B, T, H, D), one = all;
    assert_int_equal(posenc_rotate(&r.rotation, &all, x, y, NULL, NULL), POSENC_OK);
    one.shape[POSENC_AXIS_BATCH] = 1;
    for (size_t b = 0; b < B; b++) {
        rotor single = rotor_new(&spec, positions + b * T, T, POSENC_F32, POSENC_ROWS_HALF);
        assert_int_equal(posenc_rotate(&single.rotation, &one, x[b], x[b], NULL, NULL), POSENC_OK);
        assert_memory_equal(x[b], y[b], sizeof x[b]);
        rotor_free(&single);
    }
    rotor_free(&r);
}

/* --- Attention factors -------------------------------------------------------------------------- */

/* y = x of 2 tokens of 2 heads of 8, by rows that contain `in_rows`, where the rotation says `said`. */
static void rotate_with_factor(double in_rows, double said, posenc_direction direction,
                               const double x[32], double y[32]) {
    static const int64_t positions[2] = {3, 700};
    posenc_spec spec = spec_of(8, 10000.0, POSENC_PAIRING_HALF);
    rotor r = rotor_new(&spec, positions, 2, POSENC_F64, POSENC_ROWS_HALF);
    for (size_t i = 0; i < 8; i++) {
        ((double *)r.cos.data)[i] *= in_rows;
        ((double *)r.sin.data)[i] *= in_rows;
    }
    r.rotation.attention_factor = said;
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F64, 1, 2, 2, 8);
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.direction = direction;
    posenc_error error;
    assert_done(posenc_rotate(&r.rotation, &tensor, x, y, &options, &error), &error);
    rotor_free(&r);
}

static void the_inverse_undoes_rows_with_an_attention_factor(void **state) {
    (void)state;
    static const double factors[] = {0.5, 0.9, 1.0, 1.3465735902799727, 4.0};
    random_stream rng = random_of(__func__);
    double x[32], y[32], back[32];
    for (size_t i = 0; i < COUNT(factors); i++) {
        for (size_t k = 0; k < 32; k++)
            x[k] = random_normal(&rng);
        rotate_with_factor(factors[i], factors[i], POSENC_FORWARD, x, y);
        rotate_with_factor(factors[i], factors[i], POSENC_INVERSE, y, back);
        assert_close(back, x, 32, 1e-14);
        assert_true(fabs(norm(y, 32) - factors[i] * norm(x, 32)) < 1e-13);
    }
}

static void the_inverse_alone_asks_for_the_attention_factor(void **state) {
    (void)state;
    static const posenc_direction directions[] = {POSENC_FORWARD, POSENC_BACKWARD, POSENC_INVERSE};
    random_stream rng = random_of(__func__);
    double x[32], without[32], with[32], quarter[32];
    for (size_t k = 0; k < 32; k++)
        x[k] = random_normal(&rng);
    for (size_t i = 0; i < COUNT(directions); i++) {
        rotate_with_factor(2.0, 0.0, directions[i], x, without);
        rotate_with_factor(2.0, 1.0, directions[i], x, with);
        assert_memory_equal(with, without, sizeof with); /* 0 is 1 */
        rotate_with_factor(2.0, 2.0, directions[i], x, with);
        for (size_t k = 0; k < 32; k++)
            quarter[k] = directions[i] == POSENC_INVERSE ? without[k] / 4.0 : without[k];
        assert_memory_equal(with, quarter, sizeof with); /* times 1/2^2, which is exact */
    }
}

static void rotations_know_the_attention_factor_of_their_rows(void **state) {
    (void)state;
    const int64_t position = 1;
    posenc_scaling yarn = POSENC_SCALING_INIT;
    yarn.type = POSENC_SCALING_YARN;
    yarn.factor = 4.0;
    yarn.original_max_positions = 4096;
    yarn.attention_factor = 1.25;
    posenc_spec spec = spec_of(8, 10000.0, POSENC_PAIRING_HALF);
    rotor plain = rotor_new(&spec, &position, 1, POSENC_F32, POSENC_ROWS_HALF);
    spec.scaling = &yarn;
    rotor scaled = rotor_new(&spec, &position, 1, POSENC_F32, POSENC_ROWS_HALF);
    assert_true(plain.rotation.attention_factor == 1.0);
    assert_true(scaled.rotation.attention_factor == 1.25);
    rotor_free(&plain);
    rotor_free(&scaled);
}

/* --- Row primitives ----------------------------------------------------------------------------- */

static void row_primitive(posenc_dtype dtype, posenc_pairing pairing, const void *x, const void *c,
                          const void *s, size_t dim, void *y) {
    if (dtype == POSENC_F32)
        (pairing == POSENC_PAIRING_HALF ? posenc_rotate_row_half_f32
                                        : posenc_rotate_row_interleaved_f32)(x, c, s, dim, y);
    else
        (pairing == POSENC_PAIRING_HALF ? posenc_rotate_row_half_f64
                                        : posenc_rotate_row_interleaved_f64)(x, c, s, dim, y);
}

static void negate_all(const strided *s) {
    size_t at[POSENC_AXES] = {0};
    uint64_t sign = UINT64_C(1) << (8 * oracle_bytes(s->tensor.dtype) - 1);
    do {
        ptrdiff_t place = element_at(&s->tensor, at);
        oracle_store(s->data, s->tensor.dtype, place,
                     oracle_load(s->data, s->tensor.dtype, place) ^ sign);
    } while (next_element(&s->tensor, at));
}

static void assert_row_primitive(posenc_dtype dtype, posenc_pairing pairing, size_t dim,
                                 random_stream *rng) {
    const size_t shape[] = {1, 1, 1, dim};
    rotate_case c = case_of(dtype, shape, pairing);
    guard_side side = (guard_side)random_below(rng, 2);
    strided x = strided_new(&c.x, side), whole = strided_new(&c.x, side),
            row = strided_new(&c.x, side);
    strided cosine = table_new(&c.rotation, side, rng), sine = table_new(&c.rotation, side, rng);
    posenc_rotation r = c.rotation;
    r.cos = cosine.data;
    r.sin = sine.data;
    strided_fill(&x, 0, rng);
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    for (int inverse = 0; inverse < 2; inverse++) {
        options.direction = inverse ? POSENC_INVERSE : POSENC_FORWARD;
        assert_int_equal(posenc_rotate(&r, &c.x, x.data, whole.data, &options, NULL), POSENC_OK);
        if (inverse)
            negate_all(&sine);
        row_primitive(dtype, pairing, x.data, cosine.data, sine.data, dim, row.data);
        assert_memory_equal(row.data, whole.data, whole.memory.bytes);
        if (inverse)
            negate_all(&sine);
    }
    row_primitive(dtype, pairing, x.data, cosine.data, sine.data, dim, row.data);
    row_primitive(dtype, pairing, x.data, cosine.data, sine.data, dim, x.data); /* in place */
    assert_memory_equal(x.data, row.data, row.memory.bytes);
    guarded_free(&x.memory);
    guarded_free(&whole.memory);
    guarded_free(&row.memory);
    guarded_free(&cosine.memory);
    guarded_free(&sine.memory);
}

static void row_primitives_give_the_bytes_of_rotate(void **state) {
    (void)state;
    static const size_t dims[] = {2, 4, 6, 36, 64, 80, 96, 128, 130};
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < COUNT(dims) * 4; i++)
        assert_row_primitive(i / COUNT(dims) % 2 ? POSENC_F64 : POSENC_F32,
                             pairings[i / COUNT(dims) / 2], dims[i % COUNT(dims)], &rng);
}

/* --- Refused calls ------------------------------------------------------------------------------ */

/* A valid call on a tensor of 2 x 3 x 2 x 8 float32, to be spoilt in one place. */
typedef struct rotate_call {
    posenc_rotation rotation, *rotation_pointer;
    posenc_tensor x, y, *x_pointer;
    posenc_rotate_options options;
    const void *input;
    void *output;
} rotate_call;

typedef void spoil_rotate(rotate_call *call);

/* clang-format off */
static void no_rotation(rotate_call *c) { c->rotation_pointer = NULL; }
static void no_tensor(rotate_call *c) { c->x_pointer = NULL; }
static void no_input(rotate_call *c) { c->input = NULL; }
static void no_output(rotate_call *c) { c->output = NULL; }
static void no_cos(rotate_call *c) { c->rotation.cos = NULL; }
static void no_sin(rotate_call *c) { c->rotation.sin = NULL; }
static void rotation_size(rotate_call *c) { c->rotation.size = 0; }
static void tensor_size(rotate_call *c) { c->x.size = 0; }
static void output_size(rotate_call *c) { c->y.size = 0; }
static void options_size(rotate_call *c) { c->options.size = 0; }
static void odd_rotary_dim(rotate_call *c) { c->rotation.rotary_dim = 5; }
static void no_rotary_dim(rotate_call *c) { c->rotation.rotary_dim = 0; }
static void long_rotary_dim(rotate_call *c) { c->rotation.rotary_dim = 10; }
static void huge_rotary_dim(rotate_call *c) { c->rotation.rotary_dim = SIZE_MAX - 1; }
static void late_start(rotate_call *c) { c->rotation.rotary_start = 1; }
static void huge_start(rotate_call *c) { c->rotation.rotary_start = SIZE_MAX - 6; }
static void bad_pairing(rotate_call *c) { c->rotation.pairing = (posenc_pairing)2; }
static void fewer_tokens(rotate_call *c) { c->rotation.tokens = 2; }
static void more_tokens(rotate_call *c) { c->rotation.tokens = 4; }
static void no_tokens(rotate_call *c) { c->rotation.tokens = 0; }
static void more_batch(rotate_call *c) { c->rotation.batch = 3; }
static void batch_of_one(rotate_call *c) { c->rotation.batch = 2; c->x.shape[0] = c->y.shape[0] = 1; }
static void negative_factor(rotate_call *c) { c->rotation.attention_factor = -1.0; }
static void nan_factor(rotate_call *c) { c->rotation.attention_factor = (double)NAN; }
static void infinite_factor(rotate_call *c) { c->rotation.attention_factor = (double)INFINITY; }
static void table_f64(rotate_call *c) { c->rotation.dtype = POSENC_F64; }
static void table_f16(rotate_call *c) { c->rotation.dtype = POSENC_F16; }
static void table_unknown(rotate_call *c) { c->rotation.dtype = (posenc_dtype)7; }
static void tensor_f64(rotate_call *c) { c->x.dtype = c->y.dtype = POSENC_F64; }
static void tensor_unknown(rotate_call *c) { c->x.dtype = (posenc_dtype)7; }
static void output_unknown(rotate_call *c) { c->y.dtype = (posenc_dtype)7; }
static void output_bf16(rotate_call *c) { c->y.dtype = POSENC_BF16; }
static void nothing_into_something(rotate_call *c) { c->x.shape[0] = 0; }
static void something_into_nothing(rotate_call *c) { c->y.shape[0] = 0; }
static void output_batch(rotate_call *c) { c->y.shape[0] = 1; }
static void output_tokens(rotate_call *c) { c->y.shape[1] = 2; }
static void output_heads(rotate_call *c) { c->y.shape[2] = 1; }
static void output_head_dim(rotate_call *c) { c->y.shape[3] = 7; }
static void bad_direction(rotate_call *c) { c->options.direction = (posenc_direction)3; }
static void negative_direction(rotate_call *c) { c->options.direction = (posenc_direction)-1; }
static void one_element_on(rotate_call *c) { c->output = (float *)c->output + 1; c->input = (float *)c->output - 1; }
static void one_head_back(rotate_call *c) { c->input = (float *)c->output + 8; }
static void in_place_transposed(rotate_call *c) { c->input = c->output; c->y.strides[1] = 8; c->y.strides[2] = 24; }
static void in_place_spread(rotate_call *c) { c->input = c->output; c->y.strides[0] = 50; }
static void input_repeats_output(rotate_call *c) { c->input = c->output; c->x.strides[2] = 0; }
static void output_repeats(rotate_call *c) { c->y.strides[0] = 0; }
static void in_place_repeats(rotate_call *c) { c->input = c->output; c->x.strides[2] = 0; c->options.output = NULL; }
static void output_overlaps(rotate_call *c) { c->y.strides[1] = 15; }
static void output_overlaps_back(rotate_call *c) { c->y.strides[2] = -7; }
static void huge_shape(rotate_call *c) { c->x.shape[0] = c->y.shape[0] = SIZE_MAX; }
static void huge_product(rotate_call *c) { c->x.shape[0] = c->x.shape[2] = (size_t)1 << 31; }
static void huge_stride(rotate_call *c) { c->x.strides[0] = PTRDIFF_MAX; }
static void least_stride(rotate_call *c) { c->x.strides[0] = PTRDIFF_MIN; }
static void huge_output_stride(rotate_call *c) { c->y.strides[1] = PTRDIFF_MAX / 4; }
static void huge_row_stride(rotate_call *c) { c->rotation.row_stride = PTRDIFF_MAX; }
static void least_row_stride(rotate_call *c) { c->rotation.row_stride = PTRDIFF_MIN; }
static void huge_pair_stride(rotate_call *c) { c->rotation.pair_stride = PTRDIFF_MAX; }
static void least_pair_stride(rotate_call *c) { c->rotation.pair_stride = PTRDIFF_MIN; }
static void huge_batch_stride(rotate_call *c) { c->rotation.batch = 2; c->rotation.batch_stride = PTRDIFF_MAX; }
/* Small enough for sizes, but from any real address they run below 0. */
static void input_below_zero(rotate_call *c) { c->x.strides[1] = -((ptrdiff_t)1 << 56); }
static void output_below_zero(rotate_call *c) { c->y.strides[1] = -((ptrdiff_t)1 << 56); }
static void rows_below_zero(rotate_call *c) { c->rotation.row_stride = -((ptrdiff_t)1 << 56); }
static void cos_in_output(rotate_call *c) { c->rotation.cos = (float *)c->output + 90; }
static void sin_in_output(rotate_call *c) { c->rotation.sin = (float *)c->output - 11; }
/* clang-format on */

/* The call with NULL for the error too; afterwards not a byte of the output has changed. */
static void assert_rotate_refused(spoil_rotate *spoil, posenc_status status, const char *argument) {
    enum { ELEMENTS = 2 * 3 * 2 * 8, ROOM = ELEMENTS + 40 };
    static const float input[ROOM], table[12];
    guarded output = guarded_new(ROOM * sizeof(double), GUARD_BEFORE);
    rotate_call c = {POSENC_ROTATION_INIT,       NULL, {0}, {0}, NULL,
                     POSENC_ROTATE_OPTIONS_INIT, NULL, NULL};
    c.x = c.y = posenc_tensor_dense(POSENC_F32, 2, 3, 2, 8);
    c.rotation.cos = c.rotation.sin = table;
    c.rotation.tokens = 3;
    c.rotation.rotary_dim = 8;
    c.rotation_pointer = &c.rotation;
    c.x_pointer = &c.x;
    c.options.output = &c.y;
    c.input = input;
    c.output = (float *)output.data + 20;
    spoil(&c);
    posenc_error error;
    assert_refused(
        posenc_rotate(c.rotation_pointer, c.x_pointer, c.input, c.output, &c.options, &error),
        &error, status, argument);
    assert_int_equal(
        posenc_rotate(c.rotation_pointer, c.x_pointer, c.input, c.output, &c.options, NULL),
        status);
    assert_true(guarded_is_untouched(&output));
    guarded_free(&output);
}

static void bad_calls_of_rotate_are_refused_and_write_nothing(void **state) {
    (void)state;
    static const struct {
        spoil_rotate *spoil;
        posenc_status status;
        const char *argument;
    } bad[] = {
        {no_rotation, POSENC_NULL_POINTER, "rotation"},
        {no_tensor, POSENC_NULL_POINTER, "tensor"},
        {no_input, POSENC_NULL_POINTER, "input"},
        {no_output, POSENC_NULL_POINTER, "output"},
        {no_cos, POSENC_NULL_POINTER, "rotation.cos"},
        {no_sin, POSENC_NULL_POINTER, "rotation.sin"},
        {rotation_size, POSENC_OUT_OF_RANGE, "rotation"},
        {tensor_size, POSENC_OUT_OF_RANGE, "tensor"},
        {output_size, POSENC_OUT_OF_RANGE, "options.output"},
        {options_size, POSENC_OUT_OF_RANGE, "options"},
        {odd_rotary_dim, POSENC_OUT_OF_RANGE, "rotation.rotary_dim"},
        {no_rotary_dim, POSENC_OUT_OF_RANGE, "rotation.rotary_dim"},
        {long_rotary_dim, POSENC_OUT_OF_RANGE, "rotation.rotary_dim"},
        {huge_rotary_dim, POSENC_OUT_OF_RANGE, "rotation.rotary_dim"},
        {late_start, POSENC_OUT_OF_RANGE, "rotation.rotary_start"},
        {huge_start, POSENC_OUT_OF_RANGE, "rotation.rotary_start"},
        {bad_pairing, POSENC_OUT_OF_RANGE, "rotation.pairing"},
        {fewer_tokens, POSENC_OUT_OF_RANGE, "rotation.tokens"},
        {more_tokens, POSENC_OUT_OF_RANGE, "rotation.tokens"},
        {no_tokens, POSENC_OUT_OF_RANGE, "rotation.tokens"},
        {more_batch, POSENC_OUT_OF_RANGE, "rotation.batch"},
        {batch_of_one, POSENC_OUT_OF_RANGE, "rotation.batch"},
        {negative_factor, POSENC_OUT_OF_RANGE, "rotation.attention_factor"},
        {nan_factor, POSENC_OUT_OF_RANGE, "rotation.attention_factor"},
        {infinite_factor, POSENC_OUT_OF_RANGE, "rotation.attention_factor"},
        {table_f64, POSENC_OUT_OF_RANGE, "rotation.dtype"},
        {table_f16, POSENC_OUT_OF_RANGE, "rotation.dtype"},
        {table_unknown, POSENC_OUT_OF_RANGE, "rotation.dtype"},
        {tensor_f64, POSENC_OUT_OF_RANGE, "rotation.dtype"},
        {tensor_unknown, POSENC_OUT_OF_RANGE, "dtype"},
        {output_unknown, POSENC_OUT_OF_RANGE, "dtype"},
        {output_bf16, POSENC_UNSUPPORTED, "options.output"},
        {nothing_into_something, POSENC_OUT_OF_RANGE, "options.output"},
        {something_into_nothing, POSENC_OUT_OF_RANGE, "options.output"},
        {output_batch, POSENC_OUT_OF_RANGE, "options.output"},
        {output_tokens, POSENC_OUT_OF_RANGE, "options.output"},
        {output_heads, POSENC_OUT_OF_RANGE, "options.output"},
        {output_head_dim, POSENC_OUT_OF_RANGE, "options.output"},
        {bad_direction, POSENC_OUT_OF_RANGE, "options.direction"},
        {negative_direction, POSENC_OUT_OF_RANGE, "options.direction"},
        {one_element_on, POSENC_OVERLAP, "output"},
        {one_head_back, POSENC_OVERLAP, "output"},
        {in_place_transposed, POSENC_OVERLAP, "output"},
        {in_place_spread, POSENC_OVERLAP, "output"},
        {input_repeats_output, POSENC_OVERLAP, "output"},
        {output_repeats, POSENC_OVERLAP, "options.output"},
        {in_place_repeats, POSENC_OVERLAP, "options.output"},
        {output_overlaps, POSENC_OVERLAP, "options.output"},
        {output_overlaps_back, POSENC_OVERLAP, "options.output"},
        {huge_shape, POSENC_OVERFLOW, "tensor"},
        {huge_product, POSENC_OVERFLOW, "tensor"},
        {huge_stride, POSENC_OVERFLOW, "tensor"},
        {least_stride, POSENC_OVERFLOW, "tensor"},
        {huge_output_stride, POSENC_OVERFLOW, "options.output"},
        {huge_row_stride, POSENC_OVERFLOW, "rotation"},
        {least_row_stride, POSENC_OVERFLOW, "rotation"},
        {huge_pair_stride, POSENC_OVERFLOW,
         "rotation.pair_stride"}, /* row_stride 0 is a multiple of it */
        {least_pair_stride, POSENC_OVERFLOW, "rotation.pair_stride"},
        {huge_batch_stride, POSENC_OVERFLOW, "rotation"},
        {input_below_zero, POSENC_OVERFLOW, "tensor"},
        {output_below_zero, POSENC_OVERFLOW, "options.output"},
        {rows_below_zero, POSENC_OVERFLOW, "rotation"},
        {cos_in_output, POSENC_OVERLAP, "rotation.cos"},
        {sin_in_output, POSENC_OVERLAP, "rotation.sin"},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_rotate_refused(bad[i].spoil, bad[i].status, bad[i].argument);
}

/* --- Overlap, byte for byte --------------------------------------------------------------------- */

enum { ARENA = 360, ARENA_ROTARY = 4, ARENA_TABLE = 2 * ARENA_ROTARY / 2 };

/* Tensors of 2 tokens of 2 heads of 4 somewhere in an arena of float32 elements, and dense tables. */
typedef struct arena_call {
    posenc_tensor x, y;
    ptrdiff_t x_at, y_at, cos_at, sin_at;
} arena_call;

static void arena_tensor(posenc_tensor *tensor, random_stream *rng) {
    int order[POSENC_AXES];
    order_of(random_below(rng, 24), order);
    *tensor = posenc_tensor_dense(POSENC_F32, 1, 2, 2, ARENA_ROTARY);
    set_strides(tensor, order, (unsigned)random_below(rng, 16), 3, rng);
}

/* Often alike and near each other, so that there are elements side by side as well as shared ones. */
static arena_call arena_call_of(random_stream *rng) {
    arena_call c;
    arena_tensor(&c.x, rng);
    arena_tensor(&c.y, rng);
    if (random_below(rng, 4))
        c.y = c.x;
    c.x_at = random_between(rng, 150, 190);
    c.y_at = random_below(rng, 4) ? c.x_at + random_between(rng, -24, 24) : c.x_at;
    c.cos_at = random_between(rng, 80, 260 - ARENA_TABLE);
    c.sin_at = random_between(rng, 80, 260 - ARENA_TABLE);
    return c;
}

/* Marks a tensor's elements; returns its lowest and highest in low and high. */
static void mark_elements(const posenc_tensor *t, ptrdiff_t start, unsigned char *marks,
                          ptrdiff_t *low, ptrdiff_t *high) {
    size_t at[POSENC_AXES] = {0};
    memset(marks, 0, ARENA);
    *low = ARENA;
    *high = -1;
    do {
        ptrdiff_t place = start + element_at(t, at);
        assert_true(place >= 0 && place < ARENA);
        marks[place] = 1;
        *low = place < *low ? place : *low;
        *high = place > *high ? place : *high;
    } while (next_element(t, at));
}

/* What there is between the output and something else. */
typedef enum meeting { APART, INTERLEAVED, SHARED } meeting;

static meeting meets_output(const arena_call *c, const posenc_tensor *t, ptrdiff_t start) {
    unsigned char output[ARENA], other[ARENA];
    ptrdiff_t output_low, output_high, low, high;
    mark_elements(&c->y, c->y_at, output, &output_low, &output_high);
    mark_elements(t, start, other, &low, &high);
    for (size_t i = 0; i < ARENA; i++) {
        if (output[i] && other[i])
            return SHARED;
    }
    return low > output_high || high < output_low ? APART : INTERLEAVED;
}

static int is_in_place(const arena_call *c) {
    return c->x_at == c->y_at && memcmp(c->x.strides + 1, c->y.strides + 1,
                                        (POSENC_AXES - 1) * sizeof *c->x.strides) == 0;
}

/* The strongest meeting of the output with the input and the tables. */
static meeting worst_meeting(const arena_call *c) {
    posenc_tensor table = posenc_tensor_dense(POSENC_F32, 1, 1, 1, ARENA_TABLE);
    meeting worst = is_in_place(c) ? APART : meets_output(c, &c->x, c->x_at);
    meeting cos_meets = meets_output(c, &table, c->cos_at);
    meeting sin_meets = meets_output(c, &table, c->sin_at);
    worst = cos_meets > worst ? cos_meets : worst;
    return sin_meets > worst ? sin_meets : worst;
}

/* Runs it on an arena of random numbers: refused without a change, or every element right and nothing
 * else changed. */
static posenc_status arena_run(const arena_call *c, random_stream *rng) {
    float arena[ARENA], before[ARENA];
    for (size_t i = 0; i < ARENA; i++)
        arena[i] = before[i] = (float)random_normal(rng);
    posenc_rotation r = POSENC_ROTATION_INIT;
    r.cos = arena + c->cos_at;
    r.sin = arena + c->sin_at;
    r.tokens = 2;
    r.rotary_dim = ARENA_ROTARY;
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.output = &c->y;
    posenc_status status =
        posenc_rotate(&r, &c->x, arena + c->x_at, arena + c->y_at, &options, NULL);
    size_t at[POSENC_AXES] = {0};
    r.cos = before + c->cos_at;
    r.sin = before + c->sin_at;
    do {
        ptrdiff_t place = c->y_at + element_at(&c->y, at);
        if (status)
            break;
        assert_int_equal(oracle_load(arena, POSENC_F32, place),
                         expected(&r, &c->x, before + c->x_at, at, 0));
        arena[place] = before[place];
    } while (next_element(&c->y, at));
    assert_memory_equal(arena, before, sizeof arena);
    return status;
}

/* Memory of its own is always accepted, a shared element never; what interleaves without sharing is
 * accepted where the strides prove it, which must happen. */
static void calls_are_accepted_only_where_the_output_shares_no_element(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    size_t met[3] = {0, 0, 0}, proved = 0;
    for (size_t trial = 0; trial < random_trials(6000); trial++) {
        arena_call c = arena_call_of(&rng);
        meeting worst = worst_meeting(&c);
        posenc_status status = arena_run(&c, &rng);
        if (worst != INTERLEAVED)
            assert_int_equal(status, worst == APART ? POSENC_OK : POSENC_OVERLAP);
        else
            assert_true(status == POSENC_OK || status == POSENC_OVERLAP);
        met[worst]++;
        proved += worst == INTERLEAVED && status == POSENC_OK;
    }
    assert_true(met[APART] > 100 && met[SHARED] > 100 && proved > 100);
}

static void assert_rotation_of_refused(const posenc_frequencies *f, const posenc_rows *rows,
                                       posenc_status status, const char *argument) {
    posenc_rotation rotation;
    posenc_error error;
    memset(&rotation, GUARD_FILL, sizeof rotation);
    assert_refused(posenc_rotation_of(f, rows, 1, &rotation, &error), &error, status, argument);
    assert_true(guard_is_filled(&rotation, sizeof rotation));
}

static void bad_calls_of_rotation_of_are_refused(void **state) {
    (void)state;
    const int64_t position = 1;
    posenc_spec spec = spec_of(8, 0.0, POSENC_PAIRING_HALF);
    rotor r = rotor_new(&spec, &position, 1, POSENC_F32, POSENC_ROWS_HALF);
    posenc_rows rows = r.rows;
    posenc_error error;
    assert_rotation_of_refused(NULL, &rows, POSENC_NULL_POINTER, "frequencies");
    assert_rotation_of_refused(r.frequencies, NULL, POSENC_NULL_POINTER, "rows");
    assert_refused(posenc_rotation_of(r.frequencies, &rows, 1, NULL, &error), &error,
                   POSENC_NULL_POINTER, "rotation");
    rows.size = 3;
    assert_rotation_of_refused(r.frequencies, &rows, POSENC_OUT_OF_RANGE, "rows");
    rows = r.rows;
    rows.dtype = POSENC_F16;
    assert_rotation_of_refused(r.frequencies, &rows, POSENC_UNSUPPORTED, "rows.dtype");
    rows.dtype = POSENC_BF16;
    assert_rotation_of_refused(r.frequencies, &rows, POSENC_UNSUPPORTED, "rows.dtype");
    rows = r.rows;
    rows.layout = (posenc_row_layout)5;
    assert_rotation_of_refused(r.frequencies, &rows, POSENC_OUT_OF_RANGE, "rows.layout");
    rotor_free(&r);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_tensors_are_described_in_the_order_bshd),
        cmocka_unit_test(every_shape_order_dtype_and_pairing_is_rotated),
        cmocka_unit_test(partial_heads_and_strided_tables_are_rotated),
        cmocka_unit_test(strides_of_axes_of_size_1_are_not_used),
        cmocka_unit_test(sizes_of_0_do_nothing),
        cmocka_unit_test(hand_computed_vectors_of_both_pairings),
        cmocka_unit_test(full_tables_fit_their_own_pairing_only),
        cmocka_unit_test(every_sequence_of_a_batch_is_rotated_in_decoding),
        cmocka_unit_test(partial_rotation_pairs_within_rotary_dim_and_keeps_the_rest),
        cmocka_unit_test(rotations_are_those_of_real_numbers),
        cmocka_unit_test(every_row_layout_rotates_alike),
        cmocka_unit_test(packed_qkv_is_rotated_in_place_and_v_is_kept),
        cmocka_unit_test(packed_qkv_is_rotated_out_of_place_and_within_the_array),
        cmocka_unit_test(in_place_gives_the_bytes_of_out_of_place),
        cmocka_unit_test(the_inverse_undoes_and_norms_are_kept),
        cmocka_unit_test(backward_is_the_transpose),
        cmocka_unit_test(rotation_is_linear),
        cmocka_unit_test(scores_depend_on_the_distance_of_positions_only),
        cmocka_unit_test(position_0_changes_nothing),
        cmocka_unit_test(the_pairings_are_one_permutation_apart),
        cmocka_unit_test(prefill_equals_single_tokens),
        cmocka_unit_test(sequences_may_have_positions_of_their_own),
        cmocka_unit_test(the_inverse_undoes_rows_with_an_attention_factor),
        cmocka_unit_test(the_inverse_alone_asks_for_the_attention_factor),
        cmocka_unit_test(rotations_know_the_attention_factor_of_their_rows),
        cmocka_unit_test(row_primitives_give_the_bytes_of_rotate),
        cmocka_unit_test(bad_calls_of_rotate_are_refused_and_write_nothing),
        cmocka_unit_test(calls_are_accepted_only_where_the_output_shares_no_element),
        cmocka_unit_test(bad_calls_of_rotation_of_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
