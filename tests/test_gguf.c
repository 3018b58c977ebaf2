/* GGUF files: versions, byte orders, every value type, tensors, and what is refused. SPDX-License-Identifier: MIT */
#include "formats/gguf.h"

#include "gguf_cases.h"

static penc_gguf *open_gguf(const char *path) {
    penc_gguf *gguf;
    posenc_error error;
    assert_done(penc_gguf_open(path, &gguf, &error), &error);
    assert_non_null(gguf);
    return gguf;
}

static penc_gguf_value value_of(const penc_gguf *gguf, const char *key) {
    penc_gguf_value value;
    posenc_error error;
    assert_done(penc_gguf_find(gguf, key, &value, &error), &error);
    return value;
}

/* ---- What is read ---- */

/* Every version in either byte order; each test of values runs through all of them. */
typedef struct variant {
    uint32_t version;
    int big;
} variant;

static const variant variants[] = {{1, 0}, {2, 0}, {3, 0}, {1, 1}, {2, 1}, {3, 1}};

static void scalars_of_every_type_are_read(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        size_t bytes;
        uint64_t bits;
        int64_t integer; /* what it should be; floats: the real times 4 */
        const char *word;
    } scalars[] = {
        {T_U8, 1, 0xff, 255, "uint8"},
        {T_I8, 1, 0xff, -1, "int8"},
        {T_I8, 1, 0x80, -128, "int8"},
        {T_U16, 2, 0xfffe, 65534, "uint16"},
        {T_I16, 2, 0x8001, -32767, "int16"},
        {T_U32, 4, 0xfffefdfc, 0xfffefdfc, "uint32"},
        {T_I32, 4, 0xfffefdfc, -66052, "int32"},
        {T_U64, 8, UINT64_C(0x7edcba9876543210), INT64_C(0x7edcba9876543210), "uint64"},
        {T_I64, 8, UINT64_C(0x8000000000000000), INT64_MIN, "int64"},
        {T_I64, 8, UINT64_C(0x0102030405060708), INT64_C(0x0102030405060708), "int64"},
        {T_F32, 4, 0xc0500000, -13, "float32"},                  /* -3.25 */
        {T_F64, 8, UINT64_C(0x4004000000000000), 10, "float64"}, /* 2.5 */
        {T_BOOL, 1, 0, 0, "bool"},
        {T_BOOL, 1, 1, 1, "bool"},
    };
    for (size_t v = 0; v < COUNT(variants); v++) {
        gguf_image g = gguf_begin(variants[v].version, variants[v].big, 0, COUNT(scalars));
        char key[30];
        for (size_t i = 0; i < COUNT(scalars); i++) {
            snprintf(key, sizeof key, "key.%zu", i);
            add_key_number(&g, key, scalars[i].type, scalars[i].bits, scalars[i].bytes);
        }
        gguf_end(&g, "a.gguf");
        penc_gguf *gguf = open_gguf("a.gguf");
        assert_int_equal(penc_gguf_about(gguf)->version, variants[v].version);
        assert_int_equal(penc_gguf_about(gguf)->big_endian, variants[v].big);
        assert_int_equal(penc_gguf_about(gguf)->key_count, COUNT(scalars));
        for (size_t i = 0; i < COUNT(scalars); i++) {
            char name[PENC_NAME_BYTES];
            penc_gguf_value value, found;
            double real = 0.0;
            int64_t integer = 0;
            snprintf(key, sizeof key, "key.%zu", i);
            assert_int_equal(penc_gguf_key(gguf, i, name, &value, NULL), POSENC_OK);
            assert_string_equal(name, key);
            found = value_of(gguf, key);
            assert_true(found.type == value.type && found.place == value.place && found.count == 1);
            assert_string_equal(penc_gguf_type_word(value.type), scalars[i].word);
            int is_float = scalars[i].type == T_F32 || scalars[i].type == T_F64;
            assert_int_equal(penc_gguf_real(&value, &real), scalars[i].type != T_BOOL);
            assert_int_equal(penc_gguf_integer(&value, &integer),
                             !is_float && scalars[i].type != T_BOOL);
            if (is_float)
                assert_true(real * 4 == (double)scalars[i].integer);
            else if (scalars[i].type == T_BOOL)
                assert_true(value.as.u == (uint64_t)scalars[i].integer);
            else
                assert_true(integer == scalars[i].integer && real == (double)integer);
        }
        penc_gguf_close(gguf);
    }
}

static void integers_beyond_int64_are_no_int64(void **state) {
    (void)state;
    gguf_image g = gguf_begin(3, 0, 0, 1);
    int64_t integer = 7;
    double real;
    add_key_number(&g, "k", T_U64, UINT64_MAX, 8);
    gguf_end(&g, "a.gguf");
    penc_gguf *gguf = open_gguf("a.gguf");
    penc_gguf_value value = value_of(gguf, "k");
    assert_false(penc_gguf_integer(&value, &integer));
    assert_int_equal(integer, 7);
    assert_true(value.as.u == UINT64_MAX && penc_gguf_real(&value, &real) && real == 0x1p64);
    penc_gguf_close(gguf);
}

static void keys_that_are_not_there_are_none(void **state) {
    (void)state;
    gguf_image g = gguf_begin(3, 0, 0, 1);
    add_key_text(&g, "general.architecture", "llama");
    gguf_end(&g, "a.gguf");
    penc_gguf *gguf = open_gguf("a.gguf");
    assert_int_equal(value_of(gguf, "general.architectur").type, PENC_GGUF_NONE);
    assert_int_equal(value_of(gguf, "").type, PENC_GGUF_NONE);
    assert_int_equal(value_of(gguf, "general.architecture").type, PENC_GGUF_STRING);
    penc_gguf_close(gguf);
}

static void texts_are_read_and_checked(void **state) {
    (void)state;
    gguf_image g = gguf_begin(3, 0, 0, 5);
    posenc_error error;
    char text[20];
    add_key_text(&g, "plain", "llama");
    add_key_text(&g, "utf8", "\xc3\xa9\xf0\x9f\x98\x80");
    add_key_text(&g, "empty", "");
    add_key_text(&g, "latin1", "caf\xe9!");
    add_key(&g, "nul", T_STRING);
    add_length(&g, 3);
    add_bytes(&g.f, "a\0b", 3);
    gguf_end(&g, "a.gguf");
    penc_gguf *gguf = open_gguf("a.gguf");
    penc_gguf_value value = value_of(gguf, "plain");
    assert_int_equal(value.count, 5);
    assert_done(penc_gguf_text(gguf, &value, "plain", text, 6, &error), &error);
    assert_string_equal(text, "llama");
    refusal wanted = {POSENC_OUT_OF_RANGE, "value", "shorter", "plain", "a.gguf",
                      (int64_t)value.place};
    assert_refusal(penc_gguf_text(gguf, &value, "plain", text, 5, &error), &error, &wanted, "room");
    assert_int_equal(error.limit.as.size, 4);
    value = value_of(gguf, "utf8");
    assert_done(penc_gguf_text(gguf, &value, "utf8", text, sizeof text, &error), &error);
    assert_string_equal(text, "\xc3\xa9\xf0\x9f\x98\x80");
    value = value_of(gguf, "empty");
    assert_done(penc_gguf_text(gguf, &value, "empty", text, 1, &error), &error);
    assert_string_equal(text, "");
    value = value_of(gguf, "latin1");
    wanted = (refusal){POSENC_FORMAT, "value", "UTF-8", "latin1", NULL, (int64_t)value.place + 3};
    assert_refusal(penc_gguf_text(gguf, &value, "latin1", text, 20, &error), &error, &wanted, "l1");
    value = value_of(gguf, "nul");
    wanted = (refusal){POSENC_FORMAT, "value", "NUL", "nul", NULL, (int64_t)value.place + 1};
    assert_refusal(penc_gguf_text(gguf, &value, "nul", text, 20, &error), &error, &wanted, "nul");
    value.type = PENC_GGUF_U8;
    wanted = (refusal){POSENC_FORMAT, "value", "be a string", "nul", NULL, -1};
    assert_refusal(penc_gguf_text(gguf, &value, "nul", text, 20, &error), &error, &wanted, "type");
    penc_gguf_close(gguf);
}

/* Longer than any window, so that reading crosses their borders; keys behind them are still found. */
static void arrays_of_numbers_are_read_from_anywhere(void **state) {
    (void)state;
    enum { LENGTH = 100000 };
    static double reals[LENGTH];
    for (size_t v = 0; v < COUNT(variants); v++) {
        gguf_image g = gguf_begin(variants[v].version, variants[v].big, 0, 3);
        posenc_error error;
        add_key(&g, "floats", T_ARRAY);
        add_array(&g, T_F32, LENGTH);
        for (int i = 0; i < LENGTH; i++)
            add_number(&g.f, bits_of_float((float)i / 4), 4);
        add_key(&g, "shorts", T_ARRAY);
        add_array(&g, T_I16, 5);
        for (int i = 0; i < 5; i++)
            add_number(&g.f, (uint64_t)(i - 2), 2);
        add_key(&g, "bools", T_ARRAY);
        add_array(&g, T_BOOL, 3);
        add_bytes(&g.f, "\1\0\1", 3);
        gguf_end(&g, "a.gguf");
        penc_gguf *gguf = open_gguf("a.gguf");
        penc_gguf_value value = value_of(gguf, "floats");
        assert_true(value.element == PENC_GGUF_F32 && value.count == LENGTH);
        assert_done(penc_gguf_reals(gguf, &value, "floats", 0, LENGTH, reals, &error), &error);
        for (int i = 0; i < LENGTH; i++)
            assert_true(reals[i] == (double)i / 4);
        assert_done(penc_gguf_reals(gguf, &value, "floats", 77777, 3, reals, &error), &error);
        assert_true(reals[0] == 77777.0 / 4 && reals[2] == 77779.0 / 4);
        refusal wanted = {POSENC_OUT_OF_RANGE, "value", "longer", "floats", "a.gguf", -1};
        assert_refusal(penc_gguf_reals(gguf, &value, "floats", LENGTH - 1, 2, reals, &error),
                       &error, &wanted, "beyond");
        value = value_of(gguf, "shorts");
        assert_done(penc_gguf_reals(gguf, &value, "shorts", 0, 5, reals, &error), &error);
        assert_true(reals[0] == -2.0 && reals[4] == 2.0);
        value = value_of(gguf, "bools");
        assert_done(penc_gguf_reals(gguf, &value, "bools", 1, 2, reals, &error), &error);
        assert_true(reals[0] == 0.0 && reals[1] == 1.0);
        penc_gguf_close(gguf);
    }
}

static void arrays_of_strings_are_walked(void **state) {
    (void)state;
    enum { LENGTH = 3000 };
    posenc_error error;
    for (size_t v = 0; v < COUNT(variants); v++) {
        gguf_image g = gguf_begin(variants[v].version, variants[v].big, 0, 2);
        char wanted[60], text[60];
        add_key(&g, "tokens", T_ARRAY);
        add_array(&g, T_STRING, LENGTH);
        for (int i = 0; i < LENGTH; i++) {
            snprintf(wanted, sizeof wanted, "%0*d", i % 50, i);
            add_text(&g, wanted);
        }
        add_key_number(&g, "last", T_U8, 9, 1);
        gguf_end(&g, "a.gguf");
        penc_gguf *gguf = open_gguf("a.gguf");
        penc_gguf_value array = value_of(gguf, "tokens"), element;
        penc_gguf_walk walk;
        penc_gguf_walk_begin(gguf, &array, &walk);
        for (int i = 0; i < LENGTH; i++) {
            assert_int_equal(walk.left, LENGTH - i);
            assert_done(penc_gguf_walk_next(&walk, &element, &error), &error);
            assert_done(penc_gguf_text(gguf, &element, "token", text, sizeof text, &error), &error);
            snprintf(wanted, sizeof wanted, "%0*d", i % 50, i);
            assert_string_equal(text, wanted);
        }
        assert_int_equal(walk.left, 0);
        double real;
        refusal refused = {POSENC_FORMAT, "value", "array of numbers", "tokens", NULL, -1};
        assert_refusal(penc_gguf_reals(gguf, &array, "tokens", 0, 1, &real, &error), &error,
                       &refused, "strings");
        assert_int_equal(value_of(gguf, "last").as.u, 9);
        penc_gguf_close(gguf);
    }
}

/* [[1, 2], [], [[..8 deep..]]] */
static void arrays_may_nest(void **state) {
    (void)state;
    posenc_error error;
    double reals[2];
    gguf_image g = gguf_begin(3, 0, 0, 2);
    add_key(&g, "nested", T_ARRAY);
    add_array(&g, T_ARRAY, 3);
    add_array(&g, T_U8, 2);
    add_bytes(&g.f, "\1\2", 2);
    add_array(&g, T_STRING, 0);
    add_array(&g, T_ARRAY, 1);
    for (int depth = 3; depth < PENC_GGUF_MAX_NESTING; depth++)
        add_array(&g, T_ARRAY, 1);
    g.f.size -= 12; /* the innermost is one of numbers */
    add_array(&g, T_U16, 1);
    add_number(&g.f, 7, 2);
    add_key_number(&g, "last", T_U8, 9, 1);
    gguf_end(&g, "a.gguf");
    penc_gguf *gguf = open_gguf("a.gguf");
    penc_gguf_value array = value_of(gguf, "nested"), element;
    penc_gguf_walk walk;
    assert_int_equal(array.element, PENC_GGUF_ARRAY);
    penc_gguf_walk_begin(gguf, &array, &walk);
    assert_done(penc_gguf_walk_next(&walk, &element, &error), &error);
    assert_true(element.element == PENC_GGUF_U8 && element.count == 2);
    assert_done(penc_gguf_reals(gguf, &element, "nested", 0, 2, reals, &error), &error);
    assert_true(reals[0] == 1.0 && reals[1] == 2.0);
    assert_done(penc_gguf_walk_next(&walk, &element, &error), &error);
    assert_true(element.element == PENC_GGUF_STRING && element.count == 0);
    assert_done(penc_gguf_walk_next(&walk, &element, &error), &error);
    assert_int_equal(element.element, PENC_GGUF_ARRAY);
    assert_int_equal(value_of(gguf, "last").as.u, 9);
    penc_gguf_close(gguf);
}

static void tensors_are_listed_in_the_order_of_their_data(void **state) {
    (void)state;
    static const uint64_t matrix[] = {64, 3}, vector[] = {5};
    for (size_t v = 0; v < COUNT(variants); v++) {
        posenc_error error;
        gguf_image g = gguf_begin(variants[v].version, variants[v].big, 3, 2);
        add_key_text(&g, "general.architecture", "llama");
        add_key_number(&g, "general.alignment", T_U32, 64, 4);
        add_tensor(&g, "second", 1, vector, 0, 128);   /* 20 bytes of float32 */
        add_tensor(&g, "first", 2, matrix, 2, 0);      /* 2 Q4_0 blocks of 18 bytes by 3 rows */
        add_tensor(&g, "unknown", 1, vector, 77, 192); /* a type that nobody knows yet */
        pad_to(&g, 64);
        size_t data = g.f.size;
        for (int i = 0; i < 200; i++)
            add_number(&g.f, (uint64_t)i, 1);
        gguf_end(&g, "a.gguf");
        penc_gguf *gguf = open_gguf("a.gguf");
        const penc_tensor_source *source = penc_gguf_tensors(gguf);
        penc_tensor tensor;
        unsigned char row[36];
        int found;
        assert_int_equal(penc_gguf_about(gguf)->alignment, 64);
        assert_int_equal(penc_gguf_about(gguf)->data_offset, data);
        assert_int_equal(source->count, 3);
        assert_done(source->format->read(source, &source->entries[0], &tensor, &error), &error);
        assert_string_equal(tensor.name, "first");
        assert_true(tensor.type == PENC_TENSOR_Q4_0 && tensor.rank == 2 && tensor.shape[0] == 3 &&
                    tensor.shape[1] == 64 && tensor.bytes == 108 && tensor.offset == data &&
                    tensor.big_endian == variants[v].big);
        assert_int_equal(penc_tensor_rows(&tensor), 3);
        assert_int_equal(penc_tensor_row_bytes(&tensor), 36);
        assert_done(penc_tensor_read_rows(source, &tensor, 1, 1, row, &error), &error);
        assert_true(row[0] == 36 && row[35] == 71);
        refusal wanted = {POSENC_OUT_OF_RANGE, "row", "in the tensor", "first", "a.gguf", -1};
        assert_refusal(penc_tensor_read_rows(source, &tensor, 2, 2, row, &error), &error, &wanted,
                       "rows");
        assert_done(penc_tensor_source_find(source, "second", &tensor, &found, &error), &error);
        assert_true(found && tensor.type == PENC_TENSOR_F32 && tensor.rank == 1 &&
                    tensor.bytes == 20 && tensor.offset == data + 128);
        assert_done(penc_tensor_source_find(source, "unknown", &tensor, &found, &error), &error);
        assert_true(found && tensor.type == PENC_TENSOR_UNKNOWN && tensor.type_number == 77 &&
                    tensor.bytes == 0 && tensor.offset == data + 192);
        assert_done(penc_tensor_source_find(source, "third", &tensor, &found, &error), &error);
        assert_false(found);
        penc_gguf_close(gguf);
    }
}

/* Every integer type may say it; without the key it is 32. */
static void alignments_of_every_integer_type_are_taken(void **state) {
    (void)state;
    static const uint64_t vector[] = {1};
    static const struct {
        uint32_t type;
        size_t bytes;
        uint64_t alignment;
    } cases[] = {{T_U8, 1, 1},   {T_I8, 1, 8},    {T_U16, 2, 256}, {T_I32, 4, 4096},
                 {T_U64, 8, 16}, {T_I64, 8, 128}, {T_U32, 4, 2},   {T_U32, 0, 32}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        gguf_image g = gguf_begin(3, 0, 2, cases[i].bytes ? 1 : 0);
        if (cases[i].bytes)
            add_key_number(&g, "general.alignment", cases[i].type, cases[i].alignment,
                           cases[i].bytes);
        size_t step = cases[i].alignment < 4 ? 4 : cases[i].alignment;
        add_tensor(&g, "a", 1, vector, 0, 0);
        add_tensor(&g, "bc", 1, vector, 0, step);
        pad_to(&g, cases[i].alignment);
        size_t data = g.f.size;
        add_zeros(&g.f, step + 4);
        gguf_end(&g, "a.gguf");
        penc_gguf *gguf = open_gguf("a.gguf");
        assert_int_equal(penc_gguf_about(gguf)->alignment, cases[i].alignment);
        assert_int_equal(penc_gguf_about(gguf)->data_offset, data);
        penc_gguf_close(gguf);
    }
}

/* ---- What is refused ---- */

/* A file with one fault, made by a number; returns 0 where there is no more. `*place` is where it lies. */
typedef struct fault {
    refusal refused;
    void (*make)(gguf_image *g, refusal *wanted);
} fault;

/* Starts over with other counts. */
static void restart(gguf_image *g, uint32_t version, uint64_t tensors, uint64_t keys) {
    image_free(&g->f);
    *g = gguf_begin(version, 0, tensors, keys);
}

static void here(const gguf_image *g, refusal *wanted) {
    wanted->place = (int64_t)g->f.size;
}

static void bad_magic(gguf_image *g, refusal *wanted) {
    g->f.bytes[0] = 'g';
    wanted->place = 0;
}
static void version_0(gguf_image *g, refusal *wanted) {
    restart(g, 0, 0, 0);
    wanted->place = 4;
}
static void version_4(gguf_image *g, refusal *wanted) {
    restart(g, 4, 0, 0);
    wanted->place = 4;
}
static void many_tensors(gguf_image *g, refusal *wanted) {
    restart(g, 3, UINT64_MAX, 0);
    wanted->place = 8;
}
static void many_keys(gguf_image *g, refusal *wanted) {
    restart(g, 3, 0, UINT64_C(1) << 60);
    wanted->place = 16;
}
static void missing_keys(gguf_image *g, refusal *wanted) {
    restart(g, 3, 0, 1);
    here(g, wanted);
}
static void type_13(gguf_image *g, refusal *wanted) {
    add_text(g, "key");
    here(g, wanted);
    add_number(&g->f, 13, 4);
    add_zeros(&g->f, 8);
}
static void array_of_type_13(gguf_image *g, refusal *wanted) {
    add_key(g, "key", T_ARRAY);
    here(g, wanted);
    add_array(g, 13, 1);
}
static void endless_text(gguf_image *g, refusal *wanted) {
    add_key(g, "key", T_STRING);
    here(g, wanted);
    add_length(g, UINT64_MAX);
}
static void endless_array(gguf_image *g, refusal *wanted) {
    add_key(g, "key", T_ARRAY);
    add_number(&g->f, T_F64, 4);
    here(g, wanted);
    add_length(g, UINT64_C(1) << 61); /* times 8 is 0 */
}
static void endless_strings(gguf_image *g, refusal *wanted) {
    add_key(g, "key", T_ARRAY);
    add_number(&g->f, T_STRING, 4);
    here(g, wanted);
    add_length(g, 3); /* of 8 bytes at least */
    add_zeros(&g->f, 23);
}
static void nested_9_deep(gguf_image *g, refusal *wanted) {
    (void)wanted;
    add_key(g, "key", T_ARRAY);
    for (int depth = 0; depth < 9; depth++)
        add_array(g, T_ARRAY, 1);
    add_array(g, T_U8, 0);
}
static void bool_2(gguf_image *g, refusal *wanted) {
    add_key(g, "key", T_BOOL);
    here(g, wanted);
    add_number(&g->f, 2, 1);
}
static void same_key(gguf_image *g, refusal *wanted) {
    restart(g, 3, 0, 3);
    add_key_number(g, "key", T_U8, 1, 1);
    add_key_number(g, "other", T_U8, 1, 1);
    here(g, wanted);
    add_key_number(g, "key", T_U8, 1, 1);
}
static void key_of_latin1(gguf_image *g, refusal *wanted) {
    here(g, wanted);
    wanted->place += 8 + 1;
    add_key_number(g, "k\xe9y", T_U8, 1, 1);
}
static void key_with_nul(gguf_image *g, refusal *wanted) {
    (void)wanted;
    add_length(g, 3);
    add_bytes(&g->f, "k\0y", 3);
    add_number(&g->f, T_U8, 4);
    add_zeros(&g->f, 1);
}
static void long_key(gguf_image *g, refusal *wanted) {
    char key[513];
    memset(key, 'k', 512);
    key[512] = 0;
    here(g, wanted);
    add_key_number(g, key, T_U8, 1, 1);
}
static void alignment_of(gguf_image *g, refusal *wanted, uint32_t type, uint64_t value,
                         size_t bytes) {
    add_key(g, "general.alignment", type);
    here(g, wanted);
    add_number(&g->f, value, bytes);
}
static void alignment_0(gguf_image *g, refusal *wanted) {
    alignment_of(g, wanted, T_U32, 0, 4);
}
static void alignment_24(gguf_image *g, refusal *wanted) {
    alignment_of(g, wanted, T_U32, 24, 4);
}
static void alignment_minus_32(gguf_image *g, refusal *wanted) {
    alignment_of(g, wanted, T_I32, (uint64_t)-32, 4);
}
static void alignment_32_0(gguf_image *g, refusal *wanted) {
    alignment_of(g, wanted, T_F32, bits_of_float(32.0f), 4);
}
static void alignment_huge(gguf_image *g, refusal *wanted) {
    alignment_of(g, wanted, T_U64, UINT64_C(1) << 40, 8);
}

/* A file of one tensor in the middle of others that are right. */
static const uint64_t one[] = {8};
static void tensor_of(gguf_image *g, uint32_t rank, const uint64_t *shape, uint32_t type,
                      uint64_t offset) {
    restart(g, 3, 2, 0);
    add_tensor(g, "right", 1, one, 0, 0);
    add_tensor(g, "wrong", rank, shape, type, offset);
    pad_to(g, 32);
    add_zeros(&g->f, 96);
}
static void unaligned_tensor(gguf_image *g, refusal *wanted) {
    (void)wanted;
    tensor_of(g, 1, one, 0, 33);
}
static void overlapping_tensor(gguf_image *g, refusal *wanted) {
    static const uint64_t nine[] = {9};
    restart(g, 3, 2, 0);
    add_tensor(g, "right", 1, nine, 0, 0); /* 36 bytes */
    add_tensor(g, "wrong", 1, one, 0, 32);
    pad_to(g, 32);
    wanted->place = (int64_t)g->f.size + 32;
    add_zeros(&g->f, 96);
}
static void tensor_behind_the_end(gguf_image *g, refusal *wanted) {
    tensor_of(g, 1, one, 0, 96);
    wanted->place = (int64_t)g->f.size;
}
static void offset_overflows(gguf_image *g, refusal *wanted) {
    (void)wanted;
    tensor_of(g, 1, one, 0, UINT64_MAX - 31);
}
static void shape_overflows(gguf_image *g, refusal *wanted) {
    static const uint64_t shape[] = {UINT64_C(1) << 32, UINT64_C(1) << 32};
    (void)wanted;
    tensor_of(g, 2, shape, 0, 32);
}
static void shape_overflows_beside_0(gguf_image *g, refusal *wanted) {
    static const uint64_t shape[] = {UINT64_C(1) << 32, UINT64_C(1) << 32, 0};
    (void)wanted;
    tensor_of(g, 3, shape, 0, 32);
}
static void bytes_overflow(gguf_image *g, refusal *wanted) {
    static const uint64_t shape[] = {UINT64_C(1) << 61};
    (void)wanted;
    tensor_of(g, 1, shape, 0, 32);
}
static void block_across_rows(gguf_image *g, refusal *wanted) {
    static const uint64_t shape[] = {16, 2};
    (void)wanted;
    tensor_of(g, 2, shape, 2, 32);
}
static void rank_17(gguf_image *g, refusal *wanted) {
    static const uint64_t shape[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    (void)wanted;
    tensor_of(g, 17, shape, 0, 32);
}
static void same_tensor(gguf_image *g, refusal *wanted) {
    restart(g, 3, 2, 0);
    add_tensor(g, "twin", 1, one, 0, 0);
    here(g, wanted);
    add_tensor(g, "twin", 1, one, 0, 32);
    pad_to(g, 32);
    add_zeros(&g->f, 64);
}
static void tensor_of_latin1(gguf_image *g, refusal *wanted) {
    (void)wanted;
    restart(g, 3, 1, 0);
    add_tensor(g, "w\xff", 1, one, 0, 0);
    pad_to(g, 32);
    add_zeros(&g->f, 32);
}

static void files_with_a_fault_are_refused_with_its_place(void **state) {
    (void)state;
    static const fault faults[] = {
        {{POSENC_FORMAT, "file", "magic", NULL, NULL, -1}, bad_magic},
        {{POSENC_UNSUPPORTED, "version", "1, 2 or 3", NULL, NULL, -1}, version_0},
        {{POSENC_UNSUPPORTED, "version", "1, 2 or 3", NULL, NULL, -1}, version_4},
        {{POSENC_FORMAT, "number of tensors", "fit", NULL, NULL, -1}, many_tensors},
        {{POSENC_FORMAT, "number of keys", "fit", NULL, NULL, -1}, many_keys},
        {{POSENC_FORMAT, "file size", "at least", NULL, NULL, -1}, missing_keys},
        {{POSENC_FORMAT, "value type", "from 0", "key", NULL, -1}, type_13},
        {{POSENC_FORMAT, "element type", "from 0", "key", NULL, -1}, array_of_type_13},
        {{POSENC_FORMAT, "string length", "inside the file", "key", NULL, -1}, endless_text},
        {{POSENC_FORMAT, "array length", "inside the file", "key", NULL, -1}, endless_array},
        {{POSENC_FORMAT, "array length", "inside the file", "key", NULL, -1}, endless_strings},
        {{POSENC_UNSUPPORTED, "array", "8 deep", "key", NULL, -1}, nested_9_deep},
        {{POSENC_FORMAT, "bool", "0 or 1", "key", NULL, -1}, bool_2},
        {{POSENC_FORMAT, "key", "once", "key", NULL, -1}, same_key},
        {{POSENC_FORMAT, "key", "UTF-8", "k?y", NULL, -1}, key_of_latin1},
        {{POSENC_FORMAT, "key", "NUL", "k?y", NULL, -1}, key_with_nul},
        {{POSENC_UNSUPPORTED, "key", "511", NULL, NULL, -1}, long_key},
        {{POSENC_FORMAT, "general.alignment", "power of 2", NULL, NULL, -1}, alignment_0},
        {{POSENC_FORMAT, "general.alignment", "power of 2", NULL, NULL, -1}, alignment_24},
        {{POSENC_FORMAT, "general.alignment", "power of 2", NULL, NULL, -1}, alignment_minus_32},
        {{POSENC_FORMAT, "general.alignment", "power of 2", NULL, NULL, -1}, alignment_32_0},
        {{POSENC_FORMAT, "general.alignment", "power of 2", NULL, NULL, -1}, alignment_huge},
        {{POSENC_FORMAT, "offset", "multiple", "wrong", NULL, -1}, unaligned_tensor},
        {{POSENC_FORMAT, "data", "not overlap", "wrong", NULL, -1}, overlapping_tensor},
        {{POSENC_FORMAT, "file size", "at least", "wrong", NULL, -1}, tensor_behind_the_end},
        {{POSENC_OVERFLOW, "offset", "place in a file", "wrong", NULL, -1}, offset_overflows},
        {{POSENC_FORMAT, "shape", "2^63", "wrong", NULL, -1}, shape_overflows},
        {{POSENC_FORMAT, "shape", "2^63", "wrong", NULL, -1}, shape_overflows_beside_0},
        {{POSENC_FORMAT, "shape", "2^63", "wrong", NULL, -1}, bytes_overflow},
        {{POSENC_FORMAT, "shape", "whole blocks", "wrong", NULL, -1}, block_across_rows},
        {{POSENC_UNSUPPORTED, "number of axes", "16", "wrong", NULL, -1}, rank_17},
        {{POSENC_FORMAT, "name", "one tensor", "twin", NULL, -1}, same_tensor},
        {{POSENC_FORMAT, "tensor name", "UTF-8", "w?", NULL, -1}, tensor_of_latin1},
    };
    for (size_t i = 0; i < COUNT(faults); i++) {
        gguf_image g = gguf_begin(3, 0, 0, 1);
        refusal wanted = faults[i].refused;
        char what[40];
        faults[i].make(&g, &wanted);
        wanted.file = "bad.gguf";
        gguf_end(&g, "bad.gguf");
        penc_gguf *gguf = (penc_gguf *)&wanted;
        posenc_error error;
        snprintf(what, sizeof what, "fault number %zu", i);
        assert_refusal(penc_gguf_open("bad.gguf", &gguf, &error), &error, &wanted, what);
        assert_null(gguf);
        assert_int_equal(penc_gguf_open("bad.gguf", &gguf, NULL), wanted.status);
    }
}

/* A file with something of everything. */
static gguf_image rich_image(const variant *v) {
    static const uint64_t matrix[] = {32, 2}, vector[] = {4};
    gguf_image g = gguf_begin(v->version, v->big, 2, 6);
    add_key_text(&g, "general.architecture", "llama");
    add_key_number(&g, "general.alignment", T_U32, 16, 4);
    add_key_number(&g, "llama.rope.freq_base", T_F32, bits_of_float(5e5f), 4);
    add_key(&g, "tokens", T_ARRAY);
    add_array(&g, T_STRING, 3);
    add_text(&g, "a");
    add_text(&g, "");
    add_text(&g, "bcd");
    add_key(&g, "nested", T_ARRAY);
    add_array(&g, T_ARRAY, 2);
    add_array(&g, T_F64, 1);
    add_number(&g.f, bits_of_double(1.5), 8);
    add_array(&g, T_I8, 0);
    add_key_number(&g, "flag", T_BOOL, 1, 1);
    add_tensor(&g, "blk.0.attn_q.weight", 2, matrix, 8, 0); /* Q8_0: 68 bytes */
    add_tensor(&g, "blk.0.attn_norm.weight", 1, vector, 0, 80);
    pad_to(&g, 16);
    add_zeros(&g.f, 96);
    return g;
}

static void every_prefix_of_a_file_is_refused_at_its_end(void **state) {
    (void)state;
    for (size_t v = 0; v < COUNT(variants); v++) {
        gguf_image g = rich_image(&variants[v]);
        for (size_t size = 0; size < g.f.size; size++) {
            penc_gguf *gguf;
            posenc_error error;
            write_file("a.gguf", g.f.bytes, size);
            posenc_status status = penc_gguf_open("a.gguf", &gguf, &error);
            if (status != POSENC_FORMAT || error.place > (int64_t)size)
                fail_msg("prefix of %zu bytes: %s at %lld", size, posenc_status_name(status),
                         (long long)error.place);
        }
        gguf_end(&g, "a.gguf");
        penc_gguf_close(open_gguf("a.gguf"));
    }
}

/* Reads everything that an open file has; faults are allowed where `strict` is 0. */
static void read_everything(const penc_gguf *gguf) {
    const penc_gguf_info *info = penc_gguf_about(gguf);
    for (size_t i = 0; i < info->key_count; i++) {
        char name[PENC_NAME_BYTES], text[100];
        penc_gguf_value value, element;
        penc_gguf_walk walk;
        assert_int_equal(penc_gguf_key(gguf, i, name, &value, NULL), POSENC_OK);
        posenc_status ignored = penc_gguf_text(gguf, &value, name, text, sizeof text, NULL);
        (void)ignored;
        penc_gguf_walk_begin(gguf, &value, &walk);
        while (walk.left && !penc_gguf_walk_next(&walk, &element, NULL))
            continue;
    }
    const penc_tensor_source *source = penc_gguf_tensors(gguf);
    for (size_t i = 0; i < source->count; i++) {
        penc_tensor tensor;
        assert_int_equal(source->format->read(source, &source->entries[i], &tensor, NULL),
                         POSENC_OK);
        assert_true(tensor.offset + tensor.bytes <= info->file_size);
    }
}

static void random_mutations_are_read_or_refused(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    size_t trials = random_trials(3000), accepted = 0;
    for (size_t trial = 0; trial < trials; trial++) {
        gguf_image g = rich_image(&variants[random_below(&rng, COUNT(variants))]);
        for (size_t changes = 1 + random_below(&rng, 3); changes > 0; changes--)
            g.f.bytes[random_below(&rng, g.f.size)] = (unsigned char)random_bits(&rng);
        gguf_end(&g, "a.gguf");
        penc_gguf *gguf;
        posenc_error error;
        posenc_status status = penc_gguf_open("a.gguf", &gguf, &error);
        if (status == POSENC_OK) {
            accepted++;
            read_everything(gguf);
            penc_gguf_close(gguf);
        } else {
            assert_true(status == POSENC_FORMAT || status == POSENC_UNSUPPORTED ||
                        status == POSENC_OVERFLOW);
            assert_true(error.argument && error.must && ends_with(error.file, "a.gguf"));
        }
    }
    assert_true(accepted > trials / 20 && accepted < trials);
}

static void a_file_that_shrinks_is_told(void **state) {
    (void)state;
    gguf_image g = rich_image(&variants[2]);
    gguf_end(&g, "a.gguf");
    penc_gguf *gguf = open_gguf("a.gguf");
    penc_gguf_value value = value_of(gguf, "general.architecture");
    penc_tensor tensor;
    posenc_error error;
    char text[20];
    assert_int_equal(truncate("a.gguf", 30), 0);
    refusal wanted = {POSENC_FORMAT, "file size", "at least", NULL, "a.gguf", 30};
    assert_refusal(penc_gguf_text(gguf, &value, "k", text, 20, &error), &error, &wanted, "text");
    assert_refusal(penc_gguf_key(gguf, 3, NULL, &value, &error), &error, &wanted, "key");
    assert_refusal(penc_gguf_find(gguf, "flag", &value, &error), &error, &wanted, "find");
    const penc_tensor_source *source = penc_gguf_tensors(gguf);
    assert_refusal(source->format->read(source, &source->entries[1], &tensor, &error), &error,
                   &wanted, "tensor");
    penc_gguf_close(gguf);
}

static void files_that_cannot_be_opened_tell_why(void **state) {
    (void)state;
    penc_gguf *gguf;
    posenc_error error;
    refusal missing = {POSENC_IO, "path", "opened", NULL, "no/such.gguf", -1};
    assert_refusal(penc_gguf_open("no/such.gguf", &gguf, &error), &error, &missing, "missing");
    assert_int_equal(error.os_error, ENOENT);
    refusal directory = {POSENC_UNSUPPORTED, "path", "regular", NULL, ".", -1};
    assert_refusal(penc_gguf_open(".", &gguf, &error), &error, &directory, "folder");
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        TEST(scalars_of_every_type_are_read),
        TEST(integers_beyond_int64_are_no_int64),
        TEST(keys_that_are_not_there_are_none),
        TEST(texts_are_read_and_checked),
        TEST(arrays_of_numbers_are_read_from_anywhere),
        TEST(arrays_of_strings_are_walked),
        TEST(arrays_may_nest),
        TEST(tensors_are_listed_in_the_order_of_their_data),
        TEST(alignments_of_every_integer_type_are_taken),
        TEST(files_with_a_fault_are_refused_with_its_place),
        TEST(every_prefix_of_a_file_is_refused_at_its_end),
        TEST(random_mutations_are_read_or_refused),
        TEST(a_file_that_shrinks_is_told),
        TEST(files_that_cannot_be_opened_tell_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
