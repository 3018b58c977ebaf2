/* posenc_norm_rotate: norm of each head, rotation and scale against plain loops, bit for bit, and the norm against
 * real arithmetic. SPDX-License-Identifier: MIT */
#include "head_oracle.h"

#include <mpfr.h>

/* --- Cases ---------------------------------------------------------------------------------------- */

enum { MOST_TOKENS = 9, MOST_BATCH = 3 };

typedef struct norm_case {
    rotate_case base;
    stage_case stages;
    int has_scales;
    guarded weight, scales;
    posenc_head_stages given;
    int64_t ids[MOST_BATCH * MOST_TOKENS];
} norm_case;

static const size_t dims[] = {2, 6, 16, 24, 33, 64, 80, 96, 128, 136, 300};

static void add_norm(norm_case *c, random_stream *rng) {
    size_t dim = c->base.x.shape[POSENC_AXIS_HEAD_DIM];
    posenc_dtype dtype = dtypes[random_below(rng, COUNT(dtypes))];
    c->stages.norm = (posenc_norm)POSENC_NORM_INIT;
    c->stages.norm.order = (posenc_norm_order)random_below(rng, 2);
    c->stages.norm.epsilon = random_below(rng, 4) ? 1e-6 : random_real(rng, 0.0, 2.0);
    c->weight = guarded_new(dim * oracle_bytes(dtype), (guard_side)random_below(rng, 2));
    for (size_t i = 0; i < dim; i++)
        oracle_store(c->weight.data, dtype, (ptrdiff_t)i,
                     oracle_bits_of_double(random_real(rng, -2.0, 2.0), dtype));
    if (random_below(rng, 4)) {
        c->stages.norm.weight = c->weight.data;
        c->stages.norm.weight_dtype = dtype;
        c->stages.norm.weight_plus_one = (int)random_below(rng, 2);
    }
    c->given.norm = &c->stages.norm;
}

static void add_scales(norm_case *c, random_stream *rng) {
    size_t tokens = c->base.x.shape[POSENC_AXIS_TOKENS], batch = c->base.x.shape[0];
    posenc_dtype dtype = table_dtype_of(c->base.x.dtype);
    int own = (int)random_below(rng, 2);
    size_t count = own ? batch * (tokens + 1) - 1 : tokens;
    c->scales = guarded_new(count * oracle_bytes(dtype), GUARD_AFTER);
    for (size_t i = 0; i < count; i++)
        oracle_store(
            c->scales.data, dtype, (ptrdiff_t)i,
            oracle_bits_of_double(random_below(rng, 4) ? random_real(rng, 0.5, 3.0) : 1.0, dtype));
    c->given.scales = c->scales.data;
    c->given.scales_stride = own ? (ptrdiff_t)tokens + 1 : 0;
}

/* Any shape, order of axes and dtypes; part of each head turns, by rows of any strides. */
static void random_case(norm_case *c, random_stream *rng) {
    const size_t shape[] = {1 + random_below(rng, MOST_BATCH), 1 + random_below(rng, MOST_TOKENS),
                            1 + random_below(rng, 12), dims[random_below(rng, COUNT(dims))]};
    memset(c, 0, sizeof *c);
    rotate_case *base = &c->base;
    *base = case_of(dtypes[random_below(rng, 4)], shape, pairings[random_below(rng, 2)]);
    base->y.dtype = dtypes[random_below(rng, 4)];
    int order[POSENC_AXES] = {0, 1, 2, 3};
    if (random_below(rng, 3) == 0)
        order_of(random_below(rng, 24), order);
    set_strides(&base->x, order, random_below(rng, 4) ? 0 : (unsigned)random_below(rng, 16), 3,
                rng);
    set_strides(&base->y, order, random_below(rng, 4) ? 0 : (unsigned)random_below(rng, 16), 3,
                rng);
    base->in_place = (int)random_below(rng, 3) == 0;
    if (base->in_place)
        base->y = base->x;
    base->any_pattern = (int)random_below(rng, 3) == 0;
    c->given = (posenc_head_stages)POSENC_HEAD_STAGES_INIT;
    c->stages.rotates = random_below(rng, 5) > 0;
    if (random_below(rng, 5))
        add_norm(c, rng);
    c->stages.has_norm = c->given.norm != NULL;
    if (random_below(rng, 2))
        add_scales(c, rng);
    posenc_rotation *r = &base->rotation;
    size_t even = shape[3] / 2 * 2;
    r->rotary_dim = random_below(rng, 2) ? even : 2 + 2 * random_below(rng, even / 2);
    r->rotary_start = random_below(rng, shape[3] - r->rotary_dim + 1);
    r->pair_stride = random_below(rng, 3) ? 0 : random_between(rng, -2, 2);
    r->second_stride = random_below(rng, 6) ? 0 : 7;
    if (c->stages.rotates)
        base->output_pairing = (posenc_output_pairing)random_below(rng, 3);
    if (random_below(rng, 2)) {
        for (size_t i = 0; i < COUNT(c->ids); i++)
            c->ids[i] = (int64_t)random_below(rng, r->tokens);
        r->row_ids = c->ids;
        r->row_ids_stride = random_below(rng, 2) ? MOST_TOKENS : 0;
    }
    base->stores = (posenc_stores)random_below(rng, 3);
}

static void free_case(norm_case *c) {
    if (c->weight.map)
        guarded_free(&c->weight);
    if (c->scales.map)
        guarded_free(&c->scales);
}

/* --- Bit for bit ---------------------------------------------------------------------------------- */

/* One head of the output, which is set back to what was there once it was found right. */
static void assert_head(norm_case *c, const posenc_rotation *r, const void *input, const strided *y,
                        const char *old, const size_t place[3]) {
    double x[MOST_DIM];
    const rotate_case *base = &c->base;
    size_t dim = base->x.shape[POSENC_AXIS_HEAD_DIM];
    ptrdiff_t at_scale = (ptrdiff_t)place[0] * c->given.scales_stride + (ptrdiff_t)place[1];
    posenc_dtype real = table_dtype_of(base->x.dtype);
    ptrdiff_t row = c->stages.rotates ? row_place_of(r, place[0], place[1]) : 0;
    c->stages.factor = c->given.scales ? number_at(c->given.scales, real, at_scale) : 1.0;
    read_head(&base->x, input, place, x);
    if (base->x.dtype == POSENC_F64)
        oracle_head_double(&c->stages, r, row, output_pairing_of(base), dim, x);
    else
        oracle_head_float(&c->stages, r, row, output_pairing_of(base), dim, x);
    for (size_t i = 0; i < dim; i++) {
        size_t at[POSENC_AXES] = {place[0], place[1], place[2], i};
        ptrdiff_t element = element_at(&base->y, at);
        uint64_t got = oracle_load(y->data, base->y.dtype, element);
        uint64_t wanted = oracle_bits_of_double(x[i], base->y.dtype);
        if (!oracle_same(got, wanted, base->y.dtype))
            fail_msg(
                "%s to %s, batch %zu, token %zu, head %zu of %zu, channel %zu of %zu: got %#llx, "
                "wanted %#llx (rotates %d, norm %d order %d)",
                posenc_dtype_name(base->x.dtype), posenc_dtype_name(base->y.dtype), place[0],
                place[1], place[2], base->x.shape[2], i, dim, (unsigned long long)got,
                (unsigned long long)wanted, c->stages.rotates, c->stages.has_norm,
                c->stages.norm.order);
        oracle_store(y->data, base->y.dtype, element, oracle_load(old, base->y.dtype, element));
    }
}

static void assert_case(norm_case *c, random_stream *rng) {
    rotate_case *base = &c->base;
    guard_side side = (guard_side)random_below(rng, 2);
    strided cosine = table_new(&base->rotation, side, rng);
    strided sine = table_new(&base->rotation, side, rng);
    strided x = strided_new(&base->x, side), other = strided_new(&base->y, side);
    strided *y = base->in_place ? &x : &other;
    strided_fill(&x, base->any_pattern, rng);
    posenc_rotation r = base->rotation;
    r.cos = cosine.data;
    r.sin = sine.data;
    void *x_before = copy_of(&x.memory), *y_before = copy_of(&y->memory);
    posenc_rotate_options options = options_of(base);
    posenc_error error;
    assert_done(posenc_norm_rotate(c->stages.rotates ? &r : NULL, &c->given, &base->x, x.data,
                                   y->data, &options, &error),
                &error);
    const char *input = (const char *)x_before + ((char *)x.data - (char *)x.memory.data);
    const char *old = (const char *)y_before + ((char *)y->data - (char *)y->memory.data);
    size_t place[3];
    for (place[0] = 0; place[0] < base->x.shape[0]; place[0]++)
        for (place[1] = 0; place[1] < base->x.shape[1]; place[1]++)
            for (place[2] = 0; place[2] < base->x.shape[2]; place[2]++)
                assert_head(c, &r, input, y, old, place);
    assert_memory_equal(y->memory.data, y_before, y->memory.bytes);
    assert_memory_equal(x.memory.data, x_before, x.memory.bytes);
    free(x_before);
    free(y_before);
    guarded_free(&cosine.memory);
    guarded_free(&sine.memory);
    guarded_free(&x.memory);
    guarded_free(&other.memory);
}

static void random_stages_give_the_bytes_of_plain_loops(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_slow_trials(1500); trial++) {
        norm_case c;
        random_case(&c, &rng);
        assert_case(&c, &rng);
        free_case(&c);
    }
}

/* Models' shapes: what the vector paths take, each dtype to each, both pairings. */
static void models_shapes_give_the_bytes_of_plain_loops(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t number = 0; number < 4 * 4 * 2 * 2 * 2; number++) {
        norm_case c;
        const size_t shape[] = {1, 3, 5 + 4 * (number % 2), number % 3 ? 128 : 80};
        memset(&c, 0, sizeof c);
        c.base = case_of(dtypes[number % 4], shape, pairings[number / 16 % 2]);
        c.base.y.dtype = dtypes[number / 4 % 4];
        c.given = (posenc_head_stages)POSENC_HEAD_STAGES_INIT;
        c.stages.rotates = c.stages.has_norm = 1;
        c.base.stores = (posenc_stores)(number / 2 % 3);
        add_norm(&c, &rng);
        c.stages.norm.order = (posenc_norm_order)(number / 32 % 2);
        if (number / 64)
            add_scales(&c, &rng);
        assert_case(&c, &rng);
        free_case(&c);
    }
}

/* --- Laws ----------------------------------------------------------------------------------------- */

/* Without a stage it is posenc_rotate, for any direction; ranges of tokens give what all at once give. */
static void without_stages_it_rotates(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    enum { TOKENS = 7, HEADS = 3, DIM = 40, ALL = TOKENS * HEADS * DIM };
    float x[ALL], y[ALL], z[ALL];
    int64_t positions[TOKENS] = {5, 1, 9, 70, 800, 100000, 3};
    posenc_spec spec = spec_of(DIM, 10000.0, POSENC_PAIRING_HALF);
    rotor r = rotor_new(&spec, positions, TOKENS, POSENC_F32, POSENC_ROWS_HALF);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, TOKENS, HEADS, DIM);
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    posenc_head_stages none = POSENC_HEAD_STAGES_INIT;
    posenc_error error;
    for (size_t i = 0; i < ALL; i++)
        x[i] = (float)random_normal(&rng);
    for (int direction = 0; direction < 3; direction++) {
        options.direction = (posenc_direction)direction;
        assert_done(posenc_rotate(&r.rotation, &tensor, x, y, &options, &error), &error);
        posenc_status got = posenc_norm_rotate(&r.rotation, NULL, &tensor, x, z, &options, &error);
        assert_done(got, &error);
        assert_memory_equal(y, z, sizeof y);
    }
    options.direction = POSENC_FORWARD;
    assert_done(posenc_norm_rotate(&r.rotation, &none, &tensor, x, z, &options, &error), &error);
    posenc_norm norm = POSENC_NORM_INIT;
    none.norm = &norm;
    assert_done(posenc_norm_rotate(&r.rotation, &none, &tensor, x, y, &options, &error), &error);
    memset(z, 0, sizeof z);
    for (options.first_token = 0; options.first_token < TOKENS; options.first_token += 2) {
        options.token_count = TOKENS - options.first_token < 2 ? 1 : 2;
        assert_done(posenc_norm_rotate(&r.rotation, &none, &tensor, x, z, &options, &error),
                    &error);
    }
    assert_memory_equal(y, z, sizeof y);
    rotor_free(&r);
}

/* The norm in real arithmetic: the sum's error is at most n/16 + 5 roundings (half of it after the root), the other
 * six steps one each. */
static void the_norm_is_accurate(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    mpfr_t sum, term, wanted;
    mpfr_inits2(300, sum, term, wanted, (mpfr_ptr)NULL);
    for (size_t trial = 0; trial < random_trials(400); trial++) {
        float x[MOST_DIM], y[MOST_DIM], weight[MOST_DIM];
        size_t n = dims[random_below(&rng, COUNT(dims))];
        double size = random_magnitude(&rng, -6.0, 6.0);
        posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, 1, 1, n);
        posenc_norm norm = POSENC_NORM_INIT;
        norm.epsilon = 0x1p-20; /* a float32 number */
        norm.weight = weight;
        posenc_head_stages stages = POSENC_HEAD_STAGES_INIT;
        stages.norm = &norm;
        mpfr_set_zero(sum, 1);
        for (size_t i = 0; i < n; i++) {
            x[i] = (float)(size * random_normal(&rng));
            weight[i] = (float)random_real(&rng, -2.0, 2.0);
            mpfr_set_flt(term, x[i], MPFR_RNDN);
            mpfr_sqr(term, term, MPFR_RNDN);
            mpfr_add(sum, sum, term, MPFR_RNDN);
        }
        posenc_error error;
        assert_done(posenc_norm_rotate(NULL, &stages, &tensor, x, y, NULL, &error), &error);
        mpfr_div_ui(sum, sum, n, MPFR_RNDN);
        mpfr_add_d(sum, sum, norm.epsilon, MPFR_RNDN);
        mpfr_rec_sqrt(sum, sum, MPFR_RNDN);
        double bound = ((double)((n + 15) / 16 + 5) / 2.0 + 5.0) * 0x1p-24;
        for (size_t i = 0; i < n; i++) {
            mpfr_mul_d(wanted, sum, (double)x[i], MPFR_RNDN);
            mpfr_mul_d(wanted, wanted, (double)weight[i], MPFR_RNDN);
            mpfr_set_flt(term, y[i], MPFR_RNDN);
            mpfr_sub(term, term, wanted, MPFR_RNDN);
            mpfr_div(term, term, wanted, MPFR_RNDN);
            if (!(fabs(mpfr_get_d(term, MPFR_RNDN)) <= bound))
                fail_msg("%zu channels, channel %zu: relative error %g, bound %g", n, i,
                         mpfr_get_d(term, MPFR_RNDN), bound);
        }
    }
    mpfr_clears(sum, term, wanted, (mpfr_ptr)NULL);
}

/* A head of (3, 4): the root of 12.5, by hand. */
static void known_numbers(void **state) {
    (void)state;
    const double x[2] = {3.0, 4.0};
    const float gains[2] = {1.0f, -0.5f};
    double y[2];
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F64, 1, 1, 1, 2);
    posenc_norm norm = POSENC_NORM_INIT;
    posenc_head_stages stages = POSENC_HEAD_STAGES_INIT;
    posenc_error error;
    stages.norm = &norm;
    assert_done(posenc_norm_rotate(NULL, &stages, &tensor, x, y, NULL, &error), &error);
    assert_close(y, (double[]){0.8485281374238570, 1.1313708498984760}, 2, 1e-15);
    norm.weight = gains;
    norm.weight_plus_one = 1;
    norm.epsilon = 3.5;
    const double scale = 10.0;
    stages.scales = &scale;
    assert_done(posenc_norm_rotate(NULL, &stages, &tensor, x, y, NULL, &error), &error);
    assert_close(y, (double[]){15.0, 5.0}, 2, 1e-14);
}

/* Zeros stay zeros, or become NaN without an epsilon; what is not finite makes a head of NaN and zeros and leaves the
 * others alone. */
static void rare_numbers(void **state) {
    (void)state;
    float x[3][4] = {{0.0f, -0.0f, 0.0f, 0.0f}, {1.0f, INFINITY, -2.0f, 0.0f}, {1, 1, 1, 1}};
    float y[3][4];
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, 1, 3, 4);
    posenc_norm norm = POSENC_NORM_INIT;
    posenc_head_stages stages = POSENC_HEAD_STAGES_INIT;
    posenc_error error;
    stages.norm = &norm;
    assert_done(posenc_norm_rotate(NULL, &stages, &tensor, x, y, NULL, &error), &error);
    assert_true(isnan(y[0][0]) && isnan(y[1][1]) && y[1][0] == 0.0f && y[2][3] == 1.0f);
    norm.epsilon = 1e-6;
    assert_done(posenc_norm_rotate(NULL, &stages, &tensor, x, y, NULL, &error), &error);
    assert_true(y[0][0] == 0.0f && y[0][1] == 0.0f && signbit(y[0][1]));
}

/* The widest heads, of channels that lie apart, into the widest type. */
static void the_widest_heads_pass(void **state) {
    (void)state;
    enum { DIM = 2048, HEADS = 2, APART = 3 };
    random_stream rng = random_of(__func__);
    posenc_tensor dense = posenc_tensor_dense(POSENC_F32, 1, 1, HEADS, DIM), apart = dense;
    apart.strides[POSENC_AXIS_HEAD_DIM] = APART;
    apart.strides[POSENC_AXIS_HEADS] = DIM * APART;
    posenc_tensor wide = dense, wide_apart = apart;
    wide.dtype = wide_apart.dtype = POSENC_F64;
    strided x = strided_new(&dense, GUARD_AFTER), x_apart = strided_new(&apart, GUARD_AFTER);
    strided y = strided_new(&wide, GUARD_AFTER), y_apart = strided_new(&wide_apart, GUARD_AFTER);
    strided_fill(&x, 0, &rng);
    for (size_t i = 0; i < HEADS * DIM; i++)
        ((float *)x_apart.data)[i * APART] = ((float *)x.data)[i];
    posenc_norm norm = POSENC_NORM_INIT;
    posenc_head_stages stages = POSENC_HEAD_STAGES_INIT;
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    posenc_error error;
    stages.norm = &norm;
    options.output = &wide;
    assert_done(posenc_norm_rotate(NULL, &stages, &dense, x.data, y.data, &options, &error),
                &error);
    options.output = &wide_apart;
    posenc_status got =
        posenc_norm_rotate(NULL, &stages, &apart, x_apart.data, y_apart.data, &options, &error);
    assert_done(got, &error);
    for (size_t i = 0; i < HEADS * DIM; i++)
        assert_memory_equal((double *)y.data + i, (double *)y_apart.data + i * APART, 8);
    strided *all[] = {&x, &x_apart, &y, &y_apart};
    for (size_t i = 0; i < COUNT(all); i++)
        guarded_free(&all[i]->memory);
}

/* --- Refused -------------------------------------------------------------------------------------- */

/* A good call in parts that a test spoils. */
typedef struct parts {
    posenc_rotation rotation;
    posenc_norm norm;
    posenc_head_stages stages;
    posenc_tensor tensor;
    posenc_rotate_options options;
    float cos[64], sin[64], weight[16], scales[4];
    float x[4 * 2 * 16];
    guarded y;
    const posenc_rotation *given_rotation;
    void *output;
} parts;

static void no_epsilon(parts *p) {
    p->norm.epsilon = -1e-6;
}
static void nan_epsilon(parts *p) {
    p->norm.epsilon = (double)NAN;
}
static void infinite_epsilon(parts *p) {
    p->norm.epsilon = (double)INFINITY;
}
static void bad_order(parts *p) {
    p->norm.order = (posenc_norm_order)2;
}
static void bad_weight_dtype(parts *p) {
    p->norm.weight_dtype = (posenc_dtype)9;
}
static void bad_plus_one(parts *p) {
    p->norm.weight_plus_one = 2;
}
static void plus_one_to_nothing(parts *p) {
    p->norm.weight = NULL, p->norm.weight_plus_one = 1;
}
static void norm_without_size(parts *p) {
    p->norm.size = 0;
}
static void stages_without_size(parts *p) {
    p->stages.size = 8;
}
static void inverse(parts *p) {
    p->options.direction = POSENC_INVERSE;
}
static void backward_without_rotation(parts *p) {
    p->given_rotation = NULL;
    p->options.direction = POSENC_BACKWARD;
}
static void other_pairing_without_rotation(parts *p) {
    p->given_rotation = NULL;
    p->options.output_pairing = POSENC_OUTPUT_INTERLEAVED;
}
static void wide_head(parts *p) {
    p->given_rotation = NULL;
    p->tensor = posenc_tensor_dense(POSENC_F32, 1, 1, 1, 2049);
}
static void wide_double_head(parts *p) {
    p->given_rotation = NULL;
    p->tensor = posenc_tensor_dense(POSENC_F64, 1, 1, 1, 1025);
}
static void weight_in_output(parts *p) {
    p->norm.weight = (char *)p->y.data + 64;
}
static void scales_in_output(parts *p) {
    p->stages.scales = (char *)p->y.data + 64;
}
static void huge_scales_stride(parts *p) {
    p->tensor = posenc_tensor_dense(POSENC_F32, 2, 2, 2, 16);
    p->rotation.tokens = 2;
    p->stages.scales_stride = PTRDIFF_MAX / 4;
}
static void cos_in_output(parts *p) {
    p->rotation.cos = p->y.data;
}
static void input_in_output(parts *p) {
    p->output = (char *)p->x + 4;
}
static void no_output(parts *p) {
    p->output = NULL;
}
static void no_cos(parts *p) {
    p->rotation.cos = NULL;
}
static void odd_rotary_dim(parts *p) {
    p->rotation.rotary_dim = 7;
}

static void assert_spoilt(void (*spoil)(parts *), posenc_status status, const char *argument) {
    parts p = {.rotation = POSENC_ROTATION_INIT, .norm = POSENC_NORM_INIT};
    p.stages = (posenc_head_stages)POSENC_HEAD_STAGES_INIT;
    p.options = (posenc_rotate_options)POSENC_ROTATE_OPTIONS_INIT;
    p.tensor = posenc_tensor_dense(POSENC_F32, 1, 4, 2, 16);
    p.y = guarded_new(sizeof p.x, GUARD_AFTER);
    p.output = p.y.data;
    p.rotation.cos = p.cos;
    p.rotation.sin = p.sin;
    p.rotation.tokens = 4;
    p.rotation.rotary_dim = 16;
    p.given_rotation = &p.rotation;
    p.norm.weight = p.weight;
    p.stages.norm = &p.norm;
    p.stages.scales = p.scales;
    float before[COUNT(p.x)];
    posenc_error error;
    memcpy(before, p.x, sizeof before);
    if (spoil)
        spoil(&p);
    posenc_status got = posenc_norm_rotate(p.given_rotation, &p.stages, &p.tensor, p.x, p.output,
                                           &p.options, &error);
    if (status)
        assert_refused(got, &error, status, argument);
    else
        assert_done(got, &error);
    assert_int_equal(guarded_is_untouched(&p.y), status != POSENC_OK);
    assert_memory_equal(before, p.x, sizeof before);
    guarded_free(&p.y);
}

static void bad_calls_are_refused_and_write_nothing(void **state) {
    (void)state;
    static const struct {
        void (*spoil)(parts *);
        posenc_status status;
        const char *argument;
    } bad[] = {
        {no_epsilon, POSENC_OUT_OF_RANGE, "norm.epsilon"},
        {nan_epsilon, POSENC_OUT_OF_RANGE, "norm.epsilon"},
        {infinite_epsilon, POSENC_OUT_OF_RANGE, "norm.epsilon"},
        {bad_order, POSENC_OUT_OF_RANGE, "norm.order"},
        {bad_weight_dtype, POSENC_OUT_OF_RANGE, "norm.weight_dtype"},
        {bad_plus_one, POSENC_OUT_OF_RANGE, "norm.weight_plus_one"},
        {plus_one_to_nothing, POSENC_NULL_POINTER, "norm.weight"},
        {norm_without_size, POSENC_OUT_OF_RANGE, "norm"},
        {stages_without_size, POSENC_OUT_OF_RANGE, "stages"},
        {inverse, POSENC_OUT_OF_RANGE, "options.direction"},
        {backward_without_rotation, POSENC_OUT_OF_RANGE, "options.direction"},
        {other_pairing_without_rotation, POSENC_OUT_OF_RANGE, "options.output_pairing"},
        {wide_head, POSENC_OUT_OF_RANGE, "head_dim"},
        {wide_double_head, POSENC_OUT_OF_RANGE, "head_dim"},
        {weight_in_output, POSENC_OVERLAP, "norm.weight"},
        {scales_in_output, POSENC_OVERLAP, "stages.scales"},
        {huge_scales_stride, POSENC_OVERFLOW, "stages.scales_stride"},
        {cos_in_output, POSENC_OVERLAP, "rotation.cos"},
        {input_in_output, POSENC_OVERLAP, "output"},
        {no_output, POSENC_NULL_POINTER, "output"},
        {no_cos, POSENC_NULL_POINTER, "rotation.cos"},
        {odd_rotary_dim, POSENC_OUT_OF_RANGE, "rotation.rotary_dim"},
    };
    assert_spoilt(NULL, POSENC_OK, NULL);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_spoilt(bad[i].spoil, bad[i].status, bad[i].argument);
}

static void empty_tensors_do_nothing(void **state) {
    (void)state;
    posenc_norm norm = POSENC_NORM_INIT;
    posenc_head_stages stages = POSENC_HEAD_STAGES_INIT;
    posenc_error error;
    stages.norm = &norm;
    for (int axis = 0; axis < POSENC_AXES; axis++) {
        posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 2, 2, 2, 8);
        tensor.shape[axis] = 0;
        assert_done(posenc_norm_rotate(NULL, &stages, &tensor, NULL, NULL, NULL, &error), &error);
    }
}

int main(int argc, char **argv) {
    random_announce();
    if (argc > 1 && strcmp(posenc_cpu(), argv[1]) != 0) {
        printf("1..1\nok 1 - norm and rotation at level %s # SKIP this CPU has no %s\n", argv[1],
               argv[1]);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_stages_give_the_bytes_of_plain_loops),
        cmocka_unit_test(models_shapes_give_the_bytes_of_plain_loops),
        cmocka_unit_test(without_stages_it_rotates),
        cmocka_unit_test(the_norm_is_accurate),
        cmocka_unit_test(known_numbers),
        cmocka_unit_test(rare_numbers),
        cmocka_unit_test(the_widest_heads_pass),
        cmocka_unit_test(bad_calls_are_refused_and_write_nothing),
        cmocka_unit_test(empty_tensors_do_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
