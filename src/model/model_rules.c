/* The table of model rules. SPDX-License-Identifier: MIT */
#include "model/model_rules.h"

#include "models_table.h" /* penc_models_table, made from data/models.tsv by the build */

#include <ctype.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;
} penc_columns[] = {
#define PENC_COLUMN(name)                                                                          \
    { #name, offsetof(penc_rule, name) }
    PENC_COLUMN(format),   PENC_COLUMN(name), PENC_COLUMN(kind),   PENC_COLUMN(when),
    PENC_COLUMN(pairing),  PENC_COLUMN(axes), PENC_COLUMN(rotary), PENC_COLUMN(cycle),
    PENC_COLUMN(bases),    PENC_COLUMN(nope), PENC_COLUMN(rules),  PENC_COLUMN(stored),
    PENC_COLUMN(norm),     PENC_COLUMN(bias), PENC_COLUMN(gguf),   PENC_COLUMN(part),
    PENC_COLUMN(defaults), PENC_COLUMN(note),
#undef PENC_COLUMN
};
enum { PENC_COLUMNS = sizeof penc_columns / sizeof *penc_columns };

const penc_rule penc_no_rule = {"config", "",  "unknown", "-", "-", "-", "part", "-", "-",
                                "-",      "-", "-",       "-", "-", "-", "-",    "-", "-"};

/* The table is bytes with a NUL behind them. */
static const char *penc_table(void) {
    return (const char *)penc_models_table;
}

/* The line behind the one that `line` is in; NULL at the end. */
static const char *penc_next_line(const char *line) {
    line = strchr(line, '\n');
    return line && line[1] ? line + 1 : NULL;
}

/* The text of the column in the line, not ended by a NUL. */
static const char *penc_field(const char *line, size_t column, size_t *length) {
    for (; column; column--)
        line =
            strchr(line, '\t') + 1; /* tools/check_models.py holds every row to the same columns */
    *length = strcspn(line, "\t\n");
    return line;
}

/* Every cell of the line into the rule. */
static int penc_take_rule(penc_arena *arena, const char *line, penc_rule *rule) {
    for (size_t column = 0; column < PENC_COLUMNS; column++) {
        size_t length;
        const char *text = penc_field(line, column, &length);
        char *copy = penc_arena_copy(arena, text, length);
        memcpy((char *)rule + penc_columns[column].offset, &copy, sizeof copy);
    }
    return !arena->failed;
}

static int penc_cell_is(const char *line, size_t column, const char *text) {
    size_t length;
    const char *cell = penc_field(line, column, &length);
    return length == strlen(text) && memcmp(cell, text, length) == 0;
}

int penc_rule_find(penc_arena *arena, const char *format, const char *name, penc_rule *rule) {
    for (const char *line = penc_table(); (line = penc_next_line(line)) != NULL;) {
        if (penc_cell_is(line, 1, name) && penc_cell_is(line, 0, format))
            return penc_take_rule(arena, line, rule);
    }
    return 0;
}

/* Compares a row's name with the first `length` bytes of a class's, letter by letter. */
static int penc_same_letters(const char *name, size_t name_length, const char *class_name,
                             size_t length) {
    size_t i = 0, j = 0;
    for (;;) {
        while (i < name_length && !isalnum((unsigned char)name[i]))
            i++;
        while (j < length && !isalnum((unsigned char)class_name[j]))
            j++;
        if (i == name_length || j == length)
            return i == name_length && j == length;
        if (tolower((unsigned char)name[i++]) != tolower((unsigned char)class_name[j++]))
            return 0;
    }
}

int penc_rule_find_class(penc_arena *arena, const char *class_name, penc_rule *rule) {
    static const char *const ends[] = {"ForCausalLM",
                                       "LMHeadModel",
                                       "ForConditionalGeneration",
                                       "ForMaskedLM",
                                       "ForSequenceClassification",
                                       "Model"};
    size_t length = strlen(class_name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (length > end && strcmp(class_name + length - end, ends[i]) == 0) {
            length -= end;
            break;
        }
    }
    for (const char *line = penc_table(); (line = penc_next_line(line)) != NULL;) {
        size_t name_length;
        const char *name = penc_field(line, 1, &name_length);
        if (penc_cell_is(line, 0, "config") &&
            penc_same_letters(name, name_length, class_name, length))
            return penc_take_rule(arena, line, rule);
    }
    return 0;
}

const char *penc_next_word(const char **list, size_t *length) {
    const char *word = *list + strspn(*list, " ");
    *length = strcspn(word, " ");
    *list = word + *length;
    return *length == 0 || (*length == 1 && *word == '-') ? NULL : word;
}

int penc_word_in(const char *list, const char *word) {
    size_t length;
    for (const char *at; (at = penc_next_word(&list, &length)) != NULL;) {
        if (length == strlen(word) && memcmp(at, word, length) == 0)
            return 1;
    }
    return 0;
}
