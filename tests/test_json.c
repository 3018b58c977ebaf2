/* JSON: the scanner in memory and through windows, json-c objects, and what is refused. SPDX-License-Identifier: MIT */
#include "formats/json_file.h"
#include "formats/json_scan.h"

#include "file_cases.h"

#include <locale.h>
#include <math.h>

/* ---- Objects ---- */

static json_object *parse(const char *text) {
    json_object *object;
    posenc_error error;
    assert_done(penc_json_parse(text, strlen(text), &object, &error), &error);
    return object;
}

static json_object *member(json_object *object, const char *key) {
    json_object *value = NULL;
    if (!json_object_object_get_ex(object, key, &value))
        fail_msg("%s is missing", key);
    return value;
}

static void integers_of_64_bits_are_exact(void **state) {
    (void)state;
    json_object *object = parse("{\"a\": 9223372036854775807, \"b\": -9223372036854775808, "
                                "\"c\": 18446744073709551615, \"d\": 18446744073709551616, "
                                "\"e\": -9223372036854775809, \"f\": -0, \"g\": 4096}");
    assert_true(json_object_get_int64(member(object, "a")) == INT64_MAX);
    assert_true(json_object_get_int64(member(object, "b")) == INT64_MIN);
    assert_true(json_object_get_uint64(member(object, "c")) == UINT64_MAX);
    assert_int_equal(json_object_get_type(member(object, "d")), json_type_double);
    assert_true(json_object_get_double(member(object, "d")) == 0x1p64);
    assert_true(json_object_get_double(member(object, "e")) == -0x1p63);
    assert_int_equal(json_object_get_int(member(object, "g")), 4096);
    json_object_put(object);
}

static void reals_are_read_as_python_writes_them(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } reals[] = {
        {"0.1", 0.1},
        {"1e-05", 1e-05},
        {"5e-324", 0x1p-1074},
        {"-1.5E+3", -1500.0},
        {"1e0", 1.0},
        {"Infinity", INFINITY},
        {"-Infinity", -INFINITY},
        {"-0.0", -0.0},
        {"1e-999", 0.0},
        {"1.7976931348623157e308", 1.7976931348623157e308},
    };
    for (size_t i = 0; i < COUNT(reals); i++) {
        char text[100];
        snprintf(text, sizeof text, "{\"x\":%s}", reals[i].text);
        json_object *object = parse(text);
        double value = json_object_get_double(member(object, "x"));
        assert_int_equal(json_object_get_type(member(object, "x")), json_type_double);
        if (value != reals[i].value || signbit(value) != signbit(reals[i].value))
            fail_msg("%s became %.17g", reals[i].text, value);
        json_object_put(object);
    }
    json_object *object = parse("{\"x\": NaN}");
    assert_true(isnan(json_object_get_double(member(object, "x"))));
    json_object_put(object);
}

/* A program may have set a locale with a decimal comma. */
static void the_locale_does_not_matter(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "ru_RU.UTF-8"};
    const char *set = NULL;
    for (size_t i = 0; i < COUNT(names) && !set; i++)
        set = setlocale(LC_NUMERIC, names[i]);
    if (!set)
        skip(); /* none is installed */
    json_object *object = parse("{\"x\": 0.25}");
    assert_true(json_object_get_double(member(object, "x")) == 0.25);
    json_object_put(object);
    setlocale(LC_NUMERIC, "C");
}

static void texts_are_decoded(void **state) {
    (void)state;
    json_object *object =
        parse(" {\"a\\u00e9\\n\" : \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u20AC\\ud83d\\ude00"
              "\xc3\xa9\\u0000z\" , \"e\":\"\"} \n");
    json_object *text = member(object, "a\xc3\xa9\n");
    static const char wanted[] = "\"\\/\b\f\n\r\t\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9\0z";
    assert_int_equal(json_object_get_string_len(text), sizeof wanted - 1);
    assert_memory_equal(json_object_get_string(text), wanted, sizeof wanted);
    assert_int_equal(json_object_get_string_len(member(object, "e")), 0);
    json_object_put(object);
}

static void objects_and_lists_keep_their_shape(void **state) {
    (void)state;
    static const char text[] =
        "{\"a\":[1,[],{},{\"b\":[true,false,null,\"x\"]}],\"c\":{\"a\":{\"a\":0}}}";
    json_object *object = parse(text);
    assert_string_equal(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN), text);
    json_object_put(object);
}

static void nesting_of_64_is_read_and_of_65_refused(void **state) {
    (void)state;
    char text[200];
    for (int depth = 64; depth <= 65; depth++) {
        json_object *object;
        posenc_error error;
        size_t at = 0;
        at += (size_t)sprintf(text, "{\"a\":");
        for (int i = 1; i < depth; i++)
            text[at++] = '[';
        for (int i = 1; i < depth; i++)
            text[at++] = ']';
        text[at++] = '}';
        refusal wanted = {POSENC_UNSUPPORTED, "JSON", "64 deep", NULL, NULL, 5 + 63};
        posenc_status status = penc_json_parse(text, at, &object, &error);
        if (depth == 64) {
            assert_done(status, &error);
            json_object_put(object);
        } else {
            assert_refusal(status, &error, &wanted, "65 deep");
            assert_null(object);
        }
    }
}

/* ---- What is refused: ^ marks the place and is left out ---- */

static const struct {
    const char *text, *must;
    posenc_status status;
} bad_texts[] = {
    {"^", "a value here", POSENC_FORMAT},
    {"  ^", "a value here", POSENC_FORMAT},
    {"^[]", "be an object", POSENC_FORMAT},
    {"^3", "be an object", POSENC_FORMAT},
    {"\xef\xbb\xbf{}", "a value here", POSENC_FORMAT}, /* a byte order mark; no ^: it is at 0 */
    {"{^", "a key in double quotes", POSENC_FORMAT},
    {"{^'a': 1}", "a key in double quotes", POSENC_FORMAT},
    {"{^a: 1}", "a key in double quotes", POSENC_FORMAT},
    {"{\"a\" ^1}", "a colon", POSENC_FORMAT},
    {"{\"a\"^}", "a colon", POSENC_FORMAT},
    {"{\"a\": ^}", "a value here", POSENC_FORMAT},
    {"{\"a\": 1,^}", "a key in double quotes", POSENC_FORMAT},
    {"{\"a\": 1 ^\"b\": 2}", "a comma or a closing bracket", POSENC_FORMAT},
    {"{\"a\": [1,^]}", "a value here", POSENC_FORMAT},
    {"{\"a\": [1^}}", "a comma or a closing bracket", POSENC_FORMAT},
    {"{\"a\": [^}", "a value here", POSENC_FORMAT},
    {"{\"a\": 1^]", "a comma or a closing bracket", POSENC_FORMAT},
    {"{} ^x", "end after its value", POSENC_FORMAT},
    {"{}^{}", "end after its value", POSENC_FORMAT},
    {"{\"a\": ^// comment\n1}", "a value here", POSENC_FORMAT},
    {"{\"a\": ^tru}", "a value here", POSENC_FORMAT},
    {"{\"a\": ^True}", "a value here", POSENC_FORMAT},
    {"{\"a\": ^None}", "a value here", POSENC_FORMAT},
    {"{\"a\": ^+1}", "a value here", POSENC_FORMAT},
    {"{\"a\": ^.5}", "a value here", POSENC_FORMAT},
    {"{\"a\": 1.^}", "a digit", POSENC_FORMAT},
    {"{\"a\": 1e^}", "a digit", POSENC_FORMAT},
    {"{\"a\": -^}", "a digit", POSENC_FORMAT},
    {"{\"a\": ^01}", "leading zeros", POSENC_FORMAT},
    {"{\"a\": ^-00}", "leading zeros", POSENC_FORMAT},
    {"{\"a\": ^1e999}", "range of float64", POSENC_FORMAT},
    {"{\"a\": [0, ^-1e400]}", "range of float64", POSENC_FORMAT},
    {"{\"a\": \"b^", "no end", POSENC_FORMAT},
    {"{\"a\": \"b^\n\"}", "control characters", POSENC_FORMAT},
    {"{\"a^\t\": 1}", "control characters", POSENC_FORMAT},
    {"{\"a\": \"\\^x41\"}", "after \\", POSENC_FORMAT},
    {"{\"a\": \"\\u12^g4\"}", "hexadecimal", POSENC_FORMAT},
    {"{\"a\": \"\\ud800^\"}", "surrogates", POSENC_FORMAT},
    {"{\"a\": \"\\udc00^\"}", "surrogates", POSENC_FORMAT},
    {"{\"a\": \"\\ud800\\u0041^\"}", "surrogates", POSENC_FORMAT},
    {"{\"a\": \"\\ud800\\^n\"}", "surrogates", POSENC_FORMAT},
    {"{\"a\\u0000^\": 1}", "NUL in a key", POSENC_FORMAT},
    {"{\"a\": \"^\xff\"}", "be UTF-8", POSENC_FORMAT},
    {"{\"a\": \"^\xc3(\"}", "be UTF-8", POSENC_FORMAT},
    {"{\"a\": \"^\xc0\x80\"}", "be UTF-8", POSENC_FORMAT},         /* overlong */
    {"{\"a\": \"^\xed\xa0\x80\"}", "be UTF-8", POSENC_FORMAT},     /* a surrogate */
    {"{\"a\": \"^\xf4\x90\x80\x80\"}", "be UTF-8", POSENC_FORMAT}, /* beyond U+10FFFF */
    {"{\"a\": \"^\xf0\x9f\x98\"}", "be UTF-8", POSENC_FORMAT},
    {"{\"a\": 1, ^\"a\": 1}", "once", POSENC_FORMAT},
    {"{\"a\": {\"b\": {}, ^\"b\": 1}}", "once", POSENC_FORMAT},
    {"{\"a\": 1, ^\"\\u0061\": 1}", "once", POSENC_FORMAT},
};

/* The text without its mark; *place is where that was, -1 if there is none. */
static size_t unmarked(const char *marked, char *text, int64_t *place) {
    const char *mark = strchr(marked, '^');
    size_t length = 0;
    *place = mark ? mark - marked : 0;
    for (; *marked; marked++) {
        if (*marked != '^')
            text[length++] = *marked;
    }
    text[length] = '\0';
    return length;
}

static void faults_are_told_with_their_byte(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(bad_texts); i++) {
        char text[100];
        int64_t place;
        size_t length = unmarked(bad_texts[i].text, text, &place);
        /* Flush at a page that faults: nothing behind the text is read. */
        guarded exact = guarded_new(length, GUARD_AFTER);
        json_object *object = (json_object *)&place;
        posenc_error error;
        memcpy(exact.data, text, length);
        refusal wanted = {bad_texts[i].status, NULL, bad_texts[i].must, NULL, NULL, place};
        assert_refusal(penc_json_parse(exact.data, length, &object, &error), &error, &wanted, text);
        assert_null(object);
        guarded_free(&exact);
        write_file("bad.json", text, length);
        wanted.file = "bad.json";
        assert_refusal(penc_json_read_file("bad.json", &object, &error), &error, &wanted, text);
        assert_null(object);
    }
}

static void a_key_that_stands_twice_is_named(void **state) {
    (void)state;
    json_object *object;
    posenc_error error;
    static const char text[] = "{\"rope_theta\": 1, \"rope_theta\": 2}";
    refusal wanted = {POSENC_FORMAT, "key", "once", "rope_theta", NULL, 18};
    assert_refusal(penc_json_parse(text, strlen(text), &object, &error), &error, &wanted, text);
}

/* Length, and what the objects would take: a small text can ask for a lot. */
static void texts_that_are_too_large_are_refused(void **state) {
    (void)state;
    size_t length = PENC_JSON_MAX_BYTES + 1;
    char *text = malloc(length);
    json_object *object;
    posenc_error error;
    memset(text, ' ', length);
    text[0] = '{', text[length - 1] = '}';
    refusal too_long = {POSENC_OUT_OF_RANGE, "JSON length", "4 MiB", NULL, NULL, -1};
    assert_refusal(penc_json_parse(text, length, &object, &error), &error, &too_long, "length");
    write_file("long.json", text, length);
    too_long.file = "long.json";
    assert_refusal(penc_json_read_file("long.json", &object, &error), &error, &too_long, "file");
    text[length - 2] = '}';
    assert_done(penc_json_parse(text, length - 1, &object, &error), &error);
    json_object_put(object);
    memcpy(text, "{\"a\":[", 6);
    for (size_t i = 6; i + 3 < length - 2; i += 3)
        memcpy(text + i, "{},", 3);
    refusal too_rich = {POSENC_UNSUPPORTED, "JSON", "fewer values", NULL, NULL, -1};
    assert_refusal(penc_json_parse(text, length - 1, &object, &error), &error, &too_rich, "values");
    free(text);
}

static void files_that_cannot_be_read_tell_why(void **state) {
    (void)state;
    json_object *object;
    posenc_error error;
    refusal missing = {POSENC_IO, "path", "opened", NULL, "config.json", -1};
    assert_refusal(penc_json_read_file("no/config.json", &object, &error), &error, &missing, "");
    write_text("config.json", "{\"model_type\": \"llama\"}");
    assert_done(penc_json_read_file("config.json", &object, &error), &error);
    assert_string_equal(json_object_get_string(member(object, "model_type")), "llama");
    json_object_put(object);
}

/* ---- The scanner ---- */

/* One line a token, with its text and its place from `origin` on; a fault ends them. */
static char *list_tokens(penc_json *json, uint64_t origin) {
    image list = {NULL, 0, 0, 0};
    posenc_status status;
    penc_json_token token;
    json->place = origin;
    do {
        char line[200];
        status = penc_json_next(json, &token);
        int length = snprintf(line, sizeof line, "%d %d %llu %s %zu\n", (int)status,
                              status ? -1 : (int)token, (unsigned long long)(json->place - origin),
                              !status && json->length ? json->text : "", json->length);
        add_bytes(&list, line, (size_t)length);
    } while (!status && token != PENC_JSON_END);
    add_bytes(&list, "", 1);
    return (char *)list.bytes;
}

/* Through windows of any size a file gives the tokens that the text gives in memory. */
static void windows_of_any_size_give_the_same_tokens(void **state) {
    (void)state;
    static const char *const good[] = {
        "{\"model.layers.0.self_attn.q_proj.weight\":{\"dtype\":\"F32\",\"shape\":[64,64],"
        "\"data_offsets\":[0,16384]},\"__metadata__\":{\"format\":\"pt\\u00e9\xf0\x9f\x98\x80\"}}",
        "[0.5e+3, -Infinity, NaN, true, false, null, \"\", {}, [[]], -0, 123456789012345678901234]",
    };
    for (size_t t = 0; t < COUNT(good) + COUNT(bad_texts); t++) {
        char text[300], kept[64];
        int64_t place;
        size_t length =
            unmarked(t < COUNT(good) ? good[t] : bad_texts[t - COUNT(good)].text, text, &place);
        image file = {NULL, 0, 0, 0};
        penc_json json = penc_json_of_text(text, length, kept, sizeof kept, NULL);
        char *wanted = list_tokens(&json, 0);
        add_zeros(&file, 5); /* the text may begin and end anywhere in the file */
        add_bytes(&file, text, length);
        add_bytes(&file, "]}", 2);
        write_file("text", file.bytes, file.size);
        image_free(&file);
        for (size_t window = 4; window < 40; window++) {
            unsigned char bytes[40];
            penc_input input;
            assert_int_equal(penc_input_open("text", &input, NULL), POSENC_OK);
            json = penc_json_of_file(&input, 5, 5 + length, bytes, window, kept, sizeof kept, NULL);
            char *got = list_tokens(&json, 5);
            assert_string_equal(got, wanted);
            free(got);
            penc_input_close(&input);
        }
        free(wanted);
    }
}

static void values_are_skipped_whole(void **state) {
    (void)state;
    static const char text[] = "{\"a\": [1, {\"b\": [[]]}, \"]\"], \"c\": 7}";
    char kept[64];
    penc_json_token token;
    penc_json json = penc_json_of_text(text, strlen(text), kept, sizeof kept, NULL);
    assert_int_equal(penc_json_next(&json, &token), POSENC_OK);
    assert_int_equal(penc_json_next(&json, &token), POSENC_OK);
    assert_string_equal(kept, "a");
    assert_int_equal(penc_json_next(&json, &token), POSENC_OK);
    assert_int_equal(token, PENC_JSON_ARRAY);
    assert_int_equal(penc_json_skip(&json, token), POSENC_OK);
    assert_int_equal(penc_json_next(&json, &token), POSENC_OK);
    assert_int_equal(token, PENC_JSON_KEY);
    assert_string_equal(kept, "c");
}

static void long_texts_are_cut_and_measured(void **state) {
    (void)state;
    char text[200], kept[32];
    penc_json_token token;
    int length = sprintf(text, "\"%0100d\"", 7);
    penc_json json = penc_json_of_text(text, (size_t)length, kept, sizeof kept, NULL);
    assert_int_equal(penc_json_next(&json, &token), POSENC_OK);
    assert_int_equal(json.length, 100);
    assert_int_equal(strlen(kept), 31);
    length = sprintf(text, "1%0100d", 7);
    json = penc_json_of_text(text, (size_t)length, kept, sizeof kept, NULL);
    assert_int_equal(penc_json_next(&json, &token), POSENC_UNSUPPORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(integers_of_64_bits_are_exact),
        TEST(reals_are_read_as_python_writes_them),
        TEST(the_locale_does_not_matter),
        TEST(texts_are_decoded),
        TEST(objects_and_lists_keep_their_shape),
        TEST(nesting_of_64_is_read_and_of_65_refused),
        TEST(faults_are_told_with_their_byte),
        TEST(a_key_that_stands_twice_is_named),
        TEST(texts_that_are_too_large_are_refused),
        TEST(files_that_cannot_be_read_tell_why),
        TEST(windows_of_any_size_give_the_same_tokens),
        TEST(values_are_skipped_whole),
        TEST(long_texts_are_cut_and_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
