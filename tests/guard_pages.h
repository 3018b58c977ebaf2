/* Memory that shows what a call touches: buffers between pages that fault, filled with a pattern, and
 * the check of a refused call, which must say why and write nothing. SPDX-License-Identifier: MIT */
#ifndef TEST_GUARD_PAGES_H
#define TEST_GUARD_PAGES_H

#include "posenc/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define GUARD_FILL 0xa5

/* Which end of the buffer lies at a page that faults without a gap. */
typedef enum guard_side { GUARD_BEFORE = 0, GUARD_AFTER = 1 } guard_side;

typedef struct guarded {
    void *data;
    size_t bytes;
    void *map;
    size_t map_bytes;
} guarded;

/* A buffer of `bytes` bytes, all GUARD_FILL, between two pages that fault. Flush at its end it is
 * aligned to its elements only, which is all that the library asks for. */
static inline guarded guarded_new(size_t bytes, guard_side flush) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;
    guarded g = {NULL, bytes, NULL, room + 2 * page};
    g.map = mmap(NULL, g.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.map != MAP_FAILED);
    char *inside = (char *)g.map + page;
    if (room)
        assert_int_equal(mprotect(inside, room, PROT_READ | PROT_WRITE), 0);
    g.data = flush == GUARD_AFTER ? inside + (room - bytes) : inside;
    memset(g.data, GUARD_FILL, bytes);
    return g;
}

static inline void guarded_free(guarded *g) {
    munmap(g->map, g->map_bytes);
    *g = (guarded){NULL, 0, NULL, 0};
}

/* 1 if every one of the bytes is still GUARD_FILL. */
static inline int guard_is_filled(const void *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (((const unsigned char *)data)[i] != GUARD_FILL)
            return 0;
    }
    return 1;
}

static inline int guarded_is_untouched(const guarded *g) {
    return guard_is_filled(g->data, g->bytes);
}

/* Fails the test unless a call was refused with this status for this argument. */
static inline void assert_refused(posenc_status got, const posenc_error *error,
                                  posenc_status wanted, const char *argument) {
    if (got != wanted)
        fail_msg("%s should be refused with %s, got %s", argument, posenc_status_name(wanted),
                 posenc_status_name(got));
    assert_int_equal(error->status, wanted);
    assert_non_null(error->argument);
    assert_string_equal(error->argument, argument);
    assert_non_null(error->must);
    assert_true(posenc_error_text(error, NULL, 0) > strlen(argument));
}

/* Fails the test, with the error's sentence, unless a call succeeded. */
static inline void assert_done(posenc_status got, const posenc_error *error) {
    if (got != POSENC_OK) {
        char text[300];
        posenc_error_text(error, text, sizeof text);
        fail_msg("%s: %s", posenc_status_name(got), text);
    }
}

#endif
