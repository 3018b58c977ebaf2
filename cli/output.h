/* Printing numbers, JSON and tables. SPDX-License-Identifier: MIT */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "posenc/dtype.h"

/* The shortest text that reads back to the same bits, of a float64 or (is_float) a float32 value. */
enum { CLI_NUMBER_TEXT = 32 };
void number_text(double value, int is_float, char text[CLI_NUMBER_TEXT]);

/* JSON is written as it comes, so that any amount of numbers takes no memory. Keys are NULL inside
 * arrays. Numbers that JSON lacks (infinities, NaN) become null. */
void json_open(const char *key, char bracket); /* '{' or '[' */
void json_close(void);
void json_string(const char *key, const char *value);
void json_number(const char *key, double value, posenc_dtype dtype);
void json_integer(const char *key, int64_t value);
/* Ends the line after the outermost value. */
void json_end(void);

#endif
