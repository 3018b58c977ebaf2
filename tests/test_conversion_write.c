/* Where a converted checkpoint is written: folders, parts of the work, what stands beside the weights, refusals.
 * test_convert_parts.py tests the same through the program. SPDX-License-Identifier: MIT */
#include "posenc/convert.h"

#include "file_cases.h"

/* ---- A checkpoint of three files ---- */

enum { SHARDS = 3, ROWS = 8 }; /* two heads of 4 */
static const char *const shard_names[SHARDS] = {"s1.safetensors", "s2.safetensors",
                                                "s3.safetensors"};

/* Layer `number`: q and k of one head of k and two of q, all of one byte a row; the numbers begin with `first`. */
static void write_shard(const char *path, int number, int first) {
    char header[400];
    image f = {NULL, 0, 0, 0};
    int length = snprintf(
        header, sizeof header,
        "{\"model.layers.%d.self_attn.q_proj.weight\":{\"dtype\":\"U8\",\"shape\":[8,1],\"data_offsets\":[0,8]},"
        "\"model.layers.%d.self_attn.k_proj.weight\":{\"dtype\":\"U8\",\"shape\":[4,1],\"data_offsets\":[8,12]}}",
        number, number);
    add_number(&f, (uint64_t)length, 8);
    add_bytes(&f, header, (size_t)length);
    for (int i = 0; i < 12; i++)
        add_number(&f, (uint64_t)(first + i), 1);
    write_file(path, f.bytes, f.size);
    image_free(&f);
}

static void write_checkpoint(void) {
    char index[1000] = "{\"weight_map\":{";
    assert_true(mkdir("in", 0755) == 0 && mkdir("in/sub", 0755) == 0 &&
                mkdir("in/.hidden", 0755) == 0);
    for (int i = 0; i < SHARDS; i++) {
        char path[40];
        size_t length = strlen(index);
        snprintf(path, sizeof path, "in/%s", shard_names[i]);
        write_shard(path, i, 20 * i);
        for (int k = 0; k < 2; k++) {
            length = strlen(index);
            snprintf(index + length, sizeof index - length,
                     "%s\"model.layers.%d.self_attn.%c_proj.weight\":\"%s\"", i || k ? "," : "", i,
                     k ? 'k' : 'q', shard_names[i]);
        }
    }
    strcat(index, "}}");
    write_text("in/model.safetensors.index.json", index);
    write_text("in/config.json", "{}");
    write_text("in/sub/notes.txt", "notes");
    write_text("in/.hidden/file", "hidden");
    write_text("in/pytorch_model.bin", "other weights");
    write_text("in/mmproj.gguf", "no text");
}

static posenc_status convert(const char *in, const char *out,
                             const posenc_conversion_write_options *write, posenc_error *error) {
    posenc_conversion_options options = POSENC_CONVERSION_OPTIONS_INIT;
    posenc_conversion *conversion;
    options.to = POSENC_PAIRING_INTERLEAVED;
    options.shape.heads = 2;
    options.shape.kv_heads = 1;
    options.shape.head_dim = 4;
    options.force = 1;
    assert_done(posenc_conversion_create(in, &options, &conversion, error), error);
    posenc_status status = posenc_conversion_write(conversion, out, write, error);
    posenc_conversion_free(conversion);
    return status;
}

static posenc_conversion_outcome convert_part(const char *out, size_t part, size_t parts) {
    posenc_conversion_outcome outcome;
    posenc_conversion_write_options write = POSENC_CONVERSION_WRITE_OPTIONS_INIT;
    posenc_error error;
    write.part = part;
    write.parts = parts;
    write.outcome = &outcome;
    assert_done(convert("in", out, &write, &error), &error);
    return outcome;
}

static int is_there(const char *folder_name, const char *name) {
    char path[80];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder_name, name);
    return lstat(path, &status) == 0;
}

/* The last 12 bytes of a shard: rows 0, 2, 1, 3 of each head if they were moved. */
static void assert_moved(const char *folder_name, int number) {
    static const unsigned char order[] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11};
    unsigned char got[12];
    char path[80];
    snprintf(path, sizeof path, "%s/%s", folder_name, shard_names[number]);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, -12, SEEK_END), 0);
    assert_int_equal(fread(got, 1, 12, file), 12);
    fclose(file);
    for (int i = 0; i < 12; i++)
        assert_int_equal(got[i], 20 * number + order[i]);
}

static void assert_complete(const char *out) {
    for (int i = 0; i < SHARDS; i++)
        assert_moved(out, i);
    assert_true(is_there(out, "model.safetensors.index.json") && is_there(out, "config.json") &&
                is_there(out, "sub/notes.txt") && is_there(out, "mmproj.gguf"));
    assert_false(is_there(out, ".hidden") || is_there(out, "pytorch_model.bin"));
}

/* ---- Parts ---- */

static void a_folder_gets_the_weights_and_what_stands_beside_them(void **state) {
    (void)state;
    write_checkpoint();
    posenc_conversion_outcome outcome = convert_part("out", 0, 0);
    assert_complete("out");
    assert_true(outcome.files_written == SHARDS && outcome.complete && !outcome.files_missing);
    assert_int_equal(outcome.others_written, 4);
}

static void parts_share_the_files_and_the_last_one_writes_the_rest(void **state) {
    (void)state;
    write_checkpoint();
    posenc_conversion_outcome outcome = convert_part("out", 1, 2);
    assert_true(outcome.files_written == 1 && outcome.files_missing == 2 && !outcome.complete);
    assert_moved("out", 1);
    assert_false(is_there("out", shard_names[0]) || is_there("out", shard_names[2]) ||
                 is_there("out", "config.json") || is_there("out", "model.safetensors.index.json"));
    outcome = convert_part("out", 0, 2);
    assert_true(outcome.files_written == 2 && !outcome.files_missing && outcome.complete);
    assert_complete("out");
    outcome = convert_part("out", 5, 9); /* no file is its own */
    assert_true(!outcome.files_written && outcome.complete && outcome.others_written == 4);
}

static void files_of_another_conversion_are_missing(void **state) {
    (void)state;
    write_checkpoint();
    assert_int_equal(mkdir("out", 0755), 0);
    write_shard("out/s2.safetensors", 1, 20); /* as it was */
    assert_int_equal(convert_part("out", 0, 2).files_missing, 1);
    write_shard("in/s2.safetensors", 1, 21); /* another model, converted */
    (void)convert_part("out", 1, 2);
    write_shard("in/s2.safetensors", 1, 20);
    posenc_conversion_outcome outcome = convert_part("out", 0, 2);
    assert_true(outcome.files_missing == 1 && !outcome.complete);
    assert_true(convert_part("out", 1, 2).complete);
    assert_complete("out");
}

/* ---- What is told ---- */

static char left_out[100];

static void note_left_out(void *context, const char *name) {
    (void)context;
    strcat(strcat(left_out, name), " ");
}

static uint64_t last_done, last_total;

static void note_progress(void *context, uint64_t done, uint64_t total) {
    (void)context;
    assert_true(done >= last_done && done <= total && (!last_total || total == last_total));
    last_done = done;
    last_total = total;
}

static void progress_and_what_is_left_out_are_told(void **state) {
    (void)state;
    posenc_conversion_write_options write = POSENC_CONVERSION_WRITE_OPTIONS_INIT;
    posenc_error error;
    write.progress = note_progress;
    write.left_out = note_left_out;
    write_checkpoint();
    assert_done(convert("in", "out", &write, &error), &error);
    assert_string_equal(left_out, "pytorch_model.bin ");
    assert_true(last_total > 600 && last_done == last_total);
}

/* ---- Refusals ---- */

static void folders_that_cannot_be_are_refused(void **state) {
    (void)state;
    write_checkpoint();
    assert_int_equal(mkdir("others", 0755), 0);
    write_text("others/x.gguf", "");
    write_text("file", "");
    static const struct {
        const char *out;
        refusal refusal;
    } cases[] = {
        {"in", {POSENC_UNSUPPORTED, "out", "another folder", NULL, "in", -1}},
        {"in/", {POSENC_UNSUPPORTED, "out", "another folder", NULL, "in/", -1}},
        {"in/new", {POSENC_UNSUPPORTED, "out", "not lie in", NULL, "in/new", -1}},
        {"in/sub/new/", {POSENC_UNSUPPORTED, "out", "not lie in", NULL, "in/sub/new/", -1}},
        {"others", {POSENC_UNSUPPORTED, "out", "no other weights", "x.gguf", "others", -1}},
        {"file", {POSENC_IO, "path", "folder", NULL, "file", -1}},
        {"missing/new", {POSENC_IO, "path", "folder", NULL, "missing/new", -1}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        posenc_error error;
        assert_refusal(convert("in", cases[i].out, NULL, &error), &error, &cases[i].refusal,
                       cases[i].out);
    }
    assert_false(is_there("in", "new") || is_there("in/sub", "new") || is_there(".", "missing") ||
                 is_there("others", "s1.safetensors"));
}

static void bad_arguments_are_refused(void **state) {
    (void)state;
    posenc_conversion_write_options write = POSENC_CONVERSION_WRITE_OPTIONS_INIT, old = write;
    posenc_error error;
    write_checkpoint();
    write.part = 4;
    write.parts = 4;
    old.size = 0;
    assert_refused(convert("in", "out", &write, &error), &error, POSENC_OUT_OF_RANGE, "part");
    assert_true(error.value.as.size == 4 && error.limit.as.size == 4);
    assert_refused(convert("in", "out", &old, &error), &error, POSENC_OUT_OF_RANGE, "options");
    assert_refused(convert("in", NULL, NULL, &error), &error, POSENC_NULL_POINTER, "out");
    assert_refused(posenc_conversion_write(NULL, "out", NULL, &error), &error, POSENC_NULL_POINTER,
                   "conversion");
    assert_false(is_there(".", "out"));
}

static void one_file_of_a_folder_is_converted_in_place(void **state) {
    (void)state;
    posenc_error error;
    assert_int_equal(mkdir("in", 0755), 0);
    write_shard("in/s1.safetensors", 0, 0);
    write_text("in/pytorch_model.bin", "stays");
    assert_done(convert("in", "in", NULL, &error), &error);
    assert_moved("in", 0);
    assert_true(is_there("in", "pytorch_model.bin"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_folder_gets_the_weights_and_what_stands_beside_them),
        TEST(parts_share_the_files_and_the_last_one_writes_the_rest),
        TEST(files_of_another_conversion_are_missing),
        TEST(progress_and_what_is_left_out_are_told),
        TEST(folders_that_cannot_be_are_refused),
        TEST(bad_arguments_are_refused),
        TEST(one_file_of_a_folder_is_converted_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
