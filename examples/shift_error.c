/* What shifting cached keys costs: keys in caches of every format, moved by -2048 positions in one step, in several, in
 * steps of one, and from kept originals; how far they are from keys that were rotated at their goal at once.
 * Prints the table of docs/methods/cache.md. SPDX-License-Identifier: MIT */
#include "posenc/posenc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 64, DIM = 128, ALL = KEYS * DIM, START = 5000, WAY = 2048 };

static void must(posenc_status status, const posenc_error *error) {
    char text[300];
    if (!status)
        return;
    posenc_error_text(error, text, sizeof text);
    fprintf(stderr, "shift_error: %s\n", text);
    exit(1);
}

/* Normal numbers that repeat in every run: the sum of twelve uniform ones. */
static void make_keys(double *keys) {
    uint64_t state = 1;
    for (int i = 0; i < ALL; i++) {
        keys[i] = -6.0;
        for (int j = 0; j < 12; j++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
            keys[i] += (double)(state >> 11) * 0x1p-53;
        }
    }
}

/* The keys at one position, in float64. */
static void rotate_keys(const posenc_frequencies *f, const double *keys, int64_t position,
                        double *turned) {
    static double cos[DIM / 2], sin[DIM / 2];
    posenc_rows rows = POSENC_ROWS_INIT;
    posenc_rotation rotation;
    posenc_error error;
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F64, 1, 1, KEYS, DIM);
    rows.cos = cos;
    rows.sin = sin;
    rows.dtype = POSENC_F64;
    must(posenc_angles(f, &position, 1, &rows, &error), &error);
    must(posenc_rotation_of(f, &rows, 1, &rotation, &error), &error);
    must(posenc_rotate(&rotation, &tensor, keys, turned, NULL, &error), &error);
}

/* One slot whose heads are the keys. */
typedef struct key_cache {
    posenc_cache cache;
    char data[ALL * 4];
    float scales[KEYS];
} key_cache;

static void make_cache(key_cache *c, posenc_cache_format format, const double *turned) {
    static float single[ALL];
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F32, 1, 1, KEYS, DIM);
    posenc_append_item item = {&tensor, single, &c->cache, NULL};
    posenc_error error;
    for (int i = 0; i < ALL; i++)
        single[i] = (float)turned[i];
    c->cache = posenc_cache_dense(format, c->data, 1, 1, KEYS, DIM);
    if (format == POSENC_CACHE_INT8 || format == POSENC_CACHE_FP8_E4M3) {
        c->cache.scales = c->scales;
        c->cache.scale_count = KEYS;
    }
    must(posenc_cache_append(NULL, &item, NULL, NULL, NULL, &error), &error);
}

static void shift(key_cache *c, const key_cache *originals, const posenc_frequencies *f,
                  int64_t from, int64_t to) {
    const int64_t slot = 0;
    posenc_shift s = POSENC_SHIFT_INIT;
    posenc_error error;
    s.from = f;
    s.slots = &slot;
    s.count = 1;
    s.from_positions = &from;
    s.to_positions = &to;
    s.originals = originals ? &originals->cache : NULL;
    must(posenc_cache_shift(&c->cache, &s, &error), &error);
}

/* Root mean square of the difference, relative to the keys. */
static double error_of(const key_cache *c, const double *goal) {
    static double got[ALL];
    const int64_t slot = 0;
    posenc_tensor tensor = posenc_tensor_dense(POSENC_F64, 1, 1, KEYS, DIM);
    posenc_error error;
    double off = 0.0, all = 0.0;
    must(posenc_cache_read(&c->cache, &slot, 1, &tensor, got, &error), &error);
    for (int i = 0; i < ALL; i++) {
        off += (got[i] - goal[i]) * (got[i] - goal[i]);
        all += goal[i] * goal[i];
    }
    return sqrt(off / all);
}

int main(void) {
    static const posenc_cache_format formats[] = {POSENC_CACHE_F32, POSENC_CACHE_F16,
                                                  POSENC_CACHE_BF16, POSENC_CACHE_INT8,
                                                  POSENC_CACHE_FP8_E4M3};
    static const int steps[] = {1, 8, 64, WAY};
    static double keys[ALL], at_start[ALL], at_goal[ALL];
    static key_cache c, originals;
    posenc_spec spec = POSENC_SPEC_INIT;
    posenc_frequencies *f;
    posenc_error error;
    spec.head_dim = DIM;
    must(posenc_frequencies_create(&spec, 0, &f, NULL, &error), &error);
    make_keys(keys);
    rotate_keys(f, keys, START, at_start);
    rotate_keys(f, keys, START - WAY, at_goal);
    make_cache(&originals, POSENC_CACHE_F32, at_start);
    printf("| cache | not shifted | 1 shift | 8 shifts | 64 shifts | %d shifts | from originals |\n"
           "|---|---|---|---|---|---|---|\n",
           WAY);
    int good = 1;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        make_cache(&c, formats[i], at_start);
        double stored = error_of(&c, at_start);
        printf("| %s | %.1e |", posenc_cache_format_name(formats[i]), stored);
        for (int k = 0; k < 4; k++) {
            int64_t hop = WAY / steps[k];
            make_cache(&c, formats[i], at_start);
            for (int64_t at = START; at > START - WAY; at -= hop)
                shift(&c, NULL, f, at, at - hop);
            printf(" %.1e |", error_of(&c, at_goal));
        }
        for (int64_t to = START - 1; to >= START - WAY; to--)
            shift(&c, &originals, f, START, to);
        double kept = error_of(&c, at_goal);
        printf(" %.1e |\n", kept);
        good = good && kept < 1.1 * stored + 1e-7; /* no worse than never shifted */
    }
    posenc_frequencies_destroy(f);
    return good ? 0 : 1;
}
