/* Cases of data/vectors: the index read with json-c, arrays with posenc_npy_open. SPDX-License-Identifier: MIT */
#ifndef TESTS_VECTOR_CASE_H
#define TESTS_VECTOR_CASE_H

#include "posenc/npy.h"
#include "posenc/posenc.h"
#include "posenc/rope_parameters.h"

#include <json-c/json.h>

/* The index; freed with json_object_put. */
json_object *vector_index(void);

/* Members of a case. They end the test with the case's name if the member is missing. */
json_object *case_member(json_object *test_case, const char *key);
const char *case_word(json_object *test_case, const char *key);
double case_number(json_object *test_case, const char *key); /* 0 if it is missing */
/* Which of `words` (ending in NULL) the member is; 0 if it is missing. */
int case_choice(json_object *test_case, const char *key, const char *const *words);
posenc_dtype case_dtype(json_object *test_case);

typedef struct vector_array {
    posenc_npy_info info;
    unsigned char *data;
} vector_array;

/* The array of a file that the index names. */
vector_array vector_read(json_object *file);
vector_array case_output(json_object *test_case, const char *key);

/* Positions in memory order, from any depth of lists. */
double *case_positions(json_object *test_case, size_t *count);
int64_t *whole_positions(const double *positions, size_t count);

/* The frequencies of an encoding. */
posenc_frequencies *vector_frequencies(json_object *encoding);

/* Compares what was computed with a frozen array: bytes, or within the case's tolerance for float64. */
void vector_compare(json_object *test_case, const char *key, const void *got);

#endif
