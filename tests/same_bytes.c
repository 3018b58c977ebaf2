/* Prints hashes of what the library computes, one a line: every scaling, mode, dtype, rotations, sinusoids and
 * biases. The lines must be the same for every compiler, optimisation level, CPU level and machine. The CPU level
 * that ran goes to stderr.
 * SPDX-License-Identifier: MIT */
#include "posenc/posenc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 96, PAIRS = DIM / 2, TOKENS = 160, HEADS = 3 };

static uint64_t hash_of(const void *bytes, size_t count) { /* FNV-1a */
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void print_hash(const char *what, const char *detail, const void *bytes, size_t count) {
    printf("%s %s %016" PRIx64 "\n", what, detail, hash_of(bytes, count));
}

static void must(posenc_status status, const posenc_error *error) {
    char text[256];
    if (!status)
        return;
    posenc_error_text(error, text, sizeof text);
    fprintf(stderr, "same_bytes: %s\n", text);
    exit(1);
}

/* Some of everything: runs, scattered and negative positions, up to 2^40. */
static void make_positions(int64_t positions[TOKENS]) {
    uint64_t state = 1;
    for (int i = 0; i < TOKENS; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        int64_t far = (int64_t)(state >> (24 + i % 30));
        positions[i] = i < 100 ? 99950 + i : i % 2 ? -far : far;
    }
}

/* A scaling of each type, with parameters that let it do something. */
static posenc_scaling scaling_of(posenc_scaling_type type) {
    static double lists[2][PAIRS];
    for (int j = 0; j < PAIRS; j++) {
        lists[0][j] = 1.0 + 0.01 * j;
        lists[1][j] = 1.5 + 0.7 * j;
    }
    posenc_scaling s = POSENC_SCALING_INIT;
    s.type = type;
    s.factor = 8.0;
    s.original_max_positions = 4096;
    s.low_freq_factor = 1.0;
    s.high_freq_factor = 4.0;
    s.short_factors = lists[0];
    s.long_factors = lists[1];
    s.factor_count = PAIRS;
    s.partial = 0.25;
    s.inv_freq = lists[0];
    s.inv_freq_dtype = POSENC_F64;
    s.inv_freq_count = PAIRS;
    return s;
}

static void rotate_by(const posenc_frequencies *f, const posenc_rows *rows, const char *detail) {
    float x[TOKENS * HEADS * DIM], y[TOKENS * HEADS * DIM];
    posenc_rotation rotation;
    posenc_error error;
    for (int i = 0; i < TOKENS * HEADS * DIM; i++)
        x[i] = (float)((i * 7919) % 2003 - 1001) / 512.0f;
    must(posenc_rotation_of(f, rows, TOKENS, &rotation, &error), &error);
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, TOKENS, HEADS, DIM);
    must(posenc_rotate(&rotation, &tensor, x, y, NULL, &error), &error);
    print_hash("rotated", detail, y, sizeof y);
}

static void print_rows(const posenc_frequencies *f, const char *name) {
    static const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};
    int64_t positions[TOKENS];
    double cos[TOKENS * PAIRS], sin[TOKENS * PAIRS];
    make_positions(positions);
    for (int mode = POSENC_MODE_EXACT; mode <= POSENC_MODE_FLOAT32; mode++) {
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
            char detail[64];
            posenc_rows rows = POSENC_ROWS_INIT;
            posenc_error error;
            if (mode == POSENC_MODE_FLOAT32 && dtypes[k] == POSENC_F64)
                continue;
            rows.cos = cos;
            rows.sin = sin;
            rows.dtype = dtypes[k];
            rows.mode = (posenc_mode)mode;
            must(posenc_angles(f, positions, TOKENS, &rows, &error), &error);
            size_t bytes = TOKENS * PAIRS * posenc_dtype_bytes(dtypes[k]);
            snprintf(detail, sizeof detail, "%s %s %s", name, posenc_mode_name(rows.mode),
                     posenc_dtype_name(dtypes[k]));
            print_hash("cos", detail, cos, bytes);
            print_hash("sin", detail, sin, bytes);
            if (dtypes[k] == POSENC_F32)
                rotate_by(f, &rows, detail);
        }
    }
}

static void print_scalings(void) {
    for (int type = POSENC_SCALING_DEFAULT; type <= POSENC_SCALING_CUSTOM; type++) {
        posenc_scaling scaling = scaling_of((posenc_scaling_type)type);
        posenc_spec spec = POSENC_SPEC_INIT;
        posenc_frequencies *f;
        posenc_error error;
        spec.head_dim = DIM;
        spec.base = 500000.0;
        spec.max_positions = 32768;
        spec.scaling = &scaling;
        must(posenc_frequencies_create(&spec, 20000, &f, NULL, &error), &error);
        print_rows(f, posenc_scaling_name(scaling.type));
        posenc_frequencies_destroy(f);
    }
}

static void print_tables(void) {
    static const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16};
    double table[50 * DIM];
    posenc_sinusoidal_spec spec = POSENC_SINUSOIDAL_INIT;
    posenc_alibi_spec alibi = POSENC_ALIBI_INIT;
    posenc_bias_tile tile = POSENC_BIAS_TILE_INIT;
    posenc_error error;
    spec.dim = DIM;
    spec.start = 0.375;
    alibi.heads = 12;
    tile.queries = 9;
    tile.keys = 40;
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        const char *name = posenc_dtype_name(dtypes[k]);
        size_t bytes = posenc_dtype_bytes(dtypes[k]);
        must(posenc_sinusoidal(&spec, NULL, 50, dtypes[k], 0, table, &error), &error);
        print_hash("sinusoidal", name, table, 50 * DIM * bytes);
        tile.dtype = dtypes[k];
        must(posenc_alibi_bias(&alibi, &tile, table, &error), &error);
        print_hash("alibi", name, table, 12 * 9 * 40 * bytes);
    }
}

/* --- Rotations of every dtype and pairing ------------------------------------------------------------- */

enum { ROTATED_TOKENS = 20, ROTATED_HEADS = 9, NUMBERS = ROTATED_TOKENS * ROTATED_HEADS * DIM };

/* Patterns of finite numbers, some denormal, none so large that a rotation overflows: NaN's bits are free. */
static void make_numbers(posenc_dtype dtype, unsigned char *to) {
    static const struct {
        int fraction, exponent; /* bits; an exponent's middle */
        size_t bytes;
    } formats[] = {[POSENC_F32] = {23, 127, 4},
                   [POSENC_F64] = {52, 1023, 8},
                   [POSENC_F16] = {10, 15, 2},
                   [POSENC_BF16] = {7, 127, 2}};
    uint64_t state = 1;
    for (int i = 0; i < NUMBERS; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t mixed = state ^ state >> 31, sign = mixed >> 63;
        int fraction = formats[dtype].fraction, spread = (int)(mixed >> 56) % 12;
        uint64_t exponent = (uint64_t)(i % 7 ? formats[dtype].exponent - 8 + spread : spread / 4);
        uint64_t bits = (mixed & ((UINT64_C(1) << fraction) - 1)) | exponent << fraction |
                        sign << (8 * formats[dtype].bytes - 1);
        for (size_t k = 0; k < formats[dtype].bytes; k++)
            to[(size_t)i * formats[dtype].bytes + k] = (unsigned char)(bits >> 8 * k);
    }
}

/* From dtype to dtype, from order to order, in all three directions. */
static void print_rotation(const posenc_rotation *rotation, posenc_dtype from, posenc_dtype to,
                           posenc_output_pairing out, size_t width) {
    static double x[NUMBERS], y[NUMBERS];
    static const char *const orders[] = {"same", "half", "interleaved"};
    posenc_tensor tensor = posenc_tensor_dense(from, 1, ROTATED_TOKENS, ROTATED_HEADS, width);
    posenc_tensor output = posenc_tensor_dense(to, 1, ROTATED_TOKENS, ROTATED_HEADS, width);
    posenc_rotate_options options = POSENC_ROTATE_OPTIONS_INIT;
    posenc_error error;
    options.output = &output;
    options.output_pairing = out;
    make_numbers(from, (unsigned char *)x);
    for (int direction = POSENC_FORWARD; direction <= POSENC_BACKWARD; direction++) {
        char detail[96];
        options.direction = (posenc_direction)direction;
        must(posenc_rotate(rotation, &tensor, x, y, &options, &error), &error);
        snprintf(detail, sizeof detail, "%s %s %s %s %zu %d", posenc_dtype_name(from),
                 posenc_dtype_name(to), posenc_pairing_name(rotation->pairing), orders[out], width,
                 direction);
        print_hash("rotated", detail, y,
                   ROTATED_TOKENS * ROTATED_HEADS * width * posenc_dtype_bytes(to));
    }
}

/* By rows of float32 and float64, with an attention factor that the inverse divides by. */
static void print_rotations_of(size_t width, posenc_pairing pairing) {
    int64_t positions[TOKENS];
    double cos[TOKENS * PAIRS], sin[TOKENS * PAIRS];
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_frequencies *f;
    posenc_rotation rotation;
    posenc_error error;
    make_positions(positions);
    spec.head_dim = width;
    spec.pairing = pairing;
    must(posenc_frequencies_create(&spec, 0, &f, NULL, &error), &error);
    for (int from = POSENC_F32; from <= POSENC_BF16; from++) {
        posenc_rows rows = POSENC_ROWS_INIT;
        rows.cos = cos;
        rows.sin = sin;
        rows.dtype = from == POSENC_F64 ? POSENC_F64 : POSENC_F32;
        must(posenc_angles(f, positions, ROTATED_TOKENS, &rows, &error), &error);
        must(posenc_rotation_of(f, &rows, ROTATED_TOKENS, &rotation, &error), &error);
        rotation.attention_factor = 1.25;
        for (int to = POSENC_F32; to <= POSENC_BF16; to++)
            for (int out = POSENC_OUTPUT_HALF; out <= POSENC_OUTPUT_INTERLEAVED; out++)
                print_rotation(&rotation, (posenc_dtype)from, (posenc_dtype)to,
                               (posenc_output_pairing)out, width);
    }
    posenc_frequencies_destroy(f);
}

static void print_rotations(void) {
    static const size_t widths[] = {6, 36, 80, 96};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        print_rotations_of(widths[i], POSENC_PAIRING_HALF);
        print_rotations_of(widths[i], POSENC_PAIRING_INTERLEAVED);
    }
}

/* Norms, caches of every format, and shifts. */
static void print_caches(void) {
    static const posenc_cache_format formats[] = {POSENC_CACHE_F32, POSENC_CACHE_F16,
                                                  POSENC_CACHE_BF16, POSENC_CACHE_INT8,
                                                  POSENC_CACHE_FP8_E4M3};
    static float x[TOKENS * HEADS * DIM], y[TOKENS * HEADS * DIM], cos[TOKENS * PAIRS],
        sin[TOKENS * PAIRS], scales[TOKENS * HEADS], weight[DIM];
    int64_t positions[TOKENS], moved[TOKENS], slots[TOKENS];
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_norm norm = POSENC_NORM_INIT;
    posenc_head_stages stages = POSENC_HEAD_STAGES_INIT;
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, TOKENS, HEADS, DIM);
    posenc_frequencies *f;
    posenc_rotation rotation;
    posenc_error error;
    spec.head_dim = DIM;
    for (int i = 0; i < TOKENS * HEADS * DIM; i++)
        x[i] = (float)((i * 7919) % 2003 - 1001) / 512.0f;
    for (int i = 0; i < TOKENS; i++) {
        positions[i] = 1000 + 3 * i;
        moved[i] = 7 * i;
        slots[i] = i;
    }
    for (int i = 0; i < DIM; i++)
        weight[i] = 0.5f + (float)i / 64.0f;
    rows.cos = cos;
    rows.sin = sin;
    norm.epsilon = 1e-6;
    norm.weight = weight;
    stages.norm = &norm;
    must(posenc_frequencies_create(&spec, 0, &f, NULL, &error), &error);
    must(posenc_angles(f, positions, TOKENS, &rows, &error), &error);
    must(posenc_rotation_of(f, &rows, TOKENS, &rotation, &error), &error);
    must(posenc_norm_rotate(&rotation, &stages, &tensor, x, y, NULL, &error), &error);
    print_hash("norm_rotate", "f32", y, sizeof y);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const char *name = posenc_cache_format_name(formats[i]);
        size_t bytes = posenc_cache_format_bytes(formats[i]) * TOKENS * HEADS * DIM;
        posenc_cache cache = posenc_cache_dense(formats[i], y, 1, TOKENS, HEADS, DIM);
        posenc_append_item keys = {&tensor, x, &cache, &stages};
        posenc_shift shift = POSENC_SHIFT_INIT;
        if (posenc_cache_format_bytes(formats[i]) == 1) {
            cache.scales = scales;
            cache.scale_count = TOKENS * HEADS;
        }
        shift.from = f;
        shift.slots = slots;
        shift.count = TOKENS;
        shift.from_positions = positions;
        shift.to_positions = moved;
        must(posenc_cache_append(&rotation, &keys, NULL, NULL, NULL, &error), &error);
        print_hash("appended", name, y, bytes);
        must(posenc_cache_shift(&cache, &shift, &error), &error);
        print_hash("shifted", name, y, bytes);
        if (cache.scales)
            print_hash("scales", name, scales, sizeof scales);
    }
    posenc_frequencies_destroy(f);
}

int main(void) {
    fprintf(stderr, "%s\n", posenc_cpu());
    print_scalings();
    print_tables();
    print_rotations();
    print_caches();
    return 0;
}
