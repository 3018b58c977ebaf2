/* GGUF files: versions, byte orders, every value type, tensors. SPDX-License-Identifier: MIT */
#include "gguf_cases.h"

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

int main(void) {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
