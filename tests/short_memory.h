/* Memory that runs out on demand. The test is to be linked with --wrap for malloc, calloc, realloc and free, and with
 * the library's objects, since --wrap does not reach into shared libraries. One file of a test includes it.
 * SPDX-License-Identifier: MIT */
#ifndef SHORT_MEMORY_H
#define SHORT_MEMORY_H

#include "guard_pages.h"

#include <dirent.h>
#include <stdio.h>

/* ---- Allocations that are counted and fail on demand ---- */

/* What fails: one allocation alone, or one and all that come after it. */
typedef enum shortage { SHORTAGE_ONCE = 0, SHORTAGE_LASTING = 1 } shortage;

static struct {
    size_t calls;   /* allocations asked for */
    size_t fail_at; /* the number of the one that fails, from 1; 0: none */
    shortage kind;
    int failed; /* 1: one was refused */
    long live;  /* blocks given and not freed */
} memory;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void __real_free(void *block);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void __wrap_free(void *block);

static inline int memory_fails(void) {
    memory.calls++;
    int fails =
        memory.fail_at && (memory.kind == SHORTAGE_LASTING ? memory.calls >= memory.fail_at
                                                           : memory.calls == memory.fail_at);
    memory.failed |= fails;
    return fails;
}

static inline void *counted(void *block) {
    memory.live += block != NULL;
    return block;
}

void *__wrap_malloc(size_t bytes) {
    return memory_fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return memory_fails() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *block, size_t bytes) {
    if (memory_fails())
        return NULL;
    return block ? __real_realloc(block, bytes) : counted(__real_realloc(NULL, bytes));
}

void __wrap_free(void *block) {
    memory.live -= block != NULL;
    __real_free(block);
}

/* From now on the allocation with this number fails (0: none does). */
static inline void memory_begin(size_t fail_at, shortage kind) {
    memory.calls = 0;
    memory.failed = 0;
    memory.fail_at = fail_at;
    memory.kind = kind;
}

/* Allocations succeed again. */
static inline void memory_end(void) {
    memory.fail_at = 0;
}

/* Names in a folder, without "." and "..". */
static inline size_t names_in(const char *path) {
    size_t names = 0;
    DIR *open_folder = opendir(path);
    assert_non_null(open_folder);
    for (const struct dirent *entry; (entry = readdir(open_folder));)
        names += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(open_folder);
    return names;
}

/* ---- Running short ---- */

/* Does all of a piece of work, cleaning up after itself; where a step fails it checks what that step
 * gave and returns its status. */
typedef posenc_status work(posenc_error *error);

/* The work with one allocation that fails: 1 if it came to that. */
static inline int runs_short(work *run, size_t fail_at, shortage kind) {
    posenc_error error;
    long live = memory.live;
    size_t open_files = names_in("/proc/self/fd");
    memory_begin(fail_at, kind);
    posenc_status status = run(&error);
    memory_end();
    assert_int_equal(memory.live, live);
    assert_int_equal(names_in("/proc/self/fd"), open_files);
    if (!memory.failed) {
        assert_done(status, &error);
        return 0;
    }
    assert_int_equal(status, POSENC_OUT_OF_MEMORY);
    assert_int_equal(error.status, POSENC_OUT_OF_MEMORY);
    assert_non_null(error.argument);
    assert_non_null(error.must);
    return 1;
}

/* Lets the first allocation fail, then the second and so on, until all succeed; `after` looks at what
 * each failure left. Returns how many there are. */
static inline size_t run_short_at_every_allocation(work *run, void (*after)(void), shortage kind) {
    size_t fail_at = 1;
    for (; runs_short(run, fail_at, kind); fail_at++)
        after();
    return fail_at - 1;
}

static inline void assert_survives(work *run, size_t at_least, void (*after)(void)) {
    assert_true(run_short_at_every_allocation(run, after, SHORTAGE_ONCE) >= at_least);
    assert_true(run_short_at_every_allocation(run, after, SHORTAGE_LASTING) >= at_least);
}

static inline void nothing_to_look_at(void) {}

#endif
