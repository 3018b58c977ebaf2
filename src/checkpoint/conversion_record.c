/* The record in converted files: which pairing their rows have, and the shape they were moved by.
 * SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "checkpoint/conversion.h"
#include "formats/header_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* "interleaved heads=32 kv_heads=8 head_dim=128 rotary_start=0 rotary_dim=128"; of several shapes the first one and
 * "shapes=2". */
static void penc_record_print(const posenc_attention_shape *shape, size_t shapes,
                              posenc_pairing pairing, char text[PENC_MAX_HEADER_TEXT]) {
    int length = snprintf(text, PENC_MAX_HEADER_TEXT,
                          "%s heads=%zu kv_heads=%zu head_dim=%zu rotary_start=%zu rotary_dim=%zu",
                          posenc_pairing_name(pairing), shape->heads, shape->kv_heads,
                          shape->head_dim, shape->rotary_start, shape->rotary_dim);
    if (shapes > 1)
        snprintf(text + length, PENC_MAX_HEADER_TEXT - (size_t)length, " shapes=%zu", shapes);
}

/* Reads such a text back; 0 if it is none. */
static int penc_record_parse(const char *text, posenc_attention_shape *shape, size_t *shapes,
                             posenc_detected *pairing) {
    char word[16], again[PENC_MAX_HEADER_TEXT];
    *shape = (posenc_attention_shape)POSENC_ATTENTION_SHAPE_INIT;
    *shapes = 1;
    if (sscanf(text,
               "%15s heads=%zu kv_heads=%zu head_dim=%zu rotary_start=%zu rotary_dim=%zu "
               "shapes=%zu",
               word, &shape->heads, &shape->kv_heads, &shape->head_dim, &shape->rotary_start,
               &shape->rotary_dim, shapes) < 6)
        return 0;
    for (int i = POSENC_PAIRING_HALF; i <= POSENC_PAIRING_INTERLEAVED; i++) {
        if (strcmp(word, posenc_pairing_name((posenc_pairing)i)) == 0) {
            *pairing = i == POSENC_PAIRING_HALF ? POSENC_DETECTED_HALF
                                                : POSENC_DETECTED_INTERLEAVED;
            penc_record_print(shape, *shapes, (posenc_pairing)i, again);
            return strcmp(text, again) == 0;
        }
    }
    return 0;
}

static posenc_status penc_record_fail(const posenc_conversion *conversion, size_t file,
                                      posenc_status status, const char *must,
                                      posenc_error *error) {
    penc_fail(error, status, "record", must);
    penc_fail_name(error, PENC_RECORD_KEY, sizeof PENC_RECORD_KEY - 1);
    penc_fail_file(error, penc_conversion_path(conversion, file));
    return status;
}

/* The text in a file; "" if there is none. */
static posenc_status penc_record_of_file(const posenc_conversion *conversion, size_t file,
                                         char text[PENC_MAX_HEADER_TEXT], posenc_error *error) {
    const penc_gguf *gguf = penc_tensor_set_gguf(conversion->set, file);
    const penc_safetensors *safetensors = penc_tensor_set_safetensors(conversion->set, file);
    posenc_status status = POSENC_OK;
    int found = 0;
    if (gguf)
        status = penc_gguf_read_text(gguf, PENC_RECORD_KEY, text, &found, error);
    else if (safetensors)
        status = penc_safetensors_read_text(safetensors, PENC_RECORD_KEY, text, &found, error);
    if (!found)
        text[0] = '\0';
    return status;
}

posenc_status penc_conversion_read_records(posenc_conversion *conversion, posenc_error *error) {
    char text[PENC_MAX_HEADER_TEXT];
    size_t shapes;
    for (size_t file = 0; file < penc_conversion_files(conversion); file++) {
        posenc_status status = penc_record_of_file(conversion, file, text, error);
        if (status)
            return status;
        if (!text[0])
            continue;
        if (conversion->recorded[0] && strcmp(text, conversion->recorded) != 0)
            return penc_record_fail(conversion, file, POSENC_FORMAT,
                                    "be the same in all files of the checkpoint", error);
        strcpy(conversion->recorded, text);
        if (!penc_record_parse(text, &conversion->recorded_shape, &shapes,
                               &conversion->facts.recorded))
            return penc_record_fail(conversion, file, POSENC_FORMAT, "be one that posenc wrote",
                                    error);
        conversion->recorded_shapes = shapes;
    }
    return POSENC_OK;
}

posenc_status penc_conversion_check_records(posenc_conversion *conversion, posenc_error *error) {
    char text[PENC_MAX_HEADER_TEXT];
    const penc_layer_shapes *shapes = &conversion->shapes;
    penc_record_print(&shapes->shape[0], shapes->count, conversion->facts.to, conversion->record);
    if (!conversion->recorded[0]) {
        conversion->facts.records = strcmp(conversion->facts.format, "llama2.c") != 0;
        if (!conversion->facts.records)
            conversion->record[0] = '\0';
        return POSENC_OK;
    }
    conversion->record[0] = '\0';
    penc_record_print(&shapes->shape[0], shapes->count, conversion->facts.from, text);
    if (strcmp(text, conversion->recorded) != 0)
        return penc_record_fail(conversion, 0, POSENC_OUT_OF_RANGE,
                                "have the shape by which the rows are to move back", error);
    for (size_t file = 0; file < penc_conversion_files(conversion); file++) {
        posenc_status status = penc_record_of_file(conversion, file, text, error);
        if (status)
            return status;
        if (penc_conversion_touches(conversion, file) != (text[0] != '\0'))
            return penc_record_fail(conversion, file, POSENC_FORMAT,
                                    "be in every file that has rows to move and in no other: the "
                                    "checkpoint is converted in part",
                                    error);
    }
    return POSENC_OK;
}
