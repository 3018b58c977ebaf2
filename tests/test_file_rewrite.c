/* New files made of pieces of old ones: the bytes, and what is left behind whatever happens.
 * SPDX-License-Identifier: MIT */
#include "failing_disk.h"
#include "file_cases.h"
#include "formats/rewrite_check.h"

#include <dirent.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

/* ---- Pieces and what they should give ---- */

enum { MOST_PIECES = 40 };

/* A list of pieces and the bytes of the new file, put together by loops of the test's own. */
typedef struct recipe {
    penc_piece pieces[MOST_PIECES];
    uint64_t *orders[MOST_PIECES]; /* of ROWS */
    unsigned char *bytes[MOST_PIECES];
    size_t count;
    image wanted;
} recipe;

static uint64_t order_row(const void *order, uint64_t row) {
    return ((const uint64_t *)order)[row];
}

static void recipe_copy(recipe *r, const image *old, uint64_t place, uint64_t bytes) {
    r->pieces[r->count++] = (penc_piece){.kind = PENC_PIECE_COPY, .place = place, .bytes = bytes};
    add_bytes(&r->wanted, old->bytes + place, bytes);
}

static void recipe_bytes(recipe *r, random_stream *rng, size_t bytes) {
    unsigned char *data = r->bytes[r->count] = malloc(bytes + 1);
    assert_non_null(data);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)random_bits(rng);
    r->pieces[r->count++] = (penc_piece){.kind = PENC_PIECE_BYTES, .bytes = bytes, .data = data};
    add_bytes(&r->wanted, data, bytes);
}

/* Takes the order. */
static void recipe_rows(recipe *r, const image *old, uint64_t place, uint64_t *order, uint64_t rows,
                        uint64_t row_bytes) {
    r->orders[r->count] = order;
    r->pieces[r->count++] = (penc_piece){.kind = PENC_PIECE_ROWS,
                                         .place = place,
                                         .bytes = rows * row_bytes,
                                         .row_bytes = row_bytes,
                                         .source_row = order_row,
                                         .context = order};
    for (uint64_t row = 0; row < rows; row++)
        add_bytes(&r->wanted, old->bytes + place + order[row] * row_bytes, row_bytes);
}

static void recipe_free(recipe *r) {
    for (size_t i = 0; i < MOST_PIECES; i++) {
        free(r->orders[i]);
        free(r->bytes[i]);
    }
    image_free(&r->wanted);
}

/* Rows of heads from half to interleaved pairs; of each head only `rotary` move. */
static uint64_t *head_order(uint64_t heads, uint64_t head, uint64_t rotary) {
    uint64_t *order = malloc(heads * head * sizeof *order);
    assert_non_null(order);
    for (uint64_t i = 0; i < heads * head; i++) {
        uint64_t channel = i % head, from = channel;
        if (channel < rotary)
            from = channel % 2 * (rotary / 2) + channel / 2;
        order[i] = i - channel + from;
    }
    return order;
}

/* Rows shuffled within groups; sometimes over all. */
static uint64_t *random_order(random_stream *rng, uint64_t rows) {
    uint64_t *order = malloc((rows + 1) * sizeof *order);
    uint64_t group = 1 + random_below(rng, random_below(rng, 4) ? 16 : rows + 1);
    assert_non_null(order);
    for (uint64_t i = 0; i < rows; i++)
        order[i] = i;
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t begin = i - i % group, end = begin + group < rows ? begin + group : rows;
        uint64_t j = i + random_below(rng, end - i), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    return order;
}

static image random_image(random_stream *rng, size_t bytes) {
    image f = {malloc(bytes + 8), bytes, bytes + 8, 0};
    assert_non_null(f.bytes);
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t bits = random_bits(rng);
        memcpy(f.bytes + i, &bits, sizeof bits);
    }
    return f;
}

static recipe random_recipe(random_stream *rng, const image *old) {
    recipe r = {.count = 0};
    size_t pieces = random_below(rng, MOST_PIECES);
    while (r.count < pieces) {
        uint64_t place = random_below(rng, old->size + 1), room = old->size - place;
        uint64_t row_bytes = 1 + random_below(rng, 40);
        uint64_t rows = random_below(rng, (room / row_bytes < 200 ? room / row_bytes : 200) + 1);
        switch (random_below(rng, 3)) {
        case 0:
            recipe_copy(&r, old, place, random_below(rng, room + 1));
            break;
        case 1:
            recipe_bytes(&r, rng, random_below(rng, 300));
            break;
        default:
            recipe_rows(&r, old, place, random_order(rng, rows), rows, row_bytes);
        }
    }
    return r;
}

/* ---- Running one ---- */

static void assert_bytes_of(const char *path, const image *wanted) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, wanted->size);
    unsigned char *got = malloc(wanted->size + 1);
    int file = open(path, O_RDONLY);
    assert_true(file >= 0 && got);
    for (size_t done = 0; done < wanted->size;) {
        ssize_t moved = read(file, got + done, wanted->size - done);
        assert_true(moved > 0);
        done += (size_t)moved;
    }
    close(file);
    assert_true(!wanted->size || memcmp(got, wanted->bytes, wanted->size) == 0);
    free(got);
}

static posenc_status rewrite_reporting(const char *source, const char *target, const recipe *r,
                                       const penc_rewrite_progress *progress, posenc_error *error) {
    penc_input input;
    assert_int_equal(penc_input_open(source, &input, NULL), POSENC_OK);
    posenc_status status = penc_file_rewrite(&input, target, r->pieces, r->count, progress, error);
    penc_input_close(&input);
    return status;
}

static posenc_status rewrite(const char *source, const char *target, const recipe *r,
                             posenc_error *error) {
    return rewrite_reporting(source, target, r, NULL, error);
}

static void assert_rewrites(const char *source, const char *target, const recipe *r) {
    posenc_error error;
    assert_done(rewrite(source, target, r, &error), &error);
    assert_bytes_of(target, &r->wanted);
}

static size_t names_here(void) {
    size_t names = 0;
    DIR *here = opendir(".");
    assert_non_null(here);
    while (readdir(here))
        names++;
    closedir(here);
    return names - 2;
}

/* ---- The bytes ---- */

static void pieces_come_one_after_the_other(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(200); trial++) {
        image old = random_image(&rng, random_below(&rng, 20000));
        recipe r = random_recipe(&rng, &old);
        write_file("old", old.bytes, old.size);
        assert_rewrites("old", "new", &r);
        assert_bytes_of("old", &old);
        recipe_free(&r);
        image_free(&old);
    }
    assert_int_equal(names_here(), 2);
}

static void short_and_interrupted_calls_make_the_same_file(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(60); trial++) {
        image old = random_image(&rng, random_below(&rng, 5000));
        recipe r = random_recipe(&rng, &old);
        write_file("old", old.bytes, old.size);
        most_moved = 1 + random_below(&rng, 700);
        posenc_error error;
        posenc_status status = rewrite("old", "new", &r, &error);
        most_moved = 0;
        assert_done(status, &error);
        assert_bytes_of("new", &r.wanted);
        recipe_free(&r);
        image_free(&old);
    }
}

/* Heads that fill windows, that do not divide them, and that are larger; rows larger than a window. */
static void heads_and_rows_of_all_sizes_come_out(void **state) {
    (void)state;
    static const struct {
        uint64_t heads, head, rotary, row_bytes;
    } sizes[] = {
        {24, 128, 128, 8192}, {7, 96, 96, 20001}, {3, 80, 32, 5120},  {1, 128, 128, 131072},
        {1, 80, 80, 131072},  {1, 4, 4, 9000001}, {4000, 8, 8, 3},    {2, 40000, 40000, 1},
        {1, 3000, 3000, 7},   {5, 128, 0, 8192},  {64, 16, 4, 16384}, {1, 2, 2, 8 << 20},
    };
    random_stream rng = random_of(__func__);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        uint64_t rows = sizes[i].heads * sizes[i].head, bytes = rows * sizes[i].row_bytes;
        image old = random_image(&rng, bytes + 100);
        recipe r = {.count = 0};
        recipe_bytes(&r, &rng, 57);
        recipe_rows(&r, &old, 100, head_order(sizes[i].heads, sizes[i].head, sizes[i].rotary), rows,
                    sizes[i].row_bytes);
        recipe_copy(&r, &old, 0, 99);
        write_file("old", old.bytes, old.size);
        assert_rewrites("old", "new", &r);
        recipe_free(&r);
        image_free(&old);
    }
}

/* Nothing depends on the kernel's copies, nor on how far they came. */
static void where_the_kernel_does_not_copy_memory_does(void **state) {
    (void)state;
    static const int errors[] = {EXDEV, EINVAL, ENOSYS, EOPNOTSUPP, EPERM, EBADF, ETXTBSY, -1};
    random_stream rng = random_of(__func__);
    image old = random_image(&rng, 3 << 20);
    recipe r = {.count = 0};
    recipe_bytes(&r, &rng, 57);
    recipe_copy(&r, &old, 100, (2 << 20) + 333);
    recipe_rows(&r, &old, 1000, head_order(4, 64, 64), 256, 999);
    recipe_copy(&r, &old, 5, 3000);
    write_file("old", old.bytes, old.size);
    for (size_t i = 0; i < 2 * COUNT(errors); i++) {
        kernel_copies.error = errors[i / 2];
        kernel_copies.before = i % 2 * 1000003;
        kernel_copies.failed = 0;
        posenc_error error;
        posenc_status status = rewrite("old", "new", &r, &error);
        kernel_copies.error = 0;
        assert_done(status, &error);
        assert_bytes_of("new", &r.wanted);
        assert_int_equal(kernel_copies.failed, 1); /* and it is not asked again */
    }
    recipe_free(&r);
    image_free(&old);
}

static off_t blocks_of(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_blocks;
}

/* Islands of data in a file of 600 MiB; the new one is shifted by 57 bytes and ends with a hole. */
static void holes_stay_holes(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    image island = random_image(&rng, 50000);
    const off_t size = (off_t)600 << 20, first = (off_t)200 << 20;
    const off_t second = ((off_t)400 << 20) + 12345;
    int file = open("old", O_RDWR | O_CREAT, 0644);
    assert_true(file >= 0 && ftruncate(file, size) == 0);
    assert_int_equal(pwrite(file, island.bytes, island.size, first), (ssize_t)island.size);
    assert_int_equal(pwrite(file, island.bytes, island.size, second), (ssize_t)island.size);
    close(file);
    if (blocks_of("old") > 10000)
        skip(); /* a file system without holes */
    recipe r = {.count = 0};
    recipe_bytes(&r, &rng, 57);
    r.pieces[r.count++] = (penc_piece){PENC_PIECE_COPY, 0, 1000000, NULL, 0, NULL, NULL};
    r.orders[r.count] = head_order(64, 128, 128);
    r.pieces[r.count] = (penc_piece){PENC_PIECE_ROWS, 1000000,   (uint64_t)8192 * 16384, NULL,
                                     16384,           order_row, r.orders[r.count]};
    uint64_t place = r.pieces[r.count].place + r.pieces[r.count].bytes;
    r.count++;
    r.pieces[r.count++] =
        (penc_piece){PENC_PIECE_COPY, place, (uint64_t)size - place, NULL, 0, NULL, NULL};
    posenc_error error;
    assert_done(rewrite("old", "new", &r, &error), &error);
    assert_true(blocks_of("new") < 10000);
    struct stat status;
    assert_int_equal(stat("new", &status), 0);
    assert_int_equal(status.st_size, size + 57);
    unsigned char got[50002];
    file = open("new", O_RDONLY);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pread(file, got, sizeof got, (i ? second : first) + 57 - 1), sizeof got);
        assert_memory_equal(got + 1, island.bytes, island.size);
        assert_true(got[0] == 0 && got[50001] == 0);
    }
    assert_int_equal(pread(file, got, 57, 0), 57);
    assert_memory_equal(got, r.pieces[0].data, 57);
    close(file);
    recipe_free(&r);
    image_free(&island);
}

/* ---- Telling what was written ---- */

static int is_rewritten(const recipe *r) {
    penc_input input;
    posenc_error error;
    int is = 2;
    assert_int_equal(penc_input_open("old", &input, NULL), POSENC_OK);
    assert_done(penc_file_is_rewritten(&input, "new", r->pieces, r->count, &is, &error), &error);
    penc_input_close(&input);
    return is;
}

/* Changes the byte at `place` and back. */
static void assert_change_is_seen(const recipe *r, size_t place) {
    int file = open("new", O_WRONLY);
    unsigned char other = r->wanted.bytes[place] ^ 1;
    assert_int_equal(pwrite(file, &other, 1, (off_t)place), 1);
    assert_int_equal(is_rewritten(r), 0);
    assert_int_equal(pwrite(file, r->wanted.bytes + place, 1, (off_t)place), 1);
    close(file);
}

/* Small files are compared as a whole but for long orders of short rows. */
static void a_file_is_told_to_be_what_was_written(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(100); trial++) {
        image old = random_image(&rng, random_below(&rng, 20000));
        recipe r = random_recipe(&rng, &old);
        write_file("old", old.bytes, old.size);
        (void)unlink("new");
        assert_int_equal(is_rewritten(&r), 0);
        assert_rewrites("old", "new", &r);
        assert_int_equal(is_rewritten(&r), 1);
        for (size_t i = 0, place = 0; i < r.count; place += r.pieces[i++].bytes) {
            if (!r.pieces[i].bytes)
                continue;
            assert_change_is_seen(&r, place);
            if (r.pieces[i].kind != PENC_PIECE_ROWS)
                assert_change_is_seen(&r, place + r.pieces[i].bytes - 1);
        }
        assert_int_equal(truncate("new", (off_t)r.wanted.size + 1), 0);
        assert_int_equal(is_rewritten(&r), 0);
        recipe_free(&r);
        image_free(&old);
    }
}

static void samples_of_large_pieces_are_compared(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    image old = random_image(&rng, 20 << 20);
    recipe r = {.count = 0};
    recipe_bytes(&r, &rng, 200000);
    recipe_copy(&r, &old, 7, 17 << 20);
    write_file("old", old.bytes, old.size);
    assert_rewrites("old", "new", &r);
    assert_int_equal(is_rewritten(&r), 1);
    assert_change_is_seen(&r, 199999);
    assert_change_is_seen(&r, 200000 + 65535);
    assert_change_is_seen(&r, 200000 + (16 << 20) + 65535);
    recipe_free(&r);
    image_free(&old);
}

/* ---- The target ---- */

/* A file, and a recipe that changes it. */
typedef struct example {
    image old;
    recipe r;
} example;

static example make_example(const char *name, size_t bytes) {
    random_stream rng = random_of(name);
    example e = {random_image(&rng, bytes), {.count = 0}};
    recipe_bytes(&e.r, &rng, 57);
    recipe_rows(&e.r, &e.old, 100, head_order(4, 64, 64), 256, bytes / 1000);
    recipe_copy(&e.r, &e.old, 0, bytes);
    write_file("old", e.old.bytes, e.old.size);
    return e;
}

static void example_free(example *e) {
    recipe_free(&e->r);
    image_free(&e->old);
}

/* By every name of the source: who has the old bytes keeps them. */
static void the_source_may_be_the_target(void **state) {
    (void)state;
    static const char *const names[] = {"old", "./old", "link", "other"};
    for (size_t i = 0; i < COUNT(names); i++) {
        example e = make_example(__func__, 50000);
        penc_input reader;
        assert_int_equal(penc_input_open("old", &reader, NULL), POSENC_OK);
        assert_true(link("old", "other") == 0 && symlink("old", "link") == 0);
        assert_rewrites("old", names[i], &e.r);
        assert_bytes_of(i == 3 ? "old" : "other", &e.old);
        assert_bytes_of(i == 3 ? "other" : "old", &e.r.wanted);
        unsigned char *kept = malloc(e.old.size);
        posenc_error error;
        assert_done(penc_input_read(&reader, 0, kept, e.old.size, &error), &error);
        assert_int_equal(memcmp(kept, e.old.bytes, e.old.size), 0);
        free(kept);
        penc_input_close(&reader);
        struct stat status;
        assert_int_equal(lstat("link", &status), 0);
        assert_true(S_ISLNK(status.st_mode));
        assert_int_equal(names_here(), 3);
        assert_true(unlink("link") == 0 && unlink("other") == 0 && unlink("old") == 0);
        example_free(&e);
    }
}

static mode_t mode_of(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

static void a_new_file_gets_the_mode_of_its_source_and_an_old_one_keeps_its_own(void **state) {
    (void)state;
    static const mode_t modes[] = {0600, 0644, 0400, 0666};
    example e = make_example(__func__, 5000);
    mode_t before = umask(022);
    for (size_t i = 0; i < COUNT(modes); i++) {
        assert_int_equal(chmod("old", modes[i]), 0);
        assert_rewrites("old", "new", &e.r);
        assert_int_equal(mode_of("new"), modes[i] & ~(mode_t)022);
        assert_int_equal(chmod("new", 0640), 0);
        assert_rewrites("old", "new", &e.r);
        assert_int_equal(mode_of("new"), 0640);
        assert_int_equal(unlink("new"), 0);
    }
    umask(before);
    example_free(&e);
}

static void the_whole_file_is_flushed_before_it_has_its_name(void **state) {
    (void)state;
    example e = make_example(__func__, 5000);
    memset(&flushed, 0, sizeof flushed);
    assert_rewrites("old", "new", &e.r);
    assert_int_equal(flushed.files, 1);
    assert_int_equal(flushed.folders, 1);
    assert_int_equal(flushed.file_size, e.r.wanted.size);
    example_free(&e);
}

/* ---- Progress ---- */

typedef struct reports {
    uint64_t done, total;
    size_t count;
    int (*act)(void); /* done at the third report */
} reports;

static void report(void *context, uint64_t done, uint64_t total) {
    reports *seen = context;
    assert_true(done > seen->done && done <= total && (!seen->count || total == seen->total));
    seen->done = done;
    seen->total = total;
    if (++seen->count == 3 && seen->act)
        assert_int_equal(seen->act(), 0);
}

static void progress_rises_to_the_size_of_the_new_file(void **state) {
    (void)state;
    example e = make_example(__func__, 30 << 20);
    reports seen = {0, 0, 0, NULL};
    penc_rewrite_progress progress = {report, &seen};
    posenc_error error;
    assert_done(rewrite_reporting("old", "new", &e.r, &progress, &error), &error);
    assert_true(seen.done == e.r.wanted.size && seen.total == e.r.wanted.size && seen.count >= 5);
    example_free(&e);
}

/* ---- Sources that change ---- */

static int shrink(void) {
    return truncate("old", 1 << 20);
}

static int grow(void) {
    return truncate("old", 31 << 20);
}

static int touch(void) {
    return utimensat(AT_FDCWD, "old", (struct timespec[2]){{0, UTIME_NOW}, {12345, 6}}, 0);
}

static int vanish(void) {
    return unlink("old");
}

static void a_source_that_changes_meanwhile_is_an_error_that_names_it(void **state) {
    (void)state;
    static int (*const acts[])(void) = {shrink, grow, touch, vanish};
    for (size_t i = 0; i < COUNT(acts); i++) {
        example e = make_example(__func__, 30 << 20);
        write_text("new", "what was there");
        reports seen = {0, 0, 0, acts[i]};
        penc_rewrite_progress progress = {report, &seen};
        posenc_error error;
        posenc_status status = rewrite_reporting("old", "new", &e.r, &progress, &error);
        if (acts[i] == vanish) { /* it is still open */
            assert_done(status, &error);
            assert_bytes_of("new", &e.r.wanted);
        } else {
            image wanted = {NULL, 0, 0, 0};
            add_bytes(&wanted, "what was there", 14);
            assert_int_equal(status, acts[i] == shrink ? POSENC_FORMAT : POSENC_IO);
            assert_string_equal(error.file, "old");
            assert_bytes_of("new", &wanted);
            image_free(&wanted);
        }
        assert_int_equal(names_here(), acts[i] == vanish ? 1 : 2);
        example_free(&e);
    }
}

/* ---- Failures ---- */

/* Any of the calls fails, one after the other: either there is another way and the file is right, or the error
 * names the file and everything is as before. Returns how many errors there were. */
static size_t fail_every_call(const example *e, int os_error) {
    image before = {NULL, 0, 0, 0};
    size_t errors = 0, open_files = (size_t)next_descriptor();
    add_bytes(&before, "what was there", 14);
    for (disk.fail_at = 1;; disk.fail_at++) {
        posenc_error error;
        size_t fail_at = disk.fail_at;
        disk.fail_at = 0;
        write_text("new", "what was there");
        disk.fail_at = fail_at;
        disk.calls = 0;
        disk.error = os_error;
        disk.failed[0] = '\0';
        posenc_status status = rewrite("old", "new", &e->r, &error);
        disk.fail_at = 0;
        assert_int_equal(next_descriptor(), open_files);
        assert_int_equal(names_here(), 2);
        assert_bytes_of("old", &e->old);
        if (!disk.failed[0]) {
            assert_done(status, &error);
            break;
        }
        disk.fail_at = fail_at;
        errors += status != POSENC_OK;
        if (!status || strcmp(disk.failed, "fsync of folder") == 0)
            assert_bytes_of("new", &e->r.wanted);
        else
            assert_bytes_of("new", &before);
        if (status) {
            assert_int_equal(status, POSENC_IO);
            assert_int_equal(error.os_error, os_error);
            assert_string_equal(error.file, strcmp(disk.failed, "pread64") == 0 ? "old" : "new");
        }
    }
    image_free(&before);
    return errors;
}

static void whatever_call_fails_leaves_everything_as_it_was(void **state) {
    (void)state;
    static const int errors[] = {ENOSPC, EIO, EDQUOT, EFBIG};
    example e = make_example(__func__, 7 << 20);
    for (size_t i = 0; i < 2 * COUNT(errors); i++) {
        kernel_copies.error = i % 2 ? ENOSYS : 0;
        proc_is_hidden = i >= COUNT(errors);
        assert_true(fail_every_call(&e, errors[i % COUNT(errors)]) >= 5);
    }
    kernel_copies.error = proc_is_hidden = 0;
    example_free(&e);
}

/* Large files are written to the disk while they are copied. */
static void a_disk_that_fails_early_is_told(void **state) {
    (void)state;
    example e = make_example(__func__, 40 << 20);
    disk.only = "sync_file_range";
    assert_int_equal(fail_every_call(&e, ENOSPC), 1);
    disk.only = NULL;
    example_free(&e);
}

static void a_limit_of_file_sizes_is_told(void **state) {
    (void)state;
    example e = make_example(__func__, 3 << 20);
    struct rlimit before, limit;
    posenc_error error;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (rlim_t bytes = 10; bytes < 3 << 20; bytes = 3 * bytes + 1) {
        limit = before;
        limit.rlim_cur = bytes;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        posenc_status status = rewrite("old", "new", &e.r, &error);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(status, POSENC_IO);
        assert_int_equal(error.os_error, EFBIG);
        assert_string_equal(error.file, "new");
        assert_int_equal(names_here(), 1);
    }
    signal(SIGXFSZ, handler);
    example_free(&e);
}

/* ---- What kills leave ---- */

/* Files with temporary names: removed unless locked, which those at work are; other names stay. */
static void what_a_kill_has_left_is_removed_by_the_next(void **state) {
    (void)state;
    example e = make_example(__func__, 5000);
    for (proc_is_hidden = 0; proc_is_hidden < 2; proc_is_hidden++) {
        write_text(".new.posenc-123-abcdef-0", "left");
        write_text(".new.posenc-124-0-7", "at work");
        write_text(".new.posenc-123-notes-0", "somebody's own");
        write_text(".new.posenc-", "somebody's own");
        write_text(".newer.posenc-123-abcdef-0", "left for another file");
        int at_work = open(".new.posenc-124-0-7", O_RDONLY);
        assert_int_equal(flock(at_work, LOCK_EX), 0);
        assert_rewrites("old", "new", &e.r);
        close(at_work);
        assert_int_equal(access(".new.posenc-123-abcdef-0", F_OK), -1);
        assert_int_equal(names_here(), 6);
    }
    proc_is_hidden = 0;
    example_free(&e);
}

static size_t temporaries(void) {
    size_t names = 0;
    DIR *here = opendir(".");
    assert_non_null(here);
    for (const struct dirent *entry; (entry = readdir(here));)
        names += strncmp(entry->d_name, ".new.posenc-", 12) == 0;
    closedir(here);
    return names;
}

/* A second program's output for the same target, while the first is at work. */
static int rewrite_meanwhile(void) {
    example e = make_example("meanwhile", 5000);
    assert_int_equal(rename("old", "other"), 0);
    assert_int_equal(temporaries(), 1);
    assert_rewrites("other", "new", &e.r);
    assert_int_equal(temporaries(), 1);
    example_free(&e);
    return 0;
}

static void an_output_at_work_is_not_taken_for_one_that_was_left(void **state) {
    (void)state;
    example e = make_example(__func__, 30 << 20);
    assert_int_equal(rename("old", "large"), 0);
    reports seen = {0, 0, 0, rewrite_meanwhile};
    penc_rewrite_progress progress = {report, &seen};
    posenc_error error;
    proc_is_hidden = 1;
    posenc_status status = rewrite_reporting("large", "new", &e.r, &progress, &error);
    proc_is_hidden = 0;
    assert_done(status, &error);
    assert_bytes_of("new", &e.r.wanted);
    assert_int_equal(temporaries(), 0);
    example_free(&e);
}

/* ---- Refusals ---- */

static void what_cannot_be_done_is_refused_before_anything_is_written(void **state) {
    (void)state;
    example e = make_example(__func__, 5000);
    assert_int_equal(mkdir("folder", 0755), 0);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    const struct {
        const char *target;
        penc_piece piece;
        refusal refusal;
    } cases[] = {
        {"new",
         {PENC_PIECE_COPY, 4000, 1001, NULL, 0, NULL, NULL},
         {POSENC_FORMAT, "file size", NULL, NULL, "old", -1}},
        {"new",
         {PENC_PIECE_COPY, UINT64_MAX, 2, NULL, 0, NULL, NULL},
         {POSENC_FORMAT, "file size", NULL, NULL, "old", -1}},
        {"new",
         {PENC_PIECE_ROWS, 0, 5001, NULL, 1, order_row, NULL},
         {POSENC_FORMAT, "file size", NULL, NULL, "old", -1}},
        {"new",
         {PENC_PIECE_BYTES, 0, UINT64_MAX, "", 0, NULL, NULL},
         {POSENC_OVERFLOW, "size of the new file", NULL, NULL, "old", -1}},
        {"folder",
         {PENC_PIECE_COPY, 0, 10, NULL, 0, NULL, NULL},
         {POSENC_UNSUPPORTED, "path", "not a folder, pipe or device", NULL, "folder", -1}},
        {"pipe",
         {PENC_PIECE_COPY, 0, 10, NULL, 0, NULL, NULL},
         {POSENC_UNSUPPORTED, "path", "not a folder, pipe or device", NULL, "pipe", -1}},
        {"missing/new",
         {PENC_PIECE_COPY, 0, 10, NULL, 0, NULL, NULL},
         {POSENC_IO, "path", NULL, NULL, "missing/new", -1}},
        {"",
         {PENC_PIECE_COPY, 0, 10, NULL, 0, NULL, NULL},
         {POSENC_IO, "path", NULL, NULL, "", -1}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        recipe one = {.count = 1};
        one.pieces[0] = cases[i].piece;
        posenc_error error;
        posenc_status status = rewrite("old", cases[i].target, &one, &error);
        assert_refusal(status, &error, &cases[i].refusal, cases[i].target);
        assert_int_equal(names_here(), 3);
        assert_int_equal(rewrite("old", cases[i].target, &one, NULL), status);
    }
    example_free(&e);
}

int main(void) {
    random_announce();
    const struct CMUnitTest tests[] = {
        TEST(pieces_come_one_after_the_other),
        TEST(short_and_interrupted_calls_make_the_same_file),
        TEST(heads_and_rows_of_all_sizes_come_out),
        TEST(where_the_kernel_does_not_copy_memory_does),
        TEST(holes_stay_holes),
        TEST(a_file_is_told_to_be_what_was_written),
        TEST(samples_of_large_pieces_are_compared),
        TEST(the_source_may_be_the_target),
        TEST(a_new_file_gets_the_mode_of_its_source_and_an_old_one_keeps_its_own),
        TEST(the_whole_file_is_flushed_before_it_has_its_name),
        TEST(progress_rises_to_the_size_of_the_new_file),
        TEST(a_source_that_changes_meanwhile_is_an_error_that_names_it),
        TEST(whatever_call_fails_leaves_everything_as_it_was),
        TEST(a_disk_that_fails_early_is_told),
        TEST(a_limit_of_file_sizes_is_told),
        TEST(what_a_kill_has_left_is_removed_by_the_next),
        TEST(an_output_at_work_is_not_taken_for_one_that_was_left),
        TEST(what_cannot_be_done_is_refused_before_anything_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
