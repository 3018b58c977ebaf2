/* Speed of posenc_rotate as a ratio to memcpy of the same bytes, and of posenc_angles in
 * nanoseconds per cos+sin pair.
 *
 * Both sides of a ratio run in turn in one process, on the same memory, for several rounds; each
 * round gives one ratio, and the median and the range over the rounds are printed. A time by itself
 * says little on a shared machine, so compare ratios. SPDX-License-Identifier: MIT */
#include "posenc/posenc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEADS = 32, HEAD_DIM = 128, PAIRS = HEAD_DIM / 2, MAX_TOKENS = 4096, MAX_ROUNDS = 15 };

/* How long to measure. */
typedef struct effort_level {
    int rounds;
    double seconds; /* a side of a round runs at least this long */
} effort_level;

static const effort_level thorough = {MAX_ROUNDS, 4e-3}, quick = {3, 5e-4};

static void must(posenc_status status, const posenc_error *error) {
    if (status == POSENC_OK)
        return;
    char text[256];
    posenc_error_text(error, text, sizeof text);
    fprintf(stderr, "bench_rotate: %s\n", text);
    exit(2);
}

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) {
        fprintf(stderr, "bench_rotate: out of memory\n");
        exit(2);
    }
    return memory;
}

/* --- Measuring ------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Something to be measured: one call of `run` with `work`. */
typedef struct side {
    void (*run)(void *work);
    void *work;
    size_t calls; /* as many as fill the time of a round */
} side;

static double seconds_of(const side *s, size_t calls) {
    double start = now();
    for (size_t i = 0; i < calls; i++)
        s->run(s->work);
    return (now() - start) / (double)calls;
}

/* Warms up and finds the number of calls. */
static void prepare(side *s, const effort_level *effort) {
    s->calls = 1;
    s->run(s->work);
    while (seconds_of(s, s->calls) * (double)s->calls < effort->seconds)
        s->calls *= 2;
}

static int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct spread {
    double median, least, most;
} spread;

static spread spread_of(double *numbers, int count) {
    qsort(numbers, (size_t)count, sizeof *numbers, compare_numbers);
    spread s = {numbers[count / 2], numbers[0], numbers[count - 1]}; /* count is odd */
    return s;
}

/* --- Rotation -------------------------------------------------------------------------------- */

typedef struct rotate_work {
    posenc_rotation rotation;
    posenc_tensor tensor;
    const void *from;
    void *to;
    size_t bytes;
} rotate_work;

static void run_rotate(void *work) {
    const rotate_work *w = work;
    posenc_error error;
    must(posenc_rotate(&w->rotation, &w->tensor, w->from, w->to, NULL, &error), &error);
}

/* Through a volatile pointer, so that no copy is optimised away. */
static void *(*volatile copy_bytes)(void *, const void *, size_t) = memcpy;

typedef struct copy_work {
    const void *from;
    void *to;
    size_t bytes;
} copy_work;

static void run_copy(void *work) {
    const copy_work *w = work;
    copy_bytes(w->to, w->from, w->bytes);
}

/* Tables and tensors, large enough for every measurement. */
typedef struct memory {
    void *input, *output;
    double *cos, *sin;
    double *numbers; /* the input in float64 */
    int64_t positions[MAX_TOKENS];
} memory;

static memory *memory_make(void) {
    const size_t count = (size_t)MAX_TOKENS * HEADS * HEAD_DIM;
    memory *m = allocate(sizeof *m);
    uint32_t state = 1;
    m->input = allocate(count * sizeof(double));
    m->output = allocate(count * sizeof(double));
    m->numbers = allocate(count * sizeof(double));
    m->cos = allocate((size_t)MAX_TOKENS * PAIRS * sizeof(double));
    m->sin = allocate((size_t)MAX_TOKENS * PAIRS * sizeof(double));
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        m->numbers[i] = (double)(state >> 8) * 0x1p-23 - 1.0;
    }
    memset(m->output, 0, count * sizeof(double)); /* so that every page is there */
    for (int i = 0; i < MAX_TOKENS; i++)
        m->positions[i] = i;
    return m;
}

static void memory_free(memory *m) {
    free(m->input);
    free(m->output);
    free(m->numbers);
    free(m->cos);
    free(m->sin);
    free(m);
}

static posenc_frequencies *frequencies_make(posenc_pairing pairing) {
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_frequencies *frequencies;
    posenc_error error;
    spec.head_dim = HEAD_DIM;
    spec.pairing = pairing;
    must(posenc_frequencies_create(&spec, 0, &frequencies, NULL, &error), &error);
    return frequencies;
}

static rotate_work rotate_work_make(const memory *m, posenc_dtype dtype, posenc_pairing pairing,
                                    size_t tokens, int in_place) {
    posenc_frequencies *frequencies = frequencies_make(pairing);
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_error error;
    rotate_work w;
    rows.cos = m->cos;
    rows.sin = m->sin;
    rows.dtype = dtype == POSENC_F64 ? POSENC_F64 : POSENC_F32;
    must(posenc_angles(frequencies, m->positions, tokens, &rows, &error), &error);
    must(posenc_rotation_of(frequencies, &rows, tokens, &w.rotation, &error), &error);
    posenc_frequencies_destroy(frequencies);
    w.tensor = posenc_tensor_dense(dtype, 1, tokens, HEADS, HEAD_DIM);
    w.from = m->input;
    w.to = in_place ? m->input : m->output;
    w.bytes = tokens * HEADS * HEAD_DIM * posenc_dtype_bytes(dtype);
    return w;
}

static void measure_rotate(const memory *m, posenc_dtype dtype, posenc_pairing pairing,
                           size_t tokens, int in_place, const effort_level *effort) {
    rotate_work work = rotate_work_make(m, dtype, pairing, tokens, in_place);
    copy_work copy = {m->input, m->output, work.bytes};
    side ours = {run_rotate, &work, 0}, theirs = {run_copy, &copy, 0};
    double ratios[MAX_ROUNDS], times[MAX_ROUNDS];
    prepare(&ours, effort);
    prepare(&theirs, effort);
    for (int round = 0; round < effort->rounds; round++) {
        double copy_time = seconds_of(&theirs, theirs.calls);
        times[round] = seconds_of(&ours, ours.calls);
        ratios[round] = copy_time / times[round];
    }
    spread ratio = spread_of(ratios, effort->rounds), time = spread_of(times, effort->rounds);
    printf("%-5s %-11s %6zu %-12s %7.3f %7.3f .. %-7.3f %14.2f\n", posenc_dtype_name(dtype),
           posenc_pairing_name(pairing), tokens, in_place ? "in place" : "out of place",
           ratio.median, ratio.least, ratio.most, 1e6 * time.median);
    fflush(stdout);
}

static void bench_rotate(const memory *m, const effort_level *effort) {
    static const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16, POSENC_F64};
    static const posenc_pairing pairings[] = {POSENC_PAIRING_HALF, POSENC_PAIRING_INTERLEAVED};
    static const size_t tokens[] = {1, 32, MAX_TOKENS};
    printf("posenc_rotate, %d heads x %d, one thread; ratio = memcpy time / our time\n\n", HEADS,
           HEAD_DIM);
    printf("%-5s %-11s %6s %-12s %7s %18s %14s\n", "dtype", "pairing", "tokens", "output", "ratio",
           "least .. most", "microseconds");
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        posenc_error error;
        must(posenc_convert(m->numbers, POSENC_F64, m->input, dtypes[d],
                            (size_t)MAX_TOKENS * HEADS * HEAD_DIM, &error),
             &error);
        for (size_t p = 0; p < sizeof pairings / sizeof *pairings; p++) {
            for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++) {
                measure_rotate(m, dtypes[d], pairings[p], tokens[t], 0, effort);
                measure_rotate(m, dtypes[d], pairings[p], tokens[t], 1, effort);
            }
        }
    }
}

/* --- Angles ---------------------------------------------------------------------------------- */

typedef struct angles_work {
    const posenc_frequencies *frequencies;
    int64_t *positions;
    size_t count;
    int64_t step; /* added to every position after each call, as decoding does */
    posenc_rows rows;
} angles_work;

static void run_angles(void *work) {
    angles_work *w = work;
    posenc_error error;
    must(posenc_angles(w->frequencies, w->positions, w->count, &w->rows, &error), &error);
    for (size_t i = 0; i < w->count; i++)
        w->positions[i] += w->step;
}

/* `count` rows from position `first` on. */
static void measure_angles(const memory *m, posenc_dtype dtype, posenc_mode mode, int64_t first,
                           size_t count, const effort_level *effort) {
    posenc_frequencies *frequencies = frequencies_make(POSENC_PAIRING_HALF);
    int64_t *positions = allocate(count * sizeof *positions);
    angles_work work = {frequencies, positions, count, count == 1, POSENC_ROWS_INIT};
    side ours = {run_angles, &work, 0};
    double times[MAX_ROUNDS];
    for (size_t i = 0; i < count; i++)
        positions[i] = first + (int64_t)i;
    work.rows.cos = m->cos;
    work.rows.sin = m->sin;
    work.rows.dtype = dtype;
    work.rows.mode = mode;
    prepare(&ours, effort);
    for (int round = 0; round < effort->rounds; round++)
        times[round] = 1e9 * seconds_of(&ours, ours.calls) / (double)(count * PAIRS);
    spread time = spread_of(times, effort->rounds);
    printf("%-5s %-11s %6zu %14lld %18.2f %9.2f .. %.2f\n", posenc_dtype_name(dtype),
           posenc_mode_name(mode), count, (long long)first, time.median, time.least, time.most);
    fflush(stdout);
    free(positions);
    posenc_frequencies_destroy(frequencies);
}

static void bench_angles(const memory *m, const effort_level *effort) {
    static const struct {
        posenc_dtype dtype;
        posenc_mode mode;
    } kinds[] = {{POSENC_F32, POSENC_MODE_EXACT},
                 {POSENC_F32, POSENC_MODE_FLOAT32},
                 {POSENC_BF16, POSENC_MODE_EXACT},
                 {POSENC_F64, POSENC_MODE_EXACT}};
    printf("\nposenc_angles, head_dim %d, base 10000; ns per cos+sin pair\n\n", HEAD_DIM);
    printf("%-5s %-11s %6s %14s %18s %20s\n", "dtype", "mode", "rows", "first position",
           "nanoseconds", "least .. most");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        measure_angles(m, kinds[i].dtype, kinds[i].mode, 0, 2048, effort);
        measure_angles(m, kinds[i].dtype, kinds[i].mode, 1000000, 2048, effort);
        measure_angles(m, kinds[i].dtype, kinds[i].mode, 100000, 1, effort);
    }
}

int main(int argc, char **argv) {
    const effort_level *effort = &thorough;
    if (argc == 2 && strcmp(argv[1], "--quick") == 0) {
        effort = &quick;
    } else if (argc != 1) {
        int asked = argc == 2 && strcmp(argv[1], "--help") == 0;
        fprintf(asked ? stdout : stderr, "usage: bench_rotate [--quick]\n");
        return asked ? 0 : 2;
    }
    memory *m = memory_make();
    printf("posenc %s, %d rounds, median\n", posenc_version(), effort->rounds);
    bench_rotate(m, effort);
    bench_angles(m, effort);
    memory_free(m);
    return 0;
}
