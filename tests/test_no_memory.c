/* Memory that runs out: whichever allocation fails, the call says OUT_OF_MEMORY, gives nothing, leaves
 * no file and loses neither memory nor an open file. SPDX-License-Identifier: MIT */
#include "posenc/alibi.h"
#include "posenc/checkpoint.h"
#include "posenc/convert.h"
#include "posenc/model.h"
#include "posenc/npy.h"
#include "posenc/rotate.h"
#include "posenc/sinusoidal.h"

#include "short_memory.h"

#include <sys/stat.h>

/* ---- A folder to write in ---- */

static char folder[] = "/tmp/posenc-no-memory-XXXXXX", target[100];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(target, sizeof target, "%s/array.npy", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    (void)unlink(target);
    return rmdir(folder); /* fails the group if anything else was left in it */
}

/* ---- RoPE ---- */

static posenc_status make_frequencies(posenc_frequencies **frequencies, posenc_error *error) {
    posenc_spec spec = POSENC_SPEC_INIT;
    spec.head_dim = 64;
    *frequencies = (posenc_frequencies *)(void *)&spec; /* not NULL: a failure must set it */
    posenc_status status = posenc_frequencies_create(&spec, 0, frequencies, NULL, error);
    if (status)
        assert_null(*frequencies);
    return status;
}

/* Two tokens of one head, by rows made here. */
static posenc_status rotate_two_tokens(const posenc_frequencies *frequencies, posenc_error *error) {
    static float x[2 * 64], cos[2 * 32], sin[2 * 32];
    static const int64_t positions[2] = {0, 1};
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_rotation rotation;
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, 2, 1, 64);
    rows.cos = cos;
    rows.sin = sin;
    posenc_status status = posenc_angles(frequencies, positions, 2, &rows, error);
    if (!status)
        status = posenc_rotation_of(frequencies, &rows, 2, &rotation, error);
    if (!status)
        status = posenc_rotate(&rotation, &tensor, x, x, NULL, error);
    return status;
}

static posenc_status rope(posenc_error *error) {
    posenc_frequencies *frequencies;
    posenc_status status = make_frequencies(&frequencies, error);
    if (!status)
        status = rotate_two_tokens(frequencies, error);
    posenc_frequencies_destroy(frequencies);
    return status;
}

static void rope_survives_every_shortage(void **state) {
    (void)state;
    assert_survives(rope, 1, nothing_to_look_at);
}

/* ---- Models ---- */

/* Several types, a scaling, lists, warnings that make frequencies of their own. */
static posenc_status model(posenc_error *error) {
    static const char json[] =
        "{\"model_type\":\"gemma3_text\",\"num_hidden_layers\":6,\"hidden_size\":64,\"num_attention_heads\":2,"
        "\"head_dim\":16,\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"yarn\",\"factor\":2,\"odd\":1},"
        "\"sliding_attention\":{\"rope_type\":\"linear\",\"factor\":\"2\"}}}";
    posenc_model *made;
    posenc_status status = posenc_model_parse(json, sizeof json - 1, NULL, &made, error);
    if (status)
        assert_null(made);
    else
        assert_int_equal(posenc_model_warning_count(made), 6);
    posenc_model_free(made);
    return status;
}

/* Towers, read and unread. */
static posenc_status composite(posenc_error *error) {
    static const char json[] =
        "{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"qwen2\",\"hidden_size\":64,"
        "\"num_attention_heads\":2,\"rope_theta\":10000,\"max_position_embeddings\":64},"
        "\"vision_config\":{\"model_type\":\"pixtral\"},\"audio_config\":{},\"speech_config\":"
        "{\"model_type\":\"pixtral\",\"num_attention_heads\":-1}}";
    posenc_model *made;
    posenc_status status = posenc_model_parse(json, sizeof json - 1, NULL, &made, error);
    if (status) {
        assert_null(made);
        return status;
    }
    assert_int_equal(posenc_model_part_count(made), 3);
    assert_non_null(posenc_model_part_at(made, 0)->model);
    assert_non_null(posenc_model_part_at(made, 1)->unread);
    assert_non_null(posenc_model_part_at(made, 2)->unread);
    posenc_model_free(made);
    return status;
}

static void models_survive_every_shortage(void **state) {
    (void)state;
    assert_survives(composite, 100, nothing_to_look_at);
    assert_survives(model, 100, nothing_to_look_at);
}

static posenc_status facts(posenc_error *error) {
    const posenc_layer_facts start = POSENC_LAYER_FACTS_INIT;
    const posenc_layer_type type = {.kind = POSENC_ENCODING_ROPE};
    posenc_layer_facts made = start;
    posenc_frequencies *frequencies;
    posenc_status status = make_frequencies(&frequencies, error);
    if (!status)
        status = posenc_layer_facts_of(&type, frequencies, &made, error);
    if (status)
        assert_memory_equal(&made, &start, sizeof made);
    posenc_frequencies_destroy(frequencies);
    return status;
}

static void facts_survive_every_shortage(void **state) {
    (void)state;
    assert_survives(facts, 2, nothing_to_look_at);
}

/* ---- What allocates nothing ---- */

static posenc_status sinusoidal(posenc_error *error) {
    static float table[3 * 8];
    posenc_sinusoidal_spec spec = POSENC_SINUSOIDAL_INIT;
    spec.dim = 8;
    return posenc_sinusoidal(&spec, NULL, 3, POSENC_F32, 0, table, error);
}

static posenc_status alibi(posenc_error *error) {
    static double slopes[6];
    static float bias[6 * 2 * 3];
    posenc_alibi_spec spec = POSENC_ALIBI_INIT;
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    spec.heads = 6;
    tile.queries = 2;
    tile.keys = 3;
    posenc_status status = posenc_alibi_slopes(&spec, 0, 6, slopes, error);
    return status ? status : posenc_alibi_bias(&spec, &tile, bias, error);
}

static void assert_allocates_nothing(work *run) {
    posenc_error error;
    memory_begin(1, SHORTAGE_LASTING);
    posenc_status status = run(&error);
    memory_end();
    assert_done(status, &error);
    assert_int_equal(memory.calls, 0);
}

static void sinusoidal_tables_allocate_nothing(void **state) {
    (void)state;
    assert_allocates_nothing(sinusoidal);
}

static void alibi_allocates_nothing(void **state) {
    (void)state;
    assert_allocates_nothing(alibi);
}

static void rows_and_rotations_allocate_nothing(void **state) {
    (void)state;
    posenc_error error;
    posenc_frequencies *frequencies;
    assert_done(make_frequencies(&frequencies, &error), &error);
    memory_begin(1, SHORTAGE_LASTING);
    posenc_status status = rotate_two_tokens(frequencies, &error);
    memory_end();
    assert_done(status, &error);
    assert_int_equal(memory.calls, 0);
    posenc_frequencies_destroy(frequencies);
}

/* ---- Files ---- */

static const float old_numbers[2] = {1.0f, 2.0f}, new_numbers[3] = {3.0f, 4.0f, 5.0f};

static posenc_status write_numbers(const float *numbers, size_t count, posenc_error *error) {
    posenc_npy_info info = {.dtype = POSENC_F32, .rank = 1, .shape = {count}};
    posenc_npy_writer *writer = (posenc_npy_writer *)(void *)&info; /* not NULL */
    posenc_status status = posenc_npy_create(target, &info, &writer, error);
    if (status) {
        assert_null(writer);
        return status;
    }
    status = posenc_npy_write(writer, 0, count, numbers, error);
    if (status) {
        posenc_npy_discard(writer);
        return status;
    }
    return posenc_npy_commit(writer, error);
}

/* Reads up to 3 numbers; *count is how many there are. */
static posenc_status read_numbers(float *numbers, size_t *count, posenc_error *error) {
    posenc_npy_info info;
    posenc_npy_reader *reader = (posenc_npy_reader *)(void *)&info; /* not NULL */
    posenc_status status = posenc_npy_open(target, &reader, &info, error);
    if (status) {
        assert_null(reader);
        return status;
    }
    *count = (size_t)info.count;
    status = *count > 3 ? POSENC_FORMAT : posenc_npy_read(reader, 0, *count, numbers, error);
    posenc_npy_close(reader);
    return status;
}

static void assert_target_holds(const float *wanted, size_t count) {
    float numbers[3];
    size_t got;
    posenc_error error;
    assert_done(read_numbers(numbers, &got, &error), &error);
    assert_int_equal(got, count);
    assert_memory_equal(numbers, wanted, count * sizeof *wanted);
    assert_int_equal(names_in(folder), 1);
}

static void write_old_numbers(void) {
    posenc_error error;
    assert_done(write_numbers(old_numbers, 2, &error), &error);
}

static posenc_status write_new_file(posenc_error *error) {
    (void)unlink(target);
    return write_numbers(new_numbers, 3, error);
}

static void folder_is_empty(void) {
    assert_int_equal(names_in(folder), 0);
}

static void writing_a_new_file_survives_every_shortage_and_leaves_no_file(void **state) {
    (void)state;
    assert_survives(write_new_file, 1, folder_is_empty);
    assert_target_holds(new_numbers, 3);
}

static posenc_status replace_file(posenc_error *error) {
    return write_numbers(new_numbers, 3, error);
}

static void old_file_is_whole(void) {
    assert_target_holds(old_numbers, 2);
}

static void replacing_a_file_survives_every_shortage_and_keeps_the_old_one(void **state) {
    (void)state;
    for (shortage kind = SHORTAGE_ONCE; kind <= SHORTAGE_LASTING; kind++) {
        write_old_numbers();
        assert_true(run_short_at_every_allocation(replace_file, old_file_is_whole, kind) >= 1);
        assert_target_holds(new_numbers, 3);
    }
}

static posenc_status read_file(posenc_error *error) {
    float numbers[3];
    size_t count;
    return read_numbers(numbers, &count, error);
}

static void reading_survives_every_shortage(void **state) {
    (void)state;
    write_old_numbers();
    assert_survives(read_file, 1, old_file_is_whole);
}

/* ---- Detection of the pairing ---- */

static char weights[120];

/* A llama2.c model of one layer, 2 heads of 4. */
static void write_weights(void) {
    static const uint32_t sizes[7] = {8, 1, 1, 2, 2, 1, 1};
    float numbers[316];
    for (size_t i = 0; i < 316; i++)
        numbers[i] = (float)(i % 7 + 1);
    snprintf(weights, sizeof weights, "%s/weights.bin", folder);
    FILE *file = fopen(weights, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(sizes, sizeof *sizes, 7, file), 7);
    assert_int_equal(fwrite(numbers, sizeof *numbers, 316, file), 316);
    assert_int_equal(fclose(file), 0);
}

static posenc_status detect_pairing(posenc_error *error) {
    posenc_attention_shape shape = POSENC_ATTENTION_SHAPE_INIT;
    posenc_pair_powers *powers = (posenc_pair_powers *)(void *)&shape; /* not NULL */
    posenc_judgement judgement;
    shape.heads = 2;
    shape.head_dim = 4;
    posenc_status status = posenc_pair_powers_read(weights, &shape, NULL, &powers, error);
    if (status)
        assert_null(powers);
    else
        status = posenc_pair_powers_judge(powers, POSENC_ALL_LAYERS, &judgement, error);
    posenc_pair_powers_free(powers);
    return status;
}

static void detecting_survives_every_shortage(void **state) {
    (void)state;
    write_weights();
    assert_survives(detect_pairing, 12, nothing_to_look_at);
    assert_int_equal(unlink(weights), 0);
}

/* ---- Conversion of the pairing ---- */

static char plain[120], turned[120];

/* q of 2 heads, k of one, 8 wide, a bias and a gain: all of float32. */
static void write_plain(void) {
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"model.layers.0.self_attn.q_proj.weight\":{\"dtype\":\"F32\",\"shape\":[16,1],\"data_offsets\":[0,64]},"
        "\"model.layers.0.self_attn.k_proj.weight\":{\"dtype\":\"F32\",\"shape\":[8,1],\"data_offsets\":[64,96]},"
        "\"model.layers.0.self_attn.k_proj.bias\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[96,128]},"
        "\"model.layers.0.self_attn.q_norm.weight\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[128,160]}}";
    unsigned char length[8] = {(sizeof header - 1) & 255, (sizeof header - 1) >> 8};
    float numbers[40];
    for (size_t i = 0; i < 40; i++)
        numbers[i] = (float)i + 1.0f;
    snprintf(plain, sizeof plain, "%s/plain.safetensors", folder);
    snprintf(turned, sizeof turned, "%s/turned.safetensors", folder);
    FILE *file = fopen(plain, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(length, 1, 8, file), 8);
    assert_int_equal(fwrite(header, 1, sizeof header - 1, file), sizeof header - 1);
    assert_int_equal(fwrite(numbers, sizeof *numbers, 40, file), 40);
    assert_int_equal(fclose(file), 0);
}

static posenc_status convert_file(const char *in, const char *out, posenc_pairing to,
                                  posenc_error *error) {
    posenc_conversion_options options = POSENC_CONVERSION_OPTIONS_INIT;
    posenc_conversion *conversion = (posenc_conversion *)(void *)&options; /* not NULL */
    options.to = to;
    options.shape.heads = 2;
    options.shape.kv_heads = 1;
    options.shape.head_dim = 8;
    posenc_status status = posenc_conversion_create(in, &options, &conversion, error);
    if (status)
        assert_null(conversion);
    else
        status = posenc_conversion_write(conversion, out, NULL, error);
    posenc_conversion_free(conversion);
    return status;
}

static posenc_status convert_there(posenc_error *error) {
    (void)unlink(turned);
    return convert_file(plain, turned, POSENC_PAIRING_INTERLEAVED, error);
}

static posenc_status convert_back(posenc_error *error) {
    (void)unlink(target);
    return convert_file(turned, target, POSENC_PAIRING_HALF, error);
}

static posenc_status check_both(posenc_error *error) {
    posenc_check_summary summary;
    posenc_status status = posenc_checkpoints_compare(plain, turned, NULL, &summary, error);
    if (!status)
        assert_int_equal(summary.counts[POSENC_RELATION_PERMUTED], 4);
    return status;
}

static void only_plain_is_there(void) {
    assert_int_equal(names_in(folder), 1);
}

static void no_target_is_there(void) {
    assert_int_equal(names_in(folder), 2);
}

static void converting_survives_every_shortage_and_leaves_no_file(void **state) {
    (void)state;
    write_plain();
    (void)unlink(target);
    assert_survives(convert_there, 20, only_plain_is_there);
    assert_survives(convert_back, 20, no_target_is_there);
    assert_survives(check_both, 20, nothing_to_look_at);
    assert_int_equal(unlink(plain), 0);
    assert_int_equal(unlink(turned), 0);
}

/* The same in a folder: two shards, an index, a file beside them. */
static char shards[120], converted[120];

static void write_beside(const char *name, const char *bytes, size_t count) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", shards, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void write_shards(void) {
    static const char config[] = "{\"model_type\":\"llama\",\"hidden_size\":16}";
    static const char index[] = "{\"weight_map\":{\"norm.weight\":\"b.safetensors\","
                                "\"model.layers.0.self_attn.q_proj.weight\":\"a.safetensors\","
                                "\"model.layers.0.self_attn.k_proj.weight\":\"a.safetensors\","
                                "\"model.layers.0.self_attn.k_proj.bias\":\"a.safetensors\","
                                "\"model.layers.0.self_attn.q_norm.weight\":\"a.safetensors\"}}";
    static const char shard[] =
        "\x40\0\0\0\0\0\0\0{\"norm.weight\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}12345678";
    char path[200];
    snprintf(shards, sizeof shards, "%s/shards", folder);
    snprintf(converted, sizeof converted, "%s/converted", folder);
    snprintf(path, sizeof path, "%s/a.safetensors", shards);
    assert_true(mkdir(shards, 0755) == 0 && rename(plain, path) == 0);
    write_beside("b.safetensors", shard, sizeof shard - 1);
    write_beside("model.safetensors.index.json", index, sizeof index - 1);
    write_beside("config.json", config, sizeof config - 1);
    write_beside("tokenizer.json", "{}", 2);
}

/* Removes the checkpoint's files, and the folder unless there is anything else in it. */
static void remove_checkpoint(const char *from) {
    static const char *const names[] = {"a.safetensors", "b.safetensors", "config.json",
                                        "tokenizer.json", "model.safetensors.index.json"};
    char path[200];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", from, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(from);
}

static void no_other_file_is_there(void) {
    remove_checkpoint(converted);
    assert_int_equal(names_in(folder), 1);
}

static posenc_status convert_folder(posenc_error *error) {
    posenc_conversion_outcome outcome = {0};
    posenc_conversion_write_options write = POSENC_CONVERSION_WRITE_OPTIONS_INIT;
    posenc_conversion_options options = POSENC_CONVERSION_OPTIONS_INIT;
    posenc_conversion *conversion;
    options.to = POSENC_PAIRING_INTERLEAVED;
    options.force = 1;
    options.shape.heads = 2;
    options.shape.kv_heads = 1;
    options.shape.head_dim = 8;
    write.outcome = &outcome;
    posenc_status status = posenc_conversion_create(shards, &options, &conversion, error);
    if (!status)
        status = posenc_conversion_write(conversion, converted, &write, error);
    assert_int_equal(outcome.complete, status == POSENC_OK);
    posenc_conversion_free(conversion);
    return status;
}

static void converting_a_folder_survives_every_shortage_and_leaves_no_temporary_file(void **state) {
    (void)state;
    (void)unlink(target);
    write_plain();
    write_shards();
    assert_survives(convert_folder, 40, no_other_file_is_there);
    assert_int_equal(names_in(converted), 5);
    remove_checkpoint(converted);
    remove_checkpoint(shards);
    assert_int_equal(names_in(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rope_survives_every_shortage),
        cmocka_unit_test(models_survive_every_shortage),
        cmocka_unit_test(facts_survive_every_shortage),
        cmocka_unit_test(sinusoidal_tables_allocate_nothing),
        cmocka_unit_test(alibi_allocates_nothing),
        cmocka_unit_test(rows_and_rotations_allocate_nothing),
        cmocka_unit_test(writing_a_new_file_survives_every_shortage_and_leaves_no_file),
        cmocka_unit_test(replacing_a_file_survives_every_shortage_and_keeps_the_old_one),
        cmocka_unit_test(reading_survives_every_shortage),
        cmocka_unit_test(detecting_survives_every_shortage),
        cmocka_unit_test(converting_survives_every_shortage_and_leaves_no_file),
        cmocka_unit_test(converting_a_folder_survives_every_shortage_and_leaves_no_temporary_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
