/* Text and numbers of the demonstrations. SPDX-License-Identifier: MIT */
#include "demo.h"
#include "output.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int prints_json;

void demo_output_start(int json) {
    prints_json = json;
    if (json)
        json_open(NULL, '{');
}

void demo_output_end(void) {
    if (prints_json) {
        json_close();
        json_end();
    }
}

void demo_title(const char *title) {
    int colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    if (!prints_json)
        printf("\n%s%s%s\n", colour ? "\033[1;36m" : "", title, colour ? "\033[0m" : "");
}

void demo_say(const char *format, ...) {
    if (prints_json)
        return;
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
}

void demo_numbers(const char *key, const double *numbers, size_t count) {
    if (!prints_json)
        return;
    json_open(key, '[');
    for (size_t i = 0; i < count; i++)
        json_number(NULL, numbers[i]);
    json_close();
}
