/* A text of our own in the __metadata__ of a safetensors file. SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "formats/header_edits.h"
#include "formats/safetensors_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How __metadata__ was before the text: an object, null, not there. As many spaces stand behind its brace. */
typedef enum penc_st_before { PENC_ST_OBJECT, PENC_ST_NULL, PENC_ST_ABSENT } penc_st_before;

static const char penc_st_opening[] = "\"__metadata__\":{  ";

enum { PENC_ST_MOST = 2 * PENC_HEADER_UNIT, PENC_ST_SCAN = 1 << 16 };

/* Fills up with spaces to a multiple of the unit and `over` bytes. */
static size_t penc_st_fill(char *bytes, size_t length, size_t over) {
    while ((length + PENC_HEADER_UNIT - over) % PENC_HEADER_UNIT)
        bytes[length++] = ' ';
    return length;
}

/* The text with all that is written for it. `comma`: the object has more. */
static size_t penc_st_form(const char *key, const char *text, penc_st_before before, int comma,
                           char bytes[PENC_ST_MOST]) {
    int length = snprintf(bytes, PENC_HEADER_UNIT / 2, "%s\"%s\":\"%s\"%s",
                          before == PENC_ST_ABSENT ? penc_st_opening
                          : before == PENC_ST_NULL ? "{ "
                                                   : "",
                          key, text,
                          before == PENC_ST_ABSENT            ? "},"
                          : before == PENC_ST_OBJECT && comma ? ","
                                                              : "");
    if (before != PENC_ST_NULL)
        return penc_st_fill(bytes, (size_t)length, 0);
    size_t filled = penc_st_fill(bytes, (size_t)length, 3); /* by units longer than null */
    bytes[filled] = '}';
    return filled + 1;
}

/* The new length of the header. */
static posenc_status penc_st_edit_length(const penc_safetensors *file, int64_t grows,
                                         penc_header_edits *edits, posenc_error *error) {
    uint64_t length = penc_safetensors_header_bytes(file) + (uint64_t)grows;
    if (length > PENC_SAFETENSORS_MAX_HEADER)
        return penc_input_fail_size(&file->source.input, POSENC_UNSUPPORTED, "header length",
                                    length, "be at most 100 MB with the text", 0, error);
    unsigned char *to =
        penc_header_edits_add(edits, 0, PENC_SAFETENSORS_PREFIX, PENC_SAFETENSORS_PREFIX);
    if (!to)
        return penc_header_no_memory(error);
    for (size_t i = 0; i < PENC_SAFETENSORS_PREFIX; i++)
        to[i] = (unsigned char)(length >> 8 * i);
    return POSENC_OK;
}

static posenc_status penc_st_edit(const penc_safetensors *file, uint64_t place, uint64_t removed,
                                  const char *bytes, size_t count, penc_header_edits *edits,
                                  posenc_error *error) {
    posenc_status status =
        penc_st_edit_length(file, (int64_t)count - (int64_t)removed, edits, error);
    if (status)
        return status;
    unsigned char *to = penc_header_edits_add(edits, place, removed, count);
    if (!to)
        return penc_header_no_memory(error);
    memcpy(to, bytes, count);
    return POSENC_OK;
}

/* ---- In ---- */

/* Finds the value of __metadata__: *place is where it begins. */
static posenc_status penc_st_find(const penc_safetensors *file, penc_json_token *token,
                                  uint64_t *place, posenc_error *error) {
    char text[PENC_NAME_BYTES];
    unsigned char *window = malloc(PENC_ST_SCAN);
    if (!window)
        return penc_header_no_memory(error);
    penc_json json =
        penc_json_of_file(&file->source.input, PENC_SAFETENSORS_PREFIX, file->header_end, window,
                          PENC_ST_SCAN, text, sizeof text, error);
    posenc_status status = penc_json_next(&json, token);
    int found = 0;
    while (!status && !found) {
        status = penc_json_next(&json, token);
        found = !status && strcmp(text, "__metadata__") == 0;
        if (!status)
            status = penc_json_next(&json, token);
        *place = json.place;
        if (!status && !found)
            status = penc_json_skip(&json, *token);
    }
    free(window);
    return status;
}

posenc_status penc_safetensors_put_text(const penc_safetensors *file, const char *key,
                                        const char *text, penc_header_edits *edits,
                                        posenc_error *error) {
    char bytes[PENC_ST_MOST];
    penc_json_token token = PENC_JSON_OBJECT;
    uint64_t place = PENC_SAFETENSORS_PREFIX;
    posenc_status status = POSENC_OK;
    if (file->has_metadata)
        status = penc_st_find(file, &token, &place, error);
    if (status)
        return status;
    penc_st_before before = !file->has_metadata         ? PENC_ST_ABSENT
                            : token == PENC_JSON_OBJECT ? PENC_ST_OBJECT
                                                        : PENC_ST_NULL;
    size_t count = penc_st_form(key, text, before, file->metadata_count > 0, bytes);
    int replaces = before == PENC_ST_NULL;
    return penc_st_edit(file, replaces ? place : place + 1, replaces ? 4 : 0, bytes, count, edits,
                        error);
}

/* ---- Out ---- */

posenc_status penc_safetensors_read_text(const penc_safetensors *file, const char *key,
                                         char text[PENC_MAX_HEADER_TEXT], int *found,
                                         posenc_error *error) {
    size_t length;
    posenc_status status = penc_safetensors_find_metadata(file, key, text, PENC_MAX_HEADER_TEXT,
                                                          &length, found, error);
    if (status || !*found)
        return status;
    if (length >= PENC_MAX_HEADER_TEXT || strlen(text) != length) {
        penc_input_fail(&file->source.input, POSENC_FORMAT, "text", "be one that posenc wrote", 0,
                        error);
        penc_fail_name(error, key, strlen(key));
        return POSENC_FORMAT;
    }
    penc_header_trim(text);
    return POSENC_OK;
}

/* What stands around the key. */
typedef struct penc_st_surroundings {
    unsigned char bytes[2 * PENC_ST_MOST];
    uint64_t first;    /* byte of the file that bytes[0] is */
    size_t count, key; /* bytes[key] is the key's first quote */
} penc_st_surroundings;

static posenc_status penc_st_look(const penc_safetensors *file, uint64_t place,
                                  penc_st_surroundings *around, posenc_error *error) {
    uint64_t before = place - PENC_SAFETENSORS_PREFIX;
    if (before > PENC_ST_MOST)
        before = PENC_ST_MOST;
    around->first = place - before;
    around->key = (size_t)before;
    uint64_t left = file->header_end - around->first;
    around->count = left < sizeof around->bytes ? (size_t)left : sizeof around->bytes;
    return penc_input_read(&file->source.input, around->first, around->bytes, around->count, error);
}

/* Spaces between a brace and the key. */
static size_t penc_st_spaces(const penc_st_surroundings *around) {
    size_t spaces = 0;
    while (spaces < around->key && around->bytes[around->key - 1 - spaces] == ' ')
        spaces++;
    return spaces;
}

/* Whether the text stands as it is written for a header of that kind; sets where and how long. */
static int penc_st_is_form(const penc_st_surroundings *around, const char *key, const char *text,
                           penc_st_before before, int comma, size_t *at, size_t *length) {
    char bytes[PENC_ST_MOST];
    size_t opening = before == PENC_ST_ABSENT ? sizeof penc_st_opening - 1
                     : before == PENC_ST_NULL ? 2
                                              : 0;
    *length = penc_st_form(key, text, before, comma, bytes);
    if (opening > around->key || *length > around->count - (around->key - opening))
        return 0;
    *at = around->key - opening;
    return memcmp(around->bytes + *at, bytes, *length) == 0;
}

/* Another program has written the header since: the text, its value and a comma become spaces. */
static posenc_status penc_st_blank(const penc_safetensors *file, const penc_st_surroundings *around,
                                   penc_header_edits *edits, posenc_error *error) {
    char spaces[2 * PENC_ST_MOST];
    const unsigned char *bytes = around->bytes;
    size_t begin = around->key, end = begin + 1;
    for (int quotes = 1; quotes < 4 && end < around->count; end++)
        quotes += bytes[end] == '"';
    size_t next = end, last = begin;
    while (next < around->count && strchr(" \t\r\n", bytes[next]))
        next++;
    while (last > 0 && strchr(" \t\r\n", bytes[last - 1]))
        last--;
    if (next < around->count && bytes[next] == ',')
        end = next + 1;
    else if (last > 0 && bytes[last - 1] == ',')
        begin = last - 1;
    memset(spaces, ' ', end - begin);
    return penc_st_edit(file, around->first + begin, end - begin, spaces, end - begin, edits,
                        error);
}

posenc_status penc_safetensors_drop_text(const penc_safetensors *file, const char *key,
                                         penc_header_edits *edits, posenc_error *error) {
    char text[PENC_MAX_HEADER_TEXT];
    int found;
    const penc_entry *entry;
    penc_st_surroundings around;
    posenc_status status = penc_safetensors_read_text(file, key, text, &found, error);
    if (!status)
        status = penc_entries_find(file->metadata, file->metadata_count, key,
                                   penc_name_hash(key, strlen(key)), penc_safetensors_name,
                                   &file->source, &entry, error);
    if (!status)
        status = penc_st_look(file, PENC_SAFETENSORS_PREFIX + entry->place, &around, error);
    if (status)
        return status;
    size_t spaces = penc_st_spaces(&around), at, length;
    penc_st_before before = spaces == 2   ? PENC_ST_ABSENT
                            : spaces == 1 ? PENC_ST_NULL
                                          : PENC_ST_OBJECT;
    int only = file->metadata_count == 1;
    if (spaces < around.key && around.bytes[around.key - 1 - spaces] == '{' &&
        (before == PENC_ST_OBJECT || only) &&
        penc_st_is_form(&around, key, text, before, !only, &at, &length))
        return penc_st_edit(file, around.first + at, length, "null", before == PENC_ST_NULL ? 4 : 0,
                            edits, error);
    return penc_st_blank(file, &around, edits, error);
}
