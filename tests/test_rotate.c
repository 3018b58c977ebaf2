/* Rotation: known vectors, the oracle for every dtype, order and stride, tables, row primitives. SPDX-License-Identifier: MIT */
#include "rotation_cases.h"

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
        cmocka_unit_test(row_primitives_give_the_bytes_of_rotate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
