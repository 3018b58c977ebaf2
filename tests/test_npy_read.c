/* .npy files: headers by hand, whole and malformed, and what reading refuses. SPDX-License-Identifier: MIT */
#include "npy_cases.h"

/* --- Headers that are read ---------------------------------------------------------------------- */

static void assert_header_read(unsigned char major, const char *text,
                               const posenc_npy_info *wanted) {
    image f = image_of(major, text);
    size_t header = f.size, bytes = (size_t)wanted->count * posenc_dtype_bytes(wanted->dtype);
    assert_true(bytes <= sizeof f.bytes - f.size);
    fill_pattern(f.bytes + f.size, wanted->dtype, 0, (size_t)wanted->count, wanted->big_endian);
    f.size += bytes;
    write_file("a.npy", f.bytes, f.size);
    posenc_npy_info info;
    posenc_error error;
    posenc_npy_reader *reader;
    posenc_status status = posenc_npy_open("a.npy", &reader, &info, &error);
    if (status)
        print_error("version %d: %s\n", major, text);
    assert_done(status, &error);
    posenc_npy_close(reader);
    assert_int_equal(info.data_offset, header);
    assert_array("a.npy", wanted);
}

#define HEAD(descr) "{'descr': '" descr "', 'fortran_order': False, 'shape': (2, 3), }"

static void every_dtype_is_read_in_either_byte_order(void **state) {
    (void)state;
    static const struct {
        const char *text;
        posenc_dtype dtype;
        int big; /* -1: as the machine */
    } known[] = {
        {HEAD("<f4"), POSENC_F32, 0},  {HEAD(">f4"), POSENC_F32, 1},
        {HEAD("=f4"), POSENC_F32, -1}, {HEAD("f4"), POSENC_F32, -1},
        {HEAD("<f8"), POSENC_F64, 0},  {HEAD(">f8"), POSENC_F64, 1},
        {HEAD("=f8"), POSENC_F64, -1}, {HEAD("<f2"), POSENC_F16, 0},
        {HEAD(">f2"), POSENC_F16, 1},  {HEAD("=f2"), POSENC_F16, -1},
        {HEAD("<V2"), POSENC_BF16, 0}, {HEAD("|V2"), POSENC_BF16, 0},
        {HEAD(">V2"), POSENC_BF16, 1}, {HEAD("=V2"), POSENC_BF16, -1},
    };
    static const size_t shape[] = {2, 3};
    for (size_t i = 0; i < COUNT(known); i++) {
        posenc_npy_info wanted = info_of(known[i].dtype, 0, 2, shape);
        wanted.big_endian = known[i].big < 0 ? machine_is_big() : known[i].big;
        assert_header_read(1, known[i].text, &wanted);
    }
}

/* As NumPy of all times writes them, under old and new Pythons, and as its readers take them. */
static void headers_in_every_spelling_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int fortran;
        size_t rank, shape[4];
    } known[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n", 0, 2, {2, 3}},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", 1, 2, {2, 3}},
        {"{'shape': (2, 3), 'fortran_order': True, 'descr': '<f4'}", 1, 2, {2, 3}},
        {"{'fortran_order': False, 'shape': (4, 1, 2), 'descr': '<f4', }", 0, 3, {4, 1, 2}},
        {"{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (2, 3)}", 0, 2, {2, 3}},
        {"{'descr': \"<f4\", \"fortran_order\": False, 'shape': (2, 3)}", 0, 2, {2, 3}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5L,), }", 0, 1, {5}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }", 0, 2, {2, 3}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 0, 0, {0}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ( ), }", 0, 0, {0}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", 0, 1, {5}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }", 0, 2, {2, 3}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }", 0, 1, {0}},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0, 2), }", 1, 3, {3, 0, 2}},
        {"{'descr':'<f4','fortran_order':False,'shape':(2,3)}", 0, 2, {2, 3}},
        {" { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2 , 3 ) , } ", 0, 2, {2, 3}},
        {"{'descr': '<f4',\n 'fortran_order': False,\r\n\t'shape': (2,\f3)}\n\n", 0, 2, {2, 3}},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        posenc_npy_info wanted =
            info_of(POSENC_F32, known[i].fortran, known[i].rank, known[i].shape);
        for (unsigned char major = 1; major <= 3; major++)
            assert_header_read(major, known[i].text, &wanted);
    }
}

/* Elements by hand: 1, -2 and the smallest denormal, high byte first. */
static void big_endian_numbers_are_turned(void **state) {
    (void)state;
    image f = image_of(1, "{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }");
    add_bytes(&f, "\x3f\xf0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 24);
    write_file("a.npy", f.bytes, f.size);
    double numbers[3];
    posenc_npy_reader *reader = open_array("a.npy", NULL);
    assert_int_equal(posenc_npy_read(reader, 0, 3, numbers, NULL), POSENC_OK);
    assert_true(numbers[0] == 1.0 && numbers[1] == -2.0 && numbers[2] == 0x1p-1074);
    posenc_npy_close(reader);
}

/* Version 2 is there for headers of more than 64 KiB; one of just below 1 MiB is the longest. */
static void a_header_may_be_as_long_as_1_mib(void **state) {
    (void)state;
    static const char text[] = "{'descr': '<f2', 'fortran_order': False, 'shape': (), }";
    size_t size = (size_t)1 << 20;
    image prefix = {{0}, 0, 0};
    add_prefix(&prefix, 2, 0, size - 12);
    unsigned char *bytes = malloc(size + 2);
    assert_non_null(bytes);
    memset(bytes, ' ', size);
    memcpy(bytes, prefix.bytes, prefix.size);
    memcpy(bytes + prefix.size, text, strlen(text));
    fill_pattern(bytes + size, POSENC_F16, 0, 1, 0);
    write_file("a.npy", bytes, size + 2);
    free(bytes);
    posenc_npy_info wanted = info_of(POSENC_F16, 0, 0, NULL);
    assert_array("a.npy", &wanted);
}

static void a_shape_may_have_32_sizes(void **state) {
    (void)state;
    posenc_npy_info wanted = {.dtype = POSENC_F32, .rank = POSENC_NPY_MAX_RANK, .count = 6};
    char text[300] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    for (size_t i = 0; i < POSENC_NPY_MAX_RANK; i++) {
        wanted.shape[i] = i == 7 ? 2 : i == 31 ? 3 : 1;
        strcat(text, i == 7 ? "2, " : i == 31 ? "3, " : "1, ");
    }
    strcat(text, ")}");
    assert_header_read(1, text, &wanted);
}

static void bytes_after_the_array_are_not_read(void **state) {
    (void)state;
    image f = image_of(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }");
    fill_pattern(f.bytes + f.size, POSENC_F32, 0, 2, 0);
    f.size += 8;
    add_zeros(&f, 5);
    write_file("a.npy", f.bytes, f.size);
    posenc_npy_info wanted = vector_of(POSENC_F32, 2);
    assert_array("a.npy", &wanted);
}

/* --- Files that are refused --------------------------------------------------------------------- */

/* `what` says in a failure which file it was. */
static void assert_open_refused(const char *path, refusal wanted, const char *what) {
    posenc_npy_info info;
    memset(&info, GUARD_FILL, sizeof info);
    posenc_npy_reader *reader = (posenc_npy_reader *)&info;
    posenc_error error;
    posenc_status status = posenc_npy_open(path, &reader, &info, &error);
    if (status == POSENC_OK)
        fail_msg("%s: was read", what);
    if (status != wanted.status || !says(&error, &wanted))
        fail_msg("%s: got %s \"%s must %s\" at %lld; wanted %s \"%s must %s\" at %lld", what,
                 posenc_status_name(status), error.argument, error.must, (long long)error.place,
                 posenc_status_name(wanted.status), wanted.argument, wanted.must,
                 (long long)wanted.place);
    assert_null(reader);
    assert_true(guard_is_filled(&info, sizeof info));
    assert_int_equal(posenc_npy_open(path, &reader, NULL, NULL), wanted.status);
}

/* A header with a fault where the ^ is, in the short and the long form of its length. */
static void assert_header_refused(const char *text, posenc_status status, const char *argument,
                                  const char *must) {
    for (unsigned char major = 1; major <= 3; major = (unsigned char)(major + 2)) {
        image f = image_of(major, text);
        refusal wanted = {status, argument, must, (int64_t)f.place};
        add_zeros(&f, 100); /* so that elements are not what is missing */
        write_file("a.npy", f.bytes, f.size);
        assert_open_refused("a.npy", wanted, text);
    }
}

static void other_dtypes_are_not_supported(void **state) {
    (void)state;
    static const char supported[] =
        "be one of f2, f4, f8 or V2 (bfloat16), after <, >, =, | or nothing: integers, booleans, "
        "complex numbers, text and structures are not supported";
    static const char *const values[] = {
        "'<i4'",     "'|b1'",     "'<c8'",          "'|S4'",         "'<U4'", "'|O'",
        "'<f16'",    "'<f1'",     "'|V3'",          "'<V4'",         "'V'",   "''",
        "'<'",       "'f4 '",     "'<F4'",          "'<<f4'",        "'!f4'", "'<f44'",
        "'<M8[ns]'", "'float32'", "[('a', '<f4')]", "('<f4', (2,))",
    };
    for (size_t i = 0; i < COUNT(values); i++) {
        char text[200];
        snprintf(text, sizeof text, "{'descr': ^%s, 'fortran_order': False, 'shape': (2,)}",
                 values[i]);
        assert_header_refused(text, POSENC_UNSUPPORTED, "descr", supported);
    }
}

static void faults_in_the_dictionary_are_told_with_their_place(void **state) {
    (void)state;
    static const char line[] = "be a quoted string on one line, without escapes";
    static const char comma[] = "have a comma or a brace after a value";
    static const char boolean[] = "be True or False", missing[] = "stand in the header";
    static const char keys[] = "be one of descr, fortran_order, shape";
    static const char quoted[] = "be a quoted string", once[] = "stand in the header once";
    static const struct {
        const char *text, *argument, *must;
    } bad[] = {
        {"^", "header", "be a dictionary in braces"},
        {"^['descr', '<f4']", "header", "be a dictionary in braces"},
        {"   \n^'descr'", "header", "be a dictionary in braces"},
        {"{^descr: '<f4'}", "key", quoted},
        {"{^u'descr': '<f4'}", "key", quoted},
        {"{^, }", "key", quoted},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), ^", "key", quoted},
        {"{'desc^\nr': '<f4'}", "key", line},
        {"{'descr^", "key", line},
        {"{^'extra': 1, 'descr': '<f4'}", "key", keys},
        {"{^'descr ': '<f4'}", "key", keys},
        {"{^'': '<f4'}", "key", keys},
        {"{'descr': '<f4', ^'descr': '<f4'}", "descr", once},
        {"{'fortran_order': True, ^'fortran_order': True}", "fortran_order", once},
        {"{'shape': (2,), ^\"shape\": (2,)}", "shape", once},
        {"{'shape'^, 'descr': '<f4'}", "shape", "be followed by a colon"},
        {"{'descr' ^'<f4'}", "descr", "be followed by a colon"},
        {"{'descr'^", "descr", "be followed by a colon"},
        {"{'descr': ^4}", "descr", quoted},
        {"{'descr': ^}", "descr", quoted},
        {"{'descr': '^\\x3cf4'}", "descr", line},
        {"{'descr': '<f4^", "descr", line},
        {"{'descr': '<f4' ^'fortran_order': False}", "header", comma},
        {"{'descr': '<f4'^; 'fortran_order': False}", "header", comma},
        {"{'descr': '<f4' ^", "header", comma},
        {"{'fortran_order': ^0}", "fortran_order", boolean},
        {"{'fortran_order': ^false}", "fortran_order", boolean},
        {"{'fortran_order': ^'True'}", "fortran_order", boolean},
        {"{'fortran_order': ^Tru", "fortran_order", boolean},
        {"{'fortran_order': ^Fals", "fortran_order", boolean},
        {"{'fortran_order': True^r}", "header", comma},
        {"{'fortran_order': True^", "header", comma},
        {"{'fortran_order': False^", "header", comma},
        {"{^}", "descr", missing},
        {"{'fortran_order': False, 'shape': (2,), ^}", "descr", missing},
        {"{'descr': '<f4', 'shape': (2,)^}", "fortran_order", missing},
        {"{'descr': '<f4', 'fortran_order': False ^}", "shape", missing},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}  ^{", "header",
         "end after the dictionary"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}^\x01", "header",
         "end after the dictionary"},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_header_refused(bad[i].text, POSENC_FORMAT, bad[i].argument, bad[i].must);
}

static void shapes_that_are_no_tuple_of_sizes_are_refused(void **state) {
    (void)state;
    static const char comma[] = "have a comma between two sizes";
    static const char natural[] = "be a tuple of integers that are not negative";
    static const struct {
        const char *must, *shapes[10];
    } bad[] = {
        {"be a tuple of integers", {"^[2, 3]", "^2", "^"}},
        {"have a comma after a single size", {"(2^)", "(2L ^)"}},
        {"have no leading zeros", {"(0^5, 2)", "(2, 0^0)"}},
        {natural, {"(^-1,)", "(2, ^-3)", "(^+2,)", "(^,)", "(2,^, 3)", "(2, ^x)", "(^'2',)"}},
        {natural, {"(^True,)", "(2, ^(3,))", "(^.5, 2)"}},
        {comma, {"(2^.0,)", "(2 ^3)", "(2^x, 3)", "(0^x2,)", "(2L^L,)", "(2^l,)", "(2 ^L,)"}},
        {comma, {"(2^; 3)", "(2^_0,)", "(2^e3,)", "(2^-1, 3)"}},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        for (const char *const *shape = bad[i].shapes; *shape; shape++) {
            char text[200];
            snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': %s}",
                     *shape);
            assert_header_refused(text, POSENC_FORMAT, "shape", bad[i].must);
        }
    }
    assert_header_refused("{'shape': (2^", POSENC_FORMAT, "shape", comma);
    assert_header_refused("{'shape': (2, ^", POSENC_FORMAT, "shape", natural);
    assert_header_refused("{'shape': (^", POSENC_FORMAT, "shape", natural);
}

/* 2^63 bytes and more fit no file; 2^64 elements no size_t. */
static void shapes_too_large_for_a_file_are_refused(void **state) {
    (void)state;
    static const char array[] = "give an array of less than 2^63 bytes", number[] = "fit size_t";
    static const struct {
        const char *descr, *shape, *must;
    } bad[] = {
        {"<f4", " (^18446744073709551616,)", number},
        {"<f4", " (0, ^99999999999999999999999999)", number},
        {"<f4", " ^(18446744073709551615,)", array},
        {"<f4", " ^(4294967296, 4294967296)", array},
        {"<f4", " ^(3037000500, 3037000500)", array},
        {"<f2", " ^(4611686018427387904,)", array},
        {"<f8", " ^(1152921504606846976,)", array},
        {"<f8", " ^(2, 2, 2, 144115188075855872)", array},
        {"<f8", " ^(1152921504606846976, 0)", array}, /* as in NumPy */
        {"<f8", " ^(0, 1152921504606846976)", array},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        char text[200];
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape':%s}",
                 bad[i].descr, bad[i].shape);
        assert_header_refused(text, POSENC_OVERFLOW, "shape", bad[i].must);
    }
}

static void a_shape_of_33_sizes_is_refused(void **state) {
    (void)state;
    char text[300] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    for (size_t i = 0; i < POSENC_NPY_MAX_RANK; i++)
        strcat(text, "1,");
    strcat(text, "1^)}");
    assert_header_refused(text, POSENC_UNSUPPORTED, "shape",
                          "have no more sizes than POSENC_NPY_MAX_RANK");
}

static void other_versions_are_refused(void **state) {
    (void)state;
    static const unsigned char versions[][2] = {{0, 0}, {1, 1}, {2, 1}, {3, 255}, {4, 0}, {255, 0}};
    for (size_t i = 0; i < COUNT(versions); i++) {
        image f = {{0}, 0, 0};
        add_prefix(&f, versions[i][0], versions[i][1], 4);
        add_zeros(&f, 100);
        write_file("a.npy", f.bytes, f.size);
        refusal wanted = {POSENC_UNSUPPORTED, "version", "be 1.0, 2.0 or 3.0", 6};
        assert_open_refused("a.npy", wanted, "version");
    }
}

static void headers_above_1_mib_are_refused(void **state) {
    (void)state;
    static const size_t lengths[] = {((size_t)1 << 20) - 11, 0xffffffff};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        image f = {{0}, 0, 0};
        add_prefix(&f, 2, 0, lengths[i]);
        write_file("a.npy", f.bytes, f.size);
        refusal wanted = {POSENC_UNSUPPORTED, "header length", "be at most 1 MiB", 8};
        assert_open_refused("a.npy", wanted, "long header");
    }
}

static void files_of_other_formats_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        int64_t place;
    } bad[] = {
        {"PK\x03\x04 an .npz file", 0},
        {"NUMPY\x01 and more bytes", 0},
        {"\x93numpy\x01 and more", 1},
        {"\x93NUMPZ\x01 and more", 5},
        {"\x93NUM", 4},
        {"", 0},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        write_file("a.npy", bad[i].bytes, strlen(bad[i].bytes));
        refusal wanted = {POSENC_FORMAT, "file", "begin with the magic of .npy", bad[i].place};
        assert_open_refused("a.npy", wanted, bad[i].bytes);
    }
}

/* What is missing is told by what ends too early: magic, prefix, header or elements; the place is
 * always the file's end. */
static void every_prefix_of_a_file_is_refused_at_its_end(void **state) {
    (void)state;
    for (unsigned char major = 1; major <= 2; major++) {
        image f = image_of(major, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }\n");
        size_t prefix = major == 1 ? 10 : 12;
        add_zeros(&f, 6 * sizeof(double));
        for (size_t size = 0; size < f.size; size++) {
            refusal wanted = {POSENC_FORMAT, "file size", "be at least what the header says",
                              (int64_t)size};
            if (size < prefix) {
                wanted.argument = "file";
                wanted.must = size < 6 ? "begin with the magic of .npy" : "hold the whole header";
            }
            write_file("a.npy", f.bytes, size);
            assert_open_refused("a.npy", wanted, "prefix");
        }
        write_file("a.npy", f.bytes, f.size);
        posenc_npy_close(open_array("a.npy", NULL));
    }
}

/* A file cut below its array says how large it is and how large it should be. */
static void a_short_file_tells_both_sizes(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F32, 1000), got;
    make_array("a.npy", &info);
    posenc_npy_close(open_array("a.npy", &got));
    assert_int_equal(truncate("a.npy", 2000), 0);
    posenc_npy_reader *reader;
    posenc_error error;
    assert_int_equal(posenc_npy_open("a.npy", &reader, NULL, &error), POSENC_FORMAT);
    assert_int_equal(error.value.kind, POSENC_NUMBER_SIZE);
    assert_int_equal(error.value.as.size, 2000);
    assert_int_equal(error.limit.kind, POSENC_NUMBER_SIZE);
    assert_int_equal(error.limit.as.size, got.data_offset + 4000);
}

static void what_is_no_regular_file_is_refused_without_waiting(void **state) {
    (void)state;
    static const char regular[] = "name a regular file, not a folder, pipe or device";
    refusal wanted = {POSENC_UNSUPPORTED, "path", regular, -1};
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_open_refused("pipe", wanted, "pipe");
    assert_open_refused(".", wanted, "folder");
    assert_open_refused("/dev/null", wanted, "device");
}

static void files_that_cannot_be_opened_tell_why(void **state) {
    (void)state;
    static char long_path[PATH_MAX + 10];
    memset(long_path, 'x', sizeof long_path - 1);
    write_file("file", "", 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    const struct {
        const char *path;
        int os_error;
    } bad[] = {{"missing.npy", ENOENT}, {"missing/a.npy", ENOENT},
               {"file/a.npy", ENOTDIR}, {"", ENOENT},
               {"loop", ELOOP},         {long_path, ENAMETOOLONG}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        posenc_npy_reader *reader;
        posenc_error error;
        assert_refused(posenc_npy_open(bad[i].path, &reader, NULL, &error), &error, POSENC_IO,
                       "path");
        assert_int_equal(error.os_error, bad[i].os_error);
    }
}

/* --- Mutations ---------------------------------------------------------------------------------- */

/* What headers are made of: mutations with these come further than random bytes. */
static unsigned char header_byte(random_stream *rng) {
    static const char known[] =
        "{}()[]'\",: \n\t0123456789L-.TrueFalsedescrfortran_ordershape<>=|fV\\";
    size_t at = random_below(rng, sizeof known + 40);
    return at < sizeof known ? (unsigned char)known[at] : (unsigned char)random_bits(rng);
}

/* Changes, inserts, removes or doubles something at a random byte, or cuts the file there. */
static void mutate(image *f, random_stream *rng) {
    size_t at = random_below(rng, f->size), count = 1 + random_below(rng, 8);
    if (count > f->size - at)
        count = f->size - at;
    unsigned char *place = f->bytes + at;
    switch (random_below(rng, 12)) {
    case 0:
        f->size = at;
        break;
    case 1: /* remove */
        memmove(place, place + count, f->size - at - count);
        f->size -= count;
        break;
    case 2: /* double */
        memmove(place + count, place, f->size - at);
        f->size += count;
        break;
    case 3:
        memmove(place + 1, place, f->size - at);
        f->size++;
        *place = header_byte(rng);
        break;
    case 4:
        *place ^= (unsigned char)(1u << random_below(rng, 8));
        break;
    default:
        *place = header_byte(rng);
    }
}

/* An array that was accepted lies inside the file, and all of it can be read. */
static void assert_consistent(const posenc_npy_reader *reader, const posenc_npy_info *info,
                              size_t file_size) {
    uint64_t count = 1;
    size_t bytes = posenc_dtype_bytes(info->dtype);
    assert_true(bytes && info->rank <= POSENC_NPY_MAX_RANK);
    for (size_t i = 0; i < info->rank; i++)
        count *= info->shape[i];
    assert_int_equal(info->count, count);
    assert_true(info->data_offset <= file_size);
    assert_true(count <= (file_size - info->data_offset) / bytes);
    guarded all = guarded_new((size_t)count * bytes, GUARD_AFTER);
    assert_int_equal(posenc_npy_read(reader, 0, (size_t)count, all.data, NULL), POSENC_OK);
    guarded_free(&all);
}

static void random_mutations_are_read_or_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }          \n",
        "{'descr': '>f8', 'fortran_order': True, 'shape': (12L,), }\n",
        "{\"shape\": (), \"descr\": \"|V2\", \"fortran_order\": False}",
    };
    random_stream rng = random_of(__func__);
    size_t trials = random_trials(20000), accepted = 0;
    for (size_t trial = 0; trial < trials; trial++) {
        image f = image_of((unsigned char)(1 + trial % 3), texts[trial / 3 % COUNT(texts)]);
        add_zeros(&f, 96);
        for (size_t i = 1 + random_below(&rng, 4); i > 0 && f.size; i--)
            mutate(&f, &rng);
        write_file("a.npy", f.bytes, f.size);
        posenc_npy_reader *reader;
        posenc_npy_info info;
        posenc_error error = {0};
        posenc_status status = posenc_npy_open("a.npy", &reader, &info, &error);
        if (status == POSENC_OK) {
            accepted++;
            assert_consistent(reader, &info, f.size);
            posenc_npy_close(reader);
        } else {
            assert_true(status == POSENC_FORMAT || status == POSENC_UNSUPPORTED ||
                        status == POSENC_OVERFLOW);
            assert_true(error.status == status && error.argument && error.must && !reader);
            assert_true(error.place >= 0 && (size_t)error.place <= f.size);
        }
    }
    /* Mutations that all do nothing, or all break the magic, would test little. */
    assert_true(accepted > trials / 50 && accepted < trials / 2);
}

/* --- Failures of the system --------------------------------------------------------------------- */

static void a_file_that_becomes_shorter_while_it_is_read_is_told(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10), got;
    double elements[10];
    make_array("a.npy", &info);
    posenc_npy_reader *reader = open_array("a.npy", &got);
    off_t size = (off_t)got.data_offset + 5 * (off_t)sizeof(double) + 3;
    assert_int_equal(truncate("a.npy", size), 0);
    assert_part(reader, POSENC_F64, 0, 5);
    posenc_error error;
    assert_refused(posenc_npy_read(reader, 0, 10, elements, &error), &error, POSENC_FORMAT,
                   "file size");
    assert_string_equal(error.must, "be at least what the header says");
    assert_string_equal(error.place_name, "byte");
    assert_int_equal(error.place, size);
    assert_int_equal(error.value.as.size, size);
    assert_int_equal(error.limit.as.size, got.data_offset + 10 * sizeof(double));
    posenc_npy_close(reader);
}

static void assert_read_error(posenc_status status, const posenc_error *error, uint64_t place) {
    assert_refused(status, error, POSENC_IO, "file");
    assert_int_equal(error->os_error, EIO);
    assert_string_equal(error->place_name, "byte");
    assert_int_equal(error->place, place);
}

static void an_error_of_the_disk_is_told_with_its_place(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10), got;
    posenc_npy_reader *reader, *none;
    posenc_error error;
    double elements[5];
    make_array("a.npy", &info);
    reader = open_array("a.npy", &got);
    error_of_moves = EIO;
    posenc_status of_open = posenc_npy_open("a.npy", &none, NULL, &error);
    error_of_moves = 0;
    assert_read_error(of_open, &error, 0);
    assert_null(none);
    error_of_moves = EIO;
    posenc_status of_read = posenc_npy_read(reader, 5, 5, elements, &error);
    error_of_moves = 0;
    assert_read_error(of_read, &error, got.data_offset + 5 * sizeof(double));
    assert_part(reader, POSENC_F64, 5, 5);
    posenc_npy_close(reader);
}

/* --- Bad arguments ------------------------------------------------------------------------------ */

static void bad_arguments_of_open_and_read_are_refused(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 10);
    posenc_npy_reader *reader = (posenc_npy_reader *)&info;
    posenc_error error;
    make_array("a.npy", &info);
    assert_refused(posenc_npy_open("a.npy", NULL, NULL, &error), &error, POSENC_NULL_POINTER,
                   "reader");
    assert_refused(posenc_npy_open(NULL, &reader, NULL, &error), &error, POSENC_NULL_POINTER,
                   "path");
    assert_null(reader);
    reader = open_array("a.npy", NULL);
    guarded part = guarded_new(10 * sizeof(double), GUARD_AFTER);
    const struct {
        const posenc_npy_reader *reader;
        uint64_t first;
        size_t count;
        void *to;
        posenc_status status;
        const char *argument;
    } bad[] = {
        {NULL, 0, 1, part.data, POSENC_NULL_POINTER, "reader"},
        {reader, 0, 1, NULL, POSENC_NULL_POINTER, "to"},
        {reader, 0, 11, part.data, POSENC_OUT_OF_RANGE, "count"},
        {reader, 5, 6, part.data, POSENC_OUT_OF_RANGE, "count"},
        {reader, 1, SIZE_MAX, part.data, POSENC_OUT_OF_RANGE, "count"},
        {reader, 11, 0, part.data, POSENC_OUT_OF_RANGE, "first"},
        {reader, UINT64_MAX, 2, part.data, POSENC_OUT_OF_RANGE, "first"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_refused(
            posenc_npy_read(bad[i].reader, bad[i].first, bad[i].count, bad[i].to, &error), &error,
            bad[i].status, bad[i].argument);
        assert_int_equal(
            posenc_npy_read(bad[i].reader, bad[i].first, bad[i].count, bad[i].to, NULL),
            bad[i].status);
        assert_true(guarded_is_untouched(&part));
    }
    assert_int_equal(posenc_npy_read(reader, 10, 0, NULL, NULL), POSENC_OK);
    guarded_free(&part);
    posenc_npy_close(reader);
    posenc_npy_close(NULL);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        TEST(every_dtype_is_read_in_either_byte_order),
        TEST(headers_in_every_spelling_are_read),
        TEST(big_endian_numbers_are_turned),
        TEST(a_header_may_be_as_long_as_1_mib),
        TEST(a_shape_may_have_32_sizes),
        TEST(bytes_after_the_array_are_not_read),
        TEST(other_dtypes_are_not_supported),
        TEST(faults_in_the_dictionary_are_told_with_their_place),
        TEST(shapes_that_are_no_tuple_of_sizes_are_refused),
        TEST(shapes_too_large_for_a_file_are_refused),
        TEST(a_shape_of_33_sizes_is_refused),
        TEST(other_versions_are_refused),
        TEST(headers_above_1_mib_are_refused),
        TEST(files_of_other_formats_are_refused),
        TEST(every_prefix_of_a_file_is_refused_at_its_end),
        TEST(a_short_file_tells_both_sizes),
        TEST(what_is_no_regular_file_is_refused_without_waiting),
        TEST(files_that_cannot_be_opened_tell_why),
        TEST(random_mutations_are_read_or_refused),
        TEST(a_file_that_becomes_shorter_while_it_is_read_is_told),
        TEST(an_error_of_the_disk_is_told_with_its_place),
        TEST(bad_arguments_of_open_and_read_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
