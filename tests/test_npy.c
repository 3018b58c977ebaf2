/* .npy files: what is written is what is read, by us and by NumPy. `--make FOLDER` writes files for NumPy
 * to read, `--check FOLDER` reads what NumPy wrote; both are driven by npy_numpy.py.
 * SPDX-License-Identifier: MIT */
#include "npy_cases.h"

/* --- Round trips -------------------------------------------------------------------------------- */

static void set_random_array(posenc_npy_info *info, random_stream *rng) {
    static const size_t ranks[] = {0, 1, 1, 2, 2, 3, 4, 5, POSENC_NPY_MAX_RANK};
    size_t shape[POSENC_NPY_MAX_RANK], rank = ranks[random_below(rng, COUNT(ranks))], count = 1;
    for (size_t i = 0; i < rank; i++) {
        size_t room = 3000 / count;
        shape[i] = room > 1 ? 1 + random_below(rng, room < 40 ? room : 40) : 1;
        count *= shape[i];
    }
    if (rank && random_below(rng, 10) == 0)
        shape[random_below(rng, rank)] = 0;
    *info = info_of(dtypes[random_below(rng, 4)], (int)random_below(rng, 2), rank, shape);
}

/* 0 ... count - 1 in random order (Fisher and Yates). */
static void shuffle(size_t *order, size_t count, random_stream *rng) {
    for (size_t i = 0; i < count; i++) {
        size_t other = random_below(rng, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
}

/* Writes the array in pieces of one size, in random order. */
static void put_in_pieces(posenc_npy_writer *writer, const posenc_npy_info *info,
                          random_stream *rng) {
    size_t count = (size_t)info->count, piece = 1 + count / (1 + random_below(rng, 9));
    size_t order[3001], pieces = (count + piece - 1) / piece;
    shuffle(order, pieces, rng);
    for (size_t i = 0; i < pieces; i++) {
        size_t first = order[i] * piece;
        put(writer, info->dtype, first, count - first < piece ? count - first : piece);
    }
}

static void arrays_are_read_as_they_were_written_in_any_pieces(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    for (size_t trial = 0; trial < random_trials(400); trial++) {
        posenc_npy_info info, got;
        set_random_array(&info, &rng);
        posenc_npy_writer *writer = create("a.npy", &info);
        put_in_pieces(writer, &info, &rng);
        commit(writer);
        assert_array("a.npy", &info);
        posenc_npy_reader *reader = open_array("a.npy", &got);
        for (int i = 0; i < 5; i++) {
            size_t first = random_below(&rng, (size_t)info.count + 1);
            size_t count = random_below(&rng, (size_t)info.count - first + 1);
            assert_part(reader, info.dtype, first, count);
        }
        posenc_npy_close(reader);
        assert_names(".", "a.npy ");
    }
}

static void big_endian_files_are_read_in_pieces(void **state) {
    (void)state;
    random_stream rng = random_of(__func__);
    static const char *const texts[] = {
        [POSENC_F32] = ">f4", [POSENC_F64] = ">f8", [POSENC_F16] = ">f2", [POSENC_BF16] = ">V2"};
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        char text[100];
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (400,)}",
                 texts[dtypes[i]]);
        image f = image_of(1, text);
        fill_pattern(f.bytes + f.size, dtypes[i], 0, 400, 1);
        f.size += 400 * posenc_dtype_bytes(dtypes[i]);
        write_file("a.npy", f.bytes, f.size);
        posenc_npy_reader *reader = open_array("a.npy", NULL);
        for (int trial = 0; trial < 50; trial++) {
            size_t first = random_below(&rng, 401);
            assert_part(reader, dtypes[i], first, random_below(&rng, 401 - first));
        }
        posenc_npy_close(reader);
    }
}

#define ONES "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "

/* The bytes that NumPy 2 writes, by hand: elements at a multiple of 64, little-endian, and room for the
 * axis along which the file may grow to become 21 digits long. */
static void written_files_have_the_bytes_of_numpy(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t header;
        posenc_dtype dtype;
        int fortran;
        size_t rank, shape[15];
    } known[] = {
        {"'<f4', 'fortran_order': False, 'shape': (2, 3), }", 128, POSENC_F32, 0, 2, {2, 3}},
        {"'<f8', 'fortran_order': True, 'shape': (2, 3), }", 128, POSENC_F64, 1, 2, {2, 3}},
        {"'<f2', 'fortran_order': False, 'shape': (5,), }", 128, POSENC_F16, 0, 1, {5}},
        {"'<V2', 'fortran_order': True, 'shape': (1, 2, 3), }", 128, POSENC_BF16, 1, 3, {1, 2, 3}},
        {"'<f4', 'fortran_order': False, 'shape': (0, 7), }", 128, POSENC_F32, 0, 2, {0, 7}},
        {"'<f4', 'fortran_order': False, 'shape': (), }", 128, POSENC_F32, 0, 0, {0}},
        /* long enough for the room to matter, and to be that of the right axis */
        {"'<f4', 'fortran_order': False, 'shape': (0, " ONES "1000), }",
         192,
         POSENC_F32,
         0,
         14,
         {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1000}},
        {"'<f4', 'fortran_order': True, 'shape': (0, " ONES "1000), }",
         128,
         POSENC_F32,
         1,
         14,
         {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1000}},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        image f = {{0}, 0, 0};
        posenc_npy_info info =
            info_of(known[i].dtype, known[i].fortran, known[i].rank, known[i].shape);
        add_prefix(&f, 1, 0, known[i].header - 10);
        add_bytes(&f, "{'descr': ", 10);
        add_bytes(&f, known[i].text, strlen(known[i].text));
        while (f.size < known[i].header - 1)
            add_bytes(&f, " ", 1);
        add_bytes(&f, "\n", 1);
        fill_pattern(f.bytes + f.size, info.dtype, 0, (size_t)info.count, 0);
        f.size += (size_t)info.count * posenc_dtype_bytes(info.dtype);
        make_array("a.npy", &info);
        assert_file("a.npy", f.bytes, f.size);
    }
}

/* Members of info that only say what was read do not matter to a writer. */
static void a_writer_reads_dtype_shape_and_order_only(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F32, 3), odd = info;
    odd.big_endian = 1;
    odd.count = 99;
    odd.data_offset = 7;
    posenc_npy_writer *writer = create("a.npy", &odd);
    put(writer, POSENC_F32, 0, 3);
    commit(writer);
    assert_array("a.npy", &info);
}

static void system_calls_may_be_interrupted_and_move_less(void **state) {
    (void)state;
    posenc_npy_info info = vector_of(POSENC_F64, 300);
    for (most_moved = 7; most_moved < 1000; most_moved *= 3)
        make_array("a.npy", &info);
    most_moved = 0;
    assert_array("a.npy", &info);
    for (most_moved = 7; most_moved < 1000; most_moved *= 3)
        assert_array("a.npy", &info);
    most_moved = 0;
}

/* --- Threads ------------------------------------------------------------------------------------ */

enum { THREADS = 4, SHARE = 5000 };

/* One thread's part of an array; assertions are for the main thread, so that it only counts. */
typedef struct thread_part {
    pthread_t thread;
    posenc_npy_writer *writer;
    const posenc_npy_reader *reader;
    uint64_t first;
    int failures;
    uint32_t elements[SHARE];
} thread_part;

/* Steps of 50 elements, so that the threads are at work at the same time. */
static void *write_part(void *argument) {
    thread_part *part = argument;
    fill_pattern(part->elements, POSENC_F32, part->first, SHARE, machine_is_big());
    for (size_t i = 0; i < SHARE; i += 50)
        part->failures += posenc_npy_write(part->writer, part->first + i, 50, part->elements + i,
                                           NULL) != POSENC_OK;
    return NULL;
}

static void *read_part(void *argument) {
    thread_part *part = argument;
    for (size_t i = 0; i < SHARE; i += 50)
        part->failures += posenc_npy_read(part->reader, part->first + i, 50, part->elements + i,
                                          NULL) != POSENC_OK;
    return NULL;
}

static void run_threads(thread_part *parts, void *(*work)(void *)) {
    for (size_t i = 0; i < THREADS; i++) {
        parts[i].first = i * SHARE;
        assert_int_equal(pthread_create(&parts[i].thread, NULL, work, &parts[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(parts[i].thread, NULL), 0);
        assert_int_equal(parts[i].failures, 0);
    }
}

static void threads_share_a_writer_and_a_reader(void **state) {
    (void)state;
    static thread_part parts[THREADS];
    posenc_npy_info info = vector_of(POSENC_F32, (size_t)THREADS * SHARE);
    posenc_npy_writer *writer = create("a.npy", &info);
    for (size_t i = 0; i < THREADS; i++)
        parts[i].writer = writer;
    run_threads(parts, write_part);
    commit(writer);
    assert_array("a.npy", &info);
    posenc_npy_reader *reader = open_array("a.npy", NULL);
    for (size_t i = 0; i < THREADS; i++) {
        memset(parts[i].elements, 0, sizeof parts[i].elements);
        parts[i].reader = reader;
    }
    run_threads(parts, read_part);
    posenc_npy_close(reader);
    for (size_t i = 0; i < THREADS; i++)
        assert_pattern(parts[i].elements, POSENC_F32, parts[i].first, SHARE);
}

/* --- The other side is NumPy -------------------------------------------------------------------- */

/* The arrays of both directions, as in npy_numpy.py: dtype, order and the number of the shape. Elements
 * are the pattern in the order of the file. */
static const struct {
    size_t rank, shape[15];
} numpy_shapes[] = {{0, {0}},       {1, {5}},
                    {2, {0, 3}},    {2, {4, 3}},
                    {3, {2, 3, 5}}, {15, {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 12}}};

enum { NUMPY_ARRAYS = COUNT(dtypes) * 2 * COUNT(numpy_shapes) };

/* Array `i` of them, with its file's name before what tells NumPy's variants apart. */
static posenc_npy_info numpy_array(size_t i, char *name, size_t capacity) {
    posenc_dtype dtype = dtypes[i % 4];
    int fortran = i / 4 % 2 != 0;
    size_t shape = i / 8;
    snprintf(name, capacity, "%s_%c_%zu", posenc_dtype_name(dtype), fortran ? 'f' : 'c', shape);
    return info_of(dtype, fortran, numpy_shapes[shape].rank, numpy_shapes[shape].shape);
}

static void arrays_are_written_for_numpy(void **state) {
    (void)state;
    for (size_t i = 0; i < NUMPY_ARRAYS; i++) {
        char name[40], path[60];
        posenc_npy_info info = numpy_array(i, name, sizeof name);
        snprintf(path, sizeof path, "%s.npy", name);
        make_array(path, &info);
    }
}

/* NumPy says "Fortran order" only where it makes a difference, and knows no byte order of V2. */
static void arrays_of_numpy_are_read(void **state) {
    (void)state;
    static const char *const variants[] = {"", "_v2", "_v3", "_big"};
    for (size_t i = 0; i < NUMPY_ARRAYS * COUNT(variants); i++) {
        char name[40], path[60];
        posenc_npy_info info = numpy_array(i / COUNT(variants), name, sizeof name);
        const char *variant = variants[i % COUNT(variants)];
        info.fortran_order = info.fortran_order && info.rank > 1 && info.count > 0;
        info.big_endian = strcmp(variant, "_big") == 0;
        if (info.big_endian && info.dtype == POSENC_BF16)
            continue;
        snprintf(path, sizeof path, "%s%s.npy", name, variant);
        assert_array(path, &info);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest make[] = {cmocka_unit_test(arrays_are_written_for_numpy)};
    const struct CMUnitTest check[] = {cmocka_unit_test(arrays_of_numpy_are_read)};
    if (argc == 3 && strcmp(argv[1], "--make") == 0 && chdir(argv[2]) == 0)
        return cmocka_run_group_tests(make, NULL, NULL);
    if (argc == 3 && strcmp(argv[1], "--check") == 0 && chdir(argv[2]) == 0)
        return cmocka_run_group_tests(check, NULL, NULL);
    if (argc != 1) {
        fprintf(stderr, "usage: %s [--make FOLDER | --check FOLDER]\n", argv[0]);
        return 2;
    }
    random_announce();
    const struct CMUnitTest tests[] = {
        TEST(arrays_are_read_as_they_were_written_in_any_pieces),
        TEST(big_endian_files_are_read_in_pieces),
        TEST(written_files_have_the_bytes_of_numpy),
        TEST(a_writer_reads_dtype_shape_and_order_only),
        TEST(system_calls_may_be_interrupted_and_move_less),
        TEST(threads_share_a_writer_and_a_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
