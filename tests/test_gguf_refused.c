/* GGUF files that are refused: one fault after the other, cut, changed at random, shrinking.
 * SPDX-License-Identifier: MIT */
#include "gguf_cases.h"

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
static gguf_image rich_image(const gguf_variant *v) {
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
        TEST(files_with_a_fault_are_refused_with_its_place),
        TEST(every_prefix_of_a_file_is_refused_at_its_end),
        TEST(random_mutations_are_read_or_refused),
        TEST(a_file_that_shrinks_is_told),
        TEST(files_that_cannot_be_opened_tell_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
