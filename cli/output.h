/* Printing numbers, JSON and tables. SPDX-License-Identifier: MIT */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdint.h>
/* The shortest text that reads back, as float64, to the same bits. A narrower number is widened first,
 * so that it reads back to the same value in either type. */
enum { CLI_NUMBER_TEXT = 32 };
void number_text(double value, char text[CLI_NUMBER_TEXT]);

/* JSON is written as it comes, so that any amount of numbers takes no memory. Keys are NULL inside
 * arrays. Numbers that JSON lacks (infinities, NaN) become null. */
void json_open(const char *key, char bracket); /* '{' or '[' */
void json_close(void);
void json_string(const char *key, const char *value);
void json_number(const char *key, double value);
void json_integer(const char *key, int64_t value);
void json_boolean(const char *key, int value);
void json_null(const char *key);
/* Ends the line after the outermost value. */
void json_end(void);

#endif
