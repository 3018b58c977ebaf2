/* posenc bench: its table and its JSON. SPDX-License-Identifier: MIT */
#include "bench.h"

#include "bench_copy.h"
#include "output.h"
#include "posenc/cpu.h"

#include <stdio.h>
#include <string.h>

static double gigabytes_per_second(const bench_result *result, double seconds) {
    return (double)result->traffic / seconds * 1e-9;
}

/* --- JSON: null stands where a work has no such thing --------------------------------------------- */

static void json_word(const char *key, int there, const char *word) {
    if (there)
        json_string(key, word);
    else
        json_null(key);
}

static void json_size(const char *key, size_t size) {
    if (size)
        json_integer(key, (int64_t)size);
    else
        json_null(key);
}

/* A speed, from the seconds of a call; 0 seconds: there is none. */
static void json_speed(const char *key, const bench_result *result, double seconds) {
    if (seconds > 0)
        json_number(key, gigabytes_per_second(result, seconds));
    else
        json_null(key);
}

static void print_peers_json(const bench_result *result) {
    if (!result->peer_count)
        return;
    json_open("peers", '[');
    for (size_t i = 0; i < result->peer_count; i++) {
        const bench_times *times = &result->peers[i].times;
        json_open(NULL, '{');
        json_string("name", result->peers[i].name);
        json_number("nanoseconds_per_pair", 1e9 * times->reference / (double)result->pairs);
        json_number("ratio", times->ratio);
        json_number("ratio_least", times->ratio_least);
        json_number("ratio_most", times->ratio_most);
        json_close();
    }
    json_close();
}

static void print_json(const bench_case *c, const bench_result *result) {
    const bench_times *times = &result->times;
    int turns = bench_turns(c);
    json_open(NULL, '{');
    json_string("work", bench_work_names[c->work]);
    json_string("dtype", posenc_dtype_name(c->dtype));
    json_word("pairing", turns, posenc_pairing_name(c->pairing));
    json_size("tokens", c->tokens);
    json_size("heads", c->heads);
    json_size("head_dim", c->head_dim);
    if (c->work == BENCH_APPEND)
        json_string("cache", posenc_cache_format_name(c->cache));
    json_word("order", turns, bench_order_names[c->order]);
    json_boolean("in_place", c->in_place);
    json_integer("threads", result->threads);
    json_speed("gb_per_s", result, times->ours);
    json_speed("memcpy_gb_per_s", result, turns ? times->reference : 0);
    json_speed("memset_gb_per_s", result, turns ? 0 : times->reference);
    json_speed("copy_loop_gb_per_s", result, times->loop);
    json_number("ratio", times->ratio);
    json_number("ratio_least", times->ratio_least);
    json_number("ratio_most", times->ratio_most);
    if (times->parts > 0)
        json_number("parts_ratio", times->parts_ratio);
    if (times->alone > 0)
        json_number("alone_ratio", times->alone_ratio);
    json_number("nanoseconds", 1e9 * times->ours);
    if (c->work == BENCH_ANGLES) {
        json_string("mode", posenc_mode_name(c->mode));
        json_integer("first_position", c->first_position);
        json_boolean("scattered", c->scattered);
        json_number("nanoseconds_per_pair", 1e9 * times->ours / (double)result->pairs);
        print_peers_json(result);
    }
    json_close();
}

/* --- A table of at most 80 columns ---------------------------------------------------------------- */

/* A group of rows has one heading: works, dtypes, pairings and modes do not change within. */
static int same_group(const bench_case *a, const bench_case *b) {
    return a->work == b->work && a->dtype == b->dtype && a->pairing == b->pairing &&
           a->mode == b->mode && a->cache == b->cache;
}

static void print_heading(const bench_case *c) {
    const char *dtype = posenc_dtype_name(c->dtype);
    const char *columns[] = {"tokens", "width", "order", "place", "memcpy", "loop"};
    switch (c->work) {
    case BENCH_ROTATE:
        printf("\nrotate, %s, %s\n", dtype, posenc_pairing_name(c->pairing));
        break;
    case BENCH_NORM_ROTATE:
        printf("\nnorm_rotate, %s, %s: the norm of each head, then the rotation\n", dtype,
               posenc_pairing_name(c->pairing));
        columns[2] = "alone";
        columns[5] = "parts";
        break;
    case BENCH_APPEND:
        printf("\nappend, %s to %s, %s: keys rotated, values, %zu heads, blocks of 16\n", dtype,
               posenc_cache_format_name(c->cache), posenc_pairing_name(c->pairing), c->heads);
        columns[2] = columns[3] = "";
        columns[5] = "parts";
        break;
    case BENCH_ANGLES:
        printf("\nangles, %s, mode %s: rows of cos and sin\n", dtype, posenc_mode_name(c->mode));
        columns[0] = "rows";
        columns[2] = "from";
        columns[3] = "order";
        columns[5] = "ns/pair";
        columns[4] = "memset";
        break;
    case BENCH_BIAS:
    case BENCH_WORKS:
        printf("\nbias, %s: causal ALiBi of %zu heads in tiles\n", dtype, c->heads);
        columns[0] = "keys";
        columns[1] = columns[2] = columns[3] = columns[5] = "";
        columns[4] = "memset";
    }
    printf("%6s %5s %7s %5s %10s %6s %6s %7s %6s %6s %6s\n", columns[0], columns[1], columns[2],
           columns[3], "us", "GB/s", columns[4], columns[5], "ratio", "least", "most");
}

static void print_row(const bench_case *c, const bench_result *result) {
    const bench_times *times = &result->times;
    char width[32] = "", order[32] = "", loop[32] = "";
    int placed = c->work == BENCH_ROTATE || c->work == BENCH_NORM_ROTATE;
    if (c->head_dim)
        snprintf(width, sizeof width, "%zu", c->head_dim);
    if (c->work == BENCH_ROTATE)
        snprintf(order, sizeof order, "%s", bench_order_names[c->order]);
    if (c->work == BENCH_ANGLES)
        snprintf(order, sizeof order, "%lld", (long long)c->first_position);
    if (result->pairs)
        snprintf(loop, sizeof loop, "%.3f", 1e9 * times->ours / (double)result->pairs);
    if (times->alone > 0)
        snprintf(order, sizeof order, "%.3f", times->alone_ratio);
    if (times->parts > 0)
        snprintf(loop, sizeof loop, "%.3f", times->parts_ratio);
    if (times->loop > 0)
        snprintf(loop, sizeof loop, "%.1f", gigabytes_per_second(result, times->loop));
    printf("%6zu %5s %7s %5s %10.3f %6.1f %6.1f %7s %6.3f %6.3f %6.3f\n", c->tokens, width, order,
           c->scattered  ? "mixed"
           : !placed     ? ""
           : c->in_place ? "in"
                         : "out",
           1e6 * times->ours, gigabytes_per_second(result, times->ours),
           gigabytes_per_second(result, times->reference), loop, times->ratio, times->ratio_least,
           times->ratio_most);
}

/* Below the row that they were measured beside; ratio: their time by ours. */
static void print_peers(const bench_result *result) {
    for (size_t i = 0; i < result->peer_count; i++) {
        const bench_times *times = &result->peers[i].times;
        printf("  beside it, %-38s %7.3f %6.2f %6.2f %6.2f\n", result->peers[i].name,
               1e9 * times->reference / (double)result->pairs, times->ratio, times->ratio_least,
               times->ratio_most);
    }
}

void bench_print_begin(const bench_job *job) {
    if (cli_wants_json(job->arguments)) {
        json_open(NULL, '[');
        return;
    }
    printf("posenc %s, level %s, threads %u; %d rounds of %g ms a side, medians.\n"
           "ratio: time of memcpy (memset) / time of posenc for the same bytes, with its\n"
           "least and most. loop: a bare copy loop with vectors of %zu bytes.\n",
           posenc_version(), posenc_cpu(), cli_threads(job->arguments), job->effort.rounds,
           1e3 * job->effort.seconds, bench_copy_loop_now().vector);
}

void bench_print_case(const bench_job *job, const bench_case *c, const bench_result *result,
                      const bench_case *before) {
    if (cli_wants_json(job->arguments)) {
        print_json(c, result);
        return;
    }
    if (!before || !same_group(before, c))
        print_heading(c);
    print_row(c, result);
    print_peers(result);
    fflush(stdout);
}

void bench_print_end(const bench_job *job) {
    if (cli_wants_json(job->arguments)) {
        json_close();
        json_end();
    }
}
