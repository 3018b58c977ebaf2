/* What belongs to a projection, by the ends of tensors' names. The world is closed: what is not in the list might have
 * to move along, so it is refused. SPDX-License-Identifier: MIT */
#include "checkpoint/projection_ends.h"

#include <stddef.h>
#include <string.h>

#define PENC_GPTQ                                                                                  \
    "be plain weights: GPTQ and AWQ pack several output rows or regroup columns, so that rows "    \
    "cannot be moved; convert the weights that they were made from, and quantise again"
#define PENC_BITSANDBYTES                                                                          \
    "be plain weights: bitsandbytes packs weights without regard to rows; convert the weights "    \
    "that they were made from, or dequantise first"

static const penc_end penc_ends[] = {
    {".weight", 0, PENC_END_ROWS, "weights"},
    {".base_layer.weight", 0, PENC_END_ROWS, "weights"},
    {".weight_packed", 0, PENC_END_ROWS, "weights"}, /* compressed-tensors: packed along columns */
    {".bias", 0, PENC_END_NUMBERS, "bias"},
    {".base_layer.bias", 0, PENC_END_NUMBERS, "bias"},
    {".weight_scale", 0, PENC_END_SCALES, "scales"},
    {".weight_scale_inv", 0, PENC_END_SCALES, "scales"},
    {".weight_zero_point", 0, PENC_END_SCALES, "zero points"},
    {".scale", 0, PENC_END_SCALES, "scales"},
    {".scales", 0, PENC_END_ROW_SCALES, "scales"}, /* MLX: of groups along the row */
    {".biases", 0, PENC_END_ROW_SCALES, "zero points"},
    {".weight_scale_2", 0, PENC_END_ONE, NULL},
    {".weight_global_scale", 0, PENC_END_ONE, NULL},
    {".input_scale", 0, PENC_END_ONE, NULL},
    {".input_global_scale", 0, PENC_END_ONE, NULL},
    {".output_scale", 0, PENC_END_ONE, NULL},
    {".q_scale", 0, PENC_END_ONE, NULL},
    {".k_scale", 0, PENC_END_ONE, NULL},
    {".v_scale", 0, PENC_END_ONE, NULL},
    {".weight_shape", 0, PENC_END_STAYS, NULL},
    {".weight_g_idx", 0, PENC_END_STAYS, NULL},
    {".lora_A", 1, PENC_END_STAYS, NULL},
    {".lora_a", 0, PENC_END_STAYS, NULL},
    {".weight.lora_a", 0, PENC_END_STAYS, NULL},
    {".lora_B", 1, PENC_END_ROWS, "LoRA B"},
    {".weight.lora_b", 0, PENC_END_ROWS, "LoRA B"},
    {".lora_b", 0, PENC_END_COLUMNS, "LoRA B"}, /* MLX: [rank, rows] */
    {".lora_magnitude_vector", 1, PENC_END_NUMBERS, "LoRA magnitudes"},
    {".qweight", 0, PENC_END_REFUSED, PENC_GPTQ},
    {".qzeros", 0, PENC_END_REFUSED, PENC_GPTQ},
    {".g_idx", 0, PENC_END_REFUSED, PENC_GPTQ},
    {".SCB", 0, PENC_END_REFUSED, PENC_BITSANDBYTES},
    {".weight_format", 0, PENC_END_REFUSED, PENC_BITSANDBYTES},
    {".weight.", 1, PENC_END_REFUSED, PENC_BITSANDBYTES},
};

static const penc_end penc_gain_ends[] = {
    {".weight", 0, PENC_END_NUMBERS, "norm gain"},
    {".bias", 0, PENC_END_NUMBERS, "norm bias"},
};

static const penc_end penc_unknown_end = {
    "", 1, PENC_END_REFUSED, "be known here: it belongs to q or k and might have to move along"};

static const penc_end *penc_end_find(const penc_end *list, size_t count, const char *end) {
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(list[i].text);
        if (strncmp(end, list[i].text, length) == 0 && (list[i].open || !end[length]))
            return &list[i];
    }
    return &penc_unknown_end;
}

const penc_end *penc_projection_end(const char *end) {
    return penc_end_find(penc_ends, sizeof penc_ends / sizeof *penc_ends, end);
}

const penc_end *penc_gain_end(const char *end) {
    return penc_end_find(penc_gain_ends, sizeof penc_gain_ends / sizeof *penc_gain_ends, end);
}
