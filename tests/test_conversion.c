/* Conversion of the pairing by the C functions: which rows move, what the record does to every header, what is refused.
 * test_convert.py tests the same through the program, against NumPy. SPDX-License-Identifier: MIT */
#include "posenc/convert.h"

#include "gguf_cases.h"
#include "safetensors_cases.h"

static const char plain[] = "plain", turned[] = "turned", back[] = "back";

/* ---- Files ---- */

enum { HEADS = 4, KV = 2, DIM = 8, WIDTH = 3 };

/* A tensor of 16-bit numbers: rows of `columns`, 0: a vector. */
typedef struct part {
    const char *name;
    size_t rows, columns;
} part;

static size_t part_bytes(const part *p) {
    return 2 * p->rows * (p->columns ? p->columns : 1);
}

static void add_header(image *header, const char *text) {
    add_bytes(header, text, strlen(text));
}

/* The numbers 0, 1, 2 ... through all tensors. */
static void add_data(image *f, const part *parts, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += part_bytes(&parts[i]);
    for (size_t i = 0; i < bytes / 2; i++)
        add_number(f, i, 2);
}

/* `head` comes first in the header: "{" or "{\"__metadata__\":{},". */
static void write_parts(const char *path, const char *head, const part *parts, size_t count) {
    image f = {NULL, 0, 0, 0}, header = {NULL, 0, 0, 0};
    size_t at = 0;
    add_header(&header, head);
    for (size_t i = 0; i < count; i++) {
        char text[300], shape[40];
        snprintf(shape, sizeof shape, parts[i].columns ? "%zu,%zu" : "%zu", parts[i].rows,
                 parts[i].columns);
        snprintf(text, sizeof text,
                 "%s\"%s\":{\"dtype\":\"U16\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                 i ? "," : "", parts[i].name, shape, at, at + part_bytes(&parts[i]));
        add_header(&header, text);
        at += part_bytes(&parts[i]);
    }
    add_header(&header, "}");
    add_number(&f, header.size, 8);
    add_bytes(&f, header.bytes, header.size);
    add_data(&f, parts, count);
    write_file(path, f.bytes, f.size);
    image_free(&f);
    image_free(&header);
}

static image read_file(const char *path) {
    image f = {NULL, 0, 0, 0};
    char bytes[4096];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, file)) > 0;)
        add_bytes(&f, bytes, got);
    fclose(file);
    return f;
}

static void assert_same_files(const char *a, const char *b) {
    image one = read_file(a), other = read_file(b);
    assert_int_equal(one.size, other.size);
    assert_memory_equal(one.bytes, other.bytes, one.size);
    image_free(&one);
    image_free(&other);
}

/* ---- Converting ---- */

static posenc_conversion_options options_to(posenc_pairing to) {
    posenc_conversion_options options = POSENC_CONVERSION_OPTIONS_INIT;
    options.to = to;
    options.shape.heads = HEADS;
    options.shape.kv_heads = KV;
    options.shape.head_dim = DIM;
    return options;
}

static void convert(const char *in, const char *out, const posenc_conversion_options *options) {
    posenc_error error;
    posenc_conversion *conversion;
    assert_done(posenc_conversion_create(in, options, &conversion, &error), &error);
    assert_done(posenc_conversion_write(conversion, out, NULL, &error), &error);
    posenc_conversion_free(conversion);
}

static posenc_pairing other(posenc_pairing pairing) {
    return pairing == POSENC_PAIRING_HALF ? POSENC_PAIRING_INTERLEAVED : POSENC_PAIRING_HALF;
}

/* There, and back to the same bytes. */
static void convert_both_ways(const posenc_conversion_options *options) {
    posenc_conversion_options inverse = *options;
    inverse.to = other(options->to);
    convert(plain, turned, options);
    convert(turned, back, &inverse);
    assert_same_files(plain, back);
}

static void assert_not_converted(const char *in, const posenc_conversion_options *options,
                                 posenc_status status, const char *argument, const char *must) {
    posenc_error error;
    posenc_conversion *conversion = (posenc_conversion *)(void *)&error; /* not NULL */
    refusal wanted = {status, argument, must, NULL, NULL, -1};
    assert_refusal(posenc_conversion_create(in, options, &conversion, &error), &error, &wanted,
                   argument);
    assert_null(conversion);
}

/* ---- Which rows move ---- */

/* Where the row of a head comes from: rotary rows are `first` ... of every `stride` of them. */
typedef struct heads_of {
    size_t begin, end;    /* of the tensor's rows */
    size_t first, stride; /* within them */
} heads_of;

static size_t source_of(size_t row, const heads_of *heads, size_t count, size_t rotary,
                        posenc_pairing to) {
    for (size_t i = 0; i < count; i++) {
        if (row < heads[i].begin || row >= heads[i].end)
            continue;
        size_t head = (row - heads[i].begin) / heads[i].stride * heads[i].stride + heads[i].begin;
        size_t start = head + heads[i].first;
        if (row < start || row >= start + rotary)
            return row;
        size_t j = row - start, half = rotary / 2;
        if (to == POSENC_PAIRING_INTERLEAVED) /* the pair's first channel, or its second */
            return start + (j % 2 == 0 ? j / 2 : half + j / 2);
        return start + (j < half ? 2 * j : 2 * (j - half) + 1);
    }
    return row;
}

/* Compares one tensor of the turned file, `before` numbers behind the first one. */
static void assert_rows(const part *p, size_t before, const heads_of *heads, size_t count,
                        size_t rotary, posenc_pairing to) {
    image f = read_file(turned);
    size_t header = 0, columns = p->columns ? p->columns : 1;
    for (size_t i = 0; i < 8; i++)
        header |= (size_t)f.bytes[i] << 8 * i;
    const unsigned char *data = f.bytes + 8 + header + 2 * before;
    for (size_t row = 0; row < p->rows; row++) {
        size_t source = source_of(row, heads, count, rotary, to);
        for (size_t i = 0; i < columns; i++) {
            const unsigned char *at = data + 2 * (row * columns + i);
            assert_int_equal(at[0] | at[1] << 8, before + source * columns + i);
        }
    }
    image_free(&f);
}

static void test_rows_biases_and_gains(void **state) {
    (void)state;
    static const part parts[] = {
        {"model.layers.3.self_attn.q_proj.weight", HEADS * DIM, WIDTH},
        {"model.layers.3.self_attn.k_proj.weight", KV * DIM, WIDTH},
        {"model.layers.3.self_attn.v_proj.weight", KV * DIM, WIDTH},
        {"model.layers.3.self_attn.q_proj.bias", HEADS * DIM, 0},
        {"model.layers.3.self_attn.k_norm.weight", DIM, 0},
        {"model.layers.3.mlp.up_proj.weight", HEADS * DIM, WIDTH},
        {"model.layers.3.self_attn.q_proj.lora_B.weight", HEADS * DIM, 2},
        {"model.layers.3.self_attn.k_proj.lora_A.weight", 2, WIDTH},
        {"model.layers.3.self_attn.k_proj.weight_scale", KV * DIM, 1},
    };
    static const int moves[] = {1, 1, 0, 1, 1, 0, 1, 0, 1};
    static const size_t rotaries[][2] = {{8, 0}, {6, 0}, {4, 4}, {4, 2}};
    enum { COUNT = sizeof parts / sizeof *parts };
    write_parts(plain, "{", parts, COUNT);
    for (size_t i = 0; i < 2 * sizeof rotaries / sizeof *rotaries; i++) {
        posenc_conversion_options options = options_to((posenc_pairing)(i % 2));
        options.shape.rotary_dim = rotaries[i / 2][0];
        options.shape.rotary_start = rotaries[i / 2][1];
        convert_both_ways(&options);
        size_t before = 0;
        for (size_t k = 0; k < COUNT; k++) {
            heads_of heads = {0, moves[k] ? parts[k].rows : 0, options.shape.rotary_start, DIM};
            assert_rows(&parts[k], before, &heads, 1, options.shape.rotary_dim, options.to);
            before += part_bytes(&parts[k]) / 2;
        }
    }
}

/* MLX stores LoRA's B the other way round: its columns are the projection's rows. */
static void test_columns(void **state) {
    (void)state;
    static const part columns = {"model.layers.0.self_attn.q_proj.lora_b", 3, HEADS * DIM};
    static const part numbers = {"", 3 * HEADS * DIM, 0};
    static const heads_of heads = {0, 3 * HEADS * DIM, 0, DIM};
    for (int to = 0; to < 2; to++) {
        posenc_conversion_options options = options_to((posenc_pairing)to);
        write_parts(plain, "{", &columns, 1);
        convert_both_ways(&options);
        assert_rows(&numbers, 0, &heads, 1, DIM, options.to);
    }
}

static void test_fused_rows(void **state) {
    (void)state;
    enum { ALL = (HEADS + 2 * KV) * DIM, GROUP = (HEADS / KV + 2) * DIM };
    static const part joined = {"h.0.self_attn.qkv_proj.weight", ALL, WIDTH};
    static const part grouped = {"h.0.attention.query_key_value.weight", ALL, WIDTH};
    static const heads_of of_joined[] = {{0, (HEADS + KV) * DIM, 0, DIM}};
    static const heads_of of_grouped[] = {{0, GROUP - DIM, 0, DIM},
                                          {GROUP, 2 * GROUP - DIM, 0, DIM}};
    for (int to = 0; to < 2; to++) {
        posenc_conversion_options options = options_to((posenc_pairing)to);
        write_parts(plain, "{", &joined, 1);
        convert_both_ways(&options);
        assert_rows(&joined, 0, of_joined, 1, DIM, options.to);
        write_parts(plain, "{", &grouped, 1);
        convert_both_ways(&options);
        assert_rows(&grouped, 0, of_grouped, 2, DIM, options.to);
    }
}

static const part pair[] = {{"layers.0.attention.wq.weight", HEADS *DIM, WIDTH},
                            {"layers.0.attention.wk.weight", KV *DIM, WIDTH}};

static void test_facts_and_moves(void **state) {
    (void)state;
    posenc_conversion_options options = options_to(POSENC_PAIRING_INTERLEAVED);
    posenc_conversion *conversion;
    posenc_conversion_move move;
    posenc_error error;
    options.shape.rotary_dim = 6;
    write_parts(plain, "{", pair, 2);
    assert_done(posenc_conversion_create(plain, &options, &conversion, &error), &error);
    const posenc_conversion_facts *facts = posenc_conversion_about(conversion);
    assert_int_equal(facts->from, POSENC_PAIRING_HALF);
    assert_int_equal(facts->to, POSENC_PAIRING_INTERLEAVED);
    assert_string_equal(facts->format, "safetensors");
    assert_int_equal(facts->recorded, POSENC_DETECTED_UNDETERMINED);
    assert_int_equal(facts->records, 1);
    assert_int_equal(facts->changed_files, 1);
    assert_int_equal(facts->moved_tensors, 2);
    assert_int_equal(facts->moved_bytes, 2 * WIDTH * (HEADS + KV) * DIM);
    assert_done(posenc_conversion_move_at(conversion, 1, &move, &error), &error);
    assert_string_equal(move.tensor, pair[1].name);
    assert_string_equal(move.what, "weights");
    assert_string_equal(move.side, "k");
    assert_int_equal(move.rows, KV * DIM);
    assert_int_equal(move.moving, KV * 4); /* of 6 rotary rows the first and the last stay */
    assert_int_equal(move.heads, KV);
    assert_int_equal(move.rotary_dim, 6);
    assert_int_equal(posenc_conversion_move_at(conversion, 2, &move, &error), POSENC_OUT_OF_RANGE);
    assert_null(
        posenc_conversion_remark_at(conversion, posenc_conversion_remark_count(conversion)));
    posenc_conversion_free(conversion);
    posenc_conversion_free(NULL);
}

/* ---- Headers ---- */

static void test_every_header_comes_back(void **state) {
    (void)state;
    static const char *const heads[] = {
        "{",
        "{ ",
        "{\"__metadata__\":null,",
        "{\"__metadata__\": null ,",
        "{\"__metadata__\":{},",
        "{\"__metadata__\":{ },",
        "{\"__metadata__\": {  } ,",
        "{\"__metadata__\":{\"a\":\"b\"},",
        "{\"__metadata__\":{ \"a\":\"b\"},",
        "{\"__metadata__\":{  \"a\" : \"b\" } ,",
        "{\"__metadata__\":{\"a\":\"b\",\"posenc\":\"c\"},",
    };
    posenc_conversion_options options = options_to(POSENC_PAIRING_HALF);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        for (size_t rotary = 4; rotary <= 8; rotary += 2) {
            options.shape.rotary_dim = rotary;
            write_parts(plain, heads[i], pair, 2);
            convert_both_ways(&options);
            image f = read_file(turned), old = read_file(plain);
            assert_int_equal((f.size - old.size) % 4096, 0);
            image_free(&f);
            image_free(&old);
        }
    }
}

/* A GGUF of one layer, its data at an odd number of alignments, bytes behind them. */
static void write_gguf(uint32_t version, int big, uint64_t alignment) {
    gguf_image g = gguf_begin(version, big, 2, alignment ? 5 : 4);
    uint64_t shape[2] = {WIDTH, HEADS * DIM}, fill = alignment ? alignment : 32;
    uint64_t bytes = 2 * WIDTH * HEADS * DIM, offset = (bytes + fill - 1) / fill * fill;
    add_key_text(&g, "general.architecture", "qwen2");
    if (alignment)
        add_key_number(&g, "general.alignment", T_U32, alignment, 4);
    add_key_number(&g, "qwen2.embedding_length", T_U32, HEADS * DIM, 4);
    add_key_number(&g, "qwen2.attention.head_count", T_U32, HEADS, 4);
    add_key_number(&g, "qwen2.attention.head_count_kv", T_U32, KV, 4);
    add_tensor(&g, "blk.0.attn_q.weight", 2, shape, 1, 0);
    shape[1] = KV * DIM;
    add_tensor(&g, "blk.0.attn_k.weight", 2, shape, 1, offset);
    pad_to(&g, (size_t)fill);
    add_data(&g.f, &pair[0], 1);
    pad_to(&g, (size_t)fill);
    add_data(&g.f, &pair[1], 1);
    add_bytes(&g.f, "tail", 4);
    gguf_end(&g, plain);
}

static void test_every_gguf_comes_back(void **state) {
    (void)state;
    static const uint64_t alignments[] = {0, 1, 2, 32, 8192};
    posenc_conversion_options options = POSENC_CONVERSION_OPTIONS_INIT;
    options.to = POSENC_PAIRING_INTERLEAVED;
    for (size_t i = 0; i < 6 * sizeof alignments / sizeof *alignments; i++) {
        uint64_t alignment = alignments[i / 6];
        write_gguf((uint32_t)(1 + i % 3), i / 3 % 2, alignment);
        options.force = 0;
        assert_not_converted(plain, &options, POSENC_UNSUPPORTED, "architecture", "new pairing");
        options.force = 1;
        convert_both_ways(&options);
        image f = read_file(turned), old = read_file(plain);
        assert_int_equal(f.size - old.size, alignment > 4096 ? alignment : 4096);
        image_free(&f);
        image_free(&old);
    }
}

/* ---- Records and refusals ---- */

static void test_records(void **state) {
    (void)state;
    posenc_conversion_options options = options_to(POSENC_PAIRING_HALF), own;
    write_parts(plain, "{", pair, 2);
    convert(plain, turned, &options);
    assert_not_converted(turned, &options, POSENC_OUT_OF_RANGE, "to", "other pairing");
    options.to = POSENC_PAIRING_INTERLEAVED;
    options.from = POSENC_DETECTED_INTERLEAVED;
    assert_not_converted(turned, &options, POSENC_OUT_OF_RANGE, "from", "another pairing");
    options.from = POSENC_DETECTED_UNDETERMINED;
    own = options;
    own.shape.heads = 2;
    assert_not_converted(turned, &own, POSENC_OUT_OF_RANGE, "heads", "checkpoint says");
    own = options;
    own.shape.rotary_dim = 4;
    assert_not_converted(turned, &own, POSENC_OUT_OF_RANGE, "rotary_dim", "checkpoint says");
    own.shape = (posenc_attention_shape)POSENC_ATTENTION_SHAPE_INIT; /* the record knows */
    convert(turned, back, &own);
    assert_same_files(plain, back);
    write_parts(plain, "{\"__metadata__\":{\"posenc.pairing\":\"half or so\"},", pair, 2);
    assert_not_converted(plain, &options, POSENC_FORMAT, "record", "posenc wrote");
}

static void test_refused(void **state) {
    (void)state;
    static const part odd[][3] = {
        {{"layers.0.attention.wq.qweight", 4, 4}},
        {{"layers.0.attention.wq.weight.absmax", 4, 0}},
        {{"layers.0.attention.wq.codes", 4, 0}},
        {{"layers.0.attention.wq.k_scale", 2, 0}},
        {{"layers.0.attention.wq.weight_scale_inv", 5, 2}},
        {{"layers.0.attention.wq.bias", 5, 0}},
        {{"layers.0.attention.q_norm.weight", 5, 0}},
        {{"layers.0.attention.wq.scales", 5, 2}},
        {{"layers.0.attention.wq.lora_B.weight", 5, 2}},
        {{"layers.0.attention.wq.lora_b", 2, 5}},
    };
    static const struct {
        posenc_status status;
        const char *argument, *must;
    } wanted[] = {
        {POSENC_UNSUPPORTED, "tensor", "GPTQ"},
        {POSENC_UNSUPPORTED, "tensor", "bitsandbytes"},
        {POSENC_UNSUPPORTED, "tensor", "known here"},
        {POSENC_OUT_OF_RANGE, "elements", "be one"},
        {POSENC_OUT_OF_RANGE, "scales", "one row"},
        {POSENC_OUT_OF_RANGE, "elements", "as many"},
        {POSENC_OUT_OF_RANGE, "elements", "head_dim"},
        {POSENC_OUT_OF_RANGE, "rows", "as many"},
        {POSENC_OUT_OF_RANGE, "rows", "as many"},
        {POSENC_OUT_OF_RANGE, "rows", "as many"},
    };
    posenc_conversion_options options = options_to(POSENC_PAIRING_HALF);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        part parts[3] = {pair[0], pair[1], odd[i][0]};
        write_parts(plain, "{", parts, 3);
        assert_not_converted(plain, &options, wanted[i].status, wanted[i].argument, wanted[i].must);
    }
    write_parts(plain, "{", pair, 1);
    assert_not_converted(plain, &options, POSENC_FORMAT, "tensor", "counterpart");
    write_parts(plain, "{", pair, 2);
    options.from = POSENC_DETECTED_HALF;
    assert_not_converted(plain, &options, POSENC_OUT_OF_RANGE, "from", "another");
    options = options_to(POSENC_PAIRING_HALF);
    options.shape.rotary_dim = 5;
    assert_not_converted(plain, &options, POSENC_OUT_OF_RANGE, "rotary_dim", "even");
    options.shape.rotary_dim = 2;
    assert_not_converted(plain, &options, POSENC_UNSUPPORTED, "tensors", "change their place");
    options.shape.rotary_dim = 0;
    options.shape.kv_heads = 4;
    assert_not_converted(plain, &options, POSENC_OUT_OF_RANGE, "rows", "heads");
    options.shape.heads = options.shape.kv_heads = 2; /* q would have a gate beside every head */
    assert_not_converted(plain, &options, POSENC_OUT_OF_RANGE, "rows", "gate");
    options = options_to((posenc_pairing)2);
    assert_not_converted(plain, &options, POSENC_OUT_OF_RANGE, "to", "half or interleaved");
    options = options_to(POSENC_PAIRING_HALF);
    options.from = (posenc_detected)3;
    assert_not_converted(plain, &options, POSENC_OUT_OF_RANGE, "from", "or 0");
    options.size = 8;
    assert_not_converted(plain, &options, POSENC_OUT_OF_RANGE, "options", "_INIT");
    options = options_to(POSENC_PAIRING_HALF);
    assert_not_converted(NULL, &options, POSENC_NULL_POINTER, "path", NULL);
    assert_not_converted(plain, NULL, POSENC_NULL_POINTER, "options", NULL);
}

static void test_null_pointers(void **state) {
    (void)state;
    posenc_conversion_options options = options_to(POSENC_PAIRING_HALF);
    posenc_check_summary summary;
    posenc_conversion *conversion;
    posenc_error error;
    write_parts(plain, "{", pair, 2);
    assert_int_equal(posenc_conversion_create(plain, &options, NULL, &error), POSENC_NULL_POINTER);
    assert_int_equal(posenc_conversion_write(NULL, turned, NULL, &error), POSENC_NULL_POINTER);
    assert_int_equal(posenc_checkpoints_compare(NULL, plain, NULL, &summary, &error),
                     POSENC_NULL_POINTER);
    assert_int_equal(posenc_checkpoints_compare(plain, NULL, NULL, &summary, &error),
                     POSENC_NULL_POINTER);
    assert_int_equal(posenc_checkpoints_compare(plain, plain, NULL, NULL, &error),
                     POSENC_NULL_POINTER);
    assert_done(posenc_conversion_create(plain, &options, &conversion, &error), &error);
    assert_int_equal(posenc_conversion_write(conversion, NULL, NULL, &error), POSENC_NULL_POINTER);
    assert_int_equal(posenc_conversion_move_at(conversion, 0, NULL, &error), POSENC_NULL_POINTER);
    posenc_conversion_free(conversion);
}

/* Scales of blocks of 8 rows: heads of 8 lie in one each, heads of 6 do not. */
static void test_scales_of_blocks(void **state) {
    (void)state;
    static const part whole[] = {{"layers.0.attention.wq.weight", HEADS * DIM, WIDTH},
                                 {"layers.0.attention.wk.weight", KV * DIM, WIDTH},
                                 {"layers.0.attention.wq.weight_scale_inv", HEADS, 1}};
    static const part cut[] = {{"layers.0.attention.wq.weight", 24, WIDTH},
                               {"layers.0.attention.wk.weight", 12, WIDTH},
                               {"layers.0.attention.wq.weight_scale_inv", 3, 1}};
    posenc_conversion_options options = options_to(POSENC_PAIRING_HALF);
    heads_of stays = {0, 0, 0, DIM};
    write_parts(plain, "{", whole, 3);
    convert_both_ways(&options);
    assert_rows(&whole[2], (HEADS + KV) * DIM * WIDTH, &stays, 1, DIM, options.to);
    options.shape.head_dim = 6;
    write_parts(plain, "{", cut, 3);
    assert_not_converted(plain, &options, POSENC_OUT_OF_RANGE, "row", "block");
}

/* ---- Two checkpoints ---- */

typedef struct seen {
    posenc_tensor_match last;
    size_t count;
} seen;

static void see(void *context, const posenc_tensor_match *match) {
    seen *all = context;
    all->last = *match;
    all->count++;
}

static void test_checkpoints_compared(void **state) {
    (void)state;
    posenc_check_options check = POSENC_CHECK_OPTIONS_INIT;
    posenc_check_summary summary;
    posenc_error error;
    seen all = {.count = 0};
    check.report = see;
    check.context = &all;
    write_parts(plain, "{", pair, 2);
    for (int to = 0; to < 2; to++) {
        posenc_conversion_options options = options_to((posenc_pairing)to);
        options.shape.rotary_dim = 6;
        options.shape.rotary_start = 2;
        convert(plain, turned, &options);
        assert_done(posenc_checkpoints_compare(plain, turned, &check, &summary, &error), &error);
        assert_int_equal(summary.counts[POSENC_RELATION_PERMUTED], 2);
        assert_int_equal(summary.to, to ? POSENC_DETECTED_INTERLEAVED : POSENC_DETECTED_HALF);
        assert_int_equal(summary.from, to ? POSENC_DETECTED_HALF : POSENC_DETECTED_INTERLEAVED);
        assert_int_equal(all.last.heads, KV);
        assert_int_equal(all.last.rotary_dim, 6);
        assert_int_equal(all.last.first, 2);
        assert_int_equal(all.last.stride, DIM);
        assert_int_equal(all.last.moved, KV * 4);
    }
    assert_done(posenc_checkpoints_compare(plain, plain, NULL, &summary, &error), &error);
    assert_int_equal(summary.counts[POSENC_RELATION_IDENTICAL], 2);
    write_parts(turned, "{", pair, 1);
    assert_done(posenc_checkpoints_compare(plain, turned, NULL, &summary, &error), &error);
    assert_int_equal(summary.counts[POSENC_RELATION_ONLY_A], 1);
    assert_done(posenc_checkpoints_compare(turned, plain, NULL, &summary, &error), &error);
    assert_int_equal(summary.counts[POSENC_RELATION_ONLY_B], 1);
    assert_string_equal(posenc_relation_name(POSENC_RELATION_ONLY_B), "only in B");
    assert_null(posenc_relation_name((posenc_relation)5));
    assert_int_equal(all.count, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_rows_biases_and_gains),
        TEST(test_columns),
        TEST(test_fused_rows),
        TEST(test_facts_and_moves),
        TEST(test_every_header_comes_back),
        TEST(test_every_gguf_comes_back),
        TEST(test_records),
        TEST(test_refused),
        TEST(test_scales_of_blocks),
        TEST(test_checkpoints_compared),
        TEST(test_null_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
