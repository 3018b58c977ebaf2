/* Printing numbers and JSON. SPDX-License-Identifier: MIT */
#include "output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void number_text(double value, char text[CLI_NUMBER_TEXT]) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, CLI_NUMBER_TEXT, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

/* The open brackets, and whether the innermost one holds a value yet. */
enum { MAX_DEPTH = 8 };
static char open_bracket[MAX_DEPTH];
static int depth, holds_value;

static void put_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void begin_value(const char *key) {
    if (holds_value)
        fputs(", ", stdout);
    holds_value = 1;
    if (key) {
        put_text(key);
        fputs(": ", stdout);
    }
}

void json_open(const char *key, char bracket) {
    begin_value(key);
    putchar(bracket);
    open_bracket[depth++] = bracket;
    holds_value = 0;
}

void json_close(void) {
    putchar(open_bracket[--depth] == '{' ? '}' : ']');
    holds_value = 1;
}

void json_string(const char *key, const char *value) {
    begin_value(key);
    put_text(value);
}

void json_number(const char *key, double value) {
    char text[CLI_NUMBER_TEXT];
    begin_value(key);
    if (!isfinite(value)) {
        fputs("null", stdout);
        return;
    }
    number_text(value, text);
    fputs(text, stdout);
}

void json_integer(const char *key, int64_t value) {
    begin_value(key);
    printf("%" PRId64, value);
}

void json_boolean(const char *key, int value) {
    begin_value(key);
    fputs(value ? "true" : "false", stdout);
}

void json_null(const char *key) {
    begin_value(key);
    fputs("null", stdout);
}

void json_end(void) {
    putchar('\n');
    holds_value = 0;
}
