/* Checkpoints over one file and many, and llama2.c files. SPDX-License-Identifier: MIT */
#include "formats/tensor_set.h"

#include "gguf_cases.h"
#include "safetensors_cases.h"

static penc_tensor_set *open_set(const char *path) {
    penc_tensor_set *set;
    posenc_error error;
    assert_done(penc_tensor_set_open(path, &set, &error), &error);
    assert_non_null(set);
    return set;
}

static void assert_set_refused(const char *path, posenc_status status, const char *argument,
                               const char *must, const char *name, const char *file) {
    refusal wanted = {status, argument, must, name, file, -1};
    penc_tensor_set *set = (penc_tensor_set *)&wanted;
    posenc_error error;
    assert_refusal(penc_tensor_set_open(path, &set, &error), &error, &wanted, path);
    assert_null(set);
}

/* The tensor `name` must lie in `file` and its first row begin with `byte`. */
static void assert_found(const penc_tensor_set *set, const char *name, const char *file,
                         unsigned char byte) {
    penc_tensor tensor;
    const penc_tensor_source *source;
    unsigned char row[64];
    posenc_error error;
    assert_done(penc_tensor_set_find(set, name, &tensor, &source, &error), &error);
    assert_non_null(source);
    assert_string_equal(tensor.name, name);
    assert_true(ends_with(source->input.path, file));
    assert_true(penc_tensor_row_bytes(&tensor) <= sizeof row);
    assert_done(penc_tensor_read_rows(source, &tensor, 0, 1, row, &error), &error);
    assert_int_equal(row[0], byte);
}

static void assert_not_found(const penc_tensor_set *set, const char *name) {
    penc_tensor tensor;
    const penc_tensor_source *source = (const penc_tensor_source *)&tensor;
    assert_int_equal(penc_tensor_set_find(set, name, &tensor, &source, NULL), POSENC_OK);
    assert_null(source);
}

#define U8(name, shape, offsets)                                                                   \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* ---- safetensors ---- */

static void a_single_file_is_a_set(void **state) {
    (void)state;
    write_safetensors("a.bin", "{" U8("x", "[2,2]", "[0,4]") "," U8("y", "[3]", "[4,7]") "}", 7,
                      NULL);
    penc_tensor_set *set = open_set("a.bin"); /* recognised by its bytes */
    assert_int_equal(penc_tensor_set_files(set), 1);
    assert_int_equal(penc_tensor_set_count(set), 2);
    assert_found(set, "x", "a.bin", 0);
    assert_found(set, "y", "a.bin", 4);
    assert_not_found(set, "z");
    assert_non_null(penc_tensor_set_safetensors(set, 0));
    assert_null(penc_tensor_set_gguf(set, 0));
    assert_null(penc_tensor_set_llama2c(set, 0));
    penc_tensor_set_close(set);
}

static void write_shards(void) {
    assert_int_equal(mkdir("m", 0755), 0);
    write_safetensors("m/model-00001-of-00002.safetensors",
                      "{" U8("a", "[4]", "[0,4]") "," U8("b", "[4]", "[4,8]") "}", 8, NULL);
    write_safetensors("m/model-00002-of-00002.safetensors", "{" U8("c", "[4]", "[0,4]") "}", 4,
                      NULL);
}

#define SHARD_1 "\"model-00001-of-00002.safetensors\""
#define SHARD_2 "\"model-00002-of-00002.safetensors\""
#define INDEX   "m/model.safetensors.index.json"

static void shards_are_found_through_their_index(void **state) {
    (void)state;
    write_shards();
    write_text(INDEX, "{\"weight_map\": {\"c\": " SHARD_2 ", \"a\": " SHARD_1 ", \"b\": " SHARD_1
                      "}, \"metadata\": {\"total_size\": 12, \"weight_map\": []}}");
    penc_tensor_set *set = open_set(INDEX);
    assert_int_equal(penc_tensor_set_files(set), 2);
    assert_int_equal(penc_tensor_set_count(set), 3);
    assert_true(ends_with(penc_tensor_set_file(set, 0)->input.path, "00001-of-00002.safetensors"));
    assert_found(set, "a", "00001-of-00002.safetensors", 0);
    assert_found(set, "b", "00001-of-00002.safetensors", 4);
    assert_found(set, "c", "00002-of-00002.safetensors", 0);
    assert_not_found(set, "d");
    penc_tensor_set_close(set);
}

static void indexes_that_are_wrong_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *index;
        posenc_status status;
        const char *argument, *must, *name, *file;
    } cases[] = {
        {"{\"weight_map\":{\"a\":\"model-00003-of-00002.safetensors\"}}", POSENC_IO, "path",
         "opened", NULL, "m/model-00003-of-00002.safetensors"},
        {"{\"weight_map\":{\"d\":" SHARD_2 "}}", POSENC_FORMAT, "tensor", "stand in the file", "d",
         INDEX},
        {"{\"weight_map\":{\"c\":" SHARD_2 ",\"b\":" SHARD_2 ",\"a\":" SHARD_1 "}}", POSENC_FORMAT,
         "tensor", "not in another one", "b", INDEX},
        {"{\"weight_map\":{\"a\":\"../m/model-00001-of-00002.safetensors\"}}", POSENC_FORMAT,
         "shard", "in the folder", "a", INDEX},
        {"{\"weight_map\":{\"a\":\"\"}}", POSENC_FORMAT, "shard", "in the folder", "a", INDEX},
        {"{\"weight_map\":{\"a\":\"x\\u0000y\"}}", POSENC_FORMAT, "shard", "in the folder", "a",
         INDEX},
        {"{\"weight_map\":{\"a\":1}}", POSENC_FORMAT, "shard", "in the folder", "a", INDEX},
        {"{\"weight_map\":{\"a\":\"..\"}}", POSENC_UNSUPPORTED, "path", "regular", NULL, "m/.."},
        {"{\"weight_map\":{}}", POSENC_FORMAT, "weight_map", "name a tensor", NULL, INDEX},
        {"{\"weight_map\":[]}", POSENC_FORMAT, "weight_map", "object", NULL, INDEX},
        {"{}", POSENC_FORMAT, "weight_map", "stand in the index", NULL, INDEX},
        {"[]", POSENC_FORMAT, "index", "object", NULL, INDEX},
        {"{\"weight_map\":{\"a\":" SHARD_1 "},\"weight_map\":{}}", POSENC_FORMAT, "weight_map",
         "once", NULL, INDEX},
        {"{\"weight_map\":{\"a\":" SHARD_1 "}", POSENC_FORMAT, "JSON", "comma", NULL, INDEX},
        {"{\"weight_map\":{\"a\":\"m.gguf\"}}", POSENC_FORMAT, "shard", "safetensors", NULL,
         "m/m.gguf"},
    };
    write_shards();
    gguf_image g = gguf_begin(3, 0, 0, 0);
    gguf_end(&g, "m/m.gguf");
    for (size_t i = 0; i < COUNT(cases); i++) {
        write_text(INDEX, cases[i].index);
        assert_set_refused(INDEX, cases[i].status, cases[i].argument, cases[i].must, cases[i].name,
                           cases[i].file);
    }
}

static void a_tensor_in_two_shards_is_refused(void **state) {
    (void)state;
    write_shards();
    write_safetensors("m/model-00002-of-00002.safetensors",
                      "{" U8("c", "[4]", "[0,4]") "," U8("b", "[4]", "[4,8]") "}", 8, NULL);
    write_text(INDEX, "{\"weight_map\":{\"a\":" SHARD_1 ",\"c\":" SHARD_2 "}}");
    assert_set_refused(INDEX, POSENC_FORMAT, "tensor", "one file only", "b",
                       "00002-of-00002.safetensors");
}

static void a_damaged_shard_is_named(void **state) {
    (void)state;
    write_shards();
    write_text(INDEX, "{\"weight_map\":{\"a\":" SHARD_1 ",\"c\":" SHARD_2 "}}");
    assert_int_equal(truncate("m/model-00002-of-00002.safetensors", 40), 0);
    assert_set_refused(INDEX, POSENC_FORMAT, "file size", NULL, NULL, "00002-of-00002.safetensors");
    assert_int_equal(truncate("m/model-00002-of-00002.safetensors", 0), 0);
    assert_set_refused(INDEX, POSENC_FORMAT, "file size", NULL, NULL, "00002-of-00002.safetensors");
}

/* ---- Split GGUF ---- */

/* Part `number` of `count` with one tensor, "t<number>"; `total` is split.tensors.count, 0 for none. */
static void write_part(const char *path, uint64_t number, uint64_t count, uint32_t total,
                       const char *tensor) {
    static const uint64_t shape[] = {4};
    gguf_image g = gguf_begin(3, 0, 1, total ? 3 : 2);
    add_key_number(&g, "split.no", T_U16, number, 2);
    add_key_number(&g, "split.count", T_U16, count, 2);
    if (total)
        add_key_number(&g, "split.tensors.count", T_I32, total, 4);
    add_tensor(&g, tensor, 1, shape, 24, 0); /* int8 */
    pad_to(&g, 32);
    add_number(&g.f, number, 4);
    gguf_end(&g, path);
}

static void write_parts(void) {
    write_part("m-00001-of-00003.gguf", 0, 3, 3, "t1");
    write_part("m-00002-of-00003.gguf", 1, 3, 0, "t2");
    write_part("m-00003-of-00003.gguf", 2, 3, 0, "t3");
}

static void every_part_leads_to_the_whole_model(void **state) {
    (void)state;
    static const char *const parts[] = {"m-00001-of-00003.gguf", "./m-00002-of-00003.gguf",
                                        "m-00003-of-00003.gguf"};
    write_parts();
    for (size_t i = 0; i < COUNT(parts); i++) {
        penc_tensor_set *set = open_set(parts[i]);
        assert_int_equal(penc_tensor_set_files(set), 3);
        assert_int_equal(penc_tensor_set_count(set), 3);
        assert_found(set, "t1", "m-00001-of-00003.gguf", 0);
        assert_found(set, "t2", "m-00002-of-00003.gguf", 1);
        assert_found(set, "t3", "m-00003-of-00003.gguf", 2);
        assert_not_found(set, "t4");
        assert_non_null(penc_tensor_set_gguf(set, 2));
        penc_tensor_set_close(set);
    }
}

static void parts_that_are_missing_or_wrong_are_named(void **state) {
    (void)state;
    static const char first[] = "m-00001-of-00003.gguf", second[] = "m-00002-of-00003.gguf";
    write_parts();
    assert_int_equal(unlink(second), 0);
    assert_set_refused(first, POSENC_IO, "path", "opened", NULL, second);
    write_part(second, 2, 3, 0, "t2");
    assert_set_refused(first, POSENC_FORMAT, "split.no", "fit", NULL, second);
    write_part(second, 1, 4, 0, "t2");
    assert_set_refused(first, POSENC_FORMAT, "split.count", "fit", NULL, second);
    write_part(second, 1, 3, 0, "t1");
    assert_set_refused(first, POSENC_FORMAT, "tensor", "one file only", "t1", second);
    write_safetensors(second, "{}", 0, NULL);
    assert_set_refused(first, POSENC_FORMAT, "part", "GGUF", NULL, second);
    write_part(second, 1, 3, 0, "t2");
    write_part(first, 0, 3, 4, "t1");
    assert_set_refused(first, POSENC_FORMAT, "tensors of all parts", "as many", NULL, first);
    write_part("renamed.gguf", 0, 3, 3, "t1");
    assert_set_refused("renamed.gguf", POSENC_OUT_OF_RANGE, "split.count", "file's name", NULL,
                       "renamed.gguf");
    write_part("m-00001-of-00002.gguf", 0, 3, 3, "t1");
    assert_set_refused("m-00001-of-00002.gguf", POSENC_OUT_OF_RANGE, "split.count", "file's name",
                       NULL, "m-00001-of-00002.gguf");
    gguf_image g = gguf_begin(3, 0, 0, 1);
    add_key_text(&g, "split.count", "3");
    gguf_end(&g, "text.gguf");
    assert_set_refused("text.gguf", POSENC_FORMAT, "split.count", "integer", NULL, "text.gguf");
}

static void a_gguf_of_one_part_stands_alone(void **state) {
    (void)state;
    write_part("alone.gguf", 0, 1, 1, "t");
    penc_tensor_set *set = open_set("alone.gguf");
    assert_int_equal(penc_tensor_set_files(set), 1);
    assert_found(set, "t", "alone.gguf", 0);
    penc_tensor_set_close(set);
}

/* ---- llama2.c ---- */

/* dim 8, hidden 6, 2 layers, 4 heads, 2 for k and v, vocabulary 5, length 3: every float is its own index. */
static void write_llama2c(const char *path, int big, int unshared, int missing) {
    const uint32_t sizes[] = {8, 6, 2, 4, 2, unshared ? 0u - 5u : 5u, 3};
    image f = {NULL, 0, 0, big};
    uint64_t floats = 5 * 8 + 2 * (8 + 64 + 32 + 32 + 64 + 8 + 48 + 48 + 48) + 8 + 2 * 3 * 1;
    floats += unshared ? 5 * 8 : 0;
    for (size_t i = 0; i < COUNT(sizes); i++)
        add_number(&f, sizes[i], 4);
    for (uint64_t i = 0; i < floats; i++)
        add_number(&f, bits_of_float((float)i), 4);
    f.size -= (size_t)missing;
    write_file(path, f.bytes, f.size);
    image_free(&f);
}

static void llama2c_files_give_tensors_by_name(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t rows, columns, first; /* the float with which it begins */
    } tensors[] = {
        {"tok_embeddings.weight", 5, 8, 0},
        {"layers.0.attention_norm.weight", 1, 8, 40},
        {"layers.1.attention_norm.weight", 1, 8, 48},
        {"layers.0.attention.wq.weight", 8, 8, 56},
        {"layers.1.attention.wq.weight", 8, 8, 120},
        {"layers.0.attention.wk.weight", 4, 8, 184},
        {"layers.1.attention.wk.weight", 4, 8, 216},
        {"layers.1.attention.wv.weight", 4, 8, 280},
        {"layers.0.attention.wo.weight", 8, 8, 312},
        {"layers.1.ffn_norm.weight", 1, 8, 448},
        {"layers.0.feed_forward.w1.weight", 6, 8, 456},
        {"layers.0.feed_forward.w2.weight", 8, 6, 552},
        {"layers.1.feed_forward.w3.weight", 6, 8, 696},
        {"norm.weight", 1, 8, 744},
        {"freq_cis_real", 3, 1, 752},
        {"freq_cis_imag", 3, 1, 755},
        {"output.weight", 5, 8, 758},
    };
    for (int variant = 0; variant < 4; variant++) {
        int big = variant & 1, unshared = variant >> 1;
        write_llama2c("m.bin", big, unshared, 0);
        penc_tensor_set *set = open_set("m.bin");
        const penc_llama2c_info *info = penc_llama2c_about(penc_tensor_set_llama2c(set, 0));
        assert_true(info->dim == 8 && info->kv_heads == 2 && info->vocab_size == 5 &&
                    info->shared_output == !unshared && info->big_endian == big);
        assert_int_equal(penc_tensor_set_count(set), 4 + 18 + unshared);
        for (size_t i = 0; i < COUNT(tensors) - !unshared; i++) {
            penc_tensor tensor;
            const penc_tensor_source *source;
            posenc_error error;
            unsigned char row[32], wanted[4];
            assert_done(penc_tensor_set_find(set, tensors[i].name, &tensor, &source, &error),
                        &error);
            assert_non_null(source);
            assert_int_equal(penc_tensor_rows(&tensor), tensors[i].rows);
            assert_int_equal(penc_tensor_row_bytes(&tensor), 4 * tensors[i].columns);
            assert_true(tensor.type == PENC_TENSOR_F32 && tensor.big_endian == big);
            assert_done(penc_tensor_read_rows(source, &tensor, 0, 1, row, &error), &error);
            image f = {NULL, 0, 0, big};
            add_number(&f, bits_of_float((float)tensors[i].first), 4);
            memcpy(wanted, f.bytes, 4);
            image_free(&f);
            assert_memory_equal(row, wanted, 4);
        }
        if (!unshared)
            assert_not_found(set, "output.weight");
        assert_not_found(set, "layers.2.attention.wq.weight");
        penc_tensor_set_close(set);
    }
}

static void llama2c_files_that_are_none_tell_why(void **state) {
    (void)state;
    penc_llama2c *file;
    posenc_error error;
    write_llama2c("short.bin", 0, 0, 4);
    refusal wanted = {POSENC_FORMAT, "file size", "at least", NULL, "short.bin", -1};
    assert_refusal(penc_llama2c_open("short.bin", &file, &error), &error, &wanted, "short");
    assert_null(file);
    write_llama2c("long.bin", 0, 0, 0);
    assert_int_equal(truncate("long.bin", 10000), 0);
    wanted = (refusal){POSENC_FORMAT, "file", "as long as", NULL, "long.bin", -1};
    assert_refusal(penc_llama2c_open("long.bin", &file, &error), &error, &wanted, "long");
    write_text("text.bin", "this is a text and no model at all");
    wanted = (refusal){POSENC_FORMAT, "file", "7 sizes", NULL, "text.bin", -1};
    assert_refusal(penc_llama2c_open("text.bin", &file, &error), &error, &wanted, "text");
    write_file("v1.bin", "24ka\1\0\0\0 and more bytes than 28", 32);
    assert_set_refused("v1.bin", POSENC_UNSUPPORTED, "version", "--version 0", NULL, "v1.bin");
}

/* Sizes whose products overflow must not fit by chance. */
static void llama2c_sizes_are_limited(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < 20000; trial++) {
        image f = {NULL, 0, 0, 0};
        for (int i = 0; i < 7; i++)
            add_number(&f, random_bits(&rng) >> random_below(&rng, 64), 4);
        assert_false(
            penc_llama2c_fits(f.bytes, random_bits(&rng) >> (24 + random_below(&rng, 40))));
        image_free(&f);
    }
}

/* ---- Other files ---- */

static void other_files_are_refused_with_advice(void **state) {
    (void)state;
    write_text("empty", "");
    assert_set_refused("empty", POSENC_FORMAT, "file", "be GGUF", NULL, "empty");
    write_text("text", "hello");
    assert_set_refused("text", POSENC_FORMAT, "file", "be GGUF", NULL, "text");
    write_text("m.gguf", "hello, world");
    assert_set_refused("m.gguf", POSENC_FORMAT, "file", "magic", NULL, "m.gguf");
    write_text("m.safetensors", "hello, world");
    assert_set_refused("m.safetensors", POSENC_FORMAT, "header length", NULL, NULL,
                       "m.safetensors");
    write_text("pytorch_model.bin", "PK\3\4.......................................");
    assert_set_refused("pytorch_model.bin", POSENC_UNSUPPORTED, "file", "save_file", NULL,
                       "pytorch_model.bin");
    write_text("old.bin", "\x80\2}q\1X.....................................");
    assert_set_refused("old.bin", POSENC_UNSUPPORTED, "file", "save_file", NULL, "old.bin");
    assert_set_refused("missing", POSENC_IO, "path", "opened", NULL, "missing");
    assert_set_refused(".", POSENC_UNSUPPORTED, "path", "regular", NULL, ".");
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        TEST(a_single_file_is_a_set),
        TEST(shards_are_found_through_their_index),
        TEST(indexes_that_are_wrong_are_refused),
        TEST(a_tensor_in_two_shards_is_refused),
        TEST(a_damaged_shard_is_named),
        TEST(every_part_leads_to_the_whole_model),
        TEST(parts_that_are_missing_or_wrong_are_named),
        TEST(a_gguf_of_one_part_stands_alone),
        TEST(llama2c_files_give_tensors_by_name),
        TEST(llama2c_files_that_are_none_tell_why),
        TEST(llama2c_sizes_are_limited),
        TEST(other_files_are_refused_with_advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
