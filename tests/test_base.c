/* 16-bit conversion, names, errors, struct sizes. SPDX-License-Identifier: MIT */

#include "base/wide.h"

#include "base/fail.h"
#include "base/half.h"
#include "base/memory_map.h"
#include "base/power.h"
#include "guard_pages.h"
#include "oracle.h"
#include "posenc/npy.h"
#include "posenc/posenc.h"
#include "random_data.h"

#include <errno.h>
#include <limits.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* --- float16 and bfloat16 ----------------------------------------------------------------------- */

static const posenc_dtype narrow_dtypes[] = {POSENC_F16, POSENC_BF16};
static const posenc_dtype all_dtypes[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};

/* One number through posenc_convert, as patterns. */
static uint64_t converted(uint64_t bits, posenc_dtype from, posenc_dtype to) {
    uint64_t source = 0, target = 0;
    oracle_store(&source, from, 0, bits);
    assert_int_equal(posenc_convert(&source, from, &target, to, 1, NULL), POSENC_OK);
    return oracle_load(&target, to, 0);
}

static void every_16_bit_pattern_widens_exactly_and_comes_back(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(narrow_dtypes); i++) {
        posenc_dtype dtype = narrow_dtypes[i];
        for (uint64_t bits = 0; bits <= UINT16_MAX; bits++) {
            double value = oracle_value(bits, dtype);
            uint64_t wide = converted(bits, dtype, POSENC_F64);
            uint64_t single = converted(bits, dtype, POSENC_F32);
            assert_true(oracle_same(wide, oracle_bits_of_double(value, POSENC_F64), POSENC_F64));
            assert_true(oracle_same(single, oracle_bits_of_double(value, POSENC_F32), POSENC_F32));
            assert_true(oracle_same(converted(wide, POSENC_F64, dtype), bits, dtype));
            assert_true(oracle_same(converted(single, POSENC_F32, dtype), bits, dtype));
        }
    }
}

static void assert_narrowed(double value, posenc_dtype dtype) {
    uint64_t bits = oracle_bits_of_double(value, POSENC_F64);
    uint64_t got = converted(bits, POSENC_F64, dtype), wanted = oracle_bits_of_double(value, dtype);
    uint64_t direct = dtype == POSENC_F16 ? penc_f16_of_double(value) : penc_bf16_of_double(value);
    if (!oracle_same(got, wanted, dtype) || !oracle_same(direct, wanted, dtype))
        fail_msg("%a to %s: got %#llx and %#llx, wanted %#llx", value, posenc_dtype_name(dtype),
                 (unsigned long long)got, (unsigned long long)direct, (unsigned long long)wanted);
}

/* The midpoint of two neighbours and its nearest float64 neighbours: a step through float32 would
 * land on the midpoint and then go wrong. */
static void narrowing_is_right_at_every_midpoint(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(narrow_dtypes); i++) {
        posenc_dtype dtype = narrow_dtypes[i];
        for (uint64_t bits = 0; bits < 0x7f80; bits++) {
            double low = oracle_value(bits, dtype), high = oracle_value(bits + 1, dtype);
            if (!(high < (double)INFINITY))
                break;
            double midpoint = 0.5 * (low + high);
            for (int sign = -1; sign <= 1; sign += 2) {
                assert_narrowed(sign * midpoint, dtype);
                assert_narrowed(sign * nextafter(midpoint, 0.0), dtype);
                assert_narrowed(sign * nextafter(midpoint, 1e300), dtype);
            }
        }
    }
}

static void narrowing_rounds_any_float64_once(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < random_trials(50000); i++) {
        double any = random_double(&rng);
        double near = random_normal(&rng) * random_magnitude(&rng, -9.0, 5.0); /* float16's range */
        double small = random_normal(&rng) * random_magnitude(&rng, -42.0, -36.0);
        for (size_t j = 0; j < COUNT(narrow_dtypes); j++) {
            assert_narrowed(any, narrow_dtypes[j]);
            assert_narrowed(near, narrow_dtypes[j]);
            assert_narrowed(small, narrow_dtypes[j]);
        }
    }
}

/* 1 if `value` is the mean of two neighbouring numbers of a 16-bit dtype. */
static int is_middle(double value, posenc_dtype dtype) {
    double nearest = oracle_value(oracle_bits_of_double(value, dtype), dtype);
    double mirrored = 2.0 * value - nearest; /* of a mean the other neighbour, exact */
    return isfinite(nearest) && mirrored != nearest &&
           oracle_value(oracle_bits_of_double(mirrored, dtype), dtype) == mirrored &&
           oracle_value(oracle_bits_of_double(0.75 * value + 0.25 * mirrored, dtype), dtype) ==
               mirrored;
}

/* Every float32 number with POSENC_LONG, else some of every exponent, around the middles above all. */
static void float32_narrows_as_float64_does(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    int all = getenv("POSENC_LONG") != NULL;
    for (uint64_t i = 0; i < (all ? UINT64_C(1) << 32 : 400000); i++) {
        uint32_t bits = (uint32_t)i;
        if (!all) /* 13 and 16 bits are cut off: mostly those of a middle, give or take one */
            bits = ((uint32_t)random_bits(&rng) & (i & 1 ? 0xffffe000u : 0xffff0000u)) +
                   (i & 1 ? 0xfffu : 0x7fffu) + (uint32_t)(i / 2 % 3);
        float value = penc_float_of_bits(bits);
        uint16_t f16 = penc_f16_of_float(value), bf16 = penc_bf16_of_float(value);
        if (!oracle_same(f16, penc_f16_of_double((double)value), POSENC_F16) ||
            !oracle_same(bf16, penc_bf16_of_double((double)value), POSENC_BF16))
            fail_msg("%a to 16 bits: got %#x and %#x", (double)value, f16, bf16);
        if (isfinite(value) && fabsf(value) < 65504.0f && !all)
            assert_int_equal(penc_is_f16_middle(value), is_middle((double)value, POSENC_F16));
        if (isfinite(value) && fabsf(value) < 0x1p126f && !all)
            assert_int_equal(penc_is_bf16_middle(value), is_middle((double)value, POSENC_BF16));
    }
}

static void assert_narrowed_to_float32(double value) {
    uint64_t got = converted(oracle_bits_of_double(value, POSENC_F64), POSENC_F64, POSENC_F32);
    uint64_t wanted = oracle_bits_of_double(value, POSENC_F32);
    if (got != wanted)
        fail_msg("%a to float32: got %#llx, wanted %#llx", value, (unsigned long long)got,
                 (unsigned long long)wanted);
}

/* Midpoints of float32 neighbours of all magnitudes, from the smallest denormals to where the next
 * number is infinity, and what lies beside them. */
static void narrowing_to_float32_is_right_at_midpoints(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < 20 + random_trials(10000); i++) {
        uint64_t bits = i < 10   ? i
                        : i < 20 ? 0x7f7fffff - (i - 10)
                                 : random_bits(&rng) % 0x7f800000;
        double low = oracle_value(bits, POSENC_F32);
        double step = low < 0x1p-126 ? 0x1p-149 : ldexp(1.0, ilogb(low) - 23);
        double midpoint = (i & 1 ? -1.0 : 1.0) * (low + 0.5 * step);
        assert_narrowed_to_float32(midpoint);
        assert_narrowed_to_float32(nextafter(midpoint, 0.0));
        assert_narrowed_to_float32(nextafter(midpoint, 2.0 * midpoint));
    }
}

static void narrowing_of_known_numbers(void **state) {
    (void)state;
    static const struct {
        double value;
        uint16_t f16, bf16;
    } known[] = {
        {0.0, 0x0000, 0x0000},
        {-0.0, 0x8000, 0x8000},
        {1.0, 0x3c00, 0x3f80},
        {-2.0, 0xc000, 0xc000},
        {65504.0, 0x7bff, 0x4780},
        {65519.99, 0x7bff, 0x4780},
        {65520.0, 0x7c00, 0x4780},
        {0x1p-24, 0x0001, 0x3380},
        {0x1p-25, 0x0000, 0x3300},
        {0x1.0000000000001p-25, 0x0001, 0x3300},
        {0x1.8p-24, 0x0002, 0x33c0},
        {0x1p-14, 0x0400, 0x3880},
        {0x1p-133, 0x0000, 0x0001},
        {0x1p-134, 0x0000, 0x0000},
        {0x1.fep127, 0x7c00, 0x7f7f},
        {0x1.feffffffffff8p127, 0x7c00, 0x7f7f},
        {0x1.ffp127, 0x7c00, 0x7f80},
        {1e300, 0x7c00, 0x7f80},
        {-1e300, 0xfc00, 0xff80},
        {1.0 + 0x1p-11, 0x3c00, 0x3f80},
        {1.0 + 0x1p-11 + 0x1p-50, 0x3c01, 0x3f80},
        {1.0 + 0x3p-11, 0x3c02, 0x3f80},
        {1.0 + 0x1p-8, 0x3c04, 0x3f80},
        {1.0 + 0x1p-8 + 0x1p-50, 0x3c04, 0x3f81},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        assert_int_equal(penc_f16_of_double(known[i].value), known[i].f16);
        assert_int_equal(penc_bf16_of_double(known[i].value), known[i].bf16);
    }
}

static void nan_stays_nan_in_every_conversion(void **state) {
    (void)state;
    static const uint64_t patterns[][4] = {
        [POSENC_F32] = {0x7fffffff, 0x7f800001, 0xffc00000, 0xffbfffff},
        [POSENC_F64] = {0x7fffffffffffffff, 0x7ff0000000000001, 0xfff8000000000000,
                        0xfff0000000010000},
        [POSENC_F16] = {0x7fff, 0x7c01, 0xfe00, 0xfdff},
        [POSENC_BF16] = {0x7fff, 0x7f81, 0xffc0, 0xffbf},
    };
    for (size_t from = 0; from < COUNT(all_dtypes); from++) {
        for (size_t to = 0; to < COUNT(all_dtypes); to++) {
            for (size_t i = 0; i < COUNT(patterns[0]); i++) {
                uint64_t bits = converted(patterns[from][i], (posenc_dtype)from, (posenc_dtype)to);
                assert_true(isnan(oracle_value(bits, (posenc_dtype)to)));
            }
        }
    }
}

static void arrays_convert_between_all_dtypes(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(20 * 16); trial++) {
        posenc_dtype from = all_dtypes[trial % 4], to = all_dtypes[trial / 4 % 4];
        size_t count = random_below(&rng, 40);
        guarded source = guarded_new(count * oracle_bytes(from), GUARD_AFTER);
        guarded target = guarded_new(count * oracle_bytes(to), (guard_side)(trial & 1));
        for (size_t i = 0; i < count; i++)
            oracle_store(source.data, from, (ptrdiff_t)i, random_bits(&rng));
        assert_int_equal(posenc_convert(source.data, from, target.data, to, count, NULL),
                         POSENC_OK);
        for (size_t i = 0; i < count; i++) {
            uint64_t bits = oracle_load(source.data, from, (ptrdiff_t)i);
            uint64_t wanted = oracle_bits_of_double(oracle_value(bits, from), to);
            assert_true(oracle_same(oracle_load(target.data, to, (ptrdiff_t)i), wanted, to));
        }
        if (from == to) /* copied, payloads of NaN too */
            assert_memory_equal(source.data, target.data, target.bytes);
        guarded_free(&source);
        guarded_free(&target);
    }
}

static void equal_dtypes_may_be_converted_in_place(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(all_dtypes); i++) {
        unsigned char bytes[24], before[24];
        random_stream rng = random_of(__func__);
        for (size_t k = 0; k < sizeof bytes; k++)
            before[k] = bytes[k] = (unsigned char)random_bits(&rng);
        assert_int_equal(posenc_convert(bytes, all_dtypes[i], bytes, all_dtypes[i],
                                        sizeof bytes / oracle_bytes(all_dtypes[i]), NULL),
                         POSENC_OK);
        assert_memory_equal(bytes, before, sizeof bytes);
    }
}

static void conversion_of_bad_arguments_is_refused(void **state) {
    (void)state;
    float from = 1.0f;
    guarded to = guarded_new(8, GUARD_AFTER);
    posenc_error error;
    assert_refused(posenc_convert(&from, (posenc_dtype)4, to.data, POSENC_F64, 1, &error), &error,
                   POSENC_OUT_OF_RANGE, "from_dtype");
    assert_refused(posenc_convert(&from, POSENC_F32, to.data, (posenc_dtype)99, 1, &error), &error,
                   POSENC_OUT_OF_RANGE, "to_dtype");
    assert_refused(posenc_convert(NULL, POSENC_F32, to.data, POSENC_F64, 1, &error), &error,
                   POSENC_NULL_POINTER, "from");
    assert_refused(posenc_convert(&from, POSENC_F32, NULL, POSENC_F64, 1, &error), &error,
                   POSENC_NULL_POINTER, "to");
    assert_refused(posenc_convert(&from, POSENC_F32, to.data, POSENC_F64, SIZE_MAX, &error), &error,
                   POSENC_OUT_OF_RANGE, "count");
    assert_int_equal(posenc_convert(NULL, POSENC_F32, NULL, POSENC_F64, 0, NULL), POSENC_OK);
    assert_true(guarded_is_untouched(&to));
    guarded_free(&to);
}

/* --- Names -------------------------------------------------------------------------------------- */

static void dtypes_have_names_and_sizes(void **state) {
    (void)state;
    static const struct {
        posenc_dtype dtype;
        size_t bytes;
        const char *names[4];
    } known[] = {{POSENC_F64, 8, {"f64", "float64", "double", NULL}},
                 {POSENC_F32, 4, {"f32", "float32", "float", NULL}},
                 {POSENC_F16, 2, {"f16", "float16", "half", NULL}},
                 {POSENC_BF16, 2, {"bf16", "bfloat16", NULL, NULL}}};
    for (size_t i = 0; i < COUNT(known); i++) {
        assert_int_equal(posenc_dtype_bytes(known[i].dtype), known[i].bytes);
        assert_string_equal(posenc_dtype_name(known[i].dtype), known[i].names[0]);
        for (const char *const *name = known[i].names; *name; name++) {
            posenc_dtype dtype = (posenc_dtype)99;
            assert_int_equal(posenc_dtype_parse(*name, &dtype, NULL), POSENC_OK);
            assert_int_equal(dtype, known[i].dtype);
        }
    }
    assert_int_equal(posenc_dtype_bytes((posenc_dtype)4), 0);
    assert_int_equal(posenc_dtype_bytes((posenc_dtype)-1), 0);
    assert_null(posenc_dtype_name((posenc_dtype)4));
}

static void unknown_dtype_names_are_refused(void **state) {
    (void)state;
    static const char *const names[] = {"", "F32", "f32 ", "fp16", "f8", "floats", "bf"};
    posenc_error error;
    for (size_t i = 0; i < COUNT(names); i++) {
        posenc_dtype dtype = (posenc_dtype)99;
        assert_refused(posenc_dtype_parse(names[i], &dtype, &error), &error, POSENC_OUT_OF_RANGE,
                       "dtype");
        assert_int_equal(dtype, 99);
    }
    posenc_dtype dtype;
    assert_refused(posenc_dtype_parse(NULL, &dtype, &error), &error, POSENC_NULL_POINTER, "text");
    assert_refused(posenc_dtype_parse("f32", NULL, &error), &error, POSENC_NULL_POINTER, "dtype");
}

static void the_version_is_that_of_the_headers(void **state) {
    (void)state;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%d.%d.%d", POSENC_VERSION_MAJOR, POSENC_VERSION_MINOR,
             POSENC_VERSION_PATCH);
    assert_string_equal(posenc_version(), wanted);
}

/* --- Errors ------------------------------------------------------------------------------------- */

/* The calls that end with each status; OUT_OF_MEMORY is provoked in test_no_memory.c. */
static posenc_status provoke_ok(posenc_error *error) {
    posenc_dtype dtype;
    return posenc_dtype_parse("f32", &dtype, error);
}

static posenc_status provoke_null_pointer(posenc_error *error) {
    posenc_dtype dtype;
    return posenc_dtype_parse(NULL, &dtype, error);
}

static posenc_status provoke_out_of_range(posenc_error *error) {
    posenc_dtype dtype;
    return posenc_dtype_parse("f31", &dtype, error);
}

static posenc_status provoke_overflow(posenc_error *error) {
    posenc_sinusoidal_spec spec = POSENC_SINUSOIDAL_INIT;
    double table[4];
    spec.dim = 4;
    return posenc_sinusoidal(&spec, NULL, SIZE_MAX / 2, POSENC_F64, 0, table, error);
}

static posenc_status provoke_overlap(posenc_error *error) {
    posenc_alibi_spec spec = POSENC_ALIBI_INIT;
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    float bias[4];
    spec.heads = 1;
    tile.queries = tile.keys = 2;
    tile.query_stride = 1;
    return posenc_alibi_bias(&spec, &tile, bias, error);
}

static posenc_status provoke_unsupported(posenc_error *error) {
    struct {
        posenc_alibi_spec spec;
        size_t of_the_future;
    } newer = {POSENC_ALIBI_INIT, 1};
    newer.spec.size = sizeof newer;
    newer.spec.heads = 1;
    double slope;
    return posenc_alibi_slopes(&newer.spec, 0, 1, &slope, error);
}

static posenc_status provoke_io(posenc_error *error) {
    posenc_npy_reader *reader;
    return posenc_npy_open(TEST_BINARY_DIR "/no/such/file.npy", &reader, NULL, error);
}

static posenc_status provoke_format(posenc_error *error) {
    posenc_npy_reader *reader;
    return posenc_npy_open(TEST_SOURCE_DIR "/LICENSE", &reader, NULL, error);
}

static void every_status_can_be_provoked_and_tells_its_argument(void **state) {
    (void)state;
    static posenc_status (*const provoke[])(posenc_error *) = {
        [POSENC_OK] = provoke_ok,
        [POSENC_NULL_POINTER] = provoke_null_pointer,
        [POSENC_OUT_OF_RANGE] = provoke_out_of_range,
        [POSENC_OVERFLOW] = provoke_overflow,
        [POSENC_OVERLAP] = provoke_overlap,
        [POSENC_UNSUPPORTED] = provoke_unsupported,
        [POSENC_OUT_OF_MEMORY] = NULL,
        [POSENC_IO] = provoke_io,
        [POSENC_FORMAT] = provoke_format,
    };
#define ONE(name, number, sentence) +1
    assert_int_equal(COUNT(provoke), 0 POSENC_STATUS_LIST(ONE));
#undef ONE
    for (size_t i = 1; i < COUNT(provoke); i++) {
        if (!provoke[i])
            continue;
        posenc_error error;
        memset(&error, GUARD_FILL, sizeof error); /* needs no initialisation */
        assert_int_equal(provoke[i](&error), i);
        assert_int_equal(error.status, i);
        assert_non_null(error.argument);
        assert_int_equal(provoke[i](NULL), i);
    }
    posenc_error error;
    memset(&error, GUARD_FILL, sizeof error);
    assert_int_equal(provoke_ok(&error), POSENC_OK);
    assert_true(guard_is_filled(&error, sizeof error)); /* written only on failure */
}

static void statuses_have_names_numbers_and_sentences(void **state) {
    (void)state;
    static const char *const names[] = {"OK",      "NULL_POINTER", "OUT_OF_RANGE",  "OVERFLOW",
                                        "OVERLAP", "UNSUPPORTED",  "OUT_OF_MEMORY", "IO",
                                        "FORMAT"};
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_string_equal(posenc_status_name((posenc_status)i), names[i]);
        assert_true(strlen(posenc_status_sentence((posenc_status)i)) >= 4);
    }
    assert_string_equal(posenc_status_sentence(POSENC_OK), "done");
    assert_string_equal(posenc_status_sentence(POSENC_OUT_OF_RANGE),
                        "an argument is outside its valid range");
    assert_string_equal(posenc_status_name((posenc_status)COUNT(names)), "UNKNOWN");
    assert_string_equal(posenc_status_name((posenc_status)-1), "UNKNOWN");
    assert_string_equal(posenc_status_sentence((posenc_status)1000), "unknown status");
}

static posenc_error error_with_everything(void) {
    posenc_error error;
    memset(&error, 0, sizeof error);
    error.status = POSENC_OUT_OF_RANGE;
    error.argument = "rotary_dim";
    error.value.kind = POSENC_NUMBER_SIZE;
    error.value.as.size = 18446744073709551615u;
    error.must = "be even and from 2 to head_dim";
    error.limit_name = "head_dim";
    error.limit.kind = POSENC_NUMBER_SIZE;
    error.limit.as.size = 64;
    error.place_name = "index";
    error.place = -3;
    return error;
}

static void assert_text(const posenc_error *error, const char *wanted) {
    char text[400];
    assert_int_equal(posenc_error_text(error, text, sizeof text), strlen(wanted));
    assert_string_equal(text, wanted);
}

static void errors_read_as_sentences(void **state) {
    (void)state;
    posenc_error error = error_with_everything();
    assert_text(&error,
                "rotary_dim is 18446744073709551615 but must be even and from 2 to head_dim "
                "(head_dim is 64), at index -3");
    error.place_name = NULL;
    error.value.kind = POSENC_NUMBER_INTEGER;
    error.value.as.integer = INT64_MIN;
    assert_text(&error,
                "rotary_dim is -9223372036854775808 but must be even and from 2 to head_dim "
                "(head_dim is 64)");
    error.limit_name = NULL;
    error.value.kind = POSENC_NUMBER_REAL;
    error.value.as.real = 0.1;
    assert_text(&error,
                "rotary_dim is 0.10000000000000001 but must be even and from 2 to head_dim");
    error.value.kind = POSENC_NUMBER_NONE;
    assert_text(&error, "rotary_dim must be even and from 2 to head_dim");
    error.os_error = ENOENT;
    assert_text(&error,
                "rotary_dim must be even and from 2 to head_dim: No such file or directory");
    error.os_error = 0;
    error.argument = error.must = NULL;
    assert_text(&error, "the call must be valid");
    error.status = POSENC_OK;
    assert_text(&error, "no error");
    assert_text(NULL, "no error");
}

static void names_and_files_stand_in_errors(void **state) {
    (void)state;
    posenc_error error;
    penc_fail(&error, POSENC_FORMAT, "shape", "be whole blocks");
    penc_fail_name(&error, "blk.0.attn_q.weight and more", 19);
    assert_text(&error, "shape of blk.0.attn_q.weight must be whole blocks");
    penc_fail_file(&error, "models/a.gguf");
    assert_text(&error, "shape of blk.0.attn_q.weight must be whole blocks, in models/a.gguf");
    penc_fail_place(&error, "byte", 17);
    assert_text(&error,
                "shape of blk.0.attn_q.weight must be whole blocks, at byte 17 of models/a.gguf");
    penc_fail(&error, POSENC_FORMAT, "file", "be one"); /* nothing of before stays */
    assert_text(&error, "file must be one");
    penc_fail_name(NULL, "a", 1);
    penc_fail_file(NULL, "a");
}

/* What a file says may be made to deceive: no control characters, no broken UTF-8. */
static void names_in_errors_can_be_printed(void **state) {
    (void)state;
    posenc_error error;
    penc_fail(&error, POSENC_FORMAT, "key", "be one");
    static const char name[] = "a\x1b[31m\n\0b\xff\xc3\xa9\xc2\x9b\x7f\xe2\x82\xac\xf0\x9f";
    penc_fail_name(&error, name, sizeof name - 1);
    assert_string_equal(error.name, "a?[31m??b?\xc3\xa9??\xe2\x82\xac??");
}

static void long_names_are_cut_at_the_end_and_paths_at_the_front(void **state) {
    (void)state;
    posenc_error error;
    char text[1000];
    for (size_t length = 100; length < sizeof text; length++) {
        memset(text, 'x', length);
        text[length] = '\0';
        memcpy(text, "begin", 5);
        memcpy(text + length - 3, "end", 3);
        penc_fail(&error, POSENC_FORMAT, "file", "be one");
        penc_fail_name(&error, text, length);
        penc_fail_file(&error, text);
        assert_int_equal(strlen(error.name), length < 127 ? length : 127);
        assert_memory_equal(error.name, "begin", 5);
        assert_int_equal(strlen(error.file), length < 255 ? length : 255);
        assert_string_equal(error.file + strlen(error.file) - 3, "end");
        assert_memory_equal(error.file, length > 255 ? "..." : "beg", 3);
    }
}

static void error_texts_are_cut_to_the_buffer(void **state) {
    (void)state;
    posenc_error error = error_with_everything();
    char whole[400];
    size_t length = posenc_error_text(&error, whole, sizeof whole);
    assert_int_equal(posenc_error_text(&error, NULL, 0), length);
    for (size_t capacity = 0; capacity <= length + 3; capacity++) {
        guarded buffer = guarded_new(capacity, GUARD_AFTER);
        assert_int_equal(posenc_error_text(&error, buffer.data, capacity), length);
        if (capacity) {
            size_t kept = capacity - 1 < length ? capacity - 1 : length;
            assert_memory_equal(buffer.data, whole, kept);
            assert_int_equal(((char *)buffer.data)[kept], 0);
            assert_true(guard_is_filled((char *)buffer.data + kept + 1, capacity - kept - 1));
        }
        guarded_free(&buffer);
    }
}

/* --- Structs that begin with their size --------------------------------------------------------- */

static posenc_status use_spec(const void *object, posenc_error *error) {
    posenc_frequencies *frequencies;
    posenc_status status = posenc_frequencies_create(object, 0, &frequencies, NULL, error);
    posenc_frequencies_destroy(frequencies);
    return status;
}

static posenc_status use_rows(const void *object, posenc_error *error) {
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_frequencies *frequencies;
    spec.head_dim = 2;
    assert_int_equal(posenc_frequencies_create(&spec, 0, &frequencies, NULL, NULL), POSENC_OK);
    int64_t position = 1;
    posenc_status status = posenc_angles(frequencies, &position, 1, object, error);
    posenc_rotation rotation;
    assert_int_equal(posenc_rotation_of(frequencies, object, 1, &rotation, NULL), status);
    posenc_frequencies_destroy(frequencies);
    return status;
}

/* posenc_rotate of one pair with each of its structs in turn. */
static posenc_status use_in_rotate(const posenc_rotation *rotation, const posenc_tensor *tensor,
                                   const posenc_rotate_options *options, posenc_error *error) {
    static const float table[] = {1.0f};
    posenc_rotation own_rotation = POSENC_ROTATION_INIT;
    posenc_tensor own_tensor = posenc_tensor_dense(POSENC_F32, 1, 1, 1, 2);
    own_rotation.cos = own_rotation.sin = table;
    own_rotation.tokens = 1;
    own_rotation.rotary_dim = 2;
    float x[2] = {1.0f, 2.0f};
    return posenc_rotate(rotation ? rotation : &own_rotation, tensor ? tensor : &own_tensor, x, x,
                         options, error);
}

static posenc_status use_rotation(const void *object, posenc_error *error) {
    return use_in_rotate(object, NULL, NULL, error);
}

static posenc_status use_tensor(const void *object, posenc_error *error) {
    return use_in_rotate(NULL, object, NULL, error);
}

static posenc_status use_options(const void *object, posenc_error *error) {
    return use_in_rotate(NULL, NULL, object, error);
}

static posenc_status use_output_tensor(const void *object, posenc_error *error) {
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    options.output = object;
    return use_in_rotate(NULL, NULL, &options, error);
}

static posenc_status use_sinusoidal_spec(const void *object, posenc_error *error) {
    double row[2];
    return posenc_sinusoidal(object, NULL, 1, POSENC_F64, 0, row, error);
}

static posenc_status use_alibi_spec(const void *object, posenc_error *error) {
    double slope;
    return posenc_alibi_slopes(object, 0, 1, &slope, error);
}

static posenc_status use_tile(const void *object, posenc_error *error) {
    posenc_alibi_spec spec = POSENC_ALIBI_INIT;
    spec.heads = 1;
    float bias[1];
    return posenc_alibi_bias(&spec, object, bias, error);
}

typedef posenc_status use_struct(const void *object, posenc_error *error);

/* A valid struct of `bytes` bytes with `size` in front and `extra` in the last byte that it claims.
 * What lies behind that is not 0 and must not be read. */
static posenc_status use_resized(use_struct *use, const void *valid, size_t bytes, size_t size,
                                 unsigned char extra, posenc_error *error) {
    size_t claimed = size > bytes ? size : bytes;
    guarded room = guarded_new((claimed + 7) / 8 * 8, GUARD_AFTER);
    memset(room.data, 0, claimed);
    memcpy(room.data, valid, bytes);
    memcpy(room.data, &size, sizeof size);
    if (extra)
        ((unsigned char *)room.data)[size - 1] = extra;
    posenc_status status = use(room.data, error);
    guarded_free(&room);
    return status;
}

static void assert_size_is_checked(use_struct *use, const char *argument, const void *valid,
                                   size_t bytes) {
    posenc_error error;
    assert_int_equal(use_resized(use, valid, bytes, bytes, 0, &error), POSENC_OK);
    assert_int_equal(use_resized(use, valid, bytes, bytes + 8, 0, &error), POSENC_OK);
    assert_int_equal(use_resized(use, valid, bytes, 4096, 0, &error), POSENC_OK);
    const size_t wrong[] = {0, 1, 8, bytes - 8, bytes - 1, 4097};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_refused(use_resized(use, valid, bytes, wrong[i], 0, &error), &error,
                       POSENC_OUT_OF_RANGE, argument);
        assert_int_equal(error.value.as.size, wrong[i]);
    }
    for (size_t size = bytes + 1; size < bytes + 20; size++)
        assert_refused(use_resized(use, valid, bytes, size, 1, &error), &error, POSENC_UNSUPPORTED,
                       argument);
}

static void sizes_of_specs_and_rows_are_checked(void **state) {
    (void)state;
    static float row[2];
    posenc_spec spec = POSENC_SPEC_INIT;
    spec.head_dim = 2;
    assert_size_is_checked(use_spec, "spec", &spec, sizeof spec);
    posenc_rows rows = POSENC_ROWS_INIT;
    rows.cos = row;
    rows.layout = POSENC_ROWS_COS_SIN;
    assert_size_is_checked(use_rows, "rows", &rows, sizeof rows);
    posenc_sinusoidal_spec sinusoidal = POSENC_SINUSOIDAL_INIT;
    sinusoidal.dim = 2;
    assert_size_is_checked(use_sinusoidal_spec, "spec", &sinusoidal, sizeof sinusoidal);
    posenc_alibi_spec alibi = POSENC_ALIBI_INIT;
    alibi.heads = 1;
    assert_size_is_checked(use_alibi_spec, "spec", &alibi, sizeof alibi);
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    tile.queries = tile.keys = 1;
    assert_size_is_checked(use_tile, "tile", &tile, sizeof tile);
}

static void sizes_of_the_structs_of_rotate_are_checked(void **state) {
    (void)state;
    static const float table[] = {1.0f};
    posenc_rotation rotation = POSENC_ROTATION_INIT;
    rotation.cos = rotation.sin = table;
    rotation.tokens = 1;
    rotation.rotary_dim = 2;
    assert_size_is_checked(use_rotation, "rotation", &rotation, sizeof rotation);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, 1, 1, 2);
    assert_size_is_checked(use_tensor, "tensor", &tensor, sizeof tensor);
    assert_size_is_checked(use_output_tensor, "options.output", &tensor, sizeof tensor);
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    assert_size_is_checked(use_options, "options", &options, sizeof options);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_16_bit_pattern_widens_exactly_and_comes_back),
        cmocka_unit_test(narrowing_is_right_at_every_midpoint),
        cmocka_unit_test(narrowing_rounds_any_float64_once),
        cmocka_unit_test(float32_narrows_as_float64_does),
        cmocka_unit_test(narrowing_to_float32_is_right_at_midpoints),
        cmocka_unit_test(narrowing_of_known_numbers),
        cmocka_unit_test(nan_stays_nan_in_every_conversion),
        cmocka_unit_test(arrays_convert_between_all_dtypes),
        cmocka_unit_test(equal_dtypes_may_be_converted_in_place),
        cmocka_unit_test(conversion_of_bad_arguments_is_refused),
        cmocka_unit_test(dtypes_have_names_and_sizes),
        cmocka_unit_test(unknown_dtype_names_are_refused),
        cmocka_unit_test(the_version_is_that_of_the_headers),
        cmocka_unit_test(every_status_can_be_provoked_and_tells_its_argument),
        cmocka_unit_test(statuses_have_names_numbers_and_sentences),
        cmocka_unit_test(errors_read_as_sentences),
        cmocka_unit_test(names_and_files_stand_in_errors),
        cmocka_unit_test(names_in_errors_can_be_printed),
        cmocka_unit_test(long_names_are_cut_at_the_end_and_paths_at_the_front),
        cmocka_unit_test(error_texts_are_cut_to_the_buffer),
        cmocka_unit_test(sizes_of_specs_and_rows_are_checked),
        cmocka_unit_test(sizes_of_the_structs_of_rotate_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
