/* The record in converted files: which pairing their rows have, and the shape they were moved by.
 * SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "checkpoint/conversion.h"
#include "formats/header_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a record tells. */
typedef struct penc_record {
    posenc_pairing pairing;
    posenc_attention_shape shape; /* of the first layers that rotate */
    size_t shapes;                /* how many there are */
    size_t tensors;               /* of the file that moved */
} penc_record;

/* "interleaved heads=32 kv_heads=8 head_dim=128 rotary_start=0 rotary_dim=128 tensors=64", of several shapes with
 * " shapes=2" behind it. */
static void penc_record_print(const penc_record *record, char text[PENC_MAX_HEADER_TEXT]) {
    const posenc_attention_shape *shape = &record->shape;
    int length = snprintf(text, PENC_MAX_HEADER_TEXT,
                          "%s heads=%zu kv_heads=%zu head_dim=%zu rotary_start=%zu rotary_dim=%zu "
                          "tensors=%zu",
                          posenc_pairing_name(record->pairing), shape->heads, shape->kv_heads,
                          shape->head_dim, shape->rotary_start, shape->rotary_dim, record->tensors);
    if (record->shapes > 1)
        snprintf(text + length, PENC_MAX_HEADER_TEXT - (size_t)length, " shapes=%zu",
                 record->shapes);
}

/* Reads such a text back; 0 if it is none. */
static int penc_record_parse(const char *text, penc_record *record) {
    char word[16], again[PENC_MAX_HEADER_TEXT];
    posenc_attention_shape *shape = &record->shape;
    *record = (penc_record){.shape = POSENC_ATTENTION_SHAPE_INIT, .shapes = 1};
    if (sscanf(text,
               "%15s heads=%zu kv_heads=%zu head_dim=%zu rotary_start=%zu rotary_dim=%zu "
               "tensors=%zu shapes=%zu",
               word, &shape->heads, &shape->kv_heads, &shape->head_dim, &shape->rotary_start,
               &shape->rotary_dim, &record->tensors, &record->shapes) < 7)
        return 0;
    record->pairing = strcmp(word, posenc_pairing_name(POSENC_PAIRING_HALF)) == 0
                          ? POSENC_PAIRING_HALF
                          : POSENC_PAIRING_INTERLEAVED;
    penc_record_print(record, again);
    return strcmp(text, again) == 0;
}

static posenc_status penc_record_fail(const posenc_conversion *conversion, size_t file,
                                      posenc_status status, const char *must, posenc_error *error) {
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
    posenc_conversion_facts *facts = &conversion->facts;
    for (size_t file = 0; file < penc_conversion_files(conversion); file++) {
        char text[PENC_MAX_HEADER_TEXT];
        penc_record record;
        posenc_status status = penc_record_of_file(conversion, file, text, error);
        if (status)
            return status;
        if (!text[0])
            continue;
        if (!penc_record_parse(text, &record))
            return penc_record_fail(conversion, file, POSENC_FORMAT, "be one that posenc wrote",
                                    error);
        posenc_detected pairing = record.pairing == POSENC_PAIRING_HALF
                                      ? POSENC_DETECTED_HALF
                                      : POSENC_DETECTED_INTERLEAVED;
        if (facts->recorded &&
            (facts->recorded != pairing || conversion->recorded_shapes != record.shapes ||
             memcmp(&conversion->recorded_shape, &record.shape, sizeof record.shape) != 0))
            return penc_record_fail(conversion, file, POSENC_FORMAT,
                                    "say the same in all files of the checkpoint", error);
        facts->recorded = pairing;
        conversion->recorded_shape = record.shape;
        conversion->recorded_shapes = record.shapes;
    }
    return POSENC_OK;
}

void penc_conversion_record(const posenc_conversion *conversion, size_t file,
                            posenc_pairing pairing, char text[PENC_MAX_HEADER_TEXT]) {
    const penc_layer_shapes *shapes = &conversion->shapes;
    penc_record record = {pairing, shapes->shape[0], shapes->count,
                          penc_conversion_moves_of(conversion, file)};
    penc_record_print(&record, text);
}

/* The record that the file has is the one that it would get now. */
static posenc_status penc_record_check(const posenc_conversion *conversion, size_t file,
                                       posenc_error *error) {
    char text[PENC_MAX_HEADER_TEXT], wanted[PENC_MAX_HEADER_TEXT];
    size_t moves = penc_conversion_moves_of(conversion, file);
    posenc_status status = penc_record_of_file(conversion, file, text, error);
    if (status)
        return status;
    if ((moves != 0) != (text[0] != '\0'))
        return penc_record_fail(conversion, file, POSENC_FORMAT,
                                "be in every file that has rows to move and in no other: the "
                                "checkpoint is converted in part",
                                error);
    penc_conversion_record(conversion, file, conversion->facts.from, wanted);
    if (!moves || strcmp(text, wanted) == 0)
        return POSENC_OK;
    penc_fail_size(error, "tensors to move", moves,
                   "be as many as this record says, of its shape: the configuration that was "
                   "beside the weights may be missing");
    penc_fail_name(error, text, strlen(text));
    penc_fail_file(error, penc_conversion_path(conversion, file));
    return POSENC_OUT_OF_RANGE;
}

posenc_status penc_conversion_check_records(posenc_conversion *conversion, posenc_error *error) {
    posenc_status status = POSENC_OK;
    conversion->facts.records =
        !conversion->facts.recorded && strcmp(conversion->facts.format, "llama2.c") != 0;
    for (size_t file = 0;
         conversion->facts.recorded && !status && file < penc_conversion_files(conversion); file++)
        status = penc_record_check(conversion, file, error);
    return status;
}
