/* safetensors files: every type, metadata, and what is refused. SPDX-License-Identifier: MIT */
#include "formats/safetensors.h"

#include "safetensors_cases.h"

static penc_safetensors *open_file(const char *path) {
    penc_safetensors *file;
    posenc_error error;
    assert_done(penc_safetensors_open(path, &file, &error), &error);
    assert_non_null(file);
    return file;
}

static penc_tensor tensor_at(const penc_safetensors *file, size_t index) {
    const penc_tensor_source *source = penc_safetensors_tensors(file);
    penc_tensor tensor;
    posenc_error error;
    assert_true(index < source->count);
    assert_done(source->format->read(source, &source->entries[index], &tensor, &error), &error);
    return tensor;
}

static void tensors_of_every_dtype_are_read(void **state) {
    (void)state;
    static const struct {
        const char *dtype, *shape;
        size_t bytes;
    } cases[] = {
        {"F64", "[2]", 16},        {"F32", "[2,3]", 24},   {"F16", "[5]", 10},
        {"BF16", "[5]", 10},       {"I64", "[]", 8},       {"I32", "[1,1,1]", 4},
        {"I16", "[3]", 6},         {"I8", "[3]", 3},       {"U64", "[1]", 8},
        {"U32", "[1]", 4},         {"U16", "[1]", 2},      {"U8", "[7]", 7},
        {"BOOL", "[9]", 9},        {"F8_E4M3", "[3]", 3},  {"F8_E5M2", "[3]", 3},
        {"F8_E8M0", "[3]", 3},     {"F4", "[4]", 2},       {"F6_E2M3", "[4]", 3},
        {"F6_E3M2", "[2,4]", 6},   {"C64", "[2]", 16},     {"F8_E4M3FNUZ", "[1]", 1},
        {"F8_E5M2FNUZ", "[1]", 1}, {"F32", "[0,1024]", 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char header[200];
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[0,%zu]}}", cases[i].dtype,
                 cases[i].shape, cases[i].bytes);
        write_safetensors("a.safetensors", header, cases[i].bytes, NULL);
        penc_safetensors *file = open_file("a.safetensors");
        penc_tensor tensor = tensor_at(file, 0);
        assert_string_equal(tensor.name, "t");
        assert_string_equal(penc_tensor_type_name(tensor.type), cases[i].dtype);
        assert_int_equal(tensor.bytes, cases[i].bytes);
        assert_int_equal(tensor.offset, 8 + strlen(header));
        assert_int_equal(penc_safetensors_header_bytes(file), strlen(header));
        penc_safetensors_close(file);
    }
}

/* The order of the members, white space, unknown members, names with escapes and the padding at the end are free. */
static void headers_in_every_spelling_are_read(void **state) {
    (void)state;
    static const char header[] =
        "{ \"b\\u002e\xc3\xa9\" : { \"data_offsets\" : [ 24 , 32 ] , \"shape\" : [ 2 , 2 ] ,\n"
        "\"extra\": {\"x\": [1, {\"dtype\": 3}]}, \"dtype\" : \"F16\" } , \"__metadata__\": {}, "
        "\"a\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[0,24]}}   \n  ";
    write_safetensors("a.safetensors", header, 32, NULL);
    penc_safetensors *file = open_file("a.safetensors");
    penc_tensor tensor = tensor_at(file, 0);
    unsigned char row[4];
    posenc_error error;
    int found;
    assert_string_equal(tensor.name, "a");
    tensor = tensor_at(file, 1);
    assert_string_equal(tensor.name, "b.\xc3\xa9");
    assert_true(tensor.rank == 2 && tensor.shape[0] == 2 && tensor.shape[1] == 2);
    const penc_tensor_source *source = penc_safetensors_tensors(file);
    assert_done(penc_tensor_source_find(source, "b.\xc3\xa9", &tensor, &found, &error), &error);
    assert_true(found && tensor.type == PENC_TENSOR_F16);
    assert_done(penc_tensor_read_rows(source, &tensor, 1, 1, row, &error), &error);
    assert_memory_equal(row, "\x1c\x1d\x1e\x1f", 4);
    assert_done(penc_tensor_source_find(source, "b", &tensor, &found, &error), &error);
    assert_false(found);
    penc_safetensors_close(file);
}

static void files_without_tensors_are_read(void **state) {
    (void)state;
    static const char *const headers[] = {"{}", "{\"__metadata__\":null}",
                                          "{\"__metadata__\":{\"a\":\"b\"}}"};
    for (size_t i = 0; i < COUNT(headers); i++) {
        write_safetensors("a.safetensors", headers[i], 0, NULL);
        penc_safetensors *file = open_file("a.safetensors");
        assert_int_equal(penc_safetensors_tensors(file)->count, 0);
        assert_int_equal(penc_safetensors_metadata_count(file), i == 2);
        penc_safetensors_close(file);
    }
}

static void metadata_are_read_and_cut_to_the_room(void **state) {
    (void)state;
    char header[600], key[PENC_NAME_BYTES], text[20];
    size_t length;
    int found;
    posenc_error error;
    snprintf(header, sizeof header, "{\"__metadata__\":{\"z\":\"%0300d\",\"format\":\"p\\u0074\"}}",
             5);
    write_safetensors("a.safetensors", header, 0, NULL);
    penc_safetensors *file = open_file("a.safetensors");
    assert_int_equal(penc_safetensors_metadata_count(file), 2);
    assert_done(penc_safetensors_metadata(file, 0, key, text, sizeof text, &length, &error),
                &error);
    assert_string_equal(key, "z");
    assert_true(length == 300 && strlen(text) == 19);
    assert_done(penc_safetensors_metadata(file, 1, key, text, sizeof text, &length, &error),
                &error);
    assert_string_equal(key, "format");
    assert_string_equal(text, "pt");
    assert_done(
        penc_safetensors_find_metadata(file, "format", text, sizeof text, &length, &found, &error),
        &error);
    assert_true(found && length == 2);
    assert_done(
        penc_safetensors_find_metadata(file, "forma", text, sizeof text, &length, &found, &error),
        &error);
    assert_false(found);
    penc_safetensors_close(file);
}

/* Zero bytes have no place that could overlap. */
static void empty_tensors_may_lie_anywhere_between_others(void **state) {
    (void)state;
    write_safetensors("a.safetensors",
                      "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                      "\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]},"
                      "\"z\":{\"dtype\":\"U8\",\"shape\":[2,0],\"data_offsets\":[0,0]},"
                      "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
                      8, NULL);
    penc_safetensors_close(open_file("a.safetensors"));
}

/* ---- What is refused ---- */

#define T(dtype, shape, offsets)                                                                   \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define GOOD "\"good\":" T("U8", "[4]", "[0,4]")

static const struct {
    const char *header; /* with 8 bytes of data */
    posenc_status status;
    const char *argument, *must, *name;
} bad_headers[] = {
    {"^[]", POSENC_FORMAT, "header", "begin with {", NULL},
    {" {}", POSENC_FORMAT, "header", "begin with {", NULL},
    {"{" GOOD "^", POSENC_FORMAT, "JSON", "comma", NULL},
    {"{" GOOD "} ^x", POSENC_FORMAT, "JSON", "end after", NULL},
    {"{" GOOD "}", POSENC_FORMAT, "file", "end after the last tensor", NULL}, /* 4 of 8 bytes */
    {"{" GOOD ",\"b\":" T("U8", "[3]", "[5,8]") "}", POSENC_FORMAT, "data", "without a gap", "b"},
    {"{\"b\":" T("U8", "[7]", "[1,8]") "}", POSENC_FORMAT, "data", "without a gap", "b"},
    {"{" GOOD ",\"b\":" T("U8", "[5]", "[3,8]") "}", POSENC_FORMAT, "data", "not overlap", "b"},
    {"{" GOOD ",\"b\":" T("U8", "[4]", "[0,4]") "}", POSENC_FORMAT, "data", "not overlap", NULL},
    {"{" GOOD ",\"b\":" T("U8", "[5]", "[4,9]") "}", POSENC_FORMAT, "file size", "at least", "b"},
    {"{" GOOD ",^" GOOD "}", POSENC_FORMAT, "name", "one tensor", "good"},
    {"{" GOOD ",^\"go\\u006fd\":" T("U8", "[4]", "[4,8]") "}", POSENC_FORMAT, "name", "one tensor",
     "good"},
    {"{\"b\":^" T("F32", "[3]", "[0,8]") "}", POSENC_FORMAT, "data_offsets", "span", "b"},
    {"{\"b\":^" T("F32", "[]", "[0,8]") "}", POSENC_FORMAT, "data_offsets", "span", "b"},
    {"{\"b\":^" T("F4", "[3]", "[0,8]") "}", POSENC_OVERFLOW, "shape", "whole bytes", "b"},
    {"{\"b\":" T("F32", "[2]", "[8,0^]") "}", POSENC_FORMAT, "data_offsets", "not below", "b"},
    {"{\"b\":" T("F32", "[2]", "[0^]") "}", POSENC_FORMAT, "data_offsets", "two integers", "b"},
    {"{\"b\":" T("F32", "[2]", "[0,8,^9]") "}", POSENC_UNSUPPORTED, "data_offsets", "fewer", "b"},
    {"{\"b\":" T("F32", "[2]", "[0,^-8]") "}", POSENC_FORMAT, "data_offsets", "negative", "b"},
    {"{\"b\":" T("F32", "[2]", "[0,^8.0]") "}", POSENC_FORMAT, "data_offsets", "integers", "b"},
    {"{\"b\":" T("F32", "[2]", "^8") "}", POSENC_FORMAT, "data_offsets", "list", "b"},
    {"{\"b\":" T("F32", "[2]", "[0,9223372036854775807^]") "}", POSENC_OVERFLOW, "data_offsets",
     "places", "b"},
    {"{\"b\":" T("F32", "[2]", "[0,^9223372036854775808]") "}", POSENC_OVERFLOW, "data_offsets",
     "2^63", "b"},
    {"{\"b\":" T("F32", "[^99999999999999999999999]", "[0,8]") "}", POSENC_OVERFLOW, "shape",
     "2^63", "b"},
    {"{\"b\":^" T("F32", "[4294967296,4294967296]", "[0,8]") "}", POSENC_OVERFLOW, "shape", "2^63",
     "b"},
    {"{\"b\":^" T("F64", "[2305843009213693952]", "[0,8]") "}", POSENC_OVERFLOW, "shape", "2^63",
     "b"},
    {"{\"b\":" T("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,^2]", "[0,8]") "}", POSENC_UNSUPPORTED,
     "shape", "fewer", "b"},
    {"{\"b\":" T("F32", "[^\"2\"]", "[0,8]") "}", POSENC_FORMAT, "shape", "integers", "b"},
    {"{\"b\":{\"dtype\":^\"float32\",\"shape\":[2],\"data_offsets\":[0,8]}}", POSENC_UNSUPPORTED,
     "dtype", "safetensors", "b"},
    {"{\"b\":{\"dtype\":^\"f32\",\"shape\":[2],\"data_offsets\":[0,8]}}", POSENC_UNSUPPORTED,
     "dtype", "safetensors", "b"},
    {"{\"b\":{\"dtype\":^\"\",\"shape\":[2],\"data_offsets\":[0,8]}}", POSENC_UNSUPPORTED, "dtype",
     "safetensors", "b"},
    {"{\"b\":{\"dtype\":^32,\"shape\":[2],\"data_offsets\":[0,8]}}", POSENC_FORMAT, "dtype",
     "string", "b"},
    {"{\"b\":^{\"shape\":[2],\"data_offsets\":[0,8]}}", POSENC_FORMAT, "dtype", "stand", "b"},
    {"{\"b\":^{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", POSENC_FORMAT, "shape", "stand", "b"},
    {"{\"b\":^{\"dtype\":\"F32\",\"shape\":[2]}}", POSENC_FORMAT, "data_offsets", "stand", "b"},
    {"{\"b\":{\"dtype\":\"F32\",^\"dtype\":\"F32\"}}", POSENC_FORMAT, "dtype", "once", "b"},
    {"{\"b\":{\"shape\":[2],^\"shape\":[2]}}", POSENC_FORMAT, "shape", "once", "b"},
    {"{\"b\":^[]}", POSENC_FORMAT, "tensor", "object", "b"},
    {"{\"b\":^null}", POSENC_FORMAT, "tensor", "object", "b"},
    {"{\"__metadata__\":^[]}", POSENC_FORMAT, "__metadata__", "object", NULL},
    {"{\"__metadata__\":{\"k\":^1}}", POSENC_FORMAT, "metadata", "strings", "k"},
    {"{\"__metadata__\":{\"k\":^{}}}", POSENC_FORMAT, "metadata", "strings", "k"},
    {"{\"__metadata__\":{\"k\":\"\",\"l\":\"\",^\"k\":\"\"}}", POSENC_FORMAT, "metadata key",
     "once", NULL},
    {"{\"__metadata__\":{},^\"__metadata__\":{}}", POSENC_FORMAT, "__metadata__", "once", NULL},
    {"{\"b^\xff\":1}", POSENC_FORMAT, "JSON", "UTF-8", NULL},
};

static void faults_in_the_header_are_told_with_their_place(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(bad_headers); i++) {
        int64_t place;
        posenc_error error;
        penc_safetensors *file = (penc_safetensors *)&place;
        write_safetensors("bad.safetensors", bad_headers[i].header, 8, &place);
        refusal wanted = {bad_headers[i].status, bad_headers[i].argument, bad_headers[i].must,
                          bad_headers[i].name,   "bad.safetensors",       place};
        assert_refusal(penc_safetensors_open("bad.safetensors", &file, &error), &error, &wanted,
                       bad_headers[i].header);
        assert_null(file);
    }
}

static void names_may_have_511_bytes(void **state) {
    (void)state;
    for (int length = 511; length <= 512; length++) {
        char header[700];
        penc_safetensors *file;
        posenc_error error;
        snprintf(header, sizeof header, "{\"%0*d\":" T("U8", "[1]", "[0,1]") "}", length, 7);
        write_safetensors("a.safetensors", header, 1, NULL);
        posenc_status status = penc_safetensors_open("a.safetensors", &file, &error);
        if (length == 511) {
            assert_done(status, &error);
            assert_int_equal(tensor_at(file, 0).name_length, 511);
            penc_safetensors_close(file);
        } else {
            refusal wanted = {POSENC_UNSUPPORTED, "tensor name", "511", NULL, "a.safetensors", 9};
            assert_refusal(status, &error, &wanted, "512 bytes");
        }
    }
}

static void lengths_of_headers_are_checked(void **state) {
    (void)state;
    static const struct {
        uint64_t length;
        const char *argument;
    } cases[] = {{100000001, "header length"}, {UINT64_MAX, "header length"}, {3, "file size"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        image f = {NULL, 0, 0, 0};
        penc_safetensors *file;
        posenc_error error;
        add_number(&f, cases[i].length, 8);
        add_bytes(&f, "{}", 2);
        write_file("a.safetensors", f.bytes, f.size);
        image_free(&f);
        refusal wanted = {POSENC_FORMAT, cases[i].argument, NULL, NULL, "a.safetensors", -1};
        assert_refusal(penc_safetensors_open("a.safetensors", &file, &error), &error, &wanted, "");
    }
}

static const char rich_header[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"model.layers.0.self_attn.q_proj.weight\":" T(
        "BF16", "[4,2]", "[0,16]") ","
                                   "\"model.layers.0.self_attn.k_proj.weight\":" T(
                                       "BF16", "[2,2]",
                                       "[16,24]") ","
                                                  "\"n\\u00e9\":" T("F32", "[2]", "[24,32]") "}   ";

static unsigned char *rich_file(size_t *size) {
    write_safetensors("rich", rich_header, 32, NULL);
    *size = 8 + strlen(rich_header) + 32;
    unsigned char *bytes = malloc(*size);
    FILE *file = fopen("rich", "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void every_prefix_of_a_file_is_refused_at_its_end(void **state) {
    (void)state;
    size_t whole;
    unsigned char *bytes = rich_file(&whole);
    for (size_t size = 0; size < whole; size++) {
        penc_safetensors *file;
        posenc_error error;
        write_file("a.safetensors", bytes, size);
        refusal wanted = {POSENC_FORMAT, "file size", NULL, NULL, NULL, (int64_t)size};
        assert_refusal(penc_safetensors_open("a.safetensors", &file, &error), &error, &wanted, "");
    }
    free(bytes);
    penc_safetensors_close(open_file("rich"));
}

static void random_mutations_are_read_or_refused(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    size_t trials = random_trials(3000), accepted = 0, whole;
    unsigned char *bytes = rich_file(&whole), *changed = malloc(whole);
    for (size_t trial = 0; trial < trials; trial++) {
        penc_safetensors *file;
        posenc_error error;
        memcpy(changed, bytes, whole);
        for (size_t changes = 1 + random_below(&rng, 2); changes > 0; changes--)
            changed[random_below(&rng, whole)] = (unsigned char)(32 + random_below(&rng, 96));
        write_file("a.safetensors", changed, whole);
        posenc_status status = penc_safetensors_open("a.safetensors", &file, &error);
        if (status == POSENC_OK) {
            accepted++;
            for (size_t i = 0; i < penc_safetensors_tensors(file)->count; i++)
                assert_true(tensor_at(file, i).offset + tensor_at(file, i).bytes <= whole);
            penc_safetensors_close(file);
        } else {
            assert_true(status == POSENC_FORMAT || status == POSENC_UNSUPPORTED ||
                        status == POSENC_OVERFLOW);
            assert_true(error.argument && error.must && ends_with(error.file, "a.safetensors"));
        }
    }
    free(bytes);
    free(changed);
    assert_true(accepted > trials / 50 && accepted < trials);
}

static void a_file_that_shrinks_is_told(void **state) {
    (void)state;
    write_safetensors("a.safetensors", rich_header, 32, NULL);
    penc_safetensors *file = open_file("a.safetensors");
    const penc_tensor_source *source = penc_safetensors_tensors(file);
    penc_tensor tensor = tensor_at(file, 0);
    char row[4];
    posenc_error error;
    refusal wanted = {POSENC_FORMAT, "file size", "at least", NULL, "a.safetensors", 40};
    assert_int_equal(truncate("a.safetensors", 40), 0);
    assert_refusal(penc_tensor_read_rows(source, &tensor, 0, 1, row, &error), &error, &wanted, "");
    assert_refusal(source->format->read(source, &source->entries[1], &tensor, &error), &error,
                   &wanted, "");
    penc_safetensors_close(file);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        TEST(tensors_of_every_dtype_are_read),
        TEST(headers_in_every_spelling_are_read),
        TEST(files_without_tensors_are_read),
        TEST(metadata_are_read_and_cut_to_the_room),
        TEST(empty_tensors_may_lie_anywhere_between_others),
        TEST(faults_in_the_header_are_told_with_their_place),
        TEST(names_may_have_511_bytes),
        TEST(lengths_of_headers_are_checked),
        TEST(every_prefix_of_a_file_is_refused_at_its_end),
        TEST(random_mutations_are_read_or_refused),
        TEST(a_file_that_shrinks_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
