/* Elements of tensors as float32, against the numbers of ggml's Python package and of ml_dtypes, and float16,
 * bfloat16, float32 and float64 in either byte order against the compiler's own.
 * SPDX-License-Identifier: MIT */
#include "formats/dequantize.h"

#include "base/half.h"
#include "guard_pages.h"
#include "quantized_vectors.h"
#include "random_data.h"

typedef struct quantized_case {
    const char *name;
    penc_tensor_type type;
    const unsigned char *bytes;
    size_t byte_count;
    const uint32_t *bits;
    size_t count;
} quantized_case;

#define CASE(name)                                                                                 \
    {                                                                                              \
#name, PENC_TENSOR_##name, quantized_##name, sizeof quantized_##name, dequantized_##name,  \
            sizeof dequantized_##name / sizeof(uint32_t)                                           \
    }

static const quantized_case cases[] = {CASE(Q4_0), CASE(Q4_1), CASE(Q5_0), CASE(Q5_1),
                                       CASE(Q8_0), CASE(Q4_K), CASE(Q5_K), CASE(Q6_K)};

static void assert_bits(const char *name, const float *got, const uint32_t *wanted, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = penc_bits_of_float(got[i]);
        uint32_t canonical = got[i] != got[i] ? 0x7fc00000u : bits;
        if (canonical != wanted[i])
            fail_msg("%s, element %zu: got %08x, wanted %08x", name, i, canonical, wanted[i]);
    }
}

static void test_blocks_are_those_of_ggml(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const quantized_case *c = &cases[i];
        guarded from = guarded_new(c->byte_count, GUARD_AFTER);
        guarded to = guarded_new(c->count * sizeof(float), GUARD_AFTER);
        memcpy(from.data, c->bytes, c->byte_count);
        assert_true(penc_can_dequantize(c->type));
        assert_int_equal(c->byte_count / penc_tensor_block_bytes(c->type) *
                             penc_tensor_block_elements(c->type),
                         c->count);
        penc_dequantize(c->type, 0, from.data, c->count, to.data);
        assert_bits(c->name, to.data, c->bits, c->count);
        guarded_free(&from);
        guarded_free(&to);
    }
}

/* Where a block's 2- and 4-byte numbers lie: what a big-endian file holds the other way round. */
static void swap_block(penc_tensor_type type, unsigned char *block) {
    static const struct {
        penc_tensor_type type;
        size_t halves[2], word; /* 0: none, but for the first */
    } places[] = {{PENC_TENSOR_Q4_0, {0, 0}, 0}, {PENC_TENSOR_Q4_1, {0, 2}, 0},
                  {PENC_TENSOR_Q5_0, {0, 0}, 2}, {PENC_TENSOR_Q5_1, {0, 2}, 4},
                  {PENC_TENSOR_Q8_0, {0, 0}, 0}, {PENC_TENSOR_Q4_K, {0, 2}, 0},
                  {PENC_TENSOR_Q5_K, {0, 2}, 0}, {PENC_TENSOR_Q6_K, {208, 208}, 0}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i].type != type)
            continue;
        for (size_t k = 0; k < 2; k++) {
            size_t at = places[i].halves[k];
            if (k == 0 || at != places[i].halves[0]) {
                unsigned char first = block[at];
                block[at] = block[at + 1];
                block[at + 1] = first;
            }
        }
        for (size_t k = 0; k < 2 && places[i].word; k++) {
            unsigned char first = block[places[i].word + k];
            block[places[i].word + k] = block[places[i].word + 3 - k];
            block[places[i].word + 3 - k] = first;
        }
    }
}

static void test_blocks_of_big_endian_files(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const quantized_case *c = &cases[i];
        unsigned char *bytes = malloc(c->byte_count);
        float got[1024];
        assert_non_null(bytes);
        assert_true(c->count <= 1024);
        memcpy(bytes, c->bytes, c->byte_count);
        for (size_t at = 0; at < c->byte_count; at += penc_tensor_block_bytes(c->type))
            swap_block(c->type, bytes + at);
        penc_dequantize(c->type, 1, bytes, c->count, got);
        assert_bits(c->name, got, c->bits, c->count);
        free(bytes);
    }
}

static void test_every_8_bit_float(void **state) {
    (void)state;
    static const struct {
        const char *name;
        penc_tensor_type type;
        const uint32_t *bits;
    } floats[] = {{"F8_E4M3", PENC_TENSOR_F8_E4M3, dequantized_F8_E4M3},
                  {"F8_E5M2", PENC_TENSOR_F8_E5M2, dequantized_F8_E5M2},
                  {"F8_E4M3FNUZ", PENC_TENSOR_F8_E4M3FNUZ, dequantized_F8_E4M3FNUZ},
                  {"F8_E5M2FNUZ", PENC_TENSOR_F8_E5M2FNUZ, dequantized_F8_E5M2FNUZ}};
    unsigned char bytes[256];
    float got[256];
    for (size_t i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        penc_dequantize(floats[i].type, 0, bytes, 256, got);
        assert_bits(floats[i].name, got, floats[i].bits, 256);
    }
}

/* Both byte orders, unaligned. */
static void test_plain_numbers(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(1000); trial++) {
        double d = ldexp((double)(int64_t)random_bits(&rng), (int)random_below(&rng, 300) - 213);
        float f = (float)d, got;
        uint64_t d_bits = penc_bits_of_double(d), f_bits = penc_bits_of_float(f);
        uint16_t f16 = penc_f16_of_double(d), bf16 = (uint16_t)(f_bits >> 16);
        const struct {
            penc_tensor_type type;
            uint64_t bits;
            size_t bytes;
            float value;
        } numbers[] = {{PENC_TENSOR_F64, d_bits, 8, f},
                       {PENC_TENSOR_F32, f_bits, 4, f},
                       {PENC_TENSOR_F16, f16, 2, penc_float_of_f16(f16)},
                       {PENC_TENSOR_BF16, bf16, 2, penc_float_of_bits((uint32_t)bf16 << 16)}};
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            for (int big = 0; big < 2; big++) {
                unsigned char bytes[9];
                for (size_t k = 0; k < numbers[i].bytes; k++)
                    bytes[1 + k] = (unsigned char)(numbers[i].bits >>
                                                   8 * (big ? numbers[i].bytes - 1 - k : k));
                penc_dequantize(numbers[i].type, big, bytes + 1, 1, &got);
                assert_memory_equal(&got, &numbers[i].value, sizeof got);
            }
        }
    }
}

static void test_other_types_are_told_apart(void **state) {
    (void)state;
    assert_false(penc_can_dequantize(PENC_TENSOR_UNKNOWN));
    assert_false(penc_can_dequantize(PENC_TENSOR_I32));
    assert_false(penc_can_dequantize(PENC_TENSOR_IQ2_XXS));
    assert_false(penc_can_dequantize(PENC_TENSOR_TYPES));
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_those_of_ggml),
        cmocka_unit_test(test_blocks_of_big_endian_files),
        cmocka_unit_test(test_every_8_bit_float),
        cmocka_unit_test(test_plain_numbers),
        cmocka_unit_test(test_other_types_are_told_apart),
    };
    random_announce();
    return cmocka_run_group_tests_name("dequantize", tests, NULL, NULL);
}
