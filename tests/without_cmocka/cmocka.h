/* What the kernel tests use of cmocka, for cross compilers that have no cmocka for their machine: the first failure
 * ends a program. Prints TAP. SPDX-License-Identifier: MIT */
#ifndef TEST_WITHOUT_CMOCKA_H
#define TEST_WITHOUT_CMOCKA_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

#define cmocka_unit_test(function)                                                                 \
    { #function, function }

__attribute__((format(printf, 3, 4), noreturn)) static inline void without_cmocka_fail(
    const char *file, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("# %s:%d: ", file, line);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\nnot ok - stopped here\n");
    exit(1);
}

#define fail_msg(...)                    without_cmocka_fail(__FILE__, __LINE__, __VA_ARGS__)
#define assert_true(condition)           ((condition) ? (void)0 : fail_msg("%s is not true", #condition))
#define assert_non_null(pointer)         assert_true((pointer) != NULL)
#define assert_int_equal(a, b)           assert_true((a) == (b))
#define assert_string_equal(a, b)        assert_true(strcmp(a, b) == 0)
#define assert_memory_equal(a, b, bytes) assert_true(memcmp(a, b, bytes) == 0)

#define cmocka_run_group_tests(tests, before, after)                                               \
    without_cmocka_run(tests, sizeof(tests) / sizeof *(tests))

static inline int without_cmocka_run(const struct CMUnitTest *tests, size_t count) {
    for (size_t i = 0; i < count; i++) {
        tests[i].run(NULL);
        printf("ok %zu - %s\n", i + 1, tests[i].name);
        fflush(stdout);
    }
    printf("1..%zu\n", count);
    return 0;
}

#endif
